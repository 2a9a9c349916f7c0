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

from skvbem.errors import TooLargeError
from skvbem.graphs.dag import DAG
from skvbem.search.strategies.exact.best_dag import (
    LocalScores,
    all_local_scores,
    best_of_sets,
    best_of_subsets,
    log_odds_of_families,
    without_bit,
)
from skvbem.spaces.rules import EdgeRules

#: Nodes of the largest sum: time grows threefold with each.
MAX_NODES = 12


@dataclass(frozen=True, eq=False)
class SumOfGraphs:
    """What all graphs over some nodes sum up to.

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
    posterior, prior : SumOfGraphs
    """

    nodes: tuple
    scores: np.ndarray
    log_odds: np.ndarray
    posterior: SumOfGraphs
    prior: SumOfGraphs

    @property
    def edges(self) -> np.ndarray:
        """Posterior probability of each edge, (parent, child)."""
        return self.posterior.edges

    def log_probability(self, dag: DAG) -> float:
        """ln of the posterior probability of a graph; the nodes of the sum are among its own."""
        return self._log_weight(self.scores, dag) - self.posterior.log_total

    def log_evidence(self, dag: DAG, score: float) -> float:
        """ln p(y), averaged over all graphs under the prior, from the evidence of one of them, nats."""
        log_prior = self._log_weight(self.log_odds, dag) - self.prior.log_total
        return score + log_prior - self.log_probability(dag)

    def _log_weight(self, of_families: np.ndarray, dag: DAG) -> float:
        total = 0.0
        for k, node in enumerate(self.nodes):
            others = self.nodes[:k] + self.nodes[k + 1 :]
            total += of_families[k, sum(1 << others.index(parent) for parent in dag.parents(node))]
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
        If there are more than `MAX_NODES` nodes.
    """
    n = len(data.nodes)
    if n > MAX_NODES:
        raise TooLargeError(
            f"The sum over all graphs takes up to {MAX_NODES} nodes; there are {n}. The strategy 'exact' finds one."
        )
    scores = np.stack(list(all_local_scores(data, rules, log_odds, inf)))
    of_edges = np.stack([log_odds_of_families(data.nodes, rules, log_odds, k) for k in range(n)])
    return GraphPosterior(tuple(data.nodes), scores, of_edges, summed(scores), summed(of_edges))


def summed(scores: np.ndarray) -> SumOfGraphs:
    """The sum over all graphs from the scores of families, (n_nodes, 2 ** (n_nodes - 1)), -inf where there is none."""
    n = len(scores)
    full = (1 << n) - 1
    scale = best_of_sets(np.stack([best_of_subsets(each.copy()) for each in scores]))
    log_a = np.stack([_log_sums_of_subsets(each) for each in scores]).astype(np.longdouble)
    by_size = np.argsort(np.bitwise_count(np.arange(full + 1)), kind="stable").tolist()
    log_scale = np.where(scale > -inf, scale, 0.0).astype(np.longdouble)
    # sums over the graphs of each set, of their scale, and what each is worth to the sum over those of all nodes
    sums, worth = np.zeros(full + 1, np.longdouble), np.zeros(full + 1, np.longdouble)
    sums[0] = worth[full] = 1.0
    with np.errstate(divide="ignore"):
        for ahead in by_size[:-1]:
            if sums[ahead] > 0:
                sets, terms = _terms(ahead, n, log_a, log_scale)
                sums[sets] += sums[ahead] * terms
    if not scale[full] > -inf:
        return SumOfGraphs(-inf, np.full((n, n), np.nan))
    of_sinks = np.zeros(log_a.shape, np.longdouble)
    for ahead in reversed(by_size[:-1]):
        sets, terms = _terms(ahead, n, log_a, log_scale)
        parts = worth[sets] * terms
        worth[ahead] = parts.sum()
        parts *= sums[ahead] / sums[full]
        for node in range(n):
            if not ahead >> node & 1:
                of_sinks[node, without_bit(ahead, node)] = parts[sets >> node & 1 == 1].sum()
    edges = np.zeros((n, n))
    index = np.arange(scores.shape[1])
    for child in range(n):
        others = [k for k in range(n) if k != child]
        for place, parent in enumerate(others):
            with_edge = _log_sums_of_subsets(np.where(index >> place & 1, scores[child], -inf))
            share = np.exp(with_edge - np.where(log_a[child] > -inf, log_a[child], 0.0))
            edges[parent, child] = float((of_sinks[child] * share).sum())
    return SumOfGraphs(float(log_scale[full] + np.log(sums[full])), np.clip(edges, 0.0, 1.0))


def _terms(ahead: int, n: int, log_a: np.ndarray, log_scale: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The sets that some nodes grow to by sinks, and what these weigh, with their signs, of the scales of the sets."""
    free = [k for k in range(n) if not ahead >> k & 1]
    sets, logs, signs = np.array([ahead]), np.zeros(1, np.longdouble), -np.ones(1)
    for node in free:
        sets = np.concatenate([sets, sets | 1 << node])
        logs = np.concatenate([logs, logs + log_a[node, without_bit(ahead, node)]])
        signs = np.concatenate([signs, -signs])
    return sets[1:], signs[1:] * np.exp(logs[1:] + log_scale[ahead] - log_scale[sets[1:]])


def _log_sums_of_subsets(scores: np.ndarray) -> np.ndarray:
    """ln of the sum of the exponentials over the subsets of every set."""
    sums, size = scores.astype(np.longdouble), 1
    while size < len(sums):
        halves = sums.reshape(-1, 2, size)
        np.logaddexp(halves[:, 1], halves[:, 0], out=halves[:, 1])
        size *= 2
    return sums
