"""Replications: work on many seeds by processes of joblib, as far as the time of the call at work allows."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from joblib import Parallel, delayed, effective_n_jobs

from skvbem._arguments import is_whole
from skvbem._arithmetic import arithmetic
from skvbem._compat import returns_one_by_one
from skvbem._progress import call_at_work, is_over, steps
from skvbem.errors import PosteriorWarning, warn
from skvbem.evidence.tuning import TUNING

Seed = tuple[int, ...]


def replicated(caller: str, work: Callable[[Seed], Any], seeds: Sequence[Seed], n_jobs: int | None) -> list:
    """Results of work on each seed in order, the same for any number of jobs; a warning where time was too short.

    Parameters
    ----------
    caller : str
        The public function, for the warning.
    work : callable of a seed
    seeds : sequence of tuple of int
    n_jobs : int or None
        As of joblib.

    Returns
    -------
    list
        Of all seeds; where time was too short, of those that were reached, two at least.
    """
    if n_jobs is not None and (not is_whole(n_jobs) or n_jobs == 0 or abs(n_jobs) > 2**16):
        raise ValueError(
            f"The 'n_jobs' parameter of {caller} must be None or an int other than 0, such as 2, or -1 for all "
            f"processors. Got {n_jobs!r} instead."
        )
    call, n = call_at_work(), len(seeds)
    left = None if call is None else call.seconds_left()
    until = None if left is None else time.time() + left  # on the clock that machines share
    n_tasks = min(n, TUNING.tasks * effective_n_jobs(n_jobs))
    how = {"return_as": "generator"} if returns_one_by_one() else {}
    by_task: list[list] = []
    with steps(n_tasks, "parts") as count:
        tasks = (delayed(_done)(work, seeds[at::n_tasks], until) for at in range(n_tasks))
        for results in Parallel(n_jobs=n_jobs, **how)(tasks):
            by_task.append(results)
            count()
    reached = [by_task[k % n_tasks][k // n_tasks] for k in range(n) if k // n_tasks < len(by_task[k % n_tasks])]
    if len(reached) < n:
        warn(
            f"The 'time_budget' of {caller} ended after {len(reached)} of {n} data sets: the result is from these. "
            "Give it more seconds, or none.",
            PosteriorWarning,
        )
    return reached


@arithmetic
def _done(work: Callable[[Seed], Any], seeds: Sequence[Seed], until: float | None) -> list:
    """Results of work on seeds, until the time is up; of the first in any case."""
    results: list = []
    with steps(len(seeds), "data sets") as count:
        for seed in seeds:
            if results and (is_over() or (until is not None and time.time() > until)):
                break
            results.append(work(seed))
            count()
    return results
