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
from functools import partial
from typing import Any, cast

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage

from skvbem.blocks import map_reduce
from skvbem.emissions.base import start_natural
from skvbem.emissions.softmax import prior_without_covariates
from skvbem.models.labels.distinct_rows import DistinctRows, drawn_seeds, nearest_seeds, with_known_labels
from skvbem.models.mixture.model import DataInParts, Mixture, MixtureData, MixtureEStep

# Groups that Ward's rule leaves, and more of them if there are to be many components.
_N_GROUPS, _GROUPS_PER_COMPONENT = 64, 2
# The share of a row that does not go to the nearest seed: what a start rules out, maximum likelihood never finds.
_ELSEWHERE = 0.1


def starts_of(
    kind: str,
    model: Mixture,
    data: MixtureData | DataInParts,
    rows: DistinctRows,
    n_starts: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Statistics of as many starts, (n_cells, n_starts), the first ones the same however many there are.

    Parameters
    ----------
    kind : {"auto", "k-means++", "random", "hierarchical"}
        Of "auto" half are spread, and half are around any rows. Of the last, one start joins rows, which must be in
        memory; the others are spread.
    model : Mixture
    data : MixtureData or DataInParts
    rows : DistinctRows
        Of the data, among which seeds are drawn.
    n_starts : int
    rng : numpy.random.Generator
    """
    if model.n_components == 1:  # all rows are of the one component, whatever is drawn
        return np.repeat(model.statistics_of(np.ones((len(data), 1)), data)[:, None], n_starts, axis=1)
    if kind != "hierarchical":
        return _nearest(model, data, drawn_seeds(kind, model.n_components, rows, n_starts, rng))
    joined = joined_start(model, cast(MixtureData, data), rows)[:, None]
    if n_starts == 1:
        return joined
    return np.column_stack([joined, starts_of("k-means++", model, data, rows, n_starts - 1, rng)])


def joined_start(model: Mixture, data: MixtureData, rows: DistinctRows) -> np.ndarray:
    """Statistics (n_cells,) of the start that joining groups of distinct rows of the data leads to."""
    sampled, coordinates = cast(MixtureData, model.on(rows, data)), rows.coordinates
    n_groups = max(_N_GROUPS, _GROUPS_PER_COMPONENT * model.n_components)
    group = np.zeros(1, dtype=int)
    if len(coordinates) > 1:
        group = fcluster(linkage(coordinates, "ward"), n_groups, "maxclust") - 1
    group = _joined(model.with_known_hyperparameters(), sampled, group)
    among = np.arange(model.n_components)
    responsibilities = (1 - _ELSEWHERE) * (group[:, None] == among) + _ELSEWHERE / model.n_components
    return model.statistics_of(responsibilities, sampled)


def _joined(model: Mixture, data: MixtureData, group: np.ndarray) -> np.ndarray:
    """Groups (n_rows,) joined until there is one for each component."""
    sums = np.stack([_of_one(model, data, group == g) for g in range(group.max() + 1)], axis=1)
    prior = prior_without_covariates(model.emission, model.prior.blocks[1])
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
        if not len(left):  # all rows are one group
            break
        better = prior.log_evidence(sums[:, left] + sums[:, into : into + 1]) - alone[left] - alone[into]
        gain[np.maximum(left, into), np.minimum(left, into)] = better
    return np.unique(group, return_inverse=True)[1]


def _of_one(model: Mixture, data: MixtureData, rows: np.ndarray) -> np.ndarray:
    """Statistics (n_cells,) of the emission if some rows, and no others, belong to the first component."""
    first = (np.arange(model.n_components) == 0) * np.ones((int(rows.sum()), 1))
    chosen = replace(data, table=data.table[np.flatnonzero(rows)], weight=data.weight[rows])
    return model.prior.split(model.statistics_of(first, chosen))[1]


def _nearest(model: Mixture, data: MixtureData | DataInParts, seeds: np.ndarray) -> np.ndarray:
    """Statistics (n_cells, n_starts) of rows that belong to the nearest of seeds (n_starts, n_components, n_axes)."""
    weight_cells = np.repeat(model.weights.prior.expected_natural()[:, None], len(seeds), axis=1)
    emission_cells = np.repeat(start_natural(model.emission, model.prior.blocks[1])[:, None], len(seeds), axis=1)
    step = model.e_step(np.concatenate([weight_cells, emission_cells]), data)
    return model.started(step.statistics(map_reduce(partial(_nearest_sums, step, seeds), data.parts)))


def _nearest_sums(step: MixtureEStep, seeds: np.ndarray, part: MixtureData) -> tuple[Any, np.ndarray, np.ndarray]:
    """The sums of an E step of compiled rows that belong to the nearest of seeds."""
    model, (total, log_z, counts) = step.model, step.zeros
    n_starts, n_components, _ = seeds.shape
    for block, weight in part.blocks(model.emission.block_rows(n_components, n_starts)):
        nearest = nearest_seeds(model.emission, block, seeds)
        weighted = (nearest[:, None] == np.arange(n_components)[:, None]) * ((1 - _ELSEWHERE) * weight)
        weighted += _ELSEWHERE / n_components * weight
        if model.emission.n_levels:
            weighted = with_known_labels(weighted, block.labels)
        counts += weighted.sum(axis=-1)
        step.step.add(block, weighted.swapaxes(-1, -2), total)
    return total, log_z, counts
