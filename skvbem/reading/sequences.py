"""Sequences as users have them: a list of tables, or rows of one table with ids or lengths."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Self

import numpy as np
from scipy.sparse import issparse

from skvbem._arguments import is_list, whole_numbers
from skvbem.reading.frequencies import Frequency
from skvbem.reading.output import filled
from skvbem.reading.tables import Table, is_missing_value, is_row, library_of, read_table, series_as_frame, show
from skvbem.reading.time_axis import StepTimes, in_time
from skvbem.reading.times import check_one_for_each, times_of_rows, without_column

_REMEDY = "Give a list of sequences, or 'sequence_id' with an id for each row: these are split as rows are."


@dataclass(frozen=True, eq=False)
class Sequences:
    """Sequences, their rows in one table.

    Parameters
    ----------
    rows : array-like or DataFrame
        As the user has them: of a list of sequences, one after the other.
    table : Table
        The same, read.
    lengths : ndarray of int64, shape (n_sequences,)
        Steps of each sequence, also those that no row stands for.
    order : ndarray of int or None
        The row in `rows` of each step, of one sequence after the other, -1 of a step that has none; None if the rows
        are the steps as they stand.
    are_listed : bool
        Whether they came as a list of tables.
    times : StepTimes or None
        When the steps are.
    ids : ndarray or None
        What the user calls each sequence.
    time_column : str or None
        The column of times, which is in `rows` and not in `table`.
    """

    rows: Any
    table: Table
    lengths: np.ndarray
    order: np.ndarray | None
    are_listed: bool
    times: StepTimes | None = None
    ids: np.ndarray | None = None
    time_column: str | None = None

    @property
    def n_rows(self) -> int:
        """Rows of all sequences."""
        return int(self.lengths.sum() if self.order is None else np.count_nonzero(self.order >= 0))

    @property
    def rows_of_each(self) -> np.ndarray:
        """Rows of each sequence, (n_sequences,)."""
        if self.order is None:
            return self.lengths
        return np.add.reduceat(self.order >= 0, np.cumsum(self.lengths) - self.lengths, dtype=np.int64)

    def latest(self, of_rows: np.ndarray) -> np.ndarray:
        """What belongs to the user's rows, of each step: of one without a row, what the row before it has."""
        if self.order is None:
            return of_rows
        steps = np.arange(len(self.order))
        return of_rows[self.order[np.maximum.accumulate(np.where(self.order >= 0, steps, 0))]]

    def places(self, which: int) -> np.ndarray:
        """The row of each step of one of the sequences, -1 where there is none."""
        end = int(self.lengths[: which + 1].sum())
        steps = slice(end - int(self.lengths[which]), end)
        return np.arange(steps.start, steps.stop) if self.order is None else self.order[steps]

    def only(self, which: int) -> Sequences:
        """One of the sequences: its steps are rows of one table, those that had no row without an observed cell."""
        times = None if self.times is None else self.times.only(which)
        ids = None if self.ids is None else self.ids[which : which + 1]
        table = self.table.taken(self.places(which))
        return Sequences(None, table, self.lengths[which : which + 1], None, False, times, ids)

    def extended(self, n_steps: int) -> Self:
        """The sequences with some steps more, each without a row."""
        order = np.arange(self.n_rows) if self.order is None else self.order
        ends = np.repeat(np.cumsum(self.lengths), n_steps)
        return replace(self, lengths=self.lengths + n_steps, order=np.insert(order, ends, -1))

    def of_rows(self, of_steps: np.ndarray) -> np.ndarray:
        """What belongs to steps, (n_steps, ...), of the user's rows, one sequence of a list after the other."""
        if self.order is None:
            return of_steps
        there = self.order >= 0
        as_rows = np.empty((np.count_nonzero(there), *of_steps.shape[1:]), dtype=of_steps.dtype)
        as_rows[self.order[there]] = of_steps[there]
        return as_rows

    def as_given(self, of_steps: np.ndarray) -> np.ndarray | list[np.ndarray]:
        """What belongs to steps, (n_steps, ...), as the user has rows: a list for a list."""
        rows = self.of_rows(of_steps)
        return self.split(rows) if self.are_listed else rows

    def split(self, rows) -> list:
        """Rows, one sequence after the other, as a list of sequences."""
        ends = np.concatenate([[0], np.cumsum(self.rows_of_each)]).tolist()
        take = rows.iloc if library_of(rows) == "pandas" else rows
        return [take[a:b] for a, b in pairwise(ends)]

    def completed(self, missing: np.ndarray, columns: Sequence[np.ndarray]) -> Any:
        """The user's X with cells filled in, a list for a list.

        Parameters
        ----------
        missing : ndarray of bool, shape (n_steps, n_columns)
            The cells to fill.
        columns : sequence of n_columns ndarrays of shape (n_steps,)
            The values to put there.
        """
        missing, columns = self.of_rows(missing), [self.of_rows(column) for column in columns]
        if self.time_column is not None:
            at = list(self.rows.columns).index(self.time_column)
            missing = np.insert(missing, at, False, axis=1)
            columns.insert(at, np.zeros(len(missing)))
        whole = filled(self.rows, missing, columns)
        return self.split(whole) if self.are_listed else whole


def read_sequences(X, sequence_id, lengths, owner: str, time=None, of_fit: Frequency | None = None) -> Sequences:
    """Sequences in any of their forms.

    Parameters
    ----------
    X : list or tuple of tables, or table
    sequence_id : array-like of shape (n_rows,) or None
        Rows of one id are a sequence, in the order in which they stand; sequences are in the order of appearance.
    lengths : array-like of int, shape (n_sequences,) or None
        Rows of each sequence, one after the other.
    owner : str
        Name of the estimator's class.
    time : str, array-like, TimeAxis, False or None
        When the rows are.
    of_fit : Frequency or None
        That of the fit, where it is asked about rows.

    Raises
    ------
    ValueError, TypeError
        If they are not what they should be; the message says which and what would be right.
    """
    if isinstance(X, Sequences):
        return X
    if sequence_id is not None and lengths is not None:
        raise ValueError("Give 'sequence_id' or 'lengths', not both: each says which rows are one sequence.")
    X = list(map(series_as_frame, X)) if is_list(X) else series_as_frame(X)
    if is_list(X) and not X:
        raise ValueError("X holds no sequence: it is an empty list. Give at least one sequence of at least one row.")
    are_listed = _is_list_of_tables(X)
    axis, moments, column = times_of_rows(X, time, are_listed)
    tables = without_column(X, column, are_listed)
    if are_listed:
        for name, value in (("sequence_id", sequence_id), ("lengths", lengths)):
            if value is not None:
                raise ValueError(f"X is a list of sequences; {name!r} is for rows of one table. Leave it out.")
        rows, n_rows_of_each = _joined(tables)
        table, order, ids = read_table(rows, owner), None, None
        rows = rows if column is None else _joined(X)[0]
    else:
        if getattr(X, "ndim", 2) == 3 and not issparse(X):
            raise ValueError(
                f"Found array with dim 3, while {owner} needs dim 2, one row for each step of one sequence. For "
                "sequences of one length give list(X): each item is then a sequence."
            )
        _refuse_flat_items(X)
        rows, table = X, read_table(tables, owner)
        n_rows_of_each, order, ids = _rows_of_each(sequence_id, lengths, table.n_samples)
    if moments is None:
        return Sequences(rows, table, n_rows_of_each, order, are_listed, None, ids)
    check_one_for_each(moments, table.n_samples)
    n_steps, order, times = in_time(moments, n_rows_of_each, order, axis, of_fit)
    return Sequences(rows, table, n_steps, order, are_listed, times, ids, column)


def _rows_of_each(sequence_id, lengths, n_rows: int) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
    """Rows of each sequence of one table, the order that brings those of one together, and ids."""
    if sequence_id is not None:
        return _of_ids(sequence_id, n_rows)
    n_rows_of_each = np.array([n_rows]) if lengths is None else _checked_lengths(lengths, n_rows)
    return n_rows_of_each.astype(np.int64), None, None


def refuse_lengths_as_y(y, sequences: Sequences, method: str) -> None:
    """Refuse what is ignored as y, and in hmmlearn's methods, which have no y, would be the lengths."""
    try:
        given = np.asarray(() if y is None else y)
    except ValueError:
        return
    looks_so = given.ndim == 1 and given.dtype.kind in "iu" and sum(given.tolist()) == sequences.n_rows
    if looks_so and 0 < len(given) != sequences.n_rows and len(given) != len(sequences.lengths):
        raise ValueError(
            f"The second argument of {method} is y, as everywhere in scikit-learn, and ignored. The numbers given add "
            f"up to the {sequences.n_rows} rows of X. If they are lengths, name them: {method}(X, lengths=...)."
        )


def sequence_weights(sample_weight: np.ndarray | None, sequences: Sequences) -> np.ndarray | None:
    """The weight of each sequence; None where each counts once.

    Parameters
    ----------
    sample_weight : ndarray or None
        Checked: of sequences if these are listed, else of rows.
    sequences : Sequences

    Raises
    ------
    ValueError
        If rows of one sequence differ.
    """
    if sample_weight is None or sequences.are_listed:
        return sample_weight
    weight = sequences.latest(sample_weight)
    starts = np.cumsum(sequences.lengths) - sequences.lengths
    low, high = np.minimum.reduceat(weight, starts), np.maximum.reduceat(weight, starts)
    if (low != high).any():
        at = int((low != high).argmax())
        raise ValueError(
            "A sequence counts as a whole: 'sample_weight' must be the same for all its rows. Those of sequence "
            f"{at} lie between {low[at]:g} and {high[at]:g}."
        )
    return weight[starts]


# Lists ----------------------------------------------------------------------------------------------------------------


def _is_list_of_tables(X) -> bool:
    """Whether X is a list of sequences, rather than of rows of one."""
    if _is_array_of_items(X):
        return _is_table(X[0])
    return is_list(X) and any(_is_table(item) for item in X)


def _is_array_of_items(X) -> bool:
    return isinstance(X, np.ndarray) and X.dtype == object and X.ndim == 1 and len(X) > 0


def _refuse_flat_items(X) -> None:
    """Refuse a list whose items can only be meant as sequences of one column, which are tables, too."""
    if not (_is_array_of_items(X) or is_list(X)):
        return
    if isinstance(X[0], str):
        raise ValueError(
            f"Item 0 of X is a string, {show(X[0])}. A sequence of symbols is a table with a row for each, such as "
            "np.array(list(item)).reshape(-1, 1)."
        )
    sizes = [len(item) if hasattr(item, "__len__") else -1 for item in X]
    if min(sizes) >= 0 and min(sizes) < max(sizes):
        lengths = sorted(set(sizes))
        raise ValueError(
            f"The rows of X must have one length. Got rows of {', '.join(map(str, lengths[:5]))} cells. If the items "
            "of X are sequences of one column, make each a table, such as by np.asarray(item).reshape(-1, 1)."
        )


def _is_table(item) -> bool:
    if is_list(item):
        return bool(item) and is_row(item[0])
    return bool(library_of(item)) or getattr(item, "ndim", 1) >= 2


def _joined(X: Sequence) -> tuple[Any, np.ndarray]:
    """The rows of all sequences of a list, in the container of one, and the length of each."""
    libraries = list(map(library_of, X))
    if library := next((each for each in ("pandas", "polars") if each in libraries), None):
        if set(libraries) != {library}:
            other = next(k for k, each in enumerate(libraries) if each != library)
            raise TypeError(
                f"Sequence {other} of X is no {library} DataFrame, though others are. Give all sequences in one kind "
                "of container."
            )
        lengths = _lengths_of(X)
        return _joined_frames(X, library), lengths
    if any(issparse(item) for item in X):
        raise TypeError("Sparse data was passed in X, but dense data is required. Use '.toarray()' of each sequence.")
    tables = [item if isinstance(item, np.ndarray) else _as_array(item, k) for k, item in enumerate(X)]
    for k, table in enumerate(tables):
        if table.ndim != 2:
            raise ValueError(
                f"Sequence {k} of X must be 2-D, one row for each step. Got {table.ndim}-D of shape {table.shape}. "
                "Reshape it, for example with .reshape(-1, 1) if there is one column."
            )
    widths = {table.shape[1] for table in tables}
    if len(widths) > 1:
        other = next(k for k, table in enumerate(tables) if table.shape[1] != tables[0].shape[1])
        raise ValueError(
            f"The sequences of X must have the same columns. Sequence 0 has {tables[0].shape[1]} and sequence {other} "
            f"has {tables[other].shape[1]}."
        )
    lengths = _lengths_of(tables)
    kinds = {table.dtype.kind for table in tables}
    if len(kinds) > 1 and not kinds <= set("iuf"):  # the 1 of [1, "a"] must not become "1"
        tables = [table.astype(object) for table in tables]
    masked = any(isinstance(table, np.ma.MaskedArray) for table in tables)
    return (np.ma if masked else np).concatenate(tables), lengths


def _as_array(item, k: int) -> np.ndarray:
    array = np.array(item, dtype=object) if is_list(item) else np.asarray(item)
    if array.ndim == 1 and is_list(item) and len(array):
        raise ValueError(
            f"Sequence {k} of X must be 2-D, its rows of one length. Got {show(item)}; of one column that is "
            "[[a], [b], ...]."
        )
    return array


def _joined_frames(X: Sequence, library: str):
    columns = list(X[0].columns)
    for k, item in enumerate(X):
        if list(item.columns) != columns:
            raise ValueError(
                f"The sequences of X must have the same columns, in the same order. Sequence 0 has {columns} and "
                f"sequence {k} has {list(item.columns)}."
            )
    if library == "pandas":
        import pandas as pd

        return pd.concat(list(X))
    import polars as pl

    for name in columns:
        types = [item.schema[name] for item in X]
        words = [k for k, dtype in enumerate(types) if dtype in (pl.String, pl.Categorical, pl.Enum)]
        other = next((k for k, dtype in enumerate(types) if k not in words and dtype != pl.Null), None)
        if words and other is not None:  # polars would make strings of them
            raise ValueError(
                f"Column {name!r} of X mixes kinds of values: {types[other]} in sequence {other} and {types[words[0]]} "
                f"in sequence {words[0]}. Make them one kind; 1 and '1' are never merged."
            )
        if len({types[k] for k in words}) > 1:  # such as two Enums, which have no type in common
            X = [item.with_columns(pl.col(name).cast(pl.String)) for item in X]
    return pl.concat(list(X), how="vertical_relaxed")


def _lengths_of(tables: Sequence) -> np.ndarray:
    lengths = np.fromiter(map(len, tables), dtype=np.int64, count=len(tables))
    empty = np.flatnonzero(lengths == 0)
    if len(empty):
        raise ValueError(f"Sequence {empty[0]} of X is empty (0 rows). Leave such sequences out.")
    return lengths


# Rows -----------------------------------------------------------------------------------------------------------------


def _of_ids(sequence_id, n_rows: int) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
    """Lengths of sequences in the order of appearance, the order that brings rows of one together, and their ids."""
    ids = np.asarray(sequence_id)
    if ids.ndim != 1 or len(ids) != n_rows:
        given = show(sequence_id) if ids.ndim == 0 else f"an array of shape {ids.shape}"
        raise ValueError(
            f"'sequence_id' must have an id for each of the {n_rows} rows of X. Got {given}. Give the ids themselves, "
            "such as the values of a column."
        )
    if ids.dtype.kind in "cV":
        raise TypeError(f"'sequence_id' must hold numbers, strings or dates. Got {ids.dtype}.")
    if ids.dtype == object:
        held = ids.tolist()
        odd = next((k for k, value in enumerate(held) if not isinstance(value, Hashable)), None)
        if odd is not None:
            raise TypeError(
                f"'sequence_id' must hold numbers, strings or dates. That of row {odd} is a {type(held[odd]).__name__}."
            )
        missing = next((k for k, value in enumerate(held) if is_missing_value(value)), None)
        number: dict = {}
        if missing is None:
            position = np.fromiter((number.setdefault(value, len(number)) for value in held), np.int64, len(held))
    else:
        at = np.flatnonzero(np.isnan(ids) if ids.dtype.kind == "f" else np.isnat(ids) if ids.dtype.kind in "mM" else [])
        missing = int(at[0]) if len(at) else None
        _, first, inverse = np.unique(ids, return_index=True, return_inverse=True)
        position = np.argsort(np.argsort(first))[inverse.ravel()]
    if np.ma.is_masked(sequence_id):
        missing = int(np.argmax(np.ma.getmaskarray(sequence_id)))
    if missing is not None:
        raise ValueError(f"'sequence_id' of row {missing} is missing. Every row must say to which sequence it belongs.")
    lengths = np.bincount(position)
    first = ids[np.unique(position, return_index=True)[1]]
    return lengths, None if (np.diff(position) >= 0).all() else np.argsort(position, kind="stable"), first


def _checked_lengths(lengths, n_rows: int) -> np.ndarray:
    checked = whole_numbers(lengths)
    if checked is None or checked.ndim != 1 or np.ma.is_masked(lengths):
        raise ValueError(
            f"'lengths' must be a list of whole numbers, the rows of each sequence. Got {show(lengths)} instead."
        )
    bad = np.flatnonzero(checked < 1)
    if len(bad):
        raise ValueError(f"'lengths' must be >= 1 each. That of sequence {bad[0]} is {checked[bad[0]]}.")
    total = sum(checked.tolist())  # of 64 bits it could come round to the right number
    if total != n_rows:
        raise ValueError(
            f"'lengths' add up to {total}, but X has {n_rows} rows. Cross-validation splits the rows of X, not "
            f"'lengths'. {_REMEDY}"
        )
    return checked
