r"""Softmax regressions side by side whose rows are hidden: transitions out of states that nobody saw, by covariates.

Row j of a matrix of probabilities has, at a step with regressors u, :math:`\pi_{jk}(u) \propto \exp(w_{jk}^\top u)`
over the labels k that it allows, and the prior of its coefficients is that of
`skvbem.families.softmax_regression`: its contrasts are :math:`N(0, 1/\tau_i)`. There the weights of the design are
known. Here :math:`n_j(u)`, how often row j was used at steps with regressors u, is expected only, so that it is a
statistic besides :math:`T_{jk} = \sum_u u\, \xi_{jk}(u)`. Natural parameters are :math:`w_{jk}`,
:math:`-\tfrac12 \sum_c \omega_{ci}^2` of all rows, and :math:`-\ln \sum_k e^{w_{jk}^\top u}` of each pattern u of
regressors. A is the maximum over q(W) = N(M, S) of the same tilted bound, jointly concave, and its gradient by
:math:`n_j(u)` is minus the bound of that pattern: logs of transitions are :math:`M_{jk}^\top u - g_j(u)`, whose
exponentials sum to 1 at the most, as those of a Dirichlet row do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from scipy.linalg import block_diag

from skvbem._kernels import _softmax
from skvbem._lazy import cached_property
from skvbem.families.base import principal_submatrix
from skvbem.families.parallel_generator import ParallelGenerator
from skvbem.families.softmax_family import PRECISION_FLOOR, SoftmaxFamily
from skvbem.families.softmax_maximum import Design, Objective, TiltedBound, contrasts
from skvbem.families.softmax_proposals import StudentsByRow, students_after


class _Row(NamedTuple):
    """The maximum of a row: q, or a point, bounds of patterns (n_patterns,), and A, nats."""

    bound: TiltedBound
    of_patterns: np.ndarray
    value: float


@dataclass(frozen=True, eq=False)
class SoftmaxRows(SoftmaxFamily):
    """Coefficients of rows of probabilities, each a softmax regression over the labels that it allows.

    Parameters
    ----------
    coordinates : ndarray of shape (n_cells, ...)
        Statistics T of every row and label, (n_rows, n_labels, n_regressors); precisions of the coefficients of each
        regressor; and how often each row was used, pattern after pattern, (n_patterns, n_rows).
    design : Design
        Patterns of regressors. Its weights are of no account.
    allowed : ndarray of bool, shape (n_rows, n_labels)

    Examples
    --------
    One row over two labels, the first of them twice at -1, the other at 2:

    >>> import numpy as np
    >>> from skvbem.families.softmax_maximum import Design
    >>> from skvbem.families.softmax_rows import SoftmaxRows
    >>> design = Design.of(np.array([[1.0, -1.0], [1.0, 2.0]]))
    >>> prior = SoftmaxRows.from_precisions(design, np.ones((1, 2), dtype=bool), [0.6, 1.0])
    >>> posterior = prior + np.array([2.0, -2, 1, 2, 0, 0, 2, 1])
    >>> posterior.mean.round(2).tolist()
    [[[0.28, -0.78], [-0.28, 0.78]]]
    """

    allowed: np.ndarray

    @classmethod
    def from_precisions(cls, design: Design, allowed: np.ndarray, precision) -> Self:
        """The prior of rows with these labels, of coefficients with these precisions, (n_regressors,)."""
        (n, p), allowed = design.regressors.shape, np.asarray(allowed, dtype=bool)
        parts = np.zeros(allowed.size * p), np.asarray(precision, dtype=float), np.zeros(n * len(allowed))
        return cls(np.concatenate(parts), design, allowed)

    @property
    def _sizes(self) -> list[int]:
        """Contrasts of each row."""
        return [(int(row.sum()) - 1) * self.n_regressors for row in self.allowed]

    @property
    def n_free_parameters(self) -> int:
        """Number of contrasts of coefficients, of all rows."""
        return sum(self._sizes)

    @property
    def precision_cells(self) -> slice:
        """Cells of the precisions."""
        first = self.allowed.size * self.n_regressors
        return slice(first, first + self.n_regressors)

    def parts(self, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Cells of coefficients (n_rows, n_labels, p, ...), precisions (p, ...), patterns (n_patterns, n_rows, ...)."""
        precisions = self.precision_cells
        return (
            cells[: precisions.start].reshape(*self.allowed.shape, self.n_regressors, *cells.shape[1:]),
            cells[precisions],
            cells[precisions.stop :].reshape(-1, len(self.allowed), *cells.shape[1:]),
        )

    @property
    def is_valid(self) -> np.ndarray:
        """True where all precisions are positive; of the shape of the batch."""
        return np.asarray((self.parts(self.coordinates)[1] > 0).all(axis=0))

    @property
    def signed(self) -> np.ndarray:
        """Boolean array of the statistics that may be negative, as sums of regressors may be; no count."""
        signed = np.zeros(self.coordinates.shape[0], dtype=bool)
        self.parts(signed)[0][..., 1:] = True
        return signed

    # The maximum ------------------------------------------------------------------------------------------------------

    @cached_property
    def _maxima(self) -> list[list[_Row]]:
        """The maxima of the rows of every member."""
        return self._of_lanes(self.coordinates)

    def _of_lanes(self, coordinates: np.ndarray, *, is_point: bool = False) -> list[list[_Row]]:
        maxima = []
        for lane in coordinates.reshape(len(coordinates), -1).T:
            statistics, precision, weight = self.parts(lane)
            maxima.append(
                [
                    self._row(j, statistics[j], precision, np.ascontiguousarray(weight[:, j]), is_point)
                    for j in range(len(self.allowed))
                ]
            )
        return maxima

    def _row(self, j: int, statistics: np.ndarray, precision: np.ndarray, weight: np.ndarray, is_point: bool) -> _Row:
        """The maximum of a row with statistics (n_labels, p), used so often at each pattern."""
        among, total = self.allowed[j], float(weight.sum())
        h, bounds = contrasts(int(among.sum())), np.zeros(len(weight))
        if not h.size:
            return _Row(TiltedBound(np.zeros(2), 0), bounds, 0.0)
        objective = Objective((h.T @ statistics[among]).ravel(), total, np.tile(precision, h.shape[1]))
        design = Design(self.design.regressors, weight / total if total > 0 else self.design.weight)
        starts, near = self.design.starts(j, is_point), None
        if starts:  # what the bound is there, at other weights, is to be found again
            best = objective.best(tuple(starts))
            near = design.bound(best.mean, None if is_point else best.covariance)
        at = design.maximum(objective, is_point=is_point, near=near).bound
        starts.append(at)
        _softmax.mean_bound(design.regressors, design.weight, h, not is_point, at.numbers, bounds)
        bounds += design.regressors @ (h[-1] @ at.mean.reshape(h.shape[1], -1))
        # the patterns' bounds, not the model of their mean, so that value and gradient are of one q
        value = objective.t @ at.mean - 0.5 * objective.precision @ at.squares - weight @ bounds
        wide = 0.0 if is_point else 0.5 * (at.d * np.log(2 * np.pi * np.e) + at.numbers[-1])
        return _Row(at, bounds, float(value + wide))

    def _coefficients(self, rows: list[np.ndarray]) -> np.ndarray:
        """Coefficients (n_rows, n_labels, p) with these contrasts of each row; 0 of labels that it does not allow."""
        return self.from_unconstrained(np.concatenate(rows))

    def _of_maxima(self, maxima: list[list[_Row]]) -> np.ndarray:
        """Coefficients at maxima, with the axes of the batch."""
        return self._batch([self._coefficients([row.bound.mean for row in rows]) for rows in maxima])

    @property
    def mean(self) -> np.ndarray:
        """E w, (n_rows, n_labels, n_regressors, ...), which sums to 0 over the labels of a row."""
        return self._of_maxima(self._maxima)

    def variance_of(self, regressors: np.ndarray) -> np.ndarray:
        """Variance of w' u, (n_rows, n_labels, n), for regressors (n, p), of a single member."""
        variance = np.zeros((*self.allowed.shape, len(regressors)))
        for j, (row, among) in enumerate(zip(self._maxima[0], self.allowed)):
            h = contrasts(int(among.sum()))
            if h.size:
                by_label = np.kron(h, np.eye(self.n_regressors)).reshape(*h.shape[:1], self.n_regressors, -1)
                directions = np.einsum("np,kpd->knd", regressors, by_label)
                variance[j, among] = np.einsum("knd,de,kne->kn", directions, row.bound.covariance, directions)
        return variance

    def log_normalizer(self) -> np.ndarray:
        """A, nats, of the shape of the batch."""
        return self._batch([np.asarray(sum(row.value for row in rows)) for rows in self._maxima])

    def expected_natural(self) -> np.ndarray:
        """Expected natural parameters, of the shape of the coordinates."""
        return self._batch([self._natural(rows) for rows in self._maxima])

    def _natural(self, rows: list[_Row]) -> np.ndarray:
        p = self.n_regressors
        squares = sum((row.bound.squares.reshape(-1, p).sum(axis=0) for row in rows), np.zeros(p))
        w = self._coefficients([row.bound.mean for row in rows])
        of_patterns = np.stack([row.of_patterns for row in rows], axis=1)
        return np.concatenate([w.ravel(), -0.5 * squares, -of_patterns.ravel()])

    # Points -----------------------------------------------------------------------------------------------------------

    def natural(self, point: np.ndarray) -> np.ndarray:
        """Natural parameters of coefficients (n_rows, n_labels, n_regressors, ...)."""
        logs = np.tensordot(self.design.regressors, np.moveaxis(point, 2, 0), axes=1)  # (n_patterns, n_rows, n_labels)
        outside = ~self.allowed.reshape(*self.allowed.shape, *(1,) * (point.ndim - 3))
        partition = np.logaddexp.reduce(np.where(outside, -np.inf, logs), axis=2)
        squares = (point**2).sum(axis=(0, 1))
        shape = point.shape[3:]
        return np.concatenate([point.reshape(-1, *shape), -0.5 * squares, -partition.reshape(-1, *shape)])

    def from_natural(self, natural: np.ndarray) -> np.ndarray:
        """The coefficients with these natural parameters."""
        return self.parts(natural)[0].copy()

    def _nearly_flat(self, statistics: np.ndarray) -> np.ndarray:
        """Statistics with the least precisions that keep a maximum."""
        statistics = statistics.copy()
        _, precision, weight = self.parts(statistics)
        precision[:] = PRECISION_FLOOR * np.maximum(weight.sum(axis=(0, 1)), 1.0)
        return statistics

    def _modes(self, coordinates: np.ndarray) -> np.ndarray:
        maxima = self._of_lanes(coordinates, is_point=True)
        modes = [self._coefficients([row.bound.mean for row in rows]) for rows in maxima]
        return np.stack(modes, axis=-1).reshape(*modes[0].shape, *coordinates.shape[1:])

    def sample(self, rng: np.random.Generator | ParallelGenerator) -> np.ndarray:
        """Coefficients drawn, (n_rows, n_labels, n_regressors, ...): of a prior exactly, else of the Gaussian q."""
        noise = rng.standard_normal((self.n_free_parameters, *self.coordinates.shape[1:]))
        lanes = noise.reshape(self.n_free_parameters, len(self._maxima)).T
        free = [self._drawn(rows, lane[:, None]) for rows, lane in zip(self._maxima, lanes)]
        return self.from_unconstrained(np.concatenate(free, axis=1).reshape(noise.shape))

    def draws(self, n_draws: int, rng: np.random.Generator) -> np.ndarray:
        """Draws of a single member, whose maximum is climbed to once, along a last axis."""
        noise = rng.standard_normal((self.n_free_parameters, n_draws))
        return self.from_unconstrained(self._drawn(self._maxima[0], noise))

    def _drawn(self, rows: list[_Row], noise: np.ndarray) -> np.ndarray:
        """Contrasts (n_free_parameters, n) of the Gaussians of rows, from standard normal numbers."""
        free = noise.copy()
        for row, part in zip(rows, np.split(free, np.cumsum(self._sizes)[:-1])):
            if len(part):
                part[:] = row.bound.mean[:, None] + np.linalg.cholesky(row.bound.covariance) @ part
        return free

    def to_unconstrained(self, point: np.ndarray) -> np.ndarray:
        """Contrasts of coefficients, row after row, (n_free_parameters, ...)."""
        rows = [
            np.tensordot(contrasts(int(among.sum())).T, w[among], axes=1).reshape(-1, *point.shape[3:])
            for w, among in zip(point, self.allowed)
        ]
        return np.concatenate(rows)

    def from_unconstrained(self, free: np.ndarray) -> np.ndarray:
        """Coefficients with these contrasts."""
        w = np.zeros((*self.allowed.shape, self.n_regressors, *free.shape[1:]))
        for j, (of_row, among) in enumerate(zip(np.split(free, np.cumsum(self._sizes)[:-1]), self.allowed)):
            h = contrasts(int(among.sum()))
            by_contrast = of_row.reshape(h.shape[1], self.n_regressors, *free.shape[1:])
            w[j, among] = np.tensordot(h, by_contrast, axes=1)
        return w

    def proposals(self, start: np.ndarray | None = None) -> StudentsByRow:
        """Densities to draw the contrasts of members (n_cells, n) from; see `SoftmaxFamily.proposals`."""
        statistics, precision, weight = self.parts(self.coordinates.reshape(len(self.coordinates), -1))
        starts: Sequence[np.ndarray | None] = [None] * len(self.allowed)
        if start is not None:
            starts = np.split(start, np.cumsum(self._sizes)[:-1], axis=1)
        return StudentsByRow(
            tuple(
                students_after(self.design.regressors, statistics[j, among], weight[:, j].T, precision, starts[j])
                for j, among in enumerate(self.allowed)
            )
        )

    def log_joints(self, coordinates: np.ndarray, natural: np.ndarray) -> np.ndarray:
        """Coordinates times natural parameters (n_cells, n), of each row of probabilities apart, (n_rows, n), nats."""
        statistics, precision, weight = self.parts(coordinates)
        w, _, partition = self.parts(natural)
        return ((statistics - 0.5 * precision * w) * w).sum(axis=(1, 2)) + (weight * partition).sum(axis=0)

    def with_rows(self, taken: np.ndarray, natural: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Natural parameters (n_cells, n) of which rows that are taken, (n_rows, n), are those of others."""
        (w, _, partition), (w_there, _, partition_there) = self.parts(natural), self.parts(other)
        w, partition = np.where(taken[:, None, None], w_there, w), np.where(taken, partition_there, partition)
        n = natural.shape[1]
        return np.concatenate([w.reshape(-1, n), -0.5 * (w**2).sum(axis=(0, 1)), partition.reshape(-1, n)])

    def jacobian(self, point: np.ndarray) -> np.ndarray:
        """Derivatives of the natural parameters by the contrasts, (n_cells, n_free_parameters)."""
        p, (n_rows, n_labels), blocks = self.n_regressors, self.allowed.shape, []
        squares = np.zeros((p, self.n_free_parameters))
        of_patterns = np.zeros((len(self.design.regressors), n_rows, self.n_free_parameters))
        first = 0
        for j, (w, among) in enumerate(zip(point, self.allowed)):
            h = np.zeros((n_labels, int(among.sum()) - 1))
            h[among] = contrasts(int(among.sum()))
            blocks.append(np.kron(h, np.eye(p)))
            logs = np.where(among, self.design.regressors @ w.T, -np.inf)
            share = np.exp(logs - np.logaddexp.reduce(logs, axis=1)[:, None]) @ h  # (n_patterns, n_contrasts)
            here = slice(first, first := first + h.shape[1] * p)
            of_patterns[:, j, here] = -np.einsum("nc,np->ncp", share, self.design.regressors).reshape(len(logs), -1)
            squares[:, here] = -np.einsum("cp,pq->qcp", (h.T @ w), np.eye(p)).reshape(p, -1)
        return np.vstack([block_diag(*blocks), squares, of_patterns.reshape(-1, self.n_free_parameters)])

    def information(self, point: np.ndarray, coordinates: np.ndarray, free: np.ndarray | None = None) -> np.ndarray:
        """Minus the second derivatives of coordinates . natural(point) by the contrasts."""
        _, precision, weight = self.parts(coordinates)
        blocks = []
        for j, (w, among) in enumerate(zip(point, self.allowed)):
            total, h = weight[:, j].sum(), contrasts(int(among.sum()))
            design = Design(self.design.regressors, weight[:, j] / total if total > 0 else self.design.weight)
            prior = np.diag(np.tile(precision, h.shape[1]))
            blocks.append(prior + (total * design.at_point(w[among]).curvature if h.size else 0.0))
        return principal_submatrix(block_diag(*blocks), free)

    def _log_natural_measure(self, point: np.ndarray) -> np.ndarray:
        return np.zeros(point.shape[3:])
