"""Filled tables have the container of X, and columns that hold the new values."""

import warnings

import numpy as np
import pandas as pd
import pytest

from skvbem import VBImputer, VBMixture, VBNetwork

RNG = np.random.default_rng(0)
WORDS = pd.DataFrame({"a": RNG.choice(list("xyz"), 60), "b": RNG.choice(list("uv"), 60)})
EMPTY = ("float64", "Float64", "Int64", "object", "category", "boolean")


@pytest.fixture(scope="module", params=[VBNetwork, VBMixture])
def fit(request):
    emission = {"emission": "categorical"}
    return request.param(2, **emission).fit(WORDS) if request.param is VBMixture else VBNetwork(latents=2).fit(WORDS)


def quietly(function, X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(X)


@pytest.mark.parametrize("dtype", EMPTY)
def test_a_column_without_an_observed_cell_is_filled_with_words(fit, dtype):
    X = pd.DataFrame({"a": pd.Series([None, None], dtype=dtype, index=[7, 3]), "b": ["u", None]}, index=[7, 3])
    before = X.copy()
    filled = quietly(fit.impute, X)
    assert filled["a"].isin(["x", "y", "z"]).all()
    assert filled["b"].tolist()[0] == "u"
    assert filled.index.tolist() == [7, 3]
    pd.testing.assert_frame_equal(X, before)


def test_categories_that_fit_did_not_see_are_filled_in_columns_of_another_type(fit):
    X = pd.DataFrame({"a": [1, 2], "b": pd.Series(["u", None], dtype="category")})
    filled = quietly(fit.impute, X)
    assert filled["a"].isin(["x", "y", "z"]).all()
    assert filled["b"].cat.categories.tolist() in (["u"], ["u", "v"])


def test_an_imputer_fills_an_empty_column_of_words():
    imputer = VBImputer(VBNetwork(latents=2, random_state=0)).fit(WORDS)
    filled = quietly(imputer.transform, pd.DataFrame({"a": [np.nan, np.nan], "b": ["u", None]}))
    assert set(np.asarray(filled)[:, 0]) <= {"x", "y", "z"}


def test_columns_of_polars_hold_new_values():
    pl = pytest.importorskip("polars")
    model = VBNetwork(latents=2, random_state=0).fit(pl.DataFrame({name: WORDS[name].tolist() for name in WORDS}))
    kinds = (pl.Null, pl.Float64, pl.Enum(["x"]), pl.String, pl.Categorical)
    for kind in kinds:
        X = pl.DataFrame({"a": pl.Series([None, None], dtype=kind), "b": ["u", None]})
        filled = quietly(model.impute, X)
        assert set(filled["a"].to_list()) <= {"x", "y", "z"}
    filled = quietly(model.impute, pl.DataFrame({"a": [1, 2], "b": ["u", None]}))
    assert set(filled["a"].to_list()) <= {"x", "y", "z"}


def test_measurements_fill_a_column_of_words():
    numbers = VBMixture(1, emission="gaussian").fit(pd.DataFrame({"a": RNG.normal(5, 1, 40), "b": RNG.normal(size=40)}))
    filled = quietly(numbers.impute, pd.DataFrame({"a": pd.Series([None, None], dtype="str"), "b": [0.0, 1.0]}))
    assert np.asarray(filled["a"], dtype=float) == pytest.approx([5, 5], abs=1)
