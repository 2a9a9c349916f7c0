"""The best of all graphs of a space, found without trying them."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from math import inf, log
from typing import Any, NoReturn

import numpy as np

from skvbem.evidence import SCORES, EvidenceScorer
from skvbem.families.dirichlet import EqualConcentration
from skvbem.graphs.names import shown
from skvbem.search.execution.jobs import EvidenceJob
from skvbem.search.strategies.base import Problem, Strategy
from skvbem.search.strategies.exact.best_dag import CompleteData, best_dag
from skvbem.search.strategies.structural.edge_odds import EdgeOdds
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
        data = _complete_data(problem, space.observed)
        odds = EdgeOdds.of(problem.prior, space.rules)
        if odds is None:
            _refuse(f"needs a prior over structures that is uniform or an EdgePrior. Got {problem.prior!r}")
        dag, score = best_dag(data, odds.rules, odds.log_odds, self.max_memory)
        if score == -inf:
            _refuse("found no graph that both the space and the prior allow")
        problem.scores([{"structure": dag}])


def _complete_data(problem: Problem, nodes: tuple[Hashable, ...]) -> CompleteData:
    """Rows of the nodes of a space, with priors and penalties of the score that ranks."""
    job: Any = problem.job
    reading = job.readings.common if isinstance(job, EvidenceJob) else None
    if reading is None or not hasattr(job.estimator, "network"):
        _refuse("needs scores of the evidence of all rows, with cv=None, of a network such as VBDiscreteDAG")
    setting = next(iter(problem.space))
    estimator, network, rows = job.candidate_of(setting), job.network(setting), reading.rows
    if network.latents or (rows.codes < 0).any():
        _refuse(f"needs complete data; {'there are latents' if network.latents else 'some cells are missing'}")
    if estimator.learn_prior:
        _refuse("needs learn_prior=False: a prior learned anew for each graph does not fall into families")
    weight = np.ones(len(rows)) if rows.weight is None else rows.weight
    scorer = job.scorers[problem.ranking]
    score = SCORES[scorer.kind] if isinstance(scorer, EvidenceScorer) else None
    if score is not None and score.is_penalized_likelihood and not scorer.options:
        priors = [EqualConcentration(0.0, "cell")] * len(nodes)
        per_parameter = 0.5 * log(weight.sum()) - (score.penalty_discount or 0.0)
    elif score is not None and score.exact_if_complete:
        priors, per_parameter = [_equal_concentration(network, node) for node in nodes], 0.0
    else:
        penalized = ", ".join(repr(name) for name, each in SCORES.items() if each.is_penalized_likelihood)
        exact = ", ".join(name for name, each in SCORES.items() if each.exact_if_complete)
        _refuse(f"needs a score that is a sum over families: {penalized}, or one of {exact}")
    place = [rows.names.index(node) for node in nodes]
    return CompleteData(
        nodes,
        np.ascontiguousarray(rows.codes[:, place].T, dtype=np.int32),
        weight,
        np.asarray(reading.columns.n_categories_, dtype=np.int64)[place],
        priors,
        per_parameter,
    )


def _equal_concentration(network, node) -> EqualConcentration:
    prior = network.equal_concentration(node)
    if prior is None:
        _refuse(f"needs Dirichlet priors that are equal in all cells of a table; node {node!r} is given a table")
    return prior


def _refuse(why: str) -> NoReturn:
    raise ValueError(f"The strategy 'exact' {why}. Take 'greedy', or 'structural', which is faster.")
