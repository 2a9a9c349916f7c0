"""The argument `time`, and where the times of rows are: in a column, in an index, or beside X."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse import issparse

from skvbem._arguments import is_list, is_option
from skvbem._names import did_you_mean
from skvbem.reading.moments import Moments, read_moments
from skvbem.reading.tables import library_of, listed, show
from skvbem.reading.time_axis import TimeAxis

INDEX = "index"


def times_of_rows(X: Any, time: Any, are_listed: bool) -> tuple[TimeAxis, Moments | None, str | None]:
    """What `time` says, the times of the rows (of listed tables one after the other), and the column they are in.

    Times are None where steps are rows.

    Raises
    ------
    TypeError, ValueError
        If there are no such times.
    """
    axis = time if isinstance(time, TimeAxis) else TimeAxis(None if time is False else time)
    if time is False:
        return axis, None, None
    given = axis.times
    tables = X if are_listed else [X]
    if given is None:
        of_tables = [dates_of_index(table) for table in tables]
        if all(each is None for each in of_tables):
            if isinstance(time, TimeAxis):
                raise ValueError(
                    "'time' is a TimeAxis without 'times', and X has no index of dates or periods. Say where times "
                    "are: TimeAxis('name of a column'), TimeAxis('index'), or TimeAxis(times)."
                )
            return axis, None, None
        if lacking := [k for k, each in enumerate(of_tables) if each is None]:
            raise ValueError(
                f"Some sequences of X have an index of dates or periods, and sequence {lacking[0]} has none. Give all "
                "of them one, or pass time=False: steps are then rows."
            )
        return axis, _joined([read_moments(each, "The index of X") for each in of_tables]), None
    if isinstance(given, str):
        columns, places = zip(*[_named_times(table, given) for table in tables])
        what = f"Column {given!r} of X" if columns[0] else "The index of X"
        return axis, _joined([read_moments(each, what) for each in places]), given if columns[0] else None
    what = "The times of rows, 'time',"
    if issparse(given):
        raise ValueError(f"{what} must be an array of dates or whole numbers, one for each row. Got {show(given)}.")
    if not are_listed:
        return axis, read_moments(given, what), None
    if not is_list(given) or len(given) != len(tables):
        raise ValueError(
            f"X is a list of {len(tables)} sequences, so 'time' must be a list of as many arrays of times, or the name "
            f"of a column. Got {show(given)}."
        )
    of_each = [read_moments(each, what) for each in given]
    for k, (times, table) in enumerate(zip(of_each, tables)):
        if len(times.missing) != len(table):
            raise ValueError(
                f"'time' must have one time for each row of X. Sequence {k} has {len(table)} rows and "
                f"{len(times.missing)} times."
            )
    return axis, _joined(of_each), None


def check_one_for_each(moments: Moments, n_rows: int) -> None:
    """Refuse more or fewer times than rows."""
    if len(moments.missing) != n_rows:
        raise ValueError(
            f"'time' must have one time for each of the {n_rows} rows of X. Got {len(moments.missing)} times."
        )


def without_column(X: Any, column: str | None, are_listed: bool) -> Any:
    """Tables without the column of times."""
    if column is None:
        return X
    left = [table.drop(columns=column) if library_of(table) == "pandas" else table.drop(column)
            for table in (X if are_listed else [X])]  # fmt: skip
    if not left[0].shape[1]:
        raise ValueError(f"X has no column besides {column!r}, that of the times. Give it one that is measured.")
    return left if are_listed else left[0]


def dates_of_index(table: Any) -> Any:
    """The index of a pandas frame where it holds dates or periods, else None."""
    if library_of(table) != "pandas":
        return None
    import pandas as pd

    return table.index if isinstance(table.index, (pd.DatetimeIndex, pd.PeriodIndex)) else None


def _named_times(table: Any, name: str) -> tuple[bool, Any]:
    """The times that a name stands for, and whether they are a column."""
    library = library_of(table)
    if not library:
        raise ValueError(
            f"'time' is {name!r}, the name of a column, and X is no data frame. Give the times themselves, one for "
            "each row."
        )
    if name in list(table.columns):
        return True, table[name]
    if library == "pandas":
        if is_option(name, INDEX) and table.index.nlevels == 1:
            return False, table.index
        if name in table.index.names:
            return False, table.index.get_level_values(name)
    names = [str(each) for each in table.columns]
    raise ValueError(
        f"'time' is {name!r}, and X has no such column.{did_you_mean(name, names)} It has {listed(map(repr, names))}."
    )


def _joined(of_each: Sequence[Moments]) -> Moments:
    """The times of several tables as those of one."""
    if len(of_each) == 1:
        return of_each[0]
    first = of_each[0]
    for k, other in enumerate(of_each):
        if other.ticks.unit != first.ticks.unit or other.is_binding != first.is_binding:
            raise ValueError(
                f"The times of the sequences of X must be of one kind. Those of sequence 0 and of sequence {k} differ "
                f"in their data type. Make them alike, such as by X[{k}].index.astype(X[0].index.dtype)."
            )
    clock, even, missing = (
        np.concatenate([get(each) for each in of_each])
        for get in (lambda each: each.ticks.clock, lambda each: each.ticks.even, lambda each: each.missing)
    )
    are_alike = all(each.declared == first.declared for each in of_each)
    ticks, declared = replace(first.ticks, clock=clock, even=even), first.declared if are_alike else None
    return replace(first, ticks=ticks, missing=missing, declared=declared, is_binding=declared is not None)
