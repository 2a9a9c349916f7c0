"""Forecasts as readers meet them: a row for each sequence, step and column, with its interval."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np

from skvbem._tabular import data_frame, html_table, number, text_table

_COLUMNS = ["sequence", "step", "column", "category", "expected", "lower", "upper"]


class ForecastTable(ABC):
    """Forecasts of the steps after the end of each sequence, as a table."""

    level: float

    @abstractmethod
    def records(self) -> Iterator[tuple[int, int, str, Any, float, float, float]]:
        """Sequence, step from 1 on, column, category, what is expected, and ends of its interval.

        The category is None of numbers, which have intervals; of a category the probability is expected, and its ends
        are NaN. Probabilities of hidden states, if there are such, stand under the column "state".
        """

    def to_frame(self):
        """The forecast as a pandas DataFrame.

        Returns
        -------
        pandas.DataFrame
            Columns sequence, step, column, category, expected, lower, upper.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        return data_frame(self.records(), type(self).__name__, columns=_COLUMNS)

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        header = ["sequence", "step", "column", "expected", f"{100 * self.level:g} % interval"]
        rows = []
        for sequence, step, column, category, expected, lower, upper in self.records():
            name = column if category is None else f"{column}={category}"
            show = "{:,.0f}".format if lower == np.floor(lower) and upper == np.floor(upper) else number
            ends = "" if np.isnan(lower) else f"[{show(lower)}, {show(upper)}]"
            rows.append([str(sequence), str(step), name, number(expected), ends])
        return header, rows

    def __repr__(self):
        return "\n".join(text_table(*self._cells(), n_labels=3))

    def _repr_html_(self):
        return html_table(*self._cells(), n_labels=3)
