"""Sequences as read, and a hidden Markov model as fitted: what every question after `fit` is put to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from skvbem._lazy import cached_property
from skvbem._numerics import drawn_codes
from skvbem.emissions.base import parts_of
from skvbem.errors import DataWarning, warn, warn_of_impossible
from skvbem.fitted.autoregression import N_PATHS, Autoregression
from skvbem.fitted.base import FittedSequences, Intervals, Parameters
from skvbem.fitted.driven_chains import NAMES, named_rows, tables_of_coefficients
from skvbem.fitted.durations import tables_of_durations
from skvbem.fitted.forecasts import ForecastTable, ends_of_columns, variances_of_columns
from skvbem.fitted.labels import FittedEmissions
from skvbem.fitted.parameter_tables import ParameterTable
from skvbem.fitted.under_fit import UnderFit, cells_of_sequences
from skvbem.models.hmm.model import HMM
from skvbem.models.sequences import HMMData
from skvbem.reading.column_groups import ColumnGroups, Group
from skvbem.reading.rows import SequenceReading


@dataclass(frozen=True, eq=False)
class FittedHMM(FittedSequences, FittedEmissions):
    """A hidden Markov model as fitted: its columns, its prior, and the statistics of the data."""

    label: ClassVar[str] = "state"

    def continues(self, columns: ColumnGroups, model) -> bool:
        """True if another model has as many states, the same transitions and the same columns, read in the same way."""
        return super().continues(columns, model) and all(
            np.array_equal(mine.allowed, other.allowed)
            for mine, other in ((self.model.initial, model.initial), (self.model.transitions, model.transitions))
        )

    def start_of(self, rows: SequenceReading, model: HMM, data: HMMData) -> np.ndarray:
        """Statistics (n_cells,), as a model that continues this one has them, of the states that this one expects.

        Parameters
        ----------
        rows : SequenceReading
        model : HMM
        data : HMMData
            The rows as that model takes them, whose units may be others.
        """
        natural, here = self.natural_of_q, replace(rows, labels=None).compiled(self.model)
        states = self.model.smoothed(natural, here)
        are_possible = bool(states.any(axis=1).all())
        statistics = model.statistics_of(self.possible(states), data)
        if are_possible and self.model.is_homogeneous:  # of neighbors together, where that is known
            n_chain = model.initial.n_cells + model.transitions.n_cells
            statistics[:n_chain] = self.model.expect(natural[:, None], here).statistics[:n_chain, 0]
        return statistics

    def possible(self, states: np.ndarray, warns: bool = False) -> np.ndarray:
        """Probabilities of states (n_rows, n_components), those of steps that no path can make filled in."""
        total, impossible = self.counts.sum(), np.flatnonzero(~states.any(axis=1))
        states[impossible] = self.counts / total if total > 0 else 1 / len(self.counts)
        if warns:
            warn_of_impossible(impossible, len(states), "the shares of states in the data of the fit", "steps")
        return states

    def imputed_steps(
        self, reading: SequenceReading, data: HMMData, states: np.ndarray, natural: np.ndarray, fill: str
    ) -> list[np.ndarray]:
        """Rows of each group with missing cells filled under shares of states (n_rows, n_components).

        Categories are filled in one of the ways of `FILLS`, sequence by sequence.
        """
        values = reading.values
        imputed = self.imputed(data.table[0 : len(data)], states)
        categories = [k for k, each in enumerate(values) if each.dtype.kind != "f"]
        if fill == "cells" or not categories:
            return imputed

        def with_categories(filled: list[np.ndarray]) -> HMMData:
            known = [filled[k] if k in categories else each for k, each in enumerate(values)]
            return replace(reading, values=known, labels=None).compiled(self.model)

        sequence = np.repeat(np.arange(data.n_sequences), data.lengths)
        together = np.ones(data.n_sequences, dtype=bool)
        if fill == "auto":
            log_observed = self.model.log_normalizers_of_sequences(natural, data)
            log_filled = self.model.log_normalizers_of_sequences(natural, with_categories(imputed))
            together = np.isfinite(log_observed) & ~np.isfinite(log_filled)
            if not together.any():
                return imputed
            warn(
                f"{together.sum()} of {len(together)} sequences, the first at position {together.argmax()}, are filled "
                "along the most probable path: categories that are most probable cell by cell cannot occur together. "
                "Pass fill='cells' to have them all the same, or fill='joint' to fill all sequences along paths.",
                DataWarning,
            )
        path, _ = self.model.decoded(natural, data)
        known = with_categories(self.imputed(data.table[0 : len(data)], np.eye(self.model.n_components)[path]))
        beside = self.imputed(known.table[0 : len(known)], self.possible(self.model.smoothed(natural, known)))
        rows = together[sequence]
        return [np.where(rows[:, None], new, old) for new, old in zip(beside, imputed)]

    def drawn_steps(self, reading: SequenceReading, data: HMMData, rng: np.random.Generator) -> list[np.ndarray]:
        """Rows of each group with missing cells drawn: parameters, the same for all rows, then paths, then cells."""
        if any(getattr(part, "n_lags", 0) for part in parts_of(self.emission)):
            raise ValueError(
                "fill='draw' does not draw cells of emissions with 'lags', on which later steps depend. Take "
                "fill='auto', or an emission without lags."
            )
        point = self.drawn_point(rng)
        natural = self.model.prior.natural(point)
        smoothed = self.model.smoothed(natural, data)
        are_possible = smoothed.any(axis=1)
        states = drawn_codes(self.possible(smoothed, warns=True), rng)
        states[are_possible] = self.model.drawn_path(natural, data, rng)[are_possible]
        return self.drawn_cells(reading.values, point[-1], states, rng)

    @cached_property
    def startprob(self) -> np.ndarray:
        """Posterior means (VB), or the point found, (n_components,); expected shares where covariates drive them."""
        return self._probabilities(0)[0]

    @cached_property
    def transmat(self) -> np.ndarray:
        """Posterior means (VB), or the point found, (n_components, n_components); or expected shares."""
        return self._probabilities(1)

    def _probabilities(self, k: int) -> np.ndarray:
        """First states (0) or transitions (1): those of the point, or shares that are expected in the data."""
        return self._rows[k].probabilities(self.point[k], self.model.prior.split(self.statistics)[k])

    def hyperparameters(self) -> dict[str, Any]:
        """Attributes of the prior as resolved and, of a density, of the posterior."""
        initial, transitions = self.model.initial, self.model.transitions
        attributes = {"startprob_prior_": initial.concentration[0], "transmat_prior_": transitions.concentration}
        for k, rows in enumerate(self._rows if self.form.density else ()):
            for name, values in rows.concentrations(self.posterior.blocks[k]).items():
                attributes[f"{NAMES[k]['probabilities']}_{name}_"] = values if k else values[0]
        return attributes | super().hyperparameters()

    def named_parameters(self, point: tuple) -> Parameters:
        """Probabilities of first states and transitions at a point, and what is observed in each state, by name."""
        return {"chain": self._of_chain(*point[:2])} | super().named_parameters(point)

    def _of_labels(self, points: tuple) -> Parameters:
        return {"chain": {name: np.moveaxis(each, -1, 0) for name, each in self._of_chain(*points[:2]).items()}}

    def report(self, intervals: Intervals | None) -> list[ParameterTable]:
        """First states and transitions, then a table per group of columns."""
        values, ends = np.vstack([self.startprob, self.transmat]), None
        if intervals is not None:
            of_rows, unknown = intervals["chain"], [np.full(each.shape, np.nan) for each in (values[0], values[1:])]
            first, pairs = of_rows.get("startprob", [unknown[0]] * 2), of_rows.get("transmat", [unknown[1]] * 2)
            ends = np.vstack([first[0], pairs[0]]), np.vstack([first[1], pairs[1]])
        rows = ["first", *(f"after {number}" for number in self._numbers)]
        named, of_chain = self._of_chain(*self.point[:2]), None if intervals is None else intervals["chain"]
        return [
            ParameterTable("transitions", rows, self._numbers, values, ends, [{}, *self._states], self._states),
            *tables_of_durations(self.model.transitions, named, of_chain, self._numbers, self._states),
            *tables_of_coefficients(
                self._rows,
                named,
                of_chain,
                self.groups.groups[getattr(self.model, "part", 0)].names,
                self.groups.groups[getattr(self.model, "part", 0)].levels,
                self._numbers,
                self._states,
            ),
            *super().report(intervals),
        ]

    def quantiles(self, probability: float) -> Parameters:
        """Quantiles of q(theta), by group and name; 0 of transitions that are ruled out."""
        ends = (rows.quantiles(block, probability) for rows, block in zip(self._rows, self.posterior.blocks))
        return {"chain": named_rows(*ends)} | super().quantiles(probability)

    def _of_chain(self, first: np.ndarray, pairs: np.ndarray) -> dict[Any, np.ndarray]:
        return named_rows(self.model.initial.parameters(first), self.model.transitions.parameters(pairs))

    @property
    def _rows(self) -> tuple:
        return self.model.initial, self.model.transitions

    @property
    def coefficients(self) -> Parameters:
        """Intercepts and coefficients of what covariates drive, by name, in a group of the chain; none without any."""
        named = self._of_chain(*self.point[:2])
        named = {name: each for name, each in named.items() if name not in ("startprob", "transmat")}
        return {"chain": named} if named else {}

    def under_fit(self, reading: SequenceReading, **limits: Any) -> UnderFit:
        """Likelihoods and cells of sequences under the chain, for fit indices."""
        natural, data = self.model.prior.natural(self.point), replace(reading, labels=None).compiled(self.model)
        weight, cells = reading.weight, None
        of_rows = None if weight is None else np.repeat(weight, reading.lengths)
        _, codes, tables, are_all = self.finite_columns(reading.values)
        if are_all:
            sizes = [table.shape[1] for table in tables]
            cells = cells_of_sequences(np.stack(codes, axis=1), sizes, reading.lengths)
        states = self.possible(self.model.smoothed(natural, data))
        posteriors = {"state": states} if self.model.n_components > 1 else {}
        scores = self.model.log_normalizers_of_sequences(natural, data)
        return UnderFit(scores, weight, data.total_weight, posteriors, of_rows, cells)

    def states_ahead(
        self, data: HMMData, last: np.ndarray, n_steps: int, natural: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """States of the last rows of sequences, (n_sequences, n_components), and of the steps after, axis 1 the steps.

        Parameters
        ----------
        data : HMMData
        last : ndarray of shape (n_sequences,)
        n_steps : int
        natural : ndarray of shape (n_cells,)
            Natural parameters that tell the last states of what was seen; the steps after are at the point.
        """
        now = self.possible(self.model.filtered(natural, data), warns=True)[last]
        return now, self.model.states_ahead(natural, data, now, n_steps, self.point)

    def expected_values(self, states: np.ndarray) -> dict[str, np.ndarray]:
        """Expected values of each column given probabilities of states (..., n_components), by name.

        Of a column of categories the probability of each, in the order of `categories_`; of zeros and ones that of a
        one; of counts that share a total the share.
        """
        return self._values(self._means(states))

    def _means(self, states: np.ndarray) -> dict[str, np.ndarray]:
        """Means over states of the expected values of each column, as `expected` of its specification tells them."""
        by_name: dict[str, np.ndarray] = {}
        for group, parameters in zip(self.groups.groups, self.parameters()):
            tables = group.specification.expected(parameters, group.levels)
            by_name |= {name: states @ table for name, table in zip(group.names, tables)}
        return {name: by_name[name] for name in self.groups.names if name in by_name}

    def _values(self, means: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Means in the units of the data: directions, where columns are angles."""
        specifications = {name: group.specification for group in self.groups.groups for name in group.names}
        return {name: specifications[name].value_of_mean(mean) for name, mean in means.items()}

    def forecast(
        self, data: HMMData, last: np.ndarray, n_steps: int, level: float, naturals: np.ndarray, at: np.ndarray | None
    ) -> Forecast:
        """The steps after the end of each sequence.

        Parameters
        ----------
        data : HMMData
        last : ndarray of shape (n_sequences,)
            The last rows of sequences.
        n_steps : int
        level : float
        naturals : ndarray of shape (n_cells, n_draws)
            Draws of natural parameters, over which intervals average; none are needed where no column holds numbers.
        at : ndarray of shape (n_cells,), optional
            Natural parameters at which states are told, and then go on as published; by default they are averaged, too.
        """
        states, expected, moments, parameters = [], [], [], []
        lagged: dict[int, list[Autoregression]] = {
            k: [] for k, each in enumerate(self.groups.groups) if each.specification.lags
        }
        for natural in naturals.T:
            drawn = self.at(natural)
            now, ahead = drawn.states_ahead(data, last, n_steps, natural)
            states.append(ahead)
            expected.append(drawn._means(states[-1]) if at is None else {})
            moments.append(drawn.moments())
            parameters.append(drawn.parameters())
            for k, of_draws in lagged.items():
                of_draws.append(Autoregression.of(drawn, k, data, last, now))
        if at is None:
            probabilities = np.mean(states, axis=0)
            values = self._values({name: np.mean([each[name] for each in expected], axis=0) for name in expected[0]})
        else:
            now, probabilities = self.states_ahead(data, last, n_steps, at)
            values = self.expected_values(probabilities)
        variance: dict[str, np.ndarray] = {}
        for group in groups_of_numbers(self.groups):
            variances = variances_of_columns(states, [each[group.name] for each in moments])
            variance |= dict(zip(group.names, np.moveaxis(variances, -1, 0)))
        lower, upper = self._intervals(states, parameters, moments, values, level)
        for k, of_draws in lagged.items():
            published = None if at is None else Autoregression.of(self, k, data, last, now)
            told = self._told_by_lags(k, of_draws, published, n_steps, level)
            for each, of_columns in zip((values, variance, lower, upper), told):
                each.update(of_columns)
        categories = {name: levels for group in self.groups.groups for name, levels in zip(group.names, group.levels)}
        return Forecast(probabilities, values, variance, lower, upper, level, categories)

    def _intervals(
        self,
        states: list[np.ndarray],
        parameters: list[list[dict[str, np.ndarray]]],
        moments: list[dict[str, tuple[np.ndarray, np.ndarray]]],
        values: dict[str, np.ndarray],
        level: float,
    ) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """Lower and upper ends of intervals of columns, by name, of all but those that hang on their earlier values."""
        lower: dict[str, np.ndarray] = {}
        upper: dict[str, np.ndarray] = {}
        for k, group in enumerate(self.groups.groups):
            if not _has_intervals(group) or group.specification.lags:
                continue
            of_group = [each[k] for each in parameters]
            of_moments = [each[group.name] for each in moments if group.name in each]
            center = np.stack([values[name] for name in group.names], axis=-1)
            ends = ends_of_columns(group.specification, states, of_group, of_moments, center, level)
            for name, low, high in zip(group.names, *np.moveaxis(ends, -1, 1)) if ends is not None else ():
                lower[name], upper[name] = low, high
        return lower, upper

    def _told_by_lags(
        self, k: int, of_draws: list[Autoregression], published: Autoregression | None, n_steps: int, level: float
    ) -> list[dict[str, np.ndarray]]:
        """Means, variances and ends of intervals, by column, of a group whose columns hang on their earlier values."""
        emission, names = of_draws[0].emission, self.groups.groups[k].names
        first, second = (np.mean(each, axis=0) for each in zip(*(one.moments(n_steps) for one in of_draws)))
        mean = first if published is None else published.moments(n_steps)[0]
        rng, n_paths = np.random.default_rng([*self.seed, 2**31 + 2, k]), -(-N_PATHS // len(of_draws))
        paths = np.concatenate([one.paths(n_steps, n_paths, rng) for one in of_draws], axis=2)
        ends = (np.quantile(paths, 0.5 + side * level / 2, axis=2) for side in (-1, 1))
        origin, unit = emission.origin, emission.unit
        told = origin + unit * mean, unit**2 * (second - first**2), *(origin + unit * end for end in ends)
        return [{name: of_columns[..., j] for j, name in enumerate(names)} for of_columns in told]

    def moments(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Means and deviations (n_components, n_columns) of each group of numbers, by its name."""
        parameters = {group.name: of for group, of in zip(self.groups.groups, self.parameters())}
        return {
            group.name: (
                group.specification.means(parameters[group.name]),
                group.specification.deviations(parameters[group.name]),
            )
            for group in groups_of_numbers(self.groups)
        }

    def sample(
        self, lengths: np.ndarray, rng: np.random.Generator, given: list[np.ndarray] | None = None
    ) -> tuple[Any, np.ndarray]:
        """Sequences drawn from the predictive distribution, each at parameters of its own, and their states."""

        def given_of(rows: slice) -> Any:
            return None if given is None else self.groups.as_emission_takes([of_group[rows] for of_group in given])

        if not self.form.density:
            return self.model.sample(self.point, lengths, rng, given_of(slice(None)))
        ends = np.cumsum(lengths).tolist()
        drawn = [
            self.model.sample(self.posterior.sample(rng), [n], rng, given_of(slice(end - n, end)))
            for n, end in zip(lengths.tolist(), ends)
        ]
        rows = [self.groups.as_list(of_sequence) for of_sequence, _ in drawn]
        values = [np.concatenate(of_group) for of_group in zip(*rows)]
        return self.groups.as_emission_takes(values), np.concatenate([states for _, states in drawn])


def groups_of_numbers(groups: ColumnGroups) -> list[Group]:
    """Those whose cells have means and deviations."""
    return [group for group in groups.groups if group.specification.has_moments]


def have_intervals(groups: ColumnGroups) -> bool:
    """Whether forecasts have intervals of any column: of numbers, or of angles."""
    return any(map(_has_intervals, groups.groups))


def _has_intervals(group: Group) -> bool:
    return group.specification.has_moments or group.specification.period is not None


@dataclass(frozen=True, eq=False, repr=False)
class Forecast(ForecastTable):
    """Forecasts of the steps after the end of each sequence, with intervals of the values of columns.

    It prints as a table, and `to_frame` has all of it.

    Parameters
    ----------
    state_probabilities : ndarray of shape (n_sequences, n_steps, n_components)
    expected : dict of str to ndarray
        By column, what it is expected to hold, (n_sequences, n_steps): the mean of measurements, counts and times, the
        probability of a one, the share of a total. For categories the probability of each, in the order of
        `categories_`, (n_sequences, n_steps, n_categories).
    variance : dict of str to ndarray of shape (n_sequences, n_steps)
        By column of numbers, that of the predictive distribution, averaged over draws of the parameters. Angles have
        none.
    lower, upper : dict of str to ndarray of shape (n_sequences, n_steps)
        Ends of intervals of the mass `level`, quantiles of the same distribution; of families that have cumulative
        probabilities, as ours of numbers have. Quantiles of angles are counted from the side opposite to the expected
        direction, so that ends are less than half a turn from it, and may lie beyond -180 or 180 degrees.
    level : float
    categories : dict of str to ndarray
        By column of categories its levels, in the order of their probabilities.
    times : list of DatetimeIndex, PeriodIndex or ndarray, default=None
        The times of the steps of each sequence, in the container of those of X; None where X has no times.
    sequences : ndarray, default=None
        The ids of the sequences, if `sequence_id` was given.
    """

    state_probabilities: np.ndarray
    expected: dict[str, np.ndarray]
    variance: dict[str, np.ndarray]
    lower: dict[str, np.ndarray]
    upper: dict[str, np.ndarray]
    level: float
    categories: dict[str, np.ndarray]
    times: list[Any] | None = None
    sequences: np.ndarray | None = None

    def records(self) -> Iterator[tuple[int, int, str, Any, float, float, float]]:
        """Sequence, step, column, category, what is expected, and ends of its interval; hidden states first."""
        n_sequences, n_steps, _ = self.state_probabilities.shape
        for at in np.ndindex(n_sequences, n_steps):
            place = at[0], at[1] + 1
            for k, probability in enumerate(self.state_probabilities[at].tolist()):
                yield *place, "state", k, probability, np.nan, np.nan
            for name, values in self.expected.items():
                if name in self.categories:
                    for level, probability in zip(self.categories[name].tolist(), values[at].tolist(), strict=True):
                        yield *place, name, level, probability, np.nan, np.nan
                else:
                    ends = (float(of[name][at]) if name in of else np.nan for of in (self.lower, self.upper))
                    yield *place, name, None, float(values[at]), *ends
