"""Edges as pictures of networks show them: how strong they are, and those that a posterior over structures adds."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.special import xlogy

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


def pair_information(dag, tables: Mapping, counts: Mapping) -> dict:
    """I(child; parent) of every edge, nats, where the parents' states occur as counted."""
    information = {}
    for child in dag.nodes:
        frequencies = _frequencies_of_parents(counts[child])
        joint = frequencies * np.asarray(tables[child])
        for axis, parent in enumerate(dag.parents(child)):
            pair = joint.sum(axis=tuple(k for k in range(joint.ndim - 1) if k != axis))
            independent = pair.sum(axis=0, keepdims=True) * pair.sum(axis=1, keepdims=True)
            information[parent, child] = max(float((xlogy(pair, pair) - xlogy(pair, independent)).sum()), 0.0)
    return information


def edge_information(dag, tables: Mapping, counts: Mapping) -> dict:
    """I(child; parent | the other parents) of every edge, nats, where the parents' states occur as counted."""
    information = {}
    for child in tables:
        parents = dag.parents(child)
        if not parents:
            continue
        table = np.asarray(tables[child])
        frequencies = _frequencies_of_parents(counts[child])
        joint = frequencies * table
        for axis, parent in enumerate(parents):
            rest = frequencies.sum(axis=axis, keepdims=True)
            without = joint.sum(axis=axis, keepdims=True) / np.where(rest > 0, rest, 1.0)
            nats = xlogy(joint, table).sum() - xlogy(joint, without).sum()
            information[parent, child] = max(float(nats), 0.0)
    return information


def _frequencies_of_parents(counts) -> np.ndarray:
    """p(states of the parents) as counted, all alike if nothing is."""
    total = np.asarray(counts).sum(axis=-1, keepdims=True)
    return total / total.sum() if total.sum() > 0 else np.full_like(total, 1.0 / total.size)
