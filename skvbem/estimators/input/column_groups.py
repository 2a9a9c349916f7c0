"""A user's table as groups of columns, each of one kind: measurements, counts, categories.

Which column is what is said by the `emission` parameter, or read from data types: numbers are measurements, which form
one Gaussian group, everything else is a category. That whole numbers are counts nobody can tell from a table: counts
are named.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Number
from typing import Any

import numpy as np

from skvbem.blocks import Blocks
from skvbem.emissions import EMISSIONS, Emission, Independent
from skvbem.estimators.input.categories import CategoryEncoder
from skvbem.estimators.input.numbers import check_blocks, is_missing, read_numbers
from skvbem.estimators.input.tables import Column, Table
from skvbem.estimators.input.values import _is_missing, _show, _some, missing_markers
from skvbem.graphs.dag import did_you_mean


@dataclass(frozen=True, eq=False)
class Group:
    """Columns that share an emission.

    Parameters
    ----------
    family : str
        A name in `skvbem.emissions.EMISSIONS`.
    columns : tuple of int
        Positions in the table.
    names : tuple of str
    encoder : CategoryEncoder or None
        For categories.
    """

    family: str
    columns: tuple[int, ...]
    names: tuple[str, ...]
    encoder: CategoryEncoder | None = None


@dataclass(frozen=True, eq=False)
class ColumnGroups:
    """The groups of a table's columns, and how each is read.

    Parameters
    ----------
    names : tuple of str
        Of all columns.
    groups : tuple of Group
    missing_values : scalar or list
        Values that mean "missing" besides NaN, None and NA.
    owner : str
        Name of the estimator's class, for messages.
    """

    names: tuple[str, ...]
    groups: tuple[Group, ...]
    missing_values: Any
    owner: str

    @property
    def markers(self) -> set[tuple]:
        """What means "missing" besides NaN, None and NA, as (kind, value)."""
        return missing_markers(self.missing_values, self.owner)

    @classmethod
    def learned(
        cls, table: Table, emission, owner: str, *, categories="auto", missing_values=np.nan, handle_unknown="warn"
    ) -> tuple[ColumnGroups, list[np.ndarray]]:
        """The groups that an `emission` parameter makes of a table, and the values of each group.

        Raises
        ------
        ValueError, TypeError
            If the parameter, or a cell, is not what it should be.
        """
        families = _families(table.names, emission, owner, lambda: list(map(_holds_numbers, table.each_column())))
        groups = cls._unread(table, families, owner, categories, missing_values, handle_unknown)
        values = []
        for group in groups.groups:
            part = table.columns(group.columns)
            if group.encoder is None:
                values.append(read_numbers(part, group.family, groups.markers, is_fit=True))
            else:
                values.append(group.encoder.fit_encode(part))
        return groups, values

    @classmethod
    def learned_from_blocks(
        cls, tables: Blocks, emission, owner: str, *, categories="auto", missing_values=np.nan, handle_unknown="warn"
    ) -> ColumnGroups:
        """The groups that an `emission` parameter makes of a table whose rows come in blocks: those of all together.

        Raises
        ------
        ValueError, TypeError
            If the parameter, or a cell, is not what it should be.
        """
        first = next(iter(tables))
        families = _families(first.names, emission, owner, lambda: _hold_numbers(first.names, tables))
        groups = cls._unread(first, families, owner, categories, missing_values, handle_unknown)
        for group in groups.groups:
            of_group = tables.map(partial(_columns_of, group))
            if group.encoder is None:
                check_blocks(of_group, group.family, groups.markers)
            else:
                group.encoder.fit_blocks(of_group)
        return groups

    @classmethod
    def _unread(
        cls, table: Table, families: Mapping, owner: str, categories, missing_values, handle_unknown
    ) -> ColumnGroups:
        """Groups whose categories are still to be learned."""
        names, groups = tuple(table.names), []
        for family, columns in families.items():
            part, encoder = table.columns(columns).names, None
            if family == "categorical":
                given: Any = "auto"
                if isinstance(categories, Mapping):
                    given = {k: v for k, v in categories.items() if k in part}
                encoder = CategoryEncoder(
                    owner,
                    categories=given,
                    missing_values=missing_values,
                    handle_unknown=handle_unknown,
                    if_measured=f"give it to 'gaussian' in the 'emission' parameter of {owner}",
                )
            groups.append(Group(family, tuple(columns), tuple(part), encoder))
        if isinstance(categories, Mapping):
            _check_named(categories, groups, names, owner)
        elif not (isinstance(categories, str) and categories == "auto"):
            raise ValueError(
                f"The 'categories' parameter of {owner} must be 'auto' or a mapping of column names to levels. Got "
                f"{_show(categories)} instead."
            )
        return cls(names, tuple(groups), missing_values, owner)

    def values(self, table: Table, *, is_known: bool = False) -> list[np.ndarray]:
        """The values of each group of another table, in the categories of the first; known ones are not checked."""
        if table.n_columns != len(self.names):
            raise ValueError(
                f"X has {table.n_columns} features, but {self.owner} is expecting {len(self.names)} features as input."
            )
        return [
            read_numbers(table.columns(group.columns), group.family, self.markers, is_known=is_known)
            if group.encoder is None
            else group.encoder.encode(table.columns(group.columns))
            for group in self.groups
        ]

    def emission(
        self, values: Sequence, weight: np.ndarray | None, options: Mapping[str, Mapping[str, Any]]
    ) -> Emission:
        """The emission of the groups' values, arrays or `Blocks` of (values, weight); options by family."""
        parts = []
        for group, of_group in zip(self.groups, values):
            own = dict(options.get(group.family, {}))
            if group.encoder is not None:
                own["n_categories"] = group.encoder.n_categories_
            parts.append(EMISSIONS[group.family].for_data(of_group, weight, **own))
        return parts[0] if len(parts) == 1 else Independent(tuple(parts))

    def as_emission_takes(self, of_groups: Sequence) -> Any:
        """One item for each group, as an emission of them takes it: alone if there is one group."""
        return of_groups[0] if len(self.groups) == 1 else tuple(of_groups)

    def as_list(self, of_emission: Any) -> list:
        """What an emission of the groups returns, one item for each group."""
        return [of_emission] if len(self.groups) == 1 else list(of_emission)

    def columns_of(self, values: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Values of the groups as the user knows them, column by column in the order of the table."""
        columns: list[Any] = [None] * len(self.names)
        for group, of_group in zip(self.groups, values):
            for k, at in enumerate(group.columns):
                column = of_group[:, k]
                columns[at] = column if group.encoder is None else group.encoder.decode(column, k)
        return columns

    def missing(self, values: Sequence[np.ndarray]) -> np.ndarray:
        """Which cells are missing, (n_rows, n_columns) in the order of the table."""
        found = np.zeros((len(values[0]), len(self.names)), dtype=bool)
        for group, of_group in zip(self.groups, values):
            found[:, list(group.columns)] = is_missing(of_group)
        return found

    def refilled(self, values: Sequence[np.ndarray], drawn: Any) -> list[np.ndarray]:
        """Values of the groups replaced by those that an emission drew, the same cells missing."""
        return [
            np.where(is_missing(of_group), of_group, as_drawn).astype(of_group.dtype)
            for of_group, as_drawn in zip(values, self.as_list(drawn))
        ]

    def meaning(self) -> str:
        """What decides how a table is read, as text."""
        return "|".join(
            f"{group.family}:{group.names}:"
            + ("" if group.encoder is None else str([levels.tolist() for levels in group.encoder.categories_]))
            for group in self.groups
        )


# Which column is what -------------------------------------------------------------------------------------------------


def _families(
    names: Sequence[str], emission, owner: str, hold_numbers: Callable[[], list[bool]]
) -> dict[str, list[int]]:
    """Family -> positions of its columns. Which of them hold numbers is asked where nothing else says it."""
    whose = f"The 'emission' parameter of {owner}"
    families = _some(map(repr, EMISSIONS))
    if isinstance(emission, str):
        if emission == "auto":
            found: dict[str, list[int]] = {}
            for j, is_number in enumerate(hold_numbers()):
                found.setdefault("gaussian" if is_number else "categorical", []).append(j)
            return found
        if emission in EMISSIONS:
            return {emission: list(range(len(names)))}
    if not isinstance(emission, Mapping):
        raise ValueError(
            f"{whose} must be 'auto', one of {families}, or a mapping of these to columns. Got {_show(emission)} "
            "instead."
        )
    found = {}
    for family, columns in emission.items():
        if family not in EMISSIONS:
            raise ValueError(
                f"{whose} names the family {_show(family)}.{did_you_mean(family, EMISSIONS)} Families are {families}."
            )
        one = isinstance(columns, (str, Integral)) or not isinstance(columns, Iterable)
        found[family] = [_position(column, names, whose) for column in ([columns] if one else columns)]
        if not found[family]:
            raise ValueError(f"{whose} gives no column to {family!r}. Leave the family out.")
    times = Counter(position for columns in found.values() for position in columns)
    twice = [names[position] for position, n in times.items() if n > 1]
    if twice:
        raise ValueError(f"{whose} names column {twice[0]!r} more than once. A column has one family.")
    left = [name for position, name in enumerate(names) if position not in times]
    if left:
        raise ValueError(
            f"{whose} gives no family to {_some(map(repr, left))}. Name every column of X, or leave such columns out."
        )
    return found


def _position(column, names: Sequence[str], whose: str) -> int:
    if isinstance(column, str) and column in names:
        return names.index(column)
    if isinstance(column, Integral) and not isinstance(column, bool) and 0 <= int(column) < len(names):
        return int(column)
    raise ValueError(
        f"{whose} names {_show(column)}, which is no column of X.{did_you_mean(column, names)} Columns: "
        f"{_some(map(repr, names))}."
    )


def _holds_numbers(column: Column) -> bool:
    """Whether a column holds numbers; booleans and declared levels are categories."""
    if column.levels is not None:
        return False
    kind = column.values.dtype.kind
    if kind != "O":
        return kind in "iufc"
    held = {type(value) for value in column.values.tolist() if not _is_missing(value)}
    return bool(held) and all(issubclass(each, Number) and not issubclass(each, (bool, np.bool_)) for each in held)


def _columns_of(group: Group, table: Table) -> Table:
    return table.columns(group.columns)


def _hold_numbers(names: Sequence[str], tables: Blocks) -> list[bool]:
    """Whether columns hold numbers, by the blocks in which a cell is observed."""
    found: list[set[bool]] = [set() for _ in names]
    of_none: list[bool] = []
    for table in tables:
        of_none = of_none or list(map(_holds_numbers, table.each_column()))
        for verdicts, column in zip(found, table.each_column()):
            cells = column.values
            empty = column.levels is None and (
                np.isnan(cells).all() if cells.dtype.kind == "f" else cells.dtype.kind == "O" and _all_missing(cells)
            )
            if not empty:
                verdicts.add(_holds_numbers(column))
    for name, verdicts in zip(names, found):
        if len(verdicts) > 1:
            raise ValueError(
                f"Column {name!r} of X holds numbers in some blocks and categories in others. Make them one kind, or "
                "name its family in the 'emission' parameter."
            )
    return [True in (verdicts or {other}) for verdicts, other in zip(found, of_none)]


def _all_missing(cells: np.ndarray) -> bool:
    return all(_is_missing(value) for value in cells.tolist())


def _check_named(categories: Mapping, groups: Sequence[Group], names: Sequence[str], owner: str) -> None:
    of_categories = {name for group in groups if group.encoder is not None for name in group.names}
    for name in categories:
        if name not in of_categories:
            columns = _some(map(_show, names))
            what = "which holds no categories" if name in names else f"which is not a column of X: {columns}"
            raise ValueError(f"The 'categories' parameter of {owner} names {_show(name)}, {what}.")
