"""Other coordinates of the factors of rows, in which the steps of a fit are fewer."""

from __future__ import annotations

from typing import Self

import numpy as np

from skvbem._numerics import pack_symmetric, pairings, unpack_symmetric
from skvbem.families import Regression

# The least share of their variance, in some direction, that factors must have to be whitened.
_MIN_VARIANCE_SHARE = 1e-10


class FactorExpansion:
    r"""Factors in other coordinates, :math:`x \to R (x - \bar x)`, with coefficients that undo it.

    With a flat prior the best R is known: factors are white, :math:`R S R^\top = n I` for their scatter S, and loadings
    orthogonal, :math:`R^{-\top} L R^{-1}` diagonal for :math:`L = \sum_j \langle\tau\lambda\lambda^\top\rangle`.
    With a prior it is near the best, and taken where the bound rises [Luttinen & Ilin 2010].

    Parameters
    ----------
    layout : Regression
    map : ndarray of shape (n_lanes, n_components, D, D)
        Of the regressors (1, x).
    gain : ndarray of shape (n_lanes,)
        Of the entropy of factors and their expected log density, nats.
    """

    def __init__(self, layout: Regression, map: np.ndarray, gain: np.ndarray):
        self.layout, self.map, self.gain = layout, map, gain

    @classmethod
    def whitening(cls, layout: Regression, of_rows: np.ndarray, loadings: np.ndarray) -> Self:
        """The map for sums (n_lanes, n_components, D, D) of products of regressors, and squares of loadings."""
        n = of_rows[..., 0, 0]
        share = np.where(n > 0, n, 1.0)[..., None]
        mean, second = of_rows[..., 0, 1:] / share, of_rows[..., 1:, 1:] / share[..., None]
        scatter = second - mean[..., :, None] * mean[..., None, :]
        variance, axes = np.linalg.eigh(scatter)
        usable = (n > 0) & (variance[..., 0] > _MIN_VARIANCE_SHARE * variance[..., -1])
        root = np.sqrt(np.where(usable[..., None], variance, 1.0))
        half = (axes * root[..., None, :]) @ axes.swapaxes(-1, -2)
        _, turn = np.linalg.eigh(half @ loadings @ half)
        white = turn[..., ::-1].swapaxes(-1, -2) @ (axes / root[..., None, :]) @ axes.swapaxes(-1, -2)
        # of either sign of a factor, the one that keeps it: extrapolations go on from step to step
        white *= np.where(np.diagonal(white, axis1=-2, axis2=-1) < 0, -1.0, 1.0)[..., None]
        q = mean.shape[-1]
        map = np.zeros(of_rows.shape)
        map[..., 0, 0] = 1.0
        map[..., 1:, 1:] = np.where(usable[..., None, None], white, np.eye(q))
        map[..., 1:, 0] = np.where(usable[..., None], -(white @ mean[..., None])[..., 0], 0.0)
        # white factors have second moments I: ln|R| and what it does to minus half of them
        gained = n * (-np.log(root).sum(axis=-1) - 0.5 * (q - np.trace(second, axis1=-2, axis2=-1)))
        return cls(layout, map, np.where(usable, gained, 0.0).sum(axis=-1))

    def statistics(self, cells: np.ndarray) -> np.ndarray:
        """Statistics (n_cells, n_lanes) after the map."""
        packed, total, count, square = self.layout.split(cells)
        of_matrices = unpack_symmetric(packed, self.layout.n_regressors)
        return self._joined(self.map, of_matrices, total, count, square, 1.0)

    def natural(self, cells: np.ndarray) -> np.ndarray:
        """Natural parameters (n_cells, n_lanes) after the map."""
        packed, total, count, square = self.layout.split(cells)
        halves = pairings(self.layout.n_regressors)
        of_matrices = unpack_symmetric(packed / halves, self.layout.n_regressors)
        undone = np.linalg.inv(self.map).swapaxes(-1, -2)
        return self._joined(undone, of_matrices, total, count, square, halves)

    def _joined(self, map, matrices, total, count, square, halves) -> np.ndarray:
        """Flat cells of matrices M -> T M T^T and rows s -> s T^T."""
        shape = (*total.shape[:-2], self.layout.n_components, -1)
        d = self.layout.n_regressors
        turned = map[..., None, :, :] @ matrices.reshape(*shape, d, d) @ map.swapaxes(-1, -2)[..., None, :, :]
        rows = total.reshape(*shape, d) @ map.swapaxes(-1, -2)
        parts = [pack_symmetric(turned) * halves, rows, count, square]
        return np.concatenate([part.reshape(len(part), -1) for part in parts], axis=-1).T
