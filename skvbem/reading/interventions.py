"""Interventions, as users give them beside X: the columns that an experimenter set, row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from skvbem._arguments import is_collection
from skvbem._names import did_you_mean
from skvbem.reading.categories import CategoryEncoder
from skvbem.reading.column_groups import ColumnGroups
from skvbem.reading.tables import Table, as_plain, is_missing, is_missing_value, library_of, read_table, show

_REMEDY = "None or NaN says that nothing was set in a row, a list of names that several columns were"


def read_interventions(interventions: Any, table: Table, owner: str) -> tuple[Table, np.ndarray | None]:
    """The table without a column of interventions, and the cells that were set; None if none was.

    Parameters
    ----------
    interventions : array-like of bool, shape (n_rows, n_columns); array-like of names, shape (n_rows,); str; or None
        Frames of booleans need not have all columns. A string names the column of the table that holds names.
    table : Table
    owner : str
        Name of the estimator's class.

    Returns
    -------
    table : Table
    is_set : ndarray of bool, shape (n_rows, n_columns), or None

    Raises
    ------
    ValueError, TypeError
        If they are not what they should be; the message says what would be right.
    """
    if interventions is None:
        return table, None
    if isinstance(interventions, str):
        place = _place(interventions, table, owner)
        if table.n_columns == 1:
            raise ValueError(f"X of {owner} has no column but {interventions!r}, which names interventions.")
        column, levels = table.column(place), table.column(place).levels
        cells = column.values.tolist() if levels is None else [levels[k] if k >= 0 else None for k in column.values]
        if column.missing is not None:
            cells = [None if gone else cell for cell, gone in zip(cells, column.missing)]
        table = table.columns([j for j in range(table.n_columns) if j != place])
        is_set = _by_names(cells, table, owner)
    elif issparse(interventions) or not (is_collection(interventions) and hasattr(interventions, "__len__")):
        raise TypeError(
            f"'interventions' of {owner} must be booleans, one for each cell of X, names of columns, one for each row, "
            f"or the name of a column of X. Got {show(interventions)}."
        )
    elif getattr(interventions, "ndim", 1) == 2 or library_of(interventions) or _are_booleans(interventions):
        is_set = _by_cells(read_table(interventions, owner), table, owner)
    else:
        is_set = _by_names(list(interventions), table, owner)
    return table, is_set if is_set.any() else None


def with_set_cells(codes: np.ndarray, is_set: np.ndarray | None, columns: CategoryEncoder, owner: str) -> np.ndarray:
    """Codes of cells with those of cells that were set, as `skvbem.data.Rows` has them.

    Raises
    ------
    ValueError
        If a cell that was set is missing.
    """
    if is_set is None or not is_set.any():
        return codes
    _refuse_unknown(is_set & (codes < 0), columns.names_, owner)
    dtype = np.promote_types(codes.dtype, np.min_scalar_type(-2 * int(columns.n_categories_.max())))
    return codes.astype(dtype) + is_set * columns.n_categories_.astype(dtype)


def with_set_values(
    columns: ColumnGroups, values: list[np.ndarray], is_set: np.ndarray | None, owner: str
) -> tuple[list[np.ndarray], dict[Any, np.ndarray], frozenset]:
    """Values of groups of columns in which cells were set, numbers that nodes were set to, and nodes without any.

    Categories of tables are as `with_set_cells` has them. Numbers are missing among the values, since what they were
    set to says nothing of their own node: that is beside, (n_rows, n_columns), NaN elsewhere. Intervals and answers
    in an order are missing alone: without children they say nothing.
    """
    if is_set is None or not is_set.any():
        return values, {}, frozenset()
    result, numbers, leaves = [], {}, set()
    is_set = np.concatenate([is_set, is_set[:, list(columns.intervals)]], axis=1)  # both ends of an interval
    for group, of_group in zip(columns.groups, values):
        cells = is_set[:, list(group.columns)]
        if group.specification.has_table:
            assert group.encoder is not None
            of_group = with_set_cells(of_group, cells, group.encoder, owner)
        elif cells.any() and not group.specification.are_given:  # nothing explains what is given
            unknown, is_interval = cells & is_missing(of_group), group.columns[0] in columns.intervals
            if len(group.columns) > 1 + is_interval:
                raise ValueError(
                    f"'interventions' of {owner} set a column of the node {group.name!r}, which holds several. Leave "
                    "them apart in the 'emission', and let edges say how one depends on the other."
                )
            _refuse_unknown(unknown & unknown.all(axis=1)[:, None] if is_interval else unknown, group.names, owner)
            if group.encoder is None and not is_interval:
                numbers[group.name] = np.where(cells, of_group, np.nan)
            else:
                leaves.add(group.name)
            of_group = np.where(cells, np.nan if group.encoder is None else -1, of_group).astype(of_group.dtype)
        result.append(of_group)
    return result, numbers, frozenset(leaves)


def _refuse_unknown(unknown: np.ndarray, names: Any, owner: str) -> None:
    """Refuse cells that were set to what is not known."""
    for row, column in np.argwhere(unknown)[:1].tolist():
        raise ValueError(
            f"'interventions' of {owner} say that column {names[column]!r} was set in a row where X lacks what it was "
            f"set to, the {row + 1}. of those that count. Give the value, or do not name the column there."
        )


def _are_booleans(interventions: Any) -> bool:
    """True if rows are lists of booleans."""
    first: Any = next(iter(interventions), None)
    items = list(first) if is_collection(first) else []
    return bool(items) and all(isinstance(item, (bool, np.bool_)) for item in items)


def _by_cells(given: Table, table: Table, owner: str) -> np.ndarray:
    if given.n_samples != table.n_samples or (not given.has_own_names and given.n_columns != table.n_columns):
        raise ValueError(
            f"'interventions' of {owner} must have a row for each of the {table.n_samples} rows of X and a column for "
            f"each of its {table.n_columns} columns. Got {given.n_samples} x {given.n_columns}."
        )
    is_set = np.zeros((table.n_samples, table.n_columns), dtype=bool)
    for j, name in enumerate(given.names):
        column = given.column(j)
        values, gone = column.values, column.missing
        wrong = next((value for value in values.tolist() if value not in (True, False)), True)
        wrong = None if gone is not None and gone.any() else wrong
        if column.levels is not None or wrong is not True:
            raise ValueError(
                f"'interventions' of {owner} that are a table must hold True where a cell of X was set, else False. "
                f"Column {name!r} has {show(wrong)}."
            )
        is_set[:, _place(name, table, owner) if given.has_own_names else j] = values.astype(bool)
    return is_set


def _by_names(rows: list, table: Table, owner: str) -> np.ndarray:
    if len(rows) != table.n_samples:
        raise ValueError(
            f"'interventions' of {owner} must have one item for each of the {table.n_samples} rows of X. Got "
            f"{len(rows)}. {_REMEDY}."
        )
    is_set = np.zeros((table.n_samples, table.n_columns), dtype=bool)
    for row, names in enumerate(rows):
        several = names if is_collection(names) else () if is_missing_value(names) else (names,)
        for name in several:
            is_set[row, _place(name, table, owner)] = True
    return is_set


def _place(name: Any, table: Table, owner: str) -> int:
    """The position of a column that is named."""
    if as_plain(name) not in table.names:
        raise ValueError(
            f"'interventions' of {owner} name {show(as_plain(name))}, which is not a column of X."
            f"{did_you_mean(name, table.names)} {_REMEDY}."
        )
    return table.names.index(as_plain(name))
