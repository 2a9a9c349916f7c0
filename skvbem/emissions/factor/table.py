"""Tables of rows of measurements, by what is missing in them, in the units of a factor analyzer."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np

from skvbem._lazy import cached_property
from skvbem.emissions.gaussian.dense_table import runs_of_patterns

# Cells of a table, 16 MB as doubles, whose measured values are kept from step to step.
_MAX_KEPT = 2**21


@dataclass(frozen=True, eq=False)
class MatricesOfColumns:
    """Matrix of products of regressors that each column of a component has.

    Columns without gaps of one group share a matrix, one of the first; each with gaps has its own.

    Parameters
    ----------
    group_of_column : ndarray of int, shape (d,)
    alone : ndarray of bool, shape (d,)
        Which columns have gaps.
    """

    group_of_column: np.ndarray
    alone: np.ndarray

    @cached_property
    def of_columns(self) -> np.ndarray:
        """The matrix of each column, (d,)."""
        with_shared, shared = np.unique(self.group_of_column[~self.alone], return_inverse=True)
        matrix_of_column = np.cumsum(self.alone) - 1 + len(with_shared)
        matrix_of_column[~self.alone] = shared
        return matrix_of_column

    @cached_property
    def groups(self) -> np.ndarray:
        """Group of each matrix, (n_matrices,)."""
        groups = np.empty(int(self.of_columns.max()) + 1, dtype=int)
        groups[self.of_columns] = self.group_of_column
        return groups

    @cached_property
    def sharing(self) -> list[np.ndarray]:
        """The columns of each matrix that columns share, which come first."""
        matrices = np.unique(self.of_columns[~self.alone])
        return [np.flatnonzero(self.of_columns == matrix) for matrix in matrices]

    @cached_property
    def n_columns_of_groups(self) -> np.ndarray:
        """Columns of each group, (n_groups,)."""
        return np.bincount(self.group_of_column)


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

    def __add__(self, other: FactorTable) -> Self:
        """What must be known of the rows of both, of tables without rows."""
        return self

    def __getitem__(self, rows: slice) -> Self:
        if not isinstance(rows, slice):
            return self._part(rows)
        first, last, step = rows.indices(len(self))
        if (first, last, step) == (0, len(self), 1):
            return self  # whose measured values are kept from step to step
        if step != 1 or self.values.size > _MAX_KEPT:
            return self._part(rows)
        block = self._blocks.get((first, last))
        if block is None:  # what is found of a block once serves all steps
            if sum(map(len, list(self._blocks.values()))) >= len(self):  # blocks of another size
                self._blocks.clear()
            block = self._blocks[first, last] = self._part(rows)
            vars(block)["_part_of"] = self._whole, rows
        return block

    def _part(self, rows: slice | np.ndarray) -> Self:
        return replace(self, values=self.values[rows], pattern=None if self.pattern is None else self.pattern[rows])

    def __getstate__(self) -> dict:
        """Fields of the table; cached values are computed again."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @cached_property
    def _blocks(self) -> dict[tuple[int, int], Self]:
        return {}

    @property
    def in_units(self) -> np.ndarray:
        """Rows in the emission's units, (n_rows, d), NaN where missing."""
        return (self.values - self.origin) / self.unit

    @cached_property
    def measured(self) -> np.ndarray:
        """Rows in the emission's units, (d, n_rows), 0 where missing; cells of a column stand side by side."""
        if "_part_of" in vars(self):
            whole, rows = vars(self)["_part_of"]
            return whole.measured[:, rows]
        return self._whole.measured

    @cached_property
    def _whole(self) -> _Measured:
        return _Measured(self)

    @cached_property
    def observed(self) -> tuple[np.ndarray, np.ndarray]:
        """The patterns that rows have, 1 where a cell is observed, (n_patterns, d), and which of these each row has."""
        if self.pattern is None:
            return np.ones((1, len(self.unit))), np.zeros(0, dtype=np.int32)
        chosen, pattern = np.unique(self.pattern, return_inverse=True)
        return (~self.patterns[chosen]).astype(float), pattern.astype(np.int32).ravel()

    def matrices_seen(self, matrices: MatricesOfColumns) -> np.ndarray:
        """1 for each matrix that observed columns of a pattern have, and where there are any, (n_patterns, n + 1)."""
        kept = vars(self).get("_seen")
        if kept is None or kept[0] is not matrices:
            observed, _ = self.observed
            shared = [observed[:, columns].max(axis=1, keepdims=True) for columns in matrices.sharing]
            seen = np.concatenate([*shared, observed[:, matrices.alone], observed.max(axis=1, keepdims=True)], axis=1)
            kept = vars(self)["_seen"] = matrices, seen
        return kept[1]

    @cached_property
    def runs(self) -> list[tuple[slice | np.ndarray, tuple[int, ...]]]:
        """Rows with the same missing columns, and these columns."""
        return runs_of_patterns(self.pattern, self.patterns)


class _Measured:
    """Measured values of a table, which its blocks look into without holding the table."""

    def __init__(self, table: FactorTable):
        self._cells = table.values, table.origin, table.unit, table.pattern is not None

    @cached_property
    def measured(self) -> np.ndarray:
        """Rows in the emission's units, (d, n_rows), 0 where missing."""
        values, origin, unit, has_gaps = self._cells
        measured = np.ascontiguousarray(((values - origin) / unit).T, dtype=float)
        if has_gaps:
            np.nan_to_num(measured, copy=False, nan=0.0, posinf=np.inf, neginf=-np.inf)
        return measured
