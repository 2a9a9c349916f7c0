"""What holds of sampled evidences of factor analyzers, in the record of a run, and a run of it again."""

import numpy as np
import pytest
from reproduction import factor_evidences as study

LINES = study.record()


def test_runs_are_recorded_once():
    names = [(line["run"], line["score"], line["seed"]) for line in LINES if "run" in line]
    assert len(set(names)) == len(names) == len(study.SCORES) * study.N_RUNS * study.N_PROBLEMS


def test_auto_is_as_uncertain_as_it_says():
    """Forty runs: 95 % within two errors, give or take 3.4 %."""
    off, error, doubted = study.deviations(LINES, "auto", range(study.N_PROBLEMS))
    assert not doubted.any()
    assert np.mean(np.abs(off) <= 2 * error) > 0.88
    assert np.abs(off / error).max() < 4.0


@pytest.mark.parametrize("number", [0, 1])
def test_long_runs_of_two_kinds_agree(number):
    bridge, chains = (line for line in LINES if line.get("reference") == str(number))
    assert abs(bridge["value"] - chains["value"]) < 3 * np.hypot(bridge["error"], chains["error"])


@pytest.mark.slow
def test_a_run_again():
    (old,) = (line for line in LINES if (line.get("run"), line.get("score"), line["seed"]) == ("0", "auto", 0))
    new = study.scored("0", 0, kind="auto")
    assert new["value"] == pytest.approx(old["value"], abs=2 * old["error"])
