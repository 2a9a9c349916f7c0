"""Graphs over complete data as a search walks among them: every move of an edge is a difference of family scores."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from math import inf, log, log1p
from typing import Any

import numpy as np

from skvbem._kernels._edge_moves import fill_descendants, list_moves
from skvbem._lazy import cached_property
from skvbem.graphs.dag import DAG, dag_from_masks
from skvbem.search.families.family_scores import Families
from skvbem.search.tuning import TUNING
from skvbem.spaces.priors import EdgePrior, StructurePrior, UniformPrior
from skvbem.spaces.rules import EdgeRules


@dataclass(frozen=True)
class FamilyRow:
    """The score of one node's family with its edges' log odds, and what an edge to it adds that appears or disappears.

    Entries of `gains` are -inf where the rules do not allow the change.
    """

    score: Any
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
        self._rows: OrderedDict[tuple[int, int], FamilyRow] = OrderedDict()
        self._families: dict = {}
        # the families of columns that the rules do not know, which have no parents
        known = set(self._places.tolist())
        self._rest = scores.constant + sum(scores.score(k, 0) for k in range(len(scores.nodes)) if k not in known)

    def at(self, dag: DAG) -> Graph:
        """A graph over the nodes of the rules."""
        place = {node: k for k, node in enumerate(self.nodes)}
        return self.graph(tuple(sum(1 << place[parent] for parent in dag.parents(node)) for node in self.nodes))

    def graph(self, parents: tuple[int, ...]) -> Graph:
        """A graph, from the parents of every node as masks of bits."""
        rows = [self.row(child, mask) for child, mask in enumerate(parents)]
        return Graph(self, parents, rows, np.array([row.gains for row in rows]), edges_of(parents))

    def dag(self, parents: tuple[int, ...]) -> DAG:
        """A graph with the names of its nodes, from the parents of every node as masks of bits."""
        return dag_from_masks(self.nodes, parents, self._families)

    def allow(self, child: int, parents: int) -> bool:
        """True if the rules allow a node these parents."""
        n_parents = parents.bit_count()
        inside = not (self.required[child] & ~parents or parents & ~self._possible[child])
        return inside and self.least[child] <= n_parents <= self.most[child]

    def _may_be(self, child: int, parents: int) -> bool:
        """True if the rules allow a node these parents, and their family has a score, unlike a table below a number."""
        return self.allow(child, parents) and self.scores.score(int(self._places[child]), self._above(parents)) > -inf

    def perturbed(self, parents: tuple[int, ...], share: float, rng: np.random.Generator) -> tuple[int, ...]:
        """A graph without some edges, drawn at random from the equivalence class of what is left.

        An edge is covered if its child has the parents of its parent besides it. A graph that has it turned allows the
        same distributions, and any two graphs that do are joined by such turns (Chickering 1995).

        Parameters
        ----------
        parents : tuple of int
            The parents of every node, masks of bits.
        share : float
            The probability of an edge to be left out.
        rng : numpy.random.Generator
        """
        masks = list(parents)
        edges = [(k, child) for child, mask in enumerate(parents) for k in range(mask.bit_length()) if mask >> k & 1]
        drops = (rng.random(len(edges)) < share).tolist() if share else []
        for (parent, child), is_out in zip(edges, drops):
            without = masks[child] & ~(1 << parent)
            if is_out and self.allow(child, without):
                masks[child] = without
        for _ in range(TUNING.n_turning_sweeps):
            turns = (rng.random(len(edges)) < 0.5).tolist()
            for place in rng.permutation(len(edges)).tolist():
                one, other = edges[place]
                parent, child = (one, other) if masks[other] >> one & 1 else (other, one)
                below, above = masks[parent] | 1 << child, masks[child] & ~(1 << parent)
                is_covered = masks[child] >> parent & 1 and above == masks[parent]
                if turns[place] and is_covered and self._may_be(parent, below) and self._may_be(child, above):
                    masks[parent], masks[child] = below, above
        return tuple(masks)

    def value(self, rows: list[FamilyRow]) -> float:
        """The score of a graph plus the log odds of its edges."""
        return self._rest + sum(row.score for row in rows)

    def row(self, child: int, parents: int) -> FamilyRow:
        """The score of one node's family, with the gains of changing it."""
        key = child, parents
        if key in self._rows:
            self._rows.move_to_end(key)
        else:
            self._rows[key] = self._made(child, parents)
            if float(self._rows[key].gains.nbytes) * len(self._rows) > TUNING.cache_bytes:
                self._rows.popitem(last=False)
        return self._rows[key]

    def _made(self, child: int, parents: int) -> FamilyRow:
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
        return FamilyRow(score + float(odds[edges].sum()), gains)

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
    rows : list of FamilyRow
        Of its families.
    row_gains : ndarray of shape (n_nodes, n_nodes)
        Of these, for each parent that appears or disappears.
    edges : ndarray of bool, shape (n_nodes, n_nodes)
        True if each column is a parent of each row.
    """

    def __init__(self, graphs: FamilyGraphs, parents: tuple[int, ...], rows: list[FamilyRow], row_gains, edges):
        self._graphs, self.parents, self._rows = graphs, parents, rows
        self._row_gains, self._edges = row_gains, edges
        self.value = graphs.value(rows)

    @cached_property
    def dag(self) -> DAG:
        """The graph with the names of its nodes."""
        return self._graphs.dag(self.parents)

    @cached_property
    def moves(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Child and parent of every move's edge, whether it turns, and what that adds; in the order of `edge_moves`."""
        return self._moves_by(self._row_gains)

    def _moves_by(self, gains: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The moves by gains (n_nodes, n_nodes) of each parent that appears or disappears."""
        edges = self._edges
        below = np.empty(edges.shape, dtype=np.uint8)
        fill_descendants(edges.view(np.uint8), below)
        most = edges.size + np.count_nonzero(edges)
        child, parent, change = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64), np.empty(most)
        n, n_unturned = list_moves(gains, edges.view(np.uint8), below, child, parent, change)
        return child[:n], parent[:n], np.arange(n) >= n_unturned, change[:n]

    @property
    def gains(self) -> np.ndarray:
        """Difference of the value that each move of an edge makes."""
        return self.moves[3]

    def after(self, k: int) -> tuple[int, ...]:
        """The parents of every node after a move."""
        child, parent, turns, _ = self.moves
        return after_move(self.parents, int(child[k]), int(parent[k]), bool(turns[k]))

    def moved(self, k: int, after: tuple[int, ...]) -> Graph:
        """The graph after a move, to these parents of every node."""
        rows = list(self._rows)
        edges, gains = self._edges.copy(), self._row_gains.copy()
        child, parent = (int(column[k]) for column in self.moves[:2])
        for node in (child, parent):
            if after[node] != self.parents[node]:
                rows[node] = self._graphs.row(node, after[node])
                gains[node] = rows[node].gains
                other = parent if node == child else child
                edges[node, other] = not edges[node, other]
        return type(self)(self._graphs, after, rows, gains, edges)


def after_move(parents: tuple[int, ...], child: int, parent: int, turns: bool) -> tuple[int, ...]:
    """The parents of every node, masks of bits, once an edge has appeared, disappeared or turned."""
    masks = list(parents)
    masks[child] ^= 1 << parent
    if turns:
        masks[parent] |= 1 << child
    return tuple(masks)


def edges_of(parents: tuple[int, ...]) -> np.ndarray:
    """True if each column is a parent of each row, from masks of bits."""
    n = len(parents)
    n_bytes = (n + 7) // 8
    octets = np.frombuffer(b"".join(mask.to_bytes(n_bytes, "little") for mask in parents), np.uint8)
    return np.unpackbits(octets.reshape(n, n_bytes), axis=1, count=n, bitorder="little").astype(bool)


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
