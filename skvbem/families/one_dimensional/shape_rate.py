r"""Priors of shape and rate of numbers with :math:`p(y) = \beta^\alpha y^{\alpha-1} e^{-\beta y} / \Gamma(\alpha)`.

Numbers are in units of their mean. Given the shape, the rate is Gamma distributed around one that makes the mean 1:

.. math::

    \beta \mid \alpha \sim \mathrm{Ga}(1 + n_0 \alpha,\; n_0), \qquad
    p(\alpha) \propto (1 + \alpha)^{-2}, \quad \alpha < \alpha_c.

Cells of the data: N, the sum of y, and the sum of ln y.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

import numpy as np
from scipy.special import gammaincc, polygamma

from skvbem._numerics import digamma, log_gamma
from skvbem.families.one_dimensional.base import Members, OneDimensional, log_prior_of_x
from skvbem.families.one_dimensional.trapezoid import REACH, Nodes
from skvbem.families.parallel_generator import ParallelGenerator


class ShapeRatePoint(NamedTuple):
    """Shapes and rates, each (n_components, n_features, ...); rates per unit."""

    shape: np.ndarray
    rate: np.ndarray


@dataclass(frozen=True, eq=False)
class ShapeRate(OneDimensional):
    """Priors of shapes and rates of gamma distributions, one for each component and feature.

    Parameters
    ----------
    coordinates : ndarray of shape (n_components * 5 * n_features, ...)
    n_features : int
    pseudo_rows : ndarray of shape (n_features,)
        Rows of mean 1 that the prior of the rate is worth, n_0.
    largest_shape : ndarray of shape (n_features,)
        The end of the shapes that the prior allows, alpha_c.

    Examples
    --------
    The times between failures of an air conditioning, in units of their mean:

    >>> import numpy as np
    >>> from skvbem.families.one_dimensional import ShapeRate
    >>> times = np.array([3, 5, 7, 18, 43, 85, 91, 98, 100, 130, 230, 487]) / 108.0833
    >>> prior = ShapeRate.from_parameters(n_components=1, pseudo_rows=[1.0], largest_shape=[1e6])
    >>> posterior = prior + np.array([0.0, 0.0, 12.0, times.sum(), np.log(times).sum()])
    >>> round(posterior.mode().shape.item(), 1)
    0.8
    """

    pseudo_rows: np.ndarray
    largest_shape: np.ndarray

    point_type: ClassVar[type] = ShapeRatePoint
    of_features: ClassVar[tuple[str, ...]] = ("pseudo_rows", "largest_shape")
    name: ClassVar[str] = "shape and rate"
    n_cells: ClassVar[int] = 5

    @classmethod
    def from_parameters(cls, n_components: int, pseudo_rows, largest_shape) -> Self:
        """The prior of so many components, with parameters of each feature."""
        pseudo_rows, largest_shape = np.asarray(pseudo_rows, dtype=float), np.asarray(largest_shape, dtype=float)
        coordinates = np.zeros((n_components, cls.n_cells, len(pseudo_rows)))
        coordinates[:, 0] = 1.0
        return cls(coordinates.ravel(), len(pseudo_rows), pseudo_rows, largest_shape)

    @property
    def largest(self) -> np.ndarray:
        """The `largest_shape`."""
        return self.largest_shape

    def _guess(self, members: Members) -> np.ndarray:
        _, _, n, total, logs = members.cells
        aside = np.log(total / n) - logs / n  # Minka's start
        return np.log((3 - aside + np.sqrt((aside - 3) ** 2 + 24 * aside)) / (12 * aside))

    def _exponents(self, members: Members, alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Shape and rate of the Gamma distribution of the rate given shapes."""
        cells, n0 = members.cells, members.parameter(self.pseudo_rows, alpha)
        return cells[0] * (1 + n0 * alpha) + alpha * cells[2] - cells[1], cells[0] * n0 + cells[3]

    def _without_rate(self, members: Members, t: np.ndarray, alpha: np.ndarray) -> np.ndarray:
        """cells . natural but for the terms of the rate."""
        cells = members.cells
        of_data = alpha * cells[4] - cells[2] * log_gamma(alpha) - cells[1] * self._volume(members, t)
        return cells[0] * self._log_prior(members, t, alpha) + of_data

    def _log_prior(self, members: Members, t: np.ndarray, alpha: np.ndarray) -> np.ndarray:
        n0, most = (members.parameter(each, alpha) for each in (self.pseudo_rows, self.largest_shape))
        of_rate = (1 + n0 * alpha) * np.log(n0) - log_gamma(1 + n0 * alpha)
        return log_prior_of_x(t, most) + self._volume(members, t) + of_rate

    def _log_mass(self, members: Members, t: np.ndarray) -> np.ndarray:
        alpha = np.exp(t)
        s, b = self._exponents(members, alpha)
        return self._without_rate(members, t, alpha) + log_gamma(s) - s * np.log(b)

    def _mean_natural(self, members: Members, nodes: Nodes) -> np.ndarray:
        alpha = np.exp(nodes.t)
        s, b = self._exponents(Members(members.cells[..., None], members.feature), alpha)
        natural = self._from_expectations(members, nodes.t, alpha, digamma(s) - np.log(b), s / b)
        return (natural * nodes.share).sum(axis=-1)

    def _from_expectations(
        self, members: Members, t: np.ndarray, alpha: np.ndarray, log_rate: np.ndarray, rate: np.ndarray
    ) -> np.ndarray:
        n0 = members.parameter(self.pseudo_rows, alpha)
        prior = self._log_prior(members, t, alpha) + (1 + n0 * alpha) * log_rate - n0 * rate
        return np.stack(
            [prior, -self._volume(members, t) - log_rate, alpha * log_rate - log_gamma(alpha), -rate, alpha]
        )

    def _natural(self, members: Members, x: np.ndarray, other: np.ndarray) -> np.ndarray:
        return self._from_expectations(members, np.log(x), x, np.log(other), other)

    def _peak(self, members: Members, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        alpha = np.exp(t)
        s, b = self._exponents(members, alpha)
        with np.errstate(all="ignore"):
            rate = np.where((s > 0) & (b > 0), s / b, np.where(s == b, 1.0, np.nan))
            of_rate = np.where(s == 0, 0.0, s * np.log(rate)) - b * rate
        return self._without_rate(members, t, alpha) + of_rate, rate

    def _draw_other(
        self, members: Members, x: np.ndarray, rng: np.random.Generator | ParallelGenerator, shape: tuple[int, ...]
    ) -> np.ndarray:
        s, b = self._exponents(members, x)
        return np.maximum(rng.standard_gamma(s.reshape(shape)).ravel(), 1e-300) / b

    def _derivatives(self, members: Members, x: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        n0, most = (members.parameter(each, x) for each in (self.pseudo_rows, self.largest_shape))
        first, second = np.zeros((2, 5, *x.shape)), np.zeros((2, 2, 5, *x.shape))
        share, m, near = x / (1 + x), n0 * x, x / (most - x)
        excess = np.log(n0 * other) - digamma(1 + m)
        first[0, 0] = 1 - 2 * share - near + m * excess
        first[1, 0] = 1 + m - n0 * other
        first[0, 1], first[1, 1] = near - 1.0, -1.0
        second[0, 0, 1] = near * (1 + near)
        first[0, 2], first[1, 2] = x * (np.log(other) - digamma(x)), x
        first[1, 3], first[0, 4] = -other, x
        second[0, 0, 0] = -2 * share / (1 + x) - near * (1 + near) + m * excess - m**2 * polygamma(1, 1 + m)
        second[0, 1, 0] = second[1, 0, 0] = m
        second[1, 1, 0] = -n0 * other
        second[0, 0, 2] = first[0, 2] - x**2 * polygamma(1, x)
        second[0, 1, 2] = second[1, 0, 2] = x
        second[1, 1, 3], second[0, 0, 4] = -other, x
        return first, second

    def _other_to_free(self, other: np.ndarray) -> np.ndarray:
        return np.log(other)

    def _other_from_free(self, free: np.ndarray) -> np.ndarray:
        return np.exp(free)

    def from_natural(self, natural: np.ndarray) -> ShapeRatePoint:
        """Shapes and rates of natural parameters."""
        cells = natural.reshape(-1, 5, self.n_features, *natural.shape[1:])
        return ShapeRatePoint(cells[:, 4], -cells[:, 3])

    def quantiles_of_means(self, probability: float) -> np.ndarray:
        """Quantiles of shapes over rates, units, (n_components, n_features)."""

        def below(members, alpha, log_mean):
            s, b = self._exponents(members, alpha)
            return gammaincc(s, b * alpha * np.exp(-log_mean))

        return np.exp(self._quantiles(below, probability, REACH))

    def expected_means(self) -> np.ndarray:
        """Posterior expectations of shapes over rates, units, (n_components, n_features)."""
        cells, feature = self._members
        before = cells[0] * self.pseudo_rows[feature]
        return self._by_member((before + cells[3]) / (before + cells[2]))

    def _has_mass(self, cells: np.ndarray) -> np.ndarray:
        return (cells[2] >= 0) & (cells[3] >= 0)

    def _are_signed(self) -> np.ndarray:
        return np.array([False, False, False, False, True])
