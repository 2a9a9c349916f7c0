"""A list of settings as a space."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from skvbem._lazy import cached_property
from skvbem._names import shown
from skvbem.graphs.dag import DAG
from skvbem.spaces.base import Space
from skvbem.spaces.settings import canonical, coerce_structure, distinct

__all__ = ["ListSpace"]


@dataclass(frozen=True, eq=False, repr=False)
class ListSpace(Space):
    """The settings of a list, in its order, each model once. All others are the neighbors of each.

    Parameters
    ----------
    settings : iterable
        Mappings of parameters to values are settings. Everything else is a structure, in any form that
        `coerce_structure` takes, and becomes ``{"structure": dag}``.

    Examples
    --------
    >>> from skvbem.spaces import ListSpace
    >>> list(ListSpace(["[h][x|h][y|h]", "[h][x|h][y|h:x]"]))
    [{'structure': DAG("[h][x|h][y|h]")}, {'structure': DAG("[h][x|h][y|h:x]")}]
    >>> len(ListSpace([{"n_components": 2}, {"n_components": 3}, {"n_components": 2}]))
    2
    """

    settings: Any

    def __post_init__(self):
        if isinstance(self.settings, (str, Mapping, DAG)) or not isinstance(self.settings, Iterable):
            raise TypeError(f"ListSpace takes a list of settings or of structures. Got {shown(self.settings)} instead.")
        settings = tuple(distinct(map(_as_setting, self.settings)).values())
        if not settings:
            raise ValueError("ListSpace must hold at least one setting. Got an empty list.")
        object.__setattr__(self, "settings", settings)

    @property
    def n_settings(self) -> int:
        """The number of settings of the list, each model once."""
        return len(self.settings)

    @cached_property
    def parameters(self) -> frozenset:
        """The names of the parameters that the settings of the list give."""
        return frozenset(name for setting in self.settings for name in setting)

    def __iter__(self) -> Iterator[dict]:
        return map(dict, self.settings)

    def __contains__(self, setting) -> bool:
        return isinstance(setting, Mapping) and canonical(setting) in self._place

    def neighbors(self, setting: Mapping) -> Iterator[dict]:
        """All other settings of the list: nothing is known of what is near what."""
        key = canonical(self.check_member(setting))
        return (dict(other) for other, place in zip(self.settings, self._place) if place != key)

    @cached_property
    def _place(self) -> dict[Hashable, int]:
        return {canonical(setting): place for place, setting in enumerate(self.settings)}


def _as_setting(item) -> dict:
    return dict(item) if isinstance(item, Mapping) else {"structure": coerce_structure(item)}
