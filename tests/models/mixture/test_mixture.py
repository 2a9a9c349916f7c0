"""Mixtures: E steps by definition, what an empty component costs, sticks. Laws of all models: see `laws`."""

import numpy as np
import pytest
from emissions.members import PROBLEMS
from laws.labels import random_starts
from laws.mixtures import mixture
from scipy.special import gammaln, logsumexp

from skvbem.emissions import COVARIANCE_TYPES
from skvbem.models.labels import distinct_rows as seeding
from skvbem.models.mixture.weights import FiniteWeights, StickBreaking
from skvbem.testing.emission_examples import seen
from skvbem.vbem import posteriors

approx = pytest.approx


def test_adding_an_empty_component_costs_what_the_weights_say(rng):
    """F(K + 1) - F(K) = ln [G((K+1)a) G(Ka + n) / (G(Ka) G((K+1)a + n))], whatever the emission."""
    for name in PROBLEMS:
        if name == "tied":
            continue  # one joint block of all components
        problem = PROBLEMS[name](rng, n_rows=20)
        for K, alpha in ((1, 1.0), (2, 0.5)):
            bounds = []
            for n_components in (K, K + 1):
                model, table, _ = mixture(problem, FiniteWeights(np.full(n_components, alpha)))
                data = model.compile(table)
                shares = np.zeros((20, n_components))
                shares[np.arange(20), np.arange(20) % K] = 1.0
                natural, penalty = posteriors.VB.of(model.prior, model.statistics_of(shares, data)[:, None])
                step = model.expect(natural, data)
                # the bound at these responsibilities, not at those of the next E step
                log_joint = model.log_joint(natural[:, 0], table)
                bounds.append(float((shares * log_joint).sum() + penalty[0]))
                assert np.isfinite(step.log_normalizer).all()
            (a, b), n = (K * alpha, (K + 1) * alpha), 20
            expected = gammaln(b) + gammaln(a + n) - gammaln(a) - gammaln(b + n)
            assert bounds[1] - bounds[0] == approx(expected, abs=1e-8)
    assert gammaln(2) + gammaln(21) - gammaln(1) - gammaln(22) == approx(-3.04452243772342)


def test_the_e_step_is_that_of_the_definition(rng):
    """q of every row, its entropy and expected log joint."""
    for name in PROBLEMS:
        problem = PROBLEMS[name](rng, n_rows=15, gaps=0.2)
        model, table, values = mixture(problem, FiniteWeights(rng.uniform(0.5, 2.0, 3)))
        weight = rng.uniform(0.1, 3.0, 15)
        data = model.compile(table, weight, observed=seen(values))
        natural = posteriors.VB.of(model.prior, random_starts(model, data, rng, 1))[0]
        found = model.expect(natural, data)
        log_joint = model.log_joint(natural[:, 0], table)
        log_z = logsumexp(log_joint, axis=1)
        q = np.exp(log_joint - log_z[:, None])
        counted = weight * seen(values)
        assert found.log_normalizer[0] == approx(counted @ log_z, rel=1e-12)
        assert found.statistics[:3, 0] == approx(counted @ q, rel=1e-11, abs=1e-12)
        of_emission = problem.emission.statistics(table, q * counted[:, None], natural[3:, 0])
        assert found.statistics[3:, 0] == approx(of_emission, rel=1e-9, abs=1e-9)


def test_rows_that_no_component_can_make(rng):
    """Of a point of ML, say: ln Z is -inf, and nothing turns to NaN."""
    problem = PROBLEMS["bernoulli"](rng, n_rows=4)
    model, table, _ = mixture(problem, FiniteWeights(np.ones(2)))
    natural = np.full((model.n_cells, 1), -np.inf)
    found = model.expect(natural, model.compile(table))
    assert found.log_normalizer[0] == -np.inf
    assert not np.isnan(found.statistics).any()


def test_sticks(rng):
    """Weights by definition, statistics by counting, and the bound of the weights alone."""
    weights = StickBreaking(4, 1.7)
    sticks = rng.uniform(0.1, 0.9, 3)
    natural = np.log(np.stack([sticks, 1 - sticks], axis=1).ravel())
    expected = [sticks[0], (1 - sticks[0]) * sticks[1], (1 - sticks[:2]).prod() * sticks[2], (1 - sticks).prod()]
    assert np.exp(weights.log_weights(natural[:, None])[:, 0]) == approx(expected)
    counts = np.array([3.0, 1.0, 0.5, 2.0])
    assert weights.statistics(counts).tolist() == [3.0, 3.5, 1.0, 2.5, 0.5, 2.0]
    assert weights.counts(weights.statistics(counts)).tolist() == counts.tolist()
    posterior = weights.prior + weights.statistics(counts)
    assert weights.mean(posterior).sum() == approx(1.0)
    draws = np.array([posterior.sample(rng) for _ in range(20000)])
    drawn = np.exp(weights.log_weights(np.log(draws.T))).mean(axis=1)
    assert drawn == approx(weights.mean(posterior), abs=0.01)
    assert StickBreaking(1, 2.0).mean(StickBreaking(1, 2.0).prior).tolist() == [1.0]


def test_every_shape_of_covariance_is_there():
    assert set(COVARIANCE_TYPES) < set(PROBLEMS)


def test_spread_seeds_are_drawn_in_proportion_to_squared_distances(monkeypatch):
    """And to weights: after a heavy row at 0, rows at 1 and at 3 are one and nine times as probable."""
    monkeypatch.setattr(seeding, "_N_SEED_MOVES", 0)
    coordinates, weight = np.array([[0.0], [1.0], [3.0]]), np.array([1e6, 1.0, 1.0])
    for spread, share in ((True, 0.9), (False, 0.0)):
        seeds = [seeding.seeds_among(coordinates, weight, 2, spread, np.random.default_rng(k)) for k in range(400)]
        assert np.mean([place[1, 0] == 3.0 for place in seeds]) == approx(share, abs=0.06)
