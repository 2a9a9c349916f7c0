r"""Structural time series: columns that are sums of blocks of states, and of effects of inputs.

.. math::

    x_1 \sim N(0, V_0), \qquad x_t = A x_{t-1} + \eta_t, \quad \eta_{tk} \sim N(0, 1 / \tau_{g(k)}), \qquad
    y_{ts} = z_s^\top x_t + d_s^\top v_t + e_{ts}, \quad e_{ts} \sim N(0, 1 / \rho_s),

over sequences that are independent given the parameters, with z and :math:`V_0` known, and A but for the rows a of
autoregressions: parameters are the effects d, these rows, and the precisions. Some states have no noise. Given expected
natural parameters the states are those of the same system at precisions
:math:`\langle\tau\rangle, \langle\rho\rangle` and effects
:math:`\bar d = \langle\rho d\rangle / \langle\rho\rangle`, so that the E step is one pass of a Kalman filter and a
disturbance smoother, with

.. math::

    \ln Z = \ln p(y \mid \langle\tau\rangle, \langle\rho\rangle, \bar d)
      + \tfrac12 \sum_k n_k (\langle\ln\tau_k\rangle - \ln\langle\tau_k\rangle)
      + \tfrac12 \sum_s n_s (\langle\ln\rho_s\rangle - \ln\langle\rho_s\rangle)
      - \tfrac12 \sum_{ts} v_t^\top \Lambda_s^{-1} v_t.

Learned rows of A are at :math:`\bar a = \langle\tau a\rangle / \langle\tau\rangle`. How unsure they are is a
penalty of the states that they multiply, which the filter takes as measurements of 0; see
`skvbem.models.structural.rows`.

Statistics are flat: those of the regressions of columns on inputs, whose target is :math:`y - z^\top x`, those of
noises of states, :math:`(n / 2, \tfrac12 \sum \langle\eta^2\rangle)`, and those of the regressions of learned rows, of
which targets and regressors are states.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from skvbem._kernels import _kalman
from skvbem._numerics import pack_symmetric
from skvbem.blocks import map_reduce, sections
from skvbem.families import Product, Regression
from skvbem.families.base import ConjugateFamily
from skvbem.families.hierarchical import regression_of
from skvbem.models.base import DataInParts, Expectation, LatentModel
from skvbem.models.linear_dynamical_system.data import LDSData
from skvbem.models.linear_dynamical_system.model import reasons_of_states
from skvbem.models.structural.design import Design
from skvbem.models.structural.rows import Cells, RowsAt, with_less_noise

# Rows times states times starts below which threads cost more than they bring.
_WORTH_THREADS = 2**16


@dataclass(frozen=True, eq=False)
class Precisions:
    """Learned quantities at natural parameters of several lanes.

    Parameters
    ----------
    columns : RowsAt
        Effects of inputs, and noises of columns.
    learned : RowsAt
        Learned rows of A, and their noises.
    state_variance : ndarray of shape (n_lanes, k)
        The inverse of expected precisions; 0 of states without noise.
    of_step : ndarray of shape (n_lanes,)
        What ln Z has for each step that follows another beside the log density at expected precisions, nats.
    """

    columns: RowsAt
    learned: RowsAt
    state_variance: np.ndarray
    of_step: np.ndarray


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
    autoregression : ConjugateFamily, optional
        Of learned rows of A, one for each column, on the states that they multiply, and of the precisions of their
        noises: a regression, or one with hidden rates.

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
    autoregression: Regression | None

    def __init__(
        self,
        emission: ConjugateFamily,
        noise: ConjugateFamily | None,
        design: Design,
        origin: np.ndarray,
        unit: np.ndarray,
        autoregression: ConjugateFamily | None = None,
    ):
        self.emission, self.design = regression_of(emission), design
        self.autoregression = None if autoregression is None else regression_of(autoregression)
        blocks = tuple(block for block in (emission, noise, autoregression) if block is not None)
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
        of_rows = len(self.design.learned) * (self.design.order + 1)
        return self.design.n_noises + of_rows + self.n_columns * (1 + n_effects)

    @property
    def n_drawn_cells(self) -> int:
        """Normal numbers that paths of one step take beside those of states: of columns, and of learned rows."""
        return self.n_columns + len(self.design.learned) * self.design.order

    @property
    def reasons(self) -> Mapping[str, str]:
        """Why scores that need a list of hidden states, or known precisions, have no meaning."""
        return reasons_of_states(
            self.prior,
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

    def parts(self, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
        """Cells (n_cells, ...) of columns, of noises of states, and of learned rows; None of what there is not."""
        emission, *others = self.prior.split(cells)
        noise = others.pop(0) if self.design.n_noises else None
        return emission, noise, others[0] if others else None

    def precisions(self, natural: np.ndarray) -> Precisions:
        """Learned quantities at natural parameters (n_cells, n_lanes)."""
        (of_columns, of_noises, of_rows), design = self.parts(natural), self.design
        columns, learned = RowsAt.of(self.emission, of_columns), RowsAt.none(natural.shape[1])
        state_variance, of_step = np.zeros((natural.shape[1], self.n_states)), np.zeros(natural.shape[1])
        if of_noises is not None:
            log_tau, minus_tau = np.split(of_noises.T, 2, axis=1)
            with np.errstate(invalid="ignore", divide="ignore"):
                state_variance = (1 / -minus_tau) @ design.states_of_noise
                of_step = 0.5 * (log_tau - np.log(-minus_tau)) @ design.states_of_noise.sum(axis=1)
        if of_rows is not None:
            assert self.autoregression is not None
            learned = RowsAt.of(self.autoregression, of_rows)
            state_variance[:, design.learned] = learned.variance
            of_step = of_step + learned.of_datum.sum(axis=1)
        return Precisions(columns, learned, state_variance, of_step)

    def expect(self, natural: np.ndarray, data: LDSData | DataInParts, n_threads: int = 1) -> Expectation:
        """The E step under natural parameters (n_cells, n_lanes) that need not be normalized."""

        def of_part(part: LDSData) -> Expectation:
            worth = len(part) * self.n_states * natural.shape[1] > _WORTH_THREADS
            return map_reduce(of_section, sections(part.units), n_threads if worth else 1)

        def of_section(units: Sequence[LDSData]) -> Expectation:
            return map_reduce(lambda unit: self._expect(natural, unit), units)

        return map_reduce(of_part, data.parts)

    def _expect(self, natural: np.ndarray, data: LDSData) -> Expectation:
        nothing = np.empty((0, len(data), self.n_states)), np.empty((0, len(data), 1))
        log_z, statistics = self.passed(natural, data, *nothing)
        return Expectation(statistics, np.where(data.weight > 0, log_z, 0.0) @ data.weight)

    def passed(
        self, natural: np.ndarray, data: LDSData, noise: np.ndarray, cell_noise: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """ln Z of sequences, (n_lanes, n_sequences), and statistics (n_cells, n_lanes), expected or drawn by noise.

        Noise are normal numbers of all states, (n_lanes, n_rows, k), and of all cells, (n_lanes, n_rows,
        n_drawn_cells); statistics are expected ones where it has no lanes.
        """
        at, n_lanes, design, c = self.precisions(natural), natural.shape[1], self.design, np.ascontiguousarray
        cells = Cells.of(design, data, at.columns, at.learned.roots)
        p, width = self.n_columns, design.order + 1
        log_density, moves = np.zeros((n_lanes, data.n_sequences)), np.zeros((n_lanes, self.n_states))
        totals, squares = np.zeros(cells.effects.shape), np.zeros(cells.variance.shape)
        products = np.zeros((n_lanes, len(design.learned), width, width))
        ends, columns, _ = design.sparse
        if len(data):
            _kalman.passes(
                cells.pattern, cells.patterns, data.starts, data.weight, cells.measured, data.output_inputs,
                ends, columns, design.transition_values(at.learned.coefficients), *cells.readings, c(design.start),
                cells.effects, cells.variance, c(at.state_variance), design.learned, noise,
                c(cell_noise[..., : cells.variance.shape[1]]), log_density, totals, squares, moves, products,
            )  # fmt: skip
        log_density += self._constants(at, data) + cells.constants(data)
        return log_density, self._statistics(data, totals[:, :p], squares[:, :p], moves, products)

    def _statistics(
        self, data: LDSData, totals: np.ndarray, squares: np.ndarray, moves: np.ndarray, products: np.ndarray
    ) -> np.ndarray:
        """Statistics (n_cells, n_lanes) of sums that kernels give."""
        n_lanes, design, d = len(moves), self.design, self.n_output_inputs
        of_inputs = np.einsum("t,ts,ti,tj->sij", data.row_weight, _seen(data), data.output_inputs, data.output_inputs)
        n_steps = float(data.row_weight[data.before].sum())
        parts = [
            np.broadcast_to(pack_symmetric(of_inputs).ravel(), (n_lanes, self.n_columns * d * (d + 1) // 2)),
            totals.reshape(n_lanes, -1),
            np.broadcast_to(data.counts, squares.shape),
            squares,
        ]
        if design.n_noises:
            of_noise = design.states_of_noise
            parts += [np.broadcast_to(0.5 * n_steps * of_noise.sum(axis=1), (n_lanes, len(of_noise)))]
            parts += [0.5 * moves @ of_noise.T]
        if len(design.learned):
            parts += [
                pack_symmetric(products[..., 1:, 1:]).reshape(n_lanes, -1),
                products[..., 0, 1:].reshape(n_lanes, -1),
                np.full((n_lanes, len(design.learned)), n_steps),
                products[..., 0, 0],
            ]
        return np.ascontiguousarray(np.concatenate(parts, axis=1).T)

    def _constants(self, at: Precisions, data: LDSData) -> np.ndarray:
        """What ln Z of each sequence has beside the log density at expected precisions, (n_lanes, n_sequences)."""
        seen, sequence = _seen(data), np.repeat(np.arange(data.n_sequences), np.diff(data.starts))
        of_inputs = -0.5 * np.einsum(
            "ti,lsij,tj,ts->lt", data.output_inputs, at.columns.spread, data.output_inputs, seen
        )
        of_columns = (at.columns.of_datum - np.log(self.unit)) @ seen.T + of_inputs
        of_rows = of_columns + at.of_step[:, None] * (np.diff(sequence, prepend=-1) == 0)
        return np.stack([np.bincount(sequence, lane, data.n_sequences) for lane in of_rows])

    def log_normalizers_of_sequences(self, natural: np.ndarray, data: LDSData) -> np.ndarray:
        """ln Z of each sequence, nats, (n_sequences,), weights left aside, at natural parameters (n_cells,)."""
        nothing = np.empty((0, len(data), self.n_states)), np.empty((0, len(data), 1))
        return self.passed(natural[:, None], data, *nothing)[0][0]

    def states(self, natural: np.ndarray, data: LDSData, *, smoothed: bool) -> tuple[np.ndarray, np.ndarray]:
        """Means (n_rows, k) and covariances (n_rows, k, k) of states at natural parameters (n_cells,).

        Given whole sequences, or these up to each row.
        """
        at, design, c = self.precisions(natural[:, None]), self.design, np.ascontiguousarray
        cells = Cells.of(design, data, at.columns, at.learned.roots)
        mean, covariance = np.empty((len(data), self.n_states)), np.empty((len(data), self.n_states, self.n_states))
        target = cells.measured - data.output_inputs @ cells.effects[0].T
        ends, columns, _ = design.sparse
        reading_ends, reading_columns, reading_values = cells.readings
        if len(data):
            _kalman.states(
                cells.pattern, cells.patterns, data.starts, c(target), ends, columns,
                design.transition_values(at.learned.coefficients)[0], reading_ends, reading_columns, reading_values[0],
                c(design.start), c(cells.variance[0]), c(at.state_variance[0]), smoothed, mean, covariance,
            )  # fmt: skip
        return mean, covariance

    @property
    def noises(self) -> range:
        """Numbers of all noises: those of columns, those of states, and those of learned rows."""
        return range(self.n_columns + self.design.n_noises + len(self.design.learned))

    @property
    def rate_cells(self) -> np.ndarray:
        """Cells of squares of columns and of rates of noises of states, in the order of these `noises`."""
        emission, noise, _ = self.parts(np.arange(self.n_cells))
        of_columns = self.emission.split(emission)[3]
        return of_columns if noise is None else np.concatenate([of_columns, noise[len(noise) // 2 :]])

    def with_less_noise(self, natural: np.ndarray, noise: int, share: float) -> np.ndarray:
        """Natural parameters (n_cells,) with a share of the variance of one of the `noises`."""
        changed, p, of_states = natural.copy(), self.n_columns, self.design.n_noises
        emission, noises, rows = self.parts(changed)
        if noise < p:
            with_less_noise(self.emission, emission, noise, share)
        elif noise >= p + of_states:
            assert self.autoregression is not None
            assert rows is not None
            with_less_noise(self.autoregression, rows, noise - p - of_states, share)
        else:
            assert noises is not None
            log_tau, minus_tau = np.split(noises, 2)
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
