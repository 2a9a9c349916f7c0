"""A user's table column by column, whatever container holds it: its cells, which of them mean missing, its numbers.

Numbers are read and refused here; a table of them that is stored as it is wanted is not copied.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from numbers import Number
from typing import Any, NoReturn

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_array

from skvbem._arguments import are_texts, is_list
from skvbem._compat import check_sample_weight
from skvbem._names import first_few
from skvbem._numerics import extremes
from skvbem.blocks import Blocks
from skvbem.emissions import EmissionSpecification
from skvbem.emissions.registry import FOR_CATEGORIES, FOR_NUMBERS, family_of

# Rows looked at together.
_BLOCK = 2**12
# Sums of products of larger numbers, and of columns that hold none but smaller ones and 0, leave the floats.
_MAX_MAGNITUDE, _MIN_MAGNITUDE = 1e140, 1e-140
_UNIT = " Measure it in another unit."


@dataclass(frozen=True)
class Column:
    """One column of a table, in the storage of its container.

    values : (n_samples,) cells; where `levels` is given, their positions in it, -1 = missing.
    missing : (n_samples,) bool or None; cells that are missing though `values` cannot say so.
    levels : the levels the data type declares, in their declared order, or None.
    is_ordered : whether the data type says that this order means something.
    """

    values: np.ndarray
    missing: np.ndarray | None = None
    levels: list | None = None
    is_ordered: bool = False


class Table:
    """Columns with names, read on demand.

    names : the column names if all are strings, else x0, x1, ... as in scikit-learn.
    has_own_names : whether the names are those of a data frame; by default if all are strings.
    array : the cells of the first columns as one array, where these are those of one; never to be written to.
    source : what the user has, of which these are rows, or columns.
    """

    def __init__(
        self,
        names: Sequence,
        n_samples: int,
        column: Callable[[int], Column],
        array: np.ndarray | None = None,
        source=None,
        has_own_names: bool | None = None,
    ):
        are_own = are_texts(names) if has_own_names is None else has_own_names
        self.has_own_names, self.n_columns = are_own, len(names)
        self.names = list(names) if has_own_names is not None or are_own else [f"x{j}" for j in range(len(names))]
        self.n_samples = n_samples
        self.column = column
        self.array = array
        self.source = source

    def names_of_fit(self) -> dict[str, Any]:
        """The attributes `n_features_in_` and, if X has string column names, `feature_names_in_` and its library."""
        attributes: dict[str, Any] = {"n_features_in_": self.n_columns}
        if self.has_own_names:
            attributes["feature_names_in_"] = np.asarray(self.names, dtype=object)
            if library := library_of(self.source):
                attributes["_frames_of_"] = library
        return attributes

    def rows(self, keep: np.ndarray) -> Table:
        """The rows where `keep`, boolean of shape (n_samples,), is true."""

        def column(j: int) -> Column:
            whole = self.column(j)
            missing = None if whole.missing is None else whole.missing[keep]
            return replace(whole, values=whole.values[keep], missing=missing)

        array = None if self.array is None else self.array[keep]
        return Table(self.names, int(np.count_nonzero(keep)), column, array, self.source, self.has_own_names)

    def taken(self, places: np.ndarray) -> Table:
        """The rows at these places, in this order; all cells of a row at -1 are missing."""
        gone = places < 0
        some_gone = bool(gone.any())

        def column(j: int) -> Column:
            whole = self.column(j)
            values, missing = whole.values[places], None if whole.missing is None else whole.missing[places]
            if some_gone and whole.levels is not None:
                values[gone] = -1
            elif some_gone:
                missing = gone if missing is None else missing | gone
            return replace(whole, values=values, missing=missing)

        array = None if self.array is None else self.array[places]
        if some_gone and array is not None and array.dtype.kind == "f":
            array[gone] = np.nan
        elif some_gone:
            array = None
        return Table(self.names, len(places), column, array, self.source, self.has_own_names)

    def columns(self, positions: Sequence[int]) -> Table:
        """The columns at these positions, in this order."""
        array, places = self.array, list(positions)
        if array is not None and places != list(range(array.shape[1])):
            array = array[:, places] if max(places, default=0) < array.shape[1] else None
        names, column = [self.names[j] for j in positions], lambda k: self.column(positions[k])
        return Table(names, self.n_samples, column, array, self.source, self.has_own_names)


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
    X = series_as_frame(X)
    library = library_of(X)
    if library == "pandas":
        names, read = X.columns.tolist(), lambda j: _pandas_column(X.iloc[:, j])
    elif library == "polars":
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


def library_of(X, container: str = "DataFrame") -> str:
    """The library, pandas or polars, that X is a frame (or other container) of; "" of neither. None need be there."""
    for library in ("pandas", "polars"):
        kind = getattr(sys.modules.get(library), container, None)
        if kind is not None and isinstance(X, kind):
            return library
    return ""


def series_as_frame(X) -> Any:
    """A series of pandas or polars as a frame of one column; anything else as it is."""
    return X.to_frame() if library_of(X, "Series") else X


def _array_table(X, owner: str) -> Table:
    mask = np.ma.getmaskarray(X) if isinstance(X, np.ma.MaskedArray) else None
    if is_list(X):
        X = np.array(X, dtype=object)  # any other dtype would turn the 1 of [1, "a"] into "1"
        if X.ndim == 1 and X.size and all(map(is_row, X)):
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
        return Column(series.array.codes, levels=dtype.categories.tolist(), is_ordered=bool(dtype.ordered))
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
        return Column(positions.to_numpy(), levels=dtype.categories.to_list(), is_ordered=True)
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


def is_row(value) -> bool:
    """Whether a value is a list, a tuple or an array, as rows of nested lists are."""
    return isinstance(value, (list, tuple, np.ndarray))


def is_missing_value(value) -> bool:
    """None, NaN, NaT or pandas.NA."""
    if isinstance(value, np.ndarray):
        return False
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def is_interval(value) -> bool:
    """Whether a value is a pandas.Interval, as pandas.cut makes them."""
    return type(value).__name__ == "Interval" and type(value).__module__.partition(".")[0] == "pandas"


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
    try:
        values = [as_plain(v) for v in (missing_values if several else [missing_values])]
        return {(kind_of(v), v) for v in values if not is_missing_value(v)}
    except (TypeError, ValueError):  # cells that cannot be hashed, or compared with themselves as arrays
        raise ValueError(
            f"The 'missing_values' parameter of {owner} must be a scalar or a list of scalars. "
            f"Got {show(missing_values)} instead."
        ) from None


def named_columns(names: list[str]) -> str:
    """Columns as messages name them, the first few."""
    if len(names) == 1:
        return f"Column {names[0]!r}"
    return f"Columns {first_few(names, MAX_NAMED_COLUMNS, repr)}"


def checked_weights(sample_weight, n_samples: int) -> np.ndarray | None:
    """Checked weights (n_samples,), or None where every row counts once."""
    if sample_weight is None:
        return None
    weights = check_sample_weight(sample_weight, np.empty((n_samples, 1)))
    return None if (weights == 1.0).all() else weights


def weighted_mean(scores: np.ndarray, sample_weight) -> float:
    """The mean of scores of rows, of those that count."""
    weights = checked_weights(sample_weight, len(scores))
    if weights is not None:  # a row that counts for nothing may be impossible
        scores, weights = scores[weights > 0], weights[weights > 0]
    return float(np.average(scores, weights=weights))


def weighted_rows(table: Table, sample_weight) -> tuple[Table, np.ndarray | None, np.ndarray | None]:
    """The rows of a table of weight > 0, their weights, and which rows these are (None for all)."""
    weights = None if sample_weight is None else checked_weights(sample_weight, table.n_samples)
    if weights is None or weights.all():
        return table, weights, None
    is_weighted = weights > 0
    return table.rows(is_weighted), weights[is_weighted], is_weighted


# Numbers --------------------------------------------------------------------------------------------------------------


def read_numbers(
    table: Table,
    specification: EmissionSpecification,
    markers: set[tuple],
    *,
    is_fit: bool = False,
    is_known: bool = False,
) -> np.ndarray:
    """Numbers as the emission takes them: floats, NaN where missing, or codes.

    What is stored as it is wanted is not copied: nobody may write to what comes from here. Values that are known were
    checked before.
    """
    array = table.array
    if array is None or array.shape[1] < table.n_columns or array.dtype.kind not in "biuf":
        values, is_own = np.empty((table.n_samples, table.n_columns)), True
        for j, name in enumerate(table.names):
            values[:, j] = _numbers(name, table.column(j))
    else:
        values = np.ascontiguousarray(array, dtype=np.float64)
        is_own = not np.may_share_memory(values, array)
    for marker in (value for kind, value in markers if kind == "number"):
        for rows in blocks_of_rows(len(values)):
            marked = values[rows] == marker
            if marked.any():
                values, is_own = values if is_own else values.copy(), True
                values[rows][marked] = np.nan
    if not is_known:
        _check(table.names, values, specification, is_fit=is_fit)
    return specification.stored(values)


def check_blocks(
    tables: Blocks, names: Sequence[str], specification: EmissionSpecification, markers: set[tuple]
) -> None:
    """Refuse values in blocks, and columns, of these names, that hold nothing in any of them."""
    observed: Any = False
    for of_table in tables.results(partial(_observed_in, specification, markers)):
        observed = observed | of_table
    for name, is_observed in zip(names, observed):
        if not is_observed:
            raise _empty(name)


def _observed_in(specification: EmissionSpecification, markers: set[tuple], table: Table) -> np.ndarray:
    """Whether any cell of each column of a table is observed, (n_columns,); its cells are checked."""
    return np.any(~is_missing(read_numbers(table, specification, markers)), axis=0)


def is_missing(values: np.ndarray) -> np.ndarray:
    """Missing cells of a group's values: NaN among floats, negative codes."""
    return np.isnan(values) if values.dtype.kind == "f" else values < 0


def count_missing(values: Sequence[np.ndarray]) -> int:
    """How many cells are missing."""
    counts = (np.count_nonzero(is_missing(each[rows])) for each in values for rows in blocks_of_rows(len(each)))
    return int(sum(counts))


def are_complete(values: Sequence[np.ndarray]) -> bool:
    """Whether no cell is missing."""
    return not any(is_missing(of_group[rows]).any() for of_group in values for rows in blocks_of_rows(len(of_group)))


def are_observed(values: Sequence[np.ndarray]) -> np.ndarray:
    """Whether rows have any observed cell, (n_rows,)."""
    are_seen = np.zeros(len(values[0]), dtype=bool)
    for of_group in values:
        for rows in blocks_of_rows(len(are_seen)):
            are_seen[rows] |= ~is_missing(of_group[rows]).all(axis=1)
    return are_seen


def blocks_of_rows(n_rows: int, size: int = _BLOCK) -> Iterator[slice]:
    """Slices of few rows, for what would otherwise take as much memory as the table."""
    return (slice(at, at + size) for at in range(0, n_rows, size))


def _numbers(name: str, column: Column) -> np.ndarray:
    """A column as floats, NaN where missing."""
    cells = column.values
    if column.levels is not None:
        cells = np.array([*column.levels, None], dtype=object)[cells]
    if cells.dtype.kind == "c":
        raise ValueError(f"Complex data not supported. Column {name!r} of X holds {cells.dtype}.")
    if cells.dtype.kind in "mM" and len(cells):
        _refuse_cell(name, cells[0])
    if cells.dtype.kind in "biuf":
        values = cells.astype(float)
    else:
        values = np.array([_number(name, value) for value in cells.tolist()], dtype=float)
    if column.missing is not None:
        values[column.missing] = np.nan
    return values


def _number(name: str, value) -> float:
    if is_missing_value(value):
        return np.nan
    if isinstance(value, complex):
        raise ValueError(f"Complex data not supported. Column {name!r} of X holds {show(value)}.")
    if isinstance(value, Number):
        try:
            return float(value)  # type: ignore[arg-type]
        except OverflowError:
            raise ValueError(f"Column {name!r} of X holds {show(value)}, which is no float.{_UNIT}") from None
    _refuse_cell(name, value)


def _refuse_cell(name: str, value) -> NoReturn:
    """Say what to do with a cell that is no number."""
    if isinstance(value, (np.datetime64, np.timedelta64)) or hasattr(value, "ctime") or hasattr(value, "total_seconds"):
        remedy = "Make numbers of times first, such as days since the first."
    else:
        remedy = (
            f"Make numbers of such a column first, or give it to {FOR_CATEGORIES!r} in the 'emission' parameter of "
            "VBMixture or VBHMM."
        )
    raise ValueError(f"Column {name!r} of X holds {show(value)}, where a number is expected. {remedy}")


def _check(names: Sequence[str], values: np.ndarray, specification: EmissionSpecification, *, is_fit: bool) -> None:
    """Refuse values that no member of the family can make, and columns to fit that hold nothing."""
    reach, is_bad = np.full(len(names), -1.0), False
    for rows in blocks_of_rows(len(values)):
        block = values[rows]
        low, high = extremes(block)
        reach = np.fmax(reach, np.fmax(-low, high))
        with np.errstate(invalid="ignore"):
            impossible = specification.impossible(block)
        if getattr(impossible, "shape", None) != block.shape or impossible.dtype != bool:
            raise TypeError(
                f"`impossible` of {type(specification).__name__} must return an array of booleans of the shape of the "
                f"values, {block.shape} here. It returned {show(impossible)}."
            )
        is_bad = is_bad or bool(impossible.any() and (impossible & ~np.isnan(block)).any())
    most = min(specification.largest, _MAX_MAGNITUDE)
    if (
        is_bad
        or (reach > most).any()
        or ((reach > 0) & (reach < _MIN_MAGNITUDE)).any()
        or (is_fit and (reach < 0).any())
    ):
        for name, column in zip(names, values.T):
            _refuse_column(name, column, specification, is_fit)


def _refuse_column(name: str, values: np.ndarray, specification: EmissionSpecification, is_fit: bool) -> None:
    """Say what is wrong with a column, if anything is."""
    if np.isinf(values).any():
        raise ValueError(f"Column {name!r} of X holds infinity. A number must be finite, NaN where it is missing.")
    bad = specification.impossible(values) & ~np.isnan(values)
    if bad.any():
        raise ValueError(
            f"Column {name!r} of X holds {values[bad.argmax()]:g}, but for {family_of(specification)!r} "
            f"{specification.wanted}."
        )
    size = np.abs(values)
    largest = np.fmax.reduce(size, initial=0.0)
    if largest > specification.largest:
        raise ValueError(
            f"Column {name!r} of X holds {largest:g}; {specification.if_larger}, or give the column to "
            f"{FOR_NUMBERS!r} in the 'emission' parameter."
        )
    if largest > _MAX_MAGNITUDE:
        raise ValueError(
            f"Column {name!r} of X holds {values[np.nanargmax(size)]:g}. Numbers beyond {_MAX_MAGNITUDE:g} have "
            f"products whose sums exceed the range of floats.{_UNIT}"
        )
    if 0 < largest < _MIN_MAGNITUDE:
        raise ValueError(
            f"Column {name!r} of X holds no number larger than {largest:g}. Where all are below {_MIN_MAGNITUDE:g} "
            f"their products fall below the range of floats.{_UNIT}"
        )
    if is_fit and np.isnan(values).all():
        raise _empty(name)


def _empty(name: str) -> ValueError:
    return ValueError(f"Column {name!r} of X has no observed cell. Leave such a column out.")
