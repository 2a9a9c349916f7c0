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

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from copy import copy
from functools import partial
from typing import Any, Self

import numpy as np

from skvbem._arguments import is_collection, is_option
from skvbem.blocks import Blocks
from skvbem.errors import DataWarning, UnknownCategoryWarning, warn
from skvbem.reading.coding import LARGEST_EXACT, coding_of
from skvbem.reading.guesses import doubt_in_words, doubts_about
from skvbem.reading.tables import (
    MAX_NAMED_COLUMNS,
    Table,
    as_plain,
    first_unhashable,
    is_missing_value,
    kind_of,
    listed,
    missing_markers,
    named_columns,
    read_table,
    show,
)
from skvbem.tables import interval_code

# Values ---------------------------------------------------------------------------------------------------------------


def _category_array(levels: list, dtype: np.dtype | type | None, values: list) -> np.ndarray:
    """Levels as an array of `dtype`, or else of the narrowest that holds them exactly (floating if `values` are)."""
    if dtype is None:
        kind = kind_of(levels[0])
        dtype = bool if kind == "boolean" else _number_dtype(levels, values) if kind == "number" else object
    return np.fromiter(levels, dtype=dtype, count=len(levels))


def _number_dtype(levels: list, values: list) -> np.dtype | type:
    floating = [v for v in [*levels, *values] if isinstance(v, (float, np.floating))]
    if floating:
        exact = all(abs(v) <= LARGEST_EXACT for v in levels if isinstance(v, int))
        return np.result_type(np.float64, *floating) if exact else object
    for dtype in (np.int64, np.uint64):
        if np.iinfo(dtype).min <= min(levels) and max(levels) <= np.iinfo(dtype).max:
            return dtype
    return object


class _Seen:
    """What a column was seen to hold, in one table or in several.

    values : (kind, value) -> value, each once.
    levels : what the data type declares, None if it declares none, or not the same in all tables.
    are_ordered : whether it says that their order means something, in all tables.
    dtype : data type of the cells, None where each cell has its own.
    """

    def __init__(self) -> None:
        self.values: dict[tuple, object] = {}
        self.levels: list | None = None
        self.are_ordered = True
        self.dtype: np.dtype | None = None
        self._n_tables, self._n_dtypes = 0, 0

    def add(self, values: list, dtype: np.dtype | None, levels: list | None, is_ordered: bool) -> None:
        """Take note of the values of one more table, of their data type, and of the levels that this declares."""
        self.are_ordered &= is_ordered
        for value in values:
            self.values.setdefault((kind_of(value), value), value)
        self.levels = levels if not self._n_tables or levels == self.levels else None
        self._n_tables += 1
        if not values and self._n_tables > 1:  # a column of missing cells may have any type
            return
        if not self._n_dtypes or dtype == self.dtype:
            self.dtype = dtype
        else:
            both = self.dtype is not None and dtype is not None
            self.dtype = np.result_type(self.dtype, dtype) if both else None
        self._n_dtypes += bool(values)


def _seen_in(markers: set[tuple], table: Table) -> tuple[list, int, list[tuple]]:
    """Names and number of rows of a table; of each column the values, what their data type is and what it declares."""
    of_columns = []
    for j, name in enumerate(table.names):
        column = table.column(j)
        coding = coding_of(name, column).without(markers)
        of_columns.append((coding.values, coding.dtype, column.levels, column.is_ordered))
    return table.names, table.n_samples, of_columns


# The encoder ----------------------------------------------------------------------------------------------------------


def check_named(categories: Mapping, of_categories: Collection, names: Collection[str], owner: str) -> None:
    """Refuse a `categories` parameter that names others than columns of categories among all that have these names."""
    for name in categories:
        if name not in of_categories:
            columns = listed(map(show, names))
            what = "which holds no categories" if name in names else f"which is not a column of X: {columns}"
            raise ValueError(f"The 'categories' parameter of {owner} names {show(name)}, {what}.")


def categories_among(categories, names: Collection):
    """A `categories` parameter, of a mapping what it declares of some columns."""
    if not isinstance(categories, Mapping):
        return categories
    return {name: levels for name, levels in categories.items() if name in names}


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

    owner: str
    categories: Any
    missing_values: Any
    handle_unknown: str
    if_measured: str
    known_as: str
    names_: list[str]
    categories_: list[np.ndarray]
    n_categories_: np.ndarray
    code_dtype_: np.dtype

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
        self.known_as = "categories seen in fit"

    @classmethod
    def of_levels(cls, owner: str, names: list[str], levels: Iterable[Iterable]) -> Self:
        """An encoder that has nothing to learn: the categories of each column are known, and there are no others."""
        encoder = cls(owner, handle_unknown="error")
        encoder.known_as = "states of this node"
        encoder._keep(names, [_category_array(list(of_column), None, []) for of_column in levels])
        return encoder

    def of_column(self, j: int) -> Self:
        """The encoder of one of the columns, by its position; codes have the same type."""
        alone = copy(self)
        alone._keep([self.names_[j]], [self.categories_[j]])
        alone.code_dtype_ = self.code_dtype_
        return alone

    def fit_encode(self, X, are_ordered: bool = False) -> np.ndarray:
        """Codes of X, whose categories are learned on the way.

        Fractions, negative values beside others, empty strings and columns of one category are taken as they are, with
        a DataWarning: one for each of these, not for each column.

        Parameters
        ----------
        X : Table, data frame, array or nested list of shape (n_samples, n_columns)
        are_ordered : bool, default=False
            Whether the order of categories matters: words without one then have a DataWarning, too.

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
        markers = missing_markers(self.missing_values, self.owner)
        declared = self._declared(table.names, markers)
        codes = np.empty((table.n_samples, table.n_columns), dtype=np.int8)
        categories, observed = [], False
        doubts: dict[str, dict] = {"order": {}} if are_ordered else {}
        for j, name in enumerate(table.names):
            column, seen = table.column(j), _Seen()
            coding = coding_of(name, column).without(markers)
            seen.add(coding.values, coding.dtype, column.levels, column.is_ordered)
            levels = self._learned(name, seen, declared, markers, doubts)
            categories.append(levels)
            if not len(levels):
                continue
            observed |= bool(coding.values)
            codes = codes.astype(np.promote_types(codes.dtype, _code_dtype(len(levels))), copy=False)
            coding.write(codes[:, j], {level: code for code, level in enumerate(levels.tolist())})
            del column, coding  # so that two columns are never copied at the same time
        self._settle(table.names, categories, observed, f"{table.n_samples} x {table.n_columns}", doubts)
        return codes

    def fit_blocks(self, tables: Blocks, are_ordered: bool = False) -> None:
        """Learn the categories of rows that come in blocks, as `fit_encode` would of all together.

        Levels that data types declare count where all blocks declare the same.

        Parameters
        ----------
        tables : Blocks of Table
            Of the same columns.
        are_ordered : bool, default=False
            As there.
        """
        markers, names, n_rows = missing_markers(self.missing_values, self.owner), None, 0
        seen: list[_Seen] = []
        for names, n, of_columns in tables.results(partial(_seen_in, markers)):
            seen = seen or [_Seen() for _ in names]
            n_rows += n
            for of, of_column in zip(seen, of_columns):
                of.add(*of_column)
        assert names is not None, "blocks of rows have rows"
        declared = self._declared(names, markers)
        doubts: dict[str, dict] = {"order": {}} if are_ordered else {}
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
            levels = [v for v in map(as_plain, seen.levels) if (kind_of(v), v) not in markers]
            _check_values(f"Column {name!r} of X", levels)
            self._note(name, levels, doubts, among=("mark", "empty"))  # levels of a data type may not be meant, too
        else:
            levels, dtype = _in_order(name, values), seen.dtype
            self._note(name, levels, doubts)
        has_order = name in declared or (seen.levels is not None and seen.are_ordered)
        if "order" in doubts and not has_order and len(levels) > 2 and isinstance(levels[0], str):
            doubts["order"][name] = levels
        return _category_array(levels, dtype, values) if levels else np.empty(0)

    def _note(self, name: str, levels: list, doubts: dict, among: tuple = ()) -> None:
        for doubt, value in doubts_about(_in_order(name, levels)):
            if not among or doubt in among:
                doubts.setdefault(doubt, {})[name] = value

    def _settle(self, names: list[str], categories: list[np.ndarray], observed: bool, size: str, doubts: dict) -> None:
        """Keep what was learned, unless columns hold nothing."""
        if not observed:
            raise ValueError(f"X must have an observed cell. Got {size} missing ones.")
        empty = [name for name, levels in zip(names, categories) if not len(levels)]
        if empty:
            raise ValueError(
                f"{named_columns(empty)} of X {'has' if len(empty) == 1 else 'have'} no observed cell. Leave such a "
                f"column out, or declare its levels with the 'categories' parameter of {self.owner}."
            )
        self._keep(names, categories)
        for doubt, values in ((doubt, values) for doubt, values in doubts.items() if values):
            warn(doubt_in_words(doubt, values, self.if_measured), DataWarning)

    def _keep(self, names: list[str], categories: list[np.ndarray]) -> None:
        self.names_ = names
        self.categories_ = categories
        self.n_categories_ = np.array([len(levels) for levels in categories])
        self.code_dtype_ = _code_dtype(int(self.n_categories_.max()))

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
        markers = missing_markers(self.missing_values, self.owner)
        codes = np.empty((table.n_samples, table.n_columns), dtype=self.code_dtype_)
        unknown = []
        for j, (name, levels) in enumerate(zip(self.names_, self.categories_)):
            coding = coding_of(name, table.column(j)).without(markers)
            _check_values(f"Column {name!r} of X", coding.values)
            codes_of = {level: code for code, level in enumerate(levels.tolist())}
            within = {value: interval_code(value, levels) for value in coding.values if value not in codes_of}
            codes_of |= {value: code for value, code in within.items() if code is not None}
            strange = [k for k, value in enumerate(coding.values) if value not in codes_of]
            if strange and self.handle_unknown == "error":
                raise ValueError(
                    f"Column {name!r} of X contains {show(coding.values[strange[0]])}, which is not among the "
                    f"{len(levels)} {self.known_as}: {listed(map(show, levels.tolist()))}."
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
            levels = levels.astype(np.float64 if all(abs(v) <= LARGEST_EXACT for v in levels.tolist()) else object)
        elif levels.dtype.kind != "f":
            levels = levels.astype(object)
        return np.concatenate([levels, np.array([np.nan], dtype=levels.dtype)])[codes]

    def _declared(self, names: list[str], markers: set[tuple]) -> dict[str, list]:
        """Levels by column name, checked, from the `categories` parameter."""
        given = self.categories
        whose = f"The 'categories' parameter of {self.owner}"
        if is_option(given, "auto"):
            return {}
        if isinstance(given, Mapping):
            strange = [name for name in given if name not in names]
            if strange:
                raise ValueError(
                    f"{whose} names {show(strange[0])}, which is not a column of X: {listed(map(show, names))}."
                )
        elif not is_collection(given) or len(given := list(given)) != len(names):
            raise ValueError(
                f"{whose} must be 'auto', a list of {len(names)} array-likes, one for each column of X, or a mapping "
                f"of column names to array-likes. Got {show(self.categories)} instead."
            )
        else:
            given = dict(zip(names, given))
        return {name: _levels(f"{whose}, for column {name!r},", levels, markers) for name, levels in given.items()}

    def _check_declared(self, name: str, values: list, levels: list) -> None:
        known = set(levels)
        strange = [value for value in values if value not in known]
        if strange:
            raise ValueError(
                f"Column {name!r} of X contains {show(strange[0])}, which is not among the {len(levels)} levels that "
                f"the 'categories' parameter of {self.owner} gives it: {listed(map(show, levels))}."
            )


def _levels(whose: str, given, markers: set[tuple]) -> list:
    """Declared levels as plain values, checked."""
    array_like = is_collection(given)
    levels = [as_plain(v) for v in given] if array_like else []
    if not levels or first_unhashable(levels) is not None:
        raise ValueError(f"{whose} must be a flat array-like of levels. Got {show(given)} instead.")
    absent = [v for v in levels if is_missing_value(v) or (kind_of(v), v) in markers]
    if absent:
        raise ValueError(f"{whose} must hold no value that means a missing cell. Got {show(absent[0])}.")
    repeated = [v for v, times in Counter(levels).items() if times > 1]
    if repeated:
        raise ValueError(f"{whose} must hold each level once. Got {show(repeated[0])} more than once.")
    _check_values(whose, levels)
    return levels


_CODE_DTYPES = [(np.iinfo(dtype).max, np.dtype(dtype)) for dtype in (np.int8, np.int16, np.int32)]


def _code_dtype(n_categories: int) -> np.dtype:
    return next(dtype for most, dtype in _CODE_DTYPES if n_categories <= most)


def _check_values(whose: str, values: list) -> None:
    """Refuse values of several kinds, complex numbers and infinity."""
    kinds: dict[str, object] = {}
    for value in values:
        kinds.setdefault(kind_of(value), value)
    if "complex number" in kinds:
        raise ValueError(f"Complex data not supported. {whose} holds {show(kinds['complex number'])}.")
    if len(kinds) > 1:
        examples = " and ".join(f"{show(value)} ({kind})" for kind, value in kinds.items())
        raise ValueError(f"{whose} mixes kinds of values: {examples}. Make them one kind; 1 and '1' are never merged.")
    if "number" in kinds and any(value in (np.inf, -np.inf) for value in values):
        raise ValueError(f"{whose} holds infinity. A category must be finite.")


def _in_order(name: str, values: list) -> list:
    try:
        return sorted(set(values))
    except TypeError:
        raise ValueError(
            f"Column {name!r} of X holds values without an order, such as {show(values[0])}. Declare its levels with "
            "the 'categories' parameter."
        ) from None


# Messages -------------------------------------------------------------------------------------------------------------


def _unknown_message(unknown: list[tuple[str, list, int]]) -> str:
    """`unknown` holds column, categories and number of cells."""
    parts = []
    for name, values, n_cells in unknown[:MAX_NAMED_COLUMNS]:
        others = f" and {len(values) - 1} other{'s' * (len(values) > 2)}" if len(values) > 1 else ""
        parts.append(f"{show(values[0])}{others} in column {name!r} ({n_cells} cell{'s' * (n_cells > 1)})")
    if len(unknown) > MAX_NAMED_COLUMNS:
        parts.append(f"more in {len(unknown) - MAX_NAMED_COLUMNS} other columns")
    return f"X contains categories that fit did not see, taken as missing: {'; '.join(parts)}."
