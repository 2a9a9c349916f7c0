r"""Affine maps of factors that Gibbs chains draw: a generalized Gibbs step along the maps that change no row's density.

A map of the factors, :math:`\tilde x \to G\tilde x`, and the coefficients :math:`c_s \to G^{-\top} c_s` leave
:math:`c_s^\top \tilde x` as it is. Where noise is small, factors and coefficients fix each other, and chains that draw
them in turn hardly move along such maps. Liu and Sabatti (2000, theorem 1) draw the map itself from the posterior along
its orbit, with respect to Haar's measure; so does parameter-expanded data augmentation (Liu & Wu 1999).

The maps of one factor i are drawn in two parts. A shear, :math:`x_i \to x_i + \sum_{j \ne i} u_j \tilde x_j`, has a
determinant of 1, and u is normal. With S the sum of :math:`\tilde x \tilde x^\top` over rows, and coefficients
:math:`c_{sj} \sim N(m_{sj}, 1 / (\rho_s \lambda_{sj}))`, its precision is
:math:`S_{jj'} + \delta_{jj'} \sum_s \rho_s c_{si}^2 \lambda_{sj}`, and this times its mean is
:math:`\sum_s \rho_s c_{si} \lambda_{sj} (c_{sj} - m_{sj}) - S_{ij}`. A scale, :math:`x_i \to e^t x_i`, has the density

.. math::

    \ln f(t) = (n - d)\,t - \tfrac12 S_{ii} e^{2t} - \tfrac12 e^{-2t} \sum_s \rho_s c_{si}^2 \lambda_{si}

of n rows and d coefficients whose prior means are 0. A Metropolis step draws it, by a normal proposal about the mode.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(eq=False)
class FactorOrbit:
    """Drawn factors and coefficients of many components, and the maps by which they have moved together.

    Parameters
    ----------
    products : ndarray of shape (n_members, D, D)
        Sums of products of regressors (1, x) over the rows of a component; moved in place.
    coefficients : ndarray of shape (n_members, d, D)
        Moved in place.
    noise_precision : ndarray of shape (n_members, d)
    precision : ndarray of shape (n_members, d, D)
        Of coefficients in units of the noise, given hyperparameters.
    weighted_means : ndarray of shape (n_members, d, D)
        These precisions times the means of the prior, which are 0 of factors.
    """

    products: np.ndarray
    coefficients: np.ndarray
    noise_precision: np.ndarray
    precision: np.ndarray
    weighted_means: np.ndarray

    def __post_init__(self) -> None:
        self.identity = np.eye(self.products.shape[-1])
        self.maps = np.broadcast_to(self.identity, self.products.shape).copy()

    def shear(self, i: int, moves: np.ndarray, noise: np.ndarray) -> None:
        """Add to factor i a draw of multiples of the regressors (n_members, D) that it moves along, by normal noise."""
        loadings = self.coefficients[..., i]
        weighted = (self.noise_precision * loadings)[:, None]
        pull = self.precision * self.coefficients - self.weighted_means
        linear = np.where(moves, (weighted @ pull)[:, 0] - self.products[:, i], 0.0)
        diagonal = ((weighted * loadings[:, None]) @ self.precision)[:, 0]
        precision = self.products + diagonal[..., None] * self.identity
        root = np.linalg.cholesky(np.where(moves[:, :, None] & moves[:, None], precision, self.identity))
        inverse = np.linalg.inv(root)
        drawn = inverse.swapaxes(-1, -2) @ (inverse @ linear[..., None] + noise[..., None])
        multiples = np.where(moves, drawn[..., 0], 0.0)
        self.coefficients -= loadings[..., None] * multiples[:, None]
        for matrix in (self.products, self.maps):
            matrix[:, i] += (multiples[:, None] @ matrix)[:, 0]
        self.products[:, :, i] += (self.products @ multiples[..., None])[..., 0]

    def scale(self, i: int, moves: np.ndarray, noise: np.ndarray, uniform: np.ndarray) -> None:
        """Stretch factor i by a draw, where it moves (n_members,), from normal and uniform noise."""
        loadings, square = self.coefficients[..., i], self.products[:, i, i]
        by_prior = (self.noise_precision * loadings**2 * self.precision[..., i]).sum(axis=1)
        power = self.products[:, 0, 0] - loadings.shape[1]
        root = np.sqrt(power**2 + 4.0 * square * by_prior)
        # e^2t solves S e^4t - (n - d) e^2t - A = 0; of its two forms the one without a difference of like numbers
        with np.errstate(divide="ignore", invalid="ignore"):
            mode = np.where(power > 0, (power + root) / (2.0 * square), 2.0 * by_prior / (root - power))
        moves = moves & (mode > 0) & np.isfinite(mode)
        mode = np.where(moves, mode, 1.0)
        curvature = np.where(moves, 2.0 * (square * mode + by_prior / mode), 1.0)
        centre = 0.5 * np.log(mode)

        def log_ratio(t: np.ndarray) -> np.ndarray:
            exponent = power * t - 0.5 * (square * np.exp(2.0 * t) + by_prior * np.exp(-2.0 * t))
            return exponent + 0.5 * curvature * (t - centre) ** 2

        proposed = centre + noise / np.sqrt(curvature)
        taken = moves & (np.log(uniform) < log_ratio(proposed) - log_ratio(np.zeros(len(proposed))))
        factor = np.exp(np.where(taken, proposed, 0.0))[:, None]
        self.coefficients[..., i] /= factor
        for matrix in (self.products, self.maps):
            matrix[:, i] *= factor
        self.products[:, :, i] *= factor
