"""Labeled rows that grow: rows of mixtures, and time steps of sequences."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skvbem.models.labels.model import LabelModel


@dataclass(frozen=True, eq=False)
class RowPortions:
    """Portions of independent rows; see `skvbem.capabilities.Portions`.

    Parameters
    ----------
    model : LabelModel
    """

    model: LabelModel

    def order(self, data: Any, rng: np.random.Generator) -> np.ndarray:
        """All rows in an order drawn at random, (n_units,): each as often as it counts, wherever it stands."""
        rows = data.for_draws(self.model.emission)
        return rng.permutation(np.repeat(np.arange(len(rows)), rows.weight.astype(np.int64)))

    def portion(self, data: Any, order: np.ndarray, n_units: int) -> Any:
        """The first of so many rows in an order, distinct ones with weights."""
        data = data.for_draws(self.model.emission)
        weight = np.bincount(order[:n_units], minlength=len(data)).astype(float)
        rows = np.flatnonzero(weight)
        return replace(data, table=data.table[rows], weight=weight[rows], total_weight=float(n_units), row_hashes=None)

    def known(self, data: Any) -> np.ndarray:
        """Nothing, (n_cells,): every row has a label."""
        return np.zeros(self.model.n_cells)


@dataclass(frozen=True, eq=False)
class StepPortions(RowPortions):
    """Portions of sequences, one after another, the last of them not to its end."""

    def order(self, data: Any, rng: np.random.Generator) -> np.ndarray:
        """Time steps of all sequences, which come in an order drawn at random, (n_units,)."""
        sequences = data.for_draws(self.model.emission)
        starts, ends = sequences.starts[:-1], sequences.ends
        return np.concatenate([np.arange(starts[k], ends[k]) for k in rng.permutation(len(ends))])

    def portion(self, data: Any, order: np.ndarray, n_units: int) -> Any:
        """The first of so many time steps in an order."""
        sequences, steps = data.for_draws(self.model.emission), order[:n_units]
        first = np.flatnonzero(np.isin(steps, sequences.starts[:-1]))
        starts = np.append(first, n_units).astype(np.int64)
        return replace(
            sequences,
            table=sequences.table[steps],
            starts=starts,
            ends=starts[1:],
            weight=np.ones(len(first)),
            total_weight=float(n_units),
            row_hashes=None,
        )
