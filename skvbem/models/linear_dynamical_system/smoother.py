r"""The states of sequences given natural parameters: one normal distribution with a block tridiagonal precision.

.. math::

    J_{tt} = [t{=}1] V_0^{-1} + [t{>}1] I + [t{<}T] \langle A^\top A\rangle
             + \sum_{s \text{ observed}} \langle\rho_s C_s C_s^\top\rangle, \qquad J_{t,t-1} = -\langle A\rangle, \\
    h_t = [t{=}1] V_0^{-1} m_0 + [t{>}1] \langle B\rangle u_t - [t{<}T] \langle A^\top B\rangle u_{t+1}
          + \sum_{s \text{ observed}} (\langle\rho C_s\rangle y_{ts} - \langle\rho C_s D_s^\top\rangle v_t).

Means are :math:`J^{-1} h`. What steps have in common, which is all but h, depends on lengths and on which cells are
observed; the kernel goes through it once for each shape of a sequence, and no further than it changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from skvbem._kernels import _block_chain
from skvbem.models.linear_dynamical_system.data import LDSData
from skvbem.models.linear_dynamical_system.potentials import Potentials

_LOG_2PI = np.log(2 * np.pi)
# Share of its largest entry up to which a matrix of the recursion repeats itself.
REPEATS = 1e-15


class FirstStates(NamedTuple):
    """The distribution of first states: mean (k,) and precision (k, k)."""

    mean: np.ndarray
    precision: np.ndarray


class Covariances(NamedTuple):
    """Covariances of states summed over steps, each as often as its sequence counts.

    Parameters
    ----------
    first, before, after : ndarray of shape (k, k)
        Of first steps, of steps that another follows, and of steps that follow another.
    crossed : ndarray of shape (k, k)
        Of each step, by row, and the next one.
    of_pattern : ndarray of shape (n_patterns, k, k)
        Of the steps with each pattern of observed cells.
    """

    first: np.ndarray
    before: np.ndarray
    after: np.ndarray
    crossed: np.ndarray
    of_pattern: np.ndarray


@dataclass(frozen=True, eq=False)
class Smoother:
    """The states of sequences at natural parameters.

    Parameters
    ----------
    potentials : Potentials
    first : FirstStates
    data : LDSData
    repeats : float
        Share of its largest entry up to which a matrix repeats itself; negative to go through every step.
    """

    potentials: Potentials
    first: FirstStates
    data: LDSData
    repeats: float = REPEATS

    @cached_property
    def blocks(self) -> np.ndarray:
        """What the observed cells of each pattern add to the precision of (x, v), (n_patterns, d, d)."""
        of_columns = self.potentials.of_columns
        return (self.data.patterns @ of_columns.reshape(len(of_columns), -1)).reshape(-1, *of_columns.shape[1:])

    @cached_property
    def linear(self) -> np.ndarray:
        """h, (n_rows, k)."""
        potentials, data, k = self.potentials, self.data, self.potentials.n_states
        linear = data.measured @ (potentials.precision[:, None] * potentials.output[:, :k])
        if data.output_inputs.shape[1]:
            crossed = self.blocks[:, :k, k:]
            if len(crossed) == 1:
                linear -= data.output_inputs @ crossed[0].T
            else:
                linear -= np.einsum("tkr,tr->tk", crossed[data.pattern], data.output_inputs)
        before = data.before
        if data.inputs.shape[1]:
            of_next = data.inputs[before + 1]
            linear[before + 1] += of_next @ potentials.transition[:, k:].T
            linear[before] -= of_next @ potentials.squares[:k, k:].T
        linear[data.first_rows] += self.first.precision @ self.first.mean
        return linear

    def factored(self, keep: bool = False) -> Factored:
        """The factor of the precision, and sums of covariances; those of all rows of shapes too if they are kept."""
        data, k = self.data, self.potentials.n_states
        shape, sequence = data.shapes
        n = len(data)
        slot, inverse, gain = np.empty(n, dtype=np.int64), np.empty((n, k, k)), np.empty((n, k, k))
        log_det, sums = np.zeros(len(sequence)), np.zeros((4, k, k))
        of_pattern, marginal = np.zeros((len(data.patterns), k, k)), np.empty((n if keep else 0, k, k))
        starts, ends = data.starts[:-1][sequence], data.ends[sequence]
        n_slots = _block_chain.covariances(
            data.pattern,
            starts,
            ends,
            np.bincount(shape, data.weight, len(sequence)),
            np.ascontiguousarray(self.blocks[:, :k, :k]),
            np.ascontiguousarray(self.first.precision),
            self.potentials.link,
            np.ascontiguousarray(self.potentials.squares[:k, :k]),
            self.repeats,
            slot,
            inverse,
            gain,
            log_det,
            of_pattern,
            sums,
            marginal,
        )
        covariances = Covariances(sums[0], sums[1], sums[2], sums[3], of_pattern)
        if n_slots < 0:
            log_det[:] = np.nan
        return Factored(
            self, slot, inverse[:n_slots], gain[:n_slots], starts[shape], log_det[shape], covariances, marginal
        )

    def log_normalizers(self, x: np.ndarray, log_det: np.ndarray) -> np.ndarray:
        """ln Z of each sequence, nats, (n_sequences,), from its residuals at the means of its states."""
        potentials, data, _k = self.potentials, self.data, self.potentials.n_states
        terms = np.zeros(len(data))
        before, first = data.before, data.first_rows
        z = np.concatenate([x[before], data.inputs[before + 1]], axis=1)
        left = x[before + 1] - z @ potentials.transition.T
        terms[before + 1] = -0.5 * (
            np.einsum("ti,ti->t", left, left) + np.einsum("ti,ti->t", z @ potentials.transition_spread, z)
        )
        away = x[first] - self.first.mean
        terms[first] = -0.5 * np.einsum("ti,ti->t", away @ self.first.precision, away)
        terms[first] += 0.5 * np.linalg.slogdet(self.first.precision)[1]
        r = np.concatenate([x, data.output_inputs], axis=1)
        left = data.measured - r @ potentials.output.T
        if data.mask is not None:
            left *= data.mask
        spread = potentials.output_spread
        of_patterns = (data.patterns @ spread.reshape(len(spread), -1)).reshape(-1, *spread.shape[1:])
        terms -= 0.5 * (left**2 @ potentials.precision)
        if len(of_patterns) == 1:
            terms -= 0.5 * np.einsum("ti,ti->t", r @ of_patterns[0], r)
        else:
            terms -= 0.5 * np.einsum("ti,tij,tj->t", r, of_patterns[data.pattern], r)
        terms += (data.patterns @ potentials.constant)[data.pattern]
        # k / 2 ln 2 pi of a state's density, and of the integral over it, cancel
        total = np.zeros(data.n_sequences)
        if len(first):
            total[data.ends > data.starts[:-1]] = np.add.reduceat(terms, first)
        return total - 0.5 * log_det


@dataclass(frozen=True, eq=False)
class Factored:
    """The factored precision of the states of sequences.

    Parameters
    ----------
    smoother : Smoother
    slot : ndarray of int64, shape (n_rows,)
        Where rows of shapes have their matrices.
    inverse, gain : ndarray of shape (n_slots, k, k)
    first_row : ndarray of int64, shape (n_sequences,)
        First row of the shape of each sequence.
    log_det : ndarray of shape (n_sequences,)
        ln|J|.
    covariances : Covariances
    marginal : ndarray of shape (n_rows, k, k) or (0, k, k)
        Covariances of rows of shapes, if they were kept.
    """

    smoother: Smoother
    slot: np.ndarray
    inverse: np.ndarray
    gain: np.ndarray
    first_row: np.ndarray
    log_det: np.ndarray
    covariances: Covariances
    marginal: np.ndarray

    def means(self, noise: np.ndarray | None = None) -> np.ndarray:
        """Means of all states, (n_rows, k); with noise (n_rows, k) of unit variance draws of them."""
        data, x = self.smoother.data, self.smoother.linear.copy()
        away = np.empty((0, x.shape[1]))
        if noise is not None:
            away = np.einsum("tij,tj->ti", np.linalg.cholesky(self.inverse)[self.slot[self.row_of_shape]], noise)
        bounds = data.starts[:-1], data.ends
        _block_chain.means(*bounds, self.first_row, self.slot, self.inverse, self.gain, x, np.ascontiguousarray(away))
        return x

    @cached_property
    def row_of_shape(self) -> np.ndarray:
        """For each row the one of its sequence's shape, (n_rows,)."""
        data = self.smoother.data
        shift = np.repeat(self.first_row - data.starts[:-1], np.diff(data.starts))
        return np.arange(len(data)) + shift
