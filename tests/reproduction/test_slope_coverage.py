"""Intervals of slopes of membership, in the record of a run, on the page, and a line of it again."""

from pathlib import Path

import numpy as np
import pytest
from reproduction import slope_coverage as study
from reproduction.pages import check_page
from reproduction.records import read_record

LINES = read_record(study.RECORD)
PAGE = Path(__file__).parents[2] / "doc" / "user_guide" / "membership.rst"


def held(method, *problems):
    """Part of the intervals of some problems that hold the truth, its standard error, and the simulations."""
    parts = [np.mean(line["held"][method]) for line in LINES if line["problem"] in problems]
    return np.mean(parts), np.std(parts) / np.sqrt(len(parts)), len(parts)


def test_intervals_hold_slopes_drawn_from_the_prior_as_often_as_they_say():
    drawn = "drawn, 2", "drawn, 3"
    by_draws, error, n = held("draws", *drawn)
    assert n >= 400
    assert 0.93 < by_draws < 0.97
    assert abs(by_draws - 0.95) < 2 * error
    assert held("linear_response", *drawn)[0] > 0.9
    assert held("vb", *drawn)[0] < 0.9  # classes are uncertain, which q leaves out
    for problem in drawn:
        by_draws, error, _ = held("draws", problem)
        assert abs(by_draws - 0.95) < 2.5 * error


@pytest.mark.parametrize("slope", [0, 1, 2])
def test_intervals_hold_fixed_slopes(slope):
    by_draws, error, n = held("draws", f"slope {slope}")
    assert n >= 70
    assert abs(by_draws - 0.95) < max(4 * error, 0.05)


def test_the_page_has_the_table():
    check_page(PAGE, study.rows_of(LINES))


def test_a_simulation_again():
    line = next(line for line in LINES if line["problem"] == "slope 1")
    again = study.measured("slope 1", line["n"], line["seed"])
    assert again["held"]["linear_response"] == line["held"]["linear_response"]
    assert again["length"]["linear_response"] == pytest.approx(line["length"]["linear_response"], rel=0.1)
    assert again["length"]["draws"] == pytest.approx(line["length"]["draws"], rel=0.2)
