"""Seeds of starts: distinct rows that lie apart, and the seed nearest to each row."""

from __future__ import annotations

from typing import Any

import numpy as np

from skvbem.emissions import Emission
from skvbem.models.labels.candidates import elect

# How often seeds move to the means of their rows.
_N_MOVES = 10


def drawn_seeds(model: Any, data: Any, n_starts: int, *, spread: bool, rng: np.random.Generator) -> np.ndarray:
    """Seeds of as many starts, (n_starts, n_components, n_axes); see `seeded_starts`."""
    segment, row, weight = elect(data.segments, len(data), int(rng.integers(2**63)))
    places = _places(model, data, segment, row)
    return np.stack([_seeds(places, weight, model.n_components, spread, start) for start in rng.spawn(n_starts)])


def nearest_seeds(emission: Emission, block: Any, seeds: np.ndarray) -> np.ndarray:
    """The nearest of seeds (n_starts, n_components, n_axes) to each row, (n_starts, n_rows); the first of equals."""
    n_starts, n_components, n_axes = seeds.shape
    squares = _squares(emission.seeding_coordinates(block), seeds.reshape(-1, n_axes))
    return squares.reshape(len(squares), n_starts, n_components).argmin(axis=-1).T


def _places(model: Any, data: Any, segment: np.ndarray, row: np.ndarray) -> np.ndarray:
    """The places of rows of segments, (n_rows, n_axes)."""
    places: list = [None] * len(row)
    for number, of_segment in enumerate(data.segments()):
        for k in np.flatnonzero(segment == number).tolist():
            places[k] = model.emission.seeding_coordinates(of_segment.table[row[k] : row[k] + 1])
    return np.concatenate(places)


def _seeds(places: np.ndarray, weight: np.ndarray, n: int, spread: bool, rng: np.random.Generator) -> np.ndarray:
    """Places of seeds, (n, n_axes)."""
    chosen = np.empty((n, places.shape[1]))
    away = np.ones(len(places))
    nearest = np.full(len(places), np.inf)
    for k in range(n):
        chances = np.cumsum(weight * away)
        if chances[-1] <= 0:  # fewer distinct rows than seeds
            chances = np.cumsum(weight)
        at = int(np.searchsorted(chances, rng.random() * chances[-1], side="right"))
        chosen[k] = places[min(at, len(places) - 1)]
        if spread:
            nearest = np.minimum(nearest, ((places - chosen[k]) ** 2).sum(axis=1))
            away = nearest
    if not spread:
        return chosen
    for _ in range(_N_MOVES):
        own = _squares(places, chosen).argmin(axis=1)
        for seed in np.unique(own):
            chosen[seed] = np.average(places[own == seed], axis=0, weights=weight[own == seed])
    return chosen


def _squares(places: np.ndarray, seeds: np.ndarray) -> np.ndarray:
    """Squared distances (n_rows, n_seeds), up to what all seeds share."""
    return (seeds**2).sum(axis=-1) - 2 * places @ seeds.T
