"""Searches among partitions, in which each row is of one component: changed, and improved by transfers, by turns.

A partition is judged by the evidence of rows and labels, in closed form. Where transfers are a compiled loop, hundreds
of partitions cost what a few steps of all responsibilities cost, and so a search goes further from an optimum than a
single change of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from skvbem.emissions.base import from_outside
from skvbem.models.labels.distinct_rows import DistinctRows

# Changes in turn of each search.
_N_CHANGES = 4


class Partitions:
    """Partitions of distinct rows among components, and transfers of single rows between these.

    Parameters
    ----------
    emission : Emission
        Of rows without labels.
    blocks : sequence of Table
        The rows.
    rows : DistinctRows
    prior : ConjugateFamily
        Of the emission, its hyperparameters known.
    n_components, n_levels : int
        Components, and how many of them labels name: these keep their places, and rows with a label their label.
    """

    def __init__(
        self, emission: Any, blocks: Sequence[Any], rows: DistinctRows, prior: Any, n_components: int, n_levels: int
    ):
        self.emission, self.blocks, self.rows, self.prior = emission, blocks, rows, prior
        self.n_components, self.n_levels = n_components, n_levels
        free = np.flatnonzero(~rows.is_labeled)
        self.order = free[np.argsort(rows.hashes[free], kind="stable")]

    def transferred(self, labels: np.ndarray) -> tuple[np.ndarray, float] | None:
        """Labels that no transfer makes more probable, and their evidence; None where no swift way finds them."""
        if from_outside(self.emission):
            return None
        return self.emission.transferred(self.blocks, self.rows.weight, self.prior, self.order, labels)

    def searched(
        self, labels: np.ndarray, pairs: Sequence[tuple[int, int]], n: int, rng: np.random.Generator
    ) -> list[np.ndarray]:
        """Labels that so many searches lead to, each begun at the labels given; none where transfers are not swift.

        The first change of a search is kept, the others if they raise the evidence.

        Parameters
        ----------
        labels : ndarray of int, shape (n_rows,)
        pairs : sequence of tuple of int
            Components that make room at first, and those that they are joined into.
        n : int
        rng : numpy.random.Generator
        """
        partitions: list[np.ndarray] = []
        for _ in range(n):
            best = self.transferred(self._changed(labels, *pairs[int(rng.integers(len(pairs)))], rng))
            if best is None:
                break
            for _ in range(_N_CHANGES - 1):
                other = self.transferred(self._changed(best[0], *self._any_pair(rng), rng))
                if other is not None and other[1] > best[1]:
                    best = other
            partitions.append(best[0])
        return partitions

    def _any_pair(self, rng: np.random.Generator) -> tuple[int, int]:
        gone = int(rng.integers(self.n_levels, self.n_components))
        return gone, (gone + int(rng.integers(1, self.n_components))) % self.n_components

    def _changed(self, labels: np.ndarray, gone: int, into: int, rng: np.random.Generator) -> np.ndarray:
        """Labels where a component is joined into another, and rows near one, of all or of its own, have its place."""
        labels = np.where(labels == gone, into, labels)
        near, row = self.rows.near_one(1, max(len(self.rows) // 4, 2), rng)
        if rng.random() < 0.5:
            near = near & (labels == labels[row])
        labels[near & ~self.rows.is_labeled] = gone
        return labels
