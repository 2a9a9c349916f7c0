"""Second moments of rows: few rows that have the same ones, and their principal components."""

from __future__ import annotations

import numpy as np
from scipy.sparse.linalg import ArpackError, eigsh

# All eigenvectors for each wanted one, above which Lanczos' method finds these alone.
_SHARE_OF_AXES = 20
# Least variance of a noise from which a fit starts, as a share of the variance of its column.
MIN_START_NOISE = 0.05


def corners_of(root: np.ndarray) -> np.ndarray:
    """Corners (d + 1, d) of a simplex, of mean 0, whose mean squares and products are R R^T for a root R (d, d).

    Of the identity the simplex is regular. Its axes are contrasts of Helmert, so that sums from the last to the first
    are all that is needed.
    """
    d = len(root)
    rank = np.arange(1.0, d + 1)
    axes = root.T * np.sqrt((d + 1) / (rank * (rank + 1)))[:, None]
    corners = np.zeros((d + 1, d))
    corners[:-1] = axes[::-1].cumsum(axis=0)[::-1]
    corners[1:] -= rank[:, None] * axes
    return corners


def root_of(covariance: np.ndarray) -> np.ndarray:
    """A matrix whose square R R^T is a covariance matrix, of full rank or not, up to rounding."""
    try:
        return np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        variance, axes = np.linalg.eigh(covariance)
        return axes * np.sqrt(np.maximum(variance, 0.0))


def principal_loadings(correlation: np.ndarray, n_factors: int) -> np.ndarray:
    """Loadings (d, n_factors) of probabilistic principal components of a correlation matrix [Tipping & Bishop 1999]."""
    d, n = len(correlation), min(n_factors, len(correlation))
    loadings = np.zeros((d, n_factors))
    if n:
        variance, axes = largest_axes(correlation, n)
        noise = (np.trace(correlation) - variance.sum()) / (d - n) if d > n else 0.0
        loadings[:, :n] = axes * np.sqrt(np.maximum(variance - noise, 0.01))
    return loadings


def principal_start(correlation: np.ndarray, n_factors: int) -> tuple[np.ndarray, np.ndarray]:
    """Loadings of principal components (d, n_factors), and the noises that they leave (d,), from which fits start."""
    loadings = principal_loadings(correlation, n_factors)
    return loadings, np.maximum(1 - (loadings**2).sum(axis=1), MIN_START_NOISE)


def largest_axes(matrix: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The largest eigenvalues (n,) of a symmetric matrix, in descending order, and their eigenvectors (d, n)."""
    if n * _SHARE_OF_AXES < len(matrix):
        try:
            start = np.random.default_rng(0).standard_normal(len(matrix))
            values, axes = eigsh(matrix, n, which="LA", v0=start)
            order = np.argsort(-values)
            return values[order], axes[:, order]
        except ArpackError:  # of many equal eigenvalues
            pass
    values, axes = np.linalg.eigh(matrix)
    return values[::-1][:n], axes[:, ::-1][:, :n]
