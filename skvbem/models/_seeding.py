r"""Starts from seeds: some rows are the middles of components or states, every other row goes to the nearest.

Seeds are drawn among the distinct rows, in an order that their values decide, so that a start is the same for any order
of rows, for weights as for repeats, and for any chunks. Spread seeds (k-means++, Arthur & Vassilvitskii 2007) are drawn
with probabilities in proportion to the squared distance from those before, and moved to the means of their rows a few
times (Lloyd).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from skvbem.data import mixed

if TYPE_CHECKING:
    from skvbem.models.hmm import HMM, HMMData
    from skvbem.models.mixture import Mixture, MixtureData

# Distinct rows among which seeds are drawn, and how often the seeds move to the means of theirs.
_MOST_CANDIDATES, _N_MOVES = 2048, 10
# The share of a row that does not go to the nearest seed: what a start rules out, maximum likelihood never finds.
_ELSEWHERE = 0.1


def seeded_starts(
    model: Mixture | HMM,
    data: MixtureData | HMMData,
    marks: np.ndarray,
    n_starts: int,
    *,
    spread: bool,
    rng: np.random.Generator,
) -> np.ndarray:
    """Statistics of as many starts, (n_cells, n_starts), the first ones the same however many there are.

    Parameters
    ----------
    model : Mixture or HMM
    data : MixtureData or HMMData
    marks : ndarray of uint64, shape (n_rows,)
        Equal for equal rows alone.
    n_starts : int
    spread : bool
        Whether seeds keep away from each other.
    rng : numpy.random.Generator
    """
    rows, weight = candidates(marks, data.row_weight, int(rng.integers(2**63)))
    places = np.concatenate([model.emission.places(data.table[k : k + 1]) for k in rows.tolist()])
    seeds = [_seeds(places, weight, model.n_components, spread, start) for start in rng.spawn(n_starts)]
    return _nearest(model, data, np.stack(seeds))


def candidates(marks: np.ndarray, weight: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Distinct rows that count, at most `_MOST_CANDIDATES`, in the order of their marks, and how much each counts.

    Of more rows those are taken that an exponential race elects: heavy ones more often, all by their marks alone.
    """
    distinct, first, of_row = np.unique(marks, return_index=True, return_inverse=True)
    total = np.bincount(of_row.ravel(), weights=weight)
    kept = np.flatnonzero(total > 0)
    if len(kept) > _MOST_CANDIDATES:
        uniform = (mixed(distinct[kept] ^ np.uint64(seed)) >> np.uint64(11)) * 2.0**-53
        arrival = -np.log1p(-uniform) / total[kept]
        kept = np.sort(kept[np.argsort(arrival, kind="stable")[:_MOST_CANDIDATES]])
        return first[kept], np.ones(len(kept))
    return first[kept], total[kept]


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


def _nearest(model: Any, data: Any, seeds: np.ndarray) -> np.ndarray:
    """Statistics (n_cells, n_starts) of rows that belong to the nearest of seeds (n_starts, n_components, n_axes)."""
    n_starts, n_components, n_axes = seeds.shape

    def shares_of(rows: slice) -> np.ndarray:
        squares = _squares(model.emission.places(data.table[rows]), seeds.reshape(-1, n_axes))
        own = squares.reshape(-1, n_starts, n_components).argmin(axis=-1).T
        shares = (own[:, None] == np.arange(n_components)[:, None]) * (1 - _ELSEWHERE)
        return shares + _ELSEWHERE / n_components

    return model.statistics_from(shares_of, data, n_starts)
