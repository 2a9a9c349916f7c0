"""Directed cycles of graphs, which no factorization of a distribution has."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping


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
