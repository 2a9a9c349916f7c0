"""Graphs over complete measurements with a hidden scale as a search walks among them.

Given each scale a move of an edge is a difference of family scores, and the value of a graph is a mixture over scales.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

import numpy as np

from skvbem._lazy import cached_property
from skvbem._numerics import log_sum_exp
from skvbem.search.families.graph_walk import FamilyGraphs, FamilyRow, Graph, edges_of


class MixedGraphs(FamilyGraphs):
    """The graphs that obey rules, with their scores as mixtures over scales plus the log odds of edges.

    Scores of rows are (n_scales,) and their gains (n_scales, n_nodes).

    Parameters
    ----------
    scores : HiddenScaleScores
        Of the nodes of the rules, and perhaps more.
    odds : EdgeLogOdds
    """

    scores: Any

    def graph(self, parents: tuple[int, ...]) -> Graph:
        """A graph, from the parents of every node as masks of bits."""
        rows = [self.row(child, mask) for child, mask in enumerate(parents)]
        return MixedGraph(self, parents, rows, np.array([row.gains for row in rows]), edges_of(parents))

    def _may_be(self, child: int, parents: int) -> bool:
        """True if the rules allow a node these parents: every family of measurements has a score."""
        return self.allow(child, parents)

    def weights(self, rows: Sequence[FamilyRow]) -> np.ndarray:
        """ln of the weight of a graph at each scale with that of the scale, nats."""
        return self.scores.log_weights + self._rest + np.sum([row.score for row in rows], axis=0)

    def value(self, rows: Sequence[FamilyRow]) -> float:
        """The score of a graph plus the log odds of its edges."""
        return float(log_sum_exp(self.weights(rows)))

    def _made(self, child: int, parents: int) -> FamilyRow:
        n_parents, odds = parents.bit_count(), self._log_odds[child]
        mine, above = int(self._places[child]), self._above(parents)
        score = self.scores.score(mine, above)
        gains = np.full((len(score), len(self.nodes)), -inf)
        if n_parents < self.most[child]:
            free = [k for k in range(len(self.nodes)) if (self._possible[child] & ~parents) >> k & 1]
            gains[:, free] = self.scores.grown(mine, above, self._places[free].tolist()) - score[:, None] + odds[free]
        if n_parents > self.least[child]:
            for k in range(len(self.nodes)):
                if (parents & ~self.required[child]) >> k & 1:
                    without = above & ~(1 << int(self._places[k]))
                    gains[:, k] = self.scores.score(mine, without) - score - odds[k]
        edges = [k for k in range(len(self.nodes)) if parents >> k & 1]
        return FamilyRow(score + float(odds[edges].sum()), gains)


class MixedGraph(Graph):
    """A graph with its value over all scales, and the graphs one move of an edge away.

    Parameters
    ----------
    graphs : MixedGraphs
    parents, rows, row_gains, edges
        As of a `Graph`, with gains (n_nodes, n_scales, n_nodes).
    """

    _graphs: MixedGraphs

    @cached_property
    def moves(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Child and parent of every move's edge, whether it turns, and what that adds; in the order of `edge_moves`."""
        child, parent, turns, _ = self._moves_by(np.ascontiguousarray(self._row_gains[:, 0]))
        at_scales = self._row_gains.swapaxes(0, 1)
        changes = at_scales[:, child, parent]
        changes[:, turns] += at_scales[:, parent[turns], child[turns]]
        weights = self._graphs.weights(self._rows)
        return child, parent, turns, log_sum_exp(weights[:, None] + changes) - self.value
