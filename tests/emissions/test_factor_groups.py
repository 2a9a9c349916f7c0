"""Factor analyzers whose columns come in groups: an evidence by quadrature, laws, and the turn that suits them all."""

from dataclasses import replace

import numpy as np
import pytest
from emissions.test_factor import KNOWN, T1, A, AsGiven, C, E, ascent_of, fitted, table
from scipy.special import gammaln

from skvbem import VBMixture
from skvbem.emissions.factor.expansion import common_axes
from skvbem.emissions.factor.step import FactorStep
from skvbem.models.mixture.model import MixtureAscent
from skvbem.vbem.driver import run

approx = pytest.approx


def evidence_by_quadrature(Y, groups):
    """Of one factor and three rows, under the prior of 1: over the factors in spherical coordinates, then over nu."""
    at, by_radius = np.polynomial.legendre.leggauss(16)
    radius = 4.5 * (at + 1)
    by_radius = 4.5 * by_radius * radius**2 * np.exp(-(radius**2) / 2) / (2 * np.pi) ** 1.5
    height, by_height = np.polynomial.legendre.leggauss(8)
    turn, wide = 2 * np.pi * np.arange(16) / 16, np.sqrt(1 - height**2)
    directions = np.stack(
        [np.outer(wide, np.cos(turn)), np.outer(wide, np.sin(turn)), np.tile(height[:, None], 16)], axis=-1
    ).reshape(-1, 3)
    x = (radius[:, None, None] * directions).reshape(-1, 3)
    weight = np.outer(by_radius, np.repeat(by_height, 16) * 2 * np.pi / 16).ravel()
    log_nu = np.linspace(-30.0, 4.5, 60)
    nu = np.exp(log_nu)[:, None]
    by_nu = (log_nu[1] - log_nu[0]) * (nu * np.exp(-nu))[:, 0]
    sum_x, squares = x.sum(axis=1), nu + (x**2).sum(axis=1)
    determinant, n = (1 + 3) * squares - sum_x**2, len(Y)
    logs = []
    for y in Y.T:
        total, crossed = y.sum(), x @ y
        explained = (squares * total**2 - 2 * sum_x * total * crossed + (1 + 3) * crossed**2) / determinant
        shape, rate = 1 + n / 2, 0.5 + 0.5 * (y @ y - explained)
        of_column = 0.5 * np.log(nu / determinant) + gammaln(shape) - shape * np.log(rate) + np.log(0.5)
        logs.append(of_column - n / 2 * np.log(2 * np.pi))
    of_groups = [by_nu @ np.exp(sum(logs[j] for j in columns)) for columns in groups]
    return np.log(weight @ np.prod(of_groups, axis=0))


@pytest.mark.parametrize(("groups", "exact"), [(((0, 1),), -9.360337644), (((0,), (1,)), -9.401202138)])
def test_the_recommended_score_meets_the_evidence_by_quadrature(groups, exact):
    Y = table(T1)
    assert evidence_by_quadrature(Y, groups) == approx(exact, abs=2e-5)
    model = VBMixture(1, emission=AsGiven(1, groups=groups, **KNOWN), random_state=0).fit(Y)
    evidence = model.log_evidence(Y, kind="auto", random_state=0)
    assert evidence.value == approx(exact, abs=4 * evidence.standard_error)
    assert evidence.standard_error < 0.05
    assert not evidence.doubts
    assert model.lower_bound_ < exact


@pytest.mark.parametrize("spherical", [False, True])
@pytest.mark.parametrize("rows", [A, C])
def test_one_group_is_no_group(rows, spherical, rng):
    """To the last bit."""
    Y = table(rows)
    loadings = rng.normal(size=(Y.shape[1], 2))
    traces = []
    for group_of in ((), (0,) * Y.shape[1]):
        ascent = ascent_of(Y, 2, loadings=loadings, group_of=group_of, spherical=spherical)
        start = ascent.model.statistics_of(np.ones((len(Y), 1)), ascent.data)[:, None]
        traces.append(ascent.advance(start, 30))
    np.testing.assert_array_equal(*traces)


@pytest.mark.parametrize("group_of", [(0, 1, 2, 0), (0, 1, 2, 3)])
def test_columns_that_share_a_matrix_or_have_their_own_have_one_bound(group_of, rng):
    """Whether a column was known to have no gap decides how statistics are stored, and nothing else."""
    Y, traces = table(E), []
    first = ascent_of(Y, 2, n_components=2, loadings=rng.normal(size=(4, 2)), group_of=group_of)
    shares = rng.dirichlet(np.ones(2), len(Y))
    for has_gaps in ([False] * 4, [True] * 4, [True, False, False, True]):
        emission = replace(first.model.emission, has_gaps=np.array(has_gaps))
        prior = emission.default_prior(2)
        model = type(first.model)(emission, first.model.weights, prior)
        data = model.compile(emission.prepare(Y), None, np.ones(len(Y), dtype=bool))
        ascent = MixtureAscent(model, data, first.form)
        traces.append(ascent.advance(model.statistics_of(shares, data)[:, None], 20)[:, 0])
    assert traces[1] == approx(traces[0], abs=1e-8)
    assert traces[2] == approx(traces[0], abs=1e-8)


@pytest.mark.parametrize("rows", [C, E])
def test_no_order_of_columns_or_of_groups_makes_a_difference(rows, rng):
    Y, loadings, traces = table(rows), rng.normal(size=(4, 2)), []
    order = np.array([2, 0, 3, 1])
    for columns, group_of in ((np.arange(4), (0, 0, 1, 1)), (np.arange(4), (1, 1, 0, 0)), (order, (1, 0, 1, 0))):
        ascent = ascent_of(Y[:, columns], 2, loadings=loadings[columns], group_of=group_of)
        start = ascent.model.statistics_of(np.ones((len(Y), 1)), ascent.data)[:, None]
        traces.append(ascent.advance(start, 20)[:, 0])
    assert traces[1] == approx(traces[0], abs=1e-11)
    assert traces[2] == approx(traces[0], abs=1e-11)


def test_precisions_are_means_of_their_posteriors(rng):
    """Gamma distributions with half of a group's columns above the shape, and half of their squares above the rate."""
    Y, groups = table(E), ([0, 2, 3], [1])
    options = {"loadings": rng.normal(size=(4, 2)), "group_of": (0, 1, 0, 0)}
    ascent = ascent_of(Y, 2, relevance_prior=(1.5, 0.7), **options)
    at = ascent.model.statistics_of(np.ones((24, 1)), ascent.data)[:, None]
    ascent.advance(at, 5)
    prior = ascent.model.prior.blocks[1]
    posterior = prior + at[ascent.model.first_emission_cell :, 0]
    squares = (posterior.shape / posterior.rate)[:, None] * posterior.mean[:, 1:] ** 2
    squares += np.einsum("jkk->jk", posterior.covariance[posterior.precision_of][:, 1:, 1:])
    known = prior.given_hyperparameters(prior.hyperprior.expect(posterior.expected_natural())[0])
    expected = [(1.5 + len(of) / 2) / (0.7 + squares[of].sum(axis=0) / 2) for of in groups]
    np.testing.assert_allclose(ascent.model.emission.relevance(known)[0], expected, rtol=1e-10)


# The turn that suits all groups ---------------------------------------------------------------------------------------


def test_axes_that_matrices_have_in_common_are_found(rng):
    axes = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    values = rng.gamma(1.0, size=(3, 5))
    matrices = (axes * values[:, None]) @ axes.T
    turned = common_axes(matrices, np.array([2, 3, 4]))
    assert turned.T @ turned == approx(np.eye(5), abs=1e-12)
    for each in turned.T @ matrices @ turned:
        assert each == approx(np.diag(np.diagonal(each)), abs=1e-6)


def test_the_axes_of_one_matrix_are_its_eigenvectors(rng):
    root = rng.normal(size=(2, 1, 4, 4))
    matrix = root @ root.swapaxes(-1, -2)
    axes = common_axes(matrix, np.array([7]))
    values, theirs = np.linalg.eigh(matrix[:, 0])
    np.testing.assert_array_equal(axes, theirs[..., ::-1])
    assert (np.diff(values) > 0).all()


def test_common_axes_cost_least(rng):
    """Of matrices without common axes: small turns of any pair cost more."""
    root = rng.normal(size=(3, 4, 4))
    matrices, sizes = root @ root.swapaxes(-1, -2), np.array([3, 5, 2])

    def cost(axes):
        squares = np.diagonal(axes.T @ matrices @ axes, axis1=-2, axis2=-1)
        return ((sizes[:, None] + 2) * np.log(2 + squares)).sum()

    axes = common_axes(matrices, sizes)
    for _ in range(5):  # from the axes found, turned back
        axes = axes @ common_axes(axes.T @ matrices @ axes, sizes)
    for k in range(4):
        for s in range(k):
            for angle in (-1e-2, 1e-2):
                turn = np.eye(4)
                turn[[k, s], [k, s]] = np.cos(angle)
                turn[k, s], turn[s, k] = np.sin(angle), -np.sin(angle)
                assert cost(axes @ turn) > cost(axes)


def test_the_map_of_factors_changes_no_optimum(rng):
    """Without it, steps are more, and end where they end with it."""
    Y = rng.normal(size=(60, 2)) @ [[1.0, 1.2, 0.8, 0, 0, 0.1], [0, 0.1, 0, 1.0, -1.1, 0.9]]
    Y += 0.7 * rng.normal(size=Y.shape)
    results = {}
    for with_map in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            if not with_map:
                patch.setattr(FactorStep, "expansion", lambda step, total: None)
            results[with_map] = fitted(Y, 2, np.random.default_rng(1), 1e-7, 2, group_of=(0, 0, 0, 1, 1, 1))
    assert results[True].objective.max() == approx(results[False].objective.max(), abs=1e-4)
    assert results[True].n_iter.sum() < results[False].n_iter.sum()
    for trace in results[True].traces:
        assert np.all(np.diff(trace) >= -1e-8)


def test_components_with_other_numbers_of_factors_have_precisions_of_those_they_have(rng):
    Y = rng.normal(size=(30, 4))
    options = {"n_components": 2, "group_of": (0, 0, 1, 1), "loadings": np.full((4, 2), 0.5), "n_factors_of": (2, 1)}
    ascent = ascent_of(Y, 2, **options)
    start = ascent.model.statistics_of(rng.dirichlet(np.ones(2), 30), ascent.data)[:, None]
    result = run(ascent, start, tol=1e-6, max_iter=500)
    assert np.all(np.diff(result.traces[0]) >= -1e-9)
    prior = ascent.model.prior.blocks[1]
    statistics = prior.hyperprior.prior_statistics
    relevance = ascent.model.emission.relevance(prior.given_hyperparameters(statistics))
    np.testing.assert_array_equal(relevance, [[[1, 1], [1, 1]], [[1, np.nan], [1, np.nan]]])
