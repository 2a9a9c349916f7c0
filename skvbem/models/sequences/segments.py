"""Segments of sequences: pieces of rows that one pass takes at once, and the buffers these need."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np


@dataclass(frozen=True, eq=False)
class Stretch:
    """Neighboring rows.

    Parameters
    ----------
    rows : slice
    sequences : slice
        Which sequences they are of.
    starts, ends : ndarray of int64, shape (n_sequences,)
        First row of each sequence, and the row after its last, counted from the first row of the stretch.
    at_once : int
        Rows that are passed over together, so that they stay in cache; no sequence has more.
    begins, goes_on : bool
        Whether the first row begins a sequence, and whether the last sequence goes on after the stretch.
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
        """Number of rows."""
        return self.rows.stop - self.rows.start


def stretches(starts: np.ndarray, ends: np.ndarray, at_once: int, size: int) -> list[list[Stretch]]:
    """All rows in stretches: one of whole sequences alone, or all pieces of a long sequence together.

    Parameters
    ----------
    starts : ndarray of int64, shape (n_sequences + 1,)
        First rows of sequences, and the end.
    ends : ndarray of int64, shape (n_sequences,)
        The row after the last that counts in each.
    at_once : int
        Rows that passes keep in cache; a sequence of more is cut into pieces of at most as many.
    size : int
        Most rows of a stretch of several sequences.
    """
    found, n, first = [], len(ends), 0
    lengths = np.diff(starts)
    is_long = lengths > at_once
    next_long = np.append(np.flatnonzero(is_long), n)[np.cumsum(is_long) - is_long]  # of each sequence, itself or later
    while first < n:
        at = int(starts[first])
        if is_long[first]:
            some, stop = slice(first, first + 1), int(ends[first])
            cuts = np.linspace(at, stop, max(-(-(stop - at) // at_once), 1) + 1).astype(np.int64).tolist()
            zero = np.zeros(1, np.int64)
            pieces = [
                Stretch(slice(a, b), some, zero, np.array([b - a]), b - a, a == at, b < stop) for a, b in pairwise(cuts)
            ]
            found.append(pieces)
            first += 1
            continue
        last = max(int(np.searchsorted(starts, at + size, side="right")) - 1, first + 1)
        some = slice(first, min(last, int(next_long[first])))
        stop = int(starts[some.stop])
        of_sequences = starts[some] - at, ends[some] - at
        found.append([Stretch(slice(at, stop), some, *of_sequences, min(at_once, stop - at))])
        first = some.stop
    return found


class Rooms:
    """Memory used again from one step to the next: having it from the system takes longer than a pass over it."""

    def __init__(self):
        self._free: list[np.ndarray] = []

    def take(self, n_lanes: int, size: int) -> np.ndarray:
        """An array (n_lanes, size) of anything."""
        try:
            room = self._free.pop().reshape(-1)  # one step, so that threads do not take the same
        except IndexError:
            return np.empty((n_lanes, size))
        if room.size < n_lanes * size:
            return np.empty((n_lanes, size))
        return room[: n_lanes * size].reshape(n_lanes, size)

    def give_back(self, room: np.ndarray) -> None:
        """Let another have the memory of an array that was taken."""
        self._free.append(room if room.base is None else room.base)
