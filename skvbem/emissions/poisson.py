r"""Counts: :math:`p(y \mid \lambda) = \lambda^y e^{-\lambda} / y!`, independent columns, Gamma priors of the rates.

Rates are measured in units of the data's means. Predictive: negative binomial. A missing cell is left out of the
product, which is what summing it out leaves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import pdtr

from skvbem._numerics import log_rising
from skvbem.blocks import Blocks
from skvbem.emissions.linear import LinearTable, log_base_of_counts
from skvbem.emissions.rates import RateEmission, RateSpecification
from skvbem.emissions.specification import CountCells, Parameters
from skvbem.families import Gamma


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


@dataclass(frozen=True, eq=False)
class PoissonEmission(RateEmission):
    """Poisson counts, independent given the component.

    Parameters
    ----------
    unit : ndarray of shape (n_columns,)
        The unit of each column's rate: the mean of all data.
    """

    def features(self, block: LinearTable) -> np.ndarray:
        """Counts, and 1: one for all columns where nothing is missing."""
        return np.concatenate(block.columns)

    def fold(self, natural: np.ndarray, complete: bool) -> np.ndarray:
        """Log rates multiply counts, rates multiply 1."""
        log_rate, rate = np.split(natural, 2, axis=-1)
        rate = rate * self.unit
        return np.concatenate([log_rate, rate.sum(axis=-1, keepdims=True) if complete else rate], axis=-1)

    def unfold(self, sums: np.ndarray, complete: bool) -> np.ndarray:
        """Counts are added to shapes, exposures to rates."""
        d = self.n_columns
        return np.concatenate([sums[..., :d], np.broadcast_to(sums[..., d:], sums[..., :d].shape) * self.unit], axis=-1)

    def log_base(self, values: np.ndarray) -> np.ndarray:
        """Sum of y ln(unit) - ln y! over observed cells, nats."""
        return log_base_of_counts(
            values, lambda counts: counts @ np.log(self.unit) - log_rising(1.0, counts).sum(axis=1)
        )

    def log_predictive(self, block: LinearTable, posterior: Gamma) -> np.ndarray:
        """Negative binomial log probabilities, nats, (n_rows, n_components)."""
        counts, observed = (x[:, :, None] for x in block.columns)
        shape, rate = posterior.shape.T[:, None], (posterior.rate / self.unit).T[:, None]
        cells = log_rising(shape, counts) - log_rising(1.0, counts)
        cells = cells - shape * np.log1p(1 / rate) - counts * np.log1p(rate)
        return (observed * cells).sum(axis=0)

    def sample(self, point: np.ndarray, components: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Counts drawn, floats."""
        return rng.poisson((point * self.unit)[components]).astype(float)

    def impute(self, block: LinearTable, point: np.ndarray, responsibilities: np.ndarray) -> np.ndarray:
        """Rows with missing counts replaced by their means."""
        values = np.asarray(block.values, dtype=float)
        return np.where(np.isnan(values), responsibilities @ (point * self.unit), values)

    def seeding_coordinates(self, block: LinearTable) -> np.ndarray:
        """Twice the square roots of counts, which spread by about 1 around their means."""
        roots = 2 * (np.sqrt(np.asarray(block.values, dtype=float)) - np.sqrt(self.unit))
        return np.nan_to_num(roots, nan=0.0)

    def parameters(self, point: np.ndarray) -> dict[str, np.ndarray]:
        """Rates, (n_components, n_columns)."""
        return {"rates": point * self.unit}

    def size_of_terms(self, table: LinearTable, weight: np.ndarray) -> float:
        """Logarithms are multiplied by counts."""
        return super().size_of_terms(table, weight) + float(weight @ np.nansum(table.values, axis=1, dtype=float))

    def point_of(self, parameters: Mapping[str, np.ndarray]) -> np.ndarray:
        """The rates in units; see `parameters`."""
        return parameters["rates"] / self.unit

    @property
    def _unit_of_rate(self) -> np.ndarray:
        return self.unit
