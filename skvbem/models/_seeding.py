r"""Starts of mixtures: rows are taken for the middles of components, every other row goes to the nearest.

Seeds are drawn among the distinct rows, in an order that their values decide, so that a start is the same for any order
of rows, for weights as for repeats, and for any chunks. Spread seeds (k-means++, Arthur & Vassilvitskii 2007) are drawn
with probabilities in proportion to the squared distance from those before, and moved to the means of their rows a few
times (Lloyd).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from skvbem.models._election import elect

if TYPE_CHECKING:
    from skvbem.models._mixture_data import MixtureBlocks, MixtureData
    from skvbem.models.mixture import Mixture

# How often seeds move to the means of their rows.
_N_MOVES = 10
# The share of a row that does not go to the nearest seed: what a start rules out, maximum likelihood never finds.
_ELSEWHERE = 0.1


def seeded_starts(
    model: Mixture, data: MixtureData | MixtureBlocks, n_starts: int, *, spread: bool, rng: np.random.Generator
) -> np.ndarray:
    """Statistics of as many starts, (n_cells, n_starts), the first ones the same however many there are.

    Parameters
    ----------
    model : Mixture
    data : MixtureData or MixtureBlocks
        With marks.
    n_starts : int
    spread : bool
        Whether seeds keep away from each other.
    rng : numpy.random.Generator
    """
    segment, row, weight = elect(data.segments, len(data), int(rng.integers(2**63)))
    places = _places(model, data, segment, row)
    seeds = [_seeds(places, weight, model.n_components, spread, start) for start in rng.spawn(n_starts)]
    return _nearest(model, data, np.stack(seeds))


def _places(model: Mixture, data: MixtureData | MixtureBlocks, segment: np.ndarray, row: np.ndarray) -> np.ndarray:
    """The places of rows of segments, (n_rows, n_axes)."""
    places: list = [None] * len(row)
    for number, of_segment in enumerate(data.segments()):
        for k in np.flatnonzero(segment == number).tolist():
            places[k] = model.emission.places(of_segment.table[row[k] : row[k] + 1])
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


def _nearest(model: Mixture, data: MixtureData | MixtureBlocks, seeds: np.ndarray) -> np.ndarray:
    """Statistics (n_cells, n_starts) of rows that belong to the nearest of seeds (n_starts, n_components, n_axes)."""
    n_starts, n_components, _ = seeds.shape
    natural = np.repeat(model.prior.blocks[1].expected_natural()[:, None], n_starts, axis=1)
    step = model.emission.step(natural, data.table)
    total, counts = step.zeros(), np.zeros((n_components, n_starts))
    size = model.emission.block_rows(n_components, n_starts)
    for block, weight in data.blocks(size):
        squares = _squares(model.emission.places(block), seeds.reshape(-1, seeds.shape[-1]))
        own = squares.reshape(len(weight), n_starts, n_components).argmin(axis=-1).T
        shares = (own[:, None] == np.arange(n_components)[:, None]) * ((1 - _ELSEWHERE) * weight)
        shares += _ELSEWHERE / n_components * weight
        counts += shares.sum(axis=-1).T
        step.add(block, shares.swapaxes(-1, -2), total)
    return np.concatenate([model.weights.statistics(counts), step.statistics(total)])
