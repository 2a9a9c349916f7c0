"""Graphs as those of networkx, which is imported when a graph is written."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from skvbem.errors import StructureError


def read_networkx(graph) -> tuple[tuple, list[tuple[Hashable, Hashable]]]:
    """The nodes and the (parent, child) edges of a directed networkx graph, in its order.

    Raises
    ------
    StructureError
        If the graph is not directed.
    """
    if not graph.is_directed():
        raise StructureError(
            "The networkx graph must be directed. Got an undirected one. Use networkx.DiGraph, or DAG.from_chordal."
        )
    return tuple(graph.nodes), [edge[:2] for edge in graph.edges]


def read_undirected_networkx(graph) -> tuple[tuple, list[tuple[Hashable, Hashable]]]:
    """The nodes and the edges of an undirected networkx graph, in its order, each edge once.

    Raises
    ------
    StructureError
        If the graph is directed.
    """
    if graph.is_directed():
        raise StructureError("The networkx graph must be undirected. Got a directed one; use networkx.Graph.")
    once = {frozenset(edge[:2]): edge[:2] for edge in graph.edges}
    return tuple(graph.nodes), list(once.values())


def write_networkx(nodes: Iterable[Hashable], edges: Iterable[tuple[Hashable, Hashable]]):
    """The networkx.DiGraph with these nodes and edges; ImportError without networkx."""
    return _written("DAG", "DiGraph", nodes, edges)


def write_undirected_networkx(nodes: Iterable[Hashable], edges: Iterable[tuple[Hashable, Hashable]]):
    """The networkx.Graph with these nodes and edges; ImportError without networkx."""
    return _written("UndirectedGraph", "Graph", nodes, edges)


def _written(owner: str, kind: str, nodes: Iterable[Hashable], edges: Iterable[tuple[Hashable, Hashable]]):
    try:
        import networkx
    except ImportError as error:
        raise ImportError(f"{owner}.to_networkx needs networkx. Install it with: pip install networkx") from error
    graph = getattr(networkx, kind)()
    graph.add_nodes_from(nodes)
    graph.add_edges_from(edges)
    return graph
