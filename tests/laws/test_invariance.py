"""What changes nothing: names, orders, labels; weights for repeats; threads; how many starts there are besides."""

import math
import warnings

import numpy as np
import pytest
from bridge import estimator_of, fitted, frame_of, published, quietly
from laws.problems import larger
from reference import facts
from reference.discrete_network import MISSING, Data, Network, Problem, each, exact_evidence, uniform_prior
from reference.random_networks import random_tables
from sklearn.base import clone

from skvbem.errors import UnknownCategoryWarning
from skvbem.models.network import assembly
from skvbem.models.network import model as network_model

approx = pytest.approx
OBJECTIVES = {"vb": "lower_bound_", "map": "log_posterior_", "ml": "log_likelihood_"}
METHODS = pytest.mark.parametrize("method", OBJECTIVES)
NUMBERS = pytest.mark.parametrize("number", range(12))


def numbered(number, n_rows=40, **options):
    """A problem, tables to start from, and random numbers for what is to change."""
    rng = np.random.default_rng([20030603, number])
    problem = larger(number, n_rows, **options)
    return problem, random_tables(rng, problem.network), rng


def fit_from(problem, tables, method="vb", **params):
    return fitted(problem, init=tables, method=method, tol=1e-6, **params)


def check_same(problem, first, second, method, of_second=lambda tables: tables):
    """Objectives and tables of two fits; `of_second` turns the second's tables into the first's names and orders."""
    name = OBJECTIVES[method]
    assert getattr(second, name) == approx(getattr(first, name), rel=1e-9)
    ours = published(problem.network, first.tables_)
    theirs = of_second(second.tables_)
    for node, table in ours.items():
        assert theirs[node] == approx(table, abs=1e-6)


# --- orders and names -------------------------------------------------------------------------------------------------


@METHODS
@NUMBERS
def test_the_order_of_rows(number, method):
    problem, tables, rng = numbered(number, max_weight=3)
    order = rng.permutation(len(problem.data.cells))
    data = Data(problem.data.columns, problem.data.cells[order], problem.data.weights[order])
    shuffled = problem._replace(data=data)
    first, second = (fit_from(p, tables, method) for p in (problem, shuffled))
    check_same(problem, first, second, method, lambda t: published(problem.network, t))


@NUMBERS
def test_the_order_of_rows_with_random_starts(number):
    """Starts do not look at rows: every one of them ends where it did."""
    problem, _, rng = numbered(number)
    order = rng.permutation(len(problem.data.cells))
    shuffled = problem._replace(data=Data(problem.data.columns, problem.data.cells[order]))
    first, second = (fitted(p, n_init=4, random_state=0) for p in (problem, shuffled))
    assert second.restarts_.bounds == approx(first.restarts_.bounds, rel=1e-9)


@METHODS
@NUMBERS
def test_the_order_of_columns_and_nodes(number, method):
    problem, tables, rng = numbered(number)
    network, data, prior = problem
    order = rng.permutation(len(data.columns))
    nodes = rng.permutation([*network.cards]).tolist()
    other = Network({node: network.cards[node] for node in nodes}, {node: network.parents[node] for node in nodes})
    moved = Problem(other, Data(tuple(data.columns[k] for k in order), data.cells[:, order]), prior)
    first, second = fit_from(problem, tables, method), fit_from(moved, tables, method)
    check_same(problem, first, second, method, lambda t: published(network, t))


@METHODS
@NUMBERS
def test_the_order_of_parents(number, method):
    problem, tables, _ = numbered(number)
    network, data, prior = problem
    other = Network(network.cards, {node: parents[::-1] for node, parents in network.parents.items()})

    def turned(of):
        return {node: table.transpose([*range(table.ndim - 1)[::-1], table.ndim - 1]) for node, table in of.items()}

    first = fit_from(problem, tables, method)
    second = fit_from(Problem(other, data, turned(prior)), turned(tables), method)
    check_same(problem, first, second, method, lambda t: turned(published(other, t)))


@METHODS
@NUMBERS
def test_the_labels_of_states(number, method):
    """Of every node at once, hidden and observed."""
    problem, tables, rng = numbered(number)
    network, data, prior = problem
    orders = {node: rng.permutation(card) for node, card in network.cards.items()}

    def renamed(of, orders):
        return {
            node: table[np.ix_(*(orders[member] for member in (*network.parents[node], node)))]
            for node, table in of.items()
        }

    inverse = {node: np.argsort(order) for node, order in orders.items()}
    cells = np.stack(
        [np.append(inverse[column], MISSING)[data.cells[:, j]] for j, column in enumerate(data.columns)], 1
    )
    relabeled = Problem(network, Data(data.columns, cells), renamed(prior, orders))
    # plain steps by maximum likelihood: leaps make much of rounding where a likelihood is flat, and end elsewhere on it
    first = fit_from(problem, tables, method, acceleration=method != "ml")
    second = fit_from(relabeled, renamed(tables, orders), method, acceleration=method != "ml")
    check_same(problem, first, second, method, lambda t: renamed(published(network, t), inverse))


@METHODS
@NUMBERS
def test_the_names_of_nodes(number, method):
    """Exchangeable latents among them; names sort otherwise than before."""
    problem, tables, rng = numbered(number)
    network, data, prior = problem
    name = dict(zip(network.cards, rng.permutation([f"n{k}" for k in range(len(network.cards))]).tolist()))
    other = Network(
        {name[node]: card for node, card in network.cards.items()},
        {name[node]: tuple(name[p] for p in parents) for node, parents in network.parents.items()},
    )

    def named(of):
        return {name[node]: table for node, table in of.items()}

    renamed = Problem(other, Data(tuple(name[c] for c in data.columns), data.cells), named(prior))
    first, second = fit_from(problem, tables, method), fit_from(renamed, named(tables), method)
    check_same(problem, first, second, method, lambda t: {n: published(other, t)[name[n]] for n in network.cards})


# --- weights and repeats ----------------------------------------------------------------------------------------------


@METHODS
@NUMBERS
def test_weights_are_repeats(number, method):
    problem, tables, rng = numbered(number, max_weight=4)
    network, data, prior = problem
    repeated = rng.permutation(np.repeat(data.cells, data.weights, axis=0))
    first = fit_from(problem, tables, method)
    second = fit_from(Problem(network, Data(data.columns, repeated), prior), tables, method)
    check_same(problem, first, second, method, lambda t: published(network, t))
    assert first.n_samples_ == second.n_samples_ == data.weights.sum()


@METHODS
@NUMBERS
def test_a_row_of_weight_zero_is_absent(number, method):
    problem, tables, rng = numbered(number)
    network, data, prior = problem
    weights = rng.integers(0, 3, size=len(data.cells)).astype(float)
    weights[0] = number % 2
    kept = weights > 0
    without = fitted(
        Problem(network, Data(data.columns, data.cells[kept], weights[kept]), prior), init=tables, method=method
    )
    estimator = estimator_of(network, data, prior, init=tables, method=method)
    quietly(estimator.fit, frame_of(data), sample_weight=weights)
    assert getattr(estimator, OBJECTIVES[method]) == getattr(without, OBJECTIVES[method])
    assert estimator.n_samples_ == weights.sum()


def test_what_only_rows_of_weight_zero_contain_is_not_learned():
    """No category, no node state comes from a row that is as if absent."""
    frame = frame_of(facts.SIX_ROWS)
    frame.loc[1, "y0"] = 7.0
    model = clone(estimator_of(*_two_classes())).set_params(categories="auto", random_state=0)
    quietly(model.fit, frame, sample_weight=[1, 0, 2, 1])
    assert model.categories_[0].tolist() == [0, 1]


def _two_classes():
    network = facts.latent_class(2, (2, 2))
    return network, facts.SIX_ROWS, uniform_prior(network)


@NUMBERS
def test_fractional_weights_scale_the_likelihood(number):
    """Every row counts 0.37 times: the maximum of the likelihood stays where it is, its logarithm shrinks so."""
    problem, tables, _ = numbered(number)
    network, data, prior = problem
    scaled = Data(data.columns, data.cells, np.full(len(data.cells), 0.37))
    first = fit_from(problem, tables, "ml")
    second = fitted(Problem(network, scaled, prior), init=tables, method="ml", tol=0.37e-6)
    assert second.log_likelihood_ == approx(0.37 * first.log_likelihood_, rel=1e-9)


@METHODS
def test_wholly_missing_rows_change_nothing(method):
    for number in range(10):
        problem, tables, rng = numbered(number)
        network, data, prior = problem
        nothing = np.full((3, len(data.columns)), MISSING)
        more = Data(data.columns, rng.permutation(np.concatenate([data.cells, nothing])))
        first, second = fit_from(problem, tables, method), fit_from(Problem(network, more, prior), tables, method)
        check_same(problem, first, second, method, lambda t, network=network: published(network, t))
        assert second.n_samples_ == first.n_samples_
        assert second.n_rows_all_missing_ == first.n_rows_all_missing_ + 3


@METHODS
def test_a_column_nobody_answered_is_a_latent(method):
    """Declared levels, no cell: hidden, and the fit that of the same network with the node declared latent."""
    for number in range(10):
        problem, tables, _ = numbered(number)
        network, data, prior = problem
        latent = next(node for node in network.cards if node not in data.columns)
        cells = np.concatenate([data.cells, np.full((len(data.cells), 1), MISSING)], axis=1)
        as_column = Problem(network, Data((*data.columns, latent), cells), prior)
        first, second = fit_from(problem, tables, method), fit_from(as_column, tables, method)
        check_same(problem, first, second, method, lambda t, network=network: published(network, t))


@METHODS
def test_an_unseen_category_is_a_missing_cell(method):
    """Scores, classes and modes of a row do not depend on what the unknown value was."""
    problem, *_ = numbered(1)
    model = fitted(problem, random_state=0, method=method)
    rows = frame_of(Data(problem.data.columns, problem.data.cells[:12]))
    unknown, missing = rows.copy(), rows.copy()
    unknown.iloc[::2, 0], missing.iloc[::2, 0] = 77.0, np.nan
    assert not np.array_equal(model.score_samples(missing), model.score_samples(rows))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnknownCategoryWarning)
        assert np.array_equal(model.score_samples(unknown), model.score_samples(missing))
        assert np.array_equal(model.transform(unknown), model.transform(missing))
        assert np.array_equal(model.decode(unknown), model.decode(missing))


# --- determinism ------------------------------------------------------------------------------------------------------


@METHODS
def test_threads_change_no_bit(method, monkeypatch):
    """Blocks small enough, and work called large enough, for threads to share it."""
    monkeypatch.setattr(network_model, "_WORTH_THREADS", 0)
    monkeypatch.setattr(assembly, "_BLOCK_WORK", 64)
    for number in range(4):
        problem, _, _ = numbered(number, n_rows=400)
        one, two = (fitted(problem, n_init=3, random_state=0, n_jobs=n_jobs, method=method) for n_jobs in (1, 2))
        assert getattr(one, OBJECTIVES[method]) == getattr(two, OBJECTIVES[method])
        assert np.array_equal(one.lower_bounds_, two.lower_bounds_)
        assert np.array_equal(one.restarts_.bounds, two.restarts_.bounds)
        ours, theirs = (published(problem.network, m.tables_) for m in (one, two))
        assert all(np.array_equal(ours[node], theirs[node]) for node in ours)


@METHODS
def test_the_same_seed_gives_the_same_bits(method):
    problem, _, _ = numbered(0)
    first, second = (fitted(problem, n_init=5, random_state=7, method=method) for _ in range(2))
    other = fitted(problem, n_init=5, random_state=8, method=method)
    assert np.array_equal(first.restarts_.bounds, second.restarts_.bounds)
    assert not np.array_equal(first.restarts_.bounds, other.restarts_.bounds)


@METHODS
@NUMBERS
def test_the_first_starts_are_the_same_however_many_follow(number, method):
    """Also where many starts need several batches of lanes."""
    problem, _, _ = numbered(number)
    few, many = (fitted(problem, init="random", n_init=n, random_state=0, method=method) for n in (3, 25))
    assert np.array_equal(many.restarts_.bounds[:3], few.restarts_.bounds)
    assert np.array_equal(many.restarts_.n_iter[:3], few.restarts_.n_iter)


@METHODS
def test_the_best_start_is_kept(method):
    """Not the last: on starts that end in different places, the published fit is that of the highest objective."""
    moved = 0
    for number in range(12):
        problem, _, _ = numbered(number)
        model = fitted(problem, init="random", n_init=8, random_state=0, method=method)
        bounds = model.restarts_.bounds
        objective = getattr(model, OBJECTIVES[method])
        assert objective == bounds.max()
        assert model.n_iter_ == model.restarts_.n_iter[bounds.argmax()]
        assert model.lower_bounds_[-1] == objective
        moved += bounds[-1] < bounds.max()
    assert moved >= 6


def test_restarts_differ():
    problem, _, _ = numbered(0)
    model = fitted(problem, n_init=10, random_state=0)
    assert len(np.unique(model.restarts_.bounds)) == 10


# --- extremes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("concentration", [1e-320, 1e-100, 1e-6, 1e-3, 1e3, 1e8, 1e12])
@METHODS
def test_extreme_concentrations_give_finite_fits(concentration, method):
    for number in range(6):
        problem, *_ = numbered(number)
        prior = each(lambda a: np.full(a.shape, concentration), problem.prior)
        model = fitted(problem._replace(prior=prior), n_init=3, random_state=0, method=method)
        assert np.isfinite(getattr(model, OBJECTIVES[method]))
        assert np.all(np.isfinite(model.restarts_.bounds))
        for table in published(problem.network, model.tables_).values():
            assert np.all(np.isfinite(table))
            assert table.sum(-1) == approx(np.ones(table.shape[:-1]))


@pytest.mark.parametrize("concentration", [1e-320, 1e-6, 1e-3, 1e3, 1e12])
def test_bounds_under_extreme_concentrations_stay_below_the_exact_evidence(concentration):
    """The evidence in exact fractions of the very same doubles."""
    network = facts.latent_class(2, (2, 2))
    prior = uniform_prior(network, concentration)
    exact = exact_evidence(network, facts.SIX_ROWS, prior)
    log_evidence = _log(exact)
    model = fitted(Problem(network, facts.SIX_ROWS, prior), n_init=30, random_state=0)
    assert model.lower_bound_ <= log_evidence + 1e-9 * abs(log_evidence)
    complete = Network({"y0": 2, "y1": 2}, {"y0": (), "y1": ("y0",)})
    prior = uniform_prior(complete, concentration)
    model = fitted(Problem(complete, facts.SIX_ROWS, prior), random_state=0)
    assert model.lower_bound_ == approx(_log(exact_evidence(complete, facts.SIX_ROWS, prior)), rel=1e-10)


def _log(fraction):
    """ln of a fraction of integers too long for doubles."""
    return math.log(fraction.numerator) - math.log(fraction.denominator)
