r"""Normal-Wishart distributions: priors of means and precision matrices.

A precision matrix :math:`\Lambda` has :math:`\nu` degrees of freedom and scale S, each mean :math:`\mu_k` that stands
on it weighs :math:`\kappa_k` data:

.. math::

    p(\mu, \Lambda) \propto |\Lambda|^{\nu/2} \exp\Bigl(-\tfrac12 \operatorname{tr} \Lambda
        \bigl[S + \textstyle\sum_k \kappa_k (\mu_k - m_k)(\mu_k - m_k)^\top\bigr]\Bigr)
        \,\prod_k |\Lambda|^{1/2} d\mu_k \, |\Lambda|^{-(d+1)/2} d\Lambda,

that is :math:`\Lambda \sim \mathrm{Wishart}(\nu, S^{-1})` and
:math:`\mu_k \mid \Lambda \sim N(m_k, (\kappa_k \Lambda)^{-1})`. Every component has its own precision, or all
share one: then the K means and the precision are one joint block. The natural measure does not change under linear maps
of the data, so neither does the mode: mean m, precision :math:`\nu S^{-1}`.

Additive coordinates are :math:`\kappa`, :math:`\nu`, the sum :math:`\kappa m` and the square
:math:`S + \sum_k \kappa_k m_k m_k^\top`, of which the upper triangle is held; a datum x adds
:math:`(1, 1, x, x x^\top)`. Natural parameters are :math:`-\tfrac12\mu^\top\Lambda\mu`,
:math:`\tfrac12\ln|\Lambda| - \tfrac d2\ln 2\pi`, :math:`\Lambda\mu` and :math:`-\tfrac12\Lambda`, the last with the two
halves of the matrix added.

Squares are about zero, so the unit of measure must be one in which zero lies within the data and their spread is about
one: an emission sees to that. A spread of s about a mean m keeps a relative accuracy of 1e-16 (m / s)^2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from skvbem._kernels import _wishart
from skvbem._lazy import cached_property
from skvbem._numerics import (
    LOG_2PI,
    digamma,
    first_axes_last,
    inverse_of_lower,
    last_axes_first,
    log_det_one_plus,
    log_gamma,
    log_rising,
    pack_symmetric,
    pairings,
    safe_cholesky,
    unpack_symmetric,
)
from skvbem.families._wishart import MAX_COLUMNS, Factored, bartlett, wishart_information, wishart_jacobian
from skvbem.families.base import FlatFamily, no_interior_mode, principal_submatrix
from skvbem.families.normal_gamma import VARIANCE_FLOOR, NormalPoint
from skvbem.families.parallel_generator import ParallelGenerator

# `MAX_COLUMNS` where LAPACK would have to find eigenvalues.
_MAX_COLUMNS_OF_LIKELY = 128


@dataclass(frozen=True, eq=False)
class NormalWishart(FlatFamily):
    """Means of every component, and a precision matrix for each or one for all.

    Parameters
    ----------
    coordinates : ndarray of shape (n_cells, ...)
        With a precision for each component, for one component after the other: mean precision (1), degrees of freedom
        (1), sum (d) and square (d (d + 1) / 2). With one for all: mean precision and sum for one component after the
        other, then degrees of freedom and square.
    n_features : int
        d.
    shared : bool
        Whether all components share one precision matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from skvbem.families import NormalWishart
    >>> prior = NormalWishart.from_parameters(
    ...     mean=[[0.0, 0.0]], mean_precision=[1.0], degrees_of_freedom=[2.0], scale=[np.eye(2)]
    ... )
    >>> x = np.array([0.5, 1.5])
    >>> posterior = prior + np.array([1.0, 1.0, *x, x[0] ** 2, x[0] * x[1], x[1] ** 2])
    >>> posterior.mean.tolist()
    [[0.25, 0.75]]
    """

    n_features: int
    shared: bool = False

    @classmethod
    def from_parameters(cls, mean, mean_precision, degrees_of_freedom, scale, *, shared: bool = False) -> Self:
        """The block with these parameters.

        Parameters
        ----------
        mean : array_like of shape (n_components, d, ...)
        mean_precision : array_like of shape (n_components, ...)
        degrees_of_freedom : array_like of shape (n_precisions, ...)
            More than d - 1.
        scale : array_like of shape (n_precisions, d, d, ...)
            Symmetric, positive definite. A precision has mean degrees_of_freedom x inverse of its scale.
        shared : bool, default=False
            Whether all components share one precision, so that n_precisions is 1.
        """
        mean = first_axes_last(np.asarray(mean, dtype=float), 2)
        kappa, dof = (first_axes_last(np.asarray(x, dtype=float)) for x in (mean_precision, degrees_of_freedom))
        scale = first_axes_last(np.asarray(scale, dtype=float), 3)
        weighted = kappa[..., None] * mean
        square = scale + _shared(weighted[..., :, None] * mean[..., None, :], shared, axis=-3)
        return cls(_joined(shared, kappa, dof, weighted, pack_symmetric(square)), mean.shape[-1], shared)

    @property
    def n_components(self) -> int:
        """Number of components."""
        d, n_cells = self.n_features, len(self.coordinates)
        n_precision_cells = 1 + d * (d + 1) // 2
        return (n_cells - n_precision_cells) // (1 + d) if self.shared else n_cells // (1 + d + n_precision_cells)

    @property
    def n_free_parameters(self) -> int:
        """Number of means and of different entries of precision matrices."""
        d, n_precisions = self.n_features, 1 if self.shared else self.n_components
        return self.n_components * d + n_precisions * d * (d + 1) // 2

    @property
    def mean_precision(self) -> np.ndarray:
        """Weights of the means, in data, (n_components, ...)."""
        return last_axes_first(self._moments[0])

    @property
    def degrees_of_freedom(self) -> np.ndarray:
        """Degrees of freedom of the precisions, (n_precisions, ...)."""
        return last_axes_first(self._moments[1])

    @property
    def mean(self) -> np.ndarray:
        """E[mu], (n_components, d, ...)."""
        return last_axes_first(self._moments[2], 2)

    @property
    def scale(self) -> np.ndarray:
        """Scales, (n_precisions, d, d, ...): degrees_of_freedom x inverse of the scale is E[Lambda]."""
        return last_axes_first(self._moments[3], 3)

    @property
    def is_valid(self) -> np.ndarray:
        """True where weights are positive, degrees of freedom enough and scales definite; of the shape of the batch."""
        if self.n_features <= MAX_COLUMNS:
            return self._expected[2].copy()
        kappa, dof, _, _ = self._split(self.coordinates)
        enough = (kappa > 0).all(axis=-1) & (dof > self.n_features - 1).all(axis=-1)
        with np.errstate(divide="ignore", invalid="ignore"):
            return enough & np.isfinite(self._factor).all(axis=(-3, -2, -1))

    @property
    def signed(self) -> np.ndarray:
        """Sums and products may be negative."""
        d = self.n_features
        means, precisions = np.arange(1 + d) > 0, np.arange(1 + d * (d + 1) // 2) > 0
        if self.shared:
            return np.concatenate([np.tile(means, self.n_components), precisions])
        return np.tile(
            np.concatenate([means[:1], precisions[:1], means[1:], precisions[1:]]),
            self.n_components,
        )

    def log_normalizer(self) -> np.ndarray:
        """A, nats, summed over components; NaN where the coordinates are not those of a density."""
        if self.n_features <= MAX_COLUMNS:
            return self._expected[1].copy()
        (kappa, dof, _, _), d = self._moments, self.n_features
        precision_logs = self._log_gamma(dof) - dof / 2 * (d * np.log(np.pi) + self._log_det_scale)
        return precision_logs.sum(axis=-1) + d / 2 * (LOG_2PI - np.log(kappa)).sum(axis=-1)

    def log_normalizer_increment(self, statistics: np.ndarray) -> np.ndarray:
        """A(self + statistics) - A(self), nats; NaN where either is not the normalizer of a density."""
        if self.n_features <= MAX_COLUMNS:
            coordinates, statistics = np.broadcast_arrays(self._like(statistics), statistics)
            increment = np.zeros(coordinates[0].size)
            _wishart.increment(*self._form, _as_lanes(coordinates), _as_lanes(statistics), increment)
            return increment.reshape(coordinates.shape[1:])[()]
        (kappa, dof, mean, _), d = self._moments, self.n_features
        n_mean, n, total, square = self._split(statistics)
        about_mean = total - n_mean[..., None] * mean
        twice = 2 * total - n_mean[..., None] * mean
        crossed = 0.5 * (_outer(mean, twice) + _outer(twice, mean))
        crossed = crossed + _outer(about_mean, about_mean) / (kappa + n_mean)[..., None, None]
        added = unpack_symmetric(square, d) - _shared(crossed, self.shared, axis=-3)
        growth = log_det_one_plus(self._inverse_factor @ added @ self._inverse_factor.swapaxes(-1, -2))
        lifted = log_rising((dof[..., None] - np.arange(d)) / 2, n[..., None] / 2).sum(axis=-1)
        precision_logs = lifted - n / 2 * (d * np.log(np.pi) + self._log_det_scale) - (dof + n) / 2 * growth
        return precision_logs.sum(axis=-1) - d / 2 * np.log1p(n_mean / kappa).sum(axis=-1)

    def expected_natural(self) -> np.ndarray:
        """Expectations of the natural parameters, of the shape of the coordinates."""
        if self.n_features <= MAX_COLUMNS:
            return self._expected[0].copy()
        kappa, _, mean, _ = self._moments
        precision, d = self._expected_precision, self.n_features
        weighted = (precision @ mean[..., None])[..., 0]
        norm = -0.5 * ((weighted * mean).sum(axis=-1) + d / kappa)
        log_root = 0.5 * (self._expected_log_det - d * LOG_2PI)
        return _joined(self.shared, norm, log_root, weighted, -0.5 * pairings(d) * pack_symmetric(precision))

    def natural(self, point: NormalPoint) -> np.ndarray:
        """Natural parameters of a point, of the shape of the coordinates."""
        mean, precision = _lead(point)
        weighted, d = (precision @ mean[..., None])[..., 0], self.n_features
        log_root = np.log(np.diagonal(safe_cholesky(precision), axis1=-2, axis2=-1)).sum(axis=-1) - d / 2 * LOG_2PI
        norm = -0.5 * (weighted * mean).sum(axis=-1)
        return _joined(self.shared, norm, log_root, weighted, -0.5 * pairings(d) * pack_symmetric(precision))

    def mode(self, basis: str = "natural") -> NormalPoint:
        """The point of highest density with respect to the natural measure, or to means and precisions.

        Raises
        ------
        NoInteriorModeError
            In the probability basis, if a precision has no more degrees of freedom than d + 1 less its means.
        """
        _, dof, mean, _ = self._moments
        share = np.ones(dof.shape)
        if basis != "natural":
            least = self.n_features + 1 - (self.n_components if self.shared else 1)
            if np.any(dof <= least):
                worst = float(dof.min())
                raise no_interior_mode("Normal-Wishart", "degrees of freedom of", worst, f"more than {least}")
            share = 1 - least / dof
        return _trail(mean, share[..., None, None] * self._expected_precision)

    def most_likely(self, statistics: np.ndarray) -> NormalPoint:
        """Means and precisions of the data; the origin and the identity where there are none.

        Variances in all directions are 1e-6 at least, a constraint under which the likelihood has its maximum here.
        """
        _, n, mean, scatter = self._moments_of(statistics)
        identity = np.broadcast_to(np.eye(self.n_features), scatter.shape).copy()
        covariance = np.divide(scatter, n[..., None, None], out=identity, where=n[..., None, None] > 0)
        variance, axes = np.linalg.eigh(covariance)
        turned = axes / np.sqrt(np.maximum(variance, VARIANCE_FLOOR))[..., None, :]
        return _trail(mean, turned @ turned.swapaxes(-1, -2))

    def _moments_of(self, statistics: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Weights of the means and of the precisions of data, their means, 0 of none, and scatter about these."""
        n_mean, n, total, square = self._split(statistics)
        mean = np.divide(total, n_mean[..., None], out=np.zeros(total.shape), where=n_mean[..., None] > 0)
        scatter = unpack_symmetric(square, self.n_features) - _shared(_outer(mean, total), self.shared, axis=-3)
        return n_mean, n, mean, scatter

    def natural_of_most_likely(self, statistics: np.ndarray) -> np.ndarray:
        """Natural parameters of the most likely point, of the shape of the statistics."""
        natural, is_sure = self._above(VARIANCE_FLOOR, statistics)
        if not is_sure.all():
            lanes = _as_lanes(statistics)[:, ~is_sure]
            natural[:, ~is_sure] = self.natural(self.most_likely(lanes))
        return natural.reshape(statistics.shape)

    def _above(self, floor: float, statistics: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Natural parameters (n_cells, n_lanes) of most likely points, and where variances are surely above a floor."""
        cells = _as_lanes(statistics)
        natural, sure = np.empty(cells.shape), np.zeros(cells.shape[1], dtype=bool)
        if self.n_features <= _MAX_COLUMNS_OF_LIKELY:
            _wishart.most_likely(*self._form, floor, cells, natural, sure.view(np.uint8))
        return natural, sure

    def are_spikes(self, statistics: np.ndarray) -> np.ndarray:
        """True where components have a variance at its floor, or no more rows than columns, (n_components, ...).

        With one precision for all it is all of them or none.
        """
        n_mean, n, *_ = self._split(statistics)
        flat, floor = np.zeros(n.shape, dtype=bool), VARIANCE_FLOOR / 0.999
        is_sure = self._above(floor, statistics)[1].reshape(statistics.shape[1:])
        if not is_sure.all():
            scatter = self._moments_of(statistics)[3]
            flat[~is_sure] = np.linalg.eigvalsh(scatter[~is_sure])[..., 0] < floor * n[~is_sure]
        few = n <= self.n_features if not self.shared else np.zeros(n.shape, dtype=bool)
        return last_axes_first(np.broadcast_to(flat | few, n_mean.shape))

    def sample(self, rng: np.random.Generator | ParallelGenerator) -> NormalPoint:
        """Means and precisions drawn, by Bartlett's decomposition."""
        return self._drawn(self._moments[1], rng)

    def draws(self, n_draws: int, rng: np.random.Generator) -> NormalPoint:
        """Means and precisions drawn many times, from one factor of each scale."""
        dof = self._moments[1]
        return self._drawn(np.broadcast_to(dof, (n_draws, *dof.shape)), rng)

    def _drawn(self, dof: np.ndarray, rng: np.random.Generator | ParallelGenerator) -> NormalPoint:
        """A draw for each of the degrees of freedom, batch axes first."""
        (kappa, _, mean, _), d = self._moments, self.n_features
        lower = bartlett(dof, d, rng)
        half = self._inverse_factor.swapaxes(-1, -2) @ lower
        noise = first_axes_last(rng.standard_normal((*mean.shape[-2:], *dof.shape[:-1])), 2)
        # Lambda = (L^-T A)(L^-T A)^T, so that L A^-T is a root of its inverse
        drawn = self._factor @ np.linalg.solve(lower.swapaxes(-1, -2), noise[..., None])
        return _trail(mean + drawn[..., 0] / np.sqrt(kappa)[..., None], half @ half.swapaxes(-1, -2))

    def draw_natural(self, rng: ParallelGenerator) -> np.ndarray:
        r"""Natural parameters of a draw of means and precisions, of the shape of the coordinates.

        The draw of `sample`, but without its mean :math:`\mu = m + H^{-\top} z / \sqrt\kappa` under the precision
        :math:`\Lambda = H H^\top`: :math:`\Lambda\mu = H v` and :math:`\mu^\top\Lambda\mu = v^\top v` with
        :math:`v = H^\top m + z / \sqrt\kappa`.
        """
        if self.n_features <= MAX_COLUMNS:
            cells, natural = _as_lanes(self.coordinates), np.empty(self.coordinates.shape)
            _wishart.drawn(*self._form, cells, rng.streams_of(cells.shape), natural)
            return natural
        (kappa, dof, mean, _), d = self._moments, self.n_features
        lower = bartlett(dof, d, rng)
        half = self._inverse_factor.swapaxes(-1, -2) @ lower
        noise = first_axes_last(rng.standard_normal((*mean.shape[-2:], *dof.shape[:-1])), 2)
        turned = (half.swapaxes(-1, -2) @ mean[..., None])[..., 0] + noise / np.sqrt(kappa)[..., None]
        log_pivots = np.log(np.diagonal(lower, axis1=-2, axis2=-1)).sum(axis=-1)
        log_root = log_pivots - 0.5 * (self._log_det_scale + d * LOG_2PI)
        square = -0.5 * pairings(d) * pack_symmetric(half @ half.swapaxes(-1, -2))
        weighted = (half @ turned[..., None])[..., 0]
        return _joined(self.shared, -0.5 * (turned * turned).sum(axis=-1), log_root, weighted, square)

    def to_unconstrained(self, point: NormalPoint) -> np.ndarray:
        r"""Coordinates in which the natural measure is volume, (n_free_parameters, ...).

        With :math:`\Lambda = C C^\top`, C lower triangular: :math:`C^\top\mu`, then :math:`\ln C_{ii}^2`, then
        :math:`C_{ij} / C_{ii}` below the diagonal.
        """
        mean, precision = _lead(point)
        factor = np.linalg.cholesky(precision)
        pivots = np.diagonal(factor, axis1=-2, axis2=-1)
        rows, columns = np.tril_indices(self.n_features, -1)
        parts = [
            (factor.swapaxes(-1, -2) @ mean[..., None])[..., 0],
            2 * np.log(pivots),
            (factor / pivots[..., None])[..., rows, columns],
        ]
        batch = mean.shape[:-2]
        return last_axes_first(np.concatenate([part.reshape(*batch, -1) for part in parts], axis=-1))

    def from_unconstrained(self, free: np.ndarray) -> NormalPoint:
        """The point with these coordinates."""
        d, n_means = self.n_features, self.n_components
        n_precisions = 1 if self.shared else n_means
        flat = first_axes_last(free)
        means, log_pivots, below = np.split(flat, [n_means * d, (n_means + n_precisions) * d], axis=-1)
        batch = flat.shape[:-1]
        factor = np.zeros((*batch, n_precisions, d, d))
        factor[..., np.arange(d), np.arange(d)] = 1.0
        rows, columns = np.tril_indices(d, -1)
        factor[..., rows, columns] = below.reshape(*batch, n_precisions, -1)
        factor *= np.exp(log_pivots.reshape(*batch, n_precisions, d) / 2)[..., None]
        turned = means.reshape(*batch, n_means, d, 1)
        mean = np.linalg.solve(np.broadcast_to(factor.swapaxes(-1, -2), (*batch, n_means, d, d)), turned)[..., 0]
        return _trail(mean, factor @ factor.swapaxes(-1, -2))

    def from_natural(self, natural: np.ndarray) -> NormalPoint:
        """The point with these natural parameters."""
        _, _, weighted, square = self._split(natural)
        precision = unpack_symmetric(-2 * square / pairings(self.n_features), self.n_features)
        return _trail(np.linalg.solve(precision, weighted[..., None])[..., 0], precision)

    def jacobian(self, point: NormalPoint) -> np.ndarray:
        """Derivatives of the natural parameters by the unconstrained coordinates, (n_cells, n_free_parameters)."""
        places = self._split(np.arange(len(self.coordinates)))
        return wishart_jacobian(places, Factored.at(point))

    def information(self, point: NormalPoint, coordinates: np.ndarray, free: np.ndarray | None = None) -> np.ndarray:
        """Minus the second derivatives of coordinates . natural(point) by unconstrained coordinates."""
        return principal_submatrix(wishart_information(self._split(coordinates), Factored.at(point)), free)

    @property
    def square_cells(self) -> np.ndarray:
        """The cells of the packed square of each precision, (n_precisions, d (d + 1) / 2)."""
        return self._split(np.arange(len(self.coordinates)))[3]

    @property
    def probability_shift(self) -> np.ndarray:
        """Shift of the coordinates: of degrees of freedom by the number of means on a precision, less d + 1."""
        shift = np.zeros(len(self.coordinates))
        means = self.n_components if self.shared else 1
        shift[self._split(np.arange(len(shift)))[1]] = means - self.n_features - 1
        return shift

    def _log_natural_measure(self, point: NormalPoint) -> np.ndarray:
        precision = _lead(point)[1]
        means, d = (self.n_components if self.shared else 1), self.n_features
        log_det = 2 * np.log(np.diagonal(safe_cholesky(precision), axis1=-2, axis2=-1)).sum(axis=(-2, -1))
        return (means - d - 1) / 2 * log_det

    @property
    def _form(self) -> tuple[int, int, bool]:
        return self.n_features, self.n_components, self.shared

    @cached_property
    def _expected(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Expected natural parameters (n_cells, ...), log normalizers, and where densities are, of few columns."""
        cells, batch = _as_lanes(self.coordinates), self.coordinates.shape[1:]
        natural, normalizer = np.empty(cells.shape), np.zeros(cells.shape[1])
        valid = np.ones(cells.shape[1], dtype=bool)
        _wishart.expected(*self._form, cells, natural, normalizer, valid.view(np.uint8))
        return natural.reshape(self.coordinates.shape), normalizer.reshape(batch)[()], valid.reshape(batch)[()]

    @cached_property
    def _moments(self) -> tuple[np.ndarray, ...]:
        """Mean precisions, degrees of freedom, means and scales, batch axes first."""
        kappa, dof, total, square = self._split(self.coordinates)
        mean = total / kappa[..., None]
        scale = unpack_symmetric(square, self.n_features) - _shared(_outer(mean, total), self.shared, axis=-3)
        return kappa, dof, mean, scale

    @cached_property
    def _factor(self) -> np.ndarray:
        return safe_cholesky(self._moments[3])

    @cached_property
    def _inverse_factor(self) -> np.ndarray:
        return inverse_of_lower(self._factor)

    @cached_property
    def _log_det_scale(self) -> np.ndarray:
        return 2 * np.log(np.diagonal(self._factor, axis1=-2, axis2=-1)).sum(axis=-1)

    @cached_property
    def _expected_precision(self) -> np.ndarray:
        inverse = self._inverse_factor
        return self._moments[1][..., None, None] * (inverse.swapaxes(-1, -2) @ inverse)

    @cached_property
    def _expected_log_det(self) -> np.ndarray:
        dof, d = self._moments[1], self.n_features
        return digamma((dof[..., None] - np.arange(d)) / 2).sum(axis=-1) + d * np.log(2.0) - self._log_det_scale

    def _log_gamma(self, dof: np.ndarray) -> np.ndarray:
        """ln of the multivariate Gamma function at half the degrees of freedom."""
        d = self.n_features
        return log_gamma((dof[..., None] - np.arange(d)) / 2).sum(axis=-1) + d * (d - 1) / 4 * np.log(np.pi)

    def _split(self, cells: np.ndarray) -> list[np.ndarray]:
        """Mean precisions, degrees of freedom, sums and packed squares of flat cells, batch axes first."""
        cells, d = cells.T if cells.ndim < 3 else first_axes_last(cells), self.n_features
        if self.shared:
            mean_cells = cells[..., : -1 - d * (d + 1) // 2].reshape(*cells.shape[:-1], -1, 1 + d)
            precision_cells = cells[..., None, mean_cells.shape[-2] * (1 + d) :]
            return [mean_cells[..., 0], precision_cells[..., 0], mean_cells[..., 1:], precision_cells[..., 1:]]
        cells = cells.reshape(*cells.shape[:-1], -1, 2 + d + d * (d + 1) // 2)
        return [cells[..., 0], cells[..., 1], cells[..., 2 : 2 + d], cells[..., 2 + d :]]


def _joined(shared: bool, norm: np.ndarray, log_root: np.ndarray, total: np.ndarray, square: np.ndarray) -> np.ndarray:
    """The coordinates of Normal-Wishart distributions as flat cells, batch axes last."""
    batch = norm.shape[:-1]
    if shared:
        mean_cells = np.concatenate([norm[..., None], total], axis=-1).reshape(*batch, -1)
        flat = np.concatenate([mean_cells, log_root, square[..., 0, :]], axis=-1)
    else:
        flat = np.concatenate([norm[..., None], log_root[..., None], total, square], axis=-1).reshape(*batch, -1)
    return flat.T if flat.ndim < 3 else last_axes_first(flat)


def _shared(values: np.ndarray, shared: bool, axis: int) -> np.ndarray:
    """Sums over the means that share a precision."""
    return values.sum(axis=axis, keepdims=True) if shared else values


def _as_lanes(cells: np.ndarray) -> np.ndarray:
    """Cells (n_cells, ...) as (n_cells, n_lanes)."""
    return np.ascontiguousarray(cells.reshape(len(cells), -1), dtype=float)


def _outer(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a[..., :, None] * b[..., None, :]


def _lead(point: NormalPoint) -> tuple[np.ndarray, np.ndarray]:
    """Means and precisions, batch axes first."""
    return first_axes_last(point.mean, 2), first_axes_last(point.precision, 3)


def _trail(mean: np.ndarray, precision: np.ndarray) -> NormalPoint:
    """A point, batch axes last."""
    return NormalPoint(last_axes_first(mean, 2), last_axes_first(precision, 3))
