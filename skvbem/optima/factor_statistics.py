r"""Numbers of factors: fits with factors deleted and born, and what a new factor of a component explains.

A deleted factor leaves nothing: statistics of those that stay are marginal ones. A new factor goes where a component's
measurements vary together more than it says, along the leading eigenvector of
:math:`\Psi^{-1/2} (S - \Lambda\Lambda^\top - \Psi) \Psi^{-1/2}`, S being the covariance of its rows. If its eigenvalue
is e, n rows gain about :math:`\tfrac n2 (e - \ln(1 + e))` nats by it, noises left as they are.

Numbers are tuples: for each group of columns whose factors are to be counted, a number for each component.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self, cast

import numpy as np

from skvbem._numerics import pack_symmetric, pairings, unpack_symmetric
from skvbem.emissions.base import Emission, counts_factors, parts_of
from skvbem.emissions.factor.analyzer import FactorAnalyzer
from skvbem.emissions.factor.second_moments import principal_start
from skvbem.emissions.factor.table import FactorTable
from skvbem.families import Regression, RegressionPoint

#: For each group whose factors are to be counted, a number for each component.
Numbers = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, eq=False)
class FactorGroup:
    """A group of columns whose factors are to be counted.

    Parameters
    ----------
    part : FactorAnalyzer
    place : int
        Of the group among those of the emission.
    cells : slice
        Of the emission's cells, those of the group.
    """

    part: FactorAnalyzer
    place: int
    cells: slice

    @classmethod
    def of(cls, emission: Emission, n_components: int) -> list[Self]:
        """The groups of an emission."""
        groups, first = [], 0
        for place, part in enumerate(parts_of(emission)):
            after = first + len(part.component_of_cell(n_components))
            if counts_factors(part):
                groups.append(cls(cast(FactorAnalyzer, part), place, slice(first, after)))
            first = after
        return groups

    def table(self, block: Any) -> FactorTable:
        """The rows of the group in a block."""
        return block.parts[self.place] if hasattr(block, "parts") else block


def numbers_of(emission: Emission, n_components: int) -> Numbers:
    """Factors of each component, of each group whose factors are to be counted."""
    return tuple(
        cast(FactorAnalyzer, part).numbers(n_components) for part in parts_of(emission) if counts_factors(part)
    )


def with_numbers(emission: Emission, numbers: Numbers) -> Emission:
    """The emission with other numbers of factors."""
    others = iter(numbers)
    replaced = {group.place: group.part.with_numbers(next(others)) for group in FactorGroup.of(emission, 1)}
    parts = [replaced.get(place, part) for place, part in enumerate(parts_of(emission))]
    return emission.with_parts(tuple(parts))


def most_factors(emission: Emission) -> tuple[int, ...]:
    """Factors that a component may have, of each group: as many as columns."""
    return tuple(group.part.n_columns for group in FactorGroup.of(emission, 1))


def with_factors_kept(
    cells: np.ndarray, one: Emission, other: Emission, numbers: Numbers, kept: Callable
) -> np.ndarray:
    """Statistics (n_cells,) of an emission as another has them that keeps some factors of each component.

    Parameters
    ----------
    cells : ndarray of shape (n_cells,)
    one, other : Emission
        Before, and after.
    numbers : tuple of tuple of int
        Factors after.
    kept : callable of (int, int)
        Of a group and a component, the factors that are kept, in order: the first ones after.
    """
    n_components, parts, first = len(numbers[0]), [], 0
    for g, (before, after) in enumerate(zip(FactorGroup.of(one, n_components), FactorGroup.of(other, n_components))):
        of_each = [kept(g, k) for k in range(n_components)]
        parts += [
            cells[first : before.cells.start],
            _kept_of_group(cells[before.cells], before.part, after.part, of_each),
        ]
        first = before.cells.stop
    return np.concatenate([*parts, cells[first:]])


def _kept_of_group(
    cells: np.ndarray, one: FactorAnalyzer, other: FactorAnalyzer, kept: list[Sequence[int]]
) -> np.ndarray:
    n = len(kept)
    before = _Blocks.of(one.layout(n), cells)
    after = _Blocks.zeros(other.layout(n), before)
    for k, factors in enumerate(kept):
        old = np.array([0, *(1 + s for s in factors)])
        new = np.arange(len(old))
        after.matrices[k][:, new[:, None], new] = before.matrices[k][:, old[:, None], old]
        after.sums[k][:, new] = before.sums[k][:, old]
    return after.cells


@dataclass(frozen=True, eq=False)
class _Blocks:
    """Statistics of factor analyzers by component: matrices (n, n_matrices, D, D), sums (n, d, D), of noises."""

    matrices: np.ndarray
    sums: np.ndarray
    noises: np.ndarray

    @classmethod
    def of(cls, layout: Regression, cells: np.ndarray) -> Self:
        packed, sums, count, square = layout.split(cells)
        n, d = layout.n_components, layout.n_regressors
        matrices = unpack_symmetric(packed, d).reshape(n, -1, d, d)
        return cls(matrices, sums.reshape(n, -1, d), np.concatenate([count, square]))

    @classmethod
    def zeros(cls, layout: Regression, like: Self) -> Self:
        n, d = layout.n_components, layout.n_regressors
        of_each, rows = like.matrices.shape[1], like.sums.shape[1]
        return cls(np.zeros((n, of_each, d, d)), np.zeros((n, rows, d)), like.noises)

    @property
    def cells(self) -> np.ndarray:
        return np.concatenate([pack_symmetric(self.matrices).ravel(), self.sums.ravel(), self.noises])


@dataclass(frozen=True, eq=False)
class NewFactor:
    """The factor that a component lacks most.

    Parameters
    ----------
    group, component : int
    loadings : ndarray of shape (d,)
        In the emission's units.
    gain : float
        Nats that rows gain by it, about, before its price.
    covariance : ndarray of shape (d, d)
        Of the component's rows, in these units.
    """

    group: int
    component: int
    loadings: np.ndarray
    gain: float
    covariance: np.ndarray


def new_factors(
    emission: Emission, natural: np.ndarray, blocks: Sequence[Any], expected_rows: Sequence[np.ndarray]
) -> list[NewFactor]:
    """The factors that components lack most, the most promising first.

    Parameters
    ----------
    emission : Emission
    natural : ndarray of shape (n_cells,)
        Of the emission, those of its parameters.
    blocks : sequence of table
        Rows.
    expected_rows : sequence of ndarray of shape (n_components, n_rows)
        Of each component at these.
    """
    n_components, lacking = len(expected_rows[0]), []
    for g, group in enumerate(FactorGroup.of(emission, n_components)):
        part, tables = group.part, [group.table(block) for block in blocks]
        precision, coefficients = _coefficients(part, natural[group.cells], n_components)
        for k, most in enumerate(part.numbers(n_components)):
            weights = [of_block[k] for of_block in expected_rows]
            n = sum(float(weight.sum()) for weight in weights)
            if most >= part.n_columns or n < 2:
                continue
            covariance = _covariance(tables, weights, coefficients[k, :, 0])
            loadings, root = coefficients[k, :, 1:], np.sqrt(precision[k])
            excess = root[:, None] * (covariance - loadings @ loadings.T) * root - np.eye(part.n_columns)
            value, axes = np.linalg.eigh(excess)
            largest = float(value[-1])
            if largest > 1e-6:
                axis = axes[:, -1] * np.sign(axes[np.abs(axes[:, -1]).argmax(), -1])
                gain = 0.5 * n * (largest - np.log1p(largest))
                lacking.append(NewFactor(g, k, np.sqrt(largest) * axis / root, gain, covariance))
    return sorted(lacking, key=lambda factor: -factor.gain)


def _coefficients(part: FactorAnalyzer, natural: np.ndarray, n_components: int) -> tuple[np.ndarray, np.ndarray]:
    """Precisions of noises (n_components, d), and coefficients (n_components, d, D), as expected."""
    layout = part.layout(n_components)
    _, sums, _, square = layout.split(natural)
    precision = -2 * square[layout.noise_of_row]
    coefficients = (sums / precision[:, None]).reshape(n_components, part.n_columns, -1)
    return precision.reshape(n_components, -1), coefficients * part.in_use(n_components)[:, None]


def _covariance(tables: Sequence[FactorTable], weights: Sequence[np.ndarray], mean: np.ndarray) -> np.ndarray:
    """Covariances of columns about a mean, each over the rows that have both; 0 where none has."""
    products, counts = np.zeros((len(mean),) * 2), np.zeros((len(mean),) * 2)
    for table, weight in zip(tables, weights):
        seen = ~np.isnan(table.values.T)
        away = np.where(seen, table.measured - mean[:, None], 0.0)
        products += (away * weight) @ away.T
        counts += (seen * weight) @ seen.T
    return np.divide(products, counts, out=np.zeros_like(products), where=counts > 0)


def with_factor(natural: np.ndarray, one: Emission, other: Emission, numbers: Numbers, factor: NewFactor) -> np.ndarray:
    """Natural parameters (n_cells,) of an emission as one has them that has a factor more, of known loadings."""
    n_components = len(numbers[0])
    before, after = (FactorGroup.of(emission, n_components)[factor.group] for emission in (one, other))
    layout = before.part.layout(n_components)
    old = _unpaired(layout, natural[before.cells])
    blocks = _Blocks.of(layout, old)
    k, place = factor.component, numbers[factor.group][factor.component]
    new = _Blocks.zeros(after.part.layout(n_components), blocks)
    width = blocks.sums.shape[-1]
    new.matrices[..., :width, :width], new.sums[..., :width] = blocks.matrices, blocks.sums
    precision, coefficients = _coefficients(before.part, natural[before.cells], n_components)
    weighted = precision[k] * factor.loadings
    matrix_of = layout.precision_of[: before.part.n_columns]
    for matrix in np.unique(matrix_of):
        columns = matrix_of == matrix
        crossed = -0.5 * weighted[columns] @ coefficients[k][columns]
        new.matrices[k, matrix, place, :width] = new.matrices[k, matrix, :width, place] = crossed
        new.matrices[k, matrix, place, place] = -0.5 * float(weighted[columns] @ factor.loadings[columns])
    new.sums[k][:, place] = weighted
    of_group = _unpaired(after.part.layout(n_components), new.cells, inverse=True)
    return np.concatenate([natural[: before.cells.start], of_group, natural[before.cells.stop :]])


def with_principal_factors(
    natural: np.ndarray, one: Emission, other: Emission, numbers: Numbers, factor: NewFactor
) -> np.ndarray:
    """As `with_factor`, with all factors of the component those of the principal components of its rows."""
    more, k, n_components = with_factor(natural, one, other, numbers, factor), factor.component, len(numbers[0])
    before, after = (FactorGroup.of(emission, n_components)[factor.group] for emission in (one, other))
    part, layout = after.part, after.part.layout(n_components)
    deviation = np.sqrt(np.diagonal(factor.covariance))
    loadings, noise = principal_start(factor.covariance / np.outer(deviation, deviation), numbers[factor.group][k])
    coefficients = np.zeros((n_components, part.n_columns, layout.n_regressors))
    coefficients[..., 0] = _coefficients(before.part, natural[before.cells], n_components)[1][..., 0]
    coefficients[k, :, 1 : 1 + loadings.shape[1]] = deviation[:, None] * loadings
    noises = np.ones((n_components, part.n_columns))
    noises[k] = noise * deviation**2
    variance = np.bincount(layout.noise_of_row, noises.ravel()) / np.bincount(layout.noise_of_row)
    point = layout.natural(RegressionPoint(coefficients.reshape(-1, layout.n_regressors), 1 / variance))
    cells = np.flatnonzero(part.component_of_cell(n_components) == k)
    more[after.cells.start + cells] = point[cells]
    return more


def _unpaired(layout: Regression, cells: np.ndarray, *, inverse: bool = False) -> np.ndarray:
    """Natural parameters whose packed matrices hold entries once, not as often as they stand in a matrix; or back."""
    halves = pairings(layout.n_regressors)
    n = layout.n_precisions * len(halves)
    packed = cells[:n].reshape(-1, len(halves))
    return np.concatenate([(packed * halves if inverse else packed / halves).ravel(), cells[n:]])


def least_relevant(emission: Emission, natural: np.ndarray, n_components: int) -> list[tuple[int, int, int]]:
    """The factor of each component, (group, component, factor), whose loadings are least; the least of all first."""
    weakest = []
    for g, group in enumerate(FactorGroup.of(emission, n_components)):
        layout = group.part.layout(n_components)
        packed, *_ = layout.split(natural[group.cells])
        by_component = packed.reshape(n_components, -1, packed.shape[-1]).sum(axis=1)
        squares = -np.diagonal(unpack_symmetric(by_component, layout.n_regressors), axis1=-2, axis2=-1)[:, 1:]
        for k, most in enumerate(group.part.numbers(n_components)):
            if most:
                s = int(squares[k, :most].argmin())
                weakest.append((float(squares[k, s]), g, k, s))
    return [(g, k, s) for _, g, k, s in sorted(weakest)]
