"""Probabilities of edges under a hidden scale: the record of a run, the page, and a line of it again."""

from pathlib import Path

import pytest
from reproduction import edge_calibration as study
from reproduction.pages import check_page
from reproduction.records import read_record

LINES = read_record(study.RECORD)
PAGE = Path(__file__).parents[2] / "doc" / "user_guide" / "mixed_networks.rst"


def test_probabilities_are_about_as_often_right_as_they_say():
    """Where parents nearly determine their children; of the prior truths have one scale in other units."""
    slope, error = study.slope_of([line for line in LINES if line["kind"] == "determined"])
    assert abs(slope - 1) < 2 * error
    slope, error = study.slope_of([line for line in LINES if line["kind"] == "prior"])
    assert 0.7 < slope - 2 * error < slope + 2 * error < 1.1
    assert error < 0.05


@pytest.mark.parametrize("kind", study.KINDS)
def test_few_tables_have_a_sure_edge_that_is_not_there(kind):
    wrong, n = study.tables_found_wrongly(LINES, kind)
    assert n > 190
    assert wrong <= 0.02 * n


def test_the_page_has_the_table():
    check_page(PAGE, study.rows_of(LINES))


def test_a_table_again():
    line = min(LINES, key=lambda line: line["n_columns"])
    again = study.measured(line["kind"], line["seed"])
    assert again["edges"] == line["edges"]
    assert again["probabilities"] == pytest.approx(line["probabilities"], abs=1e-5)
