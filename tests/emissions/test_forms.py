"""Two forms of a square give the same numbers where both may be used, and the right ones where only one may."""

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy.stats import multivariate_normal

from skvbem.emissions import COVARIANCE_TYPES, Gaussian
from skvbem.emissions.gaussian import dense_step, diagonal

approx = pytest.approx


def mixed(rng, covariance_type, n, d, gaps, n_components=3, n_lanes=2, **options):
    values = rng.normal(size=(n, d)) @ rng.normal(size=(d, d))
    values[rng.random(values.shape) < gaps] = np.nan
    emission = Gaussian(covariance_type).for_data(values)
    prior, table = emission.default_prior(n_components, **options), emission.prepare(values)
    shares = rng.dirichlet(np.ones(n_components), size=(n_lanes, n))
    lanes = np.repeat(prior.expected_natural()[:, None], n_lanes, axis=1)
    natural = (prior + emission.statistics(table, shares, lanes)).expected_natural()
    return emission, table, natural, shares


@pytest.mark.parametrize("gaps", [0.0, 0.3])
@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_the_expanded_square_is_that_of_differences(covariance_type, gaps, rng, monkeypatch):
    emission, table, natural, _ = mixed(rng, covariance_type, 80, 4, gaps)
    expanded = emission.expected_log_likelihood(table, natural)
    for module in (dense_step, diagonal):
        monkeypatch.setattr(module, "MAX_EXPANDED_SQUARE", -1.0)
    assert not emission.step(natural, table).expanded
    assert emission.expected_log_likelihood(table, natural) == approx(expanded, rel=1e-11, abs=1e-10)


@pytest.mark.parametrize("covariance_type", ["full", "tied"])
def test_wide_tables_are_like_narrow_ones(covariance_type, rng, monkeypatch):
    emission, table, natural, shares = mixed(rng, covariance_type, 60, 45, 0.02)
    assert not emission.step(natural, table).expanded
    found, statistics = (
        emission.expected_log_likelihood(table, natural),
        emission.statistics(table, shares, natural),
    )
    monkeypatch.setattr(dense_step, "MAX_EXPANDED_COLUMNS", 45)
    assert emission.step(natural, table).expanded
    assert emission.expected_log_likelihood(table, natural) == approx(found, rel=1e-10, abs=1e-9)
    assert np.all(abs(emission.statistics(table, shares, natural) - statistics) <= 1e-11 * abs(statistics).max())


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_points_far_from_narrow_components_are_not_lost_in_rounding(covariance_type, rng):
    """Components 1e-5 of the data's spread wide: each row by the definition in many digits, of the point as it is."""
    values = np.concatenate([rng.normal(size=(20, 2)) * 1e-5 + [3.0, 1.0], rng.normal(size=(20, 2)) * 1e-5])
    emission = Gaussian(covariance_type).for_data(values)
    prior, table = emission.default_prior(2), emission.prepare(values)
    precision = np.full_like(prior.mode().precision, 1e10) * (np.eye(2) if covariance_type in {"full", "tied"} else 1)
    point = prior.mode()._replace(mean=np.array([[1.25, 0.75], [-0.875, -1.0]]), precision=precision)
    natural = prior.natural(point)
    step = emission.step(natural, table)
    assert not step.expanded
    found = step.log_likelihood(table)
    frame = table.frame.T if hasattr(table, "frame") else table.columns[0].T
    volume = emission.log_volume if hasattr(emission, "log_volume") else -np.log(emission.unit).sum()
    with mp.workdps(50):
        for i, row in enumerate(frame):
            for k, mean in enumerate(point.mean):
                square = sum((mpf(float(x)) - mpf(float(m))) ** 2 for x, m in zip(row, mean))
                exact = -(mpf(10) ** 10) * square / 2 + mp.log(mpf(10) ** 10) - mp.log(2 * mp.pi) + mpf(float(volume))
                # the peak is the difference of two terms of 1e10
                assert float(abs(found[i, k] - exact)) <= 1e-14 * float(abs(exact)) + 1e-15 * 1e10 * 10


def test_components_beside_a_narrow_one_have_the_same_log_likelihoods(rng):
    """The narrow one takes the differences, the others the expanded square, of rows as they are."""
    values = rng.normal(size=(30, 3)) * [1.0, 20.0, 0.1]
    emission = Gaussian("full").for_data(values)
    prior, table = emission.default_prior(3), emission.prepare(values)
    roots = rng.normal(size=(3, 3, 3)) * np.array([1.0, 1e-5, 2.0])[:, None, None]
    point = prior.mode()._replace(mean=rng.normal(size=(3, 3)), precision=np.linalg.inv(roots @ roots.swapaxes(1, 2)))
    step = emission.step(prior.natural(point), table)
    assert step.is_far.ravel().tolist() == [False, True, False]
    found = step.log_likelihood(table)
    for k in range(3):
        exact = multivariate_normal(point.mean[k], roots[k] @ roots[k].T).logpdf(table.frame.T) + emission.log_volume
        assert found[:, k] == approx(exact, rel=1e-7)


def test_sums_over_many_columns_leave_out_only_what_adds_nothing(rng):
    values, owner = rng.normal(size=(40, 45)), rng.integers(3, size=40)
    emission = Gaussian("full").for_data(values)
    prior, table = emission.default_prior(3), emission.prepare(values)
    shares = np.full((1, 40, 3), 1e-60)
    shares[0, np.arange(40), owner] = 1.0
    shares[0, :3, 2] = 1e-9
    step = emission.step(prior.expected_natural()[:, None], table)
    total = step.zeros()
    step.add(table, shares, total)
    frame = table.frame
    upper = np.triu_indices(45)
    for k in range(3):
        products = (shares[0, :, k] * frame) @ frame.T
        assert total[0, k, 0] == approx(shares[0, :, k].sum())
        assert np.sort(total[0, k, 46:]) == approx(np.sort(products[upper]), abs=1e-13)
        assert total[0, k, 1:46] == approx(frame @ shares[0, :, k])
