"""What holds of the coverage of intervals, in the record of a run, and one simulation of that run again."""

from pathlib import Path

import numpy as np
import pytest
from reproduction import interval_coverage

PAGE = Path(__file__).parents[2] / "doc" / "user_guide" / "intervals.rst"
RECORDS = interval_coverage.read()
# Standard errors of a coverage, counted as if the intervals of one simulation were one.
_REACH = 3.0


@pytest.mark.parametrize("name", ["classes, K = 2", "chain, K = 2"])
def test_a_simulation_again(name):
    """But for rounding, by which a draw may lie on the other side of the truth."""
    complete = (each for each in RECORDS if "predictive probabilities" in each["held"]["draws"])
    seed = min(each["seed"] for each in complete if each["problem"] == name and each["n_sweeps"] <= 4096)
    (before,) = (each for each in RECORDS if (each["problem"], each["n"], each["seed"]) == (name, 200, seed))
    again = interval_coverage.measured(name, 200, seed)
    for method in interval_coverage.METHODS:
        for what, counts in before["held"][method].items():
            assert np.abs(np.subtract(again["held"][method][what], counts)).max() <= 1


def test_simulations_are_recorded_once():
    names = [(each["problem"], each["n"], each["seed"]) for each in RECORDS]
    assert len(set(names)) == len(names)
    assert {name for name, *_ in names} == set(interval_coverage.PROBLEMS)


@pytest.mark.parametrize("name", interval_coverage.PROBLEMS)
def test_draws_hold_what_labels_have_no_say_in_as_often_as_they_say(name):
    """Within three standard errors, and 2 in a hundred for what ends of intervals vary by."""
    held = [each["held"]["draws"] for each in RECORDS if each["problem"] == name]
    for what in interval_coverage.PROBLEMS[name].labels_free:
        of_each = np.array([each[what] for each in held if what in each], dtype=float)
        shares = of_each[:, :-1] / of_each[:, -1:]
        for level, share in zip(interval_coverage.LEVELS, shares.T):
            error = share.std() / np.sqrt(len(share))
            assert share.mean() == pytest.approx(level, abs=_REACH * error + 0.02), what


@pytest.mark.parametrize("name", interval_coverage.PROBLEMS)
def test_intervals_of_vb_hold_less(name):
    held = [each["held"] for each in RECORDS if each["problem"] == name]
    for what in held[-1]["draws"]:
        asked = [each for each in held if what in each["draws"]]
        draws, vb = (np.sum([each[method][what] for each in asked], axis=0) for method in ("draws", "vb"))
        assert vb[2] < draws[2], what


def test_the_page_shows_the_record():
    if not PAGE.exists():
        pytest.skip("no documentation beside the tests")
    page = PAGE.read_text("utf-8")
    for rows in (interval_coverage.table, interval_coverage.costs):
        for row in rows(RECORDS):
            assert ", ".join(f'"{cell}"' if "," in cell else cell for cell in row) in page
