"""Memory that is used again: to have pages from the system takes longer than a pass over them."""

from __future__ import annotations

from math import prod

import numpy as np

# Doubles of an array from which its memory is kept: what is smaller, malloc does not give back to the system either.
_MIN_SIZE = 2**13
# Doubles of memory that is kept at most, 8 MB: what blocks of three threads take.
_MAX_KEPT = 2**20
_TYPE = np.dtype(float).str


class _Lease:
    """The owner of an array's memory, which gives it back when no view of the array is left."""

    __slots__ = ("__array_interface__", "_free", "_max_kept", "_memory")

    def __init__(self, memory: np.ndarray, shape: tuple[int, ...], free: list[np.ndarray], max_kept: int):
        self._memory, self._free, self._max_kept = memory, free, max_kept
        place = memory.__array_interface__["data"]
        self.__array_interface__ = {"shape": shape, "typestr": _TYPE, "data": place, "version": 3}

    def __del__(self) -> None:
        if self._memory.size + sum(each.size for each in self._free) <= self._max_kept:
            self._free.append(self._memory)


class ReusedMemory:
    """Arrays, each in the memory of an earlier one of which no view is left; threads may share it.

    Parameters
    ----------
    max_kept : int
        Most doubles that are kept for later arrays.
    """

    def __init__(self, max_kept: int = _MAX_KEPT) -> None:
        self._free: list[np.ndarray] = []
        self._max_kept = max_kept

    def empty(self, *shape: int) -> np.ndarray:
        """An array of doubles, of any values."""
        size = prod(shape)
        if size < _MIN_SIZE:
            return np.empty(shape)
        others, memory = [], None
        while self._free and memory is None:
            try:
                memory = self._free.pop()  # one step, so that threads do not take the same
            except IndexError:
                break
            if not size <= memory.size <= 2 * size:
                others.append(memory)
                memory = None
        if memory is None and sum(each.size for each in others) + size > self._max_kept:
            others.clear()  # of which none will fit the next one either
        self._free += others
        return np.asarray(_Lease(np.empty(size) if memory is None else memory, shape, self._free, self._max_kept))

    def __reduce__(self) -> tuple:
        return type(self), (self._max_kept,)


#: Of arrays that are computed for a block of rows, and then for the next, of whatever table.
OF_BLOCKS = ReusedMemory()
