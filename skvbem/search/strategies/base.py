"""What a strategy is given, and what it has to do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from skvbem.graphs.priors import StructurePrior
from skvbem.graphs.spaces import Space
from skvbem.search._jobs import Job
from skvbem.search._runner import Runner


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

    def scores(self, settings: Sequence[Mapping]) -> np.ndarray:
        """The score that ranks of each setting, tried together; NaN for one that failed or was not tried any more."""
        records = self.runner(settings)
        return np.array([np.nan if record is None else record.values[self.ranking] for record in records])

    def log_posteriors(self, settings: Sequence[Mapping]) -> np.ndarray:
        """Score plus log prior of each setting, up to a constant."""
        return self.scores(settings) + [self.prior.log_weight(setting, self.space) for setting in settings]

    @property
    def is_over(self) -> bool:
        """Whether no further candidate will be tried."""
        return bool(self.runner.over)


class Strategy(ABC):
    """Decides which settings of a space are tried, by asking for their scores as often as it likes."""

    @abstractmethod
    def search(self, problem: Problem) -> None:
        """Try settings; everything tried is part of the result. Must end once `problem.is_over`."""
