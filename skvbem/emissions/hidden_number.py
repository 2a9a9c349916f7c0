r"""Numbers that no row observes, in networks: :math:`N(c_k^\top r, 1)`.

The unit of such a number is that of its noise, since data say nothing of it: a free scale would be one more hidden
variable, whose price the bound pays for nothing. So is its origin: there is a constant where components differ, that is
below categories, and none elsewhere. Regressors are measured in standard deviations from their means.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import ndtri

from skvbem.blocks import Blocks
from skvbem.emissions.linear import LinearTable
from skvbem.emissions.moments import weighted_moments
from skvbem.emissions.regression import PRECISION_OF_COEFFICIENTS, Regression, RegressionEmission
from skvbem.emissions.specification import HIERARCHICAL, is_hierarchical
from skvbem.families.base import ConjugateFamily
from skvbem.families.hierarchical import with_learned_precisions
from skvbem.families.unit_noise import UnitNoise


class HiddenNumber(Regression):
    """A hidden node of a network that holds a number.

    Parameters
    ----------
    covariates : sequence of str, default=()
        Names of the parents that hold numbers.
    intercept : bool, default=False
        Whether there is a constant in each component.
    coefficient_precision_prior : float or "hierarchical", default="hierarchical"
        As of `Regression`.
    """

    _parameter_constraints: ClassVar[dict] = {
        name: Regression._parameter_constraints[name]
        for name in ("covariates", "intercept", "coefficient_precision_prior")
    }
    needs_variation: ClassVar[bool] = False
    lags = 0
    joint_prior: ClassVar[None] = None

    def __init__(self, covariates=(), *, intercept=False, coefficient_precision_prior=HIERARCHICAL):
        self.covariates = covariates
        self.intercept = intercept
        self.coefficient_precision_prior = coefficient_precision_prior

    def check_parameters(self) -> None:
        """Refuse parameters of the wrong type."""
        self._validate_params()

    def for_data(self, values: np.ndarray | Blocks, weight: np.ndarray | None = None) -> HiddenNumberEmission:
        """The emission of rows of the number, all of it missing, and of its parents."""
        return HiddenNumberEmission.for_data(values, weight, intercept=self.intercept)

    def prior_options(self, emission: Any, names: Sequence[str]) -> dict[str, Any]:
        """Precision of coefficients."""
        self.check_size_of("coefficient_precision_prior")
        return {"coefficient_precision_prior": self.coefficient_precision_prior}


@dataclass(frozen=True, eq=False)
class HiddenNumberEmission(RegressionEmission):
    """A number that no row observes, at the regressors of rows."""

    @property
    def is_hidden(self) -> bool:
        """True."""
        return True

    @classmethod
    def for_data(cls, values: np.ndarray | Blocks, weight: np.ndarray | None = None, **options: Any) -> Self:
        """The emission of rows of the number, all of it missing, and of its parents."""
        moments = weighted_moments(values, weight)
        origin, unit = moments.origin[1:], moments.deviation[1:]
        one, zero, means = np.ones(1), np.zeros(1), moments.mean[1:] / unit
        return cls(zero, one, origin, unit, means, 0, options["intercept"], moments.total_weight)

    def default_prior(
        self,
        n_components: int,
        *,
        coefficient_precision_prior: float | str | np.ndarray = 1.0,
        degrees_of_freedom_prior: float | None = None,
        variance_prior=None,
        hides_scale: bool = False,
    ) -> ConjugateFamily:
        """One prior of coefficients about 0 for all components; their precisions may be hidden. The noise is known.

        Parameters
        ----------
        n_components : int
        coefficient_precision_prior : float or "hierarchical", default=1.0
        degrees_of_freedom_prior, variance_prior : None
        hides_scale : False
        """
        learned = is_hierarchical(coefficient_precision_prior)
        precision = np.full(self.n_regressors, 1.0 if learned else coefficient_precision_prior)
        prior = UnitNoise.from_precision(precision, n_components)
        if not learned or not self.n_regressors:
            return prior
        return with_learned_precisions(prior, np.ones(self.n_regressors, dtype=bool), *PRECISION_OF_COEFFICIENTS)

    def log_predictive(self, block: LinearTable, posterior: Any) -> np.ndarray:
        """Normal log densities of numbers at their regressors, nats, (n_rows, n_components)."""
        (measured, observed), regressors = block.columns, np.nan_to_num(self.regressors(block.values))
        spread = 1 + np.einsum("in,kij,jn->kn", regressors, posterior.covariance, regressors)
        away = measured - posterior.mean @ regressors
        return np.asarray(observed * -0.5 * (np.log(2 * np.pi * spread) + away**2 / spread)).T

    def quantiles(self, posterior: Any, probability: float) -> dict[str, np.ndarray]:
        """Quantiles of slopes and of values at 0 and at the mean of what is given, each of them normal."""
        mean, covariance, ends = posterior.mean, posterior.covariance, {}
        for name, (_, per) in self._maps().items():
            width = np.sqrt(np.einsum("ji,kil,jl->kj", per, covariance, per))
            ends[name] = mean @ per.T + ndtri(probability) * width
        each = mean + ndtri(probability) * np.sqrt(np.diagonal(covariance, axis1=-2, axis2=-1))
        return ends | {"coefficients": each[:, None, int(self.intercept) :] * self._slope_units}
