"""Predictive densities: they integrate to one, and are the ones that bear a name."""

import itertools

import numpy as np
import pytest
from emissions.members import PROBLEMS
from scipy import integrate, stats

from skvbem.emissions import Gaussian, Multinomial, Poisson

approx = pytest.approx


def after_data(emission, values, n_components, rng):
    prior, table = emission.default_prior(n_components), emission.prepare(values)
    shares = rng.dirichlet(np.ones(n_components), size=len(values))
    return prior + emission.statistics(table, shares, prior.expected_natural())


def density(emission, posterior, row):
    return np.exp(emission.log_predictive(emission.prepare(np.array([row])), posterior)[0])


@pytest.mark.parametrize("n", [5, 40])
@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag", "spherical"])
def test_densities_integrate_to_one_and_over_a_cell_to_that_of_the_others(covariance_type, n, rng):
    values = rng.normal(size=(n, 2)) @ rng.normal(size=(2, 2)) * 3 + [4.0, 7.0]
    emission = Gaussian(covariance_type).for_data(values)
    posterior = after_data(emission, values, 2, rng)
    for known in (values[0, 0], values[1, 0] + 5):

        def joint(t, known=known):
            """The density of both cells, the second at the tangent of t."""
            return density(emission, posterior, [known, 7 + np.tan(t)]) * (1 + np.tan(t) ** 2)

        over = integrate.quad_vec(joint, -np.pi / 2, np.pi / 2, epsabs=1e-12, limit=500)[0]
        assert over == approx(density(emission, posterior, [known, np.nan]), rel=1e-7)

    def marginal(t):
        return density(emission, posterior, [4 + np.tan(t), np.nan]) * (1 + np.tan(t) ** 2)

    total = integrate.quad_vec(marginal, -np.pi / 2, np.pi / 2, epsabs=1e-12, limit=500)[0]
    assert total == approx(np.ones(2), abs=1e-6)


def test_categories_sum_to_one(rng):
    for name in ("categorical", "bernoulli"):
        problem = PROBLEMS[name](rng)
        emission = problem.emission
        posterior = after_data(emission, problem.values, problem.n_components, rng)
        rows = np.array(list(itertools.product(*map(range, emission.n_categories))))
        total = np.exp(emission.log_predictive(emission.prepare(rows), posterior)).sum(axis=0)
        assert total == approx(np.ones(problem.n_components), abs=1e-12)


def test_counts_sum_to_one_and_are_negative_binomial(rng):
    values = rng.poisson(4, size=(6, 1)).astype(float)
    emission = Poisson().for_data(values)
    posterior = after_data(emission, values, 2, rng)
    counts = np.arange(400.0)[:, None]
    found = emission.log_predictive(emission.prepare(counts), posterior)
    assert np.exp(found).sum(axis=0) == approx(np.ones(2), abs=1e-9)
    for k in range(2):
        rate = posterior.rate[k, 0] / emission.unit[0]
        oracle = stats.nbinom(posterior.shape[k, 0], rate / (rate + 1)).logpmf(counts[:, 0])
        assert found[:, k] == approx(oracle, rel=1e-9, abs=1e-9)


def test_shares_are_dirichlet_multinomial(rng):
    values = rng.multinomial(7, [0.2, 0.3, 0.5], size=5).astype(float)
    emission = Multinomial().for_data(values)
    posterior = after_data(emission, values, 2, rng)
    rows = np.array([row for row in itertools.product(range(6), repeat=3) if sum(row) == 5], dtype=float)
    found = emission.log_predictive(emission.prepare(rows), posterior)
    assert np.exp(found).sum(axis=0) == approx(np.ones(2), abs=1e-12)
    for k, concentration in enumerate(posterior.concentration.reshape(2, 3)):
        assert found[:, k] == approx([stats.dirichlet_multinomial(concentration, 5).logpmf(row) for row in rows])


@pytest.mark.parametrize("covariance_type", ["full", "tied"])
def test_the_dense_predictive_is_a_multivariate_t(covariance_type, rng):
    values = rng.normal(size=(9, 3)) @ rng.normal(size=(3, 3)) + [1.0, 50.0, -3.0]
    emission = Gaussian(covariance_type).for_data(values)
    posterior = after_data(emission, values, 2, rng)
    found = emission.log_predictive(emission.prepare(values), posterior)
    for k in range(2):
        p = 0 if covariance_type == "tied" else k
        dof = posterior.degrees_of_freedom[p] - 2
        kappa = posterior.mean_precision[k]
        shape = emission.unwhitener @ posterior.scale[p] @ emission.unwhitener.T * (kappa + 1) / (kappa * dof)
        location = emission.parameters(posterior.mode())["means"][k]
        assert found[:, k] == approx(stats.multivariate_t(location, shape, dof).logpdf(values), rel=1e-9)


def test_far_rows_and_many_data_keep_their_digits(rng):
    """log1p of tiny squares over huge degrees of freedom, and squares of 1e16."""
    values = rng.normal(size=(20, 2))
    for covariance_type in ("full", "diag"):
        emission = Gaussian(covariance_type).for_data(values)
        sure = emission.default_prior(1, degrees_of_freedom_prior=1e12, covariance_prior=_covariance(covariance_type))
        sure = sure + 0
        far = emission.prepare(np.array([[1.0, -0.5], [1e8, 1e8]]))
        found = emission.log_predictive(far, sure)
        point = sure.mode()
        normal = emission.expected_log_likelihood(far, sure.natural(point))
        share = 0.5  # mean_precision / (mean_precision + 1)
        parameters = emission.parameters(point)
        covariance = (
            parameters["covariances"][0] if covariance_type == "full" else np.diag(parameters["covariances"][0])
        )
        oracle = stats.multivariate_normal(parameters["means"][0], covariance / share).logpdf([1.0, -0.5])
        assert found[0, 0] == approx(oracle, rel=1e-9)
        assert np.isfinite(found[1, 0])
        assert found[1, 0] > normal[1, 0]


def _covariance(covariance_type):
    return 1e12 * (np.eye(2) if covariance_type == "full" else np.ones(2))
