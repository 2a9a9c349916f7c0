"""Parameters with their intervals, as tables for readers, and profiles of columns as rows of these."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Self

import numpy as np

from skvbem._tabular import number
from skvbem.emissions import EmissionSpecification
from skvbem.fitted.latent_states import LatentStates


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
    row_states, column_states : sequence of mapping of hashable to int
        Positions of the states of nodes that each row or column belongs to. In a mixture the node is "component", in a
        chain "state". Empty where rows and columns belong to no state.
    """

    title: str
    rows: Sequence[str]
    columns: Sequence[str]
    values: np.ndarray
    intervals: tuple[np.ndarray, np.ndarray] | None = None
    row_states: Sequence[Mapping[Hashable, int]] = ()
    column_states: Sequence[Mapping[Hashable, int]] = ()

    def estimated_by(self, means: ParameterTable, medians: ParameterTable) -> Self:
        """The table with means as estimates where there are any, and medians where a mean is beyond the interval.

        Both stand in their tables as the lower ends of intervals.
        """
        lower, upper = self._ends()
        values = np.where(np.isnan(means._ends()[0]), self.values, means._ends()[0])
        is_beyond = (values < lower) | (values > upper)
        return replace(self, values=np.where(is_beyond, medians._ends()[0], values))

    def arranged(self, latents: Mapping[Any, LatentStates]) -> Self:
        """The table with states of latents in the order of their shares, and without those that are empty."""
        rows, columns = (
            _arranged(each, n, latents)
            for each, n in zip((self.row_states, self.column_states), self.values.shape, strict=True)
        )
        lower, upper = (end[np.ix_(rows, columns)] for end in self._ends())
        return replace(
            self,
            rows=[self.rows[k] for k in rows],
            columns=[self.columns[k] for k in columns],
            values=self.values[np.ix_(rows, columns)],
            intervals=None if self.intervals is None else (lower, upper),
            row_states=[self.row_states[k] for k in rows if self.row_states],
            column_states=[self.column_states[k] for k in columns if self.column_states],
        )

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


def joint_states(nodes: Sequence[Hashable], levels: Mapping[Hashable, Sequence]) -> list[dict[Hashable, int]]:
    """The joint states of nodes in order, each as the position of every node's state; of none nothing."""
    sizes = [range(len(levels[node])) for node in nodes]
    return [dict(zip(nodes, states)) for states in product(*sizes)] if nodes else []


def _arranged(states: Sequence[Mapping], n: int, latents: Mapping[Any, LatentStates]) -> list[int]:
    """Positions of rows, or columns, in the order of the shares of states; all as they are where none is of states."""
    places = {name: np.argsort(np.argsort(-each.mass, kind="stable")) for name, each in latents.items()}
    empty = {(name, state) for name, each in latents.items() for state in each.empty if each.in_use}
    if not states:
        return list(range(n))
    kept = [k for k in range(n) if empty.isdisjoint(states[k].items())]
    return sorted(kept, key=lambda k: [places[name][of] if name in places else of for name, of in states[k].items()])


def _with_interval(value: float, lower: float, upper: float) -> str:
    if np.isnan(value):
        return ""
    if np.isnan(lower) or np.isnan(upper):
        return number(value)
    return f"{number(value)} [{number(lower)}, {number(upper)}]"


def rows_of_profiles(
    specification: EmissionSpecification,
    names: Sequence[str],
    levels: Sequence[np.ndarray],
    parameters: Mapping,
    intervals: Mapping | None,
) -> tuple[list[str], np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """Means and deviations of columns of numbers, and probabilities of categories, in each component.

    Parameters
    ----------
    specification : EmissionSpecification
        Specification of the columns.
    names : sequence of str
        Of these.
    levels : sequence of ndarray
        Levels of each column of categories.
    parameters : mapping of str to ndarray
        Of their emission.
    intervals : mapping of str to pair of ndarray, or None
        Of these.

    Returns
    -------
    names : list of str
        What each row is called.
    values : ndarray of shape (n_rows, n_components)
    ends : pair of ndarray of shape (n_rows, n_components)
        Of intervals, NaN where there are none.
    """
    ends = None
    if intervals is not None:
        lower, upper = ({name: pair[side] for name, pair in intervals.items()} for side in (0, 1))
        ends = lower, upper
    profiles = specification.profiles(names, parameters, ends, levels)
    rows = [row for profile in profiles for row in profile.rows(len(parameters))]
    rows += specification.further_rows(names, parameters, ends, levels)
    values = np.stack([of_row for _, of_row, _ in rows])
    unknown = np.full(values.shape[1], np.nan)
    low, high = (np.stack([unknown if pair is None else pair[side] for *_, pair in rows]) for side in (0, 1))
    return [label for label, *_ in rows], values, (low, high)
