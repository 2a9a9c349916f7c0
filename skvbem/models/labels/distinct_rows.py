"""Distinct rows of data, sampled where they are many: what starts and moves look at, and seeds of starts among them.

Distinct rows are sampled with chances in proportion to their repeats: an exponential race between them, over
any blocks of rows. A distinct row, known by its hash, arrives at an exponential time that its hash draws, divided by
how much all its repeats count; the first to arrive are sampled. That needs the sum over the repeats of a row, wherever
they stand, but not the sums of all rows at once. One pass adds up what the hashes in each of many buckets count, no
less than any of them does, and exactly what those of the earliest draws count. Rows that might then still be among the
first are few: a second pass adds up what they count. Memory does not grow with the rows, but for one row in some
hundred.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from skvbem._lazy import cached_property
from skvbem.data import mixed
from skvbem.emissions import Emission
from skvbem.emissions.base import from_outside
from skvbem.emissions.outside import checked_coordinates

# Distinct rows sampled at most.
MAX_DISTINCT_ROWS = 2048
# How often seeds move to the means of their rows.
_N_SEED_MOVES = 10
# Rows hashed at once, and buckets at the least and at most.
_ROWS, _MIN_BUCKETS, _MAX_BUCKETS = 2**14, 2**12, 2**22
# What sums of buckets, added in another order than those of rows, may lack.
_SLACK = 1 + 1e-9
# Decimals of squared distances and sums of weights that are compared: equal ones are equal in any order of rows.
_DECIMALS = 9
# A value of a column has ties where so many rows have it, and no smaller share of all.
_FEWEST_TIES, _TIED_SHARE = 4, 1 / 64


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

    @property
    def parts(self) -> tuple[Self]:
        """The rows as parts: one."""
        return (self,)


class _Sample:
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
        """Count rows. They wait until there are many beside the hashes, so that few hashes cost no pass over all."""
        self._waiting.append((hashes, weight, np.full(len(hashes), chunk), rows))
        self._n_waiting += len(hashes)
        if self._n_waiting >= max(_ROWS, len(self.hashes) // 4):
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

    def sample(self, most: int) -> None:
        """Keep the first to arrive, each counting once, if there are more than `most`."""
        if len(self.hashes) > most:
            self._keep(np.sort(np.argsort(self.arrivals, kind="stable")[:most]))
            self.total = np.ones(most)


def draws(hashes: np.ndarray, seed: np.uint64 | np.ndarray) -> np.ndarray:
    """An exponential draw for each hash; of several seeds (..., 1), (..., n_hashes)."""
    return -np.log1p(-((mixed(hashes ^ seed) >> np.uint64(11)) * 2.0**-53))


def _sampled(parts: Iterable, n_rows: int, seed: int, most: int) -> _Sample:
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
    early = _Sample(seed, most + max(most // 8, _ROWS // 8))
    n_buckets = min(max(1 << (max(n_rows, 1) // 4).bit_length(), _MIN_BUCKETS), _MAX_BUCKETS)
    buckets, mask = np.zeros(n_buckets), np.uint64(n_buckets - 1)
    for chunk, hashes, weight, rows in _hashed(parts):
        np.add.at(buckets, (mixed(hashes) & mask).astype(np.int64), weight)
        soon = slice(None) if early.latest == np.inf else draws(hashes, early.seed) <= early.latest
        early.add(hashes[soon], weight[soon], chunk, rows[soon])
    early.close()
    if early.latest == np.inf:
        early.sample(most)
        return early
    last = np.partition(early.arrivals, most - 1)[most - 1] * _SLACK
    del early  # both would be large together
    possible = _Sample(seed)
    for chunk, hashes, weight, rows in _hashed(parts):
        soon = draws(hashes, possible.seed) <= last * buckets[(mixed(hashes) & mask).astype(np.int64)]
        possible.add(hashes[soon], weight[soon], chunk, rows[soon])
    possible.close()
    possible.sample(most)
    return possible


def _hashed(parts: Iterable) -> Iterator[tuple[int, np.ndarray, np.ndarray, np.ndarray]]:
    """Rows that count, some at a time: their chunk, hashes, weights, and places in the chunk."""
    for number, chunk in enumerate(parts):
        for at in range(0, len(chunk), _ROWS):
            rows = slice(at, min(at + _ROWS, len(chunk)))
            weight = chunk.weight[rows]
            weighted = np.flatnonzero(weight > 0)
            yield number, chunk.row_hashes(rows)[weighted], weight[weighted], at + weighted


def coordinates_of(emission: Emission, block: Any) -> np.ndarray:
    """Rows of a block as points in which seeds are drawn, (n_rows, n_axes)."""
    return checked_coordinates(emission, block) if from_outside(emission) else emission.seeding_coordinates(block)


def sums_by_group(group: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Sums of weights (n_rows,) by group; equal ones are equal in any order of rows."""
    return np.round(np.bincount(group, weight), _DECIMALS)


@dataclass(frozen=True, eq=False)
class DistinctRows:
    """Distinct rows of data, a sample of them where they are many, that count as much together as all rows.

    Parameters
    ----------
    blocks : list of Table
        The rows, as the emission prepared them.
    weight : ndarray of shape (n_rows,)
        How often each counts.
    hashes : ndarray of uint64, shape (n_rows,)
    coordinates : ndarray of shape (n_rows, n_axes)
        In which squared distances tell how unlike rows are.
    is_sample : bool
        Whether there are more of them in the data.
    labels : ndarray of int, shape (n_rows,), or None
        The component of each row where it is known, negative where it is not; None if none is.
    """

    blocks: list[Any]
    weight: np.ndarray
    hashes: np.ndarray
    coordinates: np.ndarray
    is_sample: bool
    labels: np.ndarray | None = None

    @classmethod
    def of(cls, emission: Emission, data: Any, most: int = MAX_DISTINCT_ROWS) -> Self:
        """At most so many of the distinct rows of data; more of them have those that fewer have.

        Parameters
        ----------
        emission : Emission
        data : LabeledRows or HashedRows
            Whose parts have weights and hashes of rows.
        most : int
        """
        sampled = _sampled(data.parts, len(data), 0, most)
        order = np.lexsort((sampled.row, sampled.chunk))
        chunk, row, weight, hashes = (
            each[order] for each in (sampled.chunk, sampled.row, sampled.total, sampled.hashes)
        )
        total = 0.0
        blocks: list[Any] = []
        for number, rows in enumerate(data.parts):
            total += float(rows.weight.sum())
            mine = row[chunk == number]
            if len(mine) or not (len(row) or blocks):  # where no row counts, one block without any
                blocks.append(rows.table[mine])
        coordinates = np.concatenate([coordinates_of(emission, block) for block in blocks])
        is_sample = len(row) == most and bool((weight == 1.0).all())
        share = total / weight.sum() if len(weight) else 1.0
        labels = np.concatenate([block.labels for block in blocks]) if emission.n_levels else None
        return cls(blocks, weight * share, hashes, coordinates, is_sample, labels)

    def __len__(self) -> int:
        return len(self.weight)

    @property
    def total_weight(self) -> float:
        """How much they count together."""
        return float(self.weight.sum())

    def counting(self, most: float) -> Self:
        """The rows, each counting no more than so much if they are a sample."""
        return replace(self, weight=np.minimum(self.weight, most)) if self.is_sample else self

    @cached_property
    def slices(self) -> list[slice]:
        """The rows of each block."""
        ends = np.cumsum([len(block) for block in self.blocks]).tolist()
        return [slice(end - len(block), end) for end, block in zip(ends, self.blocks)]

    @cached_property
    def is_labeled(self) -> np.ndarray:
        """Rows whose component is known, bool, (n_rows,)."""
        return np.zeros(len(self), dtype=bool) if self.labels is None else self.labels >= 0

    @cached_property
    def _norms(self) -> np.ndarray:
        """Squared distances of rows from the origin, (n_rows,)."""
        return (self.coordinates**2).sum(axis=1)

    def squares_from(self, places: Sequence[int] | np.ndarray) -> np.ndarray:
        """Squared distances of all rows from those at some places, (n_places, n_rows)."""
        squares = self._norms[places][:, None] - 2 * self.coordinates[places] @ self.coordinates.T
        squares += self._norms
        return np.round(np.maximum(squares, 0.0, out=squares), _DECIMALS, out=squares)

    @cached_property
    def ties(self) -> np.ndarray:
        """Weights of rows with the value that each has in a column, 0 where few or all have it, (n_columns, n_rows)."""
        alike = np.zeros(self.coordinates.T.shape)
        fewest = round(max(_FEWEST_TIES, self.total_weight * _TIED_SHARE), _DECIMALS)
        for column, of_rows in zip(self.coordinates.T, alike):
            values, which = np.unique(column, return_inverse=True)
            weight = sums_by_group(which, self.weight)
            of_rows[:] = np.where((weight >= fewest) & (len(values) > 1), weight, 0.0)[which]
        return alike

    def near_one(self, fewest: int, most: int, rng: np.random.Generator) -> tuple[np.ndarray, int]:
        """The rows nearest to a random one, bool, and that one; from so few to so many, few and many as likely."""
        row = int(np.argmin(draws(self.hashes, rng.integers(2**63, dtype=np.uint64))))
        away = self.squares_from([row])[0]
        n_near = int(np.exp(rng.uniform(np.log(fewest), np.log(most))))
        return away <= np.partition(away, n_near - 1)[n_near - 1], row


# Seeds of starts ------------------------------------------------------------------------------------------------------


def drawn_seeds(
    kind: str, n_components: int, rows: DistinctRows, n_starts: int, rng: np.random.Generator
) -> np.ndarray:
    """Seeds of as many starts, (n_starts, n_components, n_axes), the first ones the same however many there are.

    Parameters
    ----------
    kind : {"auto", "k-means++", "random"}
        Seeds that keep away from each other, or any rows; with "auto" both by turns.
    n_components : int
    rows : DistinctRows
        Among which seeds are drawn.
    n_starts : int
    rng : numpy.random.Generator
    """
    if not len(rows):  # nothing was observed: wherever components start, they stay at their prior
        return np.zeros((n_starts, n_components, rows.coordinates.shape[1]))
    if kind == "auto":
        spread_rng, random_rng = rng.spawn(2)
        spread = drawn_seeds("k-means++", n_components, rows, (n_starts + 1) // 2, spread_rng)
        seeds = np.empty((n_starts, *spread.shape[1:]))
        seeds[0::2] = spread
        if n_starts > 1:
            seeds[1::2] = drawn_seeds("random", n_components, rows, n_starts // 2, random_rng)
        return seeds
    order = np.argsort(rows.hashes)
    coordinates, weight, spread_out = rows.coordinates[order], rows.weight[order], kind != "random"
    labels = None if rows.labels is None else rows.labels[order]
    each = rng.spawn(n_starts)
    return np.stack([seeds_among(coordinates, weight, n_components, spread_out, start, labels) for start in each])


def nearest_seeds(emission: Emission, block: Any, seeds: np.ndarray) -> np.ndarray:
    """The nearest of seeds (n_starts, n_components, n_axes) to each row, (n_starts, n_rows); the first of equals."""
    n_starts, n_components, n_axes = seeds.shape
    squares = squares_to(seeds.reshape(-1, n_axes), coordinates_of(emission, block))
    return squares.reshape(len(squares), n_starts, n_components).argmin(axis=-1).T


def seeds_among(
    coordinates: np.ndarray,
    weight: np.ndarray,
    n: int,
    spread: bool,
    rng: np.random.Generator,
    labels: np.ndarray | None = None,
) -> np.ndarray:
    """Coordinates of seeds, (n, n_axes), drawn among rows (n_rows, n_axes): any, or such as lie apart.

    Where labels (n_rows,) of rows are known, the seed of a label is one of its rows, or the mean of all.
    """
    chosen = np.empty((n, coordinates.shape[1]))
    away = np.ones(len(coordinates))
    nearest = np.full(len(coordinates), np.inf)
    placed = {} if labels is None else _of_known_labels(coordinates, weight, labels, spread, rng)
    for k, seed in placed.items():
        chosen[k] = seed
        if spread:
            away = nearest = np.minimum(nearest, ((coordinates - seed) ** 2).sum(axis=1))
    for k in range(n):
        if k in placed:
            continue
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
    weighted, last = weight * np.ascontiguousarray(coordinates.T), None
    for _ in range(_N_SEED_MOVES):
        nearest_seed = squares_to(chosen, coordinates).argmin(axis=1)
        if labels is not None:
            nearest_seed = np.where(labels >= 0, labels, nearest_seed)
        if last is not None and np.array_equal(nearest_seed, last):
            break
        last, total = nearest_seed, np.bincount(nearest_seed, weight, n)
        sums = [np.bincount(nearest_seed, column, n) for column in weighted]
        chosen = np.where(total[:, None] > 0, np.stack(sums, axis=1) / np.where(total > 0, total, 1.0)[:, None], chosen)
    return chosen


def _of_known_labels(
    coordinates: np.ndarray, weight: np.ndarray, labels: np.ndarray, spread: bool, rng: np.random.Generator
) -> dict[int, np.ndarray]:
    """For each label that rows have a seed: the mean of its rows, or any one of them."""
    seeds = {}
    for label in np.unique(labels[labels >= 0]).tolist():
        mine, its_weight = coordinates[labels == label], weight[labels == label]
        share = its_weight / its_weight.sum()
        seeds[label] = share @ mine if spread else mine[rng.choice(len(mine), p=share)]
    return seeds


def with_known_labels(fractions: np.ndarray, labels: np.ndarray | None) -> np.ndarray:
    """Fractions (..., n_components, n_rows), those of rows with a known label all with its component."""
    if labels is None or not (labels >= 0).any():
        return fractions
    known, fractions = np.flatnonzero(labels >= 0), np.array(fractions)
    known_share = fractions[..., known].sum(axis=-2)
    fractions[..., known] = 0.0
    fractions[..., labels[known], known] = known_share
    return fractions


def squares_to(seeds: np.ndarray, coordinates: np.ndarray) -> np.ndarray:
    """Squared distances (..., n_rows, n_seeds) of rows to seeds (..., n_seeds, d), up to what all seeds share."""
    squares = (seeds**2).sum(axis=-1)[..., None, :] - 2 * coordinates @ seeds.swapaxes(-1, -2)
    return np.round(squares, _DECIMALS, out=squares)
