import pickle
import re
import warnings
from datetime import date
from numbers import Integral
from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse
import sklearn.datasets
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import check_is_fitted, validate_data

import skvbem.datasets
from skvbem import VBMixture
from skvbem._compat import (
    CallbackSupportMixin,
    Interval,
    IterationReport,
    StrOptions,
    check_sample_weight,
    fit_context,
)
from skvbem.errors import DataWarning, UnknownCategoryWarning
from skvbem.reading.categories import CategoryEncoder
from skvbem.reading.guesses import marks_among, marks_in_measurements, number_as_text
from skvbem.reading.tables import read_table

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")


def learn(X, **parameters):
    """Encoder and codes, with the doubts about X kept quiet."""
    encoder = CategoryEncoder("VBModel", **parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return encoder, encoder.fit_encode(X)


def codes_by_definition(columns):
    """Position of each cell among the sorted distinct values of its column, None = missing, written out literally."""
    levels = [sorted({v for v in column if v is not None}) for column in columns]
    codes = [[-1 if v is None else own.index(v) for v in column] for column, own in zip(columns, levels)]
    return np.array(codes).T, levels


# Containers: the same cells, stored in every way ----------------------------------------------------------------------

PANDAS = {"string": "string", "boolean": "boolean", "integer": "Int64", "wide": "Int64", "whole": "Float64"}
POLARS = {"string": pl.String, "boolean": pl.Boolean, "integer": pl.Int64, "wide": pl.Int64, "whole": pl.Float64}
NUMPY = {"string": object, "boolean": object, "integer": np.float64, "wide": object, "whole": np.float64}
CELLS = {
    "string": st.text(max_size=3),
    "boolean": st.booleans(),
    "integer": st.integers(-3, 5),
    "wide": st.integers(-(2**63), 2**63 - 1),
    "whole": st.integers(-3, 5).map(float),
}


def containers(kinds, columns):
    """Every container of these columns of cells, None = missing."""
    names = [f"c{j}" for j in range(len(columns))]
    named = dict(zip(names, columns))
    yield "nested lists", [list(row) for row in zip(*columns)]
    yield "object array", np.array(columns, dtype=object).T
    yield "masked array", masked(columns)
    yield "pandas object", pd.DataFrame(named, dtype=object)
    yield "pandas nullable", pd.DataFrame({n: pd.array(c, dtype=PANDAS[k]) for n, c, k in zip(names, columns, kinds)})
    yield "pandas numpy", pd.DataFrame({n: np.array(c, dtype=NUMPY[k]) for n, c, k in zip(names, columns, kinds)})
    ordered = [sorted({v for v in column if v is not None}) for column in columns]
    yield (
        "pandas categorical",
        pd.DataFrame({n: pd.Categorical(c, categories=o) for n, c, o in zip(names, columns, ordered)}),
    )
    yield "polars", pl.DataFrame({n: pl.Series(n, c, dtype=POLARS[k]) for n, c, k in zip(names, columns, kinds)})
    if set(kinds) == {"string"}:
        yield "polars categorical", pl.DataFrame({n: pl.Series(n, c, dtype=pl.Categorical) for n, c in named.items()})
        enum = {n: pl.Series(n, c, dtype=pl.Enum(o)) for (n, c), o in zip(named.items(), ordered)}
        yield "polars enum", pl.DataFrame(enum)
    if len(set(kinds)) == 1 and all(v is not None for column in columns for v in column):
        homogeneous = np.array(columns).T
        yield "array", homogeneous
        yield "read-only", readonly(homogeneous)
        yield "Fortran order", np.asfortranarray(homogeneous)
        yield "negative strides", np.ascontiguousarray(homogeneous[::-1, ::-1])[::-1, ::-1]
        yield "byte-swapped", homogeneous.astype(homogeneous.dtype.newbyteorder("S"))


def masked(columns):
    cells = [[column[0] if v is None else v for v in column] for column in columns]
    return np.ma.array(np.array(cells, dtype=object).T, mask=[[v is None for v in row] for row in zip(*columns)])


def readonly(array):
    array = array.copy()
    array.flags.writeable = False
    return array


@st.composite
def tables(draw, kinds=tuple(CELLS)):
    n_samples = draw(st.integers(1, 12))
    kinds = draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=3))
    columns = []
    for kind in kinds:
        cells = st.one_of(CELLS[kind], CELLS[kind], st.none())
        column = draw(
            st.lists(cells, min_size=n_samples, max_size=n_samples).filter(lambda c: any(v is not None for v in c))
        )
        columns.append(column)
    return kinds, columns


@settings(deadline=None, max_examples=50)  # of a dozen containers each, every one encoded by every other
@given(tables())
def test_codes_do_not_depend_on_the_container(table):
    kinds, columns = table
    expected, levels = codes_by_definition(columns)
    alike = list(containers(kinds, columns))
    for label, X in alike:
        encoder, codes = learn(X)
        np.testing.assert_array_equal(codes, expected, err_msg=label)
        assert [c.tolist() for c in encoder.categories_] == levels, label
        for other, Z in alike:
            np.testing.assert_array_equal(encoder.encode(Z), expected, err_msg=f"{label}, then {other}")


@settings(deadline=None)
@given(tables(), st.randoms(use_true_random=False))
def test_permuted_rows_permute_the_codes_and_leave_the_categories(table, random):
    kinds, columns = table
    order = list(range(len(columns[0])))
    random.shuffle(order)
    shuffled = [[column[i] for i in order] for column in columns]
    for (label, X), (_, Z) in zip(containers(kinds, columns), containers(kinds, shuffled)):
        (encoder, codes), (again, permuted) = learn(X), learn(Z)
        np.testing.assert_array_equal(permuted, codes[order], err_msg=label)
        assert [c.tolist() for c in encoder.categories_] == [c.tolist() for c in again.categories_], label


@settings(deadline=None)
@given(tables())
def test_decode_undoes_encode(table):
    kinds, columns = table
    for label, X in containers(kinds, columns):
        encoder, codes = learn(X)
        for j, column in enumerate(columns):
            cells = encoder.decode(codes[:, j], j)
            assert [None if v != v else v for v in cells.tolist()] == column, label


@pytest.mark.parametrize(
    "dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "g", ">i4", "<f8", ">f4"]
)
def test_numeric_dtypes_agree(dtype):
    X = np.array([[3, 0], [100, 7], [3, 1], [0, 0]])
    encoder, codes = learn(X.astype(dtype))
    assert codes.tolist() == [[1, 0], [2, 2], [1, 1], [0, 0]]
    assert encoder.categories_[0].dtype == np.dtype(dtype).newbyteorder("=")
    np.testing.assert_array_equal(encoder.encode(X), codes)


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"])
def test_the_whole_range_of_an_integer_type(dtype):
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    X = np.array([[high], [low], [high - 1], [low]], dtype=dtype)
    encoder, codes = learn(X)
    assert codes.ravel().tolist() == [2, 0, 1, 0]
    assert encoder.categories_[0].tolist() == [low, high - 1, high]


def test_memory_mapped_arrays(tmp_path):
    X = np.array([[1, 5], [2, 5], [1, 6]])
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert learn(mapped)[1].tolist() == [[0, 0], [1, 0], [0, 1]]


def test_strings_of_numpy_in_each_of_its_types():
    X = np.array([["b", "x"], ["a", "yy"], ["b", "x"]])
    for array in (X, X.astype(object), X.astype(np.dtypes.StringDType())):
        encoder, codes = learn(array)
        assert codes.tolist() == [[1, 0], [0, 1], [1, 0]]
        assert [c.tolist() for c in encoder.categories_] == [["a", "b"], ["x", "yy"]]
    assert learn(X)[0].categories_[0].dtype == X.dtype
    assert learn(X.astype("S"))[0].categories_[0].tolist() == [b"a", b"b"]
    with pytest.warns(UnknownCategoryWarning, match=re.escape("b'b' and 1 other in column 'x0' (3 cells)")):
        learn(X)[0].encode(X.astype("S"))


def test_the_data_type_of_the_source_is_kept():
    frame = pd.DataFrame(
        {
            "byte": np.array([0, 1, 1], dtype=np.uint8),
            "truth": [True, False, True],
            "real": np.array([1, np.nan, 2], dtype=np.float32),
            "nullable": pd.array([1, None, 2], dtype="Int16"),
            "maybe": pd.array([True, None, False], dtype="boolean"),
            "text": pd.array(["a", None, "b"], dtype="string"),
            "object": pd.Series([2.5, None, 1], dtype=object),
        }
    )
    encoder, codes = learn(frame)
    assert [c.dtype for c in encoder.categories_] == [np.uint8, bool, np.float32, np.int16, bool, object, np.float64]
    assert encoder.names_ == list(frame)
    assert codes[1].tolist() == [1, 0, -1, -1, -1, -1, -1]
    assert encoder.n_categories_.tolist() == [2] * 7


def test_row_labels_and_integer_column_labels_mean_nothing():
    X = pd.DataFrame([[1, "a"], [2, "b"]], index=["r", "r"], columns=[7, 3])
    encoder, codes = learn(X)
    assert codes.tolist() == [[0, 0], [1, 1]]
    assert encoder.names_ == ["x0", "x1"]


def test_pandas_columns_of_arrow_sparse_and_interval_types():
    pa = pytest.importorskip("pyarrow")
    X = pd.DataFrame(
        {
            "integer": pd.array([3, None, 1], dtype="int64[pyarrow]"),
            "boolean": pd.array([True, None, False], dtype="bool[pyarrow]"),
            "string": pd.array(["b", None, "a"], dtype="string[pyarrow]"),
            "dictionary": pd.array(["b", None, "a"], dtype=pd.ArrowDtype(pa.dictionary(pa.int8(), pa.string()))),
            "sparse": pd.arrays.SparseArray([3.0, np.nan, 1.0]),
            "interval": pd.cut([3, np.nan, 1], [0, 2, 4]),
            "period": pd.array(pd.PeriodIndex(["2021", None, "2020"], freq="Y")),
        }
    )
    encoder, codes = learn(X)
    assert codes.T.tolist() == [[1, -1, 0]] * X.shape[1]
    assert encoder.categories_[5].tolist() == [pd.Interval(0, 2), pd.Interval(2, 4)]
    np.testing.assert_array_equal(encoder.encode(X.iloc[::-1]), codes[::-1])


# Codes ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_categories", "dtype"),
    [(127, np.int8), (128, np.int16), (32767, np.int16), (32768, np.int32), (70_000, np.int32)],
)
def test_codes_take_the_narrowest_type_that_holds_the_cardinality(n_categories, dtype):
    column = np.random.default_rng(0).permutation(n_categories)
    X = np.column_stack([np.arange(n_categories) % 3, column, np.arange(n_categories) % 2])
    encoder, codes = learn(X)
    assert codes.dtype == encoder.code_dtype_ == dtype
    assert codes.flags.c_contiguous
    np.testing.assert_array_equal(codes, X)
    again = encoder.encode(X[:5])
    assert again.dtype == dtype
    np.testing.assert_array_equal(again, X[:5])


def test_huge_labels_cost_what_the_distinct_ones_cost():
    X = np.array([[10**9, 2**62], [-(10**9), 0], [10**9, -(2**62)]])
    encoder, codes = learn(X)
    assert codes.tolist() == [[1, 2], [0, 1], [1, 0]]
    assert encoder.decode(codes[:, 1], 1).tolist() == X[:, 1].tolist()


def test_labels_beyond_64_bits_and_beyond_exact_floats_are_not_rounded():
    X = [[2**53, 2**70], [2**53 + 1, 1], [2**53, None]]
    encoder, codes = learn(X)
    assert codes.tolist() == [[0, 1], [1, 0], [0, -1]]
    assert encoder.decode([1, -1, 0], 0).tolist()[::2] == [2**53 + 1, 2**53]
    mixed, codes = learn([[2**53], [2**53 + 1], [0.0]])
    assert codes.ravel().tolist() == [1, 2, 0]
    assert mixed.categories_[0].tolist() == [0, 2**53, 2**53 + 1]


def test_more_rows_than_one_block():
    column = np.random.default_rng(0).integers(-2, 3, 150_000)
    for cells in (column, column.astype(float), column.astype(str), column.astype(object), column * 10**7):
        encoder, codes = learn(cells[:, None])
        np.testing.assert_array_equal(encoder.categories_[0][codes[:, 0]], cells)


def test_signed_zeros_are_one_category():
    for X in ([[0.0], [-0.0], [1.0]], [[-0.0], [0.5], [0.0]]):
        assert learn(np.array(X))[0].n_categories_ == [2]
        assert not np.signbit(learn(np.array(X))[0].categories_[0]).any()


def test_extreme_floats_are_categories_like_others():
    X = np.array([[1e300], [1e-300], [5e-324], [1e300]])
    with pytest.warns(DataWarning, match="holds the fraction 5e-324"):
        assert CategoryEncoder("VBModel").fit_encode(X).ravel().tolist() == [2, 1, 0, 2]


def test_pickled_encoder_gives_the_same_codes():
    X = pd.DataFrame({"a": pd.Categorical(["y", "x", "y"], ["y", "x"]), "b": [1.0, np.nan, 0.0]})
    encoder, codes = learn(X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(encoder)).encode(X), codes)


@pytest.mark.parametrize(
    ("levels", "codes", "cells"),
    [
        (np.array([2, 5], dtype=np.int8), [1, -1], [5.0, np.nan]),
        (np.array([2, 2**60]), [1, -1], [2**60, np.nan]),
        (np.array([0.5, 2.0], dtype=np.float32), [0, -1], [0.5, np.nan]),
        (np.array([False, True]), [1, -1], [True, np.nan]),
        (np.array(["a", "b"]), [1, -1], ["b", np.nan]),
        (np.array(["a", "b"]), [[1, 0], [0, 0]], [["b", "a"], ["a", "a"]]),
    ],
)
def test_decode_marks_missing_cells_with_nan(levels, codes, cells):
    encoder, _ = learn(levels[:, None])
    decoded = encoder.decode(codes, 0)
    assert np.shape(decoded) == np.shape(codes)
    for cell, expected in zip(decoded.ravel().tolist(), np.ravel(np.array(cells, dtype=object)).tolist()):
        assert type(cell) is type(expected)
        assert cell == expected or (cell != cell and expected != expected)


# Declared levels ------------------------------------------------------------------------------------------------------


def test_declared_levels_keep_their_order_and_the_unseen_ones():
    levels = ["lo", "mid", "hi"]
    frames = [
        pd.DataFrame({"a": pd.Categorical(["hi", None, "lo"], categories=levels)}),
        pl.DataFrame({"a": pl.Series(["hi", None, "lo"], dtype=pl.Enum(levels))}),
    ]
    for X in frames:
        encoder, codes = learn(X)
        assert encoder.categories_[0].tolist() == levels
        assert codes.ravel().tolist() == [2, -1, 0]
    encoder, codes = learn(pl.DataFrame({"a": ["hi", None, "lo"]}), categories={"a": levels})
    assert codes.ravel().tolist() == [2, -1, 0]


def test_a_categorical_with_other_levels_is_read_by_value():
    fitted, _ = learn(pd.DataFrame({"a": pd.Categorical(["x", "y"], categories=["x", "y"])}))
    other = pd.Categorical(["y", "x", None], categories=["z", "y", "x"])
    assert fitted.encode(pd.DataFrame({"a": other})).ravel().tolist() == [1, 0, -1]
    enum = pl.Series(["y", "x", None], dtype=pl.Enum(["z", "y", "x"]))
    assert fitted.encode(pl.DataFrame({"a": enum})).ravel().tolist() == [1, 0, -1]
    with pytest.warns(UnknownCategoryWarning, match=re.escape("'z' in column 'a' (1 cell)")):
        fitted.encode(pd.DataFrame({"a": other.fillna("z")}))


def test_polars_categorical_takes_the_levels_of_its_own_column():
    frame = pl.DataFrame({"a": ["b", "a"], "b": ["z", "y"]}, schema={"a": pl.Categorical, "b": pl.Categorical})
    assert [c.tolist() for c in learn(frame)[0].categories_] == [["a", "b"], ["y", "z"]]


def test_categories_as_a_list_or_by_name():
    X = np.array([[1, 0], [0, 2]])
    encoder, codes = learn(X, categories=[[1, 0], np.array([0, 1, 2])])
    assert codes.tolist() == [[0, 0], [1, 2]]
    assert encoder.n_categories_.tolist() == [2, 3]
    encoder, codes = learn(X, categories={"x1": pd.Index([2, 1, 0])})
    assert codes.tolist() == [[1, 2], [0, 0]]
    assert learn([["no"], ["yes"]], categories=[np.array(["yes", "no", "don't know"])])[1].ravel().tolist() == [1, 0]


@pytest.mark.parametrize(
    ("categories", "message"),
    [
        ([[1, 2]], "of VBModel must be 'auto', a list of 2 array-likes"),
        ("none", "of VBModel must be 'auto'"),
        (3, "of VBModel must be 'auto'"),
        ({"z": [1]}, "of VBModel names 'z', which is not a column of X: 'x0', 'x1'"),
        ({"x0": [0, 1, 1.0]}, "for column 'x0', must hold each level once. Got 1 more than once"),
        ({"x0": []}, "for column 'x0', must be a flat array-like of levels"),
        ({"x0": "ab"}, "for column 'x0', must be a flat array-like of levels. Got 'ab'"),
        ({"x0": [[0], [1]]}, "for column 'x0', must be a flat array-like of levels"),
        ({"x0": [0, 1, None]}, "for column 'x0', must hold no value that means a missing cell. Got None"),
        ({"x0": [0, 1, -1]}, "for column 'x0', must hold no value that means a missing cell. Got -1"),
        ({"x0": [1, "1"]}, "for column 'x0', mixes kinds of values: 1 (number) and '1' (string)"),
        ({"x0": [1, np.inf]}, "for column 'x0', holds infinity"),
        ({"x1": [3, 4]}, "Column 'x1' of X contains 0, which is not among the 2 levels that the 'categories'"),
    ],
)
def test_bad_declarations_name_the_column_and_the_level(categories, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        learn(np.array([[0, 1], [1, 0]]), categories=categories, missing_values=-1)


# Missing cells --------------------------------------------------------------------------------------------------------


def test_every_way_to_say_missing():
    X = np.array(
        [["a"], [None], [np.nan], [float("nan")], [pd.NA], [pd.NaT], [np.datetime64("NaT", "ns")], ["b"]], dtype=object
    )
    assert learn(X)[1].ravel().tolist() == [0, -1, -1, -1, -1, -1, -1, 1]


@pytest.mark.parametrize(
    ("missing_values", "column", "codes"),
    [
        (-1, [0, -1, 1], [0, -1, 1]),
        (-1, [0.0, -1.0, np.nan], [0, -1, -1]),
        ([-1, 999], [5, -1, 999], [0, -1, -1]),
        (np.array([-1, 999]), [5, 7, 999], [0, 1, -1]),
        ("?", ["a", "?", "b"], [0, -1, 1]),
        ("?", [1, "?", 2], [0, -1, 1]),
        ("", ["a", "", "b"], [0, -1, 1]),
        (np.inf, [0.0, np.inf, 1.0], [0, -1, 1]),
        (1, [True, False, True], [1, 0, 1]),
        ("1", [1, 2, 1], [0, 1, 0]),
        (None, ["a", None, "b"], [0, -1, 1]),
    ],
)
def test_missing_values_mark_cells_of_their_kind(missing_values, column, codes):
    X = [[cell] for cell in column]
    for table in (X, pd.DataFrame({"a": column})):
        encoder, found = learn(table, missing_values=missing_values)
        assert found.ravel().tolist() == codes
        np.testing.assert_array_equal(encoder.encode(table), found)


def test_a_marker_among_declared_levels_is_no_category():
    X = pd.DataFrame({"a": pd.Categorical(["x", "?", "y"], categories=["?", "y", "x"])})
    encoder, codes = learn(X, missing_values="?")
    assert encoder.categories_[0].tolist() == ["y", "x"]
    assert codes.ravel().tolist() == [1, -1, 0]


def test_a_missing_marker_must_be_a_scalar():
    with pytest.raises(ValueError, match="'missing_values' parameter of VBModel must be a scalar or a list of scalars"):
        learn([[1]], missing_values={"x0": -1})


def test_whole_rows_may_be_missing():
    encoder, codes = learn(np.array([[0.0, 1.0], [np.nan, np.nan], [1.0, 0.0]]))
    assert codes.tolist() == [[0, 1], [-1, -1], [1, 0]]
    assert encoder.encode(np.full((2, 2), np.nan)).tolist() == [[-1, -1], [-1, -1]]


@pytest.mark.parametrize(
    "missing", [pd.array([None, None], dtype="Int64"), [None, None], [np.nan, np.nan], [pd.NaT, pd.NA]]
)
def test_a_column_without_observed_cells_needs_declared_levels(missing):
    X = pd.DataFrame({"a": [0, 1], "b": missing, "c": missing})
    with pytest.raises(ValueError, match=re.escape("Columns 'b', 'c' of X have no observed cell")):
        learn(X)
    with pytest.raises(ValueError, match=re.escape("Column 'c' of X has no observed cell")):
        learn(X, categories={"b": ["no", "yes"]})
    encoder, codes = learn(X, categories={"b": ["no", "yes"], "c": [3]})
    assert codes.tolist() == [[0, -1, -1], [1, -1, -1]]
    assert encoder.n_categories_.tolist() == [2, 2, 1]
    assert learn(X.assign(b=pd.Categorical([None, None], ["no", "yes"])).drop(columns="c"))[0].n_categories_[1] == 2


@pytest.mark.parametrize("X", [np.full((2, 3), np.nan), [[None], [None]], pl.DataFrame({"a": [None, None]})])
@pytest.mark.parametrize("categories", ["auto", "declared"])
def test_a_table_without_observed_cells_is_refused(X, categories):
    n_columns = read_table(X, "VBModel").n_columns
    with pytest.raises(ValueError, match="X must have an observed cell"):
        learn(X, categories=[[0, 1]] * n_columns if categories == "declared" else "auto")


# What cannot be a category --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("column", [[1, "1"], [1, True], [0.0, False], ["True", True], ["a", b"a"], [1, "a", None]])
def test_kinds_are_never_mixed_within_a_column(column):
    X = pd.DataFrame({"fine": range(len(column)), "bad": pd.Series(column, dtype=object)})
    with pytest.raises(ValueError, match=re.escape("Column 'bad' of X mixes kinds of values: ")):
        learn(X)
    fitted, _ = learn(X.assign(bad=range(len(column))))
    with pytest.raises(ValueError, match=re.escape("Column 'bad' of X mixes kinds of values: ")):
        fitted.encode(X)


def test_nested_lists_do_not_turn_numbers_into_strings():
    encoder, codes = learn([[1, "a"], [2, "b"], [1, "b"]])
    assert [c.tolist() for c in encoder.categories_] == [[1, 2], ["a", "b"]]
    assert codes.tolist() == [[0, 0], [1, 1], [0, 1]]


@pytest.mark.parametrize("infinity", [np.inf, -np.inf])
def test_infinity_is_refused_at_fit_and_later(infinity):
    finite = np.array([[0.0, 1.0], [1.0, 0.0]])
    X = finite.copy()
    X[0, 1] = infinity
    encoder, _ = learn(finite)
    for table in (X, X.astype(object), X.tolist(), pd.DataFrame(X, columns=["x0", "x1"])):
        with pytest.raises(ValueError, match="Column 'x1' of X holds infinity"):
            learn(table)
        with pytest.raises(ValueError, match="Column 'x1' of X holds infinity"):
            encoder.encode(table)


@pytest.mark.parametrize(
    "X",
    [
        np.array([["2020-01-01"]], dtype="datetime64[D]"),
        np.array([[3]], dtype="timedelta64[s]"),
        pd.DataFrame({"x0": pd.to_datetime(["2020-01-01"])}),
        pd.DataFrame({"x0": pd.to_datetime(["2020-01-01"]).tz_localize("UTC")}),
        pl.DataFrame({"x0": [date(2020, 1, 1)]}),
        [[{"foo": "bar"}]],
        pl.DataFrame({"x0": [[1, 2]]}),
        pl.DataFrame({"x0": [{"a": 1}]}),
    ],
)
def test_what_is_no_category_is_a_type_error_naming_the_column(X):
    with pytest.raises(TypeError, match=r"Column 'x0' of X holds [\s\S]* argument must be .* string.* number"):
        learn(X)


def test_values_without_an_order_must_be_declared():
    one, other = object(), object()
    with pytest.raises(ValueError, match="Column 'x0' of X holds values without an order"):
        learn([[one], [other]])
    assert learn([[one], [other]], categories=[[other, one]])[1].ravel().tolist() == [1, 0]


def test_any_other_ordered_values_are_categories():
    X = [[date(2021, 1, 1), (1, 2)], [date(2020, 1, 1), (3, 4)]]
    encoder, codes = learn(X)
    assert codes.tolist() == [[1, 0], [0, 1]]
    assert encoder.decode(codes[:, 1], 1).tolist() == [(1, 2), (3, 4)]


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (np.empty((0, 3)), ValueError, r"0 sample\(s\) \(shape=\(0, 3\)\) while a minimum of 1 is required by VBModel"),
        (
            np.empty((3, 0)),
            ValueError,
            r"0 feature\(s\) \(shape=\(3, 0\)\) while a minimum of 1 is required by VBModel",
        ),
        (pd.DataFrame({"a": []}), ValueError, r"0 sample\(s\) \(shape=\(0, 1\)\)"),
        (pd.DataFrame(index=range(3)), ValueError, r"0 feature\(s\) \(shape=\(3, 0\)\)"),
        (pl.DataFrame({"a": []}), ValueError, r"0 sample\(s\) \(shape=\(0, 1\)\)"),
        ([], ValueError, "Reshape your data"),
        ([[]], ValueError, r"0 feature\(s\)"),
        (np.zeros(3), ValueError, "Reshape your data"),
        (["a", "b"], ValueError, "Reshape your data"),
        (5, ValueError, "Reshape your data"),
        (np.zeros((2, 2, 2)), ValueError, "Found array with dim 3"),
        ([[[1]]], ValueError, "Found array with dim 3"),
        ([[1, 2], [3]], ValueError, "The rows of X must have one length. Got rows of 1, 2 cells."),
        (scipy.sparse.eye_array(3, format="csr"), TypeError, "Sparse data was passed"),
        (np.array([[1 + 2j]]), ValueError, "Complex data not supported"),
        ([[1 + 2j]], ValueError, "Complex data not supported. Column 'x0' of X"),
        (pd.DataFrame({"a": [1 + 2j]}), ValueError, "Complex data not supported. Column 'a' of X"),
        (pd.DataFrame([[1, 2, 3]], columns=["a", "b", "a"]), ValueError, "X has more than one column named 'a'"),
    ],
)
def test_shapes_and_types_that_are_no_table(X, error, message):
    with pytest.raises(error, match=message):
        learn(X)


# Doubts ---------------------------------------------------------------------------------------------------------------


def doubts(X, **parameters):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        CategoryEncoder("VBModel", **parameters).fit_encode(X)
    assert all(w.category is DataWarning for w in caught)
    return [str(w.message) for w in caught]


def test_fractions_are_taken_as_categories_with_one_warning():
    X = pd.DataFrame({"fine": [0, 1, 2, 3], "dose": [1.5, 1.0, 1.5, np.nan]})
    assert doubts(X) == [
        "Column 'dose' of X holds the fraction 1.5, taken as a category. If it is a measurement, use VBMixture."
    ]
    assert doubts(X, categories={"dose": [1.0, 1.5]}) == []
    many = np.random.default_rng(0).normal(size=(5, 8))
    (message,) = doubts(many)
    assert message.startswith("Columns 'x0', 'x1', 'x2', 'x3', 'x4' and 3 more of X hold fractions such as -")


@pytest.mark.parametrize(
    ("column", "warned"),
    [([0, 1, -1], True), ([0.0, 2.0, -9.0], True), ([-9, -8, 0, 1], True), ([-1, 1], False), ([-3, -2, -1], False)],
)
def test_a_negative_value_beside_others_may_be_a_forgotten_marker(column, warned):
    message = (
        f"Column 'x0' of X holds the negative value {min(column)}, taken as a category. "
        f"If it marks missing cells, pass missing_values={min(column)}."
    )
    for X in (np.array(column)[:, None], [[v] for v in column]):
        assert doubts(X) == [message] * warned
        assert doubts(X, categories=[sorted(column)]) == []
        if warned:
            assert "negative" not in "".join(doubts(X, missing_values=[v for v in column if v < 0]))


def test_the_empty_string_is_a_category_with_a_warning():
    X = pd.DataFrame({"city": ["", "Oslo", "Bergen"], "fine": ["a", "b", "c"]})
    assert doubts(X) == [
        "Column 'city' of X holds the empty string, taken as a category. "
        "If it marks missing cells, pass missing_values=''."
    ]
    assert learn(X)[0].categories_[0].tolist() == ["", "Bergen", "Oslo"]
    assert doubts(X, missing_values="") == []
    assert doubts(X, categories={"city": ["", "Oslo", "Bergen"]}) == []


TEXT_MARKS = [
    "?",
    " ",
    "NA",
    "N/A",
    "nan",
    "NaN",
    "None",
    "null",
    "-",
    ".",
    "..",
    "<NA>",
    "#N/A",
    "#NULL!",
    "\\N",
    "(null)",
]


@pytest.mark.parametrize("mark", [*TEXT_MARKS, "-999", "99", "9999.0"])
def test_texts_that_mark_missing_cells_are_categories_with_a_warning(mark):
    X = pd.DataFrame({"a": ["x", "y", mark], "b": ["x", "y", "?"], "c": ["x", "y", "z"]})
    every = ["?"] if mark == "?" else [mark, "?"]
    value = repr(every[0] if len(every) == 1 else every)
    [message] = doubts(X)
    assert message.startswith(f"Columns 'a', 'b' of X hold {', '.join(map(repr, every))}, taken as categories.")
    assert message.endswith(f"pass missing_values={value}.")
    assert doubts(X, missing_values=eval(value)) == []
    assert doubts(X, categories=[sorted(X[name]) for name in X]) == []


@pytest.mark.parametrize(
    "levels",
    [
        ["+", "-"],
        ["None", "Attached", "Detached"],
        ["none", "mild", "severe"],
        [*"abcdefghijklmnopqrstuvwxyz", " ", "."],
        ["NA", "EU", "AS"],
        ["a", "b", "?!"],
        [20, 50, 97, 99],
        [1, 2, 98],
        ["1", "2", "3"],
        ["0.5", "1"],
        ["1", "2", "99", "many"],
        ["route 9", "99 Luftballons"],
    ],
    ids=str,
)
def test_what_only_looks_like_a_mark_is_a_category(levels):
    assert doubts([[level] for level in levels]) == []


@pytest.mark.parametrize(("mark", "others"), [(99, [1, 5]), (999, [0, 150]), (99, [1, 2, 97, 98])])
def test_nines_far_from_all_else_are_categories_with_a_warning(mark, others):
    X = [[level] for level in (*others, mark)]
    assert doubts(X) == [
        f"Column 'x0' of X holds {mark}, taken as a category. If it marks missing cells, pass missing_values={mark}."
    ]
    assert doubts(X, missing_values=mark) == []


def test_measurements_as_text_are_named():
    numbers = pd.Series(np.random.default_rng(0).normal(size=60).round(2).astype(str))
    X = pd.DataFrame({"a": numbers.where(numbers.index != 3, "?")})
    mark, text = doubts(X)
    assert mark.endswith("pass missing_values='?'.")
    assert text.startswith("Column 'a' of X holds numbers as text, such as '-0.")
    advice = text.partition("as by ")[2].rstrip(".")
    numeric = eval(advice, {"pandas": pd, "X": X})
    assert numeric.isna().sum() == 1
    assert doubts(pd.DataFrame({"a": [f"{k % 5}" for k in range(60)]})) == []


def test_codes_among_measurements_are_named():
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["a", "b"])
    X.loc[[3, 4], "a"], X.loc[[5, 9], "b"] = -99, 999
    model = VBMixture(2, n_init=1, random_state=0)
    with pytest.warns(DataWarning, match=r"Columns 'a', 'b' of X hold -99, 999 .* pass missing_values=\[-99, 999\]\."):
        model.fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        model.set_params(missing_values=[-99, 999]).fit(X)
        ages = np.random.default_rng(0).integers(20, 99, 100)
        model.fit(pd.DataFrame({"age": np.append(ages, [99.5, 99, 99])}))  # near the others


def test_marks_among_the_levels_of_a_data_type_are_named():
    """As of read_csv(dtype="category"), which takes them all."""
    X = pd.DataFrame(
        {"a": pd.Categorical(["x", "?", "y"], categories=["y", "?", "x"]), "b": pd.Categorical([5, 99, 1])}
    )
    [message] = doubts(X)
    assert message.startswith("Columns 'a', 'b' of X hold '?', 99, taken as categories.")
    assert doubts(X, missing_values=["?", 99]) == []
    assert (
        doubts(pd.DataFrame({"a": pd.Categorical(["none", "severe"], ["none", "mild", "severe"], ordered=True)})) == []
    )


@pytest.mark.parametrize("word", ["nan", "null"])
def test_marks_among_small_words_are_named(word):
    """As astype(str) writes a missing cell; 'none' beside small words is an answer."""
    assert doubts([["red"], ["green"], [word]])
    assert doubts([["mild"], ["severe"], ["none"]]) == []


@pytest.mark.parametrize("code", [-9, -99, -999])
def test_a_code_below_0_among_numbers_above_is_named(code):
    """Though it is not as far off as their range is wide."""
    column = np.random.default_rng(0).lognormal(3, 2, 100)
    assert marks_in_measurements(np.append(column, [code] * 3)) == [code]
    assert marks_in_measurements(np.append(column, code)) == []
    assert marks_in_measurements(np.append(column, [code, code, -1.5])) == []


def test_no_bundled_table_has_a_mark():
    frames = [getattr(sklearn.datasets, f"load_{name}")(as_frame=True).frame for name in ("iris", "wine", "diabetes")]
    for name in skvbem.datasets.__all__:
        loaded = getattr(skvbem.datasets, name)() if name.startswith("load_") else None
        frames += [pd.DataFrame(loaded.data)] if hasattr(loaded, "data") and np.ndim(loaded.data) == 2 else []
    assert len(frames) > 20
    for column in (frame[name].dropna() for frame in frames for name in frame):
        levels = sorted(set(column.tolist()), key=lambda level: (str(type(level)), level))
        assert marks_among(levels) == []
        assert number_as_text(levels) is None
        if column.dtype.kind in "iuf":
            assert marks_in_measurements(column.to_numpy(dtype=float)) == []


def test_a_constant_column_has_one_category_and_one_warning():
    X = pd.DataFrame({"a": [3, 3], "b": [0, 1], "c": ["x", None]})
    assert doubts(X) == ["Columns 'a', 'c' of X hold only one category each, such as 3."]
    encoder, codes = learn(X)
    assert encoder.n_categories_.tolist() == [1, 2, 1]
    assert codes.tolist() == [[0, 0, 0], [0, 1, -1]]
    assert doubts(X, categories={"a": [3, 4], "c": ["x"]}) == []
    assert doubts([[0, 1, 2]]) == ["Columns 'x0', 'x1', 'x2' of X hold only one category each, such as 0."]


def test_nothing_is_said_about_ordinary_data_or_at_predict():
    X = np.array([[0.0, 1.0], [1.0, 0.0], [np.nan, 1.0]])
    assert doubts(X) == []
    encoder, _ = learn(np.array([[-1.0, 0.5], [0.0, 0.5], [1.0, 0.5]]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoder.encode(np.array([[-1.0, 0.5]]))


# Later tables ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fitted", "later", "codes"),
    [
        ([0, 1], [1.0, 0.0, np.nan], [1, 0, -1]),
        ([0.0, 1.0], np.array([1, 0], dtype=np.int8), [1, 0]),
        (np.array([0, 1], dtype=np.uint8), [True, False], [1, 0]),
        ([False, True], [0, 1], [0, 1]),
        ([False, True], [0.0, 1.0, np.nan], [0, 1, -1]),
        (np.array([2**63, 2**64 - 1], dtype=np.uint64), [2**64 - 1, 2**63], [1, 0]),
        (["a", "b"], np.array(["b", "a"], dtype=object), [1, 0]),
    ],
)
def test_values_are_compared_by_equality_across_types(fitted, later, codes):
    encoder, _ = learn(np.array(fitted)[:, None])
    assert encoder.encode(np.array(later)[:, None]).ravel().tolist() == codes
    assert encoder.encode(pd.DataFrame({"x0": later})).ravel().tolist() == codes


def test_a_string_never_equals_a_number():
    encoder, _ = learn([[0], [1]], handle_unknown="error")
    with pytest.raises(
        ValueError, match=re.escape("Column 'x0' of X contains '1', which is not among the 2 categories")
    ):
        encoder.encode([["1"]])


def test_unseen_categories_are_missing_with_one_warning():
    fit = pd.DataFrame({"smoker": [0, 1, 2, 3, 4], "sex": list("fmfmf")})
    later = pd.DataFrame({"smoker": [5, 0, 5, 7, 6], "sex": ["f", "x", "m", None, "m"]})
    encoder, _ = learn(fit)
    with pytest.warns(UnknownCategoryWarning) as caught:
        codes = encoder.encode(later)
    assert [str(w.message) for w in caught] == [
        "X contains categories that fit did not see, taken as missing: 5 and 2 others in column 'smoker' (4 cells); "
        "'x' in column 'sex' (1 cell)."
    ]
    assert codes.tolist() == [[-1, 0], [0, -1], [-1, 1], [-1, -1], [-1, 1]]

    silent, _ = learn(fit, handle_unknown="missing")
    np.testing.assert_array_equal(silent.encode(later), codes)
    strict, _ = learn(fit, handle_unknown="error")
    message = "Column 'smoker' of X contains 5, which is not among the 5 categories seen in fit: 0, 1, 2, 3, 4."
    with pytest.raises(ValueError, match=re.escape(message)):
        strict.encode(later)


def test_missing_cells_are_not_counted_as_unseen():
    encoder, _ = learn(np.array([[0.0], [1.0]]))
    for X in (np.array([[5.0], [np.nan], [np.nan]]), pd.DataFrame({"x0": pd.array([5, None, None], dtype="Int64")})):
        with pytest.warns(UnknownCategoryWarning, match=re.escape("5 in column 'x0' (1 cell)") + "|5.0 in"):
            assert (encoder.encode(X) == -1).all()


def test_the_warning_names_at_most_five_columns():
    encoder, _ = learn([[0] * 8, [1] * 8])
    with pytest.warns(UnknownCategoryWarning, match=re.escape("'x4' (1 cell); more in 3 other columns.")):
        encoder.encode([[2] * 8])


def test_fit_again_forgets_and_a_failed_fit_changes_nothing():
    encoder, _ = learn([["a", 1], ["b", 2]])
    with pytest.raises(ValueError, match="infinity"):
        encoder.fit_encode([[1.0, np.inf]])
    assert encoder.encode([["b", 1]]).tolist() == [[1, 0]]
    encoder.fit_encode([[5], [6]])
    assert encoder.encode([[6]]).tolist() == [[1]]
    with pytest.raises(ValueError, match="X has 2 features, but VBModel is expecting 1 features as input"):
        encoder.encode([[5, 6]])


def test_tables_of_some_rows_and_some_columns():
    X = pd.DataFrame({"a": pd.array([1, None, 3], dtype="Int64"), "b": ["x", "y", "z"], "c": [True, False, True]})
    table = read_table(X, "VBModel").rows(np.array([False, True, True])).columns([1, 0])
    assert (table.names, table.n_samples, table.n_columns) == (["b", "a"], 2, 2)
    encoder, codes = learn(table)
    assert codes.tolist() == [[0, -1], [1, 0]]
    assert [c.tolist() for c in encoder.categories_] == [["y", "z"], [3]]


def test_a_column_is_the_most_that_is_ever_copied():
    tracemalloc = pytest.importorskip("tracemalloc")
    n_samples, n_columns = 300_000, 8
    for dtype in (np.uint8, np.int64):
        X = np.random.default_rng(0).integers(0, 4, (n_samples, n_columns)).astype(dtype)
        tracemalloc.start()
        codes = CategoryEncoder("VBModel").fit_encode(X)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        blocks = 2_000_000  # 64-bit indices of one block of rows, twice, and the lookup
        assert peak < codes.nbytes + n_samples * X.itemsize + blocks


# An estimator on top --------------------------------------------------------------------------------------------------


class Frequencies(CallbackSupportMixin, DensityMixin, BaseEstimator):
    """Independent columns; the frequencies approach those of the data by halves, once an iteration."""

    _parameter_constraints: ClassVar[dict] = {
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "handle_unknown": [StrOptions({"warn"})],
    }

    def __init__(self, max_iter=3, handle_unknown="warn"):
        self.max_iter = max_iter
        self.handle_unknown = handle_unknown

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        table = read_table(X, type(self).__name__)
        validate_data(self, X, skip_check_array=True, reset=True)
        weights = check_sample_weight(sample_weight, X)
        self.encoder_ = CategoryEncoder(type(self).__name__, handle_unknown=self.handle_unknown)
        codes = self.encoder_.fit_encode(table.rows(weights > 0))
        weights = weights[weights > 0]
        counts = [np.bincount(c[c >= 0], weights[c >= 0], k) for c, k in zip(codes.T, self.encoder_.n_categories_)]
        self.tables_ = [np.full(len(count), 1 / len(count)) for count in counts]
        report = IterationReport(self, X, max_iterations=self.max_iter)
        for iteration in range(1, self.max_iter + 1):
            self.n_iter_ = iteration
            self.tables_ = [(table + count / count.sum()) / 2 for table, count in zip(self.tables_, counts)]
            if report(lambda: {"tables_": self.tables_}):
                break
        report.close()
        return self

    def score_samples(self, X):
        check_is_fitted(self)
        table = read_table(X, type(self).__name__)
        validate_data(self, X, skip_check_array=True, reset=False)
        codes = self.encoder_.encode(table)
        logs = [np.append(np.log(frequencies), 0.0)[c] for frequencies, c in zip(self.tables_, codes.T)]
        return np.sum(logs, axis=0)

    def score(self, X, y=None, sample_weight=None):
        return self.score_samples(X).mean()

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.string = tags.input_tags.allow_nan = True
        return tags


class NoStrings(Frequencies):
    """The same, claiming less, so that scikit-learn also checks what it says to a dict in a cell and to raw floats."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.string = False
        return tags


@pytest.mark.filterwarnings("ignore::skvbem.errors.DataWarning")
@pytest.mark.filterwarnings("ignore:.*:sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks([Frequencies(), NoStrings()])
def test_an_estimator_on_top_passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_columns_reordered_renamed_or_lost_are_refused_and_arrays_warn():
    X = pd.DataFrame({"a": [0, 1], "b": ["x", "y"]})
    model = Frequencies().fit(X)
    for wrong in (X[["b", "a"]], X.rename(columns={"a": "c"}), X[["a"]]):
        with pytest.raises(ValueError, match="feature names should match"):
            model.score_samples(wrong)
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        model.score_samples(X.to_numpy(dtype=object))


def test_rows_of_weight_zero_teach_no_category():
    model = Frequencies().fit([["a"], ["b"], ["c"]], sample_weight=[1, 2, 0])
    assert model.encoder_.categories_[0].tolist() == ["a", "b"]
    for weights, message in [
        ([0, 0, 0], "at least one non-zero"),
        ([1, -1, 1], "must be >= 0. Got -1, for row 1"),
        ([1, np.nan, 1], "NaN"),
    ]:
        with pytest.raises(ValueError, match=message):
            Frequencies().fit([["a"], ["b"], ["c"]], sample_weight=weights)


# Callbacks ------------------------------------------------------------------------------------------------------------


class Recorder:
    """Records every task that ends, and asks to stop after the iteration `stop`."""

    def __init__(self, stop=None):
        self.stop = stop
        self.events = []

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        if context.parent is None:
            self.events.append(("begin", context.task_name, context.max_subtasks))

    def on_fit_task_end(self, estimator, context, *, X=None, fitted_estimator=None):
        fitted = fitted_estimator and round(float(fitted_estimator.tables_[0][1]), 4)
        self.events.append(("end", context.task_name, context.task_id, len(X), fitted))
        return context.task_name == "iteration" and context.task_id + 1 == self.stop


X_CALLBACKS = np.array([[0], [1], [1], [1]])


def test_callbacks_see_every_iteration():
    pytest.importorskip("sklearn.callback")
    recorder = Recorder()
    model = Frequencies(max_iter=3).set_callbacks(recorder).fit(X_CALLBACKS)
    assert model.n_iter_ == 3
    assert recorder.events == [
        "setup",
        ("begin", "fit", 3),
        ("end", "iteration", 0, 4, 0.625),
        ("end", "iteration", 1, 4, 0.6875),
        ("end", "iteration", 2, 4, 0.7188),
        ("end", "fit", 0, 4, None),
        "teardown",
    ]


def test_a_callback_that_returns_true_stops_the_fit():
    pytest.importorskip("sklearn.callback")
    recorder = Recorder(stop=2)
    model = Frequencies(max_iter=1000).set_callbacks(recorder).fit(X_CALLBACKS)
    assert model.n_iter_ == 2
    assert [event[1] for event in recorder.events if event[0] == "end"] == ["iteration", "iteration", "fit"]


def test_without_callbacks_or_without_support_a_report_stops_nothing():
    assert Frequencies(max_iter=7).fit(X_CALLBACKS).n_iter_ == 7
    report = IterationReport(object(), X_CALLBACKS)
    assert report() is False
    report.close()
