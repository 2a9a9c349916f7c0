r"""Mixtures of posteriors that parameters are proposed from, made symmetric over all relabelings, and their weights.

.. math::

    w(\theta) = \frac{p(y \mid \theta)\,p(\theta)}{\sum_m \pi_m\,\bar q_m(\theta)}, \qquad
    \frac{\bar q_m(\theta)}{p(\theta)} = \frac{1}{S} \sum_g e^{N_m \cdot g \ln\theta} / \mathrm{BD}(N_m).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logsumexp

from skvbem._lazy import cached_property
from skvbem.capabilities import Relabelings
from skvbem.evidence.evaluation import Evaluation, Stream
from skvbem.evidence.starts import Starts, log_hyperparameters
from skvbem.evidence.tuning import TUNING


@dataclass(frozen=True, eq=False)
class Proposal:
    """A mixture of p(theta | prior + statistics).

    Parameters
    ----------
    evaluation : Evaluation
    relabelings : Relabelings or None
        None where there are too many to correct for.
    statistics : ndarray of shape (n_components, n_cells)
    log_parts : ndarray of shape (n_components,)
        ln of the weights of components, which add up to 1.
    """

    evaluation: Evaluation
    relabelings: Relabelings | None
    statistics: np.ndarray
    log_parts: np.ndarray

    @classmethod
    def defended(cls, evaluation: Evaluation, starts: Starts, statistics: np.ndarray) -> Proposal:
        """Components of equal weight, and starts, which bound the weights, for a tenth of the draws."""
        log_part = np.log((1 - TUNING.defense) / len(statistics))
        log_parts = np.full(len(statistics), log_part), np.log(TUNING.defense) + log_parts_of(starts)
        return cls(
            evaluation,
            starts.relabelings,
            np.concatenate([statistics, starts.statistics]),
            np.concatenate(log_parts),
        )

    def stratified(self, n_draws: int, rng: np.random.Generator) -> tuple[Proposal, np.ndarray]:
        """The mixture of which these draws are strata, and the component of each, (n_draws,), in an order that mixes.

        Each component has as many draws as its weight says, rounded, and its share of them for a weight. One without
        draws is left out. So the mean weight is unbiased whatever the shares; see `skvbem.evidence.stratified`.
        """
        edges = np.cumsum(np.exp(self.log_parts))
        component = np.searchsorted(edges, (np.arange(n_draws) + rng.random()) / n_draws)
        component = np.minimum(component, len(self.statistics) - 1)
        drawn, component, number = np.unique(component, return_inverse=True, return_counts=True)
        mixture = replace(self, statistics=self.statistics[drawn], log_parts=np.log(number / n_draws))
        return mixture, rng.permutation(component)

    def draw(self, components: np.ndarray, *key: int) -> np.ndarray:
        """Natural parameters of draws from components, (n_cells, n_draws), from the streams of a key."""
        streams = self.evaluation.streams(len(components), Stream.PROPOSAL, *key)
        return self.evaluation.capability("points").draw_points(self.statistics[components].T, streams)

    @cached_property
    def _log_evidences(self) -> np.ndarray:
        return self.evaluation.model.prior.log_evidence(self.statistics.T)

    @cached_property
    def _log_correction(self) -> Callable[[np.ndarray], np.ndarray]:
        return self.evaluation.model.prior.log_correction(self.statistics.T)

    @property
    def n_parts(self) -> int:
        """Number of components."""
        return len(self.statistics)

    @property
    def n_relabelings(self) -> int | None:
        """Number of relabelings that weights are right for; None where there are too many to correct for."""
        return None if self.relabelings is None else self.relabelings.n

    @property
    def has_sums(self) -> bool:
        """True if densities are summed over relabelings; otherwise weights are put right at one anchor."""
        return self.relabelings is not None and bool(np.isfinite(self.relabelings.cost))

    def log_densities(self, log_points: np.ndarray) -> np.ndarray:
        """ln of each component's density over that of the prior, with its labels, (n_components, n_points), nats."""
        return self._relative(self.statistics @ log_points + self._log_correction(log_points), log_points)

    def log_mean_densities(self, log_points: np.ndarray) -> np.ndarray:
        """ln of the mean of these densities over all relabelings, (n_components, n_points), nats."""
        assert self.relabelings is not None
        log_sums = self.relabelings.log_sums(self.statistics, log_points)
        return self._relative(log_sums - np.log(self.relabelings.n), log_points)

    def _relative(self, inner: np.ndarray, log_points: np.ndarray) -> np.ndarray:
        log_hyper = log_hyperparameters(self.evaluation.model.prior, self.statistics, log_points)
        return inner + log_hyper - self._log_evidences[:, None]

    def log_weights(self, log_points: np.ndarray) -> np.ndarray:
        """ln w at natural parameters (n_cells, n_points), nats, (n_points,)."""
        evaluation, prior = self.evaluation, self.evaluation.model.prior
        log_densities = self.log_mean_densities(log_points) if self.has_sums else self.log_densities(log_points)
        log_proposal = logsumexp(self.log_parts[:, None] + log_densities, axis=0)
        log_weights = evaluation.capability("points").log_likelihoods(evaluation.data, log_points) - log_proposal
        log_weights += prior.log_normalizer_of_hyperparameters(log_points)  # relative to the base, as all densities
        if self.relabelings is not None and not self.has_sums:
            log_weights += self.relabelings.correction(evaluation.fit("vb").statistics, log_points)
        return log_weights


def log_parts_of(starts: Starts) -> np.ndarray:
    """ln of the weights of starts in a mixture, equal for all fractions."""
    fractions, position, times = np.unique(starts.fractions, return_inverse=True, return_counts=True)
    return -np.log(len(fractions) * times[position])


def affordable_components(
    starts: Starts, n_components: int, n_draws: int, operations: float = TUNING.operations
) -> int:
    """The number of components, fewer where sums over relabelings of that many draws take too long."""
    relabelings = starts.relabelings
    if relabelings is None or not np.isfinite(relabelings.cost):
        return n_components
    affordable = int(operations / (relabelings.cost * n_draws))
    return min(n_components, max(affordable, TUNING.fewest_components))
