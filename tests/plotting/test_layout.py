"""Laws of the layered drawing, over random graphs and the awkward ones."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skvbem.graphs.dag import DAG
from skvbem.plotting.layout import layered_layout

SMALL = 1e-6


@st.composite
def drawings(draw):
    """(graph, sizes of its nodes, latents)"""
    n = draw(st.integers(1, 14))
    nodes = [f"v{k}" for k in range(n)]
    pairs = list(itertools.combinations(nodes, 2))
    edges = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=2 * n)) if pairs else []
    sizes = {v: (draw(st.floats(0.3, 2.5)), draw(st.floats(0.2, 0.9))) for v in nodes}
    return DAG.from_edges(edges, draw(st.permutations(nodes))), sizes, draw(st.sets(st.sampled_from(nodes)))


def alike(dag, size=(0.8, 0.3)):
    return dict.fromkeys(dag.nodes, size)


AWKWARD = {
    "one node": (DAG(["a"], {}), ()),
    "no edges": (DAG([f"x{k}" for k in range(30)], {}), ()),
    "star of 35": (DAG.naive_bayes("h", [f"x{k}" for k in range(35)]), ("h",)),
    "complete": (DAG.from_edges(itertools.combinations(range(9), 2)), ()),
    "chain of 40": (DAG.from_edges((k, k + 1) for k in range(39)), ()),
    "hidden Markov chain": (
        DAG.from_edges([(f"h{k}", f"h{k + 1}") for k in range(7)] + [(f"h{k}", f"y{k}") for k in range(8)]),
        tuple(f"h{k}" for k in range(8)),
    ),
    "many roots": (DAG.from_edges((k, 99) for k in range(12)), ()),
    "chain too wide for a layer": (
        DAG.from_edges([(f"h{k}", f"h{k + 1}") for k in range(14)], [f"x{k}" for k in range(12)]),
        tuple(f"h{k}" for k in range(15)),
    ),
    "two parts": (DAG.from_string("[a][b|a][c][d|c][e|c:d]"), ()),
}


def overlaps(layout, sizes):
    return [
        (u, v)
        for u, v in itertools.combinations(layout.centers, 2)
        if all(
            abs(layout.centers[u][k] - layout.centers[v][k]) < (sizes[u][k] + sizes[v][k]) / 2 - SMALL for k in (0, 1)
        )
    ]


def crossed_nodes(dag, layout, sizes, slack=0.0):
    """(edge, node) where the line of the edge enters the box of a node that is not its end."""
    found = []
    for edge, line in layout.lines.items():
        run = np.linspace(0, len(line) - 1, 40 * len(line))
        points = np.stack([np.interp(run, np.arange(len(line)), line[:, k]) for k in (0, 1)], axis=1)
        for node in dag.nodes:
            inside = np.abs(points - layout.centers[node]) < np.array(sizes[node]) / 2 - SMALL - slack
            if node not in edge and inside.all(axis=1).any():
                found.append((edge, node))
    return found


def check_laws(dag, sizes, latents):
    layout = layered_layout(dag, sizes, latents)
    assert set(layout.centers) == set(layout.layers) == set(dag.nodes)
    assert set(layout.lines) == set(dag.edges)
    assert np.isfinite(list(layout.centers.values())).all()
    assert overlaps(layout, sizes) == []
    assert crossed_nodes(dag, layout, sizes) == []
    for parent, child in dag.edges:
        if layout.layers[parent] == layout.layers[child]:  # only a chain of latents is a row
            assert {parent, child} <= set(latents)
            assert layout.centers[parent][0] < layout.centers[child][0]
        else:
            assert layout.layers[parent] < layout.layers[child]
            assert layout.centers[parent][1] > layout.centers[child][1]
    left, bottom, right, top = layout.box
    for node, (x, y) in layout.centers.items():
        width, height = sizes[node]
        assert left - SMALL <= x - width / 2 < x + width / 2 <= right + SMALL
        assert bottom - SMALL <= y - height / 2 < y + height / 2 <= top + SMALL
    return layout


@given(drawings())
@settings(max_examples=80, deadline=None)
def test_edges_run_down_and_nothing_overlaps(drawing):
    check_laws(*drawing)


@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_graphs_obey_the_laws(name):
    dag, latents = AWKWARD[name]
    check_laws(dag, alike(dag), latents)


@given(drawings())
@settings(max_examples=50, deadline=None)
def test_lines_end_on_the_borders_of_their_nodes(drawing):
    dag, sizes, latents = drawing
    layout = layered_layout(dag, sizes, latents)
    for (parent, child), line in layout.lines.items():
        for node, point in ((parent, line[0]), (child, line[-1])):
            dx, dy = (np.abs(point - layout.centers[node]) / (np.array(sizes[node]) / 2)).tolist()
            reached = dx**2 + dy**2 if node in latents else max(dx, dy)
            assert reached == pytest.approx(1.0)


@given(drawings())
@settings(max_examples=30, deadline=None)
def test_the_same_graph_is_drawn_the_same(drawing):
    first, second = layered_layout(*drawing), layered_layout(*drawing)
    assert first.centers == second.centers
    assert all(np.array_equal(first.lines[edge], second.lines[edge]) for edge in first.lines)


def straight_crossings(dag, layout):
    """Pairs of edges without a common end whose end-to-end segments cross."""

    def side(p, q, r):
        return (q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0])

    at, n = layout.centers, 0
    for (a, b), (c, d) in itertools.combinations(dag.edges, 2):
        if len({a, b, c, d}) == 4:
            n += (
                side(at[a], at[b], at[c]) * side(at[a], at[b], at[d]) < 0
                and side(at[c], at[d], at[a]) * side(at[c], at[d], at[b]) < 0
            )
    return n


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=14), st.randoms())
@settings(max_examples=50, deadline=None)
def test_trees_have_no_crossing(choices, random):
    edges = [(choice % (k + 1), k + 1) for k, choice in enumerate(choices)]
    nodes = list(range(len(choices) + 1))
    random.shuffle(nodes)
    random.shuffle(edges)
    dag = DAG.from_edges(edges, nodes)
    layout = layered_layout(dag, alike(dag, (0.5, 0.3)))
    assert straight_crossings(dag, layout) == 0


def fewest_crossings(edges, n):
    """Of two rows of n nodes, over all their orders."""
    pairs = np.array(edges)
    orders = np.array(list(itertools.permutations(range(n))))
    fewest = np.inf
    for order in orders:
        start, ends = order[pairs[:, 0]], orders[:, pairs[:, 1]]
        crossed = (start[:, None] < start) & (ends[:, :, None] > ends[:, None, :])
        fewest = min(fewest, crossed.sum(axis=(1, 2)).min())
    return int(fewest)


def test_two_rows_have_hardly_more_crossings_than_they_must():
    rng = np.random.default_rng(0)
    found = needed = 0
    for _ in range(40):
        n = 5
        edges = [(int(a), int(b)) for a, b in np.argwhere(rng.random((n, n)) < 0.35)]
        edges += [(a, a) for a in range(n) if (a, a) not in edges]  # all nodes have an edge: two rows it is
        dag = DAG.from_edges([(f"a{a}", f"b{b}") for a, b in edges])
        layout = layered_layout(dag, alike(dag))
        assert set(layout.layers.values()) == {0, 1}
        found += straight_crossings(dag, layout)
        needed += fewest_crossings(edges, n)
    assert needed <= found <= 1.05 * needed


def test_a_parent_stands_over_the_middle_of_its_children():
    dag = DAG.naive_bayes("h", ["x", "y", "z"])
    centers = layered_layout(dag, alike(dag), ["h"]).centers
    assert centers["h"][0] == pytest.approx(np.mean([centers[leaf][0] for leaf in "xyz"]))
    assert centers["h"][0] == pytest.approx(centers["y"][0])


def test_a_chain_of_latents_is_a_row_and_a_tree_of_latents_is_not():
    chain, latents = AWKWARD["hidden Markov chain"]
    layers = layered_layout(chain, alike(chain), latents).layers
    assert {layers[f"h{k}"] for k in range(8)} == {0}
    assert {layers[f"y{k}"] for k in range(8)} == {1}
    tree = DAG.from_edges([("r", "g"), ("r", "h"), ("g", "x"), ("h", "y")])
    assert layered_layout(tree, alike(tree), ["r", "g", "h"]).layers == {"r": 0, "g": 1, "h": 1, "x": 2, "y": 2}
    driven = DAG.from_edges([("cause", "g"), ("g", "h"), ("h", "y")])
    assert layered_layout(driven, alike(driven), ["g", "h"]).layers == {"cause": 0, "g": 1, "h": 2, "y": 3}


def test_roots_stand_just_above_their_children():
    dag = DAG.from_edges([("a", "b"), ("b", "c"), ("c", "d"), ("late", "d")])
    assert layered_layout(dag, alike(dag)).layers["late"] == 2


def test_a_wide_layer_of_leaves_takes_several_rows():
    dag, latents = AWKWARD["star of 35"]
    left, _, right, _ = layered_layout(dag, alike(dag), latents).box
    assert right - left < 14
    few = DAG.naive_bayes("h", list("abcd"))
    assert set(layered_layout(few, alike(few), ["h"]).layers.values()) == {0, 1}
