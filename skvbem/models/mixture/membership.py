r"""Chains, draws and relabelings of mixtures whose components covariates drive, exact for scores of the evidence.

Given labels, coefficients W have neither a normalizer nor draws in closed form. Wherever the chains of other mixtures
draw parameters after statistics, these draw W from a t distribution; see `skvbem.families.softmax_proposals`. In a
chain, W' takes the place of W with the probability
:math:`\min(1, f_t(W' \mid x)\, g(W) / (f_t(W \mid x)\, g(W')))`, with g the proposal after the same labels and
:math:`f_t` the density along the path. So chains leave each density of their path as it is, and weights have no bias.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from skvbem._lazy import cached_property
from skvbem._numerics import log_sum_exp
from skvbem.capabilities import Path, Relabelings
from skvbem.emissions.softmax import membership_of
from skvbem.families import Product
from skvbem.families.base import ConjugateFamily
from skvbem.families.parallel_generator import ParallelGenerator
from skvbem.families.softmax_proposals import Students
from skvbem.families.softmax_regression import SoftmaxRegression
from skvbem.models.labels.gibbs import GibbsSampler
from skvbem.models.relabelings import ListedRelabelings, SequentialRelabelings, StateRelabelings, listed

# Most orders of components that are summed over one by one: of up to five components. By hand.
_MAX_SUMMED_ORDERS = 120


@dataclass(frozen=True, eq=False)
class MembershipPath(Path):
    """Paths from densities that are t distributions of the coefficients.

    Parameters
    ----------
    prior : SoftmaxRegression
    cells : slice
        Those of the coefficients.
    start : Students
        Densities of the contrasts of coefficients at t = 0, one for each chain.
    """

    prior: SoftmaxRegression
    cells: slice
    start: Students

    def __getitem__(self, chains) -> MembershipPath:
        """The paths of some chains."""
        path = super().__getitem__(chains)
        return MembershipPath(path.statistics, path.natural, path.slope, self.prior, self.cells, self.start[chains])

    def slope_at(self, log_point: np.ndarray) -> np.ndarray:
        """The factor of t at natural parameters (n_cells, n_chains), nats, (n_chains,)."""
        of_coefficients = (self.statistics[self.cells] * log_point[self.cells]).sum(axis=0)
        return super().slope_at(log_point) + of_coefficients - self.log_start(log_point)

    def log_start(self, log_point: np.ndarray) -> np.ndarray:
        """ln of the start's density of the coefficients over their prior, (n_chains,)."""
        free = self.prior.contrasts_of_natural(log_point[self.cells])
        return self.start.log_density(free) - self.prior.proposals().log_density(free[:, None])[:, 0]


@dataclass(frozen=True, eq=False)
class MembershipSampler(GibbsSampler):
    """Draws of a mixture whose coefficients are proposed, given labels, by a t distribution."""

    @cached_property
    def cells(self) -> slice:
        """Cells of the coefficients."""
        k = membership_of(self.model.emission)
        assert k is not None
        ends = np.cumsum([self.model.first_emission_cell, *self.model.prior.blocks[1].n_cells])
        return slice(int(ends[k]), int(ends[k + 1]))

    @cached_property
    def coefficients(self) -> SoftmaxRegression:
        """Prior of the coefficients."""
        return self.model.prior.blocks[1].blocks[membership_of(self.model.emission)]

    @cached_property
    def _others(self) -> Product:
        """Prior of all that is no coefficient."""
        weights, emission = self.model.prior.blocks
        k = membership_of(self.model.emission)
        pairs = [pair for at, pair in enumerate(zip(emission.blocks, emission.n_cells)) if at != k]
        blocks, n_cells = zip((weights, self.model.first_emission_cell), *pairs)
        return Product(blocks, n_cells)

    def paths(self, data: Any, statistics: np.ndarray) -> MembershipPath:
        """Paths from q(theta) after statistics (n_cells, n), of the coefficients from what these are drawn from."""
        path, mine = super().paths(data, statistics), statistics[self.cells]
        slope = path.slope - self.coefficients.log_evidence(mine)
        start = (self.coefficients + mine).proposals()
        return MembershipPath(path.statistics, path.natural, slope, self.coefficients, self.cells, start)

    def certain_statistics(self, data: Any, rng: np.random.Generator) -> np.ndarray:
        """What no hidden variable has a say in; of the coefficients nothing, so that they begin at their prior."""
        certain = super().certain_statistics(data, rng)
        certain[self.cells] = 0.0
        return certain

    def _points_after(self, statistics: np.ndarray, rng: ParallelGenerator) -> np.ndarray:
        distinct, which = np.unique(statistics[self.cells], axis=1, return_inverse=True)
        proposals = (self.coefficients + distinct).proposals()[which.ravel()]
        return self._joined(statistics, rng, self.coefficients.natural_of_contrasts(proposals.sample(rng)))

    def _joined(self, statistics: np.ndarray, rng: ParallelGenerator, coefficients: np.ndarray) -> np.ndarray:
        """Points of these coefficients (n_cells, n_lanes), the rest drawn from the prior after statistics."""
        others = np.delete(np.arange(len(statistics)), self.cells)
        points = np.empty(statistics.shape)
        points[others] = (self._others + statistics[others]).draw_natural(rng)
        points[self.cells] = coefficients
        return points

    def _points_along(
        self, path: Path, t: float, statistics: np.ndarray, rng: ParallelGenerator, log_point: np.ndarray
    ) -> np.ndarray:
        assert isinstance(path, MembershipPath)
        posterior, before = self.coefficients + statistics[self.cells], log_point[self.cells]
        proposals = posterior.proposals(path.start.mean)
        free = proposals.sample(rng)
        proposed = self.coefficients.natural_of_contrasts(free)
        target = posterior.coordinates - (1 - t) * path.statistics[self.cells]
        log_odds = (target * (proposed - before)).sum(axis=0)
        log_odds += proposals.log_density(self.coefficients.contrasts_of_natural(before)) - proposals.log_density(free)
        points = self._joined(statistics, rng, proposed)
        if t < 1:
            log_odds += (1 - t) * (path.log_start(points) - path.log_start(log_point))
        stays = np.log(rng.random(log_odds.shape)) >= log_odds
        points[self.cells, stays] = before[:, stays]
        return points


class MembershipRelabelings(ListedRelabelings):
    """Orders of components one by one, their densities with those that coefficients are drawn from."""

    def __init__(self, cells: np.ndarray, prior: ConjugateFamily):
        super().__init__(cells)
        self.prior = prior

    @classmethod
    def of(cls, relabelings: Relabelings | None, prior: ConjugateFamily) -> Relabelings | None:
        """All relabelings, with sums over them where they are few."""
        cells = listed(relabelings, len(prior.coordinates), _MAX_SUMMED_ORDERS)
        if cells is not None:
            return cls(cells, prior)
        return SequentialRelabelings(relabelings.cells) if isinstance(relabelings, StateRelabelings) else relabelings

    def _log_densities(self, statistics: np.ndarray, log_points: np.ndarray) -> Iterator[np.ndarray]:
        """ln of the density of each relabeling of points after statistics, but for the evidences of these."""
        correction = self.prior.log_correction(statistics.T)
        for cells in self.cells:
            yield statistics @ log_points[cells] + correction(log_points[cells])

    def log_sums(self, statistics: np.ndarray, log_points: np.ndarray) -> np.ndarray:
        """ln of the sums over relabelings."""
        return log_sum_exp(np.stack([*self._log_densities(statistics, log_points)]))

    def draw(self, statistics: np.ndarray, log_point: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """The point under a relabeling drawn among all."""
        logs = np.array([float(each[0, 0]) for each in self._log_densities(statistics[None], log_point[:, None])])
        return log_point[self.cells[np.argmax(logs + rng.gumbel(size=len(logs)))]]

    def correction(self, statistics: np.ndarray, log_points: np.ndarray) -> np.ndarray:
        """ln h by the densities that coefficients are drawn from."""
        logs = np.stack([each[0] for each in self._log_densities(statistics[None], log_points)])
        return np.log(self.n) + logs[0] - log_sum_exp(logs)
