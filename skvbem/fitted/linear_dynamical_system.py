"""A linear dynamical system as fitted: its matrices in the units of the data, states, forecasts and draws."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import gammaincinv, ndtr, ndtri, stdtrit

from skvbem._numerics import unpack_symmetric
from skvbem.families import NormalWishart
from skvbem.families.normal_gamma import VARIANCE_FLOOR, NormalPoint
from skvbem.fitted.base import FittedSequences, Intervals, Parameters
from skvbem.fitted.forecasts import ForecastTable, mixture_quantiles
from skvbem.fitted.parameter_tables import ParameterTable
from skvbem.fitted.under_fit import UnderFit
from skvbem.models.linear_dynamical_system.data import LDSData
from skvbem.models.linear_dynamical_system.first_states import FirstStates
from skvbem.models.linear_dynamical_system.model import LinearDynamicalSystem
from skvbem.models.linear_dynamical_system.smoother import Smoother
from skvbem.reading.column_groups import ColumnGroups
from skvbem.reading.inputs import InputReading

# The share of its inverse from which a variance counts as stopped by its floor.
_NEARLY = 1.001


class Matrices(NamedTuple):
    """The matrices of a linear dynamical system in the units of the data.

    Parameters
    ----------
    transition : ndarray of shape (k, k)
        A.
    input : ndarray of shape (k, n_inputs)
        B.
    loadings : ndarray of shape (n_columns, k)
        C.
    offset : ndarray of shape (n_columns,)
    output_input : ndarray of shape (n_columns, n_output_inputs)
        D.
    noise_variance : ndarray of shape (n_columns,)
    initial_mean, initial_covariance : ndarray of shape (k,), (k, k)
        Of first states.
    """

    transition: np.ndarray
    input: np.ndarray
    loadings: np.ndarray
    offset: np.ndarray
    output_input: np.ndarray
    noise_variance: np.ndarray
    initial_mean: np.ndarray
    initial_covariance: np.ndarray

    def output(self, states: np.ndarray, output_inputs: np.ndarray) -> np.ndarray:
        """Expected values of columns at states (..., k), (..., n_columns)."""
        return self.offset + states @ self.loadings.T + output_inputs @ self.output_input.T

    def output_variance(self, covariance: np.ndarray) -> np.ndarray:
        """Variances of what columns hold where states have covariances (..., k, k), (..., n_columns)."""
        return self.noise_variance + np.einsum("sk,...kl,sl->...s", self.loadings, covariance, self.loadings)


class States(NamedTuple):
    """Means (n_rows, k) and covariances (n_rows, k, k) of the states of rows as they were given."""

    mean: np.ndarray
    covariance: np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class LDSForecast(ForecastTable):
    """Forecasts of the steps after the end of each sequence, in the units of the data.

    It prints as a table, and `to_frame` has all of it.

    Parameters
    ----------
    mean, variance : ndarray of shape (n_sequences, n_steps, n_columns)
        Moments of the predictive distribution, averaged over draws of the parameters.
    lower, upper : ndarray of shape (n_sequences, n_steps, n_columns)
        Ends of intervals of the mass `level`, quantiles of the same distribution.
    level : float
    explosive_share : float
        The share of drawn parameters under which states grow without limit.
    names : tuple of str
        Names of the columns.
    """

    mean: np.ndarray
    variance: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    level: float
    explosive_share: float
    names: tuple[str, ...]

    def records(self) -> Iterator[tuple[int, int, str, Any, float, float, float]]:
        """Sequence, step, column, None for a category, what is expected, and ends of its interval."""
        for sequence, step, j in np.ndindex(*self.mean.shape):
            each = (float(of[sequence, step, j]) for of in (self.mean, self.lower, self.upper))
            yield sequence, step + 1, self.names[j], None, *each


@dataclass(frozen=True, eq=False)
class FittedLDS(FittedSequences):
    """A linear dynamical system as fitted: its columns, its prior, and the statistics of the data."""

    sweep_cost: ClassVar[float] = 200.0  # a pass along the time with a small matrix at each step
    response_cost: ClassVar[float] = 3.0

    model: LinearDynamicalSystem

    @property
    def groups(self) -> ColumnGroups:
        """Columns as they are read."""
        return self.columns

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return list(self.columns.names)

    def continues(self, columns: ColumnGroups, model: LinearDynamicalSystem) -> bool:
        """True if another model has as many states, inputs and groups of columns, and columns read in the same way."""
        alike = self.model.n_states == model.n_states and self.model.n_cells == model.n_cells
        return alike and self.columns.meaning() == columns.meaning()

    def _found_point(self) -> tuple:
        """The point found (MAP, ML), or posterior means of coefficients and precisions."""
        return self.form.point_of(self.model.prior, self.statistics)

    @property
    def matrices(self) -> Matrices:
        """The matrices at the published point."""
        return self.matrices_at(self.point)

    def matrices_at(self, point: tuple) -> Matrices:
        """The matrices at a point, in the units of the data."""
        model, k = self.model, self.model.n_states
        of_states, of_columns, *learned = point
        first = model.first
        if learned:
            first = FirstStates(learned[0].mean[0], learned[0].precision[0])
        assert first is not None  # it is learned, or known
        unit = model.unit[:, None]
        c = unit * of_columns.coefficients
        return Matrices(
            of_states.coefficients[:, :k],
            of_states.coefficients[:, k:],
            c[:, :k],
            model.origin + c[:, k],
            c[:, k + 1 :],
            model.unit**2 / of_columns.precision,
            first.mean,
            first.covariance,
        )

    @property
    def standardized_loadings(self) -> np.ndarray:
        """Loadings of columns of variance 1 on states of variance 1 over the steps seen, (n_columns, k)."""
        emission, k = self.model.emission, self.model.n_states
        packed, *_ = emission.split(self.model.prior.split(self.statistics)[1])
        moments = unpack_symmetric(packed, emission.n_regressors)
        n = moments[:, k, k, None]  # the regressor after the states is 1
        squares = np.einsum("gkk->gk", moments)[:, :k] / n - (moments[:, :k, k] / n) ** 2
        return self.matrices.loadings * np.sqrt(squares[emission.precision_of]) / self.model.unit[:, None]

    @property
    def uniquenesses(self) -> np.ndarray:
        """Variances of the noise of columns of variance 1, (n_columns,)."""
        return self.matrices.noise_variance / self.model.unit**2

    # Reports ----------------------------------------------------------------------------------------------------------

    def named_parameters(self, point: tuple) -> Parameters:
        """Matrices at a point by name, those of the states and those of the columns."""
        return self._by_name(self.matrices_at(point))

    def _by_name(self, matrices: Matrices) -> Parameters:
        of_columns = ("loadings", "offset", "output_input", "noise_variance")
        named = matrices._asdict()
        groups = {
            "states": {name: named[name] for name in ("transition", "input")},
            "columns": {name: named[name] for name in of_columns},
        }
        if self.model.first is None:
            variance = np.diagonal(matrices.initial_covariance)
            groups["first states"] = {"mean": matrices.initial_mean, "variance": variance}
        return groups

    def quantiles(self, probability: float) -> Parameters:
        """Quantiles of q(theta): of normal rows of A and B, of Student t rows of loadings, of Gamma precisions.

        Means of first states are Student t, their variances have inverse Gamma distributions.
        """
        dynamics, emission, *learned = self.posterior.blocks
        spread = np.sqrt(np.diagonal(dynamics.covariance[0]))
        of_states = dynamics.mean + ndtri(probability) * spread
        a, b = emission.shape, emission.rate
        variance = np.einsum("gii->gi", emission.covariance)[emission.precision_of]
        of_columns = emission.mean + stdtrit(2 * a, probability)[:, None] * np.sqrt((b / a)[:, None] * variance)
        precision = gammaincinv(a, 1 - probability) / b  # the variance is the inverse
        point = (type(self.point[0])(of_states, self.point[0].precision), type(self.point[1])(of_columns, precision))
        of_first = (quantiles_of_first_states(block, probability) for block in learned)
        return self._by_name(self.matrices_at((*point, *of_first)))

    def report(self, intervals: Intervals | None) -> list[ParameterTable]:
        """Tables of transitions of each state, then of loadings of each column."""
        matrices, k = self.matrices, self.model.n_states
        states = [f"state {j}" for j in range(k)]
        inputs = [f"input {j}" for j in range(matrices.input.shape[1])]
        outputs = [f"output input {j}" for j in range(matrices.output_input.shape[1])]
        of_states = ("transition", "input")
        of_columns = ("loadings", "offset", "output_input", "noise_variance")
        parts = self.named_parameters(self.point)

        def table(title, rows, columns, group, names):
            def joined(values):
                return np.column_stack([values[name] for name in names])

            ends = None
            if intervals is not None:
                sides = ({name: intervals[group][name][side] for name in names} for side in (0, 1))
                ends = tuple(joined(side) for side in sides)
            return ParameterTable(title, rows, columns, joined(parts[group]), ends)

        of_first = []
        if self.model.first is None:
            of_first.append(table("first states", states, ["mean", "variance"], "first states", ("mean", "variance")))
        return [
            table("states", states, [*states, *inputs], "states", of_states),
            table("columns", self.names, [*states, "offset", *outputs, "noise variance"], "columns", of_columns),
            *of_first,
        ]

    def at_floor(self) -> list[str]:
        """Columns whose noise the floor of maximum likelihood has stopped."""
        variance = 1 / self.point[1].precision
        return [name for name, value in zip(self.names, variance) if value <= _NEARLY * VARIANCE_FLOOR]

    # States -----------------------------------------------------------------------------------------------------------

    def under_fit(self, reading: InputReading, **limits: Any) -> UnderFit:
        """Likelihoods of sequences under the system, for fit indices; its states are no categories."""
        data = reading.compiled(self.model)
        scores = self.model.log_normalizers_of_sequences(self.model.prior.natural(self.point), data)
        return UnderFit(scores, reading.weight, data.total_weight, {})

    def smoothed(self, data: LDSData, natural: np.ndarray) -> States:
        """The states of all rows given their sequences, those after the last observed step among them."""
        factored, k = self.model.smoothed(natural, data), self.model.n_states
        mean, covariance = self._empty(data)
        mean[data.rows], covariance[data.rows] = factored.means(), factored.marginal[factored.row_of_shape]
        return self._gone_on(data, natural, States(mean.reshape(-1, k), covariance))

    def filtered(self, data: LDSData, natural: np.ndarray) -> States:
        """The states of all rows given their sequences up to each of them."""
        potentials, k = self.model.potentials(natural), self.model.n_states
        smoother = Smoother(potentials, self.model.first_states(natural), data)
        factored = smoother.factored()
        squares, later = potentials.squares, np.zeros(len(data))
        later[data.before] = 1.0
        # what a step says of the next one is taken out of its precision, and of its linear term
        inverse = factored.inverse[factored.slot[factored.row_of_shape]]
        gain = factored.gain[factored.slot[factored.row_of_shape]]
        precision = np.linalg.inv(inverse) - later[:, None, None] * squares[:k, :k]
        linear = smoother.linear()[:, :k]
        for a, b in zip(data.starts, data.ends):
            for t in range(a + 1, b):
                linear[t] += gain[t - 1].T @ linear[t - 1]
        before = data.before
        linear[before] += data.inputs[before + 1] @ squares[:k, k:].T
        mean, covariance = self._empty(data)
        covariance[data.rows] = np.linalg.inv(precision)
        mean[data.rows] = np.einsum("tij,tj->ti", covariance[data.rows], linear)
        return self._gone_on(data, natural, States(mean, covariance))

    def _empty(self, data: LDSData) -> tuple[np.ndarray, np.ndarray]:
        n, k = int(data.lengths_given.sum()), self.model.n_states
        return np.zeros((n, k)), np.zeros((n, k, k))

    def _gone_on(self, data: LDSData, natural: np.ndarray, states: States) -> States:
        """States of steps after the last observed one filled in by what moves them."""
        potentials, first = self.model.potentials(natural), self.model.first_states(natural)
        given, inputs = np.concatenate([[0], np.cumsum(data.lengths_given)]), data.inputs_given
        assert inputs is not None  # but of a part of the data
        for n, (a, b) in enumerate(zip(data.starts, data.ends)):
            for t in range(given[n] + (b - a), given[n + 1]):
                if t == given[n]:
                    states.mean[t], states.covariance[t] = first.mean, first.covariance
                    continue
                moved = self._moved(potentials, states.mean[t - 1], states.covariance[t - 1], inputs[t])
                states.mean[t], states.covariance[t] = moved
        return states

    def _moved(self, potentials: Any, mean: np.ndarray, covariance: np.ndarray, u: np.ndarray) -> tuple:
        """A state one step on."""
        k = self.model.n_states
        a, b = potentials.transition[:, :k], potentials.transition[:, k:]
        return a @ mean + b @ u, a @ covariance @ a.T + np.eye(k)

    # Predictions ------------------------------------------------------------------------------------------------------

    def draws_to_average(self, predictive: str, n_draws: int) -> Iterator[np.ndarray]:
        """Natural parameters that predictions average over: draws, or the published point alone."""
        if predictive != "average" or not self.form.density:
            yield self.natural("mean")
            return
        yield from self.draws(n_draws, self.rng_of_draws).T

    def forecast(
        self,
        data: LDSData,
        n_steps: int,
        future: tuple[np.ndarray, np.ndarray],
        level: float,
        naturals: list[np.ndarray],
    ) -> LDSForecast:
        """The steps after the end of each sequence, averaged over parameters.

        Parameters
        ----------
        data : LDSData
        n_steps : int
        future : tuple of ndarray
            Inputs (n_sequences, n_steps, n_inputs) of the states and of the measurements.
        level : float
        naturals : list of ndarray
            Natural parameters (n_cells,) of each draw.
        """
        means, variances, n_explosive = [], [], 0
        last = np.cumsum(data.lengths_given) - 1
        for natural in naturals:
            states = self.smoothed(data, natural)
            matrices = self.matrices_at(self.model.prior.from_natural(natural))
            n_explosive += bool(np.abs(np.linalg.eigvals(matrices.transition)).max() > 1)
            mean, covariance = states.mean[last], states.covariance[last]
            of_mean, of_variance = [], []
            for step in range(n_steps):
                mean = mean @ matrices.transition.T + future[0][:, step] @ matrices.input.T
                covariance = matrices.transition @ covariance @ matrices.transition.T + np.eye(self.model.n_states)
                of_mean.append(matrices.output(mean, future[1][:, step]))
                of_variance.append(matrices.output_variance(covariance))
            means.append(np.stack(of_mean, axis=1))
            variances.append(np.stack(of_variance, axis=1))
        mean, variance = np.stack(means), np.stack(variances)
        deviation, ends = np.sqrt(variance), (0.5 - level / 2, 0.5 + level / 2)

        def cumulative(values: np.ndarray) -> np.ndarray:
            return np.mean([ndtr((values - of_mean) / of_all) for of_mean, of_all in zip(mean, deviation)], axis=0)

        lower, upper = mixture_quantiles(cumulative, ends, mean, deviation, mean.shape[1:])
        return LDSForecast(
            mean.mean(axis=0),
            variance.mean(axis=0) + mean.var(axis=0),
            lower,
            upper,
            float(level),
            n_explosive / len(naturals),
            tuple(self.columns.names),
        )

    def imputed(self, data: LDSData, output_inputs: np.ndarray, naturals: list[np.ndarray]) -> tuple:
        """Expected values and variances of all cells given their sequences, averaged over parameters."""
        means, variances = [], []
        for natural in naturals:
            states = self.smoothed(data, natural)
            matrices = self.matrices_at(self.model.prior.from_natural(natural))
            means.append(matrices.output(states.mean, output_inputs))
            variances.append(matrices.output_variance(states.covariance))
        return np.mean(means, axis=0), np.mean(variances, axis=0) + np.var(means, axis=0)

    def drawn_cells(self, reading: Any, rng: np.random.Generator) -> np.ndarray:
        """Rows with missing cells drawn given their sequences: parameters first, the same for all sequences.

        Sequences are drawn, and smoothed with the same cells missing: the missing ones differ from what is expected
        then as those at hand do (Matheron's rule).
        """
        point, values = self.drawn_point(rng), reading.values[0]
        natural = [self.model.prior.natural(point)]

        def expected(rows: np.ndarray) -> np.ndarray:
            data = replace(reading, values=[rows]).compiled(self.model)
            return self.imputed(data, reading.output_inputs, natural)[0]

        drawn = self.drawn_like(point, reading, rng)
        like = np.where(np.isnan(values), np.nan, drawn)
        return np.where(np.isnan(values), expected(values) - expected(like) + drawn, values)

    def sample(
        self, lengths: np.ndarray, inputs: np.ndarray, output_inputs: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Rows of sequences drawn from the predictive distribution, each at parameters of its own, and their states."""
        rows, states, at = [], [], 0
        for n in lengths.tolist():
            point = self.posterior.sample(rng) if self.form.density else self.point
            here = slice(at, at + n)
            drawn = drawn_sequence(self.matrices_at(point), inputs[here], output_inputs[here], rng)
            rows.append(drawn[0])
            states.append(drawn[1])
            at += n
        return np.concatenate(rows), np.concatenate(states)

    def drawn_like(self, point: tuple, like: Any, rng: np.random.Generator) -> np.ndarray:
        """Rows of sequences as long as those of a reading, with its inputs, drawn at a point."""
        matrices, parts, end = self.matrices_at(point), [], 0
        for n in like.lengths.tolist():
            rows = slice(end, end + n)
            parts.append(drawn_sequence(matrices, like.inputs[rows], like.output_inputs[rows], rng)[0])
            end += n
        return np.concatenate(parts)


def quantiles_of_first_states(posterior: NormalWishart, probability: float) -> NormalPoint:
    """Quantiles of each mean and of each variance of first states; what is not a variance is left out."""
    k, (weight, freedom) = posterior.n_features, posterior.coordinates[:2]
    freedom = freedom - k + 1
    spread = np.diagonal(np.linalg.inv(posterior.mode().precision[0])) * posterior.coordinates[1]
    mean = posterior.mode().mean[0] + stdtrit(freedom, probability) * np.sqrt(spread / (weight * freedom))
    variance = spread / (2 * gammaincinv(freedom / 2, 1 - probability))
    return NormalPoint(mean[None], np.diag(1 / variance)[None])


def drawn_sequence(
    matrices: Matrices,
    inputs: np.ndarray,
    output_inputs: np.ndarray,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Rows of one sequence drawn with known matrices, in the units of the data, and its states."""
    n, k = len(inputs), len(matrices.transition)
    x = rng.standard_normal((n, k))
    x[0] = matrices.initial_mean + np.linalg.cholesky(matrices.initial_covariance) @ x[0]
    for t in range(1, n):
        x[t] += matrices.transition @ x[t - 1] + matrices.input @ inputs[t]
    noise = rng.standard_normal((n, len(matrices.offset))) * np.sqrt(matrices.noise_variance)
    return matrices.output(x, output_inputs) + noise, x
