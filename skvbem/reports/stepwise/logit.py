r"""Multinomial logits of classes that are known by evidence alone, by maximum likelihood.

With regressors u and coefficients :math:`b_k`, of which those of a reference class are 0, class k has probability
:math:`\pi_k(u) \propto \exp(b_k^\top u)`. Two objectives are maximized, nats:

.. math::

    L = \sum_j \omega_j \ln \sum_k \pi_k(u_j)\, \ell_{jk}, \qquad
    L^* = \sum_j \omega_j \sum_k d_{jk} \ln \pi_k(u_j), \quad \sum_k d_{jk} = 1.

In L an entry j knows its class by the likelihoods :math:`\ell_{jk}` of what was seen, a row or its assignment. In
:math:`L^*` by corrected proportions :math:`d_{jk}`, which may be negative; it is concave all the same, since
:math:`\ln \pi_k` is a linear function less the same log-sum-exp for every class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from skvbem._lazy import cached_property

# Gradient of the mean objective, by standardized regressors, at which a maximum is reached.
_GRADIENT = 1e-10
# Gradient at which the end of a climb counts as a maximum, and information of a row about a standardized coefficient
# below which there is none: a share of 1e-7 of the rows has other odds.
_REACHED, _FLAT = 1e-6, 1e-7
# Part of a coefficient in directions without a maximum, from which it has no standard error.
_PART_OF_FLAT = 1e-3


class LogitFit(NamedTuple):
    """A maximum of an objective.

    Parameters
    ----------
    coefficients : ndarray of shape (n_classes, n_regressors)
        Those of the reference class 0.
    objective : float
        Nats.
    covariance : ndarray of shape (d, d)
        Of the free coefficients, class after class: the sandwich over rows; NaN where the objective has no maximum.
    has_maximum : bool
    """

    coefficients: np.ndarray
    objective: float
    covariance: np.ndarray
    has_maximum: bool


@dataclass(frozen=True, eq=False)
class ClassLogit:
    """The objective of a multinomial logit.

    Parameters
    ----------
    regressors : ndarray of shape (n_rows, n_regressors)
        The first is a constant.
    row : ndarray of int, shape (n_entries,)
        The row of each entry.
    weight : ndarray of shape (n_entries,)
        Of each entry, beside that of its row.
    evidence : ndarray of shape (n_entries, n_classes)
        Likelihoods of each entry given its class, or corrected proportions.
    row_weight : ndarray of shape (n_rows,)
    reference : int
    corrected : bool
        Whether `evidence` holds corrected proportions.
    """

    regressors: np.ndarray
    row: np.ndarray
    weight: np.ndarray
    evidence: np.ndarray
    row_weight: np.ndarray
    reference: int
    corrected: bool

    @cached_property
    def _units(self) -> tuple[np.ndarray, np.ndarray]:
        """Means and standard deviations of the regressors, 0 and 1 of the constant."""
        total = self.row_weight.sum()
        mean = self.row_weight @ self.regressors / total
        deviation = np.sqrt(self.row_weight @ (self.regressors - mean) ** 2 / total)
        mean[0], deviation[0] = 0.0, 1.0
        return mean, np.where(deviation > 0, deviation, 1.0)

    @cached_property
    def _standardized(self) -> np.ndarray:
        mean, deviation = self._units
        return (self.regressors - mean) / deviation

    @cached_property
    def _free_classes(self) -> np.ndarray:
        return np.delete(np.arange(self.evidence.shape[1]), self.reference)

    def maximum(self) -> LogitFit:
        """The best maximum from equal proportions, and from the logit of normalized evidence, which is concave."""
        n_classes, d = self.evidence.shape[1], (self.evidence.shape[1] - 1) * self.regressors.shape[1]
        starts = [np.zeros(d)]
        if not self.corrected:
            proportions = self.evidence / self.evidence.sum(axis=1, keepdims=True)
            naive = ClassLogit(
                self.regressors, self.row, self.weight, proportions, self.row_weight, self.reference, corrected=True
            )
            starts.append(naive._climbed(np.zeros(d)))
        free = max((self._climbed(start) for start in starts), key=self._objective)
        gradient, information, by_row = self._derivatives(free)
        total = self.row_weight.sum()
        curvature, directions = np.linalg.eigh(information / total)
        known = curvature > _FLAT
        bread = (directions[:, known] / (total * curvature[known])) @ directions[:, known].T
        covariance = bread @ ((by_row.T * self.row_weight) @ by_row) @ bread
        inside = bool(known.all() and np.abs(gradient).max(initial=0.0) <= _REACHED * total)
        to_own = self._to_own_units
        unknown = np.abs(to_own @ directions[:, ~known]).max(axis=1, initial=0.0) > _PART_OF_FLAT
        covariance = to_own @ covariance @ to_own.T
        covariance[unknown], covariance[:, unknown] = np.nan, np.nan
        coefficients = np.zeros((n_classes, self.regressors.shape[1]))
        coefficients[self._free_classes] = (to_own @ free).reshape(n_classes - 1, -1)
        return LogitFit(coefficients, self._objective(free), covariance, inside)

    @property
    def _to_own_units(self) -> np.ndarray:
        """The map from coefficients of standardized regressors to those of regressors as they are, (d, d)."""
        mean, deviation = self._units
        one = np.diag(1.0 / deviation)
        one[0] -= mean / deviation
        return np.kron(np.eye(len(self._free_classes)), one)

    def _climbed(self, start: np.ndarray) -> np.ndarray:
        """The maximum that a trust region of Newton's steps reaches."""
        total = self.row_weight.sum()
        result = minimize(
            lambda free: -self._objective(free) / total,
            start,
            jac=lambda free: -self._derivatives(free)[0] / total,
            hess=lambda free: self._derivatives(free)[1] / total,
            method="trust-exact",
            options={"gtol": _GRADIENT, "maxiter": 500},
        )
        return result.x

    def _log_proportions(self, free: np.ndarray) -> np.ndarray:
        """ln pi of every row, (n_rows, n_classes)."""
        logits = np.zeros((len(self.regressors), self.evidence.shape[1]))
        logits[:, self._free_classes] = self._standardized @ free.reshape(len(self._free_classes), -1).T
        return logits - logsumexp(logits, axis=1, keepdims=True)

    def _objective(self, free: np.ndarray) -> float:
        log_proportions, weight = self._log_proportions(free)[self.row], self.weight * self.row_weight[self.row]
        if self.corrected:
            return float(weight @ (self.evidence * log_proportions).sum(axis=1))
        with np.errstate(divide="ignore"):
            return float(weight @ logsumexp(log_proportions + np.log(self.evidence), axis=1))

    def _derivatives(self, free: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Gradient (d,), minus second derivatives (d, d), and gradients of rows of weight 1, (n_rows, d)."""
        log_proportions, classes, u = self._log_proportions(free), self._free_classes, self._standardized
        proportions = np.exp(log_proportions)[:, classes]
        posterior, target = None, self.evidence
        if not self.corrected:
            with np.errstate(divide="ignore"):
                target = posterior = softmax(log_proportions[self.row] + np.log(self.evidence), axis=1)
        of_rows = np.zeros((len(u), len(classes)))
        np.add.at(of_rows, self.row, self.weight[:, None] * target[:, classes])
        total = np.bincount(self.row, self.weight, len(u))
        slope = of_rows - total[:, None] * proportions
        by_row = (slope[:, :, None] * u[:, None, :]).reshape(len(u), -1)
        curvature = _covariances(proportions) * total[:, None, None]
        if posterior is not None:
            of_entries = _covariances(posterior[:, classes]) * self.weight[:, None, None]
            np.subtract.at(curvature, self.row, of_entries)
        weighted = curvature * self.row_weight[:, None, None]
        d = by_row.shape[1]
        information = np.einsum("iab,ip,iq->apbq", weighted, u, u, optimize=True).reshape(d, d)
        return self.row_weight @ by_row, information, by_row


def _covariances(proportions: np.ndarray) -> np.ndarray:
    """Covariance matrices of indicators of classes, (n, n_classes, n_classes)."""
    return np.eye(proportions.shape[1]) * proportions[:, :, None] - proportions[:, :, None] * proportions[:, None, :]
