"""Columns of X as users say them: by names, positions, slices, masks, or a function of X, and in groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from skvbem._arguments import is_whole
from skvbem._names import did_you_mean
from skvbem.reading.tables import listed, show


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
    """

    whose: str
    kind: str
    names: Sequence[str]
    source: Any

    def positions(self, name: str, columns) -> list[int]:
        """Positions of the columns that are given something of this name."""
        if callable(columns):
            columns = columns(self.source)
        if isinstance(columns, slice):
            positions = list(range(len(self.names)))[self._as_positions(columns)]
        elif isinstance(columns, (str, Integral)) or not isinstance(columns, Iterable):
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
        if isinstance(column, str) and column in self.names:
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
                "such columns out."
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
        elif isinstance(groups, (list, tuple)) and not all(isinstance(each, (str, Integral)) for each in groups):
            named = list(enumerate(groups))
        else:
            raise ValueError(
                f"{self.whose} must be a list of groups, each a list of columns, or a mapping of names to columns. Got "
                f"{show(groups)} instead."
            )
        positions = [self.positions(name, columns) for name, columns in named]
        self.check_partition(positions, among)
        return positions
