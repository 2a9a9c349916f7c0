r"""Priors of size and probability of overdispersed counts, :math:`p(y) = \binom{y + r - 1}{y} p^y (1 - p)^r`.

The prior mean of the counts is the unit :math:`\bar y` whatever the size r is:

.. math::

    p \mid r \sim \mathrm{Beta}(a,\; 1 + a r / \bar y), \qquad p(r) = (1 + r)^{-2}.

Cells of the data: N, the sum of y, and the weights of counts at *knots*. A row has the weight 1 at its count where that
is a knot. Between knots its log likelihood is interpolated, by polynomials on intervals that double in length, with an
error below 1e-9 nats (`tests/families/test_one_dimensional.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial
from typing import ClassVar, NamedTuple, Self

import numpy as np
from scipy.special import betainc, polygamma

from skvbem._kernels import _rises
from skvbem._lazy import cached_property
from skvbem._numerics import digamma, log_gamma, log_rising, log_sum_exp
from skvbem.families.one_dimensional.base import Members, OneDimensional, log_prior_of_x
from skvbem.families.one_dimensional.trapezoid import AROUND, REACH, Nodes, integrate_compiled
from skvbem.families.parallel_generator import ParallelGenerator

# No size of a most likely point is larger, e^30: the counts are then Poisson distributed.
_LOG_LARGEST_SIZE = 30.0
# Counts whose predictions are computed together.
_COUNTS_AT_ONCE = 1024
# Logarithms of sizes to both sides of 0, and the width of panels of them on each of which a rise is a polynomial. Its
# singularities are at a distance of pi from all of them: with 16 coefficients it errs by 1e-16 of itself.
_FARTHEST, _PANEL = 1.5 * REACH, 1.25
# Sizes above which differences of digamma functions are taken from their series.
_SERIES = 1e4


class SizeProbabilityPoint(NamedTuple):
    """Sizes r and probabilities p, each (n_components, n_features, ...); p / (1 - p) r is the mean."""

    size: np.ndarray
    probability: np.ndarray


@dataclass(frozen=True, eq=False)
class SizeProbability(OneDimensional):
    """Priors of sizes and probabilities of negative binomial distributions, one for each component and feature.

    Parameters
    ----------
    coordinates : ndarray of shape (n_components * (4 + n_knots) * n_features, ...)
    n_features : int
    unit : ndarray of shape (n_features,)
        Prior means of the counts.
    weight : ndarray of shape (n_features,)
        Weight of the prior of the probability, a.
    knots : ndarray of shape (n_knots,)
        Counts, and numbers between counts, at which the cells stand.

    Examples
    --------
    >>> import numpy as np
    >>> from skvbem.families.one_dimensional import SizeProbability
    >>> prior = SizeProbability.from_parameters(1, unit=[2.0], weight=[1.0], knots=[1.0, 2.0, 7.0])
    >>> posterior = prior + np.array([0.0, 0.0, 6.0, 11.0, 2.0, 1.0, 1.0])  # counts 0, 0, 1, 1, 2, 7
    >>> round(posterior.mode().size.item(), 2)
    1.14
    """

    unit: np.ndarray
    weight: np.ndarray
    knots: np.ndarray

    point_type: ClassVar[type] = SizeProbabilityPoint
    of_features: ClassVar[tuple[str, ...]] = ("unit", "weight")
    name: ClassVar[str] = "size and probability"

    @classmethod
    def from_parameters(cls, n_components: int, unit, weight, knots) -> Self:
        """The prior of so many components, with parameters of each feature."""
        unit, weight, knots = (np.asarray(each, dtype=float) for each in (unit, weight, knots))
        coordinates = np.zeros((n_components, 4 + len(knots), len(unit)))
        coordinates[:, 0] = 1.0
        return cls(coordinates.ravel(), len(unit), unit, weight, knots)

    @property
    def n_cells(self) -> int:
        """Prior, measure, N, the sum of counts, and weights at knots."""
        return 4 + len(self.knots)

    @property
    def most_free(self) -> float:
        """Logarithm of the largest size of a most likely point."""
        return _LOG_LARGEST_SIZE

    @cached_property
    def _n_whole(self) -> int:
        """Number of the first knots that are 1, 2, ..."""
        others = np.flatnonzero(self.knots != np.arange(1, len(self.knots) + 1))
        return int(others[0]) if len(others) else len(self.knots)

    def _guess(self, members: Members) -> np.ndarray:
        cells = members.cells
        mean, square = cells[3] / cells[2], (self.knots**2) @ cells[4:] / cells[2]
        return np.log(mean**2 / (square - mean**2 - mean))

    def _exponents(self, members: Members, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Parameters of the Beta distribution of the probability given sizes."""
        cells, (a, b) = members.cells, self._of_prior(members, r)
        return cells[0] * a + cells[3] - cells[1], cells[0] * b + r * cells[2] - cells[1]

    def _of_prior(self, members: Members, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        a, unit = (members.parameter(each, r) for each in (self.weight, self.unit))
        return a, 1 + a * r / unit

    def _log_prior(self, members: Members, t: np.ndarray, r: np.ndarray) -> np.ndarray:
        a, b = self._of_prior(members, r)
        return log_prior_of_x(t, np.inf) + t - log_gamma(a + np.zeros(r.shape)) + log_rising(b, a)

    def _of_counts(self, members: Members, r: np.ndarray) -> np.ndarray:
        """Sum over knots of weights times ln Gamma(knot + r) / Gamma(r)."""
        total = np.empty((len(r), r.size // max(len(r), 1)))
        weights = np.ascontiguousarray(members.cells[4:].reshape(len(self.knots), -1).T)
        _rises.weighted_sums(r.reshape(total.shape), self.knots, self._n_whole, weights, total)
        return total.reshape(r.shape)

    def _without_probability(self, members: Members, t: np.ndarray, r: np.ndarray) -> np.ndarray:
        of_data = self._of_counts(members, r) - members.cells[1] * t
        return members.cells[0] * self._log_prior(members, t, r) + of_data

    def _log_mass(self, members: Members, t: np.ndarray) -> np.ndarray:
        shape = np.broadcast_shapes(t.shape, members.cells.shape[1:])
        t = np.ascontiguousarray(np.broadcast_to(t, shape)).reshape(-1, shape[-1])
        cells = np.ascontiguousarray(members.cells.reshape(self.n_cells, -1).T)
        feature, r, total = (
            np.repeat(members.feature, len(t) // max(len(members.feature), 1)),
            np.exp(t),
            np.empty(t.shape),
        )
        _rises.weighted_sums(r, self.knots, self._n_whole, np.ascontiguousarray(cells[:, 4:]), total)
        _rises.add_masses(t, r, cells, self.weight[feature], self.unit[feature], total)
        return total.reshape(shape)

    def _integrated(self, members: Members, guess: np.ndarray) -> Nodes:
        """The integrals by a kernel, whose rises are polynomials on panels."""
        arrays, around = self._for_kernels(members), _rises_around(self.knots.tobytes())
        return integrate_compiled(partial(_rises.integrate, guess, *arrays, *around), guess)

    def _mean_natural(self, members: Members, nodes: Nodes) -> np.ndarray:
        arrays, means = self._for_kernels(members), np.empty(members.cells.T.shape)
        _rises.mean_natural(nodes.t, nodes.share, *arrays, means)
        return means.T

    def _for_kernels(self, members: Members) -> tuple:
        """Cells, weights and units of members; the table of rises on panels, and where these are."""
        cells, feature = np.ascontiguousarray(members.cells.T), members.feature
        table = _rises_on_panels(self.knots.tobytes())
        return cells, self.weight[feature], self.unit[feature], table, -_FARTHEST, _PANEL

    def _from_expectations(
        self, members: Members, t: np.ndarray, r: np.ndarray, log_p: np.ndarray, log_rest: np.ndarray
    ) -> np.ndarray:
        a, b = self._of_prior(members, r)
        prior = self._log_prior(members, t, r) + a * log_p + b * log_rest
        return np.stack([prior, -t - log_p - log_rest, r * log_rest, log_p])

    def _natural(self, members: Members, x: np.ndarray, other: np.ndarray) -> np.ndarray:
        parts = self._from_expectations(members, np.log(x), x, np.log(other), np.log1p(-other))
        return np.concatenate([parts, log_rising(x, self.knots[:, None])])

    def _peak(self, members: Members, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        r = np.exp(t)
        a, b = self._exponents(members, r)
        with np.errstate(all="ignore"):
            p = np.clip(np.where((a >= 0) & (b > 0), a / (a + b), np.nan), 1e-300, 1 - 1e-16)
            term = np.where(a == 0, 0.0, a * np.log(p)) + b * np.log1p(-p)
        return self._without_probability(members, t, r) + term, p

    def _draw_other(
        self, members: Members, x: np.ndarray, rng: np.random.Generator | ParallelGenerator, shape: tuple[int, ...]
    ) -> np.ndarray:
        pair = (each.reshape(shape) for each in self._exponents(members, x))
        first, second = (np.maximum(rng.standard_gamma(each), 1e-300) for each in pair)
        return np.clip(first / (first + second), 1e-300, 1 - 1e-16).ravel()

    def _derivatives(self, members: Members, x: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        n, p = self.n_cells, other
        first, second = np.zeros((2, n, *x.shape)), np.zeros((2, 2, n, *x.shape))
        a, b = self._of_prior(members, x)
        share, m = x / (1 + x), b - 1  # m = a r / unit, whose derivative by ln r is itself
        gained = digamma_rise(b, a + np.zeros(x.shape)) + np.log1p(-p)
        first[0, 0], first[1, 0] = 1 - 2 * share + m * gained, a * (1 - p) - b * p
        second[0, 0, 0] = -2 * share / (1 + x) + m * gained + m**2 * (polygamma(1, a + b) - polygamma(1, b))
        second[0, 1, 0] = second[1, 0, 0] = -m * p
        second[1, 1, 0] = -(a + b) * p * (1 - p)
        first[0, 1], first[1, 1] = -1.0, 2 * p - 1
        second[1, 1, 1] = 2 * p * (1 - p)
        first[0, 2], first[1, 2] = x * np.log1p(-p), -x * p
        second[0, 0, 2], second[1, 1, 2] = first[0, 2], -x * p * (1 - p)
        second[0, 1, 2] = second[1, 0, 2] = -x * p
        first[1, 3], second[1, 1, 3] = 1 - p, -p * (1 - p)
        for k, knot in enumerate(self.knots, 4):
            rise = x * digamma_rise(x, knot + np.zeros(x.shape))
            first[0, k] = rise
            second[0, 0, k] = rise + x**2 * (polygamma(1, x + knot) - polygamma(1, x))
        return first, second

    def _other_to_free(self, other: np.ndarray) -> np.ndarray:
        return np.log(other) - np.log1p(-other)

    def _other_from_free(self, free: np.ndarray) -> np.ndarray:
        return np.clip(1 / (1 + np.exp(-free)), 1e-300, 1 - 1e-16)

    def from_natural(self, natural: np.ndarray) -> SizeProbabilityPoint:
        """Sizes and probabilities of natural parameters."""
        cells = natural.reshape(-1, self.n_cells, self.n_features, *natural.shape[1:])
        p = np.exp(cells[:, 3])
        return SizeProbabilityPoint(cells[:, 2] / np.log1p(-p), p)

    def quantiles_of_means(self, probability: float) -> np.ndarray:
        """Quantiles of means r p / (1 - p), (n_components, n_features)."""

        def below(members, r, log_mean):
            a, b = self._exponents(members, r)
            return betainc(a, b, 1 / (1 + r * np.exp(-log_mean)))

        return np.exp(self._quantiles(below, probability, REACH))

    def expected_means(self) -> np.ndarray:
        """Posterior expectations of means, (n_components, n_features)."""
        r = np.exp(self._nodes.t)
        a, b = self._exponents(self._members.of(np.arange(len(r))), r)
        ratio = r * a / np.where(b > 1, b - 1, b)
        return self._by_member((ratio * self._nodes.share).sum(axis=-1))

    def log_predictive_of_counts(self, counts: np.ndarray, feature: int) -> np.ndarray:
        """Log probabilities of counts (n_counts,) of one feature, nats, (n_components, n_counts)."""
        members = np.flatnonzero(self._members.feature == feature)
        nodes, (cells, features) = self._nodes.of(members).thinned(), self._members
        r = np.exp(nodes.t)[:, None]
        a, b = self._exponents(Members(cells[:, members, None, None], features[members]), r)
        result = np.empty((len(members), len(counts)))
        for at in range(0, len(counts), _COUNTS_AT_ONCE):
            batch = counts[at : at + _COUNTS_AT_ONCE, None]
            gain = log_rising(r, batch) - log_rising(1.0, batch) + log_rising(a, batch)
            gain = gain + log_rising(b, a) - log_rising(b + r, a + batch) + np.log(nodes.share[:, None] + 1e-300)
            result[:, at : at + _COUNTS_AT_ONCE] = log_sum_exp(gain, axis=-1)
        return result

    def _has_mass(self, cells: np.ndarray) -> np.ndarray:
        return (cells[2] >= 0) & (cells[3] >= 0)

    def _are_signed(self) -> np.ndarray:
        return np.arange(self.n_cells) >= 4 + self._n_whole  # weights of interpolation, also at 96, are of any sign


@lru_cache(maxsize=8)
def _rises_on_panels(knots: bytes) -> np.ndarray:
    """Coefficients of ln Gamma(knot + r) - ln Gamma(r) on panels of ln r, (n_panels, n_knots, n_coefficients)."""
    n = _rises.N_COEFFICIENTS
    angles = np.pi * (np.arange(n) + 0.5) / n
    starts = np.arange(-_FARTHEST, _FARTHEST, _PANEL)
    r = np.exp(starts[:, None] + _PANEL * (1 + np.cos(angles)) / 2)
    coefficients = np.cos(np.arange(n)[:, None] * angles) * 2 / n
    coefficients[0] /= 2
    return np.ascontiguousarray(log_rising(r[:, None, :], np.frombuffer(knots)[:, None]) @ coefficients.T)


@lru_cache(maxsize=8)
def _rises_around(knots: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Logarithms of a first look, and rises there, each in as many cells as the kernel has room for."""
    places = np.append(AROUND, AROUND[-1])
    return places, np.pad(log_rising(np.exp(places), np.frombuffer(knots)[:, None]), ((0, 0), (0, 8)))


def digamma_rise(a: np.ndarray, n: np.ndarray) -> np.ndarray:
    """psi(a + n) - psi(a) elementwise, accurate also where a is huge."""
    a, n = np.broadcast_arrays(a, n)
    total = a + n
    series = np.log1p(n / a) - 0.5 * (1 / total - 1 / a) - (1 / total**2 - 1 / a**2) / 12
    return np.where(a > _SERIES, series, digamma(total) - digamma(a))
