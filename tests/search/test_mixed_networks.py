"""Searches over structures and numbers of states of networks of categories, measurements and counts."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from skvbem import BipartiteSpace, CardinalityGrid, DAGSpace, StructureSearchCV, VBNetwork

approx = pytest.approx
COLUMNS = ["size", "visits", "color"]
NUMBERS = COLUMNS[:2]
MODEL = VBNetwork(
    emission={"gaussian": ["size"], "poisson": ["visits"], "categorical": ["color"]},
    init="random",
    n_init=2,
    tol=1e-3,
    random_state=0,
)


@pytest.fixture(scope="module")
def rows():
    """A measurement and a count below one hidden node of two states, and a category of which nothing is hidden."""
    rng = np.random.default_rng(5)
    kind, n = rng.integers(0, 2, 80), 80
    X = pd.DataFrame(
        {
            "size": rng.normal(6.0 * kind, 1.0),
            "visits": rng.poisson(np.where(kind, 9.0, 1.0)).astype(float),
            "color": rng.choice(["red", "blue"], n),
        }
    )
    return X.mask(rng.random(X.shape) < 0.05)


def test_structures_have_a_posterior(rows):
    """Evidences of the front, edges, and what is hidden behind columns; the best is the one that made the data."""
    space = BipartiteSpace({"h0": 2, "h1": 2}, COLUMNS, max_parents=1)
    search = StructureSearchCV(MODEL, space, random_state=0).fit(rows)
    results = search.cv_results_
    assert len(results["params"]) == len(space)
    alone = clone(MODEL).set_params(**search.best_params_).fit(rows)
    assert results["mean_test_score"][search.best_index_] == approx(alone.lower_bound_, rel=1e-12)
    assert results["n_free_parameters"][search.best_index_] == alone.n_free_parameters_
    assert results["mean_test_evidence"][search.best_index_] > alone.lower_bound_
    weights, settings = search.structure_posterior_, results["params"]
    assert weights.sum() == approx(1.0)
    shared = sum(w for w, s in zip(weights, settings) if len({s["structure"].parents(c) for c in NUMBERS}) == 1
                 and s["structure"].parents("size"))  # fmt: skip
    assert search.shared_parent_probabilities_["node":"size", "other":"visits"] == approx(shared, abs=1e-9)
    assert shared > 0.99
    (cause,) = search.best_structure_.parents("size")
    assert search.edge_probabilities_["parent":cause, "child":"visits"] > 0.99
    assert search.edge_probabilities_["parent":cause, "child":"color"] < 0.5
    assert search.predict_proba(rows)[0].shape == (80, 2)


@pytest.mark.parametrize("strategy", ["greedy", "beam", "mc3"])
def test_moves_never_make_numbers_parents(rows, strategy):
    space = DAGSpace(COLUMNS, {"h": 2}, max_parents=2, leaves=NUMBERS)
    options = {"scoring": "lower_bound", "max_candidates": 20, "refit": False, "random_state": 0}
    search = StructureSearchCV(MODEL, space, strategy=strategy, **options).fit(rows)
    tried = [setting["structure"] for setting in search.cv_results_["params"]]
    assert len(tried) == 20
    assert not any(dag.children(node) for dag in tried for node in NUMBERS)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_numbers_of_states_are_found(rows):
    structure = {"size": ["h0"], "visits": ["h0"]}
    search = StructureSearchCV(MODEL, CardinalityGrid({"h0": [1, 2, 3]}, structure), scoring="lower_bound", n_jobs=1)
    assert search.set_params(rescoring=False).fit(rows).best_params_["latents"] == {"h0": 2}


def test_scores_that_search_knows_by_families_are_left_to_fits(rows):
    """Nothing is hidden: a bound is a fit's, though a search sums up those of tables."""
    whole = rows.dropna()
    space = DAGSpace(COLUMNS, leaves=NUMBERS, max_parents=1)
    search = StructureSearchCV(MODEL, space, scoring="lower_bound", rescoring=False, random_state=0).fit(whole)
    assert len(search.cv_results_["params"]) == 4
    for score, setting in zip(search.cv_results_["mean_test_score"], search.cv_results_["params"]):
        assert score == approx(clone(MODEL).set_params(**setting).fit(whole).lower_bound_, rel=1e-12)
