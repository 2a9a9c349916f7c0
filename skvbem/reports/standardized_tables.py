"""Tables of a summary that networks of numbers have: standardized coefficients, and R²."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from skvbem.emissions.profiles import named
from skvbem.emissions.softmax import normal_points
from skvbem.fitted.base import Parameters
from skvbem.fitted.parameter_tables import ParameterTable, joint_states
from skvbem.uncertainty.draws import Draws
from skvbem.uncertainty.intervals import ReportedIntervals
from skvbem.uncertainty.posterior_draws import PosteriorDraws, drawn_from_q
from skvbem.uncertainty.standard_errors import StandardErrors

if TYPE_CHECKING:
    from skvbem.fitted.standardized import StandardizedNumber

# Draws of q(theta) whose quantiles are taken.
_N_DRAWS = 1000


def standardized_tables(fitted: Any, intervals: ReportedIntervals, level: float) -> list[ParameterTable]:
    """Standardized coefficients and R² of the numbers of a network, for a summary; none of other models."""
    standardized = getattr(fitted, "standardized", None)
    if standardized is None:
        return []
    point = {
        group: {name: each[None] for name, each in of.items()}
        for group, of in fitted.named_parameters(fitted.point).items()
    }
    at_points = standardized(point)
    drawn = _drawn(fitted, intervals) if at_points else None
    # those of too many states for so many draws have no intervals
    at_draws = {} if drawn is None else {each.name: each for each in standardized(drawn)}
    is_posterior = isinstance(intervals.draws, PosteriorDraws)
    tables = [_Column(level, is_posterior), _Column(level, is_posterior)]
    for at_point in at_points:
        of_draws = at_draws.get(at_point.name)
        _add_coefficients(tables[0], fitted, at_point, of_draws)
        _add_r2(tables[1], fitted, at_point, of_draws)
    titles = ("standardized coefficients", "standardized"), ("explained variance", "R2")
    return [table.table(*title) for table, title in zip(tables, titles) if table.rows]


def _drawn(fitted: Any, intervals: ReportedIntervals) -> Parameters | None:
    """Parameters at draws, each (n_draws, ...); None where there are no intervals."""
    draws, prior = intervals.draws, fitted.model.prior
    if isinstance(draws, Draws):
        return draws.parameters
    if isinstance(draws, StandardErrors):
        values, axes = np.linalg.eigh(draws.covariance)
        away = (axes * np.sqrt(values.clip(0.0))) @ normal_points(len(values))
        return fitted.parameters_of_draws(prior.natural(prior.from_unconstrained(draws.coordinates[:, None] + away)))
    if intervals.ends is None:
        return None
    return fitted.parameters_of_draws(drawn_from_q(fitted, _N_DRAWS, np.random.default_rng(0)))


class _Column:
    """The one column of a table, as it grows."""

    def __init__(self, level: float, is_posterior: bool):
        self.level, self.is_posterior = level, is_posterior
        self.rows: list[str] = []
        self.states: list[dict] = []
        self.numbers: list[tuple] = []

    def add(self, row: str, place: int, states: dict, value: np.ndarray, draws: np.ndarray | None) -> None:
        """A number as fitted, and at draws; rows of one place stay together when states are put in order."""
        lower = upper = np.nan
        estimate = float(value[0])
        if draws is not None:
            lower, upper = np.quantile(draws, [0.5 - self.level / 2, 0.5 + self.level / 2])
            estimate = float(draws.mean()) if self.is_posterior else estimate
        self.rows.append(row)
        self.states.append({None: place} | states)
        self.numbers.append((estimate, lower, upper))

    def table(self, title: str, column: str) -> ParameterTable:
        """The table."""
        values, lower, upper = np.array(self.numbers).T[:, :, None]
        return ParameterTable(title, self.rows, [column], values, (lower, upper), self.states)


def _add_coefficients(
    column: _Column, fitted: Any, at_point: StandardizedNumber, of_draws: StandardizedNumber | None
) -> None:
    for j, parent in enumerate(at_point.parents):
        place = len(column.rows)
        for k, (states, words) in enumerate(_states(fitted, at_point)):
            draws = None if of_draws is None else of_draws.coefficients[:, k, j]
            row = f"{parent} -> {at_point.name}{words}"
            column.add(row, place, states, at_point.coefficients[:, k, j], draws)


def _add_r2(column: _Column, fitted: Any, at_point: StandardizedNumber, of_draws: StandardizedNumber | None) -> None:
    place, all_draws = len(column.rows), None if of_draws is None else of_draws.overall_r2
    column.add(str(at_point.name), place, {}, at_point.overall_r2, all_draws)
    for k, (states, words) in enumerate(_states(fitted, at_point)):
        if states:
            draws = None if of_draws is None else of_draws.r2[:, k]
            column.add(f"{at_point.name}{words}", place, states, at_point.r2[:, k], draws)


def _states(fitted: Any, number: StandardizedNumber) -> list[tuple[dict, str]]:
    """Joint states of the categories above a number, each with its words."""
    states = joint_states(number.categories, fitted.levels) or [{}]
    words = [", ".join(f"{node}={named(fitted.levels[node].tolist()[at])}" for node, at in each.items())
             for each in states]  # fmt: skip
    return [(each, f", {of}" if of else "") for each, of in zip(states, words)]
