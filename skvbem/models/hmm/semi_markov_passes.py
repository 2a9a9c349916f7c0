"""The forward-backward algorithm over states and ages, for sequences of states that are stayed in for some time.

Cells are pairs of a state and an age; what leaves these passes are states. Sequences are cut as `ForwardBackward` cuts
them. A segment is passed over forward with sums that are too small if anything. Where something was left out it is
passed over with sums that are too large if anything, and where the two disagree, in logarithms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from skvbem._kernels import _stays
from skvbem.models.hmm.semi_markov_rows import SemiMarkovRows
from skvbem.models.sequences import Segment

# Steps of a smaller probability may make cells vanish without a trace: two of them, a factor of a row that the kernel
# takes for small, and a cell of 1e-290 make 1e-322, which is a number still.
_SHARP = 1e-8
# Largest difference of the two sums, nats: as in the chains of states alone.
_LOST = 1e-12


class SemiMarkovPasses:
    """Passes over segments at natural parameters of several lanes; see `ForwardBackward`, whose methods it has.

    Parameters
    ----------
    log_initial : ndarray of shape (n_lanes, n_states)
    rows : SemiMarkovRows
        Of transitions.
    natural : ndarray of shape (n_cells, n_lanes)
        Of the rows.
    log_likelihood : callable of slice
        Log likelihoods of rows, (n_lanes, n_states, n_rows), an array of its own.
    """

    def __init__(
        self,
        log_initial: np.ndarray,
        rows: SemiMarkovRows,
        natural: np.ndarray,
        log_likelihood: Callable[[slice], np.ndarray],
    ):
        self.rows, self.log_likelihood = rows, log_likelihood
        self.log_cells, self.log_jumps = rows.log_steps(log_initial, natural)
        self.cells, self.jumps = np.exp(self.log_cells), np.exp(self.log_jumps)
        self.n_lanes, _, self.n_states, self.width = self.cells.shape
        self.size = self.n_states * self.width
        self._cell_counts = np.zeros((self.n_lanes, 4, self.size))
        self._jump_counts = np.zeros((self.n_lanes, self.n_states, self.n_states))
        smallest = min(each[each > 0].min(initial=1.0) for each in (self.cells, self.jumps))
        self._is_sharp = smallest < _SHARP
        self._work = np.empty(0)

    @property
    def first_counts(self) -> np.ndarray:
        """Expected first states, (n_lanes, n_states)."""
        return self._counts[:, 0].sum(axis=-1)

    @property
    def counts(self) -> np.ndarray:
        """Statistics of transitions, (n_lanes, n_cells)."""
        return self.rows.statistics_of_steps(self._counts, self._jump_counts)

    @property
    def _counts(self) -> np.ndarray:
        return self._cell_counts.reshape(self.n_lanes, 4, self.n_states, self.width)

    def forward(
        self, pieces: list[Segment], filtered: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The forward pass: ln Z of sequences, which of them need logarithms, and what pieces take up.

        Parameters
        ----------
        pieces : list of Segment
        filtered : ndarray of shape (n_rows, n_states), optional
            Filled with the posteriors of the states given the rows so far, of a single lane.

        Returns
        -------
        log_z : ndarray of shape (n_lanes, n_sequences)
            Nats.
        in_logs : ndarray of shape (n_lanes, n_sequences)
        carries : ndarray of shape (n_pieces + 1, n_lanes, size)
        """
        every = np.ones((self.n_lanes, len(pieces[0].starts)), dtype=np.uint8)
        lost = np.full(every.shape, self._is_sharp, dtype=np.uint8)
        log_z, carries = self._forward(pieces, every, filtered, lost=lost)
        in_logs = np.zeros_like(lost)
        if lost.any():
            most, _ = self._forward(pieces, lost, raises=True)
            with np.errstate(invalid="ignore"):
                in_logs = (lost & ~(most - log_z <= _LOST)).astype(np.uint8)
        if in_logs.any():
            of_logs, logs_carries = self._forward(pieces, in_logs, filtered, in_logs=True)
            log_z = np.where(in_logs, of_logs, log_z)
            carries = np.where(in_logs[None, :, :1], logs_carries, carries) if len(pieces) > 1 else carries
        return log_z, in_logs, carries

    def predicted(self, pieces: list[Segment], predicted: np.ndarray) -> None:
        """Fill (n_rows, n_states) with the posteriors of the states given the rows before them, of a single lane."""
        every = np.ones((self.n_lanes, len(pieces[0].starts)), dtype=np.uint8)
        self._forward(pieces, every, predicted, in_logs=True, predicted=True)

    def _forward(
        self,
        pieces: list[Segment],
        which: np.ndarray,
        by_row: np.ndarray | None = None,
        *,
        in_logs: bool = False,
        raises: bool = False,
        predicted: bool = False,
        n_kept: int = 1,
        lost: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        log_z = np.zeros((self.n_lanes, len(pieces[0].starts)))
        lost = np.empty(log_z.shape, dtype=np.uint8) if lost is None else lost
        carries = np.zeros((len(pieces) + 1, self.n_lanes, n_kept, self.size))
        for k, piece in enumerate(pieces):
            carries[k + 1] = carries[k]
            logs = np.ascontiguousarray(self.log_likelihood(piece.rows))
            shape = self.n_lanes, 0, self.n_states
            out = np.empty(shape) if by_row is None else by_row[None, piece.rows]
            _stays.forward(
                logs, *self._chain(in_logs), piece.starts, piece.ends, piece.begins, in_logs, raises, which,
                carries[k + 1], log_z, out, predicted, lost, self._buffer(piece), piece.at_once,
            )  # fmt: skip
        return log_z, carries[:, :, 0] if n_kept == 1 else carries

    def smoothed(
        self, pieces: list[Segment], weight: np.ndarray, log_z: np.ndarray, *, without: bool = False
    ) -> Iterator[tuple[Segment, np.ndarray]]:
        """Posteriors of the states of rows, times the weights of sequences, (n_lanes, n_states, n_rows).

        Parameters
        ----------
        pieces : list of Segment
        weight : ndarray of shape (n_sequences,)
        log_z : ndarray of shape (n_lanes, n_sequences)
            Filled with the ln Z of the sequences, nats.
        without : bool
            Whether posteriors are given all rows of the sequence but their own; then nothing is counted that has sense.
        """
        log_z[...], in_logs, carries = self._taken_forward(pieces, without)
        after, weight = np.zeros((self.n_lanes, self.size + 8)), np.ascontiguousarray(weight)
        for k in reversed(range(len(pieces))):
            piece, logs = pieces[k], np.ascontiguousarray(self.log_likelihood(pieces[k].rows))
            for which, as_logs in self._ways(in_logs):
                _stays.smooth(
                    logs, *self._chain(as_logs), piece.starts, piece.ends, piece.begins, piece.goes_on, as_logs,
                    without, weight, which, carries[k], after, log_z, self._cell_counts, self._jump_counts,
                    self._buffer(piece), piece.at_once,
                )  # fmt: skip
            yield piece, logs

    def drawn(
        self, pieces: list[Segment], uniform: Callable[[int], np.ndarray], log_z: np.ndarray
    ) -> Iterator[tuple[Segment, np.ndarray]]:
        """Paths drawn from the posterior: 1 for the state of a row, else 0, (n_lanes, n_states, n_rows).

        Parameters
        ----------
        pieces : list of Segment
        uniform : callable of int
            Uniform numbers for so many rows, (n_lanes, n_rows).
        log_z : ndarray of shape (n_lanes, n_sequences)
            Filled with the ln Z of the sequences, nats.
        """
        log_z[...], in_logs, carries = self._taken_forward(pieces)
        after = np.zeros(self.n_lanes, dtype=np.int64)
        for k in reversed(range(len(pieces))):
            piece, logs = pieces[k], np.ascontiguousarray(self.log_likelihood(pieces[k].rows))
            numbers = np.ascontiguousarray(uniform(piece.n_rows))
            for which, as_logs in self._ways(in_logs):
                _stays.draw(
                    logs, *self._chain(as_logs), piece.starts, piece.ends, piece.begins, piece.goes_on, as_logs, which,
                    carries[k], after, log_z, numbers, self._cell_counts, self._jump_counts, self._buffer(piece),
                    piece.at_once,
                )  # fmt: skip
            yield piece, logs

    def best(self, pieces: list[Segment]) -> tuple[np.ndarray, np.ndarray]:
        """States of the best path of cells of each sequence, first lane, (n_rows,), and its ln p, (n_sequences,)."""
        logs = np.concatenate([self.log_likelihood(piece.rows)[0] for piece in pieces], axis=1)
        n_rows, starts, ends = logs.shape[1], pieces[0].starts, pieces[0].ends
        if len(pieces) > 1:
            starts, ends = np.zeros(1, np.int64), np.array([n_rows], np.int64)
        states, reached = np.zeros(n_rows, dtype=np.int64), np.zeros(len(starts))
        kept, source = np.empty((n_rows, self.size), dtype=np.uint8), np.empty((n_rows, self.n_states), dtype=np.int32)
        chain = self.log_cells[0], self.log_jumps[0]
        _stays.best(
            np.ascontiguousarray(logs), *chain, starts, ends, states, reached, kept, source, np.empty((2, self.size))
        )
        return states, reached

    def last_cells(self, pieces: list[Segment]) -> np.ndarray:
        """Probabilities of the cells of the last row of each sequence given all rows, first lane, (n_sequences, size).

        0 in sequences that no path can make, or without rows.
        """
        n = len(pieces[0].starts)
        every = np.ones((self.n_lanes, n), dtype=np.uint8)
        log_z, carries = self._forward(pieces, every, in_logs=True, n_kept=n)
        is_there = np.isfinite(log_z[0]) & (pieces[-1].ends > pieces[-1].starts)
        return np.where(is_there[:, None], np.exp(carries[-1, 0].reshape(n, self.size)), 0.0)

    def _taken_forward(self, pieces: list[Segment], in_logs: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What the way back takes up of the way forward, all of it in logarithms if these are wanted."""
        if not in_logs:
            return self.forward(pieces)
        every = np.ones((self.n_lanes, len(pieces[0].starts)), dtype=np.uint8)
        log_z, carries = self._forward(pieces, every, in_logs=True)
        return log_z, every, carries

    def _ways(self, in_logs: np.ndarray) -> Iterator[tuple[np.ndarray, bool]]:
        """Which sequences are passed over in scaled numbers, and which in logarithms."""
        for which, as_logs in ((1 - in_logs, False), (in_logs, True)):
            if which.any():
                yield which, as_logs

    def _chain(self, in_logs: bool) -> tuple[np.ndarray, np.ndarray, int, bool]:
        chain = (self.log_cells, self.log_jumps) if in_logs else (self.cells, self.jumps)
        return *chain, self.rows.n_ages, self.rows.are_stages

    def _buffer(self, piece: Segment) -> np.ndarray:
        """Memory to work in on a segment."""
        size = _stays.work_size(self.n_states, self.width, piece.at_once)
        if len(self._work) < size:
            self._work = np.empty(size)
        return self._work
