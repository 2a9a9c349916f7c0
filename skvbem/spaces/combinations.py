"""Lists of settings, and spaces made of spaces: products and unions."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from math import prod
from typing import Any

from skvbem._lazy import cached_property
from skvbem._names import shown
from skvbem.errors import TooLargeError
from skvbem.graphs.dag import DAG
from skvbem.spaces.base import MAX_LISTED, Space
from skvbem.spaces.moves import latent_moves, state_moves
from skvbem.spaces.settings import canonical, coerce_structure, distinct, hidden_graph, merge

__all__ = ["ListSpace", "ProductSpace", "UnionSpace", "make_product", "make_union"]


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


# New latents have at most so many children at first; they may gain more edge by edge.
_CHILDREN_OF_NEW_LATENTS = (0, 1, 2)


def make_product(*parts: Space) -> Space:
    """The space of all combinations of one setting from each part.

    Raises
    ------
    ValueError
        If two parts set the same parameter.
    TooLargeError
        If one part gives graphs and another latents, and there are too many pairs to list: which of them are the same
        model only the pairs tell.
    """
    flat = [factor for part in parts for factor in (part.parts if isinstance(part, ProductSpace) else (part,))]
    for place, part in enumerate(flat):
        for other in flat[:place]:
            if shared := sorted(part.parameters & other.parameters):
                raise ValueError(
                    f"Both factors of a product set {shared[0]!r}: {type(other).__name__} and {type(part).__name__}. "
                    "Leave it to one of them, or use + for a union."
                )
    with_one_of_two = [part for part in flat if len({"structure", "latents"} & part.parameters) == 1]
    if len(with_one_of_two) == 2:
        # The names of latents are arbitrary in graph and numbers of states together, not in each alone.
        pairs = ListSpace(ProductSpace(tuple(with_one_of_two)).to_list())
        flat = [pairs if part is with_one_of_two[0] else part for part in flat if part is not with_one_of_two[1]]
    return flat[0] if len(flat) == 1 else ProductSpace(tuple(flat))


def make_union(*parts: Space) -> Space:
    """The space of all settings of the parts, in their order; what several of them hold comes once."""
    flat = [member for part in parts for member in (part.parts if isinstance(part, UnionSpace) else (part,))]
    return flat[0] if len(flat) == 1 else UnionSpace(tuple(flat))


@dataclass(frozen=True, eq=False, repr=False)
class ProductSpace(Space):
    """All combinations of one setting from each part; the last part changes fastest. Made by ``a * b``.

    Parameters
    ----------
    parts : tuple of Space
        They set different parameters.

    Examples
    --------
    >>> from skvbem.spaces import GridSpace
    >>> space = GridSpace({"alpha": [0.5, 1.0]}) * GridSpace({"n_components": [2, 3]})
    >>> list(space)[:2]
    [{'alpha': 0.5, 'n_components': 2}, {'alpha': 0.5, 'n_components': 3}]
    """

    parts: tuple[Space, ...]

    @property
    def n_settings(self) -> int:
        """The number of combinations, an exact int of any size."""
        return prod(part.n_settings for part in self.parts)

    @cached_property
    def parameters(self) -> frozenset:
        """The names of the parameters that the parts' settings give."""
        return frozenset(chain.from_iterable(part.parameters for part in self.parts))

    def __iter__(self) -> Iterator[dict]:
        def combined(parts):
            if not parts:
                yield {}
                return
            for setting in parts[0]:
                for rest in combined(parts[1:]):
                    yield merge((setting, rest))

        return combined(self.parts)

    def __contains__(self, setting) -> bool:
        return (
            isinstance(setting, Mapping)
            and setting.keys() <= self.parameters
            and all(setting_of_part in part for part, setting_of_part in zip(self.parts, self._split(setting)))
        )

    def neighbors(self, setting: Mapping) -> Iterator[dict]:
        """The settings in which one part has moved by one."""
        settings = self._split(self.check_member(setting))
        for place, part in enumerate(self.parts):
            for neighbor in part.neighbors(settings[place]):
                yield merge((*settings[:place], neighbor, *settings[place + 1 :]))

    def orbit_size(self, setting: Mapping) -> int:
        """The number of labeled settings that describe the model: the product of those of the parts."""
        settings = self._split(self.check_member(setting))
        return prod(part.orbit_size(one) for part, one in zip(self.parts, settings))

    def _split(self, setting):
        return [{name: value for name, value in setting.items() if name in part.parameters} for part in self.parts]


@dataclass(frozen=True, eq=False, repr=False)
class UnionSpace(Space):
    """All settings of the parts, each model once, those of the first part first. Made by ``a + b``.

    A step may lead from one part to another if it turns a setting of the one into a setting of the other. Such steps
    add or remove a state, or a latent with at most two children. So that no part is out of reach, a step also joins
    the first settings of parts that follow each other.

    Parameters
    ----------
    parts : tuple of Space

    Examples
    --------
    >>> from skvbem.spaces import BipartiteSpace
    >>> observed = ["y0", "y1", "y2"]
    >>> space = BipartiteSpace({"h0": 2}, observed) + BipartiteSpace({"h0": 2, "h1": 2}, observed)
    >>> len(space)
    44
    """

    parts: tuple[Space, ...]

    @cached_property
    def n_settings(self) -> int:
        """The number of settings, each model once, an exact int."""
        largest, *others = sorted(self.parts, key=lambda part: part.n_settings, reverse=True)
        if (n := sum(part.n_settings for part in others)) > MAX_LISTED:
            raise TooLargeError(
                f"To count this union, {n} settings would have to be looked up one by one; {MAX_LISTED} "
                "is the limit. Iterate over it, or search it by its neighbors."
            )
        earlier, total = [largest], largest.n_settings
        for part in others:
            total += sum(not any(setting in other for other in earlier) for setting in part)
            earlier.append(part)
        return total

    @cached_property
    def parameters(self) -> frozenset:
        """The names of the parameters that the parts' settings give."""
        return frozenset(chain.from_iterable(part.parameters for part in self.parts))

    def __iter__(self) -> Iterator[dict]:
        for place, part in enumerate(self.parts):
            for setting in part:
                if not any(setting in earlier for earlier in self.parts[:place]):
                    yield setting

    def __contains__(self, setting) -> bool:
        return any(setting in part for part in self.parts)

    def neighbors(self, setting: Mapping) -> Iterator[dict]:
        """The neighbors of a setting in all parts that hold it; steps from one part to another come last."""
        key = canonical(self.check_member(setting))
        within = (part.neighbors(setting) for part in self.parts if setting in part)
        seen = {key}
        for neighbor in chain(chain.from_iterable(within), self._crossings(setting), self._links(key)):
            if (neighbor_key := canonical(neighbor)) not in seen:
                seen.add(neighbor_key)
                yield neighbor

    def orbit_size(self, setting: Mapping) -> int:
        """The number of labeled settings of the first part that has the model."""
        self.check_member(setting)
        return next(part for part in self.parts if setting in part).orbit_size(setting)

    def _crossings(self, setting):
        graph, _ = hidden_graph(setting) or (None, {})
        if isinstance(graph, DAG):
            states = self._states
            moves = latent_moves(setting, self, n_states=states, n_children=_CHILDREN_OF_NEW_LATENTS)
            for _, neighbor in chain(moves, state_moves(setting, self)):
                yield neighbor

    def _links(self, key):
        firsts = [next(iter(part)) for part in self.parts]
        keys = [canonical(first) for first in firsts]
        for place, key_of_part in enumerate(keys):
            if key_of_part == key:
                yield from firsts[max(place - 1, 0) : place + 2]

    @cached_property
    def _states(self) -> tuple:
        """The numbers of states that latents have in the first settings of the parts."""
        graphs = (hidden_graph(next(iter(part))) for part in self.parts)
        return tuple(sorted({states for one in graphs if one is not None for states in one[1].values()}))
