"""Quantiles of mixtures of distributions, as predictions over hidden states and draws of parameters are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

# Halvings of the interval in which a quantile lies, and its ends in deviations from the means of the components.
_N_HALVINGS, _REACH = 60, 40.0


def mixture_quantile(
    cumulative: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray],
    weights: np.ndarray,
    means: np.ndarray,
    deviations: np.ndarray,
    probability: float,
    whole: bool = False,
) -> np.ndarray:
    """The least values that mixtures stay at or below with a probability, (...), by halving.

    Parameters
    ----------
    cumulative : callable of (values, means, deviations)
        Probabilities of components to stay at or below values.
    weights : ndarray of shape (n_parts, ...)
        Of the components of each mixture; they sum to one over the first axis.
    means, deviations : ndarray
        Of the components, of a shape that broadcasts with that of weights.
    probability : float
    whole : bool, default=False
        Whether values are whole numbers >= 0.
    """
    shape = weights.shape[1:]
    low = np.broadcast_to((means - _REACH * deviations).min(axis=0), shape)
    high = np.broadcast_to((means + _REACH * deviations).max(axis=0), shape)
    if whole:
        low, high = np.full(shape, -1.0), np.ceil(high)
    for _ in range(_N_HALVINGS):
        middle = 0.5 * (low + high)
        if whole:
            if not (high - low > 1.0).any():
                break
            middle = np.where(high - low > 1.0, np.floor(middle), high)
        below = (weights * cumulative(middle, means, deviations)).sum(axis=0) < probability
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return high
