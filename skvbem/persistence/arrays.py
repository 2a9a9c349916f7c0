"""Arrays of a saved fit: their bytes, little-endian, one after the other, and a line for each that describes it."""

from __future__ import annotations

import math
import re
from typing import Any, Literal

import numpy as np

# Booleans, whole numbers, floats of 8 bytes or less, complex numbers, texts, dates and spans of time.
_KNOWN = re.compile(r"\|b1|[|<][iu][1248]|<f[248]|<c(8|16)|<U\d{1,6}|<[Mm]8\[\d{0,9}[A-Za-z]{1,2}\]|\|S\d{1,6}")
_MAX_DIMENSIONS = 32


def name_of(dtype: np.dtype) -> str | None:
    """The name of a type in files, None if files hold no such type."""
    name = dtype.newbyteorder("<").str
    return name if _KNOWN.fullmatch(name) else None


def dtype_named(name: Any) -> np.dtype:
    """The type of a name in files, in the order of bytes of this machine.

    Raises
    ------
    ValueError
        If files hold no such type.
    """
    if not isinstance(name, str) or not _KNOWN.fullmatch(name):
        raise ValueError(f"there are no arrays of the type {name!r:.40}")
    return np.dtype(name).newbyteorder("=")


def bytes_of(array: np.ndarray, order: Literal["C", "F"] = "C") -> bytes:
    """The cells of an array, little-endian."""
    return array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes(order)


def array_of(data: bytes | memoryview, dtype: np.dtype, shape: tuple[int, ...], order: str) -> np.ndarray:
    """An array of its own, of the cells that bytes hold.

    Raises
    ------
    ValueError
        If they are none of this type, as booleans or texts may be.
    """
    cells = np.frombuffer(data, dtype.newbyteorder("<"))
    if dtype.kind == "b" and len(cells) and cells.view(np.uint8).max() > 1:
        raise ValueError("a truth value is neither true nor false")
    if dtype.kind == "U":
        cells.tolist()  # which refuses what is no character
    return np.array(cells.reshape(shape, order=order).astype(dtype, copy=False), order=order)  # type: ignore[call-overload]


class ArrayWriter:
    """Collects arrays; each is written once, however often it is used."""

    def __init__(self) -> None:
        self.lines: list[list] = []
        self._pieces: list[bytes] = []
        self._numbers: dict[int, int] = {}
        self._kept: list[np.ndarray] = []  # so that no other array gets the identity of one that is gone

    def number(self, array: np.ndarray) -> int:
        """The number of an array whose type files hold."""
        if id(array) not in self._numbers:
            order: Literal["C", "F"] = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
            self._numbers[id(array)] = len(self.lines)
            self._kept.append(array)
            self.lines.append([name_of(array.dtype), list(array.shape), order])
            self._pieces.append(bytes_of(array, order))
        return self._numbers[id(array)]

    def tobytes(self) -> bytes:
        """All arrays, one after the other."""
        return b"".join(self._pieces)


class ArrayReader:
    """The arrays that lines describe, each made when it is first asked for.

    Raises
    ------
    ValueError
        If they are not all that the bytes hold, before anything is allocated for them.
    """

    def __init__(self, lines: Any, data: bytes):
        if not isinstance(lines, list):
            raise ValueError("its arrays are not described")
        self._view = memoryview(data)
        self._described: list[tuple[int, int, list]] = []
        self._made: dict[int, np.ndarray] = {}
        start = 0
        for line in lines:
            name, shape, order = line if isinstance(line, list) and len(line) == 3 else (None, None, None)
            dtype = dtype_named(name)
            sizes = shape if isinstance(shape, list) and len(shape) <= _MAX_DIMENSIONS else [-1]
            if order not in ("C", "F") or not all(type(size) is int and size >= 0 for size in sizes):
                raise ValueError(f"an array is said to have the shape {shape!r:.60}")
            n_bytes = math.prod(sizes) * dtype.itemsize
            if start + n_bytes > len(data):
                raise ValueError(f"an array of shape {tuple(sizes)} is said to be longer than what there is")
            self._described.append((start, n_bytes, line))
            start += n_bytes
        if start != len(data):
            raise ValueError("there are more numbers than its arrays hold")

    def __len__(self) -> int:
        return len(self._described)

    def __getitem__(self, number: int) -> np.ndarray:
        if number not in self._made:
            start, n_bytes, (name, shape, order) = self._described[number]
            cells = self._view[start : start + n_bytes]
            self._made[number] = array_of(cells, dtype_named(name), tuple(shape), order)
        return self._made[number]
