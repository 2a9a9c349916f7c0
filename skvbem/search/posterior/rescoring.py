r"""Second-stage scoring: probabilities of candidates from evidences with errors, sampled for those that may matter.

Candidates are ranked by a score that is off by a gap, evidence minus score. Those whose evidence may matter have it
sampled, the most promising first; from their gaps follows what the others may hold. As soon as that is little, those
whose error is large in the probabilities are sampled anew, by dearer samplers; it ends where no error is.

The error of the evidences is in the probabilities: these are means over draws of the log evidences from normal
distributions, and their standard errors are those of the draws.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from skvbem.search.tuning import TUNING

Sampler = Callable[[Sequence[int]], tuple[np.ndarray, np.ndarray, np.ndarray]]


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
    if not np.isfinite(log_joint).any():
        return np.full(len(values), np.nan), np.zeros(len(values))
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
    samplers: Sequence[Sampler],
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
    samplers : sequence of callable of positions
        To log evidences of these candidates, NaN where there is none, their standard errors, and whether there was time
        for them; the cheapest first.
    rng : numpy.random.Generator
    most : int
        Evidences.
    """
    values, errors = np.full(len(scores), np.nan), np.zeros(len(scores))
    impossible = np.isnan(scores) | (scores == -np.inf) | (log_priors == -np.inf)
    n_asked = np.where(impossible, len(samplers), 0)  # samplers that a candidate has had
    n_unreached = 0
    while True:
        guesses, spreads = predicted_evidences(scores, sizes, values, errors)
        known = ~np.isnan(values)
        all_values = np.where(known, values, np.where(n_asked > 0, np.nan, guesses))
        expected, deviations = probabilities(all_values, np.where(known, errors, spreads), log_priors, rng)
        rest = float(expected[n_asked == 0].sum())
        failed = np.isnan(values) & (n_asked > 0) & (n_asked < len(samplers))
        if n_unreached:
            asked = np.zeros(0, dtype=int)
        elif failed.any():
            asked = np.flatnonzero(failed)
        elif known.any() and (rest <= TUNING.max_rest or known.sum() >= most):
            asked = _uncertain(expected, deviations, errors, n_asked, len(samplers))
        else:
            asked = _promising(scores + log_priors, expected, n_asked, known.any())[: most - int(known.sum())]
        if not len(asked):
            return RescoredPosterior(expected, deviations, rest, n_unreached)
        step = int(n_asked[asked].min())
        asked = asked[n_asked[asked] == step]
        sampled, sampled_errors, is_reached = samplers[step](asked.tolist())
        n_asked[asked[is_reached]] = step + 1
        n_unreached = int((~is_reached).sum())
        is_better = is_reached & ~(np.isnan(sampled) & known[asked])  # what fails leaves what was known
        values[asked[is_better]], errors[asked[is_better]] = sampled[is_better], sampled_errors[is_better]
        if np.isnan(values).all() and step + 1 == len(samplers):
            return RescoredPosterior(np.full(len(scores), np.nan), np.full(len(scores), np.nan), 1.0)


def _promising(ranking: np.ndarray, expected: np.ndarray, n_asked: np.ndarray, is_any_known: bool) -> np.ndarray:
    """Positions of candidates without an evidence that may hold most of the rest; at first, those near the best."""
    waiting = np.flatnonzero(n_asked == 0)
    if not is_any_known:
        order = waiting[np.argsort(-ranking[waiting], kind="stable")][: TUNING.n_at_once]
        return order[ranking[order] > ranking[waiting].max(initial=-np.inf) - TUNING.near]
    order = waiting[np.argsort(-expected[waiting], kind="stable")][: TUNING.n_at_once]
    probable = order[expected[order] > TUNING.improbable]
    return probable if len(probable) else order[:1]


def _uncertain(
    expected: np.ndarray, deviations: np.ndarray, errors: np.ndarray, n_asked: np.ndarray, n_samplers: int
) -> np.ndarray:
    """The candidate whose own error is largest in its probability, if too large, and if a dearer sampler is for it."""
    in_probability = np.minimum(expected * (1.0 - expected) * errors, deviations)
    in_probability[(n_asked == 0) | (n_asked == n_samplers)] = 0.0
    return np.flatnonzero(in_probability > max(TUNING.large_error, 0.999 * in_probability.max()))


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
