"""Seeds of starts: distinct rows that lie apart, and the seed nearest to each row."""

from __future__ import annotations

from typing import Any

import numpy as np

from skvbem.emissions import Emission
from skvbem.emissions.outside import seeding_coordinates as coordinates_of
from skvbem.models.labels.distinct_rows import HashedRows, sample_distinct_rows
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
    squares = _squares(coordinates_of(emission, block), seeds.reshape(-1, n_axes))
    return squares.reshape(len(squares), n_starts, n_components).argmin(axis=-1).T


def seeding_coordinates(
    emission: Emission, data: LabeledRows | HashedRows, chunk: np.ndarray, row: np.ndarray
) -> np.ndarray:
    """Coordinates in which squared distances tell how unlike rows are, of rows of chunks, (n_rows, n_axes)."""
    coordinates: list = [None] * len(row)
    for number, rows in enumerate(data.chunks()):
        for k in np.flatnonzero(chunk == number).tolist():
            coordinates[k] = coordinates_of(emission, rows.table[row[k] : row[k] + 1])
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
