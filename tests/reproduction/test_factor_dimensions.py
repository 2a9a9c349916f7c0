"""What holds of numbers of factors in six clusters, in the record of fits, and one of these again."""

from pathlib import Path

import pytest
from reproduction import factor_dimensions as study
from reproduction.pages import check_page
from reproduction.records import read_record

GUIDE = Path(__file__).parents[2] / "doc" / "user_guide" / "factors.rst"
RECORD = read_record(study.RECORD)


def test_a_fit_again():
    (line,) = (each for each in RECORD if (each["n"], each["seed"], each["tied"]) == (8, 0, False))
    again = study.measured(8, 0, tied=False)
    assert again["bound"] == pytest.approx(line["bound"], abs=0.1)
    assert again["factors"] == line["factors"]


def test_true_numbers_are_found_from_64_rows_on_and_never_more_before():
    for line in RECORD:
        assert None not in line["factors"]
        if line["n"] >= 64 or (line["tied"] and line["n"] >= 32):
            assert tuple(line["factors"]) == study.DIMENSIONS


@pytest.mark.skipif(not GUIDE.exists(), reason="no documentation beside the tests")
def test_the_guide_shows_the_record():
    check_page(GUIDE, study.table(RECORD))
