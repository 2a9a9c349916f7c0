"""What holds of the experiment of Beal & Ghahramani over many draws, in the record of a run, and a part of it again."""

import ast
import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from reproduction import beal_ghahramani as bg

RECORDS = [json.loads(line) for line in bg.RESULTS.read_text().splitlines()]
SIZES = sorted({record["n"] for record in RECORDS})
NAMES = ["bic", "lower_bound", "collapsed_ascent", "ais"]
PAGE = Path(__file__).parents[2] / "doc" / "theory" / "search.rst"
EXAMPLE = Path(__file__).parents[2] / "examples" / "search" / "plot_beal_ghahramani_2003.py"


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
    """BIC, VB, the collapsed bound ascended, AIS: each better than the one before in more draws than it is worse."""
    for worse, better in pairwise(NAMES):
        a, b = bg.ranks_of(RECORDS, n, worse), bg.ranks_of(RECORDS, n, better)
        assert np.sum(b < a) > 1.4 * np.sum(b > a)
        assert np.median(b) <= np.median(a)
        assert np.mean(b == 1) >= np.mean(a == 1)


def test_over_all_draws_and_sizes():
    """Ties, which are frequent where both rank the truth first, count half."""
    for worse, better in pairwise(NAMES):
        a, b = (np.concatenate([bg.ranks_of(RECORDS, n, name) for n in SIZES]) for name in (worse, better))
        assert np.mean((b < a) + 0.5 * (b == a)) > 0.6
    bic, vb = (np.concatenate([bg.ranks_of(RECORDS, n, name) for n in SIZES]) for name in NAMES[:2])
    assert np.mean(vb < bic) > 0.65


def test_the_page_shows_the_record():
    if not PAGE.exists():
        pytest.skip("no documentation beside the tests")
    page = PAGE.read_text("utf-8")
    for row in bg.summary(RECORDS):
        assert ", ".join(row) in page


def test_the_example_shows_the_record():
    if not EXAMPLE.exists():
        pytest.skip("no examples beside the tests")
    lines = [line for line in EXAMPLE.read_text("utf-8").splitlines() if line.startswith(("sizes = ", "first = "))]
    sizes, first = (ast.literal_eval(line.partition(" = ")[2]) for line in lines)
    scores = {"AIS": "ais", "VB": "lower_bound", "BIC": "bic"}
    assert sizes == SIZES
    assert first == {
        shown: [int(np.sum(bg.ranks_of(RECORDS, n, name) == 1)) for n in SIZES] for shown, name in scores.items()
    }
