r"""Bridge sampling: a normalizer from draws of a proposal and draws of the posterior [MW96].

With weights :math:`w(\theta) = p(y \mid \theta)\,p(\theta) / q(\theta)`, with :math:`n_1` draws of the posterior and
:math:`n_2` of q, and their shares :math:`s_1, s_2` of all draws, the evidence Z is where both sides of

.. math:: \Bigl\langle \frac{1}{s_1 + s_2 Z / w} \Bigr\rangle_q =
          \Bigl\langle \frac{1}{s_1 w / Z + s_2} \Bigr\rangle_{p(\theta \mid y)}

have one mean, the fixed point of their iteration (4.1). The left side falls with Z and the right side grows, so there
is one such Z. Both averages are of numbers without large outliers, even where weights are unbounded: what q hardly
visits, draws of the posterior show.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_expit, logsumexp, ndtr, stdtrit

from skvbem.evidence.stratified import variance_of_mean


class Bridge(NamedTuple):
    """A log normalizer by bridge sampling, and its standard error, nats.

    Parameters
    ----------
    value : float
    standard_error : float
        Of both samples together; NaN of a single chain.
    draws_error, chains_error : float
        The parts that draws of the proposal and chains have in it, whose squares add up to its square. Twice the part
        of few chains is a quantile of Student's distribution.
    r_hat : float
        Of ln weights along chains: 1 where chains are alike, more where each has a hill of its own; NaN of single draws
        or a single chain.
    """

    value: float
    standard_error: float
    draws_error: float
    chains_error: float
    r_hat: float


def bridge(log_weights: np.ndarray, chain_log_weights: np.ndarray, component: np.ndarray | None = None) -> Bridge:
    """The log normalizer that joins draws of a proposal and chains of the posterior [MW96 (4.1)].

    Parameters
    ----------
    log_weights : ndarray of shape (n_draws,)
        ln of unnormalized posterior over proposal at draws of the proposal, nats.
    chain_log_weights : ndarray of shape (n_chains, n_kept)
        The same at draws of independent chains of the posterior. The draws of one chain need not be independent: how
        far the means of chains lie apart is their part of the error.
    component : ndarray of int, shape (n_draws,), optional
        The component that each draw of the proposal is from, if each has as many draws as its weight says; see
        `skvbem.evidence.stratified`. By default draws are independent.

    Returns
    -------
    Bridge

    Examples
    --------
    A normal density without its normalizer, 0.919 nats, and a proposal twice as wide:

    >>> import numpy as np
    >>> from skvbem.evidence.bridge import bridge
    >>> rng = np.random.default_rng(0)
    >>> def log_weight(x):
    ...     return -0.5 * x**2 + 0.5 * (x / 2) ** 2 + np.log(2 * np.sqrt(2 * np.pi))
    >>> found = bridge(log_weight(2 * rng.normal(size=512)), log_weight(rng.normal(size=(16, 16))))
    >>> round(found.value, 1), found.standard_error < 0.05
    (0.9, True)
    """
    chains = np.atleast_2d(chain_log_weights)
    n_draws, n_kept = len(log_weights), chains.size
    log_odds = np.log(n_kept / n_draws)

    def log_sides(log_z: float) -> tuple[np.ndarray, np.ndarray]:
        """ln of both sides at each draw, times s_1 and s_2."""
        return log_expit(log_weights - log_z + log_odds), log_expit(log_z - chains - log_odds)

    def excess(log_z: float) -> float:
        proposed, posterior = log_sides(log_z)
        return float(logsumexp(proposed) - logsumexp(posterior))

    finite = np.concatenate([log_weights, chains.ravel()])
    finite = finite[np.isfinite(finite)]
    if not np.isfinite(log_weights).any() or not np.isfinite(chains).all():
        return Bridge(-np.inf, np.nan, np.nan, np.nan, np.nan)
    # below the lower end the left side is the larger one even if a single draw of q has a weight
    value = float(brentq(excess, finite.min() - 1.0 - np.log(n_draws + n_kept), finite.max() + 1.0, xtol=1e-10))
    proposed, posterior = (np.exp(side - side.max()) for side in log_sides(value))
    draws_error = float(np.sqrt(variance_of_mean(proposed, component)) / proposed.mean())
    means = posterior.mean(axis=1)
    chains_error = _error_of_few(means) / float(means.mean())
    return Bridge(value, float(np.hypot(draws_error, chains_error)), draws_error, chains_error, _r_hat(chains))


def _error_of_few(numbers: np.ndarray) -> float:
    """The standard error of the mean of few normal numbers; NaN of one.

    Their spread is not known well. So twice the error is that quantile of Student's distribution of n - 1 degrees of
    freedom which 2 is of the normal one: within it are means as often as within two errors of known spread.
    """
    n = len(numbers)
    return float(numbers.std(ddof=1) / np.sqrt(n) * stdtrit(n - 1, ndtr(2.0)) / 2.0) if n > 1 else np.nan


def _r_hat(chains: np.ndarray) -> float:
    """Root of the variance of all draws over that within chains, of numbers (n_chains, n_kept) [VGSCB21 (1)-(4)]."""
    n_chains, n_kept = chains.shape
    if n_chains < 2 or n_kept < 2:
        return np.nan
    within = float(chains.var(axis=1, ddof=1).mean())
    between = float(chains.mean(axis=1).var(ddof=1))
    return float(np.sqrt((n_kept - 1) / n_kept + between / within)) if within > 0 else 1.0
