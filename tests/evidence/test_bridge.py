"""Bridge sampling, against normalizers in closed form."""

import numpy as np
import pytest
from scipy.stats import norm, t

from skvbem.evidence.bridge import _error_of_few, bridge

LOG_Z = 0.5 * np.log(2 * np.pi)


def log_weight(x, width):
    """Of a standard normal density without its normalizer over a normal proposal."""
    return -0.5 * x**2 + 0.5 * (x / width) ** 2 + np.log(width) + LOG_Z


def autoregressive(rng, shape, rho):
    """Chains whose draws are standard normal, each hanging on the one before."""
    x = rng.normal(size=shape)
    for k in range(1, shape[1]):
        x[:, k] = rho * x[:, k - 1] + np.sqrt(1 - rho**2) * x[:, k]
    return x


@pytest.mark.parametrize("width", [0.5, 2.0])
@pytest.mark.parametrize("rho", [0.0, 0.9])
def test_errors_are_as_large_as_they_say(width, rho):
    """Of wider and of narrower proposals, whose weights are unbounded, and of chains that move slowly."""
    rng = np.random.default_rng(0)
    found = [
        bridge(log_weight(width * rng.normal(size=256), width), log_weight(autoregressive(rng, (16, 16), rho), width))
        for _ in range(200)
    ]
    z = np.array([(each.value - LOG_Z) / each.standard_error for each in found])
    assert abs(z.mean()) < 0.25
    assert 0.9 < z.std() < 1.15
    assert 0.92 <= np.mean(np.abs(z) < 2) <= 0.98


@pytest.mark.parametrize("n", [2, 3, 16])
def test_errors_of_few_numbers_hold_the_truth_as_often_as_of_many(n):
    """Twice the error does so in 95.4 % of all cases, as of known spread, and not in 70.5, 81.6 and 93.6 %."""
    rng = np.random.default_rng(4)
    within = np.mean([abs(each.mean()) < 2 * _error_of_few(each) for each in rng.normal(size=(8000, n))])
    assert within == pytest.approx(1 - 2 * norm.sf(2.0), abs=3 * np.sqrt(0.954 * 0.046 / 8000))


def test_errors_of_chains_are_a_quantile_of_students_distribution():
    """Twice the error is as likely as 2 normal deviations; of known spread it is the standard error of the mean."""
    rng = np.random.default_rng(5)
    proposed, chains = log_weight(2 * rng.normal(size=400), 2.0), log_weight(rng.normal(size=(16, 25)), 2.0)
    found = bridge(proposed, chains)
    means = (1.0 / (1.0 + np.exp(chains - found.value))).mean(axis=1)
    as_if_known = means.std(ddof=1) / means.mean() / 4.0
    assert found.chains_error == pytest.approx(as_if_known * t(15).isf(norm.sf(2.0)) / 2.0, rel=1e-9)
    assert found.chains_error == pytest.approx(1.09 * as_if_known, rel=0.01)


def test_it_is_the_fixed_point_of_the_iteration():
    """Written out as Meng & Wong do, with other numbers of draws on both sides."""
    rng = np.random.default_rng(1)
    proposed, posterior = log_weight(2 * rng.normal(size=500), 2.0), log_weight(rng.normal(size=(10, 7)), 2.0)
    z = 1.0
    s_1, s_2 = 70 / 570, 500 / 570
    for _ in range(200):
        above = np.mean(np.exp(proposed) / (s_1 * np.exp(proposed) + s_2 * z))
        z = above / np.mean(1.0 / (s_1 * np.exp(posterior) + s_2 * z))
    assert bridge(proposed, posterior).value == pytest.approx(np.log(z), abs=1e-8)


def test_equal_weights_are_the_value():
    found = bridge(np.full(64, -3.0), np.full((4, 8), -3.0))
    assert found.value == pytest.approx(-3.0, abs=1e-9)
    assert found.standard_error == pytest.approx(0.0, abs=1e-9)


def test_draws_without_density():
    """A proposal may draw what the posterior excludes."""
    rng = np.random.default_rng(2)
    inside = rng.random((8, 32))
    drawn = 2.0 * rng.random(4096)
    log_weights = np.where(drawn < 1.0, np.log(2.0), -np.inf)
    assert bridge(log_weights, np.full(inside.shape, np.log(2.0))).value == pytest.approx(0.0, abs=0.1)
    assert bridge(np.full(4, -np.inf), np.zeros((2, 2))).value == -np.inf
