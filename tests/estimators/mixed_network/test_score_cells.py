"""Densities of cells given the rest of their row: against answers of queries."""

import numpy as np
import pandas as pd
import pytest

from skvbem import VBNetwork

approx = pytest.approx
STRUCTURE = {"x": ["h"], "y": ["x", "g"], "z": ["y", "h"], "g": ["h"]}


@pytest.fixture
def table(rng):
    n = 120
    h = rng.random(n) < 0.4
    g = np.where(rng.random(n) < np.where(h, 0.8, 0.3), "a", "b")
    x = np.where(h, 2.0, -2.0) + rng.normal(size=n)
    y = x + 2 * (g == "a") + rng.normal(size=n)
    X = pd.DataFrame({"x": 100 * x + 7, "g": g, "y": 0.1 * y, "z": y - 3 * h + rng.normal(size=n)})
    return X.mask(rng.random(X.shape) < 0.1)


def test_scores_at_a_point_are_answers_of_queries(table):
    network = VBNetwork(STRUCTURE, latents={"h": 2}, method="ml", n_init=2, random_state=0).fit(table)
    rows = table[:12]
    scores = network.score_cells(rows)
    assert (np.isnan(scores) == rows.isna()).all(axis=None)
    for row in range(len(rows)):
        known = rows.iloc[row].dropna()
        for name in known.index:
            rest = {other: known[other] for other in known.index if other != name}
            answer = network.query(name, rest)
            expected = answer[name : known[name]] if name == "g" else answer.density(known[name])
            assert scores[row, list(rows).index(name)] == approx(np.log(float(expected)), rel=1e-8)


def test_scores_of_leaves_are_exact_and_those_of_parents_near(rng):
    """Two numbers whose rows are their own mirror images: scores of a parent are near those of a child."""
    x = rng.normal(size=400)
    X = pd.DataFrame({"x": x, "y": x + rng.normal(size=400)})
    there, back = (VBNetwork(edges).fit(X).score_cells(X) for edges in ([("x", "y")], [("y", "x")]))
    assert there == approx(back, abs=0.15)
    network = VBNetwork([("x", "y")]).fit(X)
    without = network.score_samples(X.assign(y=np.nan))
    assert there[:, 1] == approx(network.score_samples(X) - without, rel=1e-9)


def test_cells_that_were_set_have_no_score(table, rng):
    X = table.dropna()
    network = VBNetwork({"y": ["x", "g"], "x": ["g"]}).fit(X[["x", "g", "y"]])
    who = [["x"], ["g"]] + [None] * (len(X) - 2)
    scores = network.score_cells(X[["x", "g", "y"]], interventions=who)
    is_set = np.zeros(scores.shape, dtype=bool)
    is_set[0, 0] = is_set[1, 1] = True
    assert (np.isnan(scores) == is_set).all()
    counts = X[["x", "g"]].assign(n=rng.poisson(3.0, len(X)))
    emission = {"poisson": ["n"], "gaussian": ["x"], "categorical": ["g"]}
    of_counts = VBNetwork([("n", "x"), ("g", "n")], emission=emission).fit(counts).score_cells(counts)
    assert np.isnan(of_counts).all(axis=0).tolist() == [False, False, True]
