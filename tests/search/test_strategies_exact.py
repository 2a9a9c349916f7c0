"""The dynamic program against all graphs, its sums against definitions, and what it refuses."""

import itertools
import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest

from skvbem import StructureSearchCV, VBDiscreteDAG
from skvbem._kernels._local_scores import fill_sums
from skvbem.errors import TooLargeError
from skvbem.evidence import SCORES, scorer
from skvbem.families.dirichlet import EqualConcentration
from skvbem.graphs.dag import DAG
from skvbem.search.families.best_dag import CompleteData, best_dag
from skvbem.search.strategies import Exact
from skvbem.spaces import BipartiteSpace, DAGSpace, GridSpace
from skvbem.spaces.priors import ClassPrior, EdgePrior
from skvbem.spaces.rules import make_rules

approx = pytest.approx
PRIORS = {
    "number": EqualConcentration(0.7, "cell"),
    "bdeu": EqualConcentration(2.0, "table"),
    "per_row": EqualConcentration(1.5, "row"),
}


def random_data(rng, n_nodes, n_rows=60, priors=None, per_parameter=0.0):
    """Columns of 2 to 4 states that depend on each other, with weights."""
    cardinalities = rng.integers(2, 5, size=n_nodes)
    codes = rng.integers(0, cardinalities, size=(n_rows, n_nodes))
    for later, earlier in itertools.pairwise(rng.permutation(n_nodes)):
        copied = rng.random(n_rows) < 0.5
        codes[copied, later] = codes[copied, earlier] % cardinalities[later]
    weight = rng.integers(1, 4, size=n_rows) + rng.choice([0.0, 0.25])
    priors = [EqualConcentration(1.0, "cell")] * n_nodes if priors is None else [priors] * n_nodes
    nodes = tuple(f"x{k}" for k in range(n_nodes))
    return CompleteData(nodes, codes.T.astype(np.int32).copy(), weight, cardinalities, priors, per_parameter)


def family_score(data, node, parents):
    """The score of a family by its definition."""
    place = [data.nodes.index(member) for member in (*parents, node)]
    shape = [int(data.cardinalities[k]) for k in place]
    counts = np.zeros(shape)
    np.add.at(counts, tuple(data.codes[place]), data.weight)
    counts = counts.reshape(-1, shape[-1])
    spread = data.priors[place[-1]]
    if spread.total == 0.0:
        shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-300)
        inside = counts > 0
        penalty = data.per_parameter * len(counts) * (shape[-1] - 1)
        return float((counts[inside] * np.log(shares[inside])).sum()) - penalty
    prior = spread.table(shape).reshape(counts.shape)
    total = sum(math.lgamma(a.sum()) - math.lgamma(a.sum() + n.sum()) for a, n in zip(prior, counts))
    return total + sum(math.lgamma(a + n) - math.lgamma(a) for a, n in zip(prior.ravel(), counts.ravel()))


def best_by_enumeration(data, space, log_odds=()):
    """The highest score of all graphs of a space."""
    log_odds, known, best = dict(log_odds), {}, -math.inf
    for setting in space:
        dag, total = setting["structure"], 0.0
        for node in dag.nodes:
            family = (node, dag.parents(node))
            if family not in known:
                known[family] = family_score(data, *family) + sum(log_odds.get((p, node), 0.0) for p in family[1])
            total += known[family]
        best = max(best, total)
    return best


def score_of(data, dag):
    return sum(family_score(data, node, dag.parents(node)) for node in dag.nodes)


@pytest.mark.parametrize("prior", PRIORS)
def test_all_graphs_over_four_nodes(prior, rng):
    for _ in range(3):
        data = random_data(rng, 4, priors=PRIORS[prior])
        space = DAGSpace(data.nodes)
        dag, score = best_dag(data, space.rules)
        assert score == approx(best_by_enumeration(data, space), rel=1e-12)
        assert score_of(data, dag) == approx(score, rel=1e-12)


@pytest.mark.parametrize("max_parents", [1, pytest.param(None, marks=pytest.mark.slow)])
def test_all_graphs_over_five_nodes(max_parents, rng):
    data = random_data(rng, 5, priors=PRIORS["bdeu"])
    space = DAGSpace(data.nodes, max_parents=max_parents)
    dag, score = best_dag(data, space.rules)
    assert score == approx(best_by_enumeration(data, space), rel=1e-12)
    assert score_of(data, dag) == approx(score, rel=1e-12)


def test_maximized_likelihood_with_a_penalty(rng):
    data = random_data(rng, 4, priors=EqualConcentration(0.0, "cell"), per_parameter=0.5 * math.log(100))
    space = DAGSpace(data.nodes)
    dag, score = best_dag(data, space.rules)
    assert score == approx(best_by_enumeration(data, space), rel=1e-12)
    assert score_of(data, dag) == approx(score, rel=1e-12)


def test_priors_that_differ_between_nodes(rng):
    data = random_data(rng, 4)
    data = replace(data, priors=[*PRIORS.values(), EqualConcentration(3.0, "cell")])
    space = DAGSpace(data.nodes)
    assert best_dag(data, space.rules)[1] == approx(best_by_enumeration(data, space), rel=1e-12)


@pytest.mark.parametrize(
    "rules",
    [
        {"max_parents": 1},
        {"max_parents": 0},
        {"tiers": [["x2"], ["x0", "x3"], ["x1"]]},
        {"allowed": [("x0", "x1"), ("x1", "x0"), ("x2", "x1"), ("x3", "x2"), ("x0", "x3")]},
        {"required": [("x3", "x0"), ("x0", "x1")]},
        {"forbidden": [("x0", "x1"), ("x1", "x0"), ("x2", "x3")], "max_parents": 2},
    ],
    ids=str,
)
def test_rules_are_obeyed(rules, rng):
    for _ in range(3):
        data = random_data(rng, 4)
        space = DAGSpace(data.nodes, **rules)
        dag, score = best_dag(data, space.rules)
        assert {"structure": dag} in space
        assert score == approx(best_by_enumeration(data, space), rel=1e-12)


def test_edges_may_add_to_the_score(rng):
    data = random_data(rng, 4)
    log_odds = {pair: float(rng.normal(scale=5.0)) for pair in itertools.permutations(data.nodes, 2)}
    space = DAGSpace(data.nodes)
    dag, score = best_dag(data, space.rules, log_odds)
    assert score == approx(best_by_enumeration(data, space, log_odds), rel=1e-12)
    assert score == approx(score_of(data, dag) + sum(map(log_odds.get, dag.edges)), rel=1e-12)


def test_of_equal_graphs_one_with_few_edges_comes_out():
    """A column that never varies: its parents do not matter, and it matters to no one."""
    codes = np.array([[0, 1, 0, 1], [0, 0, 0, 0]], dtype=np.int32)
    data = CompleteData(("x", "y"), codes, np.ones(4), np.array([2, 1]), [EqualConcentration(1.0, "cell")] * 2)
    assert best_dag(data, make_rules(data.nodes))[0] == DAG.from_string("[x][y]")


@pytest.mark.parametrize("n_nodes", [1, 2])
def test_one_node_and_two(n_nodes, rng):
    data = random_data(rng, n_nodes)
    space = DAGSpace(data.nodes)
    assert best_dag(data, space.rules)[1] == approx(best_by_enumeration(data, space), rel=1e-12)


@pytest.mark.parametrize("strength", [1e-9, 0.3, 1.0, 40.0, 1e6, 1e12])
def test_sums_by_definition(strength, rng):
    """Every set of columns, in 50 digits."""
    data = random_data(rng, 4)
    sums = np.full((16, 2), np.nan)
    kinds = np.array([strength, strength]), np.array([0, 1], dtype=np.uint8)
    fill_sums(data.codes, data.cardinalities, data.weight, *kinds, 3, sums)
    assert np.isnan(sums[15]).all()
    for mask in range(15):
        columns = [k for k in range(4) if mask >> k & 1]
        counts = {}
        for row, weight in zip(data.codes[columns].T.tolist(), data.weight):
            counts[tuple(row)] = counts.get(tuple(row), 0.0) + weight
        for kind, share in enumerate((1, math.prod(data.cardinalities[columns].tolist()))):
            with mpmath.workdps(50):
                a = mpmath.mpf(strength / share)
                exact = sum(mpmath.loggamma(a + mpmath.mpf(n)) - mpmath.loggamma(a) for n in counts.values())
                size = sum(abs(mpmath.loggamma(a + mpmath.mpf(n))) for n in counts.values()) if a < 32 else abs(exact)
            assert sums[mask, kind] == approx(float(exact), abs=1e-14 * float(size) + 1e-13)


def frame(rng, n_rows=200):
    table = rng.integers(0, 3, size=(n_rows, 4))
    table[:, 1] = np.where(rng.random(n_rows) < 0.7, table[:, 0], table[:, 1])
    table[:, 3] = np.where(rng.random(n_rows) < 0.6, (table[:, 1] + table[:, 2]) % 3, table[:, 3])
    return table


NODES = ["x0", "x1", "x2", "x3"]


def searched(X, space, strategy="exact", scoring="lower_bound", estimator=None, **options):
    estimator = VBDiscreteDAG(n_init=1) if estimator is None else estimator
    return StructureSearchCV(
        estimator, space, strategy=strategy, scoring=scoring, refit=False, random_state=0, **options
    ).fit(X)


@pytest.mark.parametrize("prior", [0.5, "bdeu", "per_row", {"x0": 0.5, "x1": "bdeu"}], ids=str)
def test_the_search_scores_what_the_program_found(prior, rng):
    X, space, model = frame(rng), DAGSpace(NODES, max_parents=1), VBDiscreteDAG(prior=prior, n_init=1)
    exact, every = (searched(X, space, strategy, estimator=model) for strategy in ("exact", "exhaustive"))
    assert exact.best_score_ == approx(every.best_score_, rel=1e-11)
    scores = {
        str(p["structure"]): value for p, value in zip(*map(every.cv_results_.get, ("params", "mean_test_score")))
    }
    table = exact.cv_results_
    assert table["mean_test_score"][0] == approx(exact.best_score_, rel=1e-12)
    assert 40 <= len(table["params"]) <= 100
    for setting, value in zip(table["params"], table["mean_test_score"]):
        assert value == approx(scores[str(setting["structure"])], rel=1e-11)


def test_the_best_bic(rng):
    X, space = frame(rng), DAGSpace(NODES, max_parents=1)
    exact, every = (searched(X, space, strategy, "bic") for strategy in ("exact", "exhaustive"))
    assert exact.best_score_ == approx(every.best_score_, rel=1e-11)


@pytest.mark.parametrize("kind", [name for name, score in SCORES.items() if score.exact_if_complete])
def test_scores_that_are_the_evidence_of_complete_data(kind, rng):
    X, space = frame(rng, 40), DAGSpace(NODES)
    assert searched(X, space, scoring=kind).best_score_ == approx(searched(X, space).best_score_, abs=1e-8)


def test_a_prior_over_edges_counts(rng):
    X, space = frame(rng), DAGSpace(NODES, max_parents=1)
    every = searched(X, space, "exhaustive").cv_results_["mean_test_score"]
    for prior in (EdgePrior(0.01), EdgePrior({("x0", "x1"): 0.0, ("x2", "x0"): 1.0}, default=0.3), EdgePrior({}, 0.05)):
        weights = np.array([prior.log_weight(setting, space) for setting in space])
        exact = searched(X, space, prior=prior)
        assert exact.best_score_ + exact.cv_results_["log_prior"][0] == approx((every + weights).max(), rel=1e-11)


def refused(match, estimator=None, space=None, X=None, error=ValueError, strategy="exact", **options):
    X = np.array([[0, 1, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1]]) if X is None else X
    space = DAGSpace(NODES) if space is None else space
    search = StructureSearchCV(estimator or VBDiscreteDAG(n_init=1), space, strategy=strategy, **options)
    with pytest.raises(error, match=match):
        search.fit(X)


def test_what_it_refuses():
    refused("complete data; some cells are missing", X=np.array([[0, 1, 0, np.nan], [1, 0, 1, 0], [1, 1, 1, 1]]))
    refused("complete data; there are latents", VBDiscreteDAG(latents=2))
    refused("space of graphs without latents", space=DAGSpace(NODES, latents={"h": 2}))
    refused("space of graphs without latents", space=BipartiteSpace({"h0": 2}, NODES))
    refused("space of graphs without latents", space=DAGSpace(NODES) * GridSpace({"prior": [0.5, 1.0]}))
    refused("a sum over families: 'bic'", scoring="laplace")
    refused("a sum over families: 'bic'", scoring=scorer("bic", form="map"))
    refused("scores of the evidence of all rows", cv=2)
    refused("uniform or an EdgePrior", prior=ClassPrior())
    refused("learn_prior=False", VBDiscreteDAG(learn_prior=True))
    refused("equal in all cells of a table; node 'x1'", VBDiscreteDAG(prior={"x1": [1.0, 2.0]}))
    refused("space and the prior allow", prior={("x0", "x1"): 1.0, ("x1", "x0"): 1.0})


def test_memory_is_refused_before_it_is_taken():
    refused("of Exact", error=TooLargeError, strategy=Exact(max_memory=100))
    nodes = [f"x{k}" for k in range(45)]
    refused("45 nodes", X=np.eye(45, dtype=int), space=DAGSpace(nodes, max_parents=1), error=TooLargeError)
