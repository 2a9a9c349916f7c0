"""Forecasts of sequences whose columns depend on their earlier values: exact moments, and paths drawn.

Given parameters, :math:`v_t = (1, y_t, y_{t-1}, \\ldots)` moves by a matrix of the state, so that
:math:`S_k(t) = E[v_t v_t^\\top 1(s_t = k)]` follows from those of the step before, without a sum over paths.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from skvbem.emissions.base import parts_of
from skvbem.emissions.regression import RegressionEmission

#: Paths drawn for the intervals of a forecast, of all draws of parameters together.
N_PATHS = 4000


@dataclass(frozen=True, eq=False)
class Autoregression:
    """A group of columns that hang on their earlier values, at given parameters, after the ends of sequences.

    Parameters
    ----------
    emission : RegressionEmission
    transmat : ndarray of shape (n_components, n_components)
    coefficients : ndarray of shape (n_components, d, n_regressors)
        In the emission's units.
    variance : ndarray of shape (n_components, d)
        Of the noise, in these units.
    filtered : ndarray of shape (n_sequences, n_components)
        Probabilities of the last states.
    before : ndarray of shape (n_sequences, n_lags * d)
        The last values, the very last first, in these units.
    """

    emission: RegressionEmission
    transmat: np.ndarray
    coefficients: np.ndarray
    variance: np.ndarray
    filtered: np.ndarray
    before: np.ndarray

    @classmethod
    def of(cls, fitted: Any, k: int, data: Any, last: np.ndarray, filtered: np.ndarray) -> Self:
        """The group of number k of a fitted model, after the last rows of sequences.

        Raises
        ------
        ValueError
            If a value is missing that what follows hangs on.
        """
        emission: Any = parts_of(fitted.emission)[k]
        several = emission is not fitted.emission
        point = fitted.point[-1][k] if several else fitted.point[-1]
        values = (data.table.parts[k] if several else data.table).values[:, : emission.n_columns]
        rows = last[:, None] - np.arange(emission.n_lags)
        before = ((values - emission.origin) / emission.unit)[np.maximum(rows, 0)]
        before[rows < data.starts[:-1, None]] = np.nan
        if np.isnan(before).any():
            sequence = int(np.isnan(before).any(axis=(1, 2)).argmax())
            raise ValueError(
                f"Sequence {sequence} of X lacks one of its last {emission.n_lags} rows, or a cell there. The next "
                "steps depend on these (lags): end the sequence at its last observed row."
            )
        shape = (len(fitted.transmat), emission.n_columns)
        coefficients = point.coefficients.reshape(*shape, -1)
        variance = 1 / point.precision.reshape(shape)
        return cls(emission, fitted.transmat, coefficients, variance, filtered, before.reshape(len(before), -1))

    def moments(self, n_steps: int) -> tuple[np.ndarray, np.ndarray]:
        """Means and second moments about 0 of the steps to come, (n_sequences, n_steps, d), in units."""
        d, size = self.emission.n_columns, 1 + self.before.shape[1]
        now = np.concatenate([np.ones((len(self.before), 1)), self.before], axis=1)
        squares = self.filtered[:, :, None, None] * (now[:, None, :, None] * now[:, None, None, :])
        move = np.zeros((len(self.transmat), size, size))
        move[:, 0, 0] = 1.0
        move[:, 1 : 1 + d, 1 - self.emission.intercept :] = self.coefficients
        move[:, 1 + d :, 1 : size - d] = np.eye(size - 1 - d)
        ahead, first, second = np.arange(1, 1 + d), [], []
        for _ in range(n_steps):
            squares = np.einsum("jk,njab->nkab", self.transmat, squares)
            probability = squares[:, :, 0, 0]
            squares = move @ squares @ move.swapaxes(-1, -2)
            squares[:, :, ahead, ahead] += probability[:, :, None] * self.variance
            first.append(squares[:, :, 0, ahead].sum(axis=1))
            second.append(squares[:, :, ahead, ahead].sum(axis=1))
        return np.stack(first, axis=1), np.stack(second, axis=1)

    def paths(self, n_steps: int, n_paths: int, rng: np.random.Generator) -> np.ndarray:
        """Values drawn, (n_sequences, n_steps, n_paths, d), in units."""
        d = self.emission.n_columns
        shape = (len(self.before), n_paths)
        ends = np.cumsum(self.transmat, axis=1)
        states = (rng.random(shape)[..., None] > np.cumsum(self.filtered, axis=1)[:, None, :-1]).sum(axis=-1)
        before = np.broadcast_to(self.before[:, None], (*shape, self.before.shape[1]))
        one = np.ones((*shape, int(self.emission.intercept)))
        steps = []
        for _ in range(n_steps):
            states = (rng.random(shape)[..., None] > ends[states][..., :-1]).sum(axis=-1)
            means = np.einsum("npjr,npr->npj", self.coefficients[states], np.concatenate([one, before], axis=-1))
            values = means + np.sqrt(self.variance[states]) * rng.standard_normal((*shape, d))
            before = np.concatenate([values, before[..., :-d]], axis=-1)
            steps.append(values)
        return np.stack(steps, axis=1)
