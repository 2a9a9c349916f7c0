"""Graphs as square tables of 0 and 1: row = parent, column = child."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from numbers import Real
from reprlib import repr as shown

import numpy as np

from skvbem.errors import StructureError


def is_frame(matrix) -> bool:
    """Whether a table labels its rows and columns, as those of pandas do."""
    return all(hasattr(matrix, name) for name in ("index", "columns", "to_numpy"))


def read_adjacency(matrix, nodes) -> tuple[tuple, list[tuple[Hashable, Hashable]]]:
    """The nodes and the (parent, child) edges of a table, by child and then by parent.

    Parameters
    ----------
    matrix : pandas.DataFrame or array-like of shape (n_nodes, n_nodes)
    nodes : sequence of hashable or None
        The names of rows and columns; None for a frame, which has them.

    Raises
    ------
    TypeError
        If names are lacking, or given twice.
    StructureError
        If the table is not square, its labels differ or repeat, or a cell is neither 0 nor 1; the message says which.
    """
    if is_frame(matrix):
        if nodes is not None:
            raise TypeError("nodes are for arrays: a frame has the names as labels of its rows and columns.")
        nodes, columns = tuple(matrix.index), tuple(matrix.columns)
        cells = matrix.to_numpy()
    else:
        if nodes is None:
            raise TypeError("An array has no labels: give the names of its rows and columns as nodes.")
        nodes = columns = tuple(nodes)
        cells = np.asarray(matrix)
    if cells.ndim != 2 or cells.shape[0] != cells.shape[1]:
        raise StructureError(f"An adjacency matrix must be square. Got the shape {cells.shape}.")
    if len(nodes) != len(cells):
        raise StructureError(f"nodes must name the {len(cells)} rows and columns. Got {len(nodes)} names.")
    _check_labels(nodes, columns)
    for i, j in _odd_cells(cells):
        raise StructureError(
            f"An adjacency matrix must hold 0 (or False) and 1 (or True). The cell at {_place(nodes, i, j)} is "
            f"{shown(cells[i, j])}."
        )
    children, parents = np.nonzero(cells.T.astype(bool))
    return nodes, [(nodes[i], nodes[j]) for i, j in zip(parents.tolist(), children.tolist())]


def edge_cell(edge: tuple) -> str:
    """Where an edge stands in a table."""
    return f"row {shown(edge[0])}, column {shown(edge[1])}"


def adjacency(nodes: Sequence, edges: Sequence[tuple]) -> np.ndarray:
    """The table of a graph, integers of shape (n_nodes, n_nodes)."""
    index = {node: position for position, node in enumerate(nodes)}
    cells = np.zeros((len(nodes), len(nodes)), dtype=int)
    for parent, child in edges:
        cells[index[parent], index[child]] = 1
    return cells


def adjacency_frame(nodes: Sequence, edges: Sequence[tuple]):
    """The table of a graph as a pandas.DataFrame whose rows and columns are labeled by the nodes; needs pandas."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError(
            "DAG.to_adjacency needs pandas. Install it with: pip install pandas; or pass as_frame=False."
        ) from error
    labels = pandas.Index(nodes, dtype=object, tupleize_cols=False)
    return pandas.DataFrame(adjacency(nodes, edges), index=labels, columns=labels)


def _check_labels(rows, columns):
    seen: dict = {}
    for place, (row, column) in enumerate(zip(rows, columns, strict=True)):
        if row != column:
            raise StructureError(
                "The rows and columns of an adjacency matrix must have the same labels in the same order. "
                f"Row {place} is {shown(row)}, column {place} is {shown(column)}; reorder with frame[frame.index]."
            )
        if row in seen:
            raise StructureError(f"Rows {seen[row]} and {place} of the adjacency matrix are both named {shown(row)}.")
        seen[row] = place


def _odd_cells(cells):
    if cells.dtype.kind in "biuf":
        return np.argwhere((cells != 0) & (cells != 1))
    return (at for at, cell in np.ndenumerate(cells) if not (isinstance(cell, (Real, np.bool_)) and cell in (0, 1)))


def _place(nodes, i, j):
    return edge_cell((nodes[i], nodes[j]))
