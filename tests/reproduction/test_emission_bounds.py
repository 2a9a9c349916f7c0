"""What holds of bounds of emissions that hide or integrate a number, in the record of 300 models, and some again."""

from pathlib import Path

import pytest
from reproduction import emission_bounds
from reproduction.pages import check_page
from reproduction.records import read_record

approx = pytest.approx
LINES = read_record(emission_bounds.RECORD)
PAGE = Path(__file__).parents[2] / "doc" / "user_guide" / "emissions.rst"


def broken(line):
    return [law for law, departs in emission_bounds.departures(line).items() if departs]


def test_no_model_on_record_breaks_a_law():
    assert len(LINES) == len({(line["problem"], line["seed"]) for line in LINES}) >= 300
    for family in emission_bounds.FAMILIES:
        assert {line["components"] for line in LINES if line["problem"] == family} == {1, 2}
    assert {(line["problem"], line["seed"]): broken(line) for line in LINES if broken(line)} == {}


QUICK = [
    *[("NegativeBinomial()", 2), ("NegativeBinomial()", 0), ("Gamma()", 0), ("VonMises()", 1), ("StudentT()", 2)],
    *[("ZeroInflated(Poisson())", 0), ("ZeroInflated(Poisson())", 2), ("Censored()", 0), ("Censored()", 2)],
]


@pytest.mark.parametrize(("family", "seed"), QUICK)
def test_a_model_again(family, seed):
    again = emission_bounds.measured(family, 6, seed)
    assert broken(again) == []
    (line,) = (each for each in LINES if (each["problem"], each["seed"]) == (family, seed))
    assert again["evidence"] == approx(line["evidence"], abs=1e-6)
    assert again["bound"] == approx(line["bound"], abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("family", emission_bounds.FAMILIES)
def test_models_of_other_seeds(family):
    for seed in range(1000, 1010):
        assert broken(emission_bounds.measured(family, 6, seed)) == []


def test_the_page_shows_the_record():
    check_page(PAGE, emission_bounds.table_rows(LINES))
