"""Emissions whose log likelihood is linear in a few features of a row: one matrix product for the E step, one back.

Where no cell of a block is missing, counts are the same for all columns, and one feature serves for them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from skvbem._lazy import cached_property
from skvbem.emissions.base import Emission, Step, as_matrix, by_cell, by_lane, by_row
from skvbem.emissions.moments import ROWS_AT_ONCE


@dataclass(frozen=True, eq=False)
class LinearTable:
    """Rows of numbers.

    Parameters
    ----------
    emission : LinearEmission
    values : ndarray of shape (n_rows, n_columns)
        NaN where a cell is missing.
    complete : bool
        Whether no cell of the table is missing.
    base : ndarray of shape (n_rows,)
        ln f of each row, nats: the part of the log likelihood that no parameter touches.
    reach : ndarray of shape (n_columns,)
        The largest measured value of each column, without its sign.
    """

    emission: LinearEmission
    values: np.ndarray
    complete: bool
    base: np.ndarray
    reach: np.ndarray

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: slice) -> Self:
        if isinstance(rows, slice) and rows.indices(len(self)) == (0, len(self), 1):  # whose features are kept
            return self
        return replace(self, values=self.values[rows], base=self.base[rows])

    def __add__(self, other: LinearTable) -> Self:
        """What must be known of the rows of both, of tables without rows."""
        return replace(self, complete=self.complete and other.complete, reach=np.maximum(self.reach, other.reach))

    @cached_property
    def features(self) -> np.ndarray:
        """(n_features, n_rows)."""
        return self.emission.features(self)

    @cached_property
    def columns(self) -> tuple[np.ndarray, np.ndarray]:
        """Measured values, 0 where missing, and 1 where observed, 0 where not: (n_columns, n_rows).

        A single row of ones where nothing is missing.
        """
        values = self.emission.measure(self.values)
        if self.complete:
            return values, np.ones((1, len(self)))
        missing = np.isnan(values)
        values[missing] = 0.0
        return values, np.subtract(1.0, missing)


def log_base_of_counts(values: np.ndarray, log_base: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """ln f of rows of counts, nats, (n_rows,), some rows at a time with 0 in the place of missing cells."""
    base = np.empty(len(values))
    for at in range(0, len(values), ROWS_AT_ONCE):
        counts = np.nan_to_num(np.asarray(values[at : at + ROWS_AT_ONCE], dtype=float), nan=0.0)
        base[at : at + ROWS_AT_ONCE] = log_base(counts)
    return base


class LinearEmission(Emission):
    """Supplies features of rows, and which natural parameter multiplies which of them."""

    def measure(self, values: np.ndarray) -> np.ndarray:
        """Rows (n_rows, n_columns) in the emission's units, (n_columns, n_rows)."""
        return np.array(values.T, dtype=float, order="C")

    @abstractmethod
    def features(self, block: LinearTable) -> np.ndarray:
        """(n_features, n_rows)."""

    @abstractmethod
    def fold(self, natural: np.ndarray, complete: bool) -> np.ndarray:
        """Coefficients of the features, (..., n_features), from natural parameters (..., cells per component)."""

    @abstractmethod
    def unfold(self, sums: np.ndarray, complete: bool) -> np.ndarray:
        """Statistics (..., cells per component) of sums of features (..., n_features)."""

    def log_base(self, values: np.ndarray) -> np.ndarray:
        """ln f of rows, nats, (n_rows,)."""
        return np.broadcast_to(0.0, len(values))

    def survey(self, values: np.ndarray) -> LinearTable:
        """A table without rows that knows how far the rows reach and whether they are complete."""
        values = np.asarray(values)
        none = LinearTable(self, values[:0], False, self.log_base(values[:0]), np.zeros(self.n_columns))
        complete, reach = True, none.reach
        for at in range(0, len(values), ROWS_AT_ONCE):
            block = values[at : at + ROWS_AT_ONCE]
            measured, observed = replace(none, values=block).columns
            complete = complete and bool(observed.all())
            reach = np.maximum(reach, np.abs(measured).max(axis=1, initial=0.0))
        return replace(none, complete=complete, reach=reach)

    def prepare(self, values: np.ndarray, survey: LinearTable | None = None) -> LinearTable:
        """A table of rows, (n_rows, n_columns), NaN where a cell is missing. The values are not copied."""
        values = np.asarray(values)
        survey = self.survey(values) if survey is None else survey
        return replace(survey, values=values, base=self.log_base(values))

    def step(self, natural: np.ndarray, table: Any) -> Step:
        """The emission at natural parameters (n_cells,) or (n_cells, n_lanes)."""
        return LinearStep(self, natural)

    @property
    def doubles_per_row(self) -> int:
        """Doubles that a block holds for each row."""
        return 4 * self.n_columns


# In the place of a natural parameter of -inf, so that a feature of 0 makes 0 of it; no likelihood is below the other.
_IMPOSSIBLE, _BELOW = -1e200, -1e150


class LinearStep(Step):
    """A linear emission at natural parameters; those of a point at an edge may be -inf, such as ln 0."""

    def __init__(self, emission: LinearEmission, natural: np.ndarray):
        self.emission, self.single = emission, natural.ndim == 1
        self.natural = by_lane(natural, emission.cells_per_component)
        self.n_components = self.natural.shape[1]
        self._folded: dict[bool, np.ndarray] = {}
        self._at_edge = False

    def _matrix(self, complete: bool) -> np.ndarray:
        if complete not in self._folded:
            folded = self.emission.fold(self.natural, complete)
            folded = np.ascontiguousarray(folded.reshape(-1, folded.shape[-1]))
            edges = np.isneginf(folded)
            if edges.any():
                self._at_edge, folded = True, np.where(edges, _IMPOSSIBLE, folded)
            self._folded[complete] = folded
        return self._folded[complete]

    def log_likelihood(self, block: LinearTable) -> np.ndarray:
        """Expected log likelihoods of rows, nats; -inf where a feature meets a natural parameter of -inf."""
        log_likelihood = self._matrix(block.complete) @ block.features
        if self._at_edge:
            log_likelihood[log_likelihood < _BELOW] = -np.inf
        log_likelihood += block.base
        return by_row(log_likelihood, self.n_components, self.single)

    def zeros(self) -> np.ndarray:
        """An empty sum, (n_lanes, n_components, cells per component)."""
        return np.zeros(self.natural.shape)

    def add(self, block: LinearTable, responsibilities: np.ndarray, total: np.ndarray) -> None:
        """Add the statistics of a block to a sum."""
        sums = as_matrix(responsibilities) @ block.features.T
        total += self.emission.unfold(sums.reshape(*total.shape[:2], -1), block.complete)

    def of_rows(self, block: LinearTable) -> np.ndarray:
        """Statistics of each row, the same for all components."""
        statistics = self.emission.unfold(np.ascontiguousarray(block.features.T), block.complete)
        return np.broadcast_to(statistics[:, None], (len(block), self.n_components, statistics.shape[1]))

    def statistics(self, total: np.ndarray) -> np.ndarray:
        """Statistics of a sum."""
        return by_cell(total, self.single)
