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
from typing import NamedTuple

import numpy as np

from skvbem._kernels import _block_chain, _residuals
from skvbem._lazy import cached_property
from skvbem.families.regression_rows import summed_over
from skvbem.models.linear_dynamical_system.data import LDSData
from skvbem.models.linear_dynamical_system.first_states import FirstStates
from skvbem.models.linear_dynamical_system.potentials import Potentials

# Numbers of the matrices that are held for the rows of one long sequence; beyond, it is gone through piece by piece.
_PIECE_CELLS = 2**22
# Share of its largest entry up to which a matrix of the recursion repeats itself.
REPEATS = 1e-15


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


class Expected(NamedTuple):
    """Means of regressors (x, v) of all rows, (n_rows, k + r), sums of covariances, and ln|J|, (n_sequences,)."""

    regressors: np.ndarray
    covariances: Covariances
    log_det: np.ndarray


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
        """Precision of (x, v) by the observed cells of each pattern, (n_patterns, d, d)."""
        by_column = self.potentials.of_columns
        return (self.data.patterns @ by_column.reshape(len(by_column), -1)).reshape(-1, *by_column.shape[1:])

    def linear(self) -> np.ndarray:
        """h in the place of states of regressors (x, v), (n_rows, k + r)."""
        potentials, data, k = self.potentials, self.data, self.potentials.n_states
        n_inputs, crossed = data.output_inputs.shape[1], self.blocks[:, :k, k:]
        # products are of whole rows: one that is written into a part of each takes four times as long
        by_column = np.zeros((len(potentials.output), k + n_inputs))
        by_column[:, :k] = potentials.precision[:, None] * potentials.output[:, :k]
        r = data.measured @ by_column
        if n_inputs:
            input_map = np.eye(n_inputs, k + n_inputs, k)
            if len(crossed) == 1:
                input_map[:, :k] = -crossed[0].T
            r += data.output_inputs @ input_map
        linear = r[:, :k]
        if len(crossed) > 1:
            for j, v in enumerate(data.output_inputs.T):
                linear -= crossed[:, :, j][data.pattern] * v[:, None]
        if data.inputs.shape[1] and len(data) > 1:
            of_next = data.inputs[1:] if data.follows is None else data.inputs[1:] * data.follows[1:, None]
            linear[1:] += of_next @ potentials.transition[:, k:].T
            linear[:-1] -= of_next @ potentials.squares[:k, k:].T
        linear[data.first_rows] += self.first.precision @ self.first.mean
        return r

    def expected(self) -> Expected:
        """Means of the states, their covariances in sums, and ln|J|: no more memory than a piece of a sequence asks."""
        data, k = self.data, self.potentials.n_states
        size = max(_PIECE_CELLS // max(2 * k * k, 1), 2)
        if data.n_sequences != 1 or len(data) <= size:
            return self.factored().expected()
        n_pieces = -(-len(data) // size)
        r, sums = self.linear(), np.zeros((4, k, k))
        of_pattern = np.zeros((len(data.patterns), k, k))
        log_det = _block_chain.states_by_pieces(
            data.pattern,
            float(data.weight[0]),
            *self._matrices,
            self.repeats,
            np.empty(size, dtype=np.int64),
            np.empty((size, k, k)),
            np.empty((size, k, k)),
            np.empty((n_pieces, 2, k, k)),
            of_pattern,
            sums,
            r,
        )
        if np.isnan(log_det):  # nearly singular, which asks for matrices of all rows
            return self.factored().expected()
        return Expected(r, Covariances(sums[0], sums[1], sums[2], sums[3], of_pattern), np.array([log_det]))

    @property
    def _matrices(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Blocks of patterns, the precision of first states, link and squares, each (..., k, k)."""
        k = self.potentials.n_states
        blocks, squares = self.blocks[:, :k, :k], self.potentials.squares[:k, :k]
        first, link = np.ascontiguousarray(self.first.precision), self.potentials.link
        return np.ascontiguousarray(blocks), first, link, np.ascontiguousarray(squares)

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
            *self._matrices,
            self.repeats,
            slot,
            inverse,
            gain,
            log_det,
            of_pattern,
            sums,
            marginal,
        )
        if n_slots < 0:
            self._factor_by_roots(starts, ends, shape, slot, inverse, gain, log_det, of_pattern, sums, marginal)
            n_slots = n
        covariances = Covariances(sums[0], sums[1], sums[2], sums[3], of_pattern)
        return Factored(
            self, slot, inverse[:n_slots], gain[:n_slots], starts[shape], log_det[shape], covariances, marginal
        )

    def _factor_by_roots(self, starts, ends, shape, slot, inverse, gain, log_det, of_pattern, sums, marginal) -> None:
        """Fill what `factored` computes where states grow unseen: differences of nearly equal numbers are avoided."""
        data, potentials, c = self.data, self.potentials, np.ascontiguousarray
        sums[:], of_pattern[:] = 0.0, 0.0
        of_columns = potentials.output_spread
        spreads = data.patterns.astype(float) @ of_columns.reshape(len(of_columns), -1)
        _block_chain.covariances_by_roots(
            data.pattern,
            c(data.patterns).view(np.uint8),
            starts,
            ends,
            np.bincount(shape, data.weight, len(starts)),
            c(potentials.output),
            c(potentials.precision),
            c(spreads.reshape(-1, *of_columns.shape[1:])),
            c(potentials.transition_spread),
            c(self.first.precision),
            potentials.link,
            slot,
            inverse,
            gain,
            log_det,
            of_pattern,
            sums,
            marginal,
        )

    def log_normalizers(self, expected: Expected) -> np.ndarray:
        """ln Z of each sequence, nats, (n_sequences,), from its residuals at the means of its states."""
        data, total = self.data, np.zeros(self.data.n_sequences)
        terms = self._terms(expected.regressors)
        first, x = data.first_rows, expected.regressors[:, : self.potentials.n_states]
        away = x[first] - self.first.mean
        terms[first] -= 0.5 * np.einsum("ti,ti->t", away @ self.first.precision, away)
        terms[first] += self.first.log_scale
        # k / 2 ln 2 pi of a state's density, and of the integral over it, cancel
        if len(first):
            total[data.ends > data.starts[:-1]] = np.add.reduceat(terms, first)
        return total - 0.5 * expected.log_det

    def _terms(self, r: np.ndarray) -> np.ndarray:
        """Terms of rows in ln Z, but for first states, (n_rows,), at means of regressors (n_rows, k + r)."""
        potentials, data, terms = self.potentials, self.data, np.empty(len(r))
        group, first = data.groups
        observed = np.empty((0, len(first))) if data.group_mask is None else data.group_mask
        spread = np.moveaxis(summed_over(np.moveaxis(potentials.output_spread, 0, -1), group, len(first)), -1, 0)
        _residuals.terms_of_rows(
            np.ascontiguousarray(potentials.output),
            np.ascontiguousarray(potentials.precision),
            np.ascontiguousarray(potentials.constant),
            group,
            np.ascontiguousarray(spread),
            np.ascontiguousarray(potentials.transition),
            np.ascontiguousarray(potentials.transition_spread),
            data.measured,
            observed,
            r,
            data.inputs,
            np.empty(0) if data.follows is None else data.follows,
            terms,
        )
        return terms


def before_rows(data: LDSData, r: np.ndarray, rows: slice | np.ndarray) -> np.ndarray:
    """Means of regressors r one row before each of some rows, not row 0, with the inputs of the states at these."""
    before = r[rows.start - 1 : max(rows.stop - 1, rows.start - 1)] if isinstance(rows, slice) else r[rows - 1]
    return np.concatenate([before, data.inputs[rows]], axis=1) if data.inputs.shape[1] else before


def products(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Packed upper triangles of the products of rows (n, d) with rows (n, d), (n, d (d + 1) / 2)."""
    n, d = one.shape
    packed, at = np.empty((n, d * (d + 1) // 2)), 0
    for i in range(d):
        np.multiply(one[:, i, None], other[:, i:], out=packed[:, at : at + d - i])
        at += d - i
    return packed


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

    def expected(self) -> Expected:
        """Means of the states, with sums of covariances and ln|J|."""
        return Expected(self.regressors(), self.covariances, self.log_det)

    def regressors(self) -> np.ndarray:
        """Means of all regressors (x, v), (n_rows, k + r)."""
        data, r = self.smoother.data, self.smoother.linear()
        bounds = data.starts[:-1], data.ends
        _block_chain.means(*bounds, self.first_row, self.slot, self.inverse, self.gain, r)
        return r

    def means(self) -> np.ndarray:
        """Means of all states, (n_rows, k)."""
        return self.regressors()[:, : self.smoother.potentials.n_states]

    @cached_property
    def row_of_shape(self) -> np.ndarray:
        """For each row the one of its sequence's shape, (n_rows,)."""
        data = self.smoother.data
        shift = np.repeat(self.first_row - data.starts[:-1], np.diff(data.starts))
        return np.arange(len(data)) + shift
