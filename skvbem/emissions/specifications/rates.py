"""Families whose columns have one rate each, with Gamma priors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from skvbem.emissions.specifications.base import NumericSpecification, positive_of_columns


class RateSpecification(NumericSpecification):
    """Columns of one rate each, whose prior is a Gamma distribution.

    Parameters
    ----------
    shape_prior : float or array-like of shape (n_columns,), default=1.0
        Shape of the prior of each rate.
    rate_prior : float or array-like of shape (n_columns,), default=None
        `shape_prior` / `rate_prior` is the prior mean of a rate; by default the rate of X.
    """

    def __init__(self, shape_prior=1.0, rate_prior=None):
        self.shape_prior = shape_prior
        self.rate_prior = rate_prior

    def prior_options(self, emission: Any, names: Sequence[str]) -> dict[str, Any]:
        """Shape and rate of Gamma distributions."""
        owner, n = type(self).__name__, len(names)
        options = {}
        for option, name in (("shape", "shape_prior"), ("rate", "rate_prior")):
            value = getattr(self, name)
            if value is not None:
                options[option] = positive_of_columns(owner, name, value, n, "one for each of its columns")
        return options
