r"""Hidden semi-Markov models: states last for a number of steps with a distribution of its own.

The hidden path is one of cells, states with ages (see `skvbem.models.hmm.semi_markov_rows`), a Markov chain whose cells
of a state emit alike. The E step is exact given the expected parameters, as of `skvbem.models.hmm.model`; it takes
n_states (3 n_ages + n_states) numbers a step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from skvbem.models.hmm.model import HMM
from skvbem.models.hmm.semi_markov_passes import SemiMarkovPasses
from skvbem.models.hmm.semi_markov_rows import SemiMarkovRows, stayed
from skvbem.models.sequences import HMMData, segments

# Doubles of the cells of rows that are passed over at a time. By hand: 2 MB, which a cache of the second level holds.
_AT_ONCE = 2**18
_REASONS = {
    "dimension": (
        "The identifiable dimension of a chain with durations is not known: ages have no part in what is observed but "
        "through the states. Take dimension='free'."
    ),
}


class SemiMarkovHMM(HMM):
    """A hidden semi-Markov model with its prior.

    Parameters
    ----------
    emission : Emission
    initial : Transitions
        Prior of the state of the first step, of one row.
    transitions : SemiMarkovRows
        Prior of durations, and of the next states.
    emission_prior : ConjugateFamily
        Of as many components as there are states.

    Examples
    --------
    >>> import numpy as np
    >>> from skvbem.emissions.categorical import CategoricalEmission
    >>> from skvbem.models.hmm.model import HMMAscent
    >>> from skvbem.models.hmm.semi_markov import SemiMarkovHMM
    >>> from skvbem.models.hmm.semi_markov_rows import SemiMarkovRows
    >>> from skvbem.models.hmm.transitions import Transitions
    >>> from skvbem.vbem import posteriors
    >>> emission = CategoricalEmission((2,))
    >>> rows = SemiMarkovRows(np.ones((1, 2, 2, 2)), 1.0 - np.eye(2), np.arange(2))
    >>> model = SemiMarkovHMM(emission, Transitions(np.ones((1, 2))), rows, emission.default_prior(2))
    >>> data = model.compile(emission.prepare(np.array([[0, 0, 1, 1, 0, 0, 1]]).T), lengths=[7])
    >>> start = model.statistics_of(np.eye(2)[[0, 0, 1, 1, 0, 0, 1]], data)
    >>> HMMAscent(model, data, posteriors.VB).advance(start[:, None], 50)[-1].round(4).tolist()
    [-7.1208]
    """

    has_ages: ClassVar[bool] = True
    transitions: SemiMarkovRows  # type: ignore[assignment]  # rows with the same methods

    @property
    def reasons(self) -> Mapping[str, str]:
        """Why a chain with durations lacks capabilities."""
        return {**super().reasons, **_REASONS}

    def passes(  # type: ignore[override]  # passes with the same methods
        self, natural: np.ndarray, log_likelihood: Callable[[slice], np.ndarray], memory: Any = None
    ) -> SemiMarkovPasses:
        """Passes at natural parameters (n_cells, n_lanes), by log likelihoods of rows."""
        first, pairs, _ = self.prior.split(natural)
        log_initial = self.initial.matrix(first, -np.inf)[0].T
        return SemiMarkovPasses(log_initial, self.transitions, pairs, log_likelihood)

    def passes_over(self, natural: np.ndarray, data: HMMData) -> SemiMarkovPasses:
        """Passes over sequences at natural parameters (n_cells,), and the answers that those alone have."""
        passes = self.forward_backward(natural[:, None], data)
        assert isinstance(passes, SemiMarkovPasses)
        return passes

    def segment_rows(self, n_lanes: int = 1) -> tuple[int, int]:
        """Rows that are passed over at once, and rows of a segment, for which log likelihoods are found."""
        at_once = max(_AT_ONCE // (self.n_components * self.transitions.width), 64)
        return at_once, max(at_once, self.emission.block_rows(self.n_components, n_lanes))

    def joined_statistics(self, first: np.ndarray, pairs: np.ndarray, of_emission: np.ndarray) -> np.ndarray:
        """Statistics of counts of first states (n_lanes, n_states) and of cells of transitions (n_lanes, n_cells)."""
        return np.concatenate([self.initial.statistics(first.T[None]), pairs.T, of_emission])

    def counts_of(
        self, left: np.ndarray, smoothed: np.ndarray, rows: slice, data: HMMData
    ) -> tuple[np.ndarray, np.ndarray]:
        """First states, and statistics of transitions, where rows are independent, by lane."""
        first, pairs = super().counts_of(left, smoothed, rows, data)
        return first, self.transitions.statistics_of_pairs(first, pairs)

    def cells_of_paths(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Cells are states with their ages; see `HMM.cells_of_paths`."""
        rows, n_states = self.transitions, self.n_components
        logs, jumps = rows.log_steps(np.zeros((1, n_states)), np.zeros((rows.n_cells, 1)))
        first, up, keep, leave = np.isfinite(logs[0, :, :, : rows.n_ages])
        first &= self.initial.allowed[0][:, None]
        shape = (n_states, rows.n_ages, n_states, rows.n_ages)
        steps, ages, every = np.zeros(shape, dtype=bool), np.arange(rows.n_ages), np.arange(n_states)[:, None]
        steps[every, ages, every, ages] = keep
        steps[every, ages[:-1], every, ages[1:]] |= up[:, :-1]
        steps[:, :, :, 0] |= leave[:, :, None] & np.isfinite(jumps[0])[:, None]
        n = n_states * rows.n_ages
        return first.ravel(), steps.reshape(n, n), np.repeat(np.arange(n_states), rows.n_ages)

    def statistics_of_paths(self, first: np.ndarray, steps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Statistics of first states and of transitions, of counts of cells (n, ...) and of their steps (n, n, ...)."""
        rows, n_states, n_paths = self.transitions, self.n_components, first.shape[-1]
        n_ages, every = rows.n_ages, np.arange(self.n_components)[:, None]
        ages = np.arange(n_ages)
        steps = np.moveaxis(steps.reshape(n_states, n_ages, n_states, n_ages, n_paths), -1, 0)
        by_age = np.moveaxis(first.reshape(n_states, n_ages, n_paths), -1, 0)
        counts = np.zeros((n_paths, 4, n_states, n_ages))
        counts[:, 0] = by_age
        counts[:, 1, :, :-1] = steps[:, every, ages[:-1], every, ages[1:]]
        counts[:, 2] = steps[:, every, ages, every, ages]
        out = steps[:, :, :, :, 0] * (1.0 - np.eye(n_states))[:, None]
        counts[:, 3] = out.sum(axis=-1)
        of_first = self.initial.statistics(by_age.sum(axis=-1).T[None])
        return of_first, rows.statistics_of_steps(counts, out.sum(axis=2)).T

    def log_chain(self, natural: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Logs of first states, and of transitions of a geometric chain whose states last as long in the mean."""
        first, pairs, _ = self.prior.split(natural)
        matrices = [self.transitions.geometric(np.exp(lane)) for lane in pairs.T]
        with np.errstate(divide="ignore"):
            return self.initial.matrix(first, -np.inf)[0].T, np.log(np.stack(matrices))

    def _go_on(self, natural: np.ndarray, data: HMMData, probability: np.ndarray) -> None:
        """Fill the posteriors of steps after the last observed one, by what the steps before say of them."""
        after = ~data.weighted_rows
        if after.any():
            probability[after] = self.filtered(natural, data)[after]

    def given_earlier(self, natural: np.ndarray, data: HMMData) -> np.ndarray:
        """p(state of a step | the steps before it), (n_rows, n_states), at natural parameters (n_cells,)."""
        passes, states = self.passes_over(natural, data), np.zeros((len(data), self.n_components))
        for pieces in segments(data.starts, data.starts[1:], *self.segment_rows()):
            passes.predicted(pieces, states)
        return states

    def given_others(self, natural: np.ndarray, data: HMMData) -> np.ndarray:
        """p(state of a step | all other steps of its sequence), (n_rows, n_states), at natural parameters."""
        passes, states = self.passes_over(natural, data), np.zeros((len(data), self.n_components))
        for pieces in segments(data.starts, data.starts[1:], *self.segment_rows()):
            n = len(pieces[0].starts)
            for piece, smoothed in passes.smoothed(pieces, np.ones(n), np.zeros((1, n)), without=True):
                states[piece.rows] = smoothed[0].T
        return states

    def states_ahead(
        self, natural: np.ndarray, data: HMMData, now: np.ndarray, n_steps: int, point: tuple
    ) -> np.ndarray:
        """Probabilities of states after the ends of sequences, from the cells of their last steps."""
        passes, blocks = self.passes_over(natural, data), []
        for pieces in segments(data.starts, data.starts[1:], *self.segment_rows()):
            blocks.append(passes.last_cells(pieces))
        shape = (len(now), self.n_components, self.transitions.width)
        cells, steps = np.concatenate(blocks).reshape(shape), []
        impossible = ~cells.any(axis=(1, 2))
        cells[impossible, :, 0] = now[impossible]
        first, pairs, _ = self.prior.split(self.prior.natural(point)[:, None])
        logs, log_jumps = self.transitions.log_steps(self.initial.matrix(first, -np.inf)[0].T, pairs)
        (_, up, keep, leave), jumps = np.exp(logs[0]), np.exp(log_jumps[0])
        for _ in range(n_steps):
            entering = (cells * leave).sum(axis=-1) @ jumps
            cells = stayed(cells, up, keep)
            cells[:, :, 0] += entering
            steps.append(cells.sum(axis=-1))
        return np.stack(steps, axis=1)
