"""`bootstrap_lrt`: whether a larger model fits better than chance would let it, by data drawn from the smaller one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skvbem._arguments import check_count
from skvbem._names import shown
from skvbem._progress import long_method
from skvbem._tabular import named_values
from skvbem.fitted.base import Fitted
from skvbem.fitting.evaluation import read_again, run_of
from skvbem.fitting.fit import seed_of
from skvbem.fitting.kind import kind_of
from skvbem.optima.plan import FitPlan
from skvbem.reading.base import Reading
from skvbem.uncertainty.bootstrap import check_tables, replicated, starts_of

# Of the random numbers of an estimator, those of this test.
_STREAM = 2**35 + 1
# Share of fits that may fail without a word; nats by which a larger model may fall behind a smaller one.
_FAILED_SHARE, _BEHIND = 0.01, 1e-3


@dataclass(frozen=True, eq=False)
class LikelihoodRatioTest:
    """Likelihood ratio of a larger model and a smaller one, and its distribution under the smaller one.

    Parameters
    ----------
    statistic : float
        2 (ln L of the larger model - ln L of the smaller one).
    drawn : ndarray of shape (n_boot,)
        Statistics of tables drawn from the smaller model, to which both models were fitted anew.
    n_more_parameters : int
        Free parameters of the larger model less those of the smaller one.
    doubts : tuple of str
        Why the test should be read with care.
    """

    statistic: float
    drawn: np.ndarray
    n_more_parameters: int
    doubts: tuple[str, ...] = ()

    @property
    def p_value(self) -> float:
        """(1 + how many of the drawn reach the statistic) / (1 + how many were drawn) [Davison & Hinkley (4.11)]."""
        return float((1 + (self.drawn >= self.statistic).sum()) / (1 + len(self.drawn)))

    @property
    def standard_error(self) -> float:
        """Standard error of the p value, by how many were drawn."""
        return float(np.sqrt(self.p_value * (1 - self.p_value) / len(self.drawn)))

    def _facts(self) -> dict[str, str]:
        ends = np.quantile(self.drawn, [0.5, 0.95])
        facts = {
            "2 ln likelihood ratio": f"{self.statistic:.3f}, with {self.n_more_parameters} parameters more",
            "under the smaller model": f"median {ends[0]:.3f}, 95 % below {ends[1]:.3f}, of {len(self.drawn)} tables",
            "p value": f"{self.p_value:.3f}, standard error {self.standard_error:.2g}",
        }
        return facts | {f"doubt {number}": doubt for number, doubt in enumerate(self.doubts, 1)}

    def __repr__(self):
        return "\n".join(f"{name:<25}{text}" for name, text in self._facts().items())

    def _repr_html_(self):
        return named_values(self._facts())


@dataclass(frozen=True, eq=False)
class _Starts:
    """The fit at hand, and starts anew, as a plan takes them."""

    last: np.ndarray
    anew: Any

    @property
    def n_starts(self) -> int:
        return 1 + (self.anew.n_starts if callable(self.anew) else self.anew.shape[1])

    def __call__(self, ascent: Any) -> np.ndarray:
        return np.column_stack([self.last, self.anew(ascent) if callable(self.anew) else self.anew])


@dataclass(frozen=True, eq=False)
class _Side:
    """One of the two models: how it is fitted to data that were drawn."""

    fitted: Fitted
    reading: Reading
    plan: FitPlan
    compiled: Callable
    new_starts: Callable

    @classmethod
    def of(cls, fit: Any, reading: Reading) -> _Side:
        kind = kind_of(fit)
        return cls(fit.fitted, reading, run_of(fit).plan, partial(kind.compiled, fit), kind.new_starts)

    def fit_to(self, values: Any, seed: tuple[int, ...]) -> tuple[float, bool, bool]:
        """Log likelihood reached, whether the fit converged, and whether it has a component of no width."""
        fitted, reading = self.fitted, self.reading.kept().refilled(values)
        data = self.compiled(fitted.model, reading, self.plan.n_starts)
        anew = self.new_starts(self.plan, seed)
        plan = replace(self.plan, seed=seed, starts=_Starts(starts_of(fitted), anew))
        fit = plan.run(fitted.model, data, fitted.form)
        spikes = fitted.model.prior.are_spikes(fit.statistics)
        return float(fit.objective), bool(fit.converged), bool(spikes is not None and np.any(spikes))


@dataclass(frozen=True, eq=False)
class _Replication:
    """Replications: data drawn from the smaller model, both fitted to them, in any process."""

    small: _Side
    large: _Side
    drawn: Callable

    def ratio(self, seed: tuple[int, ...]) -> tuple[float, bool, bool]:
        """Statistic, whether both fits converged, and whether any has a spike, for a seed."""
        small = self.small
        values = self.drawn(small.reading, small.fitted.model, small.fitted.point, np.random.default_rng(seed))
        (of_small, ended, thin), (of_large, both_ended, any_thin) = (
            side.fit_to(values, seed) for side in (small, self.large)
        )
        return 2.0 * (of_large - of_small), ended and both_ended, thin or any_thin


def bootstrap_lrt(
    small,
    large,
    X,
    n_boot=100,
    *,
    sample_weight=None,
    random_state=None,
    n_jobs=None,
    verbose=None,
    time_budget=None,
    **where,
) -> LikelihoodRatioTest:
    """Test whether a larger model fits better than chance would let it: the parametric bootstrap likelihood-ratio test.

    The likelihood ratio of, say, three classes against two has no chi-square distribution [McLachlan 1987]. So tables
    are drawn from the smaller model, and both models are fitted to each.

    Parameters
    ----------
    small, large : estimators of one class
        Both fitted by ``method="ml"`` to X, the larger one with more free parameters, such as one class more.
    X : array-like of shape (n_samples, n_features)
        The data of both fits.
    n_boot : int, default=100
        Tables drawn. The p value is at least 1 / (n_boot + 1).
    sample_weight : array-like of shape (n_samples,), default=None
        As in `fit`; whole numbers.
    random_state : int, RandomState instance or None, default=None
        By default tables follow from the seed of the smaller fit.
    n_jobs : int, default=None
        Processes of joblib; the result does not depend on it.
    verbose : int, default=None
        Above 0 a line says how far it is; by default as the smaller fit's `verbose`.
    time_budget : float, default=None
        Seconds after which no further table is drawn; a warning says how many there were.
    **where
        `sequence_id`, `lengths`, `inputs`, where `fit` takes them.

    Returns
    -------
    LikelihoodRatioTest

    Raises
    ------
    TypeError
        If these are no two estimators of one class.
    ValueError
        If a fit is not by ``method="ml"``, not of X, or the larger one is not larger.

    Notes
    -----
    Fits to drawn tables begin from the fit at hand and from as many new starts as `n_init` says. A larger model that
    misses its optimum in drawn tables makes the p value too small; more starts guard against that. To compare models
    by their evidence is faster, and says how probable each is; see `compare`.

    Examples
    --------
    >>> from skvbem import VBDiscreteDAG, bootstrap_lrt
    >>> from skvbem.datasets import load_carcinoma
    >>> X = load_carcinoma().data
    >>> two, three = (VBDiscreteDAG(latents=k, method="ml", n_init=4, random_state=0).fit(X) for k in (2, 3))
    >>> test = bootstrap_lrt(two, three, X, n_boot=19)
    >>> round(test.statistic, 2), test.n_more_parameters, test.p_value
    (47.1, 8, 0.05)
    """
    _check(small, large)
    check_count("n_boot", "bootstrap_lrt", n_boot)
    check_tables(n_boot, small)
    readings = [_in_order(fit, X, sample_weight, where) for fit in (small, large)]
    sides = [_Side.of(fit, reading) for fit, reading in zip((small, large), readings)]
    more = large.n_free_parameters_ - small.n_free_parameters_
    statistic = 2.0 * (large.log_likelihood_ - small.log_likelihood_)
    if more < 1 or statistic < -_BEHIND:
        raise ValueError(
            "bootstrap_lrt takes the smaller model first, and a larger one that fits as well or better. The first has "
            f"{small.n_free_parameters_} free parameters and ln L = {small.log_likelihood_:.3f}, the second "
            f"{large.n_free_parameters_} and {large.log_likelihood_:.3f}. Change their order, or raise 'n_init' of the "
            "larger one."
        )
    seed = sides[0].plan.seed if random_state is None else seed_of(small, random_state)
    replication = _Replication(sides[0], sides[1], kind_of(small).drawn_like)
    seeds = [(*seed, _STREAM, k) for k in range(int(n_boot))]
    with long_method(small, "bootstrap_lrt", verbose, time_budget):
        ratios = replicated("bootstrap_lrt", replication.ratio, seeds, n_jobs)
    drawn, converged, spikes = (np.array([each[k] for each in ratios]) for k in range(3))
    return LikelihoodRatioTest(statistic, np.maximum(drawn, 0.0), more, _doubts(drawn, converged, spikes))


def _doubts(drawn: np.ndarray, converged: np.ndarray, spikes: np.ndarray) -> tuple[str, ...]:
    """Why the test should be read with care: fits that failed, in more than a few of the tables."""
    told = (
        (drawn < -_BEHIND, "the larger model fell behind the smaller one: raise 'n_init'."),
        (~converged, "a fit did not converge: raise 'max_iter'."),
        (spikes, "a component had no width, where the likelihood has no maximum: the p value means little."),
    )
    n = len(drawn)
    return tuple(f"In {bad.sum()} of {n} tables {what}" for bad, what in told if bad.mean() > _FAILED_SHARE)


def _check(small: Any, large: Any) -> None:
    """Refuse what is no pair of fits by maximum likelihood of one class."""
    for fit in (small, large):
        if not hasattr(type(fit), "log_evidence"):
            raise TypeError(
                "bootstrap_lrt takes two fitted estimators of this library, and then X, as in "
                f"bootstrap_lrt(two, three, X). Got {shown(fit)} among them."
            )
        check_is_fitted(fit)
        fit.fitted.check_was_found("bootstrap_lrt", type(fit).__name__)
        if fit.fitted.form.name != "ml":
            raise ValueError(
                f"bootstrap_lrt compares likelihoods at their maxima, and a fit is by method={fit.fitted.form.name!r}. "
                "Fit both with method='ml'; or compare bounds and evidences, as by compare([small, large], X)."
            )
    if type(small) is not type(large):
        raise TypeError(
            f"bootstrap_lrt takes two estimators of one class. Got {type(small).__name__} and {type(large).__name__}."
        )


def _in_order(fit: Any, X, sample_weight, where: dict) -> Reading:
    """The data of a fit, one by one, in an order that their values alone decide."""
    reading = read_again(fit, X, sample_weight, **where)
    if reading.are_in_blocks:
        raise TypeError("bootstrap_lrt draws rows anew, which must be in memory; X comes in blocks.")
    if not reading.has_whole_weights:
        raise ValueError("bootstrap_lrt draws rows one by one, and needs whole-number sample weights.")
    return reading.in_order().one_by_one()
