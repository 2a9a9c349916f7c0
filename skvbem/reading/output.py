"""Values back into a table such as the user has."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np

from skvbem.reading.tables import library_of, series_as_frame


def as_array(columns: Sequence[np.ndarray]) -> np.ndarray:
    """Columns as one array, of objects where no other type holds all of them as they are."""
    table = np.empty((len(columns[0]), len(columns)), dtype=_common_dtype([column.dtype for column in columns]))
    for j, column in enumerate(columns):
        table[:, j] = column
    return table


def as_fit_saw(estimator, columns: Sequence[np.ndarray]):
    """Columns of new rows in the container of the X that was fitted: a data frame with its names, else an array."""
    library = getattr(estimator, "_frames_of_", None)
    if library is None:
        return as_array(columns)
    names = estimator.feature_names_in_
    if library == "pandas":
        import pandas as pd

        return pd.DataFrame(dict(zip(names, columns)))
    import polars as pl

    return pl.DataFrame([pl.Series(name, column.tolist()) for name, column in zip(names, columns)])


def filled(X, where: np.ndarray, columns: Sequence[np.ndarray]):
    """X with some cells replaced, in its own container and, as far as they hold the new values, its own data types.

    A column without an observed cell has the type of the new values: a table knows of an empty column no other.

    Parameters
    ----------
    X : array-like or DataFrame of shape (n_samples, n_columns)
    where : ndarray of bool, shape (n_samples, n_columns)
        The cells to replace.
    columns : sequence of n_columns ndarrays of shape (n_samples,)
        The values to put there.
    """
    X = series_as_frame(X)
    library = library_of(X)
    if library == "pandas":
        pieces = {}
        for j, values in enumerate(columns):
            column = X.iloc[:, j]
            if where[:, j].any():
                column = _pandas_column(column, where[:, j], values)
            pieces[j] = column
        completed = type(X)(pieces, index=X.index)
        completed.columns = X.columns
        return completed
    if library == "polars":
        completed = []
        for j, (column, values) in enumerate(zip(X.iter_columns(), columns)):
            if where[:, j].any():
                column = _polars_column(sys.modules["polars"], column, where[:, j], values)
            completed.append(column)
        return X.with_columns(completed)
    array = np.array(X, dtype=None if hasattr(X, "dtype") else object)
    used = [values.dtype for j, values in enumerate(columns) if where[:, j].any()]
    array = array.astype(_common_dtype([array.dtype, *used]))
    for j, values in enumerate(columns):
        array[where[:, j], j] = values[where[:, j]]
    return array if hasattr(X, "dtype") else as_array([_narrowest(array[:, j]) for j in range(array.shape[1])])


def _pandas_column(column, where: np.ndarray, values: np.ndarray):
    """A column of a data frame of pandas, some of its cells replaced."""
    import pandas as pd

    if isinstance(column.dtype, pd.CategoricalDtype):
        known = set(column.cat.categories)
        column = column.cat.add_categories([each for each in dict.fromkeys(values[where]) if each not in known])
    if isinstance(column.dtype, pd.IntervalDtype):
        column = column.astype(object)  # intervals of one data type have the same closed sides
    dtype = getattr(column.dtype, "numpy_dtype", column.dtype)  # of nullable numbers that of their values
    if _are_fractions(dtype, values):
        column = column.astype("float64" if dtype is column.dtype else "Float64")
    elif isinstance(dtype, np.dtype) and dtype.kind in "biuf" and not _fits(dtype, values):
        if where.all():
            return pd.Series(values, index=column.index)
        column = column.astype(object)
    elif isinstance(dtype, np.dtype) and dtype.kind == "f":
        values = values.astype(dtype)
    elif isinstance(column.dtype, pd.StringDtype) and values.dtype.kind not in "OU":
        column = column.astype(object)
    column = column.copy()
    column[where] = values[where]
    return column


def _polars_column(polars, column, where: np.ndarray, values: np.ndarray):
    """A column of a data frame of polars, some of its cells replaced."""
    replacements = polars.Series(column.name, values.tolist())
    if where.all() and (column.dtype == polars.Null or column.dtype.is_numeric() != replacements.dtype.is_numeric()):
        return replacements
    if isinstance(column.dtype, polars.Enum):
        known = column.dtype.categories.to_list()
        column = column.cast(polars.Enum([*known, *(x for x in dict.fromkeys(values[where]) if x not in known)]))
    elif column.dtype.is_numeric() and replacements.dtype == polars.String:
        column = column.cast(polars.String)
    elif column.dtype.is_integer() and _are_fractions(np.dtype(int), values):
        column = column.cast(polars.Float64)
    return column.zip_with(polars.Series(~where), replacements.cast(column.dtype))


def _fits(dtype: np.dtype, values: np.ndarray) -> bool:
    """True if a column of truth values or numbers may hold values."""
    return values.dtype.kind == "b" if dtype.kind == "b" else values.dtype.kind in "biuf"


def _are_fractions(dtype, values: np.ndarray) -> bool:
    """Whether values are floats, such as means, where a column has whole numbers."""
    return isinstance(dtype, np.dtype) and dtype.kind in "iu" and values.dtype.kind == "f"


def _common_dtype(dtypes: Sequence[np.dtype]) -> np.dtype:
    kinds = {dtype.kind for dtype in dtypes}
    return np.result_type(*dtypes) if kinds <= set("iuf") or len(kinds) == 1 else np.dtype(object)


def _narrowest(cells: np.ndarray) -> np.ndarray:
    """Objects as numbers or booleans, if all are."""
    array = np.array(cells.tolist())
    return array if array.dtype.kind in "biuf" else cells
