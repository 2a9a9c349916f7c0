"""Spaces as users describe them: grids, lists of settings, lists of structures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from skvbem._names import shown
from skvbem.graphs.dag import DAG
from skvbem.spaces.base import Space
from skvbem.spaces.combinations import make_product, make_union
from skvbem.spaces.grids import GridSpace, is_list_of_values
from skvbem.spaces.lists import ListSpace

__all__ = ["coerce_space"]


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
