"""Rows in parts, and the one way in which anything is summed over rows: `map_reduce`.

A part has a number, its place among all. A step is pure: parameters in, statistics of the part out, so that it may run
anywhere, in any order, and again. The results are added in a tree that the numbers of the parts alone decide: the same
bits for any number of threads and any order in which parts come to an end. Parts are sections of a table, which
threads share, blocks that are never in memory all at once, or parts that are elsewhere (`skvbem.blocks.elsewhere`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np

from skvbem._arithmetic import arithmetic

# Children of a node of the tree, and sections of a table in memory that threads share: their sums are added one after
# another. The number decides bits, not how well threads are used, as long as it is no less than that of cores.
_FAN_IN = 8


class Blocks:
    """Blocks of rows, the same whenever they are iterated. `blocks_of` makes them.

    Parameters
    ----------
    iterate : callable
        Returns a fresh iterator.
    changes : tuple of callable, default=()
        Functions of a block, one after another, whose result stands for it.
    """

    #: One of them at a time is in memory.
    are_in_blocks = True
    #: Their functions run in this process.
    are_here = True

    def __init__(self, iterate: Callable[[], Iterable], changes: tuple[Callable[[Any], Any], ...] = ()):
        self._iterate, self._changes = iterate, changes

    def __iter__(self) -> Iterator:
        return self.results()

    def map(self, change: Callable[[Any], Any]) -> Blocks:
        """The blocks of a function's results, computed when each block has its turn."""
        return type(self)(self._iterate, (*self._changes, change))

    def beside(self, items: Iterable) -> Blocks:
        """The blocks, each in a pair with one of as many items."""
        return Blocks(lambda: zip(self, items, strict=True))

    def kept(self) -> Blocks:
        """The blocks as their functions change them; where rows are elsewhere, held there for many passes."""
        return self

    def results(self, *step: Callable[[Any], Any]) -> Iterator:
        """The result of a step for each block, in the order of the blocks; blocks themselves without a step.

        All that reads blocks reads them here. Where rows are elsewhere their functions run there, and only results of
        the step come back.
        """
        for block in self._iterate():
            for change in (*self._changes, *step):
                block = change(block)
            yield block


def map_reduce(step: Callable[[Any], Any], parts: Iterable, n_threads: int = 1) -> Any:
    """The sum of a step's results over parts, added in a fixed tree over the numbers of the parts.

    Parameters
    ----------
    step : callable
        Takes a part and returns its sums: arrays, numbers, values that have ``+``, or tuples, lists and dictionaries of
        these. It depends on nothing but the part, and pickles if parts are to be elsewhere.
    parts : Blocks, or iterable of parts
    n_threads : int, default=1
        Threads that share the parts of a sequence; the sum does not depend on it.
    """
    if isinstance(parts, (tuple, list)) and len(parts) == 1:  # of rows in memory, in every step of a fit
        return step(parts[0])
    if isinstance(parts, Blocks):
        return tree_sum(parts.results(step))
    if n_threads > 1 and isinstance(parts, Sequence):
        with ThreadPoolExecutor(min(n_threads, len(parts))) as pool:
            return tree_sum(pool.map(arithmetic(step), parts))
    return tree_sum(map(step, parts))


def tree_sum(terms: Iterable) -> Any:
    """The sum of terms, in a tree whose nodes have up to 8 children: few sums are held, whatever the number of terms.

    Raises
    ------
    ValueError
        If there are no terms.
    """
    waiting: list[tuple[Any, int]] = []  # of each level, the sum of a node's children so far, and how many these are
    for term in terms:
        level = 0
        while level < len(waiting) and waiting[level][1] == _FAN_IN - 1:
            term = added(waiting[level][0], term)
            waiting[level] = (None, 0)
            level += 1
        if level == len(waiting):
            waiting.append((None, 0))
        total, n = waiting[level]
        waiting[level] = (added(total, term) if n else term, n + 1)
    rest, is_empty = None, True
    for total, n in waiting:
        if n:
            rest, is_empty = total if is_empty else added(total, rest), False
    if is_empty:
        raise ValueError("There are no parts to sum over.")
    return rest


def added(total: Any, other: Any) -> Any:
    """Two results of a step added, each sum to its like."""
    if isinstance(total, dict):
        return {**total, **{key: added(total[key], term) if key in total else term for key, term in other.items()}}
    if isinstance(total, (tuple, list)):
        return type(total)(added(one, two) for one, two in zip(total, other, strict=True))
    return total + other


def sections(blocks: Sequence) -> list:
    """A sequence in consecutive parts, as many whatever the number of threads that share them."""
    if len(blocks) < 2:
        return [blocks]
    ends = np.linspace(0, len(blocks), min(_FAN_IN, len(blocks)) + 1).astype(int)
    return [blocks[a:b] for a, b in pairwise(ends)]
