"""What holds of the calibration of posteriors, in the record of a run, and one truth of that run again."""

from pathlib import Path

import numpy as np
import pytest
from reproduction import posterior_calibration
from reproduction.pages import check_page

PAGE = Path(__file__).parents[2] / "doc" / "user_guide" / "searching.rst"
RECORDS = posterior_calibration.read()
# Standard errors of an excess; the largest of a dozen that are honest goes beyond two.
_REACH = 3.0


def of(what, n):
    return [each for each in RECORDS if (each["what"], each["n"]) == (what, n)]


MEASURED = sorted({(each["what"], each["n"]) for each in RECORDS})


def test_a_truth_again():
    """But for rounding, by which chains may go other ways."""
    before = min(of("structures", 160), key=lambda each: each["seconds"]["posterior"])
    again = posterior_calibration.measured("structures", 160, before["seed"])["said"]
    for what, reach in (("top", 0.05), ("mass", 0.05), ("log", 0.3)):
        assert again["posterior"][what] == pytest.approx(before["said"]["posterior"][what], abs=reach)
    assert again["lower_bound"]["right"] == before["said"]["lower_bound"]["right"]


def test_truths_are_recorded_once():
    names = [(each["what"], each["n"], each["seed"]) for each in RECORDS]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(("what", "n"), MEASURED)
def test_what_is_claimed_comes_true(what, n):
    for pair in (("top", "right"), ("mass", "inside")):
        excess, error = posterior_calibration.excess(of(what, n), "posterior", *pair)
        assert abs(excess) < _REACH * error


@pytest.mark.parametrize(("what", "n"), MEASURED)
def test_the_posterior_says_more_of_the_truth_than_weights_by_the_bound(what, n):
    posterior, bound = (
        np.mean([each["said"][by]["log"] for each in of(what, n)]) for by in ("posterior", "lower_bound")
    )
    assert posterior > bound


def test_the_page_shows_the_record():
    check_page(PAGE, [*posterior_calibration.table(RECORDS), *posterior_calibration.against_ais(RECORDS)])
