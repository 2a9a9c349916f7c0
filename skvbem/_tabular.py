"""Small tables as readers meet them: lines of text, HTML in notebooks, data frames. One way for all results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from math import isnan
from typing import Any

#: Characters of a line.
WIDTH = 110
# Rows that are printed, and what is said where there are more.
_MAX_ROWS, _ALL = 40, "to_frame() has all"
# Numbers that are printed as 0.
_NOTHING = 1e-9
_TABLE = "border-collapse:collapse;margin:0.6em 0;font-variant-numeric:tabular-nums"


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, n_labels: int = 1) -> list[str]:
    """Lines of a table, its first columns to the left and the others to the right.

    Columns for which a line has no room follow below.

    Parameters
    ----------
    header : sequence of str
    rows : sequence of sequence of str
        Of many the first ones, and how many are left out.
    n_labels : int, default=1
        Columns that name the rows.
    """
    columns = list(zip(header, *rows[:_MAX_ROWS], strict=True))
    widths = [max(map(len, column)) for column in columns]
    aligned = [
        [cell.ljust(width) if j < n_labels else cell.rjust(width) for cell in column]
        for j, (column, width) in enumerate(zip(columns, widths))
    ]
    lines: list[str] = []
    labels, first = aligned[:n_labels], n_labels
    label_width = sum(widths[:n_labels]) + 2 * (n_labels - 1)
    while first < len(columns) or not lines:
        last = first + 1
        while last < len(columns) and label_width + sum(2 + width for width in widths[first : last + 1]) <= WIDTH:
            last += 1
        lines += ["  ".join(cells).rstrip() for cells in zip(*labels, *aligned[first:last])]
        first = last
    return [*lines, *_left_out(len(rows), _ALL)]


def html_table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    caption: str = "",
    n_labels: int = 1,
    notes: Iterable[str] = (),
    align: str = "right",
    where_all: str = _ALL,
) -> str:
    """A table as HTML, everything in it escaped.

    Parameters
    ----------
    header : sequence of str
        Without any, there is none.
    rows : sequence of sequence of str
        Of many the first ones, and how many are left out.
    caption : str
    n_labels : int, default=1
        Columns that name the rows.
    notes : iterable of str
        Lines below.
    align : {"right", "left"}, default="right"
        Of the other columns.
    where_all : str, default="to_frame() has all"
        Said where rows are left out.
    """
    parts = [f"<caption style='text-align:left;font-weight:bold'>{escape(caption)}</caption>"] if caption else []
    if header:
        parts.append(_html_row(header, len(header), n_labels, align))
    parts += [_html_row(row, n_labels, n_labels, align) for row in rows[:_MAX_ROWS]]
    below = "".join(f"<p>{escape(line)}</p>" for line in [*_left_out(len(rows), where_all), *notes])
    return f"<table style='{_TABLE}'>{''.join(parts)}</table>{below}"


def _left_out(n_rows: int, where_all: str) -> list[str]:
    """Words for the rows that are not printed."""
    return [f"{n_rows - _MAX_ROWS} more rows: {where_all}."] if n_rows > _MAX_ROWS else []


def number(value: float) -> str:
    """A number in three decimals or four digits."""
    if isnan(value):
        return "–"
    if abs(value) < _NOTHING:
        value = 0.0  # and not -0.0, which has a sign in print
    if value == 0 or 5e-4 <= abs(value) < 10:
        return f"{value:.3f}"
    if abs(value) < 1:
        return f"{value:.1e}"
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e9 else f"{value:.4g}"


def data_frame(records: Iterable[Any], owner: str, *, columns: Sequence[str] | None = None):
    """Records as a pandas DataFrame; an ImportError says what has no frame where pandas is not installed."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError(f"{owner}.to_frame needs pandas, which is not installed. Install pandas.") from error
    return pd.DataFrame(list(records), columns=columns)


def named_values(values: Mapping[str, str], caption: str = "") -> str:
    """Values with their names, one in each row, as HTML."""
    return html_table((), list(values.items()), caption=caption, align="left")


def _html_row(cells: Sequence[str], n_heads: int, n_labels: int, align: str) -> str:
    text = ""
    for j, cell in enumerate(cells):
        kind, side = "th" if j < n_heads else "td", "left" if j < n_labels else align
        text += f"<{kind} style='text-align:{side};padding:0 0.6em'>{escape(cell)}</{kind}>"
    return f"<tr>{text}</tr>"
