"""What Gaussian emissions of all shapes share: their default prior."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from skvbem.emissions.base import Emission
from skvbem.emissions.specification import is_hierarchical
from skvbem.families.hierarchical import HiddenMeanPrecision
from skvbem.families.hyperpriors import floor_of_scales

#: Hyperprior of the weight of means, in data.
WEIGHT_OF_MEANS = HiddenMeanPrecision(shape=0.5, rate=0.5)


class NormalPriorEmission(Emission):
    """Measurements whose components have a mean and a precision of some shape.

    An `origin`, the `mean` of the data above it, in the emission's units, and their `total_weight` are fields of its
    subclasses.
    """

    origin: np.ndarray
    mean: np.ndarray
    total_weight: float

    def default_prior(
        self,
        n_components: int,
        *,
        mean_prior=None,
        mean_precision_prior: float | str = 1.0,
        degrees_of_freedom_prior: float | None = None,
        covariance_prior=None,
    ) -> Any:
        """One prior for all components: a Wishart prior of the precision matrix, restricted to its shape.

        Parameters
        ----------
        n_components : int
        mean_prior : array_like of shape (d,), optional
            The mean of the data if None.
        mean_precision_prior : float or "hierarchical", default=1.0
            Weight of `mean_prior`, in data; hidden, with a Gamma prior, if "hierarchical".
        degrees_of_freedom_prior : float, optional
            More than d - 1 if the precision is a matrix. If None, d there (d + 2 under a hidden covariance), and 1 for
            each variance of components whose columns are independent (3 under a hidden one).
        covariance_prior : array_like or "hierarchical", optional
            (d, d), (d,) or a number, as the shape of the precision is; `degrees_of_freedom_prior` times its inverse is
            the prior mean of a precision. That of the data if None, correlations shrunk toward 0 by d / (n + d).
            If "hierarchical", hidden, with a Wishart prior (see `skvbem.families.hierarchical`).
        """
        mean = self.mean
        if mean_prior is not None:
            mean = self._in_units(np.asarray(mean_prior, dtype=float) - self.origin)
        hidden = is_hierarchical(covariance_prior)
        dof = self._default_dof(hidden) if degrees_of_freedom_prior is None else float(degrees_of_freedom_prior)
        weight = WEIGHT_OF_MEANS if is_hierarchical(mean_precision_prior) else float(mean_precision_prior)
        covariance = covariance_prior if hidden or covariance_prior is None else np.asarray(covariance_prior, float)
        return self._prior(n_components, mean, weight, dof, covariance)

    @abstractmethod
    def hyperparameters(self, family: Any) -> dict[str, np.ndarray]:
        """What `default_prior` would have to be given to make each component of a prior or posterior.

        Returns
        -------
        dict of str to ndarray
            "mean" (n_components, d), "mean_precision" (n_components,), "degrees_of_freedom" (n_precisions,) and
            "covariance" (n_precisions, ...), in the units of the data. The mean of a precision is degrees of freedom
            times the inverse of this covariance.
        """

    @abstractmethod
    def _in_units(self, away: np.ndarray) -> np.ndarray:
        """A point (d,), given by its distance from the origin, in the emission's units."""

    @property
    def _floor(self) -> float:
        """What a hidden scale has at least, as a share of the variance of the data."""
        return floor_of_scales(self.total_weight)

    @abstractmethod
    def _default_dof(self, hidden: bool) -> float:
        """Degrees of freedom of a prior that says none, under a hidden covariance and under a known one."""

    @abstractmethod
    def _prior(
        self,
        n_components: int,
        mean: np.ndarray,
        mean_precision: float | HiddenMeanPrecision,
        dof: float,
        covariance: np.ndarray | str | None,
    ) -> Any:
        """The prior with a mean in the emission's units and a covariance in those of the data, or a hidden one."""
