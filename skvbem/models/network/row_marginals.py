"""The probability that each distinct row of data is in each cell of a network's tables, under an exact q(x)."""

from __future__ import annotations

import numpy as np

from skvbem._kernels import _contexts
from skvbem.capabilities import RowMarginals
from skvbem.models.network.program import Program


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
