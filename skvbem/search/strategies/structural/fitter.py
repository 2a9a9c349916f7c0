"""States of a structural search: settings with a q(x) each, the bounds it gives on neighbors, and fits from there."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from skvbem.fitting.kind import find_kind, kind_of
from skvbem.graphs.dag import DAG
from skvbem.models.mixed_network.completed_numbers import CompletedNumbers
from skvbem.models.network.completed_rows import CompletedRows
from skvbem.search.execution.jobs import EvidenceJob, Job
from skvbem.search.execution.readings import shallow_candidate
from skvbem.search.families.completed_families import CompletedFamilies
from skvbem.search.families.decomposable import NEEDS_EVIDENCE, rest
from skvbem.search.families.family_scores import FamilyScores
from skvbem.search.families.graph_walk import EdgeLogOdds, FamilyGraphs
from skvbem.search.strategies.base import Problem
from skvbem.search.tuning import TUNING
from skvbem.spaces import Space
from skvbem.spaces.settings import canonical
from skvbem.spaces.structures import StructureSpace


@dataclass(frozen=True, eq=False)
class StructuralState:
    """A setting and a q(x) for it, from which structural VBEM goes on.

    Parameters
    ----------
    setting : mapping
    dag : DAG
    latents : mapping
        Latent -> number of states.
    scores : FamilyScores
        Of the q(x).
    bound : float
        What the q(x) gives, plus the log prior; nats.
    value : float
        The lower bound of the fit that made the q(x), plus the log prior; -inf without a fit.
    """

    setting: Mapping
    dag: DAG
    latents: Mapping[Hashable, int]
    scores: FamilyScores
    bound: float
    value: float = -np.inf


def why_no_bounds(job: Job, space: Space) -> str:
    """Why no q(x) bounds what a search scores, as what a strategy needs and what to take instead; empty if one does."""
    if (
        not isinstance(job, EvidenceJob)
        or job.readings.common is None
        or not hasattr(find_kind(job.estimator), "complete")
    ):
        return f"{NEEDS_EVIDENCE}. Take 'greedy' for others."
    if not hasattr(find_kind(job.estimator), "network"):
        has_latents = not isinstance(space, StructureSpace) or space.latents
        if has_latents or not kind_of(job.estimator).has_sums(job.estimator, job.readings.common):
            return (
                "needs a space of graphs without latents, and columns of categories and measurements that no one set, "
                "for a network of numbers. Take 'greedy' for others."
            )
        return ""
    if getattr(job.estimator, "inference", "exact") != "exact":
        return "needs inference='exact': it completes rows by q(x). Take 'greedy'."
    if job.estimator.ties:
        return "needs a table of its own for every node, without 'ties'. Take 'greedy' or 'exhaustive'."
    if job.estimator.learn_prior:
        return (
            "needs learn_prior=False: one q(x) bounds the evidence under one prior. Take 'greedy', or a grid of priors."
        )
    return ""


class Fitter:
    """Bounds settings by the q(x) of others, and fits them from there.

    Parameters
    ----------
    problem : Problem

    Attributes
    ----------
    met : dict
        By key: the value of a setting once fitted, and the setting.
    n_bounded : int
        Bounds computed.

    Raises
    ------
    ValueError
        If the estimator has no q(x) to give.
    """

    def __init__(self, problem: Problem):
        job, space = problem.job, problem.space
        if why := why_no_bounds(job, space):
            raise ValueError(f"The strategy 'structural' {why}")
        readings: Any = job.readings
        self.problem, self._template, self._reading = problem, job.estimator, readings.common
        self.met: dict[Hashable, tuple[float, Mapping]] = {}
        self.n_bounded = 0
        self._odds: EdgeLogOdds | None = None
        self._graphs: FamilyGraphs | None = None
        if isinstance(space, StructureSpace) and not (problem.prior.labeled and space.latents):
            self._odds, self._rules_of_space = EdgeLogOdds.of(problem.prior, space.rules), space.rules
        # by the rest of a setting, where nothing is hidden: q(x) is then the same for every graph
        self._certain: dict[Hashable, FamilyScores] = {}

    def fitted(self, setting: Mapping, completed: CompletedRows | None = None) -> StructuralState:
        """A setting fitted, from a q(x) if one is given; where nothing is hidden there is nothing to fit."""
        estimator, log_prior, key = self._estimator(setting), self._log_prior(setting), rest(setting)
        dag, latents = _graph_of(estimator, self._reading)
        scores = None if latents else self._certain.get(key)
        if scores is None:
            value, completed = kind_of(estimator).complete(estimator, self._reading, completed)
            scores = _scores_of(estimator, self._reading, completed)
            bound = scores.bound(dag)
            if not latents and completed.is_certain:
                self._certain[key] = scores
        else:
            value = bound = scores.bound(dag)
        self.met[canonical(setting)] = value + log_prior, setting
        return StructuralState(setting, dag, latents, scores, bound + log_prior, value + log_prior)

    def is_new(self, state: StructuralState) -> bool:
        """True if the setting was not fitted yet."""
        return canonical(state.setting) not in self.met

    def best_fit(self, states: Iterable[StructuralState]) -> StructuralState | None:
        """The best of those states whose settings are new, once fitted from their q(x); None if there is none."""
        fits = [state for state in map(self._refitted, filter(self.is_new, states)) if state is not None]
        return max(fits, key=lambda state: state.value, default=None)

    def best_first(self, here: StructuralState) -> Iterator[StructuralState]:
        """The neighbors of a state, bounded by its q(x) as far as they can be, the highest bound first."""
        if self._odds is not None and self._rules_of_space.allow(here.dag):
            yield from self._moved(here, self._odds)
            return
        settings = list(self.problem.space.neighbors(here.setting))
        self.n_bounded += len(settings)
        bounded = [state for setting in settings if (state := self._bounded(here, setting)) is not None]
        yield from sorted(bounded, key=lambda state: -state.bound)

    def _moved(self, here: StructuralState, odds: EdgeLogOdds) -> Iterator[StructuralState]:
        """Neighbors by moves of an edge, with their bounds: no graph is made before it is asked for."""
        graphs = self._graphs_of(here.scores, odds)
        graph = graphs.at(here.dag)
        self.n_bounded += len(graph.gains)
        for k in np.argsort(-graph.gains, kind="stable").tolist():
            setting = {**here.setting, "structure": graphs.dag(graph.after(k))}
            if setting in self.problem.space and (state := self._bounded(here, setting)) is not None:
                yield state

    def _graphs_of(self, scores: FamilyScores, odds: EdgeLogOdds) -> FamilyGraphs:
        """The graphs that a q(x) bounds; those of the last one are remembered."""
        if self._graphs is None or self._graphs.scores is not scores:
            self._graphs = FamilyGraphs(scores, odds)
        return self._graphs

    def _bounded(self, here: StructuralState, setting: Mapping) -> StructuralState | None:
        """A setting with the bound that the q(x) of a state gives; None if it has none."""
        estimator, log_prior = self._estimator(setting), self._log_prior(setting)
        if log_prior == -np.inf:
            return None
        try:
            (dag, latents), scores = _graph_of(estimator, self._reading), here.scores
            if latents != here.latents or rest(setting) != rest(here.setting):
                scores_of = partial(_scores_of, estimator, self._reading)
                scores = scores_of(transferred_rows(here.scores.completed, here.latents, dag, latents, scores_of))
            return StructuralState(setting, dag, latents, scores, scores.bound(dag) + log_prior)
        except ValueError:  # no such network, or one too large; it is left out
            return None

    def _refitted(self, state: StructuralState) -> StructuralState | None:
        try:
            return self.fitted(state.setting, state.scores.completed)
        except ValueError:
            self.met[canonical(state.setting)] = -np.inf, state.setting
            return None

    def _log_prior(self, setting: Mapping) -> float:
        return float(self.problem.log_priors([setting])[0])

    def _estimator(self, setting: Mapping):
        return shallow_candidate(self._template, setting)


def _graph_of(estimator: Any, reading: Any) -> tuple[DAG, dict]:
    """The directed graph that is fitted to a reading, and the numbers of states of its latents."""
    kind = kind_of(estimator)
    if not hasattr(kind, "network"):
        return kind.graph(estimator, reading)
    network = kind.network(estimator, reading)
    return network.dag, network.latents


def _scores_of(estimator: Any, reading: Any, completed: Any) -> Any:
    """Scores of families under completed rows and the prior of an estimator."""
    if isinstance(completed, CompletedNumbers):
        return CompletedFamilies(completed, estimator, reading)
    network = kind_of(estimator).network(estimator, reading)
    return FamilyScores(completed, network, max_table_cells=network.max_table_cells)


def transferred_rows(
    completed: CompletedRows,
    latents: Iterable[Hashable],
    dag: DAG,
    wanted: Mapping[Hashable, int],
    scores: Callable[[CompletedRows], FamilyScores],
) -> CompletedRows:
    """Rows completed for a network with some latents, from those of a network with others.

    Latents that go are summed out. Of states to be merged those are taken, two at a time, that leave the highest bound;
    a state that is split, or a new latent, follows the node near it that gives the highest one.

    Parameters
    ----------
    completed : CompletedRows
    latents : iterable of hashable
        The latents it has.
    dag : DAG
        The network it is for.
    wanted : mapping
        Latent of that network -> number of states.
    scores : callable
        What makes bounds of completed rows.
    """
    for latent in latents:
        if latent not in wanted:
            completed = completed.without(latent)
    for latent, n_states in wanted.items():
        if latent not in completed.cardinalities:
            completed = completed.with_constant(latent)
        while completed.cardinalities[latent] != n_states:
            more = completed.cardinalities[latent] < n_states
            ways = _splits(completed, latent, dag) if more else _merges(completed, latent)
            completed = max(ways, key=lambda way: _bound_near(scores(way), latent, dag, completed.cardinalities))
    return completed


def _merges(completed: CompletedRows, latent: Hashable) -> Iterator[CompletedRows]:
    for kept, given_up in combinations(range(completed.cardinalities[latent]), 2):
        yield completed.merged(latent, kept, given_up)


def _splits(completed: CompletedRows, latent: Hashable, dag: DAG) -> Iterator[CompletedRows]:
    """Completed rows with a state split by a state of a node that tells of the latent, for each pair of these."""
    near = dict.fromkeys([*dag.children(latent), *dag.parents(latent)])
    told = [node for node in near if completed.cardinalities.get(node, 1) > 1]
    for node in told or [node for node in completed.cardinalities if node != latent]:
        codes = completed.codes[completed.place[node]]
        values = range(completed.cardinalities[node])
        for value in values if len(values) > 2 else values[:1]:
            share = np.where(codes == value, TUNING.split_share, 1.0 - TUNING.split_share)
            for state in range(completed.cardinalities[latent]):
                yield completed.split(latent, state, share)


def _bound_near(scores: FamilyScores, latent: Hashable, dag: DAG, known: Mapping[Hashable, int]) -> float:
    """The part of the bound that the states of a latent change; latents still to come have no say."""
    families = [(node, [p for p in dag.parents(node) if p in known]) for node in (latent, *dag.children(latent))]
    return scores.constant + sum(scores.family(node, parents) for node, parents in families if node in known)
