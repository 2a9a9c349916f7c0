"""What holds of intervals of forecasts, in the record of a run, and one series of it again."""

from pathlib import Path

import numpy as np
import pytest
from reproduction import forecast_coverage as study
from reproduction.records import read_record

PAGE = Path(__file__).parents[2] / "doc" / "user_guide" / "state_space.rst"
LINES = read_record(study.RESULTS)
approx = pytest.approx


def test_a_series_again():
    old = next(line for line in LINES if (line["n"], line["seed"]) == (30, 100))
    new = study.measured("random", 30, 100)
    assert new["averaged"] == approx(old["averaged"], abs=2 / 24)  # one cell may change sides in the last bits


def test_averaged_intervals_hold_what_they_say():
    """At least 93 % of cells after 30 steps, and 94 to 96 % after 300."""
    short, _, n_short = study.coverage(LINES, 30, "averaged")
    long, _, n_long = study.coverage(LINES, 300, "averaged")
    assert min(n_short, n_long) >= 440
    assert short[2] >= 0.93
    assert 0.94 <= long[2] <= 0.96


def test_intervals_at_one_point_are_too_narrow_after_few_steps():
    averaged, error, _ = study.coverage(LINES, 30, "averaged")
    plug_in, *_ = study.coverage(LINES, 30, "plug-in")
    assert np.all(plug_in < averaged)
    assert plug_in[2] < 0.95 - 2 * error[2]


@pytest.mark.skipif(not PAGE.exists(), reason="no documentation beside the tests")
def test_the_guide_shows_the_record():
    page = PAGE.read_text("utf-8")
    assert [row for row in study.table(LINES) if f"   {', '.join(row)}\n" not in page] == []


def test_shares_held():
    lower, upper = np.zeros((2, 2)), np.ones((2, 2))
    assert study.held(lower, upper, np.array([[0.5, 2.0], [-1.0, 1.0]])) == 0.5
