"""Where independent rows fall in the tables, row by row: counts are sums of independent indicators."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skvbem._kernels import _contexts
from skvbem.families import Dirichlet
from skvbem.models._program import Program


@dataclass(frozen=True, eq=False)
class RowMarginals:
    """The probability that each distinct row of data is in each table cell, and in each table row.

    Targets are all table cells, then all table rows.

    Parameters
    ----------
    starts : ndarray of shape (n_targets + 1,)
        Where the entries of each target begin.
    context, probability : ndarray of shape (n_entries,)
        A distinct row that may be in the target, and the probability that it is; ascending in each target.
    weight : ndarray of shape (n_contexts,)
        How many rows of data each distinct row stands for. They are independent.
    known : ndarray of shape (n_targets,)
        Counts in which nothing is hidden.
    """

    starts: np.ndarray
    context: np.ndarray
    probability: np.ndarray
    weight: np.ndarray
    known: np.ndarray


@dataclass(frozen=True, eq=False)
class Counted:
    """The part of a prior whose statistics are counts of independent rows.

    Parameters
    ----------
    cells : ndarray of int
        Its cells among all statistics, in order.
    prior : Dirichlet
    """

    cells: np.ndarray
    prior: Dirichlet


def row_marginals(program: Program, natural: np.ndarray) -> RowMarginals:
    """The marginals of q(x) at natural parameters (n_cells,), normalized or not."""
    contraction, row_starts = program.contraction, program.layout.row_starts
    n_rows = len(row_starts) - 1
    row_of = np.repeat(np.arange(n_rows), np.diff(row_starts))
    sizes = _contexts.marginal_sizes(contraction, row_of, n_rows)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    context, probability = np.empty(starts[-1], dtype=np.int64), np.empty(starts[-1])
    at, first = starts[:-1].copy(), 0
    for _, contexts, _, beliefs in program.beliefs(natural):
        last = first + contexts.stop - contexts.start
        _contexts.fill_marginals(contraction, first, last, beliefs, row_of, at, context, probability)
        first = last
    counts = _contexts.complete_counts(contraction)
    known = np.concatenate([counts, np.add.reduceat(counts, row_starts[:-1])])
    return RowMarginals(starts, context, probability, _contexts.weights(contraction), known)
