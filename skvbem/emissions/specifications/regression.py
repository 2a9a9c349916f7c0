"""Responses and what explains them as a user says it: `Regression`."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone

from skvbem._compat import Interval, StrOptions
from skvbem._names import shown
from skvbem._numerics import diagonal_places
from skvbem.blocks import Blocks
from skvbem.emissions.base import HIERARCHICAL, is_hierarchical
from skvbem.emissions.regression import RegressionEmission
from skvbem.emissions.specifications.base import NormalSpecification, Parameters
from skvbem.emissions.specifications.given import check_positive, check_shape, named_arrays


class Regression(NormalSpecification):
    r"""Columns of measurements, each a linear regression on given columns in each component.

    Parameters
    ----------
    covariates : sequence of str or int, default=()
        Columns of X that explain the columns of this emission, by name or position. They are given, not modeled;
        another group may model them.
    lags : int, default=0
        How many earlier values of its own columns in the same sequence explain each column: autoregression. `VBHMM`
        alone has sequences. The first rows of a sequence, as many as there are lags, have no earlier values: all else
        is conditioned on them.
    intercept : bool, default=True
        Whether there is a constant.
    coefficient_precision_prior : float or "hierarchical", default="hierarchical"
        How sure the prior is that coefficients are 0; "hierarchical" has it learned from all components, for each
        regressor of each column.
    degrees_of_freedom_prior : float, default=None
        For the precision of each noise: by default 3 under a hierarchical `variance_prior`, and 1 under a known one.
    variance_prior : float, array-like of shape (n_columns,), "hierarchical" or None, default="hierarchical"
        Prior variance of the noise of each column; "hierarchical" has it learned from all components. None is the
        variance of the column.

    See Also
    --------
    Gaussian : measurements without regressors.

    Notes
    -----
    In component k, :math:`y_j \sim N(c_{kj}^\top r, 1 / \rho_{kj})` with regressors r, which are a constant, the
    covariates and the lagged values. Columns are independent given these. The prior is Normal-Gamma,

    .. math::

        \rho_{kj} \sim \mathrm{Gamma}\left(\tfrac{\nu}{2}, \tfrac{\nu}{2} s_j^2\right), \qquad
        c_{kji} \mid \rho_{kj} \sim N(0, 1 / (\rho_{kj} \kappa_{ji})),

    Columns are measured in standard deviations from their means, so that the intercept is the value at the means of
    all regressors. Without an intercept they are measured in root mean squares from 0. A number as
    `coefficient_precision_prior` is :math:`\kappa`, else :math:`\kappa_{ji} \sim \mathrm{Gamma}(\frac12, \frac12)`. A
    hierarchical variance is :math:`s_j^2 \sim \mathrm{Gamma}(\frac12, \frac12)` in units of the variance of the
    column. With known ones the posterior of complete data, and their evidence, have closed forms.

    The evidence is that of the columns given their regressors. A missing column is integrated out; a missing regressor
    beside an observed column is refused.

    Examples
    --------
    Two lines, of which nobody knows which row belongs to which:

    >>> import numpy as np
    >>> from skvbem import VBMixture
    >>> from skvbem.emissions import Regression
    >>> rng = np.random.default_rng(0)
    >>> u = rng.uniform(-1, 1, size=200)
    >>> slope = np.where(rng.random(200) < 0.5, 3.0, -2.0)
    >>> X = np.column_stack([1.0 + slope * u + rng.normal(scale=0.2, size=200), u])
    >>> model = VBMixture(2, emission=Regression(covariates=[1]), random_state=0).fit(X)
    >>> sorted(model.parameters_["regression"]["coefficients"].ravel().round(1).tolist())
    [-2.0, 3.0]
    """

    _parameter_constraints: ClassVar[dict] = {
        "covariates": ["array-like"],
        "lags": [Interval(Integral, 0, None, closed="left")],
        "intercept": ["boolean"],
        "coefficient_precision_prior": [Interval(Real, 0, None, closed="neither"), StrOptions({HIERARCHICAL})],
        "degrees_of_freedom_prior": [Interval(Real, 0, None, closed="neither"), None],
        "variance_prior": "no_validation",
    }

    needs_variation: ClassVar[bool] = True

    def __init__(
        self,
        covariates=(),
        *,
        lags=0,
        intercept=True,
        coefficient_precision_prior=HIERARCHICAL,
        degrees_of_freedom_prior=None,
        variance_prior=HIERARCHICAL,
    ):
        self.covariates = covariates
        self.lags = lags
        self.intercept = intercept
        self.coefficient_precision_prior = coefficient_precision_prior
        self.degrees_of_freedom_prior = degrees_of_freedom_prior
        self.variance_prior = variance_prior

    def check_parameters(self) -> None:
        """Refuse parameters that are wrong for any table, or leave nothing to explain columns by."""
        super().check_parameters()
        if not (self.intercept or self.lags or len(self.covariates)):
            raise ValueError(
                f"{type(self).__name__} has nothing to explain its columns by: intercept=False, no 'covariates' and "
                "no 'lags'. Give one of them."
            )

    def for_data(self, values: np.ndarray | Blocks, weight: np.ndarray | None = None) -> RegressionEmission:
        """The emission of rows of responses, covariates and lagged responses, NaN where missing."""
        self.check_parameters()
        options = {"n_covariates": len(self.covariates), "n_lags": self.lags, "intercept": self.intercept}
        return RegressionEmission.for_data(values, weight, **options)

    def prior_options(self, emission: Any, names: Sequence[str]) -> dict[str, Any]:
        """Precision of coefficients, degrees of freedom and variance of the noise."""
        variance = self.variance_prior
        if variance is not None and not is_hierarchical(variance):
            variance = self.positive("variance_prior", names)
        for name in ("coefficient_precision_prior", "degrees_of_freedom_prior"):
            value = getattr(self, name)
            if isinstance(value, Real) and not 1e-100 <= float(value) <= 1e12:
                raise ValueError(
                    f"The {name!r} parameter of {type(self).__name__} must lie between 1e-100 and 1e12. Got "
                    f"{shown(value)} instead."
                )
        return {
            "coefficient_precision_prior": self.coefficient_precision_prior,
            "degrees_of_freedom_prior": self.degrees_of_freedom_prior,
            "variance_prior": variance,
        }

    def checked_parameters(self, parameters: Any) -> dict[str, np.ndarray]:
        """Coefficients of covariates, then of lagged values, variances of the noise, and the values at 0."""
        owner = type(self).__name__
        needed: dict[str, int] = {"coefficients": 3, "variances": 2} | ({"intercepts": 2} if self.intercept else {})
        if self.lags == len(self.covariates) == 0:
            parameters = {"coefficients": np.empty((*np.shape(parameters.get("variances")), 0)), **dict(parameters)}
        arrays = named_arrays(owner, parameters, needed, or_else=["means", "intercepts"])
        k, d, _ = arrays["coefficients"].shape
        n_regressors = len(self.covariates) + self.lags * d
        words = "(components, columns, what is given)"
        check_shape(owner, "coefficients", arrays["coefficients"], (k, d, n_regressors), words)
        for name in needed.keys() - {"coefficients"}:
            check_shape(owner, name, arrays[name], (k, d), "(components, columns)")
        check_positive(owner, "variances", arrays["variances"])
        return arrays

    def typical_rows(self, parameters: Parameters) -> np.ndarray:
        """Values at 0 with their noise, beside covariates of mean 0 and variance 1."""
        noise = np.sqrt(parameters["variances"])
        at_zero = parameters.get("intercepts", np.zeros(noise.shape))
        responses = np.concatenate([at_zero - noise, at_zero + noise])
        signs = np.repeat([-1.0, 1.0], len(noise))[:, None]
        covariates = np.tile(signs, (1, len(self.covariates)))
        return np.concatenate([responses, covariates, np.tile(responses, (1, self.lags))], axis=1)

    def explained_by(self, covariates: Sequence[str], names: Sequence[str]) -> Regression:
        """A regression on these covariates, with the same priors."""
        return clone(self).set_params(covariates=list(covariates))

    def attributes(self, emission: Any, parameters: Parameters, prior: Any, posterior: Any) -> dict[str, Any]:
        """How precisely the prior knows coefficients to be 0, in units of the noise; the constant first."""
        packed = prior.split(prior.coordinates)[0][: emission.n_columns]
        return {"coefficient_precision_prior_": packed[:, diagonal_places(emission.n_regressors)]}

    def further_rows(
        self, names: Sequence[str], parameters: Parameters, ends: tuple[Parameters, Parameters] | None
    ) -> list[tuple]:
        """What each column gains per unit of what is given."""
        given = [*self.covariates, *(f"{name} {lag} before" for lag in range(1, self.lags + 1) for name in names)]

        def cells(of: Parameters, j: int, i: int) -> np.ndarray:
            return of["coefficients"][:, j, i]

        return [
            (
                f"{name} per {regressor}",
                cells(parameters, j, i),
                None if ends is None else tuple(cells(each, j, i) for each in ends),
            )
            for j, name in enumerate(names)
            for i, regressor in enumerate(given)
        ]

    def means(self, parameters: Parameters) -> np.ndarray:
        """What columns are expected to hold where their regressors are at their means."""
        return parameters["means"]

    def deviations(self, parameters: Parameters) -> np.ndarray:
        """Standard deviations of the noise."""
        return np.sqrt(parameters["variances"])
