"""Kinds of columns by their data types: numbers or categories, in memory and in blocks, modeled and given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
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


def encoder_of_given(tables: Blocks, columns: Sequence[int], options: Any) -> CategoryEncoder | None:
    """The encoder of columns of categories among some that are given; None where all hold numbers, or truth values.

    Parameters
    ----------
    tables : Blocks of Table
        Of all rows.
    columns : sequence of int
        Those that are given. A column of numbers whose levels are declared is one of categories.
    options : ColumnOptions
    """
    coded: dict[int, str] = {}
    declared = options.categories if isinstance(options.categories, Mapping) else ()
    for of_table in tables.results(partial(_coded, columns, frozenset(declared))):
        coded |= of_table
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
    encoder.fit_blocks(tables.map(partial(Table.columns, positions=places)))
    return encoder


def _coded(columns: Sequence[int], declared: frozenset, table: Table) -> dict[int, str]:
    """The columns of a table, of some, that hold categories or have declared levels, by position."""
    coded = {}
    for at in columns:
        column, name = table.column(at), table.names[at]
        if name in declared or not (holds_numbers(column) or column.values.dtype.kind == "b"):
            coded[at] = name
    return coded


def hold_numbers_in_blocks(names: Sequence[str], tables: Blocks) -> list[bool]:
    """Whether columns hold numbers, by the blocks in which a cell is observed."""
    verdicts_of_columns: list[set[bool]] = [set() for _ in names]
    of_none: list[bool] = []
    for of_columns in tables.results(_hold_numbers):
        of_none = of_none or [holds for holds, _ in of_columns]
        for verdicts, (holds, is_empty) in zip(verdicts_of_columns, of_columns):
            if not is_empty:
                verdicts.add(holds)
    for name, verdicts in zip(names, verdicts_of_columns):
        if len(verdicts) > 1:
            raise ValueError(
                f"Column {name!r} of X holds numbers in some blocks and categories in others. Make them one kind, or "
                "name its family in the 'emission' parameter."
            )
    return [True in (verdicts or {other}) for verdicts, other in zip(verdicts_of_columns, of_none)]


def _hold_numbers(table: Table) -> list[tuple[bool, bool]]:
    """Of each column of a table whether it holds numbers, and whether no cell is observed."""
    verdicts = []
    for j in range(table.n_columns):
        column = table.column(j)
        cells = column.values
        is_empty = column.levels is None and (
            np.isnan(cells).all() if cells.dtype.kind == "f" else cells.dtype.kind == "O" and _all_missing(cells)
        )
        verdicts.append((bool(holds_numbers(column)), bool(is_empty)))
    return verdicts


def _all_missing(cells: np.ndarray) -> bool:
    return all(is_missing_value(value) for value in cells.tolist())
