"""Rows of regressions: which share matrices and noises, their points, and their parts as one array."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from skvbem._kernels import _regressions
from skvbem._lazy import cached_property
from skvbem._numerics import first_axes_last, last_axes_first, pack_symmetric, pairings


class RegressionPoint(NamedTuple):
    """Coefficients (n_rows, n_regressors, ...) and precisions of the noise (n_noises, ...)."""

    coefficients: np.ndarray
    precision: np.ndarray


@dataclass(frozen=True)
class RegressionRows:
    """Index arrays that all regressions with the same rows share.

    Parameters
    ----------
    n_precisions, n_noises : int
    ends : tuple of int
        Where cells of matrices, of sums and of counts end.
    n_sharing : ndarray of int, shape (n_precisions,)
        Rows that have each matrix.
    n_coefficients : ndarray of int, shape (n_noises,)
        Coefficients that stand on each noise.
    has_equal_blocks : bool
        Whether each matrix serves as many rows, one after the other.
    has_own_noises : bool
        Whether each row has a noise of its own, in their order.
    n_regressors : int
    precision_of, noise_of : ndarray of int, shape (n_rows,)
        Which precision matrix and which noise each row has; no noises where these are known.
    """

    n_precisions: int
    n_noises: int
    ends: tuple[int, int, int]
    n_sharing: np.ndarray
    n_coefficients: np.ndarray
    has_equal_blocks: bool
    has_own_noises: bool
    n_regressors: int
    precision_of: np.ndarray
    noise_of: np.ndarray

    @classmethod
    def of(cls, n_regressors: int, precision_of: np.ndarray, noise_of: np.ndarray | None) -> Self:
        """The structure of rows with these matrices and noises."""
        n_sharing = np.bincount(precision_of)
        on_noise = np.zeros(0, dtype=int) if noise_of is None else n_regressors * np.bincount(noise_of)
        n_rows, n_precisions, n_noises = len(precision_of), len(n_sharing), len(on_noise)
        first = n_precisions * n_regressors * (n_regressors + 1) // 2
        second = first + n_rows * n_regressors
        each, rest = divmod(n_rows, n_precisions)
        equal = not rest and bool(np.all(precision_of == np.arange(n_rows) // each))
        alone = noise_of is not None and np.array_equal(noise_of, np.arange(n_rows))
        ends = first, second, second + n_noises
        owner = np.ascontiguousarray(precision_of, dtype=np.int64)
        noise = np.ascontiguousarray([] if noise_of is None else noise_of, dtype=np.int64)
        return cls(n_precisions, n_noises, ends, n_sharing, on_noise, equal, alone, n_regressors, owner, noise)

    def expect(self, coordinates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Expected natural parameters of densities with coordinates (n_cells, ...), of their shape; log normalizers."""
        lanes = _lanes(coordinates)
        natural, log_normalizer = np.empty(lanes.shape), np.empty(len(lanes))
        _regressions.expect(*self.arrays, lanes, natural, log_normalizer)
        return natural.T.reshape(coordinates.shape), log_normalizer.reshape(coordinates.shape[1:])

    def growth(self, coordinates: np.ndarray, statistics: np.ndarray) -> np.ndarray:
        """By how much log normalizers of densities (n_cells, ...) grow with statistics, (...), nats."""
        n_axes = max(coordinates.ndim, statistics.ndim)
        one, other = (x.reshape(*x.shape, *(1,) * (n_axes - x.ndim)) for x in (coordinates, statistics))
        batch = np.broadcast_shapes(one.shape[1:], other.shape[1:])
        if coordinates.ndim > 1:  # else one density for all
            coordinates = np.broadcast_to(one, (len(one), *batch))
        statistics = np.broadcast_to(other, (len(other), *batch))
        grown = np.empty(int(np.prod(batch)))
        _regressions.growth(*self.arrays, _lanes(coordinates), _lanes(statistics), grown)
        return grown.reshape(batch)

    @cached_property
    def arrays(self) -> tuple[int, np.ndarray, np.ndarray, np.ndarray, int]:
        """Regressors, matrix and noise of each row, rows of each matrix, and noises, as kernels take them."""
        return self.n_regressors, self.precision_of, self.noise_of, self.n_sharing.astype(float), self.n_noises

    def solution(self, matrices: np.ndarray, inverses: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        r"""Solutions :math:`\Lambda^{-1} h` for rows h (..., n_rows, D), and the squares :math:`h^\top \Lambda^{-1} h`.

        Where regressors are nearly collinear, an inverse holds fewer digits than its matrix. What a product with it
        leaves of a row mends both, and an error enters the squares no more than in its square.
        """
        d, batch = rows.shape[-1], rows.shape[:-2]
        single = [
            np.ascontiguousarray(x if x.shape[:-n] == batch else np.broadcast_to(x, (*batch, *x.shape[-n:])))
            for x, n in ((matrices, 3), (inverses, 3), (rows, 2))
        ]
        single = [x.reshape(-1, *x.shape[len(batch) :]) for x in single]
        solutions, squares = np.empty(single[2].shape), np.empty(single[2].shape[:2])
        _regressions.solve(self.precision_of, single[0], single[1], single[2], solutions, squares)
        return solutions.reshape(*batch, -1, d), squares.reshape(*batch, -1)

    def products(self, matrices: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Matrices (..., n_precisions, D, D) times each row (..., n_rows, D) that has them."""
        if self.has_equal_blocks:
            blocks = rows.reshape(*rows.shape[:-2], self.n_precisions, -1, rows.shape[-1])
            product = blocks @ matrices.swapaxes(-1, -2)
            return product.reshape(*product.shape[:-3], *rows.shape[-2:])
        return (matrices[..., self.precision_of, :, :] @ rows[..., None])[..., 0]

    def by_precision(self, weight: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Sums of weighted squares of rows that share a matrix, (..., n_precisions, D, D)."""
        weighted = weight[..., None] * rows
        if self.has_equal_blocks:
            shape = (*rows.shape[:-2], self.n_precisions, -1, rows.shape[-1])
            return weighted.reshape(shape).swapaxes(-1, -2) @ rows.reshape(shape)
        squares = np.moveaxis(weighted[..., :, None] * rows[..., None, :], -3, -1)
        return np.moveaxis(summed_over(squares, self.precision_of, self.n_precisions), -1, -3)


def _lanes(cells: np.ndarray) -> np.ndarray:
    """Cells (n_cells, ...) of each lane after those of the lane before."""
    return np.ascontiguousarray(cells.reshape(len(cells), -1).T)


def flat_cells(packed: np.ndarray, total: np.ndarray, count: np.ndarray, square: np.ndarray) -> np.ndarray:
    """Cells of packed matrices, sums, counts and squares as one array, batch axes last."""
    batch = packed.shape[:-2]
    flat = np.concatenate([packed.reshape(*batch, -1), total.reshape(*batch, -1), count, square], axis=-1)
    return flat.T if flat.ndim < 3 else last_axes_first(flat)


def natural_cells(products: np.ndarray, total: np.ndarray, log_rho: np.ndarray, rho: np.ndarray) -> np.ndarray:
    """Natural parameters as flat cells, from those of matrices (..., D, D), rows and noises."""
    packed = -0.5 * pairings(products.shape[-1]) * pack_symmetric(products)
    return flat_cells(packed, total, 0.5 * (log_rho - np.log(2 * np.pi)), -0.5 * rho)


def summed_over(values: np.ndarray, group_of: np.ndarray, n_groups: int) -> np.ndarray:
    """Sums of values (..., n) over groups, (..., n_groups)."""
    return values @ (group_of[:, None] == np.arange(n_groups))


def batch_first(point: RegressionPoint) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients and precisions, batch axes first."""
    return first_axes_last(point.coefficients, 2), first_axes_last(point.precision)


def batch_last(coefficients: np.ndarray, precision: np.ndarray) -> RegressionPoint:
    """A point, batch axes last."""
    return RegressionPoint(last_axes_first(coefficients, 2), last_axes_first(precision))
