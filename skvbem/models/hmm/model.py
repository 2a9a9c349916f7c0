r"""Hidden Markov models: :math:`p(y, s \mid \theta) = \pi_{s_1} \prod A_{s_{t-1} s_t} \prod p(y_t \mid s_t, \theta)`.

For any emission, over sequences that are independent given the parameters [Beal §3.2-3.4]. The E step is exact given
the expected parameters: the forward-backward algorithm with :math:`e^{\langle\ln\pi\rangle}` and
:math:`e^{\langle\ln A\rangle}` *as they are*; rows normalized to one would give no bound. Whatever states no
observation depends on are summed out beforehand: those of the steps at the end of a sequence in which nothing was
observed, and whole sequences of such steps.

Statistics are flat: those of the initial distribution, of the transitions, of the emission.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from typing import Any, Self

import numpy as np

from skvbem.emissions import Emission
from skvbem.emissions.base import Step
from skvbem.families import Product
from skvbem.families.base import ConjugateFamily
from skvbem.models.base import Expectation
from skvbem.models.hmm.forward_backward import Passes
from skvbem.models.hmm.sampling import HMMSampling
from skvbem.models.hmm.scoring import HMMScoring
from skvbem.models.hmm.transitions import Transitions
from skvbem.models.labels.ascent import EmissionAscent
from skvbem.models.partial_sums import summed
from skvbem.models.sequences.data import HMMData
from skvbem.models.sequences.segments import Stretch, stretches

# Rows times states times restarts below which threads cost more than they bring.
_WORTH_THREADS = 2**16
# Doubles for each row and state that passes hold beside log likelihoods.
_PER_STATE = 4


class HMM(HMMSampling, HMMScoring):
    """A hidden Markov model with its prior.

    Parameters
    ----------
    emission : Emission
    initial : Transitions
        Prior of the state of the first step, of one row.
    transitions : Transitions
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

    def __init__(
        self, emission: Emission, initial: Transitions, transitions: Transitions, emission_prior: ConjugateFamily
    ):
        self.emission, self.initial, self.transitions = emission, initial, transitions
        self.n_components = transitions.n_states
        cells = emission.component_of_cell(self.n_components)
        blocks = (initial.prior, transitions.prior, emission_prior)
        self.prior = Product(blocks, (initial.n_cells, transitions.n_cells, len(cells)))

    @property
    def n_cells(self) -> int:
        """Numbers that statistics take."""
        return sum(self.prior.n_cells)

    def after(self, statistics: np.ndarray) -> Self:
        """The model whose prior is the posterior of this one, given statistics (n_cells,) [Beal (2.114)]."""
        later = copy(self)
        later.prior = self.prior + statistics
        return later

    def compile(
        self,
        table: Any,
        lengths: Sequence[int] | np.ndarray,
        weight: np.ndarray | None = None,
        observed: np.ndarray | None = None,
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

        Raises
        ------
        ValueError
            If lengths do not add up to the rows of the table.
        """
        lengths = np.asarray(lengths, dtype=np.int64)
        starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        if starts[-1] != len(table):
            raise ValueError(f"The lengths of sequences add up to {starts[-1]}, but there are {len(table)} rows.")
        weight = np.ones(len(lengths)) if weight is None else np.asarray(weight, dtype=float)
        ends = starts[1:]
        if observed is not None:
            seen = np.flatnonzero(observed)
            before = np.searchsorted(seen, starts)  # observed rows before each sequence
            last = seen[np.maximum(before[1:] - 1, 0)] if len(seen) else starts[:-1]
            ends = np.where(before[1:] > before[:-1], last + 1, starts[:-1]).astype(np.int64)
        whole = bool((weight == np.floor(weight)).all())
        return HMMData(table, starts, ends, np.ascontiguousarray(weight), float(weight @ lengths), whole)

    def expect(self, natural: np.ndarray, data: HMMData, n_threads: int = 1) -> Expectation:
        """The E step [Beal §3.4] under natural parameters (n_cells, n_lanes) that need not be normalized."""
        n_lanes = natural.shape[1]
        step = self._step(natural, data)

        def sums(part: Sequence[list[Stretch]]) -> tuple:
            total, passes = step.zeros(), self._passes(natural, data, step)
            first = part[0][0].sequences.start if part else 0
            weight = data.weight[first : part[-1][0].sequences.stop] if part else np.empty(0)
            log_z = np.zeros((n_lanes, len(weight)))
            for pieces in part:
                some = slice(pieces[0].sequences.start - first, pieces[0].sequences.stop - first)
                of_sequences = np.zeros((n_lanes, some.stop - some.start))
                for piece, shares in passes.smoothed(pieces, weight[some], of_sequences):
                    step.add(data.table[piece.rows], shares.swapaxes(-1, -2), total)
                log_z[:, some] = of_sequences
            return total, (weight * np.where(weight > 0, log_z, 0.0)).sum(axis=1), passes.first_counts, passes.counts

        worth = len(data) * self.n_components * n_lanes > _WORTH_THREADS
        units = data.stretches(*self._stretch_rows(n_lanes))
        total, log_z, first, pairs = summed(sums, units, n_threads if worth else 1)
        return Expectation(self._statistics(first, pairs, step.statistics(total).reshape(-1, n_lanes)), log_z)

    def log_normalizers_of_sequences(self, natural: np.ndarray, data: HMMData) -> np.ndarray:
        """ln Z of each sequence, nats, (n_sequences,), weights left aside, at natural parameters (n_cells,).

        At the natural parameters of a point these are log likelihoods.
        """
        passes, found = self._passes(natural[:, None], data), np.zeros(data.n_sequences)
        for pieces in data.stretches(*self._stretch_rows()):
            found[pieces[0].sequences] = passes.forward(pieces)[0][0]
        return found

    def smoothed(self, natural: np.ndarray, data: HMMData) -> np.ndarray:
        """p(state of a step | its whole sequence), (n_rows, n_states), at natural parameters (n_cells,).

        0 in sequences that no path can make.
        """
        passes, found = self._passes(natural[:, None], data), np.zeros((len(data), self.n_components))
        weight, log_z = np.ones(data.n_sequences), np.zeros((1, data.n_sequences))
        for pieces in data.stretches(*self._stretch_rows()):
            some = pieces[0].sequences
            of_sequences = np.zeros((1, some.stop - some.start))
            for piece, shares in passes.smoothed(pieces, weight[some], of_sequences):
                found[piece.rows] = shares[0].T
            log_z[:, some] = of_sequences
        self._go_on(natural, data, found)
        found[np.repeat(~np.isfinite(log_z[0]), data.lengths)] = 0.0
        return found

    def _go_on(self, natural: np.ndarray, data: HMMData, found: np.ndarray) -> None:
        """Fill the posteriors of steps after the last observed one, by what the step before says of the next."""
        initial, transition = (np.exp(x[0]) for x in self._log_chain(natural[:, None]))
        some = np.flatnonzero(data.ends < data.starts[1:])
        rows, empty = data.ends[some], data.ends[some] == data.starts[some]
        states = np.where(empty[:, None], initial, found[rows - 1] @ transition)
        while len(some):
            states /= np.maximum(states.sum(axis=1, keepdims=True), 1e-300)
            found[rows] = states
            rows = rows + 1
            going = rows < data.starts[some + 1]
            some, rows, states = some[going], rows[going], states[going] @ transition

    def filtered(self, natural: np.ndarray, data: HMMData) -> np.ndarray:
        """p(state of a step | the sequence up to it), (n_rows, n_states), at natural parameters (n_cells,).

        0 from the first step on that no path can make.
        """
        passes, found = self._passes(natural[:, None], data), np.zeros((len(data), self.n_components))
        for pieces in stretches(data.starts, data.starts[1:], *self._stretch_rows()):
            passes.forward(pieces, found)
        return found

    def decoded(self, natural: np.ndarray, data: HMMData) -> tuple[np.ndarray, np.ndarray]:
        """The most probable path of each sequence (Viterbi) at natural parameters (n_cells,); the first of equals.

        Returns
        -------
        states : ndarray of int64, shape (n_rows,)
        log_joint : ndarray of shape (n_sequences,)
            ln p(rows, path), nats.
        """
        passes = self._passes(natural[:, None], data)
        states, log_joint = np.zeros(len(data), dtype=np.int64), np.zeros(data.n_sequences)
        for pieces in stretches(data.starts, data.starts[1:], *self._stretch_rows()):
            rows = slice(pieces[0].rows.start, pieces[-1].rows.stop)
            states[rows], log_joint[pieces[0].sequences] = passes.best(pieces)
        return states, log_joint

    def sample(
        self, point: tuple, lengths: Sequence[int] | np.ndarray, rng: np.random.Generator
    ) -> tuple[Any, np.ndarray]:
        """Sequences drawn at a point: their rows as the emission makes them, and the states (n_rows,).

        Parameters
        ----------
        point : tuple
            As of `prior`: probabilities of first states, of transitions, and the emission's point.
        lengths : array_like of int, shape (n_sequences,)
        rng : numpy.random.Generator
        """
        starts = np.concatenate([[0], np.cumsum(np.asarray(lengths, dtype=np.int64))]).astype(np.int64)
        parts = [block.natural(part) for block, part in zip(self.prior.blocks[:2], point)]

        def nothing_observed(rows: slice) -> np.ndarray:
            return np.zeros((1, self.n_components, rows.stop - rows.start))

        passes = Passes(*self._log_matrices(*(part[:, None] for part in parts)), nothing_observed)
        states = np.empty(starts[-1], dtype=np.int64)
        for pieces in stretches(starts, starts[1:], *self._stretch_rows()):
            log_z = np.zeros((1, len(pieces[0].starts)))
            for piece, drawn in passes.drawn(pieces, lambda n: rng.random((1, n)), log_z):
                states[piece.rows] = drawn[0]
        return self.emission.sample(point[2], states, rng), states

    def statistics_of(self, responsibilities: np.ndarray | Iterable[np.ndarray], data: HMMData) -> np.ndarray:
        """Statistics (n_cells,) of states with probabilities (n_rows, n_states), independent of each other.

        They may come in pieces. Missing cells that have statistics are taken as they are expected under the prior.
        """
        if not isinstance(responsibilities, np.ndarray):
            responsibilities = np.concatenate(list(responsibilities))
        return self.statistics_from(lambda rows: responsibilities[rows].T[None], data, 1)[:, 0]

    def statistics_from(self, shares_of: Callable[[slice], np.ndarray], data: HMMData, n_lanes: int) -> np.ndarray:
        """Statistics (n_cells, n_lanes) of the shares of states in a block of rows, (n_lanes, n_states, n_rows)."""
        natural = np.repeat(self.prior.blocks[2].expected_natural()[:, None], n_lanes, axis=1)
        step = self.emission.step(natural, data.table)
        total, n_states = step.zeros(), self.n_components
        first, pairs = np.zeros((n_lanes, n_states)), np.zeros((n_lanes, n_states, n_states))
        before = np.zeros((n_lanes, n_states, 1))
        begins = data.row_weight * (data.pair_weight == 0)
        size = self.emission.block_rows(n_states, n_lanes)
        for at in range(0, len(data), size):
            rows = slice(at, at + size)
            shares = shares_of(rows)
            step.add(data.table[rows], (shares * data.row_weight[rows]).swapaxes(-1, -2), total)
            left = np.concatenate([before, shares[..., :-1]], axis=-1)
            pairs += (left * data.pair_weight[rows]) @ shares.swapaxes(-1, -2)
            first += shares @ begins[rows]
            before = shares[..., -1:]
        return self._statistics(first, pairs, step.statistics(total).reshape(-1, n_lanes))

    def relabeled(self, statistics: np.ndarray, order: np.ndarray) -> np.ndarray:
        """Statistics (n_cells, ...) with the states in another order."""
        return statistics[self.places_of(order)]

    def _statistics(self, first: np.ndarray, pairs: np.ndarray, of_emission: np.ndarray) -> np.ndarray:
        """Statistics of counts of first states (n_lanes, n_states) and transitions (n_lanes, n_states, n_states)."""
        of_initial = self.initial.statistics(first.T[None])
        return np.concatenate([of_initial, self.transitions.statistics(np.moveaxis(pairs, 0, -1)), of_emission])

    def _log_chain(self, natural: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Logs of first states (n_lanes, n_states) and transitions (n_lanes, n_states, n_states)."""
        return self._log_matrices(*self.prior.split(natural)[:2])

    def _log_matrices(self, first: np.ndarray, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        of_initial, of_pairs = self.initial.matrix(first, -np.inf)[0], self.transitions.matrix(pairs, -np.inf)
        return of_initial.T, np.moveaxis(of_pairs, -1, 0)

    def _step(self, natural: np.ndarray, data: HMMData) -> Step:
        """The emission at natural parameters (n_cells, n_lanes)."""
        return self.emission.step(np.ascontiguousarray(self.prior.split(natural)[2]), data.table)

    def _passes(self, natural: np.ndarray, data: HMMData, step: Step | None = None) -> Passes:
        """Passes at natural parameters (n_cells, n_lanes)."""
        at = self._step(natural, data) if step is None else step

        def log_likelihood(rows: slice) -> np.ndarray:
            return np.ascontiguousarray(at.log_likelihood(data.table[rows]).swapaxes(-1, -2))

        return Passes(*self._log_chain(natural), log_likelihood, data.rooms)

    def _stretch_rows(self, n_lanes: int = 1) -> tuple[int, int]:
        """Rows that are passed over at once, and rows of a stretch, for which log likelihoods are found."""
        of_emission = self.emission.block_rows(self.n_components, n_lanes)
        return self.emission.block_rows(self.n_components, n_lanes + _PER_STATE), of_emission


class HMMAscent(EmissionAscent):
    """Full steps of one hidden Markov model on its data."""

    label = "state"
