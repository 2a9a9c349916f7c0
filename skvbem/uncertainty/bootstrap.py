"""Bootstrap: how estimates vary from one data set to the next, by fits to data resampled or drawn from the fit."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

from skvbem._arguments import check_choice, check_count, is_whole
from skvbem._arithmetic import arithmetic
from skvbem._compat import returns_one_by_one
from skvbem._progress import call_at_work, is_over, steps
from skvbem.errors import PosteriorWarning, check_memory, warn
from skvbem.evidence.evaluation import Evaluation
from skvbem.evidence.tuning import TUNING
from skvbem.fitted.base import Fitted, Parameters
from skvbem.optima.plan import FitPlan
from skvbem.reading.base import Reading
from skvbem.uncertainty.draws import Draws, FitAtHand, aligned

#: Ways to make data anew.
KINDS = ("nonparametric", "parametric")
# Numbers of 8 bytes that the seed and the estimate of a draw take beside its parameters, by hand.
_NUMBERS_OF_DRAW = 64


@dataclass(frozen=True, eq=False)
class BootstrapDraws(Draws):
    """Estimates from data made anew, as many times as there are draws.

    Parameters
    ----------
    parameters : dict of str to dict of str to ndarray
        By group and name, each fit in turn along the first axis. Groups of columns have what `parameters_` holds. A
        mixture has its "weights" under "mixture", a chain "startprob" and "transmat" under "chain", and a network a
        table per node under "tables".
    natural : ndarray of shape (n_cells, n_draws)
        Natural parameters of each estimate.
    kind : {"nonparametric", "parametric"}
    converged : ndarray of bool, shape (n_draws,)
        Which fits have converged.
    has_spikes : ndarray of bool, shape (n_draws,)
        Which fits by maximum likelihood ended with a component without width, or of no more rows than columns.
    at : callable, optional
        Takes natural parameters (n_cells,) and returns an estimator that has them.
    """

    parameters: Parameters
    natural: np.ndarray
    kind: str
    converged: np.ndarray
    has_spikes: np.ndarray
    at: Callable[[np.ndarray], Any] | None = None

    def __repr__(self):
        return f"BootstrapDraws({len(self)} fits, {self.kind})"

    @property
    def method(self) -> str:
        """Source of intervals, as `summary` names it."""
        return f"{self.kind}_bootstrap"

    @property
    def errors(self) -> Parameters:
        """Standard errors by group and name: standard deviations of the estimates."""
        return {
            group: {name: each.std(axis=0, ddof=1) for name, each in by_name.items()}
            for group, by_name in self.parameters.items()
        }

    @property
    def doubts(self) -> tuple[str, ...]:
        """Warnings of the draws, and of intervals from them."""
        doubts, n = [], len(self)
        if (~self.converged).mean() > TUNING.failed_share:
            doubts.append(f"{(~self.converged).sum()} of {n} fits of the bootstrap did not converge: raise 'max_iter'.")
        if self.has_spikes.mean() > TUNING.failed_share:
            doubts.append(
                f"{self.has_spikes.sum()} of {n} fits of the bootstrap ended with a component without width, where the "
                "likelihood has no maximum: intervals of its parameters mean little."
            )
        return tuple(doubts)


@dataclass(frozen=True, eq=False)
class Replication:
    """A way to make data anew and fit them, in any process.

    Parameters
    ----------
    fitted : Fitted
        The fit that all begin from, whose prior they have.
    reading : Reading
        The data, or for a parametric bootstrap data whose shape and missing cells new ones have.
    plan : FitPlan
    compiled : callable of (model, Reading, int)
        Data as the model takes them.
    drawn : callable of (Reading, model, point, Generator), or None
        Values drawn from the model; None where rows are resampled.
    """

    fitted: Fitted
    reading: Reading
    plan: FitPlan
    compiled: Callable
    drawn: Callable | None

    def estimate(self, seed: tuple[int, ...]) -> tuple[np.ndarray, bool, bool]:
        """Natural parameters, whether the fit converged, and whether it has spikes, for a seed."""
        fitted, rng = self.fitted, np.random.default_rng(seed)
        if self.drawn is None:
            reading = self.reading.resampled(rng)
        else:
            values = self.drawn(self.reading, fitted.model, fitted.point, rng)
            reading = self.reading.kept().refilled(values)
        data, prior = self.compiled(fitted.model, reading, 1), fitted.model.prior
        model = fitted.model.with_design_of(data)
        fit = self.plan.run(model, data, fitted.form)
        spikes = None if fitted.form.prior_share else prior.are_spikes(fit.statistics)
        natural = prior.natural(replace(fitted, model=model, statistics=fit.statistics).point)
        return natural, fit.converged, bool(spikes is not None and np.any(spikes))


def bootstrap(
    at_hand: FitAtHand,
    reading: Any,
    n_draws: int = 200,
    *,
    kind: str = "nonparametric",
    seed: tuple[int, ...] | None = None,
    n_jobs: int | None = None,
    compiled: Callable,
    drawn_like: Callable,
) -> BootstrapDraws:
    """Fits to data made anew, each from where the fit ended, labels as in the fit.

    Parameters
    ----------
    at_hand : FitAtHand
    reading : Reading
        The data of the fit.
    n_draws : int, default=200
    kind : {"nonparametric", "parametric"}, default="nonparametric"
        Rows, or whole sequences, drawn with replacement, or drawn from the model.
    seed : tuple of int, optional
        By default that of the fit.
    n_jobs : int or None
        As of joblib.
    compiled : callable of (model, Reading, int)
        Data as the model takes them.
    drawn_like : callable of (Reading, model, point, Generator)
        Values drawn from the model.

    Raises
    ------
    ValueError
        If an argument is none, rows come in blocks, or cannot be drawn.
    """
    check_count("n_draws", "bootstrap", n_draws)
    check_choice("kind", "bootstrap", kind, KINDS)
    if reading.are_in_blocks:
        raise ValueError("bootstrap makes rows anew, which must be in memory; X comes in blocks.")
    if kind == "nonparametric" and len(reading.unit_hashes) == 1 and reading.unit_weight is None:
        raise ValueError(
            "A nonparametric bootstrap draws whole sequences, or rows, again, and there is one only. Take "
            "kind='parametric'."
        )
    if kind == "parametric":
        if not reading.has_whole_weights:
            raise ValueError(
                "A parametric bootstrap draws rows one by one, and needs whole-number sample weights. Take "
                "kind='nonparametric'."
            )
        reading = reading.in_order().one_by_one()
    fitted, run = at_hand.fitted, at_hand.run
    assert run is not None
    plan = replace(run.plan, starts=starts_of(fitted), explore=False, inverse_temperatures=())
    replication = Replication(fitted, reading, plan, compiled, drawn_like if kind == "parametric" else None)
    draws = bootstrap_draws(replication, at_hand.evaluation, run.plan.seed if seed is None else seed, n_draws, n_jobs)
    return replace(draws, at=at_hand.at)


def bootstrap_draws(
    replication: Replication, evaluation: Evaluation, seed: tuple[int, ...], n_draws: int, n_jobs: int | None
) -> BootstrapDraws:
    """Estimates from data made anew, labels as in the fit; the same for any number of jobs.

    Parameters
    ----------
    replication : Replication
    evaluation : Evaluation
        Of the fit.
    seed : tuple of int
    n_draws : int
    n_jobs : int or None
        As of joblib.
    """
    fitted = replication.fitted
    held = float(n_draws) * (fitted.model.n_cells + _NUMBERS_OF_DRAW)
    evaluation.check_memory(f"bootstrap with {n_draws:.3g} draws", held, "fewer 'n_draws'")
    seeds = [(*seed, 2**35, k) for k in range(n_draws)]  # streams that nothing else has
    estimates = replicated("bootstrap", replication.estimate, seeds, n_jobs)
    relabelings = evaluation.capability("relabelings", "bootstrap").relabelings(evaluation.hidden, TUNING.relabelings)
    natural = aligned(relabelings, fitted.statistics, np.stack([each for each, *_ in estimates], axis=1))
    converged, has_spikes = (np.array([each[k] for each in estimates]) for k in (1, 2))
    kind = KINDS[replication.drawn is not None]
    return BootstrapDraws(fitted.parameters_of_draws(natural), natural, kind, converged, has_spikes)


def check_tables(n_boot: int, estimator: Any) -> None:
    """Refuse more tables than the `max_memory` of an estimator has room for."""
    least, owner = "a smaller 'n_boot'", type(estimator).__name__
    check_memory(f"{n_boot:.3g} tables drawn", float(n_boot) * _NUMBERS_OF_DRAW, least, estimator.max_memory, owner)


def starts_of(fitted: Fitted) -> np.ndarray:
    """Statistics (n_cells, 1) near those of a fit, from which fits to other data begin."""
    lift = 0.0 if fitted.form.prior_share else TUNING.lift * ~fitted.model.prior.signed
    return (fitted.statistics + lift)[:, None]


# Work on many seeds ---------------------------------------------------------------------------------------------------

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
