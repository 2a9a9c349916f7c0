"""A user's table as groups of columns, each of one kind: measurements, counts, categories.

Which column is what is said by the `emission` parameter, or read from data types: numbers are measurements, which form
one Gaussian group, everything else is a category. That whole numbers are counts nobody can tell from a table: counts
are named, and where numbers look like them, or like categories, a warning says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Number
from typing import Any

import numpy as np

from skvbem._arguments import is_option
from skvbem.blocks import Blocks
from skvbem.emissions import Emission, EmissionSpecification
from skvbem.emissions.independent import Independent
from skvbem.emissions.registry import FOR_NUMBERS, family_of
from skvbem.emissions.regression import lagged, steps_of
from skvbem.reading.categories import CategoryEncoder
from skvbem.reading.emission_groups import DEFAULT_COVARIANCE_TYPE, EmissionGroup, EmissionReader
from skvbem.reading.guesses import MIN_LEVELS, warn_of_names_of_rows, warn_of_numbers
from skvbem.reading.numbers import check_blocks, hold_whole_numbers, is_missing, read_numbers
from skvbem.reading.tables import Column, Table, is_missing_value, listed, missing_markers, show


@dataclass(frozen=True, eq=False)
class Group:
    """Columns that share an emission.

    Parameters
    ----------
    name : str
        Of the group: of a list of emissions what the user calls it, else its family.
    specification : EmissionSpecification
    columns : tuple of int
        Positions in the table.
    names : tuple of str
    encoder : CategoryEncoder or None
        For categories.
    given : tuple of int
        Positions of columns that are given and explain these; a group's values hold them after its own.
    """

    name: str
    specification: EmissionSpecification
    columns: tuple[int, ...]
    names: tuple[str, ...]
    encoder: CategoryEncoder | None = None
    given: tuple[int, ...] = ()

    @property
    def n_lags(self) -> int:
        """How many earlier values of the group's own columns its values hold after what is given."""
        return getattr(self.specification, "lags", 0)

    def modeled(self, values: np.ndarray) -> np.ndarray:
        """The group's own columns; those of a row without something that explains them are missing."""
        d = len(self.columns)
        if values.shape[1] == d:
            return values
        return np.where(np.isnan(values[:, d:]).any(axis=1)[:, None], np.nan, values[:, :d])

    def check_given(self, values: np.ndarray, names: Sequence[str]) -> None:
        """Refuse rows in which something is missing that explains an observed cell."""
        d, n_given = len(self.columns), len(self.given)
        lacking = np.isnan(values[:, d : d + n_given])
        bad = lacking.any(axis=1) & ~np.isnan(values[:, :d]).all(axis=1)
        if bad.any():
            row = int(bad.argmax())
            which = names[self.given[int(lacking[row].argmax())]]
            raise ValueError(
                f"Row {row} of X has no {which!r}, which explains {listed(map(repr, self.names))} there. Fill it in, "
                "leave out such rows, or set what it explains to NaN."
            )

    @property
    def levels(self) -> list[np.ndarray]:
        """Levels of each column of categories; none for numbers."""
        return [] if self.encoder is None else list(self.encoder.categories_)


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
        cls,
        table: Table,
        owner: str,
        *,
        emission="auto",
        covariance_type=DEFAULT_COVARIANCE_TYPE,
        categories="auto",
        missing_values=np.nan,
        handle_unknown="warn",
    ) -> tuple[ColumnGroups, list[np.ndarray]]:
        """The groups that an `emission` parameter makes of a table, and the values of each group.

        Raises
        ------
        ValueError, TypeError
            If the parameter, or a cell, is not what it should be.
        """
        reader = EmissionReader(owner, table.names, table.source, covariance_type)
        emission_groups = reader.groups(emission, lambda: list(map(_holds_numbers, table.each_column())))
        groups = cls._unread(table, emission_groups, owner, categories, missing_values, handle_unknown)
        values = []
        for group in groups.groups:
            part = table.columns(group.columns)
            if group.encoder is None:
                values.append(groups._numbers(table, group, is_fit=True))
            else:
                values.append(group.encoder.fit_encode(part))
        if is_option(emission, "auto"):
            groups._warn_of_guesses(values, table.has_own_names, categories)
        return groups, values

    def _warn_of_guesses(self, values: Sequence[np.ndarray], by_name: bool, categories) -> None:
        """Warn where columns may hold what their data types do not say."""
        of_groups = {group.name: (group.columns, of_group) for group, of_group in zip(self.groups, values)}
        if any(group.encoder is None and hold_whole_numbers(each) for group, each in zip(self.groups, values)):
            warn_of_numbers(self.names, of_groups, by_name, self.owner)
        for group, codes in zip(self.groups, values):
            if group.encoder is not None and group.encoder.n_categories_.max() > MIN_LEVELS:
                warn_of_names_of_rows(group.names, codes, group.encoder.n_categories_, categories)

    @classmethod
    def of_groups(
        cls,
        table: Table,
        emission_groups: Sequence[EmissionGroup],
        owner: str,
        *,
        categories="auto",
        missing_values=np.nan,
        handle_unknown="warn",
    ) -> ColumnGroups:
        """Groups that are known, whose categories alone are learned of a table."""
        groups = cls._unread(table, emission_groups, owner, categories, missing_values, handle_unknown)
        for group in groups.groups:
            if group.encoder is not None:
                group.encoder.fit_encode(table.columns(group.columns))
        return groups

    @classmethod
    def learned_from_blocks(
        cls,
        tables: Blocks,
        owner: str,
        *,
        emission="auto",
        covariance_type=DEFAULT_COVARIANCE_TYPE,
        categories="auto",
        missing_values=np.nan,
        handle_unknown="warn",
    ) -> ColumnGroups:
        """The groups that an `emission` parameter makes of a table whose rows come in blocks: those of all together.

        Raises
        ------
        ValueError, TypeError
            If the parameter, or a cell, is not what it should be.
        """
        first = next(iter(tables))
        reader = EmissionReader(owner, first.names, first.source, covariance_type)
        emission_groups = reader.groups(emission, lambda: _hold_numbers(first.names, tables))
        groups = cls._unread(first, emission_groups, owner, categories, missing_values, handle_unknown)
        for group in groups.groups:
            of_group = tables.map(partial(_columns_of, group))
            if group.encoder is None:
                check_blocks(of_group, group.specification, groups.markers)
                for table in tables if group.given else ():
                    groups._numbers(table, group)
            else:
                group.encoder.fit_blocks(of_group)
        return groups

    @classmethod
    def _unread(
        cls,
        table: Table,
        emission_groups: Sequence[EmissionGroup],
        owner: str,
        categories,
        missing_values,
        handle_unknown,
    ) -> ColumnGroups:
        """Groups whose categories are still to be learned."""
        names, groups = tuple(table.names), []
        for name, specification, columns, given in emission_groups:
            part, encoder = table.columns(columns).names, None
            if specification.holds_categories:
                levels: Any = "auto"
                if isinstance(categories, Mapping):
                    levels = {k: v for k, v in categories.items() if k in part}
                encoder = CategoryEncoder(
                    owner,
                    categories=levels,
                    missing_values=missing_values,
                    handle_unknown=handle_unknown,
                    if_measured=f"give it to {FOR_NUMBERS!r} in the 'emission' parameter of {owner}",
                )
            groups.append(Group(name, specification, tuple(columns), tuple(part), encoder, tuple(given)))
        if isinstance(categories, Mapping):
            _check_named(categories, groups, names, owner)
        elif not is_option(categories, "auto"):
            raise ValueError(
                f"The 'categories' parameter of {owner} must be 'auto' or a mapping of column names to levels. Got "
                f"{show(categories)} instead."
            )
        return cls(names, tuple(groups), missing_values, owner)

    def values(self, table: Table, *, is_known: bool = False) -> list[np.ndarray]:
        """The values of each group of another table, in the categories of the first; known ones are not checked."""
        if table.n_columns != len(self.names):
            raise ValueError(
                f"X has {table.n_columns} features, but {self.owner} is expecting {len(self.names)} features as input."
            )
        return [
            self._numbers(table, group, is_known=is_known)
            if group.encoder is None
            else group.encoder.encode(table.columns(group.columns))
            for group in self.groups
        ]

    def _numbers(self, table: Table, group: Group, *, is_fit: bool = False, is_known: bool = False) -> np.ndarray:
        """The values of a group of numbers, and of what is given for it."""
        part = _columns_of(group, table)
        values = read_numbers(part, group.specification, self.markers, is_fit=is_fit, is_known=is_known)
        if group.given and not is_known:
            group.check_given(values, self.names)
        return values

    def with_lags(self, values: Sequence[np.ndarray], lengths: np.ndarray) -> list[np.ndarray]:
        """Values of rows of sequences of these lengths, with earlier values of columns that are explained by them.

        Raises
        ------
        ValueError
            If one is missing that explains an observed cell.
        """
        extended = []
        for group, of_group in zip(self.groups, values):
            if group.n_lags:
                d = len(group.columns)
                before = lagged(of_group[:, :d], lengths, group.n_lags)
                bad = np.isnan(before).any(axis=1) & ~np.isnan(of_group[:, :d]).all(axis=1)
                bad &= steps_of(lengths) >= group.n_lags
                if bad.any():
                    sequence = int(np.searchsorted(np.cumsum(lengths), int(bad.argmax()), side="right"))
                    raise ValueError(
                        f"Sequence {sequence} of X has an observed cell of {listed(map(repr, group.names))} within "
                        f"{group.n_lags} rows after a missing one, but lags={group.n_lags} explains each cell by those "
                        "rows. Split the sequence after missing cells: first rows of a sequence are not explained."
                    )
                of_group = np.concatenate([of_group, before], axis=1)
            extended.append(of_group)
        return extended

    def without_given(self, values: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Values of the groups' own columns, as they were read."""
        return [of_group[:, : len(group.columns)] for group, of_group in zip(self.groups, values)]

    def modeled(self, values: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Values of the groups without what is only given."""
        return [group.modeled(of_group) for group, of_group in zip(self.groups, values)]

    def emission(self, values: Sequence, weight: np.ndarray | None) -> Emission:
        """The emission of the groups' values, arrays or `Blocks` of (values, weight)."""
        parts = []
        for group, of_group in zip(self.groups, values):
            sizes = {} if group.encoder is None else {"n_categories": group.encoder.n_categories_}
            parts.append(group.specification.for_data(of_group, weight, **sizes))
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
        for group, of_group in zip(self.groups, values):
            for k, at in enumerate(group.given, start=len(group.columns)):
                columns[at] = of_group[:, k] if columns[at] is None else columns[at]
        return columns

    def missing(self, values: Sequence[np.ndarray]) -> np.ndarray:
        """Which cells are missing, (n_rows, n_columns) in the order of the table."""
        are_missing = np.zeros((len(values[0]), len(self.names)), dtype=bool)
        for group, cells in zip(self.groups, self.without_given(values)):
            are_missing[:, list(group.columns)] = is_missing(cells)
        return are_missing

    def refilled(self, values: Sequence[np.ndarray], drawn: Any) -> list[np.ndarray]:
        """Values of the groups replaced by those that an emission drew, the same cells missing."""
        return [
            np.where(is_missing(of_group), of_group, as_drawn).astype(of_group.dtype)
            for of_group, as_drawn in zip(values, self.as_list(drawn))
        ]

    @property
    def covariates(self) -> list[str]:
        """Names of the columns that are given for others."""
        return [self.names[at] for group in self.groups for at in group.given]

    def check_forecast(self) -> None:
        """Refuse to go on after the last rows without the columns that explain others."""
        if self.covariates:
            raise ValueError(
                f"'forecast' of {self.owner} would need {listed(map(repr, self.covariates))} of the steps to come: "
                "covariates, which explain other columns. If you know them and no column has lags, append rows with "
                "them to X, leave the explained columns missing, and take 'impute'."
            )

    def check_covariates(self, method: str, given) -> None:
        """Refuse to draw rows without the columns that explain others."""
        covariates = self.covariates
        if covariates and given is None:
            raise ValueError(
                f"'{method}' of {self.owner} needs {listed(map(repr, covariates))}: covariates, which explain other "
                "columns and which the model does not draw. Give rows that have them, as in given=X."
            )

    def _explained_by(self, group: Group) -> str:
        if not (group.given or group.n_lags):
            return ""
        return f"{[self.names[at] for at in group.given]}:{group.n_lags}:"

    def meaning(self) -> str:
        """What decides how a table is read, as text."""
        return "|".join(
            f"{family_of(group.specification)}:{group.names}:{self._explained_by(group)}"
            + ("" if group.encoder is None else str([levels.tolist() for levels in group.encoder.categories_]))
            for group in self.groups
        )


# Which column is what -------------------------------------------------------------------------------------------------


def _holds_numbers(column: Column) -> bool:
    """Whether a column holds numbers; booleans and declared levels are categories."""
    if column.levels is not None:
        return False
    kind = column.values.dtype.kind
    if kind != "O":
        return kind in "iufc"
    held = {type(value) for value in column.values.tolist() if not is_missing_value(value)}
    return bool(held) and all(issubclass(each, Number) and not issubclass(each, (bool, np.bool_)) for each in held)


def _columns_of(group: Group, table: Table) -> Table:
    return table.columns([*group.columns, *group.given])


def _hold_numbers(names: Sequence[str], tables: Blocks) -> list[bool]:
    """Whether columns hold numbers, by the blocks in which a cell is observed."""
    verdicts_of_columns: list[set[bool]] = [set() for _ in names]
    of_none: list[bool] = []
    for table in tables:
        of_none = of_none or list(map(_holds_numbers, table.each_column()))
        for verdicts, column in zip(verdicts_of_columns, table.each_column()):
            cells = column.values
            empty = column.levels is None and (
                np.isnan(cells).all() if cells.dtype.kind == "f" else cells.dtype.kind == "O" and _all_missing(cells)
            )
            if not empty:
                verdicts.add(_holds_numbers(column))
    for name, verdicts in zip(names, verdicts_of_columns):
        if len(verdicts) > 1:
            raise ValueError(
                f"Column {name!r} of X holds numbers in some blocks and categories in others. Make them one kind, or "
                "name its family in the 'emission' parameter."
            )
    return [True in (verdicts or {other}) for verdicts, other in zip(verdicts_of_columns, of_none)]


def _all_missing(cells: np.ndarray) -> bool:
    return all(is_missing_value(value) for value in cells.tolist())


def _check_named(categories: Mapping, groups: Sequence[Group], names: Sequence[str], owner: str) -> None:
    of_categories = {name for group in groups if group.encoder is not None for name in group.names}
    for name in categories:
        if name not in of_categories:
            columns = listed(map(show, names))
            what = "which holds no categories" if name in names else f"which is not a column of X: {columns}"
            raise ValueError(f"The 'categories' parameter of {owner} names {show(name)}, {what}.")
