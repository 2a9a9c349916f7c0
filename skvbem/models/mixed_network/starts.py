"""Starts of mixed networks: tables drawn uniformly, and rows drawn as the middles of what emissions make.

For the nodes with an emission that have the same parents, a row is drawn for each joint state of these; every row is
taken to be in the state of the nearest, as far as its observed parents leave room. Where all emissions started alike,
no step would tell states of a hidden parent apart.
"""

from __future__ import annotations

import numpy as np

from skvbem.families import Dirichlet
from skvbem.models.labels.distinct_rows import coordinates_of, seeds_among, squares_to
from skvbem.models.mixed_network.data import FactorRows, MixedData
from skvbem.models.mixed_network.model import MixedNetwork

# The share of a row that does not go to the nearest seed: what a start rules out, maximum likelihood never finds.
_ELSEWHERE = 0.1
# Distinct rows among which seeds are drawn, at most.
_MAX_ROWS = 2048


def random_starts(model: MixedNetwork, data: MixedData, n_starts: int, rng: np.random.Generator) -> np.ndarray:
    """Statistics of as many starts, (n_cells, n_starts), the first ones the same however many there are.

    Seeds keep away from each other in every other start, and are any rows in the others.

    Parameters
    ----------
    model : MixedNetwork
    data : MixedData
    n_starts : int
    rng : numpy.random.Generator
    """
    layout, each = model.layout, rng.spawn(n_starts)
    uniform = Dirichlet(np.ones(layout.n_table_cells), layout.row_starts)
    tables = np.log(np.stack([uniform.sample(start_rng) for start_rng in each], axis=1).clip(1e-300))
    groups: dict[tuple[int, ...], list[int]] = {}
    for k in range(len(model.emissions)):
        groups.setdefault(layout.parents[layout.n_tables + k], []).append(k)
    seeds: dict[int, np.ndarray] = {}
    for emissions in groups.values():
        seeds |= _seeds_of(model, data, emissions, each)

    def factors(factor: FactorRows, rows: slice) -> np.ndarray:
        squares = np.sum(
            [
                squares_to(seeds[k], coordinates_of(model.emissions[k], table[rows]))
                for k, table in zip(factor.emissions, factor.tables)
            ],
            axis=0,
        )
        nearest = squares.argmin(axis=2)[:, None] == np.arange(factor.n_states)[:, None]
        return np.log((1 - _ELSEWHERE) * nearest + _ELSEWHERE / factor.n_states)

    return model.statistics_of(tables, data, factors)


def _seeds_of(
    model: MixedNetwork, data: MixedData, emissions: list[int], each: list[np.random.Generator]
) -> dict[int, np.ndarray]:
    """Coordinates of seeds (n_starts, n_states, n_axes) for each of the emissions that have the same parents."""
    rows = data.source.distinct()
    if len(rows) > _MAX_ROWS:
        kept = np.linspace(0, len(rows) - 1, _MAX_ROWS).astype(np.int64)
        rows = rows.taken(kept, rows.weight[kept])
    parts = [coordinates_of(model.emissions[k], rows.tables[k]) for k in emissions]
    ends = np.cumsum([part.shape[1] for part in parts])
    together, n_states = np.concatenate(parts, axis=1), model.n_states[emissions[0]]
    drawn = np.stack(
        [seeds_among(together, rows.weight, n_states, start % 2 == 0, rng) for start, rng in enumerate(each)]
    )
    return dict(zip(emissions, np.split(drawn, ends[:-1], axis=-1)))
