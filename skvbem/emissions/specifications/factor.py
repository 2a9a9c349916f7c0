"""Measurements that a few hidden factors explain, as a user says them: `FactorGaussian`."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from skvbem._compat import Interval, StrOptions
from skvbem._names import shown
from skvbem.blocks import Blocks
from skvbem.emissions.factor.analyzer import FactorAnalyzer
from skvbem.emissions.specifications.base import NormalSpecification, Parameters, finite, positive


class FactorGaussian(NormalSpecification):
    r"""Columns of measurements whose covariances a few factors explain, hidden in each row.

    In component k, :math:`y = \mu_k + \Lambda_k x + \epsilon` with factors :math:`x \sim N(0, I)` and a noise for each
    column (factor analysis) or one for all (probabilistic principal components) [Beal chapter 4]. A mixture of them
    has covariances that are full where the data ask for it, with far fewer numbers than matrices.

    Parameters
    ----------
    n_factors : int or "auto", default=1
        Factors of each component. "auto" chooses a number for each component by itself: factors are added and deleted
        as long as that raises `lower_bound_`, which needs ``method="vb"``; see `n_factors_` and `moves_`.
    noise : {"diag", "spherical"}, default="diag"
        A variance of the noise for each column, or one for all columns of a component.
    tied : bool, default=False
        Whether all components share the noise.
    relevance : {"ard", "fixed"}, default="ard"
        Whether each factor's loadings have a precision of their own, which is learned (automatic relevance
        determination), or one that is known, 1.
    relevance_prior : pair of float, default=(1.0, 1.0)
        Shape and rate of the Gamma prior of the precisions of loadings, in units of the noise.
    groups : list of columns, or mapping of names to columns, default=None
        Groups that together hold all columns, such as one group for each instrument. Each factor's loadings have a
        precision in each group, so that the factor may matter to some groups and not to others (group factor analysis
        [Virtanen et al. 2012; Klami et al. 2015]). Columns are named as in the `emission` parameter. None is one
        group. It needs ``relevance="ard"``.
    noise_prior : pair of float, default=(1.0, 0.5)
        Shape and rate of the Gamma prior of the precision of a noise, in units in which columns have variance 1.
    mean_prior : array-like of shape (n_columns,), default=None
        Prior mean of the means; by default the mean of X.
    mean_precision_prior : float, default=1.0
        How many rows `mean_prior` weighs.

    See Also
    --------
    Gaussian : covariances without factors.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skvbem import VBMixture
    >>> from skvbem.emissions import FactorGaussian
    >>> X = load_iris().data
    >>> model = VBMixture(2, emission=FactorGaussian(n_factors=1), random_state=0).fit(X)
    >>> model.parameters_["factor"]["loadings"].shape
    (2, 4, 1)
    """

    _parameter_constraints: ClassVar[dict] = {
        "n_factors": [Interval(Integral, 0, None, closed="left"), StrOptions({"auto"})],
        "noise": [StrOptions({"diag", "spherical"})],
        "tied": ["boolean"],
        "relevance": [StrOptions({"ard", "fixed"})],
        "mean_precision_prior": [Interval(Real, 0, None, closed="neither")],
    }

    needs_variation: ClassVar[bool] = True
    has_covariances: ClassVar[bool] = True

    def __init__(
        self,
        n_factors=1,
        *,
        noise="diag",
        tied=False,
        relevance="ard",
        relevance_prior=(1.0, 1.0),
        groups=None,
        noise_prior=(1.0, 0.5),
        mean_prior=None,
        mean_precision_prior=1.0,
    ):
        self.n_factors = n_factors
        self.noise = noise
        self.tied = tied
        self.relevance = relevance
        self.relevance_prior = relevance_prior
        self.groups = groups
        self.noise_prior = noise_prior
        self.mean_prior = mean_prior
        self.mean_precision_prior = mean_precision_prior

    def check_parameters(self) -> None:
        """Refuse parameters that are wrong for any table, or with each other."""
        super().check_parameters()
        if self.groups is not None and self.relevance == "fixed":
            raise ValueError(
                f"The 'groups' parameter of {type(self).__name__} says which columns share a precision of their "
                "loadings that is learned, and relevance='fixed' makes all of these 1. Leave out 'groups', or take "
                "relevance='ard'."
            )

    def for_data(self, values: np.ndarray | Blocks, weight: np.ndarray | None = None) -> FactorAnalyzer:
        """The emission of measurements (n_rows, n_columns), NaN where missing, with weights (n_rows,)."""
        self.check_parameters()
        options = {"spherical": self.noise == "spherical", "tied": self.tied, "group_of": self._group_of()}
        n_factors = None if self.n_factors == "auto" else self.n_factors
        return FactorAnalyzer.for_data(values, weight, n_factors=n_factors, **options)

    def _group_of(self) -> tuple[int, ...]:
        """The group of each column, groups being lists of the places of their columns; empty without any."""
        places = [(place, group) for group, columns in enumerate(self.groups or ()) for place in columns]
        return tuple(group for _, group in sorted(places))

    def prior_options(self, emission: Any, names: Sequence[str]) -> dict[str, Any]:
        """Mean, its precision in rows, noise and relevance of factors."""
        relevance: Any = 1.0 if self.relevance == "fixed" else self._pair("relevance_prior")
        options = {
            "mean_precision_prior": float(self.mean_precision_prior),
            "noise_prior": self._pair("noise_prior"),
            "relevance_prior": relevance,
        }
        if self.mean_prior is not None:
            options["mean_prior"] = finite(type(self).__name__, "mean_prior", self.mean_prior, (len(names),))
        return options

    def _pair(self, name: str) -> tuple[float, float]:
        """A parameter that is the shape and the rate of a Gamma distribution."""
        owner, value = type(self).__name__, getattr(self, name)
        numbers = positive(owner, name, value)
        if numbers.shape != (2,):
            raise ValueError(
                f"The {name!r} parameter of {owner} must be a pair of numbers > 0, a shape and a rate. Got "
                f"{shown(value)} instead."
            )
        return float(numbers[0]), float(numbers[1])

    def attributes(self, emission: Any, parameters: Parameters, prior: Any, posterior: Any) -> dict[str, Any]:
        """How many factors each component has, and where columns come in groups how relevant each is to each group."""
        attributes = {"n_factors_": np.array(emission.numbers(len(parameters["means"])))}
        if self.groups is not None and posterior is not None:
            attributes["relevance_"] = emission.relevance(prior)
        return attributes

    def means(self, parameters: Parameters) -> np.ndarray:
        """Means."""
        return parameters["means"]

    def deviations(self, parameters: Parameters) -> np.ndarray:
        """Square roots of the variances."""
        return np.sqrt(np.diagonal(parameters["covariances"], axis1=-2, axis2=-1))

    def covariances(self, parameters: Parameters, columns: Sequence[int]) -> np.ndarray:
        """Covariance matrices of some columns in each component, (n_components, n, n)."""
        return np.asarray(parameters["covariances"])[:, list(columns)][:, :, list(columns)]
