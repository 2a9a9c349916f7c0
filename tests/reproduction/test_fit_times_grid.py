"""What holds of the record of default fits beside scikit-learn's, and its smallest case again."""

from pathlib import Path

from reproduction import fit_times_grid as grid
from reproduction.pages import check_page

PAGE = Path(__file__).parents[2] / "doc" / "user_guide" / "optima.rst"
RECORDS = grid.read()


def test_factors_are_chosen_in_a_few_times_what_one_fit_of_all_takes():
    records = [RECORDS[f"factors, {n} x {d}, {k}"] for n, d, k in grid.FACTORS]
    assert records[0]["vb"] < 0.04
    assert all(record["vb"] < 5 * record["peer"] for record in records[1:])
    assert [record["n_factors"] for record in records] == [k for *_, k in grid.FACTORS]


def test_our_likelihood_is_lower_only_where_components_have_few_rows():
    """Thirty and a hundred rows of ten columns in each, whose optima are many."""
    lower = [name for name, record in RECORDS.items() if record.get("gain", 0.0) < -0.01]
    assert sorted(lower) == ["300 x 10, 10", "3000 x 10, 30"]


def test_a_case_again():
    assert grid.of_mixture(300, 2, 3)["gain"] > -0.01


def test_the_page_shows_the_record():
    check_page(PAGE, grid.table(RECORDS))
    check_page(PAGE, grid.table_of_factors(RECORDS))
