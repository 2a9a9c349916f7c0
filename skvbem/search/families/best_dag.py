r"""The best graph of all, by dynamic programming over sets of nodes (Silander & Myllymäki 2006).

For complete data a score is a sum over families, :math:`\sum_j s(j, \mathrm{pa}(j))`. Three steps, each for all sets C
of nodes:

.. math::

    s(j, P) &= G_{P \cup j}(a) - G_P(a'), \qquad
    G_S(a) = \sum_c \ln\Gamma(a + n_c) - \ln\Gamma(a), \\
    b(j, C) &= \max_{P \subseteq C} s(j, P), \\
    R(C) &= \max_{j \in C} R(C \setminus j) + b(j, C \setminus j).

The sums G go over the joint values c of a set of columns, counted n_c times; a is the concentration of a cell of the
family, a' that of a row of its table, both the same for all cells of one table. In R the node j is a sink, below all
others of C. Sets are masks; arrays over the sets without j are indexed by the mask with the bit of j taken out.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import comb, inf
from typing import Protocol

import numpy as np

from skvbem._kernels._local_scores import fill_sums
from skvbem.errors import TooLargeError
from skvbem.families.dirichlet import EqualConcentration
from skvbem.families.dirichlet_mixture import AveragedConcentration
from skvbem.graphs.dag import DAG
from skvbem.search.families.family_scores import Families, log_mean_exp
from skvbem.search.tuning import TUNING
from skvbem.spaces.rules import EdgeRules


class LocalScores(Protocol):
    """Scores of all families of some nodes."""

    @property
    def nodes(self) -> tuple:
        """The nodes, whose places are bits of masks."""
        ...

    @property
    def are_evidences(self) -> bool:
        """True if sums are the evidence itself, where they are no penalized likelihood."""
        ...

    def n_operations(self, rules: EdgeRules) -> float:
        """Estimated operations, of some nanoseconds each, to score all families that rules allow."""
        ...

    def of_nodes(self, rules: EdgeRules, max_memory: float) -> Iterator[np.ndarray]:
        """The scores of each node's families, nats, (2 ** (n_nodes - 1),), node after node; any where rules have none.

        Raises
        ------
        TooLargeError
            If this would take more memory, in bytes.
        """
        ...


@dataclass(frozen=True, eq=False)
class CompleteData:
    """Rows without missing cells, with the prior and the penalty that score families of nodes.

    Parameters
    ----------
    nodes : tuple
    codes : ndarray of int32, shape (n_nodes, n_rows)
    weight : ndarray of shape (n_rows,)
    cardinalities : ndarray of int64, shape (n_nodes,)
    priors : sequence of EqualConcentration or AveragedConcentration
        Of each node. A total of 0 stands for the maximized likelihood in place of the evidence.
    per_parameter : float
        Nats that each free parameter costs: none but with a maximized likelihood.
    most_cells : float, default=inf
        Cells of the largest table of a node with parents; families of larger ones score -inf.
    rows_set : mapping of node to ndarray of bool, shape (n_rows,)
        Of each node that was set somewhere, the rows that its own families do not count.
    """

    nodes: tuple
    codes: np.ndarray
    weight: np.ndarray
    cardinalities: np.ndarray
    priors: Sequence[EqualConcentration | AveragedConcentration]
    per_parameter: float = 0.0
    most_cells: float = inf
    rows_set: Mapping[Hashable, np.ndarray] = field(default_factory=dict)

    are_evidences = True

    def n_operations(self, rules: EdgeRules) -> float:
        """Estimated operations, of some nanoseconds each, to score all families that rules allow."""
        (n, n_rows), most = self.codes.shape, most_parents(rules)
        return float(sum(comb(n, size) for size in range(min(most + 1, n) + 1))) * n_rows * (1 + len(self.rows_set))

    def of_nodes(self, rules: EdgeRules, max_memory: float) -> Iterator[np.ndarray]:
        """The scores of each node's families, nats, from sums over joint values of sets of columns."""
        concentrations = _concentrations(self)
        _check_memory(self, len(concentrations), max_memory)
        strength, shared = (np.array(column) for column in zip(*concentrations))
        most = most_parents(rules) + 1

        def sums_over(codes: np.ndarray, weight: np.ndarray) -> np.ndarray:
            sums = np.full((1 << len(self.nodes), len(concentrations)), np.nan)
            fill_sums(codes, self.cardinalities, weight, strength, shared.astype(np.uint8), most, sums)
            return sums

        of_all = None
        for k, node in enumerate(self.nodes):
            if node in self.rows_set:
                kept = ~self.rows_set[node]
                sums = sums_over(np.ascontiguousarray(self.codes[:, kept]), self.weight[kept])
            else:
                sums = of_all = sums_over(self.codes, self.weight) if of_all is None else of_all
            yield _local_scores(self, sums, concentrations, k)


@dataclass(frozen=True, eq=False)
class FamilyByFamily:
    """Scores that are asked for one by one, as those of families that are fitted.

    Parameters
    ----------
    nodes : tuple
    families : Families
        Of these nodes.
    """

    nodes: tuple
    families: Families

    @property
    def are_evidences(self) -> bool:
        """True if sums are the evidence itself, where they are no penalized likelihood."""
        return self.families.are_evidences

    def n_operations(self, rules: EdgeRules) -> float:
        """Estimated operations, of some nanoseconds each, to score all families that rules allow."""
        sets = ((len(rule.possible - rule.required), rule.most - len(rule.required)) for rule in rules.parents.values())
        return TUNING.fit_operations * sum(comb(n, size) for n, most in sets for size in range(min(n, most) + 1))

    def of_nodes(self, rules: EdgeRules, max_memory: float) -> Iterator[np.ndarray]:
        """The scores of each node's families, nats; -inf where rules have none."""
        check_tables(len(self.nodes), 8.0 * 2.0 ** len(self.nodes) * (len(self.nodes) / 2 + 4), max_memory)
        places = np.array([self.families.place[node] for node in self.nodes])
        for k, place in enumerate(places.tolist()):
            others = np.delete(places, k).tolist()
            scores = np.where(log_odds_of_families(self.nodes, rules, {}, k) > -inf, 0.0, -inf)
            for mask in np.flatnonzero(scores > -inf).tolist():
                parents = sum(1 << other for bit, other in enumerate(others) if mask >> bit & 1)
                scores[mask] = self.families.score(place, parents)
            scores[np.isfinite(scores)] += self.families.constant / len(self.nodes)
            yield scores


def best_dag(
    data: LocalScores,
    rules: EdgeRules,
    log_odds: Mapping[tuple[Hashable, Hashable], float] | None = None,
    max_memory: float = inf,
) -> tuple[DAG, float]:
    """The graph of the highest score among those that obey rules, and its score in nats.

    Parameters
    ----------
    data : LocalScores
    rules : EdgeRules
        Over the nodes of the data.
    log_odds : mapping of (parent, child) to float, optional
        What an edge adds to the score.
    max_memory : float
        Bytes.

    Raises
    ------
    TooLargeError
        If the tables over all sets of nodes would take more memory.

    Notes
    -----
    Of equal graphs one with fewer edges comes out.
    """
    best = np.stack([best_of_subsets(each) for each in all_local_scores(data, rules, log_odds or {}, max_memory)])
    total = best_of_sets(best)
    return _traced(data.nodes, best, total), float(total[-1])


def all_local_scores(
    data: LocalScores, rules: EdgeRules, log_odds: Mapping[tuple[Hashable, Hashable], float], max_memory: float
) -> Iterator[np.ndarray]:
    """The scores of each node's families with their edges' log odds, nats, (2 ** (n_nodes - 1),), node after node.

    Parameters
    ----------
    data, rules, log_odds, max_memory
        As in `best_dag`.
    """
    for k, scores in enumerate(data.of_nodes(rules, max_memory)):
        edge_log_odds = log_odds_of_families(data.nodes, rules, log_odds, k)
        yield np.where(edge_log_odds > -inf, scores + edge_log_odds, -inf)


def most_parents(rules: EdgeRules) -> int:
    """The most parents that rules allow any node."""
    return max((rule.most for rule in rules.parents.values()), default=0)


def log_odds_of_families(
    nodes: tuple, rules: EdgeRules, log_odds: Mapping[tuple[Hashable, Hashable], float], k: int
) -> np.ndarray:
    """Summed log odds of the edges of node k's families, for every set of other nodes; -inf where rules forbid it."""
    node = nodes[k]
    others = [other for other in nodes if other != node]
    rule = rules.parents[node]
    index = np.arange(1 << len(others))

    def bits(nodes):
        return sum(1 << place for place, other in enumerate(others) if other in nodes)

    n_parents = np.bitwise_count(index)
    allowed = (index & bits(rule.required) == bits(rule.required)) & (index & ~bits(rule.possible) == 0)
    allowed &= (n_parents >= rule.least) & (n_parents <= rule.most)
    edge_log_odds = _over_sets(np.add, 0.0, [log_odds.get((other, node), 0.0) for other in others])
    return np.where(allowed, edge_log_odds, -inf)


def _concentrations(data: CompleteData) -> list[tuple[float, bool]]:
    """The concentrations that sums are needed for."""
    pairs = zip(data.priors, data.cardinalities.tolist())
    return sorted(
        {
            each
            for node_prior, n_states in pairs
            for prior in node_prior.alternatives
            for each in (_cell_concentration(prior, n_states), _row_concentration(prior, n_states))
        }
    )


def _cell_concentration(prior: EqualConcentration, n_states: int) -> tuple[float, bool]:
    """The concentration of a cell of a node's table, and whether the joint values of the family share it."""
    return prior.total / (n_states if prior.over == "row" else 1), prior.over == "table"


def _row_concentration(prior: EqualConcentration, n_states: int) -> tuple[float, bool]:
    """The concentration of a row of the table, and whether the joint values of the parents share it."""
    return prior.total * (n_states if prior.over == "cell" else 1), prior.over == "table"


def _check_memory(data: CompleteData, n_concentrations: int, max_memory: float) -> None:
    n, (_, n_rows) = len(data.nodes), data.codes.shape
    widest = int(data.cardinalities.max(initial=1))
    # sums, best families (and what they are made from, one node at a time), best sets; groups of rows at every level
    row_bytes = n_rows * (12.0 * (n + 2) + 4.0 * widest + 24.0)
    n_sums = n_concentrations * (1 + bool(data.rows_set))  # those of all rows, and of one node that was set
    check_tables(n, 8.0 * 2.0**n * (n_sums + n / 2 + 4 + 1) + row_bytes, max_memory)


def check_tables(n: int, n_bytes: float, max_memory: float) -> None:
    """Refuse tables over all sets of n nodes that take too many bytes."""
    if n_bytes > max_memory:
        raise TooLargeError(
            f"The best of all graphs over {n} nodes takes {n_bytes:.3g} bytes to find; {max_memory:.3g} are allowed. "
            "Raise 'max_memory' of Exact, take fewer nodes, or search by 'structural' or 'greedy'."
        )


def _local_scores(data, sums, concentrations, k: int) -> np.ndarray:
    """s(node k, P) for every set P of other nodes, (2 ** (n - 1),); not a number where no table was summed."""
    n_states = int(data.cardinalities[k])
    index = np.arange(1 << (len(data.nodes) - 1))
    low = (1 << k) - 1
    masks = (index & low) | ((index & ~low) << 1)
    every = []
    for prior in data.priors[k].alternatives:
        cell, row = _cell_concentration(prior, n_states), _row_concentration(prior, n_states)
        every.append(sums[masks | 1 << k, concentrations.index(cell)] - sums[masks, concentrations.index(row)])
    scores = log_mean_exp(np.stack(every, axis=1))
    sizes = [size for place, size in enumerate(data.cardinalities.tolist()) if place != k]
    if data.per_parameter:
        scores -= data.per_parameter * (n_states - 1) * _over_sets(np.multiply, 1.0, sizes)
    if data.most_cells < inf:
        scores[1:][n_states * _over_sets(np.multiply, 1.0, sizes)[1:] > data.most_cells] = -inf
    return scores


def _over_sets(operation: np.ufunc, empty: float, values) -> np.ndarray:
    """The sum or product of its members' values, for every set."""
    values_of_sets = np.array([empty])
    for value in values:
        values_of_sets = np.concatenate([values_of_sets, operation(values_of_sets, value)])
    return values_of_sets


def best_of_subsets(scores: np.ndarray) -> np.ndarray:
    """The highest score among the subsets of every set, in place."""
    size = 1
    while size < len(scores):
        halves = scores.reshape(-1, 2, size)
        np.maximum(halves[:, 1], halves[:, 0], out=halves[:, 1])
        size *= 2
    return scores


def best_of_sets(best: np.ndarray) -> np.ndarray:
    """R, the highest score of the graphs over every set of nodes whose parents lie within."""
    n = len(best)
    masks = np.arange(1 << n)
    total = np.full(1 << n, -inf)
    total[0] = 0.0
    layers = np.split(np.argsort(np.bitwise_count(masks), kind="stable"), np.cumsum(_binomials(n))[:-1])
    for layer in layers[1:]:
        highest = np.full(len(layer), -inf)
        for sink in range(n):
            inside = layer >> sink & 1 == 1
            rest = layer[inside] ^ (1 << sink)
            highest[inside] = np.maximum(highest[inside], total[rest] + best[sink, without_bit(rest, sink)])
        total[layer] = highest
    return total


def _binomials(n: int) -> list[int]:
    row = [1]
    for k in range(n):
        row.append(row[-1] * (n - k) // (k + 1))
    return row


def without_bit(masks, bit: int):
    """Masks of sets among the nodes but one, whose bit is taken out."""
    low = (1 << bit) - 1
    return (masks & low) | ((masks >> 1) & ~low)


def _traced(nodes: tuple, best: np.ndarray, total: np.ndarray) -> DAG:
    """A graph that reaches the best score: from the last sink to the first, none of them with a parent too many."""
    parents: dict = {}
    left = (1 << len(nodes)) - 1
    while left:
        sinks = [k for k in range(len(nodes)) if left >> k & 1]
        reached = [total[left ^ 1 << k] + best[k, without_bit(left ^ 1 << k, k)] for k in sinks]
        sink = sinks[int(np.argmax(reached))]
        left ^= 1 << sink
        chosen = without_bit(left, sink)
        # the maximum over subsets is a copy of one of them: where leaving a node out keeps it, leave it out
        smaller = True
        while smaller:
            without = (chosen ^ 1 << place for place in range(len(nodes) - 1) if chosen >> place & 1)
            subset = next((less for less in without if best[sink, less] == best[sink, chosen]), None)
            smaller, chosen = subset is not None, chosen if subset is None else subset
        others = nodes[:sink] + nodes[sink + 1 :]
        parents[nodes[sink]] = [other for place, other in enumerate(others) if chosen >> place & 1]
    return DAG(nodes, parents)
