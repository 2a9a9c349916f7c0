"""Segments of sequences: pieces of rows that one pass takes at once, and the buffers these need."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np


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


class BufferPool:
    """Memory used again from one step to the next: having it from the system takes longer than a pass over it."""

    def __init__(self):
        self._free: list[np.ndarray] = []

    def take(self, n_lanes: int, size: int) -> np.ndarray:
        """An array (n_lanes, size) of anything."""
        try:
            buffer = self._free.pop().reshape(-1)  # one step, so that threads do not take the same
        except IndexError:
            return np.empty((n_lanes, size))
        if buffer.size < n_lanes * size:
            return np.empty((n_lanes, size))
        return buffer[: n_lanes * size].reshape(n_lanes, size)

    def give_back(self, buffer: np.ndarray) -> None:
        """Let another have the memory of an array that was taken."""
        self._free.append(buffer if buffer.base is None else buffer.base)
