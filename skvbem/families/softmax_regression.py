r"""Softmax regressions: labels of rows with known regressors, and a full Gaussian over all coefficients.

Label k of a row with regressors u, the first of them a constant, has the probability
:math:`\pi_k(u) \propto \exp(w_k^\top u)`, with :math:`w_{kj} \sim N(0, 1/\tau_j)` for every k. A shift of all
:math:`w_k` changes no probability, so that K - 1 orthonormal contrasts H say all: :math:`w = H \omega`,
:math:`\omega_{cj} \sim N(0, 1/\tau_j)`. No label is a reference, and the prior is the same for every order of labels.

Regressors and weights :math:`\gamma_i` of all rows, the *design*, are known, and the family holds them. With
:math:`\bar\ell(W) = \sum_i \gamma_i \ln \sum_k e^{w_k^\top u_i} / \sum_i \gamma_i`, natural parameters are
:math:`w_k - \bar\ell e_0`, of statistics :math:`T_k = \sum_i \gamma_i r_{ik} u_i`, whose first number counts rows, and
:math:`-\tfrac12 \sum_c \omega_{cj}^2`, of coordinates :math:`\tau_j`, to which no row adds.

The normalizer has no closed form. For :math:`q(W) = N(M, S)` an expected log-sum-exp is bounded by the tilted bound
[KM11], here with a full covariance: with m and V the mean and covariance of :math:`W u`,

.. math:: E \ln \sum_k e^{\psi_k} \le g(m, V, a) = a^\top m
          + \ln \sum_k \exp\bigl(m_k - a^\top m + \tfrac12 (e_k - a)^\top V (e_k - a)\bigr),

convex in the tilt a, and best where a is the softmax of those exponents. Then

.. math:: A(T, \tau) = \max_{M, S} \; \sum_k T_k^\top M_k - \bar g(M, S) \sum_k T_{k0}
          - \tfrac12 \sum_{cj} \tau_j (M_{cj}^2 + S_{cj,cj}) + \tfrac12 \ln |2 \pi e S|

is of a jointly concave function, below the logarithm of the normalizer, so that a bound stays one; and the gradient of
A is what q expects of the natural parameters, with :math:`\bar g` in place of :math:`\bar\ell`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from skvbem._lazy import cached_property
from skvbem.families.base import principal_submatrix
from skvbem.families.parallel_generator import ParallelGenerator
from skvbem.families.softmax_family import PRECISION_FLOOR, SoftmaxFamily
from skvbem.families.softmax_maximum import Design, Maximum, Objective, contrasts
from skvbem.families.softmax_proposals import Students, mean_log_partition, students_after


@dataclass(frozen=True, eq=False)
class SoftmaxRegression(SoftmaxFamily):
    """Coefficients of a softmax regression, whose rows are known but for their labels.

    Parameters
    ----------
    coordinates : ndarray of shape (n_labels * n_regressors + n_regressors, ...)
        Statistics of the labels, label after label, and precisions of the coefficients of each regressor.
    design : Design

    Examples
    --------
    Four rows, and their labels:

    >>> import numpy as np
    >>> from skvbem.families.softmax_regression import SoftmaxRegression
    >>> from skvbem.families.softmax_maximum import Design
    >>> u, label = np.array([[1.0, -1], [1, 0], [1, 0.5], [1, 2]]), np.array([0, 0, 1, 1])
    >>> prior = SoftmaxRegression.from_precisions(2, Design.of(u), [0.6, 1.0])
    >>> posterior = prior + np.append((np.eye(2)[label].T @ u).ravel(), [0.0, 0.0])
    >>> posterior.mean.round(2).tolist()
    [[0.15, -0.76], [-0.15, 0.76]]
    """

    @classmethod
    def from_precisions(cls, n_labels: int, design: Design, precision) -> Self:
        """The prior of so many labels, of coefficients with these precisions, (n_regressors,)."""
        p = design.regressors.shape[1]
        return cls(np.concatenate([np.zeros(n_labels * p), np.asarray(precision, dtype=float)]), design)

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return len(self.coordinates) // self.n_regressors - 1

    @property
    def n_free_parameters(self) -> int:
        """Number of contrasts of coefficients."""
        return (self.n_labels - 1) * self.n_regressors

    @property
    def precision_cells(self) -> slice:
        """Cells of the precisions."""
        return slice(len(self.coordinates) - self.n_regressors, len(self.coordinates))

    @property
    def is_valid(self) -> np.ndarray:
        """True where all precisions are positive; of the shape of the batch."""
        return np.asarray((self.coordinates[-self.n_regressors :] > 0).all(axis=0))

    @property
    def signed(self) -> np.ndarray:
        """Boolean array of the statistics that may be negative, as regressors may be; no count."""
        of_label = np.arange(self.n_regressors) > 0
        return np.append(np.tile(of_label, self.n_labels), np.zeros(self.n_regressors, dtype=bool))

    # The maximum ------------------------------------------------------------------------------------------------------

    @cached_property
    def _maxima(self) -> list[Maximum]:
        """The maximum of every member."""
        return self._of_lanes(self.coordinates)

    def _of_lanes(self, coordinates: np.ndarray, **options: Any) -> list[Maximum]:
        """Maxima of every member."""
        h, p, maxima = contrasts(self.n_labels), self.n_regressors, []
        for lane in coordinates.reshape(len(coordinates), -1).T:
            statistics = lane[:-p].reshape(-1, p)
            precision = np.tile(lane[-p:], self.n_labels - 1)
            objective = Objective((h.T @ statistics).ravel(), float(statistics[:, 0].sum()), precision)
            maxima.append(self.design.maximum(objective, **options))
        return maxima

    @property
    def mean(self) -> np.ndarray:
        """E w, (n_labels, n_regressors, ...), which sums to 0 over labels."""
        return self._batch([self._rows(each) for each in self._maxima])

    def _rows(self, at: Maximum) -> np.ndarray:
        """Coefficients (n_labels, n_regressors) at a maximum."""
        return contrasts(self.n_labels) @ at.bound.mean.reshape(self.n_labels - 1, self.n_regressors)

    @property
    def covariance(self) -> np.ndarray:
        """Covariance of the contrasts, contrast after contrast, (n_free_parameters, n_free_parameters, ...)."""
        return self._batch([each.bound.covariance for each in self._maxima])

    def log_normalizer(self) -> np.ndarray:
        """A, nats, of the shape of the batch."""
        return self._batch([np.asarray(each.value) for each in self._maxima])

    def expected_natural(self) -> np.ndarray:
        """Expected natural parameters, of the shape of the coordinates."""
        return self._naturals(self._maxima).reshape(self.coordinates.shape)

    def _naturals(self, maxima: list[Maximum]) -> np.ndarray:
        """Natural parameters at maxima, (n_cells, n): expected ones, or those of points."""
        naturals = []
        for each in maxima:
            squares = each.bound.squares.reshape(self.n_labels - 1, self.n_regressors)
            naturals.append(_natural(self._rows(each), each.bound.value, squares))
        return np.stack(naturals, axis=-1)

    # Points -----------------------------------------------------------------------------------------------------------

    def natural(self, point: np.ndarray) -> np.ndarray:
        """Natural parameters of coefficients (n_labels, n_regressors, ...)."""
        lanes = point.reshape(*point.shape[:2], -1)
        naturals = [_natural(w, self.design.at_point(w).value, w**2) for w in np.moveaxis(lanes, -1, 0)]
        return np.stack(naturals, axis=-1).reshape(-1, *point.shape[2:])

    def from_natural(self, natural: np.ndarray) -> np.ndarray:
        """The coefficients with these natural parameters."""
        w = natural[: -self.n_regressors].reshape(self.n_labels, self.n_regressors, *natural.shape[1:])
        return w - w.mean(axis=0)

    def natural_of_most_likely(self, statistics: np.ndarray) -> np.ndarray:
        """Natural parameters of the most likely coefficients, in a run of more likely ones than at its last step."""
        reached = self._of_lanes(self._nearly_flat(statistics), is_point=True)
        return self._naturals(reached).reshape(statistics.shape)

    def _nearly_flat(self, statistics: np.ndarray) -> np.ndarray:
        """Statistics with the least precisions that keep a maximum."""
        statistics, p = statistics.copy(), self.n_regressors
        statistics[-p:] = PRECISION_FLOOR * np.maximum(statistics[:-p:p].sum(axis=0), 1.0)
        return statistics

    def _modes(self, coordinates: np.ndarray) -> np.ndarray:
        """Coefficients (n_labels, n_regressors, ...) at which points with these coordinates are densest."""
        reached = self._of_lanes(coordinates, is_point=True, is_exact=True)
        modes = [self._rows(each) for each in reached]
        return np.stack(modes, axis=-1).reshape(self.n_labels, self.n_regressors, *coordinates.shape[1:])

    def sample(self, rng: np.random.Generator | ParallelGenerator) -> np.ndarray:
        """Coefficients drawn from the Gaussian, (n_labels, n_regressors, ...): of a prior exactly, else of q."""
        h, drawn = contrasts(self.n_labels), []
        noise = rng.standard_normal((self.n_free_parameters, *self.coordinates.shape[1:]))
        noise = noise.reshape(self.n_free_parameters, int(np.prod(self.coordinates.shape[1:])))
        for k, each in enumerate(self._maxima):
            root = np.linalg.cholesky(each.bound.covariance)
            drawn.append(h @ (each.bound.mean + root @ noise[:, k]).reshape(self.n_labels - 1, self.n_regressors))
        return self._batch(drawn)

    def proposals(self, start: np.ndarray | None = None) -> Students:
        """Densities to draw the contrasts of members (n_cells, n) from; see `SoftmaxFamily.proposals`."""
        lanes, p = self.coordinates.reshape(len(self.coordinates), -1), self.n_regressors
        statistics = lanes[:-p].reshape(self.n_labels, p, -1)
        weight = statistics[:, 0].sum(axis=0)[:, None] * self.design.weight
        return students_after(self.design.regressors, statistics, weight, lanes[-p:], start)

    def natural_of_contrasts(self, free: np.ndarray) -> np.ndarray:
        """Natural parameters (n_cells, n) of contrasts (n, n_free_parameters)."""
        by_contrast = free.reshape(len(free), self.n_labels - 1, self.n_regressors)
        rows = contrasts(self.n_labels) @ by_contrast
        rows[:, :, 0] -= mean_log_partition(self.design, by_contrast)[:, None]
        return np.hstack([rows.reshape(len(free), -1), -0.5 * (by_contrast**2).sum(axis=1)]).T

    def to_unconstrained(self, point: np.ndarray) -> np.ndarray:
        """Contrasts of coefficients, (n_free_parameters, ...)."""
        free = np.tensordot(contrasts(self.n_labels).T, point, axes=1)
        return free.reshape(self.n_free_parameters, *point.shape[2:])

    def from_unconstrained(self, free: np.ndarray) -> np.ndarray:
        """Coefficients with these contrasts."""
        by_contrast = free.reshape(self.n_labels - 1, self.n_regressors, *free.shape[1:])
        return np.tensordot(contrasts(self.n_labels), by_contrast, axes=1)

    def jacobian(self, point: np.ndarray) -> np.ndarray:
        """Derivatives of the natural parameters by the contrasts, (n_cells, n_free_parameters)."""
        h, p = contrasts(self.n_labels), self.n_regressors
        rows = np.kron(h, np.eye(p))
        rows[::p] -= self.design.at_point(point).slope
        free = self.to_unconstrained(point).reshape(self.n_labels - 1, p)
        squares = np.zeros((p, rows.shape[1]))
        for j in range(p):
            squares[j, j::p] = -free[:, j]
        return np.vstack([rows, squares])

    def information(self, point: np.ndarray, coordinates: np.ndarray, free: np.ndarray | None = None) -> np.ndarray:
        """Minus the second derivatives of coordinates . natural(point) by the contrasts."""
        p = self.n_regressors
        curvature = coordinates[:-p].reshape(-1, p)[:, 0].sum() * self.design.at_point(point).curvature
        return principal_submatrix(curvature + np.diag(np.tile(coordinates[-p:], self.n_labels - 1)), free)

    def _log_natural_measure(self, point: np.ndarray) -> np.ndarray:
        return np.zeros(point.shape[2:])


def on_design(family: Any, design: Design) -> Any:
    """A prior of coefficients, whose precisions may be hidden, with another design."""
    base = getattr(family, "base", family)
    of_design = replace(base, design=design)
    return of_design if base is family else replace(family, base=of_design)


def _natural(w: np.ndarray, partition: float, squares: np.ndarray) -> np.ndarray:
    """Natural parameters (n_cells,) of coefficients, a mean log partition, and (expected) squares of coefficients."""
    rows = w.copy()
    rows[:, 0] -= partition
    return np.concatenate([rows.ravel(), -0.5 * squares.sum(axis=0)])
