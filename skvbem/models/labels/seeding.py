"""Seeds of starts: distinct rows that lie apart, and the seed nearest to each row."""

from __future__ import annotations

from typing import Any

import numpy as np

from skvbem.emissions import Emission
from skvbem.models.labels.distinct_rows import DistinctRows, coordinates_of
from skvbem.models.labels.model import LabelModel

# How often seeds move to the means of their rows.
_N_MOVES = 10


def drawn_seeds(
    kind: str, model: LabelModel, rows: DistinctRows, n_starts: int, rng: np.random.Generator
) -> np.ndarray:
    """Seeds of as many starts, (n_starts, n_components, n_axes), the first ones the same however many there are.

    Parameters
    ----------
    kind : {"auto", "k-means++", "random"}
        Seeds that keep away from each other, or any rows; with "auto" both by turns.
    model : LabelModel
    rows : DistinctRows
        Among which seeds are drawn.
    n_starts : int
    rng : numpy.random.Generator
    """
    if not len(rows):  # nothing was observed: wherever components start, they stay at their prior
        return np.zeros((n_starts, model.n_components, rows.coordinates.shape[1]))
    if kind == "auto":
        of_spread, of_any = rng.spawn(2)
        spread = drawn_seeds("k-means++", model, rows, (n_starts + 1) // 2, of_spread)
        seeds = np.empty((n_starts, *spread.shape[1:]))
        seeds[0::2] = spread
        if n_starts > 1:
            seeds[1::2] = drawn_seeds("random", model, rows, n_starts // 2, of_any)
        return seeds
    order = np.argsort(rows.hashes)
    coordinates, weight, spread_out = rows.coordinates[order], rows.weight[order], kind != "random"
    labels = None if rows.labels is None else rows.labels[order]
    each = rng.spawn(n_starts)
    return np.stack([seeds_among(coordinates, weight, model.n_components, spread_out, start, labels) for start in each])


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
    for _ in range(_N_MOVES):
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
        mine, of_mine = coordinates[labels == label], weight[labels == label]
        share = of_mine / of_mine.sum()
        seeds[label] = share @ mine if spread else mine[rng.choice(len(mine), p=share)]
    return seeds


def with_known_labels(fractions: np.ndarray, labels: np.ndarray | None) -> np.ndarray:
    """Fractions (..., n_components, n_rows), those of rows with a known label all with its component."""
    if labels is None or not (labels >= 0).any():
        return fractions
    known, fractions = np.flatnonzero(labels >= 0), np.array(fractions)
    of_known = fractions[..., known].sum(axis=-2)
    fractions[..., known] = 0.0
    fractions[..., labels[known], known] = of_known
    return fractions


def squares_to(seeds: np.ndarray, coordinates: np.ndarray) -> np.ndarray:
    """Squared distances (..., n_rows, n_seeds) of rows to seeds (..., n_seeds, d), up to what all seeds share."""
    return (seeds**2).sum(axis=-1)[..., None, :] - 2 * coordinates @ seeds.swapaxes(-1, -2)
