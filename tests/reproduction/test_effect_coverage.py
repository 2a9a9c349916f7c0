"""Coverage of intervals of effects: the record of a run, the page, and a line of it again."""

from pathlib import Path

import pytest
from reproduction import effect_coverage as study
from reproduction.pages import check_page
from reproduction.records import read_record

LINES = read_record(study.RECORD)
PAGE = Path(__file__).parents[2] / "doc" / "user_guide" / "mixed_networks.rst"


def of(problem):
    return [line for line in LINES if line["problem"] == problem]


def test_intervals_given_the_graph_hold_what_they_say():
    for method in ("given", "given by default"):
        held, n = study.coverage(LINES, method, 0.95)
        assert n >= 200
        assert 0.93 <= held / n <= 0.97


def test_the_best_graph_alone_is_too_sure():
    three = of("three columns")
    shares = {method: study.coverage(three, method, 0.9)[0] / len(three) for method in study.METHODS[2:]}
    assert len(three) == 600
    assert shares["own prior"] == pytest.approx(0.932, abs=0.02)
    assert shares["adjustment"] == pytest.approx(0.973, abs=0.02)
    assert shares["best graph"] == pytest.approx(0.600, abs=0.03)
    assert shares["graphs"] > 0.88


def test_the_page_has_the_table():
    check_page(PAGE, study.rows_of(LINES))


def test_a_truth_again():
    line = next(line for line in LINES if line["problem"] == "three columns" and line["path"])
    again = study.measured(line["problem"], line["seed"])
    assert (again["effect"], again["path"]) == (line["effect"], line["path"])
    for name in study.METHODS:
        assert again[name] == pytest.approx(line[name], abs=1e-4)
