r"""First states whose distribution is learned: one mean and one precision for all sequences.

.. math:: x_1 \sim N(\mu_1, \Lambda_1^{-1}), \qquad \mu_1, \Lambda_1 \sim \text{Normal-Wishart}.

A first state adds :math:`(1, 1, x_1, x_1 x_1^\top)` to the coordinates, as a row adds itself to those of a component of
a mixture. Under a density q the expectation of their log density is a normal one but for a constant, and does not
integrate to 1: its precision is the expected one, :math:`\bar\Lambda`, its mean
:math:`\bar\Lambda^{-1}\langle\Lambda_1\mu_1\rangle`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from skvbem._numerics import (
    LOG_2PI,
    first_axes_last,
    last_axes_first,
    pack_symmetric,
    pairings,
    safe_cholesky,
    unpack_symmetric,
)
from skvbem.families import NormalWishart
from skvbem.families.normal_gamma import NormalPoint


class FirstStates(NamedTuple):
    """Potentials of first states: mean (k,), precision (k, k), and a constant; lanes first if there are any.

    The constant is what the log density has besides squares and -k / 2 ln 2 pi, nats: half of ln|precision| where none
    is given.
    """

    mean: np.ndarray
    precision: np.ndarray
    constant: np.ndarray | None = None

    @property
    def are_round(self) -> bool:
        """True if no rotation of the states changes the distribution."""
        of_one = self.precision[0, 0] * np.eye(len(self.mean))
        return not np.any(self.mean) and np.array_equal(self.precision, of_one)

    @property
    def log_scale(self) -> Any:
        """The constant, of one lane or of each."""
        return 0.5 * np.linalg.slogdet(self.precision)[1] if self.constant is None else self.constant

    @property
    def covariance(self) -> np.ndarray:
        """The inverse of the precision."""
        return np.linalg.inv(self.precision)


def round_prior(k: int) -> NormalWishart:
    """The prior that no turn changes: mean 0, as sure as one first state makes it, and a precision of mean 1.

    It has k + 1 degrees of freedom, the least under which precisions near 0 are not the likeliest.
    """
    return NormalWishart.from_parameters(
        mean=np.zeros((1, k)), mean_precision=[1.0], degrees_of_freedom=[k + 1.0], scale=[(k + 1.0) * np.eye(k)]
    )


def expected(cells: np.ndarray, k: int) -> FirstStates:
    """What natural parameters (n_cells, ...), (-1/2 mu' L mu, 1/2 ln|L| - k/2 ln 2 pi, L mu, -1/2 L), ask for.

    The mean is NaN where a precision is not definite, as steps of chains may propose.
    """
    of_mean, of_log, total, packed = _split(cells, k)
    precision = unpack_symmetric(-2 * first_axes_last(packed) / pairings(k), k)
    total = first_axes_last(total)
    factor = safe_cholesky(precision)
    mean = np.linalg.solve(factor.swapaxes(-1, -2), np.linalg.solve(factor, total[..., None]))[..., 0]
    constant = of_log + 0.5 * k * LOG_2PI + of_mean + 0.5 * np.einsum("...k,...k->...", total, mean)
    return FirstStates(mean, precision, constant)


def statistics(n: Any, total: np.ndarray, products: np.ndarray) -> np.ndarray:
    """Cells (..., n_cells) of so many first states, of their sums (..., k) and of their products (..., k, k)."""
    count = np.broadcast_to(np.asarray(n, dtype=float), total.shape[:-1])[..., None]
    return np.concatenate([count, count, total, pack_symmetric(products)], axis=-1)


def cells_without(k: int, state: int) -> np.ndarray:
    """The cells that are left of those of k states without one of them."""
    left, right = np.triu_indices(k)
    of_counts, of_sum = np.ones(2, dtype=bool), np.arange(k) != state
    return np.flatnonzero(np.concatenate([of_counts, of_sum, (left != state) & (right != state)]))


def turning(cells: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """Velocity of natural parameters (n_cells,) under a rotation of states with an antisymmetric velocity (k, k)."""
    _, _, total, packed = _split(cells, len(turn))
    half = turn @ unpack_symmetric(packed / pairings(len(turn)), len(turn))
    return np.concatenate([[0.0, 0.0], turn @ total, pack_symmetric(half + half.T) * pairings(len(turn))])


def turned(cells: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """Statistics (n_cells,) of states that are turned by an orthogonal matrix (k, k)."""
    of_mean, of_freedom, total, packed = _split(cells, len(turn))
    products = turn @ unpack_symmetric(packed, len(turn)) @ turn.T
    return np.concatenate([[of_mean, of_freedom], turn @ total, pack_symmetric(products)])


def in_basis(point: NormalPoint, map: np.ndarray, back: np.ndarray) -> NormalPoint:
    """Points of states map x, where back is the inverse of each map, (n_lanes, k, k)."""
    mean, precision = (last_axes_first(x[0]) for x in point)
    moved = (map @ mean[..., None])[..., 0], back.swapaxes(-1, -2) @ precision @ back
    return NormalPoint(*(first_axes_last(x)[None] for x in moved))


def fit_of_turn(point: NormalPoint, cells: np.ndarray, turn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Statistics (n_cells,) times natural parameters of turned points but for a constant, and its slope by the turn."""
    mean, precision = (last_axes_first(x[0]) for x in point)
    _, _, total, packed = _split(cells, mean.shape[-1])
    pulled = (precision @ mean[..., None])[..., 0]
    slope = total[:, None] * pulled[:, None, :]
    of_squares = unpack_symmetric(packed, mean.shape[-1]) @ turn @ precision
    value = ((slope - 0.5 * of_squares) * turn).sum(axis=(1, 2))
    return value, slope - of_squares


def shifted(point: NormalPoint, by: np.ndarray) -> NormalPoint:
    """Points of states that are moved by so much, (k, n_lanes)."""
    return point._replace(mean=point.mean + by)


class FirstStateSums:
    """The log evidence of first states in another basis, as the bound has it after an M step.

    Parameters
    ----------
    prior : NormalWishart
    first : ndarray of shape (k + r + 1, k + r + 1)
        Sums of products of (x, v, 1) of first steps.
    """

    def __init__(self, prior: NormalWishart, first: np.ndarray):
        self.k, self.first = prior.n_features, first
        self.prior = _split(prior.coordinates, self.k)

    def cells(self, map: np.ndarray) -> np.ndarray:
        """Statistics (n_cells,) after a map (k, k + r)."""
        of_states, first = map @ self.first[:-1], self.first
        return statistics(first[-1, -1], of_states[:, -1], of_states[:, :-1] @ map.T)

    @property
    def n(self) -> float:
        """Number of first states, with those that the mean of the prior counts for."""
        return float(self.first[-1, -1] + self.prior[0])

    def evaluated(self, map: np.ndarray) -> tuple[float, FirstStates]:
        """The log evidence after a map, but for a constant, and what first states are then asked for."""
        parts = zip(self.prior, _split(self.cells(map), self.k))
        n, freedom, total, packed = (of_prior + added for of_prior, added in parts)
        mean = total / n
        scale = unpack_symmetric(packed, self.k) - np.outer(mean, total)
        sign, log_det = np.linalg.slogdet(scale)
        if sign <= 0:
            return -np.inf, FirstStates(mean, np.eye(self.k))
        return float(-0.5 * freedom * log_det), FirstStates(mean, freedom * np.linalg.inv(scale))


def _split(cells: np.ndarray, k: int) -> tuple:
    """Of the mean, of the degrees of freedom, sums (k, ...) and packed squares."""
    return cells[0], cells[1], cells[2 : 2 + k], cells[2 + k :]
