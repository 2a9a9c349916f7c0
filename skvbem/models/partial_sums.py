"""Sums over blocks of rows, shared among threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np

# Parts of the rows whose sums are kept apart, and added in order: what threads share, whatever their number.
_N_PARTS = 8


def summed(sums: Callable[[Sequence], tuple], blocks: Sequence, n_threads: int) -> tuple:
    """Sums over consecutive parts of the blocks, added up; the same for any number of threads."""
    total, *others = sums_of_parts(sums, blocks, n_threads)
    for other in others:
        total = added(total, other)
    return total


def sums_of_parts(sums: Callable[[Sequence], tuple], blocks: Sequence, n_threads: int) -> list[tuple]:
    """Sums over consecutive parts of the blocks; the same for any number of threads."""
    parts = _parts(blocks)
    if n_threads > 1 and len(parts) > 1:
        with ThreadPoolExecutor(min(n_threads, len(parts))) as pool:
            return list(pool.map(sums, parts))
    return [sums(part) for part in parts]


def added(total: tuple, other: tuple) -> tuple:
    """Two tuples of partial sums added, each sum to its like."""
    return tuple(_added(one, two) for one, two in zip(total, other))


def _parts(blocks: Sequence) -> list[Sequence]:
    """Blocks in consecutive parts, as many whatever the number of threads."""
    if len(blocks) < 2:
        return [blocks]
    ends = np.linspace(0, len(blocks), min(_N_PARTS, len(blocks)) + 1).astype(int)
    return [blocks[a:b] for a, b in pairwise(ends)]


def _added(total: Any, other: Any) -> Any:
    """Sums of an emission, or lists of sums, added."""
    if isinstance(total, Iterable) and not isinstance(total, np.ndarray):
        return [_added(one, two) for one, two in zip(total, other)]
    return total + other
