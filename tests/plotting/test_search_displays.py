"""Displays of searches: what is drawn is what was found, and labels neither lie nor overlap."""

import sys
from itertools import pairwise, permutations

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

from skvbem import DAG, BipartiteSpace, DAGSpace, LabeledTable, StructureSearchCV, VBDiscreteDAG
from skvbem.datasets import load_carcinoma
from skvbem.evidence import Evidence
from skvbem.plotting import DAGDisplay, RankDisplay, SharedParentDisplay, StructureSearchDisplay
from skvbem.plotting.candidates import short_names, varying
from skvbem.plotting.edges import with_probable_edges
from skvbem.plotting.labels import percent, spread
from skvbem.plotting.shared_parent import together
from skvbem.plotting.structure_search import staggered

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")
to_rgb = matplotlib.colors.to_rgb

MODEL = VBDiscreteDAG(n_init=2)
LATENTS = {"h0": 2, "h1": 2}
TWO = DAG.from_edges([("h0", "a"), ("h0", "b"), ("h1", "b"), ("h1", "c")])


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def drawn(n):
    """Three columns: the first two agree mostly, the third stands alone."""
    rng = np.random.default_rng(1)
    state = rng.integers(2, size=n)
    flips = rng.random((n, 2)) < 0.1
    return pd.DataFrame({"a": state ^ flips[:, 0], "b": state ^ flips[:, 1], "c": rng.integers(2, size=n)})


def searched_over(n, **options):
    space = BipartiteSpace(LATENTS, ["a", "b", "c"])
    return StructureSearchCV(MODEL, space, refit=False, random_state=0, **options).fit(drawn(n))


@pytest.fixture(scope="module")
def searched():
    return searched_over(60, scoring="lower_bound")


@pytest.fixture(scope="module")
def with_scores():
    return {n: searched_over(n, scoring={"VB": "lower_bound", "BIC": "bic"}) for n in (40, 160)}


@pytest.fixture(scope="module")
def grid():
    scores = {"VB": "lower_bound", "CS": "cheeseman_stutz"}
    X = load_carcinoma().data
    return StructureSearchCV(MODEL, {"latents": [1, 2, 3, 4]}, scoring=scores, refit="VB", random_state=0).fit(X)


@pytest.fixture(scope="module")
def held_out():
    return StructureSearchCV(MODEL, {"latents": [2, 3, 4]}, cv=4, random_state=0).fit(load_carcinoma().data)


def texts(ax):
    return [text.get_text() for text in ax.texts]


def marks(ax):
    """Every mark as (x, y, area)."""
    return np.array(
        [
            (*place, size)
            for points in ax.collections
            if type(points).__name__ == "PathCollection"
            for place, size in zip(points.get_offsets(), np.resize(points.get_sizes(), len(points.get_offsets())))
        ]
    )


def check_apart(display):
    """No label lies over another or leaves the figure."""
    display.figure_.canvas.draw()
    boxes = [text.get_window_extent() for text in display.ax_.texts]
    assert boxes
    for k, box in enumerate(boxes):
        assert display.figure_.bbox.x0 <= box.x0
        assert box.x1 <= display.figure_.bbox.x1 + 1
        assert not any(box.overlaps(other) for other in boxes[:k])


# StructureSearchDisplay -----------------------------------------------------------------------------------------------


def test_every_candidate_stands_at_its_score(searched):
    display = StructureSearchDisplay.from_estimator(searched)
    assert display.figure_ is display.ax_.figure
    scores = searched.cv_results_["mean_test_score"]
    below = scores - searched.best_score_
    assert np.unique(marks(display.ax_)[:, 1]) == pytest.approx(np.unique(below))
    largest = marks(display.ax_)[np.argmax(marks(display.ax_)[:, 2])]
    assert largest[1] == 0
    assert abs(largest[0] - searched.cv_results_["n_free_parameters"][searched.best_index_]) < 1
    assert f"{searched.best_score_:.2f}"[1:] in display.ax_.get_title(loc="left")
    assert display.ax_.get_xlabel() == "free parameters (equal ones side by side)"
    assert display.ax_.get_ylabel() == "nats below the best\n(linear to −1, then logarithmic)"


def test_probable_candidates_are_named_with_their_probability(searched):
    display = StructureSearchDisplay.from_estimator(searched)
    order = np.argsort(-searched.score_weights_)[:8]
    expected = [f"{percent(searched.score_weights_[k])} %" for k in order]
    assert [text.partition("   ")[0] for text in texts(display.ax_)] == expected
    bold = [text.get_text() for text in display.ax_.texts if text.get_weight() == "bold"]
    assert len(bold) == 1
    (family,) = {tuple(searched.best_structure_.children(node)) for node in LATENTS} - {()}
    assert bold[0].endswith(f"→ {', '.join(family)}")
    check_apart(display)


def test_names_tell_the_least_difference_whatever_latents_are_called():
    def setting(*edges):
        return {"structure": DAG.from_edges(edges, ["h0", "h1", "a", "b", "c"]), "latents": LATENTS}

    best = setting(("h0", "a"), ("h0", "b"), ("h1", "b"), ("h1", "c"))
    others = {
        0: best,
        1: setting(("h1", "a"), ("h1", "b"), ("h0", "b"), ("h0", "c")),
        2: setting(("h1", "a"), ("h1", "b"), ("h0", "c")),
        3: setting(("h0", "a"), ("h0", "b"), ("h1", "b"), ("h1", "c"), ("h1", "a"), ("h0", "c")),
        4: {"structure": "[h][a|h][b|h][c]", "latents": {"h": 3}},
        5: {"structure": "[a][b|a][c]"},
    }
    assert short_names(others, best, ["structure", "latents"]) == {
        0: "h0 → a, b   h1 → b, c",
        1: "the same edges",
        2: "− h1 → b",
        3: "+ h0 → c   h1 → a",
        4: "+ h → a, b   − h0 → a, b   h1 → b, c   3 states",
        5: "nothing hidden: a → b",
    }


def test_names_that_are_cut_still_tell_candidates_apart():
    columns = [f"a long name of a column {k}" for k in range(4)]
    chains = [[(columns[a], columns[b]) for a, b in pairwise(order)] for order in ([0, 1, 2, 3], [0, 1, 3, 2])]
    settings = {k: {"structure": DAG.from_edges(chain, columns)} for k, chain in zip((3, 17), chains)}
    hidden = {"structure": DAG.from_edges([("h", column) for column in columns], ["h", *columns]), "latents": {"h": 2}}
    names = short_names(settings, hidden, ["structure", "latents"])
    assert len(set(names.values())) == 2
    for row, name in names.items():
        assert name.startswith("nothing hidden: a long name of a column 0 → ")
        assert name.endswith(f"… (row {row})")
        assert len(name) <= 64


def test_names_of_other_settings_are_their_values():
    settings = [{"prior": 0.5, "latents": 2, "method": "vb"}, {"prior": 1.0, "latents": 3, "method": "vb"}]
    differing = varying(settings)
    assert differing == ["prior", "latents"]
    assert short_names(dict(enumerate(settings)), settings[0], differing)[1] == "prior=1.0   latents=3"


def test_one_parameter_is_plotted_against(grid):
    display = StructureSearchDisplay.from_estimator(grid, scores="VB")
    assert display.ax_.get_xlabel() == "latents"
    line = display.ax_.lines[0]
    assert line.get_xdata() == pytest.approx([1, 2, 3, 4])
    assert line.get_ydata() == pytest.approx(grid.cv_results_["mean_test_VB"] - grid.best_score_)
    notable = grid.score_weights_[grid.score_weights_ >= 0.01]
    assert texts(display.ax_) == [f"{percent(share)} %" for share in sorted(notable, reverse=True)]
    by_size = StructureSearchDisplay.from_estimator(grid, scores="VB", x="n_free_parameters")
    assert by_size.ax_.lines[0].get_xdata() == pytest.approx(grid.cv_results_["n_free_parameters"])


def test_several_scores_are_drawn_as_they_are_and_each_has_its_best_in_bold(grid):
    display = StructureSearchDisplay.from_estimator(grid)
    best = [size for *_, size in marks(display.ax_)].count(marks(display.ax_)[:, 2].max())
    assert best == 2
    assert texts(display.ax_) == ["VB", "CS"]
    for line, name in zip(display.ax_.lines, ("VB", "CS")):
        assert line.get_ydata() == pytest.approx(grid.cv_results_[f"mean_test_{name}"])
    colors = [text.get_color() for text in display.ax_.texts]
    assert len({to_rgb(color) for color in colors}) == 2
    check_apart(display)


def test_scores_of_rows_held_out_have_errors_of_differences(held_out):
    display = StructureSearchDisplay.from_estimator(held_out)
    table, best = held_out.cv_results_, held_out.best_index_
    splits = np.array([table[f"split{k}_test_score"] for k in range(4)])
    expected = np.std(splits - splits[:, [best]], axis=0, ddof=1) / 2
    bars = next(c for c in display.ax_.collections if type(c).__name__ == "LineCollection")
    heights = np.array([np.ptp(segment[:, 1]) for segment in bars.get_segments()]) / 2
    assert heights == pytest.approx(expected)
    assert heights[best] == 0
    assert not texts(display.ax_)


def test_rescored_candidates_have_bars_and_the_posterior_over_them_alone():
    search = StructureSearchCV(
        MODEL, {"latents": [1, 2, 3, 4]}, scoring="lower_bound", rescoring="ais", n_rescored=2, random_state=0
    ).fit(load_carcinoma().data)
    display = StructureSearchDisplay.from_estimator(search, scores="ais")
    assert np.count_nonzero(~np.isnan(display.ax_.lines[0].get_ydata())) == 2
    assert display.standard_errors["ais"] == pytest.approx(search.cv_results_["standard_error_ais"], nan_ok=True)
    assert 1 <= len(texts(display.ax_)) <= 2


def test_a_search_of_scikit_learn_can_be_drawn():
    X, grid = load_carcinoma().data, {"latents": [2, 3, 4], "prior": [1.0]}
    search = GridSearchCV(MODEL, grid, cv=3).fit(X)
    assert StructureSearchDisplay.from_estimator(search).ax_.get_xlabel() == "latents"
    two = GridSearchCV(MODEL, grid | {"prior": [0.5, 1.0]}, cv=3).fit(X)
    with pytest.raises(ValueError, match=r"no known number of free parameters\. Name a parameter as 'x'"):
        StructureSearchDisplay.from_estimator(two)
    label = StructureSearchDisplay.from_estimator(two, x="latents").ax_.get_xlabel()
    assert label == "latents (equal ones side by side)"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"scores": "AIC"}, r"must name scores of the search: VB, CS\. Got 'AIC'"),
        ({"x": "priors"}, r"'x' .* Got 'priors' instead"),
    ],
)
def test_what_a_search_has_not_is_named(grid, options, text):
    with pytest.raises(ValueError, match=text):
        StructureSearchDisplay.from_estimator(grid, **options)


def test_candidates_of_one_size_stand_side_by_side():
    rng = np.random.default_rng(0)
    x, scores = np.repeat([3.0, 5.0, 9.0], [1, 30, 4]), rng.normal(size=35)
    scores[7] = np.nan
    places, told_apart = staggered(x, scores)
    assert not told_apart
    assert len(np.unique(places)) == 35
    assert np.abs(places - x).max() <= 0.4 * 2
    for value in (3.0, 5.0, 9.0):
        members = np.flatnonzero(x == value)
        by_place = members[np.argsort(places[members])]
        assert np.all(np.diff(np.nan_to_num(scores[by_place], nan=-np.inf)) >= 0)
    assert staggered(np.arange(3.0), scores[:3]) == (pytest.approx(np.arange(3.0)), True)


# Labels ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_labels_are_spread_as_little_as_can_be(seed):
    wanted = np.random.default_rng(seed).random(6)
    gap = 0.11
    placed = spread(wanted, gap, 0.0, 1.0)
    order = np.argsort(wanted)
    assert np.all(np.diff(placed[order]) >= gap - 1e-12)
    assert placed.min() >= 0
    assert placed.max() <= 1
    apart = [{"type": "ineq", "fun": lambda p, i=i, j=j: p[j] - p[i] - gap} for i, j in pairwise(order)]
    best = minimize(lambda p: np.sum((p - wanted) ** 2), placed, bounds=[(0, 1)] * 6, constraints=apart, tol=1e-12)
    assert np.sum((placed - wanted) ** 2) <= best.fun + 1e-8


def test_labels_too_many_for_their_room_keep_their_gaps():
    assert np.diff(spread([0.5] * 20, 0.1, 0.0, 1.0)) == pytest.approx(np.full(19, 0.1))


@pytest.mark.parametrize(
    ("share", "text"), [(0, "0"), (1e-4, "<1"), (0.256, "26"), (0.9999, ">99"), (1 - 1e-12, "100"), (1, "100")]
)
def test_nothing_that_is_neither_impossible_nor_certain_is_said_to_be(share, text):
    assert percent(share) == text


def as_tables(scores):
    """{number: {score: (value, error)}} as tables of evidence."""

    def evidence(name, value, error):
        return Evidence(value, name, False, error, "vb", n_free_parameters=1, n_samples=10.0)

    return {k: {name: evidence(name, *found) for name, found in table.items()} for k, table in scores.items()}


def test_evidence_of_models_fitted_one_by_one():
    numbers = {
        1: {"ais": (-30.0, 0.2), "bic": (-33.0, None)},
        4: {"ais": (-20.0, 0.5), "bic": (-26.0, None)},
        2: {"ais": (-21.0, None), "bic": (-25.0, None), "laplace": (-22.0, None)},
    }
    display = StructureSearchDisplay.from_evidence(as_tables(numbers))
    assert sorted(texts(display.ax_)) == ["ais", "bic", "laplace"]
    for line, name in zip(display.ax_.lines, ("ais", "bic", "laplace")):
        assert line.get_xdata() == pytest.approx([1, 2, 4])
        found = [numbers[k].get(name, (np.nan,))[0] for k in (1, 2, 4)]
        assert line.get_ydata() == pytest.approx(found, nan_ok=True)
    bold = {tuple(place[:2]) for place in marks(display.ax_) if place[2] == marks(display.ax_)[:, 2].max()}
    assert bold == {(4, -20), (2, -25), (2, -22)}
    (bars,) = (c for c in display.ax_.collections if type(c).__name__ == "LineCollection")
    heights = {segment[0, 0]: np.ptp(segment[:, 1]) / 2 for segment in bars.get_segments() if len(segment)}
    assert {k: height for k, height in heights.items() if not np.isnan(height)} == pytest.approx({1: 0.2, 4: 0.5})
    assert "standard error" in display.ax_.get_title(loc="left")
    check_apart(display)
    below = StructureSearchDisplay.from_evidence(as_tables(numbers), below_best=True)
    for line, name in zip(below.ax_.lines, ("ais", "bic")):
        found = np.array([numbers[k][name][0] for k in (1, 2, 4)])
        assert line.get_ydata() == pytest.approx(found - found.max())
    assert below.ax_.get_ylim()[0] < -10
    one = StructureSearchDisplay.from_evidence(as_tables({k: {"bic": table["bic"]} for k, table in numbers.items()}))
    assert one.ax_.get_title(loc="left").strip() == "bic"


def test_evidence_must_be_tables_of_numbers():
    with pytest.raises(TypeError, match=r"'tables' parameter .* must map numbers .* Got list"):
        StructureSearchDisplay.from_evidence([1.0])
    with pytest.raises(TypeError, match="Got dict"):
        StructureSearchDisplay.from_evidence({1: -3.0})
    with pytest.raises(ValueError, match="Got 'two'"):
        StructureSearchDisplay.from_evidence(as_tables({"two": {"bic": (-1.0, None)}}))
    with pytest.raises(ValueError, match="Got no score"):
        StructureSearchDisplay.from_evidence({1: {}})


# RankDisplay ----------------------------------------------------------------------------------------------------------


def test_ranks_are_counted_in_every_search(with_scores):
    truth = {"structure": "[h1][h0][a|h1][b|h1][c]", "latents": LATENTS}
    display = RankDisplay.from_estimators(with_scores, truth)
    for line, name in zip(display.ax_.lines, ("VB", "BIC")):
        expected = []
        for search in with_scores.values():
            table = search.cv_results_
            children = [sorted(map(setting["structure"].children, LATENTS)) for setting in table["params"]]
            place = children.index([(), ("a", "b")])
            expected.append(1 + np.sum(table[f"mean_test_{name}"] > table[f"mean_test_{name}"][place]))
        assert line.get_ydata() == pytest.approx(expected)
    assert texts(display.ax_) == ["VB", "BIC"]
    assert display.ax_.get_ylabel() == "rank of 36"
    low, high = display.ax_.get_ylim()
    assert low > high
    check_apart(display)


def test_a_candidate_that_was_not_tried_has_no_rank(with_scores):
    with pytest.raises(ValueError, match="over 40 rows has not tried"):
        RankDisplay.from_estimators(with_scores, {"structure": "[a][b][c]"})


def test_of_many_draws_the_median_is_drawn():
    ranks = np.array([[30, 4, 1], [10, 2, 1], [50, 9, 3]])
    display = RankDisplay([10, 100, 1000], {"VB": ranks, "BIC": ranks + 1}, n_candidates=136).plot()
    assert display.ax_.lines[0].get_ydata() == pytest.approx([30, 4, 1])
    assert len(display.ax_.collections) == 2
    check_apart(display)


# SharedParentDisplay --------------------------------------------------------------------------------------------------


def test_cells_say_what_the_table_says(searched):
    display = SharedParentDisplay.from_estimator(searched, nodes=["a", "b", "c"])
    table = searched.shared_parent_probabilities_
    pairs = [("a", "a"), ("b", "a"), ("b", "b"), ("c", "a"), ("c", "b"), ("c", "c")]
    assert texts(display.ax_) == [percent(table["node":one, "other":two]) for one, two in pairs]
    shades = display.ax_.collections[0].get_array()
    assert shades.compressed() == pytest.approx([table["node":one, "other":two] for one, two in pairs])
    check_apart(display)


def test_a_part_of_the_nodes_can_be_chosen(searched):
    display = SharedParentDisplay.from_estimator(searched, nodes=["c", "a"])
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == ["c", "a"]
    with pytest.raises(ValueError, match=r"'nodes' .* names 'aa', .* Did you mean 'a'"):
        SharedParentDisplay.from_estimator(searched, nodes=["aa"])


def test_what_hangs_together_stands_together():
    shared = np.full((6, 6), 0.1)
    for group in ([0, 3, 5], [1, 2, 4]):
        shared[np.ix_(group, group)] = 0.9
    assert sorted(map(sorted, (together(shared)[:3], together(shared)[3:]))) == [[0, 3, 5], [1, 2, 4]]
    assert together(np.ones((4, 4))) == [0, 1, 2, 3]
    assert together(np.eye(2)) == [0, 1]


# DAGDisplay -----------------------------------------------------------------------------------------------------------


def line_looks(display):
    """(parent, child) -> (width, style) of every arrow."""
    patches = [patch for patch in display.ax_.patches if type(patch).__name__ == "PathPatch"]
    return {edge: (p.get_linewidth(), p.get_linestyle()) for edge, p in zip(display.dag.edges, patches, strict=True)}


def test_arrows_are_as_wide_as_they_are_probable(searched):
    display = DAGDisplay.from_search(searched, least=0.02)
    probability, best = searched.edge_probabilities_, searched.best_structure_
    looks = line_looks(display)
    assert set(best.edges) < set(looks)
    full = DAGDisplay.from_structure("[x][y|x]", edge_widths={("x", "y"): 1.0})
    ((thickest, _),) = line_looks(full).values()
    for (parent, child), (width, style) in looks.items():
        share = probability["parent":parent, "child":child]
        assert share >= 0.02
        assert width == pytest.approx(max(0.7, thickest * share))
        assert style == ("solid" if (parent, child) in best.edges else "dashed")
    assert {"2 states", "a", "b", "c"} <= set(texts(display.ax_))
    assert "probability of an arrow\ndashed: not in the best structure" in texts(display.ax_)
    assert set(line_looks(DAGDisplay.from_search(searched, least=1.0))) == set(best.edges)


def test_an_edge_turned_round_is_told_under_the_picture():
    X = drawn(80)[["a", "b"]]
    search = StructureSearchCV(VBDiscreteDAG(), DAGSpace(["a", "b"]), scoring="lower_bound", random_state=0).fit(X)
    display = DAGDisplay.from_search(search)
    ((parent, child),) = display.dag.edges
    share = search.edge_probabilities_["parent":child, "child":parent]
    assert f"not drawn: {child} → {parent} ({percent(share)} %)" in texts(display.ax_)[-1]


@pytest.mark.parametrize("seed", range(3))
def test_probable_edges_join_as_long_as_no_cycle_closes(seed):
    rng = np.random.default_rng(seed)
    best = DAG.from_string("[a][b|a][c|b][d]")
    shares = {edge: rng.random() for edge in permutations("abcd", 2)}
    dag, added, left_out = with_probable_edges(best, shares, 0.3)
    probable = {edge for edge, share in shares.items() if share >= 0.3} - set(best.edges)
    assert {*added, *left_out} == probable
    assert set(dag.edges) == {*best.edges, *added}
    for parent, child in left_out:
        assert parent in dag.descendants(child)


def test_edges_not_drawn_are_not_told_without_end():
    nodes = [f"x{k}" for k in range(6)]
    best = DAG.from_parents({node: nodes[:k] for k, node in enumerate(nodes)})
    shares = np.full((6, 6), 0.4)
    search, names = StructureSearchCV(MODEL, {}), (np.array(nodes, dtype=object),) * 2
    search.best_structure_, search.best_params_ = best, {}
    search.edge_probabilities_ = LabeledTable(shares, ("parent", "child"), names)
    search.shared_parent_probabilities_ = LabeledTable(shares, ("node", "other"), names)
    display = DAGDisplay.from_search(search)
    assert "and 17 more" in texts(display.ax_)[-1].replace("\n", " ")
    display.figure_.canvas.draw()
    box = display.ax_.texts[-1].get_window_extent()
    assert box.y0 >= 0


# All ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "draw", [StructureSearchDisplay.from_estimator, SharedParentDisplay.from_estimator, DAGDisplay.from_search]
)
def test_what_is_not_fitted_cannot_be_drawn(draw):
    with pytest.raises(NotFittedError):
        draw(StructureSearchCV(MODEL, {"latents": [1, 2]}))


def test_axes_given_are_used_and_a_display_can_be_drawn_again(searched, with_scores):
    truth = with_scores[40].best_params_
    for draw in (
        lambda ax: StructureSearchDisplay.from_estimator(searched, ax=ax),
        lambda ax: SharedParentDisplay.from_estimator(searched, ax=ax),
        lambda ax: RankDisplay.from_estimators(with_scores, truth, ax=ax),
        lambda ax: DAGDisplay.from_search(searched, ax=ax),
    ):
        figure, axes = plt.subplots(1, 2, figsize=(12, 4))
        display = draw(axes[0])
        assert display.ax_ is axes[0]
        assert display.plot(ax=axes[1]) is display
        assert texts(axes[0]) == texts(axes[1])
        plt.close(figure)


def test_without_matplotlib_the_error_says_what_to_install(searched, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for draw in (
        lambda: StructureSearchDisplay.from_estimator(searched),
        lambda: SharedParentDisplay.from_estimator(searched),
        lambda: RankDisplay([1, 2], {"VB": [2, 1]}).plot(),
        lambda: DAGDisplay.from_search(searched),
    ):
        with pytest.raises(ImportError, match=r"Display needs matplotlib\. .* pip install 'skvbem\[plot\]'"):
            draw()
