"""Components drawn by the kernel of mixtures: how often each, for rows that count once or many times."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from skvbem._kernels import _mixture

approx = pytest.approx
RARE = 1e-4


def streams_of(rng, n_lanes):
    return rng.integers(0, 2**64, size=(4, n_lanes), dtype=np.uint64)


def drawn(log_weights, log_likelihood, weight, streams):
    """Counts (n_lanes, n_components, n_rows) of components drawn, and ln Z."""
    counts, log_z = log_likelihood.copy(), np.zeros(len(log_likelihood))
    _mixture.draw(log_weights, np.asarray(weight, dtype=float), streams, counts, log_z)
    return counts, log_z


def problem_of(rng, n_lanes, n_components, n_rows):
    return rng.normal(size=(n_lanes, n_components)), rng.normal(-5.0, 2.0, (n_lanes, n_components, n_rows))


@pytest.mark.parametrize("weight", [1, 2, 30, 65, 4000])
def test_components_of_a_row_are_multinomial(weight, rng):
    """One by one, or by binomials: the number of each component, over many lanes."""
    log_weights, log_likelihood = problem_of(rng, 1, 3, 2)
    n = 20_000
    many = np.repeat(log_weights, n, axis=0), np.repeat(log_likelihood, n, axis=0)
    counts, log_z = drawn(*many, [weight, 0], streams_of(rng, n))
    joint = (log_weights[:, :, None] + log_likelihood)[0]
    p = np.exp(joint[:, 0] - logsumexp(joint[:, 0]))
    assert log_z == approx(np.full(n, weight * logsumexp(joint[:, 0])), rel=1e-12)
    assert (counts[:, :, 1] == 0).all()
    assert (counts[:, :, 0].sum(axis=1) == weight).all()
    for k in range(3):
        expected = n * stats.binom(weight, p[k]).pmf(np.arange(weight + 1))
        observed = np.bincount(counts[:, k, 0].astype(int), minlength=weight + 1)
        often = expected >= 10
        e, o = (np.append(x[often], x[~often].sum()) for x in (expected, observed))
        assert stats.chi2.sf(((o - e) ** 2 / np.maximum(e, 1e-9))[e >= 10].sum(), max(np.sum(e >= 10) - 1, 1)) > RARE
    pairs = np.cov(counts[:, 0, 0], counts[:, 1, 0])[0, 1]
    assert pairs == approx(-weight * p[0] * p[1], abs=6 * weight * np.sqrt(p[0] * p[1] / n))


def test_draws_depend_on_no_cut_of_rows_and_on_no_other_lane(rng):
    """Blocks of rows one after the other, and lanes alone, draw what all do together, to the bit."""
    log_weights, log_likelihood = problem_of(rng, 5, 4, 700)
    weight, streams = rng.integers(0, 4, 700), streams_of(rng, 5)
    after = streams.copy()
    together, log_z = drawn(log_weights, log_likelihood, weight, after)
    for cuts in ((0, 700), (0, 1, 255, 256, 300, 700)):
        moved = streams.copy()
        parts = [
            drawn(log_weights, np.ascontiguousarray(log_likelihood[:, :, a:b]), weight[a:b], moved)[0]
            for a, b in pairwise(cuts)
        ]
        assert np.array_equal(np.concatenate(parts, axis=2), together)
        assert np.array_equal(moved, after)
    for lane in range(5):
        alone = streams[:, [lane]].copy()
        one, of_one = drawn(log_weights[[lane]], log_likelihood[[lane]], weight, alone)
        assert np.array_equal(one[0], together[lane])
        assert of_one[0] == log_z[lane]


def test_rows_that_no_component_can_make_are_in_the_last_one(rng):
    log_likelihood = np.full((1, 3, 2), -np.inf)
    log_likelihood[0, 1, 0] = -2000.0
    counts, log_z = drawn(np.zeros((1, 3)), log_likelihood, [1, 1], streams_of(rng, 1))
    assert counts[0].T.tolist() == [[0, 1, 0], [0, 0, 1]]
    assert log_z[0] == -np.inf
