"""Neither offsets nor units of measure make a difference, and no data are too large, too thin or too few."""

import numpy as np
import pytest

from skvbem.emissions import COVARIANCE_TYPES, Exponential, Gaussian

approx = pytest.approx


def climb(emission, values, shares, n_steps=4):
    """The bound after some full steps from responsibilities, components of equal weight; and where it led."""
    n_components = shares.shape[1]
    prior, table = emission.default_prior(n_components), emission.prepare(values)
    natural = prior.expected_natural()
    for _ in range(n_steps):
        posterior = prior + emission.statistics(table, shares, natural)
        natural = posterior.expected_natural()
        found = emission.expected_log_likelihood(table, natural) - np.log(n_components)
        top = found.max(axis=1, keepdims=True)
        weights = np.exp(found - top)
        bound = float((np.log(weights.sum(axis=1)) + top[:, 0]).sum() - posterior.kl(prior))
        shares = weights / weights.sum(axis=1, keepdims=True)
    return bound, shares


def data(rng, gaps, n=60):
    """Three clusters, on a grid of 2^-12 so that an offset of 2^28 changes no digit."""
    values = rng.normal(size=(n, 3)) @ rng.normal(size=(3, 3)) + 4 * rng.normal(size=(3, 3))[rng.integers(0, 3, n)]
    values = np.round(values * 4096) / 4096
    values[rng.random(values.shape) < gaps] = np.nan
    return values, rng.dirichlet(np.ones(3), size=n)


@pytest.mark.parametrize("gaps", [0.0, 0.3])
@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_an_offset_of_a_hundred_million_deviations_changes_nothing(covariance_type, gaps, rng):
    for _ in range(3):
        values, shares = data(rng, gaps)
        results = []
        for offset in (0.0, 2.0**28, -(2.0**28)):
            moved = values + offset
            emission = Gaussian(covariance_type).for_data(moved)
            results.append(climb(emission, moved, shares))
        for bound, responsibilities in results[1:]:
            assert bound == approx(results[0][0], rel=1e-9)
            assert responsibilities == approx(results[0][1], abs=1e-9)


@pytest.mark.parametrize("gaps", [0.0, 0.3])
@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
@pytest.mark.parametrize("unit", [0.01, 1e-200, 1e200, (1e-7, 3.0, 1e9)], ids=str)
def test_units_change_the_bound_by_their_logarithms(covariance_type, unit, gaps, rng):
    values, shares = data(rng, gaps)
    unit = np.broadcast_to(np.asarray(unit), 3)
    if covariance_type == "spherical" and unit[0] != unit[1]:
        return  # which has one unit for all columns
    n_seen = (~np.isnan(values)).sum(axis=0)
    bound, found = climb(Gaussian(covariance_type).for_data(values), values, shares)
    scaled = values * unit
    emission = Gaussian(covariance_type).for_data(scaled)
    of_scaled, of_shares = climb(emission, scaled, shares)
    assert of_scaled == approx(bound - n_seen @ np.log(unit), rel=1e-9)
    assert of_shares == approx(found, abs=1e-9)


def test_the_unit_of_time_changes_the_bound_by_its_logarithm(rng):
    times, shares = rng.exponential(3.0, size=(50, 2)), rng.dirichlet(np.ones(2), size=50)
    bound, found = climb(Exponential().for_data(times), times, shares)
    for unit in (1e-150, 60.0, 1e150):
        of_scaled, of_shares = climb(Exponential().for_data(times * unit), times * unit, shares)
        assert of_scaled == approx(bound - 100 * np.log(unit), rel=1e-9)
        assert of_shares == approx(found, abs=1e-9)


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
@pytest.mark.parametrize(
    "values",
    [
        np.full((5, 2), 7.0),
        np.column_stack([np.arange(9.0), np.zeros(9)]),
        np.column_stack([np.arange(9.0), 2 * np.arange(9.0), 1e9 + np.arange(9.0)]),
        np.arange(12.0).reshape(2, 6) ** 2,
        np.array([[3.0, 1e300]]),
        np.concatenate([np.zeros((50, 1)), [[1e15]]]),
    ],
    ids=["constant", "constant column", "collinear", "wide", "one row", "one far away"],
)
def test_thin_data_give_finite_bounds(covariance_type, values):
    """The bound rises, and predictions are finite."""
    emission = Gaussian(covariance_type).for_data(values)
    shares = np.linspace(0.1, 0.9, len(values))[:, None] * [1, -1] + [0, 1]
    bounds = [climb(emission, values, shares, n)[0] for n in range(1, 6)]
    assert np.isfinite(bounds).all()
    assert np.all(np.diff(bounds) >= -1e-9 * np.abs(bounds[1:]))
    prior, table = emission.default_prior(2), emission.prepare(values)
    posterior = prior + emission.statistics(table, shares, prior.expected_natural())
    assert np.isfinite(emission.log_predictive(table, posterior)).all()
    point = prior.most_likely(emission.statistics(table, shares, prior.expected_natural()))
    assert np.isfinite(emission.expected_log_likelihood(table, prior.natural(point))).all()
