"""Classes of rows as a fit has them: posteriors, assignments, and how often an assignment is wrong."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skvbem._arguments import is_among, is_whole
from skvbem._names import did_you_mean, shown
from skvbem.fitting.evaluation import is_data_of_fit, run_of
from skvbem.fitting.fit import seed_of
from skvbem.reading.tables import checked_weights, library_of, read_table
from skvbem.uncertainty.bootstrap import check_tables, replicated

#: Ways to assign rows to classes.
ASSIGNMENTS = ("modal", "proportional")
# Of the random numbers of an estimator, those of resampled rows here.
_STREAM = 2**35 + 2
# Condition of a table of assignments from which its inverse holds no digit of errors of estimates.
_LARGEST_CONDITION = 1e8
# Digits of posteriors by which rows are put in order, so that equal ones are beside each other.
_DIGITS = 9


@dataclass(frozen=True, eq=False)
class Classified:
    """Rows and their classes under a fit.

    Parameters
    ----------
    fit : estimator
    X : table
        As the fit reads it.
    latent : int
        Position of the hidden node among those of a network.
    posterior : ndarray of shape (n_rows, n_classes)
    weight : ndarray of shape (n_rows,)
    """

    fit: Any
    X: Any
    latent: int
    posterior: np.ndarray
    weight: np.ndarray

    @property
    def proportions(self) -> np.ndarray:
        """Proportions of classes, averages of posteriors, (n_classes,)."""
        return self.weight @ self.posterior / self.weight.sum()

    def assigned(self, assignment: str) -> np.ndarray:
        """Proportions of each row's assignment, (n_rows, n_classes): to the most probable class, or posteriors."""
        if assignment == "proportional":
            return self.posterior
        return np.eye(self.posterior.shape[1])[self.posterior.argmax(axis=1)]

    def table(self, assignment: str) -> np.ndarray:
        """P(assigned to w | class k), (n_classes, n_classes): of rows of class k the share that is assigned to w.

        Raises
        ------
        ValueError
            If a class is empty.
        """
        joint = (self.posterior * self.weight[:, None]).T @ self.assigned(assignment)
        of_class = joint.sum(axis=1, keepdims=True)
        empty = np.flatnonzero(of_class[:, 0] < 1e-6 * self.weight.sum())
        if len(empty):
            raise ValueError(
                f"Class {empty[0]} of the fit has no rows, so that nothing is known of its assignments. Fit fewer "
                "classes."
            )
        return joint / of_class

    def corrected(self, assignment: str) -> np.ndarray:
        """Proportions of assignments times the inverse of their table, (n_rows, n_classes), which may be negative.

        Raises
        ------
        ValueError
            If the table has no inverse, as where no row is assigned to a class.
        """
        table = self.table(assignment)
        if np.linalg.cond(table) > _LARGEST_CONDITION:
            works = np.linalg.cond(self.table("proportional")) <= _LARGEST_CONDITION
            advice = "Take assignment='proportional'." if works else "Fit fewer classes."
            raise ValueError(
                "Assignments do not tell the classes apart: the table of assignments by class has no inverse, as where "
                f"no row is assigned to some class. {advice}"
            )
        return self.assigned(assignment) @ np.linalg.inv(table)

    def refitted(self, weight: np.ndarray) -> Classified:
        """The classes of the same rows by a fit to rows of other weights, which begins where this one ended."""
        later = copy(self.fit).set_params(warm_start=True, verbose=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            later.fit(self.X, sample_weight=weight)
        return Classified(later, self.X, self.latent, posteriors(later, self.X, self.latent), weight)

    def by_resampling(
        self,
        caller: str,
        estimate: Callable[[Classified], np.ndarray],
        beside: np.ndarray,
        n_boot: int,
        random_state: Any,
        n_jobs: int | None,
    ) -> np.ndarray:
        """Estimates from rows drawn again, all steps anew, (n_boot, ...).

        With what stands beside the rows, (n_rows, n_columns), in which they have an order of their own.
        """
        seed = run_of(self.fit).plan.seed if random_state is None else seed_of(self.fit, random_state)
        order = np.lexsort(np.hstack([beside, np.round(self.posterior, _DIGITS)]).T)
        work = _Resampling(self, order, estimate)
        return np.stack(replicated(caller, work, [(*seed, _STREAM, k) for k in range(n_boot)], n_jobs))


@dataclass(frozen=True, eq=False)
class _Resampling:
    """Work on a seed, in any process."""

    classified: Classified
    order: np.ndarray
    estimate: Callable[[Classified], np.ndarray]

    def __call__(self, seed: tuple[int, ...]) -> np.ndarray:
        given = self.classified.weight[self.order]
        n = int(given.sum())
        weight = np.empty(len(given))
        weight[self.order] = np.random.default_rng(seed).multinomial(n, given / given.sum())
        return self.estimate(self.classified.refitted(weight))


def classified(fit: Any, X: Any, caller: str, latent: Any = None, sample_weight: Any = None) -> Classified:
    """Rows and their classes under a fit.

    Raises
    ------
    TypeError
        If the fit has no classes of independent rows.
    ValueError
        If X is not the data of the fit, or a network has several hidden nodes and none is named.
    """
    if type(fit).__name__ not in ("VBMixture", "VBDiscreteDAG", "VBNetwork"):
        raise TypeError(
            f"{caller} takes a fitted VBMixture, VBDiscreteDAG or VBNetwork, whose rows have classes, and then X. Got "
            f"{shown(fit)}."
        )
    check_is_fitted(fit)
    names = list(getattr(fit, "latent_names_", ["component"]))
    if latent is None:
        if len(names) != 1:
            raise ValueError(
                f"{caller} needs the name of a hidden node: this {type(fit).__name__} has {len(names)}"
                + (f", {', '.join(map(repr, names))}. Give one as 'latent'." if names else ". Fit one with latents.")
            )
    elif not is_among(latent, {*names}):
        raise ValueError(f"{type(fit).__name__} has no hidden node {latent!r}.{did_you_mean(latent, names)}")
    if library_of(X) and hasattr(fit, "feature_names_in_"):
        X = X[[name for name in fit.feature_names_in_ if name in list(X.columns)]]
    weight = checked_weights(sample_weight, read_table(X, caller).n_samples)
    if not is_data_of_fit(fit, X, weight):
        raise ValueError(
            f"{caller} takes the data of the fit, whose classes are counted. X (or sample_weight) is other data. Give "
            "the table that the fit was made from."
        )
    place = 0 if latent is None else names.index(latent)
    posterior = posteriors(fit, X, place)
    if posterior.shape[1] < 2:
        raise ValueError(f"{caller} needs two classes or more; this fit has one. Raise their number.")
    return Classified(fit, X, place, posterior, np.ones(len(posterior)) if weight is None else weight)


def posteriors(fit: Any, X: Any, place: int) -> np.ndarray:
    """Posteriors (n_rows, n_classes) of one hidden variable."""
    answers = fit.predict_proba(X)
    return answers[place] if isinstance(answers, list) else answers


def errors_in_words(n_boot: int) -> str:
    """The source of standard errors, as a note of a report."""
    source = f"a bootstrap of {n_boot} tables, all steps" if n_boot else "rows alone, classes as they are"
    return f"Standard errors by {source}."


def check_resampling(caller: str, n_boot: Any, at_hand: Classified) -> None:
    """Refuse a number of resamplings that is none, and rows that cannot be drawn one by one."""
    if not is_whole(n_boot) or n_boot < 0 or n_boot == 1:
        raise ValueError(f"The 'n_boot' parameter of {caller} must be 0, or an int from 2 on. Got {n_boot!r} instead.")
    check_tables(n_boot, at_hand.fit)
    if n_boot and not (at_hand.weight == np.floor(at_hand.weight)).all():
        raise ValueError(
            f"The bootstrap of {caller} draws rows again, and needs whole-number sample weights. Take n_boot=0, whose "
            "standard errors hold for any weights."
        )
