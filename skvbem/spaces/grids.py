"""Grids of values of parameters, as scikit-learn has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from skvbem._arguments import is_collection, is_real
from skvbem._lazy import cached_property
from skvbem._names import shown
from skvbem.graphs.dag import DAG
from skvbem.spaces.base import DelegatingSpace, Space
from skvbem.spaces.combinations import ListSpace, make_product, make_union
from skvbem.spaces.settings import canonical

__all__ = ["GridSpace", "is_list_of_values"]


@dataclass(frozen=True, eq=False, repr=False)
class GridSpace(DelegatingSpace):
    """All combinations of the values listed for each parameter, as in scikit-learn's ParameterGrid, each once.

    Parameters
    ----------
    grid : mapping or iterable of mappings
        Parameter -> the values to try: a list, tuple, range or array of one dimension. Several grids make their union.

    Raises
    ------
    TypeError
        If a parameter is given something else.
    ValueError
        If a parameter has no value, or there is no grid.

    Notes
    -----
    Parameters are taken in the order of their names, the last one changes fastest. A neighbor has one parameter
    changed: to the next smaller or larger value where all values are numbers, else to any other.

    Examples
    --------
    >>> from skvbem.spaces import GridSpace
    >>> space = GridSpace({"n_components": range(1, 9), "method": ["vb", "map"]})
    >>> len(space)
    16
    >>> list(space.neighbors({"method": "vb", "n_components": 1}))
    [{'method': 'map', 'n_components': 1}, {'method': 'vb', 'n_components': 2}]
    """

    grid: Any

    def __post_init__(self):
        grids = [self.grid] if isinstance(self.grid, Mapping) else self.grid
        if not is_collection(grids):
            raise TypeError(f"A grid maps parameters to lists of values. Got {shown(self.grid)} instead.")
        grids = tuple(map(_check_grid, grids))
        if not grids:
            raise ValueError("GridSpace needs at least one grid. Got an empty list.")
        object.__setattr__(self, "grid", grids[0] if len(grids) == 1 else grids)
        object.__setattr__(self, "_inner", make_union(*map(_combinations, grids)))


def is_list_of_values(value) -> bool:
    """True if a value of a grid lists values of a parameter."""
    if isinstance(value, np.ndarray):
        return value.ndim == 1
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


class _Axis(ListSpace):
    """The values of one parameter; numbers are near the next smaller and the next larger one."""

    def neighbors(self, setting: Mapping) -> Iterator[dict]:
        """The values next to one of the axis."""
        if not self._rank:
            return super().neighbors(setting)
        at = self._rank.index(canonical(self.check_member(setting)))
        near = [*self._rank[max(at - 1, 0) : at], *self._rank[at + 1 : at + 2]]
        return (dict(self.settings[self._place[key]]) for key in near)

    @cached_property
    def _rank(self) -> list:
        """The keys by ascending values; none if some value is no number."""
        [name] = self.parameters
        values = [setting[name] for setting in self.settings]
        if not all(is_real(value) for value in values):
            return []
        keys = list(self._place)
        return [keys[place] for place in sorted(range(len(values)), key=values.__getitem__)]


def _combinations(grid: Mapping):
    return make_product(*(_Axis([{name: value} for value in grid[name]]) for name in sorted(grid)))


def _check_grid(grid) -> dict:
    if not isinstance(grid, Mapping):
        raise TypeError(f"A grid maps parameters to lists of values. Got {shown(grid)} instead.")
    for name, values in grid.items():
        if not isinstance(name, str):
            raise TypeError(f"A grid maps names of parameters, str, to values. Got the name {shown(name)}.")
        if not is_list_of_values(values):
            raise TypeError(
                f"The grid must give {name!r} a list of values, or an array of one dimension. Got {shown(values)} "
                "instead; a single value is a list of one."
            )
        if len(values) == 0:
            raise ValueError(f"The grid gives {name!r} no value. Give it at least one, or leave it out.")
    return dict(grid)


def coerce_space(space) -> Space:
    """The space that a grid, a list of settings or of structures, or a space itself stands for.

    Parameters
    ----------
    space : Space, mapping or iterable
        A mapping is a grid of parameters, and so is an iterable of mappings all of whose values are lists, tuples,
        ranges or arrays (see `GridSpace`). Any other iterable holds settings or structures (see `ListSpace`).

    Raises
    ------
    TypeError
        If it is none of these.
    ValueError
        If it is empty.

    Examples
    --------
    >>> from skvbem.spaces import coerce_space
    >>> len(coerce_space({"n_components": range(1, 9)}))
    8
    >>> len(coerce_space([{"n_components": [2, 3]}, {"method": ["map"], "n_components": [2]}]))
    3
    >>> list(coerce_space(["[h][x|h]", "[h][x]"]))
    [{'structure': DAG("[h][x|h]")}, {'structure': DAG("[h][x]")}]
    """
    if isinstance(space, Space):
        return space
    if isinstance(space, Mapping):
        return GridSpace(space)
    if isinstance(space, (str, bytes, DAG)) or not isinstance(space, Iterable):
        raise TypeError(
            "A space must be one of skvbem.spaces, a grid {'parameter': [values]}, or a list of settings or of "
            f"structures. Got {shown(space)} instead."
        )
    items = list(space)
    grids = items and all(isinstance(item, Mapping) and all(map(is_list_of_values, item.values())) for item in items)
    return GridSpace(items) if grids else ListSpace(items)


def _combined(how: str, *spaces) -> Space:
    """The product or union of spaces as users describe them."""
    make = {"product": make_product, "union": make_union}[how]
    return make(*map(coerce_space, spaces))


Space._combined = staticmethod(_combined)
