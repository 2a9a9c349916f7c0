"""The forward-backward algorithm over segments of sequences that stay in cache.

A segment is either some whole sequences or a piece of one that is too long for a single one. Long sequences are passed
over twice: once forward, and then piece by piece from the end, backward within the piece. Of the forward pass the last
pieces are kept, as many as take 10 MB in each thread; of those before them only what each hands on to the next, so
that they are passed over forward once more. Then no sum needs an array that grows with rows times states. A best path
does: it takes two bytes for each row and state of its sequence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import accumulate, takewhile

import numpy as np

from skvbem._kernels import _hmm
from skvbem._memory import ReusedMemory
from skvbem.models.sequences import MAX_KEPT_DOUBLES, Segment


class ForwardBackward:
    """Passes over segments at natural parameters of several lanes.

    Parameters
    ----------
    log_initial : ndarray of shape (n_lanes, n_states)
    log_transition : ndarray of shape (n_lanes, n_states, n_states)
        (Expected) logarithms, -inf for transitions that do not exist.
    log_likelihood : callable of slice
        Log likelihoods of rows, (n_lanes, n_states, n_rows), an array of its own.
    memory : ReusedMemory, optional
        For forward passes that are kept.
    """

    def __init__(
        self,
        log_initial: np.ndarray,
        log_transition: np.ndarray,
        log_likelihood: Callable[[slice], np.ndarray],
        memory: ReusedMemory | None = None,
    ):
        self.memory = ReusedMemory(MAX_KEPT_DOUBLES) if memory is None else memory
        self.log_likelihood = log_likelihood
        self.log_initial = np.ascontiguousarray(log_initial)
        self.log_transition = np.ascontiguousarray(log_transition)
        self.n_lanes, self.n_states = log_initial.shape
        self.width = -(-self.n_states // 4) * 4
        self.first_counts = np.zeros((self.n_lanes, self.n_states))
        self.counts = np.zeros((self.n_lanes, self.n_states, self.n_states))
        self._work = np.empty((1, 0))
        self._kept: dict[int, np.ndarray] = {}

    def forward(
        self, pieces: list[Segment], filtered: np.ndarray | None = None, again: bool = False
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The forward pass: ln Z of sequences, and what every piece takes up from those before.

        Parameters
        ----------
        pieces : list of Segment
            An item of `skvbem.models.sequences.segments`.
        filtered : ndarray of shape (n_rows, n_states), optional
            Filled with the posteriors of the states given the rows so far, of a single lane.
        again : bool
            Whether the same pieces will be passed over backward next.

        Returns
        -------
        log_z : ndarray of shape (n_lanes, n_sequences)
            Nats.
        in_logs : ndarray of shape (n_lanes, n_sequences)
            Which sequences have to be passed over in logarithms.
        carries : ndarray of shape (n_pieces, n_lanes, ...)
            What every piece takes up from those before.
        """
        m = len(pieces[0].starts)
        log_z, in_logs = np.zeros((self.n_lanes, m)), np.zeros((self.n_lanes, m), dtype=np.uint8)
        carries = np.zeros((len(pieces) + 1, self.n_lanes, 2 * self.width + 2))
        self._kept = self._memory_of_last(pieces) if again else {}
        for _ in range(2):
            before = in_logs.copy()
            for k, piece in enumerate(pieces):
                carries[k + 1] = carries[k]
                logs, work = self.log_likelihood(piece.rows), self._kept.get(piece.rows.start)
                by_row, buffer = self._rows_of(filtered, piece), self._buffer(piece) if work is None else work
                self._call(_hmm.forward, piece, logs, carries[k + 1], in_logs, log_z, by_row, buffer)
            if len(pieces) == 1 or (before == in_logs).all():
                break
        return log_z, in_logs, carries

    def smoothed(
        self, pieces: list[Segment], weight: np.ndarray, log_z: np.ndarray
    ) -> Iterator[tuple[Segment, np.ndarray]]:
        """Posteriors of the states of rows, times the weights of sequences, (n_lanes, n_states, n_rows).

        Expected first states and transitions are added to `first_counts` and `counts`.

        Parameters
        ----------
        pieces : list of Segment
        weight : ndarray of shape (n_sequences,)
        log_z : ndarray of shape (n_lanes, n_sequences)
            Filled with the ln Z of the sequences, nats.
        """
        in_logs, carries = self._taken_forward(pieces, log_z)
        after = np.zeros((self.n_lanes, self.width))
        for k in reversed(range(len(pieces))):
            logs, kept = self._taken_up(pieces[k], in_logs)  # where the posteriors are then written
            counts = self.first_counts, self.counts
            self._call(_hmm.smooth, pieces[k], logs, weight, carries[k], after, in_logs, log_z, *counts, *kept)
            yield pieces[k], logs

    def drawn(
        self, pieces: list[Segment], uniform: Callable[[int], np.ndarray], log_z: np.ndarray
    ) -> Iterator[tuple[Segment, np.ndarray]]:
        """Paths drawn from the posterior: 1 for the state of a row, else 0, (n_lanes, n_states, n_rows).

        First states and transitions drawn are added to `first_counts` and `counts`.

        Parameters
        ----------
        pieces : list of Segment
        uniform : callable of int
            Uniform numbers for so many rows, (n_lanes, n_rows).
        log_z : ndarray of shape (n_lanes, n_sequences)
            Filled with the ln Z of the sequences, nats.
        """
        in_logs, carries = self._taken_forward(pieces, log_z)
        after = np.zeros(self.n_lanes, dtype=np.int64)
        for k in reversed(range(len(pieces))):
            (logs, kept), numbers = self._taken_up(pieces[k], in_logs), uniform(pieces[k].n_rows)
            counts = self.first_counts, self.counts  # states are written over the log likelihoods
            self._call(_hmm.draw, pieces[k], logs, carries[k], after, in_logs, log_z, numbers, *counts, *kept)
            yield pieces[k], logs

    def best(self, pieces: list[Segment]) -> tuple[np.ndarray, np.ndarray]:
        """The most probable path of each sequence at the first lane, (n_rows,), and its ln p, nats, (n_sequences,)."""
        n_rows = pieces[-1].rows.stop - pieces[0].rows.start
        bounds = np.append(pieces[0].starts, n_rows)
        source = np.empty((n_rows, self.n_states), dtype=np.uint16)
        best, reached = np.zeros(3 * self.n_states), np.zeros(2 * len(pieces[0].starts))
        for piece in pieces:
            logs = np.ascontiguousarray(self.log_likelihood(piece.rows)[0])
            within = np.append(piece.starts, piece.n_rows)
            rows = slice(piece.rows.start - pieces[0].rows.start, piece.rows.stop - pieces[0].rows.start)
            _hmm.best_forward(
                logs, self.log_initial[0], self.log_transition[0], within, piece.begins, best, source[rows], reached
            )
        states = np.empty(n_rows, dtype=np.int64)
        _hmm.best_backward(source, bounds, reached, states)
        return states, reached[: len(pieces[0].starts)]

    def _taken_forward(self, pieces: list[Segment], log_z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What the backward pass takes up of the forward pass, which fills ln Z; nothing yet of whole sequences."""
        if len(pieces) > 1:
            log_z[...], in_logs, carries = self.forward(pieces, again=True)
            return in_logs, carries
        in_logs = np.zeros((self.n_lanes, len(pieces[0].starts)), dtype=np.uint8)
        return in_logs, np.zeros((1, self.n_lanes, 2 * self.width + 2))

    def _memory_of_last(self, pieces: list[Segment]) -> dict[int, np.ndarray]:
        """Memory in which the forward pass over a piece, by its first row, is kept, of the last pieces."""
        sizes = (_hmm.work_size(self.n_states, piece.at_once) * self.n_lanes for piece in reversed(pieces))
        ends = list(takewhile(lambda end: end <= MAX_KEPT_DOUBLES, accumulate(sizes)))
        if not ends:
            return {}
        size = MAX_KEPT_DOUBLES if ends[-1] > MAX_KEPT_DOUBLES // 2 else ends[-1]  # so that later passes fit in, too
        parts = np.split(self.memory.empty(size)[: ends[-1]], ends[:-1])
        return {piece.rows.start: part.reshape(self.n_lanes, -1) for piece, part in zip(reversed(pieces), parts)}

    def _taken_up(self, piece: Segment, in_logs: np.ndarray) -> tuple[np.ndarray, tuple[np.ndarray, bool]]:
        """Log likelihoods of a segment, memory to work in, and whether its forward pass was kept there.

        If so, log likelihoods are needed in logarithms alone.
        """
        work = self._kept.pop(piece.rows.start, None)
        if work is None:
            return self.log_likelihood(piece.rows), (self._buffer(piece), False)
        if in_logs.any():
            return self.log_likelihood(piece.rows), (work, True)
        return np.empty((self.n_lanes, self.n_states, piece.n_rows)), (work, True)

    def _buffer(self, piece: Segment) -> np.ndarray:
        """Memory to work in on a segment, one lane after the other."""
        size = _hmm.work_size(self.n_states, piece.at_once)
        if self._work.shape[1] < size:
            self._work = np.empty((1, size))
        return self._work

    def _rows_of(self, filtered: np.ndarray | None, piece: Segment) -> np.ndarray:
        return np.empty((self.n_lanes, 0, self.n_states)) if filtered is None else filtered[None, piece.rows]

    def _call(self, kernel: Callable, piece: Segment, logs: np.ndarray, *arguments) -> None:
        """A kernel on a segment of log likelihoods."""
        of_piece = piece.starts, piece.ends, piece.begins, piece.goes_on
        kernel(logs, self.log_initial, self.log_transition, *of_piece, *arguments, piece.at_once)
