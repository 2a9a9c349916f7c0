r"""Transitions, or first states, that covariates of the steps drive, and chains that have some.

At a step with regressors u, row j has the probabilities :math:`\pi_{jk}(u) \propto \exp(w_{jk}^\top u)`: of transitions
there is a row for each state of departure, of first states one. The E step takes one matrix for each pattern of
regressors, :math:`e^{M_{jk}^\top u - g_j(u)}`, whose rows sum to less than one, *as it is*; see
`skvbem.families.softmax_rows`. Patterns that are no part of the design, as of new rows, have the softmax itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy.stats import norm

from skvbem._lazy import cached_property
from skvbem._numerics import distinct_rows
from skvbem.emissions.base import Step
from skvbem.emissions.coding import Coding
from skvbem.emissions.outside import rows_last
from skvbem.families.hierarchical import Hierarchical
from skvbem.families.softmax_family import with_hidden_precisions
from skvbem.families.softmax_maximum import Design
from skvbem.families.softmax_rows import SoftmaxRows
from skvbem.models.hmm.covariate_passes import CovariatePasses
from skvbem.models.hmm.model import HMM
from skvbem.models.hmm.transitions import Transitions
from skvbem.models.labels.model import WITH_HIDDEN_PRECISIONS
from skvbem.models.sequences import HMMData

_LACK = (
    "Coefficients of a softmax have no conjugate prior, and what is known of them has no closed form. Take 'auto', "
    "'lower_bound', 'bic', 'laplace' or 'linear_response'."
)
# Why a chain with covariates lacks capabilities.
_WITH_COVARIATES = dict.fromkeys(("batches", "enumeration", "dimension", "complete_evidence", "entropy"), _LACK)


@dataclass(frozen=True, eq=False)
class StepPatterns:
    """Regressors of steps, equal ones once.

    Parameters
    ----------
    regressors : ndarray of shape (n_patterns, n_regressors)
    index : ndarray of int, shape (n_steps,)
        The pattern of each step.
    place : ndarray of int, shape (n_patterns,)
        The place of each pattern in the design; -1 of those that are none of it.
    """

    regressors: np.ndarray
    index: np.ndarray
    place: np.ndarray

    def __getitem__(self, steps: np.ndarray) -> Self:
        """The patterns of some steps."""
        return replace(self, index=self.index[steps])


@dataclass(frozen=True, eq=False)
class SoftmaxTransitions:
    """Rows of probabilities that covariates drive: one for each state of departure, or a single one of first states.

    Parameters
    ----------
    allowed : ndarray of bool, shape (n_rows, n_states)
        Other transitions leave the softmax.
    coding : Coding
        Of the selected covariates.
    selected : tuple of int
        Positions of the covariates that have slopes.
    precision : ndarray of shape (n_regressors,)
        Of intercepts, and of slopes.
    design : Design
        Patterns of regressors in the data of the fit.
    at_arrival : bool
        Whether covariates of the step that is arrived at drive a transition; else those of the step that is left.
    learns_precisions : bool, default=False
        Whether slopes of each covariate have a hidden precision in place of a known one.
    """

    allowed: np.ndarray
    coding: Coding
    selected: tuple[int, ...]
    precision: np.ndarray
    design: Design
    at_arrival: bool = False
    learns_precisions: bool = False

    @property
    def n_states(self) -> int:
        """Number of states that transitions lead to."""
        return self.allowed.shape[1]

    @cached_property
    def family(self) -> SoftmaxRows:
        """The coefficients of all rows, with known precisions."""
        return SoftmaxRows.from_precisions(self.design, self.allowed, self.precision)

    @cached_property
    def prior(self) -> SoftmaxRows | Hierarchical:
        """The prior of the coefficients of all rows."""
        return with_hidden_precisions(self.family, self.coding.columns) if self.learns_precisions else self.family

    @property
    def n_cells(self) -> int:
        """Cells of the prior."""
        return self.family.coordinates.shape[0]

    @property
    def concentration(self) -> np.ndarray:
        """1 for transitions that are possible, (n_rows, n_states): all of them have the same prior."""
        return self.allowed.astype(float)

    def regressors(self, values: np.ndarray) -> np.ndarray:
        """Regressors (n_steps, n_regressors) of covariates (n_steps, n_covariates), a constant first."""
        return self.coding.regressors(values[:, [*self.selected]])

    def with_design(self, values: np.ndarray) -> Self:
        """These rows, with the patterns of covariates (n_steps, n_covariates)."""
        return replace(self, design=Design.of(self.regressors(values)))

    def patterns(self, values: np.ndarray) -> StepPatterns:
        """The patterns of steps with covariates (n_steps, n_covariates)."""
        known = self.design.regressors
        both = np.concatenate([known, self.regressors(values)])
        patterns, which = distinct_rows(both)
        place = np.full(len(patterns), -1)
        place[which[: len(known)]] = np.arange(len(known))
        return StepPatterns(patterns, which[len(known) :], place)

    def logs(self, natural: np.ndarray, steps: StepPatterns, which: slice | np.ndarray) -> np.ndarray:
        """(Expected) log probabilities at steps, (n_steps, n_rows, n_states, ...), nats, at natural parameters."""
        w, _, bounds = self.family.parts(natural)
        index = steps.index[which]
        are_few = len(steps.regressors) <= len(index)  # then a matrix of each pattern is made once
        regressors, place = (each if are_few else each[index] for each in (steps.regressors, steps.place))
        allowed = self.allowed.reshape(*self.allowed.shape, *(1,) * (natural.ndim - 1))
        logs = np.where(allowed, np.tensordot(regressors, w, axes=(1, 2)), -np.inf)
        partition, is_new = -bounds[place], place < 0
        partition[is_new] = np.logaddexp.reduce(logs[is_new], axis=2)
        logs -= partition[:, :, None]
        return logs[index] if are_few else logs

    def log_matrix(self, natural: np.ndarray) -> np.ndarray:
        """Log probabilities at the mean of the design, nats, (n_rows, n_states)."""
        mean = StepPatterns(self.design.regressors.mean(axis=0)[None], np.zeros(1, dtype=int), np.array([-1]))
        return self.logs(natural, mean, slice(None))[0]

    def sums(self, posterior: np.ndarray, steps: StepPatterns, which: slice | np.ndarray) -> np.ndarray:
        """Statistics (..., n_cells) of probabilities of transitions (..., n_steps, n_rows, n_states) at steps."""
        index = steps.index[which]
        lanes = posterior.reshape(int(np.prod(posterior.shape[:-3])), *posterior.shape[-3:])
        out = np.zeros((self.n_cells, len(lanes)))
        counts, _, of_patterns = self.family.parts(out)
        used, place = lanes.sum(axis=3), steps.place[index]
        if (used[:, place < 0] > 0).any():
            raise ValueError("Statistics are of the design, which does not hold the covariates of some steps.")
        counts[...] = np.moveaxis(np.tensordot(lanes, steps.regressors[index], axes=(1, 0)), 0, -1)
        shape = len(lanes), len(of_patterns)
        cells = np.arange(len(lanes))[:, None] * len(of_patterns) + np.maximum(place, 0)
        for j in range(len(self.allowed)):
            of_patterns[:, j] = np.bincount(cells.ravel(), used[:, :, j].ravel(), np.prod(shape)).reshape(shape).T
        return out.T.reshape(*posterior.shape[:-3], self.n_cells)

    def matrix(self, statistics: np.ndarray) -> np.ndarray:
        """Counts of transitions (n_rows, n_states, ...) that statistics (n_cells, ...) hold: of the constant."""
        return self.family.parts(statistics)[0][:, :, 0]

    def shared_out(self, statistics: np.ndarray, fractions: np.ndarray, into: Self) -> np.ndarray:
        """Statistics of rows `into` new states that get fractions (n_new, n_states) of those there are."""
        counts, precision, used = self.family.parts(statistics)
        rows = np.ones((1, 1)) if len(self.allowed) == len(into.allowed) == 1 else fractions
        counts = np.einsum("aj,jkp,bk->abp", rows, counts, fractions) * into.allowed[..., None]
        return np.concatenate([counts.ravel(), precision, (used @ rows.T).ravel()])

    def relabeled(self, order: np.ndarray) -> Self:
        """The rows with the states in another order."""
        rows = order if len(self.allowed) > 1 else np.arange(1)
        return replace(self, allowed=self.allowed[np.ix_(rows, order)])

    def is_same(self, other: Self) -> bool:
        """True if other rows have the same transitions."""
        return np.array_equal(self.allowed, other.allowed)

    def cells_in_order(self, orders: np.ndarray) -> np.ndarray:
        """For each cell the one that takes its place where states are put in another order, (..., n_cells).

        Raises
        ------
        ValueError
            If an order puts a transition that exists in the place of one that does not.
        """
        single = np.atleast_2d(orders.reshape(-1, orders.shape[-1]))
        counts, precision, used = self.family.parts(np.arange(self.n_cells))
        places = []
        for order in single:
            rows = order if len(self.allowed) > 1 else np.arange(1)
            if not np.array_equal(self.allowed[np.ix_(rows, order)], self.allowed):
                raise ValueError("States in this order would need transitions that the mask rules out.")
            places.append(np.concatenate([counts[rows][:, order].ravel(), precision, used[:, rows].ravel()]))
        return np.stack(places).reshape(*orders.shape[:-1], -1)

    def parameters(self, point: np.ndarray) -> dict[str, np.ndarray]:
        """Intercepts (n_rows, n_states, ...) and coefficients (n_rows, n_states, n_effects, ...) in units of the data.

        Further axes of points (n_rows, n_states, n_regressors, ...) are draws.
        """
        in_units = np.moveaxis(np.tensordot(self.coding.effects, point, axes=(1, 2)), 0, 2)
        return {"intercepts": in_units[:, :, 0], "coefficients": in_units[:, :, 1:]}

    def quantiles(self, posterior: SoftmaxRows, probability: float) -> dict[str, np.ndarray]:
        """Quantiles under a posterior of what `parameters` names."""
        deviation = np.sqrt(posterior.variance_of(self.coding.effects))
        ends = posterior.mean @ self.coding.effects.T + norm.ppf(probability) * deviation
        return {"intercepts": ends[..., 0], "coefficients": ends[..., 1:]}

    def concentrations(self, posterior: SoftmaxRows) -> dict[str, np.ndarray]:
        """Hyperparameters of a posterior, by name: none, as coefficients have no conjugate prior."""
        return {}

    def probabilities(self, point: np.ndarray, statistics: np.ndarray) -> np.ndarray:
        """Shares (n_rows, n_states) of transitions that statistics (n_cells,) of the data hold; even ones without."""
        counts = self.matrix(statistics)
        total = counts.sum(axis=1, keepdims=True)
        return np.where(total > 0, counts / np.maximum(total, 1e-300), self.allowed / self.allowed.sum(1)[:, None])

    def redirected(self, statistics: np.ndarray, kept: float, rng: np.random.Generator) -> np.ndarray:
        """The statistics as they are: counts that are led elsewhere say nothing of covariates."""
        return statistics


#: First states or transitions, whatever drives them.
ChainRows = Transitions | SoftmaxTransitions


class CovariateHMM(HMM):
    """A hidden Markov model some of whose first states or transitions covariates drive.

    Parameters
    ----------
    emission : Independent
        One part of which holds covariates.
    initial, transitions : Transitions or SoftmaxTransitions
    emission_prior : Product
    part : int
        Of the emission, with the covariates.
    """

    is_homogeneous: ClassVar[bool] = False
    # what is inherited asks rows for methods that both kinds have
    initial: ChainRows  # type: ignore[assignment]
    transitions: ChainRows  # type: ignore[assignment]
    part: int

    def __init__(self, emission: Any, initial: Any, transitions: Any, emission_prior: Any, part: int):
        super().__init__(emission, initial, transitions, emission_prior)
        self.part = part

    @property
    def reasons(self) -> Mapping[str, str]:
        """Why a chain with covariates lacks capabilities."""
        return _WITH_COVARIATES | (WITH_HIDDEN_PRECISIONS if self.learns_precisions else {})

    @property
    def learns_precisions(self) -> bool:
        """True if slopes have hidden precisions."""
        return any(rows.prior.hyperprior is not None for rows in (self.initial, self.transitions))

    def covariates_of(self, table: Any, starts: np.ndarray) -> tuple[StepPatterns | None, StepPatterns | None]:
        """Patterns of covariates of first steps, and of transitions into each row."""
        values = getattr(table, "rows", table).parts[self.part]
        into = covariates_of_transitions(self.transitions.at_arrival, values)
        return self.initial.patterns(values[first_rows(starts)]), self.transitions.patterns(into)

    def forward_backward(  # type: ignore[override]  # passes with the same methods
        self, natural: np.ndarray, data: HMMData, step: Step | None = None
    ) -> CovariatePasses:
        """Passes over segments at natural parameters (n_cells, n_lanes)."""
        at = self.step(natural, data) if step is None else step

        def log_likelihood(rows: slice) -> np.ndarray:
            return rows_last(at, data.table[rows], natural.shape[1], self.n_components)

        first, pairs, _ = self.prior.split(natural)
        return CovariatePasses((self.initial, first), (self.transitions, pairs), data.covariates, log_likelihood)

    def joined_statistics(self, first: np.ndarray, pairs: np.ndarray, of_emission: np.ndarray) -> np.ndarray:
        """Statistics of those of first states and of transitions, (n_lanes, n_cells) each."""
        return np.concatenate([first.T, pairs.T, of_emission])

    def log_chain(self, natural: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Logs of first states (n_lanes, n_states) and transitions (n_lanes, n_states, n_states) at mean covariates."""
        first, pairs, _ = self.prior.split(natural)
        of_first = np.stack([self.initial.log_matrix(lane)[0] for lane in first.T])
        return of_first, np.stack([self.transitions.log_matrix(lane) for lane in pairs.T])

    def counts_of(
        self, left: np.ndarray, smoothed: np.ndarray, rows: slice, data: HMMData
    ) -> tuple[np.ndarray, np.ndarray]:
        """Statistics of first states and of transitions where neighbors are independent, (n_lanes, n_cells) each."""
        begin = np.flatnonzero((data.starts[:-1] >= rows.start) & (data.starts[:-1] < rows.start + smoothed.shape[-1]))
        begin = begin[data.ends[begin] > data.starts[begin]]
        at, weight = data.starts[begin] - rows.start, data.weight[begin]
        which = slice(rows.start, rows.start + smoothed.shape[-1])
        first, pairs = [], []
        for before, here in zip(left, smoothed):
            of_first = (here[:, at] * weight).T[:, None] * self.initial.allowed
            of_pairs = before.T[:, :, None] * here.T[:, None] * self.transitions.allowed
            first.append(self.initial.sums(of_first, data.covariates[0], begin))
            pairs.append(self.transitions.sums(of_pairs, data.covariates[1], which))
        return np.stack(first), np.stack(pairs)

    def chain_at(self, natural: np.ndarray, data: HMMData) -> tuple[Callable, Callable]:
        """Functions: first states of sequences, and states at rows from those of the rows before, of one lane."""
        of_first, of_pairs, _ = self.prior.split(natural)

        def first(sequences: np.ndarray) -> np.ndarray:
            return np.exp(self.initial.logs(of_first, data.covariates[0], sequences)[:, 0])

        def into(states: np.ndarray, rows: np.ndarray) -> np.ndarray:
            matrices = np.exp(self.transitions.logs(of_pairs, data.covariates[1], rows))
            return (states[:, None] @ matrices)[:, 0]

        return first, into

    def sample(
        self, point: tuple, lengths: Sequence[int] | np.ndarray, rng: np.random.Generator, given: Any = None
    ) -> tuple[Any, np.ndarray]:
        """Sequences drawn at a point, which have the covariates of rows that are given; see `HMM.sample`."""
        data = self.compile(self.emission.prepare(given), lengths)
        first, pairs, _ = self.prior.split(self.prior.natural(point)[:, None])

        def nothing_observed(rows: slice) -> np.ndarray:
            return np.zeros((1, self.n_components, rows.stop - rows.start))

        passes = CovariatePasses((self.initial, first), (self.transitions, pairs), data.covariates, nothing_observed)
        states = self._drawn_path(passes, data.starts, rng)  # type: ignore[arg-type]  # it takes either passes
        return self.emission.sample_given(given, lengths, point[2], states, rng), states


def first_rows(starts: np.ndarray) -> np.ndarray:
    """The first row of each sequence, (n_sequences,); of an empty one another."""
    return np.minimum(starts[:-1], max(starts[-1] - 1, 0))


def covariates_of_transitions(at_arrival: bool, values: np.ndarray) -> np.ndarray:
    """Covariates that drive the transition into each row, (n_rows, n_covariates); those of first rows drive none."""
    return values if at_arrival else np.concatenate([values[:1], values[:-1]])
