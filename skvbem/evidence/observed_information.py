r"""The observed information at a point: minus the Hessian of its log density in unconstrained coordinates [Louis 1982].

Exact by Louis' identity: the information of complete data with the expected statistics, for which the family is asked,
less the covariance of the scores of complete data given what was observed, for which the model is asked. Hidden
hyperparameters are hidden variables like any other: the covariance of scores under them is taken off, too.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from skvbem.capabilities import ScoreCovariance
from skvbem.evidence.evaluation import Evaluation


def score_covariances(
    evaluation: Evaluation, point: Any, *, joint: bool, max_states: int, of_prior: bool = True, what: str = "The score"
) -> list[ScoreCovariance]:
    """Covariances of the scores of complete data under what is hidden, block by block; coordinates in none have none.

    Parameters
    ----------
    evaluation : Evaluation
    point : point of the prior
    joint : bool
        Whether with covariances between blocks of parameters.
    max_states : int
        Most joint states of what is hidden in one row.
    of_prior : bool, default=True
        Whether the density has the prior, and so its hidden hyperparameters.
    what : str
        What needs them, for messages.
    """
    prior = evaluation.model.prior
    blocks = evaluation.capability("information", what)(point, evaluation.data, joint=joint, max_states=max_states)
    if prior.hyperprior is None or not of_prior:
        return blocks
    covariance = prior.hyperprior.score_covariance(prior.natural(point), prior.jacobian(point))
    every = np.arange(len(covariance))
    if not joint:
        alone = np.setdiff1d(every, np.concatenate([block.free for block in blocks]))
        within = [*blocks, ScoreCovariance(alone, np.zeros((len(alone),) * 2))]
        return [replace(each, covariance=each.covariance + covariance[np.ix_(each.free, each.free)]) for each in within]
    for block in blocks:
        covariance[np.ix_(block.free, block.free)] += block.covariance
    return [ScoreCovariance(every, covariance)]


def coordinates_of_mode(prior: Any, natural: np.ndarray, statistics: np.ndarray, in_probabilities: bool) -> np.ndarray:
    """Additive coordinates (n_cells,) of the density whose mode a point is, at the statistics expected there.

    Parameters
    ----------
    prior : ConjugateFamily
        Hidden hyperparameters are taken as expected at the point.
    natural, statistics : ndarray of shape (n_cells,)
    in_probabilities : bool
        Whether the density is one of the parameters themselves.
    """
    coordinates = (prior + (statistics + prior.hyperparameters(natural))).coordinates
    return coordinates + prior.probability_shift if in_probabilities else coordinates


def observed_information(
    evaluation: Evaluation, point: Any, coordinates: np.ndarray, *, max_states: int, of_prior: bool, what: str
) -> tuple[np.ndarray, np.ndarray]:
    """Information of complete data with the expected statistics, and of what was observed, (n_free, n_free) each.

    Parameters
    ----------
    evaluation : Evaluation
    point : point of the prior
    coordinates : ndarray of shape (n_cells,)
        Of the density whose information is wanted: expected statistics, with the prior's coordinates if it has a part.
    max_states, of_prior, what
        As of `score_covariances`.
    """
    complete = evaluation.model.prior.information(point, coordinates)
    observed = complete.copy()
    blocks = score_covariances(evaluation, point, joint=True, max_states=max_states, of_prior=of_prior, what=what)
    for block in blocks:
        observed[np.ix_(block.free, block.free)] -= block.covariance
    return complete, observed
