"""Directed cycles, and the order of the nodes of a graph that has none.

A directed graph has an order in which every node comes after its parents if and only if it has no directed cycle.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterable, Mapping, Sequence


def topological_order(
    nodes: Sequence[Hashable],
    index: Mapping[Hashable, int],
    parents: Mapping[Hashable, Sequence],
    children: Mapping[Hashable, Sequence],
) -> tuple:
    """The nodes in Kahn's order, each after its parents; shorter than `nodes` if there is a cycle.

    Parameters
    ----------
    nodes : sequence of hashable
    index : mapping
        Node -> its position in `nodes`, by which ties are broken.
    parents, children : mapping
        Node -> its parents, and its children, for every node.
    """
    waiting = {node: len(parents[node]) for node in nodes}
    ready = [index[node] for node in nodes if not waiting[node]]
    order = []
    while ready:
        node = nodes[heapq.heappop(ready)]
        order.append(node)
        for child in children[node]:
            waiting[child] -= 1
            if not waiting[child]:
                heapq.heappush(ready, index[child])
    return tuple(order)


def find_cycle(nodes: Iterable[Hashable], parents: Mapping[Hashable, Iterable[Hashable]]) -> tuple:
    """The nodes of one directed cycle, each a parent of the next and the last one of the first; empty if there is none.

    The cycle starts at the earliest of its nodes in `nodes`; `parents` maps child -> parents and may lack roots.
    """
    place = {node: position for position, node in enumerate(nodes)}
    done: set = set()
    exhausted = object()
    for start in place:
        path = {} if start in done else {start: iter(parents.get(start, ()))}
        while path:
            node = next(reversed(path))
            parent = next((parent for parent in path[node] if parent not in done), exhausted)
            if parent in path:
                against = list(path)
                cycle = against[against.index(parent) :][::-1]
                first = min(range(len(cycle)), key=lambda at: place[cycle[at]])
                return (*cycle[first:], *cycle[:first])
            if parent is exhausted:
                done.add(node)
                del path[node]
            else:
                path[parent] = iter(parents.get(parent, ()))
    return ()


def describe_cycle(cycle: tuple) -> str:
    """The error text that prints a cycle in the direction of its edges."""
    steps = [str(node) for node in (*cycle, cycle[0])]
    if len(steps) > 20:
        steps[10:-9] = ["..."]
    return f"The graph must have no directed cycle. It has {' -> '.join(steps)}; remove or turn one of these edges."
