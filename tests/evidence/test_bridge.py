"""Bridge sampling, against normalizers in closed form."""

import numpy as np
import pytest

from skvbem.evidence.bridge import bridge

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
