r"""Annealed importance sampling as published: Metropolis chains on :math:`p(\theta) p(y \mid \theta)^\tau` [BG §4.2].

At every inverse temperature all parameters are proposed anew about where they are, and taken or left together: rows of
a network's tables from Dirichlets, with concentrations no lower than the prior's, parameters of a mixture from a
Gaussian in unconstrained coordinates, as wide in each as the prior is. The hidden variables are summed out throughout,
so that weights of rows need not be whole. How far proposals reach is tuned by a pilot run, so that the chains
themselves do not adapt and stay unbiased.
"""

from __future__ import annotations

import numpy as np

from skvbem._progress import is_over
from skvbem.evidence.base import Evidence
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
from skvbem.evidence.tuning import TUNING


def metropolis_ais(
    evaluation: Evaluation,
    *,
    n_chains: int = 8,
    n_steps: int = 16384,
    bend: float = 0.2,
    acceptance: float = 0.3,
    start: np.ndarray | None = None,
) -> Evidence:
    """Log evidence by annealed importance sampling with Metropolis chains from the prior.

    Parameters
    ----------
    evaluation : Evaluation
    n_chains : int, default=8
    n_steps : int, default=16384
        Inverse temperatures after 0, one proposal at each.
    bend : float, default=0.2
        Of the schedule; see `nonlinear_schedule`.
    acceptance : float, default=0.3
        Share of proposals taken that the pilot run tunes for.
    start : ndarray of shape (n_cells,), optional
        A point that all chains start from in place of draws from the prior, such as the parameters that made the data.
        The result is then no unbiased estimate.

    Returns
    -------
    Evidence
        `details["acceptance"]` (n_steps,) is the fraction of the chains whose proposal was taken,
        `details["strengths"]` how near to where they are parameters are proposed: the concentrations of Dirichlets; of
        a mixture the prior's precision over that of the proposals.
    """
    kind = "ais_metropolis"
    check_at_least(kind, n_chains=(n_chains, 1), n_steps=(n_steps, 1))
    temperatures = nonlinear_schedule(n_steps, bend)
    strengths = tuned_strengths(evaluation, n_steps, bend, acceptance)
    streams = evaluation.streams(n_chains)

    def batch(lanes):
        mine = np.ascontiguousarray(streams[:, lanes])
        if start is None:
            log_points = _prior_draws(evaluation, mine)
        else:
            with np.errstate(divide="ignore"):
                log_points = np.repeat(np.maximum(np.log(start), -1e3)[:, None], mine.shape[1], 1)
        return _in_pieces(evaluation, temperatures, strengths, mine, log_points)

    lanes_at_once = evaluation.capability("metropolis").lanes_at_once(evaluation.data)
    tasks = batches(n_chains, lanes_at_once)
    outcomes = run_tasks(
        batch,
        tasks,
        n_threads=evaluation.n_jobs,
        required=sum(lanes.start < 2 for lanes in tasks),
    )
    log_ratios, accepted = (np.concatenate(of, axis=1) for of in zip(*outcomes))
    trace = np.vstack([np.zeros(log_ratios.shape[1]), np.cumsum(log_ratios, axis=0)])
    return summary(
        evaluation,
        kind,
        [Stratum(None, temperatures, trace, trace[-1])],
        unbiased=start is None,
        acceptance=accepted.mean(axis=1),
        acceptance_rate=float(accepted.mean()),
        strengths=strengths,
        start="prior" if start is None else "given",
    )


def _in_pieces(evaluation, temperatures, strengths, streams, log_points) -> list[np.ndarray]:
    """Log ratios and which proposals were taken, (n_steps, n_chains) each; the points are moved in place."""
    points, chains, data = evaluation.capability("points"), evaluation.capability("metropolis"), evaluation.data
    log_likelihoods, workspace = points.log_likelihoods(data, log_points), chains.workspace(data, streams.shape[1])
    shape, at_once = (len(strengths), streams.shape[1]), steps_at_once()
    log_ratios, accepted = np.zeros(shape), np.zeros(shape, dtype=bool)
    for at in range(0, len(strengths), at_once):
        schedule = temperatures[at : at + at_once + 1], strengths[at : at + at_once]
        if is_late := is_over():  # the rest of the path is one step
            schedule = temperatures[[at, -1]], strengths[-1:]
        piece = slice(at, at + len(schedule[1]))
        log_ratios[piece], accepted[piece] = chains.metropolis(
            workspace, *schedule, streams, log_points, log_likelihoods
        )
        if is_late:
            break
    return [log_ratios, accepted]


def tuned_strengths(evaluation: Evaluation, n_steps: int, bend: float, acceptance: float) -> np.ndarray:
    """Concentrations of proposals along the schedule that a pilot run found to be taken as often as wanted.

    Parameters
    ----------
    evaluation : Evaluation
    n_steps : int
    bend : float
    acceptance : float
        In (0, 1).

    Returns
    -------
    ndarray of shape (n_steps,)
    """
    if not 0.0 < acceptance < 1.0:
        raise ValueError(f"'acceptance' must lie between 0 and 1. Got {acceptance!r} instead.")
    points, chains, data = evaluation.capability("points"), evaluation.capability("metropolis"), evaluation.data
    streams = evaluation.streams(TUNING.metropolis_chains, Stream.METROPOLIS)
    log_points = _prior_draws(evaluation, streams)
    log_likelihoods = points.log_likelihoods(data, log_points)
    workspace = chains.workspace(data, TUNING.metropolis_chains)
    temperatures = nonlinear_schedule(TUNING.metropolis_pieces * TUNING.metropolis_steps, bend)
    log_strength, tuned = 0.0, np.empty(TUNING.metropolis_pieces)
    for piece in range(TUNING.metropolis_pieces):
        at = piece * TUNING.metropolis_steps
        strengths = np.full(TUNING.metropolis_steps, np.exp(log_strength))
        here = temperatures[at : at + TUNING.metropolis_steps + 1]
        _, accepted = chains.metropolis(workspace, here, strengths, streams, log_points, log_likelihoods)
        tuned[piece] = log_strength
        log_strength = max(log_strength + TUNING.metropolis_gain * (acceptance - accepted.mean()), 0.0)
    middle = (np.arange(TUNING.metropolis_pieces) + 0.5) / TUNING.metropolis_pieces
    return np.exp(np.interp((np.arange(n_steps) + 1) / n_steps, middle, tuned))


def _prior_draws(evaluation: Evaluation, streams: np.ndarray) -> np.ndarray:
    nothing = np.zeros((len(evaluation.model.prior.coordinates), streams.shape[1]))
    return evaluation.capability("points").draw_points(nothing, streams)
