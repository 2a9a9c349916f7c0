"""Other coordinates of the factors of rows, in which the steps of a fit are fewer."""

from __future__ import annotations

from typing import Self

import numpy as np

from skvbem._kernels import _factor_map
from skvbem.families import Regression

# Twice the shape and the rate of a prior of precisions of loadings.
_OF_PRIOR = 2.0
# The share of a sum that may be rounding.
_ROUNDING = 1e-12
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
        batch, n_regressors = of_rows.shape[:-2], layout.n_regressors
        members = np.ascontiguousarray(of_rows.reshape(-1, *of_rows.shape[-2:]))
        loadings = np.ascontiguousarray(loadings.reshape(len(members), *loadings.shape[-3:]))
        root, turned = np.empty((len(members), n_regressors - 1, n_regressors - 1)), np.empty(loadings.shape)
        usable, map, gain = np.empty(len(members), dtype=np.uint8), np.empty(members.shape), np.empty(len(members))
        _factor_map.roots(members, loadings, root, usable, turned)
        axes = np.ascontiguousarray(common_axes(turned, sizes))
        _factor_map.whiten(members, root, usable, axes, map, gain)
        return cls(layout, map.reshape(of_rows.shape), gain.reshape(batch).sum(axis=-1), of_rows)

    def statistics(self, cells: np.ndarray) -> np.ndarray:
        """Statistics (n_cells, n_lanes) after the map."""
        return self._mapped(cells, of_parameters=False)

    def natural(self, cells: np.ndarray) -> np.ndarray:
        """Natural parameters (n_cells, n_lanes) after the map."""
        return self._mapped(cells, of_parameters=True)

    def further(self, given: np.ndarray, statistics: np.ndarray, natural: np.ndarray) -> FactorExpansion:
        r"""The map and after it a step of Newton's method, :math:`x \to (I + E) x + b`, to where the bound is highest.

        With :math:`\nu` the precisions of loadings, and factors nearly white and loadings nearly orthogonal, as after
        this map, second derivatives couple two entries of E at most. The squares of :math:`E_{kl}` and :math:`E_{lk}`
        count :math:`n + \nu_l L_{kk}` and :math:`n + \nu_k L_{ll}`, and their product
        :math:`n - d + \nu_k L_{kk} + \nu_l L_{ll}`; those of diagonal entries 2n, those of b
        :math:`n + \kappa L_{kk}`, with :math:`\kappa` the weight of the prior mean.

        Parameters
        ----------
        given : ndarray of shape (n_cells, n_lanes)
            Coordinates of the prior given hyperparameters, all after this map.
        statistics : ndarray of shape (n_cells, n_lanes)
        natural : ndarray of shape (n_cells, n_lanes)
            What is expected at these statistics under this prior.
        """
        members, later = self._members, np.empty(self._members.shape)
        products = np.ascontiguousarray(self.of_rows.reshape(members.shape))
        gain = np.empty(len(members))
        prior, after, expected = (np.ascontiguousarray(cells.T) for cells in (given, statistics, natural))
        _factor_map.further(members, products, *self._of_component, prior, after, expected, later, gain)
        gained = gain.reshape(self.map.shape[:-2]).sum(axis=-1)
        return type(self)(self.layout, later.reshape(self.map.shape), self.gain + gained, self.of_rows)

    @property
    def _members(self) -> np.ndarray:
        """The maps of all components of all lanes, (n_members, D, D)."""
        return np.ascontiguousarray(self.map.reshape(-1, *self.map.shape[-2:]))

    @property
    def _of_component(self) -> tuple[int, int]:
        """Matrices and rows of a component."""
        layout = self.layout
        return layout.n_precisions // layout.n_components, layout.n_rows // layout.n_components

    def _mapped(self, cells: np.ndarray, of_parameters: bool) -> np.ndarray:
        lanes = np.ascontiguousarray(cells.T)
        mapped = np.empty(lanes.shape)
        _factor_map.map_cells(self._members, of_parameters, *self._of_component, lanes, mapped)
        return mapped.T


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
    identity, weights = np.eye(q), sizes + _OF_PRIOR
    matrices, by_group = matrices + _OF_PRIOR * identity, weights[:, None, None]

    def turned(axes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        each = axes.swapaxes(-1, -2)[..., None, :, :] @ matrices @ axes[..., None, :, :]
        squares = np.abs(np.diagonal(each, axis1=-2, axis2=-1))
        return each, squares, (weights[:, None] * np.log(squares)).sum(axis=(-2, -1))

    as_they_are = np.broadcast_to(identity, axes.shape)
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
        other = axes @ np.linalg.solve(identity + half, identity - half)  # of Cayley: orthogonal for any angles
        reached = turned(other)
        # a turn that only rounding tells from the last one is nearer to the end: Newton's steps are, of the last digits
        falls = reached[2] < value + _ROUNDING * np.abs(value)
        axes = np.where(falls[..., None, None], other, axes)
        each = np.where(falls[..., None, None, None], reached[0], each)
        squares = np.where(falls[..., None, None], reached[1], squares)
        value, length = np.where(falls, reached[2], value), np.where(falls, np.minimum(1.0, 2 * length), length / 4)
    return axes
