r"""Labels that covariates of their rows drive: a softmax regression of the label, beside what components make.

Given its covariates, a row is of component k with probability :math:`\propto \exp(w_k^\top u)`. As a part of an
emission this is the likelihood of what is given beside the row, so that rows, statistics and starts are those of any
other group of columns; the weights of components have no parameters then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import log_softmax, logsumexp, polygamma
from scipy.stats import norm
from scipy.stats.qmc import Sobol

from skvbem._compat import Interval, StrOptions
from skvbem._numerics import distinct_rows
from skvbem.blocks import Blocks, map_reduce
from skvbem.emissions.base import Step
from skvbem.emissions.coding import Coding, named_effects
from skvbem.emissions.given import EmissionOfGiven
from skvbem.emissions.moments import n_columns_of
from skvbem.emissions.specification import HIERARCHICAL, EmissionSpecification, Ends, Parameters, is_hierarchical
from skvbem.families.hierarchical import Hierarchical
from skvbem.families.inert import Inert
from skvbem.families.softmax_family import with_hidden_precisions
from skvbem.families.softmax_maximum import Design, contrasts
from skvbem.families.softmax_regression import SoftmaxRegression

# Points of a Sobol sequence over which coefficients are integrated for a prediction.
_N_POINTS = 512
# Log probabilities of labels at these points that are in memory at once.
_AT_ONCE = 2**16


class Softmax(EmissionSpecification):
    r"""Covariates of the component of a row, for `membership` of `VBMixture`; of the state of a step in `VBHMM`.

    `VBHMM` takes them as `transitions` and as `start`.

    Parameters
    ----------
    covariates : str, int, or sequence of these
        Columns by name or position. They are given: no distribution of theirs is part of the evidence. Strings, pandas
        categories and columns in `categories` are categories, of which L have L - 1 orthonormal contrasts, so that
        none is a reference; all else are numbers.
    selected : sequence of str or int, default=None
        Covariates that have slopes; by default all. The others are given as well, and drive nothing: evidences of
        models that select unlike covariates are those of the same columns. `CovariateSpace` has all selections.
    at : {"departure", "arrival"}, default="departure"
        Step whose covariates drive a transition, for `transitions` alone: the step that is left, as in depmixS4, or the
        step that is arrived at, as in moveHMM. An error where there are no transitions.
    slope_prior : float or "hierarchical", default=1.0
        Prior variance of the slopes, by standard deviation of each covariate. "hierarchical" gives all slopes of a
        covariate a hidden precision, Gamma(1, 1), which is learned with them.
    intercept_prior : float, default=None
        Prior variance of the intercepts; by default :math:`\psi'(1) = 1.645`, as wide as Dirichlet(1) weights.
    standardize : bool, default=True
        True measures numbers from their means, in standard deviations, and contrasts of categories from their means.

    Notes
    -----
    A row with covariates u is of component k with probability

    .. math:: \pi_k(u) = \frac{\exp(w_k^\top u)}{\sum_l \exp(w_l^\top u)}, \qquad w_{kj} \sim N(0, v_j),

    the same prior for every component, so that no component is a reference.

    Examples
    --------
    >>> import numpy as np
    >>> from skvbem import VBMixture
    >>> from skvbem.emissions import Softmax
    >>> rng = np.random.default_rng(0)
    >>> age = rng.normal(50, 10, size=400)
    >>> kind = rng.random(400) < 1 / (1 + np.exp(-(age - 50) / 5))
    >>> X = np.column_stack([rng.normal(4.0 * kind), rng.normal(4.0 * kind), age])
    >>> without = VBMixture(2, random_state=0, emission={"gaussian": [0, 1], "remainder": "drop"}).fit(X)
    >>> model = VBMixture(2, membership=Softmax([2]), random_state=0).fit(X)
    >>> bool(model.lower_bound_ > without.lower_bound_ + 50)
    True
    """

    _parameter_constraints: ClassVar[dict] = {
        "covariates": "no_validation",
        "selected": "no_validation",
        "slope_prior": [Interval(Real, 0, None, closed="neither"), StrOptions({HIERARCHICAL})],
        "intercept_prior": [Interval(Real, 0, None, closed="neither"), None],
        "standardize": ["boolean"],
        "at": [StrOptions({"departure", "arrival"})],
    }

    are_given: ClassVar[bool] = True

    def __init__(
        self,
        covariates=(),
        *,
        selected=None,
        at="departure",
        slope_prior=1.0,
        intercept_prior=None,
        standardize=True,
    ):
        self.covariates = covariates
        self.selected = selected
        self.at = at
        self.slope_prior = slope_prior
        self.intercept_prior = intercept_prior
        self.standardize = standardize

    def for_data(
        self,
        values: np.ndarray | Blocks,
        weight: np.ndarray | None = None,
        *,
        n_categories: Sequence[int] | None = None,
    ) -> SoftmaxMembership:
        """The membership of rows with covariates (n_rows, n_covariates), none of them missing; 0 categories: numbers.

        Rows with equal covariates are kept once, of blocks those of all together.
        """
        self.check_parameters()
        n_given = n_columns_of(values)
        selected = tuple(at for at in range(n_given) if self.selected is None or self.selected[at])
        sizes = tuple(0 if n_categories is None else int(n_categories[at]) for at in selected)
        parts = values if isinstance(values, Blocks) else [(values, weight)]
        distinct = map_reduce(partial(_DistinctRows.of, selected), parts)
        coding = self.coding(distinct.rows, distinct.weight, sizes)
        design = Design.of(coding.regressors(distinct.rows), distinct.weight)
        return SoftmaxMembership(coding, design, selected, n_given)

    def coding(self, values: np.ndarray, weight: np.ndarray, n_categories: Sequence[int]) -> Coding:
        """The coding of covariates (n_rows, n_covariates) of rows with weights."""
        return Coding.of(values, weight, n_categories, standardize=self.standardize)

    @property
    def intercept_variance(self) -> float:
        """Prior variance of intercepts."""
        return float(polygamma(1, 1.0)) if self.intercept_prior is None else float(self.intercept_prior)

    def prior_options(self, emission: Any, names: Sequence[str]) -> dict[str, Any]:
        """Variances of intercepts and of slopes."""
        slope = None if is_hierarchical(self.slope_prior) else float(self.slope_prior)
        return {"intercept_variance": self.intercept_variance, "slope_variance": slope}

    def expected(self, parameters: Parameters, levels: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Covariates are given: no component expects others."""
        n_given = len(levels) or parameters["coefficients"].shape[1] if self.selected is None else len(self.selected)
        return [np.full(len(parameters["intercepts"]), np.nan)] * n_given

    def profiles(
        self, names: Sequence[str], parameters: Parameters, intervals: Ends, levels: Sequence[np.ndarray]
    ) -> list:
        """No column is drawn."""
        return []

    def further_rows(
        self, names: Sequence[str], parameters: Parameters, ends: Ends, levels: Sequence[np.ndarray] = ()
    ) -> list[tuple]:
        """Log odds against the mean over components: at covariates of 0, by unit of each number, of each level."""
        rows: list[tuple[str, str, Any]] = [("log odds at 0", "intercepts", np.s_[:])]
        effects = self.effects(names, levels)
        labels = [f"log odds {'per' if effect == column else 'of'} {effect}" for column, effect in effects]
        rows += [(label, "coefficients", np.s_[:, j]) for j, label in enumerate(labels)]
        return [
            (label, parameters[name][at], None if ends is None else tuple(each[name][at] for each in ends))
            for label, name, at in rows
        ]

    def effects(self, names: Sequence[str], levels: Sequence[np.ndarray] = ()) -> list[tuple[str, str]]:
        """The covariate of each coefficient, and its name: that of the covariate, or covariate=level."""
        are_selected = self.selected if self.selected is not None else [True] * len(names)
        levels = levels if len(levels) else [np.empty(0)] * len(names)
        chosen = [at for at in range(len(names)) if are_selected[at]]
        return named_effects([names[at] for at in chosen], [levels[at] for at in chosen])


@dataclass(frozen=True, eq=False)
class _DistinctRows:
    """Distinct rows of covariates, (n_rows, n_selected), and the weight of each."""

    rows: np.ndarray
    weight: np.ndarray

    @classmethod
    def of(cls, selected: Sequence[int], part: tuple) -> Self:
        """The distinct rows of some columns of a part, which has values and weights."""
        values, weight = part
        rows, which = distinct_rows(values[:, [*selected]])
        return cls(rows, np.bincount(which, weight, len(rows)).astype(float))

    def __add__(self, other: _DistinctRows) -> Self:
        both = np.concatenate([self.rows, other.rows]), np.concatenate([self.weight, other.weight])
        return self.of(range(self.rows.shape[1]), both)


@dataclass(frozen=True, eq=False)
class SoftmaxMembership(EmissionOfGiven):
    """The probability of the label of a row, given its covariates.

    Parameters
    ----------
    coding : Coding
        Of the selected covariates.
    design : Design
        Regressors of the rows of the fit.
    selected : tuple of int
        Positions of the covariates that have slopes.
    n_given : int
        Covariates of a row, selected or not.
    is_normalized : bool, default=False
        Whether probabilities of each row sum to 1 at natural parameters of a point, as of rows that are no part of the
        design; else they do so on average over the design, as a bound needs it.
    """

    coding: Coding
    design: Design
    selected: tuple[int, ...]
    n_given: int
    is_normalized: bool = False

    @property
    def n_columns(self) -> int:
        """Covariates of a row, selected or not."""
        return self.n_given

    @property
    def n_slopes(self) -> list[int]:
        """Slopes of each selected covariate, of each component; none of a category that has one level."""
        return self.coding.n_slopes

    @property
    def doubles_per_row(self) -> int:
        """Doubles that a block holds for each row."""
        return 1 + len(self.coding.mean)

    @property
    def cells_per_component(self) -> int:
        """Cells of each component: a constant, and covariates."""
        return 1 + len(self.coding.mean)

    @property
    def shared_cells(self) -> int:
        """Cells of the squares of coefficients, by regressor."""
        return 1 + len(self.coding.mean)

    def default_prior(
        self, n_components: int, *, intercept_variance: float = 1.0, slope_variance: float | None = 1.0
    ) -> SoftmaxRegression | Hierarchical:
        """A prior of coefficients about 0, equal for all components; slopes of no given variance have hidden ones."""
        hides = slope_variance is None and len(self.coding.mean) > 0
        variance = np.append(
            intercept_variance, np.full(len(self.coding.mean), 1.0 if slope_variance is None else slope_variance)
        )
        prior = SoftmaxRegression.from_precisions(n_components, self.design, 1.0 / variance)
        return with_hidden_precisions(prior, self.coding.columns) if hides else prior

    def survey(self, values: Any) -> np.ndarray:
        """A table without rows."""
        return np.zeros((0, 1 + len(self.coding.mean)))

    def prepare(self, values: np.ndarray, survey: Any = None) -> np.ndarray:
        """Regressors of rows, (n_rows, n_covariates + 1)."""
        return self.coding.regressors(values[:, [*self.selected]])

    def step(self, natural: np.ndarray, table: np.ndarray) -> Step:
        """The membership at natural parameters (n_cells,) or (n_cells, n_lanes)."""
        return _SoftmaxStep(self, natural)

    def for_new_rows(self) -> Self:
        """The membership of rows that are no part of the design."""
        return replace(self, is_normalized=True)

    def log_predictive(self, block: np.ndarray, posterior: SoftmaxRegression) -> np.ndarray:
        """Log probabilities of labels, coefficients integrated out, nats, (n_rows, n_components)."""
        if not posterior.n_free_parameters:  # of one component, or of a family that says nothing
            return np.zeros((len(block), len(posterior.coordinates) // self.cells_per_component - 1))
        k, p = posterior.n_labels, posterior.n_regressors
        root = np.linalg.cholesky(posterior.covariance)
        drawn = root @ normal_points(len(root))
        h = contrasts(k)
        logs = np.full((len(block), k), -np.inf)
        w = posterior.mean + h @ drawn.T.reshape(-1, k - 1, p)
        size = max(_AT_ONCE // max(logs.size, 1), 1)
        for at in range(0, len(w), size):
            of_points = log_softmax(block @ np.swapaxes(w[at : at + size], 1, 2), axis=2)
            np.logaddexp(logs, logsumexp(of_points, axis=0), out=logs)
        return logs - logsumexp(logs, axis=1, keepdims=True)

    def probabilities(self, block: np.ndarray, point: np.ndarray) -> np.ndarray:
        """Probabilities of labels at coefficients (n_components, n_regressors), (n_rows, n_components)."""
        return np.exp(log_softmax(block @ point.T, axis=1))

    def impute(self, block: np.ndarray, point: Any, responsibilities: np.ndarray) -> np.ndarray:
        """NaN, (n_rows, n_columns): covariates are given, and none is missing."""
        return np.full((len(block), self.n_columns), np.nan)

    def parameters(self, point: np.ndarray) -> dict[str, np.ndarray]:
        """Intercepts (..., n_components), and coefficients (..., n) per unit of numbers and of every category."""
        effects = point @ self.coding.effects.T
        return {"intercepts": effects[..., 0], "coefficients": effects[..., 1:]}

    def parameters_of_draws(self, points: np.ndarray) -> dict[str, np.ndarray]:
        """Parameters at points (n_components, n_regressors, n_draws), draws first."""
        return self.parameters(np.moveaxis(points, -1, 0))

    def quantiles(self, posterior: SoftmaxRegression, probability: float) -> dict[str, np.ndarray]:
        """Quantiles of each intercept and coefficient under q."""
        k, effects = posterior.n_labels, self.coding.effects
        rows = np.kron(contrasts(k), effects)
        deviation = np.sqrt(np.einsum("ij,jk,ik->i", rows, posterior.covariance, rows)).reshape(k, len(effects))
        ends = posterior.mean @ effects.T + norm.ppf(probability) * deviation
        return {"intercepts": ends[:, 0], "coefficients": ends[:, 1:]}

    def seeding_coordinates(self, block: np.ndarray) -> np.ndarray:
        """No axis: covariates do not say how unlike rows are."""
        return np.zeros((len(block), 0))

    @property
    def identifies_components(self) -> bool:
        """False: covariates do so no more than weights."""
        return False

    def size_of_terms(self, table: np.ndarray, weight: np.ndarray) -> float:
        """Sum of the weights: one term of a row."""
        return float(weight.sum())


def normal_points(d: int) -> np.ndarray:
    """Points of a normal distribution, (d, n), always the same, and each with its mirror image."""
    half = norm.ppf(Sobol(d, scramble=True, rng=np.random.default_rng(0)).random(_N_POINTS // 2)).T
    return np.hstack([half, -half])


class _SoftmaxStep(Step):
    """A membership at natural parameters."""

    def __init__(self, emission: SoftmaxMembership, natural: np.ndarray):
        p, self.is_single = emission.cells_per_component, natural.ndim == 1
        lanes = natural.reshape(len(natural), -1)
        self.w = np.moveaxis(lanes[:-p].reshape(-1, p, lanes.shape[1]), -1, 0)  # (n_lanes, n_components, p)
        self.n_components, self.is_normalized = self.w.shape[1], emission.is_normalized

    def log_likelihood(self, block: np.ndarray) -> np.ndarray:
        """Log probabilities of labels, nats, (n_rows, n_components) or (n_lanes, n_rows, n_components)."""
        logs = self.w @ block.T  # components before rows
        if self.is_normalized:
            logs = log_softmax(logs, axis=1)
        logs = logs.swapaxes(1, 2)
        return logs[0] if self.is_single else logs

    def zeros(self) -> np.ndarray:
        """An empty sum, (n_lanes, n_components, p)."""
        return np.zeros(self.w.shape)

    def add(self, block: np.ndarray, responsibilities: np.ndarray, total: np.ndarray) -> None:
        """Add regressors times responsibilities to a sum."""
        total += np.swapaxes(responsibilities.reshape(len(total), len(block), -1), 1, 2) @ block

    def statistics(self, total: np.ndarray) -> np.ndarray:
        """Statistics of a sum, no row adding to squares of coefficients."""
        flat = np.concatenate([total.reshape(len(total), -1), np.zeros((len(total), total.shape[2]))], axis=1)
        return flat[0] if self.is_single else flat.T

    def of_rows(self, block: np.ndarray) -> np.ndarray:
        """Regressors of each row, whatever its component, and zeros."""
        by_row = np.hstack([block, np.zeros(block.shape)])
        return np.broadcast_to(by_row[:, None], (len(block), self.n_components, by_row.shape[1]))


def membership_of(emission: Any) -> int | None:
    """The position of the membership among the parts of an emission; None without one."""
    parts: Sequence[Any] = getattr(emission, "parts", ())
    return next((k for k, part in enumerate(parts) if isinstance(part, SoftmaxMembership)), None)


def prior_without_covariates(emission: Any, prior: Any) -> Any:
    """The prior of an emission whose membership says nothing: covariates do not say how alike rows are."""
    k = membership_of(emission)
    if k is None:
        return prior
    inert = Inert(np.zeros(len(prior.blocks[k].coordinates)))
    return replace(prior, blocks=(*prior.blocks[:k], inert, *prior.blocks[k + 1 :]))
