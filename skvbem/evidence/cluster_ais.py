r"""Annealed importance sampling that never sums beyond a cluster, where q(x) is a product over clusters.

The hidden states of divided rows are part of what chains walk over, from q(theta) q(x) of the best VB fit to
:math:`p(\theta, x \mid y)`. Weights are worth less than with hidden variables summed out: they spread more, and at few
steps their tails are heavy. Labels count for as much as chains were held to them at last; see `skvbem.evidence.starts`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from skvbem.capabilities import AnnealingPlan
from skvbem.evidence.base import Evidence, check_whole_weights
from skvbem.evidence.chains import Stratum, batches, check_at_least, nonlinear_schedule, run_tasks, summary
from skvbem.evidence.evaluation import Evaluation
from skvbem.evidence.starts import Starts


def ais_by_clusters(
    evaluation: Evaluation,
    *,
    n_chains: int,
    n_steps: int,
    bend: float | None,
    time_budget: float | None,
    progress: Callable[[int, int], object] | None,
    refused: dict[str, Any],
) -> Evidence:
    """Log evidence by chains over parameters and hidden states, from q(theta) q(x) of the best VB fit.

    Parameters
    ----------
    evaluation : Evaluation
        At a q(x) that is a product over clusters.
    n_chains, n_steps, bend, time_budget, progress
        As of `skvbem.evidence.ais.anchored_ais`.
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
        time_budget=time_budget,
        progress=progress,
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
