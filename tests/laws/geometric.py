"""An emission of somebody else's: trials until a success, in one file, as the page on extending the library says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import gammaln

from skvbem.emissions import LinearEmission, NumericSpecification, n_columns_of, weighted_means
from skvbem.families import Dirichlet


@dataclass(frozen=True, eq=False)
class GeometricEmission(LinearEmission):
    """p(y | k) = p (1 - p)^y, independent columns; of each p a Beta distribution: a Dirichlet row of two cells."""

    width: int
    usual: float | np.ndarray = 1.0  # failures in the middle of those of all rows

    @property
    def n_columns(self) -> int:
        """Columns of a row."""
        return self.width

    @property
    def cells_per_component(self) -> int:
        """Of each column one for successes, and one for failures."""
        return 2 * self.n_columns

    def default_prior(self, n_components: int, *, success=1.0, failure=1.0) -> Dirichlet:
        """Beta distributions of the probabilities of success."""
        pairs = np.transpose([np.broadcast_to(each, self.n_columns) for each in (success, failure)])
        return Dirichlet.from_rows(list(pairs) * n_components)

    def features(self, block: Any) -> np.ndarray:
        """1, and failures."""
        return np.concatenate(block.columns[::-1])

    def fold(self, natural: np.ndarray, complete: bool) -> np.ndarray:
        """ln p multiplies 1, ln(1 - p) multiplies failures."""
        of_success, of_failure = natural[..., ::2], natural[..., 1::2]
        return np.concatenate([of_success.sum(-1, keepdims=True) if complete else of_success, of_failure], axis=-1)

    def unfold(self, sums: np.ndarray, complete: bool) -> np.ndarray:
        """Rows are successes."""
        failures = sums[..., -self.n_columns :]
        successes = np.broadcast_to(sums[..., : -self.n_columns], failures.shape)
        return np.stack([successes, failures], axis=-1).reshape(*sums.shape[:-1], -1)

    def log_predictive(self, block: Any, posterior: Dirichlet) -> np.ndarray:
        """ln B(a + 1, b + y) - ln B(a, b)."""
        failures, observed = (x[:, :, None] for x in block.columns)
        a, b = posterior.concentration.reshape(-1, self.n_columns, 2).T[..., None, :]
        of_cells = np.log(a) + gammaln(b + failures) - gammaln(b) + gammaln(a + b) - gammaln(a + b + 1 + failures)
        return (observed * of_cells).sum(axis=0)

    def probabilities(self, point: np.ndarray) -> np.ndarray:
        """p, (n_components, n_columns)."""
        return point.reshape(-1, self.n_columns, 2)[..., 0]

    def sample(self, point: np.ndarray, components: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Failures drawn."""
        return rng.geometric(self.probabilities(point)[components]) - 1.0

    def impute(self, block: Any, point: np.ndarray, responsibilities: np.ndarray) -> np.ndarray:
        """Rows with missing cells replaced by means."""
        p, values = self.probabilities(point), np.asarray(block.values, dtype=float)
        return np.where(np.isnan(values), responsibilities @ ((1 - p) / p), values)

    def seeding_coordinates(self, block: Any) -> np.ndarray:
        """Logarithms, which spread by about 1, of failures against the usual ones; 0 where missing."""
        failures, observed = block.columns
        return observed.T * (np.log1p(failures.T) - np.log1p(self.usual))

    def predictive_point(self, posterior: Dirichlet) -> np.ndarray:
        """Probabilities at which (1 - p) / p is the predictive mean, b / (a - 1), where a > 1 and there is one."""
        a, b = posterior.concentration.reshape(-1, 2).T
        p = np.where(a > 1, a - 1, a) / np.where(a > 1, a + b - 1, a + b)
        return np.stack([p, 1 - p], axis=-1).ravel()

    def parameters(self, point: np.ndarray) -> dict[str, np.ndarray]:
        """Probabilities of success."""
        return {"probabilities": self.probabilities(point)}

    def quantiles(self, posterior: Dirichlet, probability: float) -> dict[str, np.ndarray]:
        """Quantiles of the probabilities."""
        return self.parameters(posterior.quantiles(probability))


class Geometric(NumericSpecification):
    """Failures before the first success."""

    wanted: ClassVar[str] = "failures are whole numbers >= 0"
    largest: ClassVar[float] = 1e6
    if_larger: ClassVar[str] = "of failures above 1e+06 the likelihood keeps too few digits. Count in larger units"
    has_cumulative: ClassVar[bool] = True
    holds_counts: ClassVar[bool] = True

    def __init__(self, success_prior: float = 1.0, failure_prior: float = 1.0):
        self.success_prior = success_prior
        self.failure_prior = failure_prior

    def impossible(self, values: np.ndarray) -> np.ndarray:
        """Negative numbers and fractions."""
        return (values < 0) | (values != np.floor(values))

    def for_data(self, values: Any, weight: np.ndarray | None = None) -> GeometricEmission:
        """The emission of a table."""
        return GeometricEmission(n_columns_of(values), weighted_means(values, weight))

    def prior_options(self, emission: Any, names: Any) -> dict[str, float]:
        """Concentrations of success and failure."""
        return {"success": self.positive("success_prior", names), "failure": self.positive("failure_prior", names)}

    def means(self, parameters: Any) -> np.ndarray:
        """(1 - p) / p."""
        return 1 / parameters["probabilities"] - 1

    def deviations(self, parameters: Any) -> np.ndarray:
        """sqrt(1 - p) / p."""
        return np.sqrt(1 - parameters["probabilities"]) / parameters["probabilities"]

    def cumulative(self, values: np.ndarray, means: np.ndarray, deviations: np.ndarray) -> np.ndarray:
        """1 - (1 - p)^(values + 1)."""
        return np.where(values < 0, 0.0, 1 - (means / (1 + means)) ** (np.floor(values) + 1))
