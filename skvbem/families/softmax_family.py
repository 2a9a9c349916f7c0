"""Softmax regressions as families: coefficients that are Gaussian under q, at regressors that are known."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from skvbem.families.base import FlatFamily
from skvbem.families.softmax_maximum import Design

# Precision of coefficients, by row, of maximum likelihood: classes that covariates separate have no maximum. By hand:
# it keeps matrices positive, and takes less than 1e-9 nats a row away.
PRECISION_FLOOR = 1e-12


@dataclass(frozen=True, eq=False)
class SoftmaxFamily(FlatFamily):
    """Coefficients of softmax regressions, whose normalizer A is a maximum over Gaussians.

    Parameters
    ----------
    coordinates : ndarray of shape (n_cells, ...)
    design : Design
    """

    design: Design

    def for_run(self) -> Self:
        """The prior of a run, whose maxima begin with those that the run has reached."""
        return replace(self, design=self.design.for_run())

    @property
    def n_regressors(self) -> int:
        """Number of regressors, the constant among them."""
        return self.design.regressors.shape[1]

    @property
    @abstractmethod
    def mean(self) -> np.ndarray:
        """Expected coefficients, (..., n_labels, n_regressors, ...)."""

    def center(self) -> np.ndarray:
        """The mean, the mode of the Gaussian."""
        return self.mean

    def mode(self, basis: str = "natural") -> np.ndarray:
        """Coefficients of highest density, (..., n_labels, n_regressors, ...); the same in both bases."""
        return self._modes(self.coordinates)

    def most_likely(self, statistics: np.ndarray) -> np.ndarray:
        """The coefficients at which these statistics are most likely, whatever the prior."""
        return self._modes(self._nearly_flat(statistics))

    @abstractmethod
    def _modes(self, coordinates: np.ndarray) -> np.ndarray:
        """Coefficients at which points with these coordinates are densest."""

    @abstractmethod
    def _nearly_flat(self, statistics: np.ndarray) -> np.ndarray:
        """Statistics with the least precisions that keep a maximum."""

    def log_normalizer_increment(self, statistics: np.ndarray) -> np.ndarray:
        """A(self + statistics) - A(self), nats."""
        return self.log_normalizer_gain(self + statistics, statistics)

    def log_normalizer_gain(self, posterior: Self, added: np.ndarray) -> np.ndarray:
        """A(posterior) - A(self), nats."""
        before, after = self.log_normalizer(), posterior.log_normalizer()
        return after - before.reshape(before.shape + (1,) * (np.ndim(added) - 1 - before.ndim))

    @property
    def probability_shift(self) -> np.ndarray:
        """No shift: densities of coefficients are the same in both bases."""
        return np.zeros(len(self.coordinates))

    def _batch(self, of_members: list) -> np.ndarray:
        """Arrays of members stacked along the axes of the batch."""
        stacked = np.stack(of_members, axis=-1)
        return stacked.reshape((*stacked.shape[:-1], *self.coordinates.shape[1:]))
