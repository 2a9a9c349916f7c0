"""Counts of events as a user says them: `Poisson`."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy.special import pdtr

from skvbem.blocks import Blocks
from skvbem.emissions.poisson import PoissonEmission
from skvbem.emissions.specifications.base import Parameters
from skvbem.emissions.specifications.counts import CountCells
from skvbem.emissions.specifications.rates import RateSpecification


class Poisson(CountCells, RateSpecification):
    """Columns of counts, each with a rate in each component.

    Parameters
    ----------
    shape_prior : float or array-like of shape (n_columns,), default=1.0
        Shape of the Gamma prior of each rate.
    rate_prior : float, array-like of shape (n_columns,) or "hierarchical", default=None
        `shape_prior` / `rate_prior` is the prior mean of a rate; by default the mean of X.
        "hierarchical" has it learned from all components, column by column.

    See Also
    --------
    Multinomial : counts that share a total.
    Exponential : times between events.

    Examples
    --------
    >>> from skvbem import VBMixture
    >>> from skvbem.datasets import load_earthquakes
    >>> from skvbem.emissions import Poisson
    >>> counts = load_earthquakes().data
    >>> model = VBMixture(2, emission=Poisson(shape_prior=2.0), random_state=0).fit(counts)
    >>> sorted(model.parameters_["poisson"]["rates"].round(1).tolist())
    [[15.7], [26.7]]
    """

    has_cumulative: ClassVar[bool] = True

    def for_data(self, values: np.ndarray | Blocks, weight: np.ndarray | None = None) -> PoissonEmission:
        """The emission of counts (n_rows, n_columns) with weights (n_rows,)."""
        return PoissonEmission.for_data(values, weight)

    def means(self, parameters: Parameters) -> np.ndarray:
        """Rates."""
        return parameters["rates"]

    def deviations(self, parameters: Parameters) -> np.ndarray:
        """Square roots of rates."""
        return np.sqrt(parameters["rates"])

    def cumulative(self, values: np.ndarray, means: np.ndarray, deviations: np.ndarray) -> np.ndarray:
        """Probabilities that counts with these rates are at most some values."""
        return np.where(values < 0, 0.0, pdtr(np.maximum(values, 0.0), means))
