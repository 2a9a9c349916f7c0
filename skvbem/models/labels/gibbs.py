"""Gibbs and Metropolis chains of models whose rows have one hidden label each, as `skvbem.capabilities` declares them.

Batches of rows and of time steps, by which data grow, stand at the end. Every chain draws from a stream of its own,
whatever chains run beside it, and row after row in an order that the rows' values decide: what is drawn does not hang
on the order in which rows were given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, cast

import numpy as np

from skvbem.capabilities import AnnealingPlan, Path
from skvbem.emissions.base import parts_of
from skvbem.families.parallel_generator import ParallelGenerator
from skvbem.models.labels.model import LabelModel

# Log likelihoods that chains side by side may hold, and most chains.
_MAX_LOG_LIKELIHOODS_AT_ONCE, _MAX_LANES = 2**18, 512
# Lanes that a block of rows is cut for.
_LANES_OF_BLOCK = 16
# Sweeps of a call from one to the next with a draw of the maps of factors: 13 columns with 5 factors have a third more
# effective draws a second than with one in each sweep; where noise is small, one in 4 is as good, and one in 8 is not.
_MOVES_EVERY = 4


@dataclass(frozen=True, eq=False)
class GibbsSampler:
    """Draws of parameters, Gibbs and Metropolis chains; see `Points`, `Annealing` and `Metropolis` of the capabilities.

    Parameters
    ----------
    model : LatentModel
        With one label per row; others override what asks for labels.
    log_z : callable of (natural, data)
        ln Z of q(x) at natural parameters (n_cells, n_lanes), nats, (n_lanes,).
    completed : callable of (natural, data, rng, prior)
        ln Z of q(x), (n_lanes,), and complete-data statistics with x drawn from it, (n_cells, n_lanes), by a
        `ParallelGenerator`. The data are `for_draws`. Where rows hide more than labels, a fourth argument, the
        coordinates of the prior given hyperparameters (n_cells, n_lanes), lets x move on with the parameters.
    """

    model: Any
    log_z: Callable[[np.ndarray, Any], np.ndarray]
    completed: Callable[..., tuple[np.ndarray, np.ndarray]]

    @property
    def plan(self) -> AnnealingPlan:
        """From wide starts and from the prior."""
        return AnnealingPlan()

    def paths(self, data: Any, statistics: np.ndarray) -> Path:
        """Paths from q(theta) = prior + statistics (n_cells, n), and q(x) at its expected natural parameters."""
        prior, statistics = self.model.prior, np.ascontiguousarray(statistics, dtype=float)
        natural = (prior + prior.with_hyperparameters(statistics)).expected_natural()
        slope = self.log_z(natural, data) + prior.log_evidence(statistics)
        hyperparameter_terms = prior.log_normalizer_of_hyperparameters(natural)
        slope = slope + np.where(prior.leaves_hyperparameters(statistics), 0.0, hyperparameter_terms)
        return Path(statistics, natural, slope)

    def certain_statistics(self, data: Any, rng: np.random.Generator) -> np.ndarray:
        """The part of expected statistics that nothing hidden has a say in, (n_cells,): what two E steps agree on.

        Where rows hide more than their labels, such as factors or missing cells, none of the emission is: cells of what
        is hidden and cells of what is not belong together, and no part of them is the statistics of any data.
        """
        alike = np.ones(self.model.n_components)
        naturals = []
        for _ in range(2):
            drawn = (rng.dirichlet(alike, len(chunk)) for chunk in data.parts)
            statistics = self.model.prior.with_hyperparameters(self.model.statistics_of(drawn, data))
            naturals.append((self.model.prior + statistics).expected_natural())
        one, other = self.model.expect(np.stack(naturals, axis=1), data).statistics.T
        alike_in_both = np.isclose(one, other, rtol=1e-9, atol=1e-9)
        certain = np.where(self.model.prior.known_cells(alike_in_both), one, 0.0)
        if self._emission is not None and not all(self._emission.is_conjugate(chunk.table) for chunk in data.parts):
            certain[self.model.first_emission_cell :] = 0.0
        # what leaves hyperparameters to their prior must leave them all to it
        return np.where(self.model.prior.leaves_hyperparameters(certain), 0.0, certain)

    def draw_points(self, statistics: np.ndarray, streams: np.ndarray) -> np.ndarray:
        """Natural parameters of points drawn from the prior after statistics (n_cells, n_lanes), each by its stream."""
        rng, prior = ParallelGenerator(streams), self.model.prior
        if prior.hyperprior is not None:
            prior_terms = prior.hyperprior.draw_from_prior(statistics, rng)
            statistics = statistics + np.where(prior.leaves_hyperparameters(statistics), prior_terms, 0.0)
        return self._points_after(statistics, rng)

    def _points_along(
        self, path: Path, t: float, statistics: np.ndarray, rng: ParallelGenerator, log_point: np.ndarray
    ) -> np.ndarray:
        """Points after those of a path at an inverse temperature, given statistics with what is hidden drawn."""
        return self._points_after(statistics, rng)

    def log_normalizers(
        self, workspace: Any, path: Path, temperatures: np.ndarray, log_point: np.ndarray
    ) -> np.ndarray:
        """ln Z_t(theta) at every inverse temperature, (n_temperatures, n_lanes)."""
        from_prior, log_z = self.model.prior.leaves_hyperparameters(path.statistics), []
        for t in temperatures:
            natural = between(path.natural, log_point, t)
            hyperparameter_terms = self.model.prior.log_normalizer_of_hyperparameters(
                np.where(from_prior, log_point, natural)
            )
            log_z.append(self.log_z(natural, workspace) + hyperparameter_terms)
        return np.stack(log_z)

    def log_likelihoods(self, data: Any, log_points: np.ndarray) -> np.ndarray:
        """ln p(data | theta), nats, of many points (n_cells, n_points)."""
        width = self.lanes_at_once(data)
        batches = [log_points[:, at : at + width] for at in range(0, log_points.shape[1], width)]
        return np.concatenate([self.log_z(np.ascontiguousarray(points), data) for points in batches])

    def lanes_at_once(self, data: Any) -> int:
        """Chains that run side by side, 1 to 512: as many as have their log likelihoods in cache."""
        n_rows = len(data) if self._emission is None else min(len(data), rows_of_block(self.model))
        return min(max(_MAX_LOG_LIKELIHOODS_AT_ONCE // max(n_rows * self.model.n_components, 1), 1), _MAX_LANES)

    def anneal(
        self, workspace: Any, path: Path, temperatures: np.ndarray, streams: np.ndarray, log_point: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Gibbs chains along paths of their own; see `skvbem.capabilities.Annealing`."""
        rng, prior = ParallelGenerator(streams), self.model.prior
        log_ratios = np.zeros((len(temperatures) - 1, log_point.shape[1]))
        drawn = np.empty(log_point.shape)
        from_prior = prior.leaves_hyperparameters(path.statistics)  # these chains keep p(nu | theta) all along
        hides_in_rows = self._hides_in_rows
        for step, (here, there) in enumerate(pairwise(temperatures)):
            at_there = between(path.natural, log_point, there)
            of_there = np.where(from_prior, log_point, at_there)
            prior_terms, priors = None, cast(tuple[np.ndarray, ...], ())
            if there == 1.0 and hides_in_rows and step % _MOVES_EVERY == 0:
                coordinates = prior.coordinates[:, None] + np.zeros(drawn.shape)
                if prior.hyperprior is not None:
                    prior_terms = prior.hyperprior.draw(of_there, rng)
                    coordinates = coordinates + prior_terms
                priors = (coordinates,)
            after, drawn = self.completed(at_there, workspace, rng, *priors)
            if here != there:
                at_here = between(path.natural, log_point, here)
                log_ratios[step] = after - self.log_z(at_here, workspace) + (there - here) * path.slope_at(log_point)
            statistics = between(path.statistics, drawn, there)
            if prior.hyperprior is not None:
                if here != there:
                    of_here = np.where(from_prior, log_point, at_here)
                    log_ratios[step] += prior.log_normalizer_of_hyperparameters(of_there)
                    log_ratios[step] -= prior.log_normalizer_of_hyperparameters(of_here)
                if prior_terms is None:
                    prior_terms = prior.hyperprior.draw(of_there, rng)
                statistics = statistics + np.where(from_prior, 1.0, there) * prior_terms
                drawn = drawn + prior_terms
            log_point[:] = self._points_along(path, there, statistics, rng, log_point)
            self._move(workspace, path, there, rng, log_point)
        return log_ratios, drawn

    def _move(self, workspace: Any, path: Path, t: float, rng: ParallelGenerator, log_point: np.ndarray) -> None:
        """Further moves of points that leave the density at an inverse temperature as it is: none of labeled rows."""

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
        prior, rng = self.model.prior, ParallelGenerator(streams)
        mode = prior.mode()
        near_prior = prior.with_hyperparameters(np.zeros(len(prior.coordinates)))
        width = 1 / np.sqrt(np.diag(prior.information(mode, prior.coordinates + near_prior)))
        free = prior.to_unconstrained(prior.from_natural(log_point))
        log_prior = self._log_prior(log_point)
        shape = (len(strengths), log_point.shape[1])
        log_ratios, accepted = np.empty(shape), np.empty(shape, dtype=bool)
        for step, (here, there, strength) in enumerate(zip(temperatures, temperatures[1:], strengths)):
            log_ratios[step] = (there - here) * log_likelihood
            proposed = free + width[:, None] / np.sqrt(strength) * rng.standard_normal(free.shape)
            with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
                natural = prior.natural(prior.from_unconstrained(proposed))
            lost = ~np.isfinite(natural).all(axis=0)  # out of the floats: stay
            natural[:, lost] = log_point[:, lost]
            there_prior = np.where(lost, -np.inf, self._log_prior(natural))
            there_likelihood = self.log_z(natural, workspace)
            log_odds = there_prior - log_prior + there * (there_likelihood - log_likelihood)
            taken = np.log(rng.random(log_odds.shape)) < log_odds
            accepted[step] = taken
            free[:, taken], log_point[:, taken] = proposed[:, taken], natural[:, taken]
            log_prior[taken], log_likelihood[taken] = there_prior[taken], there_likelihood[taken]
        return log_ratios, accepted

    def workspace(self, data: Any, n_lanes: int) -> Any:
        """The data as labels are drawn for them: chains need no memory of their own.

        Weights that are no whole numbers stay as they are: no label can be drawn, and likelihoods hold them.
        """
        return data.for_draws(self._emission) if data.has_whole_weights else data

    def sample_latent(self, natural: np.ndarray, data: Any, streams: np.ndarray) -> np.ndarray:
        """Complete-data statistics with labels drawn from q(x) at natural parameters (n_cells, n_lanes)."""
        rng = ParallelGenerator(streams)
        _, drawn = self.completed(natural, data.for_draws(self._emission), rng)
        if self.model.prior.hyperprior is not None:
            drawn = drawn + self.model.prior.hyperprior.draw(natural, rng)
        return drawn

    @property
    def _hides_in_rows(self) -> bool:
        """True if rows hide more than labels, such as factors, which move on with the parameters."""
        emissions = getattr(self.model, "emissions", (self._emission,))
        return any(getattr(part, "hidden", None) is not None for each in emissions for part in parts_of(each))

    @property
    def _emission(self) -> Any:
        """The emission of the model; None of a model from outside that has none."""
        return getattr(self.model, "emission", None)

    def _log_prior(self, natural: np.ndarray) -> np.ndarray:
        """ln p(theta) but for a constant, nats, (n_lanes,), hidden hyperparameters integrated out."""
        prior = self.model.prior
        return (prior.coordinates[:, None] * natural).sum(axis=0) + prior.log_normalizer_of_hyperparameters(natural)

    def _points_after(self, statistics: np.ndarray, rng: ParallelGenerator) -> np.ndarray:
        """Natural parameters of points drawn from the prior after statistics, (n_cells, n_lanes)."""
        return np.ascontiguousarray((self.model.prior + statistics).draw_natural(rng))


def rows_of_block(model: LabelModel) -> int:
    """Rows whose labels are drawn at once, the same for any number of lanes: so sums are."""
    return model.emission.block_rows(model.n_components, _LANES_OF_BLOCK)


def between(anchor: np.ndarray, point: np.ndarray, t: float) -> np.ndarray:
    """Linear interpolation from an anchor, at 0, to a point, at 1."""
    return point if t == 1.0 else (1 - t) * anchor + t * point


@dataclass(frozen=True, eq=False)
class RowBatches:
    """Batches of independent rows; see `skvbem.capabilities.Batches`.

    Parameters
    ----------
    model : LabelModel
    """

    model: LabelModel

    def order(self, data: Any, rng: np.random.Generator) -> np.ndarray:
        """All rows in an order drawn at random, (n_units,): each as often as it counts, wherever it stands."""
        rows = data.for_draws(self.model.emission)
        return rng.permutation(np.repeat(np.arange(len(rows)), rows.weight.astype(np.int64)))

    def batch(self, data: Any, order: np.ndarray, n_units: int) -> Any:
        """The first of so many rows in an order, distinct ones with weights."""
        data = data.for_draws(self.model.emission)
        weight = np.bincount(order[:n_units], minlength=len(data)).astype(float)
        rows = np.flatnonzero(weight)
        return replace(data, table=data.table[rows], weight=weight[rows], total_weight=float(n_units), row_hashes=None)

    def known(self, data: Any) -> np.ndarray:
        """Nothing, (n_cells,): every row has a label."""
        return np.zeros(self.model.n_cells)


@dataclass(frozen=True, eq=False)
class StepBatches(RowBatches):
    """Batches of sequences, one after another, the last of them not to its end."""

    def order(self, data: Any, rng: np.random.Generator) -> np.ndarray:
        """Time steps of all sequences, which come in an order drawn at random, (n_units,)."""
        sequences = data.for_draws(self.model.emission)
        starts, ends = sequences.starts[:-1], sequences.ends
        return np.concatenate([np.arange(starts[k], ends[k]) for k in rng.permutation(len(ends))])

    def batch(self, data: Any, order: np.ndarray, n_units: int) -> Any:
        """The first of so many time steps in an order."""
        sequences, steps = data.for_draws(self.model.emission), order[:n_units]
        first = np.flatnonzero(np.isin(steps, sequences.starts[:-1]))
        starts = np.append(first, n_units).astype(np.int64)
        return replace(
            sequences,
            table=sequences.table[steps],
            starts=starts,
            ends=starts[1:],
            weight=np.ones(len(first)),
            total_weight=float(n_units),
            row_hashes=None,
        )
