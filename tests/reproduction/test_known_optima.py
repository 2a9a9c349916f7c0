"""The best of all graphs over complete data, known from another dynamic program, and how near strategies come to it."""

import csv
import json
from functools import cache
from pathlib import Path

import pandas as pd
import pytest

from skvbem import DAG, DAGSpace, StructureSearchCV, VBDiscreteDAG, datasets
from skvbem.search.strategies import Exact, Exhaustive, Greedy, StructuralVBEM

approx = pytest.approx
DATA = Path(__file__).parents[1] / "data"
GPL = DATA / "third_party" / "gpl"
#: ln evidence of the best graph, nats, under Dirichlet(1) and under BDeu(1); two digits were printed.
OPTIMA = {
    "lizards": {1.0: -814.93, "bdeu": -818.87},
    "learning_test": {1.0: -23957.68, "bdeu": -24028.09},
    "asia5000": {1.0: -11106.63, "bdeu": -11095.79},
}
PRINTED = 0.5e-2 * (1 + 1e-9)
CASES = [(name, prior) for name, found in OPTIMA.items() for prior in found]
#: What bnlearn calls our scores: options of the estimator, and the score.
NAMES = {
    "k2": ({"prior": 1.0}, "lower_bound"),
    "bde1": ({"prior": "bdeu"}, "lower_bound"),
    "bde10": ({"prior": "bdeu", "equivalent_sample_size": 10}, "lower_bound"),
    "bic": ({}, "bic"),
}


@cache
def load(name):
    if name == "lizards":
        return datasets.load_lizards(as_frame=True).data
    path = GPL / f"{name}.csv"
    if not path.exists():
        pytest.skip("third-party data are not part of the source distribution")
    return pd.read_csv(path)


def searched(name, strategy, scoring="lower_bound", seed=0, **options):
    X, model = load(name), VBDiscreteDAG(n_init=1, **options)
    search = StructureSearchCV(model, DAGSpace(X.columns), strategy=strategy, scoring=scoring, random_state=seed)
    return search.fit(X)


def references(name):
    """(name of the score, value, graph) of every graph that bnlearn scored."""
    if name == "lizards":
        with (DATA / "lizards_bnlearn_scores.csv").open(newline="") as file:
            for row in csv.DictReader(file):
                yield from ((score, float(row[score]), row["model"]) for score in NAMES)
        return
    found = json.loads((DATA / "complete_dags.ref.json").read_text())[name]
    for ours, theirs in zip(NAMES, ("k2", "bde_iss1", "bde_iss10", "bic")):
        yield ours, found[theirs], found["dag"]
    if "hc_bic" in found:
        yield "bic", found["hc_bic"]["bic"], found["hc_bic"]["dag"]


@pytest.mark.parametrize(("name", "prior"), CASES)
def test_the_optimum_is_the_known_one(name, prior):
    search = searched(name, Exact(), prior=prior)
    assert search.best_score_ == approx(OPTIMA[name][prior], abs=PRINTED)
    assert search.best_estimator_.lower_bound_ == approx(search.best_score_, rel=1e-12)


@pytest.mark.parametrize("score", NAMES)
def test_all_graphs_over_three_nodes(score):
    """Every graph has its score, and the dynamic program finds the best of them."""
    options, scoring = NAMES[score]
    every, exact = (searched("lizards", strategy, scoring, **options) for strategy in (Exhaustive(), Exact()))
    assert len(every.cv_results_["params"]) == 25
    assert exact.best_score_ == approx(every.best_score_, rel=1e-12)
    table = every.cv_results_
    scores = {frozenset(p["structure"].edges): value for p, value in zip(table["params"], table["mean_test_score"])}
    for name, value, graph in references("lizards"):
        if name == score:
            assert scores[frozenset(DAG.from_string(graph).edges)] == approx(value, rel=1e-12)


@pytest.mark.parametrize("name", OPTIMA)
def test_no_graph_scored_elsewhere_is_better(name):
    """Truths, and what bnlearn's hill climbing found."""
    best = {}
    for score, value, _ in references(name):
        options, scoring = NAMES[score]
        if score not in best:
            best[score] = searched(name, Exact(), scoring, **options).best_score_
        assert best[score] >= value - PRINTED, score


#: Climbs, and the nats by which they miss the optimum, where they do.
CLIMBS = {
    "greedy, no tabu": (
        Greedy(n_tabu=0),
        {
            ("lizards", 1.0): 0.04,
            ("asia5000", 1.0): 4.39,
        },
    ),
    "greedy": (Greedy(), {("asia5000", 1.0): 1.85}),
    "greedy, restarts": (Greedy(n_restarts=5), {("asia5000", 1.0): 1.85}),
    "structural": (StructuralVBEM(), {}),
}
SLOW = ("greedy", "greedy, restarts")


@pytest.mark.parametrize(
    "climb", [pytest.param(climb, marks=pytest.mark.slow) if climb in SLOW else climb for climb in CLIMBS]
)
@pytest.mark.parametrize(("name", "prior"), CASES)
def test_climbs_reach_it_or_miss_it_by_little(name, prior, climb):
    strategy, missed = CLIMBS[climb]
    gap = OPTIMA[name][prior] - searched(name, strategy, prior=prior).best_score_
    assert -PRINTED <= gap <= missed.get((name, prior), 0.0) + PRINTED


@pytest.mark.parametrize("n_seeds", [1, pytest.param(10, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("name", "prior"), CASES)
def test_climbs_among_orders_reach_it_from_every_seed(name, prior, n_seeds):
    for seed in range(n_seeds):
        found = searched(name, StructuralVBEM(n_tabu=0, n_orders=20), prior=prior, seed=seed)
        assert found.best_score_ == approx(OPTIMA[name][prior], abs=PRINTED)
