"""Cells that are intervals, of rows of measurements: those that recur once for all rows, others row by row.

Something is evaluated *at* intervals, an array (..., n), and summed over those of a row, or over rows with weights.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from skvbem._kernels import _categorical, _intervals
from skvbem._memory import OF_BLOCKS
from skvbem.emissions.base import as_matrix

# Different intervals up to which each is evaluated once for all rows. To look one up takes a twentieth of the time that
# its evaluation takes, and a table of them stays in the cache (`tests/benchmarks/bench_emissions.py`).
_MAX_SHARED_INTERVALS = 1024


def log_mass_and_moments(
    cells: IntervalCells, mean: np.ndarray, unit: np.ndarray, n_moments: int = 2
) -> tuple[np.ndarray, np.ndarray]:
    """ln of normal probabilities of intervals, nats, and moments about means in deviations, with errors below 1e-12.

    Parameters
    ----------
    cells : IntervalCells
    mean, unit : ndarray of shape (n_out, n_measurements)
        Means and standard deviations.
    n_moments : {2, 4}

    Returns
    -------
    log_mass : ndarray of shape (n_out, n)
    moments : ndarray of shape (n_out, n_moments, n)
    """
    n_out, n = len(mean), cells.low.size
    log_mass, moments = OF_BLOCKS.empty(n_out, n), OF_BLOCKS.empty(n_out, n_moments, n)
    ends = np.ascontiguousarray(cells.low).ravel(), np.ascontiguousarray(cells.high).ravel()
    of_lanes = np.ascontiguousarray(mean), np.ascontiguousarray(1 / unit)
    _intervals.between(*ends, cells.starts, *of_lanes, log_mass, moments)
    return log_mass, moments


@dataclass(frozen=True, eq=False)
class IntervalCells(ABC):
    """Intervals of rows, in units from the origin.

    Parameters
    ----------
    low, high : ndarray
        Ends of intervals, those of a column one after the other; infinite where they are open.
    """

    low: np.ndarray
    high: np.ndarray

    @staticmethod
    def of(low: np.ndarray, high: np.ndarray) -> IntervalCells:
        """Intervals of cells, ends (n_measurements, n_rows) that are NaN elsewhere."""
        place = np.full(low.shape, -1, dtype=np.int32)
        of_columns: list[np.ndarray] = []
        n = 0
        for j, here in enumerate(~np.isnan(low)):
            pairs, which = np.unique(np.stack([low[j, here], high[j, here]]), axis=1, return_inverse=True)
            place[j, here] = n + which.ravel()
            n += pairs.shape[1]
            of_columns.append(pairs)
            if n > _MAX_SHARED_INTERVALS:
                return OwnIntervals(low, high, bool(np.isnan(low).any()))
        starts = np.cumsum([0, *(pairs.shape[1] for pairs in of_columns)], dtype=np.intp)
        codes = np.where(place < 0, n, place).astype(np.int32).T
        low, high = np.concatenate(of_columns, axis=1)
        return SharedIntervals(low, high, np.ascontiguousarray(codes), starts)

    @property
    @abstractmethod
    def starts(self) -> np.ndarray:
        """Where the intervals of each measurement begin and end, (n_measurements + 1,)."""

    @property
    def column(self) -> np.ndarray:
        """The measurement of each interval, (n,)."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    @abstractmethod
    def __getitem__(self, rows: slice) -> Self: ...

    @abstractmethod
    def log_masses(self, mean: np.ndarray, unit: np.ndarray, peak: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Log masses, as `sums_of_masses` takes them, and two moments at intervals.

        Parameters
        ----------
        mean, unit, peak : ndarray of shape (n_out, n_measurements)
            Means and standard deviations, and what the sum over a row has for each interval.

        Returns
        -------
        log_masses : ndarray
            Nats.
        moments : ndarray of shape (n_out, 2, n)
            About means, in deviations.
        """

    @abstractmethod
    def sums_of_masses(self, log_masses: np.ndarray, peak: np.ndarray) -> np.ndarray:
        """Sums of log masses and peaks over the intervals of rows, (n_out, n_rows)."""

    @abstractmethod
    def of_cells(self, at: np.ndarray) -> np.ndarray:
        """1 and what is at intervals (..., n_numbers, n), of cells: (..., 1 + n_numbers, n_measurements, n_rows)."""

    @abstractmethod
    def of_rows(self, at: np.ndarray, of_columns: np.ndarray) -> np.ndarray:
        """Sums over the intervals of rows.

        Parameters
        ----------
        at : ndarray of shape (n_out, n)
            What is at intervals.
        of_columns : ndarray of shape (n_out, n_measurements)
            What is added for each interval.

        Returns
        -------
        ndarray of shape (n_out, n_rows)
        """

    @abstractmethod
    def sums(self, responsibilities: np.ndarray, at: np.ndarray) -> np.ndarray:
        """Sums over rows, with responsibilities, of 1 and of what is at the intervals.

        Parameters
        ----------
        responsibilities : ndarray of shape (..., n_rows, n_components)
        at : ndarray of shape (n_out, n_numbers, n)

        Returns
        -------
        ndarray of shape (n_out, 1 + n_numbers, n_measurements)
        """

    @property
    @abstractmethod
    def are_there(self) -> bool:
        """Whether any cell is an interval."""


@dataclass(frozen=True, eq=False)
class SharedIntervals(IntervalCells):
    """Few different intervals, which many rows have.

    Parameters
    ----------
    low, high : ndarray of shape (n,)
    codes : ndarray of int32, shape (n_rows, n_measurements)
        The number of each cell's interval; n for none.
    first : ndarray of int, shape (n_measurements + 1,)
    """

    codes: np.ndarray
    first: np.ndarray

    @property
    def starts(self) -> np.ndarray:
        """Where the intervals of each measurement begin and end, (n_measurements + 1,)."""
        return self.first

    @property
    def are_there(self) -> bool:
        """Whether any cell is an interval."""
        return len(self.low) > 0

    def __getitem__(self, rows: slice) -> Self:
        return replace(self, codes=self.codes[rows])

    def of_cells(self, at: np.ndarray) -> np.ndarray:
        """1 and what is at intervals (..., n_numbers, n), of cells: (..., 1 + n_numbers, n_measurements, n_rows)."""
        at = np.concatenate([np.ones_like(at[..., :1, :]), at], axis=-2)
        return np.concatenate([at, np.zeros((*at.shape[:-1], 1))], axis=-1)[..., self.codes.T]

    def log_masses(self, mean: np.ndarray, unit: np.ndarray, peak: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Log masses of intervals, and moments."""
        return log_mass_and_moments(self, mean, unit)

    def sums_of_masses(self, log_masses: np.ndarray, peak: np.ndarray) -> np.ndarray:
        """Sums of log masses and peaks over the intervals of rows, (n_out, n_rows)."""
        return self.of_rows(log_masses, peak)

    def of_rows(self, at: np.ndarray, of_columns: np.ndarray) -> np.ndarray:
        """Sums over the intervals of rows of what is at them, and of what each of a column has."""
        table, of_rows = self._table(len(at)), OF_BLOCKS.empty(len(at), len(self.codes))
        table[:-1, : len(at)] = (at + of_columns[:, self.column]).T
        _categorical.gather(np.ascontiguousarray(self.codes), table, of_rows)
        return of_rows

    def sums(self, responsibilities: np.ndarray, at: np.ndarray) -> np.ndarray:
        """Sums over rows, with responsibilities, of 1 and of what is at the intervals."""
        table = self._table(len(at))
        _categorical.spread(np.ascontiguousarray(self.codes), as_matrix(responsibilities), table)
        counts = table[:-1, None, : len(at)].T
        of_column = (self.column[:, None] == np.arange(len(self.first) - 1)).astype(float)
        return np.concatenate([counts, counts * at], axis=1) @ of_column

    def _table(self, n_out: int) -> np.ndarray:
        return np.zeros((len(self.low) + 1, -(-n_out // 4) * 4))


@dataclass(frozen=True, eq=False)
class OwnIntervals(IntervalCells):
    """Intervals of cells row by row.

    Parameters
    ----------
    low, high : ndarray of shape (n_measurements, n_rows)
        NaN where there is none.
    has_gaps : bool
        Whether there may be such cells.
    """

    has_gaps: bool = True

    @property
    def starts(self) -> np.ndarray:
        """Where the intervals of each measurement begin and end, (n_measurements + 1,)."""
        d, n = self.low.shape
        return n * np.arange(d + 1, dtype=np.intp)

    @property
    def are_there(self) -> bool:
        """Whether any cell is an interval."""
        return True

    def __getitem__(self, rows: slice) -> Self:
        return replace(self, low=self.low[:, rows], high=self.high[:, rows])

    def of_cells(self, at: np.ndarray) -> np.ndarray:
        """1 and what is at intervals (..., n_numbers, n), of cells: (..., 1 + n_numbers, n_measurements, n_rows)."""
        at = np.concatenate([np.ones_like(at[..., :1, :]), at], axis=-2)
        return np.where(self._there, at.reshape(*at.shape[:-1], *self.low.shape), 0.0)

    def log_masses(self, mean: np.ndarray, unit: np.ndarray, peak: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Sums of log masses and peaks over rows, with one logarithm for each, and moments."""
        n_out, (d, n_rows) = len(mean), self.low.shape
        of_rows, moments = OF_BLOCKS.empty(n_out, n_rows), OF_BLOCKS.empty(n_out, 2, d, n_rows)
        arrays = (np.ascontiguousarray(each) for each in (mean, 1 / unit, peak))
        low, high = self.low, self.high
        if not low.strides == high.strides == (low.strides[0], low.itemsize):  # rows chosen by number
            low, high = np.ascontiguousarray(low), np.ascontiguousarray(high)
        _intervals.of_rows(low, high, *arrays, of_rows, moments)
        return of_rows, moments.reshape(n_out, 2, -1)

    def sums_of_masses(self, log_masses: np.ndarray, peak: np.ndarray) -> np.ndarray:
        """Sums over rows as they are."""
        return log_masses

    def of_rows(self, at: np.ndarray, of_columns: np.ndarray) -> np.ndarray:
        """Sums over the intervals of rows of what is at them, and of what each of a column has."""
        return at.reshape(len(at), *self.low.shape).sum(axis=1) + of_columns @ self._there

    def sums(self, responsibilities: np.ndarray, at: np.ndarray) -> np.ndarray:
        """Sums over rows, with responsibilities, of 1 and of what is at the intervals, 0 elsewhere."""
        by_component, (n_out, n_numbers, _) = as_matrix(responsibilities), at.shape
        counts = by_component @ self._there.T if self.has_gaps else by_component.sum(axis=1, keepdims=True)
        counts = np.broadcast_to(counts, (n_out, len(self.low)))
        numbers = at.reshape(n_out, -1, self.low.shape[1]) @ by_component[..., None]
        return np.concatenate([counts[:, None], numbers.reshape(n_out, n_numbers, -1)], axis=1)

    @property
    def _there(self) -> np.ndarray:
        return np.subtract(1.0, np.isnan(self.low))
