"""What intervals of loadings and transitions hold, in the record of a run; series of it again."""

from pathlib import Path

import pytest
from reproduction import growth_coverage as study
from reproduction.pages import check_page
from reproduction.records import read_record

PAGE = Path(__file__).parents[2] / "doc" / "user_guide" / "state_space.rst"
LINES = read_record(study.RECORD)


@pytest.mark.parametrize("problem", study.PROBLEMS)
def test_a_series_again(problem):
    old = next(line for line in LINES if (line["problem"], line["seed"]) == (problem, 3))
    new = study.measured(problem, 160, 3)
    for method, held in old["held"].items():
        for name, counts in held.items():
            assert new["held"][method][name] == pytest.approx(counts, abs=1)  # an end may change sides in the last bits


@pytest.mark.parametrize("method", ["ml", "map", "linear_response"])
def test_intervals_of_one_factor_hold_transitions_as_often_as_they_say(method):
    shares, n = study.coverage(LINES, "one factor", method, "transition")
    assert n >= 200
    assert 0.93 <= shares[-1] <= 0.97


@pytest.mark.parametrize(("method", "least"), [("ml", 0.92), ("linear_response", 0.92), ("map", 0.9)])
def test_intervals_of_one_factor_hold_loadings_nearly_as_often(method, least):
    assert least <= study.coverage(LINES, "one factor", method, "loadings")[0][-1] <= 0.97


def test_the_guide_shows_the_record():
    check_page(PAGE, study.table(LINES))
