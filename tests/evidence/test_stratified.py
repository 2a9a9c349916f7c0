"""Errors of draws of which each component has its share, against definitions, and against how far seeds lie apart."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import logsumexp

from skvbem import VBMixture
from skvbem.evidence.bridge import bridge
from skvbem.evidence.chains import pooled
from skvbem.evidence.proposals import Proposal
from skvbem.evidence.stratified import variance_of_mean

approx = pytest.approx
LOG_Z = 0.5 * np.log(2 * np.pi)


def test_variances_within_components_are_added_up(rng):
    """The formula, written out: the square of the share of each component, times the variance of its mean."""
    component = rng.permutation(np.repeat([0, 1, 2, 5], [7, 2, 3, 8]))
    values = rng.normal(size=20) + 10.0 * component
    parts = [values[component == k] for k in (0, 1, 2, 5)]
    expected = sum((len(part) / 20) ** 2 * part.var(ddof=1) / len(part) for part in parts)
    assert variance_of_mean(values, component) == approx(expected, rel=1e-12)
    assert variance_of_mean(values, np.full(20, 3)) == approx(values.var(ddof=1) / 20, rel=1e-12)
    assert variance_of_mean(values) == approx(values.var(ddof=1) / 20, rel=1e-12)


def test_it_is_the_variance_that_the_mean_has():
    """Components whose means and deviations are known, of two draws and more."""
    number, mean, deviation = np.array([2, 3, 2, 9]), np.array([0.0, 5.0, -3.0, 1.0]), np.array([1.0, 0.2, 3.0, 0.5])
    component = np.repeat(np.arange(4), number)
    known = (number * deviation**2).sum() / 16**2
    rng = np.random.default_rng(0)
    drawn = mean[component] + deviation[component] * rng.normal(size=(20_000, 16))
    stated = np.array([variance_of_mean(each, component) for each in drawn])
    assert stated.mean() == approx(known, abs=4 * stated.std() / np.sqrt(len(stated)))
    assert drawn.mean(axis=1).var() == approx(known, rel=4 * np.sqrt(2 / len(drawn)))


@pytest.mark.parametrize(
    ("number", "strata"),
    [
        ([1, 1], [(0, 1)]),
        ([1, 1, 1], [(0, 1, 2)]),
        ([3, 1, 2], [(0,), (1, 2)]),
        ([1, 4, 1, 1], [(0, 1), (2, 3)]),
        ([2, 3, 1], [(0,), (1, 2)]),
    ],
)
def test_single_draws_are_taken_together_with_their_neighbors(number, strata, rng):
    component = np.repeat(np.arange(len(number)), number)
    values = rng.normal(size=len(component))
    parts = [values[np.isin(component, stratum)] for stratum in strata]
    expected = sum(len(part) * part.var(ddof=1) for part in parts) / len(values) ** 2
    assert variance_of_mean(values, component) == approx(expected, rel=1e-12)


def test_taken_together_they_vary_by_how_far_their_means_lie_apart():
    """Of two draws x and y half of (x - y)^2 is expected to be the mean variance, and half of the squared distance."""
    rng = np.random.default_rng(1)
    drawn = np.array([0.0, 2.0, 7.0, 8.0]) + np.array([1.0, 2.0, 0.5, 0.5]) * rng.normal(size=(20_000, 4))
    stated = np.array([variance_of_mean(each, np.arange(4)) for each in drawn])
    within, between = 1.0 + 4.0 + 0.25 + 0.25, 2.0**2 + 1.0**2
    assert stated.mean() == approx((within + between) / 16, abs=4 * stated.std() / np.sqrt(len(stated)))


def test_single_numbers():
    assert math.isnan(variance_of_mean(np.ones(1)))
    assert math.isnan(variance_of_mean(np.ones(1), np.zeros(1, dtype=int)))
    assert variance_of_mean(np.full(5, 2.0), np.array([4, 1, 1, 0, 4])) == 0.0


def normal_proposal(n_draws, n_components, rng):
    """A mixture of narrow normal densities, made as `bridge_sampling` makes one, and the component of each draw."""
    means = np.append(rng.normal(size=n_components), 0.0)
    log_parts = np.log(np.append(np.full(n_components, 0.9 / n_components), 0.1))
    statistics = np.column_stack([means, np.append(np.full(n_components, 0.6), 3.0)])
    return Proposal(SimpleNamespace(), None, statistics, log_parts).stratified(n_draws, rng)


def log_weights(proposal, x):
    """Of a standard normal density without its normalizer."""
    means, widths = proposal.statistics.T[:, :, None]
    log_densities = -0.5 * ((x.ravel() - means) / widths) ** 2 - np.log(widths) - LOG_Z
    return -0.5 * x**2 - logsumexp(proposal.log_parts[:, None] + log_densities, axis=0).reshape(x.shape)


@pytest.mark.parametrize(("n_draws", "n_components"), [(64, 8), (128, 32)])
def test_stated_errors_are_those_of_seeds(n_draws, n_components):
    """Of importance sampling and of bridges, within 10 %; those of independent draws are some tenths larger."""
    rng, runs = np.random.default_rng(5), []
    for _ in range(400):
        proposal, component = normal_proposal(n_draws, n_components, rng)
        means, widths = proposal.statistics[component].T
        drawn = log_weights(proposal, means + widths * rng.normal(size=n_draws))
        chains = log_weights(proposal, rng.normal(size=(64, 16)))
        bridges = [bridge(drawn, chains, component), bridge(drawn, chains)]
        runs.append([*pooled([drawn], component)[:2], *bridges[0][:2], pooled([drawn])[1], bridges[1].standard_error])
    values, stated, bridged, stated_of_bridge, *independent = np.transpose(runs)
    for value, error, wide in ((values, stated, independent[0]), (bridged, stated_of_bridge, independent[1])):
        assert abs(value.mean() - LOG_Z) < 3.5 * value.std() / np.sqrt(len(value)) + value.var()
        assert np.sqrt(np.mean(error**2)) == approx(value.std(), rel=0.1)
        assert np.sqrt(np.mean(wide**2)) > 1.08 * value.std()


def test_components_have_the_shares_that_they_were_drawn_by(rng):
    """As many draws as they should have, but for rounding; those without any are left out."""
    shares = np.array([0.5, 0.3, 0.19, 0.01])
    proposal = Proposal(SimpleNamespace(), None, np.arange(8.0).reshape(4, 2), np.log(shares))
    for n_draws in (5, 40, 1000):
        found, component = proposal.stratified(n_draws, rng)
        number = np.bincount(component)
        assert np.exp(found.log_parts) == approx(number / n_draws)
        which = (found.statistics[:, 0] / 2).astype(int)
        assert np.all(np.abs(number - shares[which] * n_draws) < 1)
        assert np.all(shares[np.setdiff1d(np.arange(4), which)] * n_draws < 1)
    assert np.any(np.diff(component) < 0)


@pytest.mark.parametrize("kind", ["bridge", "annealed_bridge", "importance_gibbs"])
def test_scores_state_the_errors_of_strata(kind):
    """Three optima, and more components of proposals. Errors of independent draws would be larger."""
    rng = np.random.default_rng(3)
    X = np.concatenate([rng.normal(size=(4, 1)) + place for place in (0, 2, -3)])
    found = VBMixture(3, n_init=8, random_state=0).fit(X).log_evidence(X, kind=kind)
    drawn = found.details["log_weights"]
    if "draws_error" in found.details:
        stated = found.details["draws_error"]
        independent = bridge(drawn, found.details["chain_log_weights"]).draws_error
    else:
        independent, stated = pooled([drawn])[1], found.standard_error
    assert 0.3 * independent < stated < independent
