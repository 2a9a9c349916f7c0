"""Structural searches of categories and measurements with missing cells: one q(x) bounds all graphs."""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from skvbem import StructureSearchCV, VBNetwork
from skvbem.emissions import Regression
from skvbem.fitting.kind import kind_of
from skvbem.graphs.dag import DAG
from skvbem.models.mixed_network.completed_numbers import complete_numbers
from skvbem.search.families.best_dag import FamilyByFamily, best_dag
from skvbem.search.families.completed_families import CompletedFamilies
from skvbem.search.strategies.structural.climb import StructuralVBEM
from skvbem.spaces import DAGSpace

BGE = Regression(prior="bge", coefficient_precision_prior=0.5)
HIDDEN = Regression()
NODES = ("k", "c", "x", "y", "z")


def table(seed, n, holes):
    """Two categories and three measurements, some cells missing: k -> x -> y -> z, k -> c, c -> z."""
    rng = np.random.default_rng(seed)
    k = rng.integers(0, 2, n)
    c = np.where(rng.random(n) < 0.8, k, 1 - k) + (rng.random(n) < 0.2)
    x = rng.normal(10.0 + 2.0 * k, 1.0)
    y = 0.8 * x + rng.normal(0.0, 0.5, n)
    z = 100.0 * (0.5 * y + c + rng.normal(0.0, 0.5, n))
    X = pd.DataFrame({"k": np.array(["a", "b"])[k], "c": np.array(["u", "v", "w"])[c], "x": x, "y": y, "z": z})
    return X.mask(rng.random(X.shape) < holes)


def network(edges, emission=BGE, **options):
    """An unfitted network of the columns, each measurement under one prior."""
    emissions = [(name, emission, [name]) for name in "xyz"]
    groups = [("tables", "categorical", ["k", "c"]), *emissions]
    return VBNetwork(DAG.from_edges(edges, NODES), emission=groups, random_state=0, **options)


def read(estimator, X):
    return kind_of(estimator).read(estimator, X, None, None, {})


def completed_once_more(estimator, reading, completed):
    """Rows completed by the q(theta) of a network that follows from rows completed before; nothing is left out."""
    model = kind_of(estimator).model(estimator, reading)
    data = kind_of(estimator).compiled(estimator, model, reading, 1)
    return complete_numbers(model, completed.statistics(model), data.source)


GRAPHS = [
    [],
    [("k", "x"), ("x", "y"), ("c", "z")],
    [("k", "c"), ("k", "x"), ("c", "x"), ("x", "y"), ("x", "z"), ("k", "y"), ("y", "z")],
]


@pytest.mark.parametrize("emission", [BGE, HIDDEN], ids=["known", "hidden precisions"])
@pytest.mark.parametrize("edges", GRAPHS)
def test_bounds_of_complete_rows_are_those_of_fits(edges, emission):
    X = table(0, 60, 0.0)
    one = network(GRAPHS[1], emission)
    reading = read(one, X)
    _, completed = kind_of(one).complete(one, reading)
    scores = CompletedFamilies(completed, one, reading)
    assert completed.is_certain
    assert completed.entropy == 0.0
    wanted = network(edges, emission).fit(X).lower_bound_
    assert scores.bound(DAG.from_edges(edges, NODES)) == pytest.approx(wanted, abs=1e-5 if emission is HIDDEN else 1e-9)


def quadratic(function, d):
    """Maximum, its place, and minus the second derivatives there, of a concave quadratic function of d numbers."""
    base, unit = function(np.zeros(d)), np.eye(d)
    at = np.array([function(row) for row in unit])
    back = np.array([function(-row) for row in unit])
    gradient, second = (at - back) / 2, np.empty((d, d))
    for i, j in itertools.product(range(d), repeat=2):
        second[i, j] = at[i] + back[i] - 2 * base if i == j else function(unit[i] + unit[j]) - at[i] - at[j] + base
    precision = -second
    place = np.linalg.solve(precision, gradient)
    return base + 0.5 * gradient @ place, place, precision


def test_sums_of_completed_rows_are_those_of_each_completion():
    X = table(1, 40, 0.3)
    estimator = network(GRAPHS[2])
    reading = read(estimator, X)
    kind = kind_of(estimator)
    model = kind.model(estimator, reading)
    data = kind.compiled(estimator, model, reading, 1)
    statistics = kind.complete(estimator, reading)[1].statistics(model)
    completed = complete_numbers(model, statistics, data.source)
    natural = (model.prior + statistics).expected_natural()
    _, *of_emissions = model.prior.split(natural)
    tables = {node: model.layout.table(natural, model.position[node]) for node in ("k", "c")}
    steps = [
        emission.step(np.ascontiguousarray(of), emission.survey(np.zeros((0, 1 + len(given)))))
        for emission, of, given in zip(model.emissions, of_emissions, model.given)
    ]
    origin, unit = completed.origin, completed.unit
    rows = data.source
    codes = np.stack([rows.column("k"), rows.column("c")], axis=1)
    numbers = np.concatenate([rows.tables[e].values[:, :1] for e in range(3)], axis=1)
    products, entropy = np.zeros((2, 3, 4, 4)), 0.0
    for code, row in zip(codes, numbers):
        missing = np.flatnonzero(np.isnan(row))

        def log_joint(k, c, values, row=row, missing=missing):
            filled = row.copy()
            filled[missing] = origin[missing] + unit[missing] * values
            total = tables["k"][k] + tables["c"][k, c]
            for e, (step, given) in enumerate(zip(steps, model.given)):
                of_row = model.emissions[e].prepare(filled[[e, *given]][None])
                above = [{"k": k, "c": c}[p] for p in model.dag.parents("xyz"[e]) if p in "kc"]
                sizes = [{"k": 2, "c": 3}[p] for p in model.dag.parents("xyz"[e]) if p in "kc"]
                state = np.ravel_multi_index(above, sizes) if above else 0
                total = total + step.log_likelihood(of_row)[0, state]
            return float(total)

        ways = [(k, c) for k in range(2) for c in range(3) if code[0] in (-1, k) and code[1] in (-1, c)]
        found = []
        for k, c in ways:
            top, place, precision = quadratic(lambda values, k=k, c=c: log_joint(k, c, values), len(missing))
            log_z = top + 0.5 * len(missing) * np.log(2 * np.pi) - 0.5 * np.linalg.slogdet(precision)[1]
            found.append((log_z, place, np.linalg.inv(precision)))
        share = np.exp([log_z for log_z, *_ in found] - np.logaddexp.reduce([log_z for log_z, *_ in found]))
        for (k, c), r, (_, place, covariance) in zip(ways, share, found):
            z = np.concatenate([[1.0], (row - origin) / unit])
            z[1 + missing] = place
            outer = np.outer(z, z)
            outer[np.ix_(1 + missing, 1 + missing)] += covariance
            products[k, c] += r * outer
            log_det = np.linalg.slogdet(covariance)[1]
            entropy += r * (0.5 * len(missing) * (1 + np.log(2 * np.pi)) + 0.5 * log_det - np.log(r))
    assert completed.entropy == pytest.approx(entropy, abs=1e-6)
    for at, code in enumerate(completed.codes.T):
        np.testing.assert_allclose(completed.products[at], products[tuple(code)], rtol=1e-6, atol=1e-6)
    assert completed.weight.sum() == pytest.approx(len(numbers), abs=1e-9)


def test_statistics_do_not_depend_on_the_units_of_sums():
    estimator = network(GRAPHS[2])
    reading = read(estimator, table(1, 40, 0.3))
    _, completed = kind_of(estimator).complete(estimator, reading)
    shift, unit = np.array([0.5, -1.0, 2.0]), np.array([2.0, 0.5, 3.0])
    turn = np.diag([1.0, *(1 / unit)])
    turn[1:, 0] = -shift / unit
    other = replace(
        completed,
        origin=completed.origin + shift * completed.unit,
        unit=completed.unit * unit,
        products=turn @ completed.products @ turn.T,
    )
    emission, _ = kind_of(estimator).family(estimator, reading, "z", ["c", "x", "y"])
    wanted, base = completed.statistics_of(emission, "z", ["c", "x", "y"])
    statistics, other_base = other.statistics_of(emission, "z", ["c", "x", "y"])
    np.testing.assert_allclose(statistics, wanted, rtol=1e-9, atol=1e-9)
    assert other_base - base == pytest.approx(40 * np.log(3.0), abs=1e-9)


@pytest.mark.parametrize("emission", [BGE, HIDDEN], ids=["known", "hidden precisions"])
def test_rounds_of_an_exact_search_at_fixed_q_and_of_q_never_fall_and_end_at_one_graph(emission):
    X = table(2, 300, 0.12)
    rules = DAGSpace(list(NODES)).rules
    ends = []
    for edges in (GRAPHS[0], list(itertools.combinations(NODES, 2))):
        estimator = network(edges, emission)
        reading = read(estimator, X)
        _, completed = kind_of(estimator).complete(estimator, reading)
        dag, last = estimator.structure, -np.inf
        for _ in range(60):
            scores = CompletedFamilies(completed, estimator, reading)
            bound = scores.bound(dag)
            assert bound >= last - 1e-5
            best, _ = best_dag(FamilyByFamily(NODES, scores), rules)
            assert scores.bound(best) >= bound - 1e-5
            if scores.bound(best) < last + 1e-4:
                break
            dag, last = best, scores.bound(best)
            estimator = network(list(dag.edges), emission)
            completed = completed_once_more(estimator, reading, completed)
        ends.append((dag, last))
    (one, low), (other, high) = ends
    assert low == pytest.approx(high, abs=0.01)
    assert set(map(frozenset, one.edges)) == set(map(frozenset, other.edges))
    assert set(map(frozenset, one.edges)) == {frozenset(e) for e in ("kx", "xy", "yz", "kc", "cz")}


def test_the_structural_strategy_finds_the_graph_of_a_table_with_missing_cells():
    X = table(3, 300, 0.12)
    strategy = StructuralVBEM(n_restarts=0, n_finalists=2)
    search = StructureSearchCV(network([]), DAGSpace(list(NODES)), strategy=strategy, scoring="lower_bound")
    search.set_params(random_state=0).fit(X)
    dag = search.best_params_["structure"]
    assert set(map(frozenset, dag.edges)) == {frozenset(e) for e in ("kx", "xy", "yz", "kc", "cz")}
    assert search.best_estimator_.lower_bound_ == pytest.approx(search.best_score_, abs=1e-9)


def test_latents_and_counts_have_no_such_sums():
    X = table(4, 30, 0.1)
    with_counts = X[["k"]].assign(n=np.arange(30.0)).mask(X[["k", "x"]].isna().to_numpy())
    cases = [
        (network([]), DAGSpace(list(NODES), latents={"h": 2}), X),
        (VBNetwork(emission=[("k", "categorical", ["k"]), ("n", "poisson", ["n"])]), DAGSpace(["k", "n"]), with_counts),
    ]
    for estimator, space, rows in cases:
        with pytest.raises(ValueError, match="needs a space of graphs without latents"):
            StructureSearchCV(estimator, space, strategy="structural", max_candidates=3).fit(rows)
