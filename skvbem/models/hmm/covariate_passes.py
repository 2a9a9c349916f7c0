"""The forward-backward algorithm where covariates drive first states or transitions: a matrix for each step.

Of one lane after the other, in logarithms, over whole sequences: matrices take n_rows n_states^2 doubles at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from skvbem._kernels import _covariate_chain
from skvbem.models.sequences import Segment


class CovariatePasses:
    """Passes over segments at natural parameters of several lanes; see `ForwardBackward`, whose methods it has.

    Parameters
    ----------
    initial, transitions : pair of (rows, ndarray of shape (n_cells, n_lanes))
        Rows of probabilities, and their natural parameters.
    covariates : pair of StepPatterns or None
        Of first steps, and of transitions into each row.
    log_likelihood : callable of slice
        Log likelihoods of rows, (n_lanes, n_states, n_rows), an array of its own.
    """

    def __init__(
        self,
        initial: tuple[Any, np.ndarray],
        transitions: tuple[Any, np.ndarray],
        covariates: tuple[Any, Any],
        log_likelihood: Callable[[slice], np.ndarray],
    ):
        self.initial, self.transitions, self.covariates = initial, transitions, covariates
        self.log_likelihood, self.n_lanes = log_likelihood, initial[1].shape[1]
        self.first_counts = np.zeros((self.n_lanes, initial[0].n_cells))
        self.counts = np.zeros((self.n_lanes, transitions[0].n_cells))

    def _logs(self, lane: int, whole: Segment) -> tuple[np.ndarray, np.ndarray]:
        """Logs of first states (n_sequences, n_states), and of transitions into rows (n_rows, n_states, n_states)."""
        (rows, first), (pairs, cells) = self.initial, self.transitions
        of_first = rows.logs(first[:, lane], self.covariates[0], whole.sequences)[:, 0]
        of_first = np.ascontiguousarray(np.broadcast_to(of_first, (len(whole.starts), of_first.shape[1])))
        of_pairs = pairs.logs(cells[:, lane], self.covariates[1], whole.rows)
        return of_first, np.array(np.broadcast_to(of_pairs, (whole.n_rows, *of_pairs.shape[1:])), order="C")

    def forward(
        self, pieces: list[Segment], filtered: np.ndarray | None = None, again: bool = False
    ) -> tuple[np.ndarray, None, None]:
        """The forward pass: ln Z of sequences, (n_lanes, n_sequences), nats.

        Parameters
        ----------
        pieces : list of Segment
        filtered : ndarray of shape (n_rows, n_states), optional
            Filled with the posteriors of the states given the rows so far, of a single lane.
        again : bool
            Of no account.
        """
        whole = _whole(pieces)
        logs = np.ascontiguousarray(self.log_likelihood(whole.rows))
        log_z, room = np.zeros((self.n_lanes, len(whole.starts))), _room(logs)
        for lane in range(self.n_lanes):
            of_lane = self._logs(lane, whole)
            _covariate_chain.forward(logs[lane], *of_lane, whole.starts, whole.ends, log_z[lane], *room)
            if filtered is not None:
                filtered[whole.rows] = np.exp(room[0])
        return log_z, None, None

    def smoothed(
        self, pieces: list[Segment], weight: np.ndarray, log_z: np.ndarray
    ) -> Iterator[tuple[Segment, np.ndarray]]:
        """Posteriors of the states of rows, times the weights of sequences, (n_lanes, n_states, n_rows).

        Statistics of first states and transitions are added to `first_counts` and `counts`; `log_z` is filled.
        """
        whole = _whole(pieces)
        logs = np.ascontiguousarray(self.log_likelihood(whole.rows))
        room, weight = _room(logs), np.ascontiguousarray(weight)
        for lane in range(self.n_lanes):
            first, into = self._logs(lane, whole)
            bounds, of_lane = (whole.starts, whole.ends), np.zeros(len(whole.starts))
            _covariate_chain.smooth(logs[lane], first, into, *bounds, weight, of_lane, *room)
            log_z[lane] = of_lane
            self._count(lane, whole, logs[lane], into)
        yield whole, logs

    def drawn(
        self, pieces: list[Segment], uniform: Callable[[int], np.ndarray], log_z: np.ndarray
    ) -> Iterator[tuple[Segment, np.ndarray]]:
        """Paths drawn from the posterior: 1 for the state of a row, else 0, (n_lanes, n_states, n_rows)."""
        whole = _whole(pieces)
        logs = np.ascontiguousarray(self.log_likelihood(whole.rows))
        room, numbers = _room(logs), np.ascontiguousarray(uniform(whole.n_rows))
        for lane in range(self.n_lanes):
            of_lane, bounds = self._logs(lane, whole), (whole.starts, whole.ends)
            _covariate_chain.draw(logs[lane], *of_lane, *bounds, numbers[lane], log_z[lane], *room)
        yield whole, logs

    def best(self, pieces: list[Segment]) -> tuple[np.ndarray, np.ndarray]:
        """The most probable path of each sequence at the first lane, (n_rows,), and its ln p, nats, (n_sequences,)."""
        whole = _whole(pieces)
        logs = np.ascontiguousarray(self.log_likelihood(whole.rows)[0])
        states, reached = np.zeros(whole.n_rows, dtype=np.int64), np.zeros(len(whole.starts))
        shape = (whole.n_rows, len(logs))
        room = np.empty(shape), np.empty(shape, dtype=np.int64)
        _covariate_chain.best(logs, *self._logs(0, whole), whole.starts, whole.ends, states, reached, *room)
        return states, reached

    def _count(self, lane: int, whole: Segment, smoothed: np.ndarray, pairs: np.ndarray) -> None:
        """Add the statistics of first states and transitions of a lane."""
        first = np.zeros((len(whole.starts), 1, len(smoothed)))
        any_row = whole.ends > whole.starts
        first[any_row, 0] = smoothed[:, whole.starts[any_row]].T
        self.first_counts[lane] += self.initial[0].sums(first, self.covariates[0], whole.sequences)
        self.counts[lane] += self.transitions[0].sums(pairs, self.covariates[1], whole.rows)


def _whole(pieces: list[Segment]) -> Segment:
    """A segment of whole sequences: all pieces of one that is long."""
    if len(pieces) == 1:
        return pieces[0]
    rows = slice(pieces[0].rows.start, pieces[-1].rows.stop)
    n = rows.stop - rows.start
    return Segment(rows, pieces[0].sequences, np.zeros(1, np.int64), np.array([n], np.int64), n)


def _room(logs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Memory for logs of states given the rows so far, and of rows given those before."""
    _, n_states, n_rows = logs.shape
    return np.full((n_rows, n_states), -np.inf), np.empty(n_rows + 2 * n_states)
