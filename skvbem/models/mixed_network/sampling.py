"""Gibbs and Metropolis chains of mixed networks, as `skvbem.capabilities` declares them, and data that grow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skvbem.families.parallel_generator import ParallelGenerator
from skvbem.models.labels.gibbs import GibbsSampler
from skvbem.models.mixed_network.data import MixedData
from skvbem.models.mixed_network.model import MixedNetwork

# Log likelihoods that chains side by side may hold, and most chains.
_MAX_LOG_LIKELIHOODS_AT_ONCE, _MAX_LANES = 2**18, 512


class MixedNetworkSampler(GibbsSampler):
    """Draws of parameters, Gibbs and Metropolis chains of mixed networks."""

    def certain_statistics(self, data: MixedData, rng: np.random.Generator) -> np.ndarray:
        """The part of expected statistics that nothing hidden has a say in, (n_cells,): what two E steps agree on.

        Where rows hide cells of an emission, besides nodes, none of the emission is.
        """
        prior = self.model.prior
        points = np.stack([prior.natural(prior.sample(rng)) for _ in range(2)], axis=1)
        one, other = self.model.expect(points, data).statistics.T
        certain = np.where(np.isclose(one, other, rtol=1e-9, atol=1e-9), one, 0.0)
        _, *emissions_cells = prior.split(certain)
        for emission, table, cells in zip(self.model.emissions, data.source.tables, emissions_cells):
            if not emission.is_conjugate(table):
                cells[:] = 0.0
        # what leaves hyperparameters to their prior must leave them all to it
        return np.where(prior.leaves_hyperparameters(certain), 0.0, certain)

    def lanes_at_once(self, data: MixedData) -> int:
        """Chains that run side by side, 1 to 512: as many as have their log likelihoods in cache."""
        most = max(self.model.n_states, default=1)
        return min(max(_MAX_LOG_LIKELIHOODS_AT_ONCE // max(len(data) * most, 1), 1), _MAX_LANES)

    def workspace(self, data: MixedData, n_lanes: int) -> MixedData:
        """The data as hidden nodes are drawn for them, where weights are whole: chains need no memory of their own."""
        return for_draws(self.model, data) if data.has_whole_weights else data

    def sample_latent(self, natural: np.ndarray, data: MixedData, streams: np.ndarray) -> np.ndarray:
        """Complete-data statistics with hidden nodes drawn from q(x) at natural parameters (n_cells, n_lanes)."""
        rng = ParallelGenerator(streams)
        _, drawn = self.completed(natural, for_draws(self.model, data), rng)
        if self.model.prior.hyperprior is not None:
            drawn = drawn + self.model.prior.hyperprior.draw(natural, rng)
        return drawn


def log_z(model: MixedNetwork, natural: np.ndarray, data: MixedData) -> np.ndarray:
    """ln Z of q(x) at natural parameters (n_cells, n_lanes), nats, (n_lanes,)."""
    return model.expect(natural, data).log_normalizer


def for_draws(model: MixedNetwork, data: MixedData) -> MixedData:
    """Distinct rows in an order that their values decide; one by one where cells of them are drawn."""
    if not data.drawn:
        rows = data.source.distinct()
        if not all(emission.is_conjugate(table) for emission, table in zip(model.emissions, rows.tables)):
            rows = rows.one_by_one()
        data.drawn.append(model.compile(rows))
    return data.drawn[0]


@dataclass(frozen=True, eq=False)
class MixedNetworkBatches:
    """Batches of rows of mixed columns; see `skvbem.capabilities.Batches`. A unit is a row that counts once.

    Parameters
    ----------
    model : MixedNetwork
    """

    model: MixedNetwork

    def order(self, data: Any, rng: np.random.Generator) -> np.ndarray:
        """All rows in an order drawn at random, (n_units,): each as often as it counts."""
        rows = data.source.distinct()
        return rng.permutation(np.repeat(np.arange(len(rows)), rows.weight.astype(np.int64)))

    def batch(self, data: Any, order: np.ndarray, n_units: int) -> MixedData:
        """The first of so many units in an order, compiled as the data are."""
        rows = data.source.distinct()
        count = np.bincount(order[:n_units], minlength=len(rows))
        kept = np.flatnonzero(count)
        return self.model.compile(rows.taken(kept, count[kept].astype(float)))

    def known(self, data: Any) -> np.ndarray:
        """Statistics that belong to no unit, (n_cells,): none."""
        return np.zeros(self.model.n_cells)
