"""Rows shared out to components at random: all of them, those of a few components, or those that two fits disagree on.

What is drawn for a row hangs on its value alone, so that it is the same for any order of rows. Components of rows drawn
at random are all alike at first, and what little they differ by grows: distances between rows take no part in it, which
mislead where components are long, thin or crossed.
"""

from __future__ import annotations

import numpy as np
from scipy.special import xlogy

from skvbem.models.labels.distinct_rows import DistinctRows, draws

# Components among which rows are shared out anew at most.
_MAX_SUBSET = 3


def overlap(rows: DistinctRows, expected_rows: np.ndarray) -> float:
    """How much components overlap: the mean entropy of the component of a row, nats."""
    share = expected_rows / rows.weight
    return float(-xlogy(share, share).sum(axis=0) @ rows.weight / rows.weight.sum())


def _fractions(rows: DistinctRows, seeds: np.ndarray) -> np.ndarray:
    """Shares of rows drawn by seeds (n_components, 1), adding up to 1: (n_components, n_rows)."""
    drawn = draws(rows.hashes, seeds) ** 2  # squares, so that most of a row goes to one component
    return drawn / drawn.sum(axis=0)


def shared_anew(rows: DistinctRows, n_components: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """Expected rows of components that know nothing of each other, (n, n_components, n_rows)."""
    shared = np.empty((n, n_components, len(rows.weight)))
    for each in shared:
        seeds = rng.integers(2**63, size=(n_components, 1), dtype=np.uint64)
        np.multiply(_fractions(rows, seeds), rows.weight, out=each)
    return shared


def shared_among_some(rows: DistinctRows, expected_rows: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Expected rows (n, n_components, n_rows) where two or three components share out anew what they have together."""
    n_components = len(expected_rows)
    shared = np.repeat(expected_rows[None], n, axis=0)
    for each in shared:
        subset = rng.permutation(n_components)[: rng.integers(2, _MAX_SUBSET + 1)]
        seeds = rng.integers(2**63, size=(len(subset), 1), dtype=np.uint64)
        each[subset] = _fractions(rows, seeds) * expected_rows[subset].sum(axis=0)
    return shared


def crossed(
    rows: DistinctRows, one: np.ndarray, other: np.ndarray, n: int, rng: np.random.Generator, n_levels: int = 0
) -> np.ndarray:
    """Expected rows (n, n_components, n_rows) with some components of another fit, and those of one that lose least.

    The first `n_levels` components are the same in both, and keep their places.
    """
    n_components = len(one)
    children = np.empty((n, *one.shape))
    for child in children:
        n_taken = int(rng.integers(1, n_components))
        which = rng.permutation(n_components)[:n_taken]
        taken = other[which]
        left = one * np.maximum(1.0 - taken.sum(axis=0) / rows.weight, 0.0)
        kept = np.argsort(-left.sum(axis=1), kind="stable")[: n_components - n_taken]
        child[:n_taken], child[n_taken:] = taken, left[kept]
        if n_levels:
            child[:] = one
            child[which] = taken
        total = child.sum(axis=0)
        child *= rows.weight / np.where(total > 0, total, 1.0)
        child[:, total <= 0] = rows.weight[total <= 0] / n_components
    return children
