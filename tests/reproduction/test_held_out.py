"""What holds of held-out scores, in the record of a run, and a fold of that run again."""

from pathlib import Path

import numpy as np
import pytest
from reproduction import held_out, real_tables
from reproduction.pages import check_page

approx = pytest.approx
PAGE = Path(__file__).parents[2] / "doc" / "user_guide" / "optima.rst"
RECORDS = held_out.read()
CONTESTANTS = ("fixed", "hierarchical", held_out.PEER)


@pytest.mark.parametrize("contestant", ["fixed", held_out.PEER])
def test_a_fold_again(contestant):
    if not real_tables.is_here("us_arrests"):
        pytest.skip("third-party data are not part of the source distribution")
    old = RECORDS["us_arrests", contestant, "full", False]
    new = held_out.measured("us_arrests", contestant, folds=[1])
    held = held_out.folds_of(len(new["scores"]))[1][1]
    assert new["n_components"] == old["n_components"][1:2]
    assert new["criterion"] == approx(old["criterion"][1:2], abs=2e-3)
    assert np.array(new["scores"])[held] == approx(np.array(old["scores"])[held], abs=2e-3)


def test_every_row_is_held_out_once():
    held = np.concatenate([held for _, held in held_out.folds_of(50)])
    assert sorted(held) == list(range(50))
    assert all(not set(fitted) & set(held) for fitted, held in held_out.folds_of(50))


@pytest.mark.parametrize("contestant", CONTESTANTS)
@pytest.mark.parametrize("dequantized", [False, True])
def test_the_record_is_complete(contestant, dequantized):
    for table in held_out.TABLES:
        scores = RECORDS[table, contestant, "full", dequantized]["scores"]
        assert np.isfinite(scores).all()
        if real_tables.is_here(table):
            assert len(scores) == len(real_tables.raw(table))


def test_spread_cells_round_to_the_table():
    X = real_tables.raw("iris")
    spread = real_tables.spread(X)
    assert np.abs(spread - X).max() <= 0.05 * (1 + 1e-9)
    assert np.round(spread, 1) == approx(X)
    assert len(np.unique(spread)) == X.size


def test_a_difference_is_paired():
    rows = held_out.difference(RECORDS, "iris", "fixed")
    ours, theirs = (np.array(RECORDS["iris", who, "full", False]["scores"]) for who in ("fixed", held_out.PEER))
    assert rows == approx(ours - theirs)
    assert held_out.mean_and_error(np.array([1.0, 2.0, 3.0])) == approx((2.0, 1 / np.sqrt(3)))


def test_the_page_shows_the_record():
    for contestant in CONTESTANTS[:-1]:
        for dequantized in (False, True):
            check_page(PAGE, held_out.comparison(RECORDS, contestant, dequantized=dequantized))
        check_page(PAGE, held_out.digits_rows(RECORDS, contestant))


def test_other_pages_tell_what_the_record_has():
    """Means and errors of all tables together, of iris with its cells spread, and which tables have no gain."""
    page = PAGE.with_name("emissions.rst")
    if not page.exists():
        pytest.skip("no documentation beside the tests")
    *tables, (*_, of_all) = held_out.comparison(RECORDS, "hierarchical")
    spread = {row[0]: row[-1] for row in held_out.comparison(RECORDS, "hierarchical", dequantized=True)}
    text = page.read_text("utf-8").replace("\n", " ")
    assert f"by {_to_hundredths(of_all).lstrip('+')} nats a row" in text
    assert f"the difference on iris is {_to_hundredths(spread['iris'])}." in text
    without_gain = [row[0] for row in tables if row[-1].startswith("-")]
    assert f"{' and '.join(without_gain)} have no gain" in text


def _to_hundredths(mean_and_error):
    mean, error = mean_and_error.split(" ± ")
    return f"{float(mean):+.2f} ± {float(error):.2f}"
