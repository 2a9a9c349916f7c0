"""Rows in parts, and the one way in which anything is summed over rows: `map_reduce`.

A part has a number, its place among all. A step is pure: parameters in, statistics of the part out, so that it may run
anywhere, in any order, and again. The results are added in a tree that the numbers of the parts alone decide: the same
bits for any number of threads and any order in which parts come to an end. Parts are sections of a table, which
threads share, or blocks that are never in memory all at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np

from skvbem._arguments import is_collection
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

    def __init__(self, iterate: Callable[[], Iterable], changes: tuple[Callable[[Any], Any], ...] = ()):
        self._iterate, self._changes = iterate, changes

    def __iter__(self) -> Iterator:
        return self.results()

    def map(self, change: Callable[[Any], Any]) -> Blocks:
        """The blocks of a function's results, computed when each block has its turn."""
        return type(self)(self._iterate, (*self._changes, change))

    def results(self, *step: Callable[[Any], Any]) -> Iterator:
        """The result of a step for each block, in the order of the blocks; blocks themselves without a step.

        All that reads blocks reads them here. Where rows are elsewhere a subclass has its functions run there.
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


def blocks_of(X) -> Blocks:
    """Rows in blocks that come again for every pass, of anything that can give them.

    A fit passes over the rows many times: what is iterated once must be the same when it is iterated again.

    Parameters
    ----------
    X : sequence or other iterable of tables, callable, dask array or data frame, or table
        A callable takes no argument and returns a fresh iterator of tables, such as
        ``lambda: pandas.read_csv("rows.csv", chunksize=100_000)``. Collections of dask are taken partition by
        partition; their own scheduler computes each. A table (array, data frame) is one block. Tables need neither
        have the same number of rows nor be of one type. Weights come in the same forms, as 1-D arrays.

    Returns
    -------
    Blocks

    Raises
    ------
    TypeError
        If X can be iterated only once, as a generator can, or not at all.

    Examples
    --------
    >>> import numpy as np
    >>> from skvbem import VBMixture, blocks_of
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> whole = VBMixture(2, random_state=0).fit(X)
    >>> in_blocks = VBMixture(2, random_state=0).fit(blocks_of([X[:100], X[100:250], X[250:]]))
    >>> bool(np.isclose(whole.lower_bound_, in_blocks.lower_bound_, rtol=1e-9))
    True
    """
    if isinstance(X, Blocks):
        return X
    if is_dask(X):
        return Blocks(lambda: _partitions(X))
    if hasattr(X, "shape") or hasattr(X, "__dataframe__"):
        return Blocks(lambda: [X])
    if isinstance(X, Iterator):
        raise TypeError(
            f"Blocks must come again for every pass over the rows; a {type(X).__name__} comes once. Give a function "
            "that makes it, as in blocks_of(lambda: pandas.read_csv(path, chunksize=100_000)), or a list of tables."
        )
    if callable(X):
        return Blocks(X)
    if is_collection(X):
        return Blocks(lambda: X)
    raise TypeError(
        "Blocks are made of a sequence of tables, of another iterable of them, of a function that returns one, or of a "
        f"dask array or data frame. Got a {type(X).__name__} instead."
    )


def is_dask(X) -> bool:
    """True for a collection of dask; dask itself is not imported."""
    return type(X).__module__.partition(".")[0] in ("dask", "dask_expr") and hasattr(X, "npartitions")


def _partitions(X) -> Iterator:
    """The parts of a dask collection, each with all of its columns, computed one at a time."""
    if hasattr(X, "numblocks"):
        of_rows = X.rechunk({1: -1}) if X.ndim == 2 and X.numblocks[1] > 1 else X
        return (of_rows.blocks[k].compute() for k in range(of_rows.numblocks[0]))
    return (X.partitions[k].compute() for k in range(X.npartitions))
