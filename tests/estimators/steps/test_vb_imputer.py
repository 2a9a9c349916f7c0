"""What is observed stays to the last bit; what is missing is what the estimator says of its row."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from skvbem import VBHMM, VBDiscreteDAG, VBFactorAnalysis, VBImputer, VBLinearDynamicalSystem, VBMixture, VBNetwork
from skvbem.errors import UnknownCategoryWarning

ONE_START = {"n_init": 1, "random_state": 0, "tol": 0.1}
OF_NUMBERS = [
    VBMixture(2, **ONE_START),
    VBFactorAnalysis(1, **ONE_START),
    VBHMM(2, **ONE_START),
    VBNetwork(latents=2, **ONE_START),
    VBLinearDynamicalSystem(n_draws=5, **ONE_START),
]


@pytest.fixture
def numbers(rng):
    X = rng.normal(size=(60, 1)) @ np.ones((1, 3)) + rng.normal(scale=1e-3, size=(60, 3))
    X[rng.random(X.shape) < 0.2] = np.nan
    X[0] = 1.0
    return X


@pytest.fixture
def mixed(rng, numbers):
    words = np.where(rng.random(60) < 0.5, "yes", "no").astype(object)
    words[5] = None
    truth = rng.random(60) < 0.5
    return pd.DataFrame({"size": numbers[:, 0], "answer": words, "truth": truth}, index=range(100, 160))


@pytest.mark.parametrize("estimator", OF_NUMBERS, ids=lambda estimator: type(estimator).__name__)
def test_observed_cells_stay_and_others_are_those_of_the_estimator(estimator, numbers):
    before = numbers.copy()
    imputer = VBImputer(estimator)
    completed = imputer.fit_transform(numbers)
    observed = ~np.isnan(numbers)
    assert completed[observed].tobytes() == numbers[observed].tobytes()
    assert numbers.tobytes() == before.tobytes()
    assert not np.isnan(completed).any()
    np.testing.assert_array_equal(completed, clone(estimator).fit(numbers).impute(numbers))


def test_the_default_finds_what_columns_hold_and_how_they_hang_together(numbers, mixed):
    completed = VBImputer(random_state=0).fit_transform(numbers)
    known = np.nanmean(numbers, axis=1, where=~np.isnan(numbers).all(axis=1, keepdims=True))
    rows = ~np.isnan(known) & np.isnan(numbers).any(axis=1)
    assert abs(completed[rows] - known[rows, None]).max() < 0.05  # where the mean of a column misses by 1
    imputer = VBImputer(random_state=0).set_output(transform="pandas").fit(mixed)
    assert imputer.estimator_.get_params()["n_components"] == "auto"
    filled = imputer.transform(mixed)
    assert filled.dtypes.equals(mixed.dtypes)
    assert filled.index.equals(mixed.index)
    assert filled.notna().all(axis=None)
    assert filled["answer"].iloc[5] in {"yes", "no"}
    pd.testing.assert_frame_equal(filled.where(mixed.notna()), mixed)


def test_each_container_goes_to_the_one_that_is_asked(mixed):
    imputer = VBImputer(VBMixture(2, **ONE_START)).fit(mixed)
    array = imputer.transform(mixed)
    assert type(array) is np.ndarray
    assert array.dtype == object
    frame = pl.from_dict({name: [None if pd.isna(cell) else cell for cell in mixed[name]] for name in mixed})
    assert imputer.set_output(transform="polars").transform(frame).dtypes == [pl.Float64, pl.String, pl.Boolean]
    assert imputer.set_output(transform="pandas").transform(mixed).to_numpy().tolist() == array.tolist()


def test_names_and_parameters(mixed, numbers):
    imputer = VBImputer(VBMixture(2, **ONE_START)).fit(mixed)
    assert imputer.get_feature_names_out().tolist() == ["size", "answer", "truth"]
    assert imputer.n_features_in_ == 3
    imputer.fit(numbers)
    assert not hasattr(imputer, "feature_names_in_")
    assert imputer.get_feature_names_out(["a", "b", "c"]).tolist() == ["a", "b", "c"]
    with pytest.raises(ValueError, match="'estimator' parameter of VBImputer must be an object implementing"):
        VBImputer(LogisticRegression()).fit(numbers)
    assert repr(imputer.get_params()["estimator"]) == repr(imputer.estimator)


def test_the_estimator_that_was_given_is_not_fitted(numbers):
    estimator = VBMixture(2, **ONE_START)
    VBImputer(estimator).fit(numbers, sample_weight=np.ones(len(numbers)))
    assert not hasattr(estimator, "means_")


def test_weights_count(numbers):
    weight = np.arange(60) % 3
    estimator = VBMixture(2, **ONE_START)
    weighted = VBImputer(estimator).fit(numbers, sample_weight=weight)
    repeated = VBImputer(estimator).fit(np.repeat(numbers, weight, axis=0))
    np.testing.assert_allclose(weighted.transform(numbers), repeated.transform(numbers), atol=1e-6)


def test_a_category_that_fit_did_not_see_is_filled_with_a_warning():
    imputer = VBImputer(VBDiscreteDAG(n_init=1, random_state=0)).fit([["a", "x"], ["a", "y"], ["b", "x"]])
    with pytest.warns(UnknownCategoryWarning, match="'z'"):
        assert imputer.transform([["z", "x"]])[0, 0] in {"a", "b"}


def test_in_a_pipeline_whose_parameters_are_searched(numbers):
    y = np.nanmean(np.where(np.isnan(numbers).all(axis=1, keepdims=True), 0.0, numbers), axis=1) > 0
    pipeline = make_pipeline(VBImputer(VBMixture(**ONE_START)), LogisticRegression())
    search = GridSearchCV(pipeline, {"vbimputer__estimator__n_components": [1, 2]}, cv=2, error_score="raise")
    assert search.fit(numbers, y).score(numbers, y) > 0.9


@pytest.fixture
def regressions(rng):
    """Three measurements of which each explains the next, and rows of these with gaps."""
    first = rng.normal(size=200)
    second = 1.5 * first + 0.5 * rng.normal(size=200)
    X = np.column_stack([first, second, second - first + rng.normal(size=200)]) * [1.0, 20.0, 0.1] + [0.0, 5.0, -3.0]
    gaps = X[:40].copy()
    gaps[rng.random(gaps.shape) < 0.4] = np.nan
    return X, gaps


def test_fills_by_a_network_of_measurements_are_regressions_on_what_is_observed(regressions):
    """All edges by maximum likelihood: a joint normal distribution, whose conditional means these are."""
    X, gaps = regressions
    network = VBNetwork([("x0", "x1"), ("x0", "x2"), ("x1", "x2")], method="ml")
    completed = VBImputer(network).fit(X).transform(gaps)
    mean, covariance = X.mean(axis=0), np.cov(X.T, bias=True)
    for row, filled in zip(gaps, completed):
        seen = ~np.isnan(row)
        slopes = np.linalg.solve(covariance[np.ix_(seen, seen)], covariance[np.ix_(seen, ~seen)])
        np.testing.assert_allclose(filled[~seen], mean[~seen] + (row - mean)[seen] @ slopes, rtol=1e-8)


@pytest.mark.parametrize(
    ("structure", "latents"),
    [([("x0", "x1"), ("x1", "x2")], None), ([("f", f"x{j}") for j in range(3)], {"f": "number"})],
    ids=["regressions", "a hidden number"],
)
def test_fills_and_draws_of_a_network_are_means_and_draws_of_its_queries(structure, latents, regressions):
    """A fit to gaps, by maximum likelihood, whose queries have closed forms; the first column explains others."""
    _, gaps = regressions
    network = VBNetwork(structure, latents=latents, method="ml", n_init=2, random_state=0)
    imputer = VBImputer(network).fit(gaps)
    asked = imputer.estimator_.query("x0", {"x1": 20.0, "x2": -3.1})
    rows = np.tile([np.nan, 20.0, -3.1], (4000, 1))
    assert imputer.transform(rows[:1])[0, 0] == pytest.approx(asked.mean, rel=1e-9)
    drawn, same, others = (
        VBImputer(network, fill="draw", random_state=seed).fit(gaps).transform(rows)[:, 0] for seed in (0, 0, 1)
    )
    assert drawn.tobytes() == same.tobytes() != others.tobytes()
    assert drawn.mean() == pytest.approx(asked.mean, abs=4 * asked.standard_deviation / 4000**0.5)
    assert drawn.std() == pytest.approx(asked.standard_deviation, rel=4 / 8000**0.5)
