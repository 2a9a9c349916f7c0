"""What holds of choices among emissions of counts by their bounds, in the record of a run, and two tables again."""

from pathlib import Path

import pytest
from reproduction import emission_choice
from reproduction.pages import check_page
from reproduction.records import read_record

approx = pytest.approx
LINES = read_record(emission_choice.RECORD)
PAGE = Path(__file__).parents[2] / "doc" / "user_guide" / "emissions.rst"


def test_the_record_is_complete():
    wanted = [(truth, seed) for truth, n in emission_choice.N_TABLES.items() for seed in range(n)]
    assert sorted((line["truth"], line["seed"]) for line in LINES) == sorted(wanted)


def test_the_bound_chooses_the_truth_or_loses_little_by_it():
    bound, score = emission_choice.gains(LINES, "poisson").T
    assert (bound > 0).mean() < 0.15
    assert (score * (bound > 0)).mean() > -1e-3  # nats a row, against Poisson mixtures always
    assert (emission_choice.gains(LINES, "negative_binomial")[:, 0] > 0).all()


def test_the_page_shows_the_record():
    check_page(PAGE, emission_choice.table_rows(LINES))


@pytest.mark.parametrize(("truth", "seed"), [("poisson", 3), ("negative_binomial", 1)])
def test_a_table_again(truth, seed):
    (line,) = (each for each in LINES if (each["truth"], each["seed"]) == (truth, seed))
    again = emission_choice.measured(truth, seed)
    for name in emission_choice.EMISSIONS:
        assert again[name]["components"] == line[name]["components"]
        assert again[name]["bound"] == approx(line[name]["bound"], abs=2e-3)
        assert again[name]["score"] == approx(line[name]["score"], abs=1e-4)
