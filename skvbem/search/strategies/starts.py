"""Starts of searches that walk from neighbor to neighbor."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

import numpy as np

from skvbem._arguments import is_option
from skvbem._names import shown
from skvbem.errors import TooLargeError
from skvbem.graphs.dag import DAG
from skvbem.graphs.undirected import UndirectedGraph
from skvbem.search.tuning import TUNING
from skvbem.spaces import Space
from skvbem.spaces.moves import possible_edge_moves
from skvbem.spaces.settings import hidden_graph
from skvbem.spaces.structures import StructureSpace


def check_start(start, owner: str) -> None:
    """Raise a TypeError if this is no start of a search."""
    if not isinstance(start, (Mapping, DAG, UndirectedGraph)) and not is_option(start, "emptiest", "random"):
        raise TypeError(
            f"The 'start' of {owner} must be 'emptiest', 'random', a graph such as DAG([('a', 'b')]), or a setting. "
            f"Got {shown(start)} instead."
        )


def setting_to_start_from(start, space: Space, rng: np.random.Generator) -> dict:
    """The setting that "emptiest", "random", a graph or a setting of the space stands for."""
    if isinstance(start, DAG) and isinstance(space, StructureSpace):
        start = start.with_nodes((*space.latents, *space.observed))
    if isinstance(start, (DAG, UndirectedGraph)):
        latents = getattr(space, "latents", None)
        start = {"structure": start, "latents": dict(latents)} if latents else {"structure": start}
    if isinstance(start, Mapping):
        return dict(space.check_member(start))
    return emptiest(space) if start == "emptiest" else random_setting(space, rng)


def emptiest(space: Space) -> dict:
    """A setting that has no neighbor with fewer edges; the first setting where there are no edges to count."""
    here = dict(space.first)
    while (n := _n_edges(here)) is not None:
        fewer = (near for near in space.neighbors(here) if (_n_edges(near) or 0) < n)
        if n == 0 or (sparser := next(fewer, None)) is None:
            break
        here = sparser
    return here


def random_setting(space: Space, rng: np.random.Generator) -> dict:
    """Any setting of a space with equal chances, if it is not large; else the end of a random walk."""
    try:
        n = space.n_settings
    except TooLargeError:
        n = TUNING.n_looked_through + 1
    if n <= TUNING.n_looked_through:
        return next(islice(iter(space), int(rng.integers(n)), None))
    return random_walk(space, space.first, TUNING.n_walk, rng)


def random_walk(space: Space, setting: Mapping, n_moves: int, rng: np.random.Generator) -> dict:
    """The setting that so many random moves lead to."""
    here = dict(setting)
    for _ in range(n_moves):
        here = _random_neighbor(space, here, rng)
    return here


def _random_neighbor(space: Space, setting: Mapping, rng: np.random.Generator) -> dict:
    """A neighbor of a setting; the setting itself if it has none."""
    if moves := edge_moves_within(space, setting):
        for k in rng.permutation(len(moves)):
            near = moves[k].apply(setting)
            if near in space:
                return near
    near = list(space.neighbors(setting))
    return near[int(rng.integers(len(near)))] if near else dict(setting)


def edge_moves_within(space: Space, setting: Mapping) -> list:
    """The moves of an edge that the rules of a space allow, where these are all moves there are, else none.

    A setting that one leads to may still be outside of the space, with a latent that has no child.
    """
    graph, _ = hidden_graph(setting) or (None, {})
    if not isinstance(space, StructureSpace) or not isinstance(graph, DAG) or not space.rules.allow(graph):
        return []
    return list(possible_edge_moves(graph, space.rules))


def _n_edges(setting: Mapping) -> int | None:
    graph_and_latents = hidden_graph(setting)
    return None if graph_and_latents is None else len(graph_and_latents[0].edges)
