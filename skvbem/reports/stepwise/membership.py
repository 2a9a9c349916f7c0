r"""`two_step` and `three_step`: covariates of class membership, estimated once the classes are.

The classes come first, from a fit without covariates. What is then known of a row's class is its likelihood
:math:`\ell_{ik} \propto r_{ik} / \sum_j \omega_j r_{jk}` [BK18] (two steps), or the class w that it is
assigned to, which is wrong now and then: :math:`P_{kw} = P(\text{assigned to } w \mid k)`. With proportions
:math:`D_{iw}` of assignments and regressors :math:`u_i`,

.. math::

    L = \sum_i \omega_i \sum_w D_{iw} \ln \sum_k \pi_k(u_i)\, P_{kw}, \qquad
    L^* = \sum_i \omega_i \sum_k (D P^{-1})_{ik} \ln \pi_k(u_i)

are the corrections by maximum likelihood [V10] and of [BCH04].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import chi2, norm

from skvbem._arguments import check_choice, check_level, is_whole
from skvbem._progress import long_method
from skvbem._tabular import data_frame, html_table, number, text_table
from skvbem.reports.stepwise.classification import (
    ASSIGNMENTS,
    Classified,
    check_resampling,
    classified,
    errors_in_words,
)
from skvbem.reports.stepwise.columns import Covariates, read_columns, read_each, table_beside
from skvbem.reports.stepwise.logit import ClassLogit, LogitFit

#: Corrections of `three_step`.
METHODS = ("ml", "bch")


@dataclass(frozen=True, eq=False)
class MembershipRegression:
    """Coefficients of covariates of class membership, against a reference class.

    Parameters
    ----------
    coefficients : ndarray of shape (n_classes, n_regressors)
        Log odds against the reference class by unit of each covariate; 0 in the row of that class.
    covariance : ndarray of shape ((n_classes - 1) * n_regressors,) * 2
        Covariance matrix of the coefficients of all other classes, class after class.
    names : tuple of str
        Names of the regressors, the constant first.
    proportions : ndarray of shape (n_classes,)
        Proportions of the classes, by the fit without covariates.
    log_likelihood : float
        Nats: of the rows in two steps, of the assignments in three; NaN of "bch", whose objective is none.
    classification : ndarray of shape (n_classes, n_classes) or None
        P(assigned to the column's class | class of the row); None in two steps.
    reference : int
    steps : str
        Such as "three steps, ml, modal".
    n_boot : int
        Tables that were drawn for the covariance; 0 where it is the sandwich over rows, for classes as they are.
    covariates : Covariates
        How tables of covariates are read.
    doubts : tuple of str
        Why the estimates should be read with care.
    """

    coefficients: np.ndarray
    covariance: np.ndarray
    names: tuple[str, ...]
    proportions: np.ndarray
    log_likelihood: float
    classification: np.ndarray | None
    reference: int
    steps: str
    n_boot: int
    covariates: Covariates = field(repr=False)
    doubts: tuple[str, ...] = ()

    @property
    def standard_errors(self) -> np.ndarray:
        """Standard errors of the coefficients, of their shape; 0 in the row of the reference class."""
        errors = np.zeros(self.coefficients.shape)
        errors[self._others] = np.sqrt(np.diag(self.covariance)).reshape(len(self._others), -1)
        return errors

    @property
    def _others(self) -> np.ndarray:
        return np.delete(np.arange(len(self.coefficients)), self.reference)

    def records(self, level: float = 0.95) -> list[dict[str, Any]]:
        """A dict for each coefficient: estimate, standard error, z, p value, odds ratio, and the interval of that.

        Parameters
        ----------
        level : float, default=0.95
            Level of the normal interval of the odds ratio.
        """
        check_level("records", level)
        errors, width, rows = self.standard_errors, norm.ppf(0.5 + level / 2), []
        for k in self._others:
            for name, estimate, error in zip(self.names, self.coefficients[k], errors[k]):
                z = estimate / error
                with np.errstate(over="ignore"):
                    low, odds, high = np.exp([estimate - width * error, estimate, estimate + width * error])
                rows.append(
                    {
                        "class": int(k),
                        "covariate": name,
                        "coefficient": float(estimate),
                        "standard_error": float(error),
                        "z": float(z),
                        "p_value": float(2 * norm.sf(abs(z))),
                        "odds_ratio": float(odds),
                        "low": float(low),
                        "high": float(high),
                    }
                )
        return rows

    def to_frame(self, level: float = 0.95):
        """The coefficients as a pandas DataFrame, class and covariate as its index."""
        return data_frame(self.records(level), type(self).__name__).set_index(["class", "covariate"])

    def wald_tests(self) -> dict[str, tuple[float, int, float]]:
        """Wald tests of no effect on any class: statistic, degrees of freedom and p value of each regressor.

        NaN where a coefficient has no standard error.
        """
        tests, p, n = {}, len(self.names), len(self._others)
        for j, name in enumerate(self.names):
            places, estimate = np.arange(n) * p + j, self.coefficients[self._others, j]
            covariance, statistic = self.covariance[np.ix_(places, places)], np.nan
            if np.isfinite(covariance).all():
                statistic = float(estimate @ np.linalg.solve(covariance, estimate))
            tests[name] = statistic, n, float(chi2.sf(statistic, n))
        return tests

    def class_probabilities(self, covariates) -> np.ndarray:
        """Probabilities of the classes at given covariates, (n_rows, n_classes).

        Parameters
        ----------
        covariates : table of shape (n_rows, n_covariates)
            With the columns of the fit.

        Raises
        ------
        ValueError
            If columns differ, a cell is missing, or a level is new.
        """
        table = read_columns(covariates, "class_probabilities")
        logits = self.covariates.regressors(read_each(table, self.covariates.caller)) @ self.coefficients.T
        proportions = np.exp(logits - logits.max(axis=1, keepdims=True))
        return proportions / proportions.sum(axis=1, keepdims=True)

    def _cells(self) -> list[list[str]]:
        header = ["class", "covariate", "coefficient", "s.e.", "z", "p", "odds ratio", "95 % interval"]
        return [header] + [
            [
                str(row["class"]),
                row["covariate"],
                *(number(row[name]) for name in ("coefficient", "standard_error")),
                f"{row['z']:.2f}",
                f"{row['p_value']:.3f}",
                number(row["odds_ratio"]),
                f"[{number(row['low'])}, {number(row['high'])}]",
            ]
            for row in self.records()
        ]

    def _notes(self) -> list[str]:
        proportions = ", ".join(f"{k}: {share:.3f}" for k, share in enumerate(self.proportions))
        notes = [f"Log odds against class {self.reference}. {self.steps}. Proportions of classes {proportions}."]
        return [*notes, errors_in_words(self.n_boot), *self.doubts]

    def __repr__(self):
        header, *rows = self._cells()
        return "\n".join([*text_table(header, rows, n_labels=2), *self._notes()])

    def _repr_html_(self):
        header, *rows = self._cells()
        return html_table(header, rows, n_labels=2, notes=self._notes())


def three_step(
    model,
    X,
    covariates,
    *,
    method="ml",
    assignment="modal",
    latent=None,
    reference=0,
    sample_weight=None,
    n_boot=0,
    random_state=None,
    n_jobs=None,
    verbose=None,
    time_budget=None,
) -> MembershipRegression:
    r"""Covariates of class membership in three steps: fit, assignment, and a logit that knows how often it is wrong.

    The classes stay as the fit has them, whatever the covariates. A logit of the assigned classes alone has slopes that
    are too small, since some rows are in the wrong class: both methods correct for that.

    Parameters
    ----------
    model : VBMixture, VBDiscreteDAG or VBNetwork
        Fitted to X without the covariates.
    X : table of shape (n_samples, n_features)
        The data of the fit; a data frame may have the covariates among its columns.
    covariates : str, list of str, or table of shape (n_samples, n_covariates)
        Names of columns of X, or the covariates. Numbers are taken as they are, categories by indicators of all levels
        but the first.
    method : {"ml", "bch"}, default="ml"
        "ml" maximizes :math:`\sum_i \omega_i \sum_w D_{iw} \ln \sum_k \pi_k(u_i) P_{kw}` [V10], "bch"
        :math:`\sum_i \omega_i \sum_k (D P^{-1})_{ik} \ln \pi_k(u_i)` [BCH04].
    assignment : {"modal", "proportional"}, default="modal"
        D: to the most probable class, or in the proportions of the posterior.
    latent : str, default=None
        The hidden node of a network that has several.
    reference : int, default=0
        The class whose coefficients are 0.
    sample_weight : array-like of shape (n_samples,), default=None
        As in `fit`.
    n_boot : int, default=0
        Tables drawn with replacement, on each of which all three steps are taken anew, for standard errors that know of
        the first step, too. 0 leaves the sandwich over rows, for which the classes are certain.
    random_state : int, RandomState instance or None, default=None
        Seed of the bootstrap; by default that of the fit.
    n_jobs : int, default=None
        Processes of joblib; the result does not depend on it.
    verbose : int, default=None
        Above 0 a line says how far the bootstrap is; by default as `verbose` of the model.
    time_budget : float, default=None
        Seconds after which no further table is drawn; a warning says how many there were.

    Returns
    -------
    MembershipRegression

    Raises
    ------
    TypeError
        If the model has no classes of independent rows.
    ValueError
        If X is not the data of the fit, a covariate has gaps, a class is empty, or an argument is none.

    See Also
    --------
    two_step : The likelihood of each row in place of its assignment.
    distal : An outcome of the classes.

    Notes
    -----
    Slopes are of the population of X. The log likelihood is of assignments given covariates: it compares logits with
    each other for the same classes, and is none of the data.

    Examples
    --------
    Students who cheat, and their grades:

    >>> from skvbem import VBDiscreteDAG, three_step
    >>> from skvbem.datasets import load_cheating
    >>> students = load_cheating(as_frame=True).data.dropna()
    >>> questions = ["LIEEXAM", "LIEPAPER", "FRAUD", "COPYEXAM"]
    >>> model = VBDiscreteDAG(latents={"class": 2}, method="ml", tol=1e-9, random_state=0).fit(students[questions])
    >>> honest = int(model.tables_["class"].values.argmax())
    >>> result = three_step(model, students, students["GPA"].astype(float), reference=honest)
    >>> result.coefficients[1 - honest].round(2)
    array([-0.24, -0.7 ])
    """
    check_choice("method", "three_step", method, METHODS)
    check_choice("assignment", "three_step", assignment, ASSIGNMENTS)
    regress = partial(_corrected_logit, method, assignment)
    at_hand, read, u = _read(model, X, covariates, "three_step", latent, reference, sample_weight, n_boot)
    table = at_hand.table(assignment)
    steps = f"Three steps, {method}, {assignment} assignment"
    with long_method(model, "three_step", verbose, time_budget):
        result = _regression("three_step", at_hand, read, u, regress, steps, reference, n_boot, random_state, n_jobs)
    objective = np.nan if method == "bch" else result.log_likelihood
    return replace(result, classification=table, log_likelihood=objective)


def two_step(
    model,
    X,
    covariates,
    *,
    latent=None,
    reference=0,
    sample_weight=None,
    n_boot=0,
    random_state=None,
    n_jobs=None,
    verbose=None,
    time_budget=None,
) -> MembershipRegression:
    r"""Covariates of class membership in two steps: fit, and a logit of the classes by the likelihood of each row.

    Everything but the proportions of classes stays as the fit has it, and
    :math:`\sum_i \omega_i \ln \sum_k \pi_k(u_i)\, p(y_i \mid k)` is maximized [BK18].

    Parameters
    ----------
    model : VBMixture, VBDiscreteDAG or VBNetwork
        Fitted to X without the covariates.
    X : table of shape (n_samples, n_features)
        The data of the fit; a data frame may have the covariates among its columns.
    covariates : str, list of str, or table of shape (n_samples, n_covariates)
        As of `three_step`.
    latent : str, default=None
        The hidden node of a network that has several.
    reference : int, default=0
        The class whose coefficients are 0.
    sample_weight : array-like of shape (n_samples,), default=None
        As in `fit`.
    n_boot : int, default=0
        Tables drawn with replacement, on each of which both steps are taken anew. 0 leaves the sandwich over rows.
    random_state : int, RandomState instance or None, default=None
        Seed of the bootstrap; by default that of the fit.
    n_jobs : int, default=None
        Processes of joblib; the result does not depend on it.
    verbose : int, default=None
        Above 0 a line says how far the bootstrap is; by default as `verbose` of the model.
    time_budget : float, default=None
        Seconds after which no further table is drawn; a warning says how many there were.

    Returns
    -------
    MembershipRegression

    Raises
    ------
    TypeError
        If the model has no classes of independent rows.
    ValueError
        If X is not the data of the fit, a covariate has gaps, or an argument is none.

    See Also
    --------
    three_step : Assignments in place of likelihoods.

    Notes
    -----
    After a fit by ``method="ml"`` the log likelihood is that of the rows given covariates. It lies below the maximum
    over all parameters, since the first step knows no covariates. After other fits it is by predictive probabilities.

    Examples
    --------
    >>> from skvbem import VBDiscreteDAG, two_step
    >>> from skvbem.datasets import load_cheating
    >>> students = load_cheating(as_frame=True).data.dropna()
    >>> questions = ["LIEEXAM", "LIEPAPER", "FRAUD", "COPYEXAM"]
    >>> model = VBDiscreteDAG(latents={"class": 2}, method="ml", tol=1e-9, random_state=0).fit(students[questions])
    >>> grades, honest = students["GPA"].astype(float), int(model.tables_["class"].values.argmax())
    >>> result = two_step(model, students, grades, reference=honest)
    >>> round(result.log_likelihood, 2)
    -430.08
    """
    at_hand, read, u = _read(model, X, covariates, "two_step", latent, reference, sample_weight, n_boot)
    with long_method(model, "two_step", verbose, time_budget):
        result = _regression(
            "two_step", at_hand, read, u, _likelihood_logit, "Two steps", reference, n_boot, random_state, n_jobs
        )
    known = float(at_hand.weight @ at_hand.fit.score_samples(at_hand.X))
    return replace(result, log_likelihood=result.log_likelihood + known)


def _read(model, X, covariates, caller, latent, reference, sample_weight, n_boot):
    """Classes of the rows, how covariates are read, and their regressors."""
    at_hand = classified(model, X, caller, latent, sample_weight)
    check_resampling(caller, n_boot, at_hand)
    n_classes = at_hand.posterior.shape[1]
    if not is_whole(reference) or not 0 <= reference < n_classes:
        raise ValueError(
            f"The 'reference' parameter of {caller} must be a class, an int from 0 to {n_classes - 1}. Got "
            f"{reference!r} instead."
        )
    table = table_beside("covariates", covariates, X, len(at_hand.posterior), caller)
    columns = read_each(table, caller)
    read = Covariates.of(columns, caller)
    u = read.regressors(columns)
    scaled = u[at_hand.weight > 0] / np.maximum(np.abs(u).max(axis=0), 1e-300)
    if np.linalg.matrix_rank(scaled) < u.shape[1]:
        raise ValueError(
            f"The covariates of {caller} are linearly dependent, or one is constant, so that their coefficients are "
            f"not unique: {', '.join(read.names[1:])}. Leave one out."
        )
    return at_hand, read, u


def _likelihood_logit(u: np.ndarray, reference: int, at_hand: Classified) -> LogitFit:
    """The logit by the likelihood of each row, up to a constant."""
    evidence = at_hand.posterior / at_hand.proportions
    rows = np.arange(len(u))
    return ClassLogit(u, rows, np.ones(len(u)), evidence, at_hand.weight, reference, False).maximum()


def _corrected_logit(method: str, assignment: str, u: np.ndarray, reference: int, at_hand: Classified) -> LogitFit:
    """The logit of assignments, corrected for how often these are wrong."""
    if method == "bch":
        proportions, rows = at_hand.corrected(assignment), np.arange(len(u))
        return ClassLogit(u, rows, np.ones(len(u)), proportions, at_hand.weight, reference, True).maximum()
    table, assigned = at_hand.table(assignment), at_hand.assigned(assignment)
    row, to = np.nonzero(assigned)
    return ClassLogit(u, row, assigned[row, to], table.T[to], at_hand.weight, reference, False).maximum()


def _regression(
    caller: str,
    at_hand: Classified,
    covariates: Covariates,
    u: np.ndarray,
    regress: Callable[[np.ndarray, int, Classified], LogitFit],
    steps: str,
    reference: int,
    n_boot: int,
    random_state: Any,
    n_jobs: int | None,
) -> MembershipRegression:
    fit, doubts = regress(u, reference, at_hand), []
    covariance = fit.covariance
    if not fit.has_maximum:
        doubts.append(
            "The likelihood has no maximum where covariates separate classes: such coefficients mean no more than "
            "their signs, and have no standard error."
        )
    if n_boot:
        estimate = partial(_free_coefficients, u, int(reference), regress)
        drawn = at_hand.by_resampling(caller, estimate, u, int(n_boot), random_state, n_jobs)
        covariance, n_boot = np.cov(drawn, rowvar=False).reshape(covariance.shape), len(drawn)
    return MembershipRegression(
        fit.coefficients,
        covariance,
        covariates.names,
        at_hand.proportions,
        fit.objective,
        None,
        int(reference),
        steps,
        int(n_boot),
        covariates,
        tuple(doubts),
    )


def _free_coefficients(
    u: np.ndarray, reference: int, regress: Callable[[np.ndarray, int, Classified], LogitFit], at_hand: Classified
) -> np.ndarray:
    return np.delete(regress(u, reference, at_hand).coefficients, reference, axis=0).ravel()
