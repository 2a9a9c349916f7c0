"""Turns of regressors: how natural parameters of regressions move along them."""

from __future__ import annotations

import numpy as np

from skvbem._numerics import pack_symmetric, pairings, unpack_symmetric
from skvbem.families.regression import Regression


def turning(layout: Regression, natural: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """How natural parameters (n_cells,) move where regressors begin to turn, of the same shape.

    Parameters
    ----------
    layout : Regression
    natural : ndarray of shape (n_cells,)
    turn : ndarray of shape (n_components, D, D)
        Antisymmetric: the velocity of the regressors of each component.
    """
    packed, total, count, square = layout.split(natural)
    k, d, halves = layout.n_components, layout.n_regressors, pairings(layout.n_regressors)
    half = turn[:, None] @ unpack_symmetric(packed / halves, d).reshape(k, -1, d, d)
    products = pack_symmetric((half + half.swapaxes(-1, -2)).reshape(-1, d, d)) * halves
    rows = total.reshape(k, -1, d) @ turn.swapaxes(-1, -2)
    return np.concatenate([products.ravel(), rows.ravel(), np.zeros(count.size + square.size)])
