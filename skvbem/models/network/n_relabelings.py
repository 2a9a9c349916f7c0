"""The number of relabelings of a network with hidden nodes, also where they are too many to list."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from math import lgamma, log

import numpy as np

from skvbem.capabilities import Relabelings
from skvbem.errors import TooLargeError
from skvbem.graphs.dag import DAG


def log_n_relabelings(
    dag: DAG, tables: Mapping[Hashable, np.ndarray], hidden: Sequence, relabelings: Relabelings | None
) -> float:
    """ln of the number of relabelings of hidden nodes and their states that leave graph and prior as they are.

    Parameters
    ----------
    dag : DAG
    tables : mapping of node to ndarray
        Prior concentrations, axes (*parents, node).
    hidden : sequence
        Hidden nodes with observed descendants.
    relabelings : Relabelings or None
        The relabelings of these nodes if they could be listed one by one.

    Raises
    ------
    TooLargeError
        If they could not, and the prior tells states of a hidden node apart.
    """
    if relabelings is not None:
        return log(relabelings.n)
    kinds = {}
    for node in (v for v in dag.nodes if any(w in hidden for w in dag.family(v))):
        axes = tuple(axis for axis, member in enumerate(dag.family(node)) if member in hidden)
        table = tables[node]
        if np.any(table.max(axis=axes) != table.min(axis=axes)):
            raise TooLargeError(
                f"The relabelings of the {len(hidden)} hidden nodes are too many to try one by one. They cannot "
                f"be counted otherwise, because the prior of {node!r} differs between states of its hidden nodes. Take "
                "a prior that is the same for all states, or do without the alias correction."
            )
        if node in hidden:
            kinds[node] = (table.shape[-1], table.max(axis=axes).tobytes())
    return sum(lgamma(tables[node].shape[-1] + 1.0) for node in hidden) + log(dag.n_automorphisms(kinds))
