"""Messages and counts of families that cross clusters, against sums over all joint states."""

from itertools import product

import numpy as np
import pytest

from skvbem._kernels._messages import add_counts, add_message, add_products, divide, read, write

approx = pytest.approx


def marginals_of(rng, sizes, n_lanes, n_rows):
    """Distributions, (n_lanes, size, n_rows) each."""
    return [np.ascontiguousarray(rng.dirichlet(np.ones(s), (n_lanes, n_rows)).transpose(0, 2, 1)) for s in sizes]


@pytest.mark.parametrize("sizes", [(), (3,), (4,), (2, 3), (2, 3, 2)])
@pytest.mark.parametrize("n_rows", [0, 5, 300])
def test_messages_are_means_of_tables(sizes, n_rows, rng):
    n_to, n_codes, n_lanes = 3, 4, 2
    table = rng.normal(size=(n_lanes, n_to, int(np.prod(sizes)), n_codes))
    code = rng.integers(n_codes, size=n_rows).astype(np.int32)
    others = marginals_of(rng, sizes, n_lanes, n_rows)
    before = rng.normal(size=(n_lanes, n_to, n_rows))
    message, alone = before.copy(), before.copy()
    add_message(table, code, others, message, True)
    add_message(table, code, others, alone, False)
    expected = np.zeros_like(before)
    for rest, states in enumerate(product(*map(range, sizes))):
        p = np.ones((n_lanes, n_rows))
        for marginal, state in zip(others, states):
            p *= marginal[:, state]
        expected += table[:, :, rest][..., code] * p[:, None]
    assert message == approx(before + expected, abs=1e-12)
    assert alone == approx(expected, abs=1e-12)


@pytest.mark.parametrize("n_rows", [0, 5, 300])
def test_counts_are_products_of_marginals(n_rows, rng):
    sizes, n_codes, n_lanes = (2, 3, 2), 3, 2
    code = rng.integers(n_codes, size=n_rows).astype(np.int32)
    weight, marginals = rng.uniform(size=n_rows), marginals_of(rng, sizes, n_lanes, n_rows)
    counts = np.ones((n_lanes, 12, n_codes))
    add_counts(code, weight, marginals, counts)
    expected = np.ones_like(counts)
    for cell, states in enumerate(product(*map(range, sizes))):
        p = np.prod([marginal[:, state] for marginal, state in zip(marginals, states)], axis=0) * weight
        for k in range(n_codes):
            expected[:, cell, k] += p.reshape(n_lanes, n_rows)[:, code == k].sum(axis=1)
    assert counts == approx(expected, abs=1e-12)


@pytest.mark.parametrize("n_rows", [6, 300])
def test_distributions_are_kept_times_weights(n_rows, rng):
    (marginal,), weight = marginals_of(rng, (3,), 2, n_rows), rng.uniform(1.0, 4.0, size=n_rows)
    state = np.zeros((3, n_rows + 3, 2))
    write(marginal, weight, 2, state)
    assert state[:, 2 : n_rows + 2] == approx((marginal * weight).transpose(1, 2, 0), abs=1e-15)
    assert not state[:, :2].any()
    assert not state[:, n_rows + 2 :].any()
    found = np.empty_like(marginal)
    read(state, 2, weight, 0.0, found)
    assert found == approx(marginal, abs=1e-15)
    state[0, 2] = 0.0
    read(state, 2, weight, 1e-3, found)
    assert found.sum(axis=1) == approx(np.ones((2, n_rows)), abs=1e-12)
    assert np.all(found[:, 0, 0] > 0.9e-3)


@pytest.mark.parametrize("n_rows", [0, 5, 300])
def test_counts_are_divided_and_products_summed(n_rows, rng):
    weight, counts, other = rng.uniform(1.0, 4.0, n_rows), rng.random((2, 3, n_rows)), rng.random((2, 3, n_rows))
    shares, total = counts.copy(), np.ones((2, n_rows))
    divide(weight, shares)
    assert shares == approx(counts / weight, rel=1e-14)
    add_products(shares, other, total)
    assert total == approx(1.0 + (shares * other).sum(axis=1), rel=1e-14)
