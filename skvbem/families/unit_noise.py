r"""Coefficients of regressions whose noise is known, beside the counts and squares that are then without parameters.

.. math:: y_k \sim N(c_k^\top r, 1), \qquad c_k \sim N(m_k, \Lambda_k^{-1}).

Natural parameters are those of `skvbem.families.Regression` at a precision of one: those of counts are
:math:`-\tfrac12\ln 2\pi` and those of squares :math:`-\tfrac12`, whatever was counted. So a number with a known unit
has the statistics of one whose noise is not known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from skvbem._lazy import cached_property
from skvbem.families.base import FlatFamily
from skvbem.families.parallel_generator import ParallelGenerator
from skvbem.families.regression import Regression
from skvbem.families.regression_rows import RegressionPoint

# Natural parameters of counts and of squares at a precision of one.
_OF_COUNT, _OF_SQUARE = -0.5 * np.log(2 * np.pi), -0.5


@dataclass(frozen=True, eq=False)
class UnitNoise(FlatFamily):
    """Coefficients of one row for each component, the variance of whose noise is one.

    Parameters
    ----------
    coordinates : ndarray of shape (n_cells, ...)
        Those of coefficients, then counts and squares of each component.
    n_regressors : int
        D; 0 is allowed.
    n_components : int

    Examples
    --------
    >>> import numpy as np
    >>> from skvbem.families.unit_noise import UnitNoise
    >>> prior = UnitNoise.from_precision(np.ones(1), n_components=1)
    >>> posterior = prior + np.array([3.0, 6.0, 3.0, 12.0])  # y = 2 r, three times
    >>> posterior.mean.tolist(), prior.n_free_parameters
    ([[1.5]], 1)
    """

    n_regressors: int
    n_components: int

    @classmethod
    def from_precision(cls, precision: np.ndarray, n_components: int) -> Self:
        """Coefficients about 0 with these precisions, (D,), the same in all components."""
        d, k = len(precision), n_components
        cells = np.zeros(0)
        if d:
            each, zeros = np.arange(k), np.zeros((k, d))
            matrices = np.tile(np.diag(precision), (k, 1, 1))
            cells = Regression.from_parameters(zeros, matrices, None, None, each, None, n_components=k).coordinates
        return cls(np.concatenate([cells, np.zeros(2 * k)]), d, k)

    # Coefficients -----------------------------------------------------------------------------------------------------

    @cached_property
    def coefficients(self) -> Regression | None:
        """The distribution of the coefficients; None without any."""
        return self._regression(self.coordinates)

    def _regression(self, coordinates: np.ndarray) -> Regression | None:
        if not self.n_regressors:
            return None
        each = np.arange(self.n_components)
        return Regression(self._split(coordinates)[0], self.n_regressors, each, None, self.n_components)

    def _split(self, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Cells of coefficients, counts and squares."""
        k = self.n_components
        return cells[: len(cells) - 2 * k], cells[len(cells) - 2 * k : len(cells) - k], cells[len(cells) - k :]

    def _with_constants(self, cells: np.ndarray, of_count: float, of_square: float) -> np.ndarray:
        ones = np.ones((self.n_components, *cells.shape[1:]))
        return np.concatenate([cells, of_count * ones, of_square * ones])

    def _constant_terms(self, coordinates: np.ndarray) -> np.ndarray:
        """Terms of counts and squares, the same for all coefficients, nats."""
        _, counts, squares = self._split(coordinates)
        return _OF_COUNT * counts.sum(axis=0) + _OF_SQUARE * squares.sum(axis=0)

    def _point(self, coefficients: np.ndarray) -> RegressionPoint:
        """Coefficients (n_components, D, ...) and precisions of one."""
        return RegressionPoint(coefficients, np.ones((self.n_components, *coefficients.shape[2:])))

    def _known(self, point: RegressionPoint) -> RegressionPoint:
        """The point as the coefficients' distribution has it, without precisions."""
        return RegressionPoint(point.coefficients, point.precision[:0])

    def _no_coefficients(self, batch: tuple[int, ...]) -> RegressionPoint:
        return self._point(np.zeros((self.n_components, 0, *batch)))

    # As `Regression` --------------------------------------------------------------------------------------------------

    @property
    def n_precisions(self) -> int:
        """Number of precision matrices: one for each component."""
        return self.n_components

    @property
    def precision_of(self) -> np.ndarray:
        """The precision matrix of each row by number, (n_components,)."""
        return np.arange(self.n_components)

    @property
    def precision_cells(self) -> np.ndarray:
        """The cells of the packed precision matrices, (n_components, D (D + 1) / 2)."""
        n = self.n_regressors * (self.n_regressors + 1) // 2
        return np.arange(self.n_components * n).reshape(self.n_components, n)

    @property
    def mean(self) -> np.ndarray:
        """E[c], (n_components, D, ...)."""
        return self.mode().coefficients

    @property
    def covariance(self) -> np.ndarray:
        """Covariances of coefficients, (n_components, D, D, ...)."""
        if self.coefficients is None:
            return np.zeros((self.n_components, 0, 0, *self.coordinates.shape[1:]))
        return self.coefficients.covariance

    @property
    def n_free_parameters(self) -> int:
        """Number of coefficients."""
        return self.n_components * self.n_regressors

    @property
    def is_valid(self) -> np.ndarray:
        """True where precision matrices are definite; of the shape of the batch."""
        if self.coefficients is None:
            return np.ones(self.coordinates.shape[1:], dtype=bool)
        return self.coefficients.is_valid

    @property
    def signed(self) -> np.ndarray:
        """Products of different regressors, and sums, may be negative."""
        of_coefficients = np.zeros(0, dtype=bool) if self.coefficients is None else self.coefficients.signed
        return np.concatenate([of_coefficients, np.zeros(2 * self.n_components, dtype=bool)])

    def log_normalizer(self) -> np.ndarray:
        """A, nats, summed over rows; NaN where the coordinates are not those of a density."""
        constant = self._constant_terms(self.coordinates)
        return constant if self.coefficients is None else constant + self.coefficients.log_normalizer()

    def log_normalizer_increment(self, statistics: np.ndarray) -> np.ndarray:
        """A(self + statistics) - A(self), nats."""
        constant = self._constant_terms(np.asarray(statistics))
        if self.coefficients is None:
            return constant
        return constant + self.coefficients.log_normalizer_increment(self._split(np.asarray(statistics))[0])

    def expected_natural(self) -> np.ndarray:
        """Expectations of the natural parameters, of the shape of the coordinates."""
        cells = self.coordinates[:0] if self.coefficients is None else self.coefficients.expected_natural()
        return self._with_constants(cells, _OF_COUNT, _OF_SQUARE)

    def natural(self, point: RegressionPoint) -> np.ndarray:
        """Natural parameters of a point, of the shape of the coordinates."""
        cells = np.zeros((0, *point.coefficients.shape[2:]))
        if self.coefficients is not None:
            cells = self.coefficients.natural(self._known(point))
        return self._with_constants(cells, _OF_COUNT, _OF_SQUARE)

    def mode(self, basis: str = "natural") -> RegressionPoint:
        """The means of the coefficients."""
        if self.coefficients is None:
            return self._no_coefficients(self.coordinates.shape[1:])
        return self._point(self.coefficients.mode(basis).coefficients)

    def most_likely(self, statistics: np.ndarray) -> RegressionPoint:
        """Coefficients by least squares, of least length where several are; 0 where there are no data."""
        if self.coefficients is None:
            return self._no_coefficients(np.shape(statistics)[1:])
        return self._point(self.coefficients.most_likely(self._split(statistics)[0]).coefficients)

    def sample(self, rng: np.random.Generator | ParallelGenerator) -> RegressionPoint:
        """Coefficients drawn."""
        if self.coefficients is None:
            return self._no_coefficients(self.coordinates.shape[1:])
        return self._point(self.coefficients.sample(rng).coefficients)

    def to_unconstrained(self, point: RegressionPoint) -> np.ndarray:
        """The coefficients, (n_free_parameters, ...)."""
        if self.coefficients is None:
            return np.zeros((0, *point.coefficients.shape[2:]))
        return self.coefficients.to_unconstrained(self._known(point))

    def from_unconstrained(self, free: np.ndarray) -> RegressionPoint:
        """The point with these coordinates."""
        if self.coefficients is None:
            return self._no_coefficients(free.shape[1:])
        return self._point(self.coefficients.from_unconstrained(free).coefficients)

    def from_natural(self, natural: np.ndarray) -> RegressionPoint:
        """The point with these natural parameters."""
        if self.coefficients is None:
            return self._no_coefficients(natural.shape[1:])
        return self._point(self.coefficients.from_natural(self._split(natural)[0]).coefficients)

    def jacobian(self, point: RegressionPoint) -> np.ndarray:
        """Derivatives of natural parameters by coefficients."""
        constants = np.zeros((2 * self.n_components, self.n_free_parameters))
        if self.coefficients is None:
            return constants
        return np.concatenate([self.coefficients.jacobian(self._known(point)), constants])

    def information(
        self, point: RegressionPoint, coordinates: np.ndarray, free: np.ndarray | None = None
    ) -> np.ndarray:
        """The precision matrix of coefficients."""
        if self.coefficients is None:
            return np.zeros((0, 0))
        return self.coefficients.information(self._known(point), self._split(coordinates)[0], free)

    @property
    def probability_shift(self) -> np.ndarray:
        """No shift: the natural measure is that of the coefficients."""
        return np.zeros(len(self.coordinates))

    def _log_natural_measure(self, point: RegressionPoint) -> np.ndarray:
        return np.zeros(point.coefficients.shape[2:])
