"""How many factors: moves that raise the bound, a factor born or deleted in one component [Ghahramani & Beal 2000].

Every constant is in the bound, so that fits of different numbers of factors compare. A factor is not judged by how
large its loadings are: where it is needless, the bound rises without it, by a number of nats for each column.

Where there are several components, fits from starts with the same number of factors in all of them come first: none,
one, two, until two in a row are no better. From the best of them on, each component has a number of its own: factors
are born where a component's columns vary together most beyond what it says, and deleted where they matter least. Where
neither raises the bound, two moves in a row are tried: two births, or a deletion and a birth elsewhere. The search ends
where each of these is worse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from skvbem.emissions import Emission
from skvbem.emissions.factor.numbers import (
    NewFactor,
    Numbers,
    least_relevant,
    most_factors,
    new_factors,
    numbers_of,
    with_factor,
    with_factors_kept,
    with_numbers,
)
from skvbem.models.labels.distinct_rows import DistinctRows
from skvbem.models.labels.model import EmissionAscent, LabelModel
from skvbem.vbem import posteriors
from skvbem.vbem.driver import Race, run
from skvbem.vbem.fit import Fit, FitMethod, FitPlan, continued

# Nats to which moves are run, and by which a bound must be higher: runs that end closer met one optimum.
NEARLY, MIN_RISE_IN_NATS = 0.01, 0.03
# Where no number changes, a bound is higher only by so many nats: steps still to come bring less.
_MIN_RISE_OF_SAME_NUMBERS = 0.3
# Births that follow a move that raised nothing.
_N_SECOND = 4


class Move(NamedTuple):
    """A move that raised the bound.

    Parameters
    ----------
    kind : str
        "start"; "split" or "join" (or drop) of components; "birth" or "delete" of a factor; "order" of components that
        changed places; or several of these in turn, such as "split, join".
    n_components : int
        After it.
    lower_bound : float
        After it, total nats.
    n_factors : tuple of tuple of int
        After it, of each group whose factors are counted, those of each component.
    """

    kind: str
    n_components: int
    lower_bound: float
    n_factors: Numbers = ()


@dataclass(frozen=True, eq=False)
class State:
    """A model of some numbers of components and factors, nearly fitted.

    Parameters
    ----------
    model : LabelModel
    statistics : ndarray of shape (n_cells,)
    bound : float
        There, total nats.
    kind : str
        The moves that led here from the state before.
    """

    model: Any
    statistics: np.ndarray
    bound: float
    kind: str

    @property
    def numbers(self) -> Numbers:
        """Factors of each component, of each group whose factors are counted."""
        return numbers_of(self.model.emission, self.model.n_components)

    @property
    def as_move(self) -> Move:
        """What is told of it."""
        return Move(self.kind, self.model.n_components, self.bound, self.numbers)

    @property
    def least_better(self) -> float:
        """The bound that another state must reach to be better, nats."""
        return self.bound + max(MIN_RISE_IN_NATS, 1e-9 * abs(self.bound))

    def is_worse_than(self, other: State) -> bool:
        """Whether another state is better; of the same numbers of factors by what no further step would bring."""
        is_same = bool(self.numbers) and self.numbers == other.numbers
        return other.bound > max(self.least_better, self.bound + is_same * _MIN_RISE_OF_SAME_NUMBERS)

    def after(self, kind: str) -> str:
        """The moves that led here, and one more."""
        return f"{self.kind}, {kind}" if self.kind else kind


@dataclass(frozen=True, eq=False)
class Search:
    """How states are reached: from where fits start, how far they are run, and who is told.

    Parameters
    ----------
    method : FitMethod
    data : LabeledRows
    plan : callable of LabelModel to FitPlan
        From starts.
    limits : mapping
        As `skvbem.vbem.fit.best_of` takes them.
    n_threads : int
    stop : callable, optional
        As in `skvbem.vbem.driver.run`.
    stopped : callable
        Whether a run was asked to stop, so that no other should follow.
    tell : callable of Move
        Called with every move that raised the bound.
    """

    method: FitMethod
    data: Any
    plan: Callable[[Any], FitPlan]
    limits: Mapping[str, Any]
    n_threads: int = 1
    stop: Callable[[int, float, int, float], bool] | None = None
    stopped: Callable[[], bool] = lambda: False
    tell: Callable[[Move], None] = lambda move: None
    _kept: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    def ascent(self, model: Any) -> EmissionAscent:
        """Full steps of a model on the data, which are condensed, and distinct ones found, once for all models."""
        is_one = model.n_components == 1
        if is_one and "condensed" not in self._kept:
            self._kept["condensed"] = model.condensed(self.data) if hasattr(model, "condensed") else self.data
        data = self._kept["condensed"] if is_one else self.data
        ascent: Any = self.method.ascent(model, data, posteriors.VB, self.n_threads)
        if data is self.data:
            if "rows" not in self._kept:
                self._kept["rows"] = ascent.rows
            ascent.rows = self._kept["rows"]
        return ascent

    @property
    def nearly(self) -> dict[str, Any]:
        """Limits of runs that are to be compared."""
        return {**self.limits, "tol": max(self.limits["tol"], NEARLY)}

    def reached(self, model: Any, starts: np.ndarray, kind: str, least: float = -np.inf) -> State:
        """Where the best of some starts (n_cells, n_starts) ends; none that can come to no bound of `least` goes on."""
        ascent = self.ascent(model)
        result = run(ascent, starts, stop=self.stop, race=Race(least=least), **self.nearly)
        return State(model, result.statistics[:, result.best].copy(), float(result.objective[result.best]), kind)

    def first_start(self, model: Any) -> np.ndarray:
        """The first of a model's new starts, (n_cells, 1): with one component, all of them are this one."""
        starts = self.plan(model).starts
        return (starts(self.ascent(model)) if callable(starts) else starts)[:, :1]

    def anew(self, model: Any) -> State:
        """A model fitted from new starts."""
        plan = replace(self.plan(model), limits=self.nearly)
        fit = plan.run(model, self.data, posteriors.VB, self.n_threads, self.stop)
        return State(model, fit.statistics, fit.objective, "start")

    def finished(self, state: State, *, anew: bool) -> tuple[FitPlan, Fit]:
        """The best fit of a state's size, from where it is and, if so said, from new starts."""
        plan = self.plan(state.model)
        if not anew:
            return self._run_on(plan, state)
        fit = plan.refit(state.model, self.data, posteriors.VB, state, self.n_threads, self.stop)
        if not fit.converged and fit.n_iter < self.limits["max_iter"]:  # left by a race that it was about to win
            fit = continued(fit, self._run_on(plan, replace(state, statistics=fit.statistics))[1])
        return plan, fit

    def _run_on(self, plan: FitPlan, state: State) -> tuple[FitPlan, Fit]:
        """The fit that a state leads to, without new starts."""
        plan = FitPlan(plan.method, plan.seed, state.statistics[:, None], self.limits)
        return plan, plan.run(state.model, self.data, posteriors.VB, self.n_threads, self.stop)

    def run(
        self, states: list[State], moves_from: Callable[[State], Iterator[State]], *, anew: Callable[[State], bool]
    ) -> tuple[Any, FitPlan, Fit, list[Move]]:
        """The model where no move raises the bound any more, how it was fitted, and the moves that raised it.

        Parameters
        ----------
        states : list of State
            Each better than the one before; moves go on from the last.
        moves_from : callable of State
            What can be reached from a state, one after the other.
        anew : callable of State
            Whether a state is to be compared with new starts of its size, too.
        """
        moves, state = [each.as_move for each in states], replace(states[-1], kind="")
        while True:
            better = next(filter(state.is_worse_than, moves_from(state)), None)
            if better is None:
                plan, fit = self.finished(state, anew=anew(state))
                better = State(state.model, fit.statistics, fit.objective, "start")
                if self.stopped() or not state.is_worse_than(better):
                    return state.model, plan, fit, moves
            moves.append(better.as_move)
            self.tell(moves[-1])
            state = replace(better, kind="")


class FactorNumbers:
    """A search for the numbers of factors of a model of some number of components.

    Parameters
    ----------
    model_of : callable of Emission to LabelModel
        The model of so many factors.
    search : Search
    """

    def __init__(self, model_of: Callable[[Emission], LabelModel], search: Search):
        self.model_of, self.search = model_of, search

    def run(self, emission: Emission) -> tuple[Any, FitPlan, Fit, list[Move]]:
        """The model where no move raises the bound any more, how it was fitted, and the moves that raised it."""
        return self.search.run(self.alike(emission), self.moves, anew=lambda state: state.model.n_components > 1)

    def alike(self, emission: Emission) -> list[State]:
        """Fits from starts with the same number of factors in all components, each better than the one before.

        Of one component moves know all that starts could say: the first is all.
        """
        most = most_factors(emission)
        better = [self._alike(emission, (0,) * len(most))]
        if better[0].model.n_components == 1:
            return better
        for _ in range(len(most)):  # numbers of one group after the other
            for group in range(len(most)):
                self._raise(better, group, most[group], emission)
        return better

    def _raise(self, better: list[State], group: int, most: int, emission: Emission) -> None:
        """Add the fits that are better, by more factors of one group in all components."""
        numbers, n_worse = [of_group[0] for of_group in better[-1].numbers], 0
        while numbers[group] < most and n_worse < 2 and not self.search.stopped():
            numbers[group] += 1
            reached = self._alike(emission, tuple(numbers))
            n_worse += 1
            if reached.bound > better[-1].least_better:
                better.append(reached)
                n_worse = 0

    def _alike(self, emission: Emission, numbers: tuple[int, ...]) -> State:
        """The best fit from starts with these numbers of factors in all components."""
        n = self.model_of(emission).n_components
        return self.search.anew(self.model_of(with_numbers(emission, tuple((of_group,) * n for of_group in numbers))))

    # Moves ------------------------------------------------------------------------------------------------------------

    def moves(self, state: State) -> Iterator[State]:
        """What can be reached from a state, cheap and likely moves first."""
        yield from self._ordered(state)
        tried = []
        for reached in self.births_and_deletions(state):
            yield reached
            tried.append(reached)
        yield from self.second_births(tried)

    def _ordered(self, state: State) -> Iterator[State]:
        """The components as the prior means them, their numbers of factors with them."""
        order = state.model.preferred_order(state.statistics)
        if order is None or np.array_equal(order, np.arange(len(order))):
            return
        numbers = tuple(tuple(of_group[k] for k in order) for of_group in state.numbers)
        model = self.model_of(with_numbers(state.model.emission, numbers))
        start = state.model.relabeled(state.statistics, order)
        yield self.search.reached(model, start[:, None], state.after("order"))

    def births_and_deletions(self, state: State) -> Iterator[State]:
        """One factor more, or less, in one component."""
        yield from self._births(state)
        yield from self._deletions(state)

    def second_births(self, tried: Iterable[State]) -> Iterator[State]:
        """A factor more after moves that raised nothing: the best of those that gave factors, and took them."""
        best = sorted(tried, key=lambda each: -each.bound)
        more, less = ([each for each in best if each.kind.endswith(kind)] for kind in ("birth", "delete"))
        for reached in (*more[:_N_SECOND], *less[:_N_SECOND]):
            yield from self._births(reached, most=_N_SECOND)

    def pruned(self, state: State) -> State:
        """A state without the factors that are needless there, which deletions of one after the other find."""
        while not self.search.stopped():
            better = next((each for each in self._deletions(state) if each.bound > state.least_better), None)
            if better is None:
                return state
            state = better
        return state

    def _deletions(self, state: State) -> Iterator[State]:
        """A factor less, that whose loadings are least in its component; the least of all components first."""
        model = state.model
        for group, component, factor in least_relevant(model.emission, self._natural(state), model.n_components):
            if self.search.stopped():
                return
            numbers = self._changed(state.numbers, group, component, -1)
            less = self.model_of(with_numbers(model.emission, numbers))

            def kept(g: int, k: int, gone: tuple = (group, component, factor)) -> list[int]:
                return [s for s in range(state.numbers[g][k]) if (g, k, s) != gone]

            first = model.first_emission_cell
            of_emission = with_factors_kept(state.statistics[first:], model.emission, less.emission, numbers, kept)
            start = np.concatenate([state.statistics[:first], of_emission])
            yield self.search.reached(less, start[:, None], state.after("delete"))

    def _births(self, state: State, most: int | None = None) -> Iterator[State]:
        """A factor more, where columns vary together most beyond what a component says."""
        for factor in self._new_factors(state)[:most]:
            if self.search.stopped():
                return
            numbers = self._changed(state.numbers, factor.group, factor.component, 1)
            more = self.model_of(with_numbers(state.model.emission, numbers))
            first, natural = state.model.first_emission_cell, self._expected_natural(state)
            emissions = state.model.emission, more.emission
            of_emission = with_factor(natural[first:], *emissions, numbers, factor)
            start = self.search.ascent(more).expect(np.concatenate([natural[:first], of_emission])[:, None])
            if more.n_components == 1:
                start = np.concatenate([start, self.search.first_start(more)], axis=1)
            yield self.search.reached(more, start, state.after("birth"))

    def _new_factors(self, state: State) -> list[NewFactor]:
        model, natural = state.model, self._expected_natural(state)
        ascent = self.search.ascent(model)
        rows: DistinctRows = ascent.rows
        if not len(rows):
            return []
        expected_rows = model.expected_rows(natural, ascent.data, rows)
        of_blocks = [expected_rows[:, at] for at in rows.slices]
        return new_factors(model.emission, natural[model.first_emission_cell :], rows.blocks, of_blocks)

    @staticmethod
    def _changed(numbers: Numbers, group: int, component: int, by: int) -> Numbers:
        changed = [list(of_group) for of_group in numbers]
        changed[group][component] += by
        return tuple(map(tuple, changed))

    @staticmethod
    def _expected_natural(state: State) -> np.ndarray:
        return (state.model.prior + state.statistics).expected_natural()

    def _natural(self, state: State) -> np.ndarray:
        return self._expected_natural(state)[state.model.first_emission_cell :]
