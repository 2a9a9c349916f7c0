r"""Positive numbers: :math:`p(y) = \beta^\alpha y^{\alpha-1} e^{-\beta y} / \Gamma(\alpha)`, independent columns.

The prior of shape and rate is `skvbem.families.one_dimensional.ShapeRate`. Numbers are measured in units of their
means, so that the prior moves with the data. A missing cell is left out of the product.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy.special import gammainc

from skvbem._compat import Interval
from skvbem.blocks import Blocks
from skvbem.emissions.base import draws_first
from skvbem.emissions.conjugate_given_one import ConjugateGivenOne
from skvbem.emissions.linear import LinearTable
from skvbem.emissions.moments import weighted_means, weighted_moments
from skvbem.emissions.parameters import check_positive, check_shape, named_arrays
from skvbem.emissions.resolution import resolution
from skvbem.emissions.specification import NumericSpecification, Parameters
from skvbem.families.one_dimensional import ShapeRate, ShapeRatePoint

#: Rows that the prior of a rate is worth by default. With .3 and 1, shapes are biased where means of components differ
#: twelvefold; .1 is little worse (`reproduction.emission_coverage`).
PSEUDO_ROWS = 0.03


class Gamma(NumericSpecification):
    """Columns of positive numbers, such as durations, distances and amounts, with a mean and a shape in each component.

    The coefficient of variation of a component is one over the square root of its shape. A shape of 1 makes the
    numbers exponential.

    Parameters
    ----------
    pseudo_rows : float or array-like of shape (n_columns,), default=0.03
        Rows at the mean of X that the prior of a mean is worth. A component whose mean is far below pays for each of
        them by its shape: with one row, intervals of shapes hold two thirds of what they say.
    resolution : float, default=None
        How finely numbers are measured, as a share of their size: the coefficient of variation of a component is
        never less. By default the smallest gap between the logarithms of X, .001 at the least. Without it
        equal numbers would make a component of any density.

    See Also
    --------
    Exponential : the numbers of shape 1.
    Gaussian : numbers of any sign.

    Notes
    -----
    The shape has the prior :math:`p(\\alpha) \\propto (1 + \\alpha)^{-2}` below :math:`\\delta^{-2}`, with the
    resolution :math:`\\delta`. It is integrated out numerically, so that with one component the lower bound is the
    evidence.

    Examples
    --------
    >>> import numpy as np
    >>> from skvbem import VBMixture
    >>> from skvbem.emissions import Gamma
    >>> rng = np.random.default_rng(0)
    >>> steps = np.concatenate([rng.gamma(1.0, 1.0, 100), rng.gamma(9.0, 1.0, 100)])[:, None]
    >>> model = VBMixture(2, emission=Gamma(), random_state=0).fit(steps)
    >>> sorted(model.parameters_["gamma"]["means"].round().ravel().tolist())
    [1.0, 9.0]
    """

    _parameter_constraints: ClassVar[dict] = {"resolution": [Interval(Real, 0, 1, closed="right"), None]}
    wanted: ClassVar[str] = "numbers are > 0; ZeroInflated(Gamma()) takes zeros"
    needs_variation: ClassVar[bool] = True
    has_cumulative: ClassVar[bool] = True
    has_means: ClassVar[bool] = True

    def __init__(self, pseudo_rows=PSEUDO_ROWS, resolution=None):
        self.pseudo_rows = pseudo_rows
        self.resolution = resolution

    def impossible(self, values: np.ndarray) -> np.ndarray:
        """Numbers that are not above 0."""
        return values <= 0

    def for_data(self, values: np.ndarray | Blocks, weight: np.ndarray | None = None) -> GammaEmission:
        """The emission of numbers (n_rows, n_columns) with weights (n_rows,)."""
        return GammaEmission.for_data(values, weight, self.resolution)

    def prior_options(self, emission: Any, names: Sequence[str]) -> dict[str, Any]:
        """Pseudo-rows of the rates."""
        return {"pseudo_rows": self.positive("pseudo_rows", names)}

    def checked_parameters(self, parameters: Any) -> dict[str, np.ndarray]:
        """Means and shapes above 0, each (n_components, n_columns)."""
        owner = type(self).__name__
        arrays = named_arrays(owner, parameters, {"means": 2, "shapes": 2})
        check_shape(owner, "shapes", arrays["shapes"], arrays["means"].shape, "that of the means")
        for name, each in arrays.items():
            check_positive(owner, name, each)
        return arrays

    def typical_rows(self, parameters: Parameters) -> np.ndarray:
        """For each component a row a deviation below its means in logarithms, and one above."""
        means, spread = parameters["means"], np.exp(1 / np.sqrt(parameters["shapes"]))
        return np.concatenate([means / spread, means * spread])

    def means(self, parameters: Parameters) -> np.ndarray:
        """Means."""
        return parameters["means"]

    def deviations(self, parameters: Parameters) -> np.ndarray:
        """Means over the square roots of shapes."""
        return parameters["means"] / np.sqrt(parameters["shapes"])

    def cumulative(self, values: np.ndarray, means: np.ndarray, deviations: np.ndarray) -> np.ndarray:
        """Probabilities that numbers with these means and deviations are at most some values."""
        shape = (means / deviations) ** 2
        return gammainc(shape, np.maximum(values, 0.0) * shape / means)


@dataclass(frozen=True, eq=False)
class GammaEmission(ConjugateGivenOne):
    """Gamma distributed numbers, independent given the component.

    Parameters
    ----------
    unit : ndarray of shape (n_columns,)
        The unit of each column: the mean of all data.
    log_mean, log_deviation : ndarray of shape (n_columns,)
        Means and deviations of the logarithms, for starts.
    largest_shape : ndarray of shape (n_columns,)
        One over the square of the resolution.
    """

    unit: np.ndarray
    log_mean: np.ndarray
    log_deviation: np.ndarray
    largest_shape: np.ndarray

    @classmethod
    def for_data(cls, values: np.ndarray | Blocks, weight: np.ndarray | None, finest: float | None) -> GammaEmission:
        """The emission of numbers (n_rows, n_columns), with a resolution, or that of the data if None."""
        mean = weighted_means(values, weight)
        logs = values.map(_logarithms) if isinstance(values, Blocks) else _logarithms((values, weight))[0]
        gaps = resolution(values, weight, np.log) if finest is None else np.full(len(mean), float(finest))
        moments = weighted_moments(logs, weight)
        return cls(np.where(mean > 0, mean, 1.0), moments.origin + moments.mean, moments.deviation, gaps**-2.0)

    @property
    def n_columns(self) -> int:
        """Columns of a row."""
        return len(self.unit)

    def default_prior(self, n_components: int, *, pseudo_rows=PSEUDO_ROWS) -> ShapeRate:
        """Priors of shapes and rates.

        Parameters
        ----------
        n_components : int
        pseudo_rows : float or array_like of shape (n_columns,)
        """
        rows = np.broadcast_to(np.asarray(pseudo_rows, dtype=float), self.unit.shape)
        return ShapeRate.from_parameters(n_components, rows, self.largest_shape)

    def measure(self, values: np.ndarray) -> np.ndarray:
        """Numbers in units, (n_columns, n_rows)."""
        return np.divide(values.T, self.unit[:, None], order="C")

    def features(self, block: LinearTable) -> np.ndarray:
        """1 (one for all columns where nothing is missing), numbers, and their logarithms."""
        numbers, observed = block.columns
        logs = np.log(np.where(observed > 0, numbers, 1.0))
        return np.concatenate([observed, numbers, logs])

    def log_base(self, values: np.ndarray) -> np.ndarray:
        """Minus the sum of ln y over observed cells, nats."""
        return -np.nansum(np.log(np.asarray(values, dtype=float)), axis=1)

    def log_predictive(self, block: LinearTable, posterior: ShapeRate) -> np.ndarray:
        """Log densities of rows, shapes and rates integrated out, nats, (n_rows, n_components)."""
        numbers, observed = block.columns
        observed = np.broadcast_to(observed, numbers.shape)
        logs = np.log(np.where(observed > 0, numbers, 1.0))
        nothing = np.zeros(numbers.shape)
        densities = posterior.log_predictive(np.stack([nothing, nothing, observed, numbers, logs]))
        return densities.sum(axis=1).T + block.base[:, None]

    def sample(self, point: ShapeRatePoint, components: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Numbers drawn, none below the smallest float."""
        drawn = rng.standard_gamma(point.shape[components]) / point.rate[components] * self.unit
        return np.maximum(drawn, np.finfo(float).tiny)

    def impute(self, block: LinearTable, point: ShapeRatePoint, responsibilities: np.ndarray) -> np.ndarray:
        """Rows with missing numbers replaced by their means."""
        values = np.asarray(block.values, dtype=float)
        return np.where(np.isnan(values), responsibilities @ (point.shape / point.rate * self.unit), values)

    def predictive_point(self, posterior: ShapeRate) -> ShapeRatePoint:
        """The most probable shapes, and rates with which means are the expected ones."""
        shape = posterior.mode().shape
        return ShapeRatePoint(shape, shape / posterior.expected_means())

    def seeding_coordinates(self, block: LinearTable) -> np.ndarray:
        """Logarithms from their mean, in deviations."""
        logs = (np.log(np.asarray(block.values, dtype=float)) - self.log_mean) / self.log_deviation
        return np.nan_to_num(logs, nan=0.0)

    def parameters(self, point: ShapeRatePoint) -> dict[str, np.ndarray]:
        """Means in the units of the data, and shapes, each (n_components, n_columns)."""
        return {"means": point.shape / point.rate * self.unit, "shapes": point.shape}

    def parameters_of_draws(self, points: ShapeRatePoint) -> dict[str, np.ndarray]:
        """The `parameters` of points with draws along a last axis, all at once."""
        return self.parameters(draws_first(points))

    def point_of(self, parameters: Mapping[str, np.ndarray]) -> ShapeRatePoint:
        """Shapes, and rates per unit; see `parameters`."""
        return ShapeRatePoint(parameters["shapes"], parameters["shapes"] / parameters["means"] * self.unit)

    def quantiles(self, posterior: ShapeRate, probability: float) -> dict[str, np.ndarray]:
        """Quantiles of means and of shapes, each by itself."""
        means = posterior.quantiles_of_means(probability) * self.unit
        return {"means": means, "shapes": posterior.quantiles_of_x(probability)}


def _logarithms(part: tuple) -> tuple:
    values, weight = part
    return np.log(np.asarray(values, dtype=float)), weight
