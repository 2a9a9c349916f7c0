"""Bad input to mixtures, every family in every container: the documented result, or an error that says what to do.

The order of the sections is that of the list of `test_bad_input`. What all estimators share (sparse tables, names of
columns, weights) is tried once for each family here, since each family reads its columns in its own way.
"""

import pickle
from decimal import Decimal
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
import scipy.sparse
from estimators.inputs import (
    ANYTHING,
    NUMBERS,
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
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from skvbem import VBMixture
from skvbem.emissions import EMISSIONS, Gaussian
from skvbem.errors import DataWarning, NoInteriorModeError, TooLargeError, UnknownCategoryWarning

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
approx = pytest.approx

#: A column that each family takes, another like it, and a third.
FIRST = [0, 1, 1, 0, 0, 1, 1, 0, 1, 1]
SECOND = [1, 1, 0, 0, 1, 0, 1, 1, 0, 1]
GOOD = {
    "gaussian": {
        "x0": [0.5, 1.0, -2.0, 0.25, 3.0, 1.5, 0.0, -1.0, 2.0, 1.25],
        "x1": [1.0, 2.0, 0.0, 5.0, -3.0, 2.0, 4.0, 1.0, 0.0, 3.0],
    },
    "categorical": {"x0": FIRST, "x1": SECOND},
    "bernoulli": {"x0": FIRST, "x1": SECOND},
    "poisson": {"x0": [3, 1, 4, 1, 5, 0, 2, 6, 5, 3], "x1": [2, 7, 1, 8, 2, 8, 1, 0, 2, 8]},
    "multinomial": {"x0": [3, 1, 4, 1, 5, 0, 2, 6, 5, 3], "x1": [2, 7, 1, 8, 2, 8, 1, 0, 2, 8]},
    "exponential": {
        "x0": [3.5, 1.0, 4.0, 1.0, 5.0, 0.0, 2.25, 6.0, 5.0, 3.0],
        "x1": [2.0, 0.125, 1.0, 8.0, 2.0, 8.0, 1.0, 0.0, 2.0, 8.0],
    },
}
GOOD["factor"] = GOOD["regression"] = GOOD["gaussian"]
GOOD["student_t"] = {  # of which no component is on a line at maximum likelihood
    "x0": [0.35, 0.82, 0.33, -1.3, 0.91, 0.45, -0.54, 0.58, 0.36, 0.29],
    "x1": [0.03, 0.55, -0.74, -0.16, -0.48, 0.6, 0.04, -0.29, -0.78, -0.26],
}
GOOD["zero_inflated"] = GOOD["negative_binomial"] = GOOD["poisson"]
GOOD["von_mises"], GOOD["ordinal"] = GOOD["gaussian"], GOOD["categorical"]
GOOD["gamma"] = {name: [each + 0.125 for each in column] for name, column in GOOD["exponential"].items()}
OBJECTIVE = {"vb": "lower_bound_", "map": "log_posterior_", "ml": "log_likelihood_"}
NUMERIC = [family for family in EMISSIONS if not EMISSIONS[family].holds_categories]
any_family_name = pytest.mark.parametrize("family", EMISSIONS)
#: Families whose numbers may be 0.
any_family_of_zeros = pytest.mark.parametrize("family", [family for family in EMISSIONS if family != "gamma"])
any_numeric_family_of_zeros = pytest.mark.parametrize("family", [family for family in NUMERIC if family != "gamma"])
any_numeric_family = pytest.mark.parametrize("family", NUMERIC)
any_method = pytest.mark.parametrize("method", OBJECTIVE)
ASKING = ["predict", "predict_proba", "transform", "score_samples", "impute", "score"]


def model(family="auto", n_components=2, **params):
    """A mixture; what is a parameter of the family goes to an object of it."""
    of_family = EMISSIONS[family]().get_params() if isinstance(family, str) and family in EMISSIONS else {}
    own = {name: params.pop(name) for name in list(params) if name in of_family}
    emission = EMISSIONS[family](**own) if own else family
    return VBMixture(n_components, emission=emission, **{"n_init": 1, "random_state": 0, **params})


def plain(family, n_components=2, **params):
    """A mixture from one start, which no moves follow: for what is read, not for what is found."""
    return model(family, n_components, init="random", **params)


def by(method, family, n_components=2, **params):
    """A mixture by a method. Moves, which are the same for every method, are tried on variational Bayes alone."""
    return (model if method == "vb" else plain)(family, n_components, method=method, **params)


def table(family, **changed):
    """The family's columns as floats, with some cells changed: x0={3: nan}."""
    columns = {name: np.array(column, dtype=float) for name, column in GOOD[family].items()}
    for name, cells in changed.items():
        for row, value in cells.items():
            columns[name][row] = value
    return np.array(list(columns.values())).T


@cache
def fitted_to(family, method="vb"):
    """A fit to the good table, to ask and not to change."""
    return model(family, method=method).fit(table(family))


def is_finite(estimator, X):
    """Whether nothing that a fit publishes or answers is NaN or infinite."""
    tables = [values for of_family in estimator.parameters_.values() for values in of_family.values()]
    sizes = [
        np.isfinite(values).all() for values in tables if values.ndim < 3 or "categorical" not in estimator.groups_
    ]
    objective = getattr(estimator, OBJECTIVE[estimator.method])
    answers = [estimator.predict_proba(X), estimator.score_samples(X), estimator.weights_, estimator.counts_]
    return all(sizes) and np.isfinite(objective) and all(np.isfinite(answer).all() for answer in answers)


def test_every_family_is_tried():
    assert set(GOOD) == set(EMISSIONS)


# --- shapes and containers (rows 1-5) ---------------------------------------------------------------------------------


@any_family_name
@pytest.mark.parametrize("container", dict.fromkeys(ANYTHING + NUMBERS))
def test_containers_make_no_difference(family, container):
    expected = quiet(plain(family).fit, table(family))
    other = quiet(plain(family).fit, container({name: list(column) for name, column in GOOD[family].items()}))
    assert other.lower_bound_ == approx(expected.lower_bound_, rel=1e-12)


@any_family_name
def test_storage_makes_no_difference(family):
    values = np.abs(table(family)).round() + (family == "gamma")
    expected = plain(family).fit(values).lower_bound_
    stored = [values.astype(dtype) for dtype in ("f2", "f4", "g", ">f8", "i1", "i8", "u1", ">i4", "O")]
    frozen = values.copy()
    frozen.flags.writeable = False
    for X in [*stored, np.asfortranarray(values), values[::-1].copy()[::-1], frozen]:
        kept = X.copy()
        assert plain(family).fit(X).lower_bound_ == expected
        assert np.array_equal(X, kept)


@any_family_of_zeros
def test_kinds_of_cells(family):
    """What each family takes besides floats: booleans as 0 and 1, exact numbers, masked cells, missing ones."""
    zero_one = np.array([FIRST, SECOND]).T
    expected = plain(family).fit(zero_one).lower_bound_
    for like in (
        zero_one.astype(bool),
        zero_one.astype(bool).astype(object),
        pd.DataFrame(zero_one.astype(bool)).astype("boolean"),
        pd.DataFrame(zero_one).astype("Int8"),
        pl.DataFrame({"a": [bool(v) for v in FIRST], "b": [bool(v) for v in SECOND]}),
        np.array([[Decimal(int(v)) for v in row] for row in zero_one], dtype=object),
        np.array([[Fraction(int(v)) for v in row] for row in zero_one], dtype=object),
        scipy.sparse.csr_array(zero_one).toarray(),
        np.ma.array(zero_one, mask=False),
    ):
        assert plain(family).fit(like).lower_bound_ == approx(expected, rel=1e-12)
    gaps = np.zeros(zero_one.shape, dtype=bool)
    gaps[3] = True
    holed = zero_one.astype(object)
    holed[gaps] = None
    expected = plain(family).fit(holed).lower_bound_
    for like in (
        np.ma.array(zero_one, mask=gaps),
        pd.DataFrame(zero_one).astype("Int64").mask(gaps),
        pd.DataFrame(zero_one.astype(float)).mask(gaps),
        pl.DataFrame({"a": [*FIRST[:3], None, *FIRST[4:]], "b": [*SECOND[:3], None, *SECOND[4:]]}),
        np.where(gaps, -9, zero_one),
    ):
        assert plain(family, missing_values=-9).fit(like).lower_bound_ == approx(expected, rel=1e-12)


def test_what_auto_makes_of_types():
    frame = pd.DataFrame(
        {
            "whole": FIRST,
            "decimal": np.linspace(0, 1, 10),
            "nullable": pd.array([*SECOND[:9], None], dtype="Int64"),
            "objects": pd.Series([*FIRST[:9], None], dtype=object),
            "yes": np.array(FIRST, dtype=bool),
            "maybe": pd.array([*map(bool, SECOND[:9]), None], dtype="boolean"),
            "text": ["u", "v"] * 5,
            "string": pd.array(["u", "v"] * 5, dtype="string"),
            "level": pd.Categorical([1, 2] * 5),
        }
    )
    estimator = model().fit(frame)
    assert estimator.groups_ == {
        "gaussian": ["whole", "decimal", "nullable", "objects"],
        "categorical": ["yes", "maybe", "text", "string", "level"],
    }


@any_family_name
@pytest.mark.parametrize("make", [np.asarray, pd.DataFrame, lambda a: a.astype(object)])
def test_no_rows_and_no_columns(family, make):
    refused(
        ValueError,
        "0 sample(s) (shape=(0, 2)) while a minimum of 1 is required",
        model(family).fit,
        make(table(family)[:0]),
    )
    refused(
        ValueError, "0 feature(s) (shape=(10, 0)) while a minimum of 1", model(family).fit, make(table(family)[:, :0])
    )
    fitted = plain(family).fit(make(table(family)))
    refused(ValueError, "0 sample(s)", fitted.predict, make(table(family)[:0]))


@any_family_name
@any_method
def test_one_row_is_taken_with_warnings(family, method):
    row = table(family)[:1]
    text = "X has one row: the fit is mostly prior."
    for n_components in (1, 3):
        estimator = warned(DataWarning, text, by(method, family, n_components).fit, row)
        assert is_finite(estimator, row)


@any_family_name
@pytest.mark.parametrize("method", ["fit", *ASKING])
def test_wrong_dimensions(family, method):
    X = table(family)
    asked = getattr(fitted_to(family), method)
    refused(ValueError, "Reshape your data", asked, X[:, 0])
    refused(ValueError, "Reshape your data", asked, X[None])
    refused(ValueError, "Reshape your data", asked, 3.0)
    for junk in (None, "text", {"a": [1.0]}):
        refused(TypeError, f"Got a {type(junk).__name__} instead", asked, junk)
    if method != "fit":
        for one_column in (X[:, :1], pd.Series(X[:, 0])):
            refused(ValueError, "X has 1 features, but VBMixture is expecting 2 features as input", asked, one_column)


@any_family_name
@pytest.mark.parametrize("kind", [scipy.sparse.csr_matrix, scipy.sparse.coo_array])
def test_sparse(family, kind):
    X = table(family)
    for function in (model(family).fit, fitted_to(family).predict):
        refused(TypeError, "dense data is required", function, kind(X))


@any_family_name
@pytest.mark.parametrize("make", [np.asarray, pd.DataFrame, lambda a: a.astype(object), lambda a: a.tolist()])
def test_complex(family, make):
    X = table(family)
    for function in (model(family).fit, fitted_to(family).predict):
        refused(ValueError, "Complex data not supported. Column 'x0' of X holds", function, make(X + 0j))


# --- cells (6-18, 47) -------------------------------------------------------------------------------------------------


@any_numeric_family
@pytest.mark.parametrize("cell", ["a", "1", "", b"1", {1: 2}, [1], object()], ids=lambda cell: named(repr(cell)))
def test_cells_that_are_no_numbers(family, cell):
    X = table(family).astype(object)
    X[3, 1] = cell
    fitted = fitted_to(family)
    for function in (model(family).fit, fitted.predict):
        text = refused(ValueError, "Column 'x1' of X holds ", function, X)
        assert ", where a number is expected. Make numbers of such a column first, or give it to 'categorical'" in text


@any_numeric_family
@pytest.mark.parametrize(
    "column",
    [
        pd.to_datetime(["2020-01-01"] * 10),
        pd.to_timedelta(range(10), unit="s"),
        pd.Series(pd.to_datetime(["2020-01-01"] * 10)).dt.date,
        pd.to_datetime(["2020-01-01"] * 10).tz_localize("UTC"),
    ],
    ids=["datetime", "timedelta", "date", "time zone"],
)
def test_times_are_no_numbers(family, column):
    frame = pd.DataFrame({"when": column, "x1": GOOD[family]["x1"]})
    text = refused(ValueError, "Column 'when' of X holds", model(family).fit, frame)
    assert "where a number is expected. Make numbers of times first, such as days since the first." in text


@pytest.mark.parametrize("family", ["auto", "categorical"])
def test_times_are_no_categories(family):
    for dates in (
        pd.DataFrame({"when": pd.to_datetime(["2020-01-01"] * 10)}),
        pl.DataFrame({"when": [1] * 10}).with_columns(pl.col("when").cast(pl.Date)),
    ):
        text = refused(TypeError, "Column 'when' of X holds values of type datetime64", model(family).fit, dates)
        assert "'].dt.month_name()" in text


@pytest.mark.parametrize("family", ["auto", "categorical"])
def test_mixed_kinds_are_no_column(family):
    X = np.array([[1, 0], ["1", 1], [2, 0]], dtype=object)
    text = refused(
        ValueError, "Column 'x0' of X mixes kinds of values: 1 (number) and '1' (string)", model(family).fit, X
    )
    assert "1 and '1' are never merged" in text
    found = refused(TypeError, "Column 'x0' of X holds {1: 2}, a dict", model(family).fit, [[{1: 2}], [{1: 2}]])
    assert "must be a string, a boolean or a number" in found


@pytest.mark.parametrize("family", ["gaussian", "exponential", "poisson"])
def test_numbers_beyond_floats(family):
    X = np.abs(table(family)).round().astype(object)
    X[0, 0] = 10**400
    refused(ValueError, "Column 'x0' of X holds 1000", model(family).fit, X)


@any_numeric_family_of_zeros
@pytest.mark.parametrize("infinity", [np.inf, -np.inf])
@any_numeric
def test_infinity(family, container, infinity):
    columns = {"x0": [0.0, 1.0, infinity], "x1": [0.0, 1.0, 1.0]}
    message = "Column 'x0' of X holds infinity. A number must be finite, NaN where it is missing."
    refused(ValueError, message, model(family).fit, container(columns))
    fitted = quiet(plain(family).fit, container({name: column[:2] for name, column in columns.items()}))
    refused(ValueError, message, fitted.predict, container(columns))


IMPOSSIBLE = {
    "poisson": ([-3.0, 1.5, 0.3, 1e-300], "counts are whole numbers >= 0."),
    "multinomial": ([-3.0, 1.5, 0.3, 1e-300], "counts are whole numbers >= 0."),
    "exponential": ([-3.0, -1e-300], "waiting times are >= 0."),
    "bernoulli": ([-3.0, 0.3, 1.5, 2.0, 1e-300, 1e300], "it must hold 0 and 1."),
}


@pytest.mark.parametrize("family", IMPOSSIBLE)
@any_numeric
def test_values_that_the_family_cannot_make(family, container):
    values, what = IMPOSSIBLE[family]
    fitted = fitted_to(family)
    for value in values:
        columns = {name: [*map(float, column)] for name, column in GOOD[family].items()}
        columns["x0"][2] = value
        message = f"Column 'x0' of X holds {value:g}, but for {family!r} {what}"
        refused(ValueError, message, model(family).fit, container(columns))
        names = pd.DataFrame(columns).to_numpy()
        refused(ValueError, message, fitted.predict, names)


@pytest.mark.parametrize("family", ["poisson", "multinomial"])
@any_method
def test_large_counts(family, method):
    """Up to 1e12 fits are right, beyond no digit of the likelihood would be left."""
    for count in (1e18, 1e13, 1e100, 1e300):
        text = (
            f"Column 'x0' of X holds {count:g}; of counts above 1e+12 the likelihood keeps no digits. Count in larger"
        )
        refused(ValueError, text, model(family, method=method).fit, table(family, x0={0: count}))
    for count in (1e6, 1e9, 1e12):
        X = table(family, x0={0: count})
        estimator = by(method, family).fit(X)
        assert is_finite(estimator, X)
        assert getattr(estimator, OBJECTIVE[method]) < 0  # a probability
        shifted = np.abs(table(family) - count)
        assert is_finite(by(method, family).fit(shifted), shifted)


@pytest.mark.parametrize("family", ["gaussian", "exponential"])
@any_method
def test_extreme_measurements(family, method):
    X = np.abs(table(family))
    fitted = quiet(by(method, family).fit, X)
    for value in (1e300, 1e141):
        text = f"Column 'x0' of X holds {value:g}. Numbers beyond 1e+140 have products whose sums exceed the range"
        bad = X.copy()
        bad[0, 0] = value
        refused(ValueError, text, model(family, method=method).fit, bad)
        refused(ValueError, text, fitted.predict, bad)
    refused(
        ValueError,
        "products fall below the range of floats. Measure it in another unit.",
        model(family).fit,
        X * 1e-150,
    )
    for value in (1e100, 1e15, 1e-100, 1e-300, 5e-324):
        odd = X.copy()
        odd[0, 0] = value
        assert is_finite(quiet(by(method, family).fit, odd), odd)
    one = model(family, 1, method=method).fit(X)
    for scale in (1e-100, 1e-30, 1e30, 1e100):
        assert is_finite(quiet(by(method, family).fit, X * scale), X * scale)
        other = model(family, 1, method=method).fit(X * scale)
        change = X.size * np.log(scale)
        assert getattr(other, OBJECTIVE[method]) == approx(getattr(one, OBJECTIVE[method]) - change, rel=1e-12)


def test_extreme_numbers_are_categories_like_others():
    X = table("categorical", x0={0: 1e300, 1: 5e-324, 2: -1e300})
    assert is_finite(quiet(model("categorical").fit, X), X)


def test_fractions_are_categories_with_a_warning_that_says_where_they_belong():
    X = table("categorical", x0={0: 0.3})
    text = (
        "holds the fraction 0.3, taken as a category. If it is a measurement, give it to 'gaussian' in the 'emission'"
    )
    warned(DataWarning, text, model("categorical").fit, X)


@pytest.mark.parametrize("family", ["gaussian", "exponential"])
@any_method
def test_constant_columns(family, method):
    columns = {"x0": [2.5] * 10, "x1": GOOD[family]["x1"]}
    text = "Column 'x0' of X holds one value wherever observed: no component differs there."
    estimator = warned(DataWarning, text, by(method, family).fit, as_floats(columns))
    assert is_finite(estimator, as_floats(columns))
    columns["x1"] = [0.0] * 10
    text = "Columns 'x0', 'x1' of X hold one value each wherever observed"
    estimator = warned(DataWarning, text, by(method, family, 4).fit, as_floats(columns))
    assert is_finite(estimator, as_floats(columns))


@pytest.mark.parametrize("family", ["categorical", "bernoulli", "poisson", "multinomial"])
@any_method
def test_constant_codes_and_counts(family, method):
    X = np.ones((10, 2))
    X[:, 1] = 0
    assert is_finite(quiet(by(method, family, 4).fit, X), X)
    if family == "categorical":
        text = "Columns 'x0', 'x1' of X hold only one category each, such as 1.0."
        warned(DataWarning, text, model(family).fit, X)


@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag", "spherical"])
@any_method
def test_collinear_columns(covariance_type, method, rng):
    X = rng.normal(size=(40, 2))
    X = np.column_stack([X, X[:, 0] * 3 - 1e6, rng.normal(size=40)])
    fit = model("gaussian", covariance_type=covariance_type, method=method).fit
    if covariance_type in ("full", "tied"):
        text = "Columns 'x0', 'x2' of X are linear functions of each other: only the prior, or the floor of maximum"
        estimator = warned(DataWarning, text, fit, X)
    else:
        estimator = fit(X)
    assert is_finite(estimator, X)
    nearly = X + 1e-4 * rng.normal(size=X.shape)
    if method != "ml":  # where it is the floor that ends it
        assert is_finite(fit(nearly), nearly)  # without a warning


@any_family_name
@any_method
def test_more_columns_than_rows_and_copies_of_columns(family, method):
    X = np.tile(table(family)[:3], (1, 5))
    assert is_finite(quiet(by(method, family).fit, X), X)


@any_family_name
@any_method
def test_missing_cells_rows_and_columns(family, method):
    X = table(family, x0={2: np.nan}, x1={2: np.nan})
    estimator = model(family, method=method, n_init=3).fit(X)
    assert is_finite(estimator, X)
    assert estimator.predict_proba(X)[2] == approx(estimator.weights_)
    assert estimator.score_samples(X)[2] == approx(0.0, abs=1e-12)
    assert estimator.n_samples_ == 9  # the row without an observed cell says nothing
    if family == "multinomial":
        one = table(family, x0={2: np.nan})
        text = refused(ValueError, "Row 2 of multinomial counts has a missing cell.", model(family).fit, one)
        assert "fill the cell, or leave out the whole row" in text
    else:
        one = table(family, x0={2: np.nan})
        assert is_finite(model(family, method=method).fit(one), one)


@any_family_of_zeros
@pytest.mark.parametrize("container", [as_objects, as_floats, as_pandas_objects, as_lists])
def test_columns_and_tables_without_observed_cells(family, container):
    columns = {"x0": [0, 1, 1], "x1": [None, None, None]}
    refused(
        ValueError,
        "Column 'x1' of X has no observed cell. Leave such a column out",
        model(family).fit,
        container(columns),
    )
    columns["x0"] = [None, None, None]
    refused(ValueError, "observed cell", model(family).fit, container(columns))
    fitted = fitted_to(family)
    assert quiet(fitted.predict_proba, container(columns)) == approx(np.tile(fitted.weights_, (3, 1)))


@any_numeric
def test_a_sentinel_is_a_number_unless_declared(container):
    columns = {"x0": [-999, 1, 2, 3, 4, 5], "x1": [1, 2, 4, 3, 999, 1]}
    taken = model("gaussian", 1).fit(container(columns))
    assert taken.means_[0, 0] < -100
    declared = model("gaussian", 1, missing_values=[-999, 999]).fit(container(columns))
    assert declared.means_[0] == approx([3.0, 2.2], abs=0.7)


# --- other data than in fit (20-24, 50-53) ----------------------------------------------------------------------------


@any_family_name
def test_columns_go_by_name(family):
    frame = pd.DataFrame(GOOD[family]).set_axis(["a", "b"], axis=1)
    estimator = plain(family).fit(frame)
    for method in ("predict", "score_samples", "impute", "log_evidence"):
        asked = getattr(estimator, method)
        refused(ValueError, "must be in the same order as they were in fit", asked, frame[["b", "a"]])
        refused(
            ValueError,
            "must be in the same order as they were in fit",
            asked,
            pl.DataFrame(frame[["b", "a"]].to_dict("list")),
        )
        refused(ValueError, "yet now missing:\n- b", asked, frame[["a"]])
        refused(ValueError, "Feature names unseen at fit time:\n- z", asked, frame.set_axis(["z", "b"], axis=1))
        refused(ValueError, "X has more than one column named 'a'", asked, frame.set_axis(["a", "a"], axis=1))
    refused(ValueError, "X has more than one column named 'a'", model(family).fit, frame.set_axis(["a", "a"], axis=1))
    text = "Feature names are only supported if all input features have string names"
    refused(TypeError, text, model(family).fit, frame.set_axis(["a", 1], axis=1))
    found = warned(UserWarning, "X does not have valid feature names", estimator.predict, frame.to_numpy())
    assert np.array_equal(found, estimator.predict(frame))
    warned(
        UserWarning,
        "X has feature names, but VBMixture was fitted without",
        fitted_to(family).predict,
        frame,
    )


@pytest.mark.parametrize("method", ASKING)
def test_a_category_that_fit_did_not_see(method):
    X, odd = table("categorical"), table("categorical", x0={0: 7.0, 1: 9.0})
    expected = getattr(plain("categorical").fit(X), method)(table("categorical", x0={0: np.nan, 1: np.nan}))
    text = "taken as missing: 7.0 and 1 other in column 'x0' (2 cells)"
    found = warned(UnknownCategoryWarning, text, getattr(plain("categorical").fit(X), method), odd)
    assert np.array_equal(found, expected)
    silent = getattr(plain("categorical", handle_unknown="missing").fit(X), method)
    assert np.array_equal(silent(odd), expected)
    strict = getattr(plain("categorical", handle_unknown="error").fit(X), method)
    refused(ValueError, "Column 'x0' of X contains 7.0, which is not among the 2 categories seen in fit", strict, odd)


@any_family_name
def test_rows_far_from_all_that_was_seen(family):
    """Finite answers, by the component whose tails are heavier; no NaN from 0 / 0."""
    far = {"gaussian": 1e100, "exponential": 1e100, "poisson": 1e12, "multinomial": 1e12, "bernoulli": 1.0}
    X = np.full((2, 2), far.get(family, 1.0))
    for method in OBJECTIVE:
        estimator = fitted_to(family, method)
        proba = estimator.predict_proba(X)
        assert proba.sum(axis=1) == approx(1.0)
        assert not np.isnan(estimator.score_samples(X)).any()


@any_family_name
def test_before_fit_again_and_copies(family):
    X = table(family)
    for method in [*ASKING, "bic", "aic", "log_evidence"]:
        refused(NotFittedError, "This VBMixture instance is not fitted yet", getattr(model(family), method), X)
    refused(NotFittedError, "This VBMixture instance is not fitted yet", model(family).sample)
    estimator = plain(family).fit(pd.DataFrame(X, columns=["a", "b"]))
    estimator.fit(X[:, :1])
    assert not hasattr(estimator, "feature_names_in_")
    assert estimator.n_features_in_ == 1
    expected = estimator.predict_proba(X[:, :1])
    for copy in (pickle.loads(pickle.dumps(estimator)), clone(estimator).fit(X[:, :1])):
        assert np.array_equal(copy.predict_proba(X[:, :1]), expected)
    estimator.set_params(n_components=5, emission="gaussian")
    assert np.array_equal(estimator.predict_proba(X[:, :1]), expected)
    before = dict(vars(estimator))
    with pytest.raises(ValueError, match="infinity"):
        estimator.fit(np.full((4, 1), np.inf))
    assert vars(estimator) == before


@any_family_name
@pytest.mark.parametrize("n_samples", [0, -1, 1.5, True, "2", None])
def test_numbers_of_rows_to_draw(family, n_samples):
    text = f"The 'n_samples' parameter of sample must be an int >= 1. Got {n_samples!r} instead."
    refused(ValueError, text, fitted_to(family).sample, n_samples)


# --- weights (40, 41) -------------------------------------------------------------------------------------------------

BAD_WEIGHTS = [
    (-np.ones(10), "Sample weights say how often rows count, and must be >= 0."),
    (np.full(10, np.nan), "Input sample_weight contains NaN"),
    (np.full(10, np.inf), "Input sample_weight contains infinity"),
    (np.full(10, 1e308), "The sum of the sample weights must be finite"),
    (np.zeros(10), "Sample weights must contain at least one non-zero number"),
    (np.ones(9), "must have 10 weights, one for each row of X"),
    (np.ones((10, 2)), "Sample weights must be 1D array or scalar"),
    ("heavy", "Sample weights must be numbers, one for each row. Got 'heavy' instead."),
]


@any_family_name
@pytest.mark.parametrize(("weights", "message"), BAD_WEIGHTS)
@pytest.mark.parametrize("method", ["fit", "score", "fit_predict"])
def test_weights_that_are_none(family, weights, message, method):
    X = table(family)
    asked = getattr(fitted_to(family), method)
    refused(ValueError, message, asked, X, sample_weight=weights)


@any_family_name
@any_method
def test_weights_of_zero_and_fractions(family, method):
    X, weights = table(family), np.array([1, 0, 1, 2, 0, 1, 0.5, 3, 1, 1])
    odd = np.where(weights[:, None] > 0, X, np.nan if family != "categorical" else 99.0)
    fit = model(family, method=method).fit
    one, other, left_out = (
        fit(X, sample_weight=weights),
        fit(odd, sample_weight=weights),
        fit(X[weights > 0], sample_weight=weights[weights > 0]),
    )
    name = OBJECTIVE[method]
    assert getattr(one, name) == getattr(left_out, name) == getattr(other, name)
    assert one.n_samples_ == weights.sum()
    for factor in (1e-300, 1e-3, 1e15):
        assert is_finite(quiet(fit, X, sample_weight=np.full(10, factor)), X)


# --- parameters (37-39, 42-44) ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_components": 0}, {"n_components": -1}, {"n_components": 1.5}, {"n_components": True},
        {"n_components": "2"}, {"n_components": None}, {"n_components": np.float64(2)},
        {"max_iter": 0}, {"max_iter": 1.5}, {"max_iter": True}, {"tol": -1.0}, {"tol": "small"}, {"tol": np.nan},
        {"n_init": 0}, {"n_init": True}, {"n_init": 1.5}, {"n_init": None},
        {"random_state": -1}, {"random_state": "0"}, {"random_state": 1.5}, {"random_state": np.random.default_rng(0)},
        {"method": "em"}, {"method": None}, {"map_basis": "softmax"}, {"init": "kmeans"}, {"init": 3}, {"init": None},
        {"covariance_type": "round"}, {"covariance_type": None}, {"weight_concentration_prior_type": "pitman_yor"},
        {"acceleration": "squarem"}, {"verbose": -1}, {"handle_unknown": "ignore"}, {"n_jobs": 1.5},
        {"max_memory": 0}, {"max_memory": "4GB"}, {"max_memory": True},
    ],
    ids=named,
)  # fmt: skip
def test_parameters(parameters):
    ((name, value),) = parameters.items()
    X = table("gaussian")
    text = refused(ValueError, f"The '{name}' parameter of VBMixture must be", model().set_params(**parameters).fit, X)
    assert f"Got {value!r} instead." in text


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("mean_precision_prior", value) for value in (0, -1.0, np.inf, None, "x")),
        *(("degrees_of_freedom_prior", value) for value in (0, np.nan, np.inf, "x")),
        ("covariance_type", "round"),
    ],
)
def test_parameters_of_emissions(name, value):
    text = refused(
        ValueError,
        f"The '{name}' parameter of Gaussian must be",
        VBMixture(emission=Gaussian(**{name: value})).fit,
        table("gaussian"),
    )
    assert f"Got {value!r} instead." in text


def emission_cases():
    families = ", ".join(map(repr, sorted(EMISSIONS)))
    whose = "The 'emission' parameter of VBMixture "
    for value in (None, 3, [], "Gaussian", "normal"):
        yield (
            value,
            f"{whose}must be 'auto', one of {families}, an emission such as Gaussian(), a mapping of "
            f"names to columns, or a list of (name, emission, columns). Got {value!r} instead.",
        )
    yield {}, f"{whose}gives no family to 'x0', 'x1'. Name every column of X, or leave such columns out."
    yield {"gaussian": []}, f"{whose}gives no column to 'gaussian'. Leave it out."
    for columns, odd in [
        ([0, 5], 5),
        ([True, 0], True),
        (None, None),
        (0.5, 0.5),
        ([-1, 0], -1),
        (["x0", "x9"], "'x9'"),
    ]:
        yield {"gaussian": columns}, f"{whose}names {odd}, which is no column of X."
    yield {"gaussian": [0]}, f"{whose}gives no family to 'x1'."
    yield {"gaussian": [0, 0], "poisson": 1}, f"{whose}names column 'x0' more than once. A column has one family."
    yield {"gaussian": [0, 1], "poisson": "x1"}, f"{whose}names column 'x1' more than once."
    for family in (3, "auto", "normal"):
        yield {family: [0, 1]}, f"{whose}names the family {family!r}. Families are {families}."
    yield {"gaussain": [0, 1]}, f"{whose}names the family 'gaussain'. Did you mean 'gaussian'?"


@pytest.mark.parametrize(("emission", "message"), list(emission_cases()), ids=str)
def test_emissions(emission, message):
    refused(ValueError, message, model(emission).fit, table("gaussian"))


@pytest.mark.parametrize("categories", ["x", 3, None, [[0, 1], [0, 1]]])
def test_what_is_no_mapping_of_categories(categories):
    text = "The 'categories' parameter of VBMixture must be 'auto' or a mapping of column names to levels. Got"
    refused(ValueError, text, model("categorical", categories=categories).fit, table("categorical"))


@pytest.mark.parametrize(
    ("categories", "message"),
    [
        ({"x9": [0, 1]}, "names 'x9', which is not a column of X: 'x0', 'x1'"),
        ({0: [0, 1]}, "names 0, which is not a column of X: 'x0', 'x1'"),
        ({"x0": [0]}, "Column 'x0' of X contains 1.0, which is not among the 1 levels"),
        ({"x0": [0, 1, 1]}, "must hold each level once. Got 1 more than once."),
        ({"x0": []}, "must be a flat array-like of levels. Got [] instead."),
        ({"x0": 2}, "must be a flat array-like of levels. Got 2 instead."),
        ({"x0": [0, 1, np.nan]}, "must hold no value that means a missing cell."),
    ],
)
def test_declared_categories(categories, message):
    refused(ValueError, message, model("categorical", categories=categories).fit, table("categorical"))


@any_family_name
@pytest.mark.parametrize("missing_values", [{"a": 1}, [{1: 2}], [[1]]])
def test_what_marks_no_missing_cell(family, missing_values):
    text = "The 'missing_values' parameter of VBMixture must be a scalar or a list of scalars. Got"
    refused(ValueError, text, model(family, missing_values=missing_values).fit, table(family))


PRIORS = [
    ("gaussian", "weight_concentration_prior"),
    ("categorical", "concentration_prior"),
    ("bernoulli", "concentration_prior"),
    ("multinomial", "concentration_prior"),
    ("poisson", "shape_prior"),
    ("poisson", "rate_prior"),
    ("exponential", "shape_prior"),
    ("exponential", "rate_prior"),
]


@pytest.mark.parametrize(("family", "name"), PRIORS)
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (0, "must be > 0 and finite. Got 0 instead."),
        (-1.0, "must be > 0 and finite. Got -1.0 instead."),
        (np.nan, "must be > 0 and finite. Got nan instead."),
        (np.inf, "must be > 0 and finite. Got inf instead."),
        ([1.0, 0.0], "must be > 0 and finite. Got"),
        (1e-320, "must lie between 1e-300 and 1e+300. Got 1e-320 instead."),
        ("x", "must be a number or an array-like of numbers. Got 'x' instead."),
        ([1.0, "a"], "must be a number or an array-like of numbers. Got"),
        ([1.0], "must be a number or have"),
        ([1.0, 2.0, 3.0], "must be a number or have"),
        ([[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]], "must be a number or have"),
    ],
    ids=str,
)
def test_concentrations_shapes_and_rates_that_are_none(family, name, value, message):
    text = refused(ValueError, message, model(family, **{name: value}).fit, table(family))
    owner = "VBMixture" if name == "weight_concentration_prior" else EMISSIONS[family].__name__
    assert text.startswith(f"The {name!r} parameter of {owner}")


@pytest.mark.parametrize(("family", "name"), PRIORS)
@pytest.mark.parametrize("value", [1e-300, 1e-3, 1e12])
@any_method
def test_extreme_priors_give_finite_fits(family, name, value, method):
    X = table(family)
    assert is_finite(model(family, method=method, **{name: value}).fit(X), X)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (
            {"mean_prior": "x"},
            "'mean_prior' parameter of Gaussian must be a finite array of shape (2,). Got 'x' instead.",
        ),
        ({"mean_prior": ["a", "b"]}, "'mean_prior' parameter of Gaussian must be a finite array of shape (2,)."),
        (
            {"mean_prior": 1.0},
            "'mean_prior' parameter of Gaussian must be a finite array of shape (2,). Got 1.0 instead.",
        ),
        ({"mean_prior": [0.0, np.nan]}, "must be a finite array of shape (2,). Got [0.0, nan] instead."),
        ({"mean_prior": [1e100, 0.0]}, "must lie within 1000 standard deviations of the mean of X"),
        ({"mean_prior": [1e2, 0.0], "mean_precision_prior": 1e6}, "fewer where 'mean_precision_prior' is above 1. Got"),
        (
            {"mean_precision_prior": 1e300},
            "'mean_precision_prior' parameter of Gaussian must lie between 1e-100 and 1e12",
        ),
        ({"mean_precision_prior": 1e-300}, "must lie between 1e-100 and 1e12 rows. Got 1e-300 instead."),
        ({"degrees_of_freedom_prior": 1.0}, "must be above 1, the number of measurements less one. Got 1.0 instead."),
        ({"covariance_prior": "x"}, "must be a finite array of shape (2, 2). Got 'x' instead."),
        ({"covariance_prior": 1.0}, "must be a finite array of shape (2, 2). Got 1.0 instead."),
        ({"covariance_prior": [[1], [2, 3]]}, "must be a finite array of shape (2, 2). Got [[1], [2, 3]] instead."),
        ({"covariance_prior": np.full((2, 2), np.nan)}, "must be a finite array of shape (2, 2). Got"),
        ({"covariance_prior": np.ones((2, 2))}, "must be symmetric and positive definite. Got"),
        ({"covariance_prior": [[2, 1], [0, 2]]}, "must be symmetric and positive definite. Got"),
        ({"covariance_prior": np.diag([1.0, -1.0])}, "must be symmetric and positive definite. Got"),
        ({"covariance_prior": np.eye(2) * 1e-300}, "must leave components at least 0.001 times as wide as X in every"),
    ],
    ids=str,
)
@pytest.mark.parametrize("covariance_type", ["full", "tied"])
def test_gaussian_priors_that_are_none(params, message, covariance_type):
    refused(ValueError, message, model("gaussian", covariance_type=covariance_type, **params).fit, table("gaussian"))


@pytest.mark.parametrize(
    ("covariance_type", "value", "message"),
    [
        ("diag", [1.0, 0.0], "'covariance_prior' parameter of Gaussian must be > 0. Got"),
        ("diag", np.eye(2), "must be a finite array of shape (2,). Got"),
        ("diag", [1e-300, 1.0], "must leave components at least 0.001 times as wide as X"),
        ("spherical", -1.0, "must be > 0. Got -1.0 instead."),
        ("spherical", [1.0, 1.0], "must be a finite number. Got [1.0, 1.0] instead."),
        ("spherical", 1e-300, "must leave components at least 0.001 times as wide as X"),
    ],
)
def test_priors_of_variances_that_are_none(covariance_type, value, message):
    estimator = model("gaussian", covariance_type=covariance_type, covariance_prior=value)
    refused(ValueError, message, estimator.fit, table("gaussian"))


@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag", "spherical"])
@pytest.mark.parametrize(
    "params",
    [
        {"mean_precision_prior": 1e-100}, {"mean_precision_prior": 1e12}, {"degrees_of_freedom_prior": 1.0001},
        {"degrees_of_freedom_prior": 1e12}, {"mean_prior": [1e3, -1e3]}, {"covariance_prior": 1e-4},
        {"covariance_prior": 1e100},
    ],
    ids=str,
)  # fmt: skip
def test_extreme_gaussian_priors_give_finite_fits(covariance_type, params):
    X = table("gaussian")
    if "covariance_prior" in params:
        shape = {"full": np.eye(2), "tied": np.eye(2), "diag": np.ones(2), "spherical": 1.0}[covariance_type]
        params = {"covariance_prior": params["covariance_prior"] * shape}
    params = {"covariance_prior": None, "mean_precision_prior": 1.0} | params
    assert is_finite(model("gaussian", covariance_type=covariance_type, **params).fit(X), X)


@pytest.mark.parametrize(
    ("init", "message"),
    [
        (
            np.ones((3, 2)) / 2,
            "a row for each of the 10 rows of X and a column for each of the 2 components. Got an array",
        ),
        (np.ones((10, 3)) / 3, "Got an array of shape (10, 3)."),
        (np.ones((10, 2)), "must have rows of responsibilities >= 0 that sum to 1. Row 0 is array([1., 1.])."),
        (
            np.full((10, 2), np.nan),
            "must have rows of responsibilities >= 0 that sum to 1. Row 0 is array([nan, nan]).",
        ),
        (np.tile([2.0, -1.0], (10, 1)), "must have rows of responsibilities >= 0 that sum to 1."),
        ([["a", "b"]] * 10, "must hold numbers, rows of one length. Got"),
        ([[1], [2, 3]], "must hold numbers, rows of one length. Got [[1], [2, 3]] instead."),
    ],
)
def test_responsibilities_that_are_none(init, message):
    refused(ValueError, message, model(init=init).fit, table("gaussian"))


@any_family_name
def test_components_and_starts_above_the_limit_of_memory(family):
    text = refused(TooLargeError, "1000000000 components of", model(family, 10**9).fit, table(family))
    assert "the 'max_memory' parameter of VBMixture allows 4e+09. Raise it, or take fewer components or starts." in text
    refused(TooLargeError, "in 1000000000 starts", model(family, n_init=10**9).fit, table(family))
    refused(TooLargeError, "allows 100", model(family, max_memory=100).fit, table(family))


@any_family_name
@any_method
def test_more_components_than_rows(family, method):
    X = table(family)
    text = "'n_components' of VBMixture is 25 for rows of total weight 10: some components must stay empty."
    estimator = warned(UserWarning, text, by(method, family, 25).fit, X)
    assert is_finite(estimator, X)
    same = np.repeat(X[:1], 10, axis=0)
    assert is_finite(quiet(by(method, family, 5).fit, same), same)


def test_no_mode_in_the_probability_basis():
    text = "no interior mode in the probability basis"
    for family in ("poisson", "gaussian", "categorical"):
        own = {"concentration_prior": 0.1} if family == "categorical" else {}
        estimator = model(family, method="map", map_basis="probability", weight_concentration_prior=0.1, **own)
        found = refused(NoInteriorModeError, text, estimator.set_params(n_components=9).fit, table(family))
        assert "Use map_basis='natural', where the mode always exists, or a stronger prior." in found


@any_container
def test_text_given_to_a_family_of_numbers(container):
    columns = {"x0": ["u", "v", "u"], "x1": ["s", "s", "t"]}
    for family in NUMERIC:
        text = refused(
            ValueError, "Column 'x0' of X holds 'u', where a number is expected.", model(family).fit, container(columns)
        )
        assert "give it to 'categorical' in the 'emission' parameter" in text


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"method": "mle"}, "must be a str among {'map', 'ml', 'vb'}. Got 'mle' instead. Did you mean 'ml'?"),
        ({"emission": Gaussian("tide")}, "'full', 'spherical', 'tied'}. Got 'tide' instead. Did you mean 'tied'?"),
        ({"emission": "gausssian"}, "Got 'gausssian' instead. Did you mean 'gaussian'?"),
    ],
    ids=["method", "covariance_type", "emission"],
)
def test_options_are_in_order_and_the_nearest_is_suggested(params, text):
    refused(ValueError, text, VBMixture(2, **params).fit, pd.DataFrame(GOOD["gaussian"]))
