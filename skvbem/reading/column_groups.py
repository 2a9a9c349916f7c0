"""A user's table as groups of columns, each of one kind: measurements, counts, categories.

Which column is what is said by the `emission` parameter: "auto", a name, an object, a mapping of names to columns, or a
list of (name, emission, columns), whose columns are said as scikit-learn's ColumnTransformer has them. "auto" reads it
from data types: numbers are measurements, which form one Gaussian group, everything else is a category. That whole
numbers are counts nobody can tell from a table: counts are named, and where numbers look like them, or like categories,
a warning says so. Columns that no emission names are the *remainder*, which is refused, read by "auto", or dropped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from skvbem._arguments import is_list, is_option
from skvbem._lazy import cached_property
from skvbem._names import did_you_mean
from skvbem.blocks import Blocks, blocks_of
from skvbem.emissions import EMISSIONS, Emission, EmissionSpecification
from skvbem.emissions.independent import Independent
from skvbem.emissions.registry import FOR_CATEGORIES, FOR_NUMBERS, family_of
from skvbem.emissions.regression import lagged, steps_of
from skvbem.reading.categories import CategoryEncoder, categories_among, check_named
from skvbem.reading.forms import REMAINDER, EmissionGroup, is_list_of_emissions, names_columns, without_remainder
from skvbem.reading.guesses import MIN_LEVELS, are_whole, warn_of_names_of_rows, warn_of_numbers
from skvbem.reading.interval_columns import joined, of_ends, with_ends
from skvbem.reading.kinds import encoder_of_given, hold_numbers_in_blocks, holds_numbers
from skvbem.reading.names import ColumnSelection
from skvbem.reading.tables import (
    Table,
    check_blocks,
    is_missing,
    listed,
    missing_markers,
    read_numbers,
    show,
)

#: `covariance_type` of estimators where nobody says it.
DEFAULT_COVARIANCE_TYPE = "full"
# What may be meant by a name that is not known.
_FROM_OUTSIDE = (
    " One from outside is given as an object, which needs no name, or registered in this process by register_emission."
)
# Where posterior draws and `credible_intervals` have what belongs to no group: of hidden Markov models and of mixtures.
_OF_NO_GROUP = ("chain", "mixture")


class ColumnOptions(NamedTuple):
    """Parameters of an estimator by which columns are read, and the name of its class for messages."""

    owner: str
    emission: Any = "auto"
    covariance_type: str = DEFAULT_COVARIANCE_TYPE
    categories: Any = "auto"
    missing_values: Any = np.nan
    handle_unknown: str = "warn"


@dataclass(frozen=True, eq=False)
class Group:
    """Columns that share an emission.

    Parameters
    ----------
    name : str
        Of the group: of a list of emissions what the user calls it, else its family.
    specification : EmissionSpecification
    columns : tuple of int
        Positions in the table; none of a number that is hidden.
    names : tuple of str
    encoder : CategoryEncoder or None
        For categories.
    given : tuple of int
        Positions of columns that are given and explain these; a group's values hold them after its own.
    given_encoder : CategoryEncoder or None
        Of columns of categories among those of a group that is given itself; its values are codes there.
    """

    name: str
    specification: EmissionSpecification
    columns: tuple[int, ...]
    names: tuple[str, ...]
    encoder: CategoryEncoder | None = None
    given: tuple[int, ...] = ()
    given_encoder: CategoryEncoder | None = None

    @property
    def is_hidden(self) -> bool:
        """True for a number that no column of X holds; its values are missing in all rows."""
        return not self.columns

    def hidden_values(self, n_rows: int) -> np.ndarray:
        """The values of a number that is hidden, (n_rows, 1)."""
        return np.full((n_rows, 1), np.nan)

    def emission(self, values: np.ndarray | Blocks, weight: np.ndarray | None) -> Emission:
        """The emission of the group's values."""
        sizes: dict[str, Any] = {} if self.encoder is None else {"n_categories": self.encoder.n_categories_}
        if self.given_encoder is not None:
            sizes = {"n_categories": list(map(len, self.levels))}
        return self.specification.for_data(values, weight, **sizes)

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

    def check_whole(self, values: np.ndarray) -> None:
        """Refuse missing cells of columns that are given."""
        missing = np.isnan(values)
        if missing.any():
            (row, column), n = np.argwhere(missing)[0], int(missing.any(axis=1).sum())
            raise ValueError(
                f"Row {row} of X has no {self.names[column]!r}, a covariate of the component; {n} of {len(values)} "
                f"rows lack one. Fill covariates in, as by VBImputer, or leave out such rows, as by "
                f"X.dropna(subset={list(self.names)!r})."
            )

    @property
    def levels(self) -> list[np.ndarray]:
        """Levels of each column of categories; none for numbers."""
        if self.given_encoder is not None:
            known = dict(zip(self.given_encoder.names_, self.given_encoder.categories_))
            return [known.get(name, np.empty(0)) for name in self.names]
        return [] if self.encoder is None else list(self.encoder.categories_)

    def with_codes(self, table: Table, read: Callable[[Table], np.ndarray]) -> np.ndarray:
        """Numbers of a group that is given as a function reads them, and codes of categories among them."""
        assert self.given_encoder is not None
        coded = [name in self.given_encoder.names_ for name in self.names]
        values = np.empty((table.n_samples, len(coded)))
        codes = self.given_encoder.encode(table.columns(np.flatnonzero(coded).tolist()))
        values[:, coded] = np.where(codes < 0, np.nan, codes)
        if not all(coded):
            values[:, np.logical_not(coded)] = read(table.columns(np.flatnonzero(np.logical_not(coded)).tolist()))
        return values


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
    intervals : tuple of int
        Positions of columns of intervals. Each is that of lower ends; upper ends are columns after the last of X.
    """

    names: tuple[str, ...]
    groups: tuple[Group, ...]
    missing_values: Any
    owner: str
    intervals: tuple[int, ...] = ()

    @classmethod
    def learned(cls, table: Table, options: ColumnOptions) -> tuple[ColumnGroups, list[np.ndarray]]:
        """The groups that an `emission` parameter makes of a table, and the values of each group.

        Raises
        ------
        ValueError, TypeError
            If the parameter, or a cell, is not what it should be.
        """
        reader = EmissionReader(options.owner, table.names, table.source, options.covariance_type)
        guesses = reader.guesses(options.emission)
        hold_numbers = [holds_numbers(table.column(j)) for j in range(table.n_columns)] if guesses else []
        asked = reader.groups(options.emission, hold_numbers)
        emission_groups, intervals = with_ends(asked, table.names, blocks_of([table]), options.owner)
        table = of_ends(table, intervals)
        groups, values = cls._unread(table, emission_groups, options, blocks_of([table]), intervals), []
        for group in groups.groups:
            if group.encoder is None:
                values.append(groups._numbers(table, group, is_fit=True))
            else:
                values.append(group.encoder.fit_encode(table.columns(group.columns), group.specification.has_order))
        if guesses:
            guessed = [[group.columns.index(at) for at in group.guessed] for group in emission_groups]
            groups._warn_of_guesses(values, guessed, guesses, table.has_own_names, options.categories)
        return groups, values

    def _warn_of_guesses(
        self, values: Sequence[np.ndarray], guessed: Sequence[list[int]], guesses: str, by_name: bool, categories
    ) -> None:
        """Warn where columns that nobody named, some of each group, may hold what their data types do not say."""
        each = zip(self.groups, values, guessed)
        parts = [(group, of if len(at) == of.shape[1] else of[:, at], at) for group, of, at in each if at]
        numbers = [cells for group, of, _ in parts if group.encoder is None for cells in of.T]
        if any(are_whole(cells) for cells in numbers):
            families = {
                FOR_NUMBERS if group.encoder is None else FOR_CATEGORIES: ([group.columns[k] for k in at], of)
                for group, of, at in parts
            }
            named: list[tuple[str, Any, list[int]]] = []
            for group, at in zip(self.groups, guessed):
                if not group.specification.are_given:  # those another parameter names
                    columns = [column for k, column in enumerate(group.columns) if k not in at]
                    named.append((group.name, group.specification, columns))
            warn_of_numbers(self.names, families, by_name, f"{guesses} of {self.owner}", named)
        for group, codes, at in parts:
            if group.encoder is not None and group.encoder.n_categories_.max() > MIN_LEVELS:
                names, sizes = [group.names[k] for k in at], group.encoder.n_categories_[at]
                warn_of_names_of_rows(names, codes, sizes, categories)

    @classmethod
    def of_groups(cls, table: Table, emission_groups: Sequence[EmissionGroup], options: ColumnOptions) -> ColumnGroups:
        """Groups that are known, whose categories alone are learned of a table."""
        groups = cls._unread(table, emission_groups, options, blocks_of([]))
        for group in groups.groups:
            if group.encoder is not None:
                group.encoder.fit_encode(table.columns(group.columns), group.specification.has_order)
        return groups

    @classmethod
    def learned_from_blocks(cls, first: Table, tables: Blocks, options: ColumnOptions) -> ColumnGroups:
        """The groups that an `emission` parameter makes of a table in blocks, the first of which has the names of all.

        Raises
        ------
        ValueError, TypeError
            If the parameter, or a cell, is not what it should be.
        """
        reader = EmissionReader(options.owner, first.names, first.source, options.covariance_type)
        hold_numbers = hold_numbers_in_blocks(first.names, tables) if reader.guesses(options.emission) else []
        asked = reader.groups(options.emission, hold_numbers)
        emission_groups, intervals = with_ends(asked, first.names, tables, options.owner)
        if intervals:
            first, tables = of_ends(first, intervals), tables.map(partial(of_ends, intervals=intervals))
        groups = cls._unread(first, emission_groups, options, tables, intervals)
        markers = missing_markers(groups.missing_values, groups.owner)
        for group in groups.groups:
            positions = [*group.columns, *group.given]
            of_group = tables.map(partial(Table.columns, positions=positions))
            if group.encoder is None:
                if group.given_encoder is None:
                    check_blocks(of_group, first.columns(positions).names, group.specification, markers)
                if group.given or group.specification.are_given:
                    list(tables.results(partial(groups._numbers, group=group), len))  # which checks them
            else:
                group.encoder.fit_blocks(of_group, group.specification.has_order)
        return groups

    @classmethod
    def _unread(
        cls,
        table: Table,
        emission_groups: Sequence[EmissionGroup],
        options: ColumnOptions,
        tables: Blocks,
        intervals: tuple[int, ...] = (),
    ) -> ColumnGroups:
        """Groups whose categories are still to be learned, but for those of `tables` that are given."""
        names, groups, owner, categories = tuple(table.names), [], options.owner, options.categories
        if not (is_option(categories, "auto") or isinstance(categories, Mapping)):
            raise ValueError(
                f"The 'categories' parameter of {owner} must be 'auto' or a mapping of column names to levels. Got "
                f"{show(categories)} instead."
            )
        for name, specification, columns, given, _ in emission_groups:
            part, encoder = table.columns(columns).names, None
            if specification.holds_categories:
                encoder = CategoryEncoder(
                    owner,
                    categories=categories_among(categories, part),
                    missing_values=options.missing_values,
                    handle_unknown=options.handle_unknown,
                    if_measured=f"give it to {FOR_NUMBERS!r} in the 'emission' parameter of {owner}",
                )
            of_given = encoder_of_given(tables, columns, options) if specification.are_given else None
            groups.append(Group(name, specification, tuple(columns), tuple(part), encoder, tuple(given), of_given))
        if not is_option(categories, "auto"):
            of_categories = {name for group in groups if group.encoder is not None for name in group.names}
            of_categories |= {name for group in groups if group.given_encoder for name in group.given_encoder.names_}
            check_named(categories, of_categories, names, owner)
        return cls(names, tuple(groups), options.missing_values, owner, intervals)

    def values(self, table: Table, *, is_known: bool = False) -> list[np.ndarray]:
        """The values of each group of another table, in the categories of the first; known ones are not checked."""
        if table.n_columns != self.n_columns:
            raise ValueError(
                f"X has {table.n_columns} features, but {self.owner} is expecting {self.n_columns} features as input."
            )
        table = of_ends(table, self.intervals)
        return [
            self._numbers(table, group, is_known=is_known)
            if group.encoder is None
            else group.encoder.encode(table.columns(group.columns))
            for group in self.groups
        ]

    def _numbers(self, table: Table, group: Group, *, is_fit: bool = False, is_known: bool = False) -> np.ndarray:
        """The values of a group of numbers, and of what is given for it."""
        if group.is_hidden:
            return group.hidden_values(table.n_samples)
        part, markers = table.columns([*group.columns, *group.given]), missing_markers(self.missing_values, self.owner)
        read = partial(
            read_numbers, specification=group.specification, markers=markers, is_fit=is_fit, is_known=is_known
        )
        values = read(part) if group.given_encoder is None else group.with_codes(part, read)
        if group.given and not is_known:
            group.check_given(values, self.names)
        if group.specification.are_given:
            group.check_whole(values)
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
            n_lags = group.specification.lags  # how many earlier rows explain the columns of the group
            if n_lags:
                d = len(group.columns)
                before = lagged(of_group[:, :d], lengths, n_lags)
                bad = np.isnan(before).any(axis=1) & ~np.isnan(of_group[:, :d]).all(axis=1)
                bad &= steps_of(lengths) >= n_lags
                if bad.any():
                    sequence = int(np.searchsorted(np.cumsum(lengths), int(bad.argmax()), side="right"))
                    raise ValueError(
                        f"Sequence {sequence} of X has an observed cell of {listed(map(repr, group.names))} within "
                        f"{n_lags} rows after a missing one, but lags={n_lags} explains each cell by those "
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

    def observable(self, values: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Values of the groups without what is only given, and without groups of given columns."""
        pairs = zip(self.groups, self.modeled(values))
        return [of_group for group, of_group in pairs if not group.specification.are_given]

    def emission(self, values: Sequence, weight: np.ndarray | None) -> Emission:
        """The emission of the groups' values, arrays or `Blocks` of (values, weight)."""
        parts = [group.emission(of_group, weight) for group, of_group in zip(self.groups, values)]
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
                if group.encoder is not None:
                    column = group.encoder.decode(column, k)
                elif group.given_encoder is not None and group.names[k] in group.given_encoder.names_:
                    codes = np.where(np.isnan(column), -1, column).astype(int)
                    column = group.given_encoder.decode(codes, group.given_encoder.names_.index(group.names[k]))
                columns[at] = column
        for group, of_group in zip(self.groups, values):
            for k, at in enumerate(group.given, start=len(group.columns)):
                columns[at] = of_group[:, k] if columns[at] is None else columns[at]
        n_rows = len(values[0])  # cells of columns that are left out are missing
        columns = [np.full(n_rows, np.nan) if column is None else column for column in columns]
        return joined(columns, self.intervals)

    def missing(self, values: Sequence[np.ndarray]) -> np.ndarray:
        """Which cells are missing, (n_rows, n_columns) in the order of the table; of an interval both ends."""
        are_missing = self.missing_as_read(values)
        are_missing[:, list(self.intervals)] &= are_missing[:, self.n_columns :]
        return are_missing[:, : self.n_columns]

    def missing_as_read(self, values: Sequence[np.ndarray]) -> np.ndarray:
        """Missing cells of columns as they are read, upper ends of intervals after all others."""
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
    def n_columns(self) -> int:
        """The number of columns of X."""
        return len(self.names) - len(self.intervals)

    @property
    def names_in_x(self) -> tuple[str, ...]:
        """The names of the columns of X."""
        return self.names[: self.n_columns]

    @property
    def n_read(self) -> int:
        """The number of columns that are modeled, or given for others."""
        return len({at for group in self.groups for at in (*group.columns, *group.given)})

    @property
    def covariates(self) -> list[str]:
        """Names of the columns that are given for others."""
        return [
            self.names[at]
            for group in self.groups
            for at in (*group.given, *(group.columns if group.specification.are_given else ()))
        ]

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
        if not (group.given or group.specification.lags):
            return ""
        return f"{[self.names[at] for at in group.given]}:{group.specification.lags}:"

    def meaning(self) -> str:
        """What decides how a table is read, as text."""
        return "|".join(
            f"{family_of(group.specification)}:{group.names}:{self._explained_by(group)}"
            + (str([levels.tolist() for levels in group.levels]) if group.levels else "")
            for group in self.groups
        ) + (f"|intervals:{self.intervals}" if self.intervals else "")


# Which column is what -------------------------------------------------------------------------------------------------


# The `emission` parameter ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class EmissionReader:
    """Reads the `emission` parameter of an estimator.

    Parameters
    ----------
    owner : str
        Name of the estimator's class, for messages.
    names : sequence of str
        Of all columns.
    source : array-like or DataFrame
        X as the user has it, which functions that select columns are given.
    covariance_type : str
        Of emissions given by name.
    """

    owner: str
    names: Sequence[str]
    source: Any
    covariance_type: str

    @property
    def _whose(self) -> str:
        return f"The 'emission' parameter of {self.owner}"

    def guesses(self, emission) -> str:
        """The words by which emissions of columns are read from data types, as messages show them; "" if none are."""
        if is_option(emission, "auto"):
            return "emission='auto'"
        return "'remainder': 'auto' in 'emission'" if is_option(without_remainder(emission)[1], "auto") else ""

    def groups(self, emission, hold_numbers: Sequence[bool] = ()) -> list[EmissionGroup]:
        """The groups, which share out all columns that are not given; "auto" asks which columns hold numbers.

        Raises
        ------
        ValueError
            If the parameter is none of the forms it may have, names no emission or column that there is, or leaves
            columns out.
        """
        named, remainder = without_remainder(emission)
        groups = [
            self._with_covariates(group) if len(group.specification.covariates) else group
            for group in self.as_given(named, hold_numbers)
        ]
        if names_columns(named):
            taken = {at for group in groups for at in (*group.columns, *group.given)}
            left = [at for at in range(len(self.names)) if at not in taken]
            if is_option(remainder, "auto"):
                groups = self._with_guessed(groups, left, hold_numbers, is_joined=not is_list(named))
            elif remainder is not None and not is_option(remainder, "drop"):
                of_left = EmissionGroup(REMAINDER, self._specification(remainder), left, [])
                groups += [of_left] if left else []
            left = [] if is_option(remainder, "drop") else left
            among = {at for group in groups for at in group.columns}.union(left)
            self._selection.check_partition([group.columns for group in groups], sorted(among))
        return [group if group.specification.groups is None else self._with_places(group) for group in groups]

    def _with_guessed(
        self, groups: list[EmissionGroup], left: list[int], hold_numbers: Sequence[bool], *, is_joined: bool
    ) -> list[EmissionGroup]:
        """The groups, and those of columns that no emission names; a group of their family takes them, if so asked."""
        by_name = {group.name: group for group in groups}
        for family, columns in _families(left, hold_numbers).items():
            name = family if is_joined or family not in by_name else f"{REMAINDER}_{family}"
            group = by_name.get(name, EmissionGroup(name, self._specification(family), [], []))
            by_name[name] = group._replace(columns=sorted([*group.columns, *columns]), guessed=columns)
        return list(by_name.values())

    def as_given(self, emission, hold_numbers: Sequence[bool] = ()) -> list[EmissionGroup]:
        """The groups as they are said, before columns that explain others are told apart, and all are shared out."""
        if is_option(emission, "auto"):
            kinds = _families(range(len(hold_numbers)), hold_numbers)
            return [EmissionGroup(name, self._specification(name), at, [], at) for name, at in kinds.items()]
        is_name = is_option(emission, *EMISSIONS)
        if is_name or isinstance(emission, EmissionSpecification):
            name, everything = emission if is_name else family_of(emission), list(range(len(self.names)))
            return [EmissionGroup(name, self._specification(emission), everything, [])]
        if isinstance(emission, Mapping):
            unknown = [family for family in emission if not is_option(family, *EMISSIONS)]
            if unknown:
                raise self._no_family(unknown[0])
            items = [(family, family, columns) for family, columns in emission.items()]
        elif is_list_of_emissions(emission):
            items = list(emission)
            self._check_names([name for name, _, _ in items])
        elif isinstance(emission, type):
            raise self._no_family(emission)
        else:
            hint = did_you_mean(emission, EMISSIONS) + _FROM_OUTSIDE if isinstance(emission, str) else ""
            raise ValueError(f"{self._whose} must be {self._forms()}. Got {show(emission)} instead.{hint}")
        select = self._selection.positions
        return [EmissionGroup(name, self._specification(of), select(name, at), []) for name, of, at in items]

    def _forms(self) -> str:
        return (
            f"'auto', one of {_names_of_families()}, an emission such as Gaussian(), a mapping of "
            "names to columns, or a list of (name, emission, columns)"
        )

    # Emissions --------------------------------------------------------------------------------------------------------

    def _specification(self, emission) -> EmissionSpecification:
        """An emission given by name or as an object, for this fit alone; its parameters are checked."""
        if isinstance(emission, EmissionSpecification):
            specification: Any = self._copied(emission)
            self._check_covariance_type(specification)
        else:
            if not is_option(emission, *EMISSIONS):
                raise self._no_family(emission)
            specification = EMISSIONS[emission]()
            if specification.covariance_type is not None:
                specification.covariance_type = self.covariance_type
        specification.check_parameters()
        return specification

    def _copied(self, emission: EmissionSpecification) -> EmissionSpecification:
        """A copy of an emission, unfitted; an error if a parameter of it cannot be copied."""
        try:
            return clone(emission)
        except (TypeError, RecursionError) as error:
            for name, value in emission.get_params(deep=False).items():
                try:
                    clone(value, safe=False)
                except (TypeError, RecursionError):
                    raise TypeError(
                        f"The {name!r} parameter of {type(emission).__name__} must be a number, a name or an array, "
                        f"which can be copied. Got an object of type {type(value).__name__} instead."
                    ) from error
            raise

    def _no_family(self, family) -> ValueError:
        """The error of what is the name of no family."""
        if isinstance(family, type) and issubclass(family, EmissionSpecification):
            return ValueError(
                f"{self._whose} holds the class {family.__name__}. Give an object of it: {family.__name__}()."
            )
        return ValueError(
            f"{self._whose} names the family {show(family)}.{did_you_mean(family, EMISSIONS)} Families are "
            f"{_names_of_families()}.{_FROM_OUTSIDE}"
        )

    def _check_covariance_type(self, emission: EmissionSpecification) -> None:
        of_emission = emission.covariance_type
        if of_emission is not None and self.covariance_type not in (DEFAULT_COVARIANCE_TYPE, of_emission):
            kind = type(emission).__name__
            raise ValueError(
                f"covariance_type={self.covariance_type!r} of {self.owner} is for emissions given by name, and its "
                f"'emission' parameter holds {kind}(covariance_type={of_emission!r}). Set it once: leave it "
                f"out of {self.owner}, or search over 'emission__covariance_type'."
            )

    def _check_names(self, names: Sequence[str]) -> None:
        for name in names:
            if not isinstance(name, str) or name in ("", *_OF_NO_GROUP) or "__" in name:
                taken = " and ".join(map(repr, _OF_NO_GROUP))
                raise ValueError(
                    f"{self._whose} is a list of (name, emission, columns), whose names must be strings without two "
                    f"underscores in a row, other than {taken}. Got the name {show(name)}."
                )
        twice = [name for name, times in Counter(names).items() if times > 1]
        if twice:
            raise ValueError(f"{self._whose} has two groups named {twice[0]!r}. Names must differ.")

    @cached_property
    def _selection(self) -> ColumnSelection:
        remedy = (
            " Or say it of all others: 'remainder': 'auto' in a mapping, ('remainder', 'auto') in a list; 'drop' "
            "leaves them out of the model."
        )
        return ColumnSelection(self._whose, "family", self.names, self.source, remedy)

    def _with_covariates(self, group: EmissionGroup) -> EmissionGroup:
        """A group without the columns that its specification takes as given, which it has by their names."""
        whose = f"The 'covariates' parameter of {type(group.specification).__name__}"
        given = ColumnSelection(whose, "covariate", self.names, self.source).positions(
            group.name, group.specification.covariates
        )
        if len(set(given)) < len(given):
            raise ValueError(f"{whose} names a column twice. Name each once.")
        columns = [position for position in group.columns if position not in given]
        if not columns:
            raise ValueError(f"{whose} names all columns of {group.name!r}: none is left to be explained.")
        names = [self.names[position] for position in given]
        specification = clone(group.specification).set_params(covariates=names)
        return EmissionGroup(group.name, specification, columns, given)

    def _with_places(self, group: EmissionGroup) -> EmissionGroup:
        """A group whose specification has its own groups of columns as their places among the group's columns."""
        specification = group.specification
        whose = f"The 'groups' parameter of {type(specification).__name__}"
        positions = ColumnSelection(whose, "group", self.names, self.source).partition(
            specification.groups, group.columns
        )
        places = [[group.columns.index(position) for position in of_group] for of_group in positions]
        return group._replace(specification=clone(specification).set_params(groups=places))


def _families(columns: Iterable[int], hold_numbers: Sequence[bool]) -> dict[str, list[int]]:
    """Positions of columns by the family that their data types stand for."""
    families: dict[str, list[int]] = {}
    for j in columns:
        families.setdefault(FOR_NUMBERS if hold_numbers[j] else FOR_CATEGORIES, []).append(j)
    return families


def _names_of_families() -> str:
    """Names of all families, for messages."""
    return ", ".join(map(repr, sorted(EMISSIONS)))
