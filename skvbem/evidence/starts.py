r"""Densities that chains and draws start from, and how the evidence is split among them.

A start is q(theta) = p(theta) after statistics, the expected counts of a VB fit made smaller: a fraction of what is
uncertain in them, all of what is not. Fraction 0 is the prior, or the posterior of what is certain. Chains from VB fits
are steady but seldom leave their mode, chains from the prior find every mode but only of small data. So there are many
starts, each of which estimates a part of the evidence, split at every point theta in proportion to the densities of the
starts, made symmetric over relabelings: start a has the part

.. math:: h_a(\theta) = q_a(\theta) / \sum_b \bar q_b(\theta), \qquad
          \bar q(\theta) = \frac{1}{S} \sum_g q(g \theta),

which, averaged over the S relabelings of theta, adds up to one. Weights times parts add up to the evidence without
bias, whether or not a chain changes labels or modes.

Chains that change labels by moves of their own do so at the end of the path, where densities :math:`q^{1 - \tau}` are
nearly flat, and end anywhere, where q of a sharp fit says nothing but noise. A start then stands for as much of the
evidence as it has of the chains, and labels for as much as they were held to at last:

.. math:: h_a(\theta) = \pi_a\,S\,e^{\beta N_a \cdot \ln\theta} / \sum_g e^{\beta N_a \cdot g \ln\theta}

with :math:`\beta = 1 - \tau` at the last inverse temperature before the posterior, which adds up to one as well. It
is S where chains are held in the labels of q throughout, and 1 where they have come free.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from scipy.special import logsumexp

from skvbem._arguments import is_collection
from skvbem.capabilities import Relabelings
from skvbem.evidence.evaluation import Evaluation, Stream
from skvbem.evidence.tuning import TUNING


@dataclass(frozen=True, eq=False)
class Starts:
    """Starts of one evaluation, and the part of the evidence that each of them stands for; made by `make_starts`.

    Parameters
    ----------
    prior : ConjugateFamily
    fractions : ndarray of shape (n_starts,)
        How much of a VB fit's uncertain counts each start keeps.
    statistics : ndarray of shape (n_starts, n_cells)
        q(theta) is the prior after these. Those with a fraction of 0 come last.
    relabelings : Relabelings or None
        Of hidden nodes and states; None where there are too many to correct for.
    move_labels : bool, default=False
        Whether chains change labels themselves; see `skvbem.capabilities.AnnealingPlan`.
    """

    prior: Any
    fractions: np.ndarray
    statistics: np.ndarray
    relabelings: Relabelings | None
    move_labels: bool = False

    def __len__(self) -> int:
        return len(self.fractions)

    def __getitem__(self, which) -> Starts:
        """Some of the starts, by slice or by index, with their statistics."""
        return replace(self, fractions=self.fractions[which], statistics=self.statistics[which])

    @property
    def n_relabelings(self) -> int | None:
        """Number of relabelings that parts are corrected for; None where there are too many."""
        return None if self.relabelings is None else self.relabelings.n

    def statistics_of(self, which: np.ndarray) -> np.ndarray:
        """Statistics after which the prior is q(theta), of start after start, (n_cells, n)."""
        return self.statistics[which].T

    def dealt(self, n_chains: int) -> tuple[Starts, np.ndarray]:
        """The starts that chains start from, and which of them each does, (n_chains,).

        One chain in four starts from the prior, if that and others are there. Starts that would get fewer than four
        chains are left out, the prior and the last VB fits first.
        """
        n_fits = int(np.count_nonzero(self.fractions))
        from_prior = np.arange(n_chains) % TUNING.prior_every == TUNING.prior_every - 1
        if n_fits == len(self) or (n_fits and np.count_nonzero(from_prior) < TUNING.fewest_chains):
            from_prior[:] = False
        elif not n_fits:
            from_prior[:] = True
        n_rest = int(np.count_nonzero(~from_prior))
        n_fits = min(n_fits, max(n_rest // TUNING.fewest_chains, 1))
        starts = self[[*range(n_fits), len(self) - 1] if from_prior.any() else slice(n_fits)]
        which = np.full(n_chains, len(starts) - 1)
        which[~from_prior] = np.arange(n_rest) % max(n_fits, 1)
        return starts, which

    def held_by(self, schedule: np.ndarray) -> np.ndarray:
        """Statistics that labels are held by at the end of a schedule of inverse temperatures, (n_starts, n_cells)."""
        return (1.0 - schedule[-2]) * self.statistics if self.move_labels else self.statistics

    def log_parts(self, which: np.ndarray, log_points: np.ndarray, schedule: np.ndarray) -> np.ndarray:
        """ln of the part that start `which` has of the weight of each point, (n_points,)."""
        if self.move_labels:
            log_fractions = np.log(np.bincount(which)[which] / len(which))
            return log_fractions + self._log_parts_of_labels(which, log_points, schedule)
        log_density, log_densities = self._log_densities(which, log_points)
        relabelings = self.relabelings
        correction: float | np.ndarray = 0.0
        if relabelings is not None and not np.isfinite(relabelings.cost) and self.fractions.any():
            correction = relabelings.correction(self.statistics[int(np.argmax(self.fractions))], log_points)
        return log_density - logsumexp(log_densities, axis=0) + correction

    def log_mean_parts(self, which: np.ndarray, log_points: np.ndarray) -> np.ndarray | None:
        """ln of the part that start `which` has of each point in the mean over its relabelings, (n_points,).

        A weight times its part of `log_parts` over this part estimates all of the evidence, from one start alone. None
        where labels are not averaged over, or are moved by the chains.
        """
        if self.move_labels or self.relabelings is None or not np.isfinite(self.relabelings.cost):
            return None
        _, log_densities = self._log_densities(which, log_points)
        return log_densities[which, np.arange(len(which))] - logsumexp(log_densities, axis=0)

    def _log_densities(self, which: np.ndarray, log_points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """ln of the density of start `which` at each point, and of all starts, in the mean over relabelings if known.

        All relative to the prior, but for what starts have in common.
        """
        if self.prior.hyperprior is None:
            log_scales = -(self.prior + self.statistics.T).log_normalizer()
        else:
            log_scales = -self.prior.log_evidence(self.statistics.T)
        log_hyper = log_hyperparameters(self.prior, self.statistics, log_points)
        inner = self.statistics @ log_points + self.prior.log_correction(self.statistics.T)(log_points) + log_hyper
        log_density = log_scales[which] + inner[which, np.arange(len(which))]
        relabelings = self.relabelings
        if relabelings is not None and np.isfinite(relabelings.cost) and relabelings.n > 1 and self.fractions.any():
            inner = relabelings.log_sums(self.statistics, log_points) - np.log(relabelings.n) + log_hyper
        return log_density, log_scales[:, None] + inner

    def _log_parts_of_labels(
        self, which: np.ndarray, log_points: np.ndarray, schedule: np.ndarray
    ) -> np.ndarray | float:
        """ln of what each point has of the weight of all its relabelings, times their number, (n_points,)."""
        relabelings = self.relabelings
        if relabelings is None or not np.isfinite(relabelings.cost):
            return 0.0
        held = self.held_by(schedule)
        inner = held @ log_points - relabelings.log_sums(held, log_points)
        return inner[which, np.arange(len(which))] + np.log(relabelings.n)


def log_hyperparameters(prior, statistics: np.ndarray, log_points: np.ndarray) -> np.ndarray | float:
    """ln Z of the hidden hyperparameters that starts leave to their prior, at each point, (n_starts, n_points), nats.

    A start that says something of them, and a prior that has none, have 0.
    """
    if prior.hyperprior is None:
        return 0.0
    return prior.leaves_hyperparameters(statistics.T)[:, None] * prior.log_normalizer_of_hyperparameters(log_points)


def make_starts(evaluation: Evaluation, fractions: Sequence[float], n_fits: int) -> Starts:
    """Starts from VB fits, wider than they are, and from the prior; a single one where nothing is uncertain.

    Parameters
    ----------
    evaluation : Evaluation
    fractions : sequence of float
        How much of a VB fit's uncertain counts each start keeps; each fraction above 0 makes a start of each fit, and 0
        one start from the prior.
    n_fits : int
        Most VB fits that starts are made of, the best ones first.
    """
    each = list(fractions) if is_collection(fractions) else []
    if not each or not all(isinstance(fraction, Real) and 0.0 <= fraction <= 1.0 for fraction in each):
        raise ValueError(
            "'fractions' must be a list of numbers from 0 to 1, the parts of expected counts that starts keep, such as "
            f"(0.5, 0.0). Got {fractions!r} instead."
        )
    model = evaluation.model
    certain = evaluation.capability("points").certain_statistics(evaluation.data, evaluation.generator(Stream.CERTAIN))
    fits = list(evaluation.ended_optima().T[:n_fits]) if any(fractions) else []
    pairs = [(fraction, counts) for counts in fits for fraction in fractions if fraction]
    if not fits or np.allclose(_of_rows(evaluation, fits[0]), certain, rtol=1e-9, atol=1e-9):
        pairs = [(0.0, certain)]
    elif 0.0 in fractions:
        pairs.append((0.0, certain))
    # subtracting rounds, and a count may not be negative
    least = np.where(model.prior.signed, -np.inf, 0.0)
    statistics = np.stack([certain + fraction * np.maximum(counts - certain, least) for fraction, counts in pairs])
    relabelings = evaluation.capability("relabelings").relabelings(evaluation.hidden)
    annealing = evaluation.capabilities.annealing
    move_labels = annealing is not None and annealing.plan.moves_labels
    return Starts(model.prior, np.array([fraction for fraction, _ in pairs]), statistics, relabelings, move_labels)


def _of_rows(evaluation: Evaluation, statistics: np.ndarray) -> np.ndarray:
    """Statistics (n_cells,) of a VB fit without those of hidden hyperparameters."""
    model = evaluation.model
    if model.prior.hyperprior is None:
        return statistics
    natural = (model.prior + statistics).expected_natural()
    return model.expect(natural[:, None], evaluation.data).statistics[:, 0]


def first_of_each(which: np.ndarray, n: int = 2) -> int:
    """The number of first chains among which `n` are from each start, or all there are."""
    return int(max(np.flatnonzero(which == k)[:n][-1] for k in np.unique(which))) + 1
