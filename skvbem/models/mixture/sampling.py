"""What sampling scores ask of a mixture beyond what `skvbem.models.gibbs` has: components and their draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from skvbem._kernels import _mixture
from skvbem.emissions import Emission, Step
from skvbem.models.gibbs import GibbsSampling
from skvbem.models.mixture.weights import Weights
from skvbem.models.relabelings import ListedRelabelings, Relabelings, relabelings_of_states

if TYPE_CHECKING:
    from skvbem.models.mixture.data import MixtureBlocks, MixtureData


class MixtureSampling(GibbsSampling):
    """Methods of a mixture."""

    emission: Emission
    weights: Weights

    def relabelings(self, hidden, limit: int = 50_000) -> Relabelings:
        """Ways in which components can change places unnoticed: none where their priors differ."""
        component = np.concatenate(
            [
                np.arange(self.n_components) if self.weights.exchangeable else np.full(self.weights.n_cells, -1),
                self.emission.component_of_cell(self.n_components),
            ]
        )
        cells = np.stack([np.flatnonzero(component == k) for k in range(self.n_components)])
        # priors that take components for alike have natural parameters that do
        natural = self.prior.expected_natural()[cells]
        if self.n_components == 1 or not self.weights.exchangeable or not np.all(natural == natural[0]):
            return ListedRelabelings(np.arange(len(component))[None])
        return relabelings_of_states(cells)

    def _at(self, natural: np.ndarray, data: MixtureData | MixtureBlocks) -> tuple[np.ndarray, Step]:
        """Log weights (n_lanes, n_components) and the emission at natural parameters (n_cells, n_lanes)."""
        of_weights, of_emission = self.prior.split(natural)
        log_weights = np.ascontiguousarray(self.weights.log_weights(of_weights).T)
        return log_weights, self.emission.step(np.ascontiguousarray(of_emission), data.table)

    def _log_z(self, natural: np.ndarray, data: MixtureData | MixtureBlocks) -> np.ndarray:
        """ln Z of q(x) at natural parameters (n_cells, n_lanes), (n_lanes,)."""
        log_weights, step = self._at(natural, data)
        log_z = np.zeros(natural.shape[1])
        for block, weight in data.blocks(self.emission.block_rows(self.n_components, natural.shape[1])):
            joint = np.ascontiguousarray(step.log_likelihood(block).swapaxes(-1, -2))
            _mixture.shares(log_weights, np.ascontiguousarray(weight), joint, log_z)
        return log_z

    def _completed(
        self, natural: np.ndarray, data: MixtureData, rngs: Sequence[np.random.Generator]
    ) -> tuple[np.ndarray, np.ndarray]:
        """ln Z of q(x), (n_lanes,), and complete-data statistics with components drawn from it, (n_cells, n_lanes)."""
        log_weights, step = self._at(natural, data)
        n_lanes = natural.shape[1]
        log_z, total, counts = np.zeros(n_lanes), step.zeros(), np.zeros((self.n_components, n_lanes))
        size = self.emission.block_rows(self.n_components)  # the same for any number of lanes
        for at in range(0, len(data), size):
            block = data.table[at : at + size]
            shares = np.ascontiguousarray(step.log_likelihood(block).swapaxes(-1, -2))
            _mixture.shares(log_weights, np.ones(len(block)), shares, log_z)
            reached = np.cumsum(shares, axis=1)
            uniform = np.stack([rng.random(len(block)) for rng in rngs])[:, None]
            components = np.minimum((reached <= uniform * reached[:, -1:]).sum(axis=1), self.n_components - 1)
            counts += np.stack([np.bincount(of_lane, minlength=self.n_components) for of_lane in components], axis=1)
            step.add_drawn(block, components, rngs, total)
        of_emission = step.statistics(total).reshape(-1, n_lanes)
        return log_z, np.concatenate([self.weights.statistics(counts), of_emission])
