"""The forward-backward algorithm where covariates drive first states or transitions: a matrix for each step.

Of one lane after the other, in logarithms, over whole sequences: matrices take n_rows n_states^2 doubles of a lane.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from skvbem._kernels import _covariate_chain
from skvbem.models.sequences import Segment

# Logs of transitions of several lanes that are in memory at once. By hand.
_AT_ONCE = 2**17


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

    def _logs(self, whole: Segment) -> Iterator[tuple[range, np.ndarray, np.ndarray]]:
        """Some lanes, with logs of first states, (n_lanes, n_sequences, n_states), and of transitions into rows.

        The last are (n_lanes, n_rows, n_states, n_states), an array of its own.
        """
        (rows, first), (pairs, cells) = self.initial, self.transitions
        at_once = max(_AT_ONCE // max(whole.n_rows * pairs.n_states**2, 1), 1)
        for at in range(0, self.n_lanes, at_once):
            lanes = slice(at, at + at_once)
            of_first = rows.logs(first[:, lanes], self.covariates[0], whole.sequences)[:, 0]
            of_pairs = pairs.logs(cells[:, lanes], self.covariates[1], whole.rows)
            of_first, of_pairs = (
                np.array(np.moveaxis(np.broadcast_to(each, (n, *each.shape[1:])), -1, 0), order="C")
                for each, n in ((of_first, len(whole.starts)), (of_pairs, whole.n_rows))
            )
            yield range(at, at + len(of_first)), of_first, of_pairs

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
        for lanes, first, into in self._logs(whole):
            for k, lane in enumerate(lanes):
                _covariate_chain.forward(logs[lane], first[k], into[k], whole.starts, whole.ends, log_z[lane], *room)
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
        room, weight, bounds = _room(logs), np.ascontiguousarray(weight), (whole.starts, whole.ends)
        for lanes, first, into in self._logs(whole):
            for k, lane in enumerate(lanes):
                of_lane = np.zeros(len(whole.starts))
                _covariate_chain.smooth(logs[lane], first[k], into[k], *bounds, weight, of_lane, *room)
                log_z[lane] = of_lane
            self._count(lanes, whole, logs[lanes], into)
        yield whole, logs

    def drawn(
        self, pieces: list[Segment], uniform: Callable[[int], np.ndarray], log_z: np.ndarray
    ) -> Iterator[tuple[Segment, np.ndarray]]:
        """Paths drawn from the posterior: 1 for the state of a row, else 0, (n_lanes, n_states, n_rows).

        Statistics of first states and transitions are added to `first_counts` and `counts`; `log_z` is filled.
        """
        whole = _whole(pieces)
        logs = np.ascontiguousarray(self.log_likelihood(whole.rows))
        room, numbers = _room(logs), np.ascontiguousarray(uniform(whole.n_rows))
        bounds = whole.starts, whole.ends
        for lanes, first, into in self._logs(whole):
            for k, lane in enumerate(lanes):
                _covariate_chain.draw(logs[lane], first[k], into[k], *bounds, numbers[lane], log_z[lane], *room)
            drawn = logs[lanes].swapaxes(1, 2)
            into[:, 1:] = drawn[:, :-1, :, None] * drawn[:, 1:, None]
            into[:, whole.starts[whole.ends > whole.starts]] = 0.0
            self._count(lanes, whole, logs[lanes], into)
        yield whole, logs

    def best(self, pieces: list[Segment]) -> tuple[np.ndarray, np.ndarray]:
        """The most probable path of each sequence at the first lane, (n_rows,), and its ln p, nats, (n_sequences,)."""
        whole = _whole(pieces)
        logs = np.ascontiguousarray(self.log_likelihood(whole.rows)[0])
        states, reached = np.zeros(whole.n_rows, dtype=np.int64), np.zeros(len(whole.starts))
        shape = (whole.n_rows, len(logs))
        room = np.empty(shape), np.empty(shape, dtype=np.int64)
        _, first, into = next(self._logs(whole))
        _covariate_chain.best(logs, first[0], into[0], whole.starts, whole.ends, states, reached, *room)
        return states, reached

    def _count(self, lanes: range, whole: Segment, smoothed: np.ndarray, pairs: np.ndarray) -> None:
        """Add the statistics of first states and transitions of some lanes."""
        first = np.zeros((len(lanes), len(whole.starts), 1, smoothed.shape[1]))
        any_row = whole.ends > whole.starts
        first[:, any_row, 0] = smoothed[:, :, whole.starts[any_row]].swapaxes(1, 2)
        self.first_counts[lanes] += self.initial[0].sums(first, self.covariates[0], whole.sequences)
        self.counts[lanes] += self.transitions[0].sums(pairs, self.covariates[1], whole.rows)


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
