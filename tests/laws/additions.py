"""A score and a strategy of somebody else's, in one file, as the page on extending the library says."""

from dataclasses import dataclass
from math import log

from skvbem.evidence import Evidence, Score
from skvbem.search.strategies import Strategy


def penalized(evaluation, *, form="map", strength=0.5):
    """The log likelihood at a mode, less strength x d x ln n: BIC at strength 1/2 and the mode of ML."""
    d, n = evaluation.model.prior.n_free_parameters, evaluation.n_samples
    value = evaluation.log_likelihood(evaluation.point(form)) - strength * d * log(n)
    return Evidence(value, "penalized", is_lower_bound=False, form=form, n_free_parameters=d, n_samples=n)


PENALIZED = Score("penalized", penalized, form="map")


@dataclass(frozen=True)
class Sampled(Strategy):
    """So many settings, each as probable as any other."""

    n: int = 3

    def search(self, problem):
        settings = problem.space.to_list()
        for k in problem.rng.permutation(len(settings))[: self.n]:
            if problem.is_over:
                break
            problem.scores([settings[k]])
