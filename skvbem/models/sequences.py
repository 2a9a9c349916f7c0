"""Rows of sequences, compiled: an emission's table, where sequences begin and end, and how often each counts.

Passes take them in segments, pieces of rows that fit the cache, and use the memory of the last pass again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Self

import numpy as np

from skvbem._lazy import cached_property
from skvbem._memory import ReusedMemory
from skvbem.data import mixed

#: Doubles of forward passes that a long sequence may keep, 10 MB.
MAX_KEPT_DOUBLES = 5 * 2**18


@dataclass(frozen=True, eq=False)
class Segment:
    """Neighboring rows of sequences that are passed over at a time.

    Parameters
    ----------
    rows : slice
    sequences : slice
        Which sequences they are of.
    starts, ends : ndarray of int64, shape (n_sequences,)
        First row of each sequence, and the row after its last, counted from the first row of the segment.
    at_once : int
        Rows that are passed over together, so that they stay in cache; no sequence has more.
    begins, goes_on : bool
        Whether the first row begins a sequence, and whether the last sequence goes on after the segment.
    """

    rows: slice
    sequences: slice
    starts: np.ndarray
    ends: np.ndarray
    at_once: int
    begins: bool = True
    goes_on: bool = False

    @property
    def n_rows(self) -> int:
        """Number of rows of the segment."""
        return self.rows.stop - self.rows.start


def segments(starts: np.ndarray, ends: np.ndarray, at_once: int, size: int) -> list[list[Segment]]:
    """All rows in segments: one of whole sequences alone, or all pieces of a long sequence together.

    Parameters
    ----------
    starts : ndarray of int64, shape (n_sequences + 1,)
        First rows of sequences, and the end.
    ends : ndarray of int64, shape (n_sequences,)
        The row after the last that counts in each.
    at_once : int
        Rows that passes keep in cache; a sequence of more is cut into pieces of at most as many.
    size : int
        Most rows of a segment of several sequences.
    """
    cut, n, first = [], len(ends), 0
    lengths = np.diff(starts)
    is_long = lengths > at_once
    next_long = np.append(np.flatnonzero(is_long), n)[np.cumsum(is_long) - is_long]  # of each sequence, itself or later
    while first < n:
        at = int(starts[first])
        if is_long[first]:
            sequences, stop = slice(first, first + 1), int(ends[first])
            cuts = np.linspace(at, stop, max(-(-(stop - at) // at_once), 1) + 1).astype(np.int64).tolist()
            zero = np.zeros(1, np.int64)
            pieces = [
                Segment(slice(a, b), sequences, zero, np.array([b - a]), b - a, a == at, b < stop)
                for a, b in pairwise(cuts)
            ]
            cut.append(pieces)
            first += 1
            continue
        last = max(int(np.searchsorted(starts, at + size, side="right")) - 1, first + 1)
        sequences = slice(first, min(last, int(next_long[first])))
        stop = int(starts[sequences.stop])
        bounds = starts[sequences] - at, ends[sequences] - at
        cut.append([Segment(slice(at, stop), sequences, *bounds, min(at_once, stop - at))])
        first = sequences.stop
    return cut


@dataclass(frozen=True, eq=False)
class HMMData:
    """Sequences as a hidden Markov model takes them: their rows one after the other.

    Parameters
    ----------
    table : Table
        As the emission prepared it, rows in the order of time.
    starts : ndarray of int64, shape (n_sequences + 1,)
        First row of each sequence, and the end.
    ends : ndarray of int64, shape (n_sequences,)
        The row after the last one of each sequence that has an observed cell; `starts` where there is none.
    weight : ndarray of shape (n_sequences,)
        How often each sequence counts.
    total_weight : float
        The n of every score: time steps with an observed cell, each as often as its sequence counts.
    has_whole_weights : bool
    row_hashes : callable or None
        Numbers of a slice of rows, equal for equal rows alone, (n_rows,) of uint64.
    covariates : pair of StepPatterns or None, optional
        What drives first states, and transitions into each row.
    """

    table: Any
    starts: np.ndarray
    ends: np.ndarray
    weight: np.ndarray
    total_weight: float
    has_whole_weights: bool = True
    row_hashes: Callable[[slice], np.ndarray] | None = None
    covariates: Any = None
    memory: ReusedMemory = field(default_factory=lambda: ReusedMemory(MAX_KEPT_DOUBLES), init=False, repr=False)
    _for_draws: list[HMMData] = field(default_factory=list, init=False, repr=False)
    _cut: dict[tuple[int, int], list[list[Segment]]] = field(default_factory=dict, init=False, repr=False)

    def __len__(self) -> int:
        return len(self.table)

    @property
    def parts(self) -> tuple[Self]:
        """The sequences as parts that are summed over: one."""
        return (self,)

    def blocks(self, size: int) -> Iterator[tuple[Any, np.ndarray]]:
        """Tables of at most so many rows, and the weights of these."""
        for at in range(0, len(self), size):
            yield self.table[at : at + size], self.row_weight[at : at + size]

    def segments(self, at_once: int, size: int) -> list[list[Segment]]:
        """The rows that count, cut by `skvbem.models.sequences.segments`; the same list at every step."""
        if (at_once, size) not in self._cut:
            self._cut[at_once, size] = segments(self.starts, self.ends, at_once, size)
        return self._cut[at_once, size]

    @property
    def n_sequences(self) -> int:
        """Number of sequences."""
        return len(self.weight)

    @cached_property
    def lengths(self) -> np.ndarray:
        """Steps of each sequence, (n_sequences,)."""
        return np.diff(self.starts)

    @cached_property
    def weighted_rows(self) -> np.ndarray:
        """True for rows with a state that observations depend on, (n_rows,)."""
        return np.arange(len(self)) < np.repeat(self.ends, self.lengths)

    @cached_property
    def row_weight(self) -> np.ndarray:
        """Weight of each row, (n_rows,); 0 where no observation depends on its state."""
        return np.repeat(self.weight, self.lengths) * self.weighted_rows

    @cached_property
    def pair_weight(self) -> np.ndarray:
        """Weight of the transition from the row before, (n_rows,); 0 in the first row of a sequence."""
        weight = self.row_weight.copy()
        weight[self.starts[:-1][self.lengths > 0]] = 0.0
        return weight

    def for_draws(self, emission: Any) -> HMMData:
        """Sequences `one_by_one`, in an order that their values decide.

        What is drawn for them one after the other does not hang on the order in which they were given. Sequences
        without hashes stay in their order.
        """
        if not self._for_draws:
            sequences = self.one_by_one
            if self.row_hashes is not None:
                sequences = sequences._in_order(np.argsort(sequences._hashes(self), kind="stable"))
            sequences._for_draws.append(sequences)
            self._for_draws[:] = [sequences]
        return self._for_draws[0]

    def _hashes(self, given: HMMData) -> np.ndarray:
        """A number of each sequence that its values decide, of the sequences of others written out."""
        assert given.row_hashes is not None
        hashes, steps = (
            given.row_hashes(slice(None)),
            np.arange(len(given)) - np.repeat(given.starts[:-1], given.lengths),
        )
        by_row = np.where(given.weighted_rows, mixed(hashes + mixed(steps.astype(np.uint64))), np.uint64(0))
        sums = np.concatenate([[np.uint64(0)], np.cumsum(by_row, dtype=np.uint64)])
        return np.repeat(sums[given.starts[1:]] - sums[given.starts[:-1]], given.weight.astype(np.int64))

    def _in_order(self, order: np.ndarray) -> HMMData:
        """The sequences in another order."""
        lengths = self.lengths[order]
        starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        rows = np.arange(len(self)) + np.repeat(self.starts[order] - starts[:-1], lengths)
        return replace(
            self,
            table=self.table[rows],
            starts=starts,
            ends=starts[1:],
            weight=self.weight[order],
            row_hashes=None,
            covariates=self._covariates_at(order, rows),
        )

    def _covariates_at(self, sequences: np.ndarray, rows: np.ndarray) -> Any:
        """What drives first states of sequences, and transitions into rows."""
        if self.covariates is None:
            return None
        return tuple(None if of is None else of[at] for of, at in zip(self.covariates, (sequences, rows)))

    @cached_property
    def one_by_one(self) -> Self:
        """Sequences of whole weights repeated, without the rows that no observation depends on."""
        repeats = self.weight.astype(np.int64)
        lengths = np.repeat(self.ends - self.starts[:-1], repeats)
        if (repeats == 1).all() and np.array_equal(lengths, self.lengths):
            return self
        starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        rows = np.arange(starts[-1]) + np.repeat(np.repeat(self.starts[:-1], repeats) - starts[:-1], lengths)
        covariates = self._covariates_at(np.repeat(np.arange(self.n_sequences), repeats), rows)
        return replace(
            self,
            table=self.table[rows],
            starts=starts,
            ends=starts[1:],
            weight=np.ones(len(lengths)),
            covariates=covariates,
        )
