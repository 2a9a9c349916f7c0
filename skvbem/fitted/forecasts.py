"""Forecasts as readers meet them: a row for each sequence, step and column, with its interval, a pair of quantiles.

Predictions are mixtures of distributions over hidden states and draws of parameters, and have their quantiles.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
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


# Quantiles of mixtures ------------------------------------------------------------------------------------------------

# Halvings of the interval in which a quantile lies, and its ends in deviations from the means of the components.
_N_HALVINGS, _REACH = 60, 40.0


def mixture_quantile(
    cumulative: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray],
    weights: np.ndarray,
    means: np.ndarray,
    deviations: np.ndarray,
    probability: float,
    whole: bool = False,
) -> np.ndarray:
    """The least values that mixtures stay at or below with a probability, (...), by halving.

    Parameters
    ----------
    cumulative : callable of (values, means, deviations)
        Probabilities of components to stay at or below values.
    weights : ndarray of shape (n_parts, ...)
        Of the components of each mixture; they sum to one over the first axis.
    means, deviations : ndarray
        Of the components, of a shape that broadcasts with that of weights.
    probability : float
    whole : bool, default=False
        Whether values are whole numbers >= 0.
    """
    shape = weights.shape[1:]
    low = np.broadcast_to((means - _REACH * deviations).min(axis=0), shape)
    high = np.broadcast_to((means + _REACH * deviations).max(axis=0), shape)
    if whole:
        low, high = np.full(shape, -1.0), np.ceil(high)
    for _ in range(_N_HALVINGS):
        middle = 0.5 * (low + high)
        if whole:
            if not (high - low > 1.0).any():
                break
            middle = np.where(high - low > 1.0, np.floor(middle), high)
        below = (weights * cumulative(middle, means, deviations)).sum(axis=0) < probability
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return high
