"""Rising factorials at knots of counts, against NumPy and mpmath."""

import mpmath
import numpy as np
import pytest

from skvbem._kernels import _rises
from skvbem._numerics import log_rising

approx = pytest.approx


@pytest.mark.parametrize("n_nodes", [1, 2, 7, 8, 9, 40])
@pytest.mark.parametrize("n_small", [0, 3, 11])
def test_sums_and_means_are_those_of_numpy(n_nodes, n_small, rng):
    """Sizes on both sides of where differences are taken from their series; nodes without a share are left out."""
    knots = np.concatenate([np.arange(1.0, n_small + 1), 70 + rng.uniform(0, 1e4, size=4)])
    r = 10.0 ** rng.uniform(-4, 9, size=(3, n_nodes))
    weights = rng.exponential(size=(3, len(knots))) * (rng.random((3, len(knots))) < 0.7)
    share = rng.dirichlet(np.ones(n_nodes), size=3)
    share[:, 1:2] = 0.0
    rises = log_rising(r[:, :, None], knots)
    sums, means = np.empty(r.shape), np.empty((3, len(knots)))
    _rises.weighted_sums(r, knots, n_small, weights, sums)
    _rises.means(r, knots, n_small, share, means)
    assert sums == approx((rises * weights[:, None]).sum(axis=2), rel=1e-12)
    assert means == approx((rises * share[:, :, None]).sum(axis=1), rel=1e-12)


@pytest.mark.parametrize("n_nodes", [1, 7, 160])
def test_masses_are_those_of_many_digits(n_nodes, rng):
    """The prior of sizes, and the Beta integral over probabilities, of members with and without data and measure."""
    measure = np.array([0.0, 0.0, 1.0, 1.0, 0.0])
    cells = np.stack(
        [np.where(measure, 1.0, rng.uniform(0.5, 1, 5)), measure, *rng.exponential(50.0, size=(2, 5))], axis=1
    )
    cells[0, 2:] = 0.0
    weight, unit = rng.uniform(1.5, 3.0, size=(2, 5))
    t = rng.uniform(-6, 6, size=(5, n_nodes))
    total = np.zeros(t.shape)
    _rises.add_masses(t, np.exp(t), cells, weight, unit, total)

    @np.vectorize
    def log_beta(a, b):
        return mpmath.loggamma(a) + mpmath.loggamma(b) - mpmath.loggamma(a + b)

    with mpmath.workdps(30):
        exact = np.vectorize(mpmath.mpf)
        (share, measure, number, counts), a = exact(cells.T)[:, :, None], exact(weight)[:, None]
        r = np.vectorize(mpmath.exp)(exact(t))
        b = 1 + a * r / exact(unit)[:, None]
        prior = exact(t) - 2 * np.vectorize(mpmath.log)(1 + r) - log_beta(a, b)
        of_p = log_beta(share * a + counts - measure, share * b + number * r - measure)
        wanted = (share * prior - measure * exact(t) + of_p).astype(float)
    assert total == approx(wanted, rel=1e-13, abs=1e-12)


def test_rises_have_their_digits():
    """To 1e-13 relative against many digits, sizes to 1e12 and counts to 1e9."""
    sizes, counts = 10.0 ** np.arange(-6.0, 13.0), np.array([65.5, 1e3, 1e6, 1e9])
    sums = np.empty((len(counts), len(sizes)))
    _rises.weighted_sums(np.tile(sizes, (len(counts), 1)), counts, 0, np.eye(len(counts)), sums)
    with mpmath.workdps(60):
        exact = [
            [float(mpmath.loggamma(mpmath.mpf(y) + r) - mpmath.loggamma(mpmath.mpf(r))) for r in sizes] for y in counts
        ]
    assert sums == approx(np.array(exact), rel=1e-13, abs=1e-11)
