"""Class probabilities are those of Bayes' rule; trees are the best of all that there are."""

from itertools import combinations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.special import log_softmax, softmax
from scipy.stats import multivariate_normal
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.naive_bayes import CategoricalNB, GaussianNB

from skvbem import DAG, VBClassifier, VBDiscreteDAG, VBMixture, VBNetwork
from skvbem.datasets import load_zoo
from skvbem.emissions import Gaussian, Regression
from skvbem.errors import StructureError
from skvbem.estimators.steps.vb_classifier import best_forest

SIZES = (3, 2, 4)


@pytest.fixture
def categories(rng):
    """Codes that hang on the class, and the class."""
    y = rng.integers(0, 3, 200)
    return np.column_stack([(y * (rng.random(200) < 0.6) + rng.integers(0, n, 200)) % n for n in SIZES]), y


def by_hand(X, y, rows, alpha=1.0):
    """p(class | row) with one concentration for every cell; -1 marks a missing one."""
    n_classes = y.max() + 1
    logs = np.tile(np.log((np.bincount(y) + 1) / (len(y) + n_classes)), (len(rows), 1))
    for j, size in enumerate(SIZES):
        for c in range(n_classes):
            cells = X[(y == c) & (X[:, j] >= 0), j]
            of_cells = (np.bincount(cells, minlength=size) + alpha) / (len(cells) + alpha * size)
            logs[:, c] += np.where(rows[:, j] >= 0, np.log(of_cells[rows[:, j]]), 0.0)
    p = np.exp(logs)
    return p / p.sum(axis=1, keepdims=True)


def test_naive_bayes_is_that_of_scikit_learn(categories):
    X, y = categories
    model = VBClassifier(emission="categorical", n_init=1, random_state=0).fit(X, y)
    peer = CategoricalNB(class_prior=(np.bincount(y) + 1) / (len(y) + 3)).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(X), rtol=1e-9)
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(model.predict_proba(X)))
    assert model.predict(X).tolist() == peer.predict(X).tolist()


def test_gaps_are_summed_out_in_fits_and_in_questions(categories, rng):
    X, y = categories
    gaps = np.where(rng.random(X.shape) < 0.3, -1, X)
    gaps[0] = -1
    model = VBClassifier(emission="categorical", missing_values=-1, n_init=1, random_state=0).fit(gaps, y)
    np.testing.assert_allclose(model.predict_proba(gaps), by_hand(gaps, y, gaps), rtol=1e-9)


def test_measurements_are_those_of_scikit_learn_by_maximum_likelihood(rng):
    y = rng.integers(0, 2, 100)
    X = rng.normal(size=(100, 2)) + 2 * y[:, None]
    model = VBClassifier(method="ml", n_init=1, random_state=0).fit(X, y)
    peer = GaussianNB(var_smoothing=0).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(X), rtol=1e-6)


@pytest.mark.parametrize("method", ["vb", "map", "ml"])
def test_measurements_as_one_node_are_the_model_of_a_node_each(method, rng):
    y = rng.integers(0, 3, 90)
    X = rng.normal(size=(90, 4)) + y[:, None] * [0.0, 1.0, -2.0, 0.3]
    X[rng.random(X.shape) < 0.2] = np.nan
    weight = rng.integers(1, 4, 90)
    one, each = (
        VBClassifier(emission=emission, method=method).fit(X, y, sample_weight=weight)
        for emission in ("auto", "gaussian")
    )
    assert (len(one.network_.groups_), len(each.network_.groups_)) == (1, 4)
    np.testing.assert_allclose(one.predict_proba(X), each.predict_proba(X), atol=1e-10)
    whole = pd.DataFrame(np.column_stack([X, y]), columns=["x0", "x1", "x2", "x3", "class"])
    assert one.network_.score(whole) == pytest.approx(each.network_.score(whole), rel=1e-10)
    if method == "vb":
        assert one.network_.lower_bound_ == pytest.approx(each.network_.lower_bound_, rel=1e-10)


def test_the_node_of_measurements_has_a_name_of_its_own(rng):
    X = pd.DataFrame(rng.normal(size=(30, 2)), columns=["measurements", "b"])
    model = VBClassifier(class_node="measurements_2").fit(X, np.arange(30) % 2)
    assert model.structure_.edges == (("measurements_2", "measurements_3"),)


def test_weights_by_column_need_independent_columns(rng):
    X = rng.normal(size=(40, 3))
    fit = VBMixture(2, emission=Gaussian("diag", mean_precision_prior="by_column"), random_state=0).fit(X)
    assert fit.mean_precision_.shape == (2, 3)
    assert fit.mean_precision_prior_.shape == (3,)
    with pytest.raises(ValueError, match="'by_column' of Gaussian needs columns that are independent"):
        VBMixture(2, emission=Gaussian(mean_precision_prior="by_column")).fit(X)


def test_mixed_frames_take_each_column_for_what_it_is(rng):
    y = rng.choice(["no", "yes"], 200)
    is_yes = y == "yes"
    words = np.where(rng.random(200) < 0.2, rng.choice(["u", "v"], 200), np.where(is_yes, "u", "v"))
    frame = pd.DataFrame({"size": rng.normal(size=200) + 2 * is_yes, "word": words, "truth": rng.random(200) < 0.5})
    model = VBClassifier(n_init=1, random_state=0).fit(frame, y)
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.feature_names_in_.tolist() == ["size", "word", "truth"]
    assert {*model.network_.tables_} == {"word", "truth", "class"}
    assert model.score(frame, y) > 0.9
    same = VBClassifier(n_init=1, random_state=0).fit(pl.DataFrame({name: frame[name].tolist() for name in frame}), y)
    np.testing.assert_array_equal(same.predict_proba(frame), model.predict_proba(frame))


@pytest.mark.parametrize(
    "emission",
    ["gaussian", Gaussian(), {"gaussian": [0, 1]}, {"gaussian": ["x0"], "categorical": ["x1"]}],
    ids=str,
)
def test_every_way_to_name_emissions_has_room_for_the_class(emission, rng):
    X, y = rng.integers(0, 2, (50, 2)).astype(float), rng.integers(0, 2, 50)
    X[:, 0] += rng.normal(size=50)
    X = X if isinstance(emission, dict) and "categorical" in emission else X + rng.normal(size=(50, 2))
    model = VBClassifier(emission=emission, n_init=1, random_state=0).fit(X, y)
    assert model.predict_proba(X).shape == (50, 2)
    assert len(model.network_.groups_) == 2 - ("categorical" in emission if isinstance(emission, dict) else 0)


def forests(n):
    """Every set of edges between n features without a circle, as (parent, child) from the roots."""
    pairs = [*combinations(range(n), 2)]
    for size in range(n):
        for edges in combinations(pairs, size):
            neighbors = {k: [b if a == k else a for a, b in edges if k in (a, b)] for k in range(n)}
            directed, seen = [], set()
            for root in range(n):
                waiting = [root] if root not in seen else []
                seen |= {root}
                while waiting:
                    node = waiting.pop()
                    below = [k for k in neighbors[node] if k not in seen]
                    directed += [(node, k) for k in below]
                    seen |= {*below}
                    waiting += below
            if len(directed) == len(edges):
                yield directed


@pytest.mark.parametrize("seed", range(3))
def test_trees_have_the_highest_evidence_of_all_forests(seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, 120)
    first = rng.integers(0, 2, 120)
    of_class = [y ^ (rng.random(120) < 0.05) for _ in range(2)]  # which hang together, but not within classes
    X = np.column_stack([first, first ^ (rng.random(120) < 0.2), *of_class])
    model = VBClassifier("tan", emission="categorical", n_init=1, random_state=0).fit(X, y)
    whole, names = np.column_stack([X, y]), ["x0", "x1", "x2", "x3", "x4"]

    def evidence(edges):
        every = [("x4", name) for name in names[:4]] + [(names[a], names[b]) for a, b in edges]
        return VBDiscreteDAG(every, prior="bdeu", n_init=1, random_state=0).fit(whole).lower_bound_

    between = [(names.index(a), names.index(b)) for a, b in model.structure_.edges if a != "class"]
    evidences = [evidence(edges) for edges in forests(4)]
    assert len(evidences) == 38
    assert evidence(between) == pytest.approx(max(evidences), abs=1e-9)
    assert max(evidences) > evidence([]) + 5


def test_a_feature_that_nothing_speaks_for_is_left_alone():
    gains = np.array([[0.0, 3.0, -1.0], [3.0, 0.0, -2.0], [-1.0, -2.0, 0.0]])
    assert best_forest(gains) == [(0, 1)]
    assert best_forest(-gains) in ([(0, 2), (2, 1)], [(2, 1), (2, 0)])


def test_weights_count_as_repeats_for_trees_and_tables(categories, rng):
    X, y = categories
    weight = np.arange(len(y)) % 3
    for structure in ("naive", "tan"):
        options = {"emission": "categorical", "n_init": 1, "random_state": 0}
        weighted = VBClassifier(structure, **options).fit(X, y, sample_weight=weight)
        repeated = VBClassifier(structure, **options).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
        assert weighted.structure_ == repeated.structure_
        np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), rtol=1e-9)
    twins = np.where(weight[:, None] < 2, X[:, :1], rng.integers(0, 3, (len(y), 2)))  # alike where rows count little
    counted = VBClassifier("tan", **options).fit(twins, y, sample_weight=np.where(weight < 2, 0.01, 1.0))
    assert not [parent for parent, _ in counted.structure_.edges if parent != "class"]
    without = VBClassifier(**options).fit(X, y, sample_weight=(y < 2) * 1.0)
    assert without.classes_.tolist() == [0, 1, 2]
    assert without.predict_proba(X).shape == (len(X), 3)
    assert without.predict(X).max() == 1


def test_any_network_with_hidden_nodes_answers_as_its_queries_do(rng):
    hidden = rng.integers(0, 2, 300)
    X = np.column_stack([hidden ^ (rng.random(300) < 0.15) for _ in range(3)]).astype(int)
    y = np.where(rng.random(300) < 0.1, "a", np.where(hidden, "b", "a"))
    structure = DAG.from_edges([("h", "x0"), ("h", "x1"), ("h", "x2"), ("h", "class")])
    options = {"latents": {"h": 2}, "emission": "categorical", "n_init": 3, "random_state": 0}
    model = VBClassifier(structure, **options).fit(X, y)
    assert isinstance(model.network_, VBNetwork)
    for row, proba in zip(X[:5], model.predict_proba(X[:5])):
        asked = model.network_.query("class", dict(zip(("x0", "x1", "x2"), row.tolist())))
        np.testing.assert_allclose(proba, np.asarray(asked), rtol=1e-9)
    assert model.score(X, y) > 0.8


@pytest.fixture
def measurements(rng):
    """Three measurements of which each explains the next, by other slopes in other classes, and the class."""
    y = rng.choice(["a", "b"], 80)
    first = rng.normal(size=80)
    second = np.where(y == "a", 1.5, -1.0) * first + 0.5 * rng.normal(size=80)
    return np.column_stack([first, second, second - first + rng.normal(size=80)]) * [1.0, 20.0, 0.1], y


def test_all_edges_between_measurements_are_quadratic_discriminants(measurements, rng):
    """By maximum likelihood: a normal distribution in each class, in questions with gaps that of the observed cells."""
    X, y = measurements
    edges = [("class", f"x{j}") for j in range(3)] + [("x0", "x1"), ("x0", "x2"), ("x1", "x2")]
    model = VBClassifier(edges, method="ml").fit(X, y)
    rows = np.where(rng.random((30, 3)) < 0.4, np.nan, X[:30])
    logs = np.tile(np.log([np.mean(y == c) for c in "ab"]), (30, 1))
    for i, seen in enumerate(~np.isnan(rows)):
        for c, of_class in enumerate([X[y == "a"], X[y == "b"]] if seen.any() else []):
            covariance = np.cov(of_class[:, seen].T, bias=True)
            logs[i, c] += multivariate_normal(of_class[:, seen].mean(axis=0), covariance).logpdf(rows[i, seen])
    np.testing.assert_allclose(model.predict_log_proba(rows), log_softmax(logs, axis=1), rtol=1e-8, atol=1e-10)
    assert model.score(X, y) > VBClassifier(method="ml").fit(X, y).score(X, y) + 0.1  # slopes tell classes apart


@pytest.mark.parametrize("hidden", [False, True])
def test_edges_and_hidden_numbers_among_measurements_answer_as_their_network_does(measurements, hidden, rng):
    """Fits with gaps: a network of the whole table has the bound, its queries, and by Bayes' rule its densities."""
    X, y = measurements
    X = pd.DataFrame(X, columns=[*"uvw"]).mask(rng.random(X.shape) < 0.2)
    structure = {"v": ["class", "u"], "w": ["v"], "u": ["class"]}
    if hidden:
        structure = {"f": ["class"], "u": ["f"], "v": ["f", "class"], "w": ["f"]}
    latents = {"latents": {"f": "number"}, "prior": {"f": Regression(coefficient_precision_prior=2.0)}}
    options = {"n_init": 2, "random_state": 0} | (latents if hidden else {})
    model = VBClassifier(structure, **options).fit(X, y)
    whole, kinds = X.assign(**{"class": y}), {"gaussian": [*"uvw"], "categorical": ["class"]}
    network = VBNetwork(structure, emission=kinds, **options).fit(whole)
    assert model.network_.lower_bound_ == pytest.approx(network.lower_bound_, abs=1e-9)
    proba = model.predict_proba(X)
    for row, of_row in zip(X.to_dict("records")[:6], proba):
        asked = network.query("class", {name: cell for name, cell in row.items() if cell == cell})
        np.testing.assert_allclose(of_row, np.asarray(asked), rtol=1e-9)
    logs = np.column_stack([network.score_samples(X.assign(**{"class": c})) for c in "ab"])
    np.testing.assert_allclose(proba, softmax(logs, axis=1), atol=1e-9)
    if hidden:
        other = VBClassifier(structure, **(options | {"prior": 1.0})).fit(X, y)
        assert abs(other.network_.lower_bound_ - network.lower_bound_) > 0.01


def test_in_cross_validation():
    X, y = load_zoo(return_X_y=True)
    for structure in ("naive", "tan"):
        model = VBClassifier(structure, emission="categorical", handle_unknown="missing", n_init=1, random_state=0)
        folds = StratifiedKFold(3, shuffle=True, random_state=0)
        assert cross_val_score(model, X, y, cv=folds).mean() > 0.9


def test_what_cannot_be_meant_is_refused(categories):
    X, y = categories
    frame = pd.DataFrame(X, columns=["a", "b", "class"])
    with pytest.raises(ValueError, match="X has a column 'class', which is the name of the class in this VBClassifier"):
        VBClassifier(emission="categorical").fit(frame, y)
    assert (
        VBClassifier(emission="categorical", class_node="kind", n_init=1).fit(frame, y).structure_.nodes[-1] == "kind"
    )
    for structure in ("tree", None):
        with pytest.raises(ValueError, match="must be 'naive', 'tan', or a network that names the class 'class'"):
            VBClassifier(structure, emission="categorical").fit(X, y)
    with pytest.raises(ValueError, match="latents are hidden nodes of a structure that is given"):
        VBClassifier(latents=2, emission="categorical").fit(X, y)
    with pytest.raises(
        StructureError, match="Node 'y' of the structure is neither a column of X nor a declared latent"
    ):
        VBClassifier([("y", "x0"), ("class", "x0")], emission="categorical").fit(X, y)
    with pytest.raises(StructureError, match="of VBClassifier has no node 'class', the class, so that features"):
        VBClassifier([("x0", "x1")], emission="categorical").fit(X, y)
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        VBClassifier(emission="categorical").fit(X, y + 0.5)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        VBClassifier(emission="categorical").fit(X, y[:-1])
    fit = VBClassifier(emission="categorical", n_init=1).fit(X, y)
    with pytest.raises(ValueError, match="X has 2 features, but VBClassifier is expecting 3"):
        fit.predict(X[:, :2])
