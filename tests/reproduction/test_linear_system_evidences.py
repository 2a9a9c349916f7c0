"""What holds of sampled evidences of linear dynamical systems, in the record of a run, and two runs of it again."""

from pathlib import Path

import numpy as np
import pytest
from reproduction import linear_system_evidences as study

PAGE = Path(__file__).parents[2] / "doc" / "user_guide" / "state_space.rst"
LINES = study.record()
# Standard errors that means and spreads of a record may be off.
_REACH = 3.0
# Runs of which the page says that they are far off and do not doubt themselves.
_TOO_SURE = {("nile, two", "ais"): 1}
# Scores of which some runs do not doubt themselves: what others state is no claim.
ASKED = [asked for asked in study.measured(LINES) if np.sum(~study.deviations(LINES, *asked)[2]) > 1]


def test_runs_are_recorded_once():
    names = [(line["run"], line["score"], line["seed"]) for line in LINES if "run" in line]
    assert len(set(names)) == len(names)
    assert {(name, score) for name, score, _ in names} == set(study.ASKED)


@pytest.mark.parametrize(("name", "score"), ASKED)
def test_sampled_evidences_are_those_that_are_known(name, score):
    """Unbiased for the evidence itself: its logarithm is too low by half the variance."""
    off, error = undoubted(name, score)
    of_mean = np.hypot(off.std(ddof=1) / np.sqrt(len(off)), study.references(LINES)[name][1])
    assert abs(off.mean() + 0.5 * np.mean(error**2)) < _REACH * of_mean


@pytest.mark.parametrize(("name", "score"), ASKED)
def test_stated_errors_are_those_that_runs_have(name, score):
    off, error = undoubted(name, score)
    spread = off.std(ddof=1) / np.sqrt(np.mean(error**2))
    of_spread = _REACH / np.sqrt(2 * len(off))
    assert 0.8 * (1 - of_spread) < spread < 1.25 * (1 + of_spread)
    of_difference = np.hypot(error, study.references(LINES)[name][1])
    assert np.sum(study.wrong(off, of_difference)) == _TOO_SURE.get((name, score), 0)


def undoubted(name, score):
    """What runs that do not doubt themselves are off by, and their stated errors."""
    off, error, doubted = study.deviations(LINES, name, score)
    return off[~doubted], error[~doubted]


@pytest.mark.parametrize("score", [pytest.param(s, marks=pytest.mark.slow if s == "ais" else ()) for s in study.SCORES])
def test_a_run_again(score):
    """But for rounding, by which a particle may be another one."""
    mine = {"run": "four steps", "score": score, "seed": 0}
    (old,) = (line for line in LINES if mine.items() <= {name: line.get(name) for name in mine}.items())
    new = study.run_of("four steps", score, 0)
    assert new["value"] == pytest.approx(old["value"], abs=2 * old["error"])
    assert new["error"] == pytest.approx(old["error"], rel=0.3)


@pytest.mark.skipif(not PAGE.exists(), reason="no documentation beside the tests")
def test_the_page_shows_the_record():
    page = PAGE.read_text("utf-8")
    assert [row for row in study.table(LINES) if f"   {', '.join(row)}\n" not in page] == []
