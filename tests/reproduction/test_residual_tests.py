"""What holds of tests of pseudo-residuals under fitted parameters, in the record of simulations."""

from pathlib import Path

import pytest
from reproduction import residual_tests
from reproduction.coverage import check_once
from reproduction.emission_coverage import coverage
from reproduction.pages import check_page
from reproduction.records import read_record

LINES = read_record(residual_tests.RECORD)
PAGE = Path(__file__).parents[2] / "doc" / "user_guide" / "reading.rst"


def test_every_simulation_is_on_record_once():
    check_once(LINES, residual_tests.PROBLEMS)


@pytest.mark.parametrize("problem", residual_tests.PROBLEMS)
def test_right_models_are_seldom_rejected(problem):
    """Fits to the same rows make residuals too even: no test rejects more often than it says, but for chance."""
    for name, part, error, n in coverage(LINES, problem):
        assert n == 200
        assert 1 - part <= 0.05 + 2 * max(error, 0.01), name


def test_a_simulation_again():
    problem = "mixture of StudentT(4)"
    (line,) = (each for each in LINES if (each["problem"], each["seed"]) == (problem, 0))
    assert residual_tests.measured(problem, 200, 0)["held"] == line["held"]


def test_the_page_shows_the_record():
    check_page(PAGE, residual_tests.table_rows(LINES))
