r"""Factor analyzers: :math:`N(y \mid \mu_k, \Lambda_k\Lambda_k^\top + \Psi_k)`, by factors that are hidden in each row.

Given its component and its factors :math:`x \sim N(0, I_q)`, each column of a row is a regression on them,
:math:`y_j \sim N(\mu_{kj} + \lambda_{kj}^\top x, 1/\tau_{kj})` (`skvbem.families.regression`), with a noise for each
column ("diag": factor analysis), or one for all of a component ("spherical": probabilistic principal components); all
components may share them (`tied`). Factors are integrated out, exactly given q(theta), as missing cells are: what is
not observed is left out [Beal chapter 4; Ghahramani & Beal 2000].

**Relevance.** The loadings of a factor have a precision :math:`\nu_{ks}` in units of the noise, which is known, or
hidden with a Gamma prior, :math:`\lambda_{kjs} \mid \tau, \nu \sim N(0, (\tau_{kj}\nu_{ks})^{-1})`: a hyperparameter
that is a hidden variable (`skvbem.families.hierarchical`). Where columns come in groups, a factor has a precision for
each of them, so that it may matter to some groups and not to others: group factor analysis [Virtanen et al. 2012; Klami
et al. 2015].

**Noise and means.** The rate of the precision of a noise, and the weight of the prior mean, are known, or hidden as
those of `skvbem.emissions.gaussian.DiagonalGaussian`: :math:`\tau_{kj} \mid b_j \sim \mathrm{Gamma}(3/2, b_j)` and
:math:`b_j \sim \mathrm{Gamma}(1/2, 1/3)`, so that a variance as a share of its column's is
:math:`\propto v^{-1/2} (1 + v/3)^{-2}`; :math:`\mu_{kj} \mid \tau, \kappa \sim N(m_j, 1/(\tau_{kj}\kappa))` and
:math:`\kappa \sim \mathrm{Gamma}(1/2, 1/2)`. Without factors it is the same model.

**Units.** Columns are measured in standard deviations from their means, so that no unit of measure makes a difference;
where they share a noise, all in one unit, their root mean square, unless they are to be standardized.

**Starts.** Loadings of 0 are a stationary point: the factors then know nothing, and rows of any responsibilities lead
back to it. So rows are completed for a start by the principal components of the data (`start_natural`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import stdtrit

from skvbem._compat import Interval, StrOptions
from skvbem._lazy import cached_property
from skvbem._names import shown
from skvbem._numerics import diagonal_places, log_rising
from skvbem.blocks import Blocks
from skvbem.emissions.base import Emission, draws_first
from skvbem.emissions.factor.hidden import HiddenFactors
from skvbem.emissions.factor.second_moments import principal_loadings
from skvbem.emissions.factor.step import FactorStep
from skvbem.emissions.factor.table import FactorTable, MatricesOfColumns
from skvbem.emissions.gaussian.dense import WEIGHT_OF_MEANS
from skvbem.emissions.gaussian.dense_table import missing_patterns
from skvbem.emissions.moments import root_mean_square, weighted_moments
from skvbem.emissions.specification import (
    HIERARCHICAL,
    NormalSpecification,
    Parameters,
    finite,
    is_hierarchical,
    positive,
)
from skvbem.families import Regression, RegressionPoint
from skvbem.families.hierarchical import (
    Hierarchical,
    with_hidden_mean_precision,
    with_hidden_rates,
    with_learned_precisions,
)
from skvbem.families.hyperpriors import floor_of_scales
from skvbem.families.normal_gamma import VARIANCE_FLOOR


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
    standardize : bool, default=False
        Whether noise="spherical" is one share of the variance of each column, as in principal components of
        correlations. By default it is one variance in the units of the data, as in principal components of covariances:
        units of columns make a difference. For noise="diag" both are the same.
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
    noise_prior : pair of float or "hierarchical", default="hierarchical"
        Shape and rate of the Gamma prior of the precision of a noise, in units in which columns have variance 1;
        "hierarchical" has the rate learned, of each column from all components.
    mean_prior : array-like of shape (n_columns,), default=None
        Prior mean of the means; by default the mean of X.
    mean_precision_prior : float or "hierarchical", default="hierarchical"
        How many rows `mean_prior` weighs; "hierarchical" has it learned from how far apart the components are.

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
        "standardize": ["boolean"],
        "relevance": [StrOptions({"ard", "fixed"})],
        "mean_precision_prior": [Interval(Real, 0, None, closed="neither"), StrOptions({HIERARCHICAL})],
    }

    needs_variation: ClassVar[bool] = True
    has_covariances: ClassVar[bool] = True

    def __init__(
        self,
        n_factors=1,
        *,
        noise="diag",
        standardize=False,
        tied=False,
        relevance="ard",
        relevance_prior=(1.0, 1.0),
        groups=None,
        noise_prior=HIERARCHICAL,
        mean_prior=None,
        mean_precision_prior=HIERARCHICAL,
    ):
        self.n_factors = n_factors
        self.noise = noise
        self.standardize = standardize
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
        options["standardize"] = self.standardize
        n_factors = None if self.n_factors == "auto" else self.n_factors
        return FactorAnalyzer.for_data(values, weight, n_factors=n_factors, **options)

    def _group_of(self) -> tuple[int, ...]:
        """The group of each column, groups being lists of the places of their columns; empty without any."""
        places = [(place, group) for group, columns in enumerate(self.groups or ()) for place in columns]
        return tuple(group for _, group in sorted(places))

    def prior_options(self, emission: Any, names: Sequence[str]) -> dict[str, Any]:
        """Mean, its precision in rows, noise and relevance of factors."""
        relevance: Any = 1.0 if self.relevance == "fixed" else self._pair("relevance_prior")
        weight, noise = self.mean_precision_prior, self.noise_prior
        options = {
            "mean_precision_prior": weight if is_hierarchical(weight) else float(weight),
            "noise_prior": noise if is_hierarchical(noise) else self._pair("noise_prior"),
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
        """Numbers of factors of components, and precisions of loadings by group where columns come in groups."""
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


# Draws of the parameters that a predictive density is a mean over.
_N_DRAWS = 64
# Least share of the variance of a column that is noise where it is most likely: less is no solution (Heywood).
_FLOOR = 0.005
# Under a hidden rate: the shape of the precision of a noise, and shape and rate of the rate, as of `DiagonalGaussian`.
_SHAPE_OF_NOISE, _HIDDEN_RATE = 1.5, (0.5, 1 / 3)
# Columns up to which a row of a block counts as wide as it is.
_NARROW = 64


@dataclass(frozen=True, eq=False)
class FactorAnalyzer(Emission):
    """Measurements that a few factors explain.

    Parameters
    ----------
    origin, unit : ndarray of shape (d,)
        Of each column, in the units of the data. Units are the same where columns that share a noise are not
        standardized.
    mean : ndarray of shape (d,)
        The mean of the data above the origin, in units.
    has_gaps : ndarray of bool, shape (d,)
        Which columns have missing cells. Those without share the statistics of their regressors.
    loadings : ndarray of shape (d, q)
        Of the principal components of the data, in units: where fits start.
    spherical : bool
        Whether the columns of a component share one noise.
    tied : bool
        Whether all components share the noises.
    total_weight : float
        Of the data, rows.
    n_factors_of : tuple of int
        Factors of each component, at most q, where they differ; the last ones of a component are not in use.
    correlation : ndarray of shape (d, d), or empty
        Of the data, their covariance in units, where the numbers of factors are to be counted: starts of any number are
        made of it.
    group_of : tuple of int
        Of each column the group, whose loadings have precisions of their own; empty if all columns are one group.
    """

    origin: np.ndarray
    unit: np.ndarray
    mean: np.ndarray
    has_gaps: np.ndarray
    loadings: np.ndarray
    spherical: bool = False
    tied: bool = False
    total_weight: float = 1.0
    n_factors_of: tuple[int, ...] = ()
    correlation: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))
    group_of: tuple[int, ...] = ()

    @classmethod
    def for_data(
        cls,
        values: np.ndarray | Blocks,
        weight: np.ndarray | None = None,
        *,
        n_factors: int | None,
        spherical: bool = False,
        standardize: bool = False,
        tied: bool = False,
        group_of: tuple[int, ...] = (),
    ) -> Self:
        """The emission of measurements (n_rows, d), NaN where missing, with weights (n_rows,).

        Without `n_factors` it has none yet: how many is to be chosen (`with_numbers`).
        """
        moments = weighted_moments(values, weight)
        unit = moments.deviation
        if spherical and not standardize:
            unit = np.full(len(unit), root_mean_square(unit))
        spread = moments.deviation / unit
        correlation = moments.correlation * spread * spread[:, None]
        loadings = principal_loadings(correlation, n_factors or 0)
        units = moments.origin, unit, moments.mean / unit
        if n_factors is not None:
            correlation = np.empty((0, 0))
        return cls(*units, moments.has_gaps, loadings, spherical, tied, moments.total_weight, (), correlation, group_of)

    @property
    def hidden(self) -> HiddenFactors:  # type: ignore[override]
        """The factors of rows."""
        return HiddenFactors(self)

    def with_numbers(self, numbers: Sequence[int]) -> Self:
        """The emission with another number of factors in each component; all the same where these are."""
        by_component = () if len(set(numbers)) == 1 else tuple(map(int, numbers))
        loadings = principal_loadings(self.correlation, int(max(numbers)))
        return replace(self, loadings=loadings, n_factors_of=by_component)

    def numbers(self, n_components: int) -> tuple[int, ...]:
        """Factors of each of so many components."""
        return self.n_factors_of or (self.n_factors,) * n_components

    @property
    def n_columns(self) -> int:
        """Columns of a row, d."""
        return len(self.origin)

    @property
    def n_factors(self) -> int:
        """Factors of a component, q."""
        return self.loadings.shape[1]

    @property
    def doubles_per_row(self) -> int:
        """Doubles that a block holds for each row, whatever the number of components; wide rows count less.

        Products with few rows of many columns take longer than what leaves the cache.
        """
        return min(self.n_columns, _NARROW + self.n_columns // 8)

    def block_rows(self, n_components: int, n_lanes: int = 1) -> int:
        """Rows of a block, with factors of each component, and matrices of each pattern of gaps.

        Twice as many as for others: products of matrices take longer with few rows than what leaves the first caches.
        """
        n_regressors = 1 + self.n_factors
        width = 2 * n_regressors + bool(self.has_gaps.any()) * 2 * n_regressors * (n_regressors + 1)
        return 2 * super().block_rows(n_components * (1 + width), n_lanes)

    @cached_property
    def groups(self) -> np.ndarray:
        """Group of each column, (d,)."""
        return np.array(self.group_of or (0,) * self.n_columns)

    @cached_property
    def matrices(self) -> MatricesOfColumns:
        """Matrix of its component that each column has."""
        return MatricesOfColumns(self.groups, self.has_gaps)

    def in_use(self, n_components: int) -> np.ndarray:
        """Boolean array of the regressors of each component, (n_components, 1 + q): the constant, and its factors."""
        return np.arange(1 + self.n_factors) <= np.array(self.numbers(n_components))[:, None]

    def layout(self, n_components: int) -> Regression:
        """Regression of so many components, whose rows share matrices and noises; its coordinates are of no density."""
        if n_components not in self._layouts:
            self._layouts[n_components] = self._laid_out(n_components)
        return self._layouts[n_components]

    @cached_property
    def _layouts(self) -> dict[int, Regression]:
        return {}

    def _laid_out(self, n_components: int) -> Regression:
        d, n_matrices, k = self.n_columns, len(self.matrices.groups), np.arange(n_components)[:, None]
        noise_of_column = np.zeros(d, dtype=int) if self.spherical else np.arange(d)
        n_noises = int(noise_of_column.max()) + 1
        precision_of = (n_matrices * k + self.matrices.of_columns).ravel()
        noise_of = (noise_of_column + (0 if self.tied else n_noises * k)) + np.zeros((n_components, 1), dtype=int)
        n_regressors = 1 + self.n_factors
        n_all = n_noises if self.tied else n_noises * n_components
        n_cells = n_components * (n_matrices * n_regressors * (n_regressors + 1) // 2 + d * n_regressors) + 2 * n_all
        return Regression(np.zeros(n_cells), n_regressors, precision_of, noise_of.ravel(), n_components, self.floor)

    @property
    def floor(self) -> float:
        """Least variance of a noise where it is most likely, in units; that of one column alone is no solution."""
        return VARIANCE_FLOOR if self.spherical else _FLOOR

    def default_prior(
        self,
        n_components: int,
        *,
        mean_prior=None,
        mean_precision_prior: float | str = 1.0,
        noise_prior: tuple[float, float] | str = (1.0, 0.5),
        relevance_prior: tuple[float, float] | float = 1.0,
    ) -> Regression | Hierarchical:
        """One prior for all components, in units in which columns have variance 1.

        Parameters
        ----------
        n_components : int
        mean_prior : array_like of shape (d,), optional
            The mean of the data if None.
        mean_precision_prior : float or "hierarchical"
            Weight of `mean_prior`, in data; hidden, with a Gamma prior, if "hierarchical".
        noise_prior : pair of float, or "hierarchical"
            Shape and rate of the precision of a noise. If "hierarchical", the rate of each column, or of the noise
            that all share, is hidden, with a Gamma prior, and the same in all components.
        relevance_prior : pair of float, or float
            Shape and rate of the precision of loadings, one for each factor and group, or this precision itself.
        """
        layout, d, q = self.layout(n_components), self.n_columns, self.n_factors
        mean = self.mean
        if mean_prior is not None:
            mean = (np.asarray(mean_prior, dtype=float) - self.origin) / self.unit
        means = np.zeros((n_components * d, 1 + q))
        means[:, 0] = np.tile(mean, n_components)
        hides_weight, hides_rates = is_hierarchical(mean_precision_prior), is_hierarchical(noise_prior)
        weight = 0.0 if hides_weight else float(mean_precision_prior)
        gamma = (_SHAPE_OF_NOISE, 1.0) if isinstance(noise_prior, str) else noise_prior
        shape, rate = (np.full(layout.n_noises, float(x)) for x in gamma)

        in_use = np.repeat(self.in_use(n_components), layout.n_precisions // n_components, axis=0)

        def family(relevance: float) -> Regression:
            precision = np.where(in_use, np.concatenate([[weight], np.full(q, relevance)]), 1.0)
            matrices = precision[:, :, None] * np.eye(1 + q)
            sharing = (layout.precision_of, layout.noise_of)
            return Regression.from_parameters(
                means, matrices, shape, rate, *sharing, n_components=n_components, floor=self.floor
            )

        prior: Any = family(1.0 if isinstance(relevance_prior, tuple) else float(relevance_prior))
        if isinstance(relevance_prior, tuple) and in_use[:, 1:].any():
            learned = np.repeat(self.in_use(n_components), n_groups := int(self.groups.max()) + 1, axis=0)
            learned[:, 0] = False
            groups = n_groups * np.arange(n_components)[:, None] + self.matrices.groups
            prior = with_learned_precisions(prior, learned, *relevance_prior, groups.ravel())
        if hides_weight:
            prior = with_hidden_mean_precision(prior, means[:, 0], WEIGHT_OF_MEANS)
        if hides_rates:
            floor = floor_of_scales(self.total_weight) / 2
            rate_of = np.arange(layout.n_noises) % (1 if self.spherical else d)
            prior = with_hidden_rates(prior, *_HIDDEN_RATE, floor, rate_of)
        return prior

    def relevance(self, prior: Regression) -> np.ndarray:
        """Precisions of loadings, (n_components, n_groups, q), of a prior in which they are known; NaN of no factor."""
        packed = prior.split(prior.coordinates)[0].reshape(prior.n_components, len(self.matrices.groups), -1)
        first = np.unique(self.matrices.groups, return_index=True)[1]
        precisions = packed[:, first][..., diagonal_places(1 + self.n_factors)[1:]]
        return np.where(self.in_use(prior.n_components)[:, None, 1:], precisions, np.nan)

    def survey(self, values: np.ndarray) -> FactorTable:
        """A table without rows: nothing need be known of all."""
        none = np.zeros((0, self.n_columns), dtype=bool)
        return FactorTable(self.origin, self.unit, np.asarray(values)[:0], None, none)

    def prepare(self, values: np.ndarray, survey: FactorTable | None = None) -> FactorTable:
        """A table of rows, (n_rows, d), NaN where a cell is missing. The values are not copied."""
        values = np.asarray(values)
        return FactorTable(self.origin, self.unit, values, *missing_patterns(values))

    def row_order(self, table: FactorTable) -> np.ndarray | None:
        """Rows with the same cells missing together."""
        return None if table.pattern is None else np.argsort(table.pattern, kind="stable")

    def step(self, natural: np.ndarray, table: Any) -> FactorStep:
        """The emission at natural parameters (n_cells,) or (n_cells, n_lanes)."""
        k = self.n_components(len(natural))
        in_use = self.in_use(k) if self.n_factors_of else None
        return FactorStep(self.layout(k), natural, self.unit, self.matrices, in_use)

    def log_predictive(self, block: FactorTable, posterior: Regression) -> np.ndarray:
        """Log densities, nats, (n_rows, n_components): means over draws of the parameters, each of which is a density.

        The draws are the same for all rows, so that over all rows the mean integrates to one.
        """
        if not self.n_factors:
            return self._log_predictive_without_factors(block, posterior)
        rng = np.random.default_rng(0)
        natural = np.stack([posterior.natural(posterior.sample(rng)) for _ in range(_N_DRAWS)], axis=1)
        logs = self.step(natural, block).log_likelihood(block)
        return np.logaddexp.reduce(logs, axis=0) - np.log(len(logs))

    def _log_predictive_without_factors(self, block: FactorTable, posterior: Regression) -> np.ndarray:
        """Student t log densities in closed form, jointly over columns that share a noise."""
        k, d, noise_of = posterior.n_components, self.n_columns, posterior.noise_of_row
        kappa = np.linalg.inv(np.moveaxis(posterior.covariance, [0, 1, 2], [-3, -2, -1]))[..., 0, 0]
        share = (kappa / (kappa + 1))[posterior.precision_of].reshape(k, 1, d)
        a, rate = (np.asarray(x)[noise_of].reshape(k, d) for x in (posterior.shape, posterior.rate))
        mean, seen = posterior.mean[:, 0].reshape(k, 1, d), ~np.isnan(block.values)
        squares = np.where(seen, share * (block.measured.T - mean) ** 2, 0.0)
        groups = noise_of[:d, None] == np.unique(noise_of[:d])
        first = groups.argmax(axis=0)
        a, rate, squares, n = a[:, None, first], rate[:, None, first], squares @ groups, seen @ groups.astype(float)
        noise_logs = (
            log_rising(a, n / 2) - (a + n / 2) * np.log1p(squares / (2 * rate)) - n / 2 * np.log(2 * np.pi * rate)
        )
        column_logs = seen * (0.5 * np.log(share) - np.log(self.unit))
        return (noise_logs.sum(axis=-1) + column_logs.sum(axis=-1)).T

    def sample(self, point: RegressionPoint, components: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Measurements drawn: factors first, then columns given these."""
        coefficients, precision = self._by_component(point)
        regressors = np.column_stack([np.ones(len(components)), rng.standard_normal((len(components), self.n_factors))])
        means = np.einsum("njr,nr->nj", coefficients[components], regressors)
        noise = rng.standard_normal(means.shape) / np.sqrt(precision[components])
        return self.origin + self.unit * (means + noise)

    def impute(self, block: FactorTable, point: RegressionPoint, responsibilities: np.ndarray) -> np.ndarray:
        """Rows with missing cells replaced by their means given the observed ones."""
        coefficients, _ = self._by_component(point)
        layout = self.layout(len(coefficients))
        step = self.step(layout.natural(point), block)
        values, x = np.array(block.values, dtype=float), step.means(block)
        for rows, missing in block.runs:
            if not missing:
                continue
            filled, gone = values[rows], list(missing)
            means = coefficients[:, gone, :1] + coefficients[:, gone, 1:] @ x[..., rows]
            completed = np.einsum("nk,kjn->nj", responsibilities[rows], means)
            filled[:, gone] = self.origin[gone] + self.unit[gone] * completed
            values[rows] = filled
        return values

    def is_conjugate(self, table: FactorTable) -> bool:
        """True if nothing is hidden in a row of a known component: where there are no factors."""
        return self.n_factors == 0

    def seeding_coordinates(self, block: FactorTable) -> np.ndarray:
        """Rows in standard deviations from the means of the columns."""
        return block.measured.T

    def quantiles(self, posterior: Regression, probability: float) -> dict[str, np.ndarray]:
        """Quantiles of the means, each of which is Student t distributed."""
        a, b = (x[posterior.noise_of_row] for x in (posterior.shape, posterior.rate))
        spread = posterior.covariance[posterior.precision_of, 0, 0]
        reach = stdtrit(2 * a, probability) * np.sqrt(b / a * spread)
        means = (posterior.mean[:, 0] + reach).reshape(-1, self.n_columns)
        return {"means": self.origin + self.unit * means}

    def parameters(self, point: RegressionPoint) -> dict[str, np.ndarray]:
        """Means, loadings, variances of noise, and covariances, of each component."""
        coefficients, precision = self._by_component(point)
        loadings = self.unit[:, None] * coefficients[..., 1:]
        noise = self.unit**2 / precision
        covariances = loadings @ loadings.swapaxes(-1, -2) + noise[..., None, :] * np.eye(self.n_columns)
        means = self.origin + self.unit * coefficients[..., 0]
        return {"means": means, "loadings": loadings, "noise_variances": noise, "covariances": covariances}

    def parameters_of_draws(self, points: RegressionPoint) -> dict[str, np.ndarray]:
        """The `parameters` of points with draws along a last axis, all at once."""
        return self.parameters(draws_first(points))

    def point_of(self, parameters: Mapping[str, np.ndarray]) -> RegressionPoint:
        """The point that means, loadings and variances of noise in the units of the data stand for, by name."""
        noise_of = self.layout(len(parameters["means"])).noise_of_row
        first = (parameters["means"] - self.origin) / self.unit
        coefficients = np.concatenate([first[..., None], parameters["loadings"] / self.unit[:, None]], axis=-1)
        noise = (np.broadcast_to(parameters["noise_variances"], first.shape) / self.unit**2).ravel()
        variance = np.bincount(noise_of, noise) / np.bincount(noise_of)
        return RegressionPoint(coefficients.reshape(-1, coefficients.shape[-1]), 1 / variance)

    def component_of_cell(self, n_components: int) -> np.ndarray:
        """The component that each cell of statistics belongs to; -1 where it belongs to all."""
        layout, k = self.layout(n_components), np.arange(n_components)
        n_matrices = layout.precision_cells.size // n_components
        noises = np.full(layout.n_noises, -1) if self.tied else np.repeat(k, layout.n_noises // n_components)
        parts = [np.repeat(k, n_matrices), np.repeat(k, self.n_columns * layout.n_regressors), noises, noises]
        return np.concatenate(parts)

    @property
    def cells_per_component(self) -> int:
        """Cells of natural parameters, and of statistics, that belong to one component alone."""
        return len(self.layout(1).coordinates) - self.shared_cells

    @property
    def shared_cells(self) -> int:
        """Of the noises that all share: shapes and rates."""
        return 2 * self.layout(1).n_noises if self.tied else 0

    def _by_component(self, point: RegressionPoint) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients (..., n_components, d, 1 + q), and precisions of columns (..., n_components, d)."""
        *draws, n_rows, n_regressors = point.coefficients.shape
        shape = *draws, n_rows // self.n_columns, self.n_columns
        coefficients = point.coefficients.reshape(*shape, n_regressors) * self.in_use(shape[-2])[:, None]
        return coefficients, point.precision[..., self.layout(shape[-2]).noise_of_row].reshape(shape)
