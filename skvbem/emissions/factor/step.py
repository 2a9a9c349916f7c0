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

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from skvbem._kernels import _factors
from skvbem._lazy import cached_property
from skvbem._numerics import (
    covariance_of_products,
    diagonal_places,
    last_axes_first,
    pack_symmetric,
    pairings,
    unpack_symmetric,
)
from skvbem.emissions.base import Step, as_matrix, by_row
from skvbem.emissions.factor.expansion import FactorExpansion
from skvbem.emissions.factor.group_moves import FactorOrbit
from skvbem.emissions.factor.table import FactorTable, MatricesOfColumns
from skvbem.families import Regression
from skvbem.families.parallel_generator import ParallelGenerator


class PatternFactors(NamedTuple):
    """Moments of factors that rows with the same cells observed share, by lane and component, packed, patterns last.

    Parameters
    ----------
    pattern : ndarray of int32, shape (n_rows,)
        Which of the patterns each row has; empty if there is one alone.
    observed : ndarray of shape (n_patterns, d)
        1 where a cell is observed, 0 where it is missing.
    matrices : ndarray of shape (n_members, (1 + q) (2 + q) / 2, n_patterns)
        Natural parameters of the regressors (1, x), of all observed columns together.
    constant : ndarray of shape (n_members, n_patterns)
        What does not depend on the row, nats.
    root, covariance : ndarray of shape (n_members, q (q + 1) / 2, n_patterns)
        Of the factors; see `skvbem._kernels._factors.invert`. Factors that are not in use have none. Roots are there
        where factors are drawn.
    matrices_seen : ndarray of shape (n_patterns, n_matrices + 1)
        1 for each matrix that observed columns have, and where there are any.
    """

    pattern: np.ndarray
    observed: np.ndarray
    matrices: np.ndarray
    constant: np.ndarray
    root: np.ndarray
    covariance: np.ndarray
    matrices_seen: np.ndarray

    def at(self, packed: np.ndarray, row: int) -> np.ndarray:
        """Symmetric matrices (n_members, q, q) of the pattern that a row has."""
        cells = packed[..., self.pattern[row] if len(self.pattern) else 0]
        return unpack_symmetric(cells, int(np.sqrt(2 * cells.shape[-1])))


class FactorStep(Step):
    """Factor analyzers at natural parameters.

    Parameters
    ----------
    layout : Regression
        Whose coordinates are not asked: which rows of coefficients share matrices and noises.
    natural : ndarray of shape (n_cells,) or (n_cells, n_lanes)
    unit : ndarray of shape (d,)
        Of the measurements.
    matrices : MatricesOfColumns
        Which matrix of a component each column has.
    in_use : ndarray of bool, shape (n_components, D), or None
        Which regressors each component has; None if each has all.
    """

    def __init__(
        self,
        layout: Regression,
        natural: np.ndarray,
        unit: np.ndarray,
        matrices: MatricesOfColumns,
        in_use: np.ndarray | None,
    ):
        self.layout, self.single, self.matrices, self.in_use = layout, natural.ndim == 1, matrices, in_use
        self._whole: PatternFactors | None = None
        lanes, n_components, d = natural.reshape(len(natural), -1), layout.n_components, len(unit)
        packed, total, count, square = layout.split(lanes)
        self.n_lanes, self.n_components, self.n_columns = lanes.shape[1], n_components, d
        self._n_members = self.n_lanes * n_components
        n_regressors = layout.n_regressors
        self.n_factors, shape = n_regressors - 1, (self.n_lanes, n_components)
        self.packed = (packed / pairings(n_regressors)).reshape(*shape, -1, packed.shape[-1])
        self.n_matrices = self.packed.shape[2]  # of a component
        self.sums = total.reshape(*shape, d, n_regressors)
        if in_use is not None:  # what is not in use is as its prior says, and changes no row
            self.packed = self.packed * pack_symmetric(in_use[:, :, None] & in_use[:, None])[:, None]
            self.sums = self.sums * in_use[:, None]
        self.at_origin = count[..., layout.noise_of_row].reshape(-1, d) - np.log(unit)
        self.square = np.ascontiguousarray(square[..., layout.noise_of_row].reshape(-1, d))

    @cached_property
    def _of_regressors(self) -> np.ndarray:
        """Coefficients of the measurements, (n_members (1 + q), d)."""
        by_column = self.sums.reshape(self._n_members, self.n_columns, -1)
        return np.ascontiguousarray(by_column.swapaxes(-1, -2)).reshape(-1, self.n_columns)

    def _factors_of(self, block: FactorTable, with_roots: bool) -> PatternFactors:
        """Moments of factors of each pattern of missing cells of a block."""
        if block.pattern is None:
            if self._whole is None:
                self._whole = self._of_patterns(block, with_roots=True)
            return self._whole
        return self._of_patterns(block, with_roots)

    def _of_patterns(self, block: FactorTable, with_roots: bool) -> PatternFactors:
        observed, pattern = block.observed
        n, q, n_patterns = self._n_members, self.n_factors, len(observed)
        matrices = np.ascontiguousarray(self._matrices_of(observed))
        precision = -2.0 * matrices[:, 1 + q :]
        precision[:, diagonal_places(q)] += 1.0
        root = np.empty((n if with_roots else 0, *precision.shape[1:]))
        covariance, constant = np.empty(precision.shape), np.empty((n, n_patterns))
        _factors.invert(precision, root, covariance, constant)
        constant += self.at_origin @ observed.T + matrices[:, 0]
        if self.in_use is not None:
            used = pack_symmetric(self.in_use[:, 1:, None] & self.in_use[:, None, 1:])[..., None]
            for symmetric in (root, covariance):
                symmetric *= np.tile(used, (len(symmetric) // self.n_components, 1, 1))
        seen = block.matrices_seen(self.matrices)
        return PatternFactors(pattern, observed, matrices, constant, root, covariance, seen)

    def _matrices_of(self, observed: np.ndarray) -> np.ndarray:
        """Natural parameters of the regressors of patterns, (n_members, (1 + q) (2 + q) / 2, n_patterns)."""
        packed = self.packed.reshape(self._n_members, self.n_matrices, -1)
        n_shared, alone = len(self.matrices.sharing), self.matrices.alone
        matrix = packed[:, n_shared:].swapaxes(-1, -2) @ observed[:, alone].T
        if not n_shared:
            return matrix
        if observed[:, ~alone].all():
            return matrix + packed[:, :n_shared].sum(axis=1)[..., None]
        # of columns that share a matrix each has its mean by its sum and square, and the same covariance as all
        for shared, columns in zip(packed.swapaxes(0, 1), self.matrices.sharing):
            seen, square = observed[:, columns], self.square[:, columns]
            halved = 0.5 * self.sums[..., columns, :].reshape(*square.shape, -1)
            squares = pack_symmetric(halved[..., :, None] * (halved / square[..., None])[..., None, :])
            covariance = (shared - squares.sum(axis=1)) / len(columns)
            matrix = matrix + squares.swapaxes(-1, -2) @ seen.T + covariance[..., None] * seen.sum(axis=1)
        return matrix

    def log_likelihood(self, block: FactorTable) -> np.ndarray:
        """Expected log likelihoods of rows, nats, their factors integrated out."""
        factors, regressors, log_likelihood = self._located(block)
        vars(block)["_located"] = self, factors, regressors
        return by_row(log_likelihood, self.n_components, self.single)

    def _located(self, block: FactorTable, with_roots: bool = False) -> tuple[PatternFactors, np.ndarray, np.ndarray]:
        """Moments by pattern, regressors (n_members, 1 + q, n_rows), and log likelihoods (n_members, n_rows), nats."""
        factors = self._factors_of(block, with_roots)
        shape = (self._n_members, self.layout.n_regressors, len(block))
        regressors = (self._of_regressors @ block.measured).reshape(shape)
        log_likelihood = np.empty((self._n_members, len(block)))
        _factors.weigh_squares(block.measured, self.square, log_likelihood)
        _factors.locate(
            factors.pattern, factors.matrices, factors.covariance, factors.constant, regressors, log_likelihood
        )
        return factors, regressors, log_likelihood

    def means(self, block: FactorTable) -> np.ndarray:
        """Means of the factors of rows, (n_members, q, n_rows)."""
        return self._located(block)[1][:, 1:]

    def zeros(self) -> np.ndarray:
        """An empty sum of each lane and component: as its statistics, with counts and squares of columns."""
        n_matrices, d, n_regressors = self.n_matrices, self.n_columns, self.layout.n_regressors
        width = (n_matrices + 1) * n_regressors * (n_regressors + 1) // 2 + d * n_regressors + 2 * d
        return np.zeros((self.n_lanes, self.n_components, width))

    def add(self, block: FactorTable, responsibilities: np.ndarray, total: np.ndarray) -> None:
        """Add the statistics of a block to a sum."""
        owner, *located = vars(block).pop("_located", (None,))
        factors, regressors = located if owner is self else self._located(block)[:2]
        self._add(block, as_matrix(responsibilities), factors, regressors, factors.covariance, total)

    def _add(
        self,
        block: FactorTable,
        weights: np.ndarray,
        factors: PatternFactors,
        regressors: np.ndarray,
        covariance: np.ndarray,
        total: np.ndarray,
    ) -> None:
        """Add rows as often as they count, whose factors have these covariances about their means; none if known."""
        n, n_regressors, n_rows = regressors.shape
        d, observed = self.n_columns, factors.observed
        weights, width = np.ascontiguousarray(weights), n_regressors * (n_regressors + 1) // 2
        if block.pattern is None:
            weighted, products = np.empty(regressors.shape), np.empty((n, width, 1))
            _factors.weigh(weights, regressors, weighted, products[..., 0])
            if covariance.size:
                products[:, n_regressors:] += products[:, :1] * covariance
        else:
            weighted, products = weights[:, None] * regressors, np.zeros((n, width, len(observed)))
            _factors.add(factors.pattern, weights, regressors, covariance, products)
        flat = total.reshape(n, -1)
        at, n_sums = self.n_matrices * width, d * n_regressors
        by_matrix = products @ factors.matrices_seen
        flat[:, :at] += by_matrix[..., :-1].swapaxes(-1, -2).reshape(n, -1)
        sums = (weighted.reshape(n * n_regressors, n_rows) @ block.measured.T).reshape(n, n_regressors, d)
        flat[:, at : at + n_sums].reshape(n, d, -1)[:] += sums.swapaxes(-1, -2)
        at += n_sums
        flat[:, at : at + d] += products[:, 0] @ observed
        squares = np.empty((n, d))
        _factors.sum_squares(block.measured, weights, squares)
        flat[:, at + d : at + 2 * d] += squares
        flat[:, at + 2 * d :] += by_matrix[..., -1]

    def expansion(self, total: np.ndarray) -> FactorExpansion | None:
        """Factors centered and turned such that they are white and the loadings orthogonal."""
        if not self.n_factors:
            return None
        n_regressors = self.layout.n_regressors
        products = unpack_symmetric(total[..., -n_regressors * (n_regressors + 1) // 2 :], n_regressors)
        sizes, group_of = self.matrices.n_columns_of_groups, self.matrices.groups
        by_group = [self.packed[:, :, group_of == group].sum(axis=2) for group in range(len(sizes))]
        loadings = -2 * unpack_symmetric(np.stack(by_group, axis=2), n_regressors)[..., 1:, 1:]
        if self.in_use is not None:  # factors that are not there are white, and come last
            places = np.arange(self.n_factors)
            products[..., 1 + places, 1 + places] += np.where(self.in_use[:, 1:], 0.0, products[..., :1, 0])
            loadings[..., places, places] -= ~self.in_use[:, None, 1:]
        return FactorExpansion.whitening(self.layout, products, loadings, sizes)

    def statistics(self, total: np.ndarray) -> np.ndarray:
        """Statistics of a sum: counts and squares of columns are added where they share a noise."""
        layout, d = self.layout, self.n_columns
        n_sums, n_regressors = layout.n_regressors * d, layout.n_regressors
        total = total[..., : -n_regressors * (n_regressors + 1) // 2]
        cuts = [0, *(total.shape[-1] - n for n in (2 * d + n_sums, 2 * d, d, 0))]
        packed, sums, counts, squares = (
            total[..., first:last].reshape(len(total), -1) for first, last in pairwise(cuts)
        )
        cells = np.concatenate([packed, sums, layout.by_noise(counts), layout.by_noise(squares)], axis=-1)
        return cells[0] if self.single else cells.T

    def of_rows(self, block: FactorTable) -> np.ndarray:
        """Statistics of each row, its factors by their moments, (n_rows, n_components, n_own)."""
        factors, regressors, _ = self._located(block)
        (k, n_regressors, n), d = regressors.shape, self.n_columns
        pattern = factors.pattern if len(factors.pattern) else np.zeros(n, dtype=int)
        left, right = np.triu_indices(n_regressors)
        products = regressors[:, left] * regressors[:, right]
        products[:, n_regressors:] += factors.covariance[..., pattern]
        observed = factors.observed[pattern]
        by_matrix = products[:, None] * factors.matrices_seen[pattern, :-1].T[:, None]
        sums = block.measured[:, None] * regressors[:, None]
        noises = self.layout.noise_of_row[:d]  # those of the first component, as of any other
        groups = (noises[:, None] == np.unique(noises)).astype(float)
        by_noise = [
            np.broadcast_to((each @ groups).T, (k, groups.shape[1], n)) for each in (observed, block.measured.T**2)
        ]
        parts = [part.reshape(k, -1, n) for part in (by_matrix, sums, *by_noise)]
        return last_axes_first(np.concatenate(parts, axis=1))

    def hidden_covariance(self, block: FactorTable, responsibilities: np.ndarray) -> np.ndarray | None:
        """Covariance of a component's statistics: factors, their products, and products with measurements vary."""
        if not self.n_factors:
            return None
        d, n_regressors, n_matrices = self.n_columns, self.layout.n_regressors, self.n_matrices
        width = n_regressors * (n_regressors + 1) // 2
        n_own = n_matrices * width + d * n_regressors + 2 * len(np.unique(self.layout.noise_of_row[:d]))
        summed = np.zeros((self.n_components, n_own, n_own))
        i, j = np.triu_indices(n_regressors)
        factor_cells = np.flatnonzero(j > 0)  # of a packed matrix: x, then the products of x in order
        order = np.concatenate([factor_cells[i[factor_cells] == 0], factor_cells[i[factor_cells] > 0]])
        left, right = np.triu_indices(self.n_factors)
        factors, regressors, _ = self._located(block)
        for rows, missing in block.runs:
            if len(missing) == d or not len(block):
                continue
            columns = np.delete(np.arange(d), missing)
            y, row = block.measured[columns][:, rows], rows.start or 0 if isinstance(rows, slice) else rows[0]
            matrices = np.unique(self.layout.precision_of[columns])
            matrix_cells = (matrices[:, None] * width + order).ravel()
            places = n_matrices * width + columns[:, None] * n_regressors + np.arange(1, n_regressors)
            means = regressors[:, 1:, rows]
            for k, (x, covariance) in enumerate(zip(means, factors.at(factors.covariance, row))):
                weight = responsibilities[rows, k]
                product_covariance = covariance_of_products(x, covariance, weight)
                tiled = np.tile(product_covariance, (len(matrices), len(matrices)))
                summed[k, matrix_cells[:, None], matrix_cells] += tiled
                weighted = y * weight
                sum_covariance = np.einsum("ab,kl->akbl", weighted @ y.T, covariance)
                flat = places.ravel()
                summed[k, flat[:, None], flat] += sum_covariance.reshape(len(flat), len(flat))
                with_x = weighted.sum(axis=1)[:, None, None] * covariance
                crossed = np.einsum("kl,am->aklm", covariance, weighted @ x.T)
                with_products = crossed[:, :, left, right] + crossed[:, :, right, left]
                both = np.tile(np.concatenate([with_x, with_products], axis=-1), len(matrices)).reshape(len(flat), -1)
                summed[k, flat[:, None], matrix_cells] += both
                summed[k, matrix_cells[:, None], flat] += both.T
        return summed

    def add_drawn(self, block: FactorTable, components: np.ndarray, rng: ParallelGenerator, total: np.ndarray) -> None:
        """Add statistics of rows whose components are known, factors drawn given what is observed."""
        components = components.reshape(self.n_lanes, -1)
        chosen = (components[:, None, :] == np.arange(self.n_components)[:, None]).astype(float)
        weights = chosen.reshape(-1, len(block))
        noise = last_axes_first(rng.standard_normal((self.n_factors, len(block), self.n_lanes)))
        noise = np.repeat(noise, self.n_components, axis=0)
        factors, regressors, _ = self._located(block, with_roots=True)
        _factors.scatter(factors.pattern, factors.root, noise, regressors)
        self._add(block, weights, factors, regressors, np.empty((len(weights), 0, 0)), total)

    def group_move(self, total: np.ndarray, prior: np.ndarray, rng: ParallelGenerator) -> np.ndarray:
        """A sum after a draw of the affine maps of factors; see `skvbem.emissions.factor.group_moves`."""
        d, n_regressors, n = self.n_columns, self.layout.n_regressors, self._n_members
        width, lanes = n_regressors * (n_regressors + 1) // 2, (self.n_components, self.n_lanes)
        packed, weighted_means, *_ = self.layout.split(prior)
        precision = packed[..., diagonal_places(n_regressors)].reshape(n, self.n_matrices, n_regressors)
        flat = total.reshape(n, -1)
        ends = self.n_matrices * width, self.n_matrices * width + d * n_regressors
        noise_precision = -2.0 * self.square.reshape(n, d)
        orbit = FactorOrbit(
            unpack_symmetric(flat[:, -width:], n_regressors),
            self.sums.reshape(n, d, n_regressors) / noise_precision[..., None],
            noise_precision,
            precision[:, self.matrices.of_columns],
            weighted_means.reshape(n, d, n_regressors),
        )
        in_use = np.ones((self.n_components, n_regressors), dtype=bool) if self.in_use is None else self.in_use
        in_use = np.tile(in_use, (self.n_lanes, 1))
        for i in range(1, n_regressors):
            noise = last_axes_first(rng.standard_normal((self.n_components, n_regressors, self.n_lanes)))
            noise, uniform = noise.reshape(n, -1), last_axes_first(rng.random(lanes)).ravel()
            orbit.shear(i, in_use[:, i : i + 1] & in_use & (np.arange(n_regressors) != i), noise)
            orbit.scale(i, in_use[:, i], noise[:, i], uniform)
        maps, back = orbit.maps[:, None], orbit.maps.swapaxes(-1, -2)
        products = flat[:, : ends[0]].reshape(n, self.n_matrices, width)
        products[:] = pack_symmetric(maps @ unpack_symmetric(products, n_regressors) @ back[:, None])
        sums = flat[:, ends[0] : ends[1]].reshape(n, d, n_regressors)
        sums[:] = sums @ back
        flat[:, -width:] = pack_symmetric(orbit.products)
        return total
