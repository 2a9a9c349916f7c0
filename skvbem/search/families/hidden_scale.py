r"""Scores of graphs over measurements whose prior has a hidden scale: mixtures of sums over families.

Given the scale t of :math:`T = t I` the score of a graph is a sum over families
(`skvbem.search.families.normal_wishart_scores`). With t summed out it is none,

.. math:: p(Y \mid G) = \sum_k w_k \prod_v \mathrm{score}_k(v, \mathrm{pa}(v)),

with weights and scales of `hidden_scales`. So whatever is a sum over graphs is one for each scale, mixed. For all
scales at once a set of columns has its determinants from one decomposition: if the products have eigenvalues
:math:`\lambda_i`, then :math:`\ln|t I + R| = \sum_i \ln(t + \lambda_i)`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import comb, inf, log, pi
from typing import Self, TypeAlias

import numpy as np

from skvbem._lazy import cached_property
from skvbem._numerics import log_rising, log_sum_exp
from skvbem.graphs.dag import DAG
from skvbem.search.families.best_dag import (
    all_local_scores,
    best_dag,
    best_of_sets,
    best_of_subsets,
    check_tables,
    log_odds_of_families,
    most_parents,
)
from skvbem.search.families.normal_wishart_scores import NormalWishartScores, hidden_scales
from skvbem.search.families.sum_of_dags import GraphPosterior, log_total_of, summed
from skvbem.search.tuning import TUNING
from skvbem.spaces.rules import EdgeRules

# Operations of some nanoseconds that a set of one column takes at all scales, by hand; more go by their square.
_OPERATIONS = 200.0
# Doubles of matrices that are decomposed together: 8 MB.
_AT_ONCE = 2**20
# ln of the share of a scale that changes nothing: 1e-15.
_NOTHING = 35.0


@dataclass(frozen=True, eq=False)
class EvidencesOfSets:
    """Scores of families as differences of evidences of sets of columns.

    Parameters
    ----------
    nodes : tuple
    evidences : ndarray of shape (2 ** n_nodes,)
        Of each set, a mask of nodes, nats; not a number where rules need none.
    """

    nodes: tuple
    evidences: np.ndarray

    are_evidences = True

    def n_operations(self, rules: EdgeRules) -> float:
        """None: all are known."""
        return 0.0

    def of_nodes(self, rules: EdgeRules, max_memory: float) -> Iterator[np.ndarray]:
        """The scores of each node's families, nats, (2 ** (n_nodes - 1),), node after node."""
        n = len(self.nodes)
        check_tables(n, 8.0 * 2.0**n * (1 + n / 2 + 4), max_memory)
        index = np.arange(1 << (n - 1))
        for k in range(n):
            low = (1 << k) - 1
            without = (index & low) | ((index & ~low) << 1)
            yield self.evidences[without | 1 << k] - self.evidences[without]


@dataclass(frozen=True, eq=False)
class HiddenScaleScores:
    """Evidences of sets and families of columns without missing cells, at each of the scales that are summed over.

    Parameters
    ----------
    given : NormalWishartScores
        Whose own scale has no say.

    Examples
    --------
    >>> import numpy as np
    >>> from skvbem import DAG
    >>> from skvbem.search.families.hidden_scale import HiddenScaleScores
    >>> from skvbem.search.families.normal_wishart_scores import NormalWishartScores
    >>> x = np.array([0.0, 1.0, 2.0, 4.0])
    >>> X = np.column_stack([x, 2 * x + [0.1, -0.1, 0.1, -0.1]])
    >>> scores = HiddenScaleScores(NormalWishartScores.of_rows(("x", "y"), X))
    >>> scores.log_evidence(DAG(["x", "y"], {"y": ["x"]})) > scores.log_evidence(DAG(["x", "y"], {}))
    True
    """

    given: NormalWishartScores
    _remembered: OrderedDict[int, np.ndarray] = field(default_factory=OrderedDict, init=False, repr=False)

    are_evidences = True
    #: All is in the scores of families.
    constant = 0.0

    @property
    def nodes(self) -> tuple:
        """The columns, whose places are bits of masks."""
        return self.given.nodes

    @property
    def place(self) -> Mapping[Hashable, int]:
        """The places of nodes, which are bits of masks."""
        return self.given.place

    @cached_property
    def scales(self) -> np.ndarray:
        """Scales t, (n_scales,)."""
        return hidden_scales()[0]

    @cached_property
    def log_weights(self) -> np.ndarray:
        """ln of their weights, (n_scales,)."""
        return hidden_scales()[1]

    def among(self, nodes: Sequence[Hashable]) -> Self:
        """The scores of some of the nodes, in this order."""
        return type(self)(self.given.among(nodes))

    def log_evidences(self, sets: np.ndarray) -> np.ndarray:
        """ln p of sets of as many columns each at each scale, nats, (n_sets, n_scales).

        Parameters
        ----------
        sets : ndarray of int, shape (n_sets, n_columns)
            Places of the columns.
        """
        (n_sets, n), weight, dof = sets.shape, self.given.total_weight, self.given.degrees_of_freedom
        evidences = np.zeros((n_sets, len(self.scales)))
        if n == 0:
            return evidences
        constant = log_rising(0.5 * (dof + np.arange(n)), 0.5 * weight).sum() - 0.5 * n * weight * log(pi)
        constant += 0.5 * n * log(self.given.mean_precision / (self.given.mean_precision + weight))
        dof += n - 1
        known = constant + 0.5 * dof * n * np.log(self.scales)
        at_once = max(1, _AT_ONCE // (n * (n + len(self.scales))))
        for first in range(0, n_sets, at_once):
            batch = sets[first : first + at_once]
            values = np.linalg.eigvalsh(self.given.squares[batch[:, :, None], batch[:, None, :]])
            log_determinants = np.log(np.maximum(values, 0.0)[:, None] + self.scales[:, None]).sum(axis=-1)
            evidences[first : first + at_once] = known - 0.5 * (dof + weight) * log_determinants
        return evidences - weight * np.log(self.given.unit)[sets].sum(axis=1)[:, None]

    def score(self, child: int, parents: int) -> np.ndarray:
        """The scores of one family at each scale by the places of its nodes, the parents a mask of bits, nats."""
        with_child, without = self._evidences([parents | 1 << child, parents])
        return with_child - without

    def grown(self, child: int, parents: int, further: Sequence[int]) -> np.ndarray:
        """The scores of a family with one parent more, at each scale, for each of some nodes, (n_scales, n_further)."""
        above = [parents | 1 << more for more in further]
        evidences = np.array(self._evidences([*(mask | 1 << child for mask in above), *above]))
        evidences = evidences.reshape(2, len(above), len(self.scales))
        return (evidences[0] - evidences[1]).T

    def log_evidences_of(self, dag: DAG) -> np.ndarray:
        """ln p of the rows under a graph at each scale, nats, (n_scales,)."""
        place = self.place
        families = ((place[v], sum(1 << place[parent] for parent in dag.parents(v))) for v in dag.nodes)
        return np.sum([self.score(child, parents) for child, parents in families], axis=0)

    def log_evidence(self, dag: DAG) -> float:
        """ln p of the rows under a graph, nats."""
        return float(log_sum_exp(self.log_weights + self.log_evidences_of(dag)))

    def n_operations(self, rules: EdgeRules) -> float:
        """Estimated operations, of some nanoseconds each, to score all families that rules allow."""
        n, most = len(self.nodes), most_parents(rules) + 1
        of_sets = sum(comb(n, size) * _OPERATIONS * (1.0 + size) ** 2 for size in range(min(most, n) + 1))
        return of_sets + len(self.scales) * float(n) ** 2 * 2.0**n

    def at_scales(self, rules: EdgeRules, max_memory: float = inf) -> list[EvidencesOfSets]:
        """The scores of families at each scale.

        Raises
        ------
        TooLargeError
            If tables take more bytes than `max_memory`.
        """
        n = len(self.nodes)
        check_tables(n, 8.0 * 2.0**n * (2 * len(self.scales) + n / 2 + 4), max_memory)
        evidences = np.full((len(self.scales), 1 << n), np.nan)
        for size in range(min(most_parents(rules) + 1, n) + 1):
            sets = np.array(list(combinations(range(n), size)), dtype=np.int64)
            evidences[:, (1 << sets).sum(axis=1)] = self.log_evidences(sets).T
        return [EvidencesOfSets(self.nodes, each) for each in evidences]

    def _evidences(self, masks: Sequence[int]) -> list[np.ndarray]:
        """ln p of sets of columns at each scale, each computed once."""
        remembered = self._remembered
        new: dict[int, list[int]] = {}
        for mask in {mask for mask in masks if mask not in remembered}:
            new.setdefault(mask.bit_count(), []).append(mask)
        for of_size in new.values():
            sets = [[k for k in range(mask.bit_length()) if mask >> k & 1] for mask in of_size]
            remembered.update(zip(of_size, self.log_evidences(np.array(sets, dtype=np.int64))))
        values = [remembered[mask] for mask in masks]
        while 8.0 * len(self.scales) * len(remembered) > TUNING.cache_bytes:
            remembered.popitem(last=False)
        return values


@dataclass(frozen=True, eq=False)
class MixedPosterior:
    """The posterior over all graphs of a space, a hidden scale summed out.

    Parameters
    ----------
    nodes : tuple
    scores : HiddenScaleScores
    log_odds : ndarray of shape (n_nodes, 2 ** (n_nodes - 1))
        Of the edges of families, masks of the other nodes, nats.
    edges : ndarray of shape (n_nodes, n_nodes)
        Posterior probability of each edge, (parent, child).
    log_total, log_total_of_prior : float
        ln of the sums over graphs of their weights, posterior and prior, nats.
    at_scales : tuple of pairs of float and GraphPosterior
        The probability of each scale that matters, and the posterior there.
    """

    nodes: tuple
    scores: HiddenScaleScores
    log_odds: np.ndarray
    edges: np.ndarray
    log_total: float
    log_total_of_prior: float
    at_scales: tuple[tuple[float, GraphPosterior], ...]

    def log_probability(self, dag: DAG) -> float:
        """ln of the posterior probability of a graph; the nodes of the sum are among its own."""
        among = DAG(self.nodes, {node: dag.parents(node) for node in self.nodes})
        return self.scores.log_evidence(among) + self._log_prior(dag) - self.log_total

    def log_evidence(self, dag: DAG, score: float) -> float:
        """ln p(y), averaged over all graphs under the prior, from the evidence of one of them, nats."""
        return score + self._log_prior(dag) - self.log_total_of_prior - self.log_probability(dag)

    def _log_prior(self, dag: DAG) -> float:
        total = 0.0
        for k, node in enumerate(self.nodes):
            others = self.nodes[:k] + self.nodes[k + 1 :]
            total += self.log_odds[k, sum(1 << others.index(parent) for parent in dag.parents(node))]
        return float(total)


#: The posterior over all graphs of a space, whatever its scores are.
PosteriorOverGraphs: TypeAlias = GraphPosterior | MixedPosterior


def best_dags(
    scores: HiddenScaleScores, rules: EdgeRules, log_odds: Mapping[tuple[Hashable, Hashable], float], max_memory: float
) -> list[tuple[DAG, float]]:
    """The best graph at each scale, and ln of its weight there, nats; as `best_dag`."""
    at_scales = scores.at_scales(rules, max_memory)
    best = (best_dag(each, rules, log_odds, max_memory) for each in at_scales)
    return [(dag, float(value + weight)) for (dag, value), weight in zip(best, scores.log_weights)]


def mixed_posterior(
    scores: HiddenScaleScores, rules: EdgeRules, log_odds: Mapping[tuple[Hashable, Hashable], float]
) -> MixedPosterior:
    """The posterior over all graphs that obey rules: those at each scale, mixed.

    Scales at which graphs weigh less than 1e-15 of all are left out. All graphs weigh no more than their number times
    the best of them.
    """
    n, at_scales = len(scores.nodes), scores.at_scales(rules)
    odds = np.stack([log_odds_of_families(scores.nodes, rules, log_odds, k) for k in range(n)])
    families = [np.stack(list(all_local_scores(each, rules, log_odds, inf))) for each in at_scales]
    best = [best_of_sets(np.stack([best_of_subsets(each.copy()) for each in scored]))[-1] for scored in families]
    highest, log_number = best + scores.log_weights, log_total_of(np.where(odds > -inf, 0.0, -inf))
    totals = np.full(len(highest), -inf)
    for k in np.flatnonzero(highest + log_number > highest.max() - _NOTHING).tolist():
        totals[k] = scores.log_weights[k] + log_total_of(families[k])
    log_total = float(log_sum_exp(totals)) if totals.max() > -inf else -inf
    log_total_of_prior, posteriors = log_total_of(odds), []
    for k in np.flatnonzero(totals > log_total - _NOTHING).tolist():
        data = scores.given.with_scale(scores.scales[k])
        there = GraphPosterior(scores.nodes, families[k], odds, summed(families[k]), log_total_of_prior, data)
        posteriors.append((float(np.exp(totals[k] - log_total)), there))
    edges = np.sum([weight * there.edges for weight, there in posteriors], axis=0)
    return MixedPosterior(scores.nodes, scores, odds, edges, log_total, log_total_of_prior, tuple(posteriors))
