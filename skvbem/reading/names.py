"""Names of columns: tables that are refused because theirs are not those of the fit, and parameters that select some.

Names are compared here and not by scikit-learn, whose older versions know nothing of the names of newer data frames,
and would take columns in another order for those of the fit. The words are scikit-learn's, which users know.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from skvbem._arguments import is_collection, is_list, is_option, is_whole
from skvbem._names import did_you_mean
from skvbem.errors import warn
from skvbem.reading.tables import MAX_NAMED_COLUMNS, Table, listed, show


def check_names(table: Table, estimator) -> None:
    """Refuse a table whose columns are not those of the fit, in their order; warn where only one of both has names.

    Parameters
    ----------
    table : Table
    estimator : estimator
        Fitted, with the attributes of `Table.names_of_fit`.

    Raises
    ------
    ValueError
        If names differ, or stand in another order, or there are more or fewer columns.
    """
    owner, of_fit = type(estimator).__name__, getattr(estimator, "feature_names_in_", None)
    compare_names("X", of_fit, table.names if table.has_own_names else None, owner)
    n_of_fit = getattr(estimator, "n_features_in_", table.n_columns)  # of one put together by hand nobody counted them
    if table.n_columns != n_of_fit:
        raise ValueError(f"X has {table.n_columns} features, but {owner} is expecting {n_of_fit} features as input.")


def compare_names(table: str, of_fit: Iterable[str] | None, given: list[str] | None, owner: str) -> None:
    """Refuse names of the columns of X, or of another table, that are not those of the fit; see `check_names`."""
    if of_fit is None and given is not None:
        warn(f"{table} has feature names, but {owner} was fitted without feature names")
    elif of_fit is not None and given is None:
        warn(f"{table} does not have valid feature names, but {owner} was fitted with feature names")
    elif of_fit is not None and given is not None and list(of_fit) != given:
        raise ValueError(_difference(list(of_fit), given, "" if table == "X" else f" of {table!r}"))


def _difference(of_fit: list[str], given: list[str], whose: str) -> str:
    """The message about columns that are not those of the fit."""
    lines = [f"The feature names{whose} should match those that were passed during fit."]
    unseen, lacking = sorted(set(given) - set(of_fit)), sorted(set(of_fit) - set(given))
    if unseen:
        lines += ["Feature names unseen at fit time:", *_itemized(unseen)]
    if lacking:
        lines += ["Feature names seen at fit time, yet now missing:", *_itemized(lacking)]
    if not (unseen or lacking):
        lines.append("Feature names must be in the same order as they were in fit.")
    return "\n".join(lines) + "\n"


def _itemized(names: list[str]) -> Iterable[str]:
    items = [f"- {name}" for name in names]
    return items if len(items) <= MAX_NAMED_COLUMNS else [*items[:MAX_NAMED_COLUMNS], "- ..."]


@dataclass(frozen=True)
class ColumnSelection:
    """Reads a parameter that gives every column of X something.

    Parameters
    ----------
    whose : str
        The parameter, for messages.
    kind : str
        What it gives a column.
    names : sequence of str
        Of all columns.
    source : array-like or DataFrame
        X as the user has it, which functions that select columns are given.
    remedy : str, default=""
        What else may be done about columns without one, as a sentence behind a blank.
    """

    whose: str
    kind: str
    names: Sequence[str]
    source: Any
    remedy: str = ""

    def positions(self, name: str, columns) -> list[int]:
        """Positions of the columns that are given something of this name."""
        if callable(columns):
            columns = columns(self.source)
        if isinstance(columns, slice):
            positions = list(range(len(self.names)))[self._as_positions(columns)]
        elif not is_collection(columns):
            positions = [self._position(columns)]
        else:
            positions = self._positions(list(columns))
        if not positions:
            raise ValueError(f"{self.whose} gives no column to {name!r}. Leave it out.")
        return positions

    def _positions(self, columns: list) -> list[int]:
        if not columns or not all(isinstance(column, (bool, np.bool_)) for column in columns):
            return [self._position(column) for column in columns]
        if len(columns) != len(self.names):
            raise ValueError(
                f"{self.whose} has a mask of {len(columns)} columns. X has {len(self.names)}: give one for each."
            )
        return np.flatnonzero(columns).tolist()

    def _as_positions(self, columns: slice) -> slice:
        """A slice of names, which takes in its end as in pandas, as one of positions."""
        start, stop = columns.start, columns.stop
        if isinstance(start, str):
            start = self._position(start)
        if isinstance(stop, str):
            stop = self._position(stop) + 1
        return slice(start, stop, columns.step)

    def _position(self, column) -> int:
        if is_option(column, *self.names):
            return list(self.names).index(column)
        if is_whole(column) and 0 <= int(column) < len(self.names):
            return int(column)
        raise ValueError(
            f"{self.whose} names {show(column)}, which is no column of X.{did_you_mean(column, self.names)} Columns: "
            f"{listed(map(repr, self.names))}."
        )

    def check_partition(self, groups: Sequence[Sequence[int]], among: Sequence[int]) -> None:
        """Refuse positions that are not among those to be shared out, or of these any in two groups or in none."""
        times = Counter(position for columns in groups for position in columns)
        twice = [self.names[position] for position, n in times.items() if n > 1]
        if twice:
            raise ValueError(f"{self.whose} names column {twice[0]!r} more than once. A column has one {self.kind}.")
        outside = [self.names[position] for position in times if position not in among]
        if outside:
            theirs = listed(repr(self.names[position]) for position in among)
            raise ValueError(f"{self.whose} names column {outside[0]!r}, which is none of its own: {theirs}.")
        left = [self.names[position] for position in sorted(among) if position not in times]
        if left:
            of = "of X" if len(among) == len(self.names) else "of its own"
            raise ValueError(
                f"{self.whose} gives no {self.kind} to {listed(map(repr, left))}. Name every column {of}, or leave "
                f"such columns out.{self.remedy}"
            )

    def partition(self, groups, among: Sequence[int]) -> list[list[int]]:
        """Positions of the columns of each group, of a mapping of names to columns or of a list of columns.

        Raises
        ------
        ValueError
            If it has neither form, names a column that there is not, or does not share out all columns.
        """
        if isinstance(groups, Mapping):
            named = list(groups.items())
        elif is_list(groups) and not all(isinstance(each, (str, Integral)) for each in groups):
            named = list(enumerate(groups))
        else:
            raise ValueError(
                f"{self.whose} must be a list of groups, each a list of columns, or a mapping of names to columns. Got "
                f"{show(groups)} instead."
            )
        positions = [self.positions(name, columns) for name, columns in named]
        self.check_partition(positions, among)
        return positions
