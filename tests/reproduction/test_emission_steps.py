"""What holds of times of steps, in the record of a run."""

from pathlib import Path

import numpy as np
from reproduction import emission_steps
from reproduction.pages import check_page
from reproduction.records import read_record

LINES = read_record(emission_steps.RECORD)
PAGE = Path(__file__).parents[2] / "doc" / "user_guide" / "emissions.rst"


def test_steps_take_no_longer_than_four_of_the_gaussian():
    """But that of intervals without a twin, of which each takes two tails and two moments."""
    base = np.array(next(line["ours"] for line in LINES if line["emission"] == emission_steps.BASE))
    ratios = {line["emission"]: np.median(np.array(line["ours"]) / base) for line in LINES}
    assert ratios.pop("Interval(), each its own") < 7
    assert max(ratios.values()) < 4


def test_loops_by_scipy_and_hmmlearn_take_longer():
    theirs = [line for line in LINES if line["theirs"] is not None]
    assert len(theirs) == len(emission_steps.DENSITIES) + 1
    assert all(np.median(np.array(line["theirs"]) / line["ours"]) > 2 for line in theirs)


def test_the_page_shows_the_record():
    check_page(PAGE, emission_steps.table_rows(LINES))
