"""Waiting times as a user says them: `Exponential`."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from skvbem.blocks import Blocks
from skvbem.emissions.exponential import ExponentialEmission
from skvbem.emissions.specifications.base import Parameters
from skvbem.emissions.specifications.rates import RateSpecification


class Exponential(RateSpecification):
    """Columns of waiting times, each with a rate in each component.

    Parameters
    ----------
    shape_prior : float or array-like of shape (n_columns,), default=1.0
        Shape of the Gamma prior of each rate.
    rate_prior : float, array-like of shape (n_columns,) or "hierarchical", default=None
        `shape_prior` / `rate_prior` is the prior mean of a rate; by default one over the mean of
        X. "hierarchical" has it learned from all components, column by column.

    See Also
    --------
    Poisson : counts of events.

    Examples
    --------
    >>> from skvbem import VBMixture
    >>> from skvbem.emissions import Exponential
    >>> times = [[0.1], [0.2], [0.1], [9.0], [7.5], [0.3], [8.0], [0.2]]
    >>> model = VBMixture(2, emission=Exponential(), random_state=0).fit(times)
    >>> model.parameters_["exponential"]["rates"].shape
    (2, 1)
    """

    wanted: ClassVar[str] = "waiting times are >= 0"
    needs_variation: ClassVar[bool] = True
    has_cumulative: ClassVar[bool] = True

    def impossible(self, values: np.ndarray) -> np.ndarray:
        """Times before the start."""
        return values < 0

    def for_data(self, values: np.ndarray | Blocks, weight: np.ndarray | None = None) -> ExponentialEmission:
        """The emission of times (n_rows, n_columns) with weights (n_rows,)."""
        return ExponentialEmission.for_data(values, weight)

    def means(self, parameters: Parameters) -> np.ndarray:
        """One over the rates."""
        return 1 / parameters["rates"]

    def deviations(self, parameters: Parameters) -> np.ndarray:
        """One over the rates."""
        return 1 / parameters["rates"]

    def cumulative(self, values: np.ndarray, means: np.ndarray, deviations: np.ndarray) -> np.ndarray:
        """Probabilities that times with these means are at most some values."""
        return -np.expm1(-np.maximum(values, 0.0) / means)
