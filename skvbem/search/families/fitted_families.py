"""Scores of families by fits, for networks with more than tables of which no variable is hidden."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from math import inf

import numpy as np

from skvbem.errors import StructureError, TooLargeError
from skvbem.graphs.dag import DAG


class FittedFamilies:
    """Families valued by small graphs: what the parents of a node add to the score of the graph without edges.

    Each family is fitted once, with its edges alone and without columns that it does not need.

    Parameters
    ----------
    nodes : tuple
    needed : collection of nodes
        Those that every small graph has.
    value_of : callable of DAG to float
        The score of a graph over some of the nodes, nats: a sum over its families.
    are_evidences : bool
        Whether scores are the evidence itself.
    """

    def __init__(self, nodes: tuple, needed: Collection, value_of: Callable[[DAG], float], are_evidences: bool):
        self.nodes, self.are_evidences, self._needed, self._value_of = nodes, are_evidences, needed, value_of
        self.place = {node: k for k, node in enumerate(nodes)}
        self._of_needed = value_of(self._graph(()))
        further = [node for node in nodes if node not in needed]
        self._alone = {node: value_of(self._graph([node])) - self._of_needed for node in further}
        self._remembered: dict[tuple[int, int], float] = {}

    @property
    def of_every_graph(self) -> float:
        """The score of the graph without edges, which families are counted from."""
        return self._of_needed + sum(self._alone.values())

    def score(self, child: int, parents: int) -> float:
        """What a node's parents, a mask of places, add to the score of the node alone; -inf if it cannot have them."""
        key = child, parents
        if key not in self._remembered:
            self._remembered[key] = self._fitted(child, parents) if parents else 0.0
        return self._remembered[key]

    def grown(self, child: int, parents: int, further: Sequence[int]) -> np.ndarray:
        """The scores of a family with one parent more, for each of some nodes."""
        return np.array([self.score(child, parents | 1 << more) for more in further], dtype=float)

    def _fitted(self, child: int, parents: int) -> float:
        above: list[Hashable] = [self.nodes[k] for k in range(parents.bit_length()) if parents >> k & 1]
        node = self.nodes[child]
        try:
            value = self._value_of(self._graph([*above, node], {node: above}))
        except (StructureError, TooLargeError):  # the node has no such parents in any graph
            return -inf
        return value - self._of_needed - sum(self._alone.get(member, 0.0) for member in (*above, node))

    def _graph(self, members: Collection, edges: dict | None = None) -> DAG:
        """A graph over some nodes and those that are needed."""
        return DAG([node for node in self.nodes if node in members or node in self._needed], edges or {})
