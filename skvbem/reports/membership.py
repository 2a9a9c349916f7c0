r"""Covariates of the component in words of the field: odds ratios, probabilities of classes, tests.

A log odds ratio is :math:`w_{kj} - w_{rj}` of class k against a reference r. The probability of class k where a
covariate is v is the mean over rows, :math:`\frac1n \sum_i \pi_k(u_i \text{ with } u_{ij} = v)`.
Intervals are those of draws, each in the order of classes that is nearest to the fit. Of a point they are those of the
normal distribution whose covariance is the inverse of the observed information.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import softmax
from scipy.stats import chi2, norm
from sklearn.base import clone

from skvbem._arguments import check_argument, check_level, is_collection, is_whole, listed
from skvbem._tabular import data_frame, html_table, number, text_table
from skvbem.emissions.softmax import normal_points
from skvbem.fitted.memberships import Membership
from skvbem.fitted.parameter_tables import ParameterTable
from skvbem.fitting.evaluation import fit_at_hand
from skvbem.fitting.fit import question
from skvbem.reading.column_groups import Group
from skvbem.reading.names import ColumnSelection
from skvbem.uncertainty.draws import Draws
from skvbem.uncertainty.intervals import default_draws
from skvbem.uncertainty.posterior_draws import PosteriorDraws
from skvbem.uncertainty.standard_errors import StandardErrors

# Values of a number that probabilities are taken at, and most draws behind a band.
_N_VALUES, _MAX_DRAWS = 25, 400


@dataclass(frozen=True, eq=False)
class OddsRatios:
    """Odds of each class against a reference class, by covariate.

    Parameters
    ----------
    reference : int
        The class that odds are against.
    classes : tuple of int
        The others.
    names : tuple of str
        "intercept", covariates, and levels of those that are categories, against the mean over levels.
    coefficients : ndarray of shape (n_classes, n_names)
        Log odds ratios, by unit of each covariate; of the intercept log odds where all numbers are 0.
    lower, upper : ndarray of shape (n_classes, n_names)
        Ends of intervals of the coefficients.
    level : float
        Mass of the intervals.
    method : str
        What the intervals are from.
    tests : tuple of tuple
        Covariate, name of the test, chi-square, degrees of freedom and p value; empty but by maximum likelihood.
    """

    reference: int
    classes: tuple[int, ...]
    names: tuple[str, ...]
    coefficients: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    level: float
    method: str
    tests: tuple[tuple[str, str, float, int, float], ...] = ()

    def records(self) -> list[tuple]:
        """Class, name, log odds ratio and its interval, odds ratio and its interval."""
        return [
            (k, name, *logs, *np.exp(logs).tolist())
            for i, k in enumerate(self.classes)
            for j, name in enumerate(self.names)
            for logs in [[float(of[i, j]) for of in (self.coefficients, self.lower, self.upper)]]
        ]

    def to_frame(self):
        """All ratios as a pandas DataFrame; an ImportError if pandas is not installed."""
        columns = ["class", "name", "coefficient", "lower", "upper", "odds_ratio", "odds_lower", "odds_upper"]
        return data_frame(self.records(), type(self).__name__, columns=columns)

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        header = ["class", "", "log odds ratio", "odds ratio"]
        rows = [
            [str(k), name, *(f"{number(a)} [{number(b)}, {number(c)}]" for a, b, c in (three[:3], three[3:]))]
            for k, name, *three in self.records()
        ]
        return header, rows

    def _test_cells(self) -> tuple[list[str], list[list[str]]]:
        rows = [[name, kind, number(x), str(df), f"{p:.3g}"] for name, kind, x, df, p in self.tests]
        return ["covariate", "test", "chi-square", "df", "p value"], rows

    @property
    def title(self) -> str:
        """The reference, and the source of intervals."""
        return (
            f"Odds against class {self.reference}, {100 * self.level:g} % intervals by {self.method.replace('_', ' ')}"
        )

    def __repr__(self):
        lines = [self.title, *text_table(*self._cells(), n_labels=2)]
        return "\n".join([*lines, *(["", *text_table(*self._test_cells(), n_labels=2)] if self.tests else [])])

    def _repr_html_(self):
        tests = html_table(*self._test_cells(), n_labels=2) if self.tests else ""
        return html_table(*self._cells(), caption=self.title, n_labels=2) + tests


@dataclass(frozen=True, eq=False)
class ClassProbabilities:
    """Probabilities of classes at values of one covariate, the others averaged over rows.

    Parameters
    ----------
    covariate : str
    values : ndarray of shape (n_values,)
        Numbers, or levels of categories.
    probabilities, lower, upper : ndarray of shape (n_values, n_components)
        Probabilities, and the ends of their intervals.
    level : float
        Mass of the intervals.
    method : str
        What the intervals are from.
    """

    covariate: str
    values: np.ndarray
    probabilities: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    level: float
    method: str

    def to_frame(self):
        """All probabilities as a pandas DataFrame; an ImportError if pandas is not installed."""
        columns = [self.covariate, "class", "probability", "lower", "upper"]
        return data_frame(self.records(), type(self).__name__, columns=columns)

    def records(self) -> list[tuple]:
        """Value, class, probability, and the ends of its interval."""
        return [
            (value, k, *(float(of[i, k]) for of in (self.probabilities, self.lower, self.upper)))
            for i, value in enumerate(self.values.tolist())
            for k in range(self.probabilities.shape[1])
        ]

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        three = zip(self.values.tolist(), *(of.tolist() for of in (self.probabilities, self.lower, self.upper)))
        rows = [
            [number(v) if isinstance(v, float) else str(v), *(f"{a:.2f} [{b:.2f}, {c:.2f}]" for a, b, c in zip(*of))]
            for v, *of in three
        ]
        return [self.covariate, *(f"class {k}" for k in range(self.probabilities.shape[1]))], rows

    def __repr__(self):
        return "\n".join(text_table(*self._cells()))

    def _repr_html_(self):
        return html_table(*self._cells())


@dataclass(frozen=True, eq=False)
class _Coefficients:
    """A regression of a fit, and draws of its coefficients, (n_draws, n_components, n_regressors).

    Parameters
    ----------
    membership : Membership
    estimate : ndarray of shape (n_components, n_regressors)
        The mean of the draws of a posterior; the fit of a point.
    drawn : ndarray
    method : str
    is_posterior : bool
    covariance : ndarray of shape (d, d), or None
        Of the contrasts, where draws are those of a normal distribution about a point.
    """

    membership: Membership
    estimate: np.ndarray
    drawn: np.ndarray
    method: str
    is_posterior: bool
    covariance: np.ndarray | None = None

    @classmethod
    def of(cls, membership: Membership, draws: Any) -> _Coefficients:
        """The regression and its draws, from draws of all parameters or from standard errors."""
        prior = membership.prior
        if isinstance(draws, StandardErrors):
            at = membership.free
            mean, covariance = draws.coordinates[at], draws.covariance[at, at]
            values, axes = np.linalg.eigh(covariance)
            free = mean[:, None] + (axes * np.sqrt(values.clip(0.0))) @ normal_points(len(mean))
            drawn, estimate = prior.from_unconstrained(free), prior.from_unconstrained(mean)
            return cls(membership, estimate, np.moveaxis(drawn, -1, 0), draws.method, False, covariance)
        drawn = np.moveaxis(prior.from_natural(draws.natural[membership.cells]), -1, 0)
        is_posterior = isinstance(draws, PosteriorDraws)
        estimate = drawn.mean(axis=0) if is_posterior else membership.point
        return cls(membership, estimate, drawn, draws.method, is_posterior)

    @property
    def effects(self) -> list[tuple[str, str]]:
        """Covariate and name of each coefficient in the units of the data."""
        return self.membership.group.specification.effects(self.membership.group.names, self.membership.group.levels)

    def ratios(self, reference: int, level: float, tests: Sequence[tuple] = ()) -> OddsRatios:
        """Log odds ratios against a class, with intervals."""
        others = [k for k in range(len(self.estimate)) if k != reference]

        def against(w: np.ndarray) -> np.ndarray:
            each = self.membership.part.parameters(w)
            effects = np.concatenate([each["intercepts"][..., None], each["coefficients"]], axis=-1)
            return effects[..., others, :] - effects[..., [reference], :]

        estimate = against(self.estimate)
        if self.covariance is None:
            lower, upper = np.quantile(against(self.drawn), [0.5 - level / 2, 0.5 + level / 2], axis=0)
        else:  # a linear map of normal contrasts
            along = against(np.moveaxis(self.membership.prior.from_unconstrained(np.eye(len(self.covariance))), -1, 0))
            reach = norm.ppf(0.5 + level / 2) * np.sqrt(np.einsum("aij,ab,bij->ij", along, self.covariance, along))
            lower, upper = estimate - reach, estimate + reach
        names = ("intercept", *(name for _, name in self.effects))
        return OddsRatios(reference, tuple(others), names, estimate, lower, upper, level, self.method, tuple(tests))

    @property
    def slopes(self) -> list[tuple[int, str, np.ndarray]]:
        """Position and name of each covariate that has slopes, and where the contrasts of its coefficients stand."""
        ends = np.cumsum([1, *self.membership.part.n_slopes])
        places = np.arange(self.membership.prior.n_free_parameters).reshape(-1, self.membership.prior.n_regressors)
        each = zip(self.membership.part.selected, ends, ends[1:])
        slopes = [(at, self.membership.group.names[at], places[:, first:last].ravel()) for at, first, last in each]
        return [slope for slope in slopes if len(slope[2])]  # one level, or one class, has none to test

    def wald(self) -> list[tuple]:
        """Covariate, name of the test, chi-square, degrees of freedom and p value, of slopes that are all 0."""
        assert self.covariance is not None
        free, tests = self.membership.prior.to_unconstrained(self.estimate), []
        for _, name, at in self.slopes:
            covariance = self.covariance[np.ix_(at, at)]
            is_known = np.linalg.matrix_rank(covariance, hermitian=True) == len(at)
            statistic = float(free[at] @ np.linalg.solve(covariance, free[at])) if is_known else np.nan
            tests.append((name, "Wald", statistic, len(at), float(chi2.sf(statistic, len(at)))))
        return tests


def _coefficients(
    estimator: Any, membership: Membership, X: Any, draws: Any, sample_weight: Any, caller: str
) -> _Coefficients:
    """Draws of the coefficients of a regression of a fitted estimator."""
    wanted = "what sample_posterior, bootstrap or standard_errors returns"
    check_argument(draws is None or isinstance(draws, (Draws, StandardErrors)), "draws", caller, wanted, draws)
    if draws is None:
        is_density = estimator.fitted.form.density
        at_hand = fit_at_hand(estimator, X, sample_weight)
        draws = default_draws(at_hand) if is_density else estimator.standard_errors(X, sample_weight=sample_weight)
    return _Coefficients.of(membership, draws)


def _membership(estimator: Any, node: Any, caller: str) -> Membership:
    """The regression of a fit, of several that of a node; an error where no covariate drives anything."""
    fitted, owner = estimator.fitted, type(estimator).__name__
    driven = getattr(fitted, "driven", ())
    if not driven:
        how = "covariates=[...]" if hasattr(estimator, "latents") else "membership=Softmax([...])"
        raise ValueError(
            f"{caller} needs covariates of the component, and this {owner} has none. Fit with {how}, which names them."
        )
    if node is None and len(driven) > 1:
        which = ", ".join(map(repr, driven))
        raise ValueError(f"{caller} is of one node, and covariates drive {which}: name it, as in node={driven[0]!r}.")
    if node is not None and not (isinstance(node, Hashable) and node in frozenset(driven)):
        which = " or ".join(map(repr, driven))
        raise ValueError(f"The 'node' parameter of {caller} must be None or {which}. Got {node!r} instead.")
    return fitted.membership(driven[0] if node is None else node)


def odds_ratios(
    estimator, X, reference=None, *, node=None, level=0.95, draws=None, likelihood_ratio=False, sample_weight=None
) -> OddsRatios:
    """Odds of each class against a reference, by default the largest class, with tests of a fit by ML."""
    check_level("odds_ratios", level)
    membership = _membership(estimator, node, "odds_ratios")
    n = len(membership.counts)
    is_class = reference is None or (is_whole(reference) and 0 <= reference < n)
    check_argument(is_class, "reference", "odds_ratios", f"None or a class, an int from 0 to {n - 1}", reference)
    is_ml = estimator.method == "ml"
    if likelihood_ratio:
        is_mixture = hasattr(estimator, "membership")
        can_fit = is_ml and is_mixture and X is not None and not getattr(estimator.fitted, "names", ())
        wanted = "False, except for a mixture by method='ml' without known labels, with its X"
        check_argument(can_fit, "likelihood_ratio", "odds_ratios", wanted, likelihood_ratio)
    coefficients = _coefficients(estimator, membership, X, draws, sample_weight, "odds_ratios")
    tests = coefficients.wald() if is_ml and coefficients.covariance is not None else []
    if likelihood_ratio:
        tests += _likelihood_ratios(estimator, X, sample_weight, coefficients)
    reference = int(membership.counts.argmax()) if reference is None else int(reference)
    return coefficients.ratios(reference, level, tests)


def _likelihood_ratios(estimator: Any, X: Any, sample_weight: Any, coefficients: _Coefficients) -> list[tuple]:
    """The test of each covariate against the fit without it."""
    given, tests = listed(estimator.membership.covariates), []
    for left_out, name, which in coefficients.slopes:
        rest, df = [given[at] for at in coefficients.membership.part.selected if at != left_out], len(which)
        smaller = clone(estimator).set_params(membership=clone(estimator.membership).set_params(selected=rest))
        smaller.fit(X, sample_weight=sample_weight)
        statistic = max(2 * (estimator.log_likelihood_ - smaller.log_likelihood_), 0.0)
        tests.append((name, "likelihood ratio", statistic, df, float(chi2.sf(statistic, df))))
    return tests


def class_probabilities(
    estimator, X, covariate, values=None, *, node=None, level=0.95, draws=None, sample_weight=None
) -> ClassProbabilities:
    """Probabilities of classes at values of a covariate, the others averaged over rows of X."""
    check_level("class_probabilities", level)
    membership = _membership(estimator, node, "class_probabilities")
    fitted, reading = question(estimator, X, sample_weight=sample_weight)
    group, rows, part = membership.group, membership.covariates(reading.values), membership.part
    at = _position(fitted, group, covariate)
    shown, codes = _values(group, at, rows[:, at], values)
    coefficients = _coefficients(estimator, membership, X, draws, sample_weight, "class_probabilities")
    drawn = coefficients.drawn
    weight = np.ones(len(rows)) if reading.unit_weight is None else reading.unit_weight
    others, which = np.unique(np.delete(rows, at, axis=1), axis=0, return_inverse=True)
    weight = np.bincount(which.ravel(), weight, len(others)) / weight.sum()
    drawn = drawn[:: -(-len(drawn) // _MAX_DRAWS)]
    probabilities = np.empty((len(codes), len(drawn) + 1, drawn.shape[1]))
    for k, code in enumerate(codes):
        block = part.prepare(np.insert(others, at, code, axis=1))
        for j, w in enumerate([coefficients.estimate, *drawn]):
            probabilities[k, j] = weight @ softmax(block @ w.T, axis=1)
    lower, upper = np.quantile(probabilities[:, 1:], [0.5 - level / 2, 0.5 + level / 2], axis=1)
    centre = probabilities[:, 1:].mean(axis=1) if coefficients.is_posterior else probabilities[:, 0]
    return ClassProbabilities(group.names[at], shown, centre, lower, upper, level, coefficients.method)


def _position(fitted: Any, group: Group, covariate: Any) -> int:
    """The position of a covariate among those of the component."""
    selection = ColumnSelection("The 'covariate' parameter of class_probabilities", "values", fitted.groups.names, None)
    (column,) = selection.positions("covariate", [covariate])
    name = fitted.groups.names[column]
    if name not in group.names:
        raise ValueError(
            f"The 'covariate' parameter of class_probabilities must be one of {', '.join(map(repr, group.names))}, the "
            f"covariates of the component. Got {covariate!r} instead."
        )
    return group.names.index(name)


def _values(group: Group, at: int, column: np.ndarray, values: Any) -> tuple[np.ndarray, np.ndarray]:
    """Values of a covariate that probabilities are taken at, and these as an emission takes them."""
    levels = group.levels[at].tolist() if group.levels else []
    name, method = group.names[at], "class_probabilities"
    if not levels:
        numbers = _finite(np.linspace(column.min(), column.max(), _N_VALUES) if values is None else values)
        check_argument(
            numbers is not None, "values", method, f"a sequence of finite numbers, as {name!r} holds numbers", values
        )
        return numbers, numbers
    is_several = values is None or is_collection(values)
    check_argument(is_several, "values", method, f"a sequence of levels of {name!r}", values)
    wanted = levels if values is None else list(values)
    if unknown := [value for value in wanted if value not in levels]:
        raise ValueError(
            f"The 'values' parameter of class_probabilities must be among {', '.join(map(repr, levels))}, the levels "
            f"of {name!r}. Got {unknown[0]!r} among them."
        )
    return np.array(wanted, dtype=object), np.array([levels.index(value) for value in wanted], dtype=float)


def _finite(values: Any) -> Any:
    """A sequence of finite numbers as an array; None if it is none."""
    try:
        numbers = np.array(values, dtype=float)
    except (TypeError, ValueError):
        return None
    return numbers if numbers.ndim == 1 and np.isfinite(numbers).all() else None


def membership_tables(fitted: Any, draws: Any, level: float) -> list[ParameterTable]:
    """A table of odds ratios against the largest class of each regression, for a summary; none without draws."""
    tables = []
    for node in getattr(fitted, "driven", ()) if draws is not None else ():
        membership = fitted.membership(node)
        if len(membership.counts) < 2:
            continue
        ratios = _Coefficients.of(membership, draws).ratios(int(membership.counts.argmax()), level)
        values, lower, upper = (np.exp(each[:, 1:].T) for each in (ratios.coefficients, ratios.lower, ratios.upper))
        states: list[dict[Hashable, int]] = [{node: each} for each in ratios.classes]
        of_node = "" if node == "component" else f" of {node}"
        title, columns = f"odds ratios{of_node} against {ratios.reference}", [str(each) for each in ratios.classes]
        tables.append(ParameterTable(title, ratios.names[1:], columns, values, (lower, upper), (), states))
    return tables
