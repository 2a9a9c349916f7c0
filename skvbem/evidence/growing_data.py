r"""Sequential Monte Carlo that adds data, from the prior to the posterior: no fit has a say in it.

A population of parameters drawn from the prior sees the rows in an order drawn at random, as many more at a time as
leave it worth half of its number. It is weighted by the likelihood of what was added, hidden variables summed out,
drawn again in proportion to the weights, and moved by Gibbs sweeps on the rows seen so far [Chopin 2002; Del Moral,
Doucet & Jasra 2006]. The product of the mean weights is the evidence.

The relative variance of the evidence is estimated within the population, by how many of the N first particles the last
ones still descend from [Chan & Lai 2013; Lee & Whiteley 2018]. With w_j the weights of the last particles,

.. math:: V = 1 - \frac{N}{N-1} \Bigl(1 - \sum_i \bigl(\textstyle\sum_{j \text{ from } i} w_j\bigr)^2\Bigr).

In place of N/(N - 1) multinomial resampling has a power of it, one more for each resampling. The systematic one
taken here adds less chance than that; V is rather too large where weights were nearly equal.

One large population is better than many small ones: what a small one misses few of its runs show.

Where columns are measured far from what the prior expects, the first unit alone leaves few of the particles, and all
later ones descend from these. There more are drawn from the prior than the population holds, as many as leave it worth
enough after the first unit. A pilot population, which has no further part, says how many.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from skvbem._arguments import is_real
from skvbem._numerics import log_sum_exp
from skvbem._progress import is_over, steps
from skvbem.capabilities import Path
from skvbem.evidence.base import Evidence, check_whole_weights
from skvbem.evidence.chains import batches, check_at_least, run_tasks
from skvbem.evidence.evaluation import Evaluation, Stream
from skvbem.evidence.smc import systematic
from skvbem.evidence.tuning import TUNING

#: Name of the score.
KIND = "smc_data"


@dataclass(frozen=True, eq=False)
class ParticleRun:
    """The result of one run of particles over growing data.

    Parameters
    ----------
    log_evidence : float
        Nats.
    relative_variance : float
        Of the evidence, estimated from the genealogy.
    n_resamplings : int
    n_lineages : int
        How many first particles have descendants at the end.
    trace : ndarray of shape (n_stages, 2)
        Units seen, and ln of the evidence of them, nats.
    log_weights : ndarray of shape (n_particles,)
        At the end, nats; their mean, as weights, is the evidence.
    part_seen : float, default=1.0
        Of the units, what it saw before it was given up.
    """

    log_evidence: float
    relative_variance: float
    n_resamplings: int
    n_lineages: int
    trace: np.ndarray
    log_weights: np.ndarray
    part_seen: float = 1.0

    @property
    def prior_is_far(self) -> bool:
        """True if particles were given up so early that no affordable number would do."""
        return not self.is_complete and self.trace[-1, 0] < TUNING.units_per_resampling * self.n_resamplings

    @property
    def is_complete(self) -> bool:
        """True if it saw all of the data."""
        return self.part_seen == 1.0

    @property
    def n_particles(self) -> int:
        """Number of particles."""
        return len(self.log_weights)


def growing_smc(
    evaluation: Evaluation,
    *,
    n_particles: int = 1024,
    error: float = 0.1,
    max_particles: int = 32_768,
) -> Evidence:
    """Log evidence by sequential Monte Carlo over growing data, with more particles until the error is small enough.

    Parameters
    ----------
    evaluation : Evaluation
    n_particles : int, default=1024
        Of the first run.
    error : float, default=0.1
        Standard error to be reached, nats.
    max_particles : int, default=32768
        Most of one run; fewer where the estimator's `max_memory` holds no more.

    Returns
    -------
    Evidence

    Raises
    ------
    ValueError
        If rows have weights that are no whole numbers.
    TooLargeError
        If the first run would take more than the estimator's `max_memory`.
    """
    check_whole_weights(evaluation, KIND)
    check_at_least(KIND, n_particles=(n_particles, 2), max_particles=(max_particles, 2))
    check_error(KIND, error)
    runs = particle_runs(evaluation, n_particles, error, max_particles)
    return evidence_of_runs(evaluation, [each for each in runs if each.is_complete])


def check_error(kind: str, error: float) -> None:
    """Raise a ValueError if the standard error that a score is to reach is no number of nats above 0."""
    if not is_real(error) or not error > 0:
        raise ValueError(f"The score {kind!r} needs 'error' to be a number of nats above 0. Got {error!r}.")


def particle_runs(
    evaluation: Evaluation,
    n_particles: int,
    error: float,
    max_particles: int,
    fewest_lineages: int = 0,
) -> list[ParticleRun]:
    """Runs, each of more particles than the one before, until the standard error of their mean is small enough.

    Parameters
    ----------
    evaluation, n_particles, error, max_particles
        As in `growing_smc`.
    fewest_lineages : int, default=0
        Particles that descend from fewer of the first are given up where they are, and the run is the last.
    """
    per_particle = _per_particle(evaluation)
    for_order = 2.0 * evaluation.n_samples  # of the units
    evaluation.check_memory(
        f"The score {KIND!r} with {n_particles:,} particles on data that count {evaluation.n_samples:,.0f}",
        for_order + per_particle * n_particles,
        "fewer 'n_particles'",
    )
    affordable = (evaluation.max_memory / 8.0 - for_order) / per_particle
    max_particles = int(min(max_particles, max(affordable, n_particles)))
    size, runs = n_particles, list[ParticleRun]()
    with steps(None, "runs of particles") as count:
        while True:
            certain = None if runs else _run_without_hidden_variables(evaluation, size)
            runs.append(certain or _run(evaluation, size, len(runs), fewest_lineages))
            is_last = (
                standard_error(runs) <= error
                or not runs[-1].is_complete
                or len(runs) == TUNING.runs
                or size >= max_particles
                or is_over()
            )
            count()
            if is_last:
                return runs
            wanted = size * runs[-1].relative_variance / error**2
            size = int(min(max(wanted, 2 * size), TUNING.growth * size, max_particles))


def evidence_of_runs(evaluation: Evaluation, runs: Sequence[ParticleRun]) -> Evidence:
    """The evidence by complete runs together, with a warning where the last has too few lineages."""
    last = runs[-1]
    doubts = []
    if last.n_lineages < min(TUNING.lineages, last.n_particles):
        doubts.append(
            f"{KIND}: {last.n_particles} particles descend from {last.n_lineages} of the first. The value and its "
            "standard error are not to be trusted. Take a larger 'n_particles'."
        )
    log_weights = np.concatenate([each.log_weights for each in runs])
    variance = standard_error(runs) ** 2
    return Evidence(
        value(runs),
        KIND,
        is_lower_bound=True,
        standard_error=float(np.sqrt(variance)),
        n_free_parameters=evaluation.model.prior.n_free_parameters,
        n_samples=evaluation.n_samples,
        details={
            "log_weights": log_weights,
            "mean_log_weight": float(log_weights.mean()),
            "effective_sample_size": 1.0 / (variance + 1.0 / len(log_weights)),
            "runs": tuple(runs),
        },
        doubts=tuple(doubts),
    )


def value(runs: Sequence[ParticleRun]) -> float:
    """ln of the mean evidence of runs, each as much as it has particles, nats."""
    sizes = np.array([each.n_particles for each in runs], dtype=float)
    logs = np.array([each.log_evidence for each in runs])
    return float(log_sum_exp(logs + np.log(sizes / sizes.sum())))


def standard_error(runs: Sequence[ParticleRun]) -> float:
    """Standard error of `value`, nats."""
    sizes = np.array([each.n_particles for each in runs], dtype=float)
    logs = np.array([each.log_evidence for each in runs])
    parts = np.exp(logs - value(runs)) * sizes / sizes.sum()
    return float(np.sqrt(parts**2 @ [each.relative_variance for each in runs]))


def _run_without_hidden_variables(evaluation: Evaluation, n_particles: int) -> ParticleRun | None:
    """The evidence itself where the data leave no hidden variable uncertain: the weight of any point."""
    if evaluation.model.prior.hyperprior is not None:  # these are hidden variables, too
        return None
    points, rng = evaluation.capability("points"), evaluation.generator(Stream.PARTICLES)
    certain = points.certain_statistics(evaluation.data, rng)
    streams = rng.integers(0, 2**64, size=(4, 2), dtype=np.uint64)
    log_points = points.draw_points(np.repeat(certain[:, None], 2, axis=1), streams)
    log_weights = points.log_likelihoods(evaluation.data, log_points) - certain @ log_points
    if np.ptp(log_weights) > 1e-12 * (1.0 + np.abs(log_weights).max()):  # more than rounding
        return None
    value = float(log_weights[0] + evaluation.model.prior.log_evidence(certain[:, None])[0])
    trace = np.array([[0.0, 0.0], [evaluation.n_samples, value]])
    return ParticleRun(value, 0.0, 0, n_particles, trace, np.full(n_particles, value))


def _run(evaluation: Evaluation, n_particles: int, number: int, fewest_lineages: int) -> ParticleRun:
    """One run, from the prior through all of the data, or until too few lineages are left."""
    rng = evaluation.generator(Stream.ORDER, number)
    order = evaluation.capability("batches").order(evaluation.data, rng)
    n_first = _n_first(evaluation, order, n_particles, number)
    particles = _Particles(evaluation, evaluation.streams(n_first, Stream.PARTICLES, number))
    log_weights, log_evidence = np.full(n_first, -np.log(n_first)), particles.log_evidence_of_known
    first_of, n_resamplings = np.arange(n_first), 0
    n_seen, n_more, trace = 0, 1, [(0, log_evidence)]
    n_lineages = n_first
    may_be_given_up = bool(fewest_lineages or number)  # there is another answer
    while n_seen < len(order) and n_lineages >= fewest_lineages and not (may_be_given_up and is_over()):
        n_next, log_ratios = particles.next_batch(order, n_seen, n_more, log_weights)
        log_weights = log_weights + log_ratios
        log_mean_ratio = float(log_sum_exp(log_weights))
        log_weights -= log_mean_ratio
        log_evidence += log_mean_ratio
        n_seen, n_more = n_next, max(2 * (n_next - n_seen), 1)
        trace.append((n_seen, log_evidence))
        is_poor = n_seen < len(order) and _worth(log_weights) < 2 * TUNING.worth * n_particles
        if is_poor or len(log_weights) > n_particles:
            chosen = systematic(np.exp(log_weights), rng, n_particles)
            first_of, n_resamplings = first_of[chosen], n_resamplings + 1
            n_lineages = len(np.unique(first_of))
            particles.resample(chosen)
            particles.sweep(order, n_seen)
            log_weights = np.full(n_particles, -np.log(n_particles))
    by_lineage = np.bincount(first_of, weights=np.exp(log_weights), minlength=n_first)
    return ParticleRun(
        log_evidence,
        max(1.0 - n_first / (n_first - 1) * (1.0 - float(by_lineage @ by_lineage)), 0.0),
        n_resamplings,
        n_lineages,
        np.array(trace),
        log_evidence + np.log(n_particles) + log_weights,
        n_seen / len(order) if len(order) else 1.0,
    )


def _n_first(evaluation: Evaluation, order: np.ndarray, n_particles: int, number: int) -> int:
    """Number of particles that see the first unit: `n_particles`, or more where it leaves few of a pilot run."""
    if len(order) < 2:
        return n_particles
    pilot = _Particles(evaluation, evaluation.streams(n_particles, Stream.FIRST_UNIT, number))
    _, log_ratios = pilot.next_batch(order, 0, 1, np.zeros(n_particles))
    share = _worth(log_ratios - log_sum_exp(log_ratios)) / n_particles
    if share >= TUNING.low_share:
        return n_particles
    affordable = evaluation.max_memory / 8.0 / _per_particle(evaluation)
    return int(max(min(np.ceil(n_particles / share), TUNING.first_particles, affordable), n_particles))


def _per_particle(evaluation: Evaluation) -> int:
    """Numbers that are held of each particle at once: six arrays of all parameters, and log weights."""
    return 6 * len(evaluation.model.prior.coordinates) + 16


def _worth(log_weights: np.ndarray) -> float:
    """Effective number of weights that sum to one."""
    return float(np.exp(-log_sum_exp(2.0 * log_weights)))


class _Particles:
    """Particles side by side, points in parameters, and the log likelihoods of what they have seen."""

    def __init__(self, evaluation: Evaluation, streams: np.ndarray):
        self.evaluation, self.data = evaluation, evaluation.data
        self.points, self.annealing = evaluation.capability("points"), evaluation.capability("annealing")
        self.batches = evaluation.capability("batches")
        known = self.batches.known(self.data)
        self.streams = streams
        statistics = np.repeat(known[:, None], streams.shape[1], axis=1)
        self.log_points = np.ascontiguousarray(self.points.draw_points(statistics, self.streams))
        self.log_likelihoods = known @ self.log_points
        self.log_evidence_of_known = (
            float(evaluation.model.prior.log_evidence(known[:, None])[0]) if known.any() else 0.0
        )

    def next_batch(self, order, n_seen: int, n_more: int, log_weights: np.ndarray) -> tuple[int, np.ndarray]:
        """Number of units seen next, most of `n_more` that leave particles their worth; ln of the ratios."""
        least = TUNING.worth * len(log_weights)
        while True:
            n_next = min(n_seen + n_more, len(order))
            log_likelihoods = self._seen(order, n_next)
            ratios = log_likelihoods - self.log_likelihoods
            after = log_weights + ratios
            if n_next == n_seen + 1 or _worth(after - log_sum_exp(after)) >= least:
                self.log_likelihoods = log_likelihoods
                return n_next, ratios
            n_more = max((n_next - n_seen) // 2, 1)

    def _seen(self, order: np.ndarray, n_units: int) -> np.ndarray:
        """Log likelihoods of the first units of an order, nats, (n_particles,)."""
        batch = self.batches.batch(self.data, order, n_units)
        return np.concatenate(
            self._by_batches(batch, lambda lanes: self.points.log_likelihoods(batch, self.log_points[:, lanes]))
        )

    def resample(self, chosen: np.ndarray) -> None:
        """Particles in place of others."""
        self.log_points = np.ascontiguousarray(self.log_points[:, chosen])
        self.log_likelihoods = self.log_likelihoods[chosen]
        self.streams = np.ascontiguousarray(self.streams[:, : len(chosen)])

    def sweep(self, order: np.ndarray, n_units: int) -> None:
        """Move all particles by Gibbs sweeps on the first units of an order."""
        batch = self.batches.batch(self.data, order, n_units)

        def swept(lanes: slice) -> tuple[np.ndarray, np.ndarray]:
            points, streams = (np.ascontiguousarray(x[:, lanes]) for x in (self.log_points, self.streams))
            nothing, n = np.zeros(points.shape), points.shape[1]
            path = Path(nothing, nothing, np.zeros(n))
            workspace = self.annealing.workspace(batch, n)
            self.annealing.anneal(workspace, path, np.ones(TUNING.sweeps + 1), streams, points)
            return points, streams

        moved = self._by_batches(batch, swept)
        self.log_points, self.streams = (np.concatenate(each, axis=1) for each in zip(*moved))
        self.log_likelihoods = self._seen(order, n_units)

    def _by_batches(self, batch, work: Callable) -> list:
        n_threads = self.evaluation.n_jobs
        lanes = batches(self.log_points.shape[1], self.annealing.lanes_at_once(batch))
        return run_tasks(work, lanes, n_threads=n_threads, required=len(lanes))
