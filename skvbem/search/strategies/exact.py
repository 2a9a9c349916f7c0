"""The best of all graphs of a space, found without trying them."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import NoReturn

import numpy as np

from skvbem._names import shown
from skvbem.evidence import SCORES, EvidenceScorer
from skvbem.search.execution.jobs import Job
from skvbem.search.families.best_dag import CompleteData, FamilyByFamily, LocalScores, best_dag
from skvbem.search.families.decomposable import NotDecomposable
from skvbem.search.families.family_scores import FamilyScores
from skvbem.search.families.graph_walk import EdgeLogOdds
from skvbem.search.families.hidden_scale import HiddenScaleScores, PosteriorOverGraphs, best_dags, mixed_posterior
from skvbem.search.families.normal_wishart_scores import NormalWishartScores
from skvbem.search.families.sum_of_dags import graph_posterior
from skvbem.search.strategies.base import Problem, Strategy
from skvbem.search.strategies.objectives import FamilyObjective
from skvbem.search.tuning import TUNING
from skvbem.spaces import Space
from skvbem.spaces.priors import StructurePrior
from skvbem.spaces.structures import StructureSpace


@dataclass(frozen=True)
class Exact(Strategy):
    """Finds the best graph of a `DAGSpace` without latents by dynamic programming, for complete data and some 20 nodes.

    Networks of mixed columns (`VBNetwork`) are searched so, too: each family that the space allows is fitted once.
    Ten nodes take a minute. Numbers have no children with tables in such a space, so that no family is fitted in vain.
    Measurements alone under the prior "bge" (`skvbem.emissions.Regression`) need no fits: twelve nodes take a
    second, and five where its scale is hidden. Then the score is a mixture over scales: the best graph at each scale is
    found, and the best by the mixture among these and the graphs that moves of edges lead to.

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
    `skvbem.search.families.best_dag` for the algorithm (Silander & Myllymäki 2006).

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
        """Estimated operations, of some nanoseconds each, to find the best graph; inf where it cannot be found."""
        try:
            data, odds = _families(space, job, ranking, prior)
        except NotDecomposable:
            return inf
        n = len(data.nodes)
        return data.n_operations(odds.rules) + float(n) ** 2 * 2.0**n

    def search(self, problem: Problem) -> None:
        """Try the best graph of the space, found by dynamic programming."""
        try:
            data, odds = _families(problem.space, problem.job, problem.ranking, problem.prior)
        except NotDecomposable as error:
            _refuse(str(error))
        if isinstance(data, HiddenScaleScores):
            best_graphs = best_dags(data, odds.rules, odds.log_odds, self.max_memory)
        else:
            best_graphs = [best_dag(data, odds.rules, odds.log_odds, self.max_memory)]
        best = {dag: score for dag, score in sorted(best_graphs, key=lambda each: each[1]) if score > -inf}
        if not best:
            _refuse("found no graph that both the space and the prior allow")
        problem.scores([{"structure": max(best, key=best.__getitem__)}])
        graphs = FamilyObjective.of(problem)
        if graphs is not None:
            for dag in best:
                graphs.at({"structure": dag})
            graphs.explore()
            graphs.conclude()


def _families(
    space: Space, job: Job, ranking: str, prior: StructurePrior
) -> tuple[LocalScores | HiddenScaleScores, EdgeLogOdds]:
    """The scores of all families of the nodes of a space, and the odds of edges.

    Raises
    ------
    NotDecomposable
        If the score is no sum over families that the program can go through.
    """
    if not isinstance(space, StructureSpace) or space.latents:
        raise NotDecomposable(
            f"needs a space of graphs without latents, such as a DAGSpace; this one is {shown(space)}"
        )
    scores, odds = job.family_scores(space.first, ranking), EdgeLogOdds.of(prior, space.rules)
    if odds is None:
        raise NotDecomposable(f"needs a prior over structures that is uniform or an EdgePrior. Got {prior!r}")
    if isinstance(scores, (NormalWishartScores, HiddenScaleScores)):
        return scores.among(space.observed), odds
    if not isinstance(scores, FamilyScores):
        return FamilyByFamily(tuple(space.observed), scores), odds
    priors = []
    for node in space.observed:
        equal = scores.prior.equal_concentration(node)
        if equal is None:
            raise NotDecomposable(
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
        scores.most_cells,
        completed.rows_set,
    )
    return data, odds


def posterior_over_space(space: Space, job: Job, ranking: str, prior: StructurePrior) -> PosteriorOverGraphs | None:
    """The posterior over all graphs of a space by a sum over them; None where there is no such sum.

    Parameters
    ----------
    space, job, ranking, prior
        As of a search: the score must be the evidence of complete rows.
    """
    score = job.scorers[ranking]
    if not isinstance(score, EvidenceScorer) or not SCORES[score.kind].exact_if_complete:
        return None
    try:
        data, odds = _families(space, job, ranking, prior)
    except NotDecomposable:
        return None
    is_long = isinstance(data, FamilyByFamily) and data.n_operations(odds.rules) > TUNING.max_operations
    if len(data.nodes) > TUNING.max_summed_nodes or not data.are_evidences or is_long:
        return None
    if isinstance(data, HiddenScaleScores):
        return mixed_posterior(data, odds.rules, odds.log_odds)
    return graph_posterior(data, odds.rules, odds.log_odds)


def _refuse(why: str) -> NoReturn:
    raise ValueError(f"The strategy 'exact' {why}. Take 'greedy', or 'structural', which is faster.")
