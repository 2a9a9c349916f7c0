r"""The E step of factor analyzers: rows by what is missing, and the moments of their factors.

Given natural parameters, the exponent of a row with the cells O observed is quadratic in its factors,

.. math::

    \sum_{j \in O} a_j + \sum_{j \in O} (y_j s_{j0} + y_j^2 q_j) + \tilde x^\top M_O \tilde x
        + \sum_{j \in O} y_j s_j^\top x - \tfrac12 x^\top x,

with :math:`\tilde x = (1, x)`, sums s, squares q and :math:`M_O` the natural parameters of the matrices of observed
columns together. So the factors are normal with precision :math:`P = I - 2 M_{xx}` and mean :math:`P^{-1} h`,
:math:`h = \sum_j y_j s_j + 2 M_{0x}`, and the integral over them adds
:math:`\tfrac12 h^\top P^{-1} h - \tfrac12 \ln|P|`. No d by d matrix is made. A row without observed cells is left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, Self

import numpy as np

from skvbem._numerics import pack_symmetric, pairings, safe_cholesky, unpack_symmetric
from skvbem.emissions.base import Step, as_matrix, by_row
from skvbem.emissions.gaussian.dense_step import covariance_of_products, runs_of_patterns
from skvbem.families import Regression
from skvbem.families.parallel_generator import ParallelGenerator

# Cells of a table whose measured values are kept from step to step.
_MAX_KEPT = 2**21
# Patterns of missing cells of which factors' precisions are kept for a step.
_N_PATTERNS = 2**12


@dataclass(frozen=True, eq=False)
class FactorTable:
    """Rows of measurements.

    Parameters
    ----------
    origin, unit : ndarray of shape (d,)
        In which the emission measures.
    values : ndarray of shape (n_rows, d)
        NaN where a cell is missing.
    pattern : ndarray of int, shape (n_rows,), or None
        Which of the patterns of missing cells each row has; None if no cell of the table is missing.
    patterns : ndarray of bool, shape (n_patterns, d)
        Which cells are missing.
    """

    origin: np.ndarray
    unit: np.ndarray
    values: np.ndarray
    pattern: np.ndarray | None
    patterns: np.ndarray

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: slice) -> Self:
        if isinstance(rows, slice) and rows.indices(len(self)) == (0, len(self), 1):
            return self  # whose measured values are kept from step to step
        pattern = None if self.pattern is None else self.pattern[rows]
        block = replace(self, values=self.values[rows], pattern=pattern)
        if self.values.size <= _MAX_KEPT:  # what is measured once serves all steps
            vars(block).update(measured=self.measured[:, rows], squares=self.squares[:, rows])
        return block

    @cached_property
    def measured(self) -> np.ndarray:
        """Rows in the emission's units, (d, n_rows), 0 where missing."""
        measured = np.array((self.values - self.origin).T, dtype=float, order="C")
        measured /= self.unit[:, None]
        if self.pattern is not None:
            np.nan_to_num(measured, copy=False, nan=0.0, posinf=np.inf, neginf=-np.inf)
        return measured

    @cached_property
    def squares(self) -> np.ndarray:
        """Squares of the measured rows, (d, n_rows)."""
        return self.measured**2

    @cached_property
    def runs(self) -> list[tuple[slice | np.ndarray, tuple[int, ...]]]:
        """Rows with the same missing columns, and these columns."""
        return runs_of_patterns(self.pattern, self.patterns)


class Factors(NamedTuple):
    """What rows with the same cells observed share: (n_lanes, n_components, ...).

    Parameters
    ----------
    columns : ndarray of int
        That are observed.
    constant : ndarray of shape (n_lanes, n_components)
        What does not depend on the row, nats.
    root : ndarray of shape (n_lanes, n_components, q, q)
        A root of the covariance of the factors, the inverse of the Cholesky factor of their precision.
    shift : ndarray of shape (n_lanes, n_components, q)
        h of a row whose measurements are 0.
    """

    columns: np.ndarray
    constant: np.ndarray
    root: np.ndarray
    shift: np.ndarray


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


class FactorStep(Step):
    """Factor analyzers at natural parameters.

    Parameters
    ----------
    layout : Regression
        Whose coordinates are not asked: which rows of coefficients share matrices and noises.
    natural : ndarray of shape (n_cells,) or (n_cells, n_lanes)
    unit : ndarray of shape (d,)
        Of the measurements.
    shared : ndarray of bool, shape (d,)
        Which columns share the matrix of their component, the first one.
    in_use : ndarray of bool, shape (n_components, D)
        Which regressors each component has.
    """

    def __init__(
        self, layout: Regression, natural: np.ndarray, unit: np.ndarray, shared: np.ndarray, in_use: np.ndarray
    ):
        self.layout, self.single, self.shared = layout, natural.ndim == 1, shared
        lanes, n_components, d = natural.reshape(len(natural), -1), layout.n_components, len(unit)
        packed, total, count, square = layout.split(lanes)
        self.n_lanes, self.n_components, self.n_columns = lanes.shape[1], n_components, d
        n_regressors = layout.n_regressors
        shape = (self.n_lanes, n_components)
        self.matrices = unpack_symmetric(packed / pairings(n_regressors), n_regressors).reshape(
            *shape, -1, n_regressors, n_regressors
        )
        self.sums = total.reshape(*shape, d, n_regressors)
        self.in_use = None if in_use.all() else in_use
        if self.in_use is not None:  # what is not in use is as its prior says, and changes no row
            self.matrices = self.matrices * (in_use[:, None, :, None] & in_use[:, None, None])
            self.sums = self.sums * in_use[:, None]
        self.at_origin = count[..., layout.noise_of].reshape(*shape, d) - np.log(unit)
        self.square = square[..., layout.noise_of].reshape(*shape, d)
        self._matrix_of_column = layout.precision_of[:d]
        self._given = lru_cache(maxsize=_N_PATTERNS)(self._of_pattern)

    @property
    def n_factors(self) -> int:
        """Number of factors, q."""
        return self.layout.n_regressors - 1

    @property
    def _n_members(self) -> int:
        """Components of all lanes."""
        return self.n_lanes * self.n_components

    def _of_pattern(self, *missing: int) -> Factors:
        """Factors of rows with these columns missing."""
        observed = np.ones(self.n_columns, dtype=bool)
        observed[list(missing)] = False
        matrix = self._matrix_of(observed)
        precision = np.eye(self.n_factors) - 2 * matrix[..., 1:, 1:]
        factor = safe_cholesky(precision)
        root = np.linalg.inv(factor)
        log_det = np.log(np.diagonal(factor, axis1=-2, axis2=-1)).sum(axis=-1)
        constant = self.at_origin[..., observed].sum(axis=-1) + matrix[..., 0, 0] - log_det
        return Factors(np.flatnonzero(observed), constant, root, 2 * matrix[..., 0, 1:])

    def _matrix_of(self, observed: np.ndarray) -> np.ndarray:
        """Natural parameters of the matrices of some columns together, (n_lanes, n_components, D, D)."""
        columns = np.flatnonzero(~self.shared)
        n_shared = int(self.shared.sum())
        first = int(n_shared > 0)
        matrix = self.matrices[..., first:, :, :][..., observed[columns], :, :].sum(axis=-3)
        if not n_shared:
            return matrix
        seen = observed[self.shared]
        if seen.all():
            return matrix + self.matrices[..., 0, :, :]
        # of columns that share a matrix each has its mean by its sum and square, and the same covariance as all
        sums, square = self.sums[..., self.shared, :], self.square[..., self.shared]
        squares = 0.25 * sums[..., :, None] * sums[..., None, :] / square[..., None, None]
        covariance = (self.matrices[..., 0, :, :] - squares.sum(axis=-3)) / n_shared
        return matrix + squares[..., seen, :, :].sum(axis=-3) + seen.sum() * covariance

    def log_likelihood(self, block: FactorTable) -> np.ndarray:
        """Expected log likelihoods of rows, nats, their factors integrated out."""
        log_likelihood = np.zeros((self._n_members, len(block)))
        for rows, missing in block.runs:
            if len(missing) < self.n_columns:
                log_likelihood[:, rows] = self._of_rows(block, rows, self._given(*missing))
        return by_row(log_likelihood, self.n_components, self.single)

    def _of_rows(self, block: FactorTable, rows: Any, factors: Factors) -> np.ndarray:
        """Log likelihoods (n_lanes x n_components, n_rows) of rows with the same cells observed."""
        columns, n = factors.columns, self._n_members
        y, squares = block.measured[columns][:, rows], block.squares[columns][:, rows]
        of_origin = self.sums[..., columns, 0].reshape(n, -1) @ y + self.square[..., columns].reshape(n, -1) @ squares
        turned = self._turned(factors, y)
        return factors.constant.reshape(n, 1) + of_origin + 0.5 * np.einsum("kqn,kqn->kn", turned, turned)

    def _turned(self, factors: Factors, y: np.ndarray) -> np.ndarray:
        """Means of factors in units of their own spread, (n_lanes x n_components, q, n_rows)."""
        by_column = factors.root @ self.sums[..., factors.columns, 1:].swapaxes(-1, -2)
        at_zero = (factors.root @ factors.shift[..., None]).reshape(self._n_members, self.n_factors, 1)
        return by_column.reshape(self._n_members, self.n_factors, len(factors.columns)) @ y + at_zero

    def means(self, block: FactorTable, rows: Any, factors: Factors) -> np.ndarray:
        """Means of the factors of rows with the same cells observed, (n_lanes x n_components, q, n_rows)."""
        turned = self._turned(factors, block.measured[factors.columns][:, rows])
        return factors.root.reshape(self._n_members, self.n_factors, self.n_factors).swapaxes(-1, -2) @ turned

    def covariance(self, factors: Factors) -> np.ndarray:
        """Covariances of factors, (n_lanes, n_components, q, q); 0 of those that are not in use."""
        covariance = factors.root.swapaxes(-1, -2) @ factors.root
        if self.in_use is None:
            return covariance
        return covariance * (self.in_use[:, 1:, None] & self.in_use[:, None, 1:])

    def zeros(self) -> np.ndarray:
        """An empty sum of each lane and component: as its statistics, with counts and squares of columns."""
        n_matrices, d, n_regressors = self.matrices.shape[2], self.n_columns, self.layout.n_regressors
        width = (n_matrices + 1) * n_regressors * (n_regressors + 1) // 2 + d * n_regressors + 2 * d
        return np.zeros((self.n_lanes, self.n_components, width))

    def add(self, block: FactorTable, responsibilities: np.ndarray, total: np.ndarray) -> None:
        """Add the statistics of a block to a sum."""
        weights = as_matrix(responsibilities)
        for rows, missing in block.runs:
            if len(missing) < self.n_columns:
                factors = self._given(*missing)
                self._add(block, rows, factors, weights[:, rows], self.means(block, rows, factors), total)

    def _add(
        self,
        block: FactorTable,
        rows: Any,
        factors: Factors,
        weights: np.ndarray,
        x: np.ndarray,
        total: np.ndarray,
        *,
        known: bool = False,
    ) -> None:
        """Add rows with the same cells observed, whose factors have means x, and are `known` or vary about them."""
        n, columns, d = len(weights), factors.columns, self.n_columns
        regressors = np.concatenate([np.ones((n, 1, x.shape[-1])), x], axis=1)
        weighted = weights[:, None] * regressors
        products = weighted @ regressors.swapaxes(-1, -2)
        counts = weights.sum(axis=-1)
        if not known:
            covariance = self.covariance(factors).reshape(n, self.n_factors, self.n_factors)
            products[:, 1:, 1:] += counts[:, None, None] * covariance
        packed = pack_symmetric(products)
        y, squares = block.measured[columns][:, rows], block.squares[columns][:, rows]
        flat = total.reshape(n, -1)
        n_matrices, width = self.matrices.shape[2], packed.shape[-1]
        for matrix in np.unique(self._matrix_of_column[columns]):
            flat[:, matrix * width : (matrix + 1) * width] += packed
        at = n_matrices * width
        sums = flat[:, at : at + d * self.layout.n_regressors].reshape(n, d, -1)
        sums[:, columns] += y @ weighted.swapaxes(-1, -2)
        at += d * self.layout.n_regressors
        flat[:, at + columns] += counts[:, None]
        flat[:, at + d + columns] += weights @ squares.T
        flat[:, at + 2 * d :] += packed

    def expansion(self, total: np.ndarray) -> FactorExpansion | None:
        """Factors centered and turned such that they are white and the loadings orthogonal."""
        if not self.n_factors:
            return None
        n_regressors = self.layout.n_regressors
        of_rows = unpack_symmetric(total[..., -n_regressors * (n_regressors + 1) // 2 :], n_regressors)
        loadings = -2 * self.matrices[..., 1:, 1:].sum(axis=2)
        if self.in_use is not None:  # factors that are not there are white, and come last
            places = np.arange(self.n_factors)
            of_rows[..., 1 + places, 1 + places] += np.where(self.in_use[:, 1:], 0.0, of_rows[..., :1, 0])
            loadings[..., places, places] -= ~self.in_use[:, 1:]
        return FactorExpansion.whitening(self.layout, of_rows, loadings)

    def statistics(self, total: np.ndarray) -> np.ndarray:
        """Statistics of a sum: counts and squares of columns are added where they share a noise."""
        layout, d = self.layout, self.n_columns
        of_rows, n_regressors = layout.n_regressors * d, layout.n_regressors
        total = total[..., : -n_regressors * (n_regressors + 1) // 2]
        split = np.split(
            total, [total.shape[-1] - 2 * d - of_rows, total.shape[-1] - 2 * d, total.shape[-1] - d], axis=-1
        )
        packed, sums, counts, squares = (part.reshape(len(total), -1) for part in split)
        groups = (layout.noise_of_row[:, None] == np.arange(layout.n_noises)).astype(float)
        cells = np.concatenate([packed, sums, counts @ groups, squares @ groups], axis=-1)
        return cells[0] if self.single else cells.T

    def of_rows(self, block: FactorTable) -> np.ndarray:
        """Statistics of each row, its factors by their moments, (n_rows, n_components, n_own)."""
        n, width = len(block), self.zeros().shape[-1]
        cells = np.zeros((self.n_components, n, width))
        for k, row in np.ndindex(self.n_components, n):
            chosen = np.zeros((1, self.n_components))
            chosen[0, k] = 1.0
            total = self.zeros()
            self.add(block[row : row + 1], chosen, total)
            cells[k, row] = total[0, k]
        d, n_regressors = self.n_columns, self.layout.n_regressors
        width -= n_regressors * (n_regressors + 1) // 2
        first, counts, squares = np.split(cells[..., :width], [width - 2 * d, width - d], axis=-1)
        noises = self.layout.noise_of_row[:d]  # those of the first component, as of any other
        groups = (noises[:, None] == np.unique(noises)).astype(float)
        return np.concatenate([first, counts @ groups, squares @ groups], axis=-1).swapaxes(0, 1)

    def hidden_covariance(self, block: FactorTable, responsibilities: np.ndarray) -> np.ndarray | None:
        """Covariance of a component's statistics: factors, their products, and products with measurements vary."""
        if not self.n_factors:
            return None
        d, n_regressors, n_matrices = self.n_columns, self.layout.n_regressors, self.matrices.shape[2]
        width = n_regressors * (n_regressors + 1) // 2
        n_own = self.of_rows(block[:0]).shape[-1]
        summed = np.zeros((self.n_components, n_own, n_own))
        i, j = np.triu_indices(n_regressors)
        factor_cells = np.flatnonzero(j > 0)  # of a packed matrix: x, then the products of x in order
        order = np.concatenate([factor_cells[i[factor_cells] == 0], factor_cells[i[factor_cells] > 0]])
        left, right = np.triu_indices(self.n_factors)
        for rows, missing in block.runs:
            if len(missing) == d:
                continue
            factors = self._given(*missing)
            columns, y = factors.columns, block.measured[factors.columns][:, rows]
            matrices = np.unique(self._matrix_of_column[columns])
            of_matrices = (matrices[:, None] * width + order).ravel()
            places = n_matrices * width + columns[:, None] * n_regressors + np.arange(1, n_regressors)
            means = self.means(block, rows, factors)
            for k, (x, covariance) in enumerate(zip(means, self.covariance(factors)[0])):
                weight = responsibilities[rows, k]
                of_products = covariance_of_products(x, covariance, weight)
                tiled = np.tile(of_products, (len(matrices), len(matrices)))
                summed[k, of_matrices[:, None], of_matrices] += tiled
                weighted = y * weight
                of_sums = np.einsum("ab,kl->akbl", weighted @ y.T, covariance)
                flat = places.ravel()
                summed[k, flat[:, None], flat] += of_sums.reshape(len(flat), len(flat))
                with_x = weighted.sum(axis=1)[:, None, None] * covariance
                crossed = np.einsum("kl,am->aklm", covariance, weighted @ x.T)
                with_products = crossed[:, :, left, right] + crossed[:, :, right, left]
                both = np.tile(np.concatenate([with_x, with_products], axis=-1), len(matrices)).reshape(len(flat), -1)
                summed[k, flat[:, None], of_matrices] += both
                summed[k, of_matrices[:, None], flat] += both.T
        return summed

    def add_drawn(self, block: FactorTable, components: np.ndarray, rng: ParallelGenerator, total: np.ndarray) -> None:
        """Add statistics of rows whose components are known, factors drawn given what is observed."""
        components = components.reshape(self.n_lanes, -1)
        chosen = (components[:, None, :] == np.arange(self.n_components)[:, None]).astype(float)
        weights = chosen.reshape(-1, len(block))
        noise = np.moveaxis(rng.standard_normal((self.n_factors, len(block), self.n_lanes)), -1, 0)
        noise = np.repeat(noise, self.n_components, axis=0)
        for rows, missing in block.runs:
            if len(missing) < self.n_columns:
                factors = self._given(*missing)
                root = factors.root.reshape(self._n_members, self.n_factors, self.n_factors).swapaxes(-1, -2)
                x = self.means(block, rows, factors) + root @ noise[..., rows]
                if self.in_use is not None:
                    x *= np.tile(self.in_use[:, 1:], (self.n_lanes, 1))[..., None]
                self._add(block, rows, factors, weights[:, rows], x, total, known=True)
