"""Columns of intervals, as `pandas.cut` makes them, as two of numbers: where the column stood, and after the last.

An infinite end is an open one, and a number is a point. Which sides are closed makes no difference: a continuous
measurement is no end with probability 0.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from skvbem.blocks import Blocks
from skvbem.reading.forms import EmissionGroup
from skvbem.reading.tables import Column, Table, is_interval, is_missing_value, kind_of, show

#: What the column of upper ends is called, after the name of the column.
UPPER = "_high"


def with_ends(
    emission_groups: Sequence[EmissionGroup], names: Sequence[str], tables: Blocks, owner: str
) -> tuple[list[EmissionGroup], tuple[int, ...]]:
    """Groups of columns whose columns of intervals are two each, and the positions of these columns.

    Parameters
    ----------
    emission_groups : sequence of EmissionGroup
    names : sequence of str
        Of all columns.
    tables : Blocks of Table
        All rows.
    owner : str
        Name of the estimator's class.

    Raises
    ------
    ValueError
        If a pair of other columns has a column of intervals between its ends, or the name of upper ends is taken.
    """
    pairs = [at for group in emission_groups if group.specification.columns_of_each == 2 for at in group.columns]
    if not pairs:
        return list(emission_groups), ()
    seen: set[int] = set()
    for of_table in tables.results(partial(_intervals_in, pairs)):
        seen |= of_table
    intervals = tuple(sorted(seen))
    for name in (names[at] for at in intervals):
        if f"{name}{UPPER}" in names:
            raise ValueError(
                f"Column {name!r} of X holds intervals, whose upper ends {owner} calls {name + UPPER!r}. X has another "
                "column of that name: rename one of them."
            )
    upper = {at: len(names) + k for k, at in enumerate(intervals)}
    groups = []
    for group in emission_groups:
        columns: list[int] = []
        for at in group.columns:
            if at in upper and len(columns) % 2:
                raise ValueError(
                    f"Column {names[at]!r} of X holds intervals, and stands between {names[columns[-1]]!r} and the "
                    f"other end of that measurement in the group {group.name!r} of {owner}. Name both ends of a pair "
                    "one after the other."
                )
            columns += [at, upper[at]] if at in upper else [at]
        groups.append(group._replace(columns=columns) if seen.intersection(group.columns) else group)
    return groups, intervals


def _intervals_in(pairs: Sequence[int], table: Table) -> set[int]:
    """Which columns of a table, of some, hold intervals."""
    return {at for at in pairs if _holds_intervals(table.column(at))}


def of_ends(table: Table, intervals: Sequence[int]) -> Table:
    """A table whose columns of intervals are their lower ends; those of upper ends follow after the last column."""
    if not intervals:
        return table
    n, names = table.n_columns, [*table.names, *(f"{table.names[at]}{UPPER}" for at in intervals)]

    def column(j: int) -> Column:
        if j >= n:
            return _ends(table.names[intervals[j - n]], table.column(intervals[j - n]), "right")
        return _ends(table.names[j], table.column(j), "left") if j in intervals else table.column(j)

    return Table(names, table.n_samples, column, None, table.source, table.has_own_names)


def joined(columns: Sequence[np.ndarray], intervals: Sequence[int]) -> list[np.ndarray]:
    """Columns as the user knows them: two of ends as one of intervals, closed so that a point is in its own."""
    if not intervals:
        return list(columns)
    import pandas as pd

    result = list(columns[: len(columns) - len(intervals)])
    for at, high in zip(intervals, columns[len(result) :]):
        low, cells = np.where(np.isnan(result[at]), -np.inf, result[at]), np.empty(len(high), dtype=object)
        cells[:] = [pd.Interval(*ends, closed="both") for ends in zip(low, np.where(np.isnan(high), np.inf, high))]
        result[at] = cells
    return result


def _holds_intervals(column: Column) -> bool:
    """Whether any cell is an interval, or any level."""
    if "pandas" not in sys.modules:
        return False
    if column.levels is not None:
        return any(map(is_interval, column.levels))
    return column.values.dtype.kind == "O" and any(map(is_interval, column.values))


def _ends(name: str, column: Column, side: str) -> Column:
    """The lower ("left") or upper ("right") ends of a column's cells; NaN of open ends and of missing cells."""
    end = partial(_end, name, side)
    if column.levels is not None:
        return Column(np.array([*map(end, column.levels), np.nan], dtype=object)[column.values])
    return Column(np.array([*map(end, column.values.tolist()), None], dtype=object)[:-1], column.missing)


def _end(name: str, side: str, value: Any) -> Any:
    if is_interval(value):
        end = getattr(value, side)
        return np.nan if end == (-np.inf if side == "left" else np.inf) else end
    if not is_missing_value(value) and kind_of(value) != "number":
        raise ValueError(
            f"Column {name!r} of X holds {show(value)}, where an interval is expected: a pandas.Interval, or a number "
            "for a point."
        )
    return value
