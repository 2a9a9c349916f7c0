"""Families whose columns have one rate each, with Gamma priors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from skvbem.emissions.base import is_hierarchical
from skvbem.emissions.specifications.base import NumericSpecification
from skvbem.emissions.specifications.given import check_positive, named_arrays


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
        given = {option: getattr(self, name) for option, name in parameters.items()}
        return {
            option: value if option == "rate" and is_hierarchical(value) else self.positive(parameters[option], names)
            for option, value in given.items()
            if value is not None
        }
