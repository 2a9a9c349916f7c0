r"""Turns of factors: orthogonal matrices, and the mean over all of them of a prior that tells them apart.

The likelihood of a factor analyzer depends on loadings :math:`A` in units of the noise, (d, q), by :math:`A A^\top`
alone. With :math:`A = L Q`, L lower trapezoidal with a positive diagonal and Q orthogonal [Muirhead 1982, theorem
2.1.13],

.. math:: dA = \mathrm{vol}\,O(q) \prod_{j} L_{jj}^{q-j}\, dL\, dQ, \qquad
          \mathrm{vol}\,O(q) = \prod_{j=1}^{q} \frac{2 \pi^{j/2}}{\Gamma(j/2)},

dQ the uniform distribution. A prior of loadings whose precisions are learned by factor is one of
:math:`\prod_{gk} t_g(\lvert (L_g Q)_k \rvert^2)`, with :math:`t(s) \propto (d_0 + s/2)^{-p}` for the columns in each
group g of rows. It knows the axes of :math:`L^\top L` and is steep about them, so that uniform turns say little of its
mean over Q. So turns are drawn by Cayley's coordinates about these axes, :math:`Q = V (1 - S)(1 + S)^{-1}`, S
antisymmetric, of uniform density :math:`\propto \lvert 1 + S \rvert^{1-q}`, as wide for two factors as the prior is in
their plane. Of all orders and signs of the columns of Q, which the prior does not tell apart, one is kept.
"""

from __future__ import annotations

from math import factorial, lgamma, log, pi

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import gammaln, logsumexp

# Degrees of freedom of coordinates of turns, and their precision where the prior does not tell axes apart.
_DEGREES_OF_FREEDOM, _PRECISION = 6.0, 16.0
# Times that a turn is drawn anew among others for a draw of the posterior.
_N_PASSES = 8


def log_volume(q: int, n_frame: int | None = None) -> float:
    """ln of the volume of orthogonal matrices (q, q), or of frames of some of their columns."""
    first = q - (q if n_frame is None else n_frame) + 1
    return sum(log(2) + j / 2 * log(pi) - lgamma(j / 2) for j in range(first, q + 1))


def log_mean_over_turns(
    grams: np.ndarray, power: np.ndarray, rate: float, rng: np.random.Generator, n_turns: int, *, posterior: bool
) -> np.ndarray:
    r"""ln of the mean over turns Q of :math:`\prod_{gk} (d_0 + (Q^\top M_g Q)_{kk} / 2)^{-p_g}`, (n,).

    Each is the logarithm of a mean over turns drawn, right on average. At draws of the posterior one of these is a draw
    of the posterior itself: then the mean is as likely as it would be had turns been drawn along with the loadings, and
    ratios to means of the other kind are those of densities [ADH10].

    Parameters
    ----------
    grams : ndarray of shape (n, n_groups, q, q)
        :math:`M_g`, products of loadings by group.
    power : ndarray of shape (n_groups,)
        :math:`p_g`.
    rate : float
        :math:`d_0`.
    rng : numpy.random.Generator
    n_turns : int
        Drawn for each mean.
    posterior : bool
        Whether loadings are draws of the posterior.
    """
    n, n_groups, q, _ = grams.shape
    total = grams.sum(axis=1)
    if q == 1:
        return -(np.log(rate + grams[:, :, 0, 0] / 2) @ power)
    values, axes = np.linalg.eigh(total)
    turned = axes.swapaxes(-1, -2)[:, None] @ grams @ axes[:, None]
    left, right = np.triu_indices(q, 1)
    lifted = values + 2 * rate * n_groups
    distance = (values[:, left] - values[:, right]) ** 2 / (lifted[:, left] * lifted[:, right])
    width = 1 / np.sqrt(8 * power.sum() * distance + _PRECISION)
    kept = np.zeros((n, 0, q, q)), np.zeros((n, 0))
    for _ in range(_N_PASSES if posterior else 1):
        turns, log_weights = _weighted_turns(width, q, rng, n_turns - kept[1].shape[1])
        squares = np.einsum("nkai,ngab,nkbi->nkgi", turns, turned, turns, optimize=True)
        log_weights -= np.log(rate + squares / 2).sum(axis=-1) @ power
        turns, log_weights = (np.concatenate(pair, axis=1) for pair in zip(kept, (turns, log_weights)))
        if posterior:
            chosen = np.argmax(log_weights + rng.gumbel(size=log_weights.shape), axis=1)[:, None]
            kept = (
                np.take_along_axis(turns, chosen[..., None, None], axis=1),
                np.take_along_axis(log_weights, chosen, axis=1),
            )
    return logsumexp(log_weights, axis=1) - log(n_turns)


def _weighted_turns(width: np.ndarray, q: int, rng: np.random.Generator, n_turns: int) -> tuple[np.ndarray, np.ndarray]:
    """Turns (n, n_turns, q, q) about the identity, and ln of the uniform density over that of the draw, (n, n_turns).

    Of turns that differ by orders and signs of columns one stands for all, and others have no weight.
    """
    n, n_planes = width.shape
    left, right = np.triu_indices(q, 1)
    nu = _DEGREES_OF_FREEDOM
    drawn = rng.standard_t(nu, size=(n, n_turns, n_planes))
    log_drawn = -(nu + 1) / 2 * np.log1p(drawn**2 / nu) - np.log(width)[:, None]
    constant = n_planes * (gammaln((nu + 1) / 2) - gammaln(nu / 2) - 0.5 * log(nu * pi))
    plus = np.zeros((n, n_turns, q, q))
    steps = drawn * width[:, None]
    plus[..., left, right], plus[..., right, left] = steps, -steps
    minus = np.eye(q) - plus
    plus += np.eye(q)
    turns = np.linalg.solve(plus, minus)
    log_uniform = n_planes * log(2) - log_volume(q) + log(2) - (q - 1) * np.log(np.linalg.det(plus))
    log_alike = (q - 1) * log(2) + log(float(factorial(q)))
    log_weights = log_uniform + log_alike - constant - log_drawn.sum(axis=-1)
    return turns, np.where(_are_first_of_alike(turns), log_weights, -np.inf)


def _are_first_of_alike(turns: np.ndarray) -> np.ndarray:
    """True for one of the rotations (..., q, q) that differ by orders and signs of their columns.

    It has the largest sum of absolute values on its diagonal, which is positive but for the smallest, if need be.
    """
    q = turns.shape[-1]
    size, diagonal = np.abs(turns), np.diagonal(turns, axis1=-2, axis2=-1)
    on_diagonal = np.abs(diagonal)
    first = (diagonal > 0).all(axis=-1)
    smallest = np.arange(q) == on_diagonal.argmin(axis=-1)[..., None]
    first |= ((diagonal < 0) == smallest).all(axis=-1)
    unsure = first & (on_diagonal.min(axis=-1) < np.sqrt(0.5))
    places = np.nonzero(unsure)
    best = [linear_sum_assignment(each, maximize=True)[1] for each in size[places]]
    if best:
        first[places] = (np.array(best) == np.arange(q)).all(axis=1)
    return first
