"""What holds of the coverage of intervals, in the record of a run, and one simulation of that run again."""

import numpy as np
import pytest
from reproduction import interval_coverage
from reproduction.coverage import check_draws_hold, check_once, check_study

RECORDS = interval_coverage.STUDY.read()


@pytest.mark.parametrize("name", ["classes, K = 2", "chain, K = 2"])
def test_a_simulation_again(name):
    """But for rounding, by which a draw may lie on the other side of the truth: the last one, by the latest draws."""
    of_problem = [each for each in RECORDS if (each["problem"], each["n"]) == (name, 200)]
    before = [each for each in of_problem if each["n_sweeps"] <= 4096][-1]
    again = interval_coverage.measured(name, 200, before["seed"])
    for method in interval_coverage.METHODS:
        for what, counts in before["held"][method].items():
            assert np.abs(np.subtract(again["held"][method][what], counts)).max() <= 1


def test_simulations_are_recorded_once():
    check_once(RECORDS, interval_coverage.PROBLEMS)


@pytest.mark.parametrize("name", interval_coverage.PROBLEMS)
@pytest.mark.parametrize("n", sorted({each["n"] for each in RECORDS}))
def test_draws_hold_what_labels_have_no_say_in_as_often_as_they_say(name, n):
    of_problem = [each for each in RECORDS if each["problem"] == name and each["n"] == n]
    check_draws_hold(of_problem, interval_coverage.PROBLEMS[name].labels_free)


@pytest.mark.parametrize("name", interval_coverage.PROBLEMS)
def test_intervals_of_vb_hold_less(name):
    held = [each["held"] for each in RECORDS if each["problem"] == name]
    for what in held[-1]["draws"]:
        asked = [each for each in held if what in each["draws"]]
        draws, vb = (np.sum([each[method][what] for each in asked], axis=0) for method in ("draws", "vb"))
        assert vb[2] < draws[2], what


def test_the_page_shows_the_record():
    check_study("intervals.rst", interval_coverage.STUDY)
