"""Problems for strategies: any function of a setting as its score, and the estimators' own."""

import numpy as np

from skvbem.search.execution.jobs import Job, Record
from skvbem.search.execution.runner import Runner
from skvbem.search.strategies import Problem
from skvbem.spaces.priors import coerce_prior


class FunctionJob(Job):
    """Scores that a function of the setting gives."""

    def __init__(self, function):
        self.function, self.n_measured = function, 0
        self.estimator, self.scorers, self.error_score = None, {"score": None}, np.nan

    def record(self, setting):
        self.n_measured += 1
        try:
            return Record({"score": float(self.function(setting))})
        except ValueError as error:
            return self.failed(str(error))

    def measured(self, estimator):
        raise NotImplementedError

    def fingerprint(self):
        return "function"


def make_problem(space, function, *, seed=0, prior=None, most=None):
    """A problem whose scores a function gives."""
    job = FunctionJob(function)
    return Problem(space, Runner(job, most=most), "score", coerce_prior(prior), job, np.random.default_rng(seed))


def scores_of(problem):
    """All settings tried, with their scores."""
    return [(setting, record.values[problem.ranking]) for setting, record in problem.runner.tried]
