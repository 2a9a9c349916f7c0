"""Nodes of a network and their states, as users name them in a question."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping

import numpy as np

from skvbem._arguments import is_collection
from skvbem._names import did_you_mean
from skvbem.reading.tables import listed
from skvbem.tables import state_code


def nodes_asked(targets, levels: Mapping[Hashable, np.ndarray], numbers: Collection[Hashable] = ()) -> tuple:
    """Targets of a query, one node or several, as a tuple of nodes that have states.

    Parameters
    ----------
    targets : node or iterable of nodes
    levels : mapping of node to ndarray
        The states of each node.
    numbers : collection of hashable
        Nodes and columns that hold numbers, and no states.
    """
    one = not is_collection(targets)
    targets = (targets,) if one or (isinstance(targets, Hashable) and targets in levels) else tuple(targets)
    for node in targets:
        if isinstance(node, Hashable) and node in numbers:
            raise ValueError(f"{node!r} holds numbers: 'query' has no table of them. Take 'impute' or 'sample'.")
        _check_node(node, levels)
    return targets


def code_of(node, state, levels: Mapping[Hashable, np.ndarray]) -> int:
    """The position of a state among those of its node; ValueError if it is none of them."""
    _check_node(node, levels)
    code = state_code(state, levels[node])
    if code is None:
        states = ", ".join(map(repr, levels[node].tolist()))
        raise ValueError(f"{state!r} is not a state of {node!r}, whose states are {states}.")
    return code


def _check_node(node, levels: Mapping[Hashable, np.ndarray]) -> None:
    if not isinstance(node, Hashable) or node not in levels:
        nodes = listed(map(repr, levels))
        raise ValueError(f"{node!r} is not a node of this network.{did_you_mean(node, levels)} Its nodes are {nodes}.")
