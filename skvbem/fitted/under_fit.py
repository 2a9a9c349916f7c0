"""Likelihoods of rows under a fit, states of their latents, and tables of cells, for reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import log
from typing import Any, NamedTuple

import numpy as np

# Different sequences of one length, beyond which to count them against each other says nothing.
_MAX_LOG_CELLS = log(2**20)


class Cells(NamedTuple):
    """Columns of finitely many values in rows, or in whole sequences.

    Parameters
    ----------
    codes : ndarray of int, shape (n_units, n_columns)
        Negative where missing.
    sizes : sequence of int
        How many values each column may take.
    names : sequence
        Of the columns whose pairs have residuals; none of sequences.
    joint : callable of (int, int), or None
        The probabilities of two columns at the fit, (n_values, n_values); None if they are too many.
    are_all : bool
        Whether there is nothing else in a row, so that rows can be counted against a saturated model.
    """

    codes: np.ndarray
    sizes: Sequence[int]
    names: Sequence = ()
    joint: Callable[[int, int], np.ndarray | None] | None = None
    are_all: bool = True


class UnderFit(NamedTuple):
    """Likelihoods, states and cells of rows, or of sequences, under a fit.

    Parameters
    ----------
    scores : ndarray of shape (n_units,)
        Log likelihoods at the published parameters, nats.
    weight : ndarray of shape (n_units,), or None
    total_weight : float
        The n of criteria.
    posteriors : mapping of latent to ndarray of shape (n_rows, n_states)
        Probabilities of the states of a latent given a row or, of its step, a sequence.
    weight_of_rows : ndarray of shape (n_rows,), or None
        Of the rows of `posteriors`, which are the steps of sequences.
    cells : Cells or None
    price : float
        Of what the rows have chosen, nats, where these are the rows of the fit; `scores` do not have it.
    """

    scores: np.ndarray
    weight: np.ndarray | None
    total_weight: float
    posteriors: Mapping[Any, np.ndarray]
    weight_of_rows: np.ndarray | None = None
    cells: Cells | None = None
    price: float = 0.0


def cells_of_sequences(codes: np.ndarray, sizes: Sequence[int], lengths: np.ndarray) -> Cells | None:
    """Whole sequences as values, from codes (n_steps, n_columns); None where lengths differ or there are too many."""
    n_steps = int(lengths[0])
    if len(lengths) < 2 or (lengths != n_steps).any() or n_steps * sum(map(log, sizes)) > _MAX_LOG_CELLS:
        return None
    return Cells(codes.reshape(len(lengths), -1), [*sizes] * n_steps)
