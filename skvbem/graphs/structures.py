"""Structures as users give them: directed graphs, or undirected ones."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from skvbem.graphs.dag import DAG
from skvbem.graphs.undirected import UndirectedGraph, is_undirected

__all__ = ["coerce_structure"]


def coerce_structure(structure, nodes: Iterable[Hashable] = ()) -> DAG | UndirectedGraph:
    """The graph that `structure` describes, with those of `nodes` that it lacks added at the end, without edges.

    Parameters
    ----------
    structure : UndirectedGraph, networkx.Graph, or what `DAG.coerce` takes
    nodes : iterable of hashable

    Raises
    ------
    TypeError
        If it is no structure.
    StructureError
        If it is directed and has a cycle.
    """
    kind: type[DAG] | type[UndirectedGraph] = UndirectedGraph if is_undirected(structure) else DAG
    return kind.coerce(structure, nodes)
