"""Softmax regressions as families: coefficients that are Gaussian under q, at regressors that are known."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from skvbem.families.base import FlatFamily
from skvbem.families.hierarchical import Hierarchical
from skvbem.families.hyperpriors import GammaHyperprior
from skvbem.families.softmax_maximum import Design
from skvbem.families.softmax_proposals import Students, StudentsByRow

# Precision of coefficients, by row, of maximum likelihood: classes that covariates separate have no maximum. By hand:
# it keeps matrices positive, and takes less than a step may lose where log odds are in the thousands. Half and double
# change no maximum by 1e-4 nats, of separated classes and of covariates that nearly follow from others among them.
PRECISION_FLOOR = 1e-14


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
    def precision_cells(self) -> slice:
        """Cells of the precisions of the coefficients of each regressor."""

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

    # Draws that chains and weights take, exact ------------------------------------------------------------------------

    @abstractmethod
    def proposals(self, start: np.ndarray | None = None) -> Students | StudentsByRow:
        """Densities to draw the contrasts of members (n_cells, n) from: of members without rows their Gaussians.

        Parameters
        ----------
        start : ndarray of shape (n, n_free_parameters), optional
            Where the search for modes begins.
        """

    def contrasts_of_natural(self, natural: np.ndarray) -> np.ndarray:
        """Contrasts (n, n_free_parameters) of natural parameters (n_cells, n)."""
        return self.to_unconstrained(self.from_natural(natural)).T

    def natural_of_contrasts(self, free: np.ndarray) -> np.ndarray:
        """Natural parameters (n_cells, n) of contrasts (n, n_free_parameters)."""
        return self.natural(self.from_unconstrained(free.T))

    def log_joints(self, coordinates: np.ndarray, natural: np.ndarray) -> np.ndarray:
        """Coordinates times natural parameters (n_cells, n), of each row of probabilities apart, (n_rows, n), nats."""
        return (coordinates * natural).sum(axis=0)[None]

    def with_rows(self, taken: np.ndarray, natural: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Natural parameters (n_cells, n) of which rows that are taken, (n_rows, n), are those of others."""
        return np.where(taken, other, natural)

    def log_correction(self, statistics: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """ln of proposals over the prior, less what statistics and their lower bounds of evidences tell, nats."""
        proposals, prior, evidences = (self + statistics).proposals(), self.proposals(), self.log_evidence(statistics)

        def correction(natural: np.ndarray) -> np.ndarray:
            free = self.contrasts_of_natural(natural)[:, None]
            log_ratios = (proposals.log_density(free) - prior.log_density(free)).T
            return log_ratios - statistics.T @ natural + evidences[:, None]

        return correction

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


def with_hidden_precisions(prior: SoftmaxFamily, columns: np.ndarray) -> Hierarchical:
    r"""A prior whose slopes have hidden precisions instead, :math:`\tau_g \sim \mathrm{Gamma}(1, 1)`.

    Parameters
    ----------
    prior : SoftmaxFamily
        Its intercepts keep their precision.
    columns : ndarray of int, shape (n_regressors - 1,)
        The covariate that each regressor but the constant is of: contrasts of one category share a precision.
    """
    p, cells = prior.n_regressors, prior.precision_cells
    coordinates = prior.coordinates.copy()
    coordinates[cells.start + 1 : cells.stop] = 0.0
    c = prior.n_free_parameters // p
    groups, sizes = np.unique(columns, return_counts=True)
    loadings = np.zeros((len(groups), len(coordinates)))
    loadings[:, cells.start + 1 : cells.stop] = columns == groups[:, None]  # of minus half of the squares
    constant = 0.5 * c * (np.log(coordinates[cells.start]) - p * np.log(2 * np.pi))
    one = np.ones(len(groups))
    hyperprior = GammaHyperprior(one, one, 0.5 * c * sizes, loadings, float(constant))
    return Hierarchical(replace(prior, coordinates=coordinates), hyperprior)
