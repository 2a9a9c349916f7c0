r"""Sequential Monte Carlo: annealed chains of one population, the heavy ones continued in place of the light.

A run's evidence is the product over steps of the mean ratio of densities; where weights have grown unequal, particles
are drawn again in proportion to them (systematic resampling). For inverse temperatures fixed beforehand the product is
unbiased, and so is the mean over independent runs, from whose spread the standard error comes [Del Moral, Doucet &
Jasra 2006].
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from skvbem._numerics import log_sum_exp
from skvbem._progress import is_over
from skvbem.evidence.ais import adaptive_schedule, summary_of_starts
from skvbem.evidence.base import Evidence, check_whole_weights
from skvbem.evidence.chains import batches, check_at_least, nonlinear_schedule, run_tasks
from skvbem.evidence.evaluation import Evaluation
from skvbem.evidence.starts import first_of_each, make_starts


def smc(
    evaluation: Evaluation,
    *,
    n_runs: int = 32,
    n_particles: int = 16,
    n_steps: int | None = None,
    fractions: Sequence[float] | None = None,
    n_fits: int = 8,
    bend: float | None = None,
    conditional_ess: float = 0.98,
    resample_below: float = 0.5,
) -> Evidence:
    """Log evidence by sequential Monte Carlo along the paths of `skvbem.evidence.ais.anchored_ais`.

    Parameters
    ----------
    evaluation : Evaluation
    n_runs : int, default=32
        Independent populations, dealt out to the starts; starts that would get fewer than four are left out.
    n_particles : int, default=16
        Of each population.
    n_steps : int, optional
        Inverse temperatures after 0; by default as many as `conditional_ess` asks for.
    fractions, n_fits
        As in `anchored_ais`.
    bend : float, optional
        As in `anchored_ais`, of the `n_steps` given; a schedule that adapts itself has none.
    conditional_ess : float, default=0.98
        Without `n_steps`: the fraction of the effective sample size that each step keeps, in a pilot run that the
        populations do not know of.
    resample_below : float, default=0.5
        Particles are drawn again where the effective sample size falls below this fraction of them; 0 is never.

    Returns
    -------
    Evidence
        A log weight is that of a run.
    """
    kind = "smc"
    check_whole_weights(evaluation, kind)
    check_at_least(kind, n_runs=(n_runs, 1), n_particles=(n_particles, 1))
    if n_steps is not None:
        check_at_least(kind, n_steps=(n_steps, 1))
    elif bend is not None:
        raise ValueError(
            f"The 'bend' of 'smc' shapes a schedule of 'n_steps'; without these the schedule adapts itself to "
            f"'conditional_ess'. Got bend={bend!r} alone. Give 'n_steps', too, or leave 'bend' out."
        )
    annealing = evaluation.capability("annealing")
    fractions = annealing.plan.fractions if fractions is None else fractions
    starts, which = make_starts(evaluation, fractions, n_fits).dealt(n_runs)
    paths = annealing.paths(evaluation.data, starts.statistics.T)
    if n_steps is None:
        schedule = adaptive_schedule(evaluation, starts, conditional_ess)
    else:
        schedule = nonlinear_schedule(n_steps, annealing.plan.bend if bend is None else bend)
    seeds = evaluation.seeds(n_runs)

    at_once = max(annealing.lanes_at_once(evaluation.data) // n_particles, 1)
    tasks = batches(n_runs, at_once, n_particles)
    outcomes = run_tasks(
        lambda runs: _populations(
            evaluation, starts, paths, which[runs], schedule, seeds[runs], n_particles, resample_below
        ),
        tasks,
        n_threads=evaluation.n_jobs,
        required=sum(runs.start < first_of_each(which) for runs in tasks),
    )
    trace, log_points, log_particle_weights = (np.concatenate(of, axis=-1) for of in zip(*outcomes))
    n_runs = trace.shape[1]
    mine = np.repeat(which[:n_runs], n_particles)
    parts, log_mean_parts = starts.log_parts(mine, log_points, schedule), starts.log_mean_parts(mine, log_points)

    def mean_of_particles(log_parts):
        return trace[-1] + log_sum_exp((log_particle_weights + log_parts).reshape(n_runs, n_particles), axis=1)

    log_weights = mean_of_particles(parts)
    log_wholes = None if log_mean_parts is None else mean_of_particles(parts - log_mean_parts)
    return summary_of_starts(evaluation, kind, starts, which, schedule, trace, log_weights, log_wholes)


def _populations(evaluation, starts, paths, which, schedule, seeds, n_particles, resample_below):
    """Runs side by side: ln of the evidence at each inverse temperature, the last particles, ln of their weights.

    Particles of run after run are lanes.
    """
    annealing, n_runs = evaluation.capability("annealing"), len(seeds)
    rngs = [np.random.default_rng(seed) for seed in seeds]
    streams = np.concatenate([rng.integers(0, 2**64, size=(4, n_particles), dtype=np.uint64) for rng in rngs], axis=1)
    mine = np.repeat(which, n_particles)
    log_points = evaluation.capability("points").draw_points(starts.statistics_of(mine), streams)
    workspace, paths = annealing.workspace(evaluation.data, len(mine)), paths[mine]
    log_particle_weights = np.full((n_runs, n_particles), -np.log(n_particles))
    trace = np.zeros((len(schedule), n_runs))
    for step in range(len(schedule) - 1):
        uneven = np.exp(log_sum_exp(2.0 * log_particle_weights, axis=1)) * (resample_below * n_particles) > 1.0
        if uneven.any():
            lanes = np.arange(len(mine)).reshape(n_runs, n_particles)
            for run in np.flatnonzero(uneven):
                lanes[run] = lanes[run, systematic(np.exp(log_particle_weights[run]), rngs[run])]
            log_points, log_particle_weights[uneven] = (
                np.ascontiguousarray(log_points[:, lanes.ravel()]),
                -np.log(n_particles),
            )
        is_late = is_over()  # then the rest of the path is one step
        here = schedule[[step, -1]] if is_late else schedule[step : step + 2]
        log_ratios, _ = annealing.anneal(workspace, paths, here, streams, log_points)
        log_particle_weights += log_ratios.reshape(n_runs, n_particles)
        grown = log_sum_exp(log_particle_weights, axis=1)
        trace[step + 1 :] = trace[step] + grown
        log_particle_weights -= grown[:, None]
        if is_late:
            break
    return trace, log_points, log_particle_weights.ravel()


def systematic(weights: np.ndarray, rng: np.random.Generator, n_drawn: int | None = None) -> np.ndarray:
    """Indices, each as often as its weight asks (they sum to one), rounded up or down.

    Parameters
    ----------
    weights : ndarray of shape (n,)
    rng : numpy.random.Generator
    n_drawn : int, optional
        How many; n by default.

    Returns
    -------
    ndarray of int, shape (n_drawn,)
    """
    n = len(weights) if n_drawn is None else n_drawn
    reached = np.cumsum(weights)
    return np.searchsorted(reached / reached[-1], (np.arange(n) + rng.random()) / n, side="right")
