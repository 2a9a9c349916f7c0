"""Spaces of covariates: which of them drive something hidden."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

from skvbem._arguments import is_list, is_whole, listed
from skvbem._lazy import cached_property
from skvbem._names import did_you_mean, shown
from skvbem.spaces.base import Space
from skvbem.spaces.settings import value_key

__all__ = ["CovariateSpace"]


@dataclass(frozen=True, eq=False, repr=False)
class CovariateSpace(Space):
    """All selections among the covariates of a parameter, such as the `membership` of a mixture.

    Parameters
    ----------
    softmax : Softmax
        With all covariates, by name or position, and the priors of their slopes. Its own `selected` is not used.
    required : sequence of str or int, default=()
        Covariates that every model has.
    max_selected : int, default=None
        The largest number of covariates of a model, required ones included; by default there is no limit.
    parameter : str, default="membership"
        The parameter of the estimator.

    Raises
    ------
    TypeError
        If `softmax` has no covariates to select from.
    ValueError
        If `required` names another column, or `max_selected` is no int from their number on.

    Notes
    -----
    Every model conditions on all covariates, and the columns of its components are the same. So the evidences of two
    models differ by the slopes alone. The smallest model has intercepts, under the prior that all models have. A
    neighbor has one covariate more or less.

    Examples
    --------
    Do grades, or noise, say who cheats?

    >>> import numpy as np
    >>> from skvbem import CovariateSpace, StructureSearchCV, VBMixture
    >>> from skvbem.datasets import load_cheating
    >>> from skvbem.emissions import Softmax
    >>> X = load_cheating(as_frame=True).data.dropna().astype({"GPA": float})
    >>> X["noise"] = np.random.default_rng(1).normal(size=len(X))
    >>> space = CovariateSpace(Softmax(["GPA", "noise"]))
    >>> len(space)
    4
    >>> model = VBMixture(2, emission="categorical", n_init=1, random_state=0)
    >>> search = StructureSearchCV(model, space, scoring="lower_bound").fit(X)
    >>> search.covariate_probabilities_
    covariate
    GPA        0.9968
    noise      0.1295
    """

    softmax: Any
    required: Any = ()
    max_selected: int | None = None
    parameter: str = "membership"

    def __post_init__(self):
        given = getattr(self.softmax, "covariates", None)
        names = listed(given) if isinstance(given, (str, int)) or is_list(given) else []
        if not (names and hasattr(self.softmax, "selected")):
            raise TypeError(
                "The 'softmax' parameter of CovariateSpace must be a Softmax of the covariates to select from, such as "
                f"Softmax(['age', 'sex']). Got {shown(self.softmax)} instead."
            )
        required = listed(self.required)
        for name in required:
            if name not in names:
                raise ValueError(
                    f"The 'required' parameter of CovariateSpace must name covariates of its Softmax. Got {shown(name)}"
                    f" instead.{did_you_mean(name, names)}"
                )
        most = len(names) if self.max_selected is None else self.max_selected
        if not is_whole(most) or most < len(required):
            raise ValueError(
                "The 'max_selected' parameter of CovariateSpace must be None or an int, at least the number of "
                f"required covariates, {len(required)}. Got {shown(self.max_selected)} instead."
            )
        object.__setattr__(self, "required", tuple(name for name in names if name in required))

    @cached_property
    def covariates(self) -> tuple:
        """All covariates, in order."""
        return tuple(listed(self.softmax.covariates))

    @cached_property
    def _optional(self) -> tuple:
        return tuple(name for name in self.covariates if name not in self.required)

    @property
    def _most_optional(self) -> int:
        most = len(self.covariates) if self.max_selected is None else int(self.max_selected)
        return min(most - len(self.required), len(self._optional))

    @property
    def n_settings(self) -> int:
        """The number of settings, an exact int."""
        return sum(comb(len(self._optional), size) for size in range(self._most_optional + 1))

    @property
    def parameters(self) -> frozenset:
        """The name of the parameter."""
        return frozenset([self.parameter])

    def __iter__(self) -> Iterator[dict]:
        for size in range(self._most_optional + 1):
            for chosen in combinations(self._optional, size):
                yield self._setting({*self.required, *chosen})

    def __contains__(self, setting: Any) -> bool:
        if not (isinstance(setting, Mapping) and setting.keys() == {self.parameter}):
            return False
        chosen = selection(setting[self.parameter])
        is_allowed = chosen is not None and chosen <= {*self.covariates} and chosen >= {*self.required}
        return bool(is_allowed and len(chosen or ()) <= len(self.required) + self._most_optional) and self._key(
            setting
        ) == self._key(self._setting(chosen or set()))

    def neighbors(self, setting: Mapping) -> Iterator[dict]:
        """The settings with one covariate more or less."""
        chosen = selection(self.check_member(setting)[self.parameter]) or set()
        for name in self._optional:
            if name in chosen or len(chosen) < len(self.required) + self._most_optional:
                yield self._setting(chosen ^ {name})

    def _setting(self, chosen: set) -> dict:
        ordered = [name for name in self.covariates if name in chosen]
        params = self.softmax.get_params(deep=False) | {"covariates": [*self.covariates], "selected": ordered}
        return {self.parameter: type(self.softmax)(**params)}

    def _key(self, setting: Mapping) -> Hashable:
        return value_key({**setting[self.parameter].get_params(deep=False), "selected": None, "covariates": None})


def selection(value: Any) -> set | None:
    """The covariates that a parameter selects; None if it is no selection of covariates."""
    if not (hasattr(value, "selected") and hasattr(value, "covariates")):
        return None
    return {*listed(value.covariates if value.selected is None else value.selected)}
