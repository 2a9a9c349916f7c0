r"""Scores that are sums over families: H(q) + ln BD of the counts that rows completed by one q(x) give."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache

import numpy as np

from skvbem._numerics import log_rising
from skvbem.graphs.dag import DAG
from skvbem.models.network.completed_rows import CompletedRows

# Families whose scores are remembered, some 300 bytes each.
_MAX_REMEMBERED_FAMILIES = 100_000


class FamilyScores:
    """The bound that one q(x) gives on the evidence of every graph; each family is scored once.

    Parameters
    ----------
    completed : CompletedRows
    prior : callable
        Family, a tuple (*parents, node) -> Dirichlet concentrations, axes in this order. Parents come in the order of
        the completed rows.
    most : int
        Families remembered; those asked for longest ago are forgotten first.
    """

    def __init__(
        self, completed: CompletedRows, prior: Callable[[tuple], np.ndarray], most: int = _MAX_REMEMBERED_FAMILIES
    ):
        self.completed, self._prior = completed, prior
        self._remembered = lru_cache(maxsize=most)(self._scored)

    def family(self, node: Hashable, parents: Sequence[Hashable]) -> float:
        """ln BD of one family, nats."""
        return self._remembered((*sorted(parents, key=self.completed.place.__getitem__), node))

    def bound(self, dag: DAG) -> float:
        """H(q) + ln BD of all families of a graph: a lower bound on its evidence, exact where nothing is hidden."""
        return self.completed.entropy + sum(self.family(node, dag.parents(node)) for node in dag.nodes)

    def _scored(self, family: tuple) -> float:
        prior, counts = self._prior(family), self.completed.counts(family)
        of_rows = log_rising(prior.sum(axis=-1), counts.sum(axis=-1))
        return float(log_rising(prior, counts).sum() - of_rows.sum())
