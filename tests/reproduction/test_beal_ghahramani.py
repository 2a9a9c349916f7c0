"""What holds of the experiment of Beal & Ghahramani over many draws, in the record of a run, and a part of it again."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from reproduction import beal_ghahramani as bg

RECORDS = [json.loads(line) for line in bg.RESULTS.read_text().splitlines()]
SIZES = sorted({record["n"] for record in RECORDS})
PAGE = Path(__file__).parents[2] / "doc" / "theory" / "search.rst"


def test_a_draw_again():
    """Deterministic scores alone; annealed importance sampling takes as long as all others."""
    (old,) = (record for record in RECORDS if (record["draw"], record["n"]) == (3, 160))
    found, _, place, _ = bg.table_of(3, 160, ("lower_bound", "collapsed_ascent"))
    for name, values in found.items():
        assert 1 + np.sum(values > values[place]) == old["ranks"][name]


@pytest.mark.parametrize("n", SIZES)
def test_a_hundred_draws_of_every_size(n):
    assert [record["draw"] for record in RECORDS if record["n"] == n] == list(range(100))


@pytest.mark.parametrize("n", SIZES)
def test_better_evidence_ranks_the_truth_better(n):
    """BIC, VB, the collapsed bound ascended, AIS: each better than the one before in two thirds of the draws."""
    names = ["bic", "lower_bound", "collapsed_ascent", "ais"]
    for worse, better in pairwise(names):
        a, b = bg.ranks_of(RECORDS, n, worse), bg.ranks_of(RECORDS, n, better)
        assert np.mean((b < a) + 0.5 * (b == a)) > 0.65
        assert np.median(b) < np.median(a)


def test_the_page_shows_the_record():
    if not PAGE.exists():
        pytest.skip("no documentation beside the tests")
    page = PAGE.read_text("utf-8")
    for row in bg.summary(RECORDS):
        assert ", ".join(row) in page
