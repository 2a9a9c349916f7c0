r"""Responses that are explained by regressors: :math:`N(y_j \mid c_{kj}^\top r, 1 / \rho_{kj})`.

Each component has coefficients and a precision for every response; priors are Normal-Gamma. Regressors r are a constant
1, covariates, and earlier values of the responses in the same sequence. Covariates are given: the likelihood is that of
the responses alone. Tables hold the responses first, then what is given. A response without one of its regressors is
left out as a missing one is: the first rows of a sequence have no earlier values.

Columns are measured in standard deviations from their means, or without a constant in root mean squares from 0.
Predictive: Student's t.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import stdtrit
from sklearn.base import clone

from skvbem._compat import Interval, StrOptions
from skvbem._lazy import cached_property
from skvbem._names import shown
from skvbem._numerics import diagonal_places, log_rising
from skvbem.blocks import Blocks
from skvbem.emissions.base import Products, Step, by_cell
from skvbem.emissions.linear import LinearEmission, LinearStep, LinearTable
from skvbem.emissions.moments import Moments, weighted_moments
from skvbem.emissions.parameters import check_positive, check_shape, named_arrays
from skvbem.emissions.specification import HIERARCHICAL, Ends, NormalSpecification, Parameters, is_hierarchical
from skvbem.families import Regression as RegressionFamily
from skvbem.families import RegressionPoint
from skvbem.families.base import ConjugateFamily
from skvbem.families.hierarchical import with_hidden_rates, with_hidden_scale, with_learned_precisions
from skvbem.families.hyperpriors import floor_of_scales

# The prior that fits together over all columns: Bayesian Gaussian equivalent.
BGE = "bge"


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
        Under "bge" 3 for a known scale, and 1 for a hidden one.
    variance_prior : float, array-like of shape (n_columns,), "hierarchical" or None, default="hierarchical"
        Prior variance of the noise of each column; "hierarchical" has it learned from all components. None is the
        variance of the column.
    prior : {"independent", "bge"}, default="independent"
        How the priors of nodes of a network fit together. Under "bge" they are those of one Normal-Wishart distribution
        of all columns, so that graphs that allow the same distributions have one evidence. Its scale is
        `coefficient_precision_prior`; "hierarchical" has one scale learned from all columns. It takes no
        `variance_prior`.

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

    Under ``prior="bge"`` [KMH14]_ coefficients of p regressors besides the constant have the precision t given as
    `coefficient_precision_prior`, and the constant has 1. The noise has
    :math:`\rho_{kj} \sim \mathrm{Gamma}\left(\tfrac{\nu + p}{2}, \tfrac t2\right)`, with :math:`\nu = 3` by default.
    A hidden scale is :math:`t \sim \mathrm{Gamma}(\frac12, \frac12)`, the same in all nodes of a network, and
    :math:`\nu = 1`. Searches over complete measurements integrate over t; bounds of fits have a factor q(t).

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
        "prior": [StrOptions({"independent", BGE})],
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
        prior="independent",
    ):
        self.covariates = covariates
        self.lags = lags
        self.intercept = intercept
        self.coefficient_precision_prior = coefficient_precision_prior
        self.degrees_of_freedom_prior = degrees_of_freedom_prior
        self.variance_prior = variance_prior
        self.prior = prior

    def check_parameters(self) -> None:
        """Refuse parameters that are wrong for any table, or leave nothing to explain columns by."""
        super().check_parameters()
        if not (self.intercept or self.lags or len(self.covariates)):
            raise ValueError(
                f"{type(self).__name__} has nothing to explain its columns by: intercept=False, no 'covariates' and "
                "no 'lags'. Give one of them."
            )
        if self.prior == BGE:
            self._check_bge()

    def _check_bge(self) -> None:
        """Refuse parameters that the joint prior of all columns does not have."""
        owner = f"prior={BGE!r} of {type(self).__name__}"
        if not is_hierarchical(self.variance_prior):
            raise ValueError(
                f"{owner} has a prior of variances that follows from 'coefficient_precision_prior' and "
                f"'degrees_of_freedom_prior'. Got variance_prior={shown(self.variance_prior)}. Leave it out."
            )
        if not self.intercept:
            raise ValueError(f"{owner} needs intercept=True, since columns have means. Got False.")

    @property
    def joint_prior(self) -> tuple[float | None, float] | None:
        """Scale, None if hidden, and degrees of freedom of one column, of the prior "bge"; None under another."""
        if self.prior != BGE:
            return None
        is_hidden, dof = is_hierarchical(self.coefficient_precision_prior), self.degrees_of_freedom_prior
        if dof is None:
            dof = _DOF_UNDER_A_HIDDEN_SCALE if is_hidden else _DOF_HIDDEN
        return None if is_hidden else float(self.coefficient_precision_prior), float(dof)

    def for_data(self, values: np.ndarray | Blocks, weight: np.ndarray | None = None) -> RegressionEmission:
        """The emission of rows of responses, covariates and lagged responses, NaN where missing."""
        self.check_parameters()
        options = {"n_covariates": len(self.covariates), "n_lags": self.lags, "intercept": self.intercept}
        return RegressionEmission.for_data(values, weight, **options)

    def of_moments(self, moments: Sequence[Moments]) -> RegressionEmission:
        """The emission of the columns of some tables side by side, without lagged responses, by moments of each."""
        self.check_parameters()
        return RegressionEmission.of_moments(moments, n_covariates=len(self.covariates), intercept=self.intercept)

    def prior_options(self, emission: Any, names: Sequence[str]) -> dict[str, Any]:
        """Precision of coefficients, degrees of freedom and variance of the noise."""
        variance = self.variance_prior
        if variance is not None and not is_hierarchical(variance):
            variance = self.positive("variance_prior", names)
        for name in ("coefficient_precision_prior", "degrees_of_freedom_prior"):
            self.check_size_of(name)
        if self.joint_prior is not None:
            scale, dof = self.joint_prior
            dof += emission.n_regressors - 1
            precisions = np.full(emission.n_regressors, 1.0 if scale is None else scale)
            variances = precisions[-1] / dof * emission.unit**2
            precisions[0] = 1.0
            return {
                "coefficient_precision_prior": precisions,
                "degrees_of_freedom_prior": dof,
                "variance_prior": variances,
                "hides_scale": scale is None,
            }
        return {
            "coefficient_precision_prior": self.coefficient_precision_prior,
            "degrees_of_freedom_prior": self.degrees_of_freedom_prior,
            "variance_prior": variance,
        }

    def check_size_of(self, name: str) -> None:
        """Refuse a number as a parameter of the prior by which floats would overflow."""
        value = getattr(self, name)
        if isinstance(value, Real) and not 1e-100 <= float(value) <= 1e12:
            raise ValueError(
                f"The {name!r} parameter of {type(self).__name__} must lie between 1e-100 and 1e12. Got "
                f"{shown(value)} instead."
            )

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
        """Prior precisions of coefficients around 0, in units of the noise; the constant first."""
        packed = prior.split(prior.coordinates)[0][: emission.n_columns]
        return {"coefficient_precision_prior_": packed[:, diagonal_places(emission.n_regressors)]}

    def further_rows(
        self, names: Sequence[str], parameters: Parameters, ends: Ends, levels: Sequence[np.ndarray] = ()
    ) -> list[tuple]:
        """Coefficients: the gain of each column per unit of each regressor."""
        regressors = [*self.covariates, *(f"{name} {lag} before" for lag in range(1, self.lags + 1) for name in names)]

        def cells(of: Parameters, j: int, i: int) -> np.ndarray:
            return of["coefficients"][:, j, i]

        return [
            (
                f"{name} per {regressor}",
                cells(parameters, j, i),
                None if ends is None else tuple(cells(each, j, i) for each in ends),
            )
            for j, name in enumerate(names)
            for i, regressor in enumerate(regressors)
        ]

    def means(self, parameters: Parameters) -> np.ndarray:
        """Expected values of columns where their regressors are at their means."""
        return parameters["means"]

    def deviations(self, parameters: Parameters) -> np.ndarray:
        """Standard deviations of the noise."""
        return np.sqrt(parameters["variances"])

    def cumulative_of_cells(self, values: np.ndarray, parameters: Parameters) -> tuple[np.ndarray, np.ndarray]:
        """Probabilities given the regressors of each row."""
        d = parameters["variances"].shape[1]
        means = values[:, d:] @ parameters["coefficients"].swapaxes(1, 2)  # (n_components, n_rows, d)
        means = means + parameters["intercepts"][:, None] if self.intercept else means
        up_to = self.cumulative(values[:, :d], means, self.deviations(parameters)[:, None])
        return up_to, up_to


# Hyperpriors: shape and rate of precisions of coefficients, in units of the noise; degrees of freedom of the scale.
PRECISION_OF_COEFFICIENTS, _DOF_OF_SCALE = (0.5, 0.5), 1.0
# Degrees of freedom of a noise where the prior says none, under a hidden scale and under a known one.
_DOF_HIDDEN, _DOF = 3.0, 1.0
# Of the prior "bge" with a hidden scale; shape and rate of that scale.
_DOF_UNDER_A_HIDDEN_SCALE, HIDDEN_SCALE = 1.0, (0.5, 0.5)


def lagged(responses: np.ndarray, lengths: Sequence[int] | np.ndarray, n_lags: int) -> np.ndarray:
    """Values 1, 2, ... rows before in the same sequence, side by side, (n_rows, n_lags * d); NaN where there are none.

    Parameters
    ----------
    responses : ndarray of shape (n_rows, d)
    lengths : array_like of int, shape (n_sequences,)
    n_lags : int
    """
    before = np.full((len(responses), n_lags, responses.shape[1]), np.nan)
    step = steps_of(lengths)
    for lag in range(1, n_lags + 1):
        rows = np.flatnonzero(step >= lag)
        before[rows, lag - 1] = responses[rows - lag]
    return before.reshape(len(responses), -1)


def steps_of(lengths: Sequence[int] | np.ndarray) -> np.ndarray:
    """The place of each row in its sequence, from 0, (n_rows,)."""
    lengths = np.asarray(lengths, dtype=np.int64)
    return np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)


@dataclass(frozen=True, eq=False)
class RegressionEmission(LinearEmission):
    """Responses explained by regressors, independent given these and the component.

    Parameters
    ----------
    origin, unit : ndarray of shape (n_columns,)
        Of the responses.
    given_origin, given_unit : ndarray of shape (n_given,)
        Of what is given: covariates, then the responses 1, 2, ... rows before.
    given_mean : ndarray of shape (n_given,)
        Means of these in the data, in units from their origins.
    n_lags : int
    intercept : bool
        Whether a constant is the first regressor.
    total_weight : float
        Of the data, rows.
    """

    origin: np.ndarray
    unit: np.ndarray
    given_origin: np.ndarray
    given_unit: np.ndarray
    given_mean: np.ndarray
    n_lags: int = 0
    intercept: bool = True
    total_weight: float = 1.0

    @classmethod
    def for_data(
        cls,
        values: np.ndarray | Blocks,
        weight: np.ndarray | None = None,
        *,
        n_covariates: int = 0,
        n_lags: int = 0,
        intercept: bool = True,
    ) -> Self:
        """The emission of rows of responses, covariates and earlier responses, NaN where missing."""
        moments = [weighted_moments(values, weight)]
        return cls.of_moments(moments, n_covariates=n_covariates, n_lags=n_lags, intercept=intercept)

    @classmethod
    def of_moments(
        cls, moments: Sequence[Moments], *, n_covariates: int = 0, n_lags: int = 0, intercept: bool = True
    ) -> Self:
        """The emission of the columns of some tables side by side, those of `for_data`, by moments of each."""
        fields = ("origin", "mean", "deviation")
        origin, mean, unit = (np.concatenate([getattr(each, name) for each in moments]) for name in fields)
        if not intercept:
            size = np.hypot(unit, origin + mean)
            origin, mean, unit = np.zeros(len(origin)), origin + mean, np.where(size > 0, size, 1.0)
        d = (len(origin) - n_covariates) // (1 + n_lags)
        places = np.concatenate([np.arange(d, d + n_covariates), np.tile(np.arange(d), n_lags)])
        regressor_units = origin[places], unit[places], (mean / unit)[places]
        return cls(origin[:d], unit[:d], *regressor_units, n_lags, intercept, moments[0].total_weight)

    @property
    def n_columns(self) -> int:
        """Responses of a row."""
        return len(self.origin)

    @property
    def n_regressors(self) -> int:
        """Regressors of a response."""
        return self.intercept + len(self.given_origin)

    @property
    def n_covariates(self) -> int:
        """Columns that are given, without earlier responses."""
        return len(self.given_origin) - self.n_lags * self.n_columns

    @property
    def doubles_per_row(self) -> int:
        """Doubles that a block holds for each row."""
        return (1 + self.n_columns) * (len(self._upper[0]) + self.n_regressors + 2)

    @property
    def cells_per_component(self) -> int:
        """Cells of natural parameters, and of statistics, of one component."""
        return self.n_columns * (len(self._upper[0]) + self.n_regressors + 2)

    def component_of_cell(self, n_components: int) -> np.ndarray:
        """The component that each cell of statistics belongs to, (n_cells,)."""
        d = self.n_columns
        sizes = (d * len(self._upper[0]), d * self.n_regressors, d, d)
        return np.concatenate([np.repeat(np.arange(n_components), size) for size in sizes])

    @cached_property
    def _upper(self) -> tuple[np.ndarray, np.ndarray]:
        return np.triu_indices(self.n_regressors)

    def default_prior(
        self,
        n_components: int,
        *,
        coefficient_precision_prior: float | str | np.ndarray = 1.0,
        degrees_of_freedom_prior: float | None = None,
        variance_prior=None,
        hides_scale: bool = False,
    ) -> ConjugateFamily:
        """One prior for all components: of each coefficient about 0, of each precision of the noise a Gamma.

        Parameters
        ----------
        n_components : int
        coefficient_precision_prior : float, ndarray of shape (n_regressors,) or "hierarchical", default=1.0
            Precision of coefficients in units of the noise, all columns in units in which they spread by one; hidden,
            with a Gamma prior, one for each regressor of each response, if "hierarchical".
        degrees_of_freedom_prior : float, optional
            Of each precision of the noise; 3 under a hidden variance and 1 under a known one if None.
        variance_prior : float, array_like of shape (n_columns,) or "hierarchical", optional
            Of the noise of each response: one over it is the prior mean of the precision. That of the data if None;
            hidden, with a Gamma prior that all components share, if "hierarchical".
        hides_scale : bool, default=False
            Whether precisions of coefficients but the constant's, and rates of noises, are multiples of one hidden
            scale, that of all emissions beside this one.
        """
        k, d, n_regressors = n_components, self.n_columns, self.n_regressors
        learned, hidden = is_hierarchical(coefficient_precision_prior), is_hierarchical(variance_prior)
        dof = degrees_of_freedom_prior
        dof = (_DOF_HIDDEN if hidden else _DOF) if dof is None else float(dof)
        precision = np.broadcast_to(1.0 if learned else coefficient_precision_prior, n_regressors)
        variance = np.ones(d)
        if not hidden and variance_prior is not None:
            variance = np.broadcast_to(np.asarray(variance_prior, dtype=float) / self.unit**2, d)
        rows, response_of = np.arange(k * d), np.tile(np.arange(d), k)
        prior: Any = RegressionFamily.from_parameters(
            np.zeros((k * d, n_regressors)),
            np.tile(np.diag(precision), (k * d, 1, 1)),
            np.full(k * d, dof / 2),
            np.tile(dof / 2 * variance, k),
            rows,
            rows,
            n_components=k,
        )
        if learned:
            all_of_them = np.ones((d, n_regressors), dtype=bool)
            prior = with_learned_precisions(prior, all_of_them, *PRECISION_OF_COEFFICIENTS, response_of)
        if hides_scale:
            prior = with_hidden_scale(prior, *HIDDEN_SCALE)
        if hidden:  # twice the rate has the prior mean `dof`, that of a variance of 1
            floor = 0.5 * floor_of_scales(self.total_weight)
            prior = with_hidden_rates(prior, _DOF_OF_SCALE / 2, _DOF_OF_SCALE / dof, floor, response_of)
        return prior

    # Rows -------------------------------------------------------------------------------------------------------------

    def survey_of_complete(self, moments: Moments) -> LinearTable:
        """What `survey` says of rows without missing cells, by moments of the responses."""
        none = self.survey(np.empty((0, self.n_columns + len(self.given_origin))))
        reach = np.maximum(np.abs(moments.lowest - self.origin), np.abs(moments.highest - self.origin)) / self.unit
        return replace(none, reach=reach)

    def measure(self, values: np.ndarray) -> np.ndarray:
        """Responses in units from the origin, (n_columns, n_rows), NaN without one of their regressors."""
        measured = (np.array(values[:, : self.n_columns].T, dtype=float) - self.origin[:, None]) / self.unit[:, None]
        measured[:, np.isnan(values[:, self.n_columns :]).any(axis=1)] = np.nan
        return measured

    def regressors(self, values: np.ndarray) -> np.ndarray:
        """Regressors of rows in their units, (n_regressors, n_rows), NaN where one is missing."""
        columns = (np.asarray(values[:, self.n_columns :], dtype=float) - self.given_origin) / self.given_unit
        return np.concatenate([np.ones((int(self.intercept), len(columns))), columns.T])

    def features(self, block: LinearTable) -> np.ndarray:
        """Products of regressors, responses times regressors, ones, and squares of responses; see `fold`."""
        (measured, observed), regressors = block.columns, np.nan_to_num(self.regressors(block.values))
        first, second = self._upper
        products = regressors[first] * regressors[second]
        by_response = (observed[:, None] * products).reshape(len(observed) * len(products), len(block))
        total = (measured[:, None] * regressors).reshape(len(measured) * len(regressors), len(block))
        return np.concatenate([by_response, total, observed, measured**2])

    def fold(self, natural: np.ndarray, complete: bool) -> np.ndarray:
        """Coefficients of the features; those that count rows serve all responses where nothing is missing."""
        products, total, log_root, square = self._split(natural)
        log_root = log_root - np.log(self.unit)
        if complete:
            products = products.reshape(*natural.shape[:-1], self.n_columns, -1).sum(axis=-2)
            log_root = log_root.sum(axis=-1, keepdims=True)
        return np.concatenate([products, total, log_root, square], axis=-1)

    def unfold(self, sums: np.ndarray, complete: bool) -> np.ndarray:
        """Statistics of sums of features."""
        if not complete:
            return sums
        d, first = self.n_columns, len(self._upper[0])
        last = first + d * self.n_regressors
        batch = (1,) * (sums.ndim - 1)
        products = np.tile(sums[..., :first], (*batch, d))
        n = np.tile(sums[..., last : last + 1], (*batch, d))
        return np.concatenate([products, sums[..., first:last], n, sums[..., last + 1 :]], axis=-1)

    @cached_property
    def products(self) -> Products | None:
        """Products of regressors and responses; None where earlier responses are among them."""
        if self.n_lags:
            return None
        d, (first, second) = self.n_columns, self._upper
        regressor = np.concatenate([np.zeros(int(self.intercept), dtype=int), 1 + d + np.arange(self.n_covariates)])
        response, zeros = 1 + np.arange(d), np.zeros(d, dtype=int)
        one = [np.tile(regressor[first], d), np.repeat(response, self.n_regressors), zeros, response]
        other = [np.tile(regressor[second], d), np.tile(regressor, d), zeros, response]
        column = [np.repeat(np.arange(d), len(each) // d) for each in one]
        cell = np.arange(self.cells_per_component)
        pair = np.concatenate(one), np.concatenate(other), np.concatenate(column)
        units = self.origin, self.unit, self.given_origin, self.given_unit
        return Products(cell, *pair, np.ones(len(cell)), *units)

    def _split(self, natural: np.ndarray) -> list[np.ndarray]:
        """Cells (..., cells per component) of products, of sums, of logs of precisions, and of squares."""
        d = self.n_columns
        ends = np.cumsum([0, d * len(self._upper[0]), d * self.n_regressors, d, d])
        return [natural[..., first:last] for first, last in pairwise(ends)]

    def step(self, natural: np.ndarray, table: LinearTable) -> Step:
        """The emission at natural parameters (n_cells,) or (n_cells, n_lanes)."""
        return RegressionStep(self, natural)

    # Asking -----------------------------------------------------------------------------------------------------------

    def log_predictive(self, block: LinearTable, posterior: RegressionFamily) -> np.ndarray:
        """Student t log densities of the responses at their regressors, nats, (n_rows, n_components)."""
        measured, observed = (np.broadcast_to(x, (self.n_columns, len(block))) for x in block.columns)
        regressors = np.nan_to_num(self.regressors(block.values))
        k = posterior.n_rows // self.n_columns
        away = np.tile(measured, (k, 1)) - posterior.mean @ regressors
        spread = 1 + np.einsum("in,sij,jn->sn", regressors, posterior.covariance, regressors)
        a, b = posterior.shape[:, None], posterior.rate[:, None]
        logs = log_rising(a, 0.5) - 0.5 * np.log(2 * np.pi * b * spread)
        logs = logs - (a + 0.5) * np.log1p(away**2 / (2 * b * spread))
        column_logs = logs.reshape(k, self.n_columns, -1) - np.log(self.unit)[:, None]
        return (observed * column_logs).sum(axis=1).T

    def _in_units(self, values: np.ndarray, point: RegressionPoint) -> np.ndarray:
        """Expected responses of rows in each component, in units, (n_rows, n_components, n_columns)."""
        products = self.regressors(values).T @ point.coefficients.T
        return products.reshape(len(values), len(point.coefficients) // self.n_columns, self.n_columns)

    def sample(self, point: RegressionPoint, components: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Rows drawn, of one sequence; refused where responses hang on covariates."""
        return self.sample_given(None, None, point, components, rng)

    def sample_given(
        self, values: Any, lengths: Any, point: RegressionPoint, components: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Responses drawn at the covariates of some rows, one step after the other where they hang on earlier ones.

        The first rows of a sequence, which have no earlier values, are those given; of sequences without any rows the
        values before the first are the means of the data.
        """
        n, d, c = len(components), self.n_columns, self.n_covariates
        if values is None and c:
            raise ValueError("Responses depend on covariates, which a model of the responses does not draw.")
        rows = np.concatenate(
            [np.zeros((n, d)), np.tile(self.given_origin + self.given_unit * self.given_mean, (n, 1))], 1
        )
        if values is not None:
            rows = np.array(values, dtype=float)
        noise = rng.standard_normal((n, d)) / np.sqrt(point.precision.reshape(-1, d))[components]
        step = steps_of([n] if lengths is None else lengths) if self.n_lags else np.zeros(n, dtype=int)
        for t in range(0 if values is None else self.n_lags, step.max(initial=-1) + 1):
            at = np.flatnonzero(step == t)
            for lag in range(1, min(t, self.n_lags) + 1):
                rows[at, d + c + (lag - 1) * d : d + c + lag * d] = rows[at - lag, :d]
            means = self._in_units(rows[at], point)[np.arange(len(at)), components[at]]
            rows[at, :d] = self.origin + self.unit * (means + noise[at])
        return rows

    def impute(self, block: LinearTable, point: RegressionPoint, responsibilities: np.ndarray) -> np.ndarray:
        """Rows with missing responses replaced by their means, and what is given and missing by that of the data."""
        values = np.array(block.values, dtype=float)
        explaining = values[:, self.n_columns :]
        explaining[:] = np.where(
            np.isnan(explaining), self.given_origin + self.given_unit * self.given_mean, explaining
        )
        means = np.einsum("nk,nkj->nj", responsibilities, self._in_units(values, point))
        responses = values[:, : self.n_columns]
        responses[:] = np.where(np.isnan(responses), self.origin + self.unit * means, responses)
        return values

    def seeding_coordinates(self, block: LinearTable) -> np.ndarray:
        """Responses and what is given, in units from their means."""
        regressors = self.regressors(block.values)[int(self.intercept) :]
        regressors = np.nan_to_num(regressors - self.given_mean[:, None])
        measured = block.columns[0]
        if not self.n_lags:  # rows of a network may have responses without regressors
            measured = np.nan_to_num((block.values[:, : self.n_columns] - self.origin) / self.unit).T
        return np.concatenate([measured, regressors]).T

    def parameters(self, point: RegressionPoint) -> dict[str, np.ndarray]:
        """Of each component and response: slopes, the value at 0 and at the mean of what is given, and the variance."""
        coefficients = point.coefficients.reshape(
            len(point.coefficients) // self.n_columns, self.n_columns, self.n_regressors
        )
        constants = {name: at + (coefficients * per).sum(axis=-1) for name, (at, per) in self._maps().items()}
        slopes = coefficients[..., int(self.intercept) :] * self._slope_units
        return constants | {
            "coefficients": slopes,
            "variances": self.unit**2 / point.precision.reshape(-1, self.n_columns),
        }

    def point_of(self, parameters: Mapping[str, np.ndarray]) -> RegressionPoint:
        """Coefficients of the constant and of what is given, and inverse variances, in units; see `parameters`."""
        slopes = parameters["coefficients"] / self._slope_units
        coefficients = slopes
        if self.intercept:
            at_zero = (parameters["intercepts"] - self.origin) / self.unit
            constants = at_zero + slopes @ (self.given_origin / self.given_unit)
            coefficients = np.concatenate([constants[..., None], slopes], axis=-1)
        precision = self.unit**2 / parameters["variances"]
        return RegressionPoint(coefficients.reshape(-1, self.n_regressors), precision.ravel())

    @property
    def _slope_units(self) -> np.ndarray:
        return self.unit[:, None] / self.given_unit

    def _maps(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Linear functions of coefficients by name: offsets (n_columns,) and factors (n_columns, n_regressors)."""
        ones = np.ones(int(self.intercept))
        at_zero = np.concatenate([ones, -self.given_origin / self.given_unit])
        at_mean = np.concatenate([ones, self.given_mean])
        return {
            "intercepts": (self.origin, self.unit[:, None] * at_zero),
            "means": (self.origin, self.unit[:, None] * at_mean),
        }

    def quantiles(self, posterior: RegressionFamily, probability: float) -> dict[str, np.ndarray]:
        """Quantiles of slopes and of values at 0 and at the mean of what is given, each of them Student t."""
        shape = -1, self.n_columns
        a, b = posterior.shape.reshape(shape), posterior.rate.reshape(shape)
        mean = posterior.mean.reshape(*shape, self.n_regressors)
        covariance = posterior.covariance.reshape(*shape, self.n_regressors, self.n_regressors)
        reach = stdtrit(2 * a, probability) * np.sqrt(b / a)
        ends = {}
        for name, (at, per) in self._maps().items():
            width = np.sqrt(np.einsum("ji,kjil,jl->kj", per, covariance, per))
            ends[name] = at + (mean * per).sum(axis=-1) + reach * width
        each = mean + reach[..., None] * np.sqrt(np.diagonal(covariance, axis1=-2, axis2=-1))
        return ends | {"coefficients": each[..., int(self.intercept) :] * self._slope_units}


class RegressionStep(LinearStep):
    """Regressions at natural parameters, whose cells the family holds kind by kind, not component by component."""

    def __init__(self, emission: RegressionEmission, natural: np.ndarray):
        of = emission.component_of_cell(len(natural) // emission.cells_per_component)
        self._order = np.argsort(of, kind="stable")
        super().__init__(emission, natural[self._order])

    def statistics(self, total: np.ndarray) -> np.ndarray:
        """Statistics of a sum."""
        by_component = by_cell(total, self.single)
        statistics = np.empty_like(by_component)
        statistics[self._order] = by_component
        return statistics
