"""Draws of factors and coefficients along affine maps: densities of rows stay, and chains keep the posterior."""

from collections.abc import Callable

import numpy as np
import pytest

from skvbem import VBFactorAnalysis, VBMixture
from skvbem.emissions import FactorGaussian
from skvbem.emissions.factor.group_moves import FactorOrbit
from skvbem.fitting.evaluation import evaluation_of

_KNOWN_SHAPES = {
    "noise_prior": (4.0, 2.0),
    "relevance_prior": (4.0, 4.0),
    "mean_prior": [1.0, -0.5],
    "mean_precision_prior": 1.0,
}


def streams_of(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.integers(0, 2**64, size=(4, n), dtype=np.uint64)


@pytest.mark.parametrize("d", [2, 9])  # fewer and more columns than rows
def test_rows_have_the_density_that_they_had(d):
    rng, n_rows, n_regressors, n = np.random.default_rng(d), 5, 4, 3
    rows = rng.normal(size=(n, n_rows, n_regressors))
    rows[..., 0] = 1.0
    coefficients = rng.normal(size=(n, d, n_regressors))
    explained = rows @ coefficients.swapaxes(-1, -2)
    orbit = FactorOrbit(
        rows.swapaxes(-1, -2) @ rows,
        coefficients,
        rng.gamma(2.0, size=(n, d)),
        rng.gamma(2.0, size=(n, d, n_regressors)),
        np.zeros((n, d, n_regressors)),
    )
    moves = np.ones((n, n_regressors), dtype=bool)
    moves[0, 3] = False  # a component with two factors
    for i in range(1, n_regressors):
        orbit.shear(i, moves[:, [i]] & moves & (np.arange(n_regressors) != i), rng.normal(size=(n, n_regressors)))
        orbit.scale(i, moves[:, i], rng.normal(size=n), rng.random(n))
    moved = rows @ orbit.maps.swapaxes(-1, -2)
    assert moved @ orbit.coefficients.swapaxes(-1, -2) == pytest.approx(explained, abs=1e-12)
    assert moved.swapaxes(-1, -2) @ moved == pytest.approx(orbit.products, abs=1e-11)
    assert np.array_equal(moved[..., 0], rows[..., 0])
    assert np.array_equal(moved[0, :, 3], rows[0, :, 3])
    assert (np.abs(moved - rows).max(axis=1) > 0)[moves].reshape(-1)[1:].any()


def one_orbit(n_members: int, n_rows: int, d: int, rng: np.random.Generator) -> tuple[FactorOrbit, Callable]:
    """As many copies of one orbit of two factors, and ln of its density at rows and coefficients, from definitions."""
    rows, coefficients = rng.normal(size=(n_rows, 3)), rng.normal(size=(d, 3))
    rows[:, 0] = 1.0
    noise, precision, means = rng.gamma(2.0, size=d), rng.gamma(2.0, size=(d, 3)), np.zeros((d, 3))
    means[:, 0] = rng.normal(size=d)

    def log_density(to_rows: np.ndarray) -> float:
        moved, along = rows @ to_rows.T, coefficients @ np.linalg.inv(to_rows)
        deviations = (along - means) * np.sqrt(noise[:, None] * precision)
        return float(-0.5 * (moved[:, 1:] ** 2).sum() - 0.5 * (deviations**2).sum())

    orbit = FactorOrbit(
        np.tile(rows.T @ rows, (n_members, 1, 1)),
        np.tile(coefficients, (n_members, 1, 1)),
        np.tile(noise, (n_members, 1)),
        np.tile(precision, (n_members, 1, 1)),
        np.tile(precision * means, (n_members, 1, 1)),
    )
    return orbit, log_density


def test_shears_are_draws_of_the_normal_density_along_them():
    rng = np.random.default_rng(2)
    orbit, log_density = one_orbit(40_000, 4, 3, rng)

    def along(u: np.ndarray) -> float:
        return log_density(np.eye(3) + np.outer([0.0, 0.0, 1.0], [u[0], u[1], 0.0]))

    steps = np.eye(2)
    precision = -np.array([[along(a + b) - along(a) - along(b) + along(0 * a) for a in steps] for b in steps])
    slope = np.array([(along(a) - along(-a)) / 2 for a in steps])
    moves = np.tile([True, True, False], (40_000, 1))
    orbit.shear(2, moves, rng.normal(size=(40_000, 3)))
    drawn = orbit.maps[:, 2, :2]
    covariance = np.linalg.inv(precision)
    error = np.sqrt(np.diag(covariance).max() / 40_000)
    assert drawn.mean(axis=0) == pytest.approx(covariance @ slope, abs=4.5 * error)
    assert np.cov(drawn.T) == pytest.approx(covariance, rel=0.05)


@pytest.mark.parametrize(("n_rows", "d"), [(2, 5), (6, 2), (1, 3)])
def test_scales_are_draws_of_the_density_along_them(n_rows, d):
    """By quadrature, with the volumes of factors and coefficients: the scale's power is n less d."""
    rng = np.random.default_rng(3)
    orbit, log_density = one_orbit(20_000, n_rows, d, rng)
    for _ in range(12):  # steps of a chain that starts at no scale at all
        orbit.scale(1, np.ones(20_000, dtype=bool), rng.normal(size=20_000), rng.random(20_000))
    grid = np.linspace(-4, 4, 4001)
    logs = np.array([log_density(np.diag([1.0, np.exp(t), 1.0])) + (n_rows - d) * t for t in grid])
    density = np.exp(logs - logs.max())
    expected = np.cumsum(density) / density.sum()
    drawn = np.sort(np.log(orbit.maps[:, 1, 1]))
    reached = np.searchsorted(drawn, grid) / len(drawn)
    assert np.abs(reached - expected).max() < 1.95 / np.sqrt(20_000)  # Kolmogorov's distance, one in a thousand


@pytest.mark.parametrize(
    ("model", "has_gaps"),
    [
        (VBFactorAnalysis(1, **_KNOWN_SHAPES), False),
        (VBFactorAnalysis(2, **_KNOWN_SHAPES), True),
        (VBFactorAnalysis(1, noise="spherical", **_KNOWN_SHAPES), False),
        (VBMixture(2, emission=FactorGaussian(1, **_KNOWN_SHAPES)), True),
        (VBFactorAnalysis(2, relevance_prior=(4.0, 4.0)), False),  # hidden rates and weights
    ],
    ids=["one factor", "two factors, gaps", "one noise", "two components", "hidden hyperparameters"],
)
def test_chains_have_the_moments_of_weighted_draws_of_the_prior(model, has_gaps):
    """Four rows of two columns: draws of the prior, weighted by their likelihood, are draws of the posterior."""
    rng = np.random.default_rng(5)
    X = np.array([[0.3, 0.9], [-1.1, -0.7], [0.8, 0.2], [0.1, -0.6]])
    if has_gaps:
        X[0, 1] = X[2, 0] = np.nan
    evaluation = evaluation_of(model.set_params(n_init=1, tol=1e-2, random_state=0).fit(X), X)
    capabilities, cells = evaluation.capabilities, evaluation.model.n_cells
    n = 100_000
    prior = capabilities.points.draw_points(np.zeros((cells, n)), streams_of(rng, n))
    weights = np.exp(capabilities.points.log_likelihoods(evaluation.data, prior))
    weights /= weights.sum()
    n_chains = 3000
    start = np.repeat(evaluation.fit("vb").statistics[:, None], n_chains, axis=1)
    point, streams = np.ascontiguousarray(prior[:, :n_chains]), streams_of(rng, n_chains)
    annealing, data = capabilities.annealing, evaluation.data
    annealing.anneal(annealing.workspace(data, n_chains), annealing.paths(data, start), np.ones(21), streams, point)
    for function in (np.tanh, np.square, lambda x: np.exp(-np.abs(x))):
        values, size = function(prior), 1 / (weights**2).sum()
        expected = values @ weights
        spread = np.sqrt(np.maximum((values**2) @ weights - expected**2, 0.0))
        gap = np.abs(function(point).mean(axis=1) - expected)
        assert np.all(gap <= 4.5 * spread * np.sqrt(1 / size + 1 / n_chains) + 1e-12)


def test_one_sweep_crosses_the_posterior_of_the_scale_where_noise_is_small():
    """A thousandth of the variance is noise: the scale of loadings forgets where it was within a few sweeps."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(100, 1)) * [1.0, -1.0, 1.0, 1.0] + 0.03 * rng.normal(size=(100, 4))
    model = VBFactorAnalysis(1, random_state=0).fit(X)
    draws = model.sample_posterior(X, 400)
    assert draws.converged
    assert draws.n_sweeps <= 256
