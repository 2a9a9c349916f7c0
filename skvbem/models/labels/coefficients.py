r"""Chains, draws and relabelings of models whose labels covariates drive, exact for scores of the evidence.

Given labels, coefficients W have neither a normalizer nor draws in closed form. Wherever the chains of other models
draw parameters after statistics, these draw W from a t distribution; see `skvbem.families.softmax_proposals`. In a
chain, W' takes the place of W with the probability
:math:`\min(1, f_t(W' \mid x)\, g(W) / (f_t(W \mid x)\, g(W')))`, with g the proposal after the same labels and
:math:`f_t` the density along the path. So chains leave each density of their path as it is, and weights have no bias.
Rows of transitions are independent given the states, and each is taken or left by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np

from skvbem._lazy import cached_property
from skvbem._numerics import log_sum_exp
from skvbem.capabilities import Path, Relabelings
from skvbem.families import Product
from skvbem.families.base import ConjugateFamily
from skvbem.families.parallel_generator import ParallelGenerator
from skvbem.families.softmax_family import SoftmaxFamily
from skvbem.families.softmax_proposals import Students, StudentsByRow
from skvbem.models.labels.gibbs import GibbsSampler
from skvbem.models.relabelings import ListedRelabelings, SequentialRelabelings, StateRelabelings, listed

# Most orders of labels that are summed over one by one: of up to five labels. By hand.
_MAX_SUMMED_ORDERS = 120


class _Coefficients(NamedTuple):
    """The cells of coefficients, and their prior."""

    cells: slice
    prior: SoftmaxFamily

    def log_start(self, start: Students | StudentsByRow, natural: np.ndarray) -> np.ndarray:
        """ln of a start's density of the coefficients over their prior, (n_rows, n_chains), nats."""
        free = self.prior.contrasts_of_natural(natural)
        return start.log_densities(free) - self.prior.proposals().log_densities(free[:, None])[:, :, 0]


@dataclass(frozen=True, eq=False)
class CoefficientPath(Path):
    """Paths from densities that are t distributions of the coefficients.

    Parameters
    ----------
    coefficients : tuple of _Coefficients
    starts : tuple of Students or StudentsByRow
        Densities of the contrasts of these at t = 0, one for each chain.
    """

    coefficients: tuple[_Coefficients, ...]
    starts: tuple[Students | StudentsByRow, ...]

    def __getitem__(self, chains) -> CoefficientPath:
        """The paths of some chains."""
        path = super().__getitem__(chains)
        starts = tuple(start[chains] for start in self.starts)
        return CoefficientPath(path.statistics, path.natural, path.slope, self.coefficients, starts)

    def slope_at(self, log_point: np.ndarray) -> np.ndarray:
        """The factor of t at natural parameters (n_cells, n_chains), nats, (n_chains,)."""
        slope = super().slope_at(log_point)
        for of, start in zip(self.coefficients, self.starts):
            slope = slope + (self.statistics[of.cells] * log_point[of.cells]).sum(axis=0)
            slope = slope - of.log_start(start, log_point[of.cells]).sum(axis=0)
        return slope


@dataclass(frozen=True, eq=False)
class CoefficientSampler(GibbsSampler):
    """Draws of a model whose coefficients are proposed, given labels, by t distributions."""

    @cached_property
    def coefficients(self) -> tuple[_Coefficients, ...]:
        """Coefficients of covariates, wherever they stand."""
        return tuple(each for each in self._leaves if isinstance(each.prior, SoftmaxFamily))

    @cached_property
    def _leaves(self) -> list[Any]:
        return leaves_of(self.model.prior)

    @cached_property
    def _others(self) -> Product:
        """Prior of all that is no coefficient."""
        blocks, cells = zip(*(each[::-1] for each in self._leaves if each not in self.coefficients))
        return Product(blocks, tuple(of.stop - of.start for of in cells))

    @cached_property
    def _cells_of_others(self) -> np.ndarray:
        return np.delete(np.arange(self.model.n_cells), np.r_[tuple(each.cells for each in self.coefficients)])

    def paths(self, data: Any, statistics: np.ndarray) -> CoefficientPath:
        """Paths from q(theta) after statistics (n_cells, n), of the coefficients from what these are drawn from."""
        path, starts = super().paths(data, statistics), []
        slope = path.slope
        for cells, prior in self.coefficients:
            slope = slope - prior.log_evidence(statistics[cells])
            starts.append((prior + statistics[cells]).proposals())
        return CoefficientPath(path.statistics, path.natural, slope, self.coefficients, tuple(starts))

    def certain_statistics(self, data: Any, rng: np.random.Generator) -> np.ndarray:
        """What no hidden variable has a say in; of the coefficients nothing, so that they begin at their prior."""
        certain = super().certain_statistics(data, rng)
        for cells, _ in self.coefficients:
            certain[cells] = 0.0
        return certain

    def _points_after(self, statistics: np.ndarray, rng: ParallelGenerator) -> np.ndarray:
        drawn = []
        for cells, prior in self.coefficients:
            distinct, which = np.unique(statistics[cells], axis=1, return_inverse=True)
            proposals = (prior + distinct).proposals()[which.ravel()]
            drawn.append(prior.natural_of_contrasts(proposals.sample(rng)))
        return self._joined(statistics, rng, drawn)

    def _joined(self, statistics: np.ndarray, rng: ParallelGenerator, coefficients: list[np.ndarray]) -> np.ndarray:
        """Points of these coefficients, (n_cells, n_lanes) each, the rest drawn from the prior after statistics."""
        points, others = np.empty(statistics.shape), self._cells_of_others
        points[others] = (self._others + statistics[others]).draw_natural(rng)
        for (cells, _), drawn in zip(self.coefficients, coefficients):
            points[cells] = drawn
        return points

    def _points_along(
        self, path: Path, t: float, statistics: np.ndarray, rng: ParallelGenerator, log_point: np.ndarray
    ) -> np.ndarray:
        assert isinstance(path, CoefficientPath)
        proposals = [
            (prior + statistics[cells]).proposals(start.mean)
            for (cells, prior), start in zip(path.coefficients, path.starts)
        ]
        free = [each.sample(rng) for each in proposals]
        drawn = [of.prior.natural_of_contrasts(each) for of, each in zip(path.coefficients, free)]
        points = self._joined(statistics, rng, drawn)
        for of, start, proposal, there in zip(path.coefficients, path.starts, proposals, free):
            (cells, prior), before, proposed = of, log_point[of.cells], points[of.cells]
            target = (prior + (statistics[cells] - (1 - t) * path.statistics[cells])).coordinates
            log_odds = prior.log_joints(target, proposed) - prior.log_joints(target, before)
            here = prior.contrasts_of_natural(before)
            log_odds += proposal.log_densities(here) - proposal.log_densities(there)
            if t < 1:
                log_odds += (1 - t) * (of.log_start(start, proposed) - of.log_start(start, before))
            stays = np.log(rng.random(log_odds.shape)) >= log_odds
            points[cells] = prior.with_rows(stays, proposed, before)
        return points


def leaves_of(prior: Product) -> list[Any]:
    """All blocks of a prior that are no products, (cells, block) each."""
    leaves: list[Any] = []
    first, blocks = 0, [*zip(prior.blocks, prior.n_cells)]
    while blocks:
        block, n = blocks.pop(0)
        if isinstance(block, Product):
            blocks = [*zip(block.blocks, block.n_cells), *blocks]
            continue
        leaves.append(_Coefficients(slice(first, first := first + n), cast(Any, block)))
    return leaves


class CoefficientRelabelings(ListedRelabelings):
    """Orders of labels one by one, their densities with those that coefficients are drawn from."""

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
