r"""Regressions at natural parameters, and cells of rows, as filters take them.

Learned rows of A are regressions of states on states before.

Given expected natural parameters a datum y of a row with regressors r has the expected log density

.. math:: \langle\ln N(y \mid c^\top r, 1/\rho)\rangle = \ln N(y \mid \bar c^\top r, 1/\langle\rho\rangle)
          + \tfrac12 (\langle\ln\rho\rangle - \ln\langle\rho\rangle) - \tfrac12 r^\top \Lambda^{-1} r, \qquad
          \bar c = \langle\rho c\rangle / \langle\rho\rangle, \quad
          \Lambda^{-1} = \langle\rho c c^\top\rangle - \langle\rho\rangle \bar c \bar c^\top.

Where r are hidden states, the last term is the log density of measurements 0 of :math:`L^\top r` with noise of variance
1, but for their constants, where :math:`\Lambda^{-1} = L L^\top`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from skvbem._numerics import LOG_2PI, pairings, unpack_symmetric
from skvbem.families import Regression
from skvbem.models.linear_dynamical_system.data import LDSData
from skvbem.models.structural.design import Design

# The share of squares of coefficients that how unsure they are is beside, where this is rounding: that of points.
_ROUNDING = 1e-13


@dataclass(frozen=True, eq=False)
class RowsAt:
    """The rows of a regression at natural parameters of several lanes.

    Parameters
    ----------
    coefficients : ndarray of shape (n_lanes, n_rows, n_regressors)
    variance : ndarray of shape (n_lanes, n_rows)
        The inverse of expected precisions.
    of_datum : ndarray of shape (n_lanes, n_rows)
        What each datum has beside the log density at these and without the spread, nats.
    spread : ndarray of shape (n_lanes, n_rows, n_regressors, n_regressors)
        Covariances of coefficients in units of the noise.
    """

    coefficients: np.ndarray
    variance: np.ndarray
    of_datum: np.ndarray
    spread: np.ndarray

    @classmethod
    def of(cls, regression: Regression, natural: np.ndarray) -> Self:
        """A regression whose rows have precision matrices and noises of their own, at (n_cells, n_lanes)."""
        d = regression.n_regressors
        packed, total, count, square = regression.split(natural)
        rho = -2 * square
        coefficients = total / rho[..., None]
        squares = -2 * unpack_symmetric(packed / pairings(d), d)
        spread = squares - rho[..., None, None] * coefficients[..., :, None] * coefficients[..., None, :]
        return cls(coefficients, 1 / rho, count - 0.5 * np.log(rho) + 0.5 * LOG_2PI, spread)

    @classmethod
    def none(cls, n_lanes: int) -> Self:
        """No rows."""
        return cls(*(np.zeros((n_lanes, *(0,) * n_axes)) for n_axes in (2, 1, 1, 3)))

    @property
    def roots(self) -> np.ndarray | None:
        """Rows of L', (n_lanes, n_rows * n_regressors, n_regressors); None of points, which have no spread."""
        if not self.spread.size:
            return None
        squares = self.coefficients**2 / self.variance[..., None]
        if (np.abs(self.spread) <= _ROUNDING * (squares.max(axis=-1)[..., None, None] + 1)).all():
            return None
        size, axes = np.linalg.eigh(self.spread)
        roots = np.sqrt(np.maximum(size, 0.0))[..., None] * axes.swapaxes(-1, -2)
        return np.ascontiguousarray(roots.reshape(len(roots), -1, roots.shape[-1]))


def with_less_noise(regression: Regression, natural: np.ndarray, row: int, share: float) -> None:
    """Multiply the variance of the noise of a row by a share, in natural parameters (n_cells,), in place."""
    packed, total, count, square = regression.split(np.arange(len(natural)))
    natural[np.concatenate([packed[row], total[row], square[row : row + 1]])] /= share
    natural[count[row]] -= 0.5 * np.log(share)


@dataclass(frozen=True, eq=False)
class Cells:
    """Measurements of rows, and what they are of states, of several lanes.

    Parameters
    ----------
    pattern, patterns : ndarray of int64, shape (n_rows,), and of uint8, shape (n_patterns, n_measured)
        Which cells each row has.
    measured : ndarray of shape (n_rows, n_measured)
    readings : tuple of ndarray
        Ends, columns and values (n_lanes, n_values) of sparse rows: what cells are of states.
    effects, variance : ndarray of shape (n_lanes, n_measured, n_output_inputs), (n_lanes, n_measured)
    n_zeros : int
        Measurements of 0 that each step has which follows another.
    """

    pattern: np.ndarray
    patterns: np.ndarray
    measured: np.ndarray
    readings: tuple[np.ndarray, np.ndarray, np.ndarray]
    effects: np.ndarray
    variance: np.ndarray
    n_zeros: int

    @classmethod
    def of(cls, design: Design, data: LDSData, columns: RowsAt, roots: np.ndarray | None) -> Self:
        """Cells of data; of roots of spreads (n_lanes, n_zeros, order), cells of 0."""
        patterns, n_lanes = np.ascontiguousarray(data.patterns).view(np.uint8), len(columns.variance)
        effects, variance = (np.ascontiguousarray(x) for x in (columns.coefficients, columns.variance))
        if roots is None:
            ends, at, values = design.sparse_readings
            of_lanes = np.repeat(values[None], n_lanes, axis=0)
            return cls(data.pattern, patterns, data.measured, (ends, at, of_lanes), effects, variance, 0)
        n = roots.shape[1]
        ends, at, values = design.sparse_readings_and_lags
        of_lanes = np.repeat(values[None], n_lanes, axis=0)
        of_lanes[:, -n * design.order :] = roots.reshape(n_lanes, -1)
        follows = np.ones(len(data), dtype=np.int64)
        follows[data.first_rows] = 0
        both = [np.pad(patterns, ((0, 0), (0, n)), constant_values=value) for value in (0, 1)]
        return cls(
            data.pattern + len(patterns) * follows,
            np.concatenate(both),
            np.pad(np.ascontiguousarray(data.measured), ((0, 0), (0, n))),
            (ends, at, of_lanes),
            np.pad(effects, ((0, 0), (0, n), (0, 0))),
            np.pad(variance, ((0, 0), (0, n)), constant_values=1.0),
            n,
        )

    def constants(self, data: LDSData) -> np.ndarray:
        """Nats that cells of 0 take too much from log densities of sequences, (n_sequences,)."""
        return 0.5 * LOG_2PI * self.n_zeros * np.maximum(np.diff(data.starts) - 1, 0)
