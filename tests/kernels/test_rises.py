"""Rising factorials at knots of counts, against NumPy and mpmath."""

import mpmath
import numpy as np
import pytest
from scipy.special import gammaln, psi

from skvbem._kernels import _rises
from skvbem._numerics import log_rising
from skvbem.families import SizeProbability
from skvbem.families.one_dimensional.base import OneDimensional
from skvbem.families.one_dimensional.size_probability import digamma_rise

approx = pytest.approx


@pytest.mark.parametrize("n_nodes", [1, 2, 7, 8, 9, 40])
@pytest.mark.parametrize("n_small", [0, 3, 11])
def test_sums_are_those_of_numpy(n_nodes, n_small, rng):
    """Sizes on both sides of where differences are taken from their series."""
    knots = np.concatenate([np.arange(1.0, n_small + 1), 70 + rng.uniform(0, 1e4, size=4)])
    r = 10.0 ** rng.uniform(-4, 9, size=(3, n_nodes))
    weights = rng.exponential(size=(3, len(knots))) * (rng.random((3, len(knots))) < 0.7)
    sums = np.empty(r.shape)
    _rises.weighted_sums(r, knots, n_small, weights, sums)
    assert sums == approx((log_rising(r[:, :, None], knots) * weights[:, None]).sum(axis=2), rel=1e-12)


def posterior_of_counts(rng, n_rows, weight):
    """The posterior of counts (n_rows,) in each of six components, of sizes from 1 / 30 to 30."""
    sizes = 10.0 ** rng.uniform(-1.5, 1.5, size=6)
    knots = np.append(np.arange(1.0, 65), 97.5)
    counts = rng.poisson(rng.gamma(sizes[:, None], 8.0 / sizes[:, None], size=(6, n_rows)))
    counts = np.minimum(counts, 64)
    cells = np.zeros((6, 4 + len(knots), 1))
    cells[:, 2, 0], cells[:, 3, 0] = n_rows, counts.sum(axis=1)
    for k, knot in enumerate(knots[:64], 4):
        cells[:, k, 0] = (counts == knot).sum(axis=1)
    return SizeProbability.from_parameters(6, [8.0], [weight], knots) + cells.ravel()


@pytest.mark.parametrize("n_rows", [0, 1, 3, 40, 5000])
@pytest.mark.parametrize("weight", [1.0, 2.5, 40.0])
def test_integrals_are_those_of_a_function_in_python(n_rows, weight, rng):
    """Of narrow, wide and searched integrals; guesses may be far away. Panels take the place of sums over knots."""
    family = posterior_of_counts(rng, n_rows, weight)
    members = family._members
    for guess in (np.zeros(6), rng.uniform(-30, 30, size=6)):
        found, wanted = family._integrated(members, guess), OneDimensional._integrated(family, members, guess)
        size = 1 + abs(members.cells).sum()
        assert found.log_total == approx(wanted.log_total, abs=1e-10 + 1e-14 * size, rel=1e-14)
        assert found.t.shape == wanted.t.shape
        assert found.t == approx(wanted.t, abs=1e-5)
        values = family._log_mass(members.of(np.arange(6)), found.t)
        u = np.arcsinh((found.t - found.center[:, None]) / found.scale[:, None])
        wanted = values + np.log(np.cosh(u)) + np.log(found.spacing * found.scale)[:, None] - found.log_total[:, None]
        has_share = found.share > 0
        assert found.share[has_share] == approx(np.exp(wanted)[has_share], abs=1e-11 + 1e-14 * size)


@pytest.mark.parametrize("n_rows", [0, 1, 3, 40, 5000])
@pytest.mark.parametrize("weight", [1.0, 2.5, 40.0])
def test_expected_natural_parameters_are_means_over_nodes(n_rows, weight, rng):
    """Those given the size are derivatives of Beta functions, here by SciPy."""
    family = posterior_of_counts(rng, n_rows, weight)
    nodes, members = family._nodes, family._members
    r, t, cells = np.exp(nodes.t), nodes.t, members.cells[..., None]
    a, b = weight, 1 + weight * r / 8.0
    of_p, of_rest = cells[0] * a + cells[3], cells[0] * b + r * cells[2]
    log_p, log_rest = psi(of_p) - psi(of_p + of_rest), -digamma_rise(of_rest, of_p)
    prior = t - 2 * np.log1p(r) - gammaln(a) + log_rising(b, a) + a * log_p + b * log_rest
    parts = np.stack([prior, -t - log_p - log_rest, r * log_rest, log_p])
    wanted = [*(parts * nodes.share).sum(axis=2)]
    wanted += [(log_rising(r, knot) * nodes.share).sum(axis=1) for knot in family.knots]
    computed = family.expected_natural().reshape(6, -1).T
    assert computed == approx(np.array(wanted), rel=1e-11, abs=1e-11)


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
