"""What holds of held-out scores of counts, in the record of a run, and a fold of that run again."""

from pathlib import Path

import numpy as np
import pytest
from reproduction import counts_held_out
from reproduction.pages import check_page
from reproduction.records import read_record

approx = pytest.approx
LINES = read_record(counts_held_out.RECORD)
PAGE = Path(__file__).parents[2] / "doc" / "user_guide" / "emissions.rst"


def test_the_record_is_complete():
    done = [(line["table"], line["contestant"]) for line in LINES]
    assert sorted(done) == sorted(
        (table, who) for table in counts_held_out.TABLES for who in counts_held_out.CONTESTANTS
    )
    for line in LINES:
        assert sum(map(sum, line["rows"])) == line["n"]
        assert np.isfinite(np.concatenate(line["scores"])).all()


@pytest.mark.parametrize("contestant", [who for who in counts_held_out.CONTESTANTS if who != counts_held_out.PEER])
def test_counts_that_spread_are_never_behind_kinds_of_poisson_counts(contestant):
    every = [counts_held_out.difference(LINES, table, contestant) for table in counts_held_out.TABLES]
    for rows in every:
        mean, error = counts_held_out.mean_and_error(rows)
        assert mean > -2 * error
    mean, error = counts_held_out.mean_and_error(np.concatenate(every))
    assert mean > 2 * error


def test_the_page_shows_the_record():
    check_page(PAGE, counts_held_out.table_rows(LINES))


@pytest.mark.parametrize("table", ["quine", "fair"])
def test_a_fold_again(table):
    pytest.importorskip(counts_held_out.TABLES[table][0])
    (line,) = (each for each in LINES if (each["table"], each["contestant"]) == (table, "NegativeBinomial()"))
    again = counts_held_out.measured(table, "NegativeBinomial()", folds=[1])
    assert again["n_components"] == line["n_components"][1:2]
    assert again["bounds"] == approx(line["bounds"][1:2], abs=2e-3)
    assert again["counts"] == line["counts"][1:2]
    assert again["scores"][0] == approx(line["scores"][1], abs=2e-3)
