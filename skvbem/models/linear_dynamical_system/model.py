r"""Linear dynamical systems: normal states that move linearly, and measurements that are linear in them.

.. math::

    x_1 \sim N(m_0, V_0), \qquad x_t = A x_{t-1} + B u_t + w_t, \quad w_t \sim N(0, I), \qquad
    y_{ts} = C_s x_t + D_s v_t + e_{ts}, \quad e_{ts} \sim N(0, 1 / \rho_s),

over sequences that are independent given the parameters [Beal chapter 5]. Rows of [A B] are regressions of the next
state on :math:`z_t = (x_{t-1}, u_t)` with a known noise, rows of [C D] regressions of a column on
:math:`r_t = (x_t, v_t)` whose noise is learned: `skvbem.families.regression`. The covariance of w is the unit of the
states, so that no more than turns and reflections of them are left open. A missing cell has no term.

Statistics are flat: those of the dynamics, then those of the emission, then those of first states if their
distribution is learned, too (`first_states`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Self

import numpy as np

from skvbem._lazy import cached_property
from skvbem._numerics import pack_symmetric, unpack_symmetric
from skvbem.blocks import map_reduce, sections
from skvbem.capabilities import OF_KNOWN_HYPERPARAMETERS
from skvbem.families import NormalWishart, Product, Regression
from skvbem.families.base import ConjugateFamily
from skvbem.families.hierarchical import regression_of, with_hidden_rates, with_learned_precisions
from skvbem.families.regression import rotation_tangent
from skvbem.models.base import DataInParts, EStep, Expectation, LatentModel, ModelAscent
from skvbem.models.linear_dynamical_system import first_states
from skvbem.models.linear_dynamical_system.data import LDSData
from skvbem.models.linear_dynamical_system.first_states import FirstStates
from skvbem.models.linear_dynamical_system.potentials import Potentials
from skvbem.models.linear_dynamical_system.smoother import (
    Covariances,
    Factored,
    Smoother,
    before_rows,
    products,
)
from skvbem.models.linear_dynamical_system.state_map import BasisMoments, StateBasis, StateMoments

# Rows times states times starts below which threads cost more than they bring.
_WORTH_THREADS = 2**16
# The least variance of a noise where it is most likely, as a share of the column's.
_FLOOR = 1e-6
#: Shape and rate of the Gamma prior of the rate of a noise, in the unit of its column.
HIDDEN_RATE = (1.0, 1.0)


class LinearDynamicalSystem(LatentModel):
    """A linear dynamical system with its prior.

    Parameters
    ----------
    dynamics : ConjugateFamily
        Prior of the rows of [A B]: a `Regression` of known noise, hierarchical or not.
    emission : ConjugateFamily
        Prior of the rows of [C D] and of the precisions of their noise. Columns that share a precision matrix must be
        observed together.
    first : FirstStates or NormalWishart, optional
        The distribution of first states, standard normal by default; or the prior of their mean and precision, of one
        component.
    origin, unit : ndarray of shape (n_columns,), optional
        In which columns are measured; 0 and 1 by default.

    Examples
    --------
    >>> import numpy as np
    >>> from skvbem.models.linear_dynamical_system.model import LDSAscent
    >>> from skvbem.models.linear_dynamical_system.model import LinearDynamicalSystem
    >>> from skvbem.vbem import posteriors
    >>> from skvbem.vbem.driver import run
    >>> model = LinearDynamicalSystem.from_precisions([1.0], [1.0], shape=[2.0], rate=[1.0])
    >>> data = model.compile(np.array([[1.2], [0.7], [-0.4], [0.9]]), lengths=[4])
    >>> ascent = LDSAscent(model, data, posteriors.VB)
    >>> start = model.statistics_of_start(data, data.measured, 0.1)
    >>> run(ascent, start[:, None], tol=1e-9, max_iter=1000).objective.round(6).tolist()
    [-6.800979]
    """

    dynamics: Regression
    emission: Regression
    #: The distribution of first states; None where it is learned.
    first: FirstStates | None
    origin: np.ndarray
    unit: np.ndarray

    def __init__(
        self,
        dynamics: ConjugateFamily,
        emission: ConjugateFamily,
        first: FirstStates | NormalWishart | None = None,
        origin: np.ndarray | None = None,
        unit: np.ndarray | None = None,
    ):
        self.dynamics, self.emission = regression_of(dynamics), regression_of(emission)
        k, p = self.dynamics.n_rows, self.emission.n_rows
        blocks: tuple[ConjugateFamily, ...] = dynamics, emission
        if isinstance(first, NormalWishart):
            blocks, first = (*blocks, first), None
        elif first is None:
            first = FirstStates(np.zeros(k), np.eye(k))
        self.first = first
        self.prior = Product(blocks, tuple(len(block.coordinates) for block in blocks))
        self.origin = np.zeros(p) if origin is None else np.asarray(origin, dtype=float)
        self.unit = np.ones(p) if unit is None else np.asarray(unit, dtype=float)

    @classmethod
    def from_precisions(
        cls,
        transition_precision: Any,
        output_precision: Any,
        *,
        shape: Any,
        rate: Any | None,
        group: np.ndarray | None = None,
        n_states: int = 1,
        rate_floor: Any = 0.0,
        relevance: tuple[float, float] | None = None,
        **options: Any,
    ) -> Self:
        """The system whose coefficients have priors of mean 0 and these precisions, one for each regressor.

        Parameters
        ----------
        transition_precision : array_like of shape (k + n_inputs,)
        output_precision : array_like of shape (k + n_output_inputs,)
            In units of the precision of the noise.
        shape, rate : array_like of shape (n_columns,)
            Of the Gamma distributions of precisions of noise. Without rates these are hidden, too, each with an
            exponential prior of mean 1.
        group : ndarray of int, shape (n_columns,), optional
            Which columns are observed together, numbered from 0; all by default.
        n_states : int, default=1
            k.
        rate_floor : float or ndarray of shape (n_columns,), default=0.0
            What hidden rates are above; see `skvbem.families.hierarchical`.
        relevance : pair of float, optional
            Shape and rate of the Gamma priors of the precisions of states, of the columns of A and of C, which are
            hidden then: those of inputs stay.
        **options
            As the constructor takes them.
        """
        p = len(np.asarray(shape))
        group = np.zeros(p, dtype=np.int64) if group is None else np.asarray(group)
        dynamics = _regression(np.asarray(transition_precision), np.zeros(n_states, dtype=np.int64), None, None)
        emission = _regression(np.asarray(output_precision), group, shape, np.ones(p) if rate is None else rate)
        blocks: list[Any] = [dynamics, emission]
        if relevance is not None:
            blocks = [with_learned_precisions(x, np.arange(x.n_regressors) < n_states, *relevance) for x in blocks]
        if rate is None:
            blocks[1] = with_hidden_rates(blocks[1], *HIDDEN_RATE, rate_floor)
        return cls(blocks[0], blocks[1], **options)

    @property
    def n_states(self) -> int:
        """Number of states, k."""
        return self.dynamics.n_rows

    @property
    def n_columns(self) -> int:
        """Number of columns, p."""
        return self.emission.n_rows

    @property
    def n_inputs(self) -> int:
        """Number of inputs of the states."""
        return self.dynamics.n_regressors - self.n_states

    @property
    def n_output_inputs(self) -> int:
        """Number of inputs of the measurements."""
        return self.emission.n_regressors - self.n_states

    @property
    def n_free_parameters(self) -> int:
        """The dimension d of scores: parameters less the directions in which nothing observed changes."""
        return identifiable_dimension(
            self.n_states, self.n_columns, self.n_inputs, self.n_output_inputs, learns_first=self.first is None
        )

    @property
    def reasons(self) -> Mapping[str, str]:
        """Why scores that need a mode of parameters, a list of hidden states, or known precisions have no meaning."""
        return reasons_of_states(
            self.prior,
            "It asks for a Gaussian about a mode that stands alone. Turns of several states change nothing observed, "
            "so that there is none. Take 'auto' or 'ais' for the evidence, and credible_intervals of a fit with "
            "method='vb' for what loadings and transitions may be.",
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
        inputs : ndarray of shape (n_rows, n_inputs), optional
            Those of the states; those of first steps are not used.
        output_inputs : ndarray of shape (n_rows, n_output_inputs), optional
            Those of the measurements, a constant among them if there is an offset.

        Raises
        ------
        ValueError
            If lengths do not add up to the rows.
        """
        values, n = np.asarray(values, dtype=float), len(values)
        if sum(np.asarray(lengths).tolist()) != n or np.any(np.asarray(lengths) < 0):
            total = sum(np.asarray(lengths).tolist())
            raise ValueError(f"The lengths of sequences must add up to the {n} rows. They make {total}.")
        weight = np.ones(len(lengths)) if weight is None else np.asarray(weight, dtype=float)
        inputs = np.zeros((n, 0)) if inputs is None else np.asarray(inputs, dtype=float)
        output_inputs = np.zeros((n, 0)) if output_inputs is None else np.asarray(output_inputs, dtype=float)
        return LDSData.of((values - self.origin) / self.unit, lengths, inputs, output_inputs, weight)

    def e_step(self, natural: np.ndarray, data: LDSData | DataInParts, n_threads: int = 1) -> LDSEStep:
        """The E step at natural parameters (n_cells, n_lanes) as a value: sums of a part, and the outcome of all."""
        return LDSEStep(self, natural, n_threads)

    def expect(self, natural: np.ndarray, data: LDSData | DataInParts, n_threads: int = 1) -> Expectation:
        """The E step under natural parameters (n_cells, n_lanes) that need not be normalized."""
        return self.e_step(natural, data, n_threads).over(data.parts)

    def potentials(self, natural: np.ndarray) -> Potentials:
        """Potentials of the states at natural parameters (n_cells,), or (n_cells, n_lanes)."""
        dynamics_cells, emission_cells, *_ = self.prior.split(natural)
        potentials = Potentials.of(self.dynamics, dynamics_cells, self.emission, emission_cells)
        return replace(potentials, constant=potentials.constant - np.log(self.unit))

    def first_states(self, natural: np.ndarray) -> FirstStates:
        """Potentials of first states at natural parameters (n_cells,), or (n_cells, n_lanes)."""
        if self.first is not None:
            return self.first
        return first_states.expected(self.prior.split(natural)[2], self.n_states)

    def rotation_tangents(self, natural: np.ndarray) -> np.ndarray:
        """Tangents of rotations of each two states in their plane; none where first states tell rotations."""
        if self.first is not None and not self.first.are_round:
            return super().rotation_tangents(natural)
        k, directions = self.n_states, [np.zeros((len(natural), 0))]
        dynamics_cells, emission_cells, *first_cells = self.prior.split(natural)
        rows = self.dynamics.split(np.arange(len(dynamics_cells)))[1]  # of states, too: they turn as regressors do
        for i, j in combinations(range(k), 2):
            by_block = []
            for block, cells in ((self.dynamics, dynamics_cells), (self.emission, emission_cells)):
                turn = np.zeros((1, *(block.n_regressors,) * 2))
                turn[0, i, j], turn[0, j, i] = 1.0, -1.0
                by_block.append(rotation_tangent(block, cells, turn))
            by_block[0][rows[i]] += dynamics_cells[rows[j]]
            by_block[0][rows[j]] -= dynamics_cells[rows[i]]
            by_block += [first_states.turning(cells, turn[0, :k, :k]) for cells in first_cells]
            directions.append(np.concatenate(by_block)[:, None])
        return np.hstack(directions)

    def smoothed(self, natural: np.ndarray, data: LDSData) -> Factored:
        """The states of sequences at natural parameters (n_cells,), with the covariance of each."""
        return Smoother(self.potentials(natural), self.first_states(natural), data).factored(keep=True)

    def log_normalizers_of_sequences(self, natural: np.ndarray, data: LDSData) -> np.ndarray:
        """ln Z of each sequence, nats, (n_sequences,), weights left aside, at natural parameters (n_cells,).

        At the natural parameters of a point these are log likelihoods.
        """
        potentials, first, parts = self.potentials(natural), self.first_states(natural), []
        for unit in data.units:
            smoother = Smoother(potentials, first, unit)
            parts.append(smoother.log_normalizers(smoother.expected()))
        return np.concatenate(parts)

    def statistics(
        self, data: LDSData, x: np.ndarray, covariances: Covariances | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Statistics (n_cells,) of states with these means (n_rows, k), and moments that change with their basis.

        The states are independent of each other, and known, where no covariances are given.
        """
        if covariances is None:
            nothing = np.zeros((self.n_states,) * 2)
            covariances = Covariances(*(nothing,) * 4, np.zeros((len(data.patterns), *nothing.shape)))
        return self.statistics_and_moments(data, np.concatenate([x, data.output_inputs], axis=1), covariances)

    def statistics_and_moments(
        self, data: LDSData, r: np.ndarray, covariances: Covariances
    ) -> tuple[np.ndarray, np.ndarray]:
        """Statistics and moments at means of regressors r (n_rows, k + n_output_inputs)."""
        k, d, begins = self.n_states, r.shape[1], data.first_rows
        sums = [self._products(data, r, rows) for rows in data.chunks or [slice(0, 0)]]
        whole, crossed, input_products, by_group, total = (sum(part[1:], part[0]) for part in zip(*sums))
        # of all rows that follow each other, less where one sequence ends and another begins
        ends, follows = data.last_rows, begins[begins > 0]
        if len(follows):
            weight, z = data.row_weight[follows, None], before_rows(data, r, follows)
            crossed -= (r[follows] * weight).T @ z
            input_products -= (data.inputs[follows] * weight).T @ z
        before = np.zeros((d + data.inputs.shape[1],) * 2)
        before[:d, :d] = whole - (r[ends] * data.row_weight[ends, None]).T @ r[ends]
        before[d:], before[:d, d:] = input_products, input_products[:, :d].T
        after = whole - (r[begins] * data.row_weight[begins, None]).T @ r[begins]
        before[:k, :k] += covariances.before
        crossed[:k, :k] += covariances.crossed.T
        after[:k, :k] += covariances.after
        group, first = data.groups
        seen = data.patterns[:, first].T.astype(float)
        by_group[:, :k, :k] += (seen @ covariances.of_pattern.reshape(-1, k * k)).reshape(-1, k, k)
        z = np.r_[:k, d : len(before)]  # states and inputs
        at_first = np.concatenate([r[begins], np.ones((len(begins), 1))], axis=1)
        first_products = (at_first * data.row_weight[begins, None]).T @ at_first
        first_products[:k, :k] += covariances.first
        at_first = np.concatenate([first_products[:k, :k], first_products[-1:, :k]])
        step_products = before[np.ix_(z, z)], crossed[:k, z]
        statistics = self._flat(data, *step_products, by_group[group[self._owners]], total, at_first)
        return statistics, BasisMoments(before, crossed, after, first_products, data.row_weight.sum()).packed()

    def assembled(
        self,
        data: LDSData,
        before: np.ndarray,
        steps: np.ndarray,
        by_pattern: np.ndarray,
        total: np.ndarray,
        at_first: np.ndarray,
    ) -> np.ndarray:
        """Statistics (..., n_cells) from sums of z z', x z' of steps, r r' by pattern, y r', and of first states.

        Of these x x', and x in the last row, (..., k + 1, k).
        """
        seen = data.patterns[:, self._owners].T.astype(float)
        of_precisions = np.einsum("gt,...tij->...gij", seen, by_pattern)
        return self._flat(data, before, steps, of_precisions, total, at_first)

    @property
    def _owners(self) -> list[int]:
        """The first column of each precision matrix: columns of one are observed together."""
        return [int(np.flatnonzero(self.emission.precision_of == g)[0]) for g in range(self.emission.n_precisions)]

    def _flat(
        self,
        data: LDSData,
        before: np.ndarray,
        steps: np.ndarray,
        of_precisions: np.ndarray,
        total: np.ndarray,
        at_first: np.ndarray,
    ) -> np.ndarray:
        """Statistics (..., n_cells) from z z', x z', r r' of each precision matrix, y r', and sums of first states."""
        batch = before.shape[:-2]
        parts = [pack_symmetric(before), steps, pack_symmetric(of_precisions), total, data.counts, data.squares]
        flat = [part.reshape(*batch, -1) for part in parts[:4]]
        flat += [np.broadcast_to(part, (*batch, len(part))) for part in parts[4:]]
        if self.first is None:
            n = data.row_weight[data.first_rows].sum()
            flat.append(first_states.statistics(n, at_first[..., -1, :], at_first[..., :-1, :]))
        return np.concatenate(flat, axis=-1)

    def _products(self, data: LDSData, r: np.ndarray, rows: slice) -> tuple[np.ndarray, ...]:
        """Weighted sums over rows as if all were of one sequence: r r', r z', u z', r r' of columns, and y r'."""
        here, later = r[rows], slice(max(rows.start or 0, 1), rows.stop)
        z, d = before_rows(data, r, later), r.shape[1]
        weighted, weight = (here, None) if data.is_unweighted else (here * data.row_weight[rows, None], data.row_weight)
        inputs = data.inputs[later]
        if weight is not None:
            inputs = inputs * weight[later, None]
        whole = weighted.T @ here
        by_group = whole[None].copy()
        if data.group_mask is not None:
            by_group = unpack_symmetric(data.group_mask[rows].T @ products(weighted, here), d)
        crossed = weighted[len(weighted) - len(z) :].T @ z
        return whole, crossed, inputs.T @ z, by_group, data.measured[rows].T @ weighted

    def statistics_of_start(self, data: LDSData, x: np.ndarray, variance: Any) -> np.ndarray:
        """Statistics (n_cells,) of independent states with means (n_rows, k) and a covariance, for a start.

        Parameters
        ----------
        data : LDSData
        x : ndarray of shape (n_rows, k)
        variance : float or ndarray of shape (k, k)
            A variance stands for as many times the identity.
        """
        k, weight = self.n_states, data.row_weight
        covariance = np.asarray(variance) * np.eye(k) if np.ndim(variance) == 0 else np.asarray(variance)
        of_pattern = np.bincount(data.pattern, weight, len(data.patterns))[:, None, None] * covariance
        n_first, n_before = weight[data.first_rows].sum(), weight[data.before].sum()
        spread = Covariances(
            n_first * covariance, n_before * covariance, n_before * covariance, np.zeros((k, k)), of_pattern
        )
        return self.started(self.statistics(data, x, spread)[0])

    def magnitude(self, data: LDSData | DataInParts) -> float:
        """Size of the terms whose sum is the log normalizer, nats."""
        return map_reduce(self._magnitude_of, data.parts)

    def _magnitude_of(self, data: LDSData) -> float:
        return float(data.total_weight + data.counts.sum() * (1 + np.abs(np.log(self.unit)).max()) + data.squares.sum())


def reasons_of_states(prior: ConjugateFamily, information: str) -> dict[str, str]:
    """Why capabilities have no meaning where states are real numbers.

    Parameters
    ----------
    prior : ConjugateFamily
    information : str
        Why there is none.
    """
    hidden = (
        "It asks for the evidence of known states, which has no closed form where parts of the prior are learned. "
        "Take 'auto', 'ais' or 'lower_bound'."
    )
    reasons = {} if prior.hyperprior is None else dict.fromkeys(OF_KNOWN_HYPERPARAMETERS, hidden)
    return reasons | {
        "information": information,
        "enumeration": "It asks for a sum over all values of what is hidden, and states are real numbers. Take 'auto' "
        "or 'ais', whose standard error says how near they come.",
    }


def _regression(precision: np.ndarray, group: np.ndarray, shape: Any, rate: Any) -> Regression:
    """Rows of mean 0 whose coefficients have these precisions."""
    matrices = np.repeat(np.diag(precision.astype(float))[None], group.max() + 1, axis=0)
    means, noise_of = np.zeros((len(group), len(precision))), None if shape is None else np.arange(len(group))
    return Regression.from_parameters(means, matrices, shape, rate, group, noise_of, floor=_FLOOR)


def identifiable_dimension(
    n_states: int, n_columns: int, n_inputs: int, n_output_inputs: int, *, learns_first: bool = False
) -> int:
    r"""The generic rank of the map from parameters to autocovariances of long sequences, and to effects of inputs.

    The matrices of A, C and of the noise have :math:`k^2 + pk + p` numbers. Turns of the states change nothing
    observed, k (k - 1) / 2 directions, and where there are more states than columns the covariance of states can change
    without any autocovariance of the columns: with :math:`m = \max(k - p, 0)` a further m (m + 1) / 2. Inputs add k q
    and p r. A mean and a covariance of first states that are learned add k + k (k + 1) / 2: what leaves autocovariances
    as they are changes the covariance of first states by as much as that of others.
    """
    k, p = n_states, n_columns
    m = max(k - p, 0)
    n_first = k + k * (k + 1) // 2 if learns_first else 0
    return k * (k + 1) // 2 + p * k + p - m * (m + 1) // 2 + k * n_inputs + p * n_output_inputs + n_first


@dataclass(eq=False)  # not frozen, as one is made in every step
class LDSEStep(EStep):
    """The E step of a linear dynamical system; sums are statistics, moments of states, and ln Z."""

    model: LinearDynamicalSystem

    @cached_property
    def lanes(self) -> list[tuple[Potentials, FirstStates]]:
        """Potentials of states, and of first ones, in each lane."""
        return [(self.model.potentials(lane), self.model.first_states(lane)) for lane in self.natural.T]

    def __call__(self, part: LDSData) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The sums of compiled sequences, sections of which threads share."""
        worth = len(part) * self.model.n_states * self.natural.shape[1] > _WORTH_THREADS
        return map_reduce(self._section_sums, sections(part.units), self.n_threads if worth else 1)

    def _section_sums(self, units: Sequence[LDSData]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        parts = [[self._of_unit(*lane, unit) for lane in self.lanes] for unit in units]
        statistics, moments, log_z = ([np.stack([lane[i] for lane in unit]) for unit in parts] for i in range(3))
        return sum(statistics[1:], statistics[0]), sum(moments[1:], moments[0]), sum(log_z[1:], log_z[0])

    def _of_unit(
        self, potentials: Potentials, first: FirstStates, data: LDSData
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Statistics, moments of states, and ln Z of some sequences, for one lane."""
        smoother = Smoother(potentials, first, data)
        expected = smoother.expected()
        log_z = smoother.log_normalizers(expected)
        statistics, moments = self.model.statistics_and_moments(data, expected.regressors, expected.covariances)
        return statistics, moments, data.weight @ np.where(data.weight > 0, log_z, 0.0)

    def finished(self, sums: tuple[np.ndarray, np.ndarray, np.ndarray]) -> Expectation:
        """The outcome of the E step from the sums of all parts."""
        (statistics, moments, log_z), model = sums, self.model
        expansion = StateMoments((model.n_states, model.n_inputs, model.n_output_inputs), moments)
        return Expectation(np.ascontiguousarray(statistics.T), log_z, expansion=expansion)


class LDSAscent(ModelAscent[LinearDynamicalSystem]):
    """Full steps of one system on its data: after each E step states go into the basis in which the bound is best."""

    label = "noise"

    def _expanded(
        self, statistics: np.ndarray, hidden: np.ndarray, natural: np.ndarray, expansion: Any
    ) -> tuple[np.ndarray, Any]:
        """Statistics of states in the basis in which the bound is best, hyperparameters as they are."""
        prior, turned = self.model.prior, statistics + hidden
        for lane in range(statistics.shape[1]):
            given = prior
            if self.hyperprior is not None:
                given = prior.given_hyperparameters(hidden[:, lane])
            basis = StateBasis(self.form, given, self.model.first, statistics[:, lane], expansion.of_lane(lane))
            map = basis.best()
            if map is not None:
                turned[:, lane] = basis.statistics(map) + hidden[:, lane]
        return turned, None
