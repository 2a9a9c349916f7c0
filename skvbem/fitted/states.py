"""Rows of states as codes of the nodes of a network whose states are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from skvbem._names import did_you_mean, shown
from skvbem.data import Rows
from skvbem.reading.categories import CategoryEncoder
from skvbem.reading.tables import Table, read_table


def read_states(X, states: Mapping) -> Rows:
    """Rows of a user's table whose columns are nodes, in codes.

    Parameters
    ----------
    X : data frame or mapping of node to array-like
    states : mapping of node to sequence
        The states of each node, in the order of their codes.

    Raises
    ------
    TypeError
        If columns have no names.
    ValueError
        If a column is no node, a cell is no state of its node, or columns differ in length.
    """
    names, table = _named_columns(X)
    for name in names:
        if name not in states:
            raise ValueError(f"Column {shown(name)} of X is not a node of this network.{did_you_mean(name, states)}")
    encoder = CategoryEncoder.of_levels("Network", [str(name) for name in names], [states[name] for name in names])
    return Rows(tuple(names), encoder.encode(table))


def state_array(states: Sequence) -> np.ndarray:
    """States as an array: of numbers or booleans where all are, else of objects."""
    kinds = {type(state) for state in states}
    return np.array(states) if kinds in ({int}, {float}, {bool}) else np.array(states, dtype=object)


def _named_columns(X) -> tuple[list, Table]:
    if isinstance(X, Mapping):
        columns = [np.asarray(column, dtype=object) for column in X.values()]
        lengths = sorted({column.shape for column in columns})
        if len(lengths) != 1 or len(lengths[0]) != 1:
            raise ValueError(f"The columns of X must be flat and of one length. Got columns of the shapes {lengths}.")
        return list(X), read_table(np.stack(columns, axis=1), "Network")
    table = read_table(X, "Network")
    if not table.has_own_names:
        raise TypeError(
            "X must name its columns, which are nodes: a data frame, or a mapping of nodes to columns. "
            f"Got a {type(X).__name__} without names."
        )
    return table.names, table
