"""A sample of distinct rows, which repeats make as likely as they count together.

Distinct rows are sampled with chances in proportion to their repeats: an exponential race between them, over
any blocks of rows. A distinct row, known by its hash, arrives at an exponential time that its hash draws, divided by
how much all its repeats count; the first to arrive are sampled. That needs the sum over the repeats of a row, wherever
they stand, but not the sums of all rows at once. One pass adds up what the hashes in each of many buckets count, no
less than any of them does, and exactly what those of the earliest draws count. Rows that might then still be among the
first are few: a second pass adds up what they count. Memory does not grow with the rows, but for one row in some
hundred.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np

from skvbem.blocks import map_reduce
from skvbem.blocks.elsewhere import BlocksElsewhere
from skvbem.data import mixed

# Rows that wait before they are counted, and buckets at the least and at most.
_ROWS, _MIN_BUCKETS, _MAX_BUCKETS = 2**14, 2**12, 2**22
# Rows hashed at once: where malloc keeps no large arrays, as on workers of dask, their pages would be had anew.
_AT_ONCE = 2**12
# What sums of buckets, added in another order than those of rows, may lack.
_SLACK = 1 + 1e-9


class Sample:
    """Hashes of rows, how much the rows of each count, and where the first of them stands.

    Parameters
    ----------
    seed : int
    most : int or None
        How many hashes are kept: those whose draws come first, so that a hash is kept from its first row on or not
        at all.
    """

    def __init__(self, seed: int, most: int | None = None):
        self.seed, self.most, self.latest = np.uint64(seed), most, np.inf
        self.hashes, self.total = np.empty(0, dtype=np.uint64), np.empty(0)
        self.chunk, self.row = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        self.n_parts = 1
        self._waiting: list[tuple[np.ndarray, ...]] = []
        self._n_waiting = 0

    def add(self, hashes: np.ndarray, weight: np.ndarray, chunk: int, rows: np.ndarray) -> None:
        """Count rows. They wait until there are many beside the hashes, so that few hashes cost no pass over all."""
        self._take(hashes, weight, np.full(len(hashes), chunk), rows)

    def _take(self, *of_rows: np.ndarray) -> None:
        self._waiting.append(of_rows)
        hashes = of_rows[0]
        self._n_waiting += len(hashes)
        if self._n_waiting >= max(_ROWS, len(self.hashes) // 4):
            self.close()

    def __add__(self, other: Sample) -> Sample:
        """The sample of the rows of both, those of the other in the parts that follow."""
        both = Sample(int(self.seed), self.most)
        both.n_parts, both.latest = self.n_parts + other.n_parts, min(self.latest, other.latest)
        for one, n_before in ((self, 0), (other, self.n_parts)):  # hashes of which either has all rows
            soon = draws(one.hashes, one.seed) <= both.latest
            both._take(one.hashes[soon], one.total[soon], one.chunk[soon] + n_before, one.row[soon])
        both.close()
        return both

    def __getstate__(self) -> dict[str, Any]:
        state = vars(self).copy()
        state["row"] = self.row.astype(np.min_scalar_type(self.row.max(initial=0)))
        state["chunk"] = self.chunk.astype(np.min_scalar_type(self.n_parts))
        return state

    def close(self) -> None:
        """Count the rows that wait, in the order in which they came."""
        if not self._waiting:
            return
        hashes, weight, chunk, rows = (np.concatenate(each) for each in zip(*self._waiting))
        self._waiting, self._n_waiting = [], 0
        new, first = np.unique(hashes, return_index=True)
        unknown = ~np.isin(new, self.hashes, assume_unique=True)
        new, first = new[unknown], first[unknown]
        every = np.concatenate([self.hashes, new])
        order = np.argsort(every)
        self.hashes = every[order]
        self.total = np.concatenate([self.total, np.zeros(len(new))])[order]
        self.chunk = np.concatenate([self.chunk, chunk[first]])[order]
        self.row = np.concatenate([self.row, rows[first]])[order]
        np.add.at(self.total, np.searchsorted(self.hashes, hashes), weight)
        if self.most is not None and len(self.hashes) > self.most:
            times = draws(self.hashes, self.seed)
            self.latest = float(np.partition(times, self.most - 1)[self.most - 1])
            self._keep(np.flatnonzero(times <= self.latest))

    def _keep(self, which: np.ndarray) -> None:
        self.hashes, self.total = self.hashes[which], self.total[which]
        self.chunk, self.row = self.chunk[which], self.row[which]

    @property
    def arrivals(self) -> np.ndarray:
        """When the distinct rows arrive."""
        return draws(self.hashes, self.seed) / self.total

    def sample(self, most: int) -> None:
        """Keep the first to arrive, each counting once, if there are more than `most`."""
        if len(self.hashes) > most:
            self._keep(np.sort(np.argsort(self.arrivals, kind="stable")[:most]))
            self.total = np.ones(most)


def draws(hashes: np.ndarray, seed: np.uint64 | np.ndarray) -> np.ndarray:
    """An exponential draw for each hash; of several seeds (..., 1), (..., n_hashes)."""
    return -np.log1p(-((mixed(hashes ^ seed) >> np.uint64(11)) * 2.0**-53))


def sampled(parts: Iterable, n_rows: int, seed: int, most: int) -> Sample:
    """Distinct rows that count: all of them, or those that arrive first, each counting once then.

    Samples of one seed are nested: a larger one has the rows of a smaller one.

    Parameters
    ----------
    parts : iterable
        The data, the same for each of two passes, with `row_hashes` of a slice of rows and their `weight`.
    n_rows : int
        Of all parts.
    seed : int
    most : int
    """
    early = Sample(seed, _n_early(most))
    n_buckets = min(max(1 << (max(n_rows, 1) // 4).bit_length(), _MIN_BUCKETS), _MAX_BUCKETS)
    buckets = np.zeros(n_buckets)
    for chunk, hashes, weight, rows in _hashed(parts):
        np.add.at(buckets, _bucket_of(hashes, n_buckets), weight)
        soon = slice(None) if early.latest == np.inf else draws(hashes, early.seed) <= early.latest
        early.add(hashes[soon], weight[soon], chunk, rows[soon])
    early.close()
    if early.latest == np.inf:
        early.sample(most)
        return early
    last = np.partition(early.arrivals, most - 1)[most - 1] * _SLACK
    del early  # both would be large together
    possible = Sample(seed)
    for chunk, hashes, weight, rows in _hashed(parts):
        soon = draws(hashes, possible.seed) <= last * buckets[_bucket_of(hashes, n_buckets)]
        possible.add(hashes[soon], weight[soon], chunk, rows[soon])
    possible.close()
    possible.sample(most)
    return possible


def sampled_elsewhere(parts: BlocksElsewhere, n_rows: int, seed: int, most: int) -> Sample:
    """Distinct rows of parts that are elsewhere: these send sums of buckets, and hashes of rows that may be first.

    Rows and parameters are those of `sampled`. Buckets are so many that both take as much room: with more of them fewer
    rows may be first.
    """
    wanted = 3 * most * n_rows / max(len(parts), 1)
    n_buckets = min(max(1 << (int(wanted**0.5)).bit_length(), _MIN_BUCKETS), _MAX_BUCKETS)
    early, buckets = map_reduce(partial(_early_in, seed, _n_early(most), n_buckets), parts)
    if early.latest == np.inf:
        early.sample(most)
        return early
    last = np.partition(early.arrivals, most - 1)[most - 1] * _SLACK
    possible = map_reduce(partial(_possible_in, seed, last, buckets), parts)
    possible.sample(most)
    return possible


def _n_early(most: int) -> int:
    """Hashes whose draws come first that are kept in the first pass."""
    return most + max(most // 8, _ROWS // 8)


def _bucket_of(hashes: np.ndarray, n_buckets: int) -> np.ndarray:
    """The bucket of each hash, of a power of 2 of them."""
    return (mixed(hashes) & np.uint64(n_buckets - 1)).astype(np.int64)


def _early_in(seed: int, most: int, n_buckets: int, part: Any) -> tuple[Sample, np.ndarray]:
    """Rows of a part whose draws come first, and what all of its rows count by bucket."""
    early, buckets = Sample(seed, most), np.zeros(n_buckets)
    for chunk, hashes, weight, rows in _hashed((part,)):
        np.add.at(buckets, _bucket_of(hashes, n_buckets), weight)
        soon = slice(None) if early.latest == np.inf else draws(hashes, early.seed) <= early.latest
        early.add(hashes[soon], weight[soon], chunk, rows[soon])
    early.close()
    return early, buckets


def _possible_in(seed: int, last: float, buckets: np.ndarray, part: Any) -> Sample:
    """Rows of a part that arrive no later than `last` if all that their bucket counts is theirs."""
    possible = Sample(seed)
    for chunk, hashes, weight, rows in _hashed((part,)):
        soon = draws(hashes, possible.seed) <= last * buckets[_bucket_of(hashes, len(buckets))]
        possible.add(hashes[soon], weight[soon], chunk, rows[soon])
    possible.close()
    return possible


def _hashed(parts: Iterable) -> Iterator[tuple[int, np.ndarray, np.ndarray, np.ndarray]]:
    """Rows that count, some at a time: their chunk, hashes, weights, and places in the chunk."""
    for number, chunk in enumerate(parts):
        for at in range(0, len(chunk), _AT_ONCE):
            rows = slice(at, min(at + _AT_ONCE, len(chunk)))
            weight = chunk.weight[rows]
            weighted = np.flatnonzero(weight > 0)
            yield number, chunk.row_hashes(rows)[weighted], weight[weighted], at + weighted
