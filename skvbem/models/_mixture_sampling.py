"""What sampling scores ask of a mixture: the same as of a network, see `skvbem.models._sampling`.

Where a network has ln theta, a mixture has the natural parameters of a point, (n_cells, n_chains). Every chain draws
from a generator of its own, block of rows after block of rows, whatever chains run beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from skvbem._kernels import _mixture
from skvbem.emissions import Emission, Step
from skvbem.families import Product
from skvbem.models._sampling import Path
from skvbem.models._symmetries import ListedRelabelings, Relabelings, relabelings_of_states
from skvbem.models.weights import Weights

if TYPE_CHECKING:
    from skvbem.models._mixture_data import MixtureBlocks, MixtureData

# Log likelihoods that chains side by side may hold.
_MOST_AT_ONCE = 2**21
# Logarithms of probabilities that are next to none, from which a step still leads somewhere.
_LOWEST = -690.0


class MixtureSampling:
    """Methods of a mixture."""

    emission: Emission
    weights: Weights
    prior: Product
    n_components: int
    expect: Callable
    statistics_of: Callable

    def paths(self, data: MixtureData, statistics: np.ndarray) -> Path:
        """Paths from q(theta) = prior + statistics (n_cells, n), and q(x) at its expected natural parameters."""
        statistics = np.ascontiguousarray(statistics, dtype=float)
        natural = (self.prior + statistics).expected_natural()
        slope = self._log_z(natural, data) + self.prior.log_evidence(statistics)
        return Path(statistics, natural, slope)

    def certain_statistics(self, data: MixtureData | MixtureBlocks, rng: np.random.Generator) -> np.ndarray:
        """The part of expected statistics that components have no say in, (n_cells,): what two E steps agree on."""
        alike = np.ones(self.n_components)
        naturals = []
        for _ in range(2):
            drawn = (rng.dirichlet(alike, len(segment)) for segment in data.segments())
            naturals.append((self.prior + self.statistics_of(drawn, data)).expected_natural())
        one, other = self.expect(np.stack(naturals, axis=1), data).statistics.T
        return np.where(np.isclose(one, other, rtol=1e-9, atol=1e-9), one, 0.0)

    def draw_points(self, statistics: np.ndarray, streams: np.ndarray) -> np.ndarray:
        """Natural parameters of points drawn from the prior after statistics (n_cells, n_lanes), each by its stream."""
        rngs = _generators(streams)
        points = self._drawn(statistics, rngs)
        _move_on(streams, rngs)
        return points

    def log_normalizers(
        self, workspace: MixtureData, path: Path, temperatures: np.ndarray, log_point: np.ndarray
    ) -> np.ndarray:
        """ln Z_t(theta) at every inverse temperature, (n_temperatures, n_lanes)."""
        return np.stack([self._log_z((1 - t) * path.natural + t * log_point, workspace) for t in temperatures])

    def log_likelihoods(self, data: MixtureData | MixtureBlocks, log_points: np.ndarray) -> np.ndarray:
        """ln p(data | theta), nats, of many points (n_cells, n_points)."""
        width = self.lanes_at_once(data)
        some = [log_points[:, at : at + width] for at in range(0, log_points.shape[1], width)]
        return np.concatenate([self._log_z(np.ascontiguousarray(points), data) for points in some])

    def lanes_at_once(self, data: MixtureData | MixtureBlocks) -> int:
        """Chains that run side by side, 1 to 32."""
        return min(max(_MOST_AT_ONCE // (len(data) * self.n_components), 1), 32)

    def workspace(self, data: MixtureData, n_lanes: int) -> MixtureData:
        """The data: chains need no memory of their own."""
        return data

    def anneal(
        self, workspace: MixtureData, path: Path, temperatures: np.ndarray, streams: np.ndarray, log_point: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Gibbs chains along paths of their own; see `skvbem.models._sampling.Sampling.anneal`."""
        rngs, rows = _generators(streams), workspace.one_by_one
        log_ratios = np.empty((len(temperatures) - 1, log_point.shape[1]))
        drawn = np.empty(log_point.shape)
        for step, (here, there) in enumerate(pairwise(temperatures)):
            slope = path.slope - (path.statistics * log_point).sum(axis=0)
            before = self._log_z((1 - here) * path.natural + here * log_point, rows) if here != there else 0.0
            after, drawn = self._completed((1 - there) * path.natural + there * log_point, rows, rngs)
            log_ratios[step] = (after - before if here != there else 0.0) + (there - here) * slope
            log_point[:] = self._drawn((1 - there) * path.statistics + there * drawn, rngs)
        _move_on(streams, rngs)
        return log_ratios, drawn

    def metropolis(
        self,
        workspace: MixtureData,
        temperatures: np.ndarray,
        strengths: np.ndarray,
        streams: np.ndarray,
        log_point: np.ndarray,
        log_likelihood: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Metropolis chains along p(theta) p(data | theta)^t; see `skvbem.models._sampling.Sampling.metropolis`.

        All unconstrained coordinates move together by Gaussian steps, of variances those of a Gaussian at the prior's
        mode over the strength. The density is with respect to these coordinates, and the step the same both ways.
        """
        prior, rngs = self.prior, _generators(streams)
        mode = prior.mode()
        width = 1 / np.sqrt(np.diag(prior.information(mode, prior.coordinates)))
        free = prior.to_unconstrained(prior.from_natural(np.maximum(log_point, _LOWEST)))
        log_prior = (prior.coordinates[:, None] * log_point).sum(axis=0)
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
            there_prior = np.where(lost, -np.inf, (prior.coordinates[:, None] * natural).sum(axis=0))
            there_likelihood = self._log_z(natural, workspace)
            log_odds = there_prior - log_prior + there * (there_likelihood - log_likelihood)
            taken = np.log([rng.random() for rng in rngs]) < log_odds
            accepted[step] = taken
            free[:, taken], log_point[:, taken] = proposed[:, taken], natural[:, taken]
            log_prior[taken], log_likelihood[taken] = there_prior[taken], there_likelihood[taken]
        _move_on(streams, rngs)
        return log_ratios, accepted

    def sample_latent(self, natural: np.ndarray, data: MixtureData, streams: np.ndarray) -> np.ndarray:
        """Complete-data statistics with components drawn from q(x) at natural parameters (n_cells, n_lanes)."""
        rngs = _generators(streams)
        _, drawn = self._completed(natural, data.one_by_one, rngs)
        _move_on(streams, rngs)
        return drawn

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

    def _drawn(self, statistics: np.ndarray, rngs: Sequence[np.random.Generator]) -> np.ndarray:
        """Natural parameters of points drawn from the prior after statistics, (n_cells, n_lanes)."""
        posteriors = (self.prior + column for column in np.ascontiguousarray(statistics.T))
        points = [self.prior.natural(posterior.sample(rng)) for posterior, rng in zip(posteriors, rngs)]
        return np.stack(points, axis=1)

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


def _generators(streams: np.ndarray) -> list[np.random.Generator]:
    """A generator for each stream, (4, n_lanes) words."""
    return [np.random.default_rng(words.tolist()) for words in streams.T]


def _move_on(streams: np.ndarray, rngs: Sequence[np.random.Generator]) -> None:
    """Streams that have not been used yet, in place."""
    for lane, rng in enumerate(rngs):
        streams[:, lane] = rng.integers(0, 2**64, size=4, dtype=np.uint64)
