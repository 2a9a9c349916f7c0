r"""Gamma distributions: priors of Poisson rates and of exponential rates.

.. math::

    p(\lambda) = e^{-A} \lambda^{a} e^{-b\lambda} \frac{d\lambda}{\lambda}, \qquad A(a, b) = \ln\Gamma(a) - a \ln b.

The natural measure is that of the log rate, so the natural parameters are :math:`(\ln\lambda, -\lambda)` and the mode
a / b is always inside. A count x in an exposure of 1 adds (x, 1) to (a, b); a waiting time t adds (1, t).

Cells stand in one flat axis, ordered (component, shape or rate, feature): the cells of a component are together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import gammaincinv

from skvbem._numerics import digamma, log_gamma, log_rising
from skvbem.families.base import EDGE, FlatFamily, no_interior_mode, principal_submatrix
from skvbem.families.parallel_generator import ParallelGenerator

# A rate without a single event: e to the -690, so that its logarithm stays a number.
_NO_RATE = 1e-300
#: Largest rate of a most likely point, in the family's unit.
LARGEST_RATE = 1e12


@dataclass(frozen=True, eq=False)
class Gamma(FlatFamily):
    """Independent Gamma distributions, one for each component and feature.

    Parameters
    ----------
    coordinates : ndarray of shape (n_components * 2 * n_features, ...)
        Shapes and rates; statistics add to them.
    n_features : int

    Examples
    --------
    The rate of accidents after 3, 0 and 1 of them in three years:

    >>> import numpy as np
    >>> from skvbem.families import Gamma
    >>> prior = Gamma.from_parameters(shape=[[1.0]], rate=[[0.5]])
    >>> posterior = prior + np.array([4.0, 3.0])
    >>> round(float(posterior.mean[0, 0]), 4)
    1.4286
    """

    n_features: int

    @classmethod
    def from_parameters(cls, shape, rate) -> Self:
        """The block with these shapes and rates, (n_components, n_features, ...)."""
        cells = np.stack(np.broadcast_arrays(np.asarray(shape, dtype=float), np.asarray(rate, dtype=float)), axis=1)
        return cls(cells.reshape(-1, *cells.shape[3:]), cells.shape[2])

    @property
    def n_components(self) -> int:
        """Number of components."""
        return len(self.coordinates) // (2 * self.n_features)

    @property
    def n_free_parameters(self) -> int:
        """Number of rates: one for each component and feature."""
        return len(self.coordinates) // 2

    @property
    def is_valid(self) -> np.ndarray:
        """True where all shapes and rates are positive; of the shape of the batch."""
        return np.asarray((self.coordinates > 0).all(axis=0))

    @property
    def signed(self) -> np.ndarray:
        """No statistic is negative."""
        return np.zeros(len(self.coordinates), dtype=bool)

    @property
    def shape(self) -> np.ndarray:
        """Shapes, counts, (n_components, n_features, ...)."""
        return self._pair(self.coordinates)[0]

    @property
    def rate(self) -> np.ndarray:
        """Rates, exposures, (n_components, n_features, ...)."""
        return self._pair(self.coordinates)[1]

    @property
    def mean(self) -> np.ndarray:
        """E[lambda], (n_components, n_features, ...)."""
        return self.shape / self.rate

    def quantiles(self, probability: float) -> np.ndarray:
        """Quantiles of every rate by itself, (n_components, n_features, ...)."""
        return gammaincinv(self.shape, probability) / self.rate

    def log_normalizer(self) -> np.ndarray:
        """A = sum of ln Gamma(shape) - shape ln(rate), nats."""
        shape, rate = self._pair(self.coordinates)
        return (log_gamma(shape) - shape * np.log(rate)).sum(axis=(0, 1))

    def log_normalizer_increment(self, statistics: np.ndarray) -> np.ndarray:
        """A(self + statistics) - A(self), nats."""
        (shape, rate), (events, exposure) = self._pair(self._like(statistics)), self._pair(statistics)
        grown = (shape + events) * np.log1p(exposure / rate)
        return (log_rising(shape, events) - events * np.log(rate) - grown).sum(axis=(0, 1))

    def expected_natural(self) -> np.ndarray:
        """(E ln lambda, -E lambda), nats and rates, of the shape of the coordinates."""
        shape, rate = self._pair(self.coordinates)
        return self._flat(digamma(shape) - np.log(rate), -shape / rate)

    def natural(self, point: np.ndarray) -> np.ndarray:
        """(ln lambda, -lambda) of rates (n_components, n_features, ...)."""
        return self._flat(np.log(point), -point)

    def mode(self, basis: str = "natural") -> np.ndarray:
        """Rates of highest density with respect to the log rate (shape / rate), or to the rate itself.

        Raises
        ------
        NoInteriorModeError
            In the probability basis, if a shape is 1 or less.
        """
        if basis == "natural":
            return self.mean
        if np.any(self.shape <= 1):
            raise no_interior_mode("Gamma", "a shape of", float(self.shape.min()), "more than 1")
        return (self.shape - 1) / self.rate

    def most_likely(self, statistics: np.ndarray) -> np.ndarray:
        """Events per exposure, 1e12 at the most; 1e-300 where there are no events, 1 where there are no data.

        The largest rate is a constraint under which the likelihood has its maximum here.
        """
        events, exposure = self._pair(statistics)
        most = np.where(events > 0, LARGEST_RATE, 1.0)
        rate = np.divide(events, exposure, out=most, where=exposure > events / LARGEST_RATE)
        return np.maximum(rate, _NO_RATE)

    def sample(self, rng: np.random.Generator | ParallelGenerator) -> np.ndarray:
        """Rates drawn, (n_components, n_features, ...)."""
        return np.maximum(rng.standard_gamma(self.shape), _NO_RATE) / self.rate

    def to_unconstrained(self, point: np.ndarray) -> np.ndarray:
        """Log rates, (n_free_parameters, ...)."""
        return np.log(point).reshape(-1, *point.shape[2:])

    def from_unconstrained(self, free: np.ndarray) -> np.ndarray:
        """Rates with these logarithms."""
        return np.exp(free).reshape(self.n_components, self.n_features, *free.shape[1:])

    def from_natural(self, natural: np.ndarray) -> np.ndarray:
        """Rates with these natural parameters."""
        return -self._pair(natural)[1]

    def jacobian(self, point: np.ndarray) -> np.ndarray:
        """Derivatives of (ln lambda, -lambda) by ln lambda."""
        by_shape, by_rate = self._places
        derivatives = np.zeros((len(self.coordinates), point.size))
        derivatives[by_shape, np.arange(point.size)] = 1.0
        derivatives[by_rate, np.arange(point.size)] = -point.ravel()
        return derivatives

    def information(self, point: np.ndarray, coordinates: np.ndarray, free: np.ndarray | None = None) -> np.ndarray:
        """Information of the log rates: rate coordinates times rates, on the diagonal."""
        return principal_submatrix(np.diag(coordinates[self._places[1]] * point.ravel()), free)

    def directions(self, coordinates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Directions of log rates, inside where there were events."""
        every, inside = np.eye(self.n_free_parameters), coordinates[self._places[0]] >= EDGE
        return every[:, inside], every[:, ~inside]

    @property
    def rate_cells(self) -> np.ndarray:
        """The cells of rates, (n_components, n_features)."""
        return self._pair(np.arange(len(self.coordinates)))[1]

    @property
    def probability_shift(self) -> np.ndarray:
        """Shift of the coordinates: -1 for shapes, nothing for rates."""
        return self._flat(*(np.full((self.n_components, self.n_features), x) for x in (-1.0, 0.0)))

    @property
    def _places(self) -> np.ndarray:
        """Cells of the shapes, and of the rates, in the order of the unconstrained coordinates."""
        return self._pair(np.arange(len(self.coordinates))).reshape(2, -1)

    def _log_natural_measure(self, point: np.ndarray) -> np.ndarray:
        return -np.log(point).sum(axis=(0, 1))

    def _pair(self, cells: np.ndarray) -> np.ndarray:
        """Shapes and rates of flat cells, (2, n_components, n_features, ...)."""
        return np.moveaxis(cells.reshape(-1, 2, self.n_features, *cells.shape[1:]), 1, 0)

    def _flat(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        return np.stack([first, second], axis=1).reshape(-1, *first.shape[2:])
