"""What holds of searches over mixed networks, in the record of a run, and one search of that run again."""

from pathlib import Path

import pytest
from reproduction import mixed_search
from reproduction.pages import check_page
from reproduction.records import read_record

PAGE = Path(__file__).parents[2] / "doc" / "user_guide" / "mixed_networks.rst"
LINES = read_record(mixed_search.RECORD)


@pytest.mark.slow
def test_a_search_again():
    """But for rounding, by which sampled evidences may be others."""
    before = min((line for line in LINES if line["problem"] == "four"), key=lambda line: line["seconds"]["all"])
    again = mixed_search.measured("four", before["n"], before["seed"])
    for name, nats in before["behind"].items():
        assert again["behind"][name] == pytest.approx(nats, abs=0.1)
        assert abs(again["rank"][name] - before["rank"][name]) <= 1


def test_searches_are_recorded_once():
    names = [(line["problem"], line["n"], line["seed"]) for line in LINES]
    assert len(set(names)) == len(names)


def test_draws_are_the_first_ones():
    """None was left out because of what it came to."""
    for problem, n in {(line["problem"], line["n"]) for line in LINES}:
        seeds = sorted(line["seed"] for line in LINES if (line["problem"], line["n"]) == (problem, n))
        assert seeds == [*range(len(seeds))]


def test_there_are_as_many_structures_as_the_page_says():
    assert len(mixed_search.space("four")) == 136
    assert len(mixed_search.rows_of("nine", 0, 5).columns) == 9


def test_rows_of_fewer_are_the_first():
    few, many = (mixed_search.rows_of("four", 3, n) for n in (20, 300))
    assert few.equals(many[:20])


def test_the_page_shows_the_record():
    check_page(PAGE, [*mixed_search.ranks(LINES), *mixed_search.found_by_default(LINES)])
