r"""The sum over all graphs, and the probabilities of edges, by dynamic programming [KS04; TH09].

Over complete data a graph weighs :math:`\exp \sum_j s(j, \mathrm{pa}(j))`. With A the sum over the families that a node
may have with all parents in a set, the graphs over the nodes S sum up to

.. math::

    A_j(U) = \sum_{P \subseteq U} e^{s(j, P)}, \qquad
    R(S) = \sum_{\emptyset \ne T \subseteq S} (-1)^{|T| + 1} R(S \setminus T) \prod_{j \in T} A_j(S \setminus T) :

T are sinks, and a graph with several is counted for each set of them. Orders of nodes have no say: every graph counts
once. How R of all nodes changes with A is the probability of an edge u -> j,

.. math::

    P(u \to j) = \sum_U \frac{\partial \ln R}{\partial \ln A_j(U)}
                 \frac{\sum_{u \in P \subseteq U} e^{s(j, P)}}{A_j(U)}.

Terms cancel, those of sets S by up to two to the power of their number; sums have 64 bits of mantissa where the machine
has them. They are scaled by the best graph of each set, so that none is out of range.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from math import inf

import numpy as np

from skvbem._kernels import _sum_of_dags
from skvbem.errors import TooLargeError
from skvbem.graphs.dag import DAG
from skvbem.search.families.best_dag import (
    CompleteData,
    LocalScores,
    all_local_scores,
    best_of_sets,
    best_of_subsets,
    log_odds_of_families,
)
from skvbem.search.families.normal_wishart_scores import NormalWishartScores
from skvbem.search.tuning import TUNING
from skvbem.spaces.rules import EdgeRules


@dataclass(frozen=True, eq=False)
class SumOfGraphs:
    """The sum over all graphs of some nodes.

    Parameters
    ----------
    log_total : float
        ln of the sum over graphs, nats; -inf where there is none.
    edges : ndarray of shape (n_nodes, n_nodes)
        Probability of each edge, (parent, child).
    """

    log_total: float
    edges: np.ndarray


@dataclass(frozen=True, eq=False)
class GraphPosterior:
    """The posterior over all graphs of a space.

    Parameters
    ----------
    nodes : tuple
    scores, log_odds : ndarray of shape (n_nodes, 2 ** (n_nodes - 1))
        Of families, masks of the other nodes: scores with the log odds of edges, and these alone; nats.
    posterior : SumOfGraphs
    log_total_of_prior : float
        ln of the sum over graphs of their prior weights, nats.
    measurements : NormalWishartScores or None
        The data, if they are measurements under one Normal-Wishart prior.
    """

    nodes: tuple
    scores: np.ndarray
    log_odds: np.ndarray
    posterior: SumOfGraphs
    log_total_of_prior: float
    measurements: NormalWishartScores | None = None

    @property
    def edges(self) -> np.ndarray:
        """Posterior probability of each edge, (parent, child)."""
        return self.posterior.edges

    def log_probability(self, dag: DAG) -> float:
        """ln of the posterior probability of a graph; the nodes of the sum are among its own."""
        return self._log_weight(self.scores, dag) - self.posterior.log_total

    def log_evidence(self, dag: DAG, score: float) -> float:
        """ln p(y), averaged over all graphs under the prior, from the evidence of one of them, nats."""
        log_prior = self._log_weight(self.log_odds, dag) - self.log_total_of_prior
        return score + log_prior - self.log_probability(dag)

    def _log_weight(self, scores: np.ndarray, dag: DAG) -> float:
        total = 0.0
        for k, node in enumerate(self.nodes):
            others = self.nodes[:k] + self.nodes[k + 1 :]
            total += scores[k, sum(1 << others.index(parent) for parent in dag.parents(node))]
        return float(total)


def graph_posterior(
    data: LocalScores, rules: EdgeRules, log_odds: Mapping[tuple[Hashable, Hashable], float]
) -> GraphPosterior:
    """The posterior over all graphs that obey rules.

    Parameters
    ----------
    data : LocalScores
    rules : EdgeRules
        Over the nodes of the data.
    log_odds : mapping of (parent, child) to float
        What an edge adds to the log prior.

    Raises
    ------
    TooLargeError
        If there are more than `Tuning.max_summed_nodes` nodes.
    """
    n = len(data.nodes)
    if n > TUNING.max_summed_nodes:
        raise TooLargeError(
            f"The sum over all graphs takes up to {TUNING.max_summed_nodes} nodes; there are {n}. The strategy 'exact' "
            "finds one."
        )
    scores = np.stack(list(all_local_scores(data, rules, log_odds, inf)))
    edge_log_odds = np.stack([log_odds_of_families(data.nodes, rules, log_odds, k) for k in range(n)])
    if isinstance(data, CompleteData):  # graphs of tables that are too large have no prior
        edge_log_odds[scores == -inf] = -inf
    log_total_of_prior = _SumOfSets(edge_log_odds).log_total
    measurements = data if isinstance(data, NormalWishartScores) else None
    return GraphPosterior(tuple(data.nodes), scores, edge_log_odds, summed(scores), log_total_of_prior, measurements)


def summed(scores: np.ndarray) -> SumOfGraphs:
    """The sum over all graphs from the scores of families, (n_nodes, 2 ** (n_nodes - 1)), -inf where there is none."""
    n, set_sums = len(scores), _SumOfSets(scores)
    if not set_sums.log_total > -inf:
        return SumOfGraphs(-inf, np.full((n, n), np.nan))
    sink_probabilities, log_a = set_sums.sink_probabilities(), set_sums.log_a
    edges = np.zeros((n, n))
    index = np.arange(scores.shape[1])
    for child in range(n):
        others = [k for k in range(n) if k != child]
        for place, parent in enumerate(others):
            with_edge = log_sums_of_subsets(np.where(index >> place & 1, scores[child], -inf))
            share = np.exp(with_edge - np.where(log_a[child] > -inf, log_a[child], 0.0))
            edges[parent, child] = float((sink_probabilities[child] * share).sum())
    return SumOfGraphs(set_sums.log_total, np.clip(edges, 0.0, 1.0))


def parent_set_probabilities(scores: np.ndarray, child: int) -> np.ndarray:
    """Posterior probabilities of all sets of parents of a node, masks of the others, (2 ** (n_nodes - 1),).

    A set is that of a graph in which the node is a sink of the nodes ahead of it, which hold the set.
    """
    sums = _SumOfSets(scores)
    of_sinks, log_a = sums.sink_probabilities()[child], sums.log_a[child]
    sets = np.arange(scores.shape[1])
    ahead = [np.flatnonzero((sets & mask) == mask) if scores[child, mask] > -inf else sets[:0] for mask in sets]
    parts = [(of_sinks[of] * np.exp(scores[child, mask] - log_a[of])).sum() for mask, of in zip(sets, ahead)]
    return np.clip(np.array(parts, dtype=float), 0.0, 1.0)


def log_total_of(scores: np.ndarray) -> float:
    """ln of the sum over all graphs, nats, from the scores of families as in `summed`; -inf where there is none."""
    return _SumOfSets(scores).log_total


class _SumOfSets:
    """Sums over the graphs of each set of nodes, of the best graph of the set.

    Parameters
    ----------
    scores : ndarray of shape (n_nodes, 2 ** (n_nodes - 1))
        Of families, nats.
    """

    def __init__(self, scores: np.ndarray):
        scale = best_of_sets(np.stack([best_of_subsets(each.copy()) for each in scores]))
        self.log_a = np.stack([log_sums_of_subsets(each) for each in scores])
        self._by_size = np.argsort(np.bitwise_count(np.arange(len(scale))), kind="stable")
        self._log_scale = np.where(scale > -inf, scale, 0.0).astype(np.longdouble)
        self._sums = np.empty(len(scale), np.longdouble)
        _sum_of_dags.sums_of_sets(self._by_size, self.log_a, self._log_scale, self._sums)
        exists = scale[-1] > -inf
        self.log_total = float(self._log_scale[-1] + np.log(self._sums[-1])) if exists else -inf

    def sink_probabilities(self) -> np.ndarray:
        """Shares of graphs in which a node is a sink, by the nodes ahead of it, (n_nodes, 2 ** (n_nodes - 1))."""
        sink_probabilities = np.empty(self.log_a.shape, np.longdouble)
        worth = np.empty(len(self._sums), np.longdouble)
        _sum_of_dags.shares_of_sinks(self._by_size, self.log_a, self._log_scale, self._sums, worth, sink_probabilities)
        return sink_probabilities


def log_sums_of_subsets(scores: np.ndarray) -> np.ndarray:
    """ln of the sum of the exponentials over the subsets of every set."""
    sums = scores.astype(np.longdouble)
    _sum_of_dags.log_sums_of_subsets(sums)
    return sums
