"""Essential graphs: what all directed graphs of one Markov equivalence class have in common.

Two directed graphs allow the same distributions if and only if they have the same edges apart from directions, and the
same *immoralities* a -> c <- b with no edge between a and b (Verma & Pearl 1990). The essential graph of a class, or
completed partially directed graph (CPDAG), has an arrow where all members agree on the direction, and a line where they
do not. Arrows that follow from immoralities, and from directions that are known, are found by rules (Meek 1995, Causal
inference and causal explanation with background knowledge).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from itertools import combinations, permutations

from skvbem._tabular import html_table
from skvbem.graphs.canonical import canonical_renaming

__all__ = ["EssentialGraph"]


class EssentialGraph:
    """The essential graph of a Markov equivalence class, equal for all of its directed graphs. See `DAG.essential`.

    Parameters
    ----------
    nodes : iterable of hashable
    arrows : iterable of (parent, child)
        Edges on whose direction all members of the class agree.
    lines : iterable of (node, node)
        Edges that have either direction in some member.

    Attributes
    ----------
    nodes : tuple
    arrows : tuple of (parent, child)
    lines : tuple of (node, node)
        The end that is the earlier node first.

    Examples
    --------
    >>> from skvbem.graphs.dag import DAG
    >>> DAG.from_string("[a][b|a][c|b]").essential() == DAG.from_string("[a|b][b|c][c]").essential()
    True
    >>> print(DAG.from_string("[a][b][c|a:b][d|c]").essential())
    a -> c, b -> c, c -> d
    """

    def __init__(self, nodes: Iterable[Hashable], arrows: Iterable[tuple], lines: Iterable[tuple]):
        self.nodes = tuple(nodes)
        place = {node: position for position, node in enumerate(self.nodes)}

        def places(edge: tuple) -> list[int]:
            return [place[node] for node in edge]

        self.arrows = tuple(sorted(map(tuple, arrows), key=places))
        self.lines = tuple(sorted((tuple(sorted(line, key=place.__getitem__)) for line in lines), key=places))

    @classmethod
    def of(cls, dag, known: Iterable[tuple] = (), numbers: Iterable[Hashable] = ()) -> EssentialGraph:
        """The essential graph of the class of a DAG, or of those of the class that have some known edges of it.

        Nodes that are `numbers` have no children among others in any member: edges from others to them are known.
        """
        among = set(numbers)
        known = [*known, *((parent, child) for parent, child in dag.edges if child in among and parent not in among)]
        neighbors = {node: {*dag.parents(node), *dag.children(node)} for node in dag.nodes}
        arrows = {(parent, child) for one, child, other in immoralities(dag) for parent in (one, other)}
        arrows |= set(dag.edges).intersection(map(tuple, known))
        lines = {frozenset(edge) for edge in dag.edges if edge not in arrows}
        while new := {
            edge for line in lines for edge in permutations(line) if _follows(edge, neighbors, arrows, lines)
        }:
            arrows |= new
            lines -= {frozenset(edge) for edge in new}
        return cls(dag.nodes, arrows, map(tuple, lines))

    def relabel(self, mapping: Mapping[Hashable, Hashable]) -> EssentialGraph:
        """The graph with nodes renamed as `mapping` (old -> new) says."""
        return self._renamed(mapping, [mapping.get(node, node) for node in self.nodes])

    def canonical(self, hidden: Mapping[Hashable, Hashable]) -> EssentialGraph:
        """The one graph that stands for all that differ by a permutation of hidden nodes, as in `DAG.canonical`."""
        renaming, _ = canonical_renaming(_BothWays(self), hidden)
        return self._renamed(renaming, self.nodes)

    def _renamed(self, mapping: Mapping, nodes: Iterable[Hashable]) -> EssentialGraph:
        def renamed(edges: Iterable[tuple]) -> list[tuple]:
            return [(mapping.get(a, a), mapping.get(b, b)) for a, b in edges]

        return EssentialGraph(nodes, renamed(self.arrows), renamed(self.lines))

    def _key(self) -> tuple:
        return frozenset(self.nodes), frozenset(self.arrows), frozenset(map(frozenset, self.lines))

    def __eq__(self, other):
        return self._key() == other._key() if isinstance(other, EssentialGraph) else NotImplemented

    def __hash__(self):
        return hash(self._key())

    def __str__(self):
        edges = [*(f"{a} -> {b}" for a, b in self.arrows), *(f"{a} - {b}" for a, b in self.lines)]
        return ", ".join(edges) or "no edges"

    def _repr_html_(self):
        edges = [*((a, "→", b) for a, b in self.arrows), *((a, "–", b) for a, b in self.lines)]
        return html_table(
            (),
            [[*map(str, edge)] for edge in edges],
            caption=f"{len(edges)} edges",
            align="left",
            where_all="`arrows` and `lines` have all",
        )

    def __repr__(self):
        return f"EssentialGraph({list(self.nodes)!r}, arrows={list(self.arrows)!r}, lines={list(self.lines)!r})"


class _BothWays:
    """An essential graph with each of its lines in both directions, which has the same symmetries."""

    def __init__(self, graph: EssentialGraph):
        self.nodes = graph.nodes
        self.edges = [*graph.arrows, *graph.lines, *((b, a) for a, b in graph.lines)]
        self._sides: tuple[dict, dict] = ({node: [] for node in graph.nodes}, {node: [] for node in graph.nodes})
        for a, b in self.edges:
            self._sides[0][a].append(b)
            self._sides[1][b].append(a)

    def children(self, node) -> list:
        """The nodes that an edge leads to."""
        return self._sides[0][node]

    def parents(self, node) -> list:
        """The nodes that an edge comes from."""
        return self._sides[1][node]


def immoralities(dag) -> frozenset[tuple]:
    """The triples (one, child, other) of a DAG: two parents without an edge between them, the earlier node first."""
    return frozenset(
        (one, child, other)
        for child in dag.nodes
        for one, other in combinations(dag.parents(child), 2)
        if one not in dag.parents(other) and other not in dag.parents(one)
    )


def _follows(edge: tuple, neighbors: Mapping, arrows: set, lines: set) -> bool:
    """True if a line must have this direction, lest a cycle close or an immorality appear [Meek 1995, rules 1-4]."""
    a, b = edge
    into_b = {c for c in neighbors[b] if (c, b) in arrows}
    if any((c, a) in arrows and c not in neighbors[b] for c in neighbors[a]):
        return True
    if any((a, c) in arrows for c in into_b):
        return True
    linked = [c for c in into_b if frozenset((a, c)) in lines]
    if any(d not in neighbors[c] for c, d in combinations(linked, 2)):
        return True
    before = [(c, d) for c in into_b & neighbors[a] for d in neighbors[c] if (d, c) in arrows]
    return any(frozenset((a, d)) in lines and d not in neighbors[b] for _, d in before)
