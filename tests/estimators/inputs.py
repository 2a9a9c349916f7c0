"""Tables in every container that can hold them, and what must be said of bad ones."""

import warnings

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

NULLABLE = {bool: "boolean", int: "Int64", float: "Float64", str: "string"}
POLARS = {bool: pl.Boolean, int: pl.Int64, float: pl.Float64, str: pl.String}


def _kind(column):
    return next(type(value) for value in column if value is not None)


def as_objects(columns):
    return pd.DataFrame(columns).to_numpy(dtype=object, na_value=None)


def as_floats(columns):
    return np.array(list(columns.values()), dtype=float).T


def as_pandas_objects(columns):
    return pd.DataFrame(columns, dtype=object)


def as_nullable(columns):
    return pd.DataFrame({name: pd.array(column, dtype=NULLABLE[_kind(column)]) for name, column in columns.items()})


def as_numpy_frame(columns):
    return pd.DataFrame({name: np.array(column, dtype=float) for name, column in columns.items()})


def as_categories(columns):
    return pd.DataFrame(columns, dtype=object).astype("category")


def as_polars(columns):
    return pl.DataFrame({name: pl.Series(name, c, POLARS[_kind(c)]) for name, c in columns.items()})


def as_lists(columns):
    return [list(row) for row in zip(*columns.values())]


ANYTHING = [as_objects, as_pandas_objects, as_nullable, as_categories, as_polars, as_lists]
NUMBERS = [as_objects, as_floats, as_pandas_objects, as_nullable, as_numpy_frame, as_polars, as_lists]
any_container = pytest.mark.parametrize("container", ANYTHING)
any_numeric = pytest.mark.parametrize("container", NUMBERS)


def refused(error, message, function, *args, **kwargs):
    """The text of the error, after checking its type and what it says (no pattern: the words)."""
    with pytest.raises(error) as caught:
        function(*args, **kwargs)
    assert message in str(caught.value), str(caught.value)
    return str(caught.value)


def warned(category, message, function, *args, **kwargs):
    """What the function returns, after checking that it warns in these words."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = function(*args, **kwargs)
    texts = [str(w.message) for w in caught if issubclass(w.category, category)]
    assert any(message in text for text in texts), texts
    return result


def quiet(function, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return function(*args, **kwargs)
