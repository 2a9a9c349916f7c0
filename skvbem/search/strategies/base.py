"""The problem that a strategy is given, and what it has to do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, TypeVar

import numpy as np

from skvbem.search.execution.jobs import Job
from skvbem.search.execution.runner import Runner
from skvbem.search.families.family_scores import rounding
from skvbem.spaces import Space
from skvbem.spaces.priors import StructurePrior

_Item = TypeVar("_Item")


@dataclass(frozen=True, eq=False)
class Problem:
    """A search as a strategy sees it: settings in, scores out.

    Parameters
    ----------
    space : Space
    runner : Runner
        Tries candidates, each once.
    ranking : str
        The score that ranks.
    prior : StructurePrior
    job : Job
        For strategies that know more of an estimator than its scores.
    rng : numpy.random.Generator
    """

    space: Space
    runner: Runner
    ranking: str
    prior: StructurePrior
    job: Job
    rng: np.random.Generator

    def scores(self, settings: Sequence[Mapping], *, are_new: bool = False) -> np.ndarray:
        """The score that ranks of each setting, tried together; NaN for one that failed or was not tried any more.

        `are_new` says that all of a search are different models, which need not be compared then.
        """
        records = self.runner(settings, are_new=are_new)
        return np.array([np.nan if record is None else record.values[self.ranking] for record in records])

    def list_known(self, settings: Sequence[Mapping]) -> None:
        """Make settings part of the result whose scores are as good as known, so that it may be late for it."""
        self.runner(settings, at_any_time=True)

    def log_priors(self, settings: Sequence[Mapping]) -> np.ndarray:
        """The log prior of each setting, up to a constant; -inf where the prior rules it out."""
        return np.array([self.prior.log_weight(setting, self.space) for setting in settings], dtype=float)

    def log_posteriors(self, settings: Sequence[Mapping]) -> np.ndarray:
        """Score plus log prior of each setting, tried together, up to a constant.

        It is -inf for a setting that failed or was not tried: settings that the prior rules out are not.
        """
        log_posteriors = self.log_priors(settings)
        possible = np.flatnonzero(log_posteriors > -np.inf)
        scores = self.scores([settings[k] for k in possible.tolist()])
        log_posteriors[possible] += np.where(np.isnan(scores), -np.inf, scores)
        return log_posteriors

    @property
    def is_over(self) -> bool:
        """True if no further candidate will be tried."""
        return self.runner.is_late() or bool(self.runner.over)

    def until_over(self, items: Iterable[_Item]) -> Iterator[_Item]:
        """Items as long as the search is not over: to list the neighbors of a large graph takes seconds."""
        return takewhile(lambda _: not self.is_over, items)


class Strategy(ABC):
    """A strategy decides which settings of a space are tried, by asking for their scores as often as it likes."""

    @abstractmethod
    def search(self, problem: Problem) -> Mapping[str, Any] | None:
        """Try settings; everything tried is part of the result. Must end once `problem.is_over`.

        Returns
        -------
        mapping of str or None
            What the strategy knows beyond the scores, if anything. Arrays with an entry for each candidate are in the
            order of `problem.runner.tried`.
        """

    def chosen_for(self, space: Space, job: Job, ranking: str, prior: StructurePrior) -> Strategy:
        """The strategy that searches: this one, unless it leaves the choice to the search, as "auto" does.

        Parameters
        ----------
        space : Space
        job : Job
        ranking : str
            The score that ranks.
        prior : StructurePrior
        """
        return self

    def n_candidates(self, space: Space) -> int | None:
        """The number of settings of a space it tries if nothing ends it, None if that depends on what it finds."""
        return None


def gains(value: float, over: float) -> bool:
    """True if a score is higher by more than rounding."""
    return bool(value > over + rounding(over)) if over > -np.inf else value > over
