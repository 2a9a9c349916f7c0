r"""Potentials of the states of a linear dynamical system: blocks of their precision, residuals.

Natural parameters of a row of coefficients c with precision of noise :math:`\rho` are :math:`\langle\rho c\rangle` and
:math:`-\tfrac12\langle\rho c c^\top\rangle`. The latter is :math:`-\tfrac12(\bar\rho\mu\mu^\top + \Lambda^{-1})`: with
:math:`\mu = \langle\rho c\rangle / \bar\rho` an exponent is minus a sum of squares,

.. math:: \langle\ln p(y \mid r)\rangle = \tfrac12\langle\ln\rho\rangle - \tfrac12\ln 2\pi
          - \tfrac12\bar\rho (y - \mu^\top r)^2 - \tfrac12 r^\top \Lambda^{-1} r,

in which nothing cancels, however small the noise is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from skvbem._numerics import pairings, unpack_symmetric
from skvbem.families import Regression

# Of what is a difference of two matrices, the share of these that is rounding.
_ROUNDING = 16 * np.finfo(float).eps


@dataclass(frozen=True, eq=False)
class Potentials:
    """Potentials of states at natural parameters: of one lane, or of several along a first axis.

    Parameters
    ----------
    n_states : int
        k.
    transition : ndarray of shape (k, k + n_inputs)
        Means M of the rows of [A B].
    transition_spread : ndarray of shape (k + n_inputs, k + n_inputs)
        What the expectation of M' M has beyond that of the means.
    output : ndarray of shape (n_columns, k + n_output_inputs)
        Means of the rows of [C D].
    output_spread : ndarray of shape (n_columns, k + n_output_inputs, k + n_output_inputs)
        Covariances of these rows in units of the noise.
    precision : ndarray of shape (n_columns,)
        Expected precisions of the noise.
    constant : ndarray of shape (n_columns,)
        What a cell adds to the log density besides squares, nats, in the unit of the model.
    """

    n_states: int
    transition: np.ndarray
    transition_spread: np.ndarray
    output: np.ndarray
    output_spread: np.ndarray
    precision: np.ndarray
    constant: np.ndarray

    @classmethod
    def of(cls, dynamics: Regression, of_dynamics: np.ndarray, emission: Regression, of_emission: np.ndarray) -> Self:
        """Potentials at natural parameters (n_cells, ...) of the two families."""
        packed, transition, *_ = dynamics.split(of_dynamics)
        squares = -2 * unpack_symmetric(packed[..., 0, :] / pairings(dynamics.n_regressors), dynamics.n_regressors)
        transition_spread = _difference(squares, transition.swapaxes(-1, -2) @ transition)
        packed, total, count, square = emission.split(of_emission)
        rho = -2 * square
        output = total / rho[..., None]
        squares = -2 * unpack_symmetric(packed / pairings(emission.n_regressors), emission.n_regressors)
        n_sharing = np.bincount(emission.precision_of)
        spread = np.empty(squares.shape)
        for group in range(emission.n_precisions):
            rows = emission.precision_of == group
            here = output[..., rows, :]
            mean_terms = (rho[..., rows, None] * here).swapaxes(-1, -2) @ here
            spread[..., group, :, :] = _difference(squares[..., group, :, :], mean_terms) / n_sharing[group]
        spread = spread[..., emission.precision_of, :, :]
        return cls(dynamics.n_rows, transition, transition_spread, output, spread, rho, count)

    @property
    def link(self) -> np.ndarray:
        """A, (k, k)."""
        return np.ascontiguousarray(self.transition[..., : self.n_states])

    @property
    def squares(self) -> np.ndarray:
        """The expectation of [A B]' [A B]."""
        return self.transition.swapaxes(-1, -2) @ self.transition + self.transition_spread

    @property
    def of_columns(self) -> np.ndarray:
        """Expected squares of the coefficients of each column in units of its noise, (n_columns, d, d)."""
        weighted = self.precision[..., None] * self.output
        return weighted[..., :, None] * self.output[..., None, :] + self.output_spread


def _difference(whole: np.ndarray, part: np.ndarray) -> np.ndarray:
    """A matrix less a part of it, 0 where the difference is rounding."""
    left, scale = whole - part, np.sqrt(np.abs(np.diagonal(whole, axis1=-2, axis2=-1)))
    return np.where(np.abs(left) <= _ROUNDING * scale[..., :, None] * scale[..., None, :], 0.0, left)
