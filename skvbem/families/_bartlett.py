"""Draws from Wishart distributions, by Bartlett's decomposition."""

from __future__ import annotations

import numpy as np

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
    halves = np.moveaxis((dof[..., None] - np.arange(d)) / 2, [-2, -1], [0, 1])
    noise = np.moveaxis(rng.standard_normal((dof.shape[-1], d, d, *batch)), [0, 1, 2], [-3, -2, -1])
    lower = np.tril(noise, -1)
    pivots = np.sqrt(2 * np.maximum(np.moveaxis(rng.standard_gamma(halves), [0, 1], [-2, -1]), 1e-300))
    lower[..., np.arange(d), np.arange(d)] = pivots
    return lower
