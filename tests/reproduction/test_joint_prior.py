"""Edges that are not there under priors of measurements: the record of a run, the page, and a line of it again."""

from pathlib import Path

import pytest
from reproduction import joint_prior as study
from reproduction.pages import check_page
from reproduction.records import read_record

LINES = read_record(study.RECORD)
PAGE = Path(__file__).parents[2] / "doc" / "user_guide" / "mixed_networks.rst"


def test_a_hidden_scale_finds_the_fewest_edges_that_are_not_there():
    determined = [line for line in LINES if line["kind"] == "determined"]
    wrong, n = study.found_wrongly(determined, "hidden scale")
    assert n > 100
    assert wrong < 0.02 * n
    counts = [study.found_wrongly(determined, prior)[0] for prior in study.EACH]
    assert min(counts) == wrong
    assert counts[study.EACH.index("independent")] > 10 * wrong


def test_the_page_has_the_tables():
    check_page(PAGE, study.rows_of(LINES))
    check_page(PAGE, study.losses_of(LINES))


def test_a_table_again():
    line = LINES[0]
    again = study.measured(line["kind"], line["n"], line["seed"])
    for name in ("edges", *study.EACH):
        assert again[name] == pytest.approx(line[name], abs=1e-5)
