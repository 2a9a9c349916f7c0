"""Distinct rows of data, sampled where they are many: what starts and moves look at, and seeds of starts among them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Self

import numpy as np

from skvbem._lazy import cached_property
from skvbem.emissions import Emission
from skvbem.emissions.base import from_outside
from skvbem.emissions.outside import checked_coordinates
from skvbem.models.labels.sampled_rows import draws, sampled, sampled_elsewhere

# Distinct rows sampled at most.
MAX_DISTINCT_ROWS = 2048
# How often seeds move to the means of their rows.
_N_SEED_MOVES = 10
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
        are_here = getattr(data.parts, "are_here", True)
        sample = (sampled if are_here else sampled_elsewhere)(data.parts, len(data), 0, most)
        order = np.lexsort((sample.row, sample.chunk))
        chunk, row, weight, hashes = (each[order] for each in (sample.chunk, sample.row, sample.total, sample.hashes))
        total = 0.0
        blocks: list[Any] = []
        if are_here:
            taken = map(_taken, zip(data.parts, (row[chunk == number] for number in count())))
        else:
            taken = data.parts.beside([row[chunk == number] for number in range(len(data.parts))]).results(_taken)
        for table, of_part in taken:
            total += of_part
            if len(table) or not (len(row) or blocks):  # where no row counts, one block without any
                blocks.append(table)
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


def _taken(pair: tuple[Any, np.ndarray]) -> tuple[Any, float]:
    """Rows of a part, and how much all of its rows count."""
    part, rows = pair
    return part.table[rows], float(part.weight.sum())


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
