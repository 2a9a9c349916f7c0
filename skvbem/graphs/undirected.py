r"""Undirected graphs as immutable values: the structures of Markov networks.

A Markov network whose graph is chordal is *decomposable*: its distribution is that of any directed graph with the same
edges and no two parents without an edge between them, so that all that is known of directed networks holds for it.

A graph is chordal if each of its cycles of four nodes or more has a chord, an edge between two nodes that are not
neighbors on the cycle. That is so if and only if the nodes have a *perfect* order, in which the earlier neighbors of
each node are all neighbors of each other. Maximum cardinality search (Tarjan & Yannakakis 1984, Simple linear-time
algorithms to test chordality of graphs) finds one: each next node has the most neighbors so far. With C the maximal
cliques of such a graph and S its separators, :math:`p(x) = \prod_C p(x_C) / \prod_S p(x_S)`.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence, Set
from itertools import combinations

from skvbem._arguments import check_mapping, checked_names
from skvbem._lazy import cached_property
from skvbem._names import did_you_mean, shown
from skvbem.errors import StructureError
from skvbem.graphs.canonical import canonical_renaming
from skvbem.graphs.conversions import as_html, read_undirected_networkx, write_undirected_networkx

__all__ = ["UndirectedGraph"]

Neighbors = Mapping[Hashable, frozenset]


class UndirectedGraph:
    """An undirected graph: named nodes and edges without a direction.

    Graphs are immutable. Two graphs are equal, and hash alike, when they have the same nodes and the same edges, in
    whatever order these were given. The order of the nodes decides only the order in which things are listed.

    Parameters
    ----------
    nodes : iterable of hashable
        The names of the nodes, in order.
    edges : iterable of (node, node)
        Each edge once, its ends in either order.

    Attributes
    ----------
    nodes : tuple
        The names, in the order given.
    edges : tuple of (node, node)
        All edges, the end that is the earlier node first, in the order of the nodes.

    Raises
    ------
    StructureError
        If a node or an edge is given twice, if an edge joins a node to itself or meets an unknown node.

    See Also
    --------
    DAG.from_chordal : a directed graph for the same distributions.

    Examples
    --------
    >>> from skvbem.graphs.undirected import UndirectedGraph
    >>> graph = UndirectedGraph(["admitted", "department", "sex"], [("admitted", "department"), ("department", "sex")])
    >>> graph.is_chordal, graph.cliques, graph.separators
    (True, (('admitted', 'department'), ('department', 'sex')), {('department',): 1})
    >>> print(graph)
    [admitted department][department sex]
    >>> UndirectedGraph(range(4), [(0, 1), (1, 2), (2, 3), (3, 0)]).chordless_cycle()
    (0, 1, 2, 3)
    """

    def __init__(self, nodes: Iterable[Hashable], edges: Iterable[Iterable[Hashable]] = ()):
        if isinstance(nodes, str):
            raise TypeError(f"nodes must be an iterable of names. Got the str {nodes!r} instead.")
        names = checked_names("nodes", "UndirectedGraph", nodes)
        neighbors: dict = {node: set() for node in names}
        if len(neighbors) < len(names):
            raise StructureError(f"Node {shown(Counter(names).most_common(1)[0][0])} is named twice. Name each once.")
        for edge in edges:
            a, b = _ends(edge)
            for node in (a, b):
                if node not in neighbors:
                    raise StructureError(
                        f"The edge {a} - {b} meets {shown(node)}, which is not a node.{did_you_mean(node, names)}"
                    )
            if a == b:
                raise StructureError(f"The edge {a} - {b} joins a node to itself. Leave it out.")
            if b in neighbors[a]:
                raise StructureError(f"The edge {a} - {b} is given twice. Give each edge once.")
            neighbors[a].add(b)
            neighbors[b].add(a)
        place = {node: position for position, node in enumerate(names)}
        pairs = sorted((place[a], place[b]) for a in names for b in neighbors[a] if place[a] < place[b])
        for name, value in (
            ("nodes", names),
            ("edges", tuple((names[i], names[j]) for i, j in pairs)),
            ("_neighbors", {node: frozenset(others) for node, others in neighbors.items()}),
        ):
            vars(self)[name] = value

    nodes: tuple
    edges: tuple
    _neighbors: dict

    @classmethod
    def from_networkx(cls, graph) -> UndirectedGraph:
        """The graph with the nodes and edges of an undirected networkx graph, in its order, without attributes."""
        return cls(*read_undirected_networkx(graph))

    @classmethod
    def coerce(cls, graph, nodes: Iterable[Hashable] = ()) -> UndirectedGraph:
        """The graph that `graph` describes, with those of `nodes` that it lacks added at the end, without edges.

        Parameters
        ----------
        graph : UndirectedGraph, undirected networkx graph or iterable of (node, node)
        nodes : iterable of hashable

        Raises
        ------
        TypeError
            If it is none of these.
        """
        nodes = checked_names("nodes", "coerce", nodes)
        if is_undirected(graph):
            return (graph if isinstance(graph, cls) else cls.from_networkx(graph)).with_nodes(nodes)
        if hasattr(graph, "is_directed") or isinstance(graph, (str, Mapping)) or not isinstance(graph, Iterable):
            raise TypeError(
                "An undirected graph must be an UndirectedGraph, an undirected networkx graph or an iterable of edges "
                f"(node, node). Got {shown(graph)} instead."
            )
        edges = [_ends(edge) for edge in graph] if getattr(graph, "ndim", 2) else [_ends(graph)]
        return cls(dict.fromkeys(node for edge in edges for node in edge), edges).with_nodes(nodes)

    def neighbors(self, node: Hashable) -> tuple:
        """The nodes that share an edge with `node`, in the order of the nodes."""
        if not isinstance(node, Hashable) or node not in self._neighbors:
            raise StructureError(f"{shown(node)} is not a node of the graph.{did_you_mean(node, self.nodes)}")
        return self._in_order(self._neighbors[node])

    @cached_property
    def is_chordal(self) -> bool:
        """True if every cycle of four nodes or more has a chord, so that the Markov network is decomposable."""
        return is_perfect(self._search_order, self._neighbors)

    def chordless_cycle(self) -> tuple:
        """The nodes of a cycle of four or more without a chord, in its order; empty if the graph is chordal."""
        return () if self.is_chordal else find_chordless_cycle(self.nodes, self._neighbors)

    def check_chordal(self) -> None:
        """Raise a StructureError, which names a cycle without a chord and an edge that breaks it, if there is one."""
        if cycle := self.chordless_cycle():
            around = " - ".join(map(str, (*cycle, cycle[0])))
            raise StructureError(
                f"The undirected graph must be chordal. Its cycle {around} has no chord. Only decomposable networks "
                f"have an evidence in closed form: add an edge such as {cycle[0]} - {cycle[2]}, or give a DAG."
            )

    def perfect_order(self, priority: Mapping[Hashable, float] | None = None) -> tuple:
        """The nodes in an order of maximum cardinality search: the earlier neighbors of each are a clique.

        Parameters
        ----------
        priority : mapping of node to float, optional
            Among nodes that might come next, the largest number comes first (nodes without one have 0).

        Raises
        ------
        StructureError
            If the graph is not chordal.
        """
        self.check_chordal()
        if priority is not None:
            check_mapping("priority", "a chordal graph", priority, "{'a': 1.0}")
        return tuple(search_order(self.nodes, self._neighbors, priority) if priority else self._search_order)

    @cached_property
    def cliques(self) -> tuple[tuple, ...]:
        """The maximal cliques of a chordal graph, each in the order of the nodes; StructureError if it is none."""
        self.check_chordal()
        cliques = [clique for clique, _ in cliques_and_separators(self._search_order, self._neighbors)]
        return tuple(sorted(map(self._in_order, cliques), key=self._places))

    @cached_property
    def separators(self) -> dict[tuple, int]:
        """Separator -> its multiplicity, of a chordal graph; the empty one between unconnected parts is left out."""
        self.check_chordal()
        counts = Counter(
            self._in_order(separator)
            for _, separator in cliques_and_separators(self._search_order, self._neighbors)
            if separator
        )
        return {separator: counts[separator] for separator in sorted(counts, key=self._places)}

    def with_nodes(self, extra: Iterable[Hashable]) -> UndirectedGraph:
        """The graph with those of the `extra` nodes that it lacks added at the end, without edges."""
        nodes = tuple(dict.fromkeys((*self.nodes, *checked_names("extra", "with_nodes", extra))))
        return self if nodes == self.nodes else UndirectedGraph(nodes, self.edges)

    def reorder(self, nodes: Iterable[Hashable]) -> UndirectedGraph:
        """An equal graph whose nodes are listed in the order of `nodes`."""
        nodes = checked_names("nodes", "reorder", nodes)
        if Counter(nodes) != Counter(self.nodes):
            raise StructureError(f"reorder needs each node of the graph once: {shown(self.nodes)}. Got {shown(nodes)}.")
        return UndirectedGraph(nodes, self.edges)

    def relabel(self, mapping: Mapping[Hashable, Hashable]) -> UndirectedGraph:
        """The graph with nodes renamed as `mapping` (old -> new) says; each keeps its place in the order."""
        check_mapping("mapping", "relabel", mapping, "{'old': 'new'}")
        for node in mapping:
            self.neighbors(node)
        return self._renamed(mapping, [mapping.get(node, node) for node in self.nodes])

    def canonical(self, hidden: Mapping[Hashable, Hashable]) -> UndirectedGraph:
        """The one graph that stands for all that differ by a permutation of hidden nodes of equal kind.

        Parameters
        ----------
        hidden : mapping
            Hidden node -> its kind, see `DAG.canonical`.
        """
        renaming, _ = self._canonical_renaming(hidden)
        return self._renamed(renaming, self.nodes)

    def n_automorphisms(self, hidden: Mapping[Hashable, Hashable]) -> int:
        """The number of permutations of hidden nodes within their kinds that leave the graph unchanged.

        Parameters
        ----------
        hidden : mapping
            Hidden node -> its kind, see `DAG.canonical`.
        """
        return self._canonical_renaming(hidden)[1]

    def _canonical_renaming(self, hidden) -> tuple[dict, int]:
        check_mapping("hidden", "UndirectedGraph", hidden, "{'h': 2}")
        for node in hidden:
            self.neighbors(node)
        return canonical_renaming(_BothWays(self), hidden)

    def to_networkx(self):
        """A networkx.Graph with the same nodes and edges. Needs networkx."""
        return write_undirected_networkx(self.nodes, self.edges)

    @cached_property
    def _search_order(self) -> tuple:
        return tuple(search_order(self.nodes, self._neighbors, {}))

    @cached_property
    def _place(self) -> dict:
        return {node: position for position, node in enumerate(self.nodes)}

    def _in_order(self, nodes: Iterable[Hashable]) -> tuple:
        return tuple(sorted(nodes, key=self._place.__getitem__))

    def _places(self, nodes: Iterable[Hashable]) -> list:
        return [self._place[node] for node in nodes]

    def _renamed(self, mapping: Mapping, nodes: Iterable[Hashable]) -> UndirectedGraph:
        return UndirectedGraph(nodes, [(mapping.get(a, a), mapping.get(b, b)) for a, b in self.edges])

    @cached_property
    def _key(self) -> tuple:
        return frozenset(self.nodes), frozenset(map(frozenset, self.edges))

    def __eq__(self, other):
        return self._key == other._key if isinstance(other, UndirectedGraph) else NotImplemented

    def __hash__(self):
        return hash(self._key)

    def __str__(self):
        members = (
            self.cliques if self.is_chordal else (*self.edges, *((n,) for n in self.nodes if not self._neighbors[n]))
        )
        return "".join(f"[{' '.join(map(str, clique))}]" for clique in members)

    def __repr__(self):
        return f"UndirectedGraph({list(self.nodes)!r}, {list(self.edges)!r})"

    def _repr_html_(self):
        neighbors = {node: [other for other in self.nodes if other in self._neighbors[node]] for node in self.nodes}
        return as_html(self.nodes, neighbors, "neighbors")

    def __reduce__(self):
        return UndirectedGraph, (self.nodes, self.edges)

    def __setattr__(self, name, value):
        raise AttributeError("An UndirectedGraph cannot be changed. relabel, with_nodes and reorder return new ones.")


def is_undirected(structure) -> bool:
    """True if this is an undirected graph, of this library or of networkx."""
    if isinstance(structure, UndirectedGraph):
        return True
    return all(hasattr(structure, name) for name in ("is_directed", "nodes", "edges")) and not structure.is_directed()


class _BothWays:
    """An undirected graph with each of its edges in both directions, which has the same symmetries."""

    def __init__(self, graph: UndirectedGraph):
        self.nodes = graph.nodes
        self.edges = [*graph.edges, *((b, a) for a, b in graph.edges)]
        self.children = self.parents = graph.neighbors


def _ends(edge) -> tuple:
    if isinstance(edge, (str, Set)) or not isinstance(edge, Iterable) or len(ends := tuple(edge)) != 2:
        raise TypeError(f"Each edge of an undirected graph must be a pair (node, node). Got {shown(edge)} instead.")
    return checked_names("graph", "UndirectedGraph", ends)


# Chordal graphs -------------------------------------------------------------------------------------------------------


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
    """True if the earlier neighbors of each node are neighbors of each other."""
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
