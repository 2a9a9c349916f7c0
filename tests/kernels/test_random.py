"""Variates of the kernels against SciPy's distributions, and what a stream may depend on: itself."""

import numpy as np
import pytest
from reference.sampling import log_beta_cdf, log_gamma_cdf, xoshiro256pp
from scipy import stats

from skvbem._kernels import _random

approx = pytest.approx
# Of a right generator one such test in ten thousand fails; each has one seed, with which it passes.
RARE = 1e-4


def streams_of(rng, n_lanes):
    return rng.integers(0, 2**64, size=(4, n_lanes), dtype=np.uint64)


def drawn(rng, fill, *arguments, n_draws=25_000, n_lanes=8):
    """Variates of every lane together, (n_draws * n_lanes,)."""
    found = np.empty((n_draws, n_lanes))
    fill(*arguments, streams_of(rng, n_lanes), found)
    return found.ravel()


def check_continuous(found, cdf):
    assert np.isfinite(found).all()
    assert stats.kstest(found, cdf).pvalue > RARE


def check_counts(found, pmf, n):
    """Chi-square over the values 0 ... n, rare ones together."""
    expected = len(found) * pmf(np.arange(n + 1))
    observed = np.bincount(found.astype(int), minlength=n + 1).astype(float)
    assert observed.sum() == len(found)
    assert np.all(observed[expected == 0] == 0)
    order = np.argsort(expected)
    groups = np.minimum(np.cumsum(expected[order]) // 20, 1e9)  # at least 20 expected in each but the last
    e, o = (np.array([x[order][groups == g].sum() for g in np.unique(groups)]) for x in (expected, observed))
    e, o = np.append(e[:-2], e[-2:].sum()), np.append(o[:-2], o[-2:].sum())
    if len(e) > 1:
        assert stats.chi2.sf(((o - e) ** 2 / e).sum(), len(e) - 1) > RARE


# --- streams ----------------------------------------------------------------------------------------------------------


def test_words_are_those_of_xoshiro256pp(rng):
    """Uniform numbers are (k + 1/2) / 2^52 of the upper 52 bits, so that neither 0 nor 1 is among them."""
    streams = streams_of(rng, 3)
    before, found = streams.copy(), np.empty((200, 3))
    _random.uniforms(streams, found)
    for lane in range(3):
        words, state = xoshiro256pp(before[:, lane], 200)
        assert found[:, lane].tolist() == [((word >> 12) + 0.5) / 2**52 for word in words]
        assert streams[:, lane].tolist() == state


def test_the_ends_of_the_unit_interval_are_never_drawn():
    """Words of zeros and of ones: the least and the largest uniform number, which times x stays below x."""
    least, largest = np.zeros((4, 1), dtype=np.uint64), np.zeros((4, 1), dtype=np.uint64)
    largest[0] = 2**64 - 1  # (s0 + s3) rotated + s0
    found = np.empty((1, 1))
    _random.uniforms(least, found)
    assert found[0, 0] == 0.5 / 2**52
    for words in range(1000):
        largest[0] = 2**64 - 1 - words
        largest[3] = 2 * words + 1
        _random.uniforms(largest, found)
        assert 0 < found[0, 0] < 1
        assert found[0, 0] * 3e-7 < 3e-7


@pytest.mark.parametrize("name", ["uniforms", "normals", "log_gammas", "binomials"])
def test_a_lane_depends_on_its_own_stream_alone(name, rng):
    """Alone or among others, at once or in pieces."""
    arguments = {"log_gammas": (0.7,), "binomials": (30.0, 0.4)}.get(name, ())
    streams, together = streams_of(rng, 5), np.empty((40, 5))
    start = streams.copy()
    getattr(_random, name)(*arguments, streams, together)
    for lane in range(5):
        alone, pieces = np.ascontiguousarray(start[:, [lane]]), []
        for n in (1, 25, 14):
            pieces.append(np.empty((n, 1)))
            getattr(_random, name)(*arguments, alone, pieces[-1])
        assert np.array_equal(np.concatenate(pieces)[:, 0], together[:, lane])
        assert np.array_equal(alone[:, 0], streams[:, lane])


def test_streams_are_not_correlated(rng):
    found = np.empty((20_000, 6))
    _random.uniforms(streams_of(rng, 6), found)
    correlations = np.corrcoef(np.hstack([found[:-1], found[1:]]).T)
    off_diagonal = correlations[~np.eye(12, dtype=bool)]
    # a lane and itself one draw later overlap in no draw
    assert np.abs(off_diagonal).max() < 5 / np.sqrt(20_000)


# --- variates ---------------------------------------------------------------------------------------------------------


def test_uniform(rng):
    check_continuous(drawn(rng, _random.uniforms), "uniform")


def test_normal(rng):
    found = drawn(rng, _random.normals, n_draws=200_000)
    check_continuous(found, "norm")
    assert stats.kstest(np.abs(found), "halfnorm").pvalue > RARE
    # the layers of the ziggurat, and the tail beyond them, where an error would hide from the test above
    edges = np.concatenate([np.linspace(0, 3.6, 41), [3.6541528853610088, 4.0, 4.4, np.inf]])
    expected = len(found) * 2 * np.diff(stats.norm.cdf(edges))
    observed = np.histogram(np.abs(found), edges)[0]
    assert stats.chi2.sf(((observed - expected) ** 2 / expected).sum(), len(expected) - 1) > RARE
    assert np.corrcoef(found[:-1], found[1:])[0, 1] == approx(0, abs=4 / np.sqrt(len(found)))


@pytest.mark.parametrize("a", [1e-3, 0.03, 0.3, 0.999, 1.0, 1.001, 2.5, 30.0, 1e4, 1e8])
def test_log_gamma(a, rng):
    found = drawn(rng, _random.log_gammas, a)
    check_continuous(found, lambda x: log_gamma_cdf(x, a))
    if a >= 0.3:
        assert found.mean() == approx(stats.loggamma(a).mean(), abs=4.5 * stats.loggamma(a).std() / np.sqrt(len(found)))


def test_the_log_of_a_gamma_variate_of_almost_no_shape_is_finite(rng):
    for a in (1e-8, 1e-100, 1e-305, 5e-324, 0.0):
        assert np.isfinite(drawn(rng, _random.log_gammas, a, n_draws=100)).all()


@pytest.mark.parametrize(
    ("n", "p"),
    [(1, 0.3), (5, 0.5), (70, 0.01), (70, 0.999), (100, 0.0999), (100, 0.1001), (100, 0.5), (90, 0.81), (10**4, 0.37)],
)
def test_binomial(n, p, rng):
    """Waiting times below ten expected successes, transformed rejection above; p > 1/2 is its mirror image."""
    check_counts(drawn(rng, _random.binomials, float(n), p), stats.binom(n, p).pmf, n)


def test_binomial_of_certain_outcomes(rng):
    for n, p, expected in ((7, 0.0, 0), (7, 1.0, 7), (0, 0.4, 0), (1000, 0.0, 0), (1000, 1.0, 1000)):
        assert np.all(drawn(rng, _random.binomials, float(n), p, n_draws=50) == expected)


# --- many cells -------------------------------------------------------------------------------------------------------


def multinomials(streams, n, p):
    found = p.copy()
    _random.multinomials(float(n), p.sum(axis=0), streams, found)
    return found


@pytest.mark.parametrize("n", [1, 9, 64, 65, 400])
def test_multinomial(n, rng):
    """One by one up to 64 draws, by binomials beyond. Every cell is binomial, and so is every pair of cells."""
    p = np.array([0.2, 0.0, 1.3, 0.05, 0.45])
    found = multinomials(streams_of(rng, 40_000), n, np.repeat(p[:, None], 40_000, axis=1))
    assert np.all(found >= 0)
    assert np.all(found == found.astype(int))
    assert np.all(found.sum(axis=0) == n)
    for cells in ([0], [1], [2], [3], [4], [0, 3], [2, 4], [0, 4]):
        check_counts(found[cells].sum(axis=0), stats.binom(n, min(p[cells].sum() / p.sum(), 1.0)).pmf, n)


@pytest.mark.parametrize("n", [7, 64, 65])
def test_multinomial_with_the_last_or_the_first_cell_impossible(n, rng):
    for p in ([0.3, 0.7, 0.0], [0.0, 0.2, 0.8], [0.0, 1e-290, 0.0], [1.0, 0.0, 0.0]):
        found = multinomials(streams_of(rng, 500), n, np.repeat(np.array(p)[:, None], 500, axis=1))
        assert np.all(found[np.array(p) == 0] == 0)
        assert np.all(found.sum(axis=0) == n)


def test_multinomial_of_one_cell(rng):
    assert np.all(multinomials(streams_of(rng, 4), 12, np.full((1, 4), 0.3)) == 12)


@pytest.mark.parametrize("n", [3, 64, 90])
def test_multinomial_of_a_lane_depends_on_its_own_stream_and_cells_alone(n, rng):
    streams, p = streams_of(rng, 9), rng.random((6, 9))
    start = streams.copy()
    together = multinomials(streams, n, p)
    for lane in range(9):
        alone = np.ascontiguousarray(start[:, [lane]])
        assert np.array_equal(multinomials(alone, n, np.ascontiguousarray(p[:, [lane]]))[:, 0], together[:, lane])
        assert np.array_equal(alone[:, 0], streams[:, lane])


# --- Dirichlet --------------------------------------------------------------------------------------------------------


def log_dirichlets(streams, row_starts, concentration):
    n_lanes = streams.shape[1]
    found = np.empty((len(concentration), n_lanes))
    _random.log_dirichlet(row_starts, np.repeat(concentration[:, None], n_lanes, axis=1), streams, found)
    return found


@pytest.mark.parametrize(
    "a", [(0.001, 0.002, 0.001), (1e-3, 5.0), (0.4, 0.3, 2.0, 7.0), (1.0, 1.0), (300.0, 20.0, 1.0)]
)
def test_log_dirichlet(a, rng):
    """Every ln θ_k is the logarithm of a beta variate, down to e^-10000; rows are independent."""

    def uniform(log_theta, a, b):
        # where θ rounds to 1, anywhere above the θ that does not
        u, near = log_beta_cdf(log_theta, a, b), log_theta > -1e-12
        u[near] = rng.uniform(log_beta_cdf(-1e-12, a, b), 1.0, size=near.sum())
        return u

    a = np.array(a)
    row_starts = np.array([0, 2, 2 + len(a)])
    found = log_dirichlets(streams_of(rng, 50_000), row_starts, np.concatenate([[3.0, 1.5], a]))
    assert np.isfinite(found).all()
    assert np.exp(found[2:]).sum(axis=0) == approx(1.0, rel=1e-12)
    for k in range(len(a)):
        check_continuous(uniform(found[2 + k], a[k], a.sum() - a[k]), "uniform")
    check_continuous(uniform(found[0], 3.0, 1.5), "uniform")
    ranks = stats.spearmanr(found[0], found[2])[0]
    assert ranks == approx(0, abs=4.5 / np.sqrt(50_000))


def test_log_dirichlet_covariance(rng):
    """Of θ itself: -a_i a_j / (A^2 (A + 1))."""
    a = np.array([0.4, 0.3, 2.0])
    theta = np.exp(log_dirichlets(streams_of(rng, 100_000), np.array([0, 3]), a))
    expected = stats.dirichlet(a).cov()
    assert np.cov(theta) == approx(expected, abs=5 * 0.3 / np.sqrt(100_000))


def test_a_row_of_one_cell_is_certain(rng):
    assert np.all(log_dirichlets(streams_of(rng, 5), np.array([0, 1]), np.array([0.2])) == 0)


def test_log_dirichlet_of_a_lane_depends_on_its_own_stream_and_cells_alone(rng):
    row_starts, concentration = np.array([0, 3, 5]), rng.random((5, 7)) * 3
    streams, together = streams_of(rng, 7), np.empty((5, 7))
    start = streams.copy()
    _random.log_dirichlet(row_starts, concentration.copy(), streams, together)
    for lane in range(7):
        alone, found = np.ascontiguousarray(start[:, [lane]]), np.empty((5, 1))
        _random.log_dirichlet(row_starts, np.ascontiguousarray(concentration[:, [lane]]), alone, found)
        assert np.array_equal(found[:, 0], together[:, lane])
        assert np.array_equal(alone[:, 0], streams[:, lane])


@pytest.mark.parametrize("shape", [0.02, 0.7, 1.0, 3.5, 400.0])
def test_gamma_variates_of_a_shape_for_each_lane(shape, rng):
    """As those of one shape for all, and of every shape beside others."""
    shapes = np.repeat([[0.3, shape, 9.0]], 30_000, axis=0)
    found = np.empty(shapes.shape)
    _random.gammas(shapes, streams_of(rng, 3), found)
    check_continuous(found[:, 1], stats.gamma(shape).cdf)
