"""Averages over models, in proportion to their posterior probabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp
from sklearn.base import BaseEstimator
from sklearn.utils.parallel import Parallel, delayed

from skvbem.search.execution.jobs import Job

# What the models left out of an average may hold of the posterior, and the most models in one.
_MAX_PROBABILITY_LEFT_OUT, _MAX_MODELS = 1e-3, 100


@dataclass(frozen=True, eq=False)
class Average:
    """Fitted models and their posterior probabilities, by which predictions are averaged.

    Parameters
    ----------
    estimators : tuple of estimator
        The most probable first.
    weights : ndarray of shape (n_models,)
        Sum to one.
    left_out : float
        Posterior probability of the models that are not in the average.
    """

    estimators: tuple[BaseEstimator, ...]
    weights: np.ndarray
    left_out: float

    def score_samples(self, X) -> np.ndarray:
        """ln of the average predictive probability of each row, nats.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        scores = np.stack([estimator.score_samples(X) for estimator in self.estimators])
        return logsumexp(scores, axis=0, b=self.weights[:, None])


def average_over(job: Job, settings: Sequence[Mapping], posterior: np.ndarray, n_jobs: int | None) -> Average:
    """The fitted models that hold all but 0.1 % of the posterior (at most 100)."""
    order = np.argsort(-posterior, kind="stable")
    n_kept = min(
        int(np.searchsorted(np.cumsum(posterior[order]), 1.0 - _MAX_PROBABILITY_LEFT_OUT)) + 1, _MAX_MODELS, len(order)
    )
    kept = order[:n_kept]
    weights = posterior[kept]
    fitted = Parallel(n_jobs=n_jobs)(delayed(_fitted)(job, settings[k]) for k in kept)
    return Average(tuple(fitted), weights / weights.sum(), float(1.0 - weights.sum()))


def _fitted(job: Job, setting: Mapping) -> BaseEstimator:
    return job.fit(job.candidate_of(setting))
