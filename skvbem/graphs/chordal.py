r"""Chordal graphs: perfect orders, maximal cliques and separators.

An undirected graph is chordal if each of its cycles of four nodes or more has a chord, an edge between two nodes that
are not neighbors on the cycle. That is so if and only if the nodes have a *perfect* order, in which the earlier
neighbors of each node are all neighbors of each other. Maximum cardinality search (Tarjan & Yannakakis 1984, Simple
linear-time algorithms to test chordality of graphs) finds one: each next node has the most neighbors so far. Such a
graph is what decomposable Markov networks are made of: with C its maximal cliques and S its separators,
:math:`p(x) = \prod_C p(x_C) / \prod_S p(x_S)`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import combinations

Neighbors = Mapping[Hashable, frozenset]


def search_order(nodes: Sequence, neighbors: Neighbors, priority: Mapping[Hashable, float]) -> list:
    """The nodes in an order of maximum cardinality search, which is perfect if the graph is chordal.

    Parameters
    ----------
    nodes : sequence of hashable
    neighbors : mapping
        Node -> its neighbors.
    priority : mapping
        Node -> number; of nodes that might come next those of the largest come first (0 where none is given), then
        those that stand first in `nodes`.
    """
    n_before = dict.fromkeys(nodes, 0)
    place = {node: position for position, node in enumerate(nodes)}
    order = []
    while n_before:
        node = max(n_before, key=lambda node: (n_before[node], priority.get(node, 0.0), -place[node]))
        del n_before[node]
        order.append(node)
        for neighbor in neighbors[node]:
            if neighbor in n_before:
                n_before[neighbor] += 1
    return order


def earlier_neighbors(order: Sequence, neighbors: Neighbors) -> dict:
    """Node -> those of its neighbors that stand before it in an order."""
    earlier: dict = {}
    for node in order:
        earlier[node] = neighbors[node] & earlier.keys()
    return earlier


def is_perfect(order: Sequence, neighbors: Neighbors) -> bool:
    """Whether the earlier neighbors of each node are neighbors of each other."""
    place = {node: position for position, node in enumerate(order)}
    for before in earlier_neighbors(order, neighbors).values():
        if before:
            last = max(before, key=place.__getitem__)
            if not before - {last} <= neighbors[last]:
                return False
    return True


def find_chordless_cycle(nodes: Sequence, neighbors: Neighbors) -> tuple:
    """The nodes of a cycle of four or more without a chord, each a neighbor of the next; empty in a chordal graph."""
    for node in nodes:
        around = sorted(neighbors[node], key=list(nodes).index)
        for start, end in combinations(around, 2):
            if end not in neighbors[start]:
                barred = (neighbors[node] | {node}) - {start, end}
                if path := _shortest_path(start, end, neighbors, barred):
                    return (node, *path)
    return ()


def _shortest_path(start, end, neighbors: Neighbors, barred: frozenset) -> list:
    """The nodes of a shortest path that avoids some nodes; empty if there is none."""
    came_from: dict = {start: None}
    waiting = deque([start])
    while waiting:
        node = waiting.popleft()
        if node == end:
            path = []
            while node is not None:
                path.append(node)
                node = came_from[node]
            return path[::-1]
        for other in neighbors[node]:
            if other not in came_from and other not in barred:
                came_from[other] = node
                waiting.append(other)
    return []


def cliques_and_separators(order: Sequence, neighbors: Neighbors) -> Iterator[tuple[frozenset, frozenset]]:
    """The maximal cliques of a chordal graph, each with the separator that joins it to those before.

    Parameters
    ----------
    order : sequence of hashable
        Of a maximum cardinality search: a clique grows as long as the next node has all of it for neighbors [Blair &
        Peyton 1993].
    neighbors : mapping
        Node -> its neighbors.

    Yields
    ------
    clique, separator : frozenset
        The separator is empty for the first clique of each connected part.
    """
    clique: frozenset = frozenset()
    separator: frozenset = frozenset()
    for node, before in earlier_neighbors(order, neighbors).items():
        if clique and before != clique:
            yield clique, separator
            separator = frozenset(before)
        clique = frozenset(before | {node})
    if clique:
        yield clique, separator
