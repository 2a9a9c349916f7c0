"""Bad input meets an error or a warning that names whose what, what was expected, what came and what to do.

Cells are tried in every container that can hold them: arrays of objects and of numbers, pandas columns of objects,
nullable types and categories, polars. What a container changes is how it says "missing", nothing else.
"""

import os
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
import scipy.sparse
from estimators.inputs import (
    any_container,
    any_numeric,
    as_floats,
    as_lists,
    as_objects,
    as_pandas_objects,
    quiet,
    refused,
    warned,
)
from ids import named
from sklearn.exceptions import NotFittedError

from skvbem import VBDiscreteDAG, VBMixture, VBNetwork
from skvbem.errors import DataWarning, NoInteriorModeError, StructureError, TooLargeError, UnknownCategoryWarning

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
approx = pytest.approx

GOOD = {"x0": [0, 1, 1, 0, 2, 1], "x1": [0, 1, 1, 0, 0, 1], "x2": [1, 1, 0, 0, 1, 0]}
X = np.array(list(GOOD.values())).T
FRAME = pd.DataFrame({"a": GOOD["x0"], "b": GOOD["x1"], "c": GOOD["x2"]})


def model(structure=None, **params):
    return VBDiscreteDAG(structure, **{"n_init": 2, "random_state": 0, **params})


# --- shapes and containers (rows 1-5 of the list this file follows) ---------------------------------------------------


@pytest.mark.parametrize("empty", [X[:0], FRAME.iloc[:0], pl.DataFrame(GOOD)[:0], np.empty((0, 3), dtype=object)])
def test_no_rows(empty):
    refused(ValueError, "0 sample(s) (shape=(0, 3)) while a minimum of 1 is required", model().fit, empty)
    width = FRAME if hasattr(empty, "iloc") else X
    refused(ValueError, "0 sample(s)", model().fit(width).predict, empty)


@pytest.mark.parametrize("empty", [X[:, :0], FRAME.iloc[:, :0]])
def test_no_columns(empty):
    refused(ValueError, "0 feature(s) (shape=(6, 0)) while a minimum of 1 is required", model().fit, empty)


@any_numeric
def test_one_row_is_taken_with_warnings(container):
    row = {name: column[:1] for name, column in GOOD.items()}
    for latents in (2, 5):
        estimator = warned(
            DataWarning, "X has one row: the fit is mostly prior.", model(latents=latents).fit, container(row)
        )
        assert np.isfinite(estimator.lower_bound_)


@pytest.mark.parametrize(
    "method", ["predict", "decode", "predict_proba", "transform", "score_samples", "impute", "score"]
)
def test_wrong_dimensions(method):
    asked = getattr(model().fit(X), method)
    for function in (model().fit, asked):
        refused(ValueError, "Reshape your data", function, X[:, 0])
        refused(ValueError, "Reshape your data", function, X[None])


@pytest.mark.parametrize("junk", [None, "text", {"a": [1, 2]}, object(), pl.DataFrame(GOOD).lazy()], ids=named)
def test_no_table(junk):
    text = refused(
        TypeError, "X must be an array, a nested list, or a pandas or polars DataFrame. Got a ", model().fit, junk
    )
    assert type(junk).__name__ in text


def test_an_arrow_table_is_not_read_without_its_names():
    arrow = pytest.importorskip("pyarrow")
    refused(TypeError, "Got a Table instead", model().fit, arrow.table(GOOD))


def test_ragged_lists():
    refused(ValueError, "The rows of X must have one length. Got rows of 1, 2 cells.", model().fit, [[0, 1], [1]])


@pytest.mark.parametrize("kind", [scipy.sparse.csr_matrix, scipy.sparse.csr_array, scipy.sparse.coo_matrix])
def test_sparse(kind):
    for function in (model().fit, model().fit(X).predict):
        refused(TypeError, "dense data is required", function, kind(X))


@pytest.mark.parametrize("make", [np.asarray, pd.DataFrame, lambda a: a.astype(object), lambda a: a.tolist()])
def test_complex(make):
    refused(ValueError, "Complex data not supported", model().fit, make(X + 0j))


# --- cells (6-16) -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [as_objects, as_pandas_objects, as_lists])
def test_mixed_kinds(make):
    columns = {"x0": [1, "1", True], "x1": [0, 1, 0]}
    text = refused(ValueError, "Column 'x0' of X mixes kinds of values", model().fit, make(columns))
    assert "1 and '1' are never merged" in text
    fitted = quiet(model().fit, [[1, 0], [2, 1]])
    refused(
        ValueError,
        "Column 'x0' of X mixes kinds of values: 1 (number) and '1' (string)",
        fitted.predict,
        [[1, 0], ["1", 0]],
    )


@pytest.mark.parametrize("cell", [{"a": 1}, [1], object(), np.datetime64("2020-01-01")], ids=lambda c: type(c).__name__)
def test_cells_that_are_no_categories(cell):
    table = np.empty((2, 2), dtype=object)
    table[:] = 1
    table[0, 1] = cell
    refused((TypeError, ValueError), "Column 'x1' of X", model().fit, table)


def test_dates():
    dates = pd.DataFrame({"day": pd.to_datetime(["2020-01-01", "2020-01-02"])})
    text = refused(TypeError, "Column 'day' of X holds values of type datetime64", model().fit, dates)
    assert "as with X['day'] = X['day'].dt.month_name(), or a number" in text


@pytest.mark.parametrize(
    ("column", "levels"),
    [
        (["b", "a", None, "a"], ["a", "b"]),
        ([True, False, None, True], [False, True]),
        ([5, 3, None, 5], [3, 5]),
        ([5.0, 3.0, None, 5.0], [3, 5]),
    ],
)
@any_container
def test_kinds_that_are_taken(container, column, levels):
    estimator = quiet(model().fit, container({"x0": column, "x1": column}))
    assert [own.tolist() for own in estimator.categories_] == [levels, levels]


@any_numeric
def test_fractions_are_categories_with_a_warning_that_names_the_other_estimator(container):
    columns = {"x0": [1.5, 2.5, 1.5], "x1": [0.0, 1.0, 1.0]}
    text = "Column 'x0' of X holds the fraction 1.5, taken as a category. If it is a measurement, use VBMixture."
    assert warned(DataWarning, text, model().fit, container(columns)).categories_[0].tolist() == [1.5, 2.5]


@any_container
def test_missing_cells_need_no_declaration_and_other_markers_do(container):
    columns = {"x0": ["", "a", None, "b"], "x1": ["u", "v", "u", None]}
    text = "Column 'x0' of X holds the empty string, taken as a category. If it marks missing cells, pass missing_"
    estimator = warned(DataWarning, text, model().fit, container(columns))
    assert estimator.categories_[0].tolist() == ["", "a", "b"]
    estimator = model(missing_values="").fit(container(columns))
    assert estimator.categories_[0].tolist() == ["a", "b"]


@any_numeric
def test_a_sentinel_is_a_category_unless_declared(container):
    columns = {"x0": [-1, 0, 1, 1], "x1": [999, 0, 1, 0]}
    text = "Column 'x0' of X holds the negative value -1"
    estimator = warned(DataWarning, text, model().fit, container(columns))
    assert [len(levels) for levels in estimator.categories_] == [3, 3]
    estimator = model(missing_values=[-1, 999]).fit(container(columns))
    assert [levels.tolist() for levels in estimator.categories_] == [[0, 1], [0, 1]]


@pytest.mark.parametrize("container", [as_objects, as_floats, as_pandas_objects, as_lists])
def test_a_column_without_observed_cells(container):
    columns = {"x0": [0, 1, 1], "x1": [None, None, None]}
    text = "Column 'x1' of X has no observed cell. Leave such a column out, or declare its levels with the 'categories'"
    refused(ValueError, text, model().fit, container(columns))
    estimator = model(categories={"x1": ["u", "v"]}).fit(container(columns))
    assert estimator.tables_["x1"].values == approx(0.5)


@pytest.mark.parametrize("container", [as_objects, as_floats, as_pandas_objects, as_lists])
def test_a_table_without_observed_cells(container):
    nothing = container({"x0": [None] * 2, "x1": [None] * 2})
    refused(ValueError, "X must have an observed cell. Got 2 x 2 missing ones.", model().fit, nothing)


@any_numeric
def test_a_row_without_observed_cells(container):
    columns = {name: [*map(float, column), None] for name, column in GOOD.items()}
    estimator = model().fit(container(columns))
    assert estimator.n_rows_all_missing_ == 1
    last = estimator.predict_proba(container(columns))[-1]
    assert last == approx(estimator.query("h0").values)


@pytest.mark.parametrize("infinity", [np.inf, -np.inf])
@any_numeric
def test_infinity(container, infinity):
    columns = {"x0": [0.0, 1.0, infinity], "x1": [0.0, 1.0, 1.0]}
    message = "Column 'x0' of X holds infinity. A category must be finite."
    refused(ValueError, message, model().fit, container(columns))
    fitted = quiet(model().fit, container({name: column[:2] for name, column in columns.items()}))
    refused(ValueError, message, fitted.predict, container(columns))


@any_numeric
def test_extreme_numbers_are_categories_like_others(container):
    column = [1e300, 1e-300, 5e-324, 1e300, -1e300]
    estimator = quiet(model().fit, container({"x0": column, "x1": [0.0, 1.0, 1.0, 0.0, 1.0]}))
    assert estimator.categories_[0].tolist() == sorted(set(column))
    assert np.isfinite(estimator.lower_bound_)
    assert np.isfinite(estimator.score_samples(container({"x0": column, "x1": [0.0] * 5}))).all()


@any_numeric
def test_a_constant_column_has_one_category_or_those_declared(container):
    columns = {"x0": [1, 1, 1], "x1": [0, 1, 1]}
    estimator = warned(DataWarning, "Column 'x0' of X holds only one category, 1", model().fit, container(columns))
    assert estimator.tables_["x0"].shape == (2, 1)
    assert model(categories={"x0": [0, 1]}).fit(container(columns)).tables_["x0"].shape == (2, 2)


# --- other data than in fit (20-24) -----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["predict", "decode", "score_samples", "transform", "impute"])
@any_numeric
def test_a_category_that_fit_did_not_see(container, method):
    columns = {name: [*map(float, column), None] for name, column in GOOD.items()}
    odd = {name: list(column) for name, column in columns.items()}
    odd["x0"][:2] = [7.0, 7.0]
    odd["x1"][2] = 9.0
    as_missing = {name: [None if v in (7.0, 9.0) else v for v in column] for name, column in odd.items()}
    estimator = model(handle_unknown="missing").fit(container(columns))
    expected = getattr(estimator, method)(container(as_missing))

    def same(found):
        return np.array_equal(np.asarray(found, dtype=float), np.asarray(expected, dtype=float))

    assert same(getattr(estimator, method)(container(odd)))
    asked = getattr(model().fit(container(columns)), method)
    assert same(warned(UnknownCategoryWarning, " in column 'x0' (2 cells); ", asked, container(odd)))
    asked = getattr(model(handle_unknown="error").fit(container(columns)), method)
    refused(ValueError, "which is not among the 3 categories seen in fit: 0", asked, container(odd))


def test_all_unknown_categories_come_in_one_warning():
    estimator = model().fit(X)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.predict([[7, 9, 0], [8, 0, 0]])
    assert [str(w.message) for w in caught] == [
        "X contains categories that fit did not see, taken as missing: 7 and 1 other in column 'x0' (2 cells); 9 in "
        "column 'x1' (1 cell)."
    ]


def test_columns_go_by_name():
    estimator = model([("h", "a"), ("h", "b"), ("a", "c")], latents=["h"]).fit(FRAME)
    refused(ValueError, "yet now missing:\n- c", estimator.predict, FRAME[["a", "b"]])
    refused(ValueError, "must be in the same order as they were in fit", estimator.predict, FRAME[["c", "a", "b"]])
    refused(ValueError, "Feature names unseen at fit time:\n- z", estimator.predict, FRAME.rename(columns={"a": "z"}))
    refused(
        ValueError, "must be in the same order", estimator.predict, pl.DataFrame(FRAME[["c", "a", "b"]].to_dict("list"))
    )
    for names in (["a", "a", "c"], ["a", "b", "b"]):
        twice = FRAME.set_axis(names, axis=1)
        refused(ValueError, "X has more than one column named", model().fit, twice)
        refused(ValueError, "X has more than one column named", estimator.predict, twice)
    mixed = FRAME.set_axis(["a", 1, "c"], axis=1)
    refused(TypeError, "Feature names are only supported if all input features have string names", model().fit, mixed)
    found = warned(
        UserWarning, "X does not have valid feature names, but VBDiscreteDAG", estimator.predict, FRAME.to_numpy()
    )
    assert np.array_equal(found, estimator.predict(FRAME))
    warned(UserWarning, "X has feature names, but VBDiscreteDAG was fitted without", model().fit(X).predict, FRAME)


def test_another_number_of_columns():
    message = "X has 2 features, but VBDiscreteDAG is expecting 3 features as input"
    for method in ("predict", "score_samples", "impute", "goodness_of_fit", "partial_fit"):
        refused(ValueError, message, getattr(model().fit(X), method), X[:, :2])


# --- structures (25-29) -----------------------------------------------------------------------------------------------


def test_a_node_that_is_neither_column_nor_latent():
    text = refused(StructureError, "Node 'weight' of the structure is neither a column of X nor a declared latent.",
                   model([("h", "weight")], latents=["h"]).fit, FRAME.rename(columns={"a": "weights"}))  # fmt: skip
    assert "Did you mean 'weights'?" in text
    assert "Columns: 'weights', 'b', 'c'; latents: 'h'." in text
    assert "as in latents={'weight': 2}" in text
    refused(StructureError, "Node 'h' of the structure is neither", model([("h", "x0")]).fit, X)
    refused(StructureError, "Did you mean 'x0'?", model([("h", 0)], latents=["h"]).fit, X)


def test_a_column_that_the_structure_leaves_out_is_a_node_without_edges():
    estimator = model([("a", "b")]).fit(FRAME)
    assert estimator.structure_.parents("c") == estimator.structure_.children("c") == ()
    assert estimator.tables_["c"].values == approx([4 / 8, 4 / 8])


def test_no_structure_for_several_latents():
    text = "fits one latent class with every column below it; 'latents' declares 2: 'g', 'h'. Give a structure"
    refused(StructureError, text, model(latents=["g", "h"]).fit, X)
    refused(StructureError, "'latents' declares 0: none", model(latents={}).fit, X)


def test_twice_the_same():
    refused(StructureError, "The edge a -> b is given twice", model([("a", "b"), ("a", "b")]).fit, FRAME)
    refused(StructureError, "Node 'a' is named twice", model("[a][a][b]").fit, FRAME)
    for nameless in ({"": 2}, ["  "]):
        refused(StructureError, "has a latent without a name", model([("", "a")], latents=nameless).fit, FRAME)
    refused(StructureError, "names a latent twice: ['h', 'h']", model([("h", "a")], latents=["h", "h"]).fit, FRAME)


@pytest.mark.parametrize(
    ("structure", "cycle"),
    [
        ([("a", "a")], "a -> a"),
        ([("a", "b"), ("b", "c"), ("c", "a")], "a -> b -> c -> a"),
        ({"a": "b", "b": "a"}, "a -> b -> a"),
        ([("a", "h"), ("h", "a")], "a -> h -> a"),
    ],
)
def test_cycles_are_printed(structure, cycle):
    refused(StructureError, f"must have no directed cycle. It has {cycle}", model(structure, latents=["h"]).fit, FRAME)


@pytest.mark.parametrize(
    "structure", [5, 1.5, [("a", "b", "c")], ["ab"], [5], "[a][b", "a->b", {"a": 5.5}, {"a": [["b"]]}]
)
def test_what_is_no_structure(structure):
    text = refused((TypeError, StructureError), "", model(structure).fit, FRAME)
    assert "must" in text
    assert "Got" in text or "got" in text or "but" in text


def test_a_latent_that_is_a_column():
    text = refused(StructureError, "Latent 'a' is also a column of X.", model([("a", "b")], latents=["a"]).fit, FRAME)
    assert "a column that is partly observed is no latent, its missing cells are summed out" in text


# --- latents (30-33, 36, 42) ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_states", [0, -1, 2.5, "3", True, None, np.float64(2)])
def test_numbers_of_states(n_states):
    text = refused(
        ValueError, "must give latent 'h0' an int >= 1 as its number of states.", model(latents={"h0": n_states}).fit, X
    )
    assert f"Got {n_states!r} instead." in text


@pytest.mark.parametrize("latents", [2.5, "3", "h0", True, [2], [2.0], [["h0"]], [None]])
def test_what_names_no_latents(latents):
    expected = "must be a mapping of latent names to their numbers of states, a list of names (2 states each), or one"
    text = refused(TypeError, expected, model(latents=latents).fit, X)
    assert f"Got {latents!r} instead." in text


@pytest.mark.parametrize("latents", [3, np.int64(3), {"h0": 3}, {"h0": np.int8(3)}])
def test_ways_to_say_three_states(latents):
    assert model(latents=latents).fit(X).tables_["h0"].shape == (3,)


def test_latents_that_explain_nothing():
    text = "Latent 'h0' has 7 states for rows of total weight 6: some must stay empty."
    warned(UserWarning, text, model(latents=7).fit, X)
    fit = model([("h", "x0")], latents=["h", "g"], tol=1e-9).fit
    estimator = warned(UserWarning, "Latent 'g' has no children: it does not change the score.", fit, X)
    alone = model([("h", "x0")], latents=["h"], tol=1e-9).fit(X)
    assert estimator.lower_bound_ == approx(alone.lower_bound_, abs=1e-6)


def test_tables_and_cliques_above_the_limits():
    wide = np.random.default_rng(0).integers(0, 4, (50, 31))
    star = model([(f"x{i}", "x30") for i in range(30)])
    text = refused(TooLargeError, "The table of node 'x30' (4 states; parents: 'x0', 'x1'", star.fit, wide)
    assert "and 20 more) has 4.612e+18 cells; 'max_table_cells' allows 1.678e+07" in text
    refused(TooLargeError, "The table of node 'h0' (1000000000 states; parents: none)", model(latents=10**9).fit, X)
    # three hidden nodes in a ring around observed ones: every table is small, their sum needs one over all three
    ring = [("h0", "x0"), ("h1", "x0"), ("h1", "x1"), ("h2", "x1"), ("h2", "x2"), ("h0", "x2")]
    looped = model(ring, latents=dict.fromkeys(["h0", "h1", "h2"], 6), max_table_cells=200)
    refused(TooLargeError, "Summing over the hidden nodes h0, h1, h2 needs a table of 216 cells", looped.fit, X)
    assert np.isfinite(looped.set_params(max_table_cells=216).fit(X).lower_bound_)
    refused(TooLargeError, "'max_memory' allows 500", model(max_memory=500).fit, X)
    refused(TooLargeError, "in 1000000000 starts; 'max_memory' allows 4e+09", model(n_init=10**9).fit, X)


@pytest.mark.parametrize("label", [10**9, 2**62, 10**30, -(10**12)])
def test_labels_cost_nothing_by_their_size(label):
    table = X.astype(object)
    table[0, 0] = label
    estimator = quiet(model().fit, table)
    assert label in estimator.categories_[0].tolist()
    assert estimator.tables_["x0"].shape == (2, 4)


def test_more_categories_than_a_byte_or_two_can_number():
    column = np.arange(40_000)
    table = np.stack([column, column % 3], axis=1)
    estimator = quiet(VBDiscreteDAG([("x1", "x0")], random_state=0).fit, table)
    assert estimator.tables_["x0"].shape == (3, 40_000)
    assert estimator.tables_["x0"]["x1":0, "x0":39_999] == approx(2 / (40_000 + 13_334))


# --- priors (37, 38) --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prior", [0, 0.0, -1, np.nan, np.inf])
def test_concentrations_that_are_none(prior):
    text = "The 'prior' parameter of VBDiscreteDAG must hold finite concentrations > 0. Got"
    refused(ValueError, text, model(prior=prior).fit, X)
    text = "The 'prior' parameter of VBDiscreteDAG, for node 'x1', must hold finite concentrations > 0. Got"
    refused(ValueError, text, model(prior={"x1": prior}).fit, X)
    refused(ValueError, text, model(prior={"x1": [[1.0, prior], [1.0, 1.0]]}).fit, X)


@pytest.mark.parametrize("prior", [1e-320, 1e-300, 1e-3, 1e12, 1e100])
@pytest.mark.parametrize("method", ["vb", "map", "ml"])
def test_extreme_concentrations_give_finite_fits(prior, method):
    estimator = model(prior=prior, method=method).fit(X)
    objective = {"vb": "lower_bound_", "map": "log_posterior_", "ml": "log_likelihood_"}[method]
    assert np.isfinite(getattr(estimator, objective))
    for table in estimator.tables_.values():
        assert np.isfinite(table.values).all()
    assert np.isfinite(estimator.transform(X)).all()


@pytest.mark.parametrize(
    "prior",
    ["x", None, True, [1, 2], np.ones((2, 3)), {"x0": "x"}, {"x0": None}, {"x0": True}, {"x0": [["a"]]}],
)
def test_what_is_no_prior(prior):
    text = "must be 'auto', a number > 0 (per cell), 'bdeu', 'bdla', 'per_row', or a mapping of nodes to these or to "
    text = refused(ValueError, text, model(prior=prior).fit, X)
    assert text.endswith("for node 'x0'." if isinstance(prior, dict) else "instead.")


def test_prior_tables_of_another_shape_or_order():
    edges = [("x1", "x0"), ("x2", "x0")]
    right = np.ones((2, 2, 3))
    assert np.isfinite(model(edges, prior={"x0": right}).fit(X).lower_bound_)
    turned = model(edges, prior={"x0": right.T})
    text = refused(ValueError, "for node 'x0', must have the shape (2, 2, 3)", turned.fit, X)
    assert "one axis for each parent in this order, then the node itself, 'x1' (2), 'x2' (2), 'x0' (3)" in text
    assert "Got shape (3, 2, 2) instead." in text
    strange = model(edges, prior={"x9": 1.0})
    refused(ValueError, "names 'x9', which is not a node of the structure.", strange.fit, X)


def test_no_mode_in_the_probability_basis():
    text = refused(NoInteriorModeError, "no interior mode in the probability basis",
                   model(method="map", map_basis="probability", prior=0.1).fit, X)  # fmt: skip
    assert "Use map_basis='natural', where the mode always exists, or a prior of 1 or more." in text


# --- weights (40, 41) -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (-np.ones(6), "Sample weights say how often rows count, and must be >= 0."),
        (np.full(6, np.nan), "Input sample_weight contains NaN"),
        (np.full(6, np.inf), "Input sample_weight contains infinity"),
        (np.full(6, 1e308), "The sum of the sample weights must be finite"),
        (np.zeros(6), "Sample weights must contain at least one non-zero number"),
        (np.ones(5), "must have 6 weights, one for each row of X"),
        (np.ones((6, 2)), "Sample weights must be 1D array or scalar"),
        ("heavy", "Sample weights must be numbers, one for each row. Got 'heavy' instead."),
        (["a"] * 6, "Sample weights must be numbers, one for each row. Got ['a'"),
        (pd.Series([1, 2, None, 1, 1, 1], dtype="Int64"), "ample"),
    ],
)
@pytest.mark.parametrize("method", ["fit", "partial_fit", "score", "goodness_of_fit", "fit_predict"])
def test_weights_that_are_none(weights, message, method):
    refused(ValueError, message, getattr(model().fit(X), method), X, sample_weight=weights)


@pytest.mark.parametrize("factor", [1e-3, 0.5, 1e15])
def test_fractional_and_huge_weights(factor):
    """With nothing hidden the bound is the exact evidence of the weighted counts."""
    from scipy.special import gammaln

    weights = factor * np.array([1.0, 2.0, 3.0, 1.0, 0.0, 2.0])
    counts = np.bincount(X[:, 1], weights=weights)
    estimator = quiet(model([]).fit, X[:, 1:2], sample_weight=weights)
    n = counts.sum()
    # relative to the terms: at 1e15 rows they are 1e17 nats
    expected = gammaln(2) - gammaln(2 + n) + gammaln(1 + counts).sum()
    assert estimator.lower_bound_ == approx(expected, abs=1e-14 * n * max(np.log(n), 1.0) + 1e-9)


# --- parameters (43, 44) ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parameters",
    [
        {"max_iter": 0}, {"max_iter": 1.5}, {"max_iter": -1},
        {"tol": -1.0}, {"tol": "small"},
        {"n_init": 0}, {"n_init": -1}, {"n_init": 1.5}, {"n_init": None},
        {"random_state": -1}, {"random_state": "0"}, {"random_state": 1.5}, {"random_state": np.random.default_rng(0)},
        {"method": "em"}, {"method": None}, {"map_basis": "softmax"}, {"init": "kmeans"}, {"init": 3},
        {"equivalent_sample_size": 0}, {"equivalent_sample_size": -1.0},
        {"acceleration": "squarem"}, {"learn_prior": 1.5}, {"warm_start": "yes"}, {"verbose": -1},
        {"annealing": 0.5}, {"annealing": "slow"}, {"handle_unknown": "ignore"},
        {"max_table_cells": 0}, {"max_table_cells": 1e6}, {"max_memory": 0}, {"max_memory": "4GB"}, {"n_jobs": 1.5},
    ],
    ids=named,
)  # fmt: skip
def test_parameters(parameters):
    ((name, value),) = parameters.items()
    text = refused(
        ValueError, f"The '{name}' parameter of VBDiscreteDAG must be", model().set_params(**parameters).fit, X
    )
    assert f"Got {value!r} instead." in text


@pytest.mark.parametrize("annealing", [[0.0, 1.0], [-0.5], [1.5], [[0.5]], ["a"], [np.nan]])
def test_annealing_schedules(annealing):
    text = refused(ValueError, "must hold inverse temperatures in (0, 1]. Got ", model(annealing=annealing).fit, X)
    assert "'annealing'" in text


def test_parameters_that_do_not_go_together():
    for method in ("ml", "map"):
        text = f"learn_prior=True of VBDiscreteDAG needs method='vb', whose bound decides. Got method={method!r}."
        refused(ValueError, text, model(learn_prior=True, method=method).fit, X)


def test_a_tolerance_of_zero_runs_until_rounding_or_max_iter():
    fine = model(tol=0).fit(X)
    assert fine.lower_bound_ >= model(tol=1e-4).fit(X).lower_bound_
    assert fine.n_iter_ > model(tol=1.0).fit(X).n_iter_


@pytest.mark.parametrize(
    ("init", "message"),
    [
        ({}, "make all states of 'h0' alike for its children: that is a saddle point"),
        ({"h0": [0.3, 0.7]}, "make all states of 'h0' alike for its children: that is a saddle point"),
        ({"x9": [1.0]}, "The 'init' parameter of VBDiscreteDAG names 'x9', which is not a node of the structure."),
        ({"x1": np.ones((3, 2)) / 2}, "must have the shape (2, 2), axes ('h0', 'x1'). Got shape (3, 2) instead."),
        ({"x1": np.ones((2, 2))}, "must hold probabilities > 0 that sum to 1 along the last axis. Got [[1., 1.]"),
        ({"x1": [[0.0, 1.0], [0.5, 0.5]]}, "must hold probabilities > 0 that sum to 1 along the last axis."),
        ({"x1": [[np.nan, 1.0], [0.5, 0.5]]}, "must hold probabilities > 0"),
    ],
)
def test_starts(init, message):
    refused(ValueError, message, model(init=init).fit, X)


@pytest.mark.parametrize(
    ("categories", "message"),
    [
        ([[0, 1, 2]], "must be 'auto', a list of 3 array-likes, one for each column of X, or a mapping"),
        (5, "must be 'auto', a list of 3 array-likes"),
        ({"x9": [0]}, "names 'x9', which is not a column of X: 'x0', 'x1', 'x2'."),
        ({"x0": [0, 1]}, "Column 'x0' of X contains 2, which is not among the 2 levels"),
        ({"x0": [0, 1, 2, 2]}, "must hold each level once. Got 2 more than once."),
        ({"x0": []}, "must be a flat array-like of levels"),
        ({"x0": [0, "1"]}, "mixes kinds of values"),
    ],
)
def test_categories(categories, message):
    refused(ValueError, message, model(categories=categories).fit, X)


@pytest.mark.parametrize("missing_values", [{}, [[1]], [{}]])
def test_missing_markers(missing_values):
    text = "The 'missing_values' parameter of VBDiscreteDAG must be a scalar or a list of scalars. Got "
    refused(ValueError, text, model(missing_values=missing_values).fit, X)


def test_no_threads():
    text = (
        "The 'n_jobs' parameter of VBDiscreteDAG must be an int in the range [1, inf), an int in the range (-inf, -1]"
    )
    refused(ValueError, text, model(n_jobs=0).fit, X)


# --- asking (49) ------------------------------------------------------------------------------------------------------


def test_asking_before_fit():
    estimator = model()
    for ask in (
        lambda: estimator.predict(X), lambda: estimator.predict_proba(X), lambda: estimator.decode(X),
        lambda: estimator.transform(X), lambda: estimator.score_samples(X), lambda: estimator.score(X),
        lambda: estimator.impute(X), lambda: estimator.query("x0"), lambda: estimator.sample(),
        lambda: estimator.summary(), lambda: estimator.goodness_of_fit(X), lambda: estimator.get_feature_names_out(),
        lambda: estimator.latent_states_,
    ):  # fmt: skip
        refused(NotFittedError, "This VBDiscreteDAG instance is not fitted yet", ask)
    assert not hasattr(estimator, "tables_")
    assert not hasattr(estimator, "latent_states_")


def test_asking_for_latents_that_are_not_there():
    estimator = model([("x0", "x1")]).fit(X)
    assert (estimator.decode(X) == X).all()
    for method in ("predict", "predict_proba", "transform", "fit_predict"):
        text = "has no latents to predict. Use 'query' or 'impute' for its columns, or declare latents."
        refused(ValueError, text, getattr(estimator, method), X)
    assert estimator.get_feature_names_out().tolist() == []
    assert estimator.score_samples(X).shape == (6,)


@pytest.mark.parametrize(
    ("targets", "evidence", "error", "message"),
    [
        ("x9", None, ValueError, "'x9' is not a node of this network."),
        (5, None, ValueError, "5 is not a node of this network."),
        (["x0", ["x1"]], None, ValueError, "['x1'] is not a node of this network."),
        ([], None, ValueError, "query needs one or more targets"),
        (["x0", "x0"], None, ValueError, "each named once"),
        ("x0", {"x0": 1}, ValueError, "not also in the evidence"),
        ("h", None, ValueError, "'h' is not a node of this network. Did you mean 'h0'?"),
        ("x0", {"x9": 1}, ValueError, "'x9' is not a node of this network."),
        ("x0", {"x1": 7}, ValueError, "7 is not a state of 'x1', whose states are 0, 1."),
        ("x0", {"x1": "1"}, ValueError, "'1' is not a state of 'x1'"),
        ("x0", {"x1": np.nan}, ValueError, "nan is not a state of 'x1'"),
        ("x0", {"h0": 2}, ValueError, "2 is not a state of 'h0', whose states are 0, 1."),
        ("x0", [("x1", 1)], TypeError, "The evidence of a query must be a mapping of nodes to states."),
    ],
)
def test_queries(targets, evidence, error, message):
    refused(error, message, model().fit(X).query, targets, evidence)


def test_a_joint_table_that_would_be_too_large():
    estimator = model(max_table_cells=6).fit(X)
    refused(TooLargeError, "allows 6", estimator.query, ["x0", "x1", "x2"])
    assert estimator.set_params(max_table_cells=100).query(["x0", "x1", "x2"]).values.sum() == approx(1.0)


@pytest.mark.parametrize("n_samples", [0, -1, 1.5, "3", True, None])
def test_numbers_of_samples(n_samples):
    text = f"The 'n_samples' parameter of sample must be an int >= 1. Got {n_samples!r} instead."
    refused(ValueError, text, model().fit(X).sample, n_samples)


@pytest.mark.parametrize("random_state", [-1, "seed", 1.5, np.random.default_rng(0)])
def test_seeds_of_samples(random_state):
    text = "The 'random_state' parameter of VBDiscreteDAG must be an int in the range [0, 4294967295]"
    refused(ValueError, text, model().fit(X).sample, 3, random_state)


@pytest.mark.parametrize("level", [0, 1, -0.5, 2, np.nan, None, "x", True])
def test_levels_of_intervals(level):
    text = "The 'level' parameter of summary must be a number between 0 and 1, such as 0.95. Got"
    refused(ValueError, text, model().fit(X).summary, level=level)


def test_places_of_tables():
    table = model().fit(X).tables_["x1"]
    refused(KeyError, "7 is not a state of 'x1', whose states are 0, 1", lambda: table["x1":7])
    refused(KeyError, "'x2' is not an axis of this table, whose axes are 'h0', 'x1'", lambda: table["x2":0])
    for key in (0, (0, 1), slice("x1", 0, 2)):
        refused(TypeError, "Index a LabeledTable as table['node': state, ...]", lambda key=key: table[key])


def test_warnings_point_at_the_line_of_the_user():
    gappy = X.astype(float)
    gappy[0] = 7.0
    fitted = model().fit(X)
    calls = [
        lambda: model(latents=7).fit(X),
        lambda: model(max_iter=1, n_init=1).fit(X),
        lambda: model().fit(X[:1]),
        lambda: model().fit_predict(X[:1]),
        *(
            lambda method=method: getattr(fitted, method)(gappy)
            for method in ("predict", "score", "impute", "transform")
        ),
    ]
    for call in calls:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call()
        assert caught
        assert {w.filename for w in caught} == {__file__}


# --- the process around (73) ------------------------------------------------------------------------------------------


PROGRAM = """
import pickle, sys
import numpy as np
from skvbem import VBDiscreteDAG

X = np.array([[0, 1, 1, 0, 2, 1], [0, 1, 1, 0, 0, 1], [1, 1, 0, 0, 1, 0]]).T
edges = [("h", "x0"), ("h", "x1"), ("g", "x2"), ("h", "g")]
m = VBDiscreteDAG(edges, latents=["h", "g"], n_init=2, random_state=0).fit(X)
sys.stdout.buffer.write(pickle.dumps((m.lower_bound_, m.transform(X), m.sample(5))))
"""


@pytest.mark.parametrize(
    ("flags", "environment"),
    [
        (["-O", "-W", "error"], {"PYTHONHASHSEED": "1", "HOME": "/nonexistent"}),
        ([], {"PYTHONHASHSEED": "12345", "LC_ALL": "de_DE.UTF-8"}),
    ],
)
def test_the_environment_changes_nothing(flags, environment):
    path = os.pathsep.join(p for p in sys.path if p)
    run = subprocess.run(
        [sys.executable, "-P", *flags, "-c", PROGRAM],
        env={**os.environ, "PYTHONPATH": path, **environment}, capture_output=True, check=True,
    )  # fmt: skip
    bound, transformed, sampled = pickle.loads(run.stdout)
    here = model([("h", "x0"), ("h", "x1"), ("g", "x2"), ("h", "g")], latents=["h", "g"]).fit(X)
    assert bound == here.lower_bound_
    assert np.array_equal(transformed, here.transform(X))
    assert all(np.array_equal(a, b) for a, b in zip(sampled, here.sample(5)))


@pytest.mark.parametrize("block", [1, 10])
def test_rows_that_cannot_occur_are_named(monkeypatch, block):
    """Their answers are made up; each estimator says so once a call, whatever the blocks of rows."""
    X = np.repeat([["a", "a", "b"], ["b", "b", "a"]], 10, axis=0)
    odd = np.concatenate([X, [["c", "a", "b"], ["a", "a", "b"], ["c", "b", None]]])
    categories = {f"x{k}": ["a", "b", "c"] for k in range(3)}
    options = {"method": "ml", "categories": categories, "random_state": 0, "n_init": 2}
    mixture = VBMixture(2, emission="categorical", **options).fit(X)
    monkeypatch.setattr(type(mixture.fitted.emission), "block_rows", lambda self, n: block)
    network = VBNetwork(latents={"h": 2}, emission="categorical", **options).fit(X)
    for estimator in (mixture, network, VBDiscreteDAG(latents={"h": 2}, **options).fit(X)):
        assert np.isneginf(estimator.score_samples(odd))[[20, 22]].all()
        for name in ("predict_proba", "impute"):
            with pytest.warns(DataWarning, match="2 of 23 rows have probability 0 .* at position 20"):
                answer = getattr(estimator, name)(odd)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                getattr(estimator, name)(X)
            assert len(answer) in (1, 23)
