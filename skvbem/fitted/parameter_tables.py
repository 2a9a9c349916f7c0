"""Parameters with their intervals, as tables for readers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from skvbem._tabular import number


@dataclass(frozen=True, eq=False)
class ParameterTable:
    """Parameters of a fit with their intervals, as the rows and columns of one table of a `Summary`.

    Parameters
    ----------
    title : str
    rows, columns : sequence of str
        Labels.
    values : ndarray of shape (n_rows, n_columns)
        NaN where there is no parameter.
    intervals : pair of ndarray of shape (n_rows, n_columns), or None
        Lower and upper ends; NaN where a parameter has none.
    """

    title: str
    rows: Sequence[str]
    columns: Sequence[str]
    values: np.ndarray
    intervals: tuple[np.ndarray, np.ndarray] | None = None

    def cells(self) -> list[list[str]]:
        """Each parameter as text, its interval beside it."""
        lower, upper = self._ends()
        return [
            [_with_interval(*three) for three in zip(*of_row)]
            for of_row in zip(self.values.tolist(), lower.tolist(), upper.tolist())
        ]

    def records(self) -> Iterator[tuple]:
        """Title, row, column, estimate, lower and upper end of each parameter."""
        lower, upper = self._ends()
        for i, row in enumerate(self.rows):
            for j, column in enumerate(self.columns):
                if not np.isnan(self.values[i, j]):
                    yield self.title, row, column, self.values[i, j], lower[i, j], upper[i, j]

    def _ends(self) -> tuple[np.ndarray, np.ndarray]:
        nothing = np.full(self.values.shape, np.nan)
        return (nothing, nothing) if self.intervals is None else self.intervals


def _with_interval(value: float, lower: float, upper: float) -> str:
    if np.isnan(value):
        return ""
    if np.isnan(lower) or np.isnan(upper):
        return number(value)
    return f"{number(value)} [{number(lower)}, {number(upper)}]"
