"""Effects over structures: against sums over all graphs, draws of Wishart matrices, and fits of candidates."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t as student
from scipy.stats import wishart

from skvbem import DAGSpace, StructureSearchCV, VBDiscreteDAG, VBNetwork
from skvbem.datasets import load_sachs
from skvbem.emissions import Regression
from skvbem.estimators import Effect
from skvbem.graphs.dag import DAG
from skvbem.search.families.drawn_graphs import DrawnGraphs
from skvbem.search.families.sum_of_dags import parent_set_probabilities, summed
from skvbem.search.posterior.effects import EffectsOverGraphs

approx = pytest.approx
NODES = list("wxyz")
BGE = Regression(prior="bge", coefficient_precision_prior=0.5, degrees_of_freedom_prior=3.0)


def all_graphs(n):
    """Parents of each node, as masks of all nodes, of all graphs without a cycle."""
    for masks in product(range(1 << n), repeat=n):
        if any(mask >> k & 1 for k, mask in enumerate(masks)):
            continue
        left = set(range(n))
        while free := {k for k in left if not any(masks[k] >> p & 1 for p in left)}:
            left -= free
        if not left:
            yield masks


def without(mask, node):
    """A mask of the nodes other than one."""
    return mask & ((1 << node) - 1) | mask >> (node + 1) << node


def weights_of(scores, graphs):
    logs = np.array([sum(scores[k, without(mask, k)] for k, mask in enumerate(masks)) for masks in graphs])
    weights = np.exp(logs - logs.max())
    return weights / weights.sum(), logs.max() + np.log(np.exp(logs - logs.max()).sum())


@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("forbidden", [False, True])
def test_graphs_are_drawn_as_often_as_they_are_probable(n, forbidden, rng):
    scores = 200.0 * rng.normal(size=(n, 1)) + 1.5 * rng.normal(size=(n, 1 << (n - 1)))
    if forbidden and n > 1:
        scores[0, 1:], scores[1, : 1 << (n - 2)] = -np.inf, -np.inf  # a root; and a node that has a parent
        scores[1, 1 << (n - 2) :] = scores[1, -1:]
        scores[1, 1] = 0.0 if n > 2 else scores[1, 1]
    graphs = list(all_graphs(n))
    weights, log_total = weights_of(scores, graphs)
    drawn = DrawnGraphs(scores)
    assert drawn.log_total == approx(log_total, abs=1e-9)
    found = drawn.draw(4000, np.random.default_rng(5))
    place = {masks: k for k, masks in enumerate(graphs)}
    counts = np.bincount([place[tuple(masks)] for masks in found.tolist()], minlength=len(graphs))
    error = np.sqrt(weights * (1 - weights) / 4000)
    assert (np.abs(counts / 4000 - weights) <= 5 * error + 1e-3).all()
    assert ((counts - 4000 * weights) ** 2 / np.maximum(4000 * weights, 1.0)).sum() < len(graphs) + 5 * np.sqrt(
        2 * len(graphs)
    )


def test_probabilities_of_parents_are_sums_over_graphs(rng):
    scores = 2.0 * rng.normal(size=(4, 8)) - 300.0
    scores[2, 5] = -np.inf
    graphs = list(all_graphs(4))
    weights, _ = weights_of(scores, graphs)
    for child in range(4):
        exact = np.bincount([without(masks[child], child) for masks in graphs], weights, minlength=8)
        assert parent_set_probabilities(scores, child) == approx(exact, abs=1e-12)
    many = 3.0 * rng.normal(size=(9, 256)) - 2.0 * np.bitwise_count(np.arange(256))
    of_sets = parent_set_probabilities(many, 3)
    edges = [of_sets[(np.arange(256) >> bit & 1) == 1].sum() for bit in range(8)]
    assert edges == approx(np.delete(summed(many).edges[:, 3], 3), abs=1e-12)


@pytest.fixture
def measured(rng):
    w, x = rng.normal(size=(2, 60))
    y = 0.5 * x + rng.normal(size=60)
    return pd.DataFrame({"w": w, "x": 100 * x + 5, "y": y, "z": 0.01 * (0.4 * w + 0.6 * y + rng.normal(size=60))})


def searched(X, emission=BGE, **options):
    space = DAGSpace(list(X))
    return StructureSearchCV(VBNetwork(emission=emission), space, prior="uniform", random_state=0, **options).fit(X)


def exact_effect(search, X, cause, outcome):
    """The expected effect and the probability of no path, by all graphs: coefficients of nodes are independent."""
    unit = X.std(ddof=0)
    Z = ((X - X.mean()) / unit).to_numpy()
    R, names = Z.T @ Z + 0.5 * np.eye(4), list(X)
    x, y = names.index(cause), names.index(outcome)
    mean, no_path, adjusted, total = 0.0, 0.0, 0.0, 0.0
    for masks in all_graphs(4):
        parents = {names[k]: [names[p] for p in range(4) if mask >> p & 1] for k, mask in enumerate(masks)}
        B, score = np.zeros((4, 4)), 0.0
        for k, mask in enumerate(masks):
            above = [p for p in range(4) if mask >> p & 1]
            B[k, above] = np.linalg.solve(R[np.ix_(above, above)], R[above, k])
        score = np.exp(search._over_graphs_.graphs.log_probability(DAG(names, parents)))
        of_graph = np.linalg.inv(np.eye(4) - B)[y, x] * unit[outcome] / unit[cause]
        mean, total = mean + score * of_graph, total + score
        reached = np.linalg.matrix_power(np.eye(4) + (B != 0), 4)[y, x] > 0
        no_path += score * (not reached)
        given = [x, *(p for p in range(4) if masks[x] >> p & 1)]
        if y not in given:
            adjusted += score * np.linalg.solve(R[np.ix_(given, given)], R[given, y])[0]
    assert total == approx(1.0)
    return mean, no_path, adjusted * unit[outcome] / unit[cause]


@pytest.mark.parametrize(("cause", "outcome"), [("x", "z"), ("x", "y"), ("z", "w")])
def test_means_are_sums_over_all_graphs(measured, cause, outcome):
    search = searched(measured)
    effect = search.effect(cause, outcome, n_draws=5000)
    mean, no_path, adjusted = exact_effect(search, measured, cause, outcome)
    assert effect.mean == approx(mean, abs=4 * effect.standard_deviation / np.sqrt(5000))
    assert effect.probability_no_path == approx(no_path, abs=4 * 0.5 / np.sqrt(5000))
    by_adjustment = search.effect(cause, outcome, method="adjustment", n_draws=5000)
    assert by_adjustment.probability_no_path == effect.probability_no_path
    assert by_adjustment.mean == approx(adjusted, rel=1e-7)
    assert effect.values.tolist() == searched(measured).effect(cause, outcome, n_draws=5000).values.tolist()


def test_effects_follow_units_and_columns(measured):
    effect = searched(measured).effect("x", "z")
    other = measured[["z", "y", "x", "w"]].assign(x=measured["x"] / 100, z=measured["z"] * 100 + 7)
    scaled = searched(other).effect("x", "z")
    assert scaled.mean / 1e4 == approx(effect.mean, abs=4e-2 * effect.standard_deviation * 3)
    assert searched(other).effect("x", "z", method="adjustment").interval(0.9) == approx(
        tuple(1e4 * end for end in searched(measured).effect("x", "z", method="adjustment").interval(0.9)), rel=1e-8
    )


def test_draws_given_a_graph_are_those_of_a_fit(measured):
    """Where parents are fixed, draws of coefficients are those of the network under the same prior."""
    edges = [("x", "y"), ("y", "z"), ("x", "z")]
    X = measured[["x", "y", "z"]]
    space = DAGSpace(list(X), required=edges)
    search = StructureSearchCV(VBNetwork(emission=BGE), space, random_state=0).fit(X)
    over, alone = search.effect("x", "z", n_draws=8000), search.best_estimator_.effect("x", "z", n_draws=8000)
    assert set(search.best_structure_.edges) == set(edges)
    assert over.mean == approx(alone.mean, abs=5 * alone.standard_deviation / np.sqrt(8000))
    assert over.standard_deviation == approx(alone.standard_deviation, rel=0.04)
    assert over.interval(0.9) == approx(alone.interval(0.9), abs=0.08 * alone.standard_deviation)


def test_coefficients_given_parents_are_those_of_wishart_matrices(measured):
    search = searched(measured)
    over: EffectsOverGraphs = search._over_graphs_
    mean, scale, dof = over._coefficient(3, [1, 0])
    R = over.data.posterior_scale
    precisions = wishart(3.0 - 1 + 4 + 60, np.linalg.inv(R), seed=0).rvs(20000)
    covariances = np.linalg.inv(precisions)[:, [1, 0, 3]][:, :, [1, 0, 3]]
    drawn = np.linalg.solve(covariances[:, :2, :2], covariances[:, :2, 2:])[:, 0, 0]
    exact = student(dof, mean, scale)
    assert np.quantile(drawn, [0.05, 0.25, 0.5, 0.75, 0.95]) == approx(
        exact.ppf([0.05, 0.25, 0.5, 0.75, 0.95]), abs=0.04 * exact.std()
    )


def test_candidates_that_are_fitted_are_mixed(rng):
    n = 80
    g = rng.random(n) < 0.5
    X = pd.DataFrame({"g": np.where(g, "u", "v"), "x": rng.normal(size=n)})
    X["y"] = 0.4 * X["x"] + g + rng.normal(size=n)
    space = DAGSpace(list(X), forbidden=[("g", "x"), ("x", "g")])
    search = StructureSearchCV(VBNetwork(emission="auto"), space, random_state=0, averaging=True).fit(X)
    found = search.effect("x", "y", n_draws=300)
    fits, weights = search.averaged_.estimators, search.averaged_.weights
    by_hand = sum(weight * fit.effect("x", "y", n_draws=300).mean for fit, weight in zip(fits, weights))
    assert found.mean == approx(by_hand)
    leads = [fit.structure_.parents("y") for fit in fits]
    none = sum(weight for parents, weight in zip(leads, weights) if "x" not in parents)
    assert found.probability_no_path == approx(none)
    assert search.effect("g", "y", change=("v", "u")).mean > 0.3
    with pytest.raises(ValueError, match="needs the sum over all graphs of complete measurements"):
        search.effect("x", "y", method="adjustment")


def test_what_a_search_lacks_is_said(measured, rng):
    search = searched(measured)
    for arguments, options, message in [
        (("x", "q"), {}, "'q' is not a node of this search"),
        (("x", "x"), {}, "needs two nodes"),
        (("x", "y"), {"change": (1, 2)}, "Leave 'change' out"),
        (("x", "y"), {"method": "best"}, "must be one of"),
        (("x", "y"), {"n_draws": 0}, "n_draws"),
    ]:
        with pytest.raises(ValueError, match=message):
            search.effect(*arguments, **options)
    with pytest.raises(ValueError, match="Search with averaging=True"):
        searched(measured[["x", "y"]], Regression()).effect("x", "y")
    codes = pd.DataFrame(rng.integers(0, 2, (30, 2)), columns=["a", "b"])
    tables = StructureSearchCV(VBDiscreteDAG(), DAGSpace(["a", "b"]), averaging=True, random_state=0).fit(codes)
    with pytest.raises(TypeError, match="VBDiscreteDAG has no effects"):
        tables.effect("a", "b")


def test_intervals_over_structures_are_shown():
    assert "P(no path) 1.000" in repr(Effect.of_draws(np.zeros(3), probability_no_path=1.0))


def test_signaling_of_immune_cells():
    """The best graph over standardized logarithms, and its evidence, as computed by another program."""
    X = np.log(load_sachs(as_frame=True).data)
    search = searched(X)
    known = {"mek raf", "pip2 pip3", "akt pka", "akt erk", "jnk pkc", "p38 pkc"}
    assert {" ".join(sorted(edge)) for edge in search.best_structure_.edges} == known
    in_units = search.best_score_ + len(X) * np.log(X.std(ddof=0)).sum()
    assert in_units == approx(-12356.569198, abs=1e-5)
    effect = search.effect("pkc", "p38")
    assert 0.2 < effect.probability_no_path < 0.8
    assert effect.interval(0.9)[0] == 0.0
