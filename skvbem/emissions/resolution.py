"""Smallest gaps between the values of columns: how finely they were measured."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from skvbem.blocks import Blocks, map_reduce

# The finest resolution that is made use of, in radians or relative to the number: a thousandth. By hand: shapes and
# concentrations of a million are then as large as priors let them be.
FINEST = 1e-3
# Distinct values of a column beyond which some are nearer to each other than that.
_MAX_DISTINCT_VALUES = 2**16


class DistinctValues:
    """Distinct values of each column of a table; None of a column that has too many.

    Parameters
    ----------
    columns : list of ndarray, or of None
    """

    def __init__(self, columns: list):
        self.columns = [None if each is None or len(each) > _MAX_DISTINCT_VALUES else each for each in columns]

    @classmethod
    def of(cls, change: Callable[[np.ndarray], np.ndarray], part: tuple) -> DistinctValues:
        """Distinct changed numbers of a table (values, weight), in rows that have weight."""
        values, weight = part
        rows = np.asarray(values, dtype=float)
        rows = rows if weight is None else rows[np.asarray(weight) > 0]
        return cls([np.unique(change(column[~np.isnan(column)])) for column in rows.T])

    def __add__(self, other: DistinctValues) -> DistinctValues:
        """Distinct values of both tables."""
        pairs = zip(self.columns, other.columns)
        return DistinctValues([None if a is None or b is None else np.union1d(a, b) for a, b in pairs])


def resolution(
    values: np.ndarray | Blocks, weight: np.ndarray | None, change: Callable, period: float | None = None
) -> np.ndarray:
    """Smallest gap between distinct changed numbers of each column, 1e-3 at the least, (n_columns,).

    Parameters
    ----------
    values : ndarray of shape (n_rows, n_columns), or Blocks of (values, weight)
    weight : ndarray of shape (n_rows,), or None
    change : callable
        Takes numbers and returns those whose gaps count, such as their logarithms.
    period : float, optional
        Of numbers that go round in a circle.
    """
    parts = values if isinstance(values, Blocks) else [(values, weight)]
    gaps = []
    for column in map_reduce(partial(DistinctValues.of, change), parts).columns:
        least = FINEST
        if column is not None and len(column) > 1:
            around = [] if period is None else [column[0] + period - column[-1]]
            differences = np.append(np.diff(column), around)
            differences = differences[differences > 1e-9]  # equal but for rounding
            least = differences.min(initial=np.inf)
        gaps.append(least if np.isfinite(least) else FINEST)
    return np.maximum(gaps, FINEST)
