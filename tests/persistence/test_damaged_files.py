"""A damaged or harmful file is refused by one error that names it; nothing in it is run, and no fit is another one."""

import io
import json
import pickle
import tracemalloc
import zipfile
from hashlib import sha256

import numpy as np
import pytest
from persistence.changes import File
from persistence.fits import fitted

from skvbem import load, save
from skvbem.errors import SavedFitError, TooLargeError
from skvbem.persistence import archive
from skvbem.persistence.decoding import Decoder

SMALL = ("dag, vb", "mixture of frames, vb", "hmm of frames, map")


def saved(tmp_path, estimator):
    path = tmp_path / "fit.skvbem"
    save(estimator, path)
    return path


def refused(path, why=""):
    with pytest.raises(SavedFitError, match=why) as caught:
        load(path)
    assert str(caught.value).startswith(f"{str(path)!r} cannot be loaded: ")
    return str(caught.value)


def mutated(data, rng):
    """A file with a few bytes changed, a piece cut out, doubled or put elsewhere, or torn off."""
    at, to = sorted(rng.integers(0, len(data), 2).tolist())
    kind = rng.integers(6)
    if kind <= 1:
        changed = bytearray(data)
        for place in rng.integers(0, len(data), 1 + 3 * kind):
            changed[place] ^= 1 << rng.integers(8) if kind else rng.integers(1, 256)
        return bytes(changed)
    if kind == 2:
        return data[:at]
    if kind == 3:
        return data[:at] + data[to:]
    if kind == 4:
        return data[:at] + data[at : at + 50] + data[at:]
    return data[:at] + data[at:to][::-1] + data[to:]


def hold_up(tmp_path, n_mutations, seed):
    """Load mutated files; how many of them held the fit that was saved."""
    rng, n_whole, n_named = np.random.default_rng(seed), 0, 0
    path, copy = tmp_path / "mutated.skvbem", tmp_path / "copy.skvbem"
    originals = []
    for name in SMALL:
        save(fitted(name)[0], path)
        originals.append(path.read_bytes())
    for number in range(n_mutations):
        original = originals[number % len(originals)]
        path.write_bytes(mutated(original, rng))
        try:
            fit = load(path)
        except SavedFitError as error:
            n_named += str(error).startswith(f"{str(path)!r} cannot be loaded: ")
        else:
            save(fit, copy)
            assert copy.read_bytes() == original, f"mutation {number} of seed {seed} is another estimator"
            n_whole += 1
    assert n_named + n_whole == n_mutations, "an error does not name its file"
    return n_whole


def test_mutated_files_are_refused_or_the_same_fit(tmp_path):
    assert hold_up(tmp_path, 400, 0) < 40


@pytest.mark.slow
def test_ten_thousand_mutated_files_are_refused_or_the_same_fit(tmp_path):
    assert hold_up(tmp_path, 10_000, 1) < 1_000


def rewritten(path, change, name="content.json"):
    """The file with a member changed and all checksums right, as one who means harm would make it."""
    with zipfile.ZipFile(path) as members:
        parts = {each: members.read(each) for each in members.namelist()}
    described = json.loads(parts[name])
    described = change(described) or described
    parts[name] = json.dumps(described).encode()
    if name != "header.json":
        header = json.loads(parts["header.json"])
        header["sha256"] = {each: sha256(parts[each]).hexdigest() for each in ("content.json", "arrays.bin")}
        parts["header.json"] = json.dumps(header).encode()
    zipped(path, parts)
    return path


def zipped(path, parts, how=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", how) as members:
        for each, text in parts.items():
            members.writestr(each, text)
    return path


class Canary:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def test_pickles_are_not_opened(tmp_path):
    canary = tmp_path / "sang"
    path = tmp_path / "fit.skvbem"
    path.write_bytes(pickle.dumps(Canary(canary)))
    refused(path, "looks like a pickle, which load never opens")
    array = io.BytesIO()
    np.save(array, np.array([Canary(canary)], dtype=object), allow_pickle=True)
    zipped(path, dict(zip(archive.MEMBERS, (b"{}", b"{}", array.getvalue()))))
    refused(path, "header is not that of a saved fit")
    assert not canary.exists()


def test_other_classes_and_functions_are_not_looked_up(tmp_path):
    fit, _, _ = fitted("mixture, vb")
    for name in ("os.system", "Canary", "StructureSearchCV", "object", "__class__", 3, None):

        def other_class(content, name=name):
            content["objects"][-1][0] = name

        refused(rewritten(saved(tmp_path, fit), other_class), "there is no class .* among those of saved fits")

        def other_function(content, name=name):
            content["fit"] = {"function": name}

        refused(rewritten(saved(tmp_path, fit), other_function), "there is no function|TypeError")


@pytest.mark.parametrize(
    ("fit", "why"),
    [
        ({"object": 10**9}, "is the place of nothing that came before"),
        ({"object": -1}, "is the place of nothing that came before"),
        ({"object": 0}, "it holds a "),
        ({"array": 0}, "it holds a ndarray"),
        ({"pickle": ""}, "there is no kind 'pickle'"),
        ({"list": [1], "tuple": [1]}, "describes nothing"),
        ([1], "describes nothing"),
        ({"objects": [[10**12], []]}, "an array of 0 objects is said to have the shape"),
        ({"scalar": ["O", "00"]}, "there are no arrays of the type 'O'"),
        (None, "it holds a NoneType"),
    ],
)
def test_what_describes_no_fit_is_refused(fit, why, tmp_path):
    def changed(content):
        content["fit"] = fit

    refused(rewritten(saved(tmp_path, fitted("mixture, vb")[0]), changed), why)


def changed_part(content, name, part, value):
    """The content with one part of the first object of a class changed."""
    parts = next(described for of_class, described in content["objects"] if of_class == name)
    if value is ...:
        parts[:] = [pair for pair in parts if pair[0] != part]
    elif part in dict(map(tuple, ((p, 0) for p, _ in parts))):
        next(pair for pair in parts if pair[0] == part)[1] = value
    else:
        parts.append([part, value])


@pytest.mark.parametrize(
    ("name", "part", "value", "why"),
    [
        ("VBDiscreteDAG", "predict", 1, "has no part 'predict'"),
        ("VBDiscreteDAG", "__class__", 1, "has no part '__class__'"),
        ("VBDiscreteDAG", "n_init", ..., "lacks the part 'n_init'"),
        ("VBDiscreteDAG", "_fitted_", 1, "its fit is a int"),
        ("VBDiscreteDAG", "_fitted_", ..., "it is not fitted"),
        ("Layout", "parents", {"tuple": [{"tuple": [9]}] * 5}, "IndexError"),
        ("Layout", "parents", {"tuple": [{"tuple": [-1]}] * 5}, "parents that are no nodes"),
        ("Layout", "parents", {"tuple": [{"tuple": []}] * 5}, "parents that are not those of its graph"),
        ("Layout", "cardinalities", {"tuple": [2, 2, 2, 3, -3]}, "cardinalities that are no counts"),
        ("Layout", "cardinalities", {"tuple": [2, 2, 2, 3, 10**9]}, "a prior of other tables"),
        ("Layout", "first_cell", {"tuple": [0] * 5}, "a Layout has no part 'first_cell'"),
        ("Form", "name", "mle", "no form of q"),
        ("Dirichlet", "row_starts", {"array": 0}, "rows "),
        ("DiscreteDAG", "position", {"dict": []}, "nodes at other positions"),
        ("FittedNetwork", "statistics", {"list": []}, "the part .statistics. of a FittedNetwork is a list"),
    ],
)
def test_parts_that_do_not_belong_together_are_refused(name, part, value, why, tmp_path):
    path = saved(tmp_path, fitted("dag, vb")[0])
    refused(rewritten(path, lambda content: changed_part(content, name, part, value)), why)


def test_arrays_are_measured_before_they_are_made(tmp_path):
    fit, _, _ = fitted("mixture, vb")
    for line, why in (
        (["<f8", [10**12], "C"], "is said to be longer than what there is"),
        (["<f8", [-1], "C"], "is said to have the shape"),
        (["<f8", [1] * 100, "C"], "is said to have the shape"),
        (["<f8", [2.0], "C"], "is said to have the shape"),
        (["|O", [1], "C"], "there are no arrays of the type"),
        (["<f8,<f8", [1], "C"], "there are no arrays of the type"),
        (["<f8", [0], "C"], "more numbers than its arrays hold"),
    ):

        def other_array(content, line=line):
            content["arrays"][-1] = line

        refused(rewritten(saved(tmp_path, fit), other_array), why)


def test_archives_that_are_not_ours_are_refused(tmp_path):
    path = saved(tmp_path, fitted("mixture, vb")[0])
    with zipfile.ZipFile(path) as members:
        parts = {each: members.read(each) for each in members.namelist()}
    refused(zipped(path, {**parts, "../../evil.py": b"1"}), "its members must be header.json, content.json, arrays.bin")
    refused(zipped(path, {}), "members must be|no zip archive")
    bomb = {**parts, "arrays.bin": bytes(10**8)}
    assert zipped(path, bomb, zipfile.ZIP_DEFLATED).stat().st_size < 10**6
    refused(path, "is compressed or encrypted")
    refused(zipped(path, {**parts, "content.json": b"[" * 100_000}), "checksum")
    refused(
        rewritten(zipped(path, parts), lambda content: [content]), "its content must have arrays, objects and a fit"
    )
    path.write_bytes(b"")
    refused(path, "it is empty")
    path.write_text("hello")
    refused(path, "it is no zip archive")


def test_nesting_and_names_that_come_twice_are_refused(tmp_path):
    for text in (b"[" * 100_000, b'{"a": 1, "a": 2}', b'{"a": NaN}', b"\xff", b"1" * 10_000):
        with pytest.raises(archive.DamagedError, match=r"its member 'content.json' cannot be read"):
            archive.json_of(text, "content.json")


def test_a_file_that_is_too_long_is_not_read(tmp_path):
    path = saved(tmp_path, fitted("mixture, vb")[0])
    with pytest.raises(TooLargeError, match="is longer than max_bytes=100"):
        load(path, max_bytes=100)
    assert load(path, max_bytes=path.stat().st_size).n_components == 2


def test_a_newer_version_says_what_to_do(tmp_path):
    path = saved(tmp_path, fitted("mixture, vb")[0])
    rewritten(path, lambda header: header | {"version": archive.VERSION + 1, "written by skvbem": "9.1"}, "header.json")
    refused(
        path, r"version 2, written by skvbem '9.1'; this is .* Update skvbem:  python -m pip install --upgrade skvbem"
    )
    for version in (0, "1", True, None, 1.0):
        rewritten(path, lambda header, version=version: header | {"version": version}, "header.json")
        refused(path, "does not say by which version of the format")


def test_files_that_are_no_files(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        load(tmp_path / "nowhere.skvbem")
    for path in ("\ud800", "a\0b"):
        with pytest.raises(ValueError, match="holds characters that no name of a file may have"):
            load(path)
    with pytest.raises(OSError, match="is no regular file"):
        load(tmp_path)
    with pytest.raises(OSError, match="is no regular file"):
        save(fitted("mixture, vb")[0], tmp_path)


def test_a_short_file_takes_little_memory(tmp_path):
    """Not `max_bytes`, which is what a long one may take."""
    path = saved(tmp_path, fitted("mixture, vb")[0])
    tracemalloc.start()
    load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5e6 + 50 * path.stat().st_size


@pytest.mark.parametrize("part", [["<f8", [0], "C"], [], {"a": "b"}])
def test_descriptions_that_swell_are_refused_before_they_are_read(part, tmp_path, monkeypatch):
    """A short file of a million empty arrays would take hundreds of megabytes."""
    path = saved(tmp_path, fitted("mixture of frames, vb")[0])
    monkeypatch.setattr(archive, "_SMALL", 2**20)
    load(path)
    file = File(path.read_bytes())
    file.content["arrays"] += [part] * 40_000
    path.write_bytes(file.packed(file.content, file.arrays))
    monkeypatch.setattr(archive, "json_of", lambda text, name: json.loads(text) if name == "header.json" else 1 / 0)
    refused(path, "its description would take .* bytes of memory")


@pytest.mark.parametrize("ends", [(0, 2, 6, 0), (0, 7, 2, 6), (1, 2, 2, 6), (0, 2, 4, 5), ()])
def test_rows_of_sparse_arrays_cover_their_numbers(ends):
    """SciPy takes the first of these, and reads beyond its arrays once it turns rows into columns."""
    arrays = [np.ones(6), np.array([0, 1, 0, 1, 2, 3]), np.array(ends, dtype=np.int64)]
    described = [[each.dtype.str, [len(each)], "C"] for each in arrays]
    sparse = {"sparse": [[3, 4], *({"array": k} for k in range(3))]}
    content = {"arrays": described, "objects": [], "fit": sparse}
    with pytest.raises(ValueError, match="do not cover its numbers"):
        Decoder(content, b"".join(each.tobytes() for each in arrays), {})
