"""Mixtures of full Gaussians with missing cells by definition: plain loops over rows and components.

Maximum likelihood is Ghahramani & Jordan (1994), "Supervised learning from incomplete data via an EM approach": hidden
cells of a row have, given the component, the conditional mean and covariance of the Gaussian. Variational Bayes is the
same with expected parameters [Beal §2.4; Bishop (10.46) to (10.82)], the hidden cells another factor of q.
Nothing here is whitened, packed or batched, and nothing of the library is used.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import digamma, gammaln, multigammaln


@dataclass
class Point:
    """Weights (K,), means (K, d), covariances (K, d, d)."""

    weights: np.ndarray
    means: np.ndarray
    covariances: np.ndarray


@dataclass
class Density:
    """Dirichlet concentrations (K,) and Normal-Wishart parameters: m (K, d), kappa (K,), nu (K,), S (K, d, d)."""

    concentration: np.ndarray
    mean: np.ndarray
    kappa: np.ndarray
    nu: np.ndarray
    scale: np.ndarray


def _completed(row, mean, precision):
    """The mean of a row given its observed cells, the covariance of its hidden ones, and ln of the integral over them.

    Of the function exp(-(x - mean)' precision (x - mean) / 2), which need not be normalized.
    """
    hidden = np.isnan(row)
    filled, covariance = row.copy(), np.zeros((len(row), len(row)))
    log_integral = 0.0
    if hidden.any():
        inverse = np.linalg.inv(precision[np.ix_(hidden, hidden)])
        away = (row - mean)[~hidden]
        filled[hidden] = mean[hidden] - inverse @ precision[np.ix_(hidden, ~hidden)] @ away
        covariance[np.ix_(hidden, hidden)] = inverse
        log_integral += 0.5 * hidden.sum() * math.log(2 * math.pi) + 0.5 * np.linalg.slogdet(inverse)[1]
    away = filled - mean
    return filled, covariance, log_integral - 0.5 * away @ precision @ away


def _e_step(rows, row_weights, log_weights, log_peaks, means, precisions):
    """Counts, sums and squares of each component, and the sum of ln Z."""
    K, d = means.shape
    n, total, square, log_z = np.zeros(K), np.zeros((K, d)), np.zeros((K, d, d)), 0.0
    for row, weight in zip(rows, row_weights):
        if np.isnan(row).all():  # it says nothing, of its component neither
            continue
        parts = [_completed(row, means[k], precisions[k]) for k in range(K)]
        logs = np.array([log_weights[k] + log_peaks[k] + parts[k][2] for k in range(K)])
        top = logs.max()
        row_log_z = top + math.log(np.exp(logs - top).sum())
        log_z += weight * row_log_z
        for k, (filled, covariance, _) in enumerate(parts):
            share = weight * math.exp(logs[k] - row_log_z)
            n[k] += share
            total[k] += share * filled
            square[k] += share * (np.outer(filled, filled) + covariance)
    return n, total, square, log_z


def em_step(rows, row_weights, point):
    """The next point, and the log likelihood at this one."""
    d = point.means.shape[1]
    precisions = np.array([np.linalg.inv(c) for c in point.covariances])
    log_peaks = [0.5 * np.linalg.slogdet(p)[1] - 0.5 * d * math.log(2 * math.pi) for p in precisions]
    n, total, square, log_likelihood = _e_step(
        rows, row_weights, np.log(point.weights), log_peaks, point.means, precisions
    )
    means = total / n[:, None]
    covariances = np.array([square[k] / n[k] - np.outer(means[k], means[k]) for k in range(len(n))])
    return Point(n / n.sum(), means, covariances), log_likelihood


def vb_step(rows, row_weights, prior, q):
    """The next q, and the bound at this one."""
    K, d = q.mean.shape
    log_weights = digamma(q.concentration) - digamma(q.concentration.sum())
    inverses = [np.linalg.inv(s) for s in q.scale]
    log_dets = [_expected_log_det(q.nu[k], inverses[k]) for k in range(K)]
    log_peaks = [0.5 * log_dets[k] - 0.5 * d * math.log(2 * math.pi) - 0.5 * d / q.kappa[k] for k in range(K)]
    precisions = np.array([q.nu[k] * inverses[k] for k in range(K)])
    n, total, square, log_z = _e_step(rows, row_weights, log_weights, log_peaks, q.mean, precisions)
    kappa, nu = prior.kappa + n, prior.nu + n
    mean = (prior.kappa[:, None] * prior.mean + total) / kappa[:, None]
    scale = np.array(
        [
            prior.scale[k]
            + square[k]
            + prior.kappa[k] * np.outer(prior.mean[k], prior.mean[k])
            - kappa[k] * np.outer(mean[k], mean[k])
            for k in range(K)
        ]
    )
    bound = log_z - _dirichlet_kl(q.concentration, prior.concentration)
    bound -= sum(_normal_wishart_kl(q, prior, k, inverses[k], log_dets[k]) for k in range(K))
    return Density(prior.concentration + n, mean, kappa, nu, scale), bound


def _expected_log_det(nu, inverse):
    d = len(inverse)
    return sum(digamma((nu - i) / 2) for i in range(d)) + d * math.log(2) + np.linalg.slogdet(inverse)[1]


def _dirichlet_kl(a, b):
    normalizers = gammaln(a.sum()) - gammaln(a).sum() - gammaln(b.sum()) + gammaln(b).sum()
    return normalizers + ((a - b) * (digamma(a) - digamma(a.sum()))).sum()


def _normal_wishart_kl(q, p, k, inverse, log_det):
    """E ln q(mu | Lambda) / p(mu | Lambda) + E ln q(Lambda) / p(Lambda)."""
    d, away = len(inverse), q.mean[k] - p.mean[k]
    of_mean = 0.5 * (
        d * math.log(q.kappa[k] / p.kappa[k])
        - d
        + d * p.kappa[k] / q.kappa[k]
        + p.kappa[k] * q.nu[k] * away @ inverse @ away
    )
    of_precision = (
        _log_wishart_constant(q.nu[k], q.scale[k])
        - _log_wishart_constant(p.nu[k], p.scale[k])
        + (q.nu[k] - p.nu[k]) / 2 * log_det
        - q.nu[k] * d / 2
        + q.nu[k] / 2 * np.trace(p.scale[k] @ inverse)
    )
    return of_mean + of_precision


def _log_wishart_constant(nu, scale):
    """ln B of Wishart(nu, scale^-1) [Bishop (B.79)]."""
    d = len(scale)
    return nu / 2 * np.linalg.slogdet(scale)[1] - nu * d / 2 * math.log(2) - multigammaln(nu / 2, d)
