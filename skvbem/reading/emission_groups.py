"""What the `emission` parameter says: groups of columns, each with a name and an emission.

It is "auto", a name, an object, a mapping of names to columns, or a list of (name, emission, columns). Columns are said
as scikit-learn's ColumnTransformer has them: by names, positions, slices, masks, or a function of X.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from skvbem._arguments import is_option, is_whole
from skvbem._names import did_you_mean
from skvbem.emissions import EMISSIONS, EmissionSpecification
from skvbem.emissions.registry import FOR_CATEGORIES, FOR_NUMBERS, family_of
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


#: `covariance_type` of estimators where nobody says it.
DEFAULT_COVARIANCE_TYPE = "full"
# What may be meant by a name that is not known.
_FROM_OUTSIDE = (
    " One from outside is given as an object, which needs no name, or registered in this process by register_emission."
)
# Where posterior draws and `credible_intervals` have what belongs to no group: of hidden Markov models and of mixtures.
_OF_NO_GROUP = ("chain", "mixture")


class EmissionGroup(NamedTuple):
    """A group of columns: its name, a specification of its own, and positions of its columns and of those given."""

    name: str
    specification: EmissionSpecification
    columns: list[int]
    given: list[int]


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

    def groups(self, emission, hold_numbers: Callable[[], list[bool]]) -> list[EmissionGroup]:
        """The groups, which share out all columns that are not given. Which hold numbers is asked where need be.

        Raises
        ------
        ValueError
            If the parameter is none of the forms it may have, names no emission or column that there is, or leaves
            columns out.
        """
        groups = [self._with_covariates(group) for group in self.as_given(emission, hold_numbers)]
        if isinstance(emission, Mapping) or is_list_of_emissions(emission):
            of_groups, given = [group.columns for group in groups], {at for group in groups for at in group.given}
            among = [at for at in range(len(self.names)) if at not in given or any(at in each for each in of_groups)]
            self._selection.check_partition(of_groups, among)
        return [self._with_places(group) for group in groups]

    def as_given(self, emission, hold_numbers: Callable[[], list[bool]]) -> list[EmissionGroup]:
        """The groups as they are said, before columns that explain others are told apart, and all are shared out."""
        everything = list(range(len(self.names)))
        if isinstance(emission, type):
            self._check_family(emission)
        if is_option(emission, "auto"):
            kinds: dict[str, list[int]] = {}
            for j, is_number in enumerate(hold_numbers()):
                kinds.setdefault(FOR_NUMBERS if is_number else FOR_CATEGORIES, []).append(j)
            return [EmissionGroup(name, self._specification(name), columns, []) for name, columns in kinds.items()]
        if isinstance(emission, EmissionSpecification):
            return [EmissionGroup(family_of(emission), self._specification(emission), everything, [])]
        if isinstance(emission, str) and emission in EMISSIONS:
            return [EmissionGroup(emission, self._specification(emission), everything, [])]
        if isinstance(emission, Mapping):
            for family in emission:
                self._check_family(family)
            items = [(family, family, columns) for family, columns in emission.items()]
        elif is_list_of_emissions(emission):
            items = list(emission)
            self._check_names([name for name, _, _ in items])
        else:
            hint = did_you_mean(emission, EMISSIONS) + _FROM_OUTSIDE if isinstance(emission, str) else ""
            raise ValueError(f"{self._whose} must be {self._forms()}. Got {show(emission)} instead.{hint}")
        select = self._selection.positions
        return [EmissionGroup(name, self._specification(of), select(name, at), []) for name, of, at in items]

    def _forms(self) -> str:
        return (
            f"'auto', one of {listed(map(repr, sorted(EMISSIONS)))}, an emission such as Gaussian(), a mapping of "
            "names to columns, or a list of (name, emission, columns)"
        )

    # Emissions --------------------------------------------------------------------------------------------------------

    def _specification(self, emission) -> EmissionSpecification:
        """An emission given by name or as an object, for this fit alone; its parameters are checked."""
        if isinstance(emission, EmissionSpecification):
            specification = clone(emission)
            self._check_covariance_type(specification)
        else:
            self._check_family(emission)
            specification = EMISSIONS[emission]()
            if hasattr(specification, "covariance_type"):
                specification.set_params(covariance_type=self.covariance_type)
        specification.check_parameters()
        return specification

    def _check_family(self, family) -> None:
        if isinstance(family, str) and family in EMISSIONS:
            return
        if isinstance(family, type) and issubclass(family, EmissionSpecification):
            raise ValueError(
                f"{self._whose} holds the class {family.__name__}. Give an object of it: {family.__name__}()."
            )
        raise ValueError(
            f"{self._whose} names the family {show(family)}.{did_you_mean(family, EMISSIONS)} Families are "
            f"{listed(map(repr, sorted(EMISSIONS)))}.{_FROM_OUTSIDE}"
        )

    def _check_covariance_type(self, emission: EmissionSpecification) -> None:
        of_emission = getattr(emission, "covariance_type", None)
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
        return ColumnSelection(self._whose, "family", self.names, self.source)

    def _with_covariates(self, group: EmissionGroup) -> EmissionGroup:
        """A group without the columns that its specification takes as given, which it has by their names."""
        covariates = getattr(group.specification, "covariates", None)
        if covariates is None or not len(covariates):
            return group
        whose = f"The 'covariates' parameter of {type(group.specification).__name__}"
        given = ColumnSelection(whose, "covariate", self.names, self.source).positions(group.name, covariates)
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
        groups = getattr(specification, "groups", None)
        if groups is None:
            return group
        whose = f"The 'groups' parameter of {type(specification).__name__}"
        positions = ColumnSelection(whose, "group", self.names, self.source).partition(groups, group.columns)
        places = [[group.columns.index(position) for position in of_group] for of_group in positions]
        return group._replace(specification=clone(specification).set_params(groups=places))


def is_list_of_emissions(emission) -> bool:
    """Whether an `emission` parameter has the form of a list of (name, emission, columns)."""
    return (
        isinstance(emission, (list, tuple))
        and len(emission) > 0
        and all(isinstance(item, (list, tuple)) and len(item) == 3 for item in emission)
    )
