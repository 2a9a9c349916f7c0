r"""Wishart distributions: draws by Bartlett's decomposition, and derivatives of natural parameters.

Of a Normal-Wishart with :math:`\Lambda = C C^\top`, C lower triangular, the coordinates are :math:`m_k = C^\top \mu_k`,
then :math:`\rho_i = 2 \ln C_{ii}`, then :math:`C_{ij} / C_{ii}` below the diagonal. In them the natural parameters are
:math:`-\tfrac12 |m|^2`, :math:`\tfrac12 \sum_i \rho_i - \tfrac d2 \ln 2\pi`, :math:`C m` and :math:`-\tfrac12 C
C^\top`, and only rows of C are not linear: each depends on its own coordinates alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from skvbem._lazy import cached_property
from skvbem._numerics import first_axes_last, last_axes_first, pack_symmetric, pairings, unpack_symmetric
from skvbem.families.parallel_generator import ParallelGenerator

#: Columns up to which calls take the time that matrices do not: batches are compiled loops. Beyond, LAPACK is sooner.
MAX_COLUMNS = 20


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


@dataclass(frozen=True, eq=False)
class Factored:
    """Means and precisions of a Normal-Wishart by the Cholesky factors of the precisions.

    Parameters
    ----------
    factor : ndarray of shape (n_precisions, d, d)
        C.
    mean : ndarray of shape (n_components, d)
        m, one for each mean.
    """

    factor: np.ndarray
    mean: np.ndarray

    @classmethod
    def at(cls, point) -> Self:
        """The factors of a single point, whose axes are (n_components, d) and (n_precisions, d, d)."""
        factor = np.linalg.cholesky(point.precision)
        return cls(factor, (factor.swapaxes(-1, -2) @ point.mean[..., None])[..., 0])

    def means_of(self, precision: int) -> range:
        """The components whose means stand on a precision."""
        n = len(self.mean)
        return range(n) if len(self.factor) == 1 else range(precision, precision + 1)

    @cached_property
    def places(self) -> tuple[np.ndarray, np.ndarray]:
        """Unconstrained coordinates of means (n_components, d), and of the factors (n_precisions, d (d + 1) / 2)."""
        (n, d), p = self.mean.shape, len(self.factor)
        ends = np.cumsum([n * d, p * d, p * d * (d - 1) // 2])
        means, pivots, below = np.split(np.arange(ends[-1]), ends[:-1])
        factors = [pivots.reshape(p, d), below.reshape(p, -1)]
        return means.reshape(n, d), np.concatenate(factors, axis=1)

    @cached_property
    def row_of(self) -> np.ndarray:
        """The row of C that each coordinate of a factor moves."""
        d = self.mean.shape[1]
        return np.concatenate([np.arange(d), np.tril_indices(d, -1)[0]])

    def rows(self, precision: int) -> tuple[np.ndarray, np.ndarray]:
        """First and second derivatives of the row of C that a coordinate moves, (n, d) and (n, n, d)."""
        factor, d = self.factor[precision], self.mean.shape[1]
        below, columns = np.tril_indices(d, -1)
        first = np.concatenate([0.5 * factor, factor[below, below][:, None] * np.eye(d)[columns]])
        second = np.zeros((len(first), len(first), d))
        second[np.arange(d), np.arange(d)] = 0.25 * factor
        entries = np.arange(d, len(first))
        second[below, entries] = second[entries, below] = 0.5 * first[entries]
        return first, second


def wishart_jacobian(cells: Sequence[np.ndarray], at: Factored) -> np.ndarray:
    """Derivatives of natural parameters, whose cells for means, logs, sums and squares these are, (n_cells, n_free)."""
    norm, log_root, total, square = cells
    means, factors = at.places
    d = means.shape[1]
    derivatives = np.zeros((sum(cell.size for cell in cells), means.size + factors.size))
    derivatives[norm[:, None], means] = -at.mean
    for precision, cells_of_factor in enumerate(factors):
        first, _ = at.rows(precision)
        factor = at.factor[precision]
        derivatives[log_root[precision], cells_of_factor[:d]] = 0.5
        moved = np.zeros((len(cells_of_factor), d, d))
        moved[np.arange(len(cells_of_factor)), at.row_of] = first @ factor.T
        products = pack_symmetric(moved + moved.swapaxes(-1, -2))
        derivatives[square[precision][:, None], cells_of_factor] = -0.5 * pairings(d)[:, None] * products.T
        for k in at.means_of(precision):
            derivatives[total[k][:, None], means[k]] = factor
            derivatives[total[k][at.row_of], cells_of_factor] = first @ at.mean[k]
    return derivatives


def wishart_information(coordinates: Sequence[np.ndarray], at: Factored) -> np.ndarray:
    """Minus the second derivatives of coordinates . natural parameters, (n_free, n_free)."""
    kappa, _, total, square = coordinates
    means, factors = at.places
    d = means.shape[1]
    curvature = np.zeros((means.size + factors.size,) * 2)
    curvature[means, means] = kappa[:, None]
    for precision, cells_of_factor in enumerate(factors):
        first, second = at.rows(precision)
        scale = unpack_symmetric(square[precision], d)
        # - d2 of t' C m and + d2 of tr(S C C') / 2
        pull = scale @ at.factor[precision]
        products = (first @ first.T) * scale[np.ix_(at.row_of, at.row_of)]
        for k in at.means_of(precision):
            drawn = total[k][at.row_of][:, None] * first
            curvature[cells_of_factor[:, None], means[k]] = -drawn
            curvature[means[k][:, None], cells_of_factor] = -drawn.T
            pull = pull - np.outer(total[k], at.mean[k])
        curvature[cells_of_factor[:, None], cells_of_factor] = products + (second * pull[at.row_of][:, None]).sum(
            axis=-1
        )
    return curvature
