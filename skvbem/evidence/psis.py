r"""Diagnostics of importance weights: the shape k of a generalized Pareto distribution fitted to the largest.

Weights have 1/k moments. Above k = 1/2 their variance is infinite and standard errors lie, above 0.7 no practical
number of draws is enough [Vehtari, Simpson, Gelman, Yao & Gabry 2024]. The fit is that of Zhang & Stephens (2009).
"""

from __future__ import annotations

import numpy as np


def pareto_smoothed(log_weights: np.ndarray) -> tuple[np.ndarray, float]:
    """Log weights whose largest are replaced by quantiles of the Pareto distribution fitted to them, and its shape k.

    The tail is the largest min(n / 5, 3 sqrt(n)) weights; no smoothed weight exceeds the largest raw one.

    Parameters
    ----------
    log_weights : ndarray of shape (n,)

    Returns
    -------
    smoothed : ndarray of shape (n,)
    shape : float
    """
    log_weights = np.asarray(log_weights, dtype=float)
    n = len(log_weights)
    n_tail = int(np.ceil(min(0.2 * n, 3.0 * np.sqrt(n))))
    order = np.argsort(log_weights, kind="stable")
    largest = log_weights[order[-1]]
    if n_tail < 5 or n_tail >= n or not np.isfinite(largest):
        return log_weights, -np.inf
    weights = np.exp(log_weights[order[-n_tail - 1 :]] - largest)
    threshold, excess = weights[0], weights[1:] - weights[0]
    if not excess[max(int(n_tail / 4 + 0.5) - 1, 0)] > 1e-15:
        return log_weights, -np.inf
    shape, scale = generalized_pareto(excess)
    level = (np.arange(n_tail) + 0.5) / n_tail
    quantiles = scale * (np.expm1(-shape * np.log1p(-level)) / shape if shape else -np.log1p(-level))
    smoothed = log_weights.copy()
    smoothed[order[-n_tail:]] = np.minimum(np.log(threshold + quantiles), 0.0) + largest
    return smoothed, shape


def error_factor(shape: float, n: int) -> float:
    """Ratio of the error of a mean of n weights to one that takes their variance to be finite.

    Above a shape of 1/2 the error of a mean falls as n to the power k - 1, not as its square root: the factor is n to
    the power k - 1/2.
    """
    return float(n ** np.clip(shape - 0.5, 0.0, 0.5))


def generalized_pareto(excess: np.ndarray) -> tuple[float, float]:
    """Shape and scale of a generalized Pareto distribution on [0, inf): posterior means of Zhang & Stephens (2009).

    Parameters
    ----------
    excess : ndarray of shape (n,)
        Ascending, the lower quartile above 0.

    Returns
    -------
    shape, scale : float
        The shape drawn to 1/2 as by ten further weights, as Vehtari et al. do for short tails.
    """
    n = len(excess)
    n_grid = 30 + int(np.sqrt(n))
    quartile = excess[int(n / 4 + 0.5) - 1]
    b = 1.0 / excess[-1] + (1.0 - np.sqrt(n_grid / (np.arange(1, n_grid + 1) - 0.5))) / (3.0 * quartile)
    # profile likelihood of b, where the density is 1/scale (1 - b x)^(-1/shape - 1), scale = -shape / b
    shapes = np.log1p(-b[:, None] * excess).mean(axis=1)
    log_likelihood = n * (np.log(-b / shapes) - shapes - 1.0)
    posterior = np.exp(log_likelihood - log_likelihood.max())
    b = float(posterior @ b / posterior.sum())
    shape = float(np.log1p(-b * excess).mean())
    scale = -shape / b
    return (n * shape + 5.0) / (n + 10.0), scale
