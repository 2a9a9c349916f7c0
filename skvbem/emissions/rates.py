"""Families whose columns have one rate each, with Gamma priors."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from skvbem.blocks import Blocks
from skvbem.emissions.base import draws_first
from skvbem.emissions.linear import LinearEmission
from skvbem.emissions.moments import weighted_means
from skvbem.emissions.parameters import check_positive, named_arrays
from skvbem.emissions.specification import NumericSpecification, is_hierarchical
from skvbem.families import Gamma
from skvbem.families.hierarchical import Hierarchical, hidden_rate_prior


class RateSpecification(NumericSpecification):
    """Columns of one rate each, whose prior is a Gamma distribution.

    Parameters
    ----------
    shape_prior : float or array-like of shape (n_columns,), default=1.0
        Shape of the prior of each rate.
    rate_prior : float, array-like of shape (n_columns,) or "hierarchical", default=None
        `shape_prior` / `rate_prior` is the prior mean of a rate; by default the rate of X. "hierarchical" has it
        learned from all components.
    """

    def __init__(self, shape_prior=1.0, rate_prior=None):
        self.shape_prior = shape_prior
        self.rate_prior = rate_prior

    def checked_parameters(self, parameters: Any) -> dict[str, np.ndarray]:
        """Rates above 0, (n_components, n_columns)."""
        arrays = named_arrays(type(self).__name__, parameters, {"rates": 2})
        check_positive(type(self).__name__, "rates", arrays["rates"])
        return arrays

    def prior_options(self, emission: Any, names: Sequence[str]) -> dict[str, Any]:
        """Shape and rate of Gamma distributions."""
        parameters = {"shape": "shape_prior", "rate": "rate_prior"}
        values = {option: getattr(self, name) for option, name in parameters.items()}
        return {
            option: value if option == "rate" and is_hierarchical(value) else self.positive(parameters[option], names)
            for option, value in values.items()
            if value is not None
        }


# Hyperprior of the rate of rates: its shape, and the floor under it, as a share of that of the data.
_SHAPE_OF_RATES, _FLOOR_OF_RATES = 0.5, 1e-6


@dataclass(frozen=True, eq=False)
class RateEmission(LinearEmission):
    """Columns of one rate each.

    Parameters
    ----------
    unit : ndarray of shape (n_columns,)
        The unit of each column: the mean of all data.
    """

    unit: np.ndarray

    @classmethod
    def for_data(cls, values: np.ndarray | Blocks, weight: np.ndarray | None = None) -> Self:
        """The emission of numbers (n_rows, n_columns), all >= 0, with weights (n_rows,)."""
        mean = weighted_means(values, weight)
        return cls(np.where(mean > 0, mean, 1.0))

    def parameters_of_draws(self, points: np.ndarray) -> dict[str, np.ndarray]:
        """The `parameters` of points with draws along a last axis, all at once."""
        return self.parameters(draws_first(points))

    @property
    def n_columns(self) -> int:
        """Columns of a row."""
        return len(self.unit)

    @property
    def cells_per_component(self) -> int:
        """Cells of natural parameters, and of statistics, of one component."""
        return 2 * self.n_columns

    def quantiles(self, posterior: Gamma, probability: float) -> dict[str, np.ndarray]:
        """Quantiles of the rates."""
        return self.parameters(posterior.quantiles(probability))

    def default_prior(self, n_components: int, *, shape=1.0, rate=None) -> Gamma | Hierarchical:
        """Gamma distributions of the rates, by default of shape 1 and with the rates of all data as their means.

        Parameters
        ----------
        n_components : int
        shape : float or array_like of shape (n_columns,)
        rate : float, array_like of shape (n_columns,) or "hierarchical", optional
            Such that `shape` / `rate` is the prior mean in the units of the data; that of the data if None. If
            "hierarchical", hidden, one for each column (see `skvbem.families.hierarchical`).
        """
        shape = np.broadcast_to(np.asarray(shape, dtype=float), self.unit.shape)
        if is_hierarchical(rate):
            return hidden_rate_prior(n_components, shape, _SHAPE_OF_RATES, shape, _FLOOR_OF_RATES)
        rate = shape if rate is None else np.asarray(rate, dtype=float) * self._unit_of_rate
        rate = np.broadcast_to(rate, self.unit.shape)
        return Gamma.from_parameters(np.tile(shape, (n_components, 1)), np.tile(rate, (n_components, 1)))

    @property
    @abstractmethod
    def _unit_of_rate(self) -> np.ndarray:
        """A rate of 1 in the emission's unit, in the units of the data, (n_columns,)."""
