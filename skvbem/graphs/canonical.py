"""Canonical names for exchangeable hidden nodes.

Hidden nodes of equal kind carry arbitrary names: graphs that differ only by a permutation of such names are one model.
To find one graph of each class, hidden nodes are colored by their neighbors, then by the colors of these until nothing
changes; where nodes still share a color, each of them is singled out in turn. The least of the graphs so reached stands
for the class, and as many ways lead to it as there are automorphisms (individualization and refinement: McKay 1981,
Practical graph isomorphism). Observed nodes keep their names and tell nearly all hidden ones apart.
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Hashable, Mapping

__all__ = ["canonical_renaming"]


def canonical_renaming(dag, hidden: Mapping[Hashable, Hashable]) -> tuple[dict, int]:
    """The renaming of hidden nodes that makes the DAG canonical, and the number of its automorphisms.

    `hidden` maps hidden nodes to their kinds. Nodes are numbered by name, so that nothing depends on the order in which
    the graph or `hidden` lists them.
    """
    names = sorted(dag.nodes, key=lambda node: (isinstance(node, str), str(node)))
    number = {name: position for position, name in enumerate(names)}
    kinds = {number[name]: kind for name, kind in hidden.items()}
    members: dict = {}
    for node in sorted(kinds):
        members.setdefault(kinds[node], []).append(node)
    sides = [
        {node: frozenset(number[other] for other in neighbors(names[node])) for node in kinds}
        for neighbors in (dag.children, dag.parents)
    ]
    edges = [(number[parent], number[child]) for parent, child in dag.edges]
    # The edges between hidden and observed nodes are the same in all leaves below: the first coloring holds them.
    edges = [edge for edge in edges if edge[0] in kinds and edge[1] in kinds]

    # Nodes of one kind with the same neighbors may be exchanged whatever else is done: any order of them will do.
    twins: Counter = Counter()
    start = {}
    for place, kind in enumerate(members):
        for node in members[kind]:
            likeness = (place, *(side[node] for side in sides))
            seen = ((*sorted(side[node] - kinds.keys()), math.inf) for side in sides)
            start[node] = (place, *seen, twins[likeness])
            twins[likeness] += 1

    def ranked(key):
        rank = {value: position for position, value in enumerate(sorted(set(key.values())))}
        return {node: rank[value] for node, value in key.items()}

    def refined(color):
        while len(set(color.values())) < len(color):
            key = {}
            for node in color:
                seen = ((*sorted(color[other] for other in side[node] & color.keys()), math.inf) for side in sides)
                key[node] = (color[node], *seen)
            finer = ranked(key)
            if len(set(finer.values())) == len(set(color.values())):
                return finer
            color = finer
        return color

    def undecided(color):
        cells: dict = {}
        for node in sorted(color):
            cells.setdefault(color[node], []).append(node)
        return next((cells[key] for key in sorted(cells) if len(cells[key]) > 1), None)

    def singled_out(color, node):
        return refined({**color, node: color[node] - 0.5})

    def leaf(color):
        """The edges between hidden nodes renamed in the order of colors, all different, and the renaming."""
        new = {}
        for group in members.values():
            new.update(zip(sorted(group, key=color.__getitem__), group, strict=True))
        return tuple(sorted((new[parent], new[child]) for parent, child in edges)), new

    def first_leaf(color):
        while cell := undecided(color):
            color = singled_out(color, cell[0])
        return leaf(color)[0]

    def search(color):
        """The least graph among the leaves below, a renaming that gives it, and how many leaves do."""
        cell = undecided(color)
        if cell is None:
            return *leaf(color), 1
        least_below: dict = {}
        times: Counter = Counter()
        for node in cell:
            branch = singled_out(color, node)
            sample = first_leaf(branch)
            # Equal leaves below two nodes show an automorphism that takes one to the other: one search serves both.
            if sample not in least_below:
                least_below[sample] = search(branch)
            times[sample] += 1
        least, new, _ = min(least_below.values(), key=operator.itemgetter(0))
        return (
            least,
            new,
            sum(times[sample] * count for sample, (graph, _, count) in least_below.items() if graph == least),
        )

    _, new, count = search(refined(ranked(start)))
    count *= math.prod(map(math.factorial, twins.values()))
    return {names[old]: names[target] for old, target in new.items()}, count
