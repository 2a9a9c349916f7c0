"""Graphs over complete data as a search walks among them: every move of an edge is a difference of family scores."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from math import inf, log, log1p

import numpy as np

from skvbem._lazy import cached_property
from skvbem.graphs.dag import DAG
from skvbem.search.families.family_scores import Families
from skvbem.search.tuning import TUNING
from skvbem.spaces.priors import EdgePrior, StructurePrior, UniformPrior
from skvbem.spaces.rules import EdgeRules


@dataclass(frozen=True)
class _Row:
    """The score of one node's family with its edges' log odds, and what an edge to it adds that appears or disappears.

    Entries of `gains` are -inf where the rules do not allow the change.
    """

    score: float
    gains: np.ndarray


class FamilyGraphs:
    """The graphs that obey rules, with their scores as sums over families plus the log odds of edges.

    Parameters
    ----------
    scores : Families
        Of the nodes of the rules, and perhaps more.
    odds : EdgeLogOdds
    """

    def __init__(self, scores: Families, odds: EdgeLogOdds):
        self.scores = scores
        self.nodes = odds.rules.nodes
        self._places = np.array([scores.place[node] for node in self.nodes])
        place = {node: k for k, node in enumerate(self.nodes)}
        rules = [odds.rules.parents[node] for node in self.nodes]
        self._possible = [sum(1 << place[parent] for parent in rule.possible) for rule in rules]
        self.required = [sum(1 << place[parent] for parent in rule.required) for rule in rules]
        self.least, self.most = [rule.least for rule in rules], [rule.most for rule in rules]
        self._log_odds = np.zeros((len(self.nodes), len(self.nodes)))
        for (parent, child), value in odds.log_odds.items():
            self._log_odds[place[child], place[parent]] = value
        self._rows: OrderedDict[tuple[int, int], _Row] = OrderedDict()
        # the families of columns that the rules do not know, which have no parents
        known = set(self._places.tolist())
        self._rest = scores.constant + sum(scores.score(k, 0) for k in range(len(scores.nodes)) if k not in known)

    def at(self, dag: DAG) -> Graph:
        """A graph over the nodes of the rules."""
        place = {node: k for k, node in enumerate(self.nodes)}
        return Graph(self, tuple(sum(1 << place[parent] for parent in dag.parents(node)) for node in self.nodes))

    def dag(self, parents: tuple[int, ...]) -> DAG:
        """A graph with the names of its nodes, from the parents of every node as masks of bits."""
        nodes = self.nodes
        members = ([nodes[k] for k in range(mask.bit_length()) if mask >> k & 1] for mask in parents)
        return DAG(nodes, dict(zip(nodes, members)))

    def value(self, rows: list[_Row]) -> float:
        """The score of a graph plus the log odds of its edges."""
        return self._rest + sum(row.score for row in rows)

    def row(self, child: int, parents: int) -> _Row:
        """The score of one node's family, with the gains of changing it."""
        key = child, parents
        if key in self._rows:
            self._rows.move_to_end(key)
        else:
            self._rows[key] = self._made(child, parents)
            if 8.0 * len(self._rows) * len(self.nodes) > TUNING.cache_bytes:
                self._rows.popitem(last=False)
        return self._rows[key]

    def _made(self, child: int, parents: int) -> _Row:
        n_parents, odds = parents.bit_count(), self._log_odds[child]
        mine, above = int(self._places[child]), self._above(parents)
        score = self.scores.score(mine, above)
        gains = np.full(len(self.nodes), -inf)
        if n_parents < self.most[child]:
            free = [k for k in range(len(self.nodes)) if (self._possible[child] & ~parents) >> k & 1]
            gains[free] = self.scores.grown(mine, above, self._places[free].tolist()) - score + odds[free]
        if n_parents > self.least[child]:
            for k in range(len(self.nodes)):
                if (parents & ~self.required[child]) >> k & 1:
                    less = self.scores.score(mine, above & ~(1 << int(self._places[k])))
                    gains[k] = less - score - odds[k]
        edges = [k for k in range(len(self.nodes)) if parents >> k & 1]
        return _Row(score + float(odds[edges].sum()), gains)

    def grown(self, child: int, parents: int, further: list[int]) -> np.ndarray:
        """The scores of a family with one parent more, for each of some nodes, with the log odds of its edges."""
        mine, above = int(self._places[child]), self._above(parents)
        odds = self._log_odds[child]
        before = sum(float(odds[k]) for k in range(parents.bit_length()) if parents >> k & 1)
        return self.scores.grown(mine, above, self._places[further].tolist()) + before + odds[further]

    def _above(self, parents: int) -> int:
        """A mask of nodes of the rules as a mask of nodes of the completed rows."""
        return sum(1 << int(self._places[k]) for k in range(parents.bit_length()) if parents >> k & 1)


class Graph:
    """A graph with its value, and the graphs one move of an edge away.

    Parameters
    ----------
    graphs : FamilyGraphs
    parents : tuple of int
        The parents of every node, masks of bits.
    """

    def __init__(self, graphs: FamilyGraphs, parents: tuple[int, ...]):
        self._graphs, self.parents = graphs, parents
        self._rows = [graphs.row(child, mask) for child, mask in enumerate(parents)]
        self.value = graphs.value(self._rows)

    @cached_property
    def dag(self) -> DAG:
        """The graph with the names of its nodes."""
        return self._graphs.dag(self.parents)

    @cached_property
    def _edges(self) -> np.ndarray:
        """True if each column is a parent of each row, (n_nodes, n_nodes)."""
        n = len(self.parents)
        edges = np.zeros((n, n), dtype=bool)
        for child, mask in enumerate(self.parents):
            edges[child] = [mask >> k & 1 for k in range(n)]
        return edges

    @cached_property
    def _moves(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Child and parent of every move's edge, whether it turns, and what that adds; in the order of `edge_moves`."""
        edges, gains = self._edges, np.stack([row.gains for row in self._rows])
        below = _descendants(edges)
        added = ~edges & ~below & ~np.eye(len(edges), dtype=bool) & (gains > -inf)
        # an edge cannot turn where its child is also reached through another child of its parent
        detour = edges.T.astype(float) @ below > 0
        removed = edges & (gains > -inf)
        turned = removed & ~detour.T & (-inf < gains.T)
        child, parent = (np.concatenate(ends) for ends in zip(*(np.nonzero(kind) for kind in (added, removed, turned))))
        turns = np.arange(len(child)) >= len(child) - int(turned.sum())
        return child, parent, turns, gains[child, parent] + np.where(turns, gains[parent, child], 0.0)

    @property
    def gains(self) -> np.ndarray:
        """Difference of the value that each move of an edge makes."""
        return self._moves[3]

    def after(self, k: int) -> tuple[int, ...]:
        """The parents of every node after a move."""
        child, parent, turns = (int(column[k]) for column in self._moves[:3])
        masks = list(self.parents)
        masks[child] ^= 1 << parent
        if turns:
            masks[parent] |= 1 << child
        return tuple(masks)


def _descendants(edges: np.ndarray) -> np.ndarray:
    """True if each column is below each row, from the matrix of (child, parent)."""
    reached = edges.T
    while True:
        further = reached | (reached.astype(np.float32) @ reached.astype(np.float32) > 0)
        if (further == reached).all():
            return reached
        reached = further


@dataclass(frozen=True)
class EdgeLogOdds:
    """The log odds of edges that a prior over graphs is a sum of, with the rules that graphs obey.

    Parameters
    ----------
    rules : EdgeRules
        With the edges that the prior demands.
    log_odds : mapping of (parent, child) to float
        What an edge adds to the log prior, nats; nothing where it is not named.
    """

    rules: EdgeRules
    log_odds: Mapping[tuple[Hashable, Hashable], float]

    @classmethod
    def of(cls, prior: StructurePrior, rules: EdgeRules) -> EdgeLogOdds | None:
        """The odds of a uniform prior or an `EdgePrior`; None for others."""
        if isinstance(prior, UniformPrior):
            return cls(rules, {})
        if not isinstance(prior, EdgePrior):
            return None
        given = prior.probability
        by_edge, default = (given, prior.default) if isinstance(given, Mapping) else ({}, given)
        log_odds: dict[tuple[Hashable, Hashable], float] = {}
        parents = {}
        for child, rule in rules.parents.items():
            probability = {parent: by_edge.get((parent, child), default) for parent in rules.nodes if parent != child}
            demanded = {parent for parent, p in probability.items() if p == 1}
            parents[child] = replace(rule, required=rule.required | demanded)
            log_odds |= {
                (parent, child): log(p) - log1p(-p) if p else -inf for parent, p in probability.items() if p < 1
            }
        return cls(EdgeRules(parents), log_odds)
