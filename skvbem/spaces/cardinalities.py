"""Spaces of the numbers of states of one structure's latents."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

from skvbem._arguments import is_collection, is_whole
from skvbem._lazy import cached_property
from skvbem._names import did_you_mean, shown
from skvbem.errors import StructureError, TooLargeError
from skvbem.graphs.dag import DAG
from skvbem.spaces.base import MAX_LISTED, DelegatingSpace, Space
from skvbem.spaces.settings import canonical, check_latent_names
from skvbem.spaces.structures import check_nodes

__all__ = ["CardinalityGrid", "LatentClassSpace"]


@dataclass(frozen=True, eq=False, repr=False)
class CardinalityGrid(Space):
    """One structure with all combinations of the numbers of states listed for its latents, each model once.

    Parameters
    ----------
    latents : mapping
        Latent -> the numbers of states to try, ints >= 1, or one number.
    structure : DAG or what `DAG.coerce` takes
        All of the latents are nodes of it; its other nodes are observed.

    Raises
    ------
    StructureError
        If a latent is not a node of the structure.
    ValueError
        If a latent has no number of states to try, or one that is no int >= 1.

    Notes
    -----
    Where the structure stays the same when two latents trade places, so does the model when their numbers of states do.
    A neighbor has one latent with the next smaller or larger number of those listed.

    Examples
    --------
    >>> from skvbem.spaces import CardinalityGrid
    >>> space = CardinalityGrid({"h0": [2, 3], "h1": [2, 3]}, structure="[h0][h1][x|h0:h1][y|h0:h1]")
    >>> [setting["latents"] for setting in space]
    [{'h0': 2, 'h1': 2}, {'h0': 2, 'h1': 3}, {'h0': 3, 'h1': 3}]
    """

    latents: Any
    structure: Any

    def __post_init__(self):
        if not isinstance(self.latents, Mapping) or not self.latents:
            raise TypeError(
                "The 'latents' parameter of CardinalityGrid must map latents to numbers of states, as "
                f"{{'h0': [2, 3]}}. Got {shown(self.latents)} instead."
            )
        check_latent_names(self.latents, "CardinalityGrid")
        dag = DAG.coerce(self.structure)
        for latent in self.latents:
            if latent not in dag.nodes:
                raise StructureError(
                    f"CardinalityGrid gives {shown(latent)} numbers of states, but it is not a node of the structure."
                    f"{did_you_mean(latent, dag.nodes)}"
                )
        object.__setattr__(self, "structure", dag)
        numbers = {latent: check_numbers_of_states(given, latent) for latent, given in self.latents.items()}
        object.__setattr__(self, "latents", numbers)

    @cached_property
    def n_settings(self) -> int:
        """The number of settings, an exact int; TooLargeError if they are too many to be looked at one by one."""
        n_points = prod(map(len, self.latents.values()))
        if n_points > MAX_LISTED:
            raise TooLargeError(
                f"CardinalityGrid has {n_points} combinations of numbers of states, of which those that are one model "
                f"are found one by one; {MAX_LISTED} is the limit. List fewer numbers of states."
            )
        return len(self._points)

    @property
    def parameters(self) -> frozenset:
        """The names of the parameters that settings give: the structure and its latents."""
        return frozenset({"structure", "latents"})

    def __iter__(self) -> Iterator[dict]:
        return (self._setting(points[0]) for points in self._points.values())

    def __contains__(self, setting) -> bool:
        return isinstance(setting, Mapping) and canonical(setting) in self._points

    def neighbors(self, setting: Mapping) -> Iterator[dict]:
        """The settings in which one latent has the next smaller or larger number of states."""
        key = canonical(self.check_member(setting))
        seen = {key}
        points = self._points[key]
        given = tuple((setting.get("latents") or {}).get(latent) for latent in self.latents)
        for point in sorted(points, key=lambda point: point != given):
            for near in self._near(point):
                neighbor = self._setting(near)
                if (neighbor_key := canonical(neighbor)) not in seen:
                    seen.add(neighbor_key)
                    yield neighbor

    def orbit_size(self, setting: Mapping) -> int:
        """The number of combinations of numbers of states that describe the model of `setting`."""
        return len(self._points[canonical(self.check_member(setting))])

    @cached_property
    def _points(self) -> dict[Hashable, list[tuple[int, ...]]]:
        """Key -> the combinations of numbers of states that it stands for."""
        points: dict = {}
        for point in product(*self.latents.values()):
            points.setdefault(canonical(self._setting(point)), []).append(point)
        return points

    def _setting(self, point):
        return {"structure": self.structure, "latents": dict(zip(self.latents, point))}

    def _near(self, point):
        for place, numbers in enumerate(self.latents.values()):
            at = numbers.index(point[place])
            for number in (*numbers[max(at - 1, 0) : at], *numbers[at + 1 : at + 2]):
                yield (*point[:place], number, *point[place + 1 :])


@dataclass(frozen=True, eq=False, repr=False)
class LatentClassSpace(DelegatingSpace):
    """One latent above all observed nodes, with each of the numbers of states listed.

    Parameters
    ----------
    n_states : iterable of int
        Numbers of classes, ints >= 1.
    observed : iterable of hashable
        The observed nodes.
    latent : hashable, default="h0"
        The name of the latent.

    Raises
    ------
    StructureError
        If the latent is also observed.
    ValueError
        If there is no number of states to try, or one that is no int >= 1.

    Examples
    --------
    >>> from skvbem.spaces import LatentClassSpace
    >>> space = LatentClassSpace(range(1, 9), ["x", "y"])
    >>> len(space)
    8
    >>> next(iter(space))
    {'structure': DAG("[h0][x|h0][y|h0]"), 'latents': {'h0': 1}}
    """

    n_states: Any
    observed: Any
    latent: Hashable = "h0"

    def __post_init__(self):
        object.__setattr__(self, "n_states", check_numbers_of_states(self.n_states, self.latent))
        object.__setattr__(self, "observed", check_nodes(self.observed, {self.latent: 1}, "LatentClassSpace"))
        structure = DAG.naive_bayes(self.latent, self.observed)
        object.__setattr__(self, "_inner", CardinalityGrid({self.latent: self.n_states}, structure))


def check_numbers_of_states(given, latent: Hashable) -> tuple[int, ...]:
    """The numbers of states, ascending, each once; ValueError if there is none, or one that is no int >= 1."""
    numbers = tuple(given) if is_collection(given) else (given,)
    for number in numbers:
        if not is_whole(number) or number < 1:
            raise ValueError(f"The numbers of states of {shown(latent)} must be ints >= 1. Got {shown(number)}.")
    if not numbers:
        raise ValueError(f"Latent {shown(latent)} has no number of states to try. Give at least one.")
    return tuple(sorted({int(number) for number in numbers}))
