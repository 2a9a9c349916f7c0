"""Use of hidden states: in use, empty, duplicates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Self

import numpy as np
from scipy.special import xlogy

# States that differ by less in every row of every child's table are called duplicates (total variation). For components
# of a mixture a symmetric divergence says so: below 4 x 0.05^2 nats it holds the total variation below 0.05 [Pinsker].
MAX_VARIATION_OF_DUPLICATES = 0.05


_MAX_DIVERGENCE_OF_DUPLICATES = 4 * MAX_VARIATION_OF_DUPLICATES**2


@dataclass(frozen=True, eq=False)
class LatentStates:
    """The use of a latent's states, or of a mixture's components.

    Parameters
    ----------
    mass : ndarray of shape (n_states,)
        Expected number of rows in each state.
    in_use : tuple of int
        States that at least one row's worth of data is in.
    empty : tuple of int
        The others: the data do not need them.
    duplicates : tuple of (int, int)
        Pairs of states in use that no child tells apart by more than 0.05 in total variation. Pairs of components whose
        symmetric divergence, over the rows as they share them, is below 0.01 nats a row.
    """

    mass: np.ndarray
    in_use: tuple[int, ...]
    empty: tuple[int, ...]
    duplicates: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, mass: np.ndarray, alike: Callable[[int, int], bool]) -> Self:
        """The use of states of a mass, which of them are alike asked of pairs in use."""
        in_use = tuple(np.flatnonzero(mass >= 1.0).tolist())
        empty = tuple(np.flatnonzero(mass < 1.0).tolist())
        return cls(mass, in_use, empty, tuple((a, b) for a, b in combinations(in_use, 2) if alike(a, b)))

    @property
    def effective(self) -> float:
        """Effective number of states: exp of the entropy of the shares of the mass."""
        fractions = self.mass / self.mass.sum()
        return float(np.exp(-xlogy(fractions, fractions).sum()))


def states_of_components(counts: np.ndarray, divergence: np.ndarray) -> LatentStates:
    """The components of a mixture that are in use, empty, or duplicates by their symmetric divergence in nats a row."""
    return LatentStates.of(counts, lambda a, b: bool(divergence[a, b] < _MAX_DIVERGENCE_OF_DUPLICATES))
