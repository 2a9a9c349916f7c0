"""A file with one thing changed and the checksums right is a sound fit or is refused; the interpreter lives on."""

import copy
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from persistence.changes import File
from persistence.fits import fitted
from persistence.fuzz import NAMES, hold_up

from skvbem import load, save
from skvbem.errors import SavedFitError
from skvbem.persistence.registry import CLASSES
from skvbem.persistence.sound_fits import SOUND
from skvbem.persistence.soundness import conforms

# Where nothing is to be checked: no numbers, or a constructor that checks all.
WITHOUT_MEANING = {
    "DAG",
    "HMMMethod",
    "LDSMethod",
    "MixedNetworkMethod",
    "MixtureMethod",
    "Move",
    "Network",
}
WITHOUT_MEANING |= {"NetworkMethod", "Partition", "PriorStart", "StructuralMethod", "UndirectedGraph"}
FEW = ("system, vb", "factors, vb", "mixture of frames, vb", "on a number", "checkpoint", "journal")


def test_every_class_that_a_file_may_name_has_a_check_of_meaning():
    assert SOUND.keys() == CLASSES.keys()
    assert {name for name in SOUND if SOUND[name].__name__ == "_anything"} == WITHOUT_MEANING


@pytest.mark.parametrize("name", FEW)
def test_changed_files_are_sound_or_refused(name, tmp_path):
    counts, wrong = hold_up(name, 0, 15, tmp_path)
    assert not wrong
    assert counts["refused"] + counts["answers"] == 15


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_twenty_thousand_changed_files_are_sound_or_refused(name, tmp_path):
    counts, wrong = hold_up(name, 1, -(-20_000 // len(NAMES)), tmp_path)
    assert not wrong
    assert min(counts["refused"], counts["answers"]) > 0


@pytest.mark.parametrize("part", ["precision_of", "noise_of"])
@pytest.mark.parametrize("value", [-1, 5, 10**6, 2**62])
def test_indices_beyond_what_there_is_are_refused(part, value, tmp_path):
    """Compiled loops would write there."""
    path = tmp_path / "fit.skvbem"
    save(fitted("system, vb")[0], path)
    file = File(path.read_bytes())
    number = next(
        v["array"] for n, parts in file.content["objects"] if n == "Regression" for p, v in parts if p == part and v
    )
    sizes = [int(np.prod(shape)) * np.dtype(name).itemsize for name, shape, _ in file.content["arrays"]]
    arrays, start = bytearray(file.arrays), sum(sizes[:number])
    arrays[start : start + 8] = value.to_bytes(8, "little", signed=True)
    path.write_bytes(file.packed(file.content, bytes(arrays)))
    code = (
        "import sys, skvbem\ntry:\n    skvbem.load(sys.argv[1])\nexcept skvbem.errors.SavedFitError as e:\n    print(e)"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert "cannot be loaded: it has " in done.stdout


def test_types_are_those_of_annotations():
    for hint, good, bad in (
        (int, [0, np.int64(3)], [True, 1.0, "1", None]),
        (float, [0, 1.5, np.float64(2)], [True, "1.5", 1j]),
        (bool, [True, np.bool_(False)], [0, 1, None]),
        (tuple[int, ...], [(), (1, 2)], [[1], (1.5,), 3]),
        (tuple[int, str], [(1, "a")], [(1,), (1, 2), (1, "a", "b")]),
        (dict[str, int], [{}, {"a": 1}], [{"a": "b"}, {1: 1}, []]),
        (np.ndarray | None, [None, np.zeros(1)], [[], 0]),
    ):
        assert all(conforms(value, hint) for value in good)
        assert not any(conforms(value, hint) for value in bad)


def test_optima_that_are_no_posterior_are_refused(tmp_path):
    """Chains would start from there."""
    path, estimator = tmp_path / "fit.skvbem", copy.deepcopy(fitted("mixture, vb")[0])
    run = estimator._run_
    estimator._run_ = replace(run, fit=replace(run.fit, optima=np.zeros_like(run.fit.optima) - 1e3))
    save(estimator, path)
    with pytest.raises(SavedFitError, match="optima"):
        load(path)
