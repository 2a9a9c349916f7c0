"""The best of all graphs of a space, found without trying them."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from math import inf
from typing import NoReturn

import numpy as np

from skvbem.graphs.names import shown
from skvbem.search.families.edge_odds import EdgeOdds
from skvbem.search.families.family_scores import FamilyScores
from skvbem.search.families.sums import NotASum
from skvbem.search.strategies.base import Problem, Strategy
from skvbem.search.strategies.exact.best_dag import CompleteData, best_dag
from skvbem.spaces.structures import StructureSpace


@dataclass(frozen=True)
class Exact(Strategy):
    """Finds the best graph of a `DAGSpace` without latents by dynamic programming, for complete data and some 20 nodes.

    Only the best graph is tried: the table of the search has one row, and its posterior says nothing.

    Parameters
    ----------
    max_memory : float, default=4e9
        Most bytes of the tables over all sets of nodes: 21 nodes take 0.3 GB, each node more doubles that.

    Raises
    ------
    ValueError
        In a search that is not one for a sum over families: with latents or missing cells, another space, a score
        that is neither the evidence (nearly all are, where nothing is hidden) nor "bic", a prior over structures that
        is neither uniform nor one of edges, or Dirichlet priors that are not equal in all cells of a table.
    TooLargeError
        If the tables exceed `max_memory`.

    Notes
    -----
    With n nodes of at most k parents, time is proportional to the number of sets of up to k + 1 nodes times the number
    of distinct rows, and to :math:`n^2 2^n`. Rules of the space hold, and a prior over edges counts. See
    `skvbem.search.strategies.exact.best_dag` for the algorithm (Silander & Myllymäki 2006).

    Examples
    --------
    >>> from skvbem import StructureSearchCV, VBDiscreteDAG
    >>> from skvbem.datasets import load_lizards
    >>> from skvbem.spaces import DAGSpace
    >>> X = load_lizards().data
    >>> search = StructureSearchCV(VBDiscreteDAG(prior="bdeu"), DAGSpace(["x0", "x1", "x2"]), strategy="exact").fit(X)
    >>> round(search.best_score_, 2)
    -818.87
    """

    max_memory: float = 4e9

    def search(self, problem: Problem) -> None:
        """Try the best graph of the space, found by dynamic programming."""
        space = problem.space
        if not isinstance(space, StructureSpace) or space.latents:
            _refuse(f"needs a space of graphs without latents, such as a DAGSpace; this one is {shown(space)}")
        try:
            scores = problem.job.family_scores(next(iter(space)), problem.ranking)
        except NotASum as error:
            _refuse(str(error))
        data, odds = _complete_data(scores, space.observed), EdgeOdds.of(problem.prior, space.rules)
        if odds is None:
            _refuse(f"needs a prior over structures that is uniform or an EdgePrior. Got {problem.prior!r}")
        dag, score = best_dag(data, odds.rules, odds.log_odds, self.max_memory)
        if score == -inf:
            _refuse("found no graph that both the space and the prior allow")
        problem.scores([{"structure": dag}])


def _complete_data(scores: FamilyScores, nodes: tuple[Hashable, ...]) -> CompleteData:
    """Rows of the nodes of a space, with the priors and the penalty of their families."""
    priors = []
    for node in nodes:
        prior = scores.prior.equal_concentration(node)
        if prior is None:
            _refuse(f"needs Dirichlet priors that are equal in all cells of a table; node {node!r} is given a table")
        priors.append(prior)
    completed = scores.completed
    return CompleteData(
        nodes,
        np.ascontiguousarray(completed.codes[[completed.place[node] for node in nodes]], dtype=np.int32),
        completed.weight,
        np.array([completed.cardinalities[node] for node in nodes], dtype=np.int64),
        priors,
        scores.per_parameter,
    )


def _refuse(why: str) -> NoReturn:
    raise ValueError(f"The strategy 'exact' {why}. Take 'greedy', or 'structural', which is faster.")
