"""Searches over graphs among rows in which nodes were set, against sums over all graphs by definition."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.special import gammaln, logsumexp

from skvbem import StructureSearchCV, VBDiscreteDAG
from skvbem.data import Rows
from skvbem.families.dirichlet_mixture import AveragedConcentration
from skvbem.graphs.dag import DAG
from skvbem.graphs.essential import EssentialGraph
from skvbem.search.strategies.exhaustive import highest_log_likelihood
from skvbem.spaces import DAGSpace

approx = pytest.approx
#: Of the hidden ones of a table.
SIZES = tuple(each.total for each in AveragedConcentration().alternatives)


@pytest.fixture
def experiment(rng):
    """Columns of two and three states in a row, of which each row has one or two set."""
    n = 90
    a = rng.integers(0, 2, n)
    is_set = rng.random((n, 3)) < [0.3, 0.3, 0.1]
    b = np.where(is_set[:, 1], rng.integers(0, 3, n), np.where(rng.random(n) < 0.7, 2 * a, rng.integers(0, 3, n)))
    c = np.where(is_set[:, 2], rng.integers(0, 2, n), np.where(rng.random(n) < 0.8, b > 0, rng.random(n) < 0.5))
    X = pd.DataFrame({"a": a, "b": b, "c": c.astype(int)})
    return X, pd.DataFrame(is_set, columns=X.columns), rng.integers(1, 3, n).astype(float)


def all_dags(nodes):
    """Every directed graph without a circle."""
    pairs = [(p, c) for p in nodes for c in nodes if p != c]
    for chosen in product([False, True], repeat=len(pairs)):
        try:
            yield DAG.from_edges([pair for pair, is_in in zip(pairs, chosen) if is_in], nodes)
        except ValueError:
            continue


def log_evidence(dag, X, is_set, weight, sizes=(1.0,)):
    """BDeu, node by node, of the rows in which the node was not set: the mean over equivalent sample sizes."""
    total = 0.0
    for node in dag.nodes:
        family = [*dag.parents(node), node]
        shape = [X[member].max() + 1 for member in family]
        counts, kept = np.zeros(shape), ~is_set[node].to_numpy()
        np.add.at(counts, tuple(X[member].to_numpy()[kept] for member in family), weight[kept])
        logs = []
        for size in sizes:
            prior = np.full(shape, size / np.prod(shape))
            of_cells = (gammaln(prior + counts) - gammaln(prior)).sum()
            logs.append(of_cells - (gammaln((prior + counts).sum(-1)) - gammaln(prior.sum(-1))).sum())
        total += logsumexp(logs) - np.log(len(sizes))
    return float(total)


@pytest.mark.parametrize(
    ("strategy", "prior", "sizes"),
    [
        *((strategy, "bdeu", (1.0,)) for strategy in ("exact", "exhaustive", "greedy", "structural")),
        *((strategy, "bdla", SIZES) for strategy in ("exact", "greedy")),
    ],
)
def test_posteriors_are_sums_over_all_graphs(experiment, strategy, prior, sizes):
    X, is_set, weight = experiment
    dags = list(all_dags(tuple(X)))
    assert len(dags) == 25
    logs = np.array([log_evidence(dag, X, is_set, weight, sizes) for dag in dags])
    p = np.exp(logs - logsumexp(logs))
    options = {"strategy": strategy, "prior": "uniform", "random_state": 0}
    search = StructureSearchCV(VBDiscreteDAG(prior=prior), DAGSpace(list(X)), **options)
    search.fit(X, sample_weight=weight, interventions=is_set)
    assert search.best_score_ == approx(logs.max(), abs=1e-8)
    assert search.best_structure_.edges == dags[int(np.argmax(logs))].edges
    assert search.best_estimator_.lower_bound_ == approx(logs.max(), abs=1e-8)
    by_edge = {(a, b): sum(w for w, dag in zip(p, dags) if (a, b) in dag.edges) for a in X for b in X if a != b}
    for (parent, child), probability in by_edge.items():
        assert search.edge_probabilities_["parent":parent, "child":child] == approx(probability, abs=1e-9)
    for params, score in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"]):
        assert score == approx(log_evidence(params["structure"], X, is_set, weight, sizes), abs=1e-8)


def test_criteria_are_those_of_fits(experiment):
    """The maximized likelihood of each node's own rows, and a penalty by all rows that say something."""
    X, is_set, weight = experiment
    search = StructureSearchCV(VBDiscreteDAG(), DAGSpace(list(X)), scoring="bic", strategy="exact", random_state=0)
    search.fit(X, sample_weight=weight, interventions=is_set)
    values, n = {}, weight[~is_set.all(axis=1)].sum()
    for dag in all_dags(tuple(X)):
        total = 0.0
        for node in dag.nodes:
            family, kept = [*dag.parents(node), node], ~is_set[node]
            counts = X[kept].assign(w=weight[kept]).groupby(family)["w"].sum()
            rows = counts if len(family) == 1 else counts.groupby(family[:-1]).transform("sum")
            total += (counts * np.log(counts / (counts.sum() if len(family) == 1 else rows))).sum()
            cells = np.prod([X[member].max() + 1 for member in family])
            total -= 0.5 * np.log(n) * (cells - cells / (X[node].max() + 1))
        values[dag] = total
    assert search.best_score_ == approx(max(values.values()), abs=1e-8)
    fit = VBDiscreteDAG(search.best_structure_, n_init=1).fit(X, sample_weight=weight, interventions=is_set)
    found = fit.log_evidence(X, sample_weight=weight, interventions=is_set, kind="bic")
    assert found.value == approx(search.best_score_, abs=1e-6)


def test_no_model_exceeds_the_ceiling():
    """Rows in which a node was set to the same are compared with each other."""
    rows = Rows(("x", "y"), np.array([[0, 0], [0, 1], [2, 1], [3, 0], [2, 1]], dtype=np.int8))
    assert highest_log_likelihood(rows, np.array([2, 2])) == approx(2 * np.log(0.5))


def test_classes_keep_directions_of_what_was_set(experiment):
    """A chain a -> b -> c: with b set in some rows without c, and c without b, its second edge is an arrow."""
    X, _, _ = experiment
    who = np.where(np.arange(len(X)) < 30, "c", None)
    space = DAGSpace(list(X), required=[("b", "c")])
    search = StructureSearchCV(VBDiscreteDAG(prior="bdeu"), DAGSpace(list(X)), random_state=0).fit(X, interventions=who)
    assert search.intervention_targets_ == ((), ("c",))
    classes = {each.graph for each in search.equivalence_classes()}
    assert EssentialGraph(X, [("b", "c")], [("a", "b")]) in classes
    assert not any({"b", "c"} == {*line} for graph in classes for line in graph.lines)
    assert sum(each.probability for each in search.equivalence_classes()) == approx(1.0, abs=1e-6)
    seen = StructureSearchCV(VBDiscreteDAG(prior="bdeu"), space, random_state=0).fit(X)
    assert seen.intervention_targets_ == ()


def test_hidden_nodes_and_gaps(experiment, rng):
    """Candidates have the bounds of their fits, whichever strategy meets them; chains agree with sums."""
    X, is_set, _ = experiment
    X, is_set = X[:6], is_set[:6]
    X = X.astype(object).mask((rng.random(X.shape) < 0.2) & ~is_set, None)
    space = DAGSpace(list(X), latents={"h": 2}, max_parents=1)
    options = {"scoring": "lower_bound", "rescoring": False, "random_state": 0, "max_candidates": 4}
    model = VBDiscreteDAG(n_init=2, random_state=0, prior=1.0)
    for strategy in ("greedy", "structural"):
        search = StructureSearchCV(model, space, strategy=strategy, **options).fit(X, interventions=is_set)
        for params, score in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"]):
            fit = VBDiscreteDAG(n_init=2, random_state=0, prior=1.0, **params).fit(X, interventions=is_set)
            assert score == approx(fit.lower_bound_, abs=1e-3)
    few = [{"structure": [("h", "a"), ("h", "b"), ("h", "c")]}, {"structure": [("h", "a"), ("h", "b"), ("b", "c")]}]
    options = {"n_init": 2, "random_state": 0, "prior": 1.0, "latents": {"h": 2}}
    fits = [VBDiscreteDAG(**each, **options).fit(X, interventions=is_set) for each in few]
    logs = [fit.log_evidence(X, interventions=is_set, kind="exact").value for fit in fits]
    grid = {"structure": [each["structure"] for each in few]}
    model = VBDiscreteDAG(n_init=2, prior=1.0, latents={"h": 2})
    found = StructureSearchCV(model, grid, scoring="lower_bound", rescoring="evidence", prior="uniform", random_state=0)
    found.fit(X, interventions=is_set)
    p = 1 / (1 + np.exp(logs[1] - logs[0]))
    place = found.cv_results_["params"].index({"structure": few[0]["structure"]})
    error = found.structure_posterior_errors_[place]
    assert found.structure_posterior_[place] == approx(p, abs=4 * error + 0.01)


def test_rows_held_out_need_routing(experiment):
    X, is_set, _ = experiment
    with pytest.raises(ValueError, match="set_score_request"):
        StructureSearchCV(VBDiscreteDAG(), DAGSpace(list(X)), cv=2).fit(X, interventions=is_set)
