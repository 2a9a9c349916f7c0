r"""Sequential Monte Carlo: annealed chains of one population, the heavy ones continued in place of the light.

A run's evidence is the product over steps of the mean ratio of densities; where weights have grown unequal, particles
are drawn again in proportion to them (systematic resampling). For inverse temperatures fixed beforehand the product is
unbiased, and so is the mean over independent runs, from whose spread the standard error comes [Del Moral, Doucet &
Jasra 2006].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.special import logsumexp

from skvbem.evidence.ais import adaptive_schedule, strata_of
from skvbem.evidence.base import Evidence, check_whole_weights
from skvbem.evidence.chains import check_at_least, nonlinear_schedule, run_tasks, summary
from skvbem.evidence.evaluation import Evaluation
from skvbem.evidence.starts import first_of_each, make_starts


def smc(
    evaluation: Evaluation,
    *,
    n_runs: int = 32,
    n_particles: int = 16,
    n_steps: int | None = None,
    shares: Sequence[float] = (0.5, 0.0),
    n_fits: int = 8,
    bend: float = np.inf,
    conditional_ess: float = 0.95,
    resample_below: float = 0.5,
    time_budget: float | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Evidence:
    """Log evidence by sequential Monte Carlo along the paths of `skvbem.evidence.ais.anchored_ais`.

    Parameters
    ----------
    evaluation : Evaluation
    n_runs : int, default=32
        Independent populations, dealt out to the starts; starts that would get fewer than two are left out.
    n_particles : int, default=16
        Of each population.
    n_steps : int, optional
        Inverse temperatures after 0; by default as many as `conditional_ess` asks for.
    shares, n_fits, bend
        As in `anchored_ais`.
    conditional_ess : float, default=0.95
        Without `n_steps`: the share of the effective sample size that each step keeps, in a pilot run that the
        populations do not know of.
    resample_below : float, default=0.5
        Particles are drawn again where the effective sample size falls below this share of them; 0 is never.
    time_budget, progress
        As in `anchored_ais`, of runs.

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
    starts, which = make_starts(evaluation, shares, n_fits).dealt(n_runs)
    paths = evaluation.model.paths(evaluation.program, starts.statistics.T)
    if n_steps is None:
        schedule = adaptive_schedule(evaluation, starts, conditional_ess)
    else:
        schedule = nonlinear_schedule(n_steps, bend)
    seeds = evaluation.seeds(n_runs)

    def population(run):
        mine = np.full(n_particles, which[run])
        rng = np.random.default_rng(seeds[run])
        streams = rng.integers(0, 2**64, size=(4, n_particles), dtype=np.uint64)
        log_points = evaluation.model.draw_points(starts.concentrations(mine), streams)
        trace, log_points, log_shares = _population(
            evaluation, paths[mine], schedule, streams, log_points, rng, resample_below * n_particles
        )
        return trace, trace[-1] + logsumexp(log_shares + starts.log_parts(mine, log_points))

    found = run_tasks(
        population,
        range(n_runs),
        n_threads=evaluation.n_jobs,
        required=first_of_each(which),
        time_budget=time_budget,
        progress=progress,
    )
    trace = np.stack([trace for trace, _ in found], axis=1)
    log_weights = np.array([log_weight for _, log_weight in found])
    return summary(
        evaluation,
        kind,
        strata_of(starts, which, schedule, trace, log_weights),
        form="vb" if any(shares) else None,
        n_labelings=starts.n_labelings,
    )


def _population(evaluation, paths, schedule, streams, log_points, rng, fewest):
    """A run: ln of its evidence at each inverse temperature, and its particles with ln of their shares at the end."""
    model, n_particles = evaluation.model, streams.shape[1]
    workspace = model.workspace(evaluation.program, n_particles)
    even = np.full(n_particles, -np.log(n_particles))
    log_shares, trace = even, np.zeros(len(schedule))
    for step in range(len(schedule) - 1):
        log_ratios, _ = model.anneal(workspace, paths, schedule[step : step + 2], streams, log_points)
        log_shares = log_shares + log_ratios[0]
        grown = logsumexp(log_shares)
        trace[step + 1] = trace[step] + grown
        log_shares = log_shares - grown
        if -logsumexp(2.0 * log_shares) < np.log(fewest or 1e-300) and step < len(schedule) - 2:
            log_points = np.ascontiguousarray(log_points[:, systematic(np.exp(log_shares), rng)])
            log_shares = even
    return trace, log_points, log_shares


def systematic(shares: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """As many indices as there are shares (which sum to one), each as often as its share asks, rounded up or down.

    Parameters
    ----------
    shares : ndarray of shape (n,)
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of int, shape (n,)
    """
    n = len(shares)
    reached = np.cumsum(shares)
    return np.searchsorted(reached / reached[-1], (np.arange(n) + rng.random()) / n, side="right")
