"""Which distinct rows a start may choose among: an exponential race between them, run over any blocks of rows.

A distinct row, known by its mark, arrives at an exponential time that its mark draws, divided by how much all its
repeats count; the first to arrive are elected. That needs the sum over the repeats of a row, wherever they stand, but
not the sums of all rows at once. One pass adds up what the marks in each of many buckets count, no less than any of
them does, and exactly what those of the earliest draws count. Rows that might then still be among the first are few: a
second pass adds up what they count. Memory does not grow with the rows, but for one row in some hundred.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from skvbem.data import mixed

# Distinct rows elected at most.
MOST_CANDIDATES = 2048
# Rows marked at once, and buckets at the least and at most.
_ROWS, _LEAST_BUCKETS, _MOST_BUCKETS = 2**14, 2**12, 2**22
# What sums of buckets, added in another order than those of rows, may lack.
_SLACK = 1 + 1e-9


class _Tally:
    """Marks, how much the rows of each count, and where the first of them stands.

    Parameters
    ----------
    seed : int
    most : int or None
        How many marks are kept: those whose own draws come first, so that a mark is kept from its first row on or not
        at all.
    """

    def __init__(self, seed: int, most: int | None = None):
        self.seed, self.most, self.latest = np.uint64(seed), most, np.inf
        self.marks, self.total = np.empty(0, dtype=np.uint64), np.empty(0)
        self.segment, self.row = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        self._waiting: list[tuple[np.ndarray, ...]] = []
        self._n_waiting = 0

    def add(self, marks: np.ndarray, weight: np.ndarray, segment: int, rows: np.ndarray) -> None:
        """Count rows. They wait until there are as many of them as marks, so that few marks cost no pass over all."""
        self._waiting.append((marks, weight, np.full(len(marks), segment), rows))
        self._n_waiting += len(marks)
        if self._n_waiting >= max(_ROWS, len(self.marks)):
            self.close()

    def close(self) -> None:
        """Count the rows that wait, in the order in which they came."""
        if not self._waiting:
            return
        marks, weight, segment, rows = (np.concatenate(each) for each in zip(*self._waiting))
        self._waiting, self._n_waiting = [], 0
        new, first = np.unique(marks, return_index=True)
        unknown = ~np.isin(new, self.marks, assume_unique=True)
        new, first = new[unknown], first[unknown]
        every = np.concatenate([self.marks, new])
        order = np.argsort(every)
        self.marks = every[order]
        self.total = np.concatenate([self.total, np.zeros(len(new))])[order]
        self.segment = np.concatenate([self.segment, segment[first]])[order]
        self.row = np.concatenate([self.row, rows[first]])[order]
        np.add.at(self.total, np.searchsorted(self.marks, marks), weight)
        if self.most is not None and len(self.marks) > self.most:
            own = draws(self.marks, self.seed)
            self.latest = float(np.partition(own, self.most - 1)[self.most - 1])
            self._keep(np.flatnonzero(own <= self.latest))

    def _keep(self, which: np.ndarray) -> None:
        self.marks, self.total = self.marks[which], self.total[which]
        self.segment, self.row = self.segment[which], self.row[which]

    @property
    def arrivals(self) -> np.ndarray:
        """When the marks arrive."""
        return draws(self.marks, self.seed) / self.total

    def elected(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Segments and rows of the candidates, in the order of their marks, and how much each counts."""
        if len(self.marks) > MOST_CANDIDATES:
            self._keep(np.sort(np.argsort(self.arrivals, kind="stable")[:MOST_CANDIDATES]))
            self.total = np.ones(MOST_CANDIDATES)
        return self.segment, self.row, self.total


def draws(marks: np.ndarray, seed: np.uint64) -> np.ndarray:
    """An exponential draw for each mark."""
    return -np.log1p(-((mixed(marks ^ seed) >> np.uint64(11)) * 2.0**-53))


def elect(segments: Callable[[], Iterable], n_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Candidates among the distinct rows that count: all of them, or those that arrive first, each counting once then.

    Parameters
    ----------
    segments : callable
        Returns the data, block after block, with `marks` of a slice of rows and their `weight`.
    n_rows : int
        Of all segments.
    seed : int

    Returns
    -------
    tuple of ndarray
        Segment and row in it of each candidate, and how much it counts, in the order of their marks.
    """
    early = _Tally(seed, 2 * MOST_CANDIDATES)
    n_buckets = min(max(1 << (max(n_rows, 1) // 4).bit_length(), _LEAST_BUCKETS), _MOST_BUCKETS)
    buckets, mask = np.zeros(n_buckets), np.uint64(n_buckets - 1)
    for segment, marks, weight, rows in _marked(segments):
        np.add.at(buckets, _bucket(marks, mask), weight)
        soon = slice(None) if early.latest == np.inf else draws(marks, early.seed) <= early.latest
        early.add(marks[soon], weight[soon], segment, rows[soon])
    early.close()
    if early.latest == np.inf:
        return early.elected()
    last = np.partition(early.arrivals, MOST_CANDIDATES - 1)[MOST_CANDIDATES - 1] * _SLACK
    possible = _Tally(seed)
    for segment, marks, weight, rows in _marked(segments):
        soon = draws(marks, possible.seed) <= last * buckets[_bucket(marks, mask)]
        possible.add(marks[soon], weight[soon], segment, rows[soon])
    possible.close()
    return possible.elected()


def _bucket(marks: np.ndarray, mask: np.uint64) -> np.ndarray:
    return (mixed(marks) & mask).astype(np.int64)


def _marked(segments: Callable[[], Iterable]) -> Iterator[tuple[int, np.ndarray, np.ndarray, np.ndarray]]:
    """Rows that count, some at a time: their segment, marks, weights, and places in the segment."""
    for number, segment in enumerate(segments()):
        for at in range(0, len(segment), _ROWS):
            rows = slice(at, min(at + _ROWS, len(segment)))
            weight = segment.weight[rows]
            counted = np.flatnonzero(weight > 0)
            yield number, segment.marks(rows)[counted], weight[counted], at + counted
