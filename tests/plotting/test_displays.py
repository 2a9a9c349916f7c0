"""Displays: scikit-learn's convention, labels that fit, widths that mean what they say."""

import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from skvbem import DAG, ChordalSpace, StructureSearchCV, UndirectedGraph, VBDiscreteDAG
from skvbem.datasets import load_coleman_panel, load_lizards
from skvbem.plotting import BoundDisplay, DAGDisplay
from skvbem.plotting.candidates import short_names
from skvbem.plotting.edges import edge_information

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

EDGES = [("member", "A"), ("member", "C"), ("attitude", "B"), ("attitude", "D"), ("member", "attitude")]


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def panel():
    pytest.importorskip("pandas")
    return load_coleman_panel(as_frame=True).data


@pytest.fixture(scope="module")
def fitted(panel):
    return VBDiscreteDAG(EDGES, latents={"member": 2, "attitude": 3}, init="random", random_state=0).fit(panel)


def line_widths(display):
    patches = [patch.get_linewidth() for patch in display.ax_.patches if type(patch).__name__ == "PathPatch"]
    return dict(zip(display.dag.edges, patches, strict=True))


def texts(ax):
    return [text.get_text() for text in ax.texts]


# DAGDisplay -----------------------------------------------------------------------------------------------------------


def test_from_estimator_draws_every_node_and_edge(fitted):
    display = DAGDisplay.from_estimator(fitted)
    assert isinstance(display, DAGDisplay)
    assert display.figure_ is display.ax_.figure
    assert {*fitted.structure_.nodes, "2 states", "3 states"} <= set(texts(display.ax_))
    assert set(display.layout_.lines) == set(fitted.structure_.edges)
    assert "nats" in texts(display.ax_)[-1]


def test_an_axes_given_is_used_and_the_display_can_be_drawn_again(fitted):
    figure, axes = plt.subplots(1, 2)
    display = DAGDisplay.from_estimator(fitted, ax=axes[0], edge_widths=None)
    assert display.ax_ is axes[0]
    assert display.figure_ is figure
    assert display.plot(ax=axes[1]) is display
    assert display.ax_ is axes[1]
    assert texts(axes[0]) == texts(axes[1])
    assert plt.get_fignums() == [figure.number]


def test_every_spelling_of_a_structure_gives_the_same_picture():
    spellings = [
        "[h][a|h][b|h]",
        [("h", "a"), ("h", "b")],
        {"h": (), "a": "h", "b": "h"},
        DAG.naive_bayes("h", ["a", "b"]),
    ]
    displays = [DAGDisplay.from_structure(structure, {"h": 2}) for structure in spellings]
    assert all(display.layout_.centers == displays[0].layout_.centers for display in displays)


@pytest.mark.parametrize("size", [None, (4, 3), (12, 9)])
@pytest.mark.parametrize(
    "structure",
    [
        "[h][a|h]",
        DAG.naive_bayes("h", [f"a column named {k}" for k in range(30)]),
        "[h][a much longer name than the rest|h]",
    ],
    ids=["two nodes", "star", "long name"],
)
def test_labels_fit_into_their_nodes(structure, size):
    ax = None if size is None else plt.subplots(figsize=size, dpi=200)[1]
    display = DAGDisplay.from_structure(structure, {"h": 12}, ax=ax)
    display.figure_.canvas.draw()
    ax, renderer = display.ax_, display.figure_.canvas.get_renderer()
    sizes = {}
    for patch in ax.patches:
        if type(patch).__name__ in {"Ellipse", "FancyBboxPatch"}:
            box = patch.get_window_extent(renderer)
            sizes[round((box.x0 + box.x1) / 2), round((box.y0 + box.y1) / 2)] = box
    assert len(sizes) == len(display.dag.nodes)
    for text in ax.texts:
        box = text.get_window_extent(renderer)
        node = min(sizes.values(), key=lambda b: np.hypot(b.x0 + b.x1 - box.x0 - box.x1, b.y0 + b.y1 - box.y0 - box.y1))
        slack = 1.0  # pixels: glyphs are rounded to whole ones
        assert node.x0 - slack <= box.x0 < box.x1 <= node.x1 + slack, text.get_text()
        assert node.y0 - slack <= box.y0 < box.y1 <= node.y1 + slack, text.get_text()


def test_the_picture_fits_into_its_figure():
    display = DAGDisplay.from_structure(DAG.naive_bayes("h", [f"x{k}" for k in range(35)]), {"h": 3})
    left, bottom, right, top = display.layout_.box
    (x0, x1), (y0, y1) = display.ax_.get_xlim(), display.ax_.get_ylim()
    assert x0 < left < right < x1
    assert y0 < bottom < top < y1
    width, height = display.figure_.get_size_inches()
    assert width == pytest.approx(x1 - x0)  # one unit is one inch, so 10 points are 10 points
    assert height == pytest.approx(y1 - y0)


def test_labels_are_text_not_formulas():
    display = DAGDisplay.from_structure("[$h_0$][cost in $|$h_0$]", {"$h_0$": 2}, node_labels={"$h_0$": r"$\frac$"})
    display.figure_.canvas.draw()
    assert texts(display.ax_) == [r"$\frac$", "2 states", "cost in $"]


def test_widths_are_proportional_to_strengths():
    strengths = {("a", "b"): 1.0, ("a", "c"): 0.5, ("b", "c"): 0.0}
    display = DAGDisplay.from_structure(list(strengths), edge_widths=strengths)
    widths = line_widths(display)
    assert widths["a", "b"] == pytest.approx(2 * widths["a", "c"])
    assert 0 < widths["b", "c"] < widths["a", "c"]
    assert {"0.25", "1"} <= set(texts(display.ax_))
    plain = DAGDisplay.from_structure(list(strengths))
    assert len(set(line_widths(plain).values())) == 1
    assert not {"0.25", "1"} & set(texts(plain.ax_))


def test_all_strengths_zero_can_be_drawn():
    DAGDisplay.from_structure("[a][b|a]", edge_widths={("a", "b"): 0}).figure_.canvas.draw()


def conditional_information(joint, a, b):
    """I(a; b | the other axes) of a joint table, by its definition."""
    p = np.asarray(joint)
    without_a, without_b, rest = p.sum(a, keepdims=True), p.sum(b, keepdims=True), p.sum((a, b), keepdims=True)
    p, ratio = np.broadcast_arrays(p, np.asarray(p) * rest / (without_a * without_b))
    return float((p * np.log(ratio)).sum())


def test_the_information_of_an_edge_is_that_of_the_fitted_joint(panel):
    # At a maximum of the likelihood the expected counts of a family are its joint probabilities times n.
    edges = [*EDGES, ("A", "B")]
    model = VBDiscreteDAG(edges, latents=["member", "attitude"], method="ml", tol=1e-10, random_state=0).fit(panel)
    found = edge_information(model.structure_, model.tables_, model.counts_)
    assert set(found) == set(model.structure_.edges)
    for parent, child in model.structure_.edges:
        family = list(model.structure_.family(child))
        joint = model.query(family).values
        right = conditional_information(joint, family.index(parent), len(family) - 1)
        assert found[parent, child] == pytest.approx(right, abs=1e-5)
    assert found["member", "C"] > 0.1


def test_information_is_ln2_for_a_parent_that_decides_and_zero_for_one_that_does_not_matter():
    dag = DAG.from_string("[a][b][xor|a:b][copy|a:b]")
    half = np.full(2, 0.5)
    xor = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]])
    copy = np.array([[[1.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, 1.0]]])
    tables = {"a": half, "b": half, "xor": xor, "copy": copy}
    found = edge_information(dag, tables, {node: 100 * table for node, table in tables.items()})
    assert found == pytest.approx(
        {("a", "xor"): np.log(2), ("b", "xor"): np.log(2), ("a", "copy"): np.log(2), ("b", "copy"): 0.0}
    )
    empty = edge_information(dag, tables, {node: 0 * table for node, table in tables.items()})
    assert empty == pytest.approx(found)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"latents": {"hh": 2}}, ValueError, "'latents' .* names 'hh', .* Did you mean 'h'"),
        ({"node_labels": {"z": "Z"}}, ValueError, "'node_labels' .* names 'z'"),
        ({"edge_widths": {("h", "a"): 1.0}}, ValueError, r"Got None for \('h', 'b'\)"),
        ({"edge_widths": {("h", "a"): -1.0, ("h", "b"): 1}}, ValueError, r"Got -1.0 for \('h', 'a'\)"),
        ({"edge_widths": {("h", "a"): 1, ("h", "b"): 1, ("a", "h"): 1}}, ValueError, r"\('a', 'h'\), which is no edge"),
        ({"edge_widths": [1, 2]}, TypeError, "must be a mapping"),
    ],
)
def test_what_does_not_fit_the_graph_is_named(options, error, text):
    with pytest.raises(error, match=text):
        DAGDisplay.from_structure("[h][a|h][b|h]", **options)


def test_from_estimator_checks_what_it_gets(fitted):
    with pytest.raises(NotFittedError):
        DAGDisplay.from_estimator(VBDiscreteDAG())
    with pytest.raises(ValueError, match=r"'edge_widths' .* Got 'thick' instead"):
        DAGDisplay.from_estimator(fitted, edge_widths="thick")


# BoundDisplay ---------------------------------------------------------------------------------------------------------


def test_bound_display_shows_the_run_and_all_ends(fitted):
    display = BoundDisplay.from_estimator(fitted)
    assert display.figure_ is display.axes_[0].figure is display.axes_[1].figure
    *runs, best = (line.get_ydata() for line in display.axes_[0].lines)
    for drawn, trace in zip([*runs, best], [*fitted.restarts_.traces, fitted.lower_bounds_], strict=True):
        gaps = fitted.lower_bounds_[-1] - trace
        assert drawn == pytest.approx(gaps[gaps > 0])
    for trace, bound in zip(fitted.restarts_.traces, fitted.restarts_.bounds):
        assert trace[-1] == pytest.approx(bound)
    ends = np.concatenate([line.get_ydata() for line in display.axes_[1].lines])
    assert ends == pytest.approx(np.sort(fitted.restarts_.bounds)[::-1])
    assert len(display.axes_[1].lines[0].get_ydata()) == fitted.restarts_.n_best


@pytest.mark.parametrize("method", ["vb", "map", "ml"])
def test_bound_display_names_the_objective(panel, method):
    model = VBDiscreteDAG(latents=2, n_init=2, method=method, random_state=0).fit(panel)
    label = BoundDisplay.from_estimator(model).axes_[1].get_ylabel()
    assert label == {"vb": "lower bound", "map": "log posterior", "ml": "log likelihood"}[method] + " (nats)"


def test_bound_display_without_anything_hidden_or_with_starts_left_behind(panel):
    exact = VBDiscreteDAG([("A", "B")], random_state=0).fit(panel)
    BoundDisplay.from_estimator(exact).figure_.canvas.draw()
    display = BoundDisplay([-4.0, -2.0], [np.nan, -2.0, -3.0], 1, traces=[(), (-4.0, -2.0), (-5.0, -3.0)])
    display.plot()
    assert sum(len(line.get_ydata()) for line in display.axes_[1].lines) == 2
    display.figure_.canvas.draw()


def test_bound_display_takes_two_axes(fitted):
    figure, axes = plt.subplots(2, 1)
    assert BoundDisplay.from_estimator(fitted, axes=axes).figure_ is figure
    with pytest.raises(ValueError, match=r"must hold 2 axes\. Got 1"):
        BoundDisplay.from_estimator(fitted, axes=[axes[0]])


# matplotlib is an extra -----------------------------------------------------------------------------------------------


def test_without_matplotlib_the_error_says_what_to_install(fitted, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for draw in (
        lambda: DAGDisplay.from_estimator(fitted),
        lambda: DAGDisplay.from_structure("[a][b|a]"),
        lambda: BoundDisplay.from_estimator(fitted),
        lambda: BoundDisplay([0.0], [0.0], 1).plot(),
    ):
        with pytest.raises(ImportError, match=r"Display needs matplotlib\. .* pip install 'skvbem\[plot\]'"):
            draw()


def test_importing_the_displays_does_not_import_matplotlib():
    code = "import sys, skvbem.plotting; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-P", "-c", code], check=False).returncode == 0


def test_edges_without_a_direction_are_lines_without_heads():
    """One patch for each edge, and none that is a triangle; widths may be given by either order of the ends."""
    graph = UndirectedGraph(["a", "b", "c", "d"], [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")])
    strengths = {("b", "a"): 2.0, ("b", "c"): 1.0, ("c", "d"): 0.5, ("a", "d"): 0.25}
    display = DAGDisplay.from_structure(graph, edge_widths=strengths)
    kinds = Counter(type(patch).__name__ for patch in display.ax_.patches)
    assert kinds == {"FancyBboxPatch": 4, "PathPatch": 4}
    widths = {patch.get_linewidth() for patch in display.ax_.patches if type(patch).__name__ == "PathPatch"}
    np.testing.assert_allclose(sorted(widths), [0.7, 1.125, 2.25, 4.5])
    assert "strength of a line" in texts(display.ax_)
    with pytest.raises(ValueError, match=r"names \('a', 'c'\), which is no edge"):
        DAGDisplay.from_structure(graph, edge_widths={**strengths, ("a", "c"): 1.0})
    arrows = DAGDisplay.from_structure("[a][b|a]").ax_.patches
    assert Counter(type(patch).__name__ for patch in arrows)["Polygon"] == 1


def test_networks_and_searches_without_directions_are_drawn_without():
    """Widths of a fit are what two nodes tell of each other, and of a search how probable an edge is."""
    X = load_lizards().data
    graph = UndirectedGraph(["x0", "x1", "x2"], [("x0", "x1"), ("x0", "x2"), ("x1", "x2")])
    model = VBDiscreteDAG(graph, prior="bdeu", equivalent_sample_size=1e-9, random_state=0).fit(X)
    display = DAGDisplay.from_estimator(model)
    assert "Polygon" not in {type(patch).__name__ for patch in display.ax_.patches}
    for a, b in graph.edges:
        codes = [np.unique(X[:, int(name[1])], return_inverse=True)[1] for name in (a, b)]
        joint = np.histogram2d(*codes, bins=2)[0] / len(X)
        independent = np.outer(joint.sum(axis=1), joint.sum(axis=0))
        assert display._width((a, b)) == pytest.approx((joint * np.log(joint / independent)).sum(), abs=1e-9)
    space = ChordalSpace(["x0", "x1", "x2"])
    search = StructureSearchCV(VBDiscreteDAG(prior="bdeu"), space, random_state=0).fit(X)
    display = DAGDisplay.from_search(search, least=0.005)
    assert set(display.dashed) == {("x1", "x2")}
    assert display.edge_widths["x0", "x1"] == pytest.approx(0.941707, abs=1e-6)
    assert "Polygon" not in {type(patch).__name__ for patch in display.ax_.patches}
    params = dict(enumerate(search.cv_results_["params"]))
    names = set(short_names(params, search.best_params_, ["structure"]).values())
    assert {"x0 – x1   x0 – x2", "− x0 – x2", "+ x1 – x2"} <= names
