"""Values of a column as small whole numbers, one for each distinct value."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from skvbem._kernels._appearance import number_cells
from skvbem.reading.tables import Column, as_plain, blocks_of_rows, first_unhashable, is_missing_value, kind_of, show

_SPAN = 1 << 16  # whole numbers within a range this wide are looked up, others are sorted


_BLOCK = 1 << 16  # rows at a time where NumPy would turn a whole column into 64-bit indices


LARGEST_EXACT = 1 << 53  # whole numbers up to here are exact in float64


@dataclass(frozen=True)
class Coding:
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

    def without(self, markers: set[tuple]) -> Coding:
        """The coding with those cells missing that hold one of these (kind, value) pairs."""
        if not markers:
            return self
        kept = [k for k, value in enumerate(self.values) if (kind_of(value), value) not in markers]
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
        for rows in blocks_of_rows(len(codes), _BLOCK):
            codes[rows] = lookup[self.raw[rows]]
        if self.missing is not None:
            codes[self.missing] = -1


def coding_of(name: str, column: Column) -> Coding:
    """The raw codes of a column, and the values that they stand for."""
    if column.levels is not None:
        positions = _occurring(column.values, len(column.levels))
        values = [as_plain(column.levels[p]) for p in positions]
        return Coding(column.values, len(column.levels), positions, values)
    kind = column.values.dtype.kind
    if kind in "biuf":
        return _code_numbers(column)
    if kind in "OUST":
        return _code_objects(name, column)
    if kind == "c":
        raise ValueError(f"Complex data not supported. Column {name!r} of X holds {column.values.dtype}.")
    of = "dt.total_seconds()" if kind == "m" else "dt.month_name()"
    number = "" if kind == "m" else f", or a number, such as the days of X[{name!r}] - X[{name!r}].min()"
    raise TypeError(
        f"Column {name!r} of X holds values of type {column.values.dtype}; a category argument must be a string, a "
        f"boolean or a number. Make one of each cell first, as with X[{name!r}] = X[{name!r}].{of}{number}. Or leave "
        "the column out."
    )


def _code_numbers(column: Column) -> Coding:
    dtype = column.values.dtype.newbyteorder("=")
    convert = {"b": bool, "f": float}.get(dtype.kind, int)
    # The one copy of the column: contiguous, of this machine's byte order, and ours to shift.
    cells = np.array(column.values, dtype=np.uint8 if dtype.kind == "b" else dtype)
    missing = column.missing
    if dtype.kind == "f":
        missing = np.isnan(cells) if missing is None else missing | np.isnan(cells)
    if missing is not None:
        if missing.all():
            return Coding(np.full(len(cells), -1, dtype=np.int8), 0, np.empty(0, dtype=np.intp), [], dtype=dtype)
        if missing.any():
            cells[missing] = cells[missing.argmin()]  # any value that occurs will do
        else:
            missing = None

    low, high = convert(cells.min()), convert(cells.max())
    narrow = high - low < _SPAN
    if narrow and dtype.kind == "f":
        narrow = max(-low, high) <= LARGEST_EXACT and _all_whole(cells)
        cells = cells.astype(np.int64) if narrow else cells
    if narrow:
        offsets = cells.view(f"u{cells.itemsize}")
        offsets -= cells.dtype.type(low).view(offsets.dtype)  # exact modulo 2^bits, whatever the sign of low
        size = int(high - low) + 1
        positions = _occurring(offsets, size)
        values = [convert(int(low) + k) for k in positions.tolist()]
        return Coding(offsets, size, positions, values, missing, dtype)
    levels, raw = np.unique(cells, return_inverse=True)
    values = (levels + 0).tolist() if dtype.kind == "f" else levels.tolist()  # -0.0 + 0 is 0.0
    return Coding(raw, len(levels), np.arange(len(levels)), values, missing, dtype)


def _all_whole(cells: np.ndarray) -> bool:
    return all(np.array_equal(np.trunc(cells[rows]), cells[rows]) for rows in blocks_of_rows(len(cells), _BLOCK))


class _Appearance(dict):
    """Numbers of (type, value) pairs in order of appearance; -1 for missing values, which are not stored.

    The type is part of the key because Python would find True and 1 the same.
    """

    def __missing__(self, key):
        if is_missing_value(key[1]):
            return -1
        self[key] = number = len(self)
        return number


class _AppearanceOfType(dict):
    """The numbers of values that are all of one type, by the values alone."""

    def __init__(self, appearance: _Appearance, kind: type):
        self._appearance, self._kind = appearance, kind

    def __missing__(self, value):
        number = self._appearance[self._kind, value]
        if number >= 0:
            self[value] = number
        return number


class _AppearanceByType(dict):
    """For each type the numbers of its values."""

    def __init__(self, appearance: _Appearance):
        self._appearance = appearance

    def __missing__(self, kind):
        self[kind] = of_kind = _AppearanceOfType(self._appearance, kind)
        return of_kind


def _code_objects(name: str, column: Column) -> Coding:
    cells = column.values
    if column.missing is not None and column.missing.any():
        cells = cells.astype(object)
        cells[column.missing] = None
    appearance = _Appearance()
    by_type = _AppearanceByType(appearance)
    raw = np.empty(len(cells), dtype=np.int32)
    for rows in blocks_of_rows(len(cells), _BLOCK):
        block = cells[rows].tolist()
        try:
            number_cells(block, by_type, raw[rows])
        except TypeError:
            unfit = first_unhashable(block)
            raise TypeError(
                f"Column {name!r} of X holds {show(unfit)}, a {type(unfit).__name__}; a category argument must be a "
                "string, a boolean or a number. Give each item of such cells a column of its own."
            ) from None
    dtype = cells.dtype.newbyteorder("=") if cells.dtype.kind in "US" else None
    values = [as_plain(value) for _, value in appearance]
    return Coding(raw, len(values), np.arange(len(values)), values, dtype=dtype)


def _occurring(raw: np.ndarray, size: int) -> np.ndarray:
    seen = np.zeros(size + 1, dtype=bool)
    for rows in blocks_of_rows(len(raw), _BLOCK):
        seen[raw[rows]] = True
    return np.flatnonzero(seen[:size])
