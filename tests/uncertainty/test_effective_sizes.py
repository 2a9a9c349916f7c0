"""Effective sizes and R-hat of series whose autocorrelations are known."""

import numpy as np
import pytest
from scipy.signal import lfilter

from skvbem.uncertainty.effective_sizes import effective_sizes

approx = pytest.approx


def autoregressive(rng, correlation, shape):
    """Stationary chains x_t = correlation x_(t-1) + noise, of variance 1."""
    noise = rng.normal(size=shape) * np.sqrt(1 - correlation**2)
    noise[..., 0] /= np.sqrt(1 - correlation**2)
    return lfilter([1.0], [1.0, -correlation], noise, axis=-1)


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_chains_of_one_autocorrelation_are_worth_what_its_sum_says(correlation, rng):
    chains = autoregressive(rng, correlation, (40, 8, 1000))
    sizes, r_hat = effective_sizes(chains)
    assert np.mean(sizes) == approx(8000 * (1 - correlation) / (1 + correlation), rel=0.08)
    assert r_hat.max() < 1.02 + 0.05 * correlation


def test_increasing_functions_and_orders_of_chains_change_nothing(rng):
    chains = autoregressive(rng, 0.5, (3, 4, 200))
    sizes, r_hat = effective_sizes(chains)
    for other in (np.exp(5 * chains), chains[:, ::-1], 1e6 + chains):
        again, r_again = effective_sizes(other)
        assert again == approx(sizes, rel=1e-9)
        assert r_again == approx(r_hat, rel=1e-9)


def test_chains_elsewhere_and_chains_that_drift_disagree(rng):
    chains = rng.normal(size=(3, 4, 300))
    chains[0, 0] += 3
    chains[1] += np.linspace(0, 4, 300)
    sizes, r_hat = effective_sizes(chains)
    assert (r_hat[:2] > 1.2).all()
    assert (sizes[:2] < 40).all()
    assert r_hat[2] < 1.02


def test_what_never_varies_is_known():
    sizes, r_hat = effective_sizes(np.ones((2, 4, 10)))
    assert sizes.tolist() == [40, 40]
    assert r_hat.tolist() == [1, 1]
