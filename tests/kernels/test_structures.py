"""Structures and tables drawn, against the same draws by NumPy from the same streams."""

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp, softmax

from skvbem._kernels._random import gammas, uniforms
from skvbem._kernels._structures import draw_structures, draw_tables, family_scores


@pytest.mark.parametrize("n_tabled", [1, 4, 50])
def test_scores_of_families(n_tabled, rng):
    """Rows of two and three cells, in three families, and counts beyond the table."""
    starts, first_row = np.array([0, 2, 5, 8, 10, 12]), np.array([0, 1, 3, 5])
    prior, counts = rng.choice([0.5, 1.0, 40.0], size=12), rng.poisson(4.0, size=(12, 9)).astype(float)
    concentrations = np.concatenate([prior, np.add.reduceat(prior, starts[:-1])])
    distinct, tabled = np.unique(concentrations, return_inverse=True)
    table = gammaln(distinct[:, None] + np.arange(n_tabled)) - gammaln(distinct[:, None])
    scores = np.empty((3, 9))
    family_scores(first_row, starts, concentrations, tabled, table, counts, scores)
    both = np.concatenate([counts, np.add.reduceat(counts, starts[:-1], axis=0)])
    terms = gammaln(concentrations[:, None] + both) - gammaln(concentrations[:, None])
    rows = np.add.reduceat(terms[:12], starts[:-1], axis=0) - terms[12:]
    np.testing.assert_allclose(scores, np.add.reduceat(rows, first_row[:-1], axis=0), rtol=1e-11)


@pytest.mark.parametrize("n_lanes", [1, 3, 8, 13])
@pytest.mark.parametrize("n_structures", [1, 2, 7, 40])
def test_structures(n_structures, n_lanes, rng):
    family, log_prior = rng.integers(0, 5, size=(n_structures, 3)), rng.normal(size=n_structures)
    scores, total = 3 * rng.normal(size=(5, n_lanes)) - 900, rng.random((n_structures, n_lanes))
    streams, drawn = rng.integers(0, 2**64, size=(4, n_lanes), dtype=np.uint64), np.empty(n_lanes, dtype=np.int64)
    uniform, before = np.empty((1, n_lanes)), total.copy()
    uniforms(streams.copy(), uniform)
    draw_structures(family, log_prior, scores, streams, total, drawn)
    shares = softmax(log_prior[:, None] + scores[family].sum(axis=1), axis=0)
    np.testing.assert_allclose(total - before, shares, rtol=1e-10, atol=1e-14)
    assert drawn.tolist() == (np.cumsum(shares, axis=0)[:-1] < uniform).sum(axis=0).tolist()


def test_tables(rng):
    """A node of two states and one of three, which has none, one or both of two binary parents."""
    sizes, first_cell = [2, 3, 6, 6, 12], np.array([0, 2, 5, 11, 17, 29])
    maps = [np.arange(2), np.tile(np.arange(3), 4), np.repeat(np.arange(6).reshape(2, 3), 2, axis=0).ravel()]
    maps += [np.tile(np.arange(6), 2), np.arange(12)]
    family, n_lanes = np.array([[0, 1], [0, 2], [0, 3], [0, 4]]), 8
    drawn, prior = rng.integers(0, 4, size=n_lanes), rng.uniform(0.1, 3, size=29)
    counts, log_point = rng.poisson(2.0, size=(29, n_lanes)).astype(float), np.empty((14, n_lanes))
    streams = rng.integers(0, 2**64, size=(4, n_lanes), dtype=np.uint64)
    again = streams.copy()
    starts = np.cumsum([0, *map(len, maps)])
    draw_tables(
        first_cell,
        np.array([0, 2, 14]),
        starts,
        np.concatenate(maps),
        np.array([2, 3]),
        family,
        drawn,
        prior,
        counts,
        streams,
        log_point,
    )
    for lane, structure in enumerate(drawn):
        mine = np.concatenate([np.arange(first_cell[f], first_cell[f] + sizes[f]) for f in family[structure]])
        stream, variates = again[:, [lane]].copy(), np.empty((len(mine), 1))
        gammas((prior[mine] + counts[mine, lane])[:, None], stream, variates)
        assert (stream[:, 0] == streams[:, lane]).all()
        rows = [variates[:2, 0][None], variates[2:, 0].reshape(-1, 3)]
        tables = [(np.log(each) - logsumexp(np.log(each), axis=1, keepdims=True)).ravel() for each in rows]
        expected = np.concatenate([tables[0], tables[1][maps[family[structure, 1]]]])
        np.testing.assert_allclose(log_point[:, lane], expected, rtol=1e-12)
