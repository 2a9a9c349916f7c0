"""Every kind of q(x): a bound that never falls, below exact VB started from it, and what must not change it."""

from functools import cache

import numpy as np
import pytest
from bridge import FORMS, FastNetwork, fitted, frame_of, published, rows_of
from laws.problems import enumerable
from reference import discrete_network as literal
from reference.discrete_network import MISSING, Data, exact_log_evidence
from reference.random_networks import random_tables

from skvbem.models import DirichletAscent
from skvbem.models.network.clusters import Partition
from skvbem.vbem.driver import run

approx = pytest.approx


def latents_of(problem):
    return [node for node in problem.network.cards if node not in problem.data.columns]


def largest_table(problem):
    """Cells of the largest table: the least limit under which a network may be fitted."""
    return max(int(np.prod(problem.network.shape(node))) for node in problem.network.cards)


#: What `inference` may be, and the limits that go with it.
KINDS = {
    "exact": lambda problem: {"inference": "exact"},
    "structured": lambda problem: {"inference": "structured", "max_table_cells": largest_table(problem)},
    "mean_field": lambda problem: {"inference": "mean_field"},
    "clusters": lambda problem: {"inference": [latents_of(problem)[::2], latents_of(problem)[1::2]]},
    "one_cluster": lambda problem: {"inference": [latents_of(problem)]},
}
NUMBERS = pytest.mark.parametrize(
    "number", [*range(4), *(pytest.param(number, marks=pytest.mark.slow) for number in range(4, 40))]
)


@pytest.fixture(params=KINDS)
def kind(request):
    """The name of a kind."""
    return request.param


@cache
def problem_of(number):
    """A small problem with hidden nodes that mean field takes apart; rows have weights, some cells are missing."""
    rng = np.random.default_rng([20031101, number])
    while True:
        problem = enumerable(int(rng.integers(2**31)), 2**11, hidden=True, max_nodes=6, max_hidden=3)
        network, data, _ = problem
        fast = FastNetwork(network, problem.prior)
        if len(latents_of(problem)) > 1 and not fast.model.with_partition(Partition()).compile(rows_of(data)).is_exact:
            return problem


def tables_of(problem, number):
    return random_tables(np.random.default_rng([20031102, number]), problem.network)


def fit(problem, kind, **params):
    return fitted(problem, **{"tol": 1e-6, "random_state": 0} | KINDS[kind](problem) | params)


@NUMBERS
def test_the_bound_rises_and_is_one(kind, number):
    """F never falls; F <= collapsed <= evidence; exact VB begun at its q(theta) ends between F and the evidence."""
    problem = problem_of(number)
    model = fit(problem, kind, n_init=2)
    evidence = exact_log_evidence(*problem)
    weights = np.asarray(problem.data.weights)[np.asarray(problem.data.weights) > 0] if weighted(problem) else None
    collapsed = model.log_evidence(frame(problem), sample_weight=weights, kind="collapsed").value
    assert np.diff(model.lower_bounds_).min(initial=0.0) >= -1e-9
    assert model.lower_bound_ - 1e-9 <= collapsed <= evidence + 1e-9
    fast = FastNetwork(problem.network, problem.prior)
    ascent = DirichletAscent(fast.model, fast.program(problem.data), FORMS["vb"])
    counts = fast.flat(published(problem.network, model.counts_))[:, None]
    tighter = run(ascent, counts, tol=1e-6, max_iter=20_000).objective[0]
    assert model.lower_bound_ - 1e-9 <= tighter <= evidence + 1e-9
    if model.row_gap_ is not None:
        assert tighter >= model.lower_bound_ + model.row_gap_ - 1e-6


def weighted(problem):
    return problem.data.weights is not None


def frame(problem):
    kept = slice(None) if not weighted(problem) else np.asarray(problem.data.weights) > 0
    return frame_of(problem.data)[kept]


@NUMBERS
def test_one_cluster_is_exact_to_the_bit(number):
    problem = problem_of(number)
    exact, one = (fit(problem, kind, n_init=3) for kind in ("exact", "one_cluster"))
    assert one.lower_bounds_.tolist() == exact.lower_bounds_.tolist()
    assert all(np.array_equal(one.tables_[node], exact.tables_[node]) for node in problem.network.cards)
    assert one.row_gap_ == 0.0


@NUMBERS
def test_rows_and_threads_change_nothing(kind, number):
    """Rows in another order, repeated rather than weighted, on two threads."""
    problem = problem_of(number)
    network, data, _ = problem
    times = np.asarray(data.weights, dtype=int) if weighted(problem) else np.ones(len(data.cells), dtype=int)
    repeated = np.random.default_rng(number).permutation(np.repeat(data.cells, times, axis=0))
    again = problem._replace(data=Data(data.columns, repeated))
    tables = tables_of(problem, number)
    first, second = fit(problem, kind, init=tables), fit(again, kind, init=tables, n_jobs=2)
    assert second.lower_bound_ == approx(first.lower_bound_, abs=1e-7)
    for node, table in published(network, first.tables_).items():
        assert published(network, second.tables_)[node] == approx(table, abs=1e-4)


@NUMBERS
def test_the_labels_of_states_change_nothing(kind, number):
    problem = problem_of(number)
    network, data, prior = problem
    rng = np.random.default_rng(number)
    orders = {node: rng.permutation(card) for node, card in network.cards.items()}

    def renamed(of):
        return {n: t[np.ix_(*(orders[m] for m in (*network.parents[n], n)))] for n, t in of.items()}

    cells = [np.append(np.argsort(orders[c]), MISSING)[data.cells[:, j]] for j, c in enumerate(data.columns)]
    other = problem._replace(data=Data(data.columns, np.stack(cells, 1), data.weights), prior=renamed(prior))
    tables = tables_of(problem, number)
    first, second = fit(problem, kind, init=tables), fit(other, kind, init=renamed(tables))
    assert second.lower_bound_ == approx(first.lower_bound_, abs=1e-7)


@NUMBERS
def test_clusters_come_in_any_order(number):
    problem = problem_of(number)
    latents = latents_of(problem)
    tables = tables_of(problem, number)
    ways = ([latents[::2], latents[1::2]], [latents[1::2][::-1], latents[::2][::-1]])
    first, second = (fit(problem, "exact", inference=clusters, init=tables) for clusters in ways)
    assert second.lower_bounds_.tolist() == first.lower_bounds_.tolist()


@NUMBERS
def test_counts_of_each_family_sum_to_the_weight_of_its_rows(kind, number):
    """Rows that have it: a node without observed descendants is in none."""
    problem = problem_of(number)
    model = fit(problem, kind, n_init=1)
    for node in problem.network.cards:
        weight = sum(w for row, w in problem.data.rows() if node in problem.network.ancestral(row))
        assert float(np.sum(model.counts_[node])) == approx(weight, rel=1e-9, abs=1e-9)


@NUMBERS
@pytest.mark.parametrize("method", ["ml", "map"])
def test_points_have_bounds_where_cells_become_impossible(kind, number, method):
    """Few rows rule much out under maximum likelihood; no message may be NaN, and no step lower the bound."""
    problem = problem_of(number)
    model = fit(problem, kind, n_init=2, method=method)
    name = {"ml": "log_likelihood", "map": "log_posterior"}[method]
    bound = getattr(model, f"{name}_bound_" if hasattr(model, f"{name}_bound_") else f"{name}_")
    assert np.isfinite(bound)
    assert all(np.isfinite(table.values).all() for table in model.tables_.values())
    assert np.allclose([table.values.sum(axis=-1).min() for table in model.tables_.values()], 1.0)
    if method == "ml":
        log_tables = literal.logs(published(problem.network, model.tables_))
        assert bound <= literal.log_likelihood(problem.network, log_tables, problem.data) + 1e-6
