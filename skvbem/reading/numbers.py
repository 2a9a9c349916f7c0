"""Columns of measurements and counts, read and refused; a table that is stored as it is wanted is not copied."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from numbers import Number
from typing import Any, NoReturn

import numpy as np

from skvbem.blocks import Blocks
from skvbem.emissions import EmissionSpecification
from skvbem.emissions.registry import FOR_CATEGORIES, FOR_NUMBERS, family_of
from skvbem.reading.tables import Column, Table, is_missing_value, show

# Rows looked at together.
_BLOCK = 2**12
# Sums of products of larger numbers, and of columns that hold none but smaller ones and 0, leave the floats.
_MAX_MAGNITUDE, _MIN_MAGNITUDE = 1e140, 1e-140
_UNIT = " Measure it in another unit."


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
    values = _as_floats(table, markers)
    if not is_known:
        _check(table.names, values, specification, is_fit=is_fit)
    return specification.stored(values)


def check_blocks(tables: Blocks, specification: EmissionSpecification, markers: set[tuple]) -> None:
    """Refuse values in blocks, and columns that hold nothing in any of them."""
    observed: Any = False
    for table in tables:
        values = read_numbers(table, specification, markers)
        observed = observed | (~is_missing(values)).any(axis=0)
    for name, is_observed in zip(table.names, observed):
        if not is_observed:
            raise _empty(name)


def is_missing(values: np.ndarray) -> np.ndarray:
    """Missing cells of a group's values: NaN among floats, negative codes."""
    return np.isnan(values) if values.dtype.kind == "f" else values < 0


def hold_whole_numbers(values: np.ndarray) -> bool:
    """Whether some column of numbers holds whole ones alone."""
    return any(bool(((cells == np.trunc(cells)) | np.isnan(cells)).all()) for cells in values.T)


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


def blocks_of_rows(n_rows: int) -> Iterator[slice]:
    """Slices of few rows, for what would otherwise take as much memory as the table."""
    return (slice(at, at + _BLOCK) for at in range(0, n_rows, _BLOCK))


# Reading --------------------------------------------------------------------------------------------------------------


def _as_floats(table: Table, markers: set[tuple]) -> np.ndarray:
    """A table of numbers as a C-contiguous array of floats, NaN where missing."""
    array = table.array
    if array is None or array.dtype.kind not in "biuf":
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
    return values


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
    if isinstance(value, Number) and not isinstance(value, complex):
        try:
            return float(value)  # type: ignore[arg-type]
        except OverflowError:
            raise ValueError(f"Column {name!r} of X holds {show(value)}, which is no float.{_UNIT}") from None
    if isinstance(value, complex):
        raise ValueError(f"Complex data not supported. Column {name!r} of X holds {show(value)}.")
    _refuse_cell(name, value)


# Refusing -------------------------------------------------------------------------------------------------------------


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
        reach = np.fmax(reach, np.fmax.reduce(np.abs(block), axis=0, initial=-1.0))
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
