r"""Densities that coefficients of a softmax regression are drawn from where chains and weights must be exact.

Given labels, :math:`p(\omega \mid T) \propto e^{T \cdot \phi(\omega)} p(\omega)` has neither a normalizer nor draws in
closed form. Near its mode it is nearly the Gaussian of its second derivatives, and its tails are no heavier than those
of the prior. A t distribution about the mode, somewhat wider, is heavier than both. Weights and chains that propose
from it are exact, and chains seldom stay.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, logsumexp

from skvbem.families.parallel_generator import ParallelGenerator
from skvbem.families.softmax_maximum import Design, contrasts

# Degrees of freedom of proposals, and their deviations over those by second derivatives. By hand: weights of draws of
# 315 rows of `load_cheating` then have a relative error of 2e-3 from 40 000 draws.
_DEGREES, _WIDER = 8.0, 1.15
# Newton steps to a mode, nats that a last one may gain, and the largest change of a log odds in one. By hand.
_MAX_STEPS, _SMALL_GAIN, _LONGEST = 30, 1e-3, 3.0
# Numbers that one intermediate array may hold.
_CHUNK = 2**20


@dataclass(frozen=True, eq=False)
class Students:
    """Densities of contrasts: t distributions, or Gaussians where degrees of freedom are infinite.

    Parameters
    ----------
    mean : ndarray of shape (n, d)
    root : ndarray of shape (n, d, d)
        Lower triangular; its product with its transpose is the matrix of scales.
    degrees : ndarray of shape (n,)
    """

    mean: np.ndarray
    root: np.ndarray
    degrees: np.ndarray

    def __getitem__(self, which) -> Students:
        """Some of the densities."""
        return Students(self.mean[which], self.root[which], self.degrees[which])

    def sample(self, rng: ParallelGenerator) -> np.ndarray:
        """A draw of each density, (n, d)."""
        n, d = self.mean.shape
        noise = rng.standard_normal((d, n)).T
        halves = np.where(np.isfinite(self.degrees), self.degrees / 2, 1.0)
        factor = np.where(np.isfinite(self.degrees), np.sqrt(halves / rng.standard_gamma(halves[None])[0]), 1.0)
        return self.mean + (self.root @ noise[:, :, None])[:, :, 0] * factor[:, None]

    def log_density(self, free: np.ndarray) -> np.ndarray:
        """ln of each density at contrasts of its own (n, d), or at many (n_points, 1, d), nats, (..., n)."""
        away = np.moveaxis(free - self.mean if free.ndim == 3 else (free - self.mean)[None], 0, 2)  # (n, d, n_points)
        lengths = (np.linalg.solve(self.root, away) ** 2).sum(axis=1).T  # (n_points, n)
        d, is_t = free.shape[-1], np.isfinite(self.degrees)
        nu = np.where(is_t, self.degrees, 1.0)
        t = gammaln((nu + d) / 2) - gammaln(nu / 2) - d / 2 * np.log(nu * np.pi)
        t = t - (nu + d) / 2 * np.log1p(lengths / nu)
        gaussian = -0.5 * d * np.log(2 * np.pi) - 0.5 * lengths
        values = np.where(is_t, t, gaussian) - np.log(np.diagonal(self.root, axis1=1, axis2=2)).sum(axis=1)
        return values[0] if free.ndim == 2 else values

    def log_densities(self, free: np.ndarray) -> np.ndarray:
        """ln of each density, as of a single row, nats, (1, ..., n); see `StudentsByRow.log_densities`."""
        return self.log_density(free)[None]


@dataclass(frozen=True, eq=False)
class StudentsByRow:
    """Independent densities of the contrasts of rows, which stand one after the other.

    Parameters
    ----------
    rows : tuple of Students
    """

    rows: tuple[Students, ...]

    def __getitem__(self, which) -> StudentsByRow:
        """Some of the densities."""
        return StudentsByRow(tuple(row[which] for row in self.rows))

    @property
    def mean(self) -> np.ndarray:
        """Their centers, (n, d)."""
        return np.concatenate([row.mean for row in self.rows], axis=1)

    def sample(self, rng: ParallelGenerator) -> np.ndarray:
        """A draw of each density, (n, d)."""
        return np.concatenate([row.sample(rng) for row in self.rows], axis=1)

    def log_densities(self, free: np.ndarray) -> np.ndarray:
        """ln of the densities of each row, nats, (n_rows, ..., n); see `Students.log_density`."""
        ends = np.cumsum([row.mean.shape[1] for row in self.rows])[:-1]
        parts = np.split(free, ends, axis=-1)
        return np.stack([row.log_density(part) for row, part in zip(self.rows, parts)])

    def log_density(self, free: np.ndarray) -> np.ndarray:
        """ln of the densities, nats, (..., n); see `Students.log_density`."""
        return self.log_densities(free).sum(axis=0)


def mean_log_partition(design: Design, free: np.ndarray) -> np.ndarray:
    """The mean over a design of the log partition at contrasts (n, n_labels - 1, n_regressors), nats, (n,)."""
    at_once = max(_CHUNK // max(len(design.weight) * (free.shape[1] + 1), 1), 1)
    h, values = contrasts(free.shape[1] + 1), []
    for first in range(0, len(free), at_once):
        values.append(logsumexp((h @ free[first : first + at_once]) @ design.regressors.T, axis=1) @ design.weight)
    return np.concatenate(values) if values else np.zeros(0)


def students_after(
    regressors: np.ndarray,
    statistics: np.ndarray,
    weight: np.ndarray,
    precision: np.ndarray,
    start: np.ndarray | None = None,
) -> Students:
    """Densities to draw the contrasts of labels from: of members without rows the Gaussians of their prior.

    Parameters
    ----------
    regressors : ndarray of shape (n_patterns, n_regressors)
    statistics : ndarray of shape (n_labels, n_regressors, n)
    weight : ndarray of shape (n, n_patterns)
    precision : ndarray of shape (n_regressors, n)
    start : ndarray of shape (n, d), optional
        Where the search for modes begins.
    """
    h, n = contrasts(len(statistics)), statistics.shape[2]
    d = h.shape[1] * statistics.shape[1]
    t = np.tensordot(h.T, statistics, axes=1).reshape(d, n).T
    precisions = np.tile(precision.T, h.shape[1])
    students = proposals_of(regressors, weight, t, precisions, start)
    without = ~statistics.any(axis=(0, 1))
    students.root[without] = np.eye(d) / np.sqrt(precisions[without])[:, None, :]
    students.mean[without], students.degrees[without] = 0.0, np.inf
    return students


def proposals_of(
    regressors: np.ndarray,
    weight: np.ndarray,
    t: np.ndarray,
    precision: np.ndarray,
    start: np.ndarray | None = None,
) -> Students:
    r"""t distributions about the modes of :math:`t^\top\omega - \sum\gamma\ell(\omega) - \tfrac12\sum\tau\omega^2`.

    Parameters
    ----------
    regressors : ndarray of shape (n_patterns, n_regressors)
    weight : ndarray of shape (n, n_patterns)
        How often each pattern counts, for each member.
    t : ndarray of shape (n, d)
        Statistics of the contrasts.
    precision : ndarray of shape (n, d)
    start : ndarray of shape (n, d), optional
        Where Newton's steps begin, 0 by default. It must not hang on where a chain is.
    """
    n, d = t.shape
    mode = np.zeros((n, d)) if start is None else start.copy()
    curvature = np.tile(np.eye(d), (n, 1, 1))
    goes_on = np.flatnonzero(np.full(n, d > 0))
    for _ in range(_MAX_STEPS):
        if not len(goes_on):
            break
        slope, curvature[goes_on] = _derivatives(regressors, weight[goes_on], mode[goes_on])
        gradient = t[goes_on] - slope - precision[goes_on] * mode[goes_on]
        curvature[goes_on] += precision[goes_on, :, None] * np.eye(d)
        step = np.linalg.solve(curvature[goes_on], gradient[:, :, None])[:, :, 0]
        gain = (step * gradient).sum(axis=1) / 2
        longest = np.abs(step.reshape(len(step), -1, regressors.shape[1]) @ regressors.T).max(axis=(1, 2))
        mode[goes_on] += step * np.minimum(1.0, _LONGEST / np.maximum(longest, 1e-300))[:, None]
        goes_on = goes_on[gain > _SMALL_GAIN]
    values, axes = np.linalg.eigh(curvature)
    root = np.linalg.cholesky((axes / values[:, None, :]) @ axes.swapaxes(1, 2)) * _WIDER
    return Students(mode, root, np.full(n, _DEGREES))


def _derivatives(u: np.ndarray, weight: np.ndarray, mode: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First (n, d) and second derivatives (n, d, d) of the sum of log partitions by contrasts (n, d)."""
    p = u.shape[1]
    n, d = mode.shape
    k = d // p + 1
    h, slopes, curvatures = contrasts(k), [], []
    squares = (u[:, :, None] * u[:, None, :]).reshape(len(u), p * p)
    pairs = (h[:, :, None] * h[:, None, :]).reshape(k, -1).T  # of contrasts, (c c', k)
    at_once = max(_CHUNK // (len(u) * k * k), 1)
    for first in range(0, n, at_once):
        w = (h @ mode[first : first + at_once].reshape(-1, k - 1, p)) @ u.T
        w = np.exp(w - w.max(axis=1, keepdims=True))
        w /= w.sum(axis=1, keepdims=True)
        first_moments = h.T @ w
        second = pairs @ w - (first_moments[:, :, None] * first_moments[:, None]).reshape(len(w), -1, len(u))
        weights = weight[first : first + at_once, None]
        slopes.append(((first_moments * weights) @ u).reshape(-1, d))
        by_pair = ((second * weights) @ squares).reshape(-1, k - 1, k - 1, p, p)
        curvatures.append(by_pair.transpose(0, 1, 3, 2, 4).reshape(-1, d, d))
    return np.concatenate(slopes), np.concatenate(curvatures)
