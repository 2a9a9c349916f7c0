"""Gibbs chains of mixtures with covariates: coefficients move by independence Metropolis steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skvbem.emissions.softmax import membership_of
from skvbem.families.parallel_generator import ParallelGenerator
from skvbem.models.labels.gibbs import GibbsSampler


@dataclass(frozen=True, eq=False)
class MembershipSampler(GibbsSampler):
    """Draws of a mixture whose coefficients, given labels, are proposed by the Gaussian of these labels.

    A proposal W' ~ N(M, S) takes the place of W with the probability
    min(1, p(W' | labels) N(W) / (p(W | labels) N(W'))), so that chains leave the posterior as it is.
    """

    def _points_after(
        self, statistics: np.ndarray, rng: ParallelGenerator, log_point: np.ndarray | None = None
    ) -> np.ndarray:
        proposed = super()._points_after(statistics, rng)
        if log_point is None:  # a chain begins at q
            return proposed
        k = membership_of(self.model.emission)
        assert k is not None
        cells = np.cumsum([self.model.first_emission_cell, *self.model.prior.blocks[1].n_cells])
        of_block = slice(cells[k], cells[k + 1])
        block = self.model.prior.blocks[1].blocks[k] + statistics[of_block]
        log_odds = np.zeros(proposed.shape[1])
        for natural, sign in ((proposed[of_block], 1.0), (log_point[of_block], -1.0)):
            target = (block.coordinates * natural).sum(axis=0)
            log_odds += sign * (target - block.log_gaussian(block.from_natural(natural)))
        stays = np.log(rng.random(log_odds.shape)) >= log_odds
        proposed[of_block, stays] = log_point[of_block, stays]
        return proposed
