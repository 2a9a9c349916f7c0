r"""Measurements with heavy tails: multivariate t, a `DenseGaussian` whose precision each row multiplies by a number.

With :math:`w_i \sim \mathrm{Gamma}(\nu/2, \nu/2)` and :math:`y_i \mid w_i \sim N(\mu_k, (w_i \Lambda_k)^{-1})`, the
number w of a row is hidden beside its component, and integrated out. Of the d cells that are observed, with
:math:`\Delta = \operatorname{E} (y - \mu)^\top \Lambda (y - \mu)`,

.. math::

    \ln \tilde f = \tfrac12 \operatorname{E} \ln |\Lambda| - \tfrac d2 \ln 2\pi + \ln \Gamma(\tfrac{\nu + d}2)
        - \ln \Gamma(\tfrac\nu2) - \tfrac d2 \ln \tfrac\nu2
        - \tfrac{\nu + d}2 \ln \bigl(1 + \tfrac\Delta\nu\bigr),
    \qquad w \sim \mathrm{Gamma}\bigl(\tfrac{\nu + d}2, \tfrac{\nu + \Delta}2\bigr).

Rows count by E w for means and squares, and once for degrees of freedom. The Gaussian has all that missing cells need;
the covariance of such cells is that of the Gaussian over w. Predictive: a mixture over w of multivariate t densities,
by the trapezoidal rule in ln w, which no more than 1e-8 is lost by.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy.special import stdtr

from skvbem._compat import Interval
from skvbem._numerics import covariance_of_products, log_rising, pack_symmetric
from skvbem.blocks import Blocks
from skvbem.emissions.base import Step, by_cell, by_lane
from skvbem.emissions.gaussian.dense import DenseGaussian
from skvbem.emissions.gaussian.dense_step import DenseStep
from skvbem.emissions.gaussian.dense_table import DenseTable
from skvbem.emissions.gaussian.specification import PRIOR_CONSTRAINTS, Gaussian
from skvbem.emissions.parameters import check_covariances, check_shape, named_arrays
from skvbem.emissions.specification import HIERARCHICAL, EmissionSpecification, Parameters
from skvbem.families import NormalPoint, NormalWishart
from skvbem.families.parallel_generator import ParallelGenerator

# Largest distance of nodes in ln w, by which Gamma densities of any shape are integrated to 1e-8, and what is left out.
_WIDEST_STEP, _LEFT_OUT = 0.5, 20.0


class StudentT(Gaussian):
    r"""Columns of measurements with heavy tails, jointly t distributed in each component.

    Parameters
    ----------
    df : float, default=4.0
        Degrees of freedom of the t distribution; infinitely many make it a `Gaussian`. Lower bounds, or a grid over
        them, compare several: 1, 2, 4, 8, 16 and infinity are enough.
    mean_prior : array-like of shape (n_columns,), default=None
        Prior mean of the means, as of `Gaussian`.
    mean_precision_prior : float or "hierarchical", default="hierarchical"
        How many rows `mean_prior` weighs.
    degrees_of_freedom_prior : float, default=None
        For precisions; more than d - 1 for d columns.
    covariance_prior : array-like of shape (n_columns, n_columns), "hierarchical" or None, default="hierarchical"
        Prior scale matrix of a component: the covariance of a row that counts once.

    See Also
    --------
    Gaussian : measurements without outliers.

    Notes
    -----
    `parameters_` has "means" and "scales", the scale matrices of components: their covariances are df / (df - 2) times
    these. With two degrees of freedom or fewer there are none, and displays show scales.

    Examples
    --------
    >>> import numpy as np
    >>> from skvbem import VBMixture
    >>> from skvbem.emissions import StudentT
    >>> X = np.random.default_rng(0).standard_t(2, size=(200, 1))
    >>> models = [VBMixture(1, emission=StudentT(df), random_state=0).fit(X) for df in (2, np.inf)]
    >>> models[0].lower_bound_ > models[1].lower_bound_
    True
    """

    _parameter_constraints: ClassVar[dict] = {
        **PRIOR_CONSTRAINTS,
        "df": [Interval(Real, 0, None, closed="right")],
    }

    covariance_type: Any = "full"

    def __init__(
        self,
        df=4.0,
        *,
        mean_prior=None,
        mean_precision_prior=HIERARCHICAL,
        degrees_of_freedom_prior=None,
        covariance_prior=HIERARCHICAL,
    ):
        self.df = df
        self.mean_prior = mean_prior
        self.mean_precision_prior = mean_precision_prior
        self.degrees_of_freedom_prior = degrees_of_freedom_prior
        self.covariance_prior = covariance_prior

    def for_data(self, values: np.ndarray | Blocks, weight: np.ndarray | None = None) -> StudentTEmission:
        """The emission of measurements (n_rows, n_columns), NaN where missing, with weights (n_rows,)."""
        self.check_parameters()
        return replace(StudentTEmission.for_data(values, weight), df=float(self.df))

    def checked_parameters(self, parameters: Any) -> dict[str, np.ndarray]:
        """Means and scale matrices."""
        owner = type(self).__name__
        arrays = named_arrays(owner, parameters, {"means": 2, "scales": 3})
        k, d = arrays["means"].shape
        check_shape(owner, "scales", arrays["scales"], (k, d, d), "(components, columns, columns)")
        check_covariances(owner, "scales", arrays["scales"])
        return arrays

    def explained_by(self, covariates: Sequence[str], names: Sequence[str]) -> Any:
        """No family: a regression with heavy tails is not there."""
        return EmissionSpecification.explained_by(self, covariates, names)

    def attributes(self, emission: Any, parameters: Parameters, prior: Any, posterior: Any) -> dict[str, Any]:
        """None besides `parameters_`."""
        return {}

    def deviations(self, parameters: Parameters) -> np.ndarray:
        """Standard deviations, or scales where these have no bound."""
        return np.sqrt(self._inflation * np.diagonal(np.asarray(parameters["scales"]), axis1=-2, axis2=-1))

    def covariances(self, parameters: Parameters, columns: Sequence[int]) -> np.ndarray:
        """Covariance matrices of some columns in each component, (n_components, n, n)."""
        return self._inflation * np.asarray(parameters["scales"])[:, list(columns)][:, :, list(columns)]

    def cumulative(self, values: np.ndarray, means: np.ndarray, deviations: np.ndarray) -> np.ndarray:
        """Probabilities that t distributed cells are at most some values."""
        return stdtr(self.df, (values - means) / deviations * np.sqrt(self._inflation))

    @property
    def _inflation(self) -> float:
        """Covariances over scale matrices; 1 where there are none."""
        return self.df / (self.df - 2) if 2 < self.df < np.inf else 1.0


@dataclass(frozen=True, eq=False)
class StudentTEmission(DenseGaussian):
    """Multivariate t distributions, each with a scale matrix of its own.

    Parameters
    ----------
    df : float
        Degrees of freedom.
    """

    df: float = np.inf

    def step(self, natural: np.ndarray, table: DenseTable) -> Step:  # type: ignore[override]
        """The emission at natural parameters (n_cells,) or (n_cells, n_lanes), for rows within the table's reach."""
        normal = super().step(natural, table)
        return normal if np.isinf(self.df) else StudentTStep(self, natural, normal)

    def is_conjugate(self, table: DenseTable) -> bool:
        """True if the weights of rows are all 1, and no row has gaps."""
        return np.isinf(self.df) and super().is_conjugate(table)

    def transferred(self, *rows_and_labels: Any) -> None:
        """No swift way is known."""
        return None

    def log_predictive(self, block: DenseTable, posterior: NormalWishart) -> np.ndarray:
        """Log densities, the weights of rows integrated out by the trapezoidal rule, nats, (n_rows, n_components)."""
        total = np.full((len(block), len(posterior.mean)), -np.inf)
        for weight, log_share in zip(*self._nodes):
            of_weight = NormalWishart.from_parameters(
                posterior.mean,
                posterior.mean_precision / weight,
                posterior.degrees_of_freedom,
                posterior.scale / weight,
            )
            np.logaddexp(total, log_share + super().log_predictive(block, of_weight), out=total)
        return total

    @property
    def _nodes(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights of rows, and logarithms of their probabilities, which sum to one."""
        if np.isinf(self.df):
            return np.ones(1), np.zeros(1)
        half, step = self.df / 2, min(_WIDEST_STEP, np.sqrt(2 / self.df))
        log_weight = np.arange(-_LEFT_OUT / half - 9 * np.sqrt(1 / half), 1 + 9 * np.sqrt(1 / half), step)
        log_share = half * (log_weight - np.exp(log_weight) + 1)
        kept = log_share > -2 * _LEFT_OUT
        log_share = log_share[kept] - np.log(np.exp(log_share[kept]).sum())
        return np.exp(log_weight[kept]), log_share

    def sample(self, point: NormalPoint, components: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Measurements drawn."""
        drawn = super().sample(point, components, rng)
        if np.isinf(self.df):
            return drawn
        means = self.origin + point.mean[components] @ self.unwhitener.T
        return means + (drawn - means) / np.sqrt(rng.chisquare(self.df, size=(len(components), 1)) / self.df)

    def parameters(self, point: NormalPoint) -> dict[str, np.ndarray]:
        """Means (n_components, d), and scale matrices (n_components, d, d)."""
        named = super().parameters(point)
        return {"means": named["means"], "scales": named["covariances"]}

    def point_of(self, parameters: Mapping[str, np.ndarray]) -> NormalPoint:
        """Means and inverse scale matrices in the frame; see `parameters`."""
        return super().point_of({"means": parameters["means"], "covariances": parameters["scales"]})


class StudentTStep(Step):
    """A multivariate t distribution at natural parameters. A sum is a list: rows, and their weighted sums.

    Parameters
    ----------
    emission : StudentTEmission
    natural : ndarray of shape (n_cells,) or (n_cells, n_lanes)
    normal : DenseStep
        The Gaussian at these parameters, for rows of weight 1.
    """

    def __init__(self, emission: StudentTEmission, natural: np.ndarray, normal: DenseStep):
        self.df, self.normal, self.n_components = emission.df, normal, normal.n_components
        cells = by_lane(natural, emission.cells_per_component)
        self.peak = cells[..., 1] + emission.log_volume  # E ln|Lambda| / 2 and constants, (n_lanes, n_components)
        self._last: tuple[Any, Any] = (None, None)

    def _weights(self, block: DenseTable) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Of rows: peaks, shapes and rates of the posteriors of their weights, (n_lanes, n_components, n_rows).

        And the numbers of observed cells, (n_rows,). Those of the last block are kept, which `add` asks for again.
        """
        known, result = self._last
        if known is block:
            return result
        n_lanes, n_components, d = self.normal.shape
        peak, seen = self.peak[..., None], np.full(len(block), float(d))
        if block.pattern is not None:
            peak, seen = np.zeros((n_lanes, n_components, len(block))), np.zeros(len(block))
            for rows, missing in block.observed_runs:
                seen[rows] = d - len(missing)
                observed = self.normal._observed(*missing)
                peak[..., rows] = (self.peak + observed.peak - observed.whole.peak)[..., None]
        of_weight_one = self.normal.log_likelihood(block).reshape(n_lanes, len(block), n_components).swapaxes(1, 2)
        rate = np.subtract(peak, of_weight_one)
        np.maximum(rate, 0.0, out=rate)
        rate += self.df / 2
        result = peak, (self.df + seen) / 2, rate, seen
        self._last = block, result
        return result

    def log_likelihood(self, block: DenseTable) -> np.ndarray:
        """Expected log likelihoods of rows, their weights integrated out, nats."""
        peak, shape, rate, seen = self._weights(block)
        of_rows = log_rising(self.df / 2, seen / 2) - seen / 2 * np.log(self.df / 2)
        log_likelihood = np.log(rate / (self.df / 2))
        log_likelihood *= -shape
        log_likelihood += peak + of_rows
        return (log_likelihood[0] if self.normal.single else log_likelihood).swapaxes(-1, -2)

    def zeros(self) -> Any:
        """Empty sums."""
        return [np.zeros(self.peak.shape), self.normal.zeros()]

    def add(self, block: DenseTable, responsibilities: np.ndarray, total: Any) -> None:
        """Add the statistics of a block to a sum."""
        _, shape, rate, seen = self._weights(block)
        weight = (shape / rate).swapaxes(1, 2)
        by_row = responsibilities.reshape(weight.shape)
        total[0] += (seen > 0) @ by_row
        weighted = by_row * weight
        self.normal.add(block, weighted.reshape(responsibilities.shape), total[1])
        for rows, missing in block.observed_runs:
            if missing:  # whose covariance, over the weight of the row, does not hang on it
                unweighted = (by_row - weighted)[:, rows].sum(axis=1)
                total[1][..., 1 + self.normal.shape[2] :] += unweighted[..., None] * self._covariance(missing)

    def _covariance(self, missing: tuple[int, ...]) -> np.ndarray:
        """Covariance of rows of weight 1 given their observed cells, packed, (n_lanes, n_components, ...)."""
        root = self.normal._observed(*missing).root
        return pack_symmetric(root @ root.swapaxes(-1, -2))

    def statistics(self, total: Any) -> np.ndarray:
        """Statistics of a sum: weighted rows, rows, and weighted sums."""
        n, sums = total
        return by_cell(np.concatenate([sums[..., :1], n[..., None], sums[..., 1:]], axis=-1), self.normal.single)

    def of_rows(self, block: DenseTable) -> np.ndarray:
        """Statistics of each row, weighted as expected."""
        _, shape, rate, _ = self._weights(block)
        weight, of_weight_one = (shape / rate)[0].T, self.normal.of_rows(block)
        statistics = weight[..., None] * of_weight_one
        statistics[..., 1] = of_weight_one[..., 1]
        for rows, missing in block.observed_runs:
            if missing:
                unweighted = (1 - weight[rows])[..., None] * self._covariance(missing)[0]
                statistics[rows, :, 2 + self.normal.shape[2] :] += unweighted
        return statistics

    def hidden_covariance(self, block: DenseTable, responsibilities: np.ndarray) -> np.ndarray:
        """Covariance of weights of rows, and of missing cells over them."""
        _, shape, rate, _ = self._weights(block)
        d, n_own = self.normal.shape[2], self.normal.of_rows(block[:0]).shape[2]
        mean, variance = (shape / rate)[0].T, (shape / rate**2)[0].T
        at_mean = self.normal.of_rows(block)
        at_mean[..., 1] = 0.0
        for rows, missing in block.observed_runs:
            if missing:
                at_mean[rows, :, 2 + d :] -= self._covariance(missing)[0]
        covariance = np.einsum("ik,ika,ikb->kab", responsibilities * variance, at_mean, at_mean)
        for rows, missing in block.observed_runs:
            if not missing:
                continue
            root = self.normal._observed(*missing).root[0]
            for k in range(self.n_components):
                matrix, place = root[k] @ root[k].T, at_mean[rows, k, 2 : 2 + d].T
                weighted = responsibilities[rows, k] * mean[rows, k]
                covariance[k, 2:, 2:] += covariance_of_products(place, matrix, weighted)
                rest = covariance_of_products(0 * place, matrix, responsibilities[rows, k] - weighted)
                covariance[k, 2 + d :, 2 + d :] += rest[d:, d:]
        return covariance.reshape(self.n_components, n_own, n_own)

    def add_drawn(self, block: DenseTable, components: np.ndarray, rng: ParallelGenerator, total: Any) -> None:
        """Add statistics of rows whose components are known, their weights and then missing cells drawn."""
        _, shape, rate, seen = self._weights(block)
        chosen = components.reshape(len(rate), -1)
        rate_of = np.take_along_axis(rate, chosen[:, None], axis=1)[:, 0].T  # (n_rows, n_lanes)
        weight = rng.standard_gamma(np.broadcast_to(shape[:, None], rate_of.shape)) / rate_of
        self.normal.add_drawn(block, components, rng, total[1], weight)
        for lane, labels in enumerate(chosen):
            total[0][lane] += np.bincount(labels, seen > 0, self.n_components)
