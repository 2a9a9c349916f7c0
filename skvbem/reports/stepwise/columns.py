"""Covariates and outcomes: columns of numbers or of categories, and regressors of them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from skvbem._arguments import are_texts, is_list, is_real
from skvbem._names import first_few
from skvbem.reading.tables import Table, is_missing_value, library_of, named_columns, read_table

#: Name of the constant among regressors.
INTERCEPT = "intercept"
#: Levels of a column of categories, above which it is taken for names or texts.
MAX_LEVELS = 50


@dataclass(frozen=True, eq=False)
class ReadColumn:
    """A column of numbers, or of categories.

    Parameters
    ----------
    name : str
    levels : tuple or None
        Those of categories that occur, in the order of their type, or sorted; None for numbers.
    values : ndarray of shape (n_rows,)
        Numbers, or positions among the levels; 0 where missing.
    known : ndarray of bool, shape (n_rows,)
        False where missing, or not finite.
    """

    name: str
    levels: tuple | None
    values: np.ndarray
    known: np.ndarray

    @property
    def indicators(self) -> np.ndarray:
        """Indicators of the levels, (n_rows, n_levels); numbers as they are, (n_rows, 1)."""
        return self.values[:, None] if self.levels is None else np.eye(len(self.levels))[self.values]


def read_column(table: Table, j: int, caller: str) -> ReadColumn:
    """A column of a table; a ValueError if it has too many levels."""
    column, name = table.column(j), str(table.names[j])
    if column.levels is not None:
        cells = [None if code < 0 else column.levels[code] for code in column.values]
    else:
        cells = np.asarray(column.values).tolist()
    known = np.array([not is_missing_value(cell) for cell in cells], dtype=bool)
    if column.missing is not None:
        known &= ~column.missing
    seen = {cell for cell, is_known in zip(cells, known) if is_known}
    if column.levels is None and all(map(is_real, seen)):
        values = np.array([cell if is_known else 0.0 for cell, is_known in zip(cells, known)], dtype=float)
        known &= np.isfinite(values)
        return ReadColumn(name, None, np.where(known, values, 0.0), known)
    levels = tuple(filter(seen.__contains__, column.levels) if column.levels is not None else sorted(seen, key=str))
    if len(levels) > MAX_LEVELS:
        raise ValueError(
            f"Column {name!r} of {caller} has {len(levels)} levels; {MAX_LEVELS} are the most. Join levels, or make "
            "numbers of it by astype(float)."
        )
    place = {level: k for k, level in enumerate(levels)}
    codes = np.array([place[cell] if is_known else 0 for cell, is_known in zip(cells, known)], dtype=int)
    return ReadColumn(name, levels, codes, known)


def read_each(table: Table, caller: str) -> list[ReadColumn]:
    """All columns of a table."""
    return [read_column(table, j, caller) for j in range(table.n_columns)]


@dataclass(frozen=True)
class Covariates:
    """Columns of covariates, and how they become regressors.

    Parameters
    ----------
    columns : tuple of str
    levels : tuple of tuple or None
        Of each column of categories, the first of which is the reference; None for numbers.
    caller : str
        The public function, for messages.
    """

    columns: tuple[str, ...]
    levels: tuple[tuple | None, ...]
    caller: str

    @classmethod
    def of(cls, columns: Sequence[ReadColumn], caller: str) -> Covariates:
        """The covariates of columns that were read."""
        return cls(tuple(column.name for column in columns), tuple(column.levels for column in columns), caller)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the regressors, the constant first: of numbers that of the column, of levels "column=level"."""
        names = [INTERCEPT]
        for column, levels in zip(self.columns, self.levels):
            names += [column] if levels is None else [f"{column}={level}" for level in levels[1:]]
        return tuple(names)

    def regressors(self, columns: Sequence[ReadColumn]) -> np.ndarray:
        """Regressors (n_rows, n_regressors) of the rows of columns of the same names.

        Raises
        ------
        ValueError
            If columns are others, a cell is missing or not finite, or a level is new.
        """
        names = tuple(column.name for column in columns)
        if names != self.columns:
            raise ValueError(
                f"The covariates of {self.caller} must have the columns {first_few(self.columns)}, in this order. Got "
                f"{first_few(names)}."
            )
        parts = [np.ones((len(columns[0].values), 1))]
        for column, levels in zip(columns, self.levels):
            self._refuse_gaps(column)
            new = set() if levels is None else set(column.levels or ()) - set(levels)
            if new or (levels is None) != (column.levels is None):
                wanted = "numbers" if levels is None else f"one of the levels {first_few(levels)}"
                raise ValueError(
                    f"Covariate {column.name!r} of {self.caller} must be {wanted}. Got "
                    f"{first_few(sorted(map(str, new)) or column.values.tolist(), 3)}."
                )
            if levels is None:
                parts.append(column.values[:, None])
            else:
                place = np.array([levels.index(level) for level in column.levels or ()], dtype=int)
                parts.append(np.eye(len(levels))[place[column.values]][:, 1:])
        return np.hstack(parts)

    def _refuse_gaps(self, column: ReadColumn) -> None:
        if not column.known.all():
            raise ValueError(
                f"Covariate {column.name!r} of {self.caller} is missing, or not finite, in "
                f"{int((~column.known).sum())} of {len(column.known)} rows, and classes are given covariates. Fit the "
                "model to the other rows and leave these out of both, or fill them, as by VBImputer."
            )


def table_beside(argument: str, given: Any, X: Any, n_rows: int, caller: str) -> Table:
    """The table of an argument: columns of X by name, or a table, a series or an array of as many rows.

    Raises
    ------
    TypeError, ValueError
        If there is none, X has no such columns, or rows are fewer or more.
    """
    if given is None:
        raise TypeError(
            f"{argument!r} of {caller} must name columns of X, or be a table of one row for each of X. Got None."
        )
    names = [given] if isinstance(given, str) else list(given) if is_list(given) else []
    if names and are_texts(names):
        if not library_of(X):
            if len(names) == n_rows > 1:  # an outcome of words, row by row
                return read_table(np.array(names, dtype=object)[:, None], caller)
            raise TypeError(
                f"{argument!r} of {caller} are names, so that X must be a pandas or polars DataFrame. Got a "
                f"{type(X).__name__}. Give the columns themselves, one row for each of X."
            )
        unknown = [name for name in names if name not in list(X.columns)]
        if unknown and len(names) == n_rows > 1:
            return read_table(np.array(names, dtype=object)[:, None], caller)
        if unknown:
            raise ValueError(f"{named_columns(unknown)} of {argument!r} of {caller} is not in X.")
        given = X[names]
    table = read_columns(given, caller)
    if table.n_samples != n_rows:
        raise ValueError(
            f"{argument!r} of {caller} has {table.n_samples} rows, and X has {n_rows}. Give one row for each of X."
        )
    return table


def read_columns(given: Any, caller: str) -> Table:
    """A table, a series or an array of one or two axes as a table."""
    if hasattr(getattr(given, "dtype", None), "categories") and not library_of(given, "Series"):
        given = sys.modules["pandas"].Series(given)
    is_list_of_cells = is_list(given) and not any(map(is_list, given))
    if is_list_of_cells or (isinstance(given, np.ndarray) and given.ndim == 1):
        values = np.asarray(given)
        given = (np.asarray(given, dtype=object) if values.dtype.kind in "USO" else values)[:, None]
    return read_table(given, caller)
