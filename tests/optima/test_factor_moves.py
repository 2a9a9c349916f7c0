"""How many factors: what births and deletions start from, and the numbers that moves judged by the bound lead to."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.model_selection import ParameterGrid

from skvbem import VBHMM, StructureSearchCV, VBMixture, blocks_of
from skvbem.emissions import FactorGaussian
from skvbem.emissions.factor.analyzer import FactorAnalyzer
from skvbem.families import RegressionPoint
from skvbem.models.mixture.capabilities import capabilities_of
from skvbem.models.mixture.model import Mixture, MixtureAscent
from skvbem.models.mixture.weights import FiniteWeights
from skvbem.optima.factor_statistics import (
    NewFactor,
    least_relevant,
    new_factors,
    numbers_of,
    with_factor,
    with_factors_kept,
    with_numbers,
    with_principal_factors,
)
from skvbem.vbem.driver import run
from skvbem.vbem.posteriors import VB

approx = pytest.approx
AUTO = FactorGaussian("auto")
#: Starts that are run to their ends, without moves between them.
SIMPLE = {"init": "k-means++", "n_init": 2, "random_state": 0}


def standardized(X):
    """Columns of mean 0 and deviation 1."""
    return (X - X.mean(axis=0)) / X.std(axis=0)


def two_kinds(rng, n=120, d=5):
    """Rows that two factors explain, and rows of as wide columns that none does."""
    loadings = np.array([[1.0, 1, 1, 0, 0], [0, 0, 1, -1, 1]]).T
    one = rng.normal(size=(n, 2)) @ loadings.T + 0.3 * rng.normal(size=(n, d))
    return np.concatenate([one, 6.0 + rng.normal(size=(n, d))])


def ascent_of(X, numbers, relevance=(1.0, 1.0)):
    """Full steps of a mixture of factor analyzers of so many factors each."""
    emission = with_numbers(FactorAnalyzer.for_data(X, n_factors=None), (numbers,))
    n = len(numbers)
    model = Mixture(emission, FiniteWeights(np.ones(n)), emission.default_prior(n, relevance_prior=relevance))
    return MixtureAscent(model, model.compile(emission.prepare(X)), VB)


def settled(ascent, X, n_steps=20):
    """Statistics after some steps from halves of the rows."""
    n = ascent.model.n_components
    shares = np.eye(n)[np.arange(len(X)) * n // len(X)]
    statistics = ascent.model.statistics_of(shares, ascent.data)[:, None]
    ascent.advance(statistics, n_steps)
    return statistics[:, 0]


# What moves start from ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("relevance", [(1.0, 1.0), 1.0])
def test_factors_in_another_order_are_the_same_fit(gaps, relevance, rng):
    X = two_kinds(rng)
    if gaps:
        X[rng.random(X.shape) < 0.1] = np.nan
    ascent = ascent_of(X, (2, 3), relevance)
    statistics, first = settled(ascent, X), ascent.model.first_emission_cell
    orders = [(1, 0), (2, 0, 1)]
    of_emission = with_factors_kept(
        statistics[first:], ascent.model.emission, ascent.model.emission, ((2, 3),), lambda g, k: orders[k]
    )
    turned = np.concatenate([statistics[:first], of_emission])
    assert not np.allclose(turned, statistics)
    bounds = [ascent.advance(each[:, None].copy(), 1)[0, 0] for each in (statistics, turned)]
    assert bounds[1] == approx(bounds[0], abs=1e-8)


def test_statistics_of_factors_that_stay_are_kept(rng):
    """Without the second factor of the second component the layout is another one, and back again."""
    X = two_kinds(rng)
    ascent, fewer = ascent_of(X, (2, 2)), ascent_of(X, (2, 1))
    statistics, first = settled(ascent, X), ascent.model.first_emission_cell
    kept = [(0, 1), (0,)]
    less = with_factors_kept(
        statistics[first:], ascent.model.emission, fewer.model.emission, ((2, 1),), lambda g, k: kept[k]
    )
    packed, sums, *of_noises = ascent.model.emission.layout(2).split(statistics[first:])
    less_packed, less_sums, *less_of_noises = fewer.model.emission.layout(2).split(less)
    assert np.array_equal(less_sums[:5], sums[:5])
    assert np.array_equal(less_sums[5:, :2], sums[5:, :2])
    assert not less_sums[5:, 2].any()
    assert np.array_equal(less_packed[1], np.where([1, 1, 0, 1, 0, 0], packed[1], 0.0))
    assert all(map(np.array_equal, less_of_noises, of_noises))
    result = run(fewer, np.concatenate([statistics[:first], less])[:, None], tol=1e-3, max_iter=500)
    assert np.isfinite(result.objective).all()


@pytest.mark.parametrize("gaps", [False, True])
def test_a_new_factor_adds_the_squares_of_its_loadings_to_a_covariance(gaps, rng):
    X = two_kinds(rng)[:6]
    if gaps:
        X[[0, 1, 1], [0, 2, 4]] = np.nan
    one, other = (ascent_of(X, numbers).model.emission for numbers in ((1, 1), (1, 2)))
    coefficients, precision = rng.normal(size=(10, 2)), rng.gamma(3.0, size=10)
    natural = one.layout(2).natural(RegressionPoint(coefficients, precision))
    loadings = rng.normal(size=5)
    grown = with_factor(natural, one, other, ((1, 2),), NewFactor(0, 1, loadings, 0.0, np.eye(5)))
    table = other.prepare(X)
    logs = other.step(grown, table).log_likelihood(table)
    w = coefficients[:, 1].reshape(2, 5)
    for k, more in enumerate((np.zeros((5, 5)), np.outer(loadings, loadings))):
        covariance = np.outer(w[k], w[k]) + np.diag(1 / precision[5 * k : 5 * k + 5]) + more
        for row, log in zip(X, logs[:, k]):
            seen = ~np.isnan(row)
            units = other.unit[seen]
            mean = other.origin[seen] + units * coefficients[5 * k : 5 * k + 5, 0][seen]
            scaled = covariance[np.ix_(seen, seen)] * np.outer(units, units)
            assert log == approx(multivariate_normal(mean, scaled).logpdf(row[seen]), abs=1e-10)


def test_principal_factors_take_the_place_of_those_of_one_component(rng):
    """Of the correlations of its rows; its mean stays, and so do the parameters of all others."""
    X = two_kinds(rng)
    one, other = (ascent_of(X, numbers).model.emission for numbers in ((1, 1), (1, 2)))
    coefficients, precision = rng.normal(size=(10, 2)), rng.gamma(3.0, size=10)
    natural = one.layout(2).natural(RegressionPoint(coefficients, precision))
    root = rng.normal(size=(5, 5))
    S, table = root @ root.T, other.prepare(X[:4])
    factor = NewFactor(0, 1, np.ones(5), 0.0, S)
    logs = other.step(with_principal_factors(natural, one, other, ((1, 2),), factor), table).log_likelihood(table)
    assert logs[:, 0] == approx(one.step(natural, table).log_likelihood(table)[:, 0], abs=1e-10)
    deviation = np.sqrt(np.diag(S))
    values, axes = np.linalg.eigh(S / np.outer(deviation, deviation))
    loadings = axes[:, -2:] * np.sqrt(values[-2:] - values[:-2].mean())
    covariance = loadings @ loadings.T + np.diag(np.maximum(1 - (loadings**2).sum(axis=1), 0.05))
    scale = deviation * other.unit
    law = multivariate_normal(other.origin + other.unit * coefficients[5:, 0], covariance * np.outer(scale, scale))
    assert logs[:, 1] == approx(law.logpdf(table.values), abs=1e-8)


def test_a_new_factor_points_where_columns_vary_together_most(rng):
    """Of the covariance that a component does not explain, in units of its noise, the leading axis."""
    X = two_kinds(rng)
    ascent = ascent_of(X, (0, 0))
    statistics = settled(ascent, X)
    natural = (ascent.model.prior + statistics).expected_natural()
    table, shares = ascent.data.table, np.repeat(np.eye(2), 120, axis=1)
    (found, *others) = new_factors(ascent.model.emission, natural[2:], [table], [shares])
    assert (found.group, found.component) == (0, 0)
    assert all(other.gain < found.gain / 10 for other in others)
    _, sums, _, square = ascent.model.emission.layout(2).split(natural[2:])
    precision = -2 * square[:5]
    Y = table.measured[:, :120] - (sums[:5, 0] / precision)[:, None]
    root = np.sqrt(precision)
    value, axes = np.linalg.eigh(root[:, None] * (Y @ Y.T / 120) * root - np.eye(5))
    axis = axes[:, -1] * np.sqrt(value[-1]) / root
    assert np.abs(found.loadings) == approx(np.abs(axis), rel=1e-9)
    assert found.loadings @ axis == approx(np.sign(found.loadings @ axis) * (axis @ axis), rel=1e-9)
    assert found.gain == approx(60 * (value[-1] - np.log1p(value[-1])), rel=1e-9)


def test_the_least_relevant_factor_has_the_least_loadings(rng):
    X = rng.normal(size=(200, 2)) @ np.array([[1.0, 1, 1, 1], [0.6, -0.6, 0.6, -0.6]]) + 0.5 * rng.normal(size=(200, 4))
    ascent = ascent_of(X, (2,))
    statistics = settled(ascent, X, 60)
    posterior = ascent.model.prior + statistics
    ((_, _, factor),) = least_relevant(ascent.model.emission, posterior.expected_natural()[1:], 1)
    loadings = posterior.blocks[1].mean[:, 1:]
    assert factor == np.argmin((loadings**2).sum(axis=0))


# What moves lead to ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("load", "noise", "n_factors", "bound"),
    [
        (load_iris, "diag", 2, -586.703),
        (load_wine, "diag", 4, -2863.279),
        (load_wine, "spherical", 5, -2918.774),
    ],
)
def test_the_best_of_a_table_of_bounds_is_found(load, noise, n_factors, bound):
    """Bounds of another program, best of two starts for each number."""
    X = standardized(load().data)
    known = {"noise_prior": (1.0, 0.5), "mean_precision_prior": 1.0}
    model = VBMixture(emission=FactorGaussian("auto", noise=noise, **known), random_state=0).fit(X)
    assert model.n_factors_.tolist() == [n_factors]
    assert model.lower_bound_ > bound - 0.01
    assert [move.n_factors for move in model.moves_] == [((q,),) for q in range(n_factors + 1)]
    assert [move.kind for move in model.moves_] == ["start", *["birth"] * n_factors]


def test_factors_that_left_too_much_to_noises_give_way_to_principal_components():
    """Five factors of seven columns, which ended at four: 6 nats less."""
    rng, parts = np.random.default_rng([41, 128, 0]), []
    for q in (5, 1):
        loadings, mean = rng.normal(size=(7, q)), 10 * rng.normal(size=7)
        parts.append(mean + rng.normal(size=(128, q)) @ loadings.T + 0.3 * rng.normal(size=(128, 7)))
    model = VBMixture(2, emission=AUTO, random_state=0).fit(np.concatenate(parts))
    assert sorted(model.n_factors_) == [1, 5]
    assert model.lower_bound_ > -2274.3


def test_three_factors_are_found(rng):
    """Beside them others only cost: eight, of which five are extinct, about 114 nats."""
    loadings = np.linalg.qr(rng.normal(size=(10, 3)))[0] * [3, 2, 1.5]
    X = standardized(rng.normal(size=(300, 3)) @ loadings.T + np.sqrt(0.5) * rng.normal(size=(300, 10)))
    auto = VBMixture(emission=AUTO, random_state=0).fit(X)
    assert auto.n_factors_.tolist() == [3]
    eight = VBMixture(emission=FactorGaussian(8), random_state=0).fit(X)
    assert auto.lower_bound_ - eight.lower_bound_ == approx(114, abs=5)


def test_columns_that_do_not_vary_together_have_no_factor(rng):
    X = rng.normal(size=(200, 6))
    auto = VBMixture(emission=AUTO, random_state=0).fit(X)
    assert auto.n_factors_.tolist() == [0]
    assert auto.lower_bound_ == approx(VBMixture(emission=FactorGaussian(0), random_state=0).fit(X).lower_bound_)
    assert auto.parameters_["factor"]["loadings"].shape == (1, 6, 0)


@pytest.mark.parametrize(
    ("n_components", "gaps"), [(1, True), (2, False), pytest.param(3, False, marks=pytest.mark.slow)]
)
def test_no_number_for_all_components_is_better(n_components, gaps, rng):
    X = load_iris().data.copy()
    if gaps:
        X[rng.random(X.shape) < 0.1] = np.nan
    fit = partial(VBMixture, n_components, n_init=2, random_state=0)
    auto = fit(emission=AUTO).fit(X)
    grid = [fit(emission=FactorGaussian(q)).fit(X).lower_bound_ for q in range(4)]
    assert auto.lower_bound_ > max(grid) - 1e-3


def test_each_component_has_its_own_number(rng):
    X = two_kinds(rng, n=60)
    auto = VBMixture(2, emission=AUTO, **SIMPLE).fit(X)
    assert sorted(auto.n_factors_) == [0, 2]
    assert {"delete"} <= {move.kind for move in auto.moves_}
    # neither more nor less in any of them
    fixed = np.array(numbers_of(auto._fitted_.emission, 2)[0])
    assert fixed.tolist() == auto.n_factors_.tolist()
    without = int(np.argmin(auto.n_factors_))
    parameters = auto.parameters_["factor"]
    assert not parameters["loadings"][without].any()
    assert parameters["covariances"][without] == approx(np.diag(parameters["noise_variances"][without]))
    drawn, of = auto.sample(20_000, random_state=0)
    own = drawn[of == without]
    assert np.abs(np.corrcoef(own.T) - np.eye(5)).max() < 0.1
    assert own.var(axis=0) == approx(parameters["noise_variances"][without], rel=0.2)
    assert auto.n_free_parameters_ == 1 + 2 * (5 + 5) + 2 * 5 - 1  # turns of two factors are none


def test_weights_are_repeats_and_the_order_of_rows_is_none(rng):
    X = two_kinds(rng, n=30)
    often = rng.integers(1, 4, size=60)
    fit = VBMixture(2, emission=AUTO, **SIMPLE).fit
    weighted = fit(X, sample_weight=often.astype(float))
    bound, numbers = weighted.lower_bound_, sorted(weighted.n_factors_)
    rows = np.repeat(X, often, axis=0)
    repeated = fit(rows[rng.permutation(len(rows))])
    assert sorted(repeated.n_factors_) == numbers  # of starts that end in one bound rounding takes the one or the other
    assert repeated.lower_bound_ == approx(bound, abs=1e-4)


def test_numbers_in_groups_beside_categories_and_counts(rng):
    X = two_kinds(rng, n=60)
    table = pd.DataFrame(np.column_stack([X, 4.0 + rng.normal(size=(120, 3))]), columns=list("abcdefgh"))
    table["kind"] = np.where(rng.random(120) < 0.9, np.repeat(["u", "v"], 60), "v")
    table["count"] = rng.poisson(np.repeat([2, 9], 60))
    table.loc[rng.choice(120, 10, replace=False), "b"] = np.nan
    emission = [
        ("one", AUTO, list("abcde")),
        ("kind", "categorical", "kind"),
        ("two", FactorGaussian("auto", noise="spherical", relevance="fixed"), list("fgh")),
        ("count", "poisson", "count"),
    ]
    model = VBMixture(2, emission=emission, **SIMPLE).fit(table)
    assert sorted(model.n_factors_["one"]) == [0, 2]
    assert model.n_factors_["two"].tolist() == [0, 0]
    assert model.moves_[-1].n_factors == (tuple(model.n_factors_["one"]), (0, 0))
    assert model.parameters_["one"]["loadings"].shape == (2, 5, 2)


def test_states_have_their_own_numbers(rng):
    X = two_kinds(rng, n=60)
    order = np.concatenate([np.arange(20) + 20 * k for k in (0, 3, 1, 4, 2, 5)])
    X[rng.choice(120, 6, replace=False), 1] = np.nan
    model = VBHMM(2, emission=AUTO, **SIMPLE).fit(X[order])
    assert sorted(model.n_factors_) == [0, 2]
    grid = [VBHMM(2, emission=FactorGaussian(q), **SIMPLE).fit(X[order]).lower_bound_ for q in (1, 2)]
    assert model.lower_bound_ > max(grid)


def test_numbers_of_components_and_of_factors_together(rng):
    X = two_kinds(rng, n=60)
    both = VBMixture("auto", emission=AUTO, **SIMPLE).fit(X)
    assert both.n_components_ == 2
    assert sorted(both.n_factors_) == [0, 2]
    kinds = [move.kind for move in both.moves_]
    assert kinds[0] == "start"
    assert any("birth" in kind for kind in kinds)
    assert any("split" in kind for kind in kinds)
    grid = [
        VBMixture(k, emission=FactorGaussian(q), **SIMPLE).fit(X).lower_bound_
        for k, q in [(1, 2), (2, 0), (2, 1), (2, 2), (3, 0)]
    ]
    assert both.lower_bound_ > max(grid)
    with_sticks = VBMixture("auto", emission=AUTO, weight_concentration_prior_type="dirichlet_process", **SIMPLE).fit(X)
    assert sorted(with_sticks.n_factors_) == [0, 2]


def test_a_grid_over_numbers_is_searched(rng):
    X = pd.DataFrame(two_kinds(rng, n=30), columns=list("abcde"))
    nested = [("one", FactorGaussian(), list("abc")), ("two", FactorGaussian(), list("de"))]
    searches = [
        (VBMixture(2, emission=FactorGaussian(), init="k-means++", n_init=2), {"emission__n_factors": [1, "auto"]}),
        (VBMixture(2, emission=nested, init="k-means++", n_init=2), {"emission__one__n_factors": [0, 1]}),
        (
            VBMixture(emission=AUTO, init="k-means++", n_init=2),
            {"n_components": [1, 2], "emission__n_factors": [0, "auto"]},
        ),
    ]
    for estimator, grid in searches:
        search = StructureSearchCV(estimator.set_params(random_state=0), grid, scoring="lower_bound").fit(X)
        assert search.best_estimator_.lower_bound_ == approx(search.best_score_)
        each = [clone(estimator).set_params(**point).fit(X).lower_bound_ for point in ParameterGrid(grid)]
        assert search.best_score_ == approx(max(each), abs=1e-6)


# Relabelings ----------------------------------------------------------------------------------------------------------


def test_components_of_other_numbers_of_factors_do_not_change_places(rng):
    """Orders within components of as many factors; places and signs of the factors that each has."""
    X = two_kinds(rng)
    for numbers, n in [((2, 2), 2 * 8 * 8), ((2, 1), 8 * 2), ((0, 2), 8), ((1, 2, 1), 2 * 2 * 8 * 2), ((0, 0), 2)]:
        model = ascent_of(X, numbers).model
        relabelings = capabilities_of(model).relabelings
        assert relabelings.relabelings(()).n == n
        assert relabelings.log_n_relabelings(()) == approx(np.log(n))


def test_what_relabelings_leave_as_it_is(rng):
    """The bound, under every order that is listed, and under changes of factors; not under others."""
    X = two_kinds(rng)
    ascent = ascent_of(X, (1, 2, 1))
    statistics = settled(ascent, X)
    relabelings = capabilities_of(ascent.model).relabelings.relabelings(())
    bound = ascent.advance(statistics[:, None].copy(), 1)[0, 0]
    assert [order.tolist() for order in relabelings.orders] == [[0, 1, 2], [2, 1, 0]]
    for cells in relabelings.cells_in_order:
        assert ascent.advance(statistics[cells][:, None], 1)[0, 0] == approx(bound, abs=1e-8)
    for own, changes in zip(relabelings.cells, relabelings.changes):
        for changed in _every_change(changes, statistics[own][:, None])[..., 0]:
            other = statistics.copy()
            other[own] = changed
            assert ascent.advance(other[:, None], 1)[0, 0] == approx(bound, abs=1e-8)
    # sums and choices, against all of them one by one
    few, points = rng.normal(size=(2, len(statistics))), rng.normal(size=(len(statistics), 3))
    every = [points[cells] for cells in relabelings.cells_in_order]
    for own, changes in zip(relabelings.cells, relabelings.changes):
        every = [_replaced(each, own, changed) for each in every for changed in _every_change(changes, each[own])]
    products = np.array([few @ each for each in every])
    assert len(every) == relabelings.n
    assert relabelings.log_sums(few, points) == approx(np.logaddexp.reduce(products, axis=0))
    nearest = relabelings.nearest(few[0], points)
    assert few[0] @ nearest == approx(products[:, 0].max(axis=0))


def _every_change(changes, points):
    return np.array([changes.changed(points, np.full(points.shape[1], k)) for k in range(changes.n)])


def _replaced(points, own, changed):
    other = points.copy()
    other[own] = changed
    return other


# Refusals -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [VBMixture, VBHMM])
@pytest.mark.parametrize("method", ["map", "ml"])
def test_other_methods_have_no_bound_to_choose_by(estimator, method, rng):
    with pytest.raises(ValueError, match=f"n_factors='auto' of FactorGaussian needs method='vb'.*{method!r}"):
        estimator(emission=AUTO, method=method).fit(rng.normal(size=(20, 3)))
    nested = [("one", AUTO, [0, 1]), ("two", "gaussian", [2])]
    with pytest.raises(ValueError, match="n_factors='auto' of FactorGaussian needs method='vb'"):
        estimator(emission=nested, method=method).fit(rng.normal(size=(20, 3)))


def test_blocks_are_refused_and_batches_go_on(rng):
    X = two_kinds(rng)
    with pytest.raises(ValueError, match="n_factors='auto' of FactorGaussian needs rows in memory"):
        VBMixture(2, emission=AUTO).fit(blocks_of([X[:50], X[50:]]))
    rng.shuffle(X)
    model = VBMixture(2, emission=AUTO, **SIMPLE).partial_fit(X[:150])
    assert sorted(model.n_factors_) == [0, 2]
    numbers = model.n_factors_.tolist()
    model.partial_fit(X[150:])
    assert model.n_factors_.tolist() == numbers


def test_no_other_word_is_a_number(rng):
    with pytest.raises(ValueError, match="'n_factors' parameter of FactorGaussian"):
        VBMixture(emission=FactorGaussian("many")).fit(rng.normal(size=(20, 3)))
