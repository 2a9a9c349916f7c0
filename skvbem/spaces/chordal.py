"""Chordal graphs over a few nodes: the structures of decomposable Markov networks."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, islice
from math import factorial, prod
from typing import Any

from skvbem._arguments import check_limit
from skvbem._lazy import cached_property
from skvbem.errors import TooLargeError
from skvbem.graphs.undirected import UndirectedGraph
from skvbem.spaces.base import Space
from skvbem.spaces.structures import check_latents, check_nodes, graph_named_as

__all__ = ["ChordalSpace"]

# Nodes of graphs that are counted: there are 617 675 chordal graphs of seven, and 30 888 596 of eight.
_MAX_COUNTED_NODES = 7


@dataclass(frozen=True, eq=False, repr=False)
class ChordalSpace(Space):
    """All chordal undirected graphs over observed nodes and latents, up to names of exchangeable latents.

    They are the structures of decomposable Markov networks, for estimators with ``prior="bdeu"``. A neighbor has one
    edge more or less; by such moves every graph is reached from every other.

    Parameters
    ----------
    nodes : iterable of hashable
        The observed nodes.
    latents : mapping, list of str, or int, optional
        Latent -> its number of states. A list means 2 states each, an int one latent ``"h0"``.
    isolated : bool, default=False
        Whether a latent may be without neighbors. Such a latent leaves the evidence as it is.

    Raises
    ------
    StructureError
        If a node is both latent and observed.

    See Also
    --------
    DAGSpace : directed graphs.

    Notes
    -----
    Graphs are made node by node: a graph is chordal only if it is without its last node. A node may be joined to those
    of its neighbors that each part of the graph without them sees as a clique. With up to seven nodes `n_settings` is
    found by listing them.

    Examples
    --------
    >>> from skvbem.spaces import ChordalSpace
    >>> [len(ChordalSpace(range(n))) for n in range(1, 6)]
    [1, 2, 8, 61, 822]
    >>> space = ChordalSpace(["a", "b", "c"])
    >>> [str(setting["structure"]) for setting in space][:3]
    ['[a][b][c]', '[a c][b]', '[a][b c]']
    >>> len(list(space.neighbors({"structure": space.to_list()[0]["structure"]})))
    3
    """

    nodes: Any
    latents: Any = None
    isolated: bool = False

    def __post_init__(self):
        object.__setattr__(self, "latents", check_latents(self.latents, "ChordalSpace"))
        object.__setattr__(self, "nodes", check_nodes(self.nodes, self.latents, "ChordalSpace"))
        self.check_not_empty()

    @property
    def parameters(self) -> frozenset:
        """The names of the parameters that settings give: the structure, and latents if there are any."""
        return frozenset({"structure", "latents"} if self.latents else {"structure"})

    @cached_property
    def n_settings(self) -> int:
        """The number of settings, an exact int; TooLargeError if there are more than seven nodes."""
        if len(self._order) > _MAX_COUNTED_NODES:
            raise TooLargeError(
                f"ChordalSpace counts graphs of up to {_MAX_COUNTED_NODES} nodes. It has {len(self._order)}: search it "
                "by its neighbors, or iterate without counting."
            )
        return sum(1 for _ in (self if self.latents else self._masks()))

    def has_more_than(self, n: int) -> bool:
        """True if there are more than n settings; no more are listed than that takes."""
        check_limit("n", "has_more_than", n)
        n_nodes = len(self._order)
        n_trees = n_nodes ** max(n_nodes - 2, 0)  # which are chordal, and leave no latent alone
        if n_trees > n * prod(factorial(k) for k in range(1, len(self.latents) + 1)):
            return True
        return next(islice(self if self.latents else self._masks(), min(int(n), sys.maxsize), None), None) is not None

    def __iter__(self) -> Iterator[dict]:
        kinds = dict(self.latents)
        for masks in self._masks():
            graph = UndirectedGraph(
                self._order, [(self._order[i], self._order[j]) for j, mask in enumerate(masks) for i in _bits(mask, j)]
            )
            if self._allows(graph) and (not kinds or graph.canonical(kinds) == graph):
                yield self._setting(graph)

    def __contains__(self, setting) -> bool:
        graph = self._graph_of(setting)
        return graph is not None and graph.is_chordal and self._allows(graph)

    def neighbors(self, setting: Mapping) -> Iterator[dict]:
        """The settings one edge away: added, or removed."""
        graph: Any = self._graph_of(self.check_member(setting))
        kinds, seen = dict(self.latents), set()
        edges = set(graph.edges)
        around = {node: frozenset(graph.neighbors(node)) for node in graph.nodes}
        for edge in combinations(graph.nodes, 2):
            common = around[edge[0]] & around[edge[1]]
            if edge in edges:
                stays_chordal = all(b in around[a] for a, b in combinations(common, 2))
                changed = edges - {edge}
            else:
                stays_chordal = not _is_linked(*edge, around, common)
                changed = edges | {edge}
            if stays_chordal and self._allows(near := UndirectedGraph(graph.nodes, changed)):
                key = near.canonical(kinds) if kinds else near
                if key not in seen:
                    seen.add(key)
                    yield self._setting(near)

    @cached_property
    def _order(self) -> tuple:
        return (*self.latents, *self.nodes)

    def _setting(self, graph: UndirectedGraph) -> dict:
        return {"structure": graph, "latents": dict(self.latents)} if self.latents else {"structure": graph}

    def _graph_of(self, setting) -> UndirectedGraph | None:
        graph = graph_named_as(setting, self.latents, self.nodes)
        return graph.reorder(self._order) if isinstance(graph, UndirectedGraph) else None

    def _allows(self, graph: UndirectedGraph) -> bool:
        return self.isolated or all(map(graph.neighbors, self.latents))

    def _masks(self) -> Iterator[tuple[int, ...]]:
        """The earlier neighbors of every node, as masks, of every labeled chordal graph."""

        def extended(masks: tuple[int, ...], around: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
            new = len(masks)
            if new == len(self._order):
                yield masks
                return
            for joined in range(1 << new):
                if _stays_chordal(around, joined):
                    with_new = (mask | (joined >> node & 1) << new for node, mask in enumerate(around))
                    yield from extended((*masks, joined), (*with_new, joined))

        return extended((), ())


def _bits(mask: int, n: int) -> list[int]:
    return [k for k in range(n) if mask >> k & 1]


def _stays_chordal(around: tuple[int, ...], joined: int) -> bool:
    """True if a chordal graph, given by the neighbors of each node as masks, stays so with a node joined to some.

    It does if those of them that one part of the rest touches are a clique, for each part: else two of them, the part
    and the new node make a cycle without a chord.
    """
    rest = ((1 << len(around)) - 1) & ~joined
    while rest:
        part, waiting, touched = 0, rest & -rest, 0
        while waiting:
            low = waiting & -waiting
            part |= low
            reached = around[low.bit_length() - 1]
            touched |= reached & joined
            waiting = (waiting | reached & ~joined) & ~part
        rest &= ~part
        left = touched
        while left:
            low = left & -left
            left &= ~low
            if left & ~around[low.bit_length() - 1]:
                return False
    return True


def _is_linked(start, end, around: Mapping, barred: frozenset) -> bool:
    """True if a path joins two nodes that avoids some others."""
    reached, waiting = {start}, [start]
    while waiting:
        for node in around[waiting.pop()] - barred - reached:
            if node == end:
                return True
            reached.add(node)
            waiting.append(node)
    return False
