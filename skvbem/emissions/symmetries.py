"""Changes of what a row hides that nothing tells: cells that change places and signs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class SignedPermutations(NamedTuple):
    """A group of changes of the cells of one component, the first of which leaves all as it is.

    Parameters
    ----------
    cells : ndarray of int, shape (n, n_own)
        The cell that takes each cell's place.
    signs : ndarray of shape (n, n_own)
        1 or -1, what it is multiplied by there.
    """

    cells: np.ndarray
    signs: np.ndarray

    def __call__(self, cells: np.ndarray) -> np.ndarray:
        """Every change of the cells (n_own, ...) of a component, (n, n_own, ...)."""
        return self.signs.reshape(*self.signs.shape, *(1 for _ in cells.shape[1:])) * cells[self.cells]


def nothing_changed(n_own: int) -> SignedPermutations:
    """The change that leaves all as it is, alone."""
    return SignedPermutations(np.arange(n_own)[None], np.ones((1, n_own)))


def combined(parts: Sequence[SignedPermutations]) -> SignedPermutations:
    """All changes of cells that stand one after the other, of parts whose changes do not ask each other."""
    whole = nothing_changed(0)
    for part in parts:
        n, m, n_own = len(whole.cells), len(part.cells), whole.cells.shape[1]
        cells = [np.repeat(whole.cells, m, axis=0), n_own + np.tile(part.cells, (n, 1))]
        signs = [np.repeat(whole.signs, m, axis=0), np.tile(part.signs, (n, 1))]
        whole = SignedPermutations(np.concatenate(cells, axis=1), np.concatenate(signs, axis=1))
    return whole
