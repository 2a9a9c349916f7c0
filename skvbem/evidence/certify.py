r"""Evidence between two bounds: annealed chains forwards, and backwards from an exact draw of the posterior.

Weights of forward chains average to p(y), those of backward chains to 1 / p(y), if these start at exact draws of
p(theta | y). So ln of the one mean is too low in expectation and minus ln of the other too high, and by Markov's
inequality neither is wrong by more than c nats on its wrong side with a probability above e^-c [Grosse, Ghahramani &
Adams 2015].

Parameters that made the data, if drawn from the prior, are one exact draw; Gibbs sweeps from it give more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from skvbem.evidence.ais import anchored_ais, gibbs_chains
from skvbem.evidence.base import Evidence, check_whole_weights
from skvbem.evidence.chains import Stratum, batches, check_at_least, nonlinear_schedule, pooled, run_tasks
from skvbem.evidence.evaluation import Evaluation, Stream
from skvbem.evidence.starts import Starts, make_starts
from skvbem.evidence.tuning import TUNING


@dataclass(frozen=True)
class Certificate:
    """Two estimates of one log evidence.

    Parameters
    ----------
    lower, upper : Evidence
        The first is too low in expectation, the second too high.
    """

    lower: Evidence
    upper: Evidence

    @property
    def gap(self) -> float:
        """upper - lower, nats: what both are wrong by together, in expectation."""
        return float(self.upper) - float(self.lower)


def certify_evidence(
    evaluation: Evaluation,
    log_point: np.ndarray,
    *,
    n_chains: int = 32,
    n_steps: int = 512,
    fraction: float = 0.5,
) -> Certificate:
    """Both sides of the log evidence of simulated data.

    Parameters
    ----------
    evaluation : Evaluation
    log_point : ndarray of shape (n_cells,)
        ln of the parameters that made the data, drawn from the prior; or any other exact draw of the posterior.
    n_chains, n_steps
        As in `skvbem.evidence.ais.anchored_ais`, for each side.
    fraction : float, default=0.5
        Of the VB fit's uncertain counts, kept where the chains start, and where the backward chains end. 0: both have
        the prior there, which is better where rows are few: the posterior is in many pieces, and chains that change
        labels freely come out above by up to ln of the number of relabelings.

    Returns
    -------
    Certificate
    """
    options: dict[str, Any] = {"n_chains": n_chains, "n_steps": n_steps}
    lower = anchored_ais(evaluation, fractions=(fraction, 0.0) if fraction else (0.0,), **options)
    return Certificate(lower, reverse_ais(evaluation, log_point, fraction=fraction, **options))


def reverse_ais(
    evaluation: Evaluation,
    log_point: np.ndarray,
    *,
    n_chains: int = 32,
    n_steps: int = 512,
    fraction: float = 0.5,
    bend: float | None = None,
) -> Evidence:
    """A stochastic upper bound on the log evidence by chains from the posterior back to the VB fit made wider.

    Parameters
    ----------
    evaluation : Evaluation
    log_point : ndarray of shape (n_cells,) or (n_cells, n_chains)
        ln theta of an exact draw of the posterior, from which Gibbs sweeps make a start for each chain; or one for
        each.
    n_chains, n_steps, fraction, bend
        As in `anchored_ais`.

    Returns
    -------
    Evidence
        Minus ln of the mean of the inverse weights; no lower bound.
    """
    kind = "ais_reverse"
    check_whole_weights(evaluation, kind)
    check_at_least(kind, n_chains=(n_chains, 1), n_steps=(n_steps, 1))
    starts, annealing = make_starts(evaluation, (fraction,), 1), evaluation.capability("annealing")
    paths = annealing.paths(evaluation.data, starts.statistics.T)
    # a sweep at the posterior comes first, the reverse of the one that a forward chain ends with
    forward = nonlinear_schedule(n_steps, annealing.plan.bend if bend is None else bend)
    schedule = np.concatenate([[1.0], forward[::-1]])
    streams = evaluation.streams(n_chains, Stream.BACKWARDS)
    rngs = [evaluation.generator(Stream.LABELS, k) for k in range(n_chains)]
    exact_draws = np.asarray(log_point, dtype=float)

    def batch(lanes):
        mine = np.ascontiguousarray(streams[:, lanes])
        which = np.zeros(mine.shape[1], dtype=int)
        log_points = exact_draws[:, lanes] if exact_draws.ndim == 2 else np.repeat(exact_draws[:, None], len(which), 1)
        if exact_draws.ndim == 1:
            log_points, _ = gibbs_chains(evaluation, paths[which], np.ones(TUNING.burn_in // 2 + 1), mine, log_points)
        log_points = _relabeled(starts, starts.held_by(forward)[0], log_points, rngs[lanes])
        parts = starts.log_parts(which, log_points, forward)
        _, log_ratios = gibbs_chains(evaluation, paths[which], schedule, mine, log_points)
        return -log_ratios, parts

    tasks = batches(n_chains, annealing.lanes_at_once(evaluation.data))
    outcomes = run_tasks(
        batch,
        tasks,
        n_threads=evaluation.n_jobs,
        required=sum(lanes.start < 2 for lanes in tasks),
    )
    log_ratios = np.concatenate([ratios for ratios, _ in outcomes], axis=1)
    log_weights = log_ratios.sum(axis=0) + np.concatenate([parts for _, parts in outcomes])
    value, error, effective = pooled([-log_weights])
    trace = np.vstack([np.zeros(len(log_weights)), np.cumsum(log_ratios[1:], axis=0)])
    return Evidence(
        -value,
        kind,
        is_lower_bound=False,
        standard_error=error,
        form="vb",
        n_free_parameters=evaluation.model.prior.n_free_parameters,
        n_samples=evaluation.n_samples,
        details={
            "log_weights": log_weights,
            "mean_log_weight": float(log_weights.mean()),
            "effective_sample_size": effective,
            "strata": (Stratum(fraction, schedule[1:], trace, log_weights),),
            "n_relabelings": starts.n_relabelings,
        },
    )


def _relabeled(
    starts: Starts, held_by: np.ndarray, log_points: np.ndarray, rngs: Sequence[np.random.Generator]
) -> np.ndarray:
    """Points (n_cells, n_chains), their labels drawn anew by statistics that hold them.

    The weights corrected for labels are those of a posterior that prefers labels near the anchor.
    """
    if starts.relabelings is None or starts.relabelings.n == 1:
        return log_points
    drawn = [starts.relabelings.draw(held_by, point, rng) for point, rng in zip(log_points.T, rngs, strict=True)]
    return np.stack(drawn, axis=1)
