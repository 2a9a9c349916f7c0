"""What holds of the record of default fits beside scikit-learn's, and its smallest case again."""

from pathlib import Path

import pytest
from reproduction import fit_times_grid as grid
from reproduction.pages import check_page

PAGE = Path(__file__).parents[2] / "doc" / "user_guide" / "optima.rst"
RECORDS = grid.read()


def test_factors_are_chosen_in_a_few_times_what_one_fit_of_all_takes():
    records = [RECORDS[f"factors, {n} x {d}, {k}"] for n, d, k in grid.FACTORS]
    assert records[0]["vb"] < 0.04
    assert all(record["vb"] < 5 * record["peer"] for record in records[1:])
    assert [record["n_factors"] for record in records] == [k for *_, k in grid.FACTORS]


def test_our_likelihood_is_lower_only_where_the_peer_has_a_spike_or_components_are_many():
    lower = [name for name, record in RECORDS.items() if record.get("gain", 0.0) < -0.01]
    assert sorted(lower) == ["300 x 10, 10", "3000 x 2, 30", "30000 x 2, 10"]
    assert "better_ml" not in RECORDS["300 x 10, 10"]


@pytest.mark.parametrize(("method", "better"), [("vb", ["3000 x 10, 30"]), ("ml", ["3000 x 2, 30", "30000 x 2, 10"])])
def test_fits_from_the_solution_of_the_peer_are_no_better(method, better):
    """But for one case of thirty components by each method, and ten that overlap by maximum likelihood."""
    gains = {name: record.get(f"better_{method}", 0.0) for name, record in RECORDS.items()}
    assert [name for name, gain in gains.items() if gain > 0.01] == better


@pytest.mark.parametrize(("method", "n_as_soon"), [("vb", 21), ("ml", 20)])
def test_most_sizes_take_at_most_twice_the_time_of_the_peer(method, n_as_soon):
    """What was stopped counts with the time at which it was."""
    records = [RECORDS[name] for n, d, k in grid.MIXTURES if (name := f"{n} x {d}, {k}") in RECORDS]
    ratios = [(record[method] or grid.LIMIT) / (record["peer"] or grid.LIMIT) for record in records]
    of_tight = [(record[method] or grid.LIMIT) / (record["tight"] or grid.LIMIT) for record in records]
    assert len(records) == 30
    assert sum(ratio <= 2 for ratio in ratios) == n_as_soon
    assert sum(ratio <= 1 for ratio in of_tight) == 23


def test_a_number_of_components_takes_as_long_as_fits_of_twenty_numbers():
    ratios = [RECORDS[f"numbers, {n} x {d}, {k}"] for n, d, k, _ in grid.NUMBERS]
    assert all(record["vb"] < 1.3 * record["peer"] for record in ratios)
    assert sum(record["vb"] < record["peer"] for record in ratios) == 5


def test_a_case_again():
    assert grid.of_mixture(300, 2, 3)["gain"] > -0.01


def test_the_page_shows_the_record():
    check_page(PAGE, grid.table(RECORDS))
    check_page(PAGE, grid.table_of_numbers(RECORDS))
    check_page(PAGE, grid.table_of_factors(RECORDS))
