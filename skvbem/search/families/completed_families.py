r"""Bounds of networks of categories and measurements from rows completed by one q(x): sums over families.

The score of a family is the log evidence of its expected statistics. Under a known prior it is a closed form; where
precisions are hidden it is the highest lower bound over these, found by steps that each raise it:

.. math::

    F_v = \max_{q(\theta_v) q(\lambda_v)} \langle \ln p(u_v \mid \theta_v) \rangle - \mathrm{KL}.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from math import inf, prod
from typing import Any

import numpy as np

from skvbem._lazy import cached_property
from skvbem.errors import StructureError
from skvbem.fitting.kind import kind_of
from skvbem.graphs.dag import DAG
from skvbem.models.mixed_network.completed_numbers import CompletedNumbers, with_hidden
from skvbem.search.families.family_scores import FamilyScores


class CompletedFamilies:
    """The bound that one q(x) gives on the evidence of every graph of categories and measurements.

    Parameters
    ----------
    completed : CompletedNumbers
    estimator : estimator
        Whose priors families have.
    reading : MixedReading
    """

    are_evidences = True

    def __init__(self, completed: CompletedNumbers, estimator: Any, reading: Any):
        self.completed, self._estimator, self._reading = completed, estimator, reading
        network = kind_of(estimator).tables(estimator, reading)
        self._of_tables = FamilyScores(completed.categories, network, max_table_cells=network.max_table_cells)
        self._most_cells = network.max_table_cells
        self.nodes = (*completed.cardinalities, *completed.numbers)
        self._remembered: dict[tuple[int, int], float] = {}

    @cached_property
    def place(self) -> Mapping[Hashable, int]:
        """The places of nodes, which are bits of masks."""
        return {node: k for k, node in enumerate(self.nodes)}

    @property
    def constant(self) -> float:
        """H(q) in the units of the data, nats."""
        return self.completed.entropy - self.completed.log_unit

    def family(self, node: Hashable, parents: Iterable[Hashable]) -> float:
        """The score of one family, nats."""
        return self.score(self.place[node], sum(1 << self.place[parent] for parent in parents))

    def score(self, child: int, parents: int) -> float:
        """The score of one family by the places of its nodes, the parents a mask of bits, nats; -inf if impossible."""
        key = child, parents
        if key not in self._remembered:
            self._remembered[key] = self._scored(child, parents)
        return self._remembered[key]

    def grown(self, child: int, parents: int, further: Sequence[int]) -> np.ndarray:
        """The scores of a family with one parent more, for each of some nodes, nats."""
        scores = (self.score(child, parents | 1 << more if more >= 0 else parents) for more in further)
        return np.array(list(scores), dtype=float)

    def bound(self, dag: DAG) -> float:
        """H(q) plus the scores of a graph's families: a lower bound on its evidence, nats."""
        return self.constant + sum(self.family(node, dag.parents(node)) for node in dag.nodes)

    def _scored(self, child: int, parents: int) -> float:
        node, sizes = self.nodes[child], self.completed.cardinalities
        above = [self.nodes[k] for k in range(parents.bit_length()) if parents >> k & 1]
        if node in sizes:
            return -inf if any(each not in sizes for each in above) else self._of_tables.family(node, above)
        if prod(sizes[each] for each in above if each in sizes) > self._most_cells:
            return -inf
        try:
            emission, prior = kind_of(self._estimator).family(self._estimator, self._reading, node, above)
        except StructureError:  # the node has no such parents in any graph
            return -inf
        statistics, log_base = self.completed.statistics_of(emission, node, above)
        return log_base + with_hidden(prior, statistics)[1]
