"""What holds of intervals by draws of emissions that hide or integrate a number, in the record of simulations."""

from pathlib import Path

import pytest
from reproduction import emission_coverage
from reproduction.coverage import check_once
from reproduction.pages import check_page
from reproduction.records import read_record

LINES = read_record(emission_coverage.RECORD)
PAGE = Path(__file__).parents[2] / "doc" / "user_guide" / "emissions.rst"


def test_every_simulation_is_on_record_once():
    check_once(LINES, emission_coverage.EMISSIONS)


@pytest.mark.parametrize("problem", [name for name in emission_coverage.EMISSIONS if name != "Gamma(pseudo_rows=1.0)"])
def test_intervals_hold_as_much_as_they_say(problem):
    """But for chance: two hundred simulations tell a coverage to within 1.5 %."""
    for name, part, error, n in emission_coverage.coverage(LINES, problem):
        assert n == 200
        assert part >= 0.95 - 2 * max(error, 0.015), name


def test_a_pseudo_row_holds_means_of_gamma_numbers_near_that_of_all():
    of_one, of_default = (
        {name: part for name, part, *_ in emission_coverage.coverage(LINES, problem)}
        for problem in ("Gamma(pseudo_rows=1.0)", "Gamma()")
    )
    assert of_one["shapes"] < 0.75 < 0.9 < of_default["shapes"]
    assert of_one["means"] < of_default["means"]


def test_a_simulation_again():
    (line,) = (each for each in LINES if (each["problem"], each["seed"]) == ("StudentT(4)", 0))
    assert emission_coverage.measured("StudentT(4)", 200, 0)["held"] == line["held"]


def test_the_page_shows_the_record():
    check_page(PAGE, emission_coverage.table_rows(LINES))
