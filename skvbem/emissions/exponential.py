r"""Waiting times: :math:`p(y \mid \lambda) = \lambda e^{-\lambda y}`, independent columns, Gamma priors of the rates.

Times are measured in units of their means, so that the prior moves with the data. Predictive: Lomax. A missing cell is
left out of the product.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skvbem.blocks import Blocks
from skvbem.emissions.linear import LinearTable
from skvbem.emissions.rates import RateEmission, RateSpecification
from skvbem.emissions.specification import Parameters
from skvbem.families import Gamma


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


@dataclass(frozen=True, eq=False)
class ExponentialEmission(RateEmission):
    """Exponential waiting times, independent given the component.

    Parameters
    ----------
    unit : ndarray of shape (n_columns,)
        The unit of each column: the mean of all data.
    """

    def measure(self, values: np.ndarray) -> np.ndarray:
        """Times in units, (n_columns, n_rows)."""
        return np.divide(values.T, self.unit[:, None], order="C")

    def features(self, block: LinearTable) -> np.ndarray:
        """1 (one for all columns where nothing is missing), and times."""
        return np.concatenate(block.columns[::-1])

    def fold(self, natural: np.ndarray, complete: bool) -> np.ndarray:
        """Log rates multiply 1, rates multiply times."""
        log_rate, rate = np.split(natural, 2, axis=-1)
        log_rate = log_rate - np.log(self.unit)
        return np.concatenate([log_rate.sum(axis=-1, keepdims=True) if complete else log_rate, rate], axis=-1)

    def unfold(self, sums: np.ndarray, complete: bool) -> np.ndarray:
        """Events are added to shapes, times to rates."""
        if not complete:
            return sums
        events = np.broadcast_to(sums[..., :1], (*sums.shape[:-1], self.n_columns))
        return np.concatenate([events, sums[..., 1:]], axis=-1)

    def log_predictive(self, block: LinearTable, posterior: Gamma) -> np.ndarray:
        """Lomax log densities, nats, (n_rows, n_components)."""
        times, observed = block.columns
        shape, rate = posterior.shape.T[:, None], posterior.rate.T[:, None]
        cells = np.log(shape / rate) - (shape + 1) * np.log1p(times[:, :, None] / rate)
        return (observed[:, :, None] * (cells - np.log(self.unit)[:, None, None])).sum(axis=0)

    def sample(self, point: np.ndarray, components: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Times drawn."""
        return rng.standard_exponential((len(components), self.n_columns)) / point[components] * self.unit

    def impute(self, block: LinearTable, point: np.ndarray, responsibilities: np.ndarray) -> np.ndarray:
        """Rows with missing times replaced by their means."""
        values = np.asarray(block.values, dtype=float)
        return np.where(np.isnan(values), responsibilities @ (self.unit / point), values)

    def predictive_point(self, posterior: Gamma) -> np.ndarray:
        """Rates that are one over the predictive means, which have no bound where a shape is 1 or less.

        There the expected rate stands in.
        """
        shape = posterior.shape
        return np.where(shape > 1, shape - 1, shape) / posterior.rate

    def seeding_coordinates(self, block: LinearTable) -> np.ndarray:
        """Logarithms of times in units, those of next to no time at a thousandth."""
        times, observed = block.columns
        return (observed * np.log(np.maximum(times, 1e-3))).T

    def parameters(self, point: np.ndarray) -> dict[str, np.ndarray]:
        """Rates, in the time of the data, (n_components, n_columns)."""
        return {"rates": point / self.unit}

    def point_of(self, parameters: Mapping[str, np.ndarray]) -> np.ndarray:
        """The rates in units; see `parameters`."""
        return parameters["rates"] * self.unit

    @property
    def _unit_of_rate(self) -> np.ndarray:
        return 1 / self.unit
