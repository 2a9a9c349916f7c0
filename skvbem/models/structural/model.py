r"""Structural time series: columns that are sums of blocks of states, and of effects of inputs.

.. math::

    x_1 \sim N(0, V_0), \qquad x_t = A x_{t-1} + \eta_t, \quad \eta_{tk} \sim N(0, 1 / \tau_{g(k)}), \qquad
    y_{ts} = z_s^\top x_t + d_s^\top v_t + e_{ts}, \quad e_{ts} \sim N(0, 1 / \rho_s),

over sequences that are independent given the parameters, with A, z and :math:`V_0` known: parameters are the effects d
and the precisions. Some states have no noise. Given expected natural parameters the states are those of the same system
at precisions :math:`\langle\tau\rangle, \langle\rho\rangle` and effects
:math:`\bar d = \langle\rho d\rangle / \langle\rho\rangle`, so that the E step is one pass of a Kalman filter and a
disturbance smoother, with

.. math::

    \ln Z = \ln p(y \mid \langle\tau\rangle, \langle\rho\rangle, \bar d)
      + \tfrac12 \sum_k n_k (\langle\ln\tau_k\rangle - \ln\langle\tau_k\rangle)
      + \tfrac12 \sum_s n_s (\langle\ln\rho_s\rangle - \ln\langle\rho_s\rangle)
      - \tfrac12 \sum_{ts} v_t^\top \Lambda_s^{-1} v_t.

Statistics are flat: those of the regressions of columns on inputs, whose target is :math:`y - z^\top x`, then those of
noises of states, :math:`(n / 2, \tfrac12 \sum \langle\eta^2\rangle)`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from skvbem._kernels import _kalman
from skvbem._numerics import LOG_2PI, pack_symmetric, pairings, unpack_symmetric
from skvbem.blocks import map_reduce, sections
from skvbem.families import Product, Regression
from skvbem.families.base import ConjugateFamily
from skvbem.families.hierarchical import regression_of
from skvbem.models.base import DataInParts, Expectation, LatentModel
from skvbem.models.linear_dynamical_system.data import LDSData
from skvbem.models.linear_dynamical_system.model import reasons_of_states
from skvbem.models.structural.design import Design

# Rows times states times starts below which threads cost more than they bring.
_WORTH_THREADS = 2**16


@dataclass(frozen=True, eq=False)
class Precisions:
    """Variances of noises and effects of inputs at natural parameters of several lanes.

    Parameters
    ----------
    effects : ndarray of shape (n_lanes, n_columns, n_output_inputs)
    column_variance, state_variance : ndarray of shape (n_lanes, n_columns), (n_lanes, k)
        The inverse of expected precisions; 0 of states without noise.
    of_cell : ndarray of shape (n_lanes, n_columns)
        What ln Z has for each observed cell beside the log density at expected precisions, nats.
    of_step : ndarray of shape (n_lanes,)
        The same for each step that follows another.
    spread : ndarray of shape (n_lanes, n_columns, n_output_inputs, n_output_inputs)
        Covariances of effects in units of the noise.
    """

    effects: np.ndarray
    column_variance: np.ndarray
    state_variance: np.ndarray
    of_cell: np.ndarray
    of_step: np.ndarray
    spread: np.ndarray


class StructuralModel(LatentModel):
    """A structural time series with its prior.

    Parameters
    ----------
    emission : ConjugateFamily
        Prior of effects of inputs on columns, and of the precisions of their noise: a `Regression`, hierarchical or
        not, whose columns each have a precision matrix and a noise.
    noise : ConjugateFamily or None
        Prior of the precisions of noises of states: one row of a `Gamma`, hierarchical or not; None without noises.
    design : Design
    origin, unit : ndarray of shape (n_columns,)
        In which columns are measured.

    Examples
    --------
    A level that walks, with its noises known to be about 1:

    >>> import numpy as np
    >>> from skvbem.families import Gamma
    >>> from skvbem.families.regression import Regression
    >>> from skvbem.models.structural.design import Design
    >>> from skvbem.models.structural.model import StructuralModel
    >>> from skvbem.structural import Level
    >>> one = np.zeros(1, dtype=int)
    >>> emission = Regression.from_parameters([[0.0]], [[[1.0]]], [1e6], [1e6], one, one)
    >>> noise = Gamma.from_parameters([[1e6]], [[1e6]])
    >>> model = StructuralModel(emission, noise, Design.of([Level()], np.ones(1)), np.zeros(1), np.ones(1))
    >>> data = model.compile(np.array([[1.0], [2.0]]), [2], output_inputs=np.zeros((2, 1)))
    >>> model.expect(model.prior.expected_natural()[:, None], data).log_normalizer.round(4).tolist()
    [-3.3426]
    """

    emission: Regression
    design: Design
    origin: np.ndarray
    unit: np.ndarray

    def __init__(
        self,
        emission: ConjugateFamily,
        noise: ConjugateFamily | None,
        design: Design,
        origin: np.ndarray,
        unit: np.ndarray,
    ):
        self.emission, self.design = regression_of(emission), design
        blocks: tuple[ConjugateFamily, ...] = (emission, noise) if noise is not None else (emission,)
        self.prior = Product(blocks, tuple(len(block.coordinates) for block in blocks))
        self.origin, self.unit = np.asarray(origin, dtype=float), np.asarray(unit, dtype=float)

    @property
    def n_states(self) -> int:
        """Number of states of all columns, k."""
        return self.design.n_states

    @property
    def n_columns(self) -> int:
        """Number of columns, p."""
        return self.emission.n_rows

    @property
    def n_inputs(self) -> int:
        """Number of inputs of the states: none."""
        return 0

    @property
    def n_output_inputs(self) -> int:
        """Number of inputs of the measurements, that of the offset among them."""
        return self.emission.n_regressors

    @property
    def n_free_parameters(self) -> int:
        """The dimension d of scores: variances of noises, and effects; no offset beside a level."""
        n_effects = self.n_output_inputs - self.design.has_level
        return self.design.n_noises + self.n_columns * (1 + n_effects)

    @property
    def reasons(self) -> Mapping[str, str]:
        """Why scores that need a list of hidden states, or known precisions, have no meaning."""
        return reasons_of_states(
            self.prior,
            "Take 'auto', 'ais' or 'lower_bound'.",
            "It asks for a Gaussian about a mode, and variances near 0 are at the end of their range. Take 'auto' or "
            "'ais'.",
        )

    def compile(
        self,
        values: np.ndarray,
        lengths: Sequence[int] | np.ndarray,
        weight: np.ndarray | None = None,
        inputs: np.ndarray | None = None,
        output_inputs: np.ndarray | None = None,
    ) -> LDSData:
        """Sequences made ready for many E steps.

        Parameters
        ----------
        values : ndarray of shape (n_rows, n_columns)
            Rows of all sequences, one sequence after the other, NaN where a cell is missing.
        lengths : array_like of int, shape (n_sequences,)
        weight : ndarray of shape (n_sequences,), optional
            How often each sequence counts.
        inputs : ndarray of shape (n_rows, 0), optional
            No states have inputs.
        output_inputs : ndarray of shape (n_rows, n_output_inputs), optional
            Those of the measurements, first that of the offset.
        """
        values, n = np.asarray(values, dtype=float), len(values)
        weight = np.ones(len(lengths)) if weight is None else np.asarray(weight, dtype=float)
        output_inputs = np.zeros((n, 0)) if output_inputs is None else np.asarray(output_inputs, dtype=float)
        if self.design.has_level:
            output_inputs = np.concatenate([np.zeros((n, 1)), output_inputs[:, 1:]], axis=1)
        return LDSData.of((values - self.origin) / self.unit, lengths, np.zeros((n, 0)), output_inputs, weight)

    def precisions(self, natural: np.ndarray) -> Precisions:
        """Variances and effects at natural parameters (n_cells, n_lanes)."""
        emission_cells, *noise_cells = self.prior.split(natural)
        d, design = self.n_output_inputs, self.design
        packed, total, count, square = self.emission.split(emission_cells)
        rho = -2 * square
        effects = total / rho[..., None]
        squares = -2 * unpack_symmetric(packed / pairings(d), d)
        spread = squares - rho[..., None, None] * effects[..., :, None] * effects[..., None, :]
        of_cell = count - 0.5 * np.log(rho) + 0.5 * LOG_2PI - np.log(self.unit)
        state_variance, of_step = np.zeros((len(rho), self.n_states)), np.zeros(len(rho))
        for cells in noise_cells:
            log_tau, minus_tau = np.split(cells.T, 2, axis=1)
            with np.errstate(invalid="ignore", divide="ignore"):
                state_variance = (1 / -minus_tau) @ design.states_of_noise
                of_step = 0.5 * (log_tau - np.log(-minus_tau)) @ design.states_of_noise.sum(axis=1)
        return Precisions(effects, 1 / rho, state_variance, of_cell, of_step, spread)

    def expect(self, natural: np.ndarray, data: LDSData | DataInParts, n_threads: int = 1) -> Expectation:
        """The E step under natural parameters (n_cells, n_lanes) that need not be normalized."""

        def of_part(part: LDSData) -> Expectation:
            worth = len(part) * self.n_states * natural.shape[1] > _WORTH_THREADS
            return map_reduce(of_section, sections(part.units), n_threads if worth else 1)

        def of_section(units: Sequence[LDSData]) -> Expectation:
            return map_reduce(lambda unit: self._expect(natural, unit), units)

        return map_reduce(of_part, data.parts)

    def _expect(self, natural: np.ndarray, data: LDSData) -> Expectation:
        nothing = np.empty((0, len(data), self.n_states)), np.empty((0, len(data), self.n_columns))
        log_z, statistics = self.passed(natural, data, *nothing)
        return Expectation(statistics, np.where(data.weight > 0, log_z, 0.0) @ data.weight)

    def passed(
        self, natural: np.ndarray, data: LDSData, noise: np.ndarray, cell_noise: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """ln Z of sequences, (n_lanes, n_sequences), and statistics (n_cells, n_lanes), expected or drawn by noise.

        Noise are normal numbers of all states, (n_lanes, n_rows, k), and of all cells, (n_lanes, n_rows, n_columns);
        statistics are expected ones where it has no lanes.
        """
        at, n_lanes = self.precisions(natural), natural.shape[1]
        k, p, d = self.n_states, self.n_columns, self.n_output_inputs
        log_density = np.zeros((n_lanes, data.n_sequences))
        totals, squares, moves = np.zeros((n_lanes, p, d)), np.zeros((n_lanes, p)), np.zeros((n_lanes, k))
        c = np.ascontiguousarray
        if len(data):
            _kalman.passes(
                data.pattern, c(data.patterns).view(np.uint8), data.starts, data.weight, data.measured,
                data.output_inputs, *self.design.sparse, c(at.effects), c(at.column_variance), c(at.state_variance),
                noise, cell_noise, log_density, totals, squares, moves,
            )  # fmt: skip
        log_density += self._constants(at, data)
        products = np.einsum("t,ts,ti,tj->sij", data.row_weight, _seen(data), data.output_inputs, data.output_inputs)
        n_steps = float(data.row_weight[data.before].sum())
        parts = [
            np.broadcast_to(pack_symmetric(products).ravel(), (n_lanes, p * d * (d + 1) // 2)),
            totals.reshape(n_lanes, -1),
            np.broadcast_to(data.counts, (n_lanes, p)),
            squares,
        ]
        if self.design.n_noises:
            of_noise = self.design.states_of_noise
            parts += [np.broadcast_to(0.5 * n_steps * of_noise.sum(axis=1), (n_lanes, len(of_noise)))]
            parts += [0.5 * moves @ of_noise.T]
        return log_density, np.ascontiguousarray(np.concatenate(parts, axis=1).T)

    def _constants(self, at: Precisions, data: LDSData) -> np.ndarray:
        """What ln Z of each sequence has beside the log density at expected precisions, (n_lanes, n_sequences)."""
        seen, sequence = _seen(data), np.repeat(np.arange(data.n_sequences), np.diff(data.starts))
        of_inputs = -0.5 * np.einsum("ti,lsij,tj,ts->lt", data.output_inputs, at.spread, data.output_inputs, seen)
        of_rows = at.of_cell @ seen.T + of_inputs + at.of_step[:, None] * (np.diff(sequence, prepend=-1) == 0)
        return np.stack([np.bincount(sequence, lane, data.n_sequences) for lane in of_rows])

    def log_normalizers_of_sequences(self, natural: np.ndarray, data: LDSData) -> np.ndarray:
        """ln Z of each sequence, nats, (n_sequences,), weights left aside, at natural parameters (n_cells,)."""
        nothing = np.empty((0, len(data), self.n_states)), np.empty((0, len(data), self.n_columns))
        return self.passed(natural[:, None], data, *nothing)[0][0]

    def states(self, natural: np.ndarray, data: LDSData, *, smoothed: bool) -> tuple[np.ndarray, np.ndarray]:
        """Means (n_rows, k) and covariances (n_rows, k, k) of states at natural parameters (n_cells,).

        Given whole sequences, or these up to each row.
        """
        at, c = self.precisions(natural[:, None]), np.ascontiguousarray
        mean, covariance = np.empty((len(data), self.n_states)), np.empty((len(data), self.n_states, self.n_states))
        target = data.measured - data.output_inputs @ at.effects[0].T
        if len(data):
            _kalman.states(
                data.pattern, c(data.patterns).view(np.uint8), data.starts, c(target), *self.design.sparse,
                c(at.column_variance[0]), c(at.state_variance[0]), smoothed, mean, covariance,
            )  # fmt: skip
        return mean, covariance

    @property
    def noises(self) -> range:
        """Numbers of all noises, those of columns first."""
        return range(self.n_columns + self.design.n_noises)

    @property
    def rate_cells(self) -> np.ndarray:
        """Cells of squares of columns and of rates of noises of states, in the order of the `noises`."""
        emission, *others = self.prior.split(np.arange(self.n_cells))
        parts = [self.emission.split(emission)[3], *(cells[len(cells) // 2 :] for cells in others)]
        return np.concatenate(parts)

    def with_less_noise(self, natural: np.ndarray, noise: int, share: float) -> np.ndarray:
        """Natural parameters (n_cells,) with a share of the variance of one of the `noises`."""
        changed = natural.copy()
        emission, *others = self.prior.split(changed)
        p = self.n_columns
        if noise < p:
            packed, total, count, square = self.emission.split(np.arange(len(emission)))
            places = np.concatenate([packed[noise], total[noise], square[noise : noise + 1]])
            emission[places] /= share
            emission[count[noise]] -= 0.5 * np.log(share)
        else:
            log_tau, minus_tau = np.split(others[0], 2)
            log_tau[noise - p] -= np.log(share)
            minus_tau[noise - p] /= share
        return changed

    def magnitude(self, data: LDSData | DataInParts) -> float:
        """Size of the terms whose sum is the log normalizer, nats."""
        return map_reduce(self._magnitude_of, data.parts)

    def _magnitude_of(self, data: LDSData) -> float:
        steps = float(data.row_weight[data.before].sum()) * self.n_states
        return float(data.counts.sum() * (1 + np.abs(np.log(self.unit)).max()) + data.squares.sum() + steps)


def _seen(data: LDSData) -> np.ndarray:
    """Observed cells, (n_rows, n_columns) of 0 and 1."""
    return np.ones((len(data), data.measured.shape[1])) if data.mask is None else data.mask
