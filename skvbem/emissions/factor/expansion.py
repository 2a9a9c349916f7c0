"""Other coordinates of the factors of rows, in which the steps of a fit are fewer."""

from __future__ import annotations

from typing import Self

import numpy as np

from skvbem._numerics import pack_symmetric, pairings, unpack_symmetric
from skvbem.families import Regression

# The least share of their variance, in some direction, that factors must have to be whitened.
_MIN_VARIANCE_SHARE = 1e-10
# Twice the shape and the rate of a prior of precisions of loadings.
_OF_PRIOR = 2.0
# The share of a sum that may be rounding.
_ROUNDING = 1e-12
# The share of the product of two second derivatives up to which what they leave of each other is none.
_FLAT = 1e-9
# Turns towards the common axes of several matrices, at most.
_N_TURNS = 8


class FactorExpansion:
    r"""Factors in other coordinates, :math:`x \to R (x - \bar x)`, with coefficients that undo it.

    With a flat prior the best R is known: factors are white, :math:`R S R^\top = n I` for their scatter S, and loadings
    orthogonal, :math:`R^{-\top} L R^{-1}` diagonal for :math:`L = \sum_j \langle\tau\lambda\lambda^\top\rangle`.
    Of several groups of columns each has an L, and one turn makes all as diagonal as it can (`common_axes`). With a
    prior it is near the best, and taken where the bound rises [Luttinen & Ilin 2010]. Close to the end of a fit it is
    not, and a step of Newton's method from there is (`further`).

    Parameters
    ----------
    layout : Regression
    map : ndarray of shape (n_lanes, n_components, D, D)
        Of the regressors (1, x).
    gain : ndarray of shape (n_lanes,)
        Of the entropy of factors and their expected log density, nats.
    of_rows : ndarray of shape (n_lanes, n_components, D, D)
        Sums of products of regressors before the map.
    """

    def __init__(self, layout: Regression, map: np.ndarray, gain: np.ndarray, of_rows: np.ndarray):
        self.layout, self.map, self.gain, self.of_rows = layout, map, gain, of_rows

    @classmethod
    def whitening(cls, layout: Regression, of_rows: np.ndarray, loadings: np.ndarray, sizes: np.ndarray) -> Self:
        """The map for sums of products of regressors and for squares of loadings, by group of so many columns.

        Parameters
        ----------
        layout : Regression
        of_rows : ndarray of shape (n_lanes, n_components, D, D)
        loadings : ndarray of shape (n_lanes, n_components, n_groups, q, q)
        sizes : ndarray of int, shape (n_groups,)
        """
        n = of_rows[..., 0, 0]
        share = np.where(n > 0, n, 1.0)[..., None]
        mean, second = of_rows[..., 0, 1:] / share, of_rows[..., 1:, 1:] / share[..., None]
        scatter = second - mean[..., :, None] * mean[..., None, :]
        variance, axes = np.linalg.eigh(scatter)
        usable = (n > 0) & (variance[..., 0] > _MIN_VARIANCE_SHARE * variance[..., -1])
        root = np.sqrt(np.where(usable[..., None], variance, 1.0))
        half = (axes * root[..., None, :]) @ axes.swapaxes(-1, -2)
        turn = common_axes(half[..., None, :, :] @ loadings @ half[..., None, :, :], sizes)
        white = turn.swapaxes(-1, -2) @ (axes / root[..., None, :]) @ axes.swapaxes(-1, -2)
        # of either sign of a factor, the one that keeps it: extrapolations go on from step to step
        white *= np.where(np.diagonal(white, axis1=-2, axis2=-1) < 0, -1.0, 1.0)[..., None]
        q = mean.shape[-1]
        map = np.zeros(of_rows.shape)
        map[..., 0, 0] = 1.0
        map[..., 1:, 1:] = np.where(usable[..., None, None], white, np.eye(q))
        map[..., 1:, 0] = np.where(usable[..., None], -(white @ mean[..., None])[..., 0], 0.0)
        # white factors have second moments I: ln|R| and what it does to minus half of them
        gained = n * (-np.log(root).sum(axis=-1) - 0.5 * (q - np.trace(second, axis1=-2, axis2=-1)))
        return cls(layout, map, np.where(usable, gained, 0.0).sum(axis=-1), of_rows)

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

    def further(self, given: np.ndarray, statistics: np.ndarray, natural: np.ndarray) -> FactorExpansion:
        r"""The map and after it a step of Newton's method, :math:`x \to (I + E) x + b`, to where the bound is highest.

        With :math:`\nu` the precisions of loadings, and factors nearly white and loadings nearly orthogonal, as after
        this map, second derivatives couple two entries of E at most. The squares of :math:`E_{kl}` and :math:`E_{lk}`
        count :math:`n + \nu_l L_{kk}` and :math:`n + \nu_k L_{ll}`, and their product
        :math:`n - d + \nu_k L_{kk} + \nu_l L_{ll}`; those of diagonal entries 2n, those of b n.

        Parameters
        ----------
        given : ndarray of shape (n_cells, n_lanes)
            Coordinates of the prior given hyperparameters, all after this map.
        statistics : ndarray of shape (n_cells, n_lanes)
        natural : ndarray of shape (n_cells, n_lanes)
            What is expected at these statistics under this prior.
        """
        of_rows, unit = self.map @ self.of_rows @ self.map.swapaxes(-1, -2), np.eye(self.layout.n_regressors)
        n, d = of_rows[..., :1, :1], self.layout.n_rows // self.layout.n_components
        products, sums = self._by_component(statistics)
        of_products, of_sums = self._by_component(natural, pairings(self.layout.n_regressors))
        slope = 2 * (of_products @ products).sum(axis=-3) + of_sums.swapaxes(-1, -2) @ sums + n * unit - of_rows
        turned, shifted = slope[..., 1:, 1:], slope[..., 1:, 0]
        relevance = np.diagonal(self._by_component(given)[0], axis1=-2, axis2=-1)[..., 1:]
        squares = -2 * np.diagonal(of_products, axis1=-2, axis2=-1)[..., 1:]
        other, weights = n + relevance.swapaxes(-1, -2) @ squares, (relevance * squares).sum(axis=-2)
        one, both = other.swapaxes(-1, -2), n - d + weights[..., :, None] + weights[..., None, :]
        rest = one * other - both * both
        known = rest > _FLAT * one * other  # turns of factors that are alike change nothing
        step = np.where(known, other * turned - both * turned.swapaxes(-1, -2), 0.0) / np.where(known, rest, 1.0)
        places, share = np.arange(len(unit) - 1), np.where(n > 0, n, 1.0)[..., 0]
        step[..., places, places] = turned[..., places, places] / (2 * share)
        map = unit + np.zeros(of_rows.shape)
        map[..., 1:, 1:] += step
        map[..., 1:, 0] = shifted / share
        change = (map @ of_rows * map - unit * of_rows)[..., 1:, :].sum(axis=(-2, -1))
        gain = n[..., 0, 0] * np.linalg.slogdet(map)[1] - 0.5 * change
        return type(self)(self.layout, map @ self.map, self.gain + gain.sum(axis=-1), self.of_rows)

    def _by_component(self, cells: np.ndarray, halves: float | np.ndarray = 1.0) -> tuple[np.ndarray, np.ndarray]:
        """Matrices (n_lanes, n_components, n, D, D) and rows (n_lanes, n_components, d, D) of flat cells."""
        packed, total, _, _ = self.layout.split(cells)
        d, shape = self.layout.n_regressors, (*total.shape[:-2], self.layout.n_components, -1)
        return unpack_symmetric(packed / halves, d).reshape(*shape, d, d), total.reshape(*shape, d)

    def _joined(self, map, matrices, total, count, square, halves) -> np.ndarray:
        """Flat cells of matrices M -> T M T^T and rows s -> s T^T."""
        shape = (*total.shape[:-2], self.layout.n_components, -1)
        d = self.layout.n_regressors
        turned = map[..., None, :, :] @ matrices.reshape(*shape, d, d) @ map.swapaxes(-1, -2)[..., None, :, :]
        rows = total.reshape(*shape, d) @ map.swapaxes(-1, -2)
        parts = [pack_symmetric(turned) * halves, rows, count, square]
        return np.concatenate([part.reshape(len(part), -1) for part in parts], axis=-1).T


def common_axes(matrices: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    r"""Orthogonal axes (..., q, q), as columns, along which matrices (..., n, q, q) are as diagonal as they can be.

    Of one matrix they are its eigenvectors, those of the largest eigenvalues first. Of several they are common
    principal components [Flury 1984]: least is what hidden precisions of loadings cost under a Gamma(1, 1) prior,
    :math:`\sum_g (d_g + 2) \sum_k \ln(2 + w_k^\top M_g w_k)` with sizes d of groups. They are found from the
    eigenvectors of the sum, or from the axes as they are, by a few turns that descend.
    """
    axes = np.linalg.eigh(matrices.sum(axis=-3))[1][..., ::-1]
    q = axes.shape[-1]
    if len(sizes) == 1 or q == 1:
        return axes
    of_turns, weights = np.eye(q), sizes + _OF_PRIOR
    matrices, by_group = matrices + _OF_PRIOR * of_turns, weights[:, None, None]

    def turned(axes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        each = axes.swapaxes(-1, -2)[..., None, :, :] @ matrices @ axes[..., None, :, :]
        squares = np.abs(np.diagonal(each, axis1=-2, axis2=-1))
        return each, squares, (weights[:, None] * np.log(squares)).sum(axis=(-2, -1))

    as_they_are = np.broadcast_to(of_turns, axes.shape)
    nearer = turned(as_they_are)[2] < turned(axes)[2]
    axes, length = np.where(nearer[..., None, None], as_they_are, axes), np.ones(nearer.shape)
    each, squares, value = turned(axes)
    for _ in range(_N_TURNS):
        # Newton's step for the angle of each pair of axes by itself
        ratio = squares[..., :, None] / squares[..., None, :]
        slope = (by_group * each * (1 / squares[..., None, :] - 1 / squares[..., :, None])).sum(axis=-3)
        curvature = (by_group * (ratio + 1 / ratio - 2)).sum(axis=-3)
        angle = np.divide(slope, curvature, out=np.zeros_like(slope), where=curvature > 0)
        half = 0.5 * length[..., None, None] * np.clip(angle, -1.0, 1.0)
        other = axes @ np.linalg.solve(of_turns + half, of_turns - half)  # of Cayley: orthogonal for any angles
        of_other = turned(other)
        # a turn that only rounding tells from the last one is nearer to the end: Newton's steps are, of the last digits
        falls = of_other[2] < value + _ROUNDING * np.abs(value)
        axes = np.where(falls[..., None, None], other, axes)
        each = np.where(falls[..., None, None, None], of_other[0], each)
        squares = np.where(falls[..., None, None], of_other[1], squares)
        value, length = np.where(falls, of_other[2], value), np.where(falls, np.minimum(1.0, 2 * length), length / 4)
    return axes
