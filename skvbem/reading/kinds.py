"""Kinds of columns by their data types: numbers or categories, in memory and in blocks, modeled and given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Number
from typing import Any

import numpy as np

from skvbem.blocks import Blocks
from skvbem.reading.categories import CategoryEncoder, categories_among
from skvbem.reading.tables import Column, Table, is_missing_value


def holds_numbers(column: Column) -> bool:
    """Whether a column holds numbers; booleans and declared levels are categories."""
    if column.levels is not None:
        return False
    kind = column.values.dtype.kind
    if kind != "O":
        return kind in "iufc"
    held = {type(value) for value in column.values.tolist() if not is_missing_value(value)}
    return bool(held) and all(issubclass(each, Number) and not issubclass(each, (bool, np.bool_)) for each in held)


def encoder_of_given(tables: Iterable[Table], columns: Sequence[int], options: Any) -> CategoryEncoder | None:
    """The encoder of columns of categories among some that are given; None where all hold numbers, or truth values.

    Parameters
    ----------
    tables : iterable of Table
        Of all rows, as they come again.
    columns : sequence of int
        Those that are given. A column of numbers whose levels are declared is one of categories.
    options : ColumnOptions
    """
    coded: dict[int, str] = {}
    for table in tables:
        for at in columns:
            column, name = table.column(at), table.names[at]
            is_declared = isinstance(options.categories, Mapping) and name in options.categories
            if is_declared or not (holds_numbers(column) or column.values.dtype.kind == "b"):
                coded[at] = name
    if not coded:
        return None
    places = [at for at in columns if at in coded]
    names = [coded[at] for at in places]
    encoder = CategoryEncoder(
        options.owner,
        categories=categories_among(options.categories, names),
        missing_values=options.missing_values,
        handle_unknown="error",
        if_measured="make numbers of it, as by astype(float)",
    )
    encoder.fit_blocks(table.columns(places) for table in tables)
    return encoder


def hold_numbers_in_blocks(names: Sequence[str], tables: Blocks) -> list[bool]:
    """Whether columns hold numbers, by the blocks in which a cell is observed."""
    verdicts_of_columns: list[set[bool]] = [set() for _ in names]
    of_none: list[bool] = []
    for table in tables:
        columns = [table.column(j) for j in range(table.n_columns)]
        of_none = of_none or list(map(holds_numbers, columns))
        for verdicts, column in zip(verdicts_of_columns, columns):
            cells = column.values
            empty = column.levels is None and (
                np.isnan(cells).all() if cells.dtype.kind == "f" else cells.dtype.kind == "O" and _all_missing(cells)
            )
            if not empty:
                verdicts.add(holds_numbers(column))
    for name, verdicts in zip(names, verdicts_of_columns):
        if len(verdicts) > 1:
            raise ValueError(
                f"Column {name!r} of X holds numbers in some blocks and categories in others. Make them one kind, or "
                "name its family in the 'emission' parameter."
            )
    return [True in (verdicts or {other}) for verdicts, other in zip(verdicts_of_columns, of_none)]


def _all_missing(cells: np.ndarray) -> bool:
    return all(is_missing_value(value) for value in cells.tolist())
