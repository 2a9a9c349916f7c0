"""Weighted moments of tables with missing cells: the origins and units in which emissions measure.

All are sums over parts by `skvbem.blocks.map_reduce`. A table is one part, or comes in `Blocks` of (values, weight).
Within a part sums run over few rows at a time, so that no copy of the data is made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from skvbem._numerics import extremes
from skvbem.blocks import Blocks, map_reduce

#: Rows that are converted or summed together, and cells, so that they stay in a cache of 1 MB as doubles.
ROWS_AT_ONCE, _CELLS_AT_ONCE = 4096, 2**17


class Moments(NamedTuple):
    """Moments of the observed cells.

    Parameters
    ----------
    origin : ndarray of shape (d,)
        The mean, as near as floats come to it.
    mean : ndarray of shape (d,)
        What is left: the mean above the origin.
    deviation : ndarray of shape (d,)
        Standard deviations; where a column is constant, its size (1 if that is 0).
    correlation : ndarray of shape (d, d)
        Of the columns with missing cells at their means, shrunk toward the identity by d / (n + d).
    total_weight : float
        Rows, by their weights.
    has_gaps : ndarray of bool, shape (d,)
        Which columns have missing cells, in rows of any weight.
    lowest, highest : ndarray of shape (d,)
        The least and the largest observed cell, from infinity to minus infinity where none is.
    """

    origin: np.ndarray
    mean: np.ndarray
    deviation: np.ndarray
    correlation: np.ndarray
    total_weight: float
    has_gaps: np.ndarray
    lowest: np.ndarray
    highest: np.ndarray


@dataclass(frozen=True, eq=False)
class _Extent:
    """The least and the largest observed cell of each column, and which columns have missing cells."""

    lowest: np.ndarray
    highest: np.ndarray
    has_gaps: np.ndarray

    @classmethod
    def of(cls, part: tuple) -> _Extent:
        """The extent of a table (values, weight); from infinity to minus infinity where no cell is observed."""
        d = part[0].shape[1]
        lowest, highest, has_gaps = np.full(d, np.inf), np.full(d, -np.inf), np.zeros(d, dtype=bool)
        for cells, _ in blocks_of_floats(part[0], None):
            low, high = extremes(cells)
            lowest, highest = np.fmin(lowest, low), np.fmax(highest, high)
            if (missing := np.isnan(cells)).any():
                has_gaps |= missing.any(axis=0)
        return cls(lowest, highest, has_gaps)

    def __add__(self, other: _Extent) -> _Extent:
        """The extent of both."""
        lowest, highest = np.fmin(self.lowest, other.lowest), np.fmax(self.highest, other.highest)
        return _Extent(lowest, highest, self.has_gaps | other.has_gaps)

    def from_origin(self, origin: np.ndarray | float) -> np.ndarray:
        """Largest distance of cells from an origin; 1 if there is none."""
        largest = np.fmax(self.highest - origin, origin - self.lowest)
        return np.where(largest > 0, largest, 1.0)


def n_columns_of(values: np.ndarray | Blocks) -> int:
    """Number of columns of a table, or of blocks of one: what `for_data` of an emission gets.

    Parameters
    ----------
    values : ndarray of shape (n_rows, n_columns), or Blocks of (values, weight)

    Returns
    -------
    int

    See Also
    --------
    weighted_means : means of such a table.
    """
    return (next(iter(values))[0] if isinstance(values, Blocks) else values).shape[1]


def weighted_means(values: np.ndarray | Blocks, weight: np.ndarray | None) -> np.ndarray:
    """Weighted means of the observed cells of each column of a table, or of blocks of one.

    Parameters
    ----------
    values : ndarray of shape (n_rows, n_columns), or Blocks of (values, weight)
        NaN where a cell is missing.
    weight : ndarray of shape (n_rows,), or None
        How often each row counts; once if None. Blocks have their own.

    Returns
    -------
    ndarray of shape (n_columns,)
        0 for a column without an observed cell.

    See Also
    --------
    n_columns_of : number of columns of such a table.
    """
    parts = values if isinstance(values, Blocks) else [(values, weight)]
    return _means(parts, map_reduce(_Extent.of, parts))


def _means(parts: Iterable[tuple], extent: _Extent) -> np.ndarray:
    size = extent.from_origin(0.0)
    total, n = map_reduce(partial(_sums, extent, np.zeros(len(size)), size), parts)
    return np.divide(total, n, out=np.zeros(len(n)), where=n > 0) * size


def weighted_moments(values: np.ndarray | Blocks, weight: np.ndarray | None) -> Moments:
    """Moments of a table (n_rows, d) with weights (n_rows,); NaN where a cell is missing."""
    parts = values if isinstance(values, Blocks) else [(values, weight)]
    extent = map_reduce(_Extent.of, parts)
    origin = _means(parts, extent)
    reach, d = extent.from_origin(origin), len(origin)  # in units of which no square leaves the floats
    mean, n = map_reduce(partial(_sums, extent, origin, reach), parts)
    mean /= np.where(n > 0, n, 1.0)
    cross, n_rows = map_reduce(partial(_products, extent, origin, reach, mean), parts)
    deviation = reach * np.sqrt(np.diagonal(cross) / np.where(n > 0, n, 1.0))
    constant = deviation <= 4 * np.finfo(float).eps * np.abs(origin)
    deviation = np.where(constant, np.where(origin != 0, np.abs(origin), 1.0), deviation)
    unit = np.sqrt(np.where(constant, 1.0, np.diagonal(cross)))
    shrinkage = d / (n_rows + d)
    correlation = (1 - shrinkage) * cross / unit / unit[:, None]
    correlation[constant] = correlation[:, constant] = 0.0
    np.fill_diagonal(correlation, 1.0)
    reaching = extent.has_gaps, extent.lowest, extent.highest
    return Moments(origin, reach * mean, deviation, correlation, n_rows, *reaching)


def root_mean_square(units: np.ndarray) -> float:
    """One unit for all columns, where no square leaves the floats."""
    largest = units.max()
    return float(largest * np.sqrt(np.mean((units / largest) ** 2)))


def _sums(extent: _Extent, origin: np.ndarray, reach: np.ndarray, part: tuple) -> tuple[np.ndarray, np.ndarray]:
    """Weighted sums (d,) of (cells - origin) / reach in a table, and the weights of observed cells."""
    total, n = np.zeros(len(origin)), np.zeros(len(origin))
    for above, w, missing in _observed(extent, origin, reach, part):
        total += w @ above
        n += w.sum() if missing is None else w @ ~missing
    return total, n


def _products(
    extent: _Extent, origin: np.ndarray, reach: np.ndarray, mean: np.ndarray, part: tuple
) -> tuple[np.ndarray, float]:
    """Weighted sums (d, d) of products of (cells - origin) / reach - mean in a table, and of the weights of rows."""
    cross = np.zeros((len(origin), len(origin)))
    for above, w, _ in _observed(extent, origin, reach, part, mean):
        if not (w == 1.0).all():
            above *= np.sqrt(w)[:, None]
        cross += above.T @ above
    values, weight = part
    return cross, float(len(values) if weight is None else np.sum(weight))


def _observed(
    extent: _Extent, origin: np.ndarray, reach: np.ndarray, part: tuple, mean: np.ndarray | None = None
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray | None]]:
    """Few rows at a time, (cells - origin) / reach - mean and 0 where one is missing, weights, and which are missing.

    The next rows take the place of these in memory. None is missing in columns without gaps.
    """
    values, weight = part
    for above, w in in_units(values, weight, origin, reach):
        if mean is not None:
            above -= mean
        missing = np.isnan(above) if extent.has_gaps.any() else None
        if missing is not None:
            above[missing] = 0.0
        yield above, w, missing


def in_units(
    values: np.ndarray, weight: np.ndarray | None, origin: np.ndarray, unit: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Some rows at a time, (cells - origin) / unit, and their weights; the next rows overwrite them."""
    buffer = np.empty((0, len(origin)))
    for cells, w in blocks_of_floats(values, weight):
        if len(buffer) < len(cells):
            buffer = np.empty(cells.shape)  # once: pages of new arrays take longer than what is done to them
        above = np.subtract(cells, origin, out=buffer[: len(cells)])
        above /= unit
        yield above, w


def blocks_of_floats(values: np.ndarray, weight: np.ndarray | None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Some rows at a time as floats, and their weights."""
    size = min(max(_CELLS_AT_ONCE // max(values.shape[1], 1), 64), ROWS_AT_ONCE)
    for at in range(0, len(values), size):
        cells = np.asarray(values[at : at + size], dtype=float)
        yield cells, np.ones(len(cells)) if weight is None else np.asarray(weight[at : at + size], dtype=float)
