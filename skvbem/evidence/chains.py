"""Parts of all sampling scores: work in batches under a time budget, weights pooled as weights, diagnostics.

An estimate may be a sum over *strata*: groups of chains (or draws) from different starts, each of which estimates its
own part of the evidence without bias. With one stratum that is the plain mean of weights.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from scipy.special import logsumexp

from skvbem._arguments import is_whole
from skvbem._arithmetic import arithmetic
from skvbem._progress import call_at_work, steps, working_for
from skvbem.evidence.base import Evidence
from skvbem.evidence.evaluation import Evaluation
from skvbem.evidence.stratified import variance_of_mean
from skvbem.evidence.tuning import TUNING


@dataclass(frozen=True, eq=False)
class Stratum:
    """Chains from one start, whose mean weight estimates one part of the evidence.

    Parameters
    ----------
    fraction : float or None
        How much of the VB fit's uncertain counts the start keeps; None where the start is another.
    inverse_temperatures : ndarray of shape (n_steps + 1,)
    trace : ndarray of shape (n_steps + 1, n_chains)
        ln of the weight gathered so far at each inverse temperature, nats.
    log_weights : ndarray of shape (n_chains,)
        Final, with whatever puts relabelings and strata right.
    log_wholes : ndarray of shape (n_chains,), optional
        Weights whose mean is all of the evidence, by these chains alone.
    """

    fraction: float | None
    inverse_temperatures: np.ndarray
    trace: np.ndarray
    log_weights: np.ndarray
    log_wholes: np.ndarray | None = None


def nonlinear_schedule(n_steps: int, bend: float = np.inf) -> np.ndarray:
    """Inverse temperatures from 0 to 1, evenly spaced or not.

    tau(k) = e (k/K) / (1 - k/K + e) with e = `bend` [BG]. With e = 0.2 the last step is 36 times the first, with
    e = -1.2 the first is 36 times the last.

    Parameters
    ----------
    n_steps : int
    bend : float, default=inf
        Above 0 small steps come first, below -1 last; inf is linear.

    Returns
    -------
    ndarray of shape (n_steps + 1,)

    Examples
    --------
    >>> nonlinear_schedule(4, bend=0.2).round(3).tolist()
    [0.0, 0.053, 0.143, 0.333, 1.0]
    """
    if not isinstance(bend, Real) or not (bend > 0.0 or bend < -1.0):
        raise ValueError(
            f"'bend' must be a number above 0 (small steps first) or below -1 (small steps last). Got {bend!r}."
        )
    fraction = np.linspace(0.0, 1.0, n_steps + 1)
    return fraction if np.isinf(bend) else bend * fraction / (1.0 - fraction + bend)


def pooled(strata: Sequence[np.ndarray], component: np.ndarray | None = None) -> tuple[float, float, float]:
    """ln of the sum of mean weights, its standard error (delta method), and the effective number of weights.

    Parameters
    ----------
    strata : sequence of ndarray
        ln weights of each stratum.
    component : ndarray of int, optional
        The component of a proposal that each weight of a single stratum is of, if each has as many draws as its weight
        says, and not by chance. How components differ is then no part of the error; see `skvbem.evidence.stratified`.

    Returns
    -------
    value, standard_error, effective_sample_size : float
        The last is the number of weights whose mean, were all of them one mean with the spread found, would be as
        uncertain: (sum of w)^2 / sum of w^2 in a single stratum.
    """
    value = float(logsumexp([logsumexp(weights) - np.log(len(weights)) for weights in strata]))
    variance, n = 0.0, sum(map(len, strata))
    for weights in strata:
        ratios, m = np.exp(weights - value), len(weights)
        # one of so many is spent on the mean, which the error makes up for
        variance += float(ratios.var() / m if component is None else variance_of_mean(ratios, component) * (m - 1) / m)
    error = np.sqrt(variance * n / (n - len(strata))) if min(map(len, strata)) > 1 else np.nan
    return value, float(error), float(1.0 / (variance + 1.0 / n))


def _missed_parts(kind: str, value: float, error: float, strata: Sequence[Stratum]) -> list[str]:
    """A doubt where chains from one start alone find far more evidence than the parts that all starts found.

    A start that others leave much to, but from which all chains are lost, misses a part that its own few weights do not
    show. Those of the others do: points that they reach belong to it.
    """
    doubts = []
    for stratum in strata if len(strata) > 1 else ():
        if stratum.log_wholes is None or len(stratum.log_wholes) < 2:
            continue
        whole, whole_error, _ = pooled([stratum.log_wholes])
        excess = np.exp(whole - value) - 1.0
        if excess > TUNING.far_above * np.hypot(np.exp(whole - value) * whole_error, error):
            start = "the prior" if stratum.fraction == 0 else "a fit"
            doubts.append(
                f"{kind}: chains from {start} alone find {whole:.2f} nats, the parts of all add up to {value:.2f}. "
                "Other starts missed their part, and the value is too low. Take more chains, or more particles."
            )
    return doubts


def batches(n: int, at_once: int, n_chains: int = 1) -> list[slice]:
    """0 ... n, of so many chains each, cut into batches that run side by side: several for threads to share.

    The cut does not depend on how many threads there are, so that sums, whose last digits hang on how many chains stand
    side by side, do not either.
    """
    width = max(min(at_once, max(-(-n // TUNING.tasks), TUNING.lanes // n_chains)), 1)
    return [slice(at, min(at + width, n)) for at in range(0, n, width)]


def run_tasks(
    work: Callable,
    tasks: Sequence,
    *,
    n_threads: int = 1,
    required: int = 1,
) -> list:
    """Results of `work` on every task in order, as far as the time of the call at work allows.

    Parameters
    ----------
    work : callable of a task
    tasks : sequence
    n_threads : int
        The results do not depend on it, unless time runs out.
    required : int
        Tasks that are done whatever the time.

    Returns
    -------
    list
        Of the first tasks, as many as were begun in time.
    """
    call, skipped = call_at_work(), object()

    def one(k):
        late = k >= required and call is not None and call.is_over()
        return skipped if late else work(tasks[k])

    def one_in_thread(k):
        with working_for("a thread", None if call is None else call.deadline) as silent:
            result = one(k)
        if call is not None:
            call.was_cut |= silent.was_cut
        return result

    def collected(results):
        done: list = []
        with steps(len(tasks), "batches") as count:
            for result in itertools.takewhile(lambda result: result is not skipped, results):
                done.append(result)
                count()
        return done

    if n_threads <= 1 or len(tasks) == 1:
        return collected(map(one, range(len(tasks))))
    pool = ThreadPoolExecutor(min(n_threads, len(tasks)))
    try:
        return collected(pool.map(arithmetic(one_in_thread), range(len(tasks))))
    finally:
        pool.shutdown(cancel_futures=True)


def steps_at_once() -> int:
    """Steps of a chain between two looks at the time: few where a time budget holds."""
    call = call_at_work()
    return TUNING.at_once if call is None or call.deadline is None else TUNING.lanes


def check_at_least(kind: str, **counts: tuple[Any, int]) -> None:
    """Each of these options is a whole number, and at least the least that makes sense of it, given as (value, least).

    Raises
    ------
    ValueError
        That names the score and the option.
    """
    for name, (value, least) in counts.items():
        if not is_whole(value) or value < least:
            raise ValueError(f"The score {kind!r} needs {name!r} to be an int >= {least}. Got {value!r} instead.")


def summary(
    evaluation: Evaluation,
    kind: str,
    strata: Sequence[Stratum],
    *,
    form: str | None = None,
    unbiased: bool = True,
    n_relabelings: int | None = 1,
    doubts: Sequence[str] = (),
    remedy: str = "more, or longer chains",
    component: np.ndarray | None = None,
    **details,
) -> Evidence:
    """The evidence that weights amount to, with doubts where it should not be trusted; `component` as in `pooled`."""
    weights = [stratum.log_weights for stratum in strata]
    value, error, effective = pooled(weights, component)
    n = sum(map(len, weights))
    everything = np.concatenate([w + np.log(n / len(w)) for w in weights])
    doubts = list(doubts)
    if np.isnan(error):
        doubts.append(f"{kind}: one chain per start has no standard error. Run more.")
    elif effective < min(max(TUNING.least_share * n, min(n / 2, 4.0)), TUNING.enough_weights):
        doubts.append(
            f"{kind}: {n} weights are worth {effective:.1f} equal ones (s.d. of ln w {np.std(everything):.2g}). The "
            f"value and its standard error are not to be trusted, it may be too low. Take {remedy}."
        )
    doubts.extend(_missed_parts(kind, value, error, strata))
    if n_relabelings is None:
        doubts.append(
            f"{kind}: hidden nodes have too many relabelings to correct for. The value counts those that were met, one "
            "perhaps, and may be too low by up to ln of their number."
        )
    return Evidence(
        value,
        kind,
        is_lower_bound=unbiased,
        standard_error=error,
        form=form,
        n_free_parameters=evaluation.model.prior.n_free_parameters,
        n_samples=evaluation.n_samples,
        details={
            "log_weights": everything,
            "mean_log_weight": float(everything.mean()),
            "effective_sample_size": effective,
            "strata": tuple(strata),
            "n_relabelings": n_relabelings,
            **details,
        },
        doubts=tuple(doubts),
    )
