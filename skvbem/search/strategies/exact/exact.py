"""The best of all graphs of a space, found without trying them."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import NoReturn

import numpy as np

from skvbem._names import shown
from skvbem.evidence import SCORES
from skvbem.search.execution.jobs import Job
from skvbem.search.families.edge_odds import EdgeOdds
from skvbem.search.families.family_scores import FamilyScores
from skvbem.search.families.sums import NotASum
from skvbem.search.strategies.base import Problem, Strategy
from skvbem.search.strategies.exact.best_dag import CompleteData, FamilyByFamily, LocalScores, best_dag
from skvbem.search.strategies.exact.sum_of_dags import MAX_NODES, GraphPosterior, graph_posterior
from skvbem.search.strategies.landscapes import SummedGraphs
from skvbem.spaces import Space
from skvbem.spaces.priors import StructurePrior
from skvbem.spaces.structures import StructureSpace

# Operations of families that are fitted for a sum over graphs alone, of some nanoseconds each.
_MAX_OPERATIONS_OF_FITS = 2e8


@dataclass(frozen=True)
class Exact(Strategy):
    """Finds the best graph of a `DAGSpace` without latents by dynamic programming, for complete data and some 20 nodes.

    Networks of mixed columns (`VBNetwork`) are searched so, too: each family that the space allows is fitted once.
    Ten nodes take a minute. Families that there cannot be, such as numbers above categories, are left out.

    The table of the search has the best graph first, then the best graphs near it, up to a hundred in all. Moves of
    edges lead to them from graph to graph. The posterior is over these graphs.

    Parameters
    ----------
    max_memory : float, default=4e9
        Most bytes of the tables over all sets of nodes: 21 nodes take 0.3 GB, each node more doubles that.

    Raises
    ------
    ValueError
        If the score of a graph is not a sum over families. This is so with latents or missing cells, and with spaces
        of another kind. The score must be the evidence (nearly all are, where nothing is hidden) or "bic". The prior
        over structures must be uniform or one of edges. Dirichlet priors must be equal in all cells of a table.
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

    def n_operations(self, space: Space, job: Job, ranking: str, prior: StructurePrior) -> float:
        """How many operations, of some nanoseconds each, the best graph takes about; inf where it cannot be found."""
        try:
            data, odds = _families(space, job, ranking, prior)
        except NotASum:
            return inf
        n = len(data.nodes)
        return data.n_operations(odds.rules) + float(n) ** 2 * 2.0**n

    def search(self, problem: Problem) -> None:
        """Try the best graph of the space, found by dynamic programming."""
        try:
            data, odds = _families(problem.space, problem.job, problem.ranking, problem.prior)
        except NotASum as error:
            _refuse(str(error))
        dag, score = best_dag(data, odds.rules, odds.log_odds, self.max_memory)
        if score == -inf:
            _refuse("found no graph that both the space and the prior allow")
        problem.scores([{"structure": dag}])
        graphs = SummedGraphs.of(problem)
        if graphs is not None:
            graphs.at({"structure": dag})
            graphs.explore()
            graphs.conclude()


def _families(space: Space, job: Job, ranking: str, prior: StructurePrior) -> tuple[LocalScores, EdgeOdds]:
    """The scores of all families of the nodes of a space, and the odds of edges.

    Raises
    ------
    NotASum
        If the score is no sum over families that the program can go through.
    """
    if not isinstance(space, StructureSpace) or space.latents:
        raise NotASum(f"needs a space of graphs without latents, such as a DAGSpace; this one is {shown(space)}")
    scores, odds = job.family_scores(next(iter(space)), ranking), EdgeOdds.of(prior, space.rules)
    if odds is None:
        raise NotASum(f"needs a prior over structures that is uniform or an EdgePrior. Got {prior!r}")
    if not isinstance(scores, FamilyScores):
        return FamilyByFamily(tuple(space.observed), scores), odds
    priors = []
    for node in space.observed:
        equal = scores.prior.equal_concentration(node)
        if equal is None:
            raise NotASum(
                f"needs Dirichlet priors that are equal in all cells of a table; node {node!r} is given a table"
            )
        priors.append(equal)
    completed = scores.completed
    data = CompleteData(
        space.observed,
        np.ascontiguousarray(completed.codes[[completed.place[node] for node in space.observed]], dtype=np.int32),
        completed.weight,
        np.array([completed.cardinalities[node] for node in space.observed], dtype=np.int64),
        priors,
        scores.per_parameter,
    )
    return data, odds


def posterior_over_space(space: Space, job: Job, ranking: str, prior: StructurePrior) -> GraphPosterior | None:
    """The posterior over all graphs of a space by a sum over them; None where there is no such sum.

    Parameters
    ----------
    space, job, ranking, prior
        As of a search: the score must be the evidence of complete rows.
    """
    if not SCORES[getattr(job.scorers[ranking], "kind", "bic")].exact_if_complete:
        return None
    try:
        data, odds = _families(space, job, ranking, prior)
    except NotASum:
        return None
    is_long = isinstance(data, FamilyByFamily) and data.n_operations(odds.rules) > _MAX_OPERATIONS_OF_FITS
    if len(data.nodes) > MAX_NODES or not data.are_evidences or is_long:
        return None
    return graph_posterior(data, odds.rules, odds.log_odds)


def _refuse(why: str) -> NoReturn:
    raise ValueError(f"The strategy 'exact' {why}. Take 'greedy', or 'structural', which is faster.")
