"""Records of simulated stays: what the guide says of them, and that a series leads to the same line."""

from pathlib import Path

import numpy as np
import pytest
from reproduction import durations as study
from reproduction import durations_cows as cows
from reproduction import durations_posterior as posterior
from reproduction import durations_prior as prior
from reproduction.pages import check_page
from reproduction.records import read_record

LINES, GRIDS = read_record(study.RECORD), read_record(prior.RECORD)
PAGE = Path(__file__).parents[2] / "doc" / "user_guide" / "durations.rst"
approx = pytest.approx


def lines_of(stays, least=0):
    return [line for line in LINES if line["stays"] == stays and line["mean"] >= least]


def test_the_evidence_has_the_family():
    """Stays that are not geometric are found from a mean of 10 steps on, and geometric ones are not missed."""
    assert sorted(line["number"] for line in LINES) == list(study.NUMBERS)
    assert np.mean([study.is_geometric(line) for line in lines_of("1 + NB(3)", least=10)]) <= 0.2
    assert np.mean([study.is_geometric(line) for line in lines_of("geometric")]) >= 0.9


@pytest.mark.parametrize("stays", study.STAYS)
def test_intervals_of_quantiles_hold_what_they_say(stays):
    """Under the family of the highest bound; of probabilities, which have no ties, somewhat less."""
    assert 85 <= study.share(lines_of(stays), "quantiles") <= 95
    assert 70 <= study.share(lines_of(stays), "longer") <= study.share(lines_of(stays), "quantiles")


def test_the_guide_shows_the_records():
    check_page(PAGE, study.table(LINES))
    check_page(PAGE, prior.table(GRIDS))
    check_page(PAGE, cows.table(read_record(cows.RECORD)))
    check_page(PAGE, posterior.table(read_record(posterior.RECORD)))


def test_draws_by_linear_response_hold_more_than_those_of_q():
    """Probabilities of longer stays, over at least 100 series, and of these a series again."""
    lines = read_record(posterior.RECORD)
    assert len(lines) >= 100
    by_q = study.share([posterior.OF_Q[line["number"]] for line in lines], "longer")
    assert by_q + 2 <= 100 * np.mean([np.mean(line["held"]["longer"]) for line in lines]) < 90
    quick = next(line for line in lines if line["family"] == "Hazards(1)")
    assert posterior.measured(quick["number"])["held"] == quick["held"]


def test_bounds_of_cows_are_those_of_another_program():
    """Which has four decimals of most; geometric stays are ahead of all others."""
    found = {line["family"]: line["bound"] for line in read_record(cows.RECORD)}
    assert found.keys() == cows.FAMILIES.keys()
    for name, (_, bound) in cows.FAMILIES.items():
        assert found[name] == approx(bound, abs=6e-5)
    assert max(found, key=found.__getitem__) == "geometric"


def test_a_series_again():
    line = LINES[-1]
    again = study.measured(line["number"])
    for name, bound in line["bounds"].items():
        assert again["bounds"][name] == approx(bound, abs=0.01)
