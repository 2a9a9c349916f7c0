"""How many components: moves that raise the bound, splits, joins, new starts [Beal ch. 4, Ueda et al. 2000].

A component is split into two halves of it that compete for its rows (see `skvbem.models.labels.moves`): what they gain
says which component to split, and their statistics are where the larger mixture starts. Statistics are sums over rows,
so to join two components is to add theirs. Moves of one size race; the best is nearly at its optimum before its bound
counts. As many components are split at once as raises the bound: all that promise a gain, or the better half of them.

Where no move raises the bound, two moves in a row are tried, and starts from nothing with one component less, as many,
and one more, so that the search ends where each of these is worse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from skvbem.estimators.labels.fitting import LabelStarts
from skvbem.estimators.mixture.fitting import MixtureMethod
from skvbem.models.labels.distinct_rows import DistinctRows
from skvbem.models.labels.moves import Recombinations
from skvbem.models.mixture.components import Components
from skvbem.models.mixture.model import Mixture, MixtureAscent, MixtureData
from skvbem.models.mixture.starts import starts_of
from skvbem.vbem import posteriors
from skvbem.vbem.driver import Race, run
from skvbem.vbem.fit import Fit, FitPlan

# Components that a round splits one by one, pairs it joins, and components it drops.
_N_SPLITS, _N_JOINS, _N_DEATHS = 4, 6, 3
# Components of which moves know better than starts from nothing.
_MAX_FROM_NOTHING = 20
# Nats to which moves are run, and by which a bound must be higher: runs that end closer met one optimum.
_NEARLY, _MIN_RISE_IN_NATS = 0.01, 0.03


class Move(NamedTuple):
    """A move that raised the bound.

    Parameters
    ----------
    kind : str
        "start", "split", "join" (or drop), or several of these in turn, such as "split, join".
    n_components : int
        After it.
    lower_bound : float
        After it, total nats.
    """

    kind: str
    n_components: int
    lower_bound: float


@dataclass(frozen=True, eq=False)
class State:
    """A mixture of some number of components, nearly fitted.

    Parameters
    ----------
    model : Mixture
    statistics : ndarray of shape (n_cells,)
    bound : float
        There, total nats.
    kind : str
        The moves that led here from the state before.
    """

    model: Mixture
    statistics: np.ndarray
    bound: float
    kind: str

    @property
    def components(self) -> Components:
        """Statistics of the mixture by component."""
        return Components.of(self.model, self.statistics)


@dataclass(frozen=True, eq=False)
class Parts:
    """A state taken apart: what its rows say of each component, and halves of them.

    Parameters
    ----------
    of : Recombinations
    gain : ndarray of shape (n_components,)
        The bound that the division of each component promises, nats.
    halves : list of Components
        The two of each component.
    """

    of: Recombinations
    gain: np.ndarray
    halves: list[Components]

    @property
    def whole(self) -> Components:
        """Statistics of rows by component."""
        return Components(self.of.counts, self.of.whole[self.of.cells], self.of.whole[self.of.shared_cells])

    def with_hyperparameters(self, components: Components) -> Components:
        """Statistics of rows with those of hidden hyperparameters, of which every component has the same."""
        each, shared = self.of.of_hyperparameters[self.of.cells[0]], self.of.of_hyperparameters[self.of.shared_cells]
        return replace(components, per_component=components.per_component + each, shared=components.shared + shared)

    def promising(self) -> list[int]:
        """Components whose division promises a gain, the largest first."""
        order = np.argsort(-self.gain, kind="stable").tolist()
        return [k for k in order if self.gain[k] > 0]


class Growth:
    """A search for the number of components.

    Parameters
    ----------
    model_of : callable of int to Mixture
        The mixture of so many components.
    data : MixtureData
        With row hashes.
    n_init : int
        Starts from nothing, of each number of components that they are tried with.
    init : str
        Their kind; see `skvbem.models.mixture.starts.starts_of`.
    seed : tuple of int
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

    def __init__(
        self,
        model_of: Callable[[int], Mixture],
        data: MixtureData,
        *,
        n_init: int,
        init: str,
        seed: tuple[int, ...],
        limits: Mapping[str, Any],
        n_threads: int = 1,
        stop: Callable[[int, float], bool] | None = None,
        stopped: Callable[[], bool] = lambda: False,
        tell: Callable[[Move], None] = lambda move: None,
    ):
        self.model_of, self.data = model_of, data
        self.n_init, self.init, self.seed, self.limits = n_init, init, seed, limits
        self.n_threads, self.stop, self.stopped = n_threads, stop, stopped
        self.tell = tell
        self._nearly = {**limits, "tol": max(limits["tol"], _NEARLY)}
        assert data.row_hashes is not None
        self.rows = DistinctRows.of(model_of(1).emission, data)
        self.most = len(np.unique(data.row_hashes(slice(None))[data.weight > 0]))

    def run(self) -> tuple[Mixture, FitPlan, Fit, list[Move]]:
        """The mixture where no move raises the bound any more, how it was fitted, and the moves that raised it."""
        state = replace(self._anew(1), kind="")
        moves = [Move("start", 1, state.bound)]
        while True:
            least = state.bound + max(_MIN_RISE_IN_NATS, 1e-9 * abs(state.bound))
            better = next((reached for reached in self._moves(state) if reached.bound > least), None)
            if better is None:
                plan, fit = self._finished(state)
                if self.stopped() or fit.objective <= least:
                    return state.model, plan, fit, moves
                better = State(state.model, fit.statistics, fit.objective, "start")
            moves.append(Move(better.kind, better.model.n_components, better.bound))
            self.tell(moves[-1])
            state = replace(better, kind="")

    def _moves(self, state: State) -> Iterator[State]:
        """What can be reached from a state, cheap and likely moves first."""
        n = state.model.n_components
        yield from self._without_empty(state)
        parts = self._parts(state)
        yield from self._many_split(state, parts)
        more = list(self._one_split(state, parts))
        yield from more
        less = list(self._joined(state, parts))
        yield from less
        for reached in more:
            divided = self._parts(reached)
            yield from self._joined(reached, divided)
            yield from self._one_split(reached, divided)
        for reached in less:
            yield from self._one_split(reached, self._parts(reached))
        for k in (n + 1, n - 1) if n <= _MAX_FROM_NOTHING else ():
            if 1 <= k <= self.most and not self.stopped():
                yield self._anew(k)

    def _parts(self, state: State) -> Parts:
        """A state taken apart."""
        model, statistics = state.model, state.statistics
        natural = (model.prior + statistics).expected_natural()
        seed = int(np.random.default_rng([*self.seed, model.n_components]).integers(2**63))
        expected_rows = model.expected_rows(natural, self.data, self.rows)
        parts = Recombinations(model, self.rows, statistics, natural, expected_rows, seed)
        halves = parts.halves(expected_rows)
        best, n = halves.gain.argmax(axis=0), np.arange(model.n_components)
        price = (model.prior.n_free_parameters / len(n) + 1) / 2 * np.log(np.maximum(parts.counts, 2.0))
        gain = np.where(parts.counts < 2.0, -np.inf, halves.gain[best, n] - price)
        nothing = np.zeros(len(parts.shared_cells))
        each = [Components(halves.counts[t, :, k], halves.statistics[t, :, k], nothing) for t, k in zip(best, n)]
        return Parts(parts, gain, each)

    def _many_split(self, state: State, parts: Parts) -> Iterator[State]:
        """Components split together: all that promise a gain, or the better half of these, or half of that."""
        promising = parts.promising()
        while len(promising) > 1:
            yield from self._reached(state, [self._divided(parts, promising)], "split")
            promising = promising[: len(promising) // 2]

    def _one_split(self, state: State, parts: Parts) -> Iterator[State]:
        """One component split, the best one of those that promise most."""
        order = np.argsort(-parts.gain, kind="stable")[:_N_SPLITS].tolist()
        best = [self._divided(parts, [k]) for k in order if np.isfinite(parts.gain[k])]
        if best:
            yield from self._reached(state, best, "split")

    @staticmethod
    def _divided(parts: Parts, which: list[int]) -> Components:
        return parts.with_hyperparameters(parts.whole.divided({k: parts.halves[k] for k in which}))

    def _joined(self, state: State, parts: Parts) -> Iterator[State]:
        """The mixture with two components joined, or one dropped: the best one of those tried."""
        if state.model.n_components == 1:
            return
        whole = parts.whole
        fewer = [whole.joined(one, other) for _, other, one in parts.of.joins()[:_N_JOINS]]
        fewer += [whole.without(np.array([k])) for _, k in parts.of.drops()[:_N_DEATHS]]
        yield from self._reached(state, [parts.with_hyperparameters(each) for each in fewer], "join")

    def _without_empty(self, state: State) -> Iterator[State]:
        """All components of less than one row dropped, if there are several."""
        small = np.flatnonzero(state.components.counts < 1.0)
        if 1 < len(small) < state.model.n_components:
            yield from self._reached(state, [state.components.without(small)], "join")

    def _reached(self, state: State, starts: list[Components], kind: str) -> Iterator[State]:
        """Where the best of some mixtures of one size ends."""
        if len(starts[0]) > self.most or self.stopped():
            return
        model = self.model_of(len(starts[0]))
        columns = np.stack([start.statistics(model) for start in starts], axis=1)
        result = run(self._ascent(model), columns, stop=self.stop, race=Race(), **self._nearly)
        kind = f"{state.kind}, {kind}" if state.kind else kind
        yield State(model, result.statistics[:, result.best].copy(), float(result.objective[result.best]), kind)

    def _ascent(self, model: Mixture) -> MixtureAscent:
        ascent = MixtureAscent(model, self.data, posteriors.VB, self.n_threads)
        ascent.rows = self.rows
        return ascent

    def _plan(self, limits: Mapping[str, Any]) -> FitPlan:
        starts = LabelStarts(self.init, self.n_init, self.seed, starts_of)
        return FitPlan(MixtureMethod(), self.seed, starts, limits, explore=True)

    def _anew(self, n_components: int) -> State:
        """A mixture fitted from new starts."""
        model = self.model_of(n_components)
        fit = self._plan(self._nearly).run(model, self.data, posteriors.VB, self.n_threads, self.stop)
        return State(model, fit.statistics, fit.objective, "start")

    def _finished(self, state: State) -> tuple[FitPlan, Fit]:
        """The best fit of a state's size, from where it is and, unless components are many, from new starts."""
        if state.model.n_components > _MAX_FROM_NOTHING:
            plan = FitPlan(MixtureMethod(), self.seed, state.statistics[:, None], self.limits)
            return plan, plan.run(state.model, self.data, posteriors.VB, self.n_threads, self.stop)
        plan = self._plan(self.limits)
        return plan, plan.refit(state.model, self.data, posteriors.VB, state, self.n_threads, self.stop)
