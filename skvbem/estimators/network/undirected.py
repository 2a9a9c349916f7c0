r"""Undirected structures: the perfect graph that is fitted in their place, and the priors under which it may be.

The evidence of a decomposable Markov network belongs to the network, whatever directed graph is fitted, if all tables
have priors that are margins of one table of concentrations (a hyper Dirichlet law, Dawid & Lauritzen 1993): then

.. math:: \ln p(y) = \sum_C \ln \mathrm{DM}(n_C; \lambda_C) - \sum_S \ln \mathrm{DM}(n_S; \lambda_S),

C the cliques, S the separators, DM the Dirichlet-multinomial probability of rows. BDeu is the case of equal cells
(Heckerman, Geiger & Chickering 1995).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import lru_cache

import numpy as np

from skvbem.graphs.dag import DAG
from skvbem.graphs.undirected import UndirectedGraph

# By how much margins may differ, relative to their size.
_TOLERANCE = 1e-9


def perfect_dag(graph: UndirectedGraph, nodes: tuple, observed: Mapping[Hashable, float] | None) -> DAG:
    """The directed graph that is fitted for an undirected one, its nodes in a given order.

    A node that is missing in a row costs nothing if none of its children is observed there, so that nodes with much
    observed weight come first, and hidden nodes last, as far as perfect orders go.

    Parameters
    ----------
    graph : UndirectedGraph
    nodes : tuple
    observed : mapping of node to float, or None
        Weight of the rows in which a node is observed.
    """
    return _perfect_dag(graph, nodes, tuple((observed or {}).items()))


@lru_cache(maxsize=4096)  # a search asks for the same ones again and again
def _perfect_dag(graph: UndirectedGraph, nodes: tuple, observed: tuple) -> DAG:
    return DAG.from_chordal(graph.reorder(nodes), dict(observed))


def check_is_hyper_dirichlet(
    dag: DAG, given: object, concentrations: Callable[[tuple], np.ndarray], owner: str
) -> None:
    """Raise a ValueError unless the priors of a perfect graph are margins of one table.

    Parameters
    ----------
    dag : DAG
    given : float, str or mapping
        The `prior` parameter.
    concentrations : callable
        Family (*parents, node) -> its concentrations.
    owner : str
    """
    if given == "bdeu":
        return
    whose = f"An undirected 'structure' of {owner} needs prior='bdeu', or tables that are margins of one table."
    if not isinstance(given, Mapping):
        raise ValueError(
            f"{whose} Got prior={given!r}, under which the evidence depends on directions that such a graph does not "
            "have."
        )
    place = {node: position for position, node in enumerate(dag.topological_order())}
    total = None
    for node in place:
        parents = dag.parents(node)
        of_parents = concentrations(dag.family(node)).sum(axis=-1)
        if parents:
            last = max(parents, key=place.__getitem__)
            whole, axes = concentrations(dag.family(last)), dag.family(last)
            expected = _margin(whole, axes, parents)
        else:
            expected = total = of_parents if total is None else total
        if not np.allclose(of_parents, expected, rtol=_TOLERANCE, atol=0.0):
            margin = f"over {', '.join(map(repr, parents))}" if parents else "in total"
            raise ValueError(
                f"{whose} The table of node {node!r} gives {np.asarray(of_parents).ravel().tolist()!r:.60} {margin}, "
                f"and other tables {np.asarray(expected).ravel().tolist()!r:.60}."
            )


def _margin(table: np.ndarray, axes: tuple, kept: tuple) -> np.ndarray:
    """The sum of a table over all axes but some, which stand in the order given."""
    summed = table.sum(axis=tuple(k for k, node in enumerate(axes) if node not in kept))
    rest = [node for node in axes if node in kept]
    return summed.transpose([rest.index(node) for node in kept])
