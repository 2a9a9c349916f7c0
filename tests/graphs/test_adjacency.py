"""Graphs from and to adjacency matrices: row = parent, column = child."""

import re

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skvbem.errors import StructureError
from skvbem.graphs.dag import DAG

pd = pytest.importorskip("pandas")

laws = settings(deadline=None)

names = st.text(max_size=4) | st.integers(-20, 20) | st.tuples(st.integers(0, 3), st.text(max_size=2))


@st.composite
def dags(draw):
    nodes = draw(st.lists(names, unique=True, max_size=7))
    order = draw(st.permutations(nodes))
    above = {child: order[:place] for place, child in enumerate(order)}
    return DAG(nodes, {child: draw(st.lists(st.sampled_from(up), unique=True)) for child, up in above.items() if up})


def frame(cells, labels="abc"):
    return pd.DataFrame(cells, index=list(labels), columns=list(labels))


@laws
@given(dags(), st.sampled_from([int, float, bool, np.int8, object]))
def test_both_ways_keep_names_and_order(dag, dtype):
    table = dag.to_adjacency()
    for given_ in (table, table.astype(dtype)):
        other = DAG.from_adjacency(given_)
        assert other == dag
        assert repr(other.nodes) == repr(dag.nodes)
        assert DAG.coerce(given_) == dag
    cells = dag.to_adjacency(as_frame=False)
    assert cells.dtype == int
    assert np.array_equal(cells, table.to_numpy())
    assert DAG.from_adjacency(cells.astype(dtype), dag.nodes) == dag
    assert DAG.from_adjacency(cells.tolist() or np.empty((0, 0)), dag.nodes) == dag


@laws
@given(dags())
def test_cells_are_those_of_networkx(dag):
    if dag.nodes:
        assert np.array_equal(nx.to_numpy_array(dag.to_networkx()), dag.to_adjacency(as_frame=False))
        assert DAG.from_adjacency(nx.to_numpy_array(dag.to_networkx()), dag.nodes) == dag


def test_rows_are_parents():
    dag = DAG.from_adjacency(frame([[0, 1, 1], [0, 0, 0], [0, 1, 0]]))
    assert dag.parents("b") == ("a", "c")
    assert dag.nodes == ("a", "b", "c")
    assert dag.to_adjacency().loc["a", "b"] == 1
    assert dag.to_adjacency().loc["b", "a"] == 0


def test_nullable_columns():
    cells = frame([[0, 1, 1], [0, 0, 0], [0, 1, 0]])
    for dtype in ("Int64", "boolean", "Float64"):
        assert DAG.from_adjacency(cells.astype(dtype)) == DAG.from_adjacency(cells)


NONE = np.zeros((3, 3), dtype=int)


def with_cell(i, j, value):
    cells = NONE.astype(object)
    cells[i, j] = value
    return cells


@pytest.mark.parametrize(
    ("matrix", "nodes", "message"),
    [
        (np.zeros((2, 3)), ["a", "b"], "must be square. Got the shape (2, 3)."),
        (pd.DataFrame(np.zeros((3, 2))), None, "must be square. Got the shape (3, 2)."),
        (np.zeros(4), "abcd", "must be square. Got the shape (4,)."),
        (NONE, ["a", "b"], "nodes must name the 3 rows and columns. Got 2 names."),
        (frame(NONE, "aba"), None, "Rows 0 and 2 of the adjacency matrix are both named 'a'."),
        (NONE, ["a", "b", "b"], "Rows 1 and 2 of the adjacency matrix are both named 'b'."),
        (
            frame(NONE).rename(columns={"b": "d"}),
            None,
            "Row 1 is 'b', column 1 is 'd'; reorder with frame[frame.index].",
        ),
        (frame(NONE)[["a", "c", "b"]], None, "Row 1 is 'b', column 1 is 'c'; reorder"),
        (frame(with_cell(1, 2, 2)), None, "The cell at row 'b', column 'c' is 2."),
        (frame(with_cell(2, 0, "1")), None, "The cell at row 'c', column 'a' is '1'."),
        (frame(with_cell(2, 0, None)), None, "The cell at row 'c', column 'a' is None."),
        (frame(with_cell(2, 0, pd.NA)), None, "The cell at row 'c', column 'a' is <NA>."),
        (frame(with_cell(0, 2, 0.5)).astype(float), None, "The cell at row 'a', column 'c' is np.float64(0.5)."),
        (frame(with_cell(0, 2, np.nan)).astype(float), None, "The cell at row 'a', column 'c' is np.float64(nan)."),
        (frame(with_cell(0, 2, -1)).astype(int), None, "The cell at row 'a', column 'c' is np.int64(-1)."),
        (
            frame(with_cell(1, 1, 1)),
            None,
            "It has b -> b; remove or turn one of these edges. Its first edge is the 1 at row",
        ),
        (
            frame([[0, 1, 0], [0, 0, 1], [1, 0, 0]]),
            None,
            "It has a -> b -> c -> a; remove or turn one of these edges. Its first edge is the 1 at row 'a', column",
        ),
    ],
)
def test_what_is_no_graph(matrix, nodes, message):
    with pytest.raises(StructureError, match=re.escape(message)):
        DAG.from_adjacency(matrix, nodes)


def test_names_are_given_once():
    with pytest.raises(TypeError, match="has no labels: give the names"):
        DAG.from_adjacency(NONE)
    with pytest.raises(TypeError, match="nodes are for arrays"):
        DAG.from_adjacency(frame(NONE), ["a", "b", "c"])
    with pytest.raises(TypeError, match="hashable"):
        DAG.from_adjacency(NONE, ["a", "b", ["c"]])
