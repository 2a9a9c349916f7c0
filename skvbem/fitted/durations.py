"""How long stays in states last under a fit, with intervals over draws of the parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from skvbem._tabular import data_frame, html_table, number, text_table
from skvbem.fitted.parameter_tables import ParameterTable

_LONGER = ["lasts_longer", "lasts_longer_lower", "lasts_longer_upper"]
_COLUMNS = ["state", "steps", "probability", "lower", "upper", *_LONGER]
# Stays that last longer than the steps told by default, as a probability, of how many draws, and most steps. By hand.
_REST, _OF_DRAWS, _MAX_STEPS = 0.02, 0.99, 2**14
# Of these the printed table has the steps.
_QUANTILES = (0.1, 0.5, 0.9)


@dataclass(frozen=True, eq=False, repr=False)
class DurationDistribution:
    """Distributions of the steps that stays in states last, with intervals over draws of the parameters.

    It prints as a table of means and quantiles, and `to_frame` has the probability of each number of steps.

    Parameters
    ----------
    states : sequence of int or str
        Numbers or names of the states.
    lasts : ndarray of shape (n_states, n_steps + 1)
        Probabilities that a stay lasts more than 0, 1, ... steps, at the published parameters.
    means : ndarray of shape (n_states,)
        Steps that a stay lasts in the mean, at the published parameters; inf of a state that cannot be left.
    lasts_drawn : ndarray of shape (n_draws, n_states, n_steps + 1)
        The same as `lasts` at draws of the parameters; none where there is no posterior.
    means_drawn : ndarray of shape (n_draws, n_states)
    level : float
        Mass of intervals.
    """

    states: Sequence[int | str]
    lasts: np.ndarray
    means: np.ndarray
    lasts_drawn: np.ndarray
    means_drawn: np.ndarray
    level: float

    @property
    def probabilities(self) -> np.ndarray:
        """Probabilities of stays of 1, 2, ... steps, (n_states, n_steps)."""
        return -np.diff(self.lasts, axis=1)

    @property
    def probability_intervals(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends of intervals of `probabilities`, (n_states, n_steps) each; NaN without draws."""
        return self._ends(-np.diff(self.lasts_drawn, axis=2))

    @property
    def lasts_intervals(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends of intervals of `lasts`, (n_states, n_steps + 1) each; NaN without draws."""
        return self._ends(self.lasts_drawn)

    @property
    def mean_intervals(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends of intervals of `means`, (n_states,) each; NaN without draws."""
        return self._ends(self.means_drawn)

    def quantile(self, probability: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Least numbers of steps that stays exceed with no more than the rest of a probability, and their intervals.

        Parameters
        ----------
        probability : float
            Between 0 and 1.

        Returns
        -------
        quantile, lower, upper : ndarray of shape (n_states,)
            Steps; inf beyond those of `lasts`.
        """
        if not 0.0 < probability < 1.0:
            raise ValueError(f"The 'probability' of quantile must be between 0 and 1. Got {probability!r} instead.")
        at_draws = _steps_at(self.lasts_drawn, 1.0 - probability)
        return _steps_at(self.lasts, 1.0 - probability), *self._ends(at_draws, method="inverted_cdf")

    def to_frame(self):
        """All probabilities as a pandas DataFrame.

        Returns
        -------
        pandas.DataFrame
            Columns state, steps, probability, lower, upper, and lasts_longer, lasts_longer_lower, lasts_longer_upper:
            the probability of a stay of so many steps, and of one that lasts longer.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        return data_frame(self._records(), type(self).__name__, columns=_COLUMNS)

    def _records(self) -> Iterator[tuple]:
        exact, longer = self.probability_intervals, self.lasts_intervals
        for k, state in enumerate(self.states):
            for at, probability in enumerate(self.probabilities[k].tolist()):
                of_longer = self.lasts[k, at + 1], *(ends[k, at + 1] for ends in longer)
                yield state, at + 1, probability, *(float(ends[k, at]) for ends in exact), *map(float, of_longer)

    def _ends(self, drawn: np.ndarray, **options) -> tuple[np.ndarray, np.ndarray]:
        if not len(drawn):
            return np.full(drawn.shape[1:], np.nan), np.full(drawn.shape[1:], np.nan)
        lower, upper = np.quantile(drawn, [0.5 - self.level / 2, 0.5 + self.level / 2], axis=0, **options)
        return lower, upper

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        header = ["state", "mean", *(f"{100 * p:g} %" for p in _QUANTILES)]
        columns = [(number, self.means, *self.mean_intervals)]
        columns += [("{:,.0f}".format, *self.quantile(p)) for p in _QUANTILES]
        rows = []
        for k, state in enumerate(self.states):
            cells = []
            for show, value, lower, upper in columns:
                ends = "" if np.isnan(lower[k]) else f" [{show(lower[k])}, {show(upper[k])}]"
                cells.append(f"{show(value[k])}{ends}")
            rows.append([str(state), *cells])
        return header, rows

    def __repr__(self):
        header, rows = self._cells()
        title = f"steps of a stay, with {100 * self.level:g} % intervals"
        return "\n".join([title, *text_table(header, rows)])

    def _repr_html_(self):
        header, rows = self._cells()
        return html_table(header, rows, caption=f"steps of a stay, with {100 * self.level:g} % intervals")


def _steps_at(lasts: np.ndarray, rest: float) -> np.ndarray:
    """The least numbers of steps after which at most a rest of stays goes on, (...); inf beyond the last of them."""
    over = lasts <= rest + 1e-12
    return np.where(over.any(axis=-1), over.argmax(axis=-1), np.inf)


def tables_of_durations(
    rows: Any,
    named: Mapping[Any, np.ndarray],
    intervals: Mapping | None,
    numbers: Sequence[str],
    states: Sequence[dict],
) -> list[ParameterTable]:
    """A table of the probabilities that a stay of some age ends, if there are any; see `ParameterTable`.

    Parameters
    ----------
    rows : Transitions or SemiMarkovRows
    named : mapping of str to ndarray
        Parameters of the chain.
    intervals : mapping of str to pair of ndarray, or None
    numbers, states : sequence
        Of states: what they are called, and the states themselves.
    """
    if "stage_ends" in named:
        title, name, labels = "durations", "stage_ends", [f"a stage of {rows.n_ages} ends"]
    elif "hazards" in named:
        title, name = "durations", "hazards"
        bounds = np.flatnonzero(np.diff(rows.bins, prepend=-1, append=-1)).tolist()
        ages = [f"{a + 1}" if b == a + 1 else f"{a + 1}-{b}" for a, b in pairwise(bounds)]
        labels = [f"ends at age {age}" for age in (*ages[:-1], f"{bounds[-2] + 1} and on")]
        labels = labels if len(ages) > 1 else ["ends at any age"]
    else:
        return []

    def by_age(values: np.ndarray) -> np.ndarray:
        return np.reshape(values, (len(numbers), -1)).T

    ends = None
    if intervals is not None and name in intervals:
        ends = by_age(intervals[name][0]), by_age(intervals[name][1])
    empty: list[dict] = [{} for _ in labels]
    return [ParameterTable(title, labels, numbers, by_age(named[name]), ends, empty, states)]


def durations_of(
    rows: Any, point: np.ndarray, drawn: np.ndarray, states: dict[int, int | str], n_steps: int | None, level: float
) -> DurationDistribution:
    """The distributions of stays in some states.

    Parameters
    ----------
    rows : Transitions or SemiMarkovRows
    point : ndarray of shape (n_cells,)
        Published parameters of the rows.
    drawn : ndarray of shape (n_cells, n_draws)
        Natural parameters of draws; none where there is no posterior.
    states : dict
        What states are called, by their numbers.
    n_steps : int, optional
        Steps of the longest stay; by default few stays last longer.
    level : float
    """
    chosen, at_point = list(states), rows.prior.natural(point)[:, None]
    naturals, n = drawn if drawn.shape[1] else at_point, 16 if n_steps is None else n_steps
    while n_steps is None and n < _MAX_STEPS:
        if (np.quantile(rows.lasting(naturals, n + 1)[:, chosen, -1], _OF_DRAWS, axis=0) <= _REST).all():
            break
        n *= 2
    means = [rows.mean_durations(rows.prior.from_natural(lane)) for lane in drawn.T]
    return DurationDistribution(
        [*states.values()],
        rows.lasting(at_point, n + 1)[0, chosen],
        rows.mean_durations(point)[chosen],
        rows.lasting(drawn, n + 1)[:, chosen],
        np.reshape(means, (len(means), rows.n_states))[:, chosen],
        level,
    )
