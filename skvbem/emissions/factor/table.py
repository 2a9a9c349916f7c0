"""Tables of rows of measurements, by what is missing in them, in the units of a factor analyzer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from skvbem.emissions.gaussian.dense_step import runs_of_patterns

# Cells of a table whose measured values are kept from step to step.
_MAX_KEPT = 2**21


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
            vars(block)["_part_of"] = self, rows
        return block

    @property
    def in_units(self) -> np.ndarray:
        """Rows in the emission's units, (n_rows, d), NaN where missing."""
        return (self.values - self.origin) / self.unit

    @cached_property
    def measured(self) -> np.ndarray:
        """Rows in the emission's units, (d, n_rows), 0 where missing; cells of a column stand side by side."""
        if "_part_of" in vars(self):
            whole, rows = vars(self)["_part_of"]
            part = whole.measured[:, rows]
            return part if isinstance(rows, slice) and rows.step in (None, 1) else np.ascontiguousarray(part)
        measured = np.ascontiguousarray(self.in_units.T, dtype=float)
        if self.pattern is not None:
            np.nan_to_num(measured, copy=False, nan=0.0, posinf=np.inf, neginf=-np.inf)
        return measured

    @cached_property
    def distinct_patterns(self) -> tuple[np.ndarray, np.ndarray]:
        """The patterns that rows have, and which of these each row has."""
        if self.pattern is None:
            return np.zeros(1, dtype=int), np.zeros(0, dtype=np.int32)
        chosen, pattern = np.unique(self.pattern, return_inverse=True)
        return chosen, pattern.astype(np.int32).ravel()

    @cached_property
    def runs(self) -> list[tuple[slice | np.ndarray, tuple[int, ...]]]:
        """Rows with the same missing columns, and these columns."""
        return runs_of_patterns(self.pattern, self.patterns)
