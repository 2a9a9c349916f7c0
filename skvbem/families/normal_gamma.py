r"""Normal-Gamma distributions: priors of means and precisions of features that are independent given the component.

A precision :math:`\lambda` has :math:`\nu` degrees of freedom and scale S, each mean :math:`\mu_j` that stands on it
weighs :math:`\kappa_j` data:

.. math::

    p(\mu, \lambda) \propto \lambda^{\nu/2} \exp\Bigl(-\tfrac{\lambda}{2}
        \bigl[S + \textstyle\sum_j \kappa_j (\mu_j - m_j)^2\bigr]\Bigr)
        \,\prod_j \lambda^{1/2} d\mu_j \, \frac{d\lambda}{\lambda},

that is :math:`\lambda \sim \mathrm{Gamma}(\nu/2, S/2)` and :math:`\mu_j \mid \lambda \sim N(m_j, 1/(\kappa_j\lambda))`.
It is the Normal-Wishart distribution of one dimension. Additive coordinates are :math:`\kappa`, :math:`\nu`, the sum
:math:`\kappa m` and the square :math:`S + \sum_j \kappa_j m_j^2`; a datum x adds (1, 1, x, x^2). Natural parameters are
:math:`(-\tfrac12\lambda\mu^2, \tfrac12\ln\lambda - \tfrac12\ln 2\pi, \lambda\mu, -\tfrac12\lambda)`.

Squares are about zero, so the unit of measure must be one in which zero lies within the data and their spread is about
one: an emission sees to that. A spread of s about a mean m keeps a relative accuracy of 1e-16 (m / s)^2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from skvbem._numerics import LOG_2PI, digamma, log_gamma, log_rising
from skvbem.families.base import AT_FLOOR, FlatFamily, no_interior_mode, principal_submatrix
from skvbem.families.parallel_generator import ParallelGenerator

#: Least variance of a most likely point, in the family's unit: the variance of all data, where an emission chose it.
VARIANCE_FLOOR = 1e-6


class NormalPoint(NamedTuple):
    """Means (n_components, n_features, ...) and precisions, whose axes the family states."""

    mean: np.ndarray
    precision: np.ndarray

    def at_floor(self) -> np.ndarray:
        """Boolean array of the precisions that a floor of the variance stopped in some direction, (n_precisions,)."""
        largest = np.linalg.eigvalsh(self.precision)[:, -1] if self.precision.ndim == 3 else self.precision.max(axis=1)
        return largest > AT_FLOOR / VARIANCE_FLOOR


@dataclass(frozen=True, eq=False)
class NormalGamma(FlatFamily):
    """Means of every component and feature; a precision for each of them, or one for all features of a component.

    Parameters
    ----------
    coordinates : ndarray of shape (n_components * (2 * n_features + 2 * n_precisions), ...)
        For each component: mean precisions (n_features), degrees of freedom (n_precisions), sums (n_features) and
        squares (n_precisions).
    n_features : int
    n_precisions : int
        Precisions of each component: `n_features`, or 1, which all its features share.

    Examples
    --------
    >>> import numpy as np
    >>> from skvbem.families import NormalGamma
    >>> prior = NormalGamma.from_parameters(
    ...     mean=[[0.0]], mean_precision=[[1.0]], degrees_of_freedom=[[3.0]], scale=[[1.0]]
    ... )
    >>> x = np.array([0.5, 1.5, 1.0])
    >>> posterior = prior + np.array([3.0, 3.0, x.sum(), (x**2).sum()])
    >>> posterior.mean.tolist(), posterior.degrees_of_freedom.tolist()
    ([[0.75]], [[6.0]])
    """

    n_features: int
    n_precisions: int

    @classmethod
    def from_parameters(cls, mean, mean_precision, degrees_of_freedom, scale) -> Self:
        """The block with these parameters.

        Parameters
        ----------
        mean, mean_precision : array_like of shape (n_components, n_features, ...)
        degrees_of_freedom, scale : array_like of shape (n_components, n_precisions, ...)
            A precision has mean degrees_of_freedom / scale.
        """
        mean, kappa = np.broadcast_arrays(np.asarray(mean, dtype=float), np.asarray(mean_precision, dtype=float))
        dof, scale = np.broadcast_arrays(np.asarray(degrees_of_freedom, dtype=float), np.asarray(scale, dtype=float))
        n_precisions = dof.shape[1]
        square = scale + _shared(kappa * mean**2, n_precisions)
        cells = np.concatenate([kappa, dof, kappa * mean, square], axis=1)
        return cls(cells.reshape(-1, *cells.shape[2:]), mean.shape[1], n_precisions)

    @property
    def n_components(self) -> int:
        """Number of components."""
        return len(self.coordinates) // (2 * self.n_features + 2 * self.n_precisions)

    @property
    def n_free_parameters(self) -> int:
        """Number of means and precisions."""
        return self.n_components * (self.n_features + self.n_precisions)

    @property
    def is_valid(self) -> np.ndarray:
        """True where all weights, degrees of freedom and scales are positive; of the shape of the batch."""
        kappa, dof, _, _ = self._split(self.coordinates)
        positive = (kappa > 0).all(axis=(0, 1)) & (dof > 0).all(axis=(0, 1))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(positive & (self.scale > 0).all(axis=(0, 1)))

    @property
    def signed(self) -> np.ndarray:
        """Sums may be negative; the least squares depend on them."""
        signs = np.repeat([False, True], self.n_features + self.n_precisions)
        return np.tile(signs, self.n_components)

    @property
    def mean_precision(self) -> np.ndarray:
        """Weights of the means, in data, (n_components, n_features, ...)."""
        return self._split(self.coordinates)[0]

    @property
    def degrees_of_freedom(self) -> np.ndarray:
        """Degrees of freedom of the precisions, (n_components, n_precisions, ...)."""
        return self._split(self.coordinates)[1]

    @property
    def mean(self) -> np.ndarray:
        """E[mu], (n_components, n_features, ...)."""
        kappa, _, total, _ = self._split(self.coordinates)
        return total / kappa

    @property
    def scale(self) -> np.ndarray:
        """Scales, (n_components, n_precisions, ...): degrees_of_freedom / scale is E[lambda]."""
        kappa, _, total, square = self._split(self.coordinates)
        return square - self._shared(total**2 / kappa)

    def log_normalizer(self) -> np.ndarray:
        """A, nats, summed over components and features."""
        (kappa, dof, _, _), scale = self._split(self.coordinates), self.scale
        precision_logs = log_gamma(dof / 2) - dof / 2 * (np.log(np.pi) + np.log(scale))
        return precision_logs.sum(axis=(0, 1)) + 0.5 * (LOG_2PI - np.log(kappa)).sum(axis=(0, 1))

    def log_normalizer_increment(self, statistics: np.ndarray) -> np.ndarray:
        """A(self + statistics) - A(self), nats."""
        prior = type(self)(self._like(statistics), self.n_features, self.n_precisions)
        kappa, dof, mean, scale = prior.mean_precision, prior.degrees_of_freedom, prior.mean, prior.scale
        n_mean, n, total, square = self._split(statistics)
        about_mean = total - n_mean * mean
        added = square - self._shared(mean * (2 * total - n_mean * mean) + about_mean**2 / (kappa + n_mean))
        precision_logs = (
            log_rising(dof / 2, n / 2)
            - n / 2 * (np.log(np.pi) + np.log(scale))
            - (dof + n) / 2 * np.log1p(added / scale)
        )
        return precision_logs.sum(axis=(0, 1)) - 0.5 * np.log1p(n_mean / kappa).sum(axis=(0, 1))

    def expected_natural(self) -> np.ndarray:
        """Expectations of the natural parameters, of the shape of the coordinates."""
        kappa, dof, total, square = self._split(self.coordinates)
        mean = total / kappa
        scale = square - self._shared(mean * total)
        precision = dof / scale
        log_root = 0.5 * (digamma(dof / 2) - np.log(scale) - np.log(np.pi))
        return self._join(-0.5 * (precision * mean**2 + 1 / kappa), log_root, precision * mean, -0.5 * precision)

    def natural(self, point: NormalPoint) -> np.ndarray:
        """Natural parameters of a point, of the shape of the coordinates."""
        mean, precision = point
        log_root = 0.5 * (np.log(precision) - LOG_2PI)
        return self._join(-0.5 * precision * mean**2, log_root, precision * mean, -0.5 * precision)

    def mode(self, basis: str = "natural") -> NormalPoint:
        """The point of highest density with respect to the natural measure, or to means and precisions.

        Raises
        ------
        NoInteriorModeError
            In the probability basis, if a precision has no more degrees of freedom than 2 less its means.
        """
        dof = self.degrees_of_freedom
        if basis != "natural":
            dof = dof + self.n_features // self.n_precisions - 2
            if np.any(dof <= 0):
                least = f"more than {2 - self.n_features // self.n_precisions}"
                worst = float(self.degrees_of_freedom.min())
                raise no_interior_mode("Normal-Gamma", "degrees of freedom of", worst, least)
        return NormalPoint(self.mean, dof / self.scale)

    def most_likely(self, statistics: np.ndarray) -> NormalPoint:
        """Means and precisions of the data, none above 1 / 1e-6; the origin and unit precision where there are none.

        The floor of the variance is a constraint under which the likelihood has its maximum here.
        """
        n_mean, n, total, square = self._split(statistics)
        seen = n_mean > 0
        mean = np.divide(total, n_mean, out=np.zeros(np.shape(total)), where=seen)
        scatter = square - self._shared(mean * total)
        variance = np.divide(scatter, n, out=np.ones(np.shape(scatter)), where=n > 0)
        return NormalPoint(mean, 1 / np.maximum(variance, VARIANCE_FLOOR))

    def are_spikes(self, statistics: np.ndarray) -> np.ndarray:
        """True where components have a variance at its floor, or no more rows than columns, (n_components, ...)."""
        precision = self.most_likely(statistics).precision.max(axis=1)
        return (precision > AT_FLOOR / VARIANCE_FLOOR) | (self._split(statistics)[0].min(axis=1) <= self.n_features)

    def sample(self, rng: np.random.Generator | ParallelGenerator) -> NormalPoint:
        """Means and precisions drawn."""
        precision = np.maximum(rng.standard_gamma(self.degrees_of_freedom / 2), 1e-300) / (self.scale / 2)
        deviation = 1 / np.sqrt(self.mean_precision * precision)
        return NormalPoint(self.mean + deviation * rng.standard_normal(deviation.shape), precision)

    def to_unconstrained(self, point: NormalPoint) -> np.ndarray:
        """Means in units of their standard deviations, then log precisions, (n_free_parameters, ...)."""
        mean, precision = point
        free = np.concatenate([np.sqrt(precision) * mean, np.log(precision)], axis=1)
        return free.reshape(-1, *free.shape[2:])

    def from_unconstrained(self, free: np.ndarray) -> NormalPoint:
        """The point with these coordinates."""
        cells = free.reshape(self.n_components, -1, *free.shape[1:])
        precision = np.exp(cells[:, self.n_features :])
        return NormalPoint(cells[:, : self.n_features] / np.sqrt(precision), precision)

    def from_natural(self, natural: np.ndarray) -> NormalPoint:
        """The point with these natural parameters."""
        _, _, total, square = self._split(natural)
        return NormalPoint(-0.5 * total / square, -2 * square)

    def jacobian(self, point: NormalPoint) -> np.ndarray:
        r"""Derivatives of :math:`-\tfrac12 m^2, \tfrac12\rho, e^{\rho/2} m, -\tfrac12 e^\rho` by means m and by rho."""
        norm, log_root, total, square = self._places(self.coordinates)
        means, logs = self._free_places
        root, which = np.sqrt(point.precision), self._precision_of
        mean = root[:, which] * point.mean
        derivatives = np.zeros((len(self.coordinates), self.n_free_parameters))
        derivatives[norm, means] = -mean
        derivatives[log_root, logs] = 0.5
        derivatives[total, means] = root[:, which]
        derivatives[total, logs[:, which]] = 0.5 * root[:, which] * mean
        derivatives[square, logs] = -0.5 * point.precision
        return derivatives

    def information(self, point: NormalPoint, coordinates: np.ndarray, free: np.ndarray | None = None) -> np.ndarray:
        """Information: the precision at a mean; at a log precision, and between both, what sums and squares say."""
        kappa, _, total, square = self._split(coordinates)
        means, logs = self._free_places
        root, which = np.sqrt(point.precision), self._precision_of
        drawn = 0.5 * root[:, which] * total
        curvature = np.zeros((self.n_free_parameters,) * 2)
        curvature[means, means] = kappa
        curvature[means, logs[:, which]] = curvature[logs[:, which], means] = -drawn
        log_curvature = self._shared(0.5 * drawn * root[:, which] * point.mean)
        curvature[logs, logs] = 0.5 * square * point.precision - log_curvature
        return principal_submatrix(curvature, free)

    @property
    def square_cells(self) -> np.ndarray:
        """The cells of the square of each precision, (n_components, n_precisions)."""
        return self._places(self.coordinates)[3]

    @property
    def probability_shift(self) -> np.ndarray:
        """Shift of the coordinates: of degrees of freedom by the number of means on a precision, less 2."""
        shift = np.zeros(len(self.coordinates))
        shift[self._places(self.coordinates)[1]] = self.n_features // self.n_precisions - 2
        return shift

    def _places(self, cells: np.ndarray) -> list[np.ndarray]:
        return self._split(np.arange(len(cells)))

    @property
    def _free_places(self) -> list[np.ndarray]:
        """Unconstrained coordinates of means, and of log precisions, (n_components, ...)."""
        places = np.arange(self.n_free_parameters).reshape(self.n_components, -1)
        return np.split(places, [self.n_features], axis=1)

    @property
    def _precision_of(self) -> np.ndarray:
        """Precision of its component that each mean stands on."""
        return np.arange(self.n_features) * (self.n_precisions == self.n_features)

    def _log_natural_measure(self, point: NormalPoint) -> np.ndarray:
        means = self.n_features // self.n_precisions
        return (means / 2 - 1) * np.log(point.precision).sum(axis=(0, 1))

    def _split(self, cells: np.ndarray) -> list[np.ndarray]:
        """Mean precisions, degrees of freedom, sums and squares, (n_components, n_features or n_precisions, ...)."""
        d, p = self.n_features, self.n_precisions
        cells = cells.reshape(-1, 2 * (d + p), *cells.shape[1:])
        return [cells[:, :d], cells[:, d : d + p], cells[:, d + p : 2 * d + p], cells[:, 2 * d + p :]]

    def _join(self, *parts: np.ndarray) -> np.ndarray:
        cells = np.concatenate(parts, axis=1)
        return cells.reshape(-1, *cells.shape[2:])

    def _shared(self, features: np.ndarray) -> np.ndarray:
        return _shared(features, self.n_precisions)


def _shared(features: np.ndarray, n_precisions: int) -> np.ndarray:
    """Sums over the features that share a precision, (n_components, n_precisions, ...)."""
    return features if features.shape[1] == n_precisions else features.sum(axis=1, keepdims=True)
