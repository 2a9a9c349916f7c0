"""What holds of sampled evidences of emissions that hide or integrate a number, in the record, and a run again."""

from pathlib import Path

import numpy as np
import pytest
from reproduction import emission_evidences
from reproduction.pages import check_page
from reproduction.records import read_record

approx = pytest.approx
LINES = read_record(emission_evidences.RECORD)
PAGE = Path(__file__).parents[2] / "doc" / "user_guide" / "emissions.rst"


def test_stated_errors_are_those_that_runs_have():
    assert len(LINES) == len({(line["problem"], line["seed"]) for line in LINES})
    assert {line["problem"] for line in LINES} == set(range(emission_evidences.N_PROBLEMS))
    z = emission_evidences.deviations(LINES)
    assert 0.93 <= np.mean(np.abs(z) <= 2) <= 0.97  # of right errors there are 0.954
    assert abs(z.mean()) <= 0.1
    assert 0.9 <= z.std() <= 1.1


@pytest.mark.parametrize("number", [3, 5])
def test_a_run_again(number):
    """But for rounding, by which a chain may go another way."""
    (line,) = (each for each in LINES if (each["problem"], each["seed"]) == (number, 0))
    again = emission_evidences.measured(number, 0)
    assert again["evidence"] == approx(line["evidence"], abs=1e-5)
    assert again["value"] == approx(line["value"], abs=2 * line["error"])
    assert again["error"] == approx(line["error"], rel=0.2)


def test_the_page_shows_the_record():
    check_page(PAGE, emission_evidences.table_rows(LINES))
