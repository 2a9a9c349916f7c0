"""From starts to one fit, by a plan: annealing, a search or runs to the end, and the prior learned on the way."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, is_dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from skvbem._lazy import cached_property
from skvbem.ascent import Ascent
from skvbem.emissions import Emission
from skvbem.optima.candidates import Candidate, Proposals, begun, candidates_after, different, fit_of, modes
from skvbem.optima.factor_statistics import numbers_of
from skvbem.optima.search import Path, Runs, searched
from skvbem.optima.tuning import EFFORTS, TUNING
from skvbem.vbem.driver import Elimination, run
from skvbem.vbem.fit import Fit, Move, continued
from skvbem.vbem.posteriors import VB, Form

Stop = Callable[[int, float, int, float], bool]


def best_of(
    ascent: Ascent,
    starts: np.ndarray,
    *,
    tol: float,
    max_iter: int,
    accelerate: bool = True,
    inverse_temperatures: Iterable[float] = (),
    stop: Callable[[int, float, int, float], bool] | None = None,
    is_regular: Callable[[np.ndarray], np.ndarray] | None = None,
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
    is_regular : callable of ndarray (n_cells, n_starts), optional
        Tells which points are solutions: of others the best is kept only where there is none.
    """
    starts = np.array(starts, order="C")
    for inverse_temperature in inverse_temperatures:
        starts *= inverse_temperature
        ascent.advance(starts, 1)
    result = run(ascent, starts, tol=tol, max_iter=max_iter, accelerate=accelerate, stop=stop)
    ends = candidates_after(result, begun(starts), is_regular)
    best = max(ends, key=lambda each: each.rank)
    return fit_of(best, [best, *different(ends)[1:]], ends, starts.shape[1])


class FitMethod:
    """Steps, starts, moves and learned priors of one kind of model: the model's part of a fit."""

    @abstractmethod
    def ascent(self, model, data, form: Form, n_threads: int) -> Ascent:
        """Full steps of a model on its data."""

    def warmed_up(self, ascent: Ascent, starts: np.ndarray) -> np.ndarray:
        """Starts (n_cells, n_starts) ready for a run, with statistics of hidden hyperparameters if the form has any."""
        return ascent.model.prior.with_hyperparameters(starts) if ascent.form.prior_share else starts

    def condensed(self, model, data) -> Any:
        """Few rows in place of all, where a model has the same bound with them; else the data as they are."""
        return data

    def stages(self, ascent: Any) -> list[Ascent]:
        """Full steps on samples of the data, the smallest first, on which starts grow up, and last on all data."""
        return [ascent]

    def for_more_rows(self, ascent: Any, statistics: np.ndarray) -> np.ndarray:
        """Statistics (n_starts, n_cells) that a sample has led to, as starts on more rows."""
        return statistics

    def are_alike(self, ascent: Any, one: np.ndarray, other: np.ndarray) -> bool:
        """Statistics (n_cells,) are two points on the way to one optimum."""
        return False

    def n_steps_per_start(self, ascent: Any) -> int:
        """Steps that starts and moves may cost together, for each start, before no more moves are made."""
        return TUNING.n_steps_per_start

    def is_wide(self, ascent: Any) -> bool:
        """Columns are so many that half of the starts, and of proposals, are left behind after two steps."""
        return False

    def moves(self, ascent: Any, statistics: np.ndarray, seed: int, is_brief: bool, n_failed: int) -> Proposals:
        """Proposals that change optima (n_cells, n_optima), the best first; none by default.

        Where the best comes alone, as `is_brief` says, the most promising changes are enough. `n_failed` rounds of all
        changes in a row found nothing better: what is not drawn at random need not be tried again.
        """
        return Proposals([], np.empty((len(statistics), 0)))

    def divisions(self, ascent: Any, statistics: np.ndarray, seed: int, gained: bool) -> Proposals:
        """Proposals that change an optimum (n_cells,) of few rows on more of them; none by default.

        A proposal before may have `gained` there.
        """
        return Proposals([], np.empty((len(statistics), 0)))

    def regular(self, ascent: Any) -> Callable[[np.ndarray], np.ndarray] | None:
        """Tells which of statistics (n_cells, n_lanes) are solutions, (n_lanes,); None where all are."""
        return None

    def finalize(self, ascent: Any, fit: Fit, *, stop: Stop | None, limits: Mapping[str, Any]) -> Fit:
        """The fit once its components stand as their prior means them."""
        return fit

    def with_state(self, ascent: Any, statistics: np.ndarray) -> np.ndarray:
        """Statistics (n_cells, n_lanes), of other data perhaps, and what an ascent keeps behind them, if it does."""
        return statistics

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


class SeveralStarts:
    """Starts of several kinds side by side: statistics (n_cells, n_starts), or what computes them."""

    def __init__(self, *parts: Any):
        self.parts = parts

    @property
    def n_starts(self) -> int:
        """Number of starts."""
        return len(self.kinds)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kind of each."""
        return tuple(kind for part in self.parts for kind in getattr(part, "kinds", ("given",)))

    def __call__(self, ascent: Any) -> np.ndarray:
        """Statistics, (n_cells, n_starts)."""
        return np.concatenate([part(ascent) if callable(part) else part for part in self.parts], axis=1)


@dataclass(frozen=True, eq=False)
class FitPlan:
    """Starts and limits of a fit, by which another form of q(theta) can be fitted in the same way.

    Parameters
    ----------
    method : FitMethod
    seed : tuple of int
        Of random starts, and of what is drawn later where no other seed is given.
    starts : ndarray of shape (n_cells, n_starts) or callable of Ascent
        Expected statistics, or what computes them and knows their number as `n_starts`.
    limits : mapping
        `tol`, `max_iter` and `accelerate` as `skvbem.optima.plan.best_of` takes them.
    inverse_temperatures : tuple of float
        Of annealed steps before a run.
    explore : bool
        Whether starts race, and what wins is moved, rather than that every start is run to the end.
    effort : str
        How much of that there is: a name in `skvbem.optima.tuning.EFFORTS`.
    """

    method: FitMethod
    seed: tuple[int, ...]
    starts: Any
    limits: Mapping[str, Any]
    inverse_temperatures: tuple[float, ...] = ()
    explore: bool = False
    effort: str = "auto"

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
        fit = self._best_of(ascent, stop, self.inverse_temperatures)
        return replace(fit, restart_kinds=self.kinds)

    def refit(self, model, data, form: Form, fit: Any, n_threads: int = 1, stop: Stop | None = None) -> Fit:
        """The best fit of another form, from the starts of a fit and from where it ended, its `statistics`."""
        ascent = self.method.ascent(model, data, form, n_threads)
        last = self.method.statistics_to_start_from(self.method.resumed(fit))
        return self._best_of(ascent, stop, last=last[:, None])

    def run_optima(self, model, data, fit: Fit, n_threads: int = 1) -> np.ndarray:
        """Different optima of a VB fit run to their ends, the best first, for chains to start from.

        Returns
        -------
        statistics : ndarray of shape (n_cells, n_optima)
            The best, and those that end within few steps and may have a part of the posterior worth a chain.
        """
        if not self.explore or fit.optima.shape[1] == 1:
            return fit.optima[:, : TUNING.n_offered]
        ascent = self.method.ascent(model, data, VB, n_threads)
        limits = {**self.limits, "max_iter": TUNING.n_steps_to_end}
        result = run(ascent, self.method.with_state(ascent, fit.optima[:, 1:]), **limits)
        best = Candidate(fit.optima[:, 0], 0, objective=fit.objective, to_come=0.0)
        others = candidates_after(result, [best] * len(result.objective), self.method.regular(ascent))
        optima = different([best, *(each for each in others if each.has_ended)])
        kept = modes(optima, optima[0], TUNING.n_offered)
        return np.stack([each.statistics[: len(fit.optima)] for each in kept], axis=1)

    def _best_of(
        self, ascent: Ascent, stop: Stop | None, annealing: tuple[float, ...] = (), last: np.ndarray | None = None
    ) -> Fit:
        """The best fit from the `last` one (n_cells, 1) and the starts: searched for, or each run to its end."""
        stages = self.method.stages(ascent) if self.explore else [ascent]
        starts = self.starts(stages[0]) if callable(self.starts) else self.starts
        starts = self.method.with_state(stages[0], starts if last is None else np.concatenate([last, starts], axis=1))
        starts = self.method.warmed_up(stages[0], starts)
        if not self.explore:
            return self._best(ascent, starts, stop, annealing)
        fit = Runs(self.method, self.limits, self.seed, stop, EFFORTS[self.effort]).fit(stages, starts)
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

        Strengths and runs alternate until the bound gains less than `tol`.

        Parameters
        ----------
        model, data
            As they were fitted.
        fit : Fit
            By VB.
        n_threads : int
        stop : callable, optional
            As in `skvbem.optima.plan.best_of`.
        stopped : callable
            Whether a run was asked to stop, so that no other should follow.
        """

        learned = model
        for _ in range(TUNING.n_alternations):
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

    def _best(self, ascent: Ascent, starts: np.ndarray, stop: Stop | None, annealing: tuple[float, ...] = ()) -> Fit:
        is_regular = self.method.regular(ascent)
        fit = best_of(ascent, starts, stop=stop, is_regular=is_regular, inverse_temperatures=annealing, **self.limits)
        return self.method.finalize(ascent, fit, stop=stop, limits=self.limits)


# Numbers of components and factors ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Problem:
    """A model whose numbers of components or factors are chosen, its data, and how fits of all such models start.

    Parameters
    ----------
    model : LatentModel
        One of the fewest components that there may be.
    data : object
        As the model compiled them.
    form : Form
        VB.
    plan_of : callable of LatentModel to FitPlan
        Starts, seed and limits of a fit.
    model_of : callable of (Emission, int) to LatentModel
        The model of an emission and so many components.
    moves_of : callable of Problem
        Moves that change numbers: `ComponentMoves`, or `FactorMoves` alone.
    n_threads : int
    stop : callable, optional
        As in `skvbem.vbem.driver.run`.
    stopped : callable
        True once a run was asked to stop, so that no other should follow.
    tell : callable of Move
        Called with every change of numbers that raised the bound.
    """

    model: Any
    data: Any
    form: Form
    plan_of: Callable[[Any], FitPlan]
    model_of: Callable[[Emission, int], Any]
    moves_of: Callable[[Problem], Any]
    n_threads: int = 1
    stop: Stop | None = None
    stopped: Callable[[], bool] = lambda: False
    tell: Callable[[Move], None] = lambda move: None
    _known: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def plan(self) -> FitPlan:
        """Starts and limits of a fit of the model itself."""
        return self.plan_of(self.model)

    def fitted(self, plan: FitPlan, model: Any) -> Fit:
        """The best fit of a model by a plan."""
        return plan.run(model, self.data, self.form, self.n_threads, self.stop)

    # Candidates with other numbers ------------------------------------------------------------------------------------

    @property
    def is_fast(self) -> bool:
        """Nothing is moved: numbers grow by divisions until none raises the bound."""
        return not EFFORTS[self.plan.effort].rounds

    @property
    def nearly(self) -> dict[str, Any]:
        """Limits of runs that are to be compared."""
        least = TUNING.nearly if self.is_fast else TUNING.different
        return {**self.plan.limits, "tol": max(self.plan.limits["tol"], least)}

    def ascent(self, model: Any) -> Any:
        """Full steps of a model on the data, which are condensed, and distinct ones found, once for all models."""
        if "ascent" in self._known and self._known["ascent"].model is model:
            return self._known["ascent"]
        data = self.data
        if model.n_components == 1:
            if "condensed" not in self._known:
                self._known["condensed"] = self.plan.method.condensed(model, data)
            data = self._known["condensed"]
        ascent: Any = self.plan.method.ascent(model, data, VB, self.n_threads)
        if data is self.data:
            if "rows" not in self._known:
                self._known["rows"] = ascent.rows
            ascent.rows = self._known["rows"]
        self._known["ascent"] = ascent
        return ascent

    def reached(self, model: Any, starts: np.ndarray, moves: tuple[Move, ...], least: float = -np.inf) -> Candidate:
        """The best end of some starts (n_cells, n_starts) that moves led to, or where none can pass `least` nats."""
        elimination = Elimination(TUNING.n_steps_alone, TUNING.reach_of_sizes, least)
        result = run(self.ascent(model), starts, stop=self.stop, elimination=elimination, **self.nearly)
        return self.ended(model, result.statistics[:, result.best].copy(), float(result.objective[result.best]), moves)

    def first_start(self, model: Any) -> np.ndarray:
        """The first of a model's new starts, (n_cells, 1): with one component, all of them are this one."""
        starts = self.plan_of(model).starts
        if is_dataclass(starts) and not isinstance(starts, type):
            starts = replace(starts, n_starts=1)  # others are not asked
        return (starts(self.ascent(model)) if callable(starts) else starts)[:, :1]

    def anew(
        self, model: Any, moves: tuple[Move, ...] = (Move("start", -np.inf),), *, is_simple: bool = False
    ) -> Candidate:
        """A model fitted from new starts, once; they race, and are not moved where that is `is_simple`."""
        plan = replace(self.plan_of(model), limits=self.nearly)
        if is_simple and plan.effort == "auto":
            plan = replace(plan, effort="fast")
        key = "anew", model.n_components, numbers_of(model.emission, model.n_components), plan.effort
        if key not in self._known:
            fit = self.fitted(plan, model)
            self._known[key] = self.ended(model, fit.statistics, fit.objective, ())
        return replace(self._known[key], moves=moves)

    def finished(self, best: Candidate, *, anew: bool) -> tuple[FitPlan, Fit]:
        """The best fit of a candidate's numbers, from where it is and, if so said, from new starts."""
        plan = self.plan_of(best.model)
        if not anew:
            return self._run_on(plan, best.model, best.statistics)
        fit = plan.refit(best.model, self.data, VB, best, self.n_threads, self.stop)
        if not fit.converged and fit.n_iter < plan.limits["max_iter"]:  # left behind when it was about to win
            fit = continued(fit, self._run_on(plan, best.model, fit.statistics)[1])
        return plan, fit

    def _run_on(self, plan: FitPlan, model: Any, statistics: np.ndarray) -> tuple[FitPlan, Fit]:
        plan = FitPlan(plan.method, plan.seed, statistics[:, None], plan.limits)
        return plan, self.fitted(plan, model)

    @staticmethod
    def ended(model: Any, statistics: np.ndarray, objective: float, moves: tuple[Move, ...]) -> Candidate:
        """A candidate that was run nearly to its end."""
        return Candidate(statistics, 0, moves, objective, to_come=0.0, converged=True, model=model)


class Sizes:
    """A search for the numbers of components and factors.

    Parameters
    ----------
    problem : Problem
    moves : ComponentMoves or FactorMoves
        With the candidate that is `first`, ends of moves that are `reached_from` the best, and `starts_anew`.
    """

    plan: FitPlan
    fit: Fit

    def __init__(self, problem: Problem, moves: Any):
        self.problem, self.moves, self.archive = problem, moves, Path(problem.tell)
        self._candidates, self._ended = self._reached(), np.empty(0)

    def advance(self, live: list[Candidate]) -> list[Candidate]:
        """Candidates as they are: they were run nearly to their ends."""
        return live

    def has_ended(self, each: Candidate) -> bool:
        """Each has."""
        return each.converged

    def propose(self, live: list[Candidate]) -> list[Candidate]:
        """The next model that a move from the best leads to; none where none is better."""
        return list(islice(self._candidates, 1))

    def _reached(self) -> Iterator[Candidate]:
        while True:
            best = self.archive.best
            for each in self.moves.reached_from(best):
                yield each
                if self.archive.best is not best:
                    break
            else:
                if self._ended is best.statistics:  # new starts of as many were tried, and no move is better
                    return
                self.plan, self.fit = self.problem.finished(best, anew=self.moves.starts_anew(best))
                ended = self.problem.ended(best.model, self.fit.statistics, self.fit.objective, best.after("start"))
                if self.problem.stopped() or not best.is_worse_than(ended):
                    return
                self._ended = ended.statistics
                yield ended


def best_fit(problem: Problem) -> tuple[Any, FitPlan, Fit, list[Move]]:
    """The model, the plan of its fit, the fit, and the changes of numbers of components or factors that led there.

    Changes of numbers are moves of the same search (see `skvbem.optima.search`). Its candidates are models, each run
    nearly to its end; the first that raises the bound is taken. Where none does, new starts of the numbers found must
    agree.
    """
    sizes = Sizes(problem, problem.moves_of(problem))
    (best, *_) = searched(sizes, [sizes.moves.first()])
    return best.model, sizes.plan, sizes.fit, list(best.moves)
