r"""Priors of direction and concentration of angles, :math:`p(y) = e^{\kappa \cos(y - \mu)} / (2 \pi I_0(\kappa))`.

The direction is uniform and :math:`p(\kappa) \propto (1 + \kappa)^{-2}` below an end. Given the
concentration, the direction after N angles of sums C of cosines and S of sines is von Mises distributed again, around
that of (C, S). Cells of the data: N, C and S.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

import numpy as np
from scipy.special import i0e, i1e
from scipy.stats import vonmises

from skvbem._numerics import LOG_2PI
from skvbem.families.one_dimensional.base import Members, OneDimensional, log_prior_of_x
from skvbem.families.one_dimensional.trapezoid import Nodes, von_mises_quantile
from skvbem.families.parallel_generator import ParallelGenerator


class DirectionConcentrationPoint(NamedTuple):
    """Concentrations, and directions in radians from -pi to pi, each (n_components, n_features, ...)."""

    concentration: np.ndarray
    direction: np.ndarray


def log_bessel(x: np.ndarray) -> np.ndarray:
    """ln of the modified Bessel function I_0."""
    return np.log(i0e(x)) + x


def mean_resultant(x: np.ndarray) -> np.ndarray:
    """I_1 / I_0: mean length of the sum of a cosine and sine of an angle of concentration x."""
    return i1e(x) / i0e(x)


@dataclass(frozen=True, eq=False)
class DirectionConcentration(OneDimensional):
    """Priors of directions and concentrations of von Mises distributions, one for each component and feature.

    Parameters
    ----------
    coordinates : ndarray of shape (n_components * 5 * n_features, ...)
    n_features : int
    largest_concentration : ndarray of shape (n_features,)
        The end of the concentrations that the prior allows.

    Examples
    --------
    Five angles near a half turn:

    >>> import numpy as np
    >>> from skvbem.families.one_dimensional import DirectionConcentration
    >>> angles = np.array([3.0, -3.1, 2.9, 3.1, -2.8])
    >>> prior = DirectionConcentration.from_parameters(n_components=1, largest_concentration=[1e6])
    >>> posterior = prior + np.array([0.0, 0.0, 5.0, np.cos(angles).sum(), np.sin(angles).sum()])
    >>> round(posterior.mode().direction.item(), 2)
    3.13
    """

    largest_concentration: np.ndarray

    point_type: ClassVar[type] = DirectionConcentrationPoint
    of_features: ClassVar[tuple[str, ...]] = ("largest_concentration",)
    name: ClassVar[str] = "direction and concentration"
    n_cells: ClassVar[int] = 5

    @classmethod
    def from_parameters(cls, n_components: int, largest_concentration) -> Self:
        """The prior of so many components, with parameters of each feature."""
        largest_concentration = np.asarray(largest_concentration, dtype=float)
        coordinates = np.zeros((n_components, cls.n_cells, len(largest_concentration)))
        coordinates[:, 0] = 1.0
        return cls(coordinates.ravel(), len(largest_concentration), largest_concentration)

    @property
    def largest(self) -> np.ndarray:
        """The `largest_concentration`."""
        return self.largest_concentration

    def _guess(self, members: Members) -> np.ndarray:
        _, _, n, cosine, sine = members.cells
        length = np.hypot(cosine, sine) / n
        return np.log(length * (2 - length**2) / (1 - length**2))  # of Banerjee and others

    def _log_prior(self, members: Members, t: np.ndarray) -> np.ndarray:
        most = members.parameter(self.largest_concentration, t)
        return log_prior_of_x(t, most) + self._volume(members, t) - LOG_2PI

    def _without_direction(self, members: Members, t: np.ndarray) -> np.ndarray:
        """cells . natural but for the terms of the direction, of which the largest is taken out."""
        cells, x = members.cells, np.exp(t)
        away = cells[2] - np.hypot(cells[3], cells[4])  # N - R, which multiplies x where both are large
        return (
            cells[0] * self._log_prior(members, t)
            - cells[1] * self._volume(members, t)
            - cells[2] * np.log(i0e(x))
            - away * x
        )

    def _log_mass(self, members: Members, t: np.ndarray) -> np.ndarray:
        length = np.hypot(members.cells[3], members.cells[4])
        return self._without_direction(members, t) + LOG_2PI + np.log(i0e(length * np.exp(t)))

    def _mean_natural(self, members: Members, nodes: Nodes) -> np.ndarray:
        cells, x = members.cells, np.exp(nodes.t)
        length = np.hypot(cells[3], cells[4])
        drawn = (x * mean_resultant(length[:, None] * x) * nodes.share).sum(axis=-1)
        unit = np.divide(drawn, length, out=np.zeros_like(length), where=length > 0)
        volume = self._volume(members, nodes.t)
        others = np.stack([self._log_prior(members, nodes.t), -volume, -log_bessel(x)])
        return np.concatenate([(others * nodes.share).sum(axis=-1), np.stack([unit * cells[3], unit * cells[4]])])

    def _natural(self, members: Members, x: np.ndarray, other: np.ndarray) -> np.ndarray:
        t = np.log(np.maximum(x, np.finfo(float).tiny))
        return np.stack(
            [
                self._log_prior(members, t),
                -self._volume(members, t),
                -log_bessel(x),
                x * np.cos(other),
                x * np.sin(other),
            ]
        )

    def _peak(self, members: Members, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        direction = np.arctan2(members.cells[4], members.cells[3])
        return self._without_direction(members, t), np.broadcast_to(direction, t.shape)

    def _draw_other(
        self, members: Members, x: np.ndarray, rng: np.random.Generator | ParallelGenerator, shape: tuple[int, ...]
    ) -> np.ndarray:
        _, _, _, cosine, sine = members.cells
        aside = von_mises_quantile(np.hypot(cosine, sine) * x, rng.random(shape).ravel())
        return np.remainder(np.arctan2(sine, cosine) + aside + np.pi, 2 * np.pi) - np.pi

    def _derivatives(self, members: Members, x: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        most = members.parameter(self.largest_concentration, x)
        first, second = np.zeros((2, 5, *x.shape)), np.zeros((2, 2, 5, *x.shape))
        share, ratio, near = x / (1 + x), mean_resultant(x), x / (most - x)
        cosine, sine = x * np.cos(other), x * np.sin(other)
        first[0] = np.stack([1 - 2 * share - near, near - 1.0, -x * ratio, cosine, sine])
        first[1, 3], first[1, 4] = -sine, cosine
        second[0, 0, 0] = -2 * share / (1 + x) - near * (1 + near)
        second[0, 0, 1] = near * (1 + near)
        second[0, 0, 2] = -(x**2) * (1 - ratio**2)  # the derivative of x I_1 / I_0 by ln x
        second[0, 0, 3], second[0, 0, 4] = cosine, sine
        second[0, 1, 3] = second[1, 0, 3] = -sine
        second[0, 1, 4] = second[1, 0, 4] = cosine
        second[1, 1, 3], second[1, 1, 4] = -cosine, -sine
        return first, second

    def _other_to_free(self, other: np.ndarray) -> np.ndarray:
        return other

    def _other_from_free(self, free: np.ndarray) -> np.ndarray:
        return free

    def from_natural(self, natural: np.ndarray) -> DirectionConcentrationPoint:
        """Concentrations and directions of natural parameters."""
        cells = natural.reshape(-1, 5, self.n_features, *natural.shape[1:])
        return DirectionConcentrationPoint(np.hypot(cells[:, 3], cells[:, 4]), np.arctan2(cells[:, 4], cells[:, 3]))

    def quantiles_of_directions(self, probability: float) -> np.ndarray:
        """Quantiles of directions, radians, (n_components, n_features), from half a turn before the mode."""

        def below(members, kappa, aside):
            return vonmises.cdf(aside, np.maximum(kappa * np.hypot(members.cells[3], members.cells[4]), 1e-12))

        middle = np.arctan2(self._members.cells[4], self._members.cells[3])
        return self._by_member(middle) + self._quantiles(below, probability, np.pi)

    def _has_mass(self, cells: np.ndarray) -> np.ndarray:
        return (cells[2] >= 0) & (np.hypot(cells[3], cells[4]) <= cells[2] * (1 + 1e-9) + 1e-9)

    def _are_signed(self) -> np.ndarray:
        return np.array([False, False, False, True, True])
