r"""Positive numbers of normal logarithms: :math:`\ln y_j \sim N(\mu_{kj}, 1 / \lambda_{kj})`, independent columns.

All is that of the Gaussian of the logarithms, but for the density of a number, which is that of its logarithm over the
number. So evidences are in the units of the numbers, and compare with those of other densities of these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtr

from skvbem.blocks import Blocks
from skvbem.emissions.gaussian.diagonal import DiagonalGaussian
from skvbem.emissions.gaussian.specification import PRIOR_CONSTRAINTS, Gaussian
from skvbem.emissions.linear import LinearTable
from skvbem.emissions.parameters import check_positive, check_shape, named_arrays
from skvbem.emissions.profiles import Logarithms
from skvbem.emissions.specification import HIERARCHICAL, EmissionSpecification, Parameters
from skvbem.families import NormalGamma, NormalPoint


class LogNormal(Gaussian):
    """Columns of positive numbers whose logarithms are normally distributed in each component, independently.

    Parameters
    ----------
    mean_prior : array-like of shape (n_columns,), default=None
        Prior mean of the means of logarithms; by default that of X.
    mean_precision_prior : float, "hierarchical" or "by_column", default="hierarchical"
        How many rows `mean_prior` weighs, as of `Gaussian`.
    degrees_of_freedom_prior : float, default=None
        For the precision of each logarithm.
    covariance_prior : array-like of shape (n_columns,), "hierarchical" or None, default="hierarchical"
        Prior variances of logarithms in a component.

    See Also
    --------
    Gamma : positive numbers with lighter tails.

    Notes
    -----
    "means" are of the numbers themselves, exp(log mean + log variance / 2), and `impute` fills them in. A Gaussian of
    logarithms that X holds has the same components. Its bound is of these logarithms: the sum of all of them higher.
    Reports have medians, exp(log mean), and deviations of logarithms: under a density a mean is often infinite.

    Examples
    --------
    >>> import numpy as np
    >>> from skvbem import VBMixture
    >>> from skvbem.emissions import Gamma, LogNormal
    >>> incomes = np.exp(np.random.default_rng(0).normal(10.0, 0.8, size=(300, 1)))
    >>> model = VBMixture(1, emission=LogNormal(), random_state=0).fit(incomes)
    >>> model.parameters_["lognormal"]["log_means"].round(1).tolist()
    [[10.0]]
    >>> model.lower_bound_ > VBMixture(1, emission=Gamma(), random_state=0).fit(incomes).lower_bound_ + 5
    True
    """

    _parameter_constraints: ClassVar[dict] = PRIOR_CONSTRAINTS
    wanted: ClassVar[str] = "numbers are > 0; ZeroInflated(LogNormal()) takes zeros"
    has_covariances: ClassVar[bool] = False
    has_means: ClassVar[bool] = True
    covariance_type: Any = "diag"

    def __init__(
        self,
        mean_prior=None,
        mean_precision_prior=HIERARCHICAL,
        degrees_of_freedom_prior=None,
        covariance_prior=HIERARCHICAL,
    ):
        self.mean_prior = mean_prior
        self.mean_precision_prior = mean_precision_prior
        self.degrees_of_freedom_prior = degrees_of_freedom_prior
        self.covariance_prior = covariance_prior

    def impossible(self, values: np.ndarray) -> np.ndarray:
        """Numbers that are not above 0."""
        return values <= 0

    def for_data(self, values: np.ndarray | Blocks, weight: np.ndarray | None = None) -> LogNormalEmission:
        """The emission of numbers (n_rows, n_columns) with weights (n_rows,)."""
        self.check_parameters()
        logs = values.map(_logarithms) if isinstance(values, Blocks) else _logarithms((values, weight))[0]
        return LogNormalEmission.for_data(logs, weight)

    def checked_parameters(self, parameters: Any) -> dict[str, np.ndarray]:
        """Means and variances of logarithms, each (n_components, n_columns); those of numbers follow."""
        owner, follow = type(self).__name__, {"means", "deviations"}
        of_logs = {name: each for name, each in dict(parameters).items() if name not in follow}
        arrays = named_arrays(owner, of_logs, {"log_means": 2, "log_variances": 2})
        check_shape(owner, "log_variances", arrays["log_variances"], arrays["log_means"].shape, "that of the means")
        check_positive(owner, "log_variances", arrays["log_variances"])
        return arrays

    def typical_rows(self, parameters: Parameters) -> np.ndarray:
        """For each component a row a deviation of logarithms below its means, and one above."""
        mean, deviation = parameters["log_means"], np.sqrt(parameters["log_variances"])
        return np.exp(np.concatenate([mean - deviation, mean + deviation]))

    def explained_by(self, covariates: Sequence[str], names: Sequence[str]) -> Any:
        """No family: take logarithms first."""
        return EmissionSpecification.explained_by(self, covariates, names)

    def attributes(self, emission: Any, parameters: Parameters, prior: Any, posterior: Any) -> dict[str, Any]:
        """None besides `parameters_`."""
        return {}

    def deviations(self, parameters: Parameters) -> np.ndarray:
        """Deviations of numbers."""
        return parameters["deviations"]

    def profiles(
        self, names: Sequence[str], parameters: Parameters, intervals: Any, levels: Sequence[np.ndarray] = ()
    ) -> list[Any]:
        """Means and deviations for displays; reports have medians, and deviations of logarithms."""
        profiles: list[Any] = list(super().profiles(names, parameters, intervals, levels))
        return [
            Logarithms(
                *(each.name, each.values, each.deviations, each.intervals, each.of_deviations),
                medians=_of_column(np.exp, "log_means", parameters, intervals, j),
                spreads=_of_column(np.sqrt, "log_variances", parameters, intervals, j),
            )
            for j, each in enumerate(profiles)
        ]

    def cumulative_of_cells(self, values: np.ndarray, parameters: Parameters) -> tuple[np.ndarray, np.ndarray]:
        """Probabilities by logarithms, whose moments never overflow."""
        with np.errstate(divide="ignore"):
            logs = np.log(np.maximum(values, 0.0))
        up_to = ndtr((logs - parameters["log_means"][:, None]) / np.sqrt(parameters["log_variances"])[:, None])
        return up_to, up_to

    def cumulative(self, values: np.ndarray, means: np.ndarray, deviations: np.ndarray) -> np.ndarray:
        """Probabilities that numbers with these means and deviations are at most some values."""
        variance = np.log1p((deviations / means) ** 2)
        with np.errstate(divide="ignore"):
            logs = np.log(np.maximum(values, 0.0))
        return ndtr((logs - np.log(means) + variance / 2) / np.sqrt(variance))


def _of_column(of: Callable, name: str, parameters: Parameters, intervals: Any, j: int) -> tuple[np.ndarray, Any]:
    """A function of a parameter of one column in each component, and the ends of its intervals, if there are any."""
    has_ends = intervals is not None and all(name in each for each in intervals)
    return of(parameters[name][:, j]), tuple(of(each[name][:, j]) for each in intervals) if has_ends else None


def _logarithms(part: tuple) -> tuple:
    values, weight = part
    return np.log(np.asarray(values, dtype=float)), weight


@dataclass(frozen=True, eq=False)
class LogNormalEmission(DiagonalGaussian):
    """Log-normal numbers, independent given the component. Origins, means and units are of logarithms."""

    def measure(self, values: np.ndarray) -> np.ndarray:
        """Logarithms in units from the origin, (n_columns, n_rows)."""
        return super().measure(np.log(np.asarray(values, dtype=float)))

    def log_base(self, values: np.ndarray) -> np.ndarray:
        """Minus the sum of ln y over observed cells, nats."""
        return -np.nansum(np.log(np.asarray(values, dtype=float)), axis=1)

    def log_predictive(self, block: LinearTable, posterior: NormalGamma) -> np.ndarray:
        """Log densities of rows, whose logarithms are Student t distributed, nats, (n_rows, n_components)."""
        return super().log_predictive(block, posterior) + block.base[:, None]

    def sample(self, point: NormalPoint, components: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Numbers drawn."""
        return np.exp(super().sample(point, components, rng))

    def impute(self, block: LinearTable, point: NormalPoint, responsibilities: np.ndarray) -> np.ndarray:
        """Rows with missing numbers replaced by their means."""
        values = np.asarray(block.values, dtype=float)
        return np.where(np.isnan(values), responsibilities @ self.parameters(point)["means"], values)

    def parameters(self, point: NormalPoint) -> dict[str, np.ndarray]:
        """Means and variances of logarithms, means and deviations of numbers, (n_components, n_columns)."""
        of_logs = super().parameters(point)
        mean, variance = of_logs["means"], of_logs["covariances"]
        with np.errstate(over="ignore"):  # of logarithms that spread by 26 or more, a mean is above all doubles
            means = np.exp(mean + variance / 2)
            deviations = means * np.sqrt(np.expm1(variance))
        return {"log_means": mean, "log_variances": variance, "means": means, "deviations": deviations}

    def point_of(self, parameters: Mapping[str, np.ndarray]) -> NormalPoint:
        """Means and inverse variances of logarithms in units; see `parameters`."""
        return super().point_of({"means": parameters["log_means"], "covariances": parameters["log_variances"]})

    def quantiles(self, posterior: NormalGamma, probability: float) -> dict[str, np.ndarray]:
        """Quantiles of the means of logarithms."""
        return {"log_means": super().quantiles(posterior, probability)["means"]}
