r"""Second-stage scoring: probabilities of candidates from evidences with errors, sampled for those that may matter.

Candidates are ranked by a score that is off by a gap, evidence minus score. Those whose evidence may matter have it
sampled, the most promising first; from their gaps follows what the others may hold. It ends as soon as that is little.

The error of the evidences is in the probabilities: these are means over draws of the log evidences from normal
distributions, and their standard errors are those of the draws.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from skvbem.search.tuning import TUNING


@dataclass(frozen=True, eq=False)
class RescoredPosterior:
    """The posterior over candidates.

    Parameters
    ----------
    probabilities, errors : ndarray of shape (n_candidates,)
        With their standard errors.
    rest : float
        What candidates without evidence hold, as far as the gaps of the others tell.
    n_unreached : int, default=0
        Candidates whose evidence was asked for, but for which there was no time.
    """

    probabilities: np.ndarray
    errors: np.ndarray
    rest: float
    n_unreached: int = 0


def probabilities(
    values: np.ndarray, errors: np.ndarray, log_priors: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of candidates from log evidences with standard errors, and the standard errors of these.

    Parameters
    ----------
    values, errors : ndarray of shape (n,)
        Log evidences, nats, -inf or NaN for candidates that have none.
    log_priors : ndarray of shape (n,)
    rng : numpy.random.Generator
    """
    log_joint = np.where(np.isnan(values), -np.inf, values) + log_priors
    if not errors[np.isfinite(log_joint)].any():
        return np.exp(log_joint - logsumexp(log_joint)), np.zeros(len(values))
    likely = np.flatnonzero(log_joint + 8.0 * errors > np.max(log_joint) - 40.0)
    drawn = log_joint[likely, None] + errors[likely, None] * rng.standard_normal((len(likely), TUNING.n_error_draws))
    fractions = np.exp(drawn - logsumexp(drawn, axis=0))
    mean, spread = np.zeros(len(values)), np.zeros(len(values))
    mean[likely], spread[likely] = fractions.mean(axis=1), fractions.std(axis=1)
    return mean, spread


def rescored_posterior(
    scores: np.ndarray,
    sizes: np.ndarray,
    log_priors: np.ndarray,
    evidences_of: Callable[[Sequence[int]], tuple[np.ndarray, np.ndarray, np.ndarray]],
    rng: np.random.Generator,
    most: int,
) -> RescoredPosterior:
    """The posterior over candidates, with evidences of as many as may matter.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        What ranks, nats; NaN for candidates that failed, which get no probability.
    sizes : ndarray of shape (n,)
        Numbers of free parameters, with which gaps grow.
    log_priors : ndarray of shape (n,)
    evidences_of : callable of positions
        To log evidences of these candidates and their standard errors; NaN where there is none.
    rng : numpy.random.Generator
    most : int
        Evidences.
    """
    values, errors = np.full(len(scores), np.nan), np.zeros(len(scores))
    is_asked = np.isnan(scores) | (scores == -np.inf) | (log_priors == -np.inf)
    n_unreached = 0
    while True:
        guesses, spreads = predicted_evidences(scores, sizes, values, errors)
        known = ~np.isnan(values)
        all_values = np.where(known, values, np.where(is_asked, np.nan, guesses))
        expected, deviations = probabilities(all_values, np.where(known, errors, spreads), log_priors, rng)
        waiting = np.flatnonzero(~is_asked)
        rest = float(expected[waiting].sum())
        order = waiting[np.argsort(-(expected[waiting]), kind="stable")]
        if not known.any():
            ranking = (scores + log_priors)[waiting]
            order = waiting[np.argsort(-ranking, kind="stable")]
            promising = order[: TUNING.n_at_once]
            near = promising[(scores + log_priors)[promising] > ranking.max(initial=-np.inf) - TUNING.near]
            asked = order[: max(len(near), TUNING.n_at_once // 2)]
        elif rest <= TUNING.max_rest or known.sum() >= most or n_unreached:
            return RescoredPosterior(expected, deviations, rest, n_unreached)
        else:
            asked = order[: TUNING.n_at_once][expected[order[: TUNING.n_at_once]] > TUNING.improbable]
            asked = asked if len(asked) else order[:1]
        asked = asked[: most - int(known.sum())]
        if not len(asked):
            return RescoredPosterior(expected, deviations, rest)
        is_asked[asked] = True
        values[asked], errors[asked], is_reached = evidences_of(asked.tolist())
        is_asked[asked[~is_reached]] = False
        n_unreached = int((~is_reached).sum())
        if not known.any() and np.isnan(values[asked]).all():
            return RescoredPosterior(np.full(len(scores), np.nan), np.full(len(scores), np.nan), 1.0)


def predicted_evidences(
    scores: np.ndarray, sizes: np.ndarray, values: np.ndarray, errors: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Log evidences of all candidates as far as scores and the gaps known tell, and how uncertain that is, nats.

    Gaps are taken to be a straight line in the number of free parameters.
    """
    known = ~np.isnan(values)
    gaps, n_known = (values - scores)[known], int(known.sum())
    if n_known == 0:
        return scores, np.full(len(scores), TUNING.unknown_error)
    spread = max(float(gaps.std()), TUNING.unknown_error if n_known < 3 else TUNING.one_nat)
    if n_known < 3 or np.ptp(sizes[known]) == 0:
        return scores + gaps.mean(), np.full(len(scores), spread)
    slope, at_zero = np.polyfit(sizes[known], gaps, 1)
    left = gaps - (at_zero + slope * sizes[known])
    spread = max(float(np.sqrt((left**2).sum() / max(n_known - 2, 1))), TUNING.one_nat)
    reach = np.abs(sizes - sizes[known].mean()) / max(float(sizes[known].std()), 1e-300)
    return scores + at_zero + slope * sizes, spread * np.sqrt(1.0 + (1.0 + reach**2) / n_known)
