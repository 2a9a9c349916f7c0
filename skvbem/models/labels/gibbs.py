"""Gibbs and Metropolis chains of models whose rows have one hidden label each, as `skvbem.capabilities` declares them.

Every chain draws from a generator of its own, block of rows after block of rows, whatever chains run beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from skvbem.capabilities import Path
from skvbem.families.parallel_generator import ParallelGenerator
from skvbem.models.labels.model import LabelModel

# Log likelihoods that chains side by side may hold.
_MAX_LOG_LIKELIHOODS_AT_ONCE = 2**21


@dataclass(frozen=True, eq=False)
class GibbsSampler:
    """Draws of parameters, Gibbs and Metropolis chains; see `Points`, `Annealing` and `Metropolis` of the capabilities.

    Parameters
    ----------
    model : LabelModel
    log_z : callable of (natural, data)
        ln Z of q(x) at natural parameters (n_cells, n_lanes), nats, (n_lanes,).
    completed : callable of (natural, data, rngs)
        ln Z of q(x), (n_lanes,), and complete-data statistics with x drawn from it, (n_cells, n_lanes), by a generator
        for each lane. The data are `one_by_one`.
    """

    model: LabelModel
    log_z: Callable[[np.ndarray, Any], np.ndarray]
    completed: Callable[[np.ndarray, Any, Sequence[np.random.Generator]], tuple[np.ndarray, np.ndarray]]

    def paths(self, data: Any, statistics: np.ndarray) -> Path:
        """Paths from q(theta) = prior + statistics (n_cells, n), and q(x) at its expected natural parameters."""
        prior, statistics = self.model.prior, np.ascontiguousarray(statistics, dtype=float)
        natural = (prior + prior.with_hyperparameters(statistics)).expected_natural()
        slope = self.log_z(natural, data) + prior.log_evidence(statistics)
        of_hyperparameters = prior.log_normalizer_of_hyperparameters(natural)
        slope = slope + np.where(prior.leaves_hyperparameters(statistics), 0.0, of_hyperparameters)
        return Path(statistics, natural, slope)

    def certain_statistics(self, data: Any, rng: np.random.Generator) -> np.ndarray:
        """The part of expected statistics that labels have no say in, (n_cells,): what two E steps agree on."""
        alike = np.ones(self.model.n_components)
        naturals = []
        for _ in range(2):
            drawn = (rng.dirichlet(alike, len(chunk)) for chunk in data.chunks())
            statistics = self.model.prior.with_hyperparameters(self.model.statistics_of(drawn, data))
            naturals.append((self.model.prior + statistics).expected_natural())
        one, other = self.model.expect(np.stack(naturals, axis=1), data).statistics.T
        certain = np.where(np.isclose(one, other, rtol=1e-9, atol=1e-9), one, 0.0)
        # what leaves hyperparameters to their prior must leave them all to it
        return np.where(self.model.prior.leaves_hyperparameters(certain), 0.0, certain)

    def draw_points(self, statistics: np.ndarray, streams: np.ndarray) -> np.ndarray:
        """Natural parameters of points drawn from the prior after statistics (n_cells, n_lanes), each by its stream."""
        rngs, prior = generators(streams), self.model.prior
        if prior.hyperprior is not None:
            of_prior = prior.hyperprior.draw_from_prior(statistics, ParallelGenerator(rngs))
            statistics = statistics + np.where(prior.leaves_hyperparameters(statistics), of_prior, 0.0)
        points = self._points_after(statistics, rngs)
        move_on(streams, rngs)
        return points

    def log_normalizers(
        self, workspace: Any, path: Path, temperatures: np.ndarray, log_point: np.ndarray
    ) -> np.ndarray:
        """ln Z_t(theta) at every inverse temperature, (n_temperatures, n_lanes)."""
        log_z = [
            self.log_z((1 - t) * path.natural + t * log_point, workspace)
            + self.model.prior.log_normalizer_of_hyperparameters(self._natural_of_hyperparameters(path, t, log_point))
            for t in temperatures
        ]
        return np.stack(log_z)

    def _natural_of_hyperparameters(self, path: Path, t: float, log_point: np.ndarray) -> np.ndarray:
        """Natural parameters of q(nu) at an inverse temperature; chains from the prior keep p(nu | theta) all along."""
        from_prior = self.model.prior.leaves_hyperparameters(path.statistics)
        return np.where(from_prior, log_point, (1 - t) * path.natural + t * log_point)

    def log_likelihoods(self, data: Any, log_points: np.ndarray) -> np.ndarray:
        """ln p(data | theta), nats, of many points (n_cells, n_points)."""
        width = self.lanes_at_once(data)
        batches = [log_points[:, at : at + width] for at in range(0, log_points.shape[1], width)]
        return np.concatenate([self.log_z(np.ascontiguousarray(points), data) for points in batches])

    def lanes_at_once(self, data: Any) -> int:
        """Chains that run side by side, 1 to 32."""
        return min(max(_MAX_LOG_LIKELIHOODS_AT_ONCE // (len(data) * self.model.n_components), 1), 32)

    def anneal(
        self, workspace: Any, path: Path, temperatures: np.ndarray, streams: np.ndarray, log_point: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Gibbs chains along paths of their own; see `skvbem.capabilities.Annealing`."""
        rngs, rows, prior = generators(streams), workspace.one_by_one, self.model.prior
        log_ratios = np.empty((len(temperatures) - 1, log_point.shape[1]))
        drawn = np.empty(log_point.shape)
        for step, (here, there) in enumerate(pairwise(temperatures)):
            slope = path.slope - (path.statistics * log_point).sum(axis=0)
            before = self.log_z((1 - here) * path.natural + here * log_point, rows) if here != there else 0.0
            after, drawn = self.completed((1 - there) * path.natural + there * log_point, rows, rngs)
            log_ratios[step] = (after - before if here != there else 0.0) + (there - here) * slope
            statistics = (1 - there) * path.statistics + there * drawn
            if prior.hyperprior is not None:
                at_here, at_there = (self._natural_of_hyperparameters(path, t, log_point) for t in (here, there))
                log_ratios[step] += prior.log_normalizer_of_hyperparameters(at_there)
                log_ratios[step] -= prior.log_normalizer_of_hyperparameters(at_here)
                of_prior = prior.hyperprior.draw(at_there, ParallelGenerator(rngs))
                statistics += np.where(prior.leaves_hyperparameters(path.statistics), 1.0, there) * of_prior
                drawn = drawn + of_prior
            log_point[:] = self._points_after(statistics, rngs)
        move_on(streams, rngs)
        return log_ratios, drawn

    def metropolis(
        self,
        workspace: Any,
        temperatures: np.ndarray,
        strengths: np.ndarray,
        streams: np.ndarray,
        log_point: np.ndarray,
        log_likelihood: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Metropolis chains along p(theta) p(data | theta)^t; see `skvbem.capabilities.Metropolis`.

        All unconstrained coordinates move together by Gaussian steps, of variances those of a Gaussian at the prior's
        mode over the strength. The density is with respect to these coordinates, and the step the same both ways.
        """
        prior, rngs = self.model.prior, generators(streams)
        mode = prior.mode()
        near_prior = prior.with_hyperparameters(np.zeros(len(prior.coordinates)))
        width = 1 / np.sqrt(np.diag(prior.information(mode, prior.coordinates + near_prior)))
        free = prior.to_unconstrained(prior.from_natural(log_point))
        log_prior = self._log_prior(log_point)
        shape = (len(strengths), log_point.shape[1])
        log_ratios, accepted = np.empty(shape), np.empty(shape, dtype=bool)
        for step, (here, there, strength) in enumerate(zip(temperatures, temperatures[1:], strengths)):
            log_ratios[step] = (there - here) * log_likelihood
            noise = np.stack([rng.standard_normal(len(free)) for rng in rngs], axis=1)
            proposed = free + width[:, None] / np.sqrt(strength) * noise
            with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
                natural = prior.natural(prior.from_unconstrained(proposed))
            lost = ~np.isfinite(natural).all(axis=0)  # out of the floats: stay
            natural[:, lost] = log_point[:, lost]
            there_prior = np.where(lost, -np.inf, self._log_prior(natural))
            there_likelihood = self.log_z(natural, workspace)
            log_odds = there_prior - log_prior + there * (there_likelihood - log_likelihood)
            taken = np.log([rng.random() for rng in rngs]) < log_odds
            accepted[step] = taken
            free[:, taken], log_point[:, taken] = proposed[:, taken], natural[:, taken]
            log_prior[taken], log_likelihood[taken] = there_prior[taken], there_likelihood[taken]
        move_on(streams, rngs)
        return log_ratios, accepted

    def workspace(self, data: Any, n_lanes: int) -> Any:
        """The data: chains need no memory of their own."""
        return data

    def sample_latent(self, natural: np.ndarray, data: Any, streams: np.ndarray) -> np.ndarray:
        """Complete-data statistics with labels drawn from q(x) at natural parameters (n_cells, n_lanes)."""
        rngs = generators(streams)
        _, drawn = self.completed(natural, data.one_by_one, rngs)
        if self.model.prior.hyperprior is not None:
            drawn = drawn + self.model.prior.hyperprior.draw(natural, ParallelGenerator(rngs))
        move_on(streams, rngs)
        return drawn

    def _log_prior(self, natural: np.ndarray) -> np.ndarray:
        """ln p(theta) but for a constant, nats, (n_lanes,), hidden hyperparameters integrated out."""
        prior = self.model.prior
        return (prior.coordinates[:, None] * natural).sum(axis=0) + prior.log_normalizer_of_hyperparameters(natural)

    def _points_after(self, statistics: np.ndarray, rngs: Sequence[np.random.Generator]) -> np.ndarray:
        """Natural parameters of points drawn from the prior after statistics, (n_cells, n_lanes)."""
        posterior = self.model.prior + statistics
        return np.ascontiguousarray(self.model.prior.natural(posterior.sample(ParallelGenerator(rngs))))


def generators(streams: np.ndarray) -> list[np.random.Generator]:
    """A generator for each stream, (4, n_lanes) words."""
    return [np.random.default_rng(words.tolist()) for words in streams.T]


def move_on(streams: np.ndarray, rngs: Sequence[np.random.Generator]) -> None:
    """Put streams in place that generators have not used yet."""
    for lane, rng in enumerate(rngs):
        streams[:, lane] = rng.integers(0, 2**64, size=4, dtype=np.uint64)
