"""Sequences of measurements that grow by observed time steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skvbem.models.linear_dynamical_system.data import LDSData
from skvbem.models.linear_dynamical_system.model import LinearDynamicalSystem


@dataclass(frozen=True, eq=False)
class ObservedStepPortions:
    """Portions of sequences, one after another, the last of them not to its end; see `skvbem.capabilities.Portions`.

    Units are steps with an observed cell. A step without any comes with the next unit after it.

    Parameters
    ----------
    model : LinearDynamicalSystem
    """

    model: LinearDynamicalSystem

    def order(self, data: LDSData, rng: np.random.Generator) -> np.ndarray:
        """Rows with an observed cell of all sequences, which come in an order drawn at random, (n_units,)."""
        drawn = data.one_by_one
        observed = np.asarray(drawn.patterns.any(axis=1))[drawn.pattern]
        rows = [np.arange(drawn.starts[n], drawn.ends[n]) for n in rng.permutation(drawn.n_sequences)]
        return np.concatenate([each[observed[each]] for each in rows])

    def portion(self, data: LDSData, order: np.ndarray, n_units: int) -> LDSData:
        """The first of so many units in an order."""
        drawn, last = data.one_by_one, order[:n_units]
        sequence = np.searchsorted(drawn.ends, last, side="right")
        seen, position = np.unique(sequence, return_index=True)
        seen = seen[np.argsort(position)]
        ends = [int(last[sequence == n].max()) + 1 for n in seen]
        return drawn.until(seen, np.array(ends, dtype=np.int64))

    def known(self, data: LDSData) -> np.ndarray:
        """Nothing, (n_cells,): every row has a state."""
        return np.zeros(self.model.n_cells)
