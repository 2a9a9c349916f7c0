"""Priors of Gaussians mean what scikit-learn says they mean: one component, whose posterior is known."""

import numpy as np
import pytest
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture

from skvbem.emissions import COVARIANCE_TYPES, Gaussian

approx = pytest.approx


def priors(covariance_type, rng):
    root = rng.normal(size=(3, 5))
    covariance = {
        "full": root @ root.T,
        "tied": root @ root.T,
        "diag": rng.uniform(0.5, 3, size=3),
        "spherical": 2.5,
    }[covariance_type]
    return {
        "mean_prior": rng.normal(size=3),
        "mean_precision_prior": 0.7,
        "degrees_of_freedom_prior": 4.5,
        "covariance_prior": covariance,
    }


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_a_posterior_of_one_component_is_scikit_learns(covariance_type, rng):
    X = rng.normal(size=(30, 3)) @ rng.normal(size=(3, 3)) + [10.0, 0.0, -4.0]
    given = priors(covariance_type, rng)
    theirs = BayesianGaussianMixture(covariance_type=covariance_type, reg_covar=0, **given).fit(X)
    emission = Gaussian(covariance_type).for_data(X)
    prior, table = emission.default_prior(1, **given), emission.prepare(X)
    posterior = prior + emission.statistics(table, np.ones((30, 1)), prior.expected_natural())
    ours = emission.parameters(posterior.mode())
    assert ours["means"] == approx(theirs.means_, rel=1e-9)
    assert ours["covariances"] == approx(theirs.covariances_, rel=1e-9)
    assert ours["precisions"] == approx(theirs.precisions_, rel=1e-9)


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_a_most_likely_component_is_scikit_learns(covariance_type, rng):
    X = rng.normal(size=(30, 3)) @ rng.normal(size=(3, 3)) + [10.0, 0.0, -4.0]
    theirs = GaussianMixture(covariance_type=covariance_type, reg_covar=0).fit(X)
    emission = Gaussian(covariance_type).for_data(X)
    prior, table = emission.default_prior(1), emission.prepare(X)
    point = prior.most_likely(emission.statistics(table, np.ones((30, 1)), prior.expected_natural()))
    ours = emission.parameters(point)
    assert ours["means"] == approx(theirs.means_, rel=1e-9)
    assert ours["covariances"] == approx(theirs.covariances_, rel=1e-8)
    likelihood = emission.expected_log_likelihood(table, prior.natural(point)).sum()
    assert likelihood == approx(30 * theirs.score(X), rel=1e-9)


def test_an_unknown_covariance_type_is_named():
    with pytest.raises(ValueError, match=r"'covariance_type' parameter of Gaussian must be .* Got 'round'"):
        Gaussian("round").for_data(np.zeros((2, 2)))
