r"""Annealed importance sampling: chains from a density with known normalizer to the posterior [BG §4.2; Neal 2001].

Gibbs chains walk from q(theta) q(x) to p(theta, x | y),

.. math:: f_\tau(\theta, x) = [q(\theta) q(x)]^{1-\tau} [p(\theta) p(x, y \mid \theta)]^\tau,

which is a member of the model's own family at every inverse temperature, with interpolated natural parameters and
statistics. The hidden variables are summed out of the weights, whose mean is the evidence; see `skvbem.evidence.starts`
for q(theta), and for relabelings and modes. Weights are averaged as weights: the log of a mean is too low, never too
high, in expectation.

Raising p(y | x, theta) alone to the power tau, from p(theta) p(x | theta), is unbiased as well; its log weights spread
two to four times as far as those from the prior here. The Metropolis sampler as published is in
`skvbem.evidence.metropolis`.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np

from skvbem._progress import is_over
from skvbem.capabilities import AnnealingPlan
from skvbem.evidence.base import Evidence, check_whole_weights
from skvbem.evidence.chains import (
    Stratum,
    batches,
    check_at_least,
    nonlinear_schedule,
    run_tasks,
    steps_at_once,
    summary,
)
from skvbem.evidence.evaluation import Evaluation, Stream
from skvbem.evidence.starts import Starts, first_of_each, make_starts
from skvbem.evidence.tuning import TUNING


def anchored_ais(
    evaluation: Evaluation,
    *,
    n_chains: int = 48,
    n_steps: int | None = None,
    fractions: Sequence[float] | None = None,
    n_fits: int = 8,
    bend: float | None = None,
    conditional_ess: float | None = None,
) -> Evidence:
    """Log evidence by annealed importance sampling with Gibbs chains, from VB fits made wider and from the prior.

    Where nothing is uncertain the value is the exact evidence. Where q(x) is a product over clusters, hidden states of
    rows are part of what chains walk over, and chains start from the best VB fit: weights spread more, so take longer
    chains.

    Parameters
    ----------
    evaluation : Evaluation
    n_chains : int, default=48
        Dealt out to the starts; starts that would get fewer than four are left out.
    n_steps : int, optional
        Inverse temperatures after 0; with one of them the weights are those of importance sampling from the starts. By
        default 128, and 256 for linear dynamical systems.
    fractions : sequence of float, optional
        Of the uncertain expected counts of a VB fit, how much q(theta) keeps, 0 to 1. By default as the model's chains
        are best run: all of it for linear dynamical systems, half of it for others and none of it for one start more.
    n_fits : int, default=8
        Most of the optima found by the restarts of the VB fit from which chains start.
    bend : float, optional
        Of the schedule; see `nonlinear_schedule`. Most of the spread of weights arises at the end of the path. By
        default -1.5, and -1.05 for linear dynamical systems, whose states turn there.
    conditional_ess : float, optional
        If given, inverse temperatures are chosen by a pilot run so that each step keeps this fraction (as 0.98) of the
        effective sample size of chains from the last start; `n_steps` is then the least number, and `bend` has no say.
        The chains do not know the pilot: still no bias.

    Returns
    -------
    Evidence

    Raises
    ------
    ValueError
        If rows have weights that are no whole numbers, or hidden variables that turn, such as two factors or more.
    """
    if not evaluation.is_exact:
        n_steps = AnnealingPlan().n_steps if n_steps is None else n_steps
        refused = {"fractions": fractions, "conditional_ess": conditional_ess}
        lengths: dict[str, Any] = {"n_chains": n_chains, "n_steps": n_steps, "bend": bend}
        return _ais_by_clusters(evaluation, **lengths, refused=refused)
    annealing, points = evaluation.capability("annealing"), evaluation.capability("points")
    n_steps = annealing.plan.n_steps if n_steps is None else n_steps
    fractions = annealing.plan.fractions if fractions is None else fractions
    kind = "ais" if np.any(fractions) else "ais_prior"
    check_whole_weights(evaluation, kind)
    check_at_least(kind, n_chains=(n_chains, 1), n_steps=(n_steps, 1), n_fits=(n_fits, 1))
    what = f"The score {kind!r} with {n_chains:.3g} chains of {n_steps:.3g} steps"
    evaluation.check_memory(what, float(n_chains) * (n_steps + 4.0), "fewer 'n_chains' or 'n_steps'")
    if kind == "ais" and evaluation.has_turns:
        raise ValueError(
            "The score 'ais' starts chains from one rotation of the factors, where the posterior lies on all of them: "
            "of two factors or more it is too low, and does not tell. Take 'bridge' or 'auto', which integrate them "
            "out in up to five components, 'smc_data' of few rows, or 'linear_response', which ranks any models."
        )
    starts, which = make_starts(evaluation, fractions, n_fits).dealt(n_chains)
    paths = annealing.paths(evaluation.data, starts.statistics.T)
    if conditional_ess is None:
        schedule = nonlinear_schedule(n_steps, annealing.plan.bend if bend is None else bend)
    else:
        schedule = adaptive_schedule(evaluation, starts, conditional_ess, n_steps)
    streams = evaluation.streams(n_chains)

    def batch(lanes):
        mine = np.ascontiguousarray(streams[:, lanes])
        log_points = points.draw_points(starts.statistics_of(which[lanes]), mine)
        return gibbs_chains(evaluation, paths[which[lanes]], schedule, mine, log_points)

    tasks = batches(n_chains, annealing.lanes_at_once(evaluation.data))
    outcomes = run_tasks(
        batch,
        tasks,
        n_threads=evaluation.n_jobs,
        required=sum(lanes.start < first_of_each(which) for lanes in tasks),
    )
    log_points, log_ratios = (np.concatenate(of, axis=1) for of in zip(*outcomes))
    trace = np.vstack([np.zeros(log_ratios.shape[1]), np.cumsum(log_ratios, axis=0)])
    mine = which[: len(trace[-1])]
    log_weights = trace[-1] + starts.log_parts(mine, log_points, schedule)
    log_mean_parts = starts.log_mean_parts(mine, log_points)
    log_wholes = None if log_mean_parts is None else log_weights - log_mean_parts
    return summary_of_starts(evaluation, kind, starts, which, schedule, trace, log_weights, log_wholes)


def summary_of_starts(
    evaluation: Evaluation, kind: str, starts: Starts, which, schedule, trace, log_weights, log_wholes
) -> Evidence:
    """The evidence of chains, put together by the start they came from."""
    which = which[: len(log_weights)]
    strata = []
    for k in np.unique(which):
        mine = which == k
        wholes = None if log_wholes is None else log_wholes[mine]
        strata.append(Stratum(float(starts.fractions[k]), schedule, trace[:, mine], log_weights[mine], wholes))
    form = "vb" if any(starts.fractions) else None
    return summary(evaluation, kind, strata, form=form, n_relabelings=starts.n_relabelings)


def gibbs_chains(
    evaluation: Evaluation, paths, temperatures: np.ndarray, streams: np.ndarray, log_points: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Chains, each along its own path: where they end, and ln of the ratio of densities at each step.

    Once the time of the call at work is up they go to the last temperature in one step. When that is does not hang on
    where chains are, so that their weights are still without bias, and as unlike as they then are.

    Parameters
    ----------
    evaluation : Evaluation
    paths : Path of the model
        As many as there are chains.
    temperatures : ndarray of shape (n_steps + 1,)
    streams : ndarray of uint64, shape (4, n_chains)
        Moved on in place.
    log_points : ndarray of shape (n_cells, n_chains)
        ln theta, draws at the first inverse temperature.

    Returns
    -------
    log_points : ndarray of shape (n_cells, n_chains)
    log_ratios : ndarray of shape (n_steps, n_chains)
    """
    annealing, n = evaluation.capability("annealing"), streams.shape[1]
    log_points = np.array(log_points, order="C")
    workspace = annealing.workspace(evaluation.data, n)
    log_ratios, at_once = np.zeros((len(temperatures) - 1, n)), steps_at_once()
    for at in range(0, len(log_ratios), at_once):
        here = temperatures[at : at + at_once + 1]
        if is_late := is_over():
            here = temperatures[[at, -1]]
        log_ratios[at : at + len(here) - 1], _ = annealing.anneal(workspace, paths, here, streams, log_points)
        if is_late:
            break
    return log_points, log_ratios


def adaptive_schedule(evaluation: Evaluation, starts: Starts, conditional_ess: float, least: int = 1) -> np.ndarray:
    """Inverse temperatures at which a step keeps a fraction of the effective sample size, found by a pilot run.

    Of equally weighted particles at one temperature, (mean w)^2 / mean w^2 of the ratios w to the next is that
    fraction. The pilot runs from the last start, the widest one.

    Parameters
    ----------
    evaluation : Evaluation
    starts : Starts
    conditional_ess : float
        In (0, 1).
    least : int, default=1
        With fewer steps than these, the schedule is made finer, of the same shape.

    Returns
    -------
    ndarray of shape (n_steps + 1,)
    """
    if not isinstance(conditional_ess, Real) or not 0.0 < conditional_ess < 1.0:
        raise ValueError(f"'conditional_ess' must be a number between 0 and 1. Got {conditional_ess!r} instead.")
    annealing, data = evaluation.capability("annealing"), evaluation.data
    streams = evaluation.streams(TUNING.chains, Stream.PILOT)
    workspace, which = annealing.workspace(data, TUNING.chains), np.full(TUNING.chains, len(starts) - 1)
    log_points = evaluation.capability("points").draw_points(starts.statistics_of(which), streams)
    statistics = starts.statistics[-1]
    paths = annealing.paths(data, statistics[:, None])[np.zeros(TUNING.chains, dtype=int)]
    schedule, length = [0.0], 1.0
    while schedule[-1] < 1.0:
        here = schedule[-1]
        length = min(length, 1.0 - here)
        slopes = paths.slope_at(log_points)
        before = annealing.log_normalizers(workspace, paths, np.array([here]), log_points)[0]
        for _ in range(30):
            after = annealing.log_normalizers(workspace, paths, np.array([here + length]), log_points)[0]
            log_ratios = after - before + length * slopes
            ratios = np.exp(log_ratios - log_ratios.max())
            kept = float(ratios.sum() ** 2 / (ratios**2).sum()) / TUNING.chains
            # the loss grows as the square of the step
            wanted = length * np.sqrt((1.0 - conditional_ess) / max(1.0 - kept, 1e-12))
            enough = wanted > 0.5 * length and (wanted < 2.0 * length or length == 1.0 - here)
            length = min(max(wanted, 1e-9), 1.0 - here)
            if enough:
                break
        there = here + length if here + length < 1.0 - 1e-9 and not is_over() else 1.0
        annealing.anneal(workspace, paths, np.array([here, there]), streams, log_points)
        schedule.append(there)
    n = max(len(schedule), least + 1)
    return np.interp(np.linspace(0, 1, n), np.linspace(0, 1, len(schedule)), schedule)


def _ais_by_clusters(
    evaluation: Evaluation,
    *,
    n_chains: int,
    n_steps: int,
    bend: float | None,
    refused: dict[str, Any],
) -> Evidence:
    r"""Log evidence by chains that never sum beyond a cluster, from q(theta) q(x) of the best VB fit.

    The hidden states of divided rows are part of what chains walk over, to :math:`p(\theta, x \mid y)`. Weights are
    worth less than with hidden variables summed out: they spread more, and at few steps their tails are heavy. Labels
    count for as much as chains were held to them at last; see `skvbem.evidence.starts`.

    Parameters
    ----------
    evaluation : Evaluation
        At a q(x) that is a product over clusters.
    n_chains, n_steps, bend
        As of `anchored_ais`.
    refused : dict of str to object
        Options that chains with other starts have: what is not None is an error.
    """
    for name, value in refused.items():
        if value is not None:
            raise ValueError(
                f"The option {name!r} of the score 'ais' needs an exact q(x): here it is a product over clusters of "
                "hidden nodes, and chains start from the best VB fit. Leave the option out, or fit with "
                "inference='exact'."
            )
    check_whole_weights(evaluation, "ais")
    check_at_least("ais", n_chains=(n_chains, 1), n_steps=(n_steps, 1))
    annealing = evaluation.capability("cluster_annealing")
    statistics = evaluation.fit("vb").statistics
    path = annealing.path(evaluation.data, statistics)
    relabelings = evaluation.capability("relabelings").relabelings(evaluation.hidden)
    starts = Starts(evaluation.model.prior, np.ones(1), statistics[None], relabelings, move_labels=True)
    schedule = nonlinear_schedule(n_steps, AnnealingPlan().bend if bend is None else bend)
    streams = evaluation.streams(n_chains)
    outcomes = run_tasks(
        lambda lanes: annealing.run(path, schedule, np.ascontiguousarray(streams[:, lanes])),
        batches(n_chains, annealing.lanes_at_once(path.data)),
        n_threads=evaluation.n_jobs,
    )
    log_points, log_ratios = (np.concatenate(of, axis=1) for of in zip(*outcomes))
    trace = np.vstack([np.zeros(log_ratios.shape[1]), np.cumsum(log_ratios, axis=0)])
    which = np.zeros(trace.shape[1], dtype=int)
    log_weights = trace[-1] + starts.log_parts(which, log_points, schedule)
    return summary(
        evaluation,
        "ais",
        [Stratum(1.0, schedule, trace, log_weights)],
        form="vb",
        n_relabelings=starts.n_relabelings,
    )
