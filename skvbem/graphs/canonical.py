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
    sides = tuple(
        {node: frozenset(number[other] for other in neighbors(names[node])) for node in kinds}
        for neighbors in (dag.children, dag.parents)
    )
    edges = [(number[parent], number[child]) for parent, child in dag.edges]
    # Edges between hidden and observed nodes are the same in all leaves: the first coloring holds them.
    colorings = _Colorings(kinds, sides, [edge for edge in edges if edge[0] in kinds and edge[1] in kinds])
    start, n_orders_of_twins = colorings.start()
    _, new, count = colorings.search(colorings.refined(start))
    return {names[old]: names[target] for old, target in new.items()}, count * n_orders_of_twins


class _Colorings:
    """Colorings of the hidden nodes of a graph, refined until every node has a color of its own.

    Parameters
    ----------
    kinds : dict
        Hidden node -> its kind. Nodes are numbers.
    sides : tuple of two dict
        Hidden node -> its children, and -> its parents, as frozensets.
    edges : list of (parent, child)
        Those between hidden nodes.
    """

    def __init__(self, kinds: dict, sides: tuple[dict, ...], edges: list[tuple[int, int]]):
        self.sides, self.edges = sides, edges
        self.members: dict = {}
        for node in sorted(kinds):
            self.members.setdefault(kinds[node], []).append(node)

    def start(self) -> tuple[dict, int]:
        """The coloring by kinds and observed neighbors, and the number of orders of nodes that are twins.

        Nodes of one kind with the same neighbors may be exchanged whatever else is done: any order of them will do.
        """
        hidden = {node for group in self.members.values() for node in group}
        twins: Counter = Counter()
        color = {}
        for place, group in enumerate(self.members.values()):
            for node in group:
                likeness = (place, *(side[node] for side in self.sides))
                seen = ((*sorted(side[node] - hidden), math.inf) for side in self.sides)
                color[node] = (place, *seen, twins[likeness])
                twins[likeness] += 1
        return _ranked(color), math.prod(map(math.factorial, twins.values()))

    def refined(self, color: dict) -> dict:
        """The coloring that tells nodes apart by the colors of their neighbors, until nothing changes."""
        while len(set(color.values())) < len(color):
            key = {}
            for node in color:
                seen = ((*sorted(color[other] for other in side[node] & color.keys()), math.inf) for side in self.sides)
                key[node] = (color[node], *seen)
            finer = _ranked(key)
            if len(set(finer.values())) == len(set(color.values())):
                return finer
            color = finer
        return color

    def undecided(self, color: dict) -> list[int] | None:
        """The first nodes that share a color; None if none do."""
        cells: dict = {}
        for node in sorted(color):
            cells.setdefault(color[node], []).append(node)
        return next((cells[key] for key in sorted(cells) if len(cells[key]) > 1), None)

    def singled_out(self, color: dict, node: int) -> dict:
        """The coloring in which a node comes before those it shared its color with, refined."""
        return self.refined({**color, node: color[node] - 0.5})

    def leaf(self, color: dict) -> tuple[tuple, dict]:
        """The edges between hidden nodes renamed in the order of colors, all different, and the renaming."""
        new: dict = {}
        for group in self.members.values():
            new.update(zip(sorted(group, key=color.__getitem__), group, strict=True))
        return tuple(sorted((new[parent], new[child]) for parent, child in self.edges)), new

    def first_leaf(self, color: dict) -> tuple:
        """The edges of the leaf that singling out the first node each time leads to."""
        while cell := self.undecided(color):
            color = self.singled_out(color, cell[0])
        return self.leaf(color)[0]

    def search(self, color: dict) -> tuple[tuple, dict, int]:
        """The least graph among the leaves below, a renaming that gives it, and how many leaves do."""
        cell = self.undecided(color)
        if cell is None:
            return *self.leaf(color), 1
        least_below: dict = {}
        times: Counter = Counter()
        for node in cell:
            branch = self.singled_out(color, node)
            sample = self.first_leaf(branch)
            # Equal leaves below two nodes show an automorphism that takes one to the other: one search serves both.
            if sample not in least_below:
                least_below[sample] = self.search(branch)
            times[sample] += 1
        least, new, _ = min(least_below.values(), key=operator.itemgetter(0))
        ways = (times[sample] * count for sample, (graph, _, count) in least_below.items() if graph == least)
        return least, new, sum(ways)


def _ranked(key: dict) -> dict:
    """Node -> the rank of its key."""
    rank = {value: position for position, value in enumerate(sorted(set(key.values())))}
    return {node: rank[value] for node, value in key.items()}
