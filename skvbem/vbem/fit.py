"""From starts to one fit, by a plan: annealing, races or runs to the end, and the prior learned on the way."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skvbem.vbem.contenders import Contender, Move, Proposals, contenders_of, different, modes
from skvbem.vbem.driver import RELATIVE_SLACK, Ascent, run
from skvbem.vbem.exploration import Explorer
from skvbem.vbem.posteriors import VB, Form

# Steps that starts and moves may cost together, for each start.
_N_STEPS_PER_START = 500
# Optima kept of a fit, numbers they may take together, steps that each may take to its end once chains are to start
# from it, and those that chains are offered.
_MAX_OPTIMA, _MAX_KEPT_DOUBLES, _N_STEPS_OF_OPTIMA, _MAX_OFFERED = 16, 2**21, 100, 8
# Turns of strengths of the prior and runs.
_MAX_TURNS = 100

Stop = Callable[[int, float, int, float], bool]


@dataclass(frozen=True, eq=False)
class Fit:
    """The start that reached the highest objective, and where all others ended.

    Parameters
    ----------
    statistics : ndarray of shape (n_cells,)
        Expected statistics from which q(theta) is built.
    objective : float
        Lower bound (VB), log posterior (MAP) or log likelihood (ML) at these statistics, nats.
    trace : tuple of float
        The objective at every point of the best start's run.
    n_iter : int
        Steps of the best start's run.
    converged : bool
    restart_objectives, restart_n_iter, restart_converged : ndarray of shape (n_starts,)
        Where every start ended; NaN and 0 for one left behind on fewer of the data.
    restart_traces : tuple of tuple of float
        The objective along the run of every start; empty where it was left behind.
    optima : ndarray of shape (n_cells, n_optima)
        Statistics of the different optima that starts and moves got to, the best first. A race may have left some of
        them on their way; `FitPlan.run_optima` runs these to their ends.
    restart_to_come : ndarray of shape (n_starts,)
        Nats that every start might still have gained where a race left it.
    restart_counts : ndarray of bool, shape (n_starts,)
        Which starts ended in solutions that count.
    state : ndarray of shape (n_state,), optional
        What is kept of q(x) where the E step is not exact: the objective is then a bound of what it would be.
    restart_kinds : tuple of str
        The kind of every start.
    moves : tuple of Move
        The moves that led from the best start to where the fit ended.
    """

    statistics: np.ndarray
    objective: float
    trace: tuple[float, ...]
    n_iter: int
    converged: bool
    restart_objectives: np.ndarray
    restart_n_iter: np.ndarray
    restart_converged: np.ndarray
    restart_traces: tuple[tuple[float, ...], ...]
    optima: np.ndarray
    restart_to_come: np.ndarray
    restart_counts: np.ndarray
    restart_kinds: tuple[str, ...] = ()
    moves: tuple[Move, ...] = ()
    state: np.ndarray | None = None


def explored(
    method: FitMethod,
    ascent: Ascent,
    starts: Callable[[Any], np.ndarray],
    n_starts: int,
    *,
    limits: Mapping[str, Any],
    seed: tuple[int, ...],
    stop: Stop | None = None,
) -> Fit:
    """The best fit that races between starts, and moves after them, lead to; see `skvbem.vbem.exploration`.

    Parameters
    ----------
    method : FitMethod
    ascent : Ascent
    starts : callable of Ascent
        Statistics (n_cells, n_starts).
    n_starts : int
    limits : mapping
        `tol`, `max_iter` and `accelerate` as `skvbem.vbem.driver.run` takes them.
    seed : tuple of int
    stop : callable, optional
        As in `skvbem.vbem.driver.run`.
    """
    explorer = Explorer(method, limits, seed, stop)
    of_starts, optima = explorer.best(ascent, starts)
    best = optima[0]
    of_starts += [each for each in optima if not each.moves]  # which went on from there
    fit = _fit_of(best, optima, of_starts, n_starts)
    return replace(fit, converged=best.converged and not (explorer.stopped and best.to_come >= limits["tol"]))


def _fit_of(best: Contender, optima: list[Contender], of_starts: Iterable[Contender], n_starts: int) -> Fit:
    """The fit that ended with the best of different optima, of which it keeps a few."""
    objectives, n_iter, converged = np.full(n_starts, np.nan), np.zeros(n_starts, int), np.zeros(n_starts, bool)
    to_come, counts = np.zeros(n_starts), np.ones(n_starts, bool)
    traces: list[tuple[float, ...]] = [()] * n_starts
    for each in of_starts:
        objectives[each.start], n_iter[each.start], converged[each.start] = each.objective, each.n_iter, each.converged
        traces[each.start], to_come[each.start], counts[each.start] = tuple(each.trace), each.to_come, each.counts
    kept = modes(optima, best, min(_MAX_OPTIMA, max(_MAX_KEPT_DOUBLES // len(best.statistics), 1)))
    return Fit(
        best.statistics,
        best.objective,
        tuple(best.trace),
        best.n_iter,
        best.converged,
        objectives,
        n_iter,
        converged,
        tuple(traces),
        np.stack([each.statistics for each in kept], axis=1),
        to_come,
        counts,
        moves=best.moves,
    )


def best_of(
    ascent: Ascent,
    starts: np.ndarray,
    *,
    tol: float,
    max_iter: int,
    accelerate: bool = True,
    inverse_temperatures: Iterable[float] = (),
    stop: Callable[[int, float, int, float], bool] | None = None,
    counts: Callable[[np.ndarray], np.ndarray] | None = None,
) -> Fit:
    """Ascend from every start and keep the best.

    Parameters
    ----------
    ascent : Ascent
    starts : ndarray of shape (n_cells, n_starts)
        Expected statistics.
    tol, max_iter, accelerate, stop
        As in `skvbem.vbem.driver.run`.
    inverse_temperatures : iterable of float
        One annealed step is taken at each, with statistics multiplied by it [Beal (2.118), (2.119)], before the run.
    counts : callable of ndarray (n_cells, n_starts), optional
        Which solutions count: of others the best is kept only where none does.
    """
    starts = np.array(starts, order="C")
    for inverse_temperature in inverse_temperatures:
        starts *= inverse_temperature
        ascent.advance(starts, 1)
    result = run(ascent, starts, tol=tol, max_iter=max_iter, accelerate=accelerate, stop=stop)
    began = [Contender(column, number) for number, column in enumerate(starts.T)]
    of_starts = contenders_of(result, began, counts)
    best = max(of_starts, key=lambda each: each.rank)
    return _fit_of(best, [best, *different(of_starts)[1:]], of_starts, starts.shape[1])


def continued(fit: Fit, further: Fit) -> Fit:
    """One fit from a fit and a run that went on from where it ended; its starts are those of the fit.

    A run that began lower, its components in another order, has a trace of its own: no trace falls.
    """
    went_on = further.trace[0] >= fit.objective - RELATIVE_SLACK * abs(fit.objective)
    return replace(
        fit,
        statistics=further.statistics,
        objective=further.objective,
        trace=fit.trace + further.trace if went_on else further.trace,
        n_iter=fit.n_iter + further.n_iter,
        converged=further.converged,
        optima=further.optima,
        state=further.state,
    )


class FitMethod:
    """What a kind of model adds to a fit: its full steps, what precedes and follows a run, how its prior is learned."""

    @abstractmethod
    def ascent(self, model, data, form: Form, n_threads: int) -> Ascent:
        """Full steps of a model on its data."""

    def eased(self, model, data, form: Form, starts: np.ndarray, n_threads: int) -> np.ndarray:
        """Starts (n_cells, n_starts) made ready for a run."""
        return starts

    def stages(self, ascent: Any) -> list[Ascent]:
        """Full steps on samples of the data, the smallest first, for starts that grow up there; none by default."""
        return []

    def n_steps_per_start(self, ascent: Any) -> int:
        """Steps that starts and moves may cost together, for each start, before no more moves are made."""
        return _N_STEPS_PER_START

    def moves(self, ascent: Any, statistics: np.ndarray, seed: int, agreed: bool, n_failed: int) -> Proposals:
        """What optima (n_cells, n_optima), the best first, may be changed to; nothing by default.

        Where starts `agreed` on the best, it comes alone, and the most promising changes are enough. `n_failed` rounds
        in a row found nothing better: what is not drawn at random need not be tried again.
        """
        return Proposals([], np.empty((len(statistics), 0)))

    def solutions(self, ascent: Any) -> Callable[[np.ndarray], np.ndarray] | None:
        """What says which of statistics (n_cells, n_lanes) are solutions that count; None where all are."""
        return None

    def finalize(self, ascent: Any, fit: Fit, *, stop: Stop | None, limits: Mapping[str, Any]) -> Fit:
        """The fit once its components stand as their prior means them."""
        return fit

    def resumed(self, fit: Fit) -> np.ndarray:
        """The point at which a fit ended, as its ascent knows it, (n_cells,)."""
        return fit.statistics

    def statistics_to_start_from(self, statistics: np.ndarray) -> np.ndarray:
        """Statistics where a fit ended, as the start of a fit of another form or of other data."""
        return statistics

    def strengthened(self, model, base, statistics: np.ndarray):
        """The model with a multiple of the prior of `base` under which its bound is not lower [Beal (2.79)]."""
        raise NotImplementedError


class PriorStart:
    """The start at the statistics that data are expected to have under the prior."""

    n_starts = 1
    kinds = ("prior",)

    def __call__(self, ascent: Any) -> np.ndarray:
        """Statistics, (n_cells, 1)."""
        return ascent.expect(ascent.model.prior.expected_natural()[:, None])


@dataclass(frozen=True, eq=False)
class FitPlan:
    """Where a fit starts and when it stops, so that another form of q(theta) can be fitted in the same way.

    Parameters
    ----------
    method : FitMethod
    seed : tuple of int
        Of random starts, and of what is drawn later where no other seed is given.
    starts : ndarray of shape (n_cells, n_starts) or callable of Ascent
        Expected statistics, or what computes them and knows their number as `n_starts`.
    limits : mapping
        `tol`, `max_iter` and `accelerate` as `skvbem.vbem.fit.best_of` takes them.
    inverse_temperatures : tuple of float
        Of annealed steps before a run.
    explore : bool
        Whether starts race, and what wins is moved, rather than that every start is run to the end.
    """

    method: FitMethod
    seed: tuple[int, ...]
    starts: Any
    limits: Mapping[str, Any]
    inverse_temperatures: tuple[float, ...] = ()
    explore: bool = False

    @property
    def n_starts(self) -> int:
        """Number of starts."""
        return self.starts.n_starts if callable(self.starts) else self.starts.shape[1]

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kind of every start."""
        return getattr(self.starts, "kinds", ("given",) * self.n_starts)

    def run(self, model, data, form: Form, n_threads: int = 1, stop: Stop | None = None) -> Fit:
        """The best fit."""
        ascent = self.method.ascent(model, data, form, n_threads)
        if self.explore:
            fit = self._explored(ascent, self._statistics, self.n_starts, stop)
        else:
            starts = self.method.eased(model, data, form, self._statistics(ascent), n_threads)
            fit = self._best(ascent, starts, stop, inverse_temperatures=self.inverse_temperatures)
        return replace(fit, restart_kinds=self.kinds)

    def refit(self, model, data, form: Form, fit: Any, n_threads: int = 1, stop: Stop | None = None) -> Fit:
        """The best fit of another form, from the starts of a fit and from where it ended, its `statistics`."""
        ascent = self.method.ascent(model, data, form, n_threads)
        last = self.method.statistics_to_start_from(self.method.resumed(fit))

        def starts(stage: Ascent) -> np.ndarray:
            return np.column_stack([last, self._statistics(stage)])

        if self.explore:
            return self._explored(ascent, starts, self.n_starts + 1, stop)
        return self._best(ascent, self.method.eased(model, data, form, starts(ascent), n_threads), stop)

    def run_optima(self, model, data, fit: Fit, n_threads: int = 1) -> np.ndarray:
        """Different optima of a VB fit run to their ends, the best first, for chains to start from.

        Returns
        -------
        statistics : ndarray of shape (n_cells, n_optima)
            The best, and those that end within few steps and may have a part of the posterior worth a chain.
        """
        if not self.explore or fit.optima.shape[1] == 1:
            return fit.optima[:, :_MAX_OFFERED]
        ascent = self.method.ascent(model, data, VB, n_threads)
        limits = {**self.limits, "max_iter": _N_STEPS_OF_OPTIMA}
        result = run(ascent, fit.optima[:, 1:], **limits)
        best = Contender(fit.optima[:, 0], 0, objective=fit.objective, to_come=0.0)
        others = contenders_of(result, [best] * len(result.objective), self.method.solutions(ascent))
        optima = different([best, *(each for each in others if each.has_ended)])
        return np.stack([each.statistics for each in modes(optima, optima[0], _MAX_OFFERED)], axis=1)

    def _explored(self, ascent: Ascent, starts: Callable[[Any], np.ndarray], n_starts: int, stop: Stop | None) -> Fit:
        fit = explored(self.method, ascent, starts, n_starts, limits=self.limits, seed=self.seed, stop=stop)
        return self.method.finalize(ascent, fit, stop=stop, limits=self.limits)

    def learned_prior(
        self,
        model,
        data,
        fit: Fit,
        *,
        n_threads: int = 1,
        stop: Stop | None = None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> tuple[Fit, Any]:
        """The fit, and the model, under the strengths of its prior that raise the bound most [Beal (2.79)].

        Strengths and runs take turns until the bound gains less than `tol`.

        Parameters
        ----------
        model, data
            As they were fitted.
        fit : Fit
            By VB.
        n_threads : int
        stop : callable, optional
            As in `skvbem.vbem.fit.best_of`.
        stopped : callable
            Whether a run was asked to stop, so that no other should follow.
        """

        learned = model
        for _ in range(_MAX_TURNS):
            if stopped():
                break
            learned = self.method.strengthened(learned, model, fit.statistics)
            start = self.method.resumed(fit)[:, None]
            better = self._best(self.method.ascent(learned, data, VB, n_threads), start, stop)
            gain = better.objective - fit.objective
            fit = continued(fit, better)
            if gain < max(self.limits["tol"], 1e-12 * abs(fit.objective)):
                break
        return fit, learned

    def _statistics(self, ascent: Ascent) -> np.ndarray:
        return self.starts(ascent) if callable(self.starts) else self.starts

    def _best(self, ascent: Ascent, starts: np.ndarray, stop: Stop | None, **options) -> Fit:
        counts = self.method.solutions(ascent)
        fit = best_of(ascent, starts, stop=stop, counts=counts, **options, **self.limits)
        return self.method.finalize(ascent, fit, stop=stop, limits=self.limits)
