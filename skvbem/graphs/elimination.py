"""Junction trees: an order in which to sum out variables, and the cliques it makes.

Eliminating v joins v with its neighbors into a clique and connects these neighbors. The cost of summing a product of
factors in this order is the number of cells of the cliques: exponential in the treewidth reached, not in the number of
variables. The best order is NP-hard to find; two greedy rules are tried (fewest cells, fewest edges added), the cheaper
tree is taken. Pure combinatorics: no tables, no data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod


@dataclass(frozen=True)
class JunctionTree:
    """Cliques in an order where children stand before their parents; the last one is the root.

    Parameters
    ----------
    cliques : tuple of tuple of int
        The variables of each clique, ascending.
    parents : tuple of int
        Position of each clique's parent, -1 for the root.
    homes : tuple of int
        For each scope given, the position of a clique that contains it.
    """

    cliques: tuple[tuple[int, ...], ...]
    parents: tuple[int, ...]
    homes: tuple[int, ...]

    def separator(self, position: int) -> tuple[int, ...]:
        """The variables a clique shares with its parent, ascending; none for the root."""
        parent = self.parents[position]
        if parent < 0:
            return ()
        above = set(self.cliques[parent])
        return tuple(v for v in self.cliques[position] if v in above)

    @property
    def treewidth(self) -> int:
        """The treewidth: variables of the largest clique, less one."""
        return max(len(clique) for clique in self.cliques) - 1


def junction_tree(cardinalities: Sequence[int], scopes: Sequence[Sequence[int]]) -> JunctionTree:
    """The junction tree of a connected set of variables under factors with these scopes.

    Parameters
    ----------
    cardinalities : sequence of int
        Number of states of variables 0, 1, ...
    scopes : sequence of sequences of int
        The variables of each factor. Together they connect all variables.

    Returns
    -------
    JunctionTree
    """
    n = len(cardinalities)
    adjacent = [0] * n
    for scope in scopes:
        members = 0
        for v in scope:
            members |= 1 << v
        for v in scope:
            adjacent[v] |= members & ~(1 << v)
    everything = (1 << n) - 1
    if all(neighbors | 1 << v == everything for v, neighbors in enumerate(adjacent)):
        return JunctionTree((tuple(range(n)),), (-1,), (0,) * len(scopes))
    orders = [_eliminate(adjacent, cardinalities, fewest_edges) for fewest_edges in (False, True)]
    order, cliques = min(orders, key=lambda tried: sum(_cells(clique, cardinalities) for clique in tried[1]))
    return _tree(order, cliques, scopes)


def _members(mask: int) -> list[int]:
    members = []
    while mask:
        low = mask & -mask
        members.append(low.bit_length() - 1)
        mask ^= low
    return members


def _cells(mask: int, cardinalities: Sequence[int]) -> int:
    return prod(cardinalities[v] for v in _members(mask))


def _eliminate(
    adjacent: Sequence[int], cardinalities: Sequence[int], fewest_edges: bool
) -> tuple[list[int], list[int]]:
    """A greedy order and the clique (as a bit mask) that each elimination makes."""
    adjacent = list(adjacent)

    def cost(v: int) -> tuple[int, int]:
        clique = adjacent[v] | 1 << v
        cells = _cells(clique, cardinalities)
        if not fewest_edges:
            return cells, 0
        missing = sum((adjacent[v] & ~(adjacent[u] | 1 << u)).bit_count() for u in _members(adjacent[v]))
        return missing, cells

    costs = {v: cost(v) for v in range(len(adjacent))}
    order, cliques = [], []
    while costs:
        v = min(costs, key=lambda u: (costs[u], u))
        del costs[v]
        order.append(v)
        cliques.append(adjacent[v] | 1 << v)
        stale = adjacent[v]
        for u in _members(adjacent[v]):
            if fewest_edges:
                stale |= adjacent[u]
            adjacent[u] = (adjacent[u] | adjacent[v]) & ~(1 << u | 1 << v)
        for u in _members(stale & ~(1 << v)):
            if u in costs:
                costs[u] = cost(u)
    return order, cliques


def _tree(order: Sequence[int], cliques: list[int], scopes: Sequence[Sequence[int]]) -> JunctionTree:
    """Elimination cliques, less those contained in another, as a tree."""
    rank = {v: k for k, v in enumerate(order)}
    parent = []
    for v, clique in zip(order, cliques, strict=True):
        later = [rank[u] for u in _members(clique & ~(1 << v))]
        parent.append(min(later) if later else -1)
    children: list[set[int]] = [set() for _ in cliques]
    for k, p in enumerate(parent):
        if p >= 0:
            children[p].add(k)
    kept = set(range(len(cliques)))
    for k in range(len(cliques)):
        p = parent[k] if k in kept else -1
        while p >= 0 and cliques[p] & ~cliques[k] == 0:  # the parent is contained: take its place
            kept.discard(p)
            for c in children[p] - {k}:
                parent[c] = k
                children[k].add(c)
            parent[k] = parent[p]
            if parent[k] >= 0:
                children[parent[k]].discard(p)
                children[parent[k]].add(k)
            p = parent[k]
    root = next(k for k in kept if parent[k] < 0)
    sequence, stack = [], [root]
    while stack:
        k = stack.pop()
        sequence.append(k)
        stack.extend(sorted(children[k]))
    sequence.reverse()
    position = {k: i for i, k in enumerate(sequence)}
    masks = [cliques[k] for k in sequence]
    homes = []
    for scope in scopes:
        wanted = 0
        for v in scope:
            wanted |= 1 << v
        homes.append(next(i for i, mask in enumerate(masks) if wanted & ~mask == 0))
    return JunctionTree(
        tuple(tuple(_members(mask)) for mask in masks),
        tuple(position[parent[k]] if parent[k] >= 0 else -1 for k in sequence),
        tuple(homes),
    )
