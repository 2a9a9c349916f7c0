"""Full steps of a network whose q(x) is a product over clusters: an M step, then one sweep over the clusters.

What is kept of q(x) rides behind the expected counts, as further rows of the statistics: so restarts, races, and
extrapolation go on as ever. An ascent begun anew from uniform clusters at every step would not be one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skvbem.models.ascent import ModelAscent
from skvbem.models.network.model import DiscreteDAG
from skvbem.models.network.structured import StructuredProgram

# Lanes that are swept side by side.
_WIDTH = 16


class StructuredAscent(ModelAscent[DiscreteDAG]):
    """Full steps of one network on rows compiled in clusters, for one form of q(theta).

    Parameters
    ----------
    model : DiscreteDAG
    data : StructuredProgram
    form : Form
    n_threads : int
        Not used: chunks of contexts are swept one after another.
    """

    label = "table row"
    data: StructuredProgram

    def __init__(self, model: DiscreteDAG, data: StructuredProgram, form: Any, n_threads: int = 1):
        super().__init__(model, data, form, n_threads)
        self.signed = np.zeros(1, dtype=bool)

    @property
    def n_cells(self) -> int:
        """Rows of the statistics that are expected counts; those behind them are what is kept of q(x)."""
        return self.model.layout.n_cells

    def with_uniform_clusters(self, counts: np.ndarray) -> np.ndarray:
        """Counts (n_cells, n_lanes), and behind them clusters of which nothing is known."""
        return np.concatenate([counts, self.data.uniform(counts.shape[1])])

    def advance(self, statistics: np.ndarray, n_steps: int) -> np.ndarray:
        """Take full steps in place; see `skvbem.vbem.driver.Ascent`."""
        trace, n_cells = np.empty((n_steps, statistics.shape[1])), self.n_cells
        for step in range(n_steps):
            natural, penalty = self.form.of(self.model.prior, np.ascontiguousarray(statistics[:n_cells]))
            statistics[...], log_normalizer = self._swept(natural, statistics[n_cells:])
            trace[step] = log_normalizer + penalty
        return trace

    def expect(self, natural: np.ndarray) -> np.ndarray:
        """Expected counts (n_cells, n_lanes) under natural parameters, and what is kept of q(x), behind one another."""
        return self._swept(natural, self.data.uniform(natural.shape[1]))[0]

    def _swept(self, natural: np.ndarray, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        parts: list[np.ndarray] = []
        totals: list[Any] = []
        for at in range(0, natural.shape[1], _WIDTH):
            lanes = slice(at, at + _WIDTH)
            exact = self.model.expect(np.ascontiguousarray(natural[:, lanes]), self.data.exact)
            counts, bound, kept = self.data.swept(natural[:, lanes], np.ascontiguousarray(state[:, lanes]))
            parts.append(np.concatenate([counts + exact.statistics, kept]))
            totals.append(bound + exact.log_normalizer)
        return np.concatenate(parts, axis=1), np.concatenate(totals)

    def rounding(self, statistics: np.ndarray) -> np.ndarray:
        """How far rounding may move the objective at statistics (n_cells + n_state, n_lanes), nats, (n_lanes,)."""
        return super().rounding(np.ascontiguousarray(statistics[: self.n_cells]))
