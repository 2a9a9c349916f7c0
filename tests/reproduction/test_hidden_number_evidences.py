"""What holds of sampled evidences of networks with hidden numbers, in the record of a run, and a run of it again."""

import numpy as np
import pytest
from reproduction import hidden_number_evidences as study

LINES = study.record()


def test_runs_are_recorded_once():
    names = [(line["run"], line["score"], line["seed"]) for line in LINES if "run" in line]
    assert len(set(names)) == len(names) == len(study.SCORES) * study.N_RUNS * study.N_PROBLEMS


def test_auto_is_as_uncertain_as_it_says():
    """Eighty runs: 95 % within two errors, give or take 2.4 %."""
    off, error, _ = study.deviations(LINES, "auto")
    assert np.mean(np.abs(off) <= 2 * error) > 0.9
    assert np.abs(off / error).max() < 4.5


@pytest.mark.parametrize("number", range(study.N_PROBLEMS))
def test_long_runs_of_two_kinds_agree(number):
    one, other = (line for line in LINES if line.get("reference") == str(number))
    assert abs(one["value"] - other["value"]) < 3.5 * np.hypot(one["error"], other["error"])


def test_bounds_lie_below_evidences():
    known = study.references(LINES)
    below = [known[line["run"]][0] - line["bound"] for line in LINES if "run" in line]
    assert min(below) > 0


@pytest.mark.slow
def test_a_run_again():
    (old,) = (line for line in LINES if (line.get("run"), line.get("score"), line["seed"]) == ("0", "auto", 0))
    new = study.scored("0", 0, kind="auto")
    assert new["value"] == pytest.approx(old["value"], abs=2 * old["error"])
