"""Labelings too many for permanents: weights h that average to one over all of them, wherever theta lies."""

from collections import Counter
from itertools import permutations

import numpy as np
import pytest

from skvbem.models.relabelings import SequentialRelabelings

approx = pytest.approx
N_STATES = 4
CELLS = np.arange(3 * N_STATES).reshape(3, N_STATES).T


def setting(rng):
    """Counts with two states alike and one empty, and ln of points."""
    statistics = rng.gamma(1.0, 2.0, size=CELLS.size)
    statistics[CELLS[2]] = statistics[CELLS[0]]
    statistics[CELLS[3]] = 0.0
    log_points = np.log(rng.dirichlet(np.ones(CELLS.size), size=5).T)
    return statistics, log_points


def relabeled(log_points, permutation):
    moved = log_points.copy()
    moved[CELLS] = log_points[CELLS[list(permutation)]]
    return moved


def test_weights_average_to_one(rng):
    statistics, log_points = setting(rng)
    relabelings = SequentialRelabelings(CELLS)
    moved = [relabeled(log_points, g) for g in permutations(range(N_STATES))]
    weights = [np.exp(relabelings.correction(statistics, points)) for points in moved]
    assert np.mean(weights, axis=0) == approx(np.ones(5), rel=1e-12)


def test_draws_follow_the_weights(rng):
    """Frequencies of 4 000 draws within four standard errors."""
    statistics, log_points = setting(rng)
    statistics, point = 0.3 * statistics, log_points[:, :1]
    relabelings, n = SequentialRelabelings(CELLS), 4000
    found = Counter(tuple(relabelings.draw(statistics, point[:, 0], rng)) for _ in range(n))
    for g in permutations(range(N_STATES)):
        moved = relabeled(point, g)
        p = float(np.exp(relabelings.correction(statistics, moved))[0]) / relabelings.n
        assert found[tuple(moved[:, 0])] / n == approx(p, abs=4 * np.sqrt(p * (1 - p) / n) + 1e-12)


def test_no_weight_is_zero_where_states_of_the_anchor_are_empty(rng):
    """Twenty states of which fifteen are empty: their labels are a coin toss of 1 in 15!, and the weight says so."""
    cells = np.arange(60).reshape(3, 20).T
    statistics = np.zeros(60)
    for k in range(5):
        statistics[cells[k]] = rng.dirichlet(np.full(3, 0.1)) * 50_000
    sharp = np.where(statistics.reshape(3, 20).T.sum(axis=1) > 0, 1.0, 1e-3)
    log_point = np.log((statistics.reshape(3, 20) + sharp) / 60_000).ravel()[:, None]
    found = SequentialRelabelings(cells).correction(statistics, log_point)
    expected = np.log(np.arange(16.0, 21.0)).sum()  # 20! / 15!
    assert found[0] == approx(expected, rel=1e-12)
