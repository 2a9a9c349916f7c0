"""Turns of factors: volumes, means over turns, coordinates up to turns, against what they are defined to be."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import hyp2f1, logsumexp
from scipy.stats import ortho_group

from skvbem import VBFactorAnalysis
from skvbem.emissions.factor.quotient import FactorQuotient
from skvbem.emissions.factor.turns import log_mean_over_turns, log_volume


def mean_over_turns(eigenvalues, power, n=400, n_turns=32, seed=0):
    """ln of the mean of so many estimates at loadings with these eigenvalues, and its standard error."""
    grams = np.tile(np.diag(np.asarray(eigenvalues, dtype=float)), (n, 1, 1, 1))
    logs = log_mean_over_turns(grams, np.array([power]), 1.0, np.random.default_rng(seed), n_turns, posterior=False)
    estimates = np.exp(logs - logs.max())
    value = np.log(estimates.mean()) + logs.max()
    return value, estimates.std(ddof=1) / estimates.mean() / np.sqrt(n)


def log_density(turns, eigenvalues, power):
    """ln of the density of loadings with these eigenvalues, at turns (n, q, q)."""
    squares = np.einsum("nai,a,nai->ni", turns, np.asarray(eigenvalues, dtype=float), turns)
    return -power * np.log1p(squares / 2).sum(axis=1)


def test_volumes_of_orthogonal_matrices():
    """Two points; two circles of length 2 pi; the group of rotations in space twice, of 8 pi^2."""
    assert_allclose(np.exp([log_volume(1), log_volume(2), log_volume(3)]), [2, 4 * np.pi, 16 * np.pi**2])
    assert_allclose(np.exp(log_volume(3, 1)), 4 * np.pi)  # a sphere


@pytest.mark.parametrize(("eigenvalues", "power"), [((1, 1), 5), ((10, 1), 5), ((1000, 1), 7.5), ((1e4, 10), 50)])
def test_the_mean_over_turns_of_two_factors_is_a_hypergeometric_function(eigenvalues, power):
    r"""Of :math:`(1 + r \sin^2 \phi)^{-p}`, over all angles."""
    large, small = (1 + x / 2 for x in eigenvalues)
    r = (large - small) ** 2 / (4 * large * small)
    exact = np.log(hyp2f1(power, 0.5, 1, -r)) - power * np.log(large * small)
    value, error = mean_over_turns(eigenvalues, power)
    assert abs(value - exact) < 4 * error + 1e-9
    assert error < 0.01


@pytest.mark.parametrize(("eigenvalues", "power"), [((3, 2, 1), 5), ((4, 2, 1, 1), 3), ((1, 1, 1, 1, 1), 3)])
def test_the_mean_over_turns_is_that_over_uniform_ones(eigenvalues, power):
    turns = ortho_group.rvs(len(eigenvalues), size=10_000, random_state=0)
    logs = log_density(turns, eigenvalues, power)
    weights = np.exp(logs - logs.max())
    reference = np.log(weights.mean()) + logs.max()
    value, error = mean_over_turns(eigenvalues, power)
    assert abs(value - reference) < 4 * np.hypot(error, weights.std() / weights.mean() / np.sqrt(len(weights)))


def test_few_uniform_turns_miss_what_the_prior_is_steep_about():
    """By nats, and by one sign: the trap that coordinates about the axes of the loadings are there for."""
    eigenvalues, power = (3000, 300, 30), 10.0
    value, error = mean_over_turns(eigenvalues, power)
    logs = log_density(ortho_group.rvs(3, size=32 * 60, random_state=0), eigenvalues, power).reshape(60, 32)
    uniform = logsumexp(logs, axis=1) - np.log(32)
    assert error < 0.01
    assert np.median(uniform) < value - 1.0


def test_draws_of_the_posterior_hold_one_turn_of_it():
    """Ratios of means of both kinds are those of densities: E[1 / mean] at draws of the posterior is 1 / E[mean]."""
    n, eigenvalues, power = 1000, (20.0, 5.0, 1.0), 5.0
    grams = np.tile(np.diag(eigenvalues), (n, 1, 1, 1))
    means = [
        log_mean_over_turns(grams, np.array([power]), 1.0, np.random.default_rng(seed), 16, posterior=posterior)
        for seed, posterior in enumerate((False, True))
    ]
    assert logsumexp(means[0]) - np.log(n) == pytest.approx(np.log(n) - logsumexp(-means[1]), abs=0.03)
    assert means[1].mean() > means[0].mean() + 0.04


@pytest.mark.parametrize(
    "options", [{}, {"groups": [[0, 1, 2], [3, 4]]}, {"relevance": "fixed"}, {"noise": "spherical"}]
)
@pytest.mark.parametrize("n_factors", [1, 2, 3, 5])
def test_coordinates_stand_for_all_turns_of_a_point(rng, n_factors, options):
    """Loadings keep their products, and a point turned has the coordinates of the point."""
    X = rng.normal(size=(30, 5)) @ rng.normal(size=(5, 5))
    fitted = VBFactorAnalysis(n_factors, random_state=0, **options).fit(X).fitted
    posterior, emission = fitted.posterior.blocks[1], fitted.emission
    family, cells = fitted.model.prior.blocks[1], posterior.expected_natural()
    quotient = FactorQuotient(emission, family, cells)
    points = (posterior + np.zeros((len(cells), 3))).sample(rng)
    turn = ortho_group.rvs(n_factors, random_state=0) if n_factors > 1 else -np.eye(1)
    turned = points.coefficients.copy()
    turned[:, 1:] = np.einsum("dqn,qr->drn", points.coefficients[:, 1:], turn)
    coordinates = quotient.coordinates(family.natural(points))
    assert_allclose(quotient.coordinates(family.natural(points._replace(coefficients=turned))), coordinates, atol=1e-8)
    back = quotient.natural(coordinates)
    assert_allclose(quotient.coordinates(back), coordinates, atol=1e-8)
    table = emission.prepare(X)
    likelihoods = [emission.step(x, table).log_likelihood(table) for x in (family.natural(points), back)]
    assert_allclose(*likelihoods, rtol=1e-9)
