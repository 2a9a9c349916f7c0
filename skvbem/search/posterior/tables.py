r"""Edge probabilities and averages by a posterior over structures, the arbitrary names of latents made to agree.

The name of a latent means nothing by itself. Edges of latents are counted after each structure's latents were matched,
those with equal numbers of states, to the latents of the best structure that have the most neighbors in common with
them. Which observed nodes share a hidden parent, and how many each has, needs no names.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import logsumexp
from sklearn.base import BaseEstimator
from sklearn.utils.parallel import Parallel, delayed

from skvbem._arguments import listed
from skvbem._docstrings import share_texts
from skvbem.graphs.dag import DAG
from skvbem.graphs.essential import EssentialGraph
from skvbem.graphs.undirected import UndirectedGraph
from skvbem.search.execution.jobs import Job
from skvbem.search.families.hidden_scale import PosteriorOverGraphs
from skvbem.search.tuning import TUNING
from skvbem.spaces.covariates import selection
from skvbem.spaces.rules import EdgeRules
from skvbem.spaces.settings import value_key
from skvbem.tables import LabeledTable


@dataclass(frozen=True)
class HiddenStructure:
    """A structure with the numbers of states of its latents."""

    dag: DAG | UndirectedGraph
    latents: Mapping[Hashable, int]

    def sides(self, node: Hashable) -> tuple[tuple, ...]:
        """The children and the parents of a node, or, without directions, its neighbors."""
        if isinstance(self.dag, UndirectedGraph):
            return (self.dag.neighbors(node),)
        return self.dag.children(node), self.dag.parents(node)

    def above(self, node: Hashable) -> tuple:
        """The parents of a node, or, without directions, its neighbors."""
        return self.sides(node)[-1]


def matched(structure: HiddenStructure, best: HiddenStructure) -> DAG | UndirectedGraph:
    """The structure with its latents named like those of the best that they are most alike.

    Latents that match none keep their names, with a prime where another bears it.
    """
    if not structure.latents:
        return structure.dag
    new: dict = {}
    for n_states in set(structure.latents.values()):
        mine = [name for name, size in structure.latents.items() if size == n_states]
        theirs = [name for name, size in best.latents.items() if size == n_states]
        if not theirs:
            continue
        common = np.array([[_n_common(structure, a, best, b) for b in theirs] for a in mine])
        new.update((mine[i], theirs[j]) for i, j in zip(*linear_sum_assignment(common, maximize=True)))
    taken = {*new.values(), *(node for node in structure.dag.nodes if node not in structure.latents)}
    for name in structure.latents:
        if name not in new:
            fresh = name
            while fresh in taken:
                fresh = f"{fresh}'"
            new[name] = fresh
            taken.add(fresh)
    return structure.dag.relabel(new)


def _n_common(one: HiddenStructure, a, other: HiddenStructure, b) -> int:
    """Number of neighbors that two latents share, children and parents apart, less those of one alone."""
    score = 0
    for mine, theirs in zip(one.sides(a), other.sides(b)):
        score += 2 * len(set(mine) & set(theirs)) - len(set(mine) ^ set(theirs))
    return score


def tables_of(
    structure_of: Callable[[Mapping], HiddenStructure],
    best: HiddenStructure,
    settings: Sequence[Mapping],
    weights: np.ndarray,
    graphs: PosteriorOverGraphs | None,
) -> dict:
    """Probabilities of edges and of hidden parents by the weights of candidates, by name of an attribute.

    Parameters
    ----------
    structure_of : callable of a setting
    best : HiddenStructure
    settings : sequence of mapping
    weights : ndarray of shape (n_candidates,)
    graphs : PosteriorOverGraphs or None
        The sum over all graphs of the space, if nothing is hidden and it is known.
    """
    if graphs is None:
        kept = [k for k in range(len(weights)) if weights[k] > TUNING.negligible]
        structures, weights = [structure_of(settings[k]) for k in kept], weights[kept]
        edges = edge_probabilities(structures, weights, best)
    else:
        structures, weights = [best], np.ones(1)
        edges = edge_table(best.dag.nodes, graphs.nodes, graphs.edges)
    return {
        "best_structure_": best.dag,
        "edge_probabilities_": edges,
        "shared_parent_probabilities_": shared_parent_probabilities(structures, weights),
        "hidden_parent_counts_": hidden_parent_counts(structures, weights),
    }


def covariate_probabilities(settings: Sequence[Mapping], weights: np.ndarray) -> dict[str, LabeledTable]:
    """Probabilities that covariates are selected, by name of an attribute; none if settings select no covariates."""
    chosen = [[selection(value) for value in setting.values()] for setting in settings]
    names = [name for of_setting in chosen for each in of_setting if each is not None for name in each]
    if not names:
        return {}
    first = next(value for value in settings[0].values() if selection(value) is not None)
    order = [*dict.fromkeys([*listed(first.covariates), *names])]
    is_in = np.array([[any(name in (each or ()) for each in of_setting) for name in order] for of_setting in chosen])
    return {"covariate_probabilities_": LabeledTable(weights @ is_in, ("covariate",), (np.array(order, dtype=object),))}


def without_numbers(published: Mapping) -> dict:
    """The tables of `tables_of` with NaN for all probabilities: nothing is known of graphs that were not reached."""
    return {
        name: LabeledTable(np.full(each.values.shape, np.nan), each.axes, each.levels)
        if isinstance(each, LabeledTable)
        else each
        for name, each in published.items()
    }


@dataclass(frozen=True, eq=False)
class EquivalenceClass:
    """Candidates that no data tell apart: directed graphs that allow the same distributions.

    Parameters
    ----------
    graph : EssentialGraph or UndirectedGraph
        What they have in common. An arrow is an edge on whose direction data, or rules of the space, decide.
    probability : float
        Of all together, by the posterior, or by the weights of scores where there is none.
    candidates : tuple of int
        Their positions in `cv_results_`, the most probable first.
    """

    graph: EssentialGraph | UndirectedGraph
    probability: float
    candidates: tuple[int, ...]


def equivalence_classes(
    structure_of: Callable[[Mapping], HiddenStructure],
    settings: Sequence[Mapping],
    weights: np.ndarray,
    rules: EdgeRules | None,
    targets: Sequence[Collection] = (),
) -> list[EquivalenceClass]:
    """The classes of candidates with weights, the most probable first; see `EquivalenceClass`.

    Directions that the rules of all candidates fix are arrows. So are those of edges of which one node was set without
    the other, in rows of one of the targets: members of a class share these.
    """

    def was_parted(edge: tuple) -> bool:
        return any(len({*edge}.intersection(target)) == 1 for target in targets)

    members: dict = {}
    for k in np.argsort(-weights, kind="stable").tolist():
        if weights[k] > TUNING.negligible:
            hidden, setting = structure_of(settings[k]), settings[k]
            dag = hidden.dag
            parted = [] if isinstance(dag, UndirectedGraph) else list(filter(was_parted, dag.edges))
            graph = dag if isinstance(dag, UndirectedGraph) else dag.essential(parted)
            rest = {name: value for name, value in setting.items() if name not in ("structure", "latents")}
            kinds = dict(hidden.latents)
            key = (graph.canonical(kinds) if kinds else graph, frozenset(kinds.items()), value_key(rest))
            if key not in members and rules is not None and isinstance(dag, DAG):
                graph = dag.essential([*parted, *filter(rules.fix, dag.edges)])
            members.setdefault(key, (graph, []))[1].append(k)
    classes = [EquivalenceClass(graph, float(weights[ks].sum()), tuple(ks)) for graph, ks in members.values()]
    return sorted(classes, key=lambda each: -each.probability)


def edge_table(nodes: Sequence, among: Sequence, edges: np.ndarray) -> LabeledTable:
    """P(parent -> child) of nodes, from that of some `among` them that have edges at all."""
    place = [nodes.index(node) for node in among]
    probability = np.zeros((len(nodes), len(nodes)))
    probability[np.ix_(place, place)] = edges
    return LabeledTable(probability, ("parent", "child"), (_names(nodes), _names(nodes)))


def edge_probabilities(
    structures: Sequence[HiddenStructure], weights: np.ndarray, best: HiddenStructure
) -> LabeledTable:
    """P(parent -> child), axes "parent" and "child", latents named like those of the best structure."""
    dags = [matched(structure, best) for structure in structures]
    nodes = list(dict.fromkeys(node for dag in [best.dag, *dags] for node in dag.nodes))
    position = {node: k for k, node in enumerate(nodes)}
    probability = np.zeros((len(nodes), len(nodes)))
    for dag, weight in zip(dags, weights):
        for parent, child in dag.edges:
            probability[position[parent], position[child]] += weight
            if isinstance(dag, UndirectedGraph):
                probability[position[child], position[parent]] += weight
    return LabeledTable(probability, ("parent", "child"), (_names(nodes), _names(nodes)))


def shared_parent_probabilities(structures: Sequence[HiddenStructure], weights: np.ndarray) -> LabeledTable:
    """P(two observed nodes share a hidden parent), axes "node" and "other"; the diagonal is P(it has one)."""
    nodes = _observed(structures)
    probability = np.zeros((len(nodes), len(nodes)))
    for structure, weight in zip(structures, weights):
        has = _has_parent(structure, nodes)
        probability += weight * ((has @ has.T) > 0)
    return LabeledTable(probability, ("node", "other"), (_names(nodes), _names(nodes)))


def hidden_parent_counts(structures: Sequence[HiddenStructure], weights: np.ndarray) -> LabeledTable:
    """P(an observed node has so many hidden parents), axes "node" and "n_hidden_parents"."""
    nodes = _observed(structures)
    most = max(len(structure.latents) for structure in structures)
    probability = np.zeros((len(nodes), most + 1))
    for structure, weight in zip(structures, weights):
        probability[np.arange(len(nodes)), _has_parent(structure, nodes).sum(axis=1)] += weight
    return LabeledTable(probability, ("node", "n_hidden_parents"), (_names(nodes), np.arange(most + 1)))


def _observed(structures: Sequence[HiddenStructure]) -> list:
    return list(dict.fromkeys(node for each in structures for node in each.dag.nodes if node not in each.latents))


def _has_parent(structure: HiddenStructure, nodes: Sequence) -> np.ndarray:
    """True if each of the nodes has each of the latents as a parent, (n_nodes, n_latents) of 0 and 1."""
    if not structure.latents:
        return np.zeros((len(nodes), 0), dtype=int)
    known = set(structure.dag.nodes)
    return np.array(
        [[int(node in known and latent in structure.above(node)) for latent in structure.latents] for node in nodes],
        dtype=int,
    ).reshape(len(nodes), len(structure.latents))


def _names(nodes: Sequence) -> np.ndarray:
    names = np.empty(len(nodes), dtype=object)
    names[:] = nodes
    return names


@dataclass(frozen=True, eq=False)
@share_texts
class Average:
    """Fitted models and their posterior probabilities, by which predictions are averaged.

    Parameters
    ----------
    estimators : tuple of estimator
        The most probable first.
    weights : ndarray of shape (n_models,)
        Sum to one.
    left_out : float
        Posterior probability of the models that are not in the average.
    """

    estimators: tuple[BaseEstimator, ...]
    weights: np.ndarray
    left_out: float

    def score_samples(self, X) -> np.ndarray:
        """ln of the average predictive probability of each row, nats.

        %(X -> ndarray of shape (n_samples,))s
        """
        scores = np.stack([estimator.score_samples(X) for estimator in self.estimators])
        return logsumexp(scores, axis=0, b=self.weights[:, None])


def average_over(job: Job, settings: Sequence[Mapping], posterior: np.ndarray, n_jobs: int | None) -> Average:
    """The fitted models that hold all but 0.1 % of the posterior (at most 100)."""
    order = np.argsort(-posterior, kind="stable")
    n_kept = min(
        int(np.searchsorted(np.cumsum(posterior[order]), 1.0 - TUNING.improbable)) + 1, TUNING.n_listed, len(order)
    )
    kept = order[:n_kept]
    weights = posterior[kept]
    fitted = Parallel(n_jobs=n_jobs)(delayed(_fitted)(job, settings[k]) for k in kept)
    return Average(tuple(fitted), weights / weights.sum(), float(1.0 - weights.sum()))


def _fitted(job: Job, setting: Mapping) -> BaseEstimator:
    return job.fit(job.candidate_of(setting))
