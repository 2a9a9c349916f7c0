"""Graphs in other forms: square tables of 0 and 1, model strings, graphs of networkx, tables of notebooks.

In a square table a row is a parent and a column a child. A model string is a graph in one line, such as
``[A][B|A:H]``, each node in brackets and its parents after the bar: a bare whole number is an int, any other bare name
a str without the blanks around it, and a name in double quotes is the str as it stands, with a backslash before a quote
or a backslash in it. networkx is imported when a graph is written.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from numbers import Real
from reprlib import repr as brief

import numpy as np

from skvbem._names import shown
from skvbem._tabular import html_table
from skvbem.errors import StructureError

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")
_TOKEN = re.compile(
    r'\s*+(?:(?P<mark>[\[\]|:])|"(?P<quoted>(?:[^"\\]|\\.)*+)"|(?P<bare>[^\[\]|:"\s][^\[\]|:"]*))', re.DOTALL
)


def is_frame(matrix) -> bool:
    """True if a table labels its rows and columns, as those of pandas do."""
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
            raise TypeError(
                "nodes are for arrays: leave them out, as a frame has the names as labels of its rows and columns."
            )
        nodes, columns = tuple(matrix.index), tuple(matrix.columns)
        cells = matrix.to_numpy()
    else:
        if nodes is None:
            raise TypeError("A 'matrix' that is no frame has no labels: give the names of its rows as 'nodes'.")
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
            f"{brief(cells[i, j])}."
        )
    children, parents = np.nonzero(cells.T.astype(bool))
    return nodes, [(nodes[i], nodes[j]) for i, j in zip(parents.tolist(), children.tolist())]


def edge_cell(edge: tuple) -> str:
    """Row and column of an edge in a table."""
    return f"row {brief(edge[0])}, column {brief(edge[1])}"


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
                f"Row {place} is {brief(row)}, column {place} is {brief(column)}; reorder with frame[frame.index]."
            )
        if row in seen:
            raise StructureError(f"Rows {seen[row]} and {place} of the adjacency matrix are both named {brief(row)}.")
        seen[row] = place


def _odd_cells(cells):
    if cells.dtype.kind in "biuf":
        return np.argwhere((cells != 0) & (cells != 1))
    return (at for at, cell in np.ndenumerate(cells) if not (isinstance(cell, (Real, np.bool_)) and cell in (0, 1)))


def _place(nodes, i, j):
    return edge_cell((nodes[i], nodes[j]))


def read_model_string(text: str) -> tuple[list, dict]:
    """The nodes with brackets of their own, in order, and child -> its parents, of a model string.

    Raises
    ------
    StructureError
        If the string cannot be read; the message says at which column.
    """
    nodes: list = []
    parents: dict = {}
    family: list | None = None
    expected: tuple[str, ...] = ("[",)
    position, end = 0, len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position, end)
        token = (match["mark"] or "a name") if match else None
        if match is None or token not in expected:
            break
        position = match.end()
        if token == "]":
            expected = ("[",)
        elif token != "a name":
            family = None if token == "[" else family
            expected = ("a name",)
        else:
            name = _token_name(match)
            if family is None:
                nodes.append(name)
                family = parents.setdefault(name, [])
                expected = ("|", "]")
            else:
                family.append(name)
                expected = (":", "]")
    if position < end or expected != ("[",):
        rest = text[position:end].lstrip()
        instead = f"got {shown(rest)}" if rest else "but the string ends"
        raise StructureError(
            f"A model string must read like '[A][B|A:H]'. Expected {' or '.join(expected)} "
            f"at column {end - len(rest) + 1}, {instead}."
        )
    return nodes, parents


def model_string(nodes: Iterable[Hashable], parents: Mapping[Hashable, Iterable[Hashable]]) -> str:
    """The model string of a graph: its nodes in order, each with its parents."""
    families = ((child, ":".join(map(_quoted, parents[child]))) for child in nodes)
    return "".join(f"[{_quoted(child)}{'|' if parents else ''}{parents}]" for child, parents in families)


def _token_name(match):
    if match["quoted"] is not None:
        return re.sub(r"\\(.)", r"\1", match["quoted"], flags=re.DOTALL)
    name = match["bare"].rstrip()
    return int(name) if _INTEGER.fullmatch(name) else name


@lru_cache(typed=True)
def _quoted(name):
    text = str(name)
    bare = text == text.strip() and re.fullmatch(r'[^\[\]|:"]+', text)
    if bare and not (isinstance(name, str) and _INTEGER.fullmatch(text)):
        return text
    return '"' + re.sub(r'(["\\])', r"\\\1", text) + '"'


def read_networkx(graph) -> tuple[tuple, list[tuple[Hashable, Hashable]]]:
    """The nodes and the (parent, child) edges of a directed networkx graph, in its order.

    Raises
    ------
    StructureError
        If the graph is not directed.
    """
    if not hasattr(graph, "is_directed"):
        raise TypeError(f"from_networkx takes a networkx.DiGraph. Got a {type(graph).__name__} instead.")
    if not graph.is_directed():
        raise StructureError(
            "The networkx graph must be directed. Got an undirected one. Use networkx.DiGraph, or DAG.from_chordal."
        )
    return tuple(graph.nodes), [edge[:2] for edge in graph.edges]


def read_undirected_networkx(graph) -> tuple[tuple, list[tuple[Hashable, Hashable]]]:
    """The nodes and the edges of an undirected networkx graph, in its order, each edge once.

    Raises
    ------
    StructureError
        If the graph is directed.
    """
    if not hasattr(graph, "is_directed"):
        raise TypeError(f"from_networkx takes a networkx.Graph. Got a {type(graph).__name__} instead.")
    if graph.is_directed():
        raise StructureError("The networkx graph must be undirected. Got a directed one; use networkx.Graph.")
    once = {frozenset(edge[:2]): edge[:2] for edge in graph.edges}
    return tuple(graph.nodes), list(once.values())


def write_networkx(nodes: Iterable[Hashable], edges: Iterable[tuple[Hashable, Hashable]]):
    """The networkx.DiGraph with these nodes and edges; ImportError without networkx."""
    return _written("DAG", "DiGraph", nodes, edges)


def write_undirected_networkx(nodes: Iterable[Hashable], edges: Iterable[tuple[Hashable, Hashable]]):
    """The networkx.Graph with these nodes and edges; ImportError without networkx."""
    return _written("UndirectedGraph", "Graph", nodes, edges)


def _written(owner: str, kind: str, nodes: Iterable[Hashable], edges: Iterable[tuple[Hashable, Hashable]]):
    try:
        import networkx
    except ImportError as error:
        raise ImportError(f"{owner}.to_networkx needs networkx. Install it with: pip install networkx") from error
    graph = getattr(networkx, kind)()
    graph.add_nodes_from(nodes)
    graph.add_edges_from(edges)
    return graph


def as_html(nodes: Iterable[Hashable], related: Mapping[Hashable, Iterable[Hashable]], relation: str) -> str:
    """A table of nodes and those that are related to each, such as its parents."""
    rows = [[str(node), ", ".join(map(str, related[node]))] for node in nodes]
    return html_table(["node", relation], rows, align="left", where_all="`edges` has all")
