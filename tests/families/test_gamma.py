"""Gamma distributions against SciPy, many digits and quadrature."""

import mpmath
import numpy as np
import pytest
from scipy import integrate, stats

from skvbem.errors import NoInteriorModeError
from skvbem.families import Gamma

approx = pytest.approx
SIZES = 10.0 ** np.arange(-6, 13, 2)


def log_evidence(a, b, n, t):
    """A(a + n, b + t) - A(a, b)."""
    return mpmath.loggamma(a + n) - mpmath.loggamma(a) - (a + n) * mpmath.log(b + t) + a * mpmath.log(b)


def kl_of_posterior(a, b, n, t):
    natural = mpmath.digamma(a + n) - mpmath.log(b + t)
    return n * natural - t * (a + n) / (b + t) - log_evidence(a, b, n, t)


@pytest.mark.parametrize("shape", SIZES)
@pytest.mark.parametrize("rate", SIZES)
def test_evidence_and_kl_keep_their_digits(shape, rate):
    """Relative to the terms that each is a sum of."""
    for n, t in ((1.0, 0.3), (0.0, 5.0), (3.0, 1e-3), (1e6, 2e7), (1e9, 4.0)):
        prior = Gamma.from_parameters([[shape]], [[rate]])
        u = np.array([n, t])
        with mpmath.workdps(60):
            given = [mpmath.mpf(float(x)) for x in (shape, rate, n, t)]
            exact, kl = float(log_evidence(*given)), float(kl_of_posterior(*given))
        terms = n * (abs(np.log(rate)) + abs(np.log(shape + n)) + abs(np.log(rate + t)))
        terms += (shape + n) * np.log1p(t / rate) + (shape if n else 0) * np.log1p(n / shape)
        assert float(prior.log_evidence(u)) == approx(exact, rel=1e-12, abs=1e-15 * terms)
        natural = n * 40 + t * (shape + n) / (rate + t)
        assert float((prior + u).kl(prior)) == approx(kl, rel=1e-9, abs=4e-16 * (terms + natural))


def test_density_is_scipys(rng):
    block = Gamma.from_parameters(10.0 ** rng.uniform(-1, 2, (3, 2)), 10.0 ** rng.uniform(-2, 2, (3, 2)))
    point = block.sample(rng)
    oracle = stats.gamma(block.shape, scale=1 / block.rate).logpdf(point).sum()
    assert float(block.log_density(point, "probability")) == approx(oracle)
    assert float(block.log_density(point)) == approx(oracle + np.log(point).sum())
    assert block.mean == approx(stats.gamma(block.shape, scale=1 / block.rate).mean())


def test_evidence_of_counts_and_times_is_the_integral(rng):
    """Three counts, and three waiting times, under the same prior."""
    for _ in range(3):
        a, b = rng.uniform(0.5, 4, size=2)
        counts, times = rng.poisson(2, size=3), rng.exponential(1, size=3)
        prior = Gamma.from_parameters([[a]], [[b]])
        density = stats.gamma(a, scale=1 / b).pdf
        exact = integrate.quad(lambda r: density(r) * stats.poisson(r).pmf(counts).prod(), 0, np.inf)[0]  # noqa: B023
        found = prior.log_evidence(np.array([counts.sum(), 3.0])) + stats.poisson(1).logpmf(counts).sum() + 3
        assert float(found) == approx(np.log(exact), rel=1e-6)
        exact = integrate.quad(lambda r: density(r) * stats.expon(scale=1 / r).pdf(times).prod(), 0, np.inf)[0]  # noqa: B023
        assert float(prior.log_evidence(np.array([3.0, times.sum()]))) == approx(np.log(exact), rel=1e-6)


def test_modes_of_both_bases():
    block = Gamma.from_parameters([[3.0, 5.0]], [[2.0, 1.0]])
    assert block.mode().tolist() == [[1.5, 5.0]]
    assert block.mode("probability").tolist() == [[1.0, 4.0]]
    with pytest.raises(NoInteriorModeError, match=r"Gamma distribution with a shape of 0\.5 .* more than 1"):
        Gamma.from_parameters([[0.5]], [[2.0]]).mode("probability")


def test_most_likely_rates_stay_numbers():
    block = Gamma.from_parameters(np.ones((4, 1)), np.ones((4, 1)))
    u = Gamma.from_parameters([[6.0], [0.0], [0.0], [3.0]], [[2.0], [5.0], [0.0], [0.0]]).coordinates
    assert block.most_likely(u)[:, 0].tolist() == [3.0, 1e-300, 1.0, 1e12]
    assert np.isfinite(block.natural(block.most_likely(u))).all()
