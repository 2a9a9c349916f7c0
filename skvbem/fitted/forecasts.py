"""Forecasts as readers meet them: a row for each sequence, step and column, with its interval, a pair of quantiles.

Predictions are mixtures of distributions over hidden states and draws of parameters, and have their quantiles.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from skvbem._arguments import check_choice
from skvbem._tabular import data_frame, html_table, number, text_table
from skvbem.reading.moments import shown_times

_VALUES = ["column", "category", "expected", "lower", "upper"]


class ForecastTable(ABC):
    """Forecasts of the steps after the end of each sequence, as a table."""

    level: float
    times: Any
    sequences: Any

    @abstractmethod
    def records(self) -> Iterator[tuple[int, int, str, Any, float, float, float]]:
        """Sequence, step from 1 on, column, category, what is expected, and ends of its interval.

        The category is None of numbers, which have intervals; of a category the probability is expected, and its ends
        are NaN. Probabilities of hidden states, if there are such, stand under the column "state".
        """

    def to_frame(self, layout="long"):
        """The forecast as a pandas DataFrame.

        Parameters
        ----------
        layout : {"long", "wide"}, default="long"
            "long": a row for each sequence, step and column. "wide": a row for each step, as other packages have it.

        Returns
        -------
        pandas.DataFrame
            Long: columns sequence, step, time (if steps have times), column, category, expected, lower, upper. Wide:
            columns mean, lower and upper, under the names of the columns of X if these are several; of categories their
            probabilities. Its index has the times, or else the steps, under the ids of several sequences.

        Raises
        ------
        ImportError
            If pandas is not installed.
        ValueError
            If `layout` is none of these.
        """
        check_choice("layout", "to_frame", layout, ("long", "wide"))
        ids, times, owner = self._ids(), self.times, type(self).__name__
        if layout == "wide":
            return self._wide(ids)
        if times is None:
            rows = ((ids[k], step, *values) for k, step, *values in self.records())
            return data_frame(rows, owner, columns=["sequence", "step", *_VALUES])
        at = [list(of_sequence) for of_sequence in times]
        rows = ((ids[k], step, at[k][step - 1], *values) for k, step, *values in self.records())
        return data_frame(rows, owner, columns=["sequence", "step", "time", *_VALUES])

    def _ids(self) -> list:
        """What each sequence is called, by default its number."""
        n_sequences = 1 + max((sequence for sequence, *_ in self.records()), default=-1)
        return list(range(n_sequences) if self.sequences is None else self.sequences.tolist())

    def _wide(self, ids: list):
        """A row for each sequence and step."""
        rows: dict[tuple[int, int], dict] = {}
        for k, step, column, category, expected, lower, upper in self.records():
            if column == "state":
                continue
            row = rows.setdefault((k, step), {})
            if category is None:
                row |= {(column, "mean"): expected, (column, "lower"): lower, (column, "upper"): upper}
            else:
                row[column, category] = expected
        frame = data_frame(rows.values(), type(self).__name__)
        import pandas as pd

        names = pd.MultiIndex.from_tuples(list(frame.columns), names=["column", None])
        frame.columns = names if names.get_level_values(0).nunique() > 1 else names.droplevel(0)
        when, name = pd.Index([step for _, step in rows]), "step"
        if self.times is not None:
            of_each = [pd.Index(of_sequence) for of_sequence in self.times]
            when, name = of_each[0].append(of_each[1:]), of_each[0].name
        if len(ids) > 1:
            when = pd.MultiIndex.from_arrays([[ids[k] for k, _ in rows], when], names=["sequence", name or "time"])
        frame.index = when if len(ids) > 1 else when.rename(name)
        return frame

    def _cells(self) -> tuple[list[str], list[list[str]], int]:
        ids, times = self._ids(), self.times
        at = None if times is None else [shown_times(of_sequence) for of_sequence in times]
        are_named = at is None or len(ids) > 1
        header = [*(["sequence"] if are_named else []), "step" if at is None else "time", "column", "expected"]
        rows = []
        for sequence, step, column, category, expected, lower, upper in self.records():
            name = column if category is None else f"{column}={category}"
            show = "{:,.0f}".format if lower == np.floor(lower) and upper == np.floor(upper) else number
            ends = "" if np.isnan(lower) else f"[{show(lower)}, {show(upper)}]"
            when = str(step) if at is None else at[sequence][step - 1]
            rows.append([*([str(ids[sequence])] if are_named else []), when, name, number(expected), ends])
        return [*header, f"{100 * self.level:g} % interval"], rows, len(header) - 1

    def __repr__(self):
        header, rows, n_labels = self._cells()
        return "\n".join(text_table(header, rows, n_labels=n_labels))

    def _repr_html_(self):
        header, rows, n_labels = self._cells()
        return html_table(header, rows, n_labels=n_labels)


# Quantiles of mixtures ------------------------------------------------------------------------------------------------


def variances_of_columns(states: list[np.ndarray], moments: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Variances of a group's columns of numbers, (n_sequences, n_steps, n_columns).

    Parameters
    ----------
    states : list of ndarray of shape (n_sequences, n_steps, n_components)
        Probabilities of states at each draw of the parameters.
    moments : list of pair of ndarray
        Means and deviations (n_components, n_columns) at each draw.
    """
    center = np.mean([weights @ mean for weights, (mean, _) in zip(states, moments)], axis=0)
    squares = [
        np.einsum("stk,stkj->stj", weights, deviation**2 + (mean - center[:, :, None]) ** 2)
        for weights, (mean, deviation) in zip(states, moments)
    ]
    return np.mean(squares, axis=0)


def ends_of_columns(
    specification: Any,
    states: list[np.ndarray],
    parameters: list[dict[str, np.ndarray]],
    moments: list[tuple[np.ndarray, np.ndarray]],
    center: np.ndarray,
    level: float,
) -> np.ndarray | None:
    """Ends of intervals of a group's columns, (2, n_sequences, n_steps, n_columns), if it has a distribution of them.

    Parameters
    ----------
    specification : EmissionSpecification
    states : list of ndarray of shape (n_sequences, n_steps, n_components)
        Probabilities of states at each draw of the parameters.
    parameters : list of mapping
        Of the group, at each draw.
    moments : list of pair of ndarray
        Means and deviations (n_components, n_columns), of numbers on a line, at each draw.
    center : ndarray of shape (n_sequences, n_steps, n_columns)
        Expected values.
    level : float
    """
    n_columns = center.shape[-1]
    if specification.cumulative_of_values(np.zeros((1, n_columns)), parameters[0]) is None:
        return None
    weights = [np.concatenate([each.reshape(-1, each.shape[-1])] * 2) for each in states]

    def cumulative(values: np.ndarray) -> np.ndarray:
        cells, total = values.reshape(-1, n_columns), np.zeros((values.size // n_columns, n_columns))
        for of_states, of_draw in zip(weights, parameters):
            total += np.einsum("ik,kij->ij", of_states, specification.cumulative_of_values(cells, of_draw))
        return total.reshape(values.shape) / len(weights)

    if specification.period is not None:
        return arc(cumulative, center, specification.period, level)
    means, deviations = (np.concatenate(each)[:, None, None] for each in zip(*moments))
    ends = 0.5 - level / 2, 0.5 + level / 2
    return mixture_quantiles(cumulative, ends, means, deviations, center.shape, specification.holds_counts)


# Halvings of the interval in which a quantile lies; its ends in deviations from the means of the parts, as long as the
# quantile is within, and the factor by which they go further.
_N_HALVINGS, _REACH, _FURTHER, _FURTHEST = 60, 10.0, 8.0, 1e12


def mixture_quantiles(
    cumulative: Callable[[np.ndarray], np.ndarray],
    probabilities: Sequence[float],
    means: np.ndarray,
    deviations: np.ndarray,
    shape: tuple[int, ...],
    whole: bool = False,
) -> np.ndarray:
    """The least values that mixtures stay at or below with some probabilities, (n_probabilities, *shape), by halving.

    Parameters
    ----------
    cumulative : callable of ndarray of shape (n_probabilities, *shape)
        Probabilities of the mixtures to stay at or below values.
    probabilities : sequence of float
    means, deviations : ndarray of shape (n_parts, ...)
        Of the parts of each mixture, of a shape that broadcasts with `shape`.
    shape : tuple of int
        Of the mixtures.
    whole : bool, default=False
        Whether values are whole numbers >= 0.
    """
    wanted = np.reshape(probabilities, (-1,) + (1,) * len(shape))
    full, reach, low, high = (len(wanted), *shape), _REACH, np.array(-1.0), np.array(0.0)
    while reach < _FURTHEST:
        high = np.ceil((means + reach * deviations).max(axis=0))
        low = low if whole else np.floor((means - reach * deviations).min(axis=0))
        within = cumulative(np.broadcast_to(high, full)) >= wanted
        if within.all() and (whole or (cumulative(np.broadcast_to(low, full)) < wanted).all()):
            break
        reach *= _FURTHER
    return least_values(cumulative, wanted, np.broadcast_to(low, full), np.broadcast_to(high, full), whole)


def least_values(
    cumulative: Callable[[np.ndarray], np.ndarray],
    wanted: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    whole: bool = False,
) -> np.ndarray:
    """The least values up to which there is a probability, between ends; 0 itself where a part of the mass is there."""
    for _ in range(_N_HALVINGS):
        middle = np.where((low < 0) & (high > 0), 0.0, 0.5 * (low + high))
        if whole:
            if not (high - low > 1.0).any():
                break
            middle = np.where(high - low > 1.0, np.floor(middle), high)
        below = cumulative(middle) < wanted
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return high


def arc(cumulative: Callable[[np.ndarray], np.ndarray], center: np.ndarray, period: float, level: float) -> np.ndarray:
    """Ends of an arc about directions, (2, *shape), each with half of the other mass between it and the opposite side.

    Ends are less than half a turn from the center, and may lie beyond the ends of a turn.

    Parameters
    ----------
    cumulative : callable of ndarray of shape (2, *shape)
        Probabilities of angles from minus half a turn on.
    center : ndarray
        Directions.
    period : float
        A turn.
    level : float
        Mass of the arc.
    """
    half, full = period / 2, (2, *center.shape)
    opposite = np.broadcast_to(np.remainder(center, period) - half, full)
    before = cumulative(opposite)

    def from_opposite(away: np.ndarray) -> np.ndarray:
        angles = np.remainder(center + away + half, period) - half
        return np.clip(cumulative(angles) - before + (angles < opposite), 0.0, 1.0)

    wanted = 0.5 + level / 2 * np.reshape([-1.0, 1.0], (2,) + (1,) * center.ndim)
    return center + least_values(from_opposite, wanted, np.full(full, -half), np.full(full, half))
