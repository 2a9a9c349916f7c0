"""Seeds of starts: distinct rows that lie apart, and the seed nearest to each row.

Seeds are drawn from a sample of the distinct rows, weighted by their repeats: an exponential race between them, over
any blocks of rows. A distinct row, known by its hash, arrives at an exponential time that its hash draws, divided by
how much all its repeats count; the first to arrive are sampled. That needs the sum over the repeats of a row, wherever
they stand, but not the sums of all rows at once. One pass adds up what the hashes in each of many buckets count, no
less than any of them does, and exactly what those of the earliest draws count. Rows that might then still be among the
first are few: a second pass adds up what they count. Memory does not grow with the rows, but for one row in some
hundred.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from skvbem.data import mixed
from skvbem.emissions import Emission
from skvbem.models.labels.model import LabeledRows, LabelModel

# How often seeds move to the means of their rows.
_N_MOVES = 10


def drawn_seeds(
    model: LabelModel, data: LabeledRows | HashedRows, n_starts: int, *, spread: bool, rng: np.random.Generator
) -> np.ndarray:
    """Seeds of as many starts, (n_starts, n_components, n_axes); see `seeded_starts`."""
    chunk, row, weight = sample_distinct_rows(data.chunks, len(data), int(rng.integers(2**63)))
    coordinates = seeding_coordinates(model.emission, data, chunk, row)
    return np.stack([_seeds(coordinates, weight, model.n_components, spread, start) for start in rng.spawn(n_starts)])


def nearest_seeds(emission: Emission, block: Any, seeds: np.ndarray) -> np.ndarray:
    """The nearest of seeds (n_starts, n_components, n_axes) to each row, (n_starts, n_rows); the first of equals."""
    n_starts, n_components, n_axes = seeds.shape
    squares = _squares(emission.seeding_coordinates(block), seeds.reshape(-1, n_axes))
    return squares.reshape(len(squares), n_starts, n_components).argmin(axis=-1).T


def seeding_coordinates(
    emission: Emission, data: LabeledRows | HashedRows, chunk: np.ndarray, row: np.ndarray
) -> np.ndarray:
    """Coordinates in which squared distances tell how unlike rows are, of rows of chunks, (n_rows, n_axes)."""
    coordinates: list = [None] * len(row)
    for number, rows in enumerate(data.chunks()):
        for k in np.flatnonzero(chunk == number).tolist():
            coordinates[k] = emission.seeding_coordinates(rows.table[row[k] : row[k] + 1])
    return np.concatenate(coordinates)


def _seeds(coordinates: np.ndarray, weight: np.ndarray, n: int, spread: bool, rng: np.random.Generator) -> np.ndarray:
    """Coordinates of seeds, (n, n_axes)."""
    chosen = np.empty((n, coordinates.shape[1]))
    away = np.ones(len(coordinates))
    nearest = np.full(len(coordinates), np.inf)
    for k in range(n):
        chances = np.cumsum(weight * away)
        if chances[-1] <= 0:  # fewer distinct rows than seeds
            chances = np.cumsum(weight)
        at = int(np.searchsorted(chances, rng.random() * chances[-1], side="right"))
        chosen[k] = coordinates[min(at, len(coordinates) - 1)]
        if spread:
            nearest = np.minimum(nearest, ((coordinates - chosen[k]) ** 2).sum(axis=1))
            away = nearest
    if not spread:
        return chosen
    for _ in range(_N_MOVES):
        nearest_seed = _squares(coordinates, chosen).argmin(axis=1)
        for seed in np.unique(nearest_seed):
            mine = nearest_seed == seed
            chosen[seed] = np.average(coordinates[mine], axis=0, weights=weight[mine])
    return chosen


def _squares(coordinates: np.ndarray, seeds: np.ndarray) -> np.ndarray:
    """Squared distances (n_rows, n_seeds), up to what all seeds share."""
    return (seeds**2).sum(axis=-1) - 2 * coordinates @ seeds.T


# Distinct rows sampled at most.
MAX_DISTINCT_ROWS = 2048
# Rows hashed at once, and buckets at the least and at most.
_ROWS, _MIN_BUCKETS, _MAX_BUCKETS = 2**14, 2**12, 2**22
# What sums of buckets, added in another order than those of rows, may lack.
_SLACK = 1 + 1e-9


@dataclass(frozen=True, eq=False)
class HashedRows:
    """Rows in memory to sample distinct ones from.

    Parameters
    ----------
    table : Table
        As the emission prepared it; None where hashes and weights are all that is asked for.
    weight : ndarray of shape (n_rows,)
        How often each row counts.
    row_hashes : callable
        Numbers of a slice of rows, equal for equal rows alone, (n_rows,) of uint64.
    """

    table: Any
    weight: np.ndarray
    row_hashes: Callable[[slice], np.ndarray]

    def __len__(self) -> int:
        return len(self.weight)

    def chunks(self) -> Iterator[Self]:
        """The rows: one chunk."""
        yield self


class _DistinctRows:
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
        self._waiting: list[tuple[np.ndarray, ...]] = []
        self._n_waiting = 0

    def add(self, hashes: np.ndarray, weight: np.ndarray, chunk: int, rows: np.ndarray) -> None:
        """Count rows. They wait until there are as many of them as hashes, so that few hashes cost no pass over all."""
        self._waiting.append((hashes, weight, np.full(len(hashes), chunk), rows))
        self._n_waiting += len(hashes)
        if self._n_waiting >= max(_ROWS, len(self.hashes)):
            self.close()

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

    def sample(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Chunks and rows of those sampled, in the order of their hashes, and how much each counts."""
        if len(self.hashes) > MAX_DISTINCT_ROWS:
            self._keep(np.sort(np.argsort(self.arrivals, kind="stable")[:MAX_DISTINCT_ROWS]))
            self.total = np.ones(MAX_DISTINCT_ROWS)
        return self.chunk, self.row, self.total


def draws(hashes: np.ndarray, seed: np.uint64) -> np.ndarray:
    """An exponential draw for each hash."""
    return -np.log1p(-((mixed(hashes ^ seed) >> np.uint64(11)) * 2.0**-53))


def sample_distinct_rows(
    chunks: Callable[[], Iterable], n_rows: int, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Distinct rows that count: all of them, or those that arrive first, each counting once then.

    Parameters
    ----------
    chunks : callable
        Returns the data, chunk after chunk, with `row_hashes` of a slice of rows and their `weight`.
    n_rows : int
        Of all chunks.
    seed : int

    Returns
    -------
    tuple of ndarray
        Chunk and row in it of each distinct row, and how much it counts, in the order of their hashes.
    """
    early = _DistinctRows(seed, 2 * MAX_DISTINCT_ROWS)
    n_buckets = min(max(1 << (max(n_rows, 1) // 4).bit_length(), _MIN_BUCKETS), _MAX_BUCKETS)
    buckets, mask = np.zeros(n_buckets), np.uint64(n_buckets - 1)
    for chunk, hashes, weight, rows in _hashed(chunks):
        np.add.at(buckets, _bucket(hashes, mask), weight)
        soon = slice(None) if early.latest == np.inf else draws(hashes, early.seed) <= early.latest
        early.add(hashes[soon], weight[soon], chunk, rows[soon])
    early.close()
    if early.latest == np.inf:
        return early.sample()
    last = np.partition(early.arrivals, MAX_DISTINCT_ROWS - 1)[MAX_DISTINCT_ROWS - 1] * _SLACK
    possible = _DistinctRows(seed)
    for chunk, hashes, weight, rows in _hashed(chunks):
        soon = draws(hashes, possible.seed) <= last * buckets[_bucket(hashes, mask)]
        possible.add(hashes[soon], weight[soon], chunk, rows[soon])
    possible.close()
    return possible.sample()


def _bucket(hashes: np.ndarray, mask: np.uint64) -> np.ndarray:
    return (mixed(hashes) & mask).astype(np.int64)


def _hashed(chunks: Callable[[], Iterable]) -> Iterator[tuple[int, np.ndarray, np.ndarray, np.ndarray]]:
    """Rows that count, some at a time: their chunk, hashes, weights, and places in the chunk."""
    for number, chunk in enumerate(chunks()):
        for at in range(0, len(chunk), _ROWS):
            rows = slice(at, min(at + _ROWS, len(chunk)))
            weight = chunk.weight[rows]
            weighted = np.flatnonzero(weight > 0)
            yield number, chunk.row_hashes(rows)[weighted], weight[weighted], at + weighted
