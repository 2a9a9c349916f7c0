"""Symmetries of hidden variables: cells that change places and signs, and the likelihood stays as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse

from skvbem._lazy import cached_property


class AlikeCells(NamedTuple):
    """Rows of cells that every change of a group changes alike.

    Parameters
    ----------
    n_rows : int
    places : ndarray of int, shape (n, width)
        For each change, the place in its row of the cell that takes each cell's place.
    signs : ndarray of shape (n, width)
        1 or -1, what it is multiplied by there.
    """

    n_rows: int
    places: np.ndarray
    signs: np.ndarray


@dataclass(frozen=True, eq=False)
class SignedPermutations:
    """A group of changes of the cells of one component, the first of which leaves all as it is.

    Parameters
    ----------
    blocks : tuple of AlikeCells
        One after the other.
    """

    blocks: tuple[AlikeCells, ...]

    @property
    def n(self) -> int:
        """Number of changes."""
        return len(self.blocks[0].places)

    @property
    def n_operations(self) -> int:
        """Multiplications that the products of statistics with a point under all changes take."""
        return sum(block.places.size for block in self.blocks)

    @cached_property
    def _chosen(self) -> sparse.csr_array:
        """Signs of the products of two cells of a row that each change adds up, (n, cells of `_products`)."""
        parts = []
        for _, places, signs in self.blocks:
            n, width = places.shape
            columns = (np.arange(width) * width + places).ravel()
            shape, ends = (n, width * width), np.arange(n + 1) * width
            parts.append(sparse.csr_array((signs.ravel(), columns, ends), shape=shape))
        return sparse.csr_array(sparse.hstack(parts))

    def products(self, statistics: np.ndarray, points: np.ndarray) -> np.ndarray:
        """Products of statistics (n_statistics, n_own) with points (n_own, n_points) under each change.

        Returns
        -------
        ndarray of shape (n, n_statistics, n_points)
        """
        parts, first = [], 0
        for n_rows, places, _ in self.blocks:
            width = places.shape[1]
            cells = slice(first, first + n_rows * width)
            left = statistics[:, cells].reshape(len(statistics), n_rows, width)
            right = points[cells].reshape(n_rows, width, points.shape[1])
            pairs = np.tensordot(left, right, axes=(1, 0))
            parts.append(pairs.transpose(1, 2, 0, 3).reshape(width * width, len(statistics) * points.shape[1]))
            first = cells.stop
        return (self._chosen @ np.concatenate(parts)).reshape(self.n, len(statistics), points.shape[1])

    def changed(self, points: np.ndarray, which: np.ndarray) -> np.ndarray:
        """Points (n_own, n_points), each under the change of a number (n_points,)."""
        parts, first = [], 0
        for n_rows, places, signs in self.blocks:
            cells = slice(first, first + n_rows * places.shape[1])
            rows = points[cells].reshape(n_rows, places.shape[1], points.shape[1])
            taken = np.take_along_axis(rows, places[which].T[None], axis=1) * signs[which].T
            parts.append(taken.reshape(cells.stop - first, points.shape[1]))
            first = cells.stop
        return np.concatenate(parts)


def nothing_changed(n_own: int) -> SignedPermutations:
    """The change that leaves all as it is, alone."""
    return SignedPermutations((unchanged(n_own, 1),))


def unchanged(n_cells: int, n: int) -> AlikeCells:
    """Cells that each of n changes leaves as they are."""
    return AlikeCells(n_cells, np.zeros((n, 1), dtype=int), np.ones((n, 1)))


def combined(parts: Sequence[SignedPermutations]) -> SignedPermutations:
    """All changes of cells that stand one after the other, of parts whose changes do not ask each other."""
    blocks: list[AlikeCells] = []
    n = 1
    for part in parts:
        before = [_changed_in_turn(block, 1, part.n) for block in blocks]
        blocks = before + [_changed_in_turn(block, n, 1) for block in part.blocks]
        n *= part.n
    return SignedPermutations(tuple(blocks))


def _changed_in_turn(block: AlikeCells, n_before: int, n_after: int) -> AlikeCells:
    """Cells whose changes each stand n_after times in a row, in a list that is gone through n_before times."""
    places, signs = (np.tile(np.repeat(each, n_after, axis=0), (n_before, 1)) for each in block[1:])
    return AlikeCells(block.n_rows, places, signs)
