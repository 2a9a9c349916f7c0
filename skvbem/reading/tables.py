"""A user's table column by column, whatever container holds it; single cells, and which of them mean missing."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from numbers import Number
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_array

from skvbem._names import first_few
from skvbem.blocks import Blocks


@dataclass(frozen=True)
class Column:
    """One column of a table, in the storage of its container.

    values : (n_samples,) cells; where `levels` is given, their positions in it, -1 = missing.
    missing : (n_samples,) bool or None; cells that are missing though `values` cannot say so.
    levels : the levels the data type declares, in their declared order, or None.
    """

    values: np.ndarray
    missing: np.ndarray | None = None
    levels: list | None = None


class Table:
    """Columns with names, read on demand.

    names : the column names if all are strings, else x0, x1, ... as in scikit-learn.
    has_own_names : whether the names are those of a data frame.
    array : the same cells as one array, where the columns are those of one; never to be written to.
    source : what the user has, of which these are rows, or columns.
    """

    def __init__(
        self,
        names: Sequence,
        n_samples: int,
        column: Callable[[int], Column],
        array: np.ndarray | None = None,
        source=None,
    ):
        self.has_own_names = all(isinstance(name, str) for name in names)
        self.names = list(names) if self.has_own_names else [f"x{j}" for j in range(len(names))]
        self.n_samples = n_samples
        self.column = column
        self.array = array
        self.source = source

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.names)

    def names_of_fit(self) -> dict[str, Any]:
        """The attributes `n_features_in_` and, if X has string column names, `feature_names_in_` and its library."""
        attributes: dict[str, Any] = {"n_features_in_": self.n_columns}
        if self.has_own_names:
            attributes["feature_names_in_"] = np.asarray(self.names, dtype=object)
            for library in ("pandas", "polars"):
                if is_frame(self.source, library):
                    attributes["_frames_of_"] = library
        return attributes

    def each_column(self) -> Iterator[Column]:
        """The columns, one after the other."""
        return map(self.column, range(self.n_columns))

    def rows(self, keep: np.ndarray) -> Table:
        """The rows where `keep`, boolean of shape (n_samples,), is true."""

        def column(j: int) -> Column:
            whole = self.column(j)
            missing = None if whole.missing is None else whole.missing[keep]
            return Column(whole.values[keep], missing, whole.levels)

        array = None if self.array is None else self.array[keep]
        return self._part(range(self.n_columns), int(np.count_nonzero(keep)), column, array)

    def columns(self, positions: Sequence[int]) -> Table:
        """The columns at these positions, in this order."""
        all_of_them = list(positions) == list(range(self.n_columns))
        array = self.array if self.array is None or all_of_them else self.array[:, list(positions)]
        return self._part(positions, self.n_samples, lambda k: self.column(positions[k]), array)

    def _part(
        self, positions: Sequence[int], n_samples: int, column: Callable[[int], Column], array: np.ndarray | None
    ) -> Table:
        part = Table([self.names[j] for j in positions], n_samples, column, array, self.source)
        part.has_own_names = self.has_own_names
        return part


def read_table(X, owner: str) -> Table:
    """X as a table of at least one row and one column.

    Shapes, sparse and complex input are refused in scikit-learn's words, naming the estimator `owner`.
    """
    if isinstance(X, Table):
        return X
    if isinstance(X, Blocks):
        raise TypeError(
            "X comes in blocks, which only fit and the scores of VBMixture take. Ask about one block at a time, as in "
            "[model.predict(block) for block in X]; other estimators learn from batches by partial_fit."
        )
    if is_frame(X, "pandas"):
        names, read = X.columns.tolist(), lambda j: _pandas_column(X.iloc[:, j])
    elif is_frame(X, "polars"):
        names, read = X.columns, lambda j: _polars_column(X.to_series(j))
    else:
        return _array_table(X, owner)
    if 0 in X.shape:
        check_array(np.empty(X.shape), estimator=owner, input_name="X")
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        raise ValueError(f"X has more than one column named {listed(map(show, repeated))}. Column names must differ.")
    types = sorted({type(name).__name__ for name in names})
    if "str" in types and len(types) > 1:
        raise TypeError(
            "Feature names are only supported if all input features have string names, but those of X are of types "
            f"{listed(types)}. Make all of them strings, as by X.columns = X.columns.astype(str)."
        )
    return Table(names, X.shape[0], read, source=X)


def is_frame(X, library: str) -> bool:
    """Whether X is a data frame of a library, which need not be installed."""
    frame = getattr(sys.modules.get(library), "DataFrame", None)
    return frame is not None and isinstance(X, frame)


def _array_table(X, owner: str) -> Table:
    mask = np.ma.getmaskarray(X) if isinstance(X, np.ma.MaskedArray) else None
    if isinstance(X, (list, tuple)):
        X = np.array(X, dtype=object)  # any other dtype would turn the 1 of [1, "a"] into "1"
        if X.ndim == 1 and X.size and all(isinstance(row, (list, tuple, np.ndarray)) for row in X):
            lengths = sorted({len(row) for row in X})
            raise ValueError(f"The rows of X must have one length. Got rows of {listed(map(str, lengths))} cells.")
    elif not (hasattr(X, "__array__") or issparse(X) or isinstance(X, Number)) or hasattr(X, "column_names"):
        raise TypeError(
            f"X must be an array, a nested list, or a pandas or polars DataFrame. Got a {type(X).__name__} instead; "
            "convert it to one of these."
        )
    if getattr(X, "ndim", 2) > 2:
        raise ValueError(
            f"Found array with dim {X.ndim}, while {owner} needs dim 2, one row for each sample. Reshape your data, "
            "for example with X.reshape(len(X), -1)."
        )
    array = X
    if type(X) is not np.ndarray or X.ndim != 2 or 0 in X.shape:
        array = check_array(X, dtype=None, ensure_all_finite=False, estimator=owner, input_name="X")
    columns: Callable[[int], Column] = lambda j: Column(array[:, j], None if mask is None else mask[:, j])  # noqa: E731
    return Table(range(array.shape[1]), len(array), columns, array if mask is None else None, X)


def _pandas_column(series) -> Column:
    dtype = series.dtype
    if hasattr(dtype, "categories"):
        return Column(series.array.codes, levels=dtype.categories.tolist())
    if isinstance(dtype, np.dtype):
        return Column(series.to_numpy())
    if dtype.kind in "mM":
        return Column(series.to_numpy(dtype=f"{dtype.kind}8[ns]"))
    if dtype.kind in "biuf" and hasattr(dtype, "numpy_dtype"):
        anything = dtype.numpy_dtype.type(0).item()
        return Column(series.to_numpy(dtype=dtype.numpy_dtype, na_value=anything), series.isna().to_numpy())
    return Column(series.to_numpy(dtype=object))


def _polars_column(series) -> Column:
    dtype = series.dtype
    polars = sys.modules["polars"]
    if isinstance(dtype, polars.Enum):
        positions = series.to_physical().cast(polars.Int32).fill_null(-1)
        return Column(positions.to_numpy(), levels=dtype.categories.to_list())
    if dtype.is_float() or (dtype.is_integer() and "128" not in str(dtype)):  # NumPy has no 128-bit integers
        return Column(series.fill_null(0).to_numpy(), series.is_null().to_numpy())
    if dtype.is_temporal():
        return Column(np.zeros(len(series), dtype="datetime64[us]"))  # its type is all that is looked at
    if dtype.is_nested():  # its cells are no values, and series among them have no truth value
        raise TypeError(
            f"Column {series.name!r} of X holds {dtype}; a cell argument must be a string, a boolean or a number. Give "
            "each item of such cells a column of its own."
        )
    return Column(np.fromiter(series, dtype=object, count=len(series)))


MAX_NAMED_COLUMNS = 5  # columns named in one message


def is_missing_value(value) -> bool:
    """None, NaN, NaT or pandas.NA."""
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def as_plain(value):
    """A NumPy scalar as the Python object that it equals."""
    return value.item() if isinstance(value, np.generic) and value.dtype.kind in "biufcSU" else value


_KINDS: dict[str, type | tuple[type, ...]] = {
    "boolean": bool,
    "number": (int, float, np.floating),
    "string": str,
    "bytes": bytes,
    "complex number": (complex, np.complexfloating),
}


_KIND_OF = {bool: "boolean", int: "number", float: "number", str: "string"}  # the usual ones, at once


def kind_of(value) -> str:
    """What sort of thing a plain value is; only values of one sort may share a column."""
    usual = _KIND_OF.get(type(value))
    return usual or next((kind for kind, types in _KINDS.items() if isinstance(value, types)), type(value).__name__)


def is_fraction(value) -> bool:
    """Whether a value is a float that is no whole number."""
    return isinstance(value, (float, np.floating)) and not value.is_integer()


def first_unhashable(values: list):
    """The first of some values that cannot be hashed, or None."""
    for value in values:
        try:
            hash(value)
        except TypeError:
            return value
    return None


def show(value) -> str:
    """A value as messages show it, in at most 60 characters."""
    text = str(value) if isinstance(value, np.generic) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def listed(texts, at_most: int = 10) -> str:
    """Texts in a row, those in the middle left out where there are many."""
    texts = list(texts)
    return ", ".join(texts if len(texts) <= at_most else [*texts[: at_most - 1], "...", texts[-1]])


def missing_markers(missing_values, owner: str) -> set[tuple]:
    """The (kind, value) pairs that mean "missing" by the `missing_values` parameter of an estimator."""
    several = isinstance(missing_values, (list, tuple, set, frozenset, np.ndarray))
    values = [as_plain(v) for v in (missing_values if several else [missing_values])]
    if first_unhashable(values) is not None:
        raise ValueError(
            f"The 'missing_values' parameter of {owner} must be a scalar or a list of scalars. "
            f"Got {show(missing_values)} instead."
        )
    return {(kind_of(v), v) for v in values if not is_missing_value(v)}


def named_columns(names: list[str]) -> str:
    """Columns as messages name them, the first few."""
    if len(names) == 1:
        return f"Column {names[0]!r}"
    return f"Columns {first_few(names, MAX_NAMED_COLUMNS, repr)}"
