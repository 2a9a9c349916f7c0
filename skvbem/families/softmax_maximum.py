r"""Maxima of a softmax regression's tilted bound: over a mean and a covariance, or over points.

The objective, jointly concave, is :math:`t^\top M - \gamma\, \bar g(M, S) - \tfrac12 \sum_j \tau_j (M_j^2 + S_{jj})
+ \tfrac12 \ln |2 \pi e S|`, with t the statistics of the contrasts and :math:`\gamma` the weight of all rows. Newton's
step of M and :math:`S^{-1} \leftarrow \tau + \gamma\, \partial^2 \bar g / \partial M^2` need derivatives of
:math:`\bar g` alone. These do not change with t, so that a maximum begins with those of an earlier one: near it, as one
step of variational EM is, one or two passes over the design are all. Outside of a run each begins at one place. The
second step is slow where few rows tell of a label: a secant through two steps, Anderson's acceleration, takes its place
where the objective rises by it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from skvbem._kernels import _softmax
from skvbem._lazy import cached_property
from skvbem._numerics import distinct_rows

# Bounds that are kept to begin from: more than runs side by side, and their extrapolations, make in a step. By hand.
_N_STARTS = 32
# Parts of the gain of its first step that a maximum may leave to later steps of a run: of few patterns, and of so many
# that passes are what steps cost. Nothing is left of gains below 1e-9. By hand, over forty fits: with 1e-4 of few some
# came to worse optima, as moves were judged too soon, and with 1e-6 a bound fell by as much; .01 of many takes half of
# the passes, and as many steps.
_KEPT, _KEPT_OF_MANY, _PATTERNS_OF_DEAR_PASSES = 1e-8, 0.01, 2048
# Change of a log odds up to which a point's last step is made without a pass: what its quadratic model lacks is at most
# so large a part of the gain. Where covariates separate labels, steps without a gain are long, and may lose. By hand.
_SHORT = 1e-3


@lru_cache(maxsize=256)
def contrasts(n: int) -> np.ndarray:
    """Orthonormal contrasts of n labels, (n, n - 1), which sum to 0 (Helmert)."""
    h = np.zeros((n, n - 1))
    for c in range(1, n):
        h[:c, c - 1], h[c, c - 1] = 1.0, -c
        h[:, c - 1] /= np.sqrt(c * (c + 1.0))
    return h


@dataclass(frozen=True, eq=False)
class Design:
    """Regressors of all rows, equal ones once.

    Parameters
    ----------
    regressors : ndarray of shape (n_patterns, n_regressors)
        The first is a constant, 1.
    weight : ndarray of shape (n_patterns,)
        Proportions of the rows, which sum to 1.
    """

    regressors: np.ndarray
    weight: np.ndarray
    # of a run, bounds near earlier maxima, from which later ones are soon reached
    _starts: dict | None = field(default=None, init=False, repr=False)

    @classmethod
    def of(cls, regressors: np.ndarray, weight: np.ndarray | None = None) -> Design:
        """The design of rows, which are merged where they are equal."""
        patterns, which = distinct_rows(regressors)
        total = np.bincount(which, weight, len(patterns)).astype(float)
        return cls(patterns[total > 0], total[total > 0] / total.sum())

    @cached_property
    def _largest(self) -> np.ndarray:
        """The largest size of each regressor, (n_regressors,)."""
        return np.abs(self.regressors).max(axis=0)

    def for_run(self) -> Design:
        """The design in a run of its own, whose maxima begin with those that the run has reached."""
        design = replace(self)
        object.__setattr__(design, "_starts", {})
        return design

    def bound(self, mean: np.ndarray, covariance: np.ndarray | None) -> TiltedBound:
        """The mean tilted bound of contrasts (d,), one after the other; of points the mean log partition."""
        d = len(mean)
        at = TiltedBound(np.zeros(3 * d * d + 2 * d + 2), d)
        at.mean[:] = mean
        if covariance is not None:
            at.covariance[:], at.precision[:] = covariance, np.linalg.inv(covariance)
            at.numbers[-1] = np.linalg.slogdet(covariance)[1]
        if d:
            h = contrasts(d // self.regressors.shape[1] + 1)
            _softmax.mean_bound(self.regressors, self.weight, h, covariance is not None, at.numbers)
        return at

    def at_point(self, w: np.ndarray) -> TiltedBound:
        """The mean log partition at coefficients (n_labels, n_regressors)."""
        bound = self.bound((contrasts(len(w)).T @ w).ravel(), None)
        bound.numbers[-2] += self.weight @ (self.regressors @ w.mean(axis=0))
        return bound

    def starts(self, of: int, is_point: bool) -> deque:
        """Bounds near earlier maxima of one kind; of no run none."""
        starts = {} if self._starts is None else self._starts
        return starts.setdefault((of, is_point), deque(maxlen=_N_STARTS))

    def maximum(
        self, objective: Objective, *, is_point: bool = False, is_exact: bool = False, near: TiltedBound | None = None
    ) -> Maximum:
        """The maximum of an objective; in a run from `near` or the best of earlier ones on, and near it or exact."""
        d = len(objective.t)
        if not d:
            return Maximum(TiltedBound(np.zeros(2), 0), 0.0)
        starts = self.starts(d, is_point)
        if near is None:
            near = objective.best(tuple(starts)) if starts else objective.start(self, is_point=is_point)
        last = TiltedBound(np.empty_like(near.numbers), d)
        rows = self.regressors, self.weight, contrasts(d // self.regressors.shape[1] + 1)
        of_member = objective.t, objective.total, objective.precision
        kept = _KEPT_OF_MANY if len(self.weight) >= _PATTERNS_OF_DEAR_PASSES else _KEPT
        kept *= bool(starts) and not is_exact
        if _softmax.maximum(*rows, *of_member, not is_point, kept, near.numbers, last.numbers) < 0:
            raise FloatingPointError("Coefficients of a softmax have no finite precision.")
        starts.append(near)
        if is_point and (np.abs(last.mean - near.mean).reshape(-1, len(self._largest)) @ self._largest).max() > _SHORT:
            last = near
        return Maximum(last, objective.at(last, is_point=is_point))


@dataclass(frozen=True, eq=False)
class TiltedBound:
    """A mean tilted bound by d contrasts, as the kernels hold it: (3 d d + 2 d + 2) numbers."""

    numbers: np.ndarray
    d: int

    def _square(self, start: int) -> np.ndarray:
        return self.numbers[start : start + self.d**2].reshape(self.d, self.d)

    @property
    def mean(self) -> np.ndarray:
        """Mean of the contrasts, (d,)."""
        return self.numbers[: self.d]

    @property
    def covariance(self) -> np.ndarray:
        """Covariance of the contrasts, (d, d); zeros of points."""
        return self._square(self.d)

    @property
    def precision(self) -> np.ndarray:
        """Inverse of the covariance, (d, d)."""
        return self._square(self.d + self.d**2)

    @property
    def slope(self) -> np.ndarray:
        """Derivatives of the bound by the mean, (d,)."""
        return self.numbers[self.d + 2 * self.d**2 :][: self.d]

    @property
    def curvature(self) -> np.ndarray:
        """Second derivatives by the mean, (d, d); half of them are derivatives by the covariance."""
        return self._square(2 * self.d + 2 * self.d**2)

    @property
    def value(self) -> float:
        """The bound, nats."""
        return float(self.numbers[-2])

    @property
    def squares(self) -> np.ndarray:
        """Expected squares of the contrasts, (d,)."""
        return self.mean**2 + np.diag(self.covariance)


@dataclass(frozen=True, eq=False)
class Objective:
    """The objective of one member: t (d,), the weight of all rows, and precisions (d,) of the contrasts."""

    t: np.ndarray
    total: float
    precision: np.ndarray

    def at(self, bound: TiltedBound, *, is_point: bool = False) -> float:
        """The objective where the mean tilted bound is known, nats."""
        if is_point:
            return float(self.t @ bound.mean - 0.5 * self.precision @ bound.mean**2 - self.total * bound.value)
        linear = self.t @ bound.mean - 0.5 * self.precision @ bound.squares - self.total * bound.value
        return float(linear + 0.5 * (bound.d * np.log(2 * np.pi * np.e) + bound.numbers[-1]))

    def best(self, bounds: Sequence[TiltedBound]) -> TiltedBound:
        """A copy of the bound where the objective is highest."""
        d = len(self.t)
        numbers = np.stack([each.numbers for each in bounds])
        means, variances = numbers[:, :d], numbers[:, d : d + d * d : d + 1]
        values = means @ self.t - 0.5 * (means**2 + variances) @ self.precision
        values += 0.5 * numbers[:, -1] - self.total * numbers[:, -2]
        return TiltedBound(numbers[values.argmax()].copy(), d)

    def start(self, design: Design, *, is_point: bool) -> TiltedBound:
        """The bound at mean 0, with the covariance that its curvature there gives."""
        flat = design.bound(np.zeros(len(self.t)), None)
        if is_point:
            return flat
        return design.bound(flat.mean, np.linalg.inv(np.diag(self.precision) + self.total * flat.curvature))


@dataclass(frozen=True, eq=False)
class Maximum:
    """A maximum: where it is, with the mean tilted bound there, and A, nats."""

    bound: TiltedBound
    value: float
