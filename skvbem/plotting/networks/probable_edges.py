"""The graph of the edges that are probable, given what a posterior over structures says of each."""

from __future__ import annotations

from collections.abc import Mapping

from skvbem.errors import StructureError
from skvbem.graphs.dag import DAG
from skvbem.graphs.undirected import UndirectedGraph


def with_probable_edges(best: DAG, probabilities: Mapping[tuple, float], least: float) -> tuple[DAG, list, list]:
    """The best structure joined with the probable edges of others.

    Parameters
    ----------
    best : DAG
    probabilities : mapping of (parent, child) to float
    least : float
        Edges of less probability are left out.

    Returns
    -------
    dag : DAG
        The best structure and the others' edges, the most probable first, as far as no cycle closes.
    added : list of (parent, child)
        Edges of `dag` that the best structure has not.
    left_out : list of (parent, child)
        Those that would close a cycle.
    """
    others = [edge for edge, share in probabilities.items() if share >= least and edge not in best.edges]
    dag, added, left_out = best, [], []
    for edge in sorted(others, key=lambda edge: -probabilities[edge]):
        try:
            dag = DAG.from_edges([*dag.edges, edge], dict.fromkeys((*dag.nodes, *edge)))
            added.append(edge)
        except StructureError:
            left_out.append(edge)
    return dag, added, left_out


def with_probable_lines(
    best: UndirectedGraph, probabilities: Mapping[tuple, float], least: float
) -> tuple[DAG, list, list]:
    """The best undirected structure joined with the probable edges of others, each edge in the order of the nodes.

    Parameters
    ----------
    best : UndirectedGraph
    probabilities : mapping of (node, node) to float
        The same for either order of the ends.
    least : float
        Edges of less probability are left out.

    Returns
    -------
    dag : DAG
        In which every edge leads from an earlier to a later node.
    added : list of (node, node)
        Edges of `dag` that the best structure has not.
    left_out : list
        None.
    """
    graph = best.with_nodes(node for edge in probabilities for node in edge)
    place = {node: k for k, node in enumerate(graph.nodes)}
    added = [
        edge
        for edge, share in probabilities.items()
        if share >= least and edge not in graph.edges and place[edge[0]] < place[edge[1]]
    ]
    return layered(UndirectedGraph(graph.nodes, [*graph.edges, *added])), added, []


def layered(graph: UndirectedGraph) -> DAG:
    """The directed graph by which an undirected one is drawn: edges lead from earlier to later nodes."""
    return DAG.from_edges(graph.edges, graph.nodes)
