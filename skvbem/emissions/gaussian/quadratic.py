"""Quadratic functions of rows, one for each component, and what is left of them where cells are hidden.

The formulas stand in `skvbem.emissions.gaussian.dense`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skvbem._numerics import pack_symmetric, pairings, safe_cholesky

_LOG_2PI = np.log(2 * np.pi)


class Quadratic:
    r"""Functions :math:`a_k - \tfrac12 (z - m_k)^\top J_k (z - m_k)` of the frame, some of whose cells may be hidden.

    Parameters
    ----------
    precision : ndarray of shape (..., n_precisions, d, d)
        J; one for all components or one for each.
    mean : ndarray of shape (..., n_components, d)
    peak : ndarray of shape (..., n_components)
        a.
    """

    def __init__(self, precision: np.ndarray, mean: np.ndarray, peak: np.ndarray):
        self.precision, self.mean, self.peak = precision, mean, peak

    @cached_property
    def factor(self) -> np.ndarray:
        """Upper triangular factors of the precisions, U^T U."""
        return safe_cholesky(self.precision).swapaxes(-1, -2)

    def without(self, hidden: np.ndarray) -> Observed:
        """The function with cells integrated out, whose columns of the whitener are `hidden` (d, n_hidden)."""
        d, m = hidden.shape
        eye = np.eye(d)
        if m == 0:
            nothing = np.zeros((1, 1))
            return Observed(self, eye, np.zeros(self.mean.shape), nothing, np.zeros(self.precision.shape[:-2]), m)
        size = np.abs(hidden).max(axis=0)  # the unit of each column, without which squares could leave the floats
        hidden = hidden / size
        crossed = self.precision @ hidden
        inner = np.linalg.cholesky(hidden.T @ crossed)
        root = hidden @ np.linalg.inv(inner).swapaxes(-1, -2)  # B Q^-1 B^T = root root^T
        keep = eye - root @ (root.swapaxes(-1, -2) @ self.precision)
        shift = self.mean - (keep @ self.mean[..., None])[..., 0]
        log_det = 2 * (np.log(np.diagonal(inner, axis1=-2, axis2=-1)).sum(axis=-1) + np.log(size).sum())
        return Observed(self, keep, shift, root, log_det, m)


@dataclass(frozen=True, eq=False)
class Observed:
    """A quadratic of the observed cells, and how the hidden ones hang on them.

    A row z of the frame, 0 where hidden, is completed as `keep` z + `shift` with covariance `root` `root`^T.
    """

    whole: Quadratic
    keep: np.ndarray
    shift: np.ndarray
    root: np.ndarray
    log_det_hidden: np.ndarray
    n_hidden: int

    @property
    def peak(self) -> np.ndarray:
        """Its largest value, (..., n_components)."""
        return self.whole.peak + (self.n_hidden * _LOG_2PI - self.log_det_hidden) / 2

    def squares(self, frame: np.ndarray) -> np.ndarray:
        """(z - m)^T J (z - m) of rows (d, n_rows), by their differences from the means, (..., n_components, n_rows)."""
        factor = self.whole.factor @ self.keep
        shape = self.whole.mean.shape
        squares = np.empty((*shape[:-1], frame.shape[1]))
        factors = np.broadcast_to(factor, (*shape, shape[-1]))
        for index in np.ndindex(shape[:-1]):
            turned = factors[index] @ (frame - self.whole.mean[index][:, None])
            np.einsum("dn,dn->n", turned, turned, out=squares[index])
        return squares

    @cached_property
    def expanded(self) -> tuple[np.ndarray, np.ndarray]:
        """What multiplies 1 and z, (..., n_components, 1 + d), and the products of z, (..., n_precisions, ...)."""
        precision = self.whole.precision @ self.keep
        linear = (precision @ self.whole.mean[..., None])[..., 0]
        constant = self.peak - 0.5 * (linear * self.whole.mean).sum(axis=-1)
        products = -0.5 * pairings(linear.shape[-1]) * pack_symmetric(precision)
        return np.concatenate([constant[..., None], linear], axis=-1), products
