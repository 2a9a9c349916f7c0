"""What `VBDiscreteDAG` answers, against definitions: sums over all rows, ratios of probabilities, exhaustive argmax."""

import copy
import io
import itertools
import pickle

import joblib
import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer

from skvbem import DAG, LabeledTable, UndirectedGraph, VBDiscreteDAG
from skvbem.datasets import load_carcinoma, load_coleman_panel
from skvbem.errors import DataWarning, UnknownCategoryWarning

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
approx = pytest.approx

COLUMNS = ["weather", "mood", "size", "n"]
LEVELS = {"weather": ["dry", "wet"], "mood": [False, True], "size": ["L", "M", "S"], "n": [0, 1, 7]}
EDGES = [("h", "g"), ("h", "weather"), ("h", "mood"), ("g", "size"), ("g", "n"), ("weather", "mood")]
METHODS = pytest.mark.parametrize("method", ["vb", "map", "ml"])


def draw(n_rows=200, missing=0.15, seed=0):
    """Rows of two linked hidden causes, as an object array with None where a cell is missing."""
    rng = np.random.default_rng(seed)
    h = rng.integers(2, size=n_rows)
    g = np.where(rng.random(n_rows) < 0.8, h, 1 - h)
    codes = [
        np.where(rng.random(n_rows) < 0.85, h, 1 - h),
        np.where(rng.random(n_rows) < 0.9, 1 - h, h),
        np.where(rng.random(n_rows) < 0.7, 2 * g, 1),
        np.where(rng.random(n_rows) < 0.7, g, rng.integers(3, size=n_rows)),
    ]
    cells = np.empty((n_rows, 4), dtype=object)
    for j, name in enumerate(COLUMNS):
        cells[:, j] = [LEVELS[name][code] for code in codes[j]]
    cells[rng.random(cells.shape) < missing] = None
    return cells


def frame(cells):
    return pd.DataFrame(cells, columns=COLUMNS, dtype=object)


def nullable(cells):
    return frame(cells).astype({"weather": "string", "mood": "boolean", "size": "string", "n": "Int64"})


def categorical(cells):
    types = {name: pd.CategoricalDtype(levels) for name, levels in LEVELS.items()}
    return frame(cells).astype(types)


def newest(cells):
    return frame(cells).astype({"weather": "str", "size": "str", "mood": "boolean", "n": "float64"})


def polars(cells):
    types = {"weather": pl.String, "mood": pl.Boolean, "size": pl.Enum(LEVELS["size"]), "n": pl.Int64}
    return pl.DataFrame({name: pl.Series(name, cells[:, j].tolist(), types[name]) for j, name in enumerate(COLUMNS)})


FRAMES = {
    "object": frame,
    "nullable": nullable,
    "categorical": categorical,
    "str": newest,
    "polars": polars,
}
if not isinstance(pd.Series(["a"]).dtype, pd.StringDtype):
    del FRAMES["str"]  # before pandas 3 this type turns None into "None"
ANY_FRAME = pytest.mark.parametrize("container", FRAMES.values(), ids=FRAMES)


def model(**params):
    return VBDiscreteDAG(EDGES, **{"latents": {"h": 2, "g": 3}, "random_state": 0, "n_init": 4, **params})


@pytest.fixture(scope="module")
def cells():
    return draw()


@pytest.fixture(scope="module")
def fitted(cells):
    return {method: model(method=method).fit(frame(cells)) for method in ("vb", "map", "ml")}


def every_row():
    return frame(np.array(list(itertools.product(*LEVELS.values())), dtype=object))


def observed(row):
    """The observed cells of one row, by name."""
    return {name: value for name, value in zip(COLUMNS, row) if value is not None}


# --- one fit, any container -------------------------------------------------------------------------------------------


@ANY_FRAME
def test_the_container_changes_nothing(cells, fitted, container):
    """Not one bit: the codes are the same, hence everything is."""
    other = model().fit(container(cells))
    assert other.lower_bound_ == fitted["vb"].lower_bound_
    assert [list(levels) for levels in other.categories_] == list(LEVELS.values())
    assert other.feature_names_in_.tolist() == COLUMNS
    for ours, theirs in zip(other.predict_proba(container(cells)), fitted["vb"].predict_proba(frame(cells))):
        assert np.array_equal(ours, theirs)
    assert np.array_equal(other.score_samples(container(cells)), fitted["vb"].score_samples(frame(cells)))


@ANY_FRAME
def test_one_container_in_fit_and_another_in_predict(cells, fitted, container):
    assert np.array_equal(fitted["vb"].predict(container(cells)), fitted["vb"].predict(frame(cells)))


def test_an_array_is_fitted_under_the_names_x0_x1(cells, fitted):
    names = dict(zip(COLUMNS, ["x0", "x1", "x2", "x3"]))
    edges = [(names.get(a, a), names.get(b, b)) for a, b in EDGES]
    from_array = model().set_params(structure=edges).fit(cells)
    assert from_array.lower_bound_ == fitted["vb"].lower_bound_
    assert not hasattr(from_array, "feature_names_in_")
    assert from_array.structure_ == fitted["vb"].structure_.relabel(names)


@pytest.mark.parametrize(
    "layout",
    {
        "read-only": lambda X: _readonly(X),
        "Fortran": np.asfortranarray,
        "negative strides": lambda X: np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1],
        "byte-swapped": lambda X: X.astype(X.dtype.newbyteorder("S")),
        "int8": lambda X: X.astype(np.int8),
        "float": lambda X: X.astype(float),
        "list": lambda X: X.tolist(),
    }.values(),
)
def test_the_memory_layout_changes_nothing(layout):
    X = np.random.default_rng(0).integers(0, 3, (60, 4))
    plain, other = (VBDiscreteDAG(random_state=0).fit(table) for table in (X, layout(X)))
    assert other.lower_bound_ == plain.lower_bound_
    assert np.array_equal(other.predict_proba(layout(X)), plain.predict_proba(X))


def _readonly(X):
    X = X.copy()
    X.flags.writeable = False
    return X


def test_a_memory_mapped_array_changes_nothing(tmp_path):
    X = np.random.default_rng(0).integers(0, 3, (60, 4))
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    plain, other = (VBDiscreteDAG(random_state=0).fit(table) for table in (X, mapped))
    assert other.lower_bound_ == plain.lower_bound_


def test_what_happens_to_X_after_fit_does_not_matter():
    X = np.random.default_rng(0).integers(0, 3, (60, 4))
    estimator = VBDiscreteDAG(random_state=0).fit(X)
    before = estimator.score_samples(np.ones((1, 4)))
    X[:] = 0
    assert np.array_equal(estimator.score_samples(np.ones((1, 4))), before)


def test_structures_may_be_said_in_any_way(cells, fitted):
    networkx = pytest.importorskip("networkx")
    parents = {"g": ["h"], "weather": ["h"], "mood": ["h", "weather"], "size": ["g"], "n": ["g"]}
    text = "[h][g|h][weather|h][mood|h:weather][size|g][n|g]"
    for structure in (DAG.coerce(EDGES), parents, text, networkx.DiGraph(EDGES)):
        assert model().set_params(structure=structure).fit(frame(cells)).lower_bound_ == fitted["vb"].lower_bound_


# --- probabilities ----------------------------------------------------------------------------------------------------


@METHODS
def test_probabilities_of_all_rows_sum_to_one(fitted, method):
    assert np.exp(fitted[method].score_samples(every_row())).sum() == approx(1.0, abs=1e-12)


@METHODS
def test_a_missing_cell_is_the_sum_over_its_values(fitted, method):
    estimator, complete = fitted[method], every_row()
    for name in COLUMNS:
        gappy = complete.copy()
        gappy[name] = None
        total = np.exp(estimator.score_samples(complete))
        total = pd.Series(total).groupby([complete[c] for c in COLUMNS if c != name]).transform("sum")
        assert np.exp(estimator.score_samples(gappy)) == approx(total.to_numpy(), rel=1e-9)


@METHODS
def test_query_is_a_ratio_of_probabilities_of_rows(fitted, method):
    """P(targets | evidence) = P(targets, evidence) / P(evidence), from score_samples alone."""
    estimator, rows = fitted[method], every_row()
    p = pd.Series(np.exp(estimator.score_samples(rows)))
    given = (rows["size"] == "M") & (rows["mood"] == True)  # noqa: E712
    table = estimator.query(["n", "weather"], {"size": "M", "mood": True})
    assert table.axes == ("n", "weather")
    assert table.shape == (3, 2)
    for n, weather in itertools.product(LEVELS["n"], LEVELS["weather"]):
        both = given & (rows["n"] == n) & (rows["weather"] == weather)
        assert table["n":n, "weather":weather] == approx(p[both].sum() / p[given].sum(), rel=1e-9)


@METHODS
def test_query_obeys_the_chain_rule_with_latents_on_both_sides(fitted, method):
    estimator = fitted[method]
    joint = estimator.query(["g", "weather", "h"])
    assert joint.values.sum() == approx(1.0)
    of_h = estimator.query("h").values
    for h in range(2):
        given_h = estimator.query(["g", "weather"], {"h": h})
        assert joint["h":h] == approx(of_h[h] * given_h.values, rel=1e-9)


@METHODS
def test_predict_proba_is_query_given_the_row(cells, fitted, method):
    estimator = fitted[method]
    rows = cells[:12]
    found = estimator.predict_proba(frame(rows))
    assert isinstance(found, list)
    assert [proba.shape for proba in found] == [(12, 2), (12, 3)]
    for i, row in enumerate(rows):
        for name, proba in zip(estimator.latent_names_, found):
            assert proba[i] == approx(estimator.query(name, observed(row)).values, rel=1e-9)


def test_predict_is_the_most_probable_state_of_each_latent(cells, fitted):
    estimator = fitted["vb"]
    h, g = estimator.predict_proba(frame(cells))
    assert np.array_equal(estimator.predict(frame(cells)), np.stack([h.argmax(axis=1), g.argmax(axis=1)], axis=1))


@METHODS
def test_decode_is_the_joint_mode_of_latents_and_gaps(cells, fitted, method):
    estimator = fitted[method]
    rows = cells[:25]
    decoded = estimator.decode(frame(rows))
    for row, states in zip(rows, decoded):
        gaps = [name for name in COLUMNS if name not in observed(row)]
        joint = estimator.query(["h", "g", *gaps], observed(row)).values
        best = np.unravel_index(joint.argmax(), joint.shape)
        assert joint[best] > np.sort(joint.ravel())[-2] * (1 + 1e-9), "the example has a tie"
        assert tuple(states) == best[:2]


def test_decode_is_not_predict():
    """P(a, b) = .4, .3 / 0, .3: one by one a = 0 and b = 1, together a = 0 and b = 0."""
    tables = {
        "a": [0.7, 0.3],
        "b": [[4 / 7, 3 / 7], [1e-9, 1 - 1e-9]],
        "x0": [[[0.6, 0.4], [0.5, 0.5]], [[0.4, 0.6], [0.3, 0.7]]],
    }
    prior = {node: np.multiply(table, 1e9) for node, table in tables.items()}
    estimator = VBDiscreteDAG([("a", "b"), ("a", "x0"), ("b", "x0")], latents=["a", "b"], prior=prior, init=tables)
    estimator.fit([[0], [1]])
    nothing = np.array([[np.nan]])
    assert estimator.predict(nothing).tolist() == [[0, 1]]
    assert estimator.decode(nothing).tolist() == [[0, 0]]


def test_one_latent_needs_no_second_axis():
    X = load_coleman_panel().data
    estimator = VBDiscreteDAG(latents=3, random_state=0).fit(X)
    assert estimator.predict(X).shape == estimator.decode(X).shape == (len(X),)
    assert estimator.predict(X).dtype.kind == estimator.decode(X).dtype.kind == "i"
    assert estimator.predict_proba(X).shape == estimator.transform(X).shape == (len(X), 3)


def test_transform_stands_the_probabilities_side_by_side(cells, fitted):
    estimator = fitted["vb"]
    assert np.array_equal(estimator.transform(frame(cells)), np.hstack(estimator.predict_proba(frame(cells))))
    assert estimator.get_feature_names_out().tolist() == ["h_0", "h_1", "g_0", "g_1", "g_2"]


def test_set_output(cells):
    X = nullable(cells)
    X.index = X.index[::-1]
    estimator = model().fit(X)
    plain = estimator.transform(X)
    framed = estimator.set_output(transform="pandas").transform(X)
    assert framed.index.equals(X.index)
    assert framed.columns.tolist() == estimator.get_feature_names_out().tolist()
    assert np.array_equal(framed.to_numpy(), plain)
    framed = estimator.set_output(transform="polars").transform(X)
    assert isinstance(framed, pl.DataFrame)
    assert framed.columns == estimator.get_feature_names_out().tolist()
    assert np.array_equal(framed.to_numpy(), plain)


def test_score_is_the_weighted_mean_of_score_samples(cells, fitted):
    estimator, X = fitted["vb"], frame(cells)
    scores = estimator.score_samples(X)
    weights = np.arange(len(X)) % 3
    assert estimator.score(X) == approx(scores.mean())
    assert estimator.score(X, sample_weight=weights) == approx((weights * scores).sum() / weights.sum())
    assert isinstance(estimator.score(X), float)


def test_a_row_that_cannot_be_scores_minus_infinity_and_tells_nothing():
    X = [[0, 0, 1], [0, 0, 0], [1, 1, 1], [1, 1, 0]]
    parameters = {"categories": {"x0": [0, 1, 2]}, "method": "ml", "random_state": 0}
    estimator = VBDiscreteDAG(**parameters).fit(X)
    rows = [[2, 0, 1], [0, 0, 1]]
    scores = estimator.score_samples(rows)
    assert scores[0] == -np.inf
    assert np.isfinite(scores[1])
    with pytest.warns(DataWarning, match="1 of 2 rows have probability 0 under the fit, the first at position 0"):
        assert estimator.predict_proba(rows)[0] == approx(estimator.query("h0").values)
    assert estimator.score(rows, sample_weight=[0, 1]) == scores[1]
    with pytest.raises(ValueError, match="has probability 0 under these tables"):
        estimator.query("h0", {"x0": 2})


def test_a_row_without_observed_cells_has_probability_one_and_the_prior_states(cells, fitted):
    estimator = fitted["vb"]
    empty = frame(np.full((1, 4), None))
    assert estimator.score_samples(empty) == approx(0.0, abs=1e-12)
    assert estimator.predict_proba(empty)[0][0] == approx(estimator.query("h").values)


def test_rows_can_be_asked_one_at_a_time(cells, fitted):
    """The checks of scikit-learn leave this out for lists of arrays."""
    estimator, X = fitted["vb"], frame(cells)
    for method in ("predict", "decode", "score_samples", "transform"):
        together = getattr(estimator, method)(X)
        apart = np.concatenate([getattr(estimator, method)(X.iloc[i : i + 1]) for i in range(20)])
        assert apart == approx(together[:20], rel=1e-12)


# --- sample -----------------------------------------------------------------------------------------------------------


def test_samples_have_the_frequencies_of_the_predictive_distribution(fitted):
    """Chi-square of all 36 cells, and the states agree with predict_proba row by row."""
    estimator, n = fitted["vb"], 20_000
    rows, states = estimator.sample(n, random_state=1)
    assert rows.shape == (n, 4)
    assert states.shape == (n, 2)
    expected = n * np.exp(estimator.score_samples(every_row()))
    place = {tuple(row): i for i, row in enumerate(every_row().to_numpy().tolist())}
    counts = np.bincount([place[tuple(row)] for row in rows.to_numpy().tolist()], minlength=len(expected))
    chi_square = ((counts - expected) ** 2 / expected).sum()
    assert chi_square < 35 + 5 * np.sqrt(2 * 35)
    for proba, drawn in zip(estimator.predict_proba(rows), states.T):
        for state in range(proba.shape[1]):
            error = np.sqrt((proba[:, state] * (1 - proba[:, state])).sum())
            assert abs((drawn == state).sum() - proba[:, state].sum()) < 5 * error


def test_samples_are_seeded(fitted):
    estimator = fitted["vb"]
    (first, states), (second, others) = estimator.sample(50), estimator.sample(50)
    assert np.array_equal(first, second)
    assert np.array_equal(states, others)
    assert not np.array_equal(first, estimator.sample(50, random_state=1)[0])
    rng = np.random.RandomState(0)
    assert not np.array_equal(estimator.sample(50, random_state=rng)[0], estimator.sample(50, random_state=rng)[0])
    unseeded = clone(estimator).set_params(random_state=None).fit(every_row())
    assert not np.array_equal(unseeded.sample(50)[0], unseeded.sample(50)[0])


@pytest.mark.parametrize(
    ("X", "kind"),
    [
        (np.array([[0, 5], [3, 5], [0, 6]]), "i"),
        (np.array([[0.0, 5], [3, 5], [0, 6]]), "f"),
        (np.array([["a", "long name"], ["b", "c"]]), "U"),
        (np.array([[True, False], [False, True]]), "b"),
        (np.array([["a", 1], ["b", 2]], dtype=object), "O"),
    ],
)
def test_samples_are_categories_in_the_type_of_the_columns(X, kind):
    rows, states = VBDiscreteDAG(random_state=0).fit(X).sample(30)
    assert rows.dtype.kind == kind
    assert set(np.unique(rows[:, 1]).tolist()) == set(np.unique(X[:, 1]).tolist())
    assert states.shape == (30,)


def test_samples_without_latents():
    rows, states = VBDiscreteDAG([("x0", "x1")], random_state=0).fit([[0, 1], [1, 0], [1, 1]]).sample(5)
    assert rows.shape == (5, 2)
    assert states.shape == (5, 0)


# --- impute -----------------------------------------------------------------------------------------------------------


@ANY_FRAME
def test_impute_fills_gaps_and_touches_nothing_else(cells, fitted, container):
    X = container(cells)
    completed = model().fit(X).impute(X)
    assert type(completed) is type(X)
    assert list(completed.columns) == COLUMNS
    if isinstance(X, pd.DataFrame):
        assert completed.dtypes.equals(X.dtypes)
        assert completed.index.equals(X.index)
        assert not completed.isna().any(axis=None)
        values = completed.to_numpy(dtype=object)
    else:
        assert completed.schema == X.schema
        assert completed.null_count().sum_horizontal().item() == 0
        values = np.array(completed.rows(), dtype=object)
    for before, after in zip(cells, values):
        for name, was, now in zip(COLUMNS, before, after):
            if was is not None:
                assert now == was
            else:
                likeliest = fitted["vb"].query(name, observed(before)).values.argmax()
                assert now == LEVELS[name][likeliest]


def test_impute_leaves_X_alone(cells):
    X = nullable(cells)
    copied = X.copy()
    model().fit(X).impute(X)
    pd.testing.assert_frame_equal(X, copied)


def test_impute_keeps_the_index_and_columns_that_are_no_strings():
    X = pd.DataFrame([[0, 5], [1, np.nan], [1, 6.0]], columns=[10, 20], index=["a", "b", "b"])
    completed = VBDiscreteDAG([("x0", "x1")]).fit(X).impute(X)
    assert completed.index.equals(X.index)
    assert completed.columns.tolist() == [10, 20]
    assert completed.to_numpy().tolist() == [[0, 5], [1, 6], [1, 6]]


FIVES = [[0, 5], [0, 5], [1, 6]]
WORDS = [["x", "longer"], ["x", "longer"], ["y", "z"]]
OBJECTS = [[0, "a"], [0, "a"], [1, "b"]]


@pytest.mark.filterwarnings("ignore::skvbem.errors.DataWarning")
@pytest.mark.parametrize(
    ("X", "missing", "expected"),
    [
        (np.array([[0.0, 5], [0, np.nan], [1, 6]]), np.nan, np.array(FIVES, dtype=float)),
        (np.array([[0, 5], [0, -1], [1, 6]]), -1, np.array(FIVES)),
        (np.array([["x", "longer"], ["x", "?"], ["y", "z"]]), "?", np.array(WORDS)),
        ([[0, "a"], [0, None], [1, "b"]], np.nan, np.array(OBJECTS, dtype=object)),
        ([[0, 5], [0, None], [1, 6]], np.nan, np.array(FIVES)),
        (np.ma.array([[0, 5], [0, 6], [1, 6]], mask=[[0, 0], [0, 1], [0, 0]]), np.nan, np.array(FIVES)),
    ],
)
def test_impute_arrays(X, missing, expected):
    """Two columns that go together: the gap is filled by the value that the other column asks for."""
    estimator = VBDiscreteDAG([("x0", "x1")], missing_values=missing).fit(X)
    completed = estimator.impute(X)
    assert type(completed) is np.ndarray
    assert completed.dtype == expected.dtype
    assert completed.tolist() == expected.tolist()


def test_impute_widens_strings_that_would_be_cut():
    fitted = VBDiscreteDAG([("x0", "x1")], missing_values="?").fit(np.array([["a", "a long category"], ["b", "c"]]))
    assert fitted.impute(np.array([["a", "?"]])).tolist() == [["a", "a long category"]]


def test_an_unknown_category_is_a_gap_to_fill():
    fitted = VBDiscreteDAG([("x0", "x1")]).fit([[0, 0], [1, 1]])
    with pytest.warns(UnknownCategoryWarning, match="9 in column 'x1'"):
        assert fitted.impute([[0, 9], [1, None]]).tolist() == [[0, 0], [1, 1]]


def test_what_is_observed_stays_even_where_it_cannot_be():
    parameters = {"categories": {"x0": [0, 1, 2]}, "method": "ml", "random_state": 0}
    fitted = VBDiscreteDAG(**parameters).fit([[0, 0, 1], [0, 0, 0], [1, 1, 1], [1, 1, 0]])
    with pytest.warns(DataWarning, match="1 of 1 rows have probability 0"):
        completed = fitted.impute(np.array([[2, 0, np.nan]]))
    assert completed[0, :2].tolist() == [2, 0]
    assert completed[0, 2] in (0, 1)


def test_impute_can_say_how_sure_it_is(cells, fitted):
    estimator = fitted["vb"]
    _, proba = estimator.impute(frame(cells), return_proba=True)
    assert list(proba) == COLUMNS
    for j, name in enumerate(COLUMNS):
        assert proba[name].shape == (len(cells), len(LEVELS[name]))
        assert proba[name].sum(axis=1) == approx(1.0)
        for i, value in enumerate(cells[:30, j]):
            expected = (
                np.array(LEVELS[name]) == value
                if value is not None
                else estimator.query(name, observed(cells[i])).values
            )
            assert proba[name][i] == approx(np.asarray(expected, dtype=float), rel=1e-9)


# --- tables -----------------------------------------------------------------------------------------------------------


@METHODS
def test_tables_are_normalized_prior_plus_counts(fitted, method):
    estimator = fitted[method]
    assert list(estimator.tables_) == ["h", "g", *COLUMNS]
    assert hasattr(estimator, "posterior_") == (method == "vb")
    for node, table in estimator.tables_.items():
        assert isinstance(table, LabeledTable)
        assert table.axes == estimator.structure_.family(node)
        cells = estimator.counts_[node].values + (estimator.prior_[node].values if method != "ml" else 0)
        assert table.values == approx(cells / cells.sum(axis=-1, keepdims=True))
        if method == "vb":
            assert estimator.posterior_[node].values == approx(cells)


def test_counts_add_up_to_the_rows_that_bear_on_them(cells, fitted):
    """A table is not learned from a row in which nothing is observed at the node or below it."""
    estimator = fitted["vb"]
    below = {"h": COLUMNS, "g": ["size", "n"], "weather": ["weather", "mood"], "mood": ["mood"], "size": ["size"]}
    for node, names in below.items():
        bearing = frame(cells)[names].notna().any(axis=1).sum()
        assert estimator.counts_[node].values.sum() == approx(bearing)
    assert estimator.n_samples_ == len(cells)


def test_published_tables_are_read_only_views_in_a_mapping(fitted):
    tables = fitted["vb"].tables_
    assert len(tables) == 6
    assert "nobody" not in tables
    assert "LabeledTables of [h][g|h]" in repr(tables)
    with pytest.raises(ValueError, match="read-only"):
        tables["h"].values[0] = 0.0
    with pytest.raises(KeyError, match=r"'sice' is not a node of this network. Did you mean 'size'\?"):
        tables["sice"]


def test_the_posterior_of_one_fit_is_the_prior_of_the_next(cells):
    """Beal (2.114): exact where nothing is hidden."""
    X = draw(100, missing=0.0)
    edges = [("weather", "mood"), ("mood", "size"), ("size", "n")]
    halves = frame(X[:50]), frame(X[50:])
    parameters = {"categories": LEVELS}
    first = VBDiscreteDAG(edges, **parameters).fit(halves[0])
    second = VBDiscreteDAG(edges, prior=first.posterior_, **parameters).fit(halves[1])
    whole = VBDiscreteDAG(edges, **parameters).fit(frame(X))
    assert first.lower_bound_ + second.lower_bound_ == approx(whole.lower_bound_, rel=1e-12)


def test_tables_of_one_fit_are_the_start_of_another(cells, fitted):
    again = model(init=dict(fitted["vb"].tables_)).fit(frame(cells))
    assert again.lower_bound_ == approx(fitted["vb"].lower_bound_, abs=1e-3)
    assert len(again.restarts_.bounds) == 1


# --- scikit-learn's company -------------------------------------------------------------------------------------------


def test_fit_predict_is_fit_then_predict(cells, fitted):
    assert np.array_equal(model().fit_predict(frame(cells)), fitted["vb"].predict(frame(cells)))


def through_joblib(estimator):
    file = io.BytesIO()
    joblib.dump(estimator, file)
    file.seek(0)
    return joblib.load(file)


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, copy.copy, lambda e: pickle.loads(pickle.dumps(e)), through_joblib],
    ids=["deepcopy", "copy", "pickle", "joblib"],
)  # fmt: skip
@METHODS
def test_copies_answer_bit_for_bit(cells, fitted, copied, method):
    original, X = fitted[method], frame(cells)
    other = copied(original)
    assert np.array_equal(other.transform(X), original.transform(X))
    assert np.array_equal(other.score_samples(X), original.score_samples(X))
    assert np.array_equal(other.sample(20)[0], original.sample(20)[0])
    assert np.array_equal(other.lower_bounds_, original.lower_bounds_)
    assert other.structure_ == original.structure_
    assert np.array_equal(other.tables_["mood"].values, original.tables_["mood"].values)
    assert sorted(vars(other)) == sorted(vars(original))


def test_a_pickle_of_another_version_warns(fitted):
    state = fitted["vb"].__getstate__()
    state["_skvbem_version"] = "0.0.1"
    with pytest.warns(UserWarning, match=r"was pickled by skvbem 0.0.1 and is loaded by .* Fit it again"):
        VBDiscreteDAG().__setstate__(state)


def test_clone_keeps_parameters_and_forgets_the_fit(cells):
    parameters = {"prior": {"h": 2.0}, "init": "random", "annealing": [0.5], "categories": LEVELS}
    estimator = model(**parameters).fit(frame(cells))
    other = clone(estimator)
    assert other.get_params() == estimator.get_params()
    assert not hasattr(other, "structure_")
    assert other.fit(frame(cells)).lower_bound_ == estimator.lower_bound_


def test_parameters_set_after_fit_wait_for_the_next(cells, fitted):
    X = frame(cells)
    estimator = copy.deepcopy(fitted["vb"])
    before = estimator.transform(X), estimator.score_samples(X)
    estimator.set_params(structure=None, latents=5, method="ml", prior=9.0, categories={}, handle_unknown="error")
    assert np.array_equal(estimator.transform(X), before[0])
    assert np.array_equal(estimator.score_samples(X), before[1])
    assert estimator.summary(method="vb").to_frame()["lower"].notna().all()
    with pytest.warns(UnknownCategoryWarning):
        estimator.predict(frame([["snow", True, "L", 0]]))


def test_grid_search_finds_the_number_of_classes():
    """Three classes told apart by six items; the default score is the mean log predictive probability."""
    rng = np.random.default_rng(0)
    z = rng.integers(3, size=500)
    X = (rng.random((500, 6)) < np.array([[0.9] * 6, [0.1] * 6, [0.9, 0.1] * 3])[z]).astype(int)
    search = GridSearchCV(
        VBDiscreteDAG(random_state=0, n_init=3), {"latents": [{"h0": k} for k in (1, 2, 3)]}, cv=3, error_score="raise"
    )
    search.fit(X)
    assert search.best_params_ == {"latents": {"h0": 3}}
    held_out = [search.cv_results_[f"split{i}_test_score"] for i in range(3)]
    assert np.all(np.isfinite(held_out))


def test_pipeline_and_cross_validation():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 1)) + 0.1 * rng.normal(size=(200, 3))
    pipeline = make_pipeline(
        KBinsDiscretizer(4, encode="ordinal", strategy="uniform"), VBDiscreteDAG(latents=4, n_init=3, random_state=0)
    )
    assert pipeline.fit(X).predict(X).shape == (200,)
    assert pipeline.get_feature_names_out().tolist() == ["h0_0", "h0_1", "h0_2", "h0_3"]
    together = cross_val_score(pipeline, X, cv=3)
    pipeline.set_params(vbdiscretedag__structure=[], vbdiscretedag__latents=None)
    apart = cross_val_score(pipeline, X, cv=3)
    assert np.all(together > apart + 1.0)


def test_a_search_in_parallel_finds_the_same(cells):
    searches = [GridSearchCV(model(), {"method": ["vb", "map"]}, cv=2, n_jobs=n).fit(nullable(cells)) for n in (1, 2)]
    assert np.array_equal(*(search.cv_results_["mean_test_score"] for search in searches))


def test_weights_are_routed_through_pipelines_and_searches():
    rng = np.random.default_rng(0)
    X, weights = rng.integers(0, 2, (80, 3)), rng.integers(0, 3, 80).astype(float)
    with sklearn.config_context(enable_metadata_routing=True):
        estimator = VBDiscreteDAG(random_state=0)
        estimator.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        pipeline = make_pipeline(estimator).fit(X, sample_weight=weights)
        alone = VBDiscreteDAG(random_state=0).fit(X, sample_weight=weights)
        assert pipeline[-1].lower_bound_ == alone.lower_bound_
        assert pipeline.score(X, sample_weight=weights) == alone.score(X, sample_weight=weights)
        assert pipeline.score(X) == alone.score(X)
        search = GridSearchCV(estimator, {"latents": [2, 3]}, cv=2).fit(X, sample_weight=weights)
        assert search.best_estimator_.n_samples_ == weights.sum()


def test_first_step_of_a_pipeline(cells):
    """Posterior probabilities of latents as features."""
    from sklearn.linear_model import LogisticRegression

    y = cells[:, 1] == True  # noqa: E712
    X = frame(cells).drop(columns="mood")
    pipeline = make_pipeline(VBDiscreteDAG(n_init=3, random_state=0), LogisticRegression())
    assert pipeline.fit(X, y).score(X, y) > 0.6


def test_html_repr(fitted):
    for estimator in (model(), fitted["vb"], fitted["ml"]):
        html = estimator._repr_html_()
        assert "VBDiscreteDAG" in html
        assert "latents" in html


def test_repr_shows_what_was_set():
    assert repr(VBDiscreteDAG(latents=3, method="ml")) == "VBDiscreteDAG(latents=3, method='ml')"


def test_published_attributes(cells, fitted):
    """Each is documented, and each documented one exists for some method."""
    documented = set()
    for line in VBDiscreteDAG.__doc__.split("Attributes\n")[1].split("Notes\n")[0].splitlines():
        if line.startswith("    ") and not line.startswith("     ") and not line.strip().startswith("-"):
            documented |= {name.strip() for name in line.split(" : ")[0].split(",") if name.strip()}
    published = set()
    structure = dict.fromkeys(frame(cells).columns, ("a", "b"))
    in_clusters = [
        VBDiscreteDAG(structure, latents=["a", "b"], inference="mean_field", method=method, n_init=1, tol=10.0)
        for method in ("map", "ml")
    ]
    rows = frame(cells).assign(age=np.arange(float(len(cells))))
    driven = VBDiscreteDAG(latents=["a"], covariates="age", n_init=1, tol=10.0).fit(rows)
    undirected = VBDiscreteDAG(UndirectedGraph(["x0"]), prior="bdeu").fit([[0], [1]])
    for estimator in (*fitted.values(), *(each.fit(frame(cells)) for each in in_clusters), undirected, driven):
        published |= {name for name in dir(estimator) if name.endswith("_") and not name.startswith("_")}
    assert published == documented


def test_data_sets_fit_from_frame_and_array_alike():
    framed, bare = load_carcinoma(as_frame=True).data, load_carcinoma().data
    first, second = (VBDiscreteDAG(latents=3, random_state=0).fit(X) for X in (framed, bare))
    assert first.lower_bound_ == second.lower_bound_
