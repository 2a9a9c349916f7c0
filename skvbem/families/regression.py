r"""Regressions: priors of coefficients and of the precision of their noise, one row of coefficients for each target.

Row s explains a number y by regressors r, :math:`y \sim N(c_s^\top r, 1/\rho_{g(s)})`. Rows of one group g share the
precision of the noise. Given it, the coefficients of a row are normal, about :math:`m_s`, with a precision matrix
:math:`\rho\Lambda` that several rows may share:

.. math::

    p(c, \rho) \propto \prod_g \rho_g^{a_g} e^{-b_g \rho_g} \prod_s
        \exp\Bigl(-\tfrac{\rho_{g(s)}}{2} (c_s - m_s)^\top \Lambda_{p(s)} (c_s - m_s)\Bigr)
        \prod_s \rho_{g(s)}^{D/2} dc_s \prod_g \frac{d\rho_g}{\rho_g},

that is :math:`\rho_g \sim \mathrm{Gamma}(a_g, b_g)` and
:math:`c_s \mid \rho \sim N(m_s, (\rho_{g(s)}\Lambda_{p(s)})^{-1})`. With one regressor, the constant 1, it is the
Normal-Gamma distribution. A noise may be known instead: then :math:`\rho = 1`.

Additive coordinates are :math:`\Lambda`, of which the upper triangle is held, the sums :math:`\Lambda m`, the counts 2a
and the squares :math:`2b + \sum_s m_s^\top \Lambda m_s`. A datum adds :math:`(r r^\top, y r, 1, y^2)`. Natural
parameters are :math:`-\tfrac12\sum_s \rho c_s c_s^\top` over the rows that share a matrix, with its two halves added,
:math:`\rho c`, :math:`\tfrac12\ln\rho - \tfrac12\ln 2\pi` and :math:`-\tfrac12\rho` [Beal (4.3)-(4.5), (5.36)].

Squares are about zero, so the unit of measure must be one in which zero lies within the targets and their spread is
about one: an emission sees to that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from skvbem._kernels import _factors
from skvbem._lazy import cached_property
from skvbem._numerics import (
    diagonal_places,
    first_axes_last,
    last_axes_first,
    pack_symmetric,
    pairings,
    pseudo_inverse,
    unpack_symmetric,
)
from skvbem.families.base import AT_FLOOR, FlatFamily, no_interior_mode, principal_submatrix
from skvbem.families.normal_gamma import VARIANCE_FLOOR
from skvbem.families.parallel_generator import ParallelGenerator
from skvbem.families.regression_rows import (
    RegressionPoint,
    RegressionRows,
    batch_first,
    batch_last,
    flat_cells,
    natural_cells,
    summed_over,
)

# Share of squares of coefficients that is of their means where nothing is known of these: a tenth of a deviation.
_UNKNOWN = 0.01


@dataclass(frozen=True, eq=False)
class Regression(FlatFamily):
    """Coefficients of many rows, and a precision of the noise for each group of rows.

    Parameters
    ----------
    coordinates : ndarray of shape (n_cells, ...)
        Upper triangles of all precision matrices, sums of all rows, counts and squares of all noises.
    n_regressors : int
        D.
    precision_of : ndarray of int, shape (n_rows,)
        Which precision matrix each row has. All of them are in use.
    noise_of : ndarray of int, shape (n_rows,), or None
        Which noise each row has; None if the precision of the noise is known to be 1.
    n_components : int
        Components that the rows belong to, as many rows to each, one component after the other.
    floor : float
        Least variance of a noise where it is most likely, in the unit of the targets.

    Examples
    --------
    The line y = 2 x with an offset of 1:

    >>> import numpy as np
    >>> from skvbem.families.regression import Regression
    >>> one_row = np.zeros(1, dtype=int)
    >>> prior = Regression.from_parameters([[0.0, 0.0]], [np.eye(2) / 100], [1.0], [0.5], one_row, one_row)
    >>> x = np.array([-1.0, 0.0, 1.0, 2.0])
    >>> y = 1 + 2 * x
    >>> r = np.column_stack([np.ones(4), x])
    >>> posterior = prior + np.concatenate([(r.T @ r)[np.triu_indices(2)], y @ r, [4.0, y @ y]])
    >>> posterior.mean.round(2).tolist()
    [[1.0, 2.0]]
    """

    n_regressors: int
    precision_of: np.ndarray
    noise_of: np.ndarray | None
    n_components: int = 1
    floor: float = VARIANCE_FLOOR

    @classmethod
    def from_parameters(
        cls,
        mean,
        precision,
        shape,
        rate,
        precision_of,
        noise_of,
        *,
        n_components: int = 1,
        floor: float = VARIANCE_FLOOR,
    ) -> Self:
        r"""The block with these parameters.

        Parameters
        ----------
        mean : array_like of shape (n_rows, n_regressors, ...)
            Of the coefficients.
        precision : array_like of shape (n_precisions, n_regressors, n_regressors, ...)
            :math:`\Lambda`, symmetric, positive definite.
        shape, rate : array_like of shape (n_noises, ...), or None
            Of the Gamma distributions of noise precisions; None if the noise is known.
        precision_of : array_like of int, shape (n_rows,)
        noise_of : array_like of int, shape (n_rows,), or None
        n_components : int, default=1
        floor : float, default=1e-6
        """
        precision_of = np.asarray(precision_of)
        mean = first_axes_last(np.asarray(mean, dtype=float), 2)
        precision = first_axes_last(np.asarray(precision, dtype=float), 3)
        total = (precision[..., precision_of, :, :] @ mean[..., None])[..., 0]
        if noise_of is None:
            empty = np.zeros((*mean.shape[:-2], 0))
            cells = flat_cells(pack_symmetric(precision), total, empty, empty)
            return cls(cells, mean.shape[-1], precision_of, None, n_components, floor)
        noise_of = np.asarray(noise_of)
        a, b = (first_axes_last(np.asarray(x, dtype=float)) for x in (shape, rate))
        square = 2 * b + summed_over((total * mean).sum(axis=-1), noise_of, a.shape[-1])
        cells = flat_cells(pack_symmetric(precision), total, 2 * a, square)
        return cls(cells, mean.shape[-1], precision_of, noise_of, n_components, floor)

    @property
    def n_rows(self) -> int:
        """Number of rows of coefficients."""
        return len(self.precision_of)

    @property
    def n_precisions(self) -> int:
        """Number of precision matrices."""
        return self._rows.n_precisions

    @property
    def n_noises(self) -> int:
        """Number of noises whose precision is not known."""
        return self._rows.n_noises

    def __add__(self, statistics: np.ndarray) -> Self:
        added = super().__add__(statistics)
        vars(added)["_rows"] = self._rows
        return added

    @property
    def n_free_parameters(self) -> int:
        """Number of coefficients and precisions of noises."""
        return self.n_rows * self.n_regressors + self.n_noises

    @property
    def mean(self) -> np.ndarray:
        """E[c], (n_rows, n_regressors, ...)."""
        return last_axes_first(self._mean, 2)

    @property
    def covariance(self) -> np.ndarray:
        r"""Covariances of coefficients in units of the noise, :math:`\Lambda^{-1}`, (n_precisions, D, D, ...)."""
        return last_axes_first(self._covariance, 3)

    @property
    def shape(self) -> np.ndarray:
        """Shapes a of the precisions of noises, (n_noises, ...)."""
        return last_axes_first(self._gamma[0])

    @property
    def rate(self) -> np.ndarray:
        """Rates b of the precisions of noises, (n_noises, ...)."""
        return last_axes_first(self._gamma[1])

    @property
    def squares_of_means(self) -> np.ndarray:
        r"""The part of squares that is of prior means, :math:`\sum_s m_s^\top \Lambda m_s`, (..., n_noises)."""
        products, total, *_ = self.split(self.coordinates)
        matrices = unpack_symmetric(products, self.n_regressors)
        return self.by_noise(self._rows.solution(matrices, pseudo_inverse(matrices), total)[1])

    @property
    def arrays(self) -> tuple[int, np.ndarray, np.ndarray, np.ndarray, int]:
        """Regressors, matrix and noise of each row, rows of each matrix, and noises, as kernels take them."""
        return self._rows.arrays

    @property
    def precision_cells(self) -> np.ndarray:
        """The cells of the packed precision matrices, (n_precisions, D (D + 1) / 2)."""
        return self.split(np.arange(len(self.coordinates)))[0]

    @property
    def is_valid(self) -> np.ndarray:
        """True where precision matrices are definite, shapes and rates positive; of the shape of the batch."""
        natural, log_normalizer = self._expected
        return np.asarray(np.isfinite(log_normalizer) & np.isfinite(natural).all(axis=0))

    @property
    def signed(self) -> np.ndarray:
        """Products of different regressors, and sums, may be negative."""
        products = np.tile(pairings(self.n_regressors) > 1, self.n_precisions)
        noises = np.zeros(2 * self.n_noises, dtype=bool)
        return np.concatenate([products, np.ones(self.n_rows * self.n_regressors, dtype=bool), noises])

    def log_normalizer(self) -> np.ndarray:
        """A, nats, summed over rows; NaN where the coordinates are not those of a density."""
        return self._expected[1]

    def log_normalizer_increment(self, statistics: np.ndarray) -> np.ndarray:
        """A(self + statistics) - A(self), nats; NaN where either is not the normalizer of a density."""
        return self._rows.growth(self.coordinates, statistics)

    def expected_natural(self) -> np.ndarray:
        """Expectations of the natural parameters, of the shape of the coordinates."""
        return self._expected[0]

    def expectation_at(self, coordinates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """`expected_natural` and `log_normalizer` of the density with other coordinates (n_cells, ...)."""
        return self._rows.expect(coordinates)

    def natural(self, point: RegressionPoint) -> np.ndarray:
        """Natural parameters of a point, of the shape of the coordinates."""
        coefficients, rho = batch_first(point)
        row_precision = self._of_rows(rho)
        products = self._rows.by_precision(row_precision, coefficients)
        return natural_cells(products, row_precision[..., None] * coefficients, np.log(rho), rho)

    def mode(self, basis: str = "natural") -> RegressionPoint:
        """The point of highest density with respect to the natural measure, or to coefficients and precisions.

        Raises
        ------
        NoInteriorModeError
            In the probability basis, if a noise has a shape of no more than 1 less half of its coefficients.
        """
        a, b = self._gamma
        if basis != "natural":
            a = a + self._rows.n_coefficients / 2 - 1
            if np.any(a <= 0):
                least = 1 - self._rows.n_coefficients.max() / 2
                raise no_interior_mode("Normal-Gamma", "shape", float(self._gamma[0].min()), f"more than {least:g}")
        return batch_last(self._mean, a / b)

    def most_likely(self, statistics: np.ndarray) -> RegressionPoint:
        """Coefficients by least squares, of least length where several are; 0 and 1 where there are no data.

        Variances of noises are at the `floor` at least, a constraint under which the likelihood has its maximum here.
        """
        products, total, n, square = self.split(statistics)
        matrices = unpack_symmetric(products, self.n_regressors)
        coefficients, explained = self._rows.solution(matrices, pseudo_inverse(matrices), total)
        left = square - self.by_noise(explained)
        variance = np.divide(left, n, out=np.ones(n.shape), where=n > 0)
        return batch_last(coefficients, 1 / np.maximum(variance, self.floor))

    @property
    def noise_of_row(self) -> np.ndarray:
        """Noise of each row, (n_rows,), where noises are not known."""
        assert self.noise_of is not None
        return self.noise_of

    def are_spikes(self, statistics: np.ndarray) -> np.ndarray | None:
        """True where components have a noise at its floor, (n_components, ...); None if the noise is known."""
        if self.noise_of is None:
            return None
        _, rho = batch_first(self.most_likely(statistics))
        flat = np.asarray(rho > AT_FLOOR / self.floor)[..., self.noise_of]
        by_component = flat.reshape(*flat.shape[:-1], self.n_components, -1)
        return last_axes_first(np.asarray(by_component.any(axis=-1)))

    def sample(self, rng: np.random.Generator | ParallelGenerator) -> RegressionPoint:
        """Coefficients and precisions drawn: precisions first, then coefficients given these."""
        a, b = self._gamma
        batch = self._mean.shape[:-2]
        rho = np.ones((*batch, 0))
        if self.noise_of is not None:
            rho = np.maximum(first_axes_last(rng.standard_gamma(last_axes_first(a))), 1e-300) / b
        noise = first_axes_last(rng.standard_normal((self.n_rows, self.n_regressors, *batch)), 2)
        turned = self._rows.products(self._inverse_factor.swapaxes(-1, -2), noise)
        return batch_last(self._mean + turned / np.sqrt(self._of_rows(rho))[..., None], rho)

    def to_unconstrained(self, point: RegressionPoint) -> np.ndarray:
        """Coefficients in units of their noise, then log precisions, (n_free_parameters, ...)."""
        coefficients, rho = batch_first(point)
        scaled = np.sqrt(self._of_rows(rho))[..., None] * coefficients
        free = np.concatenate([scaled.reshape(*scaled.shape[:-2], -1), np.log(rho)], axis=-1)
        return last_axes_first(free)

    def from_unconstrained(self, free: np.ndarray) -> RegressionPoint:
        """The point with these coordinates."""
        flat = first_axes_last(free)
        scaled, log_rho = np.split(flat, [self.n_rows * self.n_regressors], axis=-1)
        scaled, rho = scaled.reshape(*flat.shape[:-1], self.n_rows, -1), np.exp(log_rho)
        return batch_last(scaled / np.sqrt(self._of_rows(rho))[..., None], rho)

    def from_natural(self, natural: np.ndarray) -> RegressionPoint:
        """The point with these natural parameters."""
        _, total, _, square = self.split(natural)
        rho = -2 * square
        return batch_last(total / self._of_rows(rho)[..., None], rho)

    def jacobian(self, point: RegressionPoint) -> np.ndarray:
        """Derivatives of natural parameters by coefficients in units of their noise, and by log precisions."""
        coefficients, rho = batch_first(point)
        packed, sums, counts, squares = self.split(np.arange(len(self.coordinates)))
        roots, (places, logs) = np.sqrt(self._of_rows(rho)), self._free_places
        z = roots[:, None] * coefficients
        derivatives = np.zeros((len(self.coordinates), self.n_free_parameters))
        matrices = unpack_symmetric(packed, self.n_regressors)[self.precision_of]
        for i in range(self.n_regressors):  # d(-z z^T / 2), both halves, by the i-th coefficient of each row
            derivatives[matrices[:, i], places[:, i, None]] = -z
        derivatives[sums, places] = roots[:, None]
        if self.noise_of is not None:
            derivatives[sums, logs[self.noise_of][:, None]] = 0.5 * roots[:, None] * z
            derivatives[counts, logs] = 0.5
            derivatives[squares, logs] = -0.5 * rho
        return derivatives

    def information(
        self, point: RegressionPoint, coordinates: np.ndarray, free: np.ndarray | None = None
    ) -> np.ndarray:
        """Information: the precision matrix of coefficients; at a log precision, and between both, sums and squares."""
        coefficients, rho = batch_first(point)
        products, total, _, square = self.split(coordinates)
        root, (places, logs) = np.sqrt(self._of_rows(rho)), self._free_places
        curvature = np.zeros((self.n_free_parameters,) * 2)
        matrices = unpack_symmetric(products, self.n_regressors)[self.precision_of]
        curvature[places[:, :, None], places[:, None, :]] = matrices
        if self.noise_of is not None:
            drawn = 0.5 * root[:, None] * total
            row_logs = logs[self.noise_of][:, None]
            curvature[places, row_logs] = curvature[row_logs, places] = -drawn
            log_curvature = self.by_noise((0.5 * drawn * root[:, None] * coefficients).sum(axis=-1))
            curvature[logs, logs] = 0.5 * square * rho - log_curvature
        return principal_submatrix(curvature, free)

    @property
    def probability_shift(self) -> np.ndarray:
        """Shift of the coordinates: of a count by the number of coefficients that stand on its noise, less 2."""
        shift = np.zeros(len(self.coordinates))
        shift[self.split(np.arange(len(shift)))[2]] = self._rows.n_coefficients - 2
        return shift

    def _log_natural_measure(self, point: RegressionPoint) -> np.ndarray:
        return ((self._rows.n_coefficients / 2 - 1) * np.log(batch_first(point)[1])).sum(axis=-1)

    # Parts ------------------------------------------------------------------------------------------------------------

    @cached_property
    def _rows(self) -> RegressionRows:
        return RegressionRows.of(self.n_regressors, self.precision_of, self.noise_of)

    @cached_property
    def _parts(self) -> list[np.ndarray]:
        return self.split(self.coordinates)

    @cached_property
    def _inverted(self) -> tuple[np.ndarray, np.ndarray]:
        """Of precision matrices (..., n_precisions) packed roots and covariances, (cells, n)."""
        packed = self._parts[0]
        cells = np.ascontiguousarray(packed.reshape(-1, packed.shape[-1]).T)[None]
        root, covariance = np.empty(cells.shape), np.empty(cells.shape)
        _factors.invert(cells, root, covariance, np.empty((1, cells.shape[-1])))
        return root[0], covariance[0]

    @cached_property
    def _inverse_factor(self) -> np.ndarray:
        return np.tril(self._unpacked(self._inverted[0]))

    @cached_property
    def _covariance(self) -> np.ndarray:
        return self._unpacked(self._inverted[1])

    def _unpacked(self, cells: np.ndarray) -> np.ndarray:
        """Symmetric matrices (..., n_precisions, D, D) of packed cells (cells, n)."""
        return unpack_symmetric(cells.T, self.n_regressors).reshape(
            *self._parts[0].shape[:-1], *[self.n_regressors] * 2
        )

    @property
    def _matrices(self) -> tuple[np.ndarray, np.ndarray]:
        """Precision matrices and covariances, each (..., n_precisions, D, D)."""
        return unpack_symmetric(self._parts[0], self.n_regressors), self._covariance

    @cached_property
    def _expected(self) -> tuple[np.ndarray, np.ndarray]:
        """Expected natural parameters and log normalizers."""
        return self._rows.expect(self.coordinates)

    @cached_property
    def _solved(self) -> tuple[np.ndarray, np.ndarray]:
        return self._rows.solution(*self._matrices, self._parts[1])

    @property
    def _mean(self) -> np.ndarray:
        return self._solved[0]

    @cached_property
    def _gamma(self) -> tuple[np.ndarray, np.ndarray]:
        """Shapes and rates, batch axes first."""
        _, _, count, square = self._parts
        return count / 2, (square - self.by_noise(self._solved[1])) / 2

    @property
    def _free_places(self) -> tuple[np.ndarray, np.ndarray]:
        """Unconstrained coordinates of coefficients (n_rows, D), and of log precisions (n_noises,)."""
        places = np.arange(self.n_free_parameters)
        coefficients, logs = np.split(places, [self.n_rows * self.n_regressors])
        return coefficients.reshape(self.n_rows, -1), logs

    def by_noise(self, rows: np.ndarray) -> np.ndarray:
        """Sums over the rows (..., n_rows) of each noise, (..., n_noises)."""
        if self.noise_of is None:
            return rows[..., :0]
        return rows if self._rows.has_own_noises else summed_over(rows, self.noise_of, self.n_noises)

    def _of_rows(self, rho: np.ndarray) -> np.ndarray:
        """The precision of the noise of each row, (..., n_rows)."""
        if self.noise_of is None:
            return np.ones((*rho.shape[:-1], self.n_rows))
        return rho if self._rows.has_own_noises else rho[..., self.noise_of]

    def split(self, cells: np.ndarray) -> list[np.ndarray]:
        """Packed matrices (..., n_precisions, cells), sums (..., n_rows, D), counts and squares (..., n_noises)."""
        cells = cells.T if cells.ndim < 3 else first_axes_last(cells)
        first, second, third = self._rows.ends
        packed, total = cells[..., :first], cells[..., first:second]
        batch = cells.shape[:-1]
        return [
            packed.reshape(*batch, self.n_precisions, -1),
            total.reshape(*batch, -1, self.n_regressors),
            cells[..., second:third],
            cells[..., third:],
        ]


def rotation_tangent(layout: Regression, natural: np.ndarray, rotation: np.ndarray) -> np.ndarray:
    """Derivative of natural parameters (n_cells,) along a rotation of the regressors, of the same shape.

    Parameters
    ----------
    layout : Regression
    natural : ndarray of shape (n_cells,)
    rotation : ndarray of shape (n_components, D, D)
        Antisymmetric: the velocity of the regressors of each component.
    """
    packed, total, count, square = layout.split(natural)
    k, d, halves = layout.n_components, layout.n_regressors, pairings(layout.n_regressors)
    half = rotation[:, None] @ unpack_symmetric(packed / halves, d).reshape(k, -1, d, d)
    products = pack_symmetric((half + half.swapaxes(-1, -2)).reshape(-1, d, d)) * halves
    rows = total.reshape(k, -1, d) @ rotation.swapaxes(-1, -2)
    return np.concatenate([products.ravel(), rows.ravel(), np.zeros(count.size + square.size)])


def are_unknown(layout: Regression, natural: np.ndarray) -> np.ndarray:
    r"""Boolean array (n_components, D) of the regressors that no row of coefficients depends on, as far as is known.

    Of these means are 0, or next to nothing beside their deviations:
    :math:`\sum_s \bar\rho_s \bar c_s^2` beside :math:`\sum_s \langle\rho_s c_s^2\rangle`.

    Parameters
    ----------
    layout : Regression
        Whose coordinates are not asked.
    natural : ndarray of shape (n_cells,)
        Expected natural parameters, or those of a point.
    """
    packed, total, _, square = layout.split(natural)
    by_component = (layout.n_components, -1, layout.n_regressors)
    of_means = (total**2 / (-2 * square[layout.noise_of_row])[:, None]).reshape(by_component).sum(axis=1)
    expected = -2 * packed[:, diagonal_places(layout.n_regressors)].reshape(by_component).sum(axis=1)
    return of_means <= _UNKNOWN * (expected + 1)
