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
        raise StructureError("The networkx graph must be directed. Got an undirected one; use networkx.DiGraph.")
    return tuple(graph.nodes), [edge[:2] for edge in graph.edges]


def write_networkx(nodes: Iterable[Hashable], edges: Iterable[tuple[Hashable, Hashable]]):
    """The networkx.DiGraph with these nodes and edges; ImportError without networkx."""
    try:
        import networkx
    except ImportError as error:
        raise ImportError("DAG.to_networkx needs networkx. Install it with: pip install networkx") from error
    graph = networkx.DiGraph()
    graph.add_nodes_from(nodes)
    graph.add_edges_from(edges)
    return graph
