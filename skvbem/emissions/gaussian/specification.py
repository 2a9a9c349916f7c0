"""Measurements as a user says them: `Gaussian`."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from skvbem._arguments import is_option
from skvbem._compat import Interval, StrOptions
from skvbem._names import shown
from skvbem.blocks import Blocks
from skvbem.emissions.gaussian.dense import DenseGaussian
from skvbem.emissions.gaussian.diagonal import DiagonalGaussian
from skvbem.emissions.parameters import check_covariances, check_positive, check_shape, named_arrays
from skvbem.emissions.regression import Regression
from skvbem.emissions.specification import (
    BY_COLUMN,
    HIERARCHICAL,
    NormalSpecification,
    Parameters,
    finite,
    is_hierarchical,
)

#: Emission and options of each shape of a covariance, named as in scikit-learn: "full" has a matrix for each component,
#: "tied" one for all, "diag" a variance for each component and column, "spherical" one for each component.
COVARIANCE_TYPES: dict[str, tuple[Any, dict]] = {
    "full": (DenseGaussian, {"tied": False}),
    "tied": (DenseGaussian, {"tied": True}),
    "diag": (DiagonalGaussian, {"spherical": False}),
    "spherical": (DiagonalGaussian, {"spherical": True}),
}

# Most degrees of freedom under a covariance that is learned: digits are lost with more.
_MAX_DEGREES_OF_FREEDOM = 1e6
# How far from the data a prior mean may be, and how much narrower than they a prior covariance, in standard deviations:
# scales, differences of squares, keep ten digits then, as many as the law asks for that no step lowers the bound.
_FARTHEST = 1e3


class Gaussian(NormalSpecification):
    r"""Columns of measurements, jointly normal in each component.

    Parameters
    ----------
    covariance_type : {"full", "tied", "diag", "spherical"}, default="full"
        A covariance matrix for each component, one for all, a variance for each column, one variance for each
        component.
    mean_prior : array-like of shape (n_columns,), default=None
        Prior mean of the means; by default the mean of X.
    mean_precision_prior : float, "hierarchical" or "by_column", default="hierarchical"
        How many rows `mean_prior` weighs; "hierarchical" has it learned from how far apart the components are,
        "by_column" column by column, where these are independent ("diag", "spherical").
    degrees_of_freedom_prior : float, default=None
        For precisions; more than d - 1 where d columns share a matrix. By default d there, and 1 for each variance of
        "diag" and "spherical"; d + 2 and 3 under a hierarchical `covariance_prior`.
    covariance_prior : array-like, "hierarchical" or None, default="hierarchical"
        Prior covariance of a component, (d, d) for "full" and "tied", (d,) for "diag", a number for "spherical".
        "hierarchical" has it learned from all components. None is the covariance of X, its correlations shrunk towards
        0 a little where rows are few.

    See Also
    --------
    Poisson : counts, which look like measurements and are not.

    Notes
    -----
    Priors are Normal-Wishart where the precision is a matrix, Normal-Gamma where it is a number for each column or for
    all. Taken from X, they move and scale with it: no unit of measure makes a difference.

    Examples
    --------
    >>> from skvbem import VBMixture
    >>> from skvbem.datasets import load_faithful
    >>> from skvbem.emissions import Gaussian
    >>> X = load_faithful().data
    >>> model = VBMixture(2, emission=Gaussian("tied", mean_precision_prior=0.1), random_state=0).fit(X)
    >>> model.covariances_.shape
    (2, 2)
    >>> model.set_params(emission__covariance_type="diag").fit(X).covariances_.shape
    (2, 2)
    """

    _parameter_constraints: ClassVar[dict] = {
        "covariance_type": [StrOptions(set(COVARIANCE_TYPES))],
        "mean_precision_prior": [Interval(Real, 0, None, closed="neither"), StrOptions({HIERARCHICAL, BY_COLUMN})],
        "degrees_of_freedom_prior": [Interval(Real, 0, None, closed="neither"), None],
    }

    needs_variation: ClassVar[bool] = True
    has_covariances: ClassVar[bool] = True

    def __init__(
        self,
        covariance_type="full",
        *,
        mean_prior=None,
        mean_precision_prior=HIERARCHICAL,
        degrees_of_freedom_prior=None,
        covariance_prior=HIERARCHICAL,
    ):
        self.covariance_type = covariance_type
        self.mean_prior = mean_prior
        self.mean_precision_prior = mean_precision_prior
        self.degrees_of_freedom_prior = degrees_of_freedom_prior
        self.covariance_prior = covariance_prior

    def for_data(
        self, values: np.ndarray | Blocks, weight: np.ndarray | None = None
    ) -> DenseGaussian | DiagonalGaussian:
        """The emission of measurements (n_rows, n_columns), NaN where missing, with weights (n_rows,)."""
        self.check_parameters()
        emission, options = COVARIANCE_TYPES[self.covariance_type]
        return emission.for_data(values, weight, **options)

    def prior_options(self, emission: Any, names: Sequence[str]) -> dict[str, Any]:
        """Mean, its precision in rows, degrees of freedom and covariance."""
        owner, rows, dof = type(self).__name__, self.mean_precision_prior, self.degrees_of_freedom_prior
        least = emission.n_columns - 1 if self.covariance_type in ("full", "tied") else 0
        if not isinstance(rows, str) and not 1e-100 <= rows <= 1e12:
            raise ValueError(
                f"The 'mean_precision_prior' parameter of {owner} must lie between 1e-100 and 1e12 rows. Got {rows!r} "
                "instead."
            )
        if is_option(rows, BY_COLUMN) and least:
            raise ValueError(
                f"mean_precision_prior={BY_COLUMN!r} of {owner} needs columns that are independent in a component: "
                f"covariance_type 'diag' or 'spherical'. Got {self.covariance_type!r}."
            )
        if dof is not None and dof <= least:
            raise ValueError(
                f"The 'degrees_of_freedom_prior' parameter of {owner} must be above {least}, the number of "
                f"measurements less one. Got {dof!r} instead."
            )
        if dof is not None and dof > _MAX_DEGREES_OF_FREEDOM and is_hierarchical(self.covariance_prior):
            raise ValueError(
                f"The 'degrees_of_freedom_prior' parameter of {owner} must be at most {_MAX_DEGREES_OF_FREEDOM:g} "
                f"where 'covariance_prior' is {HIERARCHICAL!r}: with more, all components have one covariance. Got "
                f"{dof!r} instead. Take covariance_type='tied', or give 'covariance_prior'."
            )
        options: dict[str, Any] = {"mean_precision_prior": rows, "degrees_of_freedom_prior": dof}
        if self.mean_prior is not None:
            options["mean_prior"] = self._mean(emission)
        is_given = not (self.covariance_prior is None or is_hierarchical(self.covariance_prior))
        options["covariance_prior"] = self._covariance(emission) if is_given else self.covariance_prior
        return options

    def checked_parameters(self, parameters: Any) -> dict[str, np.ndarray]:
        """Means and covariances; beside these, precisions that are their inverses."""
        owner, kind = type(self).__name__, self.covariance_type
        axes = {"full": 3, "tied": 2, "diag": 2, "spherical": 1}[kind]
        arrays = named_arrays(owner, parameters, {"means": 2, "covariances": axes}, or_else=["precisions"])
        covariances, (k, d) = arrays["covariances"], arrays["means"].shape
        shape = {"full": (k, d, d), "tied": (d, d), "diag": (k, d), "spherical": (k,)}[kind]
        said = {"full": "(components, columns, columns)", "tied": "(columns, columns)", "diag": "(components, columns)"}
        words = f"{said.get(kind, '(components,)')} for covariance_type={kind!r}"
        check_shape(owner, "covariances", covariances, shape, words)
        if kind in ("full", "tied"):
            check_covariances(owner, "covariances", covariances.reshape(-1, d, d))
        else:
            check_positive(owner, "covariances", covariances)
        return arrays

    def typical_rows(self, parameters: Parameters) -> np.ndarray:
        """For each component rows along the axes of its covariance, on both sides of its mean."""
        means, d = parameters["means"], parameters["means"].shape[1]
        roots = np.sqrt(d) * np.linalg.cholesky(self.covariances(parameters, range(d)))
        steps = np.concatenate([roots, -roots], axis=-1).swapaxes(-1, -2)
        return (means[:, None] + steps).reshape(-1, d)

    def explained_by(self, covariates: Sequence[str], names: Sequence[str]) -> Regression:
        """A regression; of one column with default priors, which a regression has otherwise."""
        if len(names) > 1 or repr(self) not in _AT_DEFAULTS:
            raise ValueError(
                "a Gaussian node with such parents is a regression, with priors of its own. Give Regression() as its "
                "emission"
            )
        return Regression(list(covariates))

    def attributes(self, emission: Any, parameters: Parameters, prior: Any, posterior: Any) -> dict[str, Any]:
        """Means, covariances and precisions, and the hyperparameters, under scikit-learn's names."""
        attributes: dict[str, Any] = {f"{name}_": value for name, value in parameters.items()}
        prior_parameters = emission.hyperparameters(prior)  # the same for all components
        if is_option(self.mean_precision_prior, BY_COLUMN):
            prior_parameters["mean_precision"] = prior.mean_precision
        attributes |= {f"{name}_prior_": values[0] for name, values in prior_parameters.items()}
        if posterior is not None:
            posterior_parameters = emission.hyperparameters(posterior)
            if is_option(self.mean_precision_prior, BY_COLUMN):
                posterior_parameters["mean_precision"] = posterior.mean_precision
            attributes |= {f"{name}_": posterior_parameters[name] for name in ("mean_precision", "degrees_of_freedom")}
        return attributes

    def means(self, parameters: Parameters) -> np.ndarray:
        """Means."""
        return parameters["means"]

    def deviations(self, parameters: Parameters) -> np.ndarray:
        """Square roots of the variances."""
        means, covariances = parameters["means"], np.asarray(parameters["covariances"])
        variances = {
            "full": lambda: np.diagonal(covariances, axis1=-2, axis2=-1),
            "tied": lambda: np.diagonal(covariances)[None],
            "diag": lambda: covariances,
            "spherical": lambda: covariances[:, None],
        }[self.covariance_type]()
        return np.sqrt(np.broadcast_to(variances, means.shape))

    def covariances(self, parameters: Parameters, columns: Sequence[int]) -> np.ndarray:
        """Covariance matrices of some columns in each component, (n_components, n, n)."""
        covariances, columns = np.asarray(parameters["covariances"], dtype=float), list(columns)
        if self.covariance_type == "tied":
            return np.tile(covariances[np.ix_(columns, columns)], (len(parameters["means"]), 1, 1))
        if self.covariance_type == "full":
            return covariances[:, columns][:, :, columns]
        is_diagonal = self.covariance_type == "diag"
        variances = covariances[:, columns] if is_diagonal else np.tile(covariances[:, None], (1, len(columns)))
        return variances[:, :, None] * np.eye(len(columns))

    # Parameters of the prior ------------------------------------------------------------------------------------------

    def _mean(self, emission: Any) -> np.ndarray:
        """The mean that is given, checked."""
        owner = type(self).__name__
        mean = finite(owner, "mean_prior", self.mean_prior, (emission.n_columns,))
        with np.errstate(over="ignore"):
            away = float(np.abs(emission.seeding_coordinates(emission.prepare(mean[None]))).max())
        rows = 1.0 if isinstance(self.mean_precision_prior, str) else self.mean_precision_prior
        if away > _FARTHEST or rows * away**2 > _FARTHEST**2:
            raise ValueError(
                f"The 'mean_prior' parameter of {owner} must lie within {_FARTHEST:g} standard deviations of the mean "
                f"of X, fewer where 'mean_precision_prior' is above 1. Got {shown(self.mean_prior)}, which is "
                f"{away:.3g} away, and a 'mean_precision_prior' of {self.mean_precision_prior}."
            )
        return mean

    def _covariance(self, emission: Any) -> np.ndarray:
        """The covariance that is given, checked."""
        owner, value, d = type(self).__name__, self.covariance_prior, emission.n_columns
        shape = {"full": (d, d), "tied": (d, d), "diag": (d,), "spherical": ()}[self.covariance_type]
        covariance = finite(owner, "covariance_prior", value, shape)
        if covariance.ndim == 2:
            unit = np.sqrt(np.abs(np.diagonal(covariance)))
            symmetric = np.allclose(covariance, covariance.T, rtol=1e-8, atol=0.0) and (unit > 0).all()
            positive = symmetric and np.linalg.eigvalsh(covariance / unit / unit[:, None]).min() > 0
            inside = positive and np.linalg.eigvalsh(emission.in_frame(covariance)).min()
            wanted = "symmetric and positive definite."
        else:
            positive, wanted = bool((covariance > 0).all()), "> 0."
            inside = positive and (covariance / emission.unit[: max(covariance.size, 1)] ** 2).min()
        if not positive:
            raise ValueError(
                f"The 'covariance_prior' parameter of {owner} must be {wanted} Got {shown(value)} instead."
            )
        if inside < _FARTHEST**-2:
            raise ValueError(
                f"The 'covariance_prior' parameter of {owner} must leave components at least {1 / _FARTHEST:g} times "
                f"as wide as X in every direction. Got {shown(value)}."
            )
        return covariance


#: Constraints of the parameters of its priors, for emissions of which a Gaussian is a part.
PRIOR_CONSTRAINTS = {name: each for name, each in Gaussian._parameter_constraints.items() if name != "covariance_type"}

# Gaussians whose parameters say nothing but a shape, which is the same for one column.
_AT_DEFAULTS = frozenset(repr(Gaussian(kind)) for kind in ("full", "diag", "spherical"))
