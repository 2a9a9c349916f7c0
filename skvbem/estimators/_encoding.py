"""A user's table as integer codes of categories.

`read_table` makes one kind of table of NumPy arrays, nested lists, pandas and polars data frames; its columns are read
one at a time. `CategoryEncoder` learns the categories of each column and writes every cell as the position of its
category, -1 where the cell is missing. A column takes two steps: *raw codes*, whatever numbers its storage offers
cheaply (the distance from its smallest whole number, the codes of a categorical, the order in which values first
appear), with the few values they stand for; then a lookup from raw codes to codes. All judgement (missing markers,
mixed kinds, declared levels, unseen categories) is passed on the few values, never on the cells.

Values are compared by Python's equality: 1 == 1.0 == np.int8(1), and True == 1, since a table of booleans and numbers
turns True into 1 when it becomes an array. A string never equals a number. Within one column booleans, numbers and
strings are different kinds and may not be mixed.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Number

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_array

from skvbem._compat import warn
from skvbem.blocks import Blocks
from skvbem.errors import DataWarning, UnknownCategoryWarning

_SPAN = 1 << 16  # whole numbers within a range this wide are looked up, others are sorted
_BLOCK = 1 << 16  # rows at a time where NumPy would turn a whole column into 64-bit indices
_EXACT = 1 << 53  # whole numbers up to here are exact in float64
_NAMED = 5  # columns named in one message


# Tables ---------------------------------------------------------------------------------------------------------------


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
    array : the same cells as one array, where the columns are those of one; never to be written to.
    """

    def __init__(
        self, names: Sequence, n_samples: int, column: Callable[[int], Column], array: np.ndarray | None = None
    ):
        named = all(isinstance(name, str) for name in names)
        self.names = list(names) if named else [f"x{j}" for j in range(len(names))]
        self.n_samples = n_samples
        self.column = column
        self.array = array

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.names)

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
        return Table(self.names, int(np.count_nonzero(keep)), column, array)

    def columns(self, positions: Sequence[int]) -> Table:
        """The columns at these positions, in this order."""
        all_of_them = list(positions) == list(range(self.n_columns))
        array = self.array if self.array is None or all_of_them else self.array[:, list(positions)]
        return Table([self.names[j] for j in positions], self.n_samples, lambda k: self.column(positions[k]), array)


def read_table(X, owner: str) -> Table:
    """X as a table of at least one row and one column.

    Shapes, sparse and complex input are refused in scikit-learn's words, naming the estimator `owner`. Read the table
    before `validate_data(..., skip_check_array=True)`, which knows less about what is wrong with X.
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
        raise ValueError(f"X has more than one column named {_some(map(_show, repeated))}. Column names must differ.")
    return Table(names, X.shape[0], read)


def is_frame(X, library: str) -> bool:
    frame = getattr(sys.modules.get(library), "DataFrame", None)
    return frame is not None and isinstance(X, frame)


def _array_table(X, owner: str) -> Table:
    mask = np.ma.getmaskarray(X) if isinstance(X, np.ma.MaskedArray) else None
    if isinstance(X, (list, tuple)):
        X = np.array(X, dtype=object)  # any other dtype would turn the 1 of [1, "a"] into "1"
        if X.ndim == 1 and X.size and all(isinstance(row, (list, tuple, np.ndarray)) for row in X):
            lengths = sorted({len(row) for row in X})
            raise ValueError(f"The rows of X must have one length. Got rows of {_some(map(str, lengths))} cells.")
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
    names = [f"x{j}" for j in range(array.shape[1])]
    columns: Callable[[int], Column] = lambda j: Column(array[:, j], None if mask is None else mask[:, j])  # noqa: E731
    return Table(names, len(array), columns, array if mask is None else None)


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
    return Column(np.fromiter(series, dtype=object, count=len(series)))


# Raw codes ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Coding:
    """Raw codes of a column: row i holds `values[k]` where `raw[i] == positions[k]`.

    raw : (n_samples,) whole numbers below `size`; -1 = missing.
    positions, values : the raw codes that occur, and what they stand for (plain Python objects).
    missing : (n_samples,) bool or None; rows that are missing whatever `raw` says.
    dtype : data type of the cells, None where each cell has its own.
    """

    raw: np.ndarray
    size: int
    positions: np.ndarray
    values: list
    missing: np.ndarray | None = None
    dtype: np.dtype | None = None

    def without(self, markers: set[tuple]) -> _Coding:
        """The same with the cells missing that hold one of these (kind, value) pairs."""
        if not markers:
            return self
        kept = [k for k, value in enumerate(self.values) if (_kind(value), value) not in markers]
        return replace(self, positions=self.positions[kept], values=[self.values[k] for k in kept])

    def count(self, positions: np.ndarray) -> int:
        """How many rows hold one of these raw codes."""
        wanted = np.zeros(self.size + 1, dtype=bool)
        wanted[positions] = True
        rows = wanted[self.raw]
        return int(np.count_nonzero(rows if self.missing is None else rows & ~self.missing))

    def write(self, codes: np.ndarray, codes_of: dict) -> None:
        """Fill `codes`, (n_samples,), with the code of each row's value; -1 if it is missing or has none."""
        lookup = np.full(self.size + 1, -1, dtype=codes.dtype)  # the last entry is for raw code -1
        lookup[self.positions] = [codes_of.get(value, -1) for value in self.values]
        for rows in _blocks(len(codes)):
            codes[rows] = lookup[self.raw[rows]]
        if self.missing is not None:
            codes[self.missing] = -1


def _coding(name: str, column: Column) -> _Coding:
    if column.levels is not None:
        positions = _occurring(column.values, len(column.levels))
        values = [_plain(column.levels[p]) for p in positions]
        return _Coding(column.values, len(column.levels), positions, values)
    kind = column.values.dtype.kind
    if kind in "biuf":
        return _code_numbers(column)
    if kind in "OUST":
        return _code_objects(name, column)
    if kind == "c":
        raise ValueError(f"Complex data not supported. Column {name!r} of X holds {column.values.dtype}.")
    raise TypeError(
        f"Column {name!r} of X holds values of type {column.values.dtype}; a category argument must be a string, a "
        "boolean or a number. Make categories of it first, for example with pandas.cut or .astype(str)."
    )


def _code_numbers(column: Column) -> _Coding:
    dtype = column.values.dtype.newbyteorder("=")
    convert = {"b": bool, "f": float}.get(dtype.kind, int)
    # The one copy of the column: contiguous, of this machine's byte order, and ours to shift.
    cells = np.array(column.values, dtype=np.uint8 if dtype.kind == "b" else dtype)
    missing = column.missing
    if dtype.kind == "f":
        missing = np.isnan(cells) if missing is None else missing | np.isnan(cells)
    if missing is not None:
        if missing.all():
            return _Coding(np.full(len(cells), -1, dtype=np.int8), 0, np.empty(0, dtype=np.intp), [], dtype=dtype)
        if missing.any():
            cells[missing] = cells[missing.argmin()]  # any value that occurs will do
        else:
            missing = None

    low, high = convert(cells.min()), convert(cells.max())
    narrow = high - low < _SPAN
    if narrow and dtype.kind == "f":
        narrow = max(-low, high) <= _EXACT and _all_whole(cells)
        cells = cells.astype(np.int64) if narrow else cells
    if narrow:
        offsets = cells.view(f"u{cells.itemsize}")
        offsets -= cells.dtype.type(low).view(offsets.dtype)  # exact modulo 2^bits, whatever the sign of low
        size = int(high - low) + 1
        positions = _occurring(offsets, size)
        values = [convert(int(low) + k) for k in positions.tolist()]
        return _Coding(offsets, size, positions, values, missing, dtype)
    levels, raw = np.unique(cells, return_inverse=True)
    values = (levels + 0).tolist() if dtype.kind == "f" else levels.tolist()  # -0.0 + 0 is 0.0
    return _Coding(raw, len(levels), np.arange(len(levels)), values, missing, dtype)


def _all_whole(cells: np.ndarray) -> bool:
    return all(np.array_equal(np.trunc(cells[rows]), cells[rows]) for rows in _blocks(len(cells)))


class _Appearance(dict):
    """Numbers (type, value) pairs in order of appearance; -1 for missing values, which are not stored.

    The type is part of the key because Python would find True and 1 the same.
    """

    def __missing__(self, key):
        if _is_missing(key[1]):
            return -1
        self[key] = number = len(self)
        return number


def _code_objects(name: str, column: Column) -> _Coding:
    cells = column.values
    if column.missing is not None and column.missing.any():
        cells = cells.astype(object)
        cells[column.missing] = None
    appearance = _Appearance()
    raw = np.empty(len(cells), dtype=np.int32)
    for rows in _blocks(len(cells)):
        block = cells[rows].tolist()
        try:
            numbers = map(appearance.__getitem__, zip(map(type, block), block))
            raw[rows] = np.fromiter(numbers, dtype=np.int32, count=len(block))
        except TypeError:
            unfit = _unhashable(block)
            raise TypeError(
                f"Column {name!r} of X holds {_show(unfit)}, a {type(unfit).__name__}; a category argument must be a "
                "string, a boolean or a number."
            ) from None
    dtype = cells.dtype.newbyteorder("=") if cells.dtype.kind in "US" else None
    values = [_plain(value) for _, value in appearance]
    return _Coding(raw, len(values), np.arange(len(values)), values, dtype=dtype)


def _occurring(raw: np.ndarray, size: int) -> np.ndarray:
    seen = np.zeros(size + 1, dtype=bool)
    for rows in _blocks(len(raw)):
        seen[raw[rows]] = True
    return np.flatnonzero(seen[:size])


def _blocks(n_samples: int) -> Iterator[slice]:
    return (slice(start, start + _BLOCK) for start in range(0, n_samples, _BLOCK))


# Values ---------------------------------------------------------------------------------------------------------------


def _is_missing(value) -> bool:
    """None, NaN, NaT or pandas.NA."""
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def _plain(value):
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


def _kind(value) -> str:
    """What sort of thing a plain value is; only values of one sort may share a column."""
    usual = _KIND_OF.get(type(value))
    return usual or next((kind for kind, types in _KINDS.items() if isinstance(value, types)), type(value).__name__)


def _is_fraction(value) -> bool:
    return isinstance(value, (float, np.floating)) and not value.is_integer()


def _unhashable(values: list):
    for value in values:
        try:
            hash(value)
        except TypeError:
            return value
    return None


def _show(value) -> str:
    text = str(value) if isinstance(value, np.generic) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _some(texts, at_most: int = 10) -> str:
    texts = list(texts)
    return ", ".join(texts if len(texts) <= at_most else [*texts[: at_most - 1], "...", texts[-1]])


def _category_array(levels: list, dtype: np.dtype | type | None, values: list) -> np.ndarray:
    """Levels as an array of `dtype`, or else of the narrowest that holds them exactly (floating if `values` are)."""
    if dtype is None:
        kind = _kind(levels[0])
        dtype = bool if kind == "boolean" else _number_dtype(levels, values) if kind == "number" else object
    return np.fromiter(levels, dtype=dtype, count=len(levels))


def _number_dtype(levels: list, values: list) -> np.dtype | type:
    floating = [v for v in [*levels, *values] if isinstance(v, (float, np.floating))]
    if floating:
        exact = all(abs(v) <= _EXACT for v in levels if isinstance(v, int))
        return np.result_type(np.float64, *floating) if exact else object
    for dtype in (np.int64, np.uint64):
        if np.iinfo(dtype).min <= min(levels) and max(levels) <= np.iinfo(dtype).max:
            return dtype
    return object


def missing_markers(missing_values, owner: str) -> set[tuple]:
    """The (kind, value) pairs that mean "missing" by the `missing_values` parameter of an estimator."""
    several = isinstance(missing_values, (list, tuple, set, frozenset, np.ndarray))
    values = [_plain(v) for v in (missing_values if several else [missing_values])]
    if _unhashable(values) is not None:
        raise ValueError(
            f"The 'missing_values' parameter of {owner} must be a scalar or a list of scalars. "
            f"Got {_show(missing_values)} instead."
        )
    return {(_kind(v), v) for v in values if not _is_missing(v)}


class _Seen:
    """What a column was seen to hold, in one table or in several.

    values : (kind, value) -> value, each once.
    levels : what the data type declares, None if it declares none, or not the same in all tables.
    dtype : data type of the cells, None where each cell has its own.
    """

    def __init__(self) -> None:
        self.values: dict[tuple, object] = {}
        self.levels: list | None = None
        self.dtype: np.dtype | None = None
        self._n_tables, self._n_dtypes = 0, 0

    def add(self, coding: _Coding, levels: list | None) -> None:
        """Take note of the values of one more table."""
        for value in coding.values:
            self.values.setdefault((_kind(value), value), value)
        self.levels = levels if not self._n_tables or levels == self.levels else None
        self._n_tables += 1
        if not coding.values and self._n_tables > 1:  # a column of missing cells may have any type
            return
        if not self._n_dtypes or coding.dtype == self.dtype:
            self.dtype = coding.dtype
        else:
            both = self.dtype is not None and coding.dtype is not None
            self.dtype = np.result_type(self.dtype, coding.dtype) if both else None
        self._n_dtypes += bool(coding.values)


# The encoder ----------------------------------------------------------------------------------------------------------


class CategoryEncoder:
    """Learns the categories of each column of a table and turns cells into their positions.

    Parameters
    ----------
    owner : str
        Name of the estimator's class, for messages.
    categories : "auto", sequence of array-likes, or mapping of column name to array-like, default="auto"
        The levels of each column, in the order of their codes; a mapping leaves the columns it does not name on "auto".
        "auto" takes the levels that a pandas Categorical or polars Enum declares, in their order, whether they occur or
        not; otherwise the values that occur, in increasing order (for a polars Categorical too: it declares none).
    missing_values : scalar or list of scalars, default=np.nan
        Values that mean a missing cell, besides None, NaN, NaT, pandas.NA and null, which always do. A marker counts
        among values of its own kind: -1 marks no cell in a column of strings, and True none in a column of numbers.
    handle_unknown : {"warn", "missing", "error"}, default="warn"
        What `encode` does with a category that fit did not see: a missing cell and a warning, a missing cell, an error.
    if_measured : str
        What to do with a column of fractions that are no categories, for the warning.

    Attributes
    ----------
    names_ : list of str
        The column names.
    categories_ : list of n_columns arrays
        The categories of each column, in the data type of the column; code k stands for `categories_[j][k]`.
    n_categories_ : ndarray of shape (n_columns,)
        How many there are.
    code_dtype_ : dtype
        The narrowest of int8, int16 and int32 that holds the largest of these numbers: int8 up to 127 categories.
    """

    def __init__(
        self,
        owner: str,
        *,
        categories="auto",
        missing_values=np.nan,
        handle_unknown: str = "warn",
        if_measured: str = "use VBMixture",
    ):
        self.owner = owner
        self.categories = categories
        self.missing_values = missing_values
        self.handle_unknown = handle_unknown
        self.if_measured = if_measured

    def fit_encode(self, X) -> np.ndarray:
        """Codes of X, whose categories are learned on the way.

        Fractions, negative values beside others, empty strings and columns of one category are taken as they are, with
        a DataWarning: one for each of these, not for each column.

        Parameters
        ----------
        X : Table, data frame, array or nested list of shape (n_samples, n_columns)

        Returns
        -------
        codes : ndarray of shape (n_samples, n_columns), dtype `code_dtype_`, C-contiguous
            -1 = missing.

        Raises
        ------
        ValueError
            A column that mixes kinds of values, holds infinity or a value outside its declared levels, or has no
            observed cell and no declared levels; no observed cell in X; `categories` that do not fit the columns.
        TypeError
            A cell or data type that cannot be a category.
        """
        table = read_table(X, self.owner)
        markers = self._markers()
        declared = self._declared(table.names, markers)
        codes = np.empty((table.n_samples, table.n_columns), dtype=np.int8)
        categories, observed = [], False
        doubts: dict[str, dict] = {}
        for j, name in enumerate(table.names):
            coding = _coding(name, table.column(j)).without(markers)
            seen = _Seen()
            seen.add(coding, table.column(j).levels)
            levels = self._learned(name, seen, declared, markers, doubts)
            categories.append(levels)
            if not len(levels):
                continue
            observed |= bool(coding.values)
            codes = codes.astype(np.promote_types(codes.dtype, _code_dtype(len(levels))), copy=False)
            coding.write(codes[:, j], {level: code for code, level in enumerate(levels.tolist())})
            del coding  # so that two columns are never copied at the same time
        self._settle(table.names, categories, observed, f"{table.n_samples} x {table.n_columns}", doubts)
        return codes

    def fit_blocks(self, tables: Iterable[Table]) -> None:
        """Learn the categories of rows that come in blocks, as `fit_encode` would of all together.

        Levels that data types declare count where all blocks declare the same.

        Parameters
        ----------
        tables : iterable of Table
            Of the same columns.
        """
        markers, names, n_rows = self._markers(), None, 0
        for table in tables:
            if names is None:
                names, seen = table.names, [_Seen() for _ in table.names]
            n_rows += table.n_samples
            for j, name in enumerate(names):
                column = table.column(j)
                seen[j].add(_coding(name, column).without(markers), column.levels)
        assert names is not None, "blocks of rows have rows"
        declared = self._declared(names, markers)
        doubts: dict[str, dict] = {}
        categories = [self._learned(name, of, declared, markers, doubts) for name, of in zip(names, seen)]
        self._settle(names, categories, any(of.values for of in seen), f"{n_rows} x {len(names)}", doubts)

    def _learned(self, name: str, seen: _Seen, declared: dict, markers: set[tuple], doubts: dict) -> np.ndarray:
        """The categories of a column, none if nothing says what they are; what may not be meant is noted."""
        values, dtype = list(seen.values.values()), None
        _check_values(f"Column {name!r} of X", values)
        if name in declared:
            levels = declared[name]
            self._check_declared(name, values, levels)
        elif seen.levels is not None:
            levels = [v for v in map(_plain, seen.levels) if (_kind(v), v) not in markers]
            _check_values(f"Column {name!r} of X", levels)
        else:
            levels, dtype = _in_order(name, values), seen.dtype
            for doubt, value in _doubts(levels):
                doubts.setdefault(doubt, {})[name] = value
        return _category_array(levels, dtype, values) if levels else np.empty(0)

    def _settle(self, names: list[str], categories: list[np.ndarray], observed: bool, size: str, doubts: dict) -> None:
        """Keep what was learned, unless columns hold nothing."""
        if not observed:
            raise ValueError(f"X must have an observed cell. Got {size} missing ones.")
        empty = [name for name, levels in zip(names, categories) if not len(levels)]
        if empty:
            raise ValueError(
                f"{_columns(empty)} of X {'has' if len(empty) == 1 else 'have'} no observed cell. Leave such a column "
                f"out, or declare its levels with the 'categories' parameter of {self.owner}."
            )
        self.names_ = names
        self.categories_ = categories
        self.n_categories_ = np.array([len(levels) for levels in categories])
        self.code_dtype_ = max((_code_dtype(len(levels)) for levels in categories), key=lambda dtype: dtype.itemsize)
        for doubt, values in doubts.items():
            warn(_doubt_message(doubt, values, self.if_measured), DataWarning)

    def encode(self, X) -> np.ndarray:
        """Codes of X by the categories learned, whatever the container and data type of X.

        Parameters
        ----------
        X : Table, data frame, array or nested list of shape (n_samples, n_columns)

        Returns
        -------
        codes : ndarray of shape (n_samples, n_columns), dtype `code_dtype_`, C-contiguous
            -1 = missing.

        Raises
        ------
        ValueError
            A column that mixes kinds of values or holds infinity; a category that fit did not see, if `handle_unknown`
            is "error"; another number of columns than in fit.
        TypeError
            A cell or data type that cannot be a category.
        """
        table = read_table(X, self.owner)
        if table.n_columns != len(self.categories_):
            raise ValueError(
                f"X has {table.n_columns} features, but {self.owner} is expecting {len(self.categories_)} features "
                "as input."
            )
        markers = self._markers()
        codes = np.empty((table.n_samples, table.n_columns), dtype=self.code_dtype_)
        unknown = []
        for j, (name, levels) in enumerate(zip(self.names_, self.categories_)):
            coding = _coding(name, table.column(j)).without(markers)
            _check_values(f"Column {name!r} of X", coding.values)
            codes_of = {level: code for code, level in enumerate(levels.tolist())}
            strange = [k for k, value in enumerate(coding.values) if value not in codes_of]
            if strange and self.handle_unknown == "error":
                raise ValueError(
                    f"Column {name!r} of X contains {_show(coding.values[strange[0]])}, which is not among the "
                    f"{len(levels)} categories seen in fit: {_some(map(_show, codes_of))}."
                )
            if strange and self.handle_unknown == "warn":
                unknown.append((name, [coding.values[k] for k in strange], coding.count(coding.positions[strange])))
            coding.write(codes[:, j], codes_of)
            del coding  # so that two columns are never copied at the same time
        if unknown:
            warn(_unknown_message(unknown), UnknownCategoryWarning)
        return codes

    def decode(self, codes: np.ndarray, j: int) -> np.ndarray:
        """The categories of column `j` that `codes` stand for, an array of the same shape.

        Without missing cells it has the data type of `categories_[j]`. A missing cell, -1, becomes NaN: in float64
        where the categories are numbers that it holds exactly, otherwise among objects.
        """
        levels, codes = self.categories_[j], np.asarray(codes)
        if not (codes < 0).any():
            return levels[codes]
        if levels.dtype.kind in "iu":
            levels = levels.astype(np.float64 if all(abs(v) <= _EXACT for v in levels.tolist()) else object)
        elif levels.dtype.kind != "f":
            levels = levels.astype(object)
        return np.concatenate([levels, np.array([np.nan], dtype=levels.dtype)])[codes]

    def _markers(self) -> set[tuple]:
        return missing_markers(self.missing_values, self.owner)

    def _declared(self, names: list[str], markers: set[tuple]) -> dict[str, list]:
        """Levels by column name, checked, from the `categories` parameter."""
        given = self.categories
        whose = f"The 'categories' parameter of {self.owner}"
        if isinstance(given, str) and given == "auto":
            return {}
        if isinstance(given, Mapping):
            strange = [name for name in given if name not in names]
            if strange:
                raise ValueError(
                    f"{whose} names {_show(strange[0])}, which is not a column of X: {_some(map(_show, names))}."
                )
        elif isinstance(given, str) or not isinstance(given, Iterable) or len(given := list(given)) != len(names):
            raise ValueError(
                f"{whose} must be 'auto', a list of {len(names)} array-likes, one for each column of X, or a mapping "
                f"of column names to array-likes. Got {_show(self.categories)} instead."
            )
        else:
            given = dict(zip(names, given))
        return {name: _levels(f"{whose}, for column {name!r},", levels, markers) for name, levels in given.items()}

    def _check_declared(self, name: str, values: list, levels: list) -> None:
        known = set(levels)
        strange = [value for value in values if value not in known]
        if strange:
            raise ValueError(
                f"Column {name!r} of X contains {_show(strange[0])}, which is not among the {len(levels)} levels that "
                f"the 'categories' parameter of {self.owner} gives it: {_some(map(_show, levels))}."
            )


def _levels(whose: str, given, markers: set[tuple]) -> list:
    """Declared levels as plain values, checked."""
    array_like = isinstance(given, Iterable) and not isinstance(given, (str, bytes))
    levels = [_plain(v) for v in given] if array_like else []
    if not levels or _unhashable(levels) is not None:
        raise ValueError(f"{whose} must be a flat array-like of levels. Got {_show(given)} instead.")
    absent = [v for v in levels if _is_missing(v) or (_kind(v), v) in markers]
    if absent:
        raise ValueError(f"{whose} must hold no value that means a missing cell. Got {_show(absent[0])}.")
    repeated = [v for v, times in Counter(levels).items() if times > 1]
    if repeated:
        raise ValueError(f"{whose} must hold each level once. Got {_show(repeated[0])} more than once.")
    _check_values(whose, levels)
    return levels


_CODE_DTYPES = [(np.iinfo(dtype).max, np.dtype(dtype)) for dtype in (np.int8, np.int16, np.int32)]


def _code_dtype(n_categories: int) -> np.dtype:
    return next(dtype for most, dtype in _CODE_DTYPES if n_categories <= most)


def _check_values(whose: str, values: list) -> None:
    """Refuse values of several kinds, complex numbers and infinity."""
    kinds: dict[str, object] = {}
    for value in values:
        kinds.setdefault(_kind(value), value)
    if "complex number" in kinds:
        raise ValueError(f"Complex data not supported. {whose} holds {_show(kinds['complex number'])}.")
    if len(kinds) > 1:
        found = " and ".join(f"{_show(value)} ({kind})" for kind, value in kinds.items())
        raise ValueError(f"{whose} mixes kinds of values: {found}. Make them one kind; 1 and '1' are never merged.")
    if "number" in kinds and any(value in (np.inf, -np.inf) for value in values):
        raise ValueError(f"{whose} holds infinity. A category must be finite.")


def _in_order(name: str, values: list) -> list:
    try:
        return sorted(set(values))
    except TypeError:
        raise ValueError(
            f"Column {name!r} of X holds values without an order, such as {_show(values[0])}. Declare its levels with "
            "the 'categories' parameter."
        ) from None


# Messages -------------------------------------------------------------------------------------------------------------


def _doubts(levels: list) -> Iterator[tuple[str, object]]:
    """What about these undeclared levels, in increasing order, may not be meant; with the level in question."""
    if len(levels) == 1:
        yield "constant", levels[0]
    if levels and _kind(levels[0]) == "number":
        fraction = next((v for v in levels if _is_fraction(v)), None)
        if fraction is not None:
            yield "fraction", fraction
        elif levels[0] < 0 and sum(v >= 0 for v in levels) > 1:
            yield "negative", levels[0]
    elif "" in levels[:1]:
        yield "empty", levels[0]


_DOUBTS = {  # for one column, for several
    "constant": ("holds only one category, {}.", "hold only one category each, such as {}."),
    "fraction": (
        "holds the fraction {0}, taken as a category. If it is a measurement, {1}.",
        "hold fractions such as {0}, taken as categories. If they are measurements, {1}.",
    ),
    "negative": (
        "holds the negative value {0}, taken as a category. If it marks missing cells, pass missing_values={0}.",
        "hold negative values such as {0}, taken as categories. If they mark missing cells, pass missing_values={0}.",
    ),
    "empty": (
        "holds the empty string, taken as a category. If it marks missing cells, pass missing_values={}.",
        "hold the empty string, taken as a category. If it marks missing cells, pass missing_values={}.",
    ),
}


def _doubt_message(doubt: str, values: dict[str, object], if_measured: str) -> str:
    one, several = _DOUBTS[doubt]
    text = (one if len(values) == 1 else several).format(_show(next(iter(values.values()))), if_measured)
    return f"{_columns(list(values))} of X {text}"


def _unknown_message(unknown: list[tuple[str, list, int]]) -> str:
    """`unknown` holds column, categories and number of cells."""
    parts = []
    for name, values, n_cells in unknown[:_NAMED]:
        others = f" and {len(values) - 1} other{'s' * (len(values) > 2)}" if len(values) > 1 else ""
        parts.append(f"{_show(values[0])}{others} in column {name!r} ({n_cells} cell{'s' * (n_cells > 1)})")
    if len(unknown) > _NAMED:
        parts.append(f"more in {len(unknown) - _NAMED} other columns")
    return f"X contains categories that fit did not see, taken as missing: {'; '.join(parts)}."


def _columns(names: list[str]) -> str:
    if len(names) == 1:
        return f"Column {names[0]!r}"
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"Columns {', '.join(map(repr, names[:_NAMED]))}{more}"
