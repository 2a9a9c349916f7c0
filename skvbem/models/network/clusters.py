r"""Clusters of hidden nodes that keep their joint posterior, q(x) being a product over them [Xing et al. 2003].

A cluster is summed exactly by a junction tree of its own, over the scopes of families cut down to it. Clusters are
joined greedily while their trees fit: nodes with an edge between them first, since cutting such an edge costs most,
then those whose joining is known to gain most.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod

from skvbem.graphs.elimination import junction_tree
from skvbem.models.network.layout import Layout


@dataclass(frozen=True)
class Partition:
    """Disjoint clusters of nodes that may be hidden.

    Parameters
    ----------
    clusters : tuple of tuple of int
        Positions of nodes.
    joins_others : bool, default=False
        Whether a hidden node of no cluster goes with the clusters around it; else it is a cluster of its own.
    exact_where_it_fits : bool, default=False
        Whether hidden parts whose own junction tree fits are not divided.
    rows_alone : bool, default=False
        Whether each divided row is a context of its own, as often as it counts: it has hidden states of its own then.
    """

    clusters: tuple[tuple[int, ...], ...] = ()
    joins_others: bool = False
    exact_where_it_fits: bool = False
    rows_alone: bool = False

    def parts(self, scopes: Sequence[Collection[int]], hidden: Sequence[int]) -> list[tuple[int, ...]]:
        """The hidden nodes of a row, cluster by cluster, each connected by scopes; by lowest node.

        Parameters
        ----------
        scopes : sequence of collections of int
            Hidden nodes of each family.
        hidden : sequence of int
        """
        label = self._labels(scopes, hidden)
        cut = [[m for m in scope if label[m] == k] for scope in scopes for k in {label[m] for m in scope}]
        return sorted(tuple(sorted(part)) for part in connected(cut, hidden))

    def _labels(self, scopes: Sequence[Collection[int]], hidden: Sequence[int]) -> dict[int, int]:
        """A number of the cluster of each hidden node."""
        among = set(hidden)
        label = {node: k for k, cluster in enumerate(self.clusters) for node in cluster if node in among}
        left = [node for node in hidden if node not in label]
        if self.joins_others:
            while left:
                labels = [(min((label[m] for s in scopes if node in s for m in s if m in label), default=-1), node)
                         for node in left]  # fmt: skip
                if all(k < 0 for k, _ in labels):
                    return label | dict.fromkeys(left, len(self.clusters))
                label |= {node: k for k, node in labels if k >= 0}
                left = [node for node in left if node not in label]
        return label | {node: len(self.clusters) + j for j, node in enumerate(left)}


def connected(scopes: Iterable[Collection[int]], nodes: Iterable[int]) -> list[set[int]]:
    """The connected components of nodes that share scopes."""
    groups: list[set[int]] = []
    for scope in [*map(set, scopes), *({node} for node in nodes)]:
        if scope:
            others = [group for group in groups if group.isdisjoint(scope)]
            groups = [*others, scope.union(*(group for group in groups if not group.isdisjoint(scope)))]
    return groups


def largest_clique(cardinalities: Sequence[int], scopes: Iterable[Collection[int]], nodes: Collection[int]) -> int:
    """Cells of the largest clique of the junction tree of some nodes, under scopes cut down to them."""
    return max(
        _largest_of_tree(cardinalities, scopes, sorted(group)) for group in connected(_cut(scopes, nodes), nodes)
    )


def _cut(scopes: Iterable[Collection[int]], nodes: Collection[int]) -> list[tuple[int, ...]]:
    among = set(nodes)
    return sorted({tuple(sorted(among.intersection(scope))) for scope in scopes} - {()})


def _largest_of_tree(cardinalities: Sequence[int], scopes: Iterable[Collection[int]], nodes: Sequence[int]) -> int:
    variable = {node: v for v, node in enumerate(nodes)}
    sizes = [cardinalities[node] for node in nodes]
    cut = [[variable[node] for node in scope] for scope in _cut(scopes, nodes)]
    return max(prod(sizes[v] for v in clique) for clique in junction_tree(sizes, cut).cliques)


def joined(
    layout: Layout,
    hidden: Collection[int],
    max_table_cells: float,
    gains: Mapping[tuple[int, int], float] | None = None,
) -> tuple[tuple[int, ...], ...]:
    """Clusters of nodes that may be hidden, joined pair by pair while the junction tree of each fits.

    Best first: an edge between the two nodes, a larger gain, more families that both are in, fewer cells, lower
    positions.

    Parameters
    ----------
    layout : Layout
    hidden : collection of int
    max_table_cells : float
        Most cells of a clique.
    gains : mapping of (int, int) to float, optional
        Pair of nodes, in order -> what joining them gains; 0 by default.
    """
    among, sizes, gains = set(hidden), layout.cardinalities, gains or {}
    scopes = hidden_scopes(layout, among)
    shared = pairs_that_share(scopes)

    def rank(pair: tuple[int, int]) -> tuple:
        a, b = pair
        has_edge = a in layout.parents[b] or b in layout.parents[a]
        return not has_edge, -gains.get(pair, 0.0), -shared[pair], sizes[a] * sizes[b], pair

    cluster_of: dict[int, tuple[int, ...]] = {node: (node,) for node in sorted(among)}
    too_large: list[set[int]] = []
    for a, b in sorted(shared, key=rank):
        both = tuple(sorted({*cluster_of[a], *cluster_of[b]}))
        if cluster_of[a] == cluster_of[b] or any(each.issubset(both) for each in too_large):
            continue
        if largest_clique(sizes, scopes, both) <= max_table_cells:
            cluster_of |= dict.fromkeys(both, both)
        else:
            too_large.append(set(both))
    return tuple(sorted(set(cluster_of.values())))


def hidden_scopes(layout: Layout, hidden: Collection[int]) -> list[set[int]]:
    """The nodes of each family that may be hidden, where there are any."""
    among = set(hidden)
    return [scope for scope in ({m for m in strides if m in among} for strides in layout.strides) if scope]


def pairs_that_share(scopes: Iterable[Collection[int]]) -> dict[tuple[int, int], int]:
    """Pair of nodes, in order -> the number of scopes that both are in."""
    shared: dict[tuple[int, int], int] = {}
    for scope in scopes:
        for pair in combinations(sorted(scope), 2):
            shared[pair] = shared.get(pair, 0) + 1
    return shared


def leaves_a_choice(layout: Layout, hidden: Collection[int], clusters: Iterable[Collection[int]]) -> bool:
    """True if nodes of different clusters share a family without an edge between them."""
    cluster_of = {node: k for k, cluster in enumerate(clusters) for node in cluster}
    return any(
        cluster_of[a] != cluster_of[b] and a not in layout.parents[b] and b not in layout.parents[a]
        for a, b in pairs_that_share(hidden_scopes(layout, hidden))
    )
