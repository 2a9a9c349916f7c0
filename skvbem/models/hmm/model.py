r"""Hidden Markov models: :math:`p(y, s \mid \theta) = \pi_{s_1} \prod A_{s_{t-1} s_t} \prod p(y_t \mid s_t, \theta)`.

For any emission, over sequences that are independent given the parameters [Beal §3.2-3.4]. The E step is exact given
the expected parameters: the forward-backward algorithm with :math:`e^{\langle\ln\pi\rangle}` and
:math:`e^{\langle\ln A\rangle}` *as they are*; rows normalized to one would give no bound. Whatever states no
observation depends on are summed out beforehand: those of the steps at the end of a sequence in which nothing was
observed, and whole sequences of such steps.

A transition that a mask rules out is absent: it is no cell of the prior, and counts as no parameter.

Statistics are flat: those of the initial distribution, of the transitions, of the emission.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy.special import softmax

from skvbem._memory import ReusedMemory
from skvbem.blocks import map_reduce, sections
from skvbem.emissions import Emission
from skvbem.emissions.base import Step, start_natural
from skvbem.emissions.outside import rows_last
from skvbem.families import Product
from skvbem.families.base import ConjugateFamily
from skvbem.models.base import DataInParts, EStep, Expectation
from skvbem.models.hmm.forward_backward import ForwardBackward
from skvbem.models.hmm.transitions import Transitions
from skvbem.models.labels.distinct_rows import DistinctRows, HashedRows
from skvbem.models.labels.model import EmissionAscent, LabelModel, divergence_sums, symmetric_divergences
from skvbem.models.sequences import HMMData, Segment, segments

# Rows times states times restarts below which threads cost more than they bring.
_WORTH_THREADS = 2**16
# Doubles for each row and state that passes hold beside log likelihoods.
_PER_STATE = 4


class HMM(LabelModel):
    """A hidden Markov model with its prior.

    Parameters
    ----------
    emission : Emission
    initial : Transitions
        Prior of the state of the first step, of one row.
    transitions : Transitions, or rows with its methods
        Prior of the next state, of one row for each state.
    emission_prior : ConjugateFamily
        Of as many components as there are states.

    Examples
    --------
    >>> import numpy as np
    >>> from skvbem.emissions.categorical import CategoricalEmission
    >>> from skvbem.models.hmm.model import HMM, HMMAscent
    >>> from skvbem.models.hmm.transitions import Transitions
    >>> from skvbem.vbem import posteriors
    >>> symbols = np.array([[0, 0, 0, 1, 1, 1, 0, 0, 1, 1, 1, 1]]).T
    >>> emission = CategoricalEmission((2,))
    >>> ones = Transitions(np.ones((1, 2))), Transitions(np.ones((2, 2)))
    >>> model = HMM(emission, *ones, emission.default_prior(2))
    >>> data = model.compile(emission.prepare(symbols), lengths=[12])
    >>> start = np.array([0.7, 0.3, 2, 0.5, 0.2, 1.5, 2, 0, 0, 3])[:, None]
    >>> ascent = HMMAscent(model, data, posteriors.VB)
    >>> ascent.advance(start, 2).round(6).tolist()
    [[-12.219274], [-11.363509]]
    >>> model.decoded(posteriors.VB.of(model.prior, start)[0][:, 0], data)[0].tolist()
    [0, 0, 0, 1, 1, 1, 0, 0, 1, 1, 1, 1]
    """

    labels = "states"
    #: True if first states and transitions have the same probabilities at every step.
    is_homogeneous: ClassVar[bool] = True
    #: True if the next state depends on how long the state has lasted.
    has_ages: ClassVar[bool] = False
    initial: Transitions
    transitions: Transitions

    def __init__(self, emission: Emission, initial: Transitions, transitions: Any, emission_prior: ConjugateFamily):
        self.initial, self.transitions = initial, transitions
        self.emission, self.n_components = emission, transitions.n_states
        blocks = (initial.prior, transitions.prior, emission_prior)
        self.prior = Product(blocks, tuple(len(block.coordinates) for block in blocks))

    def compile(
        self,
        table: Any,
        lengths: Sequence[int] | np.ndarray,
        weight: np.ndarray | None = None,
        observed: np.ndarray | None = None,
        row_hashes: Callable[[slice], np.ndarray] | None = None,
    ) -> HMMData:
        """Sequences made ready for many E steps.

        Parameters
        ----------
        table : Table
            Rows of all sequences, one sequence after the other, as the emission prepared them.
        lengths : array_like of int, shape (n_sequences,)
            Rows of each sequence.
        weight : ndarray of shape (n_sequences,), optional
            How often each sequence counts.
        observed : ndarray of bool, shape (n_rows,), optional
            Whether a row has any observed cell.
        row_hashes : callable, optional
            Numbers of a slice of rows, equal for equal rows alone: what starts around rows need.

        Raises
        ------
        ValueError
            If lengths do not add up to the rows of the table.
        """
        lengths = np.asarray(lengths, dtype=np.int64)
        starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        n_rows = sum(lengths.tolist())  # a sum of 64 bits could come round to the right number
        if n_rows != len(table) or (lengths < 0).any():
            raise ValueError(f"The lengths of sequences must add up to the {len(table)} rows. They make {n_rows}.")
        weight = np.ones(len(lengths)) if weight is None else np.asarray(weight, dtype=float)
        ends = starts[1:]
        if observed is not None:
            seen = np.flatnonzero(observed)
            before = np.searchsorted(seen, starts)  # observed rows before each sequence
            last = seen[np.maximum(before[1:] - 1, 0)] if len(seen) else starts[:-1]
            ends = np.where(before[1:] > before[:-1], last + 1, starts[:-1]).astype(np.int64)
        n_observed = lengths if observed is None else np.diff(before)
        whole = bool((weight == np.floor(weight)).all())
        weight, n = np.ascontiguousarray(weight), float(weight @ n_observed)
        return HMMData(table, starts, ends, weight, n, whole, row_hashes, self.covariates_of(table, starts))

    def covariates_of(self, table: Any, starts: np.ndarray) -> Any:
        """What drives first states, and transitions into each row; None where nothing does."""
        return None

    def e_step(self, natural: np.ndarray, data: HMMData | DataInParts, n_threads: int = 1) -> HMMEStep:
        """The E step at natural parameters (n_cells, n_lanes) as a value: sums of a part, and the outcome of all."""
        return HMMEStep(self, natural, n_threads, data.table)

    def log_normalizers_of_sequences(self, natural: np.ndarray, data: HMMData) -> np.ndarray:
        """ln Z of each sequence, nats, (n_sequences,), weights left aside, at natural parameters (n_cells,).

        At the natural parameters of a point these are log likelihoods.
        """
        passes, log_z = self.forward_backward(natural[:, None], data), np.zeros(data.n_sequences)
        for pieces in data.segments(*self.segment_rows()):
            log_z[pieces[0].sequences] = passes.forward(pieces)[0][0]
        return log_z

    def smoothed(self, natural: np.ndarray, data: HMMData) -> np.ndarray:
        """p(state of a step | its whole sequence), (n_rows, n_states), at natural parameters (n_cells,).

        0 in sequences that no path can make.
        """
        passes, probability = self.forward_backward(natural[:, None], data), np.zeros((len(data), self.n_components))
        weight, log_z = np.ones(data.n_sequences), np.zeros((1, data.n_sequences))
        for pieces in data.segments(*self.segment_rows()):
            sequences = pieces[0].sequences
            by_sequence = np.zeros((1, sequences.stop - sequences.start))
            for piece, smoothed in passes.smoothed(pieces, weight[sequences], by_sequence):
                probability[piece.rows] = smoothed[0].T
            log_z[:, sequences] = by_sequence
        self._go_on(natural, data, probability)
        probability[np.repeat(~np.isfinite(log_z[0]), data.lengths)] = 0.0
        return probability

    def _go_on(self, natural: np.ndarray, data: HMMData, probability: np.ndarray) -> None:
        """Fill the posteriors of steps after the last observed one, by what the step before says of the next."""
        first, into = self.chain_at(natural, data)
        sequences = np.flatnonzero(data.ends < data.starts[1:])
        rows, empty = data.ends[sequences], data.ends[sequences] == data.starts[sequences]
        states = np.where(empty[:, None], first(sequences), into(probability[rows - 1], rows))
        while len(sequences):
            states /= np.maximum(states.sum(axis=1, keepdims=True), 1e-300)
            probability[rows] = states
            rows = rows + 1
            going = rows < data.starts[sequences + 1]
            sequences, rows = sequences[going], rows[going]
            states = into(states[going], rows)

    def chain_at(self, natural: np.ndarray, data: HMMData) -> tuple[Callable, Callable]:
        """Functions: first states of sequences, and states at rows from those of the rows before, of one lane."""
        first, transition = (np.exp(x[0]) for x in self.log_chain(natural[:, None]))
        return lambda sequences: first, lambda states, rows: states @ transition

    def filtered(self, natural: np.ndarray, data: HMMData) -> np.ndarray:
        """p(state of a step | the sequence up to it), (n_rows, n_states), at natural parameters (n_cells,).

        0 from the first step on that no path can make.
        """
        passes, probability = self.forward_backward(natural[:, None], data), np.zeros((len(data), self.n_components))
        for pieces in segments(data.starts, data.starts[1:], *self.segment_rows()):
            passes.forward(pieces, probability)
        return probability

    def states_ahead(
        self, natural: np.ndarray, data: HMMData, now: np.ndarray, n_steps: int, point: tuple
    ) -> np.ndarray:
        """Probabilities of states after the ends of sequences, (n_sequences, n_steps, n_states).

        Parameters
        ----------
        natural : ndarray of shape (n_cells,)
            Natural parameters that say of the last step what the rows have shown.
        data : HMMData
        now : ndarray of shape (n_sequences, n_states)
            States of the last steps.
        n_steps : int
        point : tuple
            Of `prior`, by which states go on.
        """
        transmat, steps = self.transitions.matrix(point[1]), []
        for _ in range(n_steps):
            now = now @ transmat
            steps.append(now)
        return np.stack(steps, axis=1)

    def decoded(self, natural: np.ndarray, data: HMMData) -> tuple[np.ndarray, np.ndarray]:
        """The most probable path of each sequence (Viterbi) at natural parameters (n_cells,); the first of equals.

        Returns
        -------
        states : ndarray of int64, shape (n_rows,)
        log_joint : ndarray of shape (n_sequences,)
            ln p(rows, path), nats.
        """
        passes = self.forward_backward(natural[:, None], data)
        states, log_joint = np.zeros(len(data), dtype=np.int64), np.zeros(data.n_sequences)
        for pieces in segments(data.starts, data.starts[1:], *self.segment_rows()):
            rows = slice(pieces[0].rows.start, pieces[-1].rows.stop)
            states[rows], log_joint[pieces[0].sequences] = passes.best(pieces)
        return states, log_joint

    def drawn_path(self, natural: np.ndarray, data: HMMData, rng: np.random.Generator) -> np.ndarray:
        """The state of every row, (n_rows,), of paths drawn given their sequences at natural parameters (n_cells,)."""
        return self._drawn_path(self.forward_backward(natural[:, None], data), data.starts, rng)

    def _drawn_path(self, passes: ForwardBackward, starts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        states = np.empty(starts[-1], dtype=np.int64)
        for pieces in segments(starts, starts[1:], *self.segment_rows()):
            log_z = np.zeros((1, len(pieces[0].starts)))
            for piece, drawn in passes.drawn(pieces, lambda n: rng.random((1, n)), log_z):
                states[piece.rows] = drawn[0].argmax(axis=0)
        return states

    def sample(
        self, point: tuple, lengths: Sequence[int] | np.ndarray, rng: np.random.Generator, given: Any = None
    ) -> tuple[Any, np.ndarray]:
        """Sequences drawn at a point: their rows as the emission makes them, and the states (n_rows,).

        Parameters
        ----------
        point : tuple
            As of `prior`: probabilities of first states, of transitions, and the emission's point.
        lengths : array_like of int, shape (n_sequences,)
        rng : numpy.random.Generator
        given : rows as the emission takes them, optional
            Whose given columns the new ones have.
        """
        starts = np.concatenate([[0], np.cumsum(np.asarray(lengths, dtype=np.int64))]).astype(np.int64)

        def nothing_observed(rows: slice) -> np.ndarray:
            return np.zeros((1, self.n_components, rows.stop - rows.start))

        passes = self.passes(self.prior.natural(point)[:, None], nothing_observed)
        states = self._drawn_path(passes, starts, rng)
        return self.emission.sample_given(given, lengths, point[2], states, rng), states

    def statistics_of(self, responsibilities: np.ndarray | Iterable[np.ndarray], data: HMMData) -> np.ndarray:
        """Statistics (n_cells,) of states with probabilities (n_rows, n_states), independent of each other.

        They may come in pieces. Missing cells that have statistics are taken as they are expected under the prior.
        """
        if not isinstance(responsibilities, np.ndarray):
            responsibilities = np.concatenate(list(responsibilities))
        return self.statistics_from(lambda rows: responsibilities[rows].T[None], data, 1)[:, 0]

    def statistics_from(self, smoothed_of: Callable[[slice], np.ndarray], data: HMMData, n_lanes: int) -> np.ndarray:
        """Statistics (n_cells, n_lanes) of probabilities of states in blocks of rows, (n_lanes, n_states, n_rows)."""
        natural = np.repeat(start_natural(self.emission, self.prior.blocks[2])[:, None], n_lanes, axis=1)
        step = self.emission.step(natural, data.table)
        total, n_states = step.zeros(), self.n_components
        nobody = np.zeros((n_lanes, n_states, 0))
        first, pairs = self.counts_of(nobody, nobody, slice(0, 0), data)
        before = np.zeros((n_lanes, n_states, 1))
        size = self.emission.block_rows(n_states, n_lanes)
        for at in range(0, len(data), size):
            rows = slice(at, at + size)
            smoothed = smoothed_of(rows)
            step.add(data.table[rows], (smoothed * data.row_weight[rows]).swapaxes(-1, -2), total)
            left = np.concatenate([before, smoothed[..., :-1]], axis=-1) * data.pair_weight[rows]
            for counts, of_block in zip((first, pairs), self.counts_of(left, smoothed, rows, data)):
                counts += of_block
            before = smoothed[..., -1:]
        return self.started(self.joined_statistics(first, pairs, step.statistics(total).reshape(-1, n_lanes)))

    def counts_of(
        self, left: np.ndarray, smoothed: np.ndarray, rows: slice, data: HMMData
    ) -> tuple[np.ndarray, np.ndarray]:
        """First states and transitions where rows, and rows before them times weights, are independent, by lane."""
        begins = data.row_weight[rows] * (data.pair_weight[rows] == 0)
        return smoothed @ begins, left @ smoothed.swapaxes(-1, -2)

    def hashed_rows(self, data: HMMData) -> HashedRows:
        """The rows, each as often as its sequence counts."""
        assert data.row_hashes is not None
        return HashedRows(data.table, data.row_weight, data.row_hashes)

    def expected_rows(self, natural: np.ndarray, data: HMMData, rows: DistinctRows) -> np.ndarray:
        """Expected steps in each state at distinct rows, (n_states, n_rows), wherever these stand."""
        assert data.row_hashes is not None
        smoothed = self.smoothed(natural, data) * data.row_weight[:, None]
        hashes, order = data.row_hashes(slice(None)), np.argsort(rows.hashes)
        place = np.minimum(np.searchsorted(rows.hashes, hashes, sorter=order), len(rows) - 1)
        is_among = rows.hashes[order][place] == hashes
        expected = np.zeros((self.n_components, len(rows)))
        for k in range(self.n_components):
            expected[k] = np.bincount(order[place[is_among]], smoothed[is_among, k], len(rows))
        return expected * (data.row_weight.sum() / max(expected.sum(), 1e-300))

    def most_components(self, data: HMMData) -> int:
        """States that may each be needed: as many as there are steps that count, as equal rows may follow others."""
        return int(np.count_nonzero(data.row_weight))

    def expected_counts(self, statistics: np.ndarray) -> np.ndarray:
        """Expected steps in each state, (n_states,)."""
        first, pairs, _ = self.prior.split(statistics)
        return self.initial.matrix(first)[0] + self.transitions.matrix(pairs).sum(axis=0)

    def shared_out(self, statistics: np.ndarray, fractions: np.ndarray, into: Any = None) -> np.ndarray:
        """Statistics of first states and transitions where new states get fractions of those there are."""
        first, pairs, _ = self.prior.split(statistics)
        later = self if into is None else into
        of_first = self.initial.shared_out(first, fractions, later.initial)
        return np.concatenate([of_first, self.transitions.shared_out(pairs, fractions, later.transitions)])

    @property
    def have_places(self) -> bool:
        """A mask rules transitions out, and no labels are known, whose states keep their numbers."""
        is_free = self.transitions.allowed.all() and self.initial.allowed.all()
        return not (is_free or self.emission.n_levels)

    def preferred_order(self, statistics: np.ndarray, fractions: np.ndarray | None = None) -> np.ndarray | None:
        """What new states are made of stays in its order where states have places."""
        if fractions is None or not self.have_places:
            return None
        return np.argsort((fractions > 0).argmax(axis=1), kind="stable")

    def relabeled(self, statistics: np.ndarray, order: np.ndarray) -> np.ndarray:
        """Statistics (n_cells, ...) with the states in another order."""
        return statistics[self.cells_in_order(order)]

    def cells_in_order(self, orders: np.ndarray) -> np.ndarray:
        """For each cell the one that takes its place where states are put in another order, (..., n_cells).

        Parameters
        ----------
        orders : ndarray of int, shape (..., n_states)
        """
        state, n_initial = self.emission.component_of_cell(self.n_components), self.initial.n_cells
        cells = np.stack([np.flatnonzero(state == k) for k in range(self.n_components)])
        of_emission = np.tile(np.arange(len(state)), (*orders.shape[:-1], 1))
        of_emission[..., cells.ravel()] = cells[orders].reshape(*orders.shape[:-1], -1)
        parts = [self.initial.cells_in_order(orders), n_initial + self.transitions.cells_in_order(orders)]
        return np.concatenate([*parts, n_initial + self.transitions.n_cells + of_emission], axis=-1)

    def divergences(self, natural: np.ndarray, data: HMMData) -> np.ndarray:
        """Divergences of states, (n_states, n_states), nats a step, 0 on the diagonal.

        What rows say (see `symmetric_divergences`; NaN for states without any), and the symmetric divergence of where
        the two go, where it makes no difference to which of the two: states at 0 could be one state.

        Parameters
        ----------
        natural : ndarray of shape (n_cells,)
        data : HMMData
        """
        n, divergences = self.n_components, np.zeros((1, 1))
        if n > 1:
            divergences = symmetric_divergences(*map_reduce(partial(self._divergence_sums, natural), data.parts))
        transition = softmax(self.log_chain(natural[:, None])[1][0], axis=1)
        for a in range(n):
            for b in range(a):
                both = transition[[a, b]]
                both = np.column_stack([both[:, [a, b]].sum(axis=1), np.delete(both, [a, b], axis=1)])
                logs = np.log(np.maximum(both, np.exp(-700.0)))
                away = float(((both[0] - both[1]) * (logs[0] - logs[1])).sum())
                divergences[a, b], divergences[b, a] = divergences[a, b] + away, divergences[b, a] + away
        return divergences

    def _divergence_sums(self, natural: np.ndarray, part: HMMData) -> tuple[np.ndarray, np.ndarray]:
        passes = self.forward_backward(natural[:, None], part)
        return divergence_sums(self.n_components, self.smoothed_blocks(passes, part))

    def smoothed_blocks(self, passes: ForwardBackward, data: HMMData) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Posteriors of states times weights, and log likelihoods of rows, (n_states, n_rows), of blocks of rows."""
        for pieces in data.segments(*self.segment_rows()):
            by_sequence = np.zeros((1, len(pieces[0].starts)))
            for piece, smoothed in passes.smoothed(pieces, data.weight[pieces[0].sequences], by_sequence):
                yield smoothed[0], passes.log_likelihood(piece.rows)[0]

    def cells_of_paths(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Cells of the Markov chain of paths: which may be first, which may follow which, and the state of each.

        Boolean arrays (n,) and (n, n), and states (n,).
        """
        return self.initial.allowed[0], self.transitions.allowed, np.arange(self.n_components)

    def statistics_of_paths(self, first: np.ndarray, steps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Statistics of first states and of transitions, (n_cells, n) each, of counts of cells (n, ...) and steps."""
        return self.initial.statistics(first[None]), self.transitions.statistics(steps)

    def joined_statistics(self, first: np.ndarray, pairs: np.ndarray, of_emission: np.ndarray) -> np.ndarray:
        """Statistics of counts of first states (n_lanes, n_states) and transitions (n_lanes, n_states, n_states)."""
        initial_cells = self.initial.statistics(first.T[None])
        return np.concatenate([initial_cells, self.transitions.statistics(np.moveaxis(pairs, 0, -1)), of_emission])

    def log_chain(self, natural: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Logs of first states (n_lanes, n_states) and transitions (n_lanes, n_states, n_states)."""
        first, pairs, _ = self.prior.split(natural)
        initial_cells, pair_cells = self.initial.matrix(first, -np.inf)[0], self.transitions.matrix(pairs, -np.inf)
        return initial_cells.T, np.moveaxis(pair_cells, -1, 0)

    def forward_backward(self, natural: np.ndarray, data: HMMData, step: Step | None = None) -> ForwardBackward:
        """Passes over segments at natural parameters (n_cells, n_lanes)."""
        at = self.step(natural, data) if step is None else step

        def log_likelihood(rows: slice) -> np.ndarray:
            return rows_last(at, data.table[rows], natural.shape[1], self.n_components)

        return self.passes(natural, log_likelihood, data.memory)

    def passes(
        self, natural: np.ndarray, log_likelihood: Callable[[slice], np.ndarray], memory: ReusedMemory | None = None
    ) -> ForwardBackward:
        """Passes at natural parameters (n_cells, n_lanes), by log likelihoods of rows."""
        return ForwardBackward(*self.log_chain(natural), log_likelihood, memory)

    def segment_rows(self, n_lanes: int = 1) -> tuple[int, int]:
        """Rows that are passed over at once, and rows of a segment, for which log likelihoods are found."""
        of_emission = self.emission.block_rows(self.n_components, n_lanes)
        return self.emission.block_rows(self.n_components, n_lanes + _PER_STATE), of_emission


@dataclass(eq=False)  # not frozen, as one is made in every step
class HMMEStep(EStep):
    """The E step of a hidden Markov model at natural parameters, for parts of whole sequences.

    Sums are those of the emission, of ln Z, of first states, and of transitions.

    Parameters
    ----------
    model : HMM
    natural : ndarray of shape (n_cells, n_lanes)
    n_threads : int
    table : Table
        What the emission must know of all rows.
    """

    model: HMM
    table: Any = None

    def __post_init__(self) -> None:
        self.step = self.model.step(self.natural, self)

    def __call__(self, part: HMMData) -> tuple:
        """The sums of compiled sequences, sections of which threads share."""
        n_lanes = self.natural.shape[1]
        worth = len(part) * self.model.n_components * n_lanes > _WORTH_THREADS
        units = sections(part.segments(*self.model.segment_rows(n_lanes)))
        return map_reduce(partial(self._section_sums, part), units, self.n_threads if worth else 1)

    def _section_sums(self, part: HMMData, units: Sequence[list[Segment]]) -> tuple:
        step, n_lanes = self.step, self.natural.shape[1]
        total, passes = step.zeros(), self.model.forward_backward(self.natural, part, step)
        first = units[0][0].sequences.start if units else 0
        weight = part.weight[first : units[-1][0].sequences.stop] if units else np.empty(0)
        log_z = np.zeros((n_lanes, len(weight)))
        for pieces in units:
            sequences = slice(pieces[0].sequences.start - first, pieces[0].sequences.stop - first)
            by_sequence = np.zeros((n_lanes, sequences.stop - sequences.start))
            for piece, smoothed in passes.smoothed(pieces, weight[sequences], by_sequence):
                step.add(part.table[piece.rows], smoothed.swapaxes(-1, -2), total)
            log_z[:, sequences] = by_sequence
        return total, (weight * np.where(weight > 0, log_z, 0.0)).sum(axis=1), passes.first_counts, passes.counts

    def finished(self, sums: tuple) -> Expectation:
        """The outcome of the E step from the sums of all parts."""
        total, log_z, first, pairs = sums
        of_emission = self.step.statistics(total).reshape(-1, len(log_z))
        statistics = self.model.joined_statistics(first, pairs, of_emission)
        return Expectation(statistics, log_z, expansion=self.step.expansion(total))

    def __reduce__(self) -> tuple:
        return type(self), (self.model, self.natural, self.n_threads, self.table[:0])


class HMMAscent(EmissionAscent[HMM]):
    """Full steps of one hidden Markov model on its data."""

    label = "state"
