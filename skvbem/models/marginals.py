"""The probability that each row falls in each cell of a table: what collapsed bounds take of a model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skvbem.families import Dirichlet


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
