"""Objectives that climbs go through: settings that have to be tried, or graphs whose scores are sums over families."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections import deque
from collections.abc import Collection, Hashable, Iterator, Mapping
from dataclasses import dataclass
from heapq import nlargest
from itertools import count

import numpy as np

from skvbem.graphs.dag import DAG
from skvbem.search.families.decomposable import NotDecomposable
from skvbem.search.families.family_scores import rounding
from skvbem.search.families.graph_walk import EdgeLogOdds, FamilyGraphs, Graph, after_move
from skvbem.search.families.hidden_scale import HiddenScaleScores
from skvbem.search.families.mixed_graph_walk import MixedGraphs
from skvbem.search.strategies.base import Problem, gains
from skvbem.search.strategies.starts import random_walk, setting_to_start_from
from skvbem.search.tuning import TUNING
from skvbem.spaces.settings import canonical, distinct
from skvbem.spaces.structures import StructureSpace


@dataclass(frozen=True, eq=False)
class ClimbState:
    """A setting with its log posterior, up to a constant.

    Parameters
    ----------
    key : hashable
        Equal for settings that are one model.
    value : float
    graph : Graph or None
        Where scores are sums over families.
    given : mapping or None
        The setting, where there is no graph to make it of.
    """

    key: Hashable
    value: float
    graph: Graph | None = None
    given: Mapping | None = None

    @property
    def setting(self) -> dict:
        """The setting."""
        return {"structure": self.graph.dag} if self.graph is not None else dict(self.given or {})


class Objective(ABC):
    """Settings of a space with their log posteriors, and the best ones near by.

    Parameters
    ----------
    problem : Problem
    """

    def __init__(self, problem: Problem):
        self.problem = problem

    @abstractmethod
    def at(self, setting: Mapping) -> ClimbState:
        """The state of a setting."""

    @abstractmethod
    def best_near(self, state: ClimbState, without: Collection[Hashable]) -> ClimbState | None:
        """The best neighbor whose key is not in `without`, the last one in order among equals; None if all failed."""

    def conclude(self) -> None:  # noqa: B027
        """Try what was valued without being tried, as far as it is to be part of the result."""

    def climb(self, start: ClimbState, n_tabu: int) -> ClimbState:
        """The best state of a climb that goes from each state to its best neighbor.

        Parameters
        ----------
        start : ClimbState
        n_tabu : int
            Settings visited last that are not returned to, and steps that may go by without a new best one.
        """
        here = best = start
        lately, n_waited = deque([start.key], maxlen=max(n_tabu, 1)), 0
        while not self.problem.is_over and n_waited <= n_tabu:
            near = self.best_near(here, lately)
            if near is None:
                break
            here, n_waited = near, n_waited + 1
            lately.append(here.key)
            if gains(here.value, best.value):
                best, n_waited = here, 0
        return best


class TriedObjective(Objective):
    """An objective for which every setting has to be tried for its score.

    Parameters
    ----------
    problem : Problem
    """

    def __init__(self, problem: Problem):
        super().__init__(problem)
        self._values: dict[Hashable, float] = {}

    def at(self, setting: Mapping) -> ClimbState:
        """The state of a setting, which is tried."""
        key = canonical(setting)
        return ClimbState(key, self._valued({key: setting})[0], given=setting)

    def best_near(self, state: ClimbState, without: Collection[Hashable]) -> ClimbState | None:
        """The best neighbor; all are tried together."""
        near = distinct(self.problem.until_over(self.problem.space.neighbors(state.setting)))
        near = {key: setting for key, setting in near.items() if key not in without}
        keys, values = list(near), self._valued(near)
        k = next(_best_first(values), None)
        return None if k is None else ClimbState(keys[k], float(values[k]), given=near[keys[k]])

    def _valued(self, settings: Mapping[Hashable, Mapping]) -> np.ndarray:
        """The log posterior of settings, by their keys; those not known are tried together."""
        new = {key: setting for key, setting in settings.items() if key not in self._values}
        self._values.update(zip(new, self.problem.log_posteriors(list(new.values())).tolist()))
        return np.array([self._values[key] for key in settings], dtype=float)


class FamilyObjective(Objective):
    """An objective over graphs whose scores are sums over families: a neighbor is valued by one difference or two.

    Parameters
    ----------
    problem : Problem
    graphs : FamilyGraphs
    """

    def __init__(self, problem: Problem, graphs: FamilyGraphs):
        super().__init__(problem)
        self.graphs = graphs
        self._met: dict[tuple[int, ...], float] = {}
        #: Graphs by their parents, moves that lead to their best neighbors, and values of these that are not yet met.
        self._near: list[tuple[tuple[int, ...], tuple[np.ndarray, ...], np.ndarray]] = []
        self._least_listed, self._n_near = -np.inf, 0
        self.n_valued = 0

    @classmethod
    def of(cls, problem: Problem) -> FamilyObjective | None:
        """The objective of a problem; None if its scores are no such sums, or its prior is no sum over edges."""
        space = problem.space
        if not isinstance(space, StructureSpace) or space.latents:
            return None
        odds = EdgeLogOdds.of(problem.prior, space.rules)
        if odds is None or odds.rules != space.rules:  # edges that the prior demands are found by trying
            return None
        try:
            scores = problem.job.family_scores(space.first, problem.ranking)
        except NotDecomposable:
            return None
        if isinstance(scores, HiddenScaleScores):
            return cls(problem, MixedGraphs(scores, odds))
        return cls(problem, FamilyGraphs(scores, odds))

    def at(self, setting: Mapping) -> ClimbState:
        """The state of a setting; the first one is tried, since no limit of time holds before that."""
        if not self._met:
            self.problem.scores([setting])
        return self.state(self.graphs.at(DAG.coerce(setting["structure"])).parents)

    def state(self, parents: tuple[int, ...]) -> ClimbState:
        """The state of a graph, given by the parents of every node as masks of bits."""
        graph = self.graphs.graph(parents)
        self._met[parents] = graph.value
        return ClimbState(parents, graph.value, graph=graph)

    def parents_of(self, state: ClimbState) -> tuple[int, ...]:
        """The parents of every node of a state's graph, masks of bits."""
        return _graph_of(state).parents

    def best_near(self, state: ClimbState, without: Collection[Hashable]) -> ClimbState | None:
        """The best neighbor; no others are made graphs of."""
        graph, values = _graph_of(state), self._valued_near(state)
        for k in _best_first(values):
            after = graph.after(k)
            if after not in without:
                moved = graph.moved(k, after)
                return ClimbState(after, moved.value, graph=moved)
        return None

    def _valued_near(self, state: ClimbState) -> np.ndarray:
        """The values of all neighbors, the best of which are remembered."""
        graph = _graph_of(state)
        values = graph.value + graph.gains
        self.n_valued += len(values)
        listed = np.flatnonzero(values > self._least_listed)
        if len(listed) > TUNING.n_listed:
            listed = listed[np.argpartition(-values[listed], TUNING.n_listed)[: TUNING.n_listed]]
        self._near.append((graph.parents, tuple(column[listed] for column in graph.moves[:3]), values[listed]))
        self._n_near += len(listed)
        if self._n_near > 50 * TUNING.n_listed:
            self._best(TUNING.n_listed)
        return values

    def climb_perturbed(self, best: ClimbState, n: int) -> ClimbState:
        """The best state of climbs from graphs near the best so far (iterated local search, Lourenço et al. 2003).

        By turns such a graph is one of the class of the best so far, and of what is left of it without some edges.

        Parameters
        ----------
        best : ClimbState
        n : int
            Climbs one after another that lead no higher, after which no more are made.
        """
        n_idle = 0
        self._best(TUNING.n_listed)  # from here on few neighbors are worth listing
        for k in self.problem.until_over(count()):
            if n_idle == n:
                break
            share = k % 2 * TUNING.dropped_share
            away = self.graphs.perturbed(self.parents_of(best), share, self.problem.rng)
            summit = self.climb(self.state(away), 0)
            is_higher = gains(summit.value, best.value)
            best, n_idle = (summit, 0) if is_higher else (best, n_idle + 1)
        return best

    def explore(self) -> None:
        """Value all neighbors of the best graphs met, so that what is nearly as good is known."""
        done: set[Hashable] = set()
        while new := [parents for parents, _ in self._best(TUNING.n_examined) if parents not in done]:
            for parents in self.problem.until_over(new):
                self._valued_near(self.state(parents))
            if self.problem.is_over:
                break
            done.update(new)

    def conclude(self) -> None:
        """Try the best graphs that were valued."""
        self.problem.list_known([{"structure": self.graphs.dag(parents)} for parents, _ in self._best(TUNING.n_listed)])

    def _best(self, n: int) -> list[tuple[tuple[int, ...], float]]:
        """The best graphs met and their values, and from here on no others than the best are remembered."""
        n_kept = max(n, TUNING.n_listed)
        met = dict(nlargest(n_kept, self._met.items(), key=lambda graph: graph[1]))
        values = np.concatenate([np.empty(0), *(near for _, _, near in self._near)])
        owners = np.repeat(np.arange(len(self._near)), [len(near) for _, _, near in self._near])
        moves = [np.concatenate(columns) for columns in zip(*(moves for _, moves, _ in self._near))]
        lowest_first = sorted(met.values())
        for place in np.argsort(-values, kind="stable").tolist():
            value = float(values[place])
            # graphs that were met before and are lower than this one give way to it
            n_lower = bisect_left(lowest_first, value)
            if len(met) - n_lower >= n_kept:
                break
            met.setdefault(after_move(self._near[owners[place]][0], *(column[place].item() for column in moves)), value)
        ranked = nlargest(n_kept, met.items(), key=lambda graph: graph[1])
        self._met, self._near, self._n_near = dict(ranked), [], 0
        self._least_listed = ranked[-1][1] if len(ranked) == n_kept else -np.inf
        return ranked[:n]


def objective_of(problem: Problem) -> Objective:
    """The objective of a problem: of sums over families where its scores are that, else one of settings to be tried."""
    return FamilyObjective.of(problem) or TriedObjective(problem)


def climb_anew(
    objective: Objective, start, n_tabu: int, n_restarts: int, n_kicks: int, n_perturbations: int = 0
) -> None:
    """Climb from a start, then again and again from where a random walk leads away from the best state so far.

    Parameters
    ----------
    objective : Objective
    start : {"emptiest", "random"} or mapping
    n_tabu : int
        See `Objective.climb`.
    n_restarts : int
    n_kicks : int
        Moves of a walk.
    n_perturbations : int, default=0
        Climbs in a row from graphs drawn near the best one that lead no higher, where scores are sums over families.
    """
    problem = objective.problem
    best = objective.climb(objective.at(setting_to_start_from(start, problem.space, problem.rng)), n_tabu)
    if isinstance(objective, FamilyObjective):
        best = objective.climb_perturbed(best, n_perturbations)
    for _ in range(n_restarts):
        if problem.is_over:
            break
        away = objective.at(random_walk(problem.space, best.setting, n_kicks, problem.rng))
        summit = objective.climb(away, n_tabu)
        if gains(summit.value, best.value):
            best = summit
    objective.conclude()


def _graph_of(state: ClimbState) -> Graph:
    assert state.graph is not None
    return state.graph


def _best_first(values: np.ndarray) -> Iterator[int]:
    """Positions of the values, highest first; of those equal but for rounding the last; -inf is none.

    Moves that add an edge come first in a space: of equal ones that is made which removes or turns one.
    """
    values = np.array(values, dtype=float)
    while len(values):
        top = float(values.max())
        if top == -np.inf:
            return
        k = int(np.flatnonzero(values >= top - rounding(top))[-1])
        yield k
        values[k] = -np.inf
