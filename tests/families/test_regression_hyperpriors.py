"""Hidden parts of a regression's prior: precisions of coefficients, rates of noise."""

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import betaprime, norm

from skvbem.families import Regression
from skvbem.families.hierarchical import with_hidden_rates, with_learned_precisions
from skvbem.families.regression_rows import RegressionPoint

approx = pytest.approx

_SHAPE, _PRECISIONS = np.array([1.0, 2.5, 0.7]), np.array([0.8, 1.7])


def regression():
    """Three rows with a noise each, two regressors, means of 0."""
    rows, matrices = np.arange(3), np.repeat(np.diag(_PRECISIONS)[None], 3, axis=0)
    return Regression.from_parameters(np.zeros((3, 2)), matrices, _SHAPE, np.full(3, 9.0), rows, rows)


def log_density(prior, point):
    """ln p(c, rho) of a prior, hyperparameters integrated out, nats."""
    log_z = prior.hyperprior.expect(prior.natural(point)[:, None])[1].item()
    return float(prior.log_density(point, "probability") + log_z)


@pytest.fixture
def point(rng):
    return RegressionPoint(rng.normal(size=(3, 2)), rng.gamma(1.0, size=3))


def test_hidden_rates_make_beta_prime_precisions(point):
    c, rho = point
    of_rates = betaprime.logpdf(rho, _SHAPE, 1.5, scale=0.4).sum()
    of_coefficients = norm.logpdf(c, scale=1 / np.sqrt(rho[:, None] * _PRECISIONS)).sum()
    assert log_density(with_hidden_rates(regression(), 1.5, 0.4, 0.0), point) == approx(of_rates + of_coefficients)


def test_the_floor_is_left_out_of_the_normalizer(point):
    """So that the mass is a little below 1, and a lower bound stays one."""
    floor = np.array([0.1, 0.0, 0.3])
    priors = [with_hidden_rates(regression(), 1.5, 0.4, each) for each in (0.0, floor)]
    lost = log_density(priors[0], point) - log_density(priors[1], point)
    assert lost == approx(floor @ point.precision)


def test_learned_precisions_and_hidden_rates_are_independent_given_the_parameters(point):
    """Precisions of one regressor are learned from all rows: a Gamma integral."""
    c, rho = point
    shape, rate, m = 1.2, 0.3, 3
    learned = with_learned_precisions(regression(), np.array([True, False]), shape, rate)
    of_learned = 0.5 * np.log(rho / (2 * np.pi)).sum() + shape * np.log(rate) - gammaln(shape)
    squares = rate + 0.5 * (rho * c[:, 0] ** 2).sum()
    of_learned += gammaln(shape + m / 2) - (shape + m / 2) * np.log(squares)
    of_known = norm.logpdf(c[:, 1], scale=1 / np.sqrt(rho * _PRECISIONS[1])).sum()
    of_rates = betaprime.logpdf(rho, _SHAPE, 1.5, scale=0.4).sum()
    both = with_hidden_rates(learned, 1.5, 0.4, 0.0)
    assert log_density(both, point) == approx(of_learned + of_known + of_rates)


def test_statistics_of_both_are_derivatives_of_the_log_normalizer(point):
    learned = with_learned_precisions(regression(), np.array([True, False]), 1.2, 0.3)
    both = with_hidden_rates(learned, 1.5, 0.4, 1e-3)
    natural = both.natural(point)
    step = 1e-5 * np.eye(len(natural))
    up, down = (both.hyperprior.expect(natural[:, None] + sign * step)[1] for sign in (1, -1))
    assert (up - down) / 2e-5 == approx(both.hyperprior.expect(natural[:, None])[0][:, 0], rel=1e-6, abs=1e-7)
