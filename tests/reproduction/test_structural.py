"""What bounds of structural time series found, and what intervals held, in the record of a run; series of it again."""

from pathlib import Path

import pytest
from reproduction import structural as study
from reproduction.records import read_record

PAGE = Path(__file__).parents[2] / "doc" / "user_guide" / "structural.rst"
LINES = read_record(study.RESULTS)


@pytest.mark.parametrize(("problem", "n"), [("season", 120), ("none", 120), ("forecast", 30)])
def test_a_series_again(problem, n):
    old = next(line for line in LINES if (line["problem"], line["n"], line["seed"]) == (problem, n, 3))
    new = study.measured(problem, n, 3)
    if problem == "forecast":
        assert sum(new["held"]) == pytest.approx(sum(old["held"]), abs=1)  # a step may change sides in the last bits
    else:
        assert new["lead"] == pytest.approx(old["lead"], abs=1e-3)


def test_bounds_say_whether_there_is_a_season():
    for problem in ("season", "none"):
        share, _, n = study.found(LINES, problem)
        assert n >= 100
        assert share >= 0.95


def test_intervals_hold_what_they_say():
    for n in (30, 300):
        share, _, n_series = study.coverage(LINES, n)
        assert n_series >= 500
        assert 0.93 <= share <= 0.97


@pytest.mark.skipif(not PAGE.exists(), reason="no documentation beside the tests")
def test_the_guide_shows_the_record():
    page = PAGE.read_text("utf-8")
    assert [row for row in study.table(LINES) if f"   {', '.join(row)}\n" not in page] == []
