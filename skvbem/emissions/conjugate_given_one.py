"""Emissions whose parameters are conjugate given one number of each column, with two sums of the data: their cells.

The priors are of `skvbem.families.one_dimensional`, whose cells are prior, measure, rows and the two sums.
"""

from __future__ import annotations

import numpy as np

from skvbem.emissions.linear import LinearEmission


class ConjugateGivenOne(LinearEmission):
    """Supplies all but features, which are rows (one for all columns where nothing is missing) and the two sums."""

    @property
    def cells_per_component(self) -> int:
        """Of each column those of the prior, rows, and two sums."""
        return 5 * self.n_columns

    def fold(self, natural: np.ndarray, complete: bool) -> np.ndarray:
        """What multiplies 1 and what is summed; cells of the prior multiply nothing."""
        _, _, one, first, second = np.split(natural, 5, axis=-1)
        return np.concatenate([one.sum(axis=-1, keepdims=True) if complete else one, first, second], axis=-1)

    def unfold(self, sums: np.ndarray, complete: bool) -> np.ndarray:
        """Nothing is added to the cells of the prior."""
        d = self.n_columns
        rows = np.broadcast_to(sums[..., : -2 * d], (*sums.shape[:-1], d))
        return np.concatenate([np.zeros((*sums.shape[:-1], 2 * d)), rows, sums[..., -2 * d :]], axis=-1)
