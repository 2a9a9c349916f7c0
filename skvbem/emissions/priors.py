"""Default priors that several emissions share: of Gaussians of any shape, and of rates."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from skvbem.emissions.base import Emission
from skvbem.families import Gamma


class NormalPriorEmission(Emission):
    """Measurements whose components have a mean and a precision of some shape.

    An `origin` and the `mean` of the data above it, in the emission's units, are fields of its subclasses.
    """

    origin: np.ndarray
    mean: np.ndarray

    def default_prior(
        self,
        n_components: int,
        *,
        mean_prior=None,
        mean_precision_prior: float = 1.0,
        degrees_of_freedom_prior: float | None = None,
        covariance_prior=None,
    ) -> Any:
        """One prior for all components: a Wishart prior of the precision matrix, restricted to its shape.

        Parameters
        ----------
        n_components : int
        mean_prior : array_like of shape (d,), optional
            The mean of the data if None.
        mean_precision_prior : float, default=1.0
            Weight of `mean_prior`, in data.
        degrees_of_freedom_prior : float, optional
            More than d - 1 if the precision is a matrix. d if None.
        covariance_prior : array_like, optional
            (d, d), (d,) or a number, as the shape of the precision is; `degrees_of_freedom_prior` times its inverse is
            the prior mean of a precision. That of the data if None, correlations shrunk toward 0 by d / (n + d).
        """
        mean = self.mean
        if mean_prior is not None:
            mean = self._in_units(np.asarray(mean_prior, dtype=float) - self.origin)
        dof = float(self.n_columns if degrees_of_freedom_prior is None else degrees_of_freedom_prior)
        covariance = None if covariance_prior is None else np.asarray(covariance_prior, dtype=float)
        return self._prior(n_components, mean, float(mean_precision_prior), dof, covariance)

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

    @abstractmethod
    def _prior(
        self, n_components: int, mean: np.ndarray, mean_precision: float, dof: float, covariance: np.ndarray | None
    ) -> Any:
        """The prior with a mean in the emission's units and a covariance in those of the data."""


class RatePriorEmission(Emission):
    """Columns of one rate each, measured in a `unit`."""

    unit: np.ndarray

    def default_prior(self, n_components: int, *, shape=1.0, rate=None) -> Gamma:
        """Gamma distributions of the rates, by default of shape 1 and with the rates of all data as their means.

        Parameters
        ----------
        n_components : int
        shape : float or array_like of shape (n_columns,)
        rate : float or array_like of shape (n_columns,), optional
            Such that `shape` / `rate` is the prior mean in the units of the data; that of the data if None.
        """
        shape = np.broadcast_to(np.asarray(shape, dtype=float), self.unit.shape)
        rate = shape if rate is None else np.asarray(rate, dtype=float) * self._unit_of_rate
        rate = np.broadcast_to(rate, self.unit.shape)
        return Gamma.from_parameters(np.tile(shape, (n_components, 1)), np.tile(rate, (n_components, 1)))

    @property
    @abstractmethod
    def _unit_of_rate(self) -> np.ndarray:
        """A rate of 1 in the emission's unit, in the units of the data, (n_columns,)."""
