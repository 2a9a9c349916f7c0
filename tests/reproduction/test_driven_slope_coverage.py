"""Intervals of slopes of transitions, in the record of a run, on the page, and a line of it again."""

from pathlib import Path

import pytest
from reproduction import driven_slope_coverage as study
from reproduction.pages import check_page
from reproduction.records import read_record

LINES = read_record(study.RECORD)
PAGE = Path(__file__).parents[2] / "doc" / "user_guide" / "driven_transitions.rst"


def test_intervals_by_draws_hold_slopes_as_often_as_they_say():
    by_draws, error, n = study.held(LINES, "draws")
    assert n >= 60
    assert abs(by_draws - 0.95) < 2 * error
    response, error, _ = study.held(LINES, "linear_response")
    assert by_draws > response > study.held(LINES, "vb")[0]


def test_the_page_has_the_table():
    check_page(PAGE, study.rows_of(LINES))


@pytest.mark.slow
def test_a_simulation_again():
    line = LINES[0]
    again = study.measured(line["problem"], line["n"], line["seed"])
    assert again["held"]["linear_response"] == line["held"]["linear_response"]
    assert again["length"]["linear_response"] == pytest.approx(line["length"]["linear_response"], rel=0.1)
    assert again["length"]["draws"] == pytest.approx(line["length"]["draws"], rel=0.2)
