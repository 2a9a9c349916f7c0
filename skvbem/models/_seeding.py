r"""Starts of mixtures: rows are taken for the middles of components, every other row goes to the nearest.

Seeds are drawn among the distinct rows, in an order that their values decide, so that a start is the same for any order
of rows, for weights as for repeats, and for any chunks. Spread seeds (k-means++, Arthur & Vassilvitskii 2007) are drawn
with probabilities in proportion to the squared distance from those before, and moved to the means of their rows a few
times (Lloyd).

Or the distinct rows are joined, group by group (Fraley 1998): first by Ward's rule, as that is cheap, to a few dozen
groups, and these two by two where the prior finds the union most probable beside its parts [Heller & Ghahramani 2005],
which holds for any emission.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage

from skvbem.models._election import elect

if TYPE_CHECKING:
    from skvbem.models._mixture_data import MixtureBlocks, MixtureData
    from skvbem.models.mixture import Mixture

# How often seeds move to the means of their rows.
_N_MOVES = 10
# Groups that Ward's rule leaves, and more of them if there are to be many components.
_N_GROUPS, _GROUPS_PER_COMPONENT = 64, 2
# The share of a row that does not go to the nearest seed: what a start rules out, maximum likelihood never finds.
_ELSEWHERE = 0.1


def starts_of(
    kind: str, model: Mixture, data: MixtureData | MixtureBlocks, n_starts: int, rng: np.random.Generator
) -> np.ndarray:
    """Statistics of as many starts, (n_cells, n_starts).

    Parameters
    ----------
    kind : {"k-means++", "random", "hierarchical"}
        Of the last, one start joins rows, which must be in memory; the others are spread.
    model, data, n_starts, rng
        As of `seeded_starts`.
    """
    if kind != "hierarchical":
        return seeded_starts(model, data, n_starts, spread=kind != "random", rng=rng)
    joined = joined_start(model, cast("MixtureData", data), rng=rng)[:, None]
    if n_starts == 1:
        return joined
    return np.column_stack([joined, seeded_starts(model, data, n_starts - 1, spread=True, rng=rng)])


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


def joined_start(model: Mixture, data: MixtureData, *, rng: np.random.Generator) -> np.ndarray:
    """Statistics (n_cells,) of the start that joining groups of distinct rows leads to.

    Parameters
    ----------
    model : Mixture
    data : MixtureData
        With marks.
    rng : numpy.random.Generator
        Elects rows where there are more distinct ones than are joined; else nothing is drawn.
    """
    segment, rows, weight = elect(data.segments, len(data), int(rng.integers(2**63)))
    places = _places(model, data, segment, rows)
    order = np.argsort(rows)
    rows, weight, places = rows[order], weight[order] * (data.weight.sum() / weight.sum()), places[order]
    elected = replace(data, table=data.table[rows], weight=weight)
    n_groups = max(_N_GROUPS, _GROUPS_PER_COMPONENT * model.n_components)
    group = np.zeros(1, dtype=int) if len(rows) == 1 else fcluster(linkage(places, "ward"), n_groups, "maxclust") - 1
    group = _joined(model, elected, group)
    shares = (1 - _ELSEWHERE) * (group[:, None] == np.arange(model.n_components)) + _ELSEWHERE / model.n_components
    return model.statistics_of(shares, elected)


def _joined(model: Mixture, data: MixtureData, group: np.ndarray) -> np.ndarray:
    """Groups (n_rows,) joined until there is one for each component."""
    sums = np.stack([_of_one(model, data, group == g) for g in range(group.max() + 1)], axis=1)
    prior = model.prior.blocks[1]
    alone = prior.log_evidence(sums)
    gain = np.full((len(alone), len(alone)), -np.inf)  # of joining a group with one before it
    for g in range(1, len(alone)):
        gain[g, :g] = prior.log_evidence(sums[:, :g] + sums[:, g : g + 1]) - alone[:g] - alone[g]
    while np.isfinite(alone).sum() > model.n_components:
        g, into = divmod(int(gain.argmax()), len(gain))
        group = np.where(group == g, into, group)
        sums[:, into] += sums[:, g]
        alone[into], alone[g] = prior.log_evidence(sums[:, into]), -np.inf
        gain[g], gain[:, g] = -np.inf, -np.inf
        left = np.flatnonzero(np.isfinite(alone) & (np.arange(len(alone)) != into))
        better = prior.log_evidence(sums[:, left] + sums[:, into : into + 1]) - alone[left] - alone[into]
        gain[np.maximum(left, into), np.minimum(left, into)] = better
    return np.unique(group, return_inverse=True)[1]


def _of_one(model: Mixture, data: MixtureData, rows: np.ndarray) -> np.ndarray:
    """Statistics (n_cells,) of the emission if some rows, and no others, belong to the first component."""
    first = (np.arange(model.n_components) == 0) * np.ones((int(rows.sum()), 1))
    some = replace(data, table=data.table[np.flatnonzero(rows)], weight=data.weight[rows])
    return model.prior.split(model.statistics_of(first, some))[1]


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
