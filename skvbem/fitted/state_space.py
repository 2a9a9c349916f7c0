"""Linear systems of normal states as fitted, whatever moves the states: states, forecasts, fills and draws."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import ndtr

from skvbem.fitted.base import FittedSequences
from skvbem.fitted.forecasts import ForecastTable, mixture_quantiles
from skvbem.fitted.under_fit import UnderFit
from skvbem.models.linear_dynamical_system.data import LDSData
from skvbem.reading.column_groups import ColumnGroups
from skvbem.reading.inputs import InputReading


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
    times : list of DatetimeIndex, PeriodIndex or ndarray, default=None
        The times of the steps of each sequence, in the container of those of X; None where X has no times.
    sequences : ndarray, default=None
        The ids of the sequences, if `sequence_id` was given.
    """

    mean: np.ndarray
    variance: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    level: float
    explosive_share: float
    names: tuple[str, ...]
    times: list[Any] | None = None
    sequences: np.ndarray | None = None

    def records(self) -> Iterator[tuple[int, int, str, Any, float, float, float]]:
        """Sequence, step, column, None for a category, what is expected, and ends of its interval."""
        for sequence, step, j in np.ndindex(*self.mean.shape):
            each = (float(of[sequence, step, j]) for of in (self.mean, self.lower, self.upper))
            yield sequence, step + 1, self.names[j], None, *each


@dataclass(frozen=True, eq=False)
class FittedStateSpace(FittedSequences):
    """A linear system of normal states as fitted: its columns, its prior, and the statistics of the data."""

    sweep_cost: ClassVar[float] = 200.0  # a pass along the time with a small matrix at each step
    response_cost: ClassVar[float] = 3.0

    @property
    def groups(self) -> ColumnGroups:
        """Columns as they are read."""
        return self.columns

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return list(self.columns.names)

    @property
    def matrices(self) -> Matrices:
        """The matrices at the published point."""
        return self.matrices_at(self.point)

    @abstractmethod
    def matrices_at(self, point: tuple) -> Matrices:
        """The matrices at a point, in the units of the data."""

    @abstractmethod
    def state_variance_at(self, point: tuple) -> np.ndarray:
        """Variances of the noises that move states at a point, (k,), in the units that states are published in."""

    def grows(self, matrices: Matrices) -> bool:
        """True if states grow without limit."""
        return bool(np.abs(np.linalg.eigvals(matrices.transition)).max() > 1)

    @abstractmethod
    def smoothed(self, data: LDSData, natural: np.ndarray) -> States:
        """The states of all rows given their sequences, those after the last observed step among them."""

    @abstractmethod
    def filtered(self, data: LDSData, natural: np.ndarray) -> States:
        """The states of all rows given their sequences up to each of them."""

    def _found_point(self) -> tuple:
        """The point found (MAP, ML), or posterior means of coefficients and precisions."""
        return self.form.point_of(self.model.prior, self.statistics)

    def under_fit(self, reading: InputReading, **limits: Any) -> UnderFit:
        """Likelihoods of sequences under the system, for fit indices; its states are no categories."""
        data = reading.compiled(self.model)
        scores = self.model.log_normalizers_of_sequences(self.model.prior.natural(self.point), data)
        return UnderFit(scores, reading.weight, data.total_weight, {})

    def _gone_on(self, data: LDSData, natural: np.ndarray, mean: np.ndarray, covariance: np.ndarray) -> States:
        """States of all rows as they were given, those after the rows of the data moved on from the last of these."""
        n, k, point = int(data.lengths_given.sum()), self.model.n_states, self.model.prior.from_natural(natural)
        states = States(np.zeros((n, k)), np.zeros((n, k, k)))
        states.mean[data.rows], states.covariance[data.rows] = mean, covariance
        matrices, variance = self.matrices_at(point), np.diag(self.state_variance_at(point))
        given, inputs = np.concatenate([[0], np.cumsum(data.lengths_given)]), data.inputs_given
        assert inputs is not None  # but of a part of the data
        for sequence, (a, b) in enumerate(zip(data.starts, data.ends)):
            for t in range(given[sequence] + (b - a), given[sequence + 1]):
                if t == given[sequence]:
                    states.mean[t], states.covariance[t] = matrices.initial_mean, matrices.initial_covariance
                    continue
                states.mean[t] = matrices.transition @ states.mean[t - 1] + matrices.input @ inputs[t]
                states.covariance[t] = matrices.transition @ states.covariance[t - 1] @ matrices.transition.T + variance
        return states

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
            states, point = self.smoothed(data, natural), self.model.prior.from_natural(natural)
            matrices, variance = self.matrices_at(point), np.diag(self.state_variance_at(point))
            n_explosive += self.grows(matrices)
            mean, covariance = states.mean[last], states.covariance[last]
            of_mean, of_variance = [], []
            for step in range(n_steps):
                mean = mean @ matrices.transition.T + future[0][:, step] @ matrices.input.T
                covariance = matrices.transition @ covariance @ matrices.transition.T + variance
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
            drawn = drawn_sequence(
                self.matrices_at(point), self.state_variance_at(point), inputs[here], output_inputs[here], rng
            )
            rows.append(drawn[0])
            states.append(drawn[1])
            at += n
        return np.concatenate(rows), np.concatenate(states)

    def drawn_like(self, point: tuple, like: Any, rng: np.random.Generator) -> np.ndarray:
        """Rows of sequences as long as those of a reading, with its inputs, drawn at a point."""
        matrices, variance, parts, end = self.matrices_at(point), self.state_variance_at(point), [], 0
        for n in like.lengths.tolist():
            rows = slice(end, end + n)
            parts.append(drawn_sequence(matrices, variance, like.inputs[rows], like.output_inputs[rows], rng)[0])
            end += n
        return np.concatenate(parts)


def drawn_sequence(
    matrices: Matrices,
    variance: np.ndarray,
    inputs: np.ndarray,
    output_inputs: np.ndarray,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Rows of one sequence drawn with known matrices and variances of noises of states, and its states."""
    n, k = len(inputs), len(matrices.transition)
    x = rng.standard_normal((n, k))
    x[0] = matrices.initial_mean + np.linalg.cholesky(matrices.initial_covariance) @ x[0]
    x[1:] *= np.sqrt(variance)
    for t in range(1, n):
        x[t] += matrices.transition @ x[t - 1] + matrices.input @ inputs[t]
    noise = rng.standard_normal((n, len(matrices.offset))) * np.sqrt(matrices.noise_variance)
    return matrices.output(x, output_inputs) + noise, x
