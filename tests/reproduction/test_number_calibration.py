"""The record of posteriors of numbers of states: which score is calibrated, and what the guide says of it."""

from pathlib import Path

import pytest
from reproduction import number_calibration as study
from reproduction.pages import check_page
from reproduction.records import read_record

LINES = read_record(study.RESULTS)
GUIDE = Path(__file__).parents[2] / "doc" / "user_guide" / "sequences.rst"


def test_evidences_are_calibrated_and_bounds_are_not():
    assert [line["number"] for line in LINES] == list(range(study.N_CHAINS))
    bounds, evidences = (study.calibration(LINES, score) for score in study.SCORES)
    assert abs(evidences["gap"]) < 2 < abs(bounds["gap"])
    assert evidences["log"] > bounds["log"]


def test_the_guide_shows_the_record():
    check_page(GUIDE, study.table_rows(LINES))


def test_a_chain_on_record_is_fitted_again():
    line = LINES[0]
    X, k, name, options = study.simulated(0)
    assert (k, name, sum(map(len, X))) == (line["states"], line["emission"], line["steps"])
    bound, evidence, _ = study.scored(2, X, options, 0)
    assert bound == pytest.approx(line["lower_bound"][1], abs=0.01)
    assert evidence == pytest.approx(line["evidence"][1], abs=0.5)
