"""Counts of a network as sums over independent rows, and the entropy of what is hidden in these."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skvbem._kernels import _contexts
from skvbem._numerics import times_log
from skvbem.capabilities import CountBlock, RowMarginals
from skvbem.models.network.model import DiscreteDAG
from skvbem.models.network.program import Program


@dataclass(frozen=True, eq=False)
class NetworkMarginals:
    """Counts of table cells as sums over independent rows; see `skvbem.capabilities.Marginals`.

    Parameters
    ----------
    model : DiscreteDAG
    """

    model: DiscreteDAG

    def count_block(self) -> CountBlock:
        """The coordinates of the prior that count rows: all of them, for a network."""
        return CountBlock(np.arange(self.model.layout.n_cells), self.model.prior)

    def row_marginals(self, natural: np.ndarray, data: Program) -> RowMarginals:
        """Where each distinct row of data falls in the tables under q(x) at natural parameters (n_cells,)."""
        return row_marginals(data, natural)


def row_marginals(data: Program, natural: np.ndarray) -> RowMarginals:
    """The marginals of q(x) at natural parameters (n_cells,), normalized or not."""
    contraction, row_starts = data.contraction, data.layout.row_starts
    n_rows = len(row_starts) - 1
    row_of = np.repeat(np.arange(n_rows), np.diff(row_starts))
    sizes = _contexts.marginal_sizes(contraction, row_of, n_rows)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    context, probability = np.empty(starts[-1], dtype=np.int64), np.empty(starts[-1])
    at, first = starts[:-1].copy(), 0
    for _, contexts, _, beliefs in data.beliefs(natural):
        last = first + contexts.stop - contexts.start
        _contexts.fill_marginals(contraction, first, last, beliefs, row_of, at, context, probability)
        first = last
    counts = _contexts.complete_counts(contraction)
    known = np.concatenate([counts, np.add.reduceat(counts, row_starts[:-1])])
    return RowMarginals(starts, context, probability, _contexts.weights(contraction), known)


def latent_entropy(model: DiscreteDAG, natural: np.ndarray, data: Program) -> float:
    """Entropy of what is hidden under q(x) at natural parameters (n_cells,), nats."""
    expectation = model.expect(natural[:, None], data)
    return float(expectation.log_normalizer[0] - times_log(expectation.statistics[:, 0], natural).sum())
