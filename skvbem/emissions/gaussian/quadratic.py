"""Quadratic functions of measurements in the frame of a dense Gaussian, some of whose cells may be hidden.

The formulas stand in `skvbem.emissions.gaussian.dense`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.blas import dtrmm

from skvbem._kernels import _hidden_cells
from skvbem._lazy import cached_property
from skvbem._memory import OF_BLOCKS
from skvbem._numerics import LOG_2PI, safe_cholesky


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

    def squares(self, frame: np.ndarray) -> np.ndarray:
        """(z - m)^T J (z - m) of rows (d, n_rows), by their differences from the means, (..., n_components, n_rows)."""
        shape = self.mean.shape
        squares, away = OF_BLOCKS.empty(*shape[:-1], frame.shape[1]), OF_BLOCKS.empty(*frame.shape)
        factors = np.broadcast_to(self.factor, (*shape, shape[-1]))
        for index in np.ndindex(shape[:-1]):
            np.subtract(frame, self.mean[index][:, None], out=away)
            # a triangle, whose product takes half the time, and goes where the rows were
            turned = dtrmm(1.0, factors[index], away.T, side=1, trans_a=1, overwrite_b=1).T
            np.einsum("dn,dn->n", turned, turned, out=squares[index])
        return squares

    def without(self, hidden: np.ndarray) -> Observed:
        """The function with cells integrated out, whose columns of the whitener are `hidden` (d, n_hidden)."""
        d, m = hidden.shape
        # the unit of each column, without which squares could leave the floats
        size = np.abs(hidden).max(axis=0, initial=0.0)
        precision = np.ascontiguousarray(self.precision.reshape(-1, d, d))
        mean, n = np.ascontiguousarray(self.mean.reshape(-1, d)), len(precision)
        root, crossed, log_det = np.empty((n, d, m)), np.empty((n, d, m)), np.empty(n)
        shift, linear, products = np.empty(mean.shape), np.empty(mean.shape), np.empty((n, d * (d + 1) // 2))
        directions = np.ascontiguousarray(hidden / size)
        if not _hidden_cells.hide(precision, mean, directions, root, crossed, shift, log_det, linear, products):
            raise np.linalg.LinAlgError("A precision matrix is not positive.")
        log_det += 2 * np.log(size).sum()
        batch = self.precision.shape[:-2]
        conditional = root.reshape(*batch, d, m), crossed.reshape(*batch, d, m), shift.reshape(self.mean.shape)
        observed = log_det.reshape(batch), linear.reshape(self.mean.shape), products.reshape(*batch, -1)
        return Observed(self, *conditional, *observed)


@dataclass(frozen=True, eq=False)
class Observed:
    """A quadratic of the observed cells, and how the hidden ones hang on them.

    A row z of the frame, 0 where hidden, is completed as `keep` z + `shift` with covariance `root` `root`^T.

    Parameters
    ----------
    whole : Quadratic
    root, crossed : ndarray of shape (..., n_precisions, d, n_hidden)
        `crossed` is the precision times `root`.
    shift : ndarray of shape (..., n_components, d)
    log_det_hidden : ndarray of shape (..., n_precisions)
        Of the precision of what is hidden, nats.
    linear : ndarray of shape (..., n_components, d)
        What multiplies z.
    products : ndarray of shape (..., n_precisions, d (d + 1) / 2)
        What multiplies the packed products of z.
    """

    whole: Quadratic
    root: np.ndarray
    crossed: np.ndarray
    shift: np.ndarray
    log_det_hidden: np.ndarray
    linear: np.ndarray
    products: np.ndarray

    @cached_property
    def keep(self) -> np.ndarray:
        """Projection of rows onto their observed cells, (..., n_precisions, d, d)."""
        return np.eye(self.root.shape[-2]) - self.root @ self.crossed.swapaxes(-1, -2)

    @property
    def peak(self) -> np.ndarray:
        """Its largest value, (..., n_components)."""
        return self.whole.peak + (self.root.shape[-1] * LOG_2PI - self.log_det_hidden) / 2

    def squares(self, frame: np.ndarray) -> np.ndarray:
        """(z - m)^T J (z - m) of rows (d, n_rows), by their differences from the means, (..., n_components, n_rows)."""
        if not self.root.shape[-1]:
            return self.whole.squares(frame)
        shape, factor = self.whole.mean.shape, self.whole.factor @ self.keep
        squares = OF_BLOCKS.empty(*shape[:-1], frame.shape[1])
        away, turned = OF_BLOCKS.empty(*frame.shape), OF_BLOCKS.empty(*frame.shape)
        factors = np.broadcast_to(factor, (*shape, shape[-1]))
        for index in np.ndindex(shape[:-1]):
            np.subtract(frame, self.whole.mean[index][:, None], out=away)
            np.matmul(factors[index], away, out=turned)
            np.einsum("dn,dn->n", turned, turned, out=squares[index])
        return squares

    @property
    def expanded(self) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients of 1 and z, (..., n_components, 1 + d), and of the products of z, (..., n_precisions, ...)."""
        constant = self.peak - 0.5 * (self.linear * self.whole.mean).sum(axis=-1)
        return np.concatenate([constant[..., None], self.linear], axis=-1), self.products

    def completed(self, sums: np.ndarray) -> np.ndarray:
        """Sums (..., n_components, 1 + d + d (d + 1) / 2) of rows whose hidden cells are completed by their moments."""
        flat = np.ascontiguousarray(sums.reshape(-1, sums.shape[-1]))
        root, crossed = (x.reshape(-1, *x.shape[-2:]) for x in (self.root, self.crossed))
        completed = np.empty(flat.shape)
        _hidden_cells.complete(flat, root, crossed, self.shift.reshape(len(flat), -1), completed)
        return completed.reshape(sums.shape)
