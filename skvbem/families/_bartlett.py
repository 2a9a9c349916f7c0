"""Draws from Wishart distributions, by Bartlett's decomposition."""

from __future__ import annotations

import numpy as np

from skvbem._numerics import first_axes_last, last_axes_first
from skvbem.families.parallel_generator import ParallelGenerator


def bartlett(dof: np.ndarray, d: int, rng: np.random.Generator | ParallelGenerator) -> np.ndarray:
    """Lower triangular roots of draws from Wishart distributions of unit scale.

    Parameters
    ----------
    dof : ndarray of shape (..., n)
        Degrees of freedom, batch axes first.
    d : int
    rng : numpy.random.Generator or ParallelGenerator

    Returns
    -------
    ndarray of shape (..., n, d, d)
        A, of which A A^T is a draw.
    """
    batch = dof.shape[:-1]
    halves = last_axes_first((dof[..., None] - np.arange(d)) / 2, 2)
    noise = first_axes_last(rng.standard_normal((dof.shape[-1], d, d, *batch)), 3)
    lower = np.tril(noise, -1)
    pivots = np.sqrt(2 * np.maximum(first_axes_last(rng.standard_gamma(halves), 2), 1e-300))
    lower[..., np.arange(d), np.arange(d)] = pivots
    return lower
