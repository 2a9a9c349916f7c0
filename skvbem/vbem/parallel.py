"""Work cut into batches of fixed size, run by threads: the same numbers for any number of them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor


def in_batches(work: Callable[[slice], object], n: int, size: int, n_threads: int) -> list:
    """Results of `work` on consecutive slices of 0 ... n, in order."""
    slices = [slice(at, min(at + size, n)) for at in range(0, n, size)]
    if n_threads <= 1 or len(slices) == 1:
        return [work(part) for part in slices]
    with ThreadPoolExecutor(min(n_threads, len(slices))) as pool:
        return list(pool.map(work, slices))
