"""Every setting of a space."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from skvbem._numerics import times_log
from skvbem.data import Rows
from skvbem.errors import TooLargeError
from skvbem.evidence import SCORES, EvidenceScorer
from skvbem.fitting.kind import find_kind
from skvbem.search.execution.jobs import EvidenceJob
from skvbem.search.families.family_scores import rounding
from skvbem.search.strategies.base import Problem, Strategy
from skvbem.search.tuning import TUNING
from skvbem.spaces import Space
from skvbem.spaces.base import MAX_LISTED


@dataclass(frozen=True)
class Exhaustive(Strategy):
    r"""Tries every setting, in the order of the space.

    Parameters
    ----------
    prune : bool, default=False
        Whether settings are left out that cannot win, which the table of the search and the posterior then lack. Only
        for the scores "bic" and "draper" of structures: no log likelihood exceeds that of the shares of rows, so that
        :math:`\mathrm{BIC} \le \sum_r n_r \ln(n_r / n) - \tfrac{d}{2} \ln n`.

    Raises
    ------
    TooLargeError
        If the space has more than a million settings, and neither `max_candidates` nor `time_budget` ends the search.

    Notes
    -----
    Rows with different cells missing are bounded apart. With `prune` the best score so far counts, whatever the prior
    over structures.

    Examples
    --------
    >>> from skvbem import StructureSearchCV, VBDiscreteDAG
    >>> from skvbem.datasets import load_carcinoma
    >>> from skvbem.search.strategies import Exhaustive
    >>> space = {"latents": [2, 3, 20, 30]}
    >>> strategy = Exhaustive(prune=True)
    >>> search = StructureSearchCV(VBDiscreteDAG(), space, strategy=strategy, scoring="bic", random_state=0)
    >>> search.fit(load_carcinoma().data).cv_results_["param_latents"].tolist()
    [2, 3]
    """

    prune: bool = False

    def search(self, problem: Problem) -> None:
        """Try every setting of the space; TypeError if pruning is asked for and the score has no such bound."""
        if not problem.runner.is_limited and problem.space.has_more_than(MAX_LISTED):
            raise TooLargeError(
                f"The strategy 'exhaustive' tries and remembers every setting, of spaces of up to {MAX_LISTED:,}; "
                f"{type(problem.space).__name__} has {problem.space.n_settings_in_words()}. Take strategy='structural' "
                "for networks and 'greedy' for others, say more in the space (max_parents, tiers, forbidden edges), or "
                "set 'max_candidates' or 'time_budget' to try those that come first."
            )
        settings = problem.until_over(problem.space)
        if self.prune:
            self._search_pruned(problem, settings)
            return
        at_once = TUNING.n_first_batch
        while batch := list(islice(settings, at_once)):
            problem.scores(batch, are_new=True)
            at_once = TUNING.n_looked_through

    def n_candidates(self, space: Space) -> int | None:
        """The number of settings of the space; None if pruning leaves some out, or if they are too many to count."""
        if self.prune:
            return None
        try:
            return space.n_settings
        except TooLargeError:
            return None

    def _search_pruned(self, problem: Problem, settings: Iterator[Mapping]) -> None:
        ceiling, best = ScoreCeiling.of(problem), -np.inf
        at_once = 1  # then more: the first scores rule out most
        while not problem.is_over and (batch := list(islice(settings, at_once))):
            kept = [setting for setting in batch if ceiling(setting) >= best]
            if kept:
                best = float(np.nanmax([best, *problem.scores(kept, are_new=True)]))
            at_once = min(2 * at_once, TUNING.n_first_batch)


@dataclass(frozen=True, eq=False)
class ScoreCeiling:
    """An upper bound on the penalized log likelihood of every structure.

    Parameters
    ----------
    job : EvidenceJob
    log_likelihood : float
        The highest there is for the data, nats.
    per_parameter : float
        The penalty, nats.
    """

    job: EvidenceJob
    log_likelihood: float
    per_parameter: float

    @classmethod
    def of(cls, problem: Problem) -> ScoreCeiling:
        """The ceiling of the score that ranks; TypeError if there is none."""
        job: Any = problem.job
        score = job.scorers[problem.ranking]
        kind = score.kind if isinstance(score, EvidenceScorer) else str(problem.ranking)
        plain = isinstance(score, EvidenceScorer) and score.options.keys() <= {"form"}
        discounts = {name: each.penalty_discount for name, each in SCORES.items() if each.penalty_discount is not None}
        reading = job.readings.common if isinstance(job, EvidenceJob) else None
        if kind not in discounts or not plain or reading is None or not hasattr(find_kind(job.estimator), "network"):
            raise TypeError(
                f"Exhaustive(prune=True) needs one of the scores {', '.join(sorted(discounts))}, of all rows and with "
                f"free parameters counted: a bound on the others rules nothing out. Got {kind!r}. Leave 'prune' False."
            )
        rows: Rows = reading.rows
        sizes = np.array(reading.columns.n_categories_)
        return cls(job, highest_log_likelihood(rows, sizes), 0.5 * np.log(rows.total_weight) - discounts[kind])

    def __call__(self, setting: Mapping) -> float:
        """The ceiling of one setting, nats."""
        network = self.job.network(setting)
        return self.log_likelihood - self.per_parameter * network.n_free_parameters + rounding(self.log_likelihood)


def highest_log_likelihood(rows: Rows, n_categories: Any = np.inf) -> float:
    """The log likelihood of rows that no model exceeds, nats: of frequencies among rows that lack the same cells.

    Cells that were set are as lacking ones: rows in which they were set to the same are taken together.
    """
    distinct = rows.distinct()
    weight = np.ones(len(distinct)) if distinct.weight is None else distinct.weight
    unexplained = np.where(distinct.codes < n_categories, np.minimum(distinct.codes, 0), distinct.codes)
    _, pattern = np.unique(unexplained, axis=0, return_inverse=True)
    total = np.bincount(pattern.ravel(), weights=weight)[pattern.ravel()]
    return float(times_log(weight, np.log(weight / total)).sum())
