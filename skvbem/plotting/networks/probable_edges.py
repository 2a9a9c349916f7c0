"""The graph of the edges that are probable, given what a posterior over structures says of each."""

from __future__ import annotations

from collections.abc import Mapping

from skvbem.errors import StructureError
from skvbem.graphs.dag import DAG


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
