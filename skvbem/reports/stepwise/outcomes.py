r"""`distal`: an outcome of the classes, corrected for assignments that are wrong [BCH04].

With proportions :math:`D^* = D P^{-1}` of assignments, corrected by :math:`P_{kw} = P(\text{assigned to } w \mid k)`,
which may be negative, class k has the mean :math:`m_k = \sum_i \omega_i D^*_{ik} y_i / \sum_i \omega_i D^*_{ik}`.
Errors are of these ratios, row by row: :math:`\sum_i \omega_i D^*_{ik} D^*_{il} (y_i - m_k)(y_i - m_l) / (N_k N_l)`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import chi2, norm

from skvbem._arguments import check_choice, check_level
from skvbem._progress import long_method
from skvbem._tabular import data_frame, html_table, number, text_table
from skvbem.reports.stepwise.classification import (
    ASSIGNMENTS,
    Classified,
    check_resampling,
    classified,
    errors_in_words,
)
from skvbem.reports.stepwise.columns import ReadColumn, read_column, table_beside


@dataclass(frozen=True, eq=False)
class DistalOutcome:
    """An outcome of each class: means of numbers, or proportions of categories.

    Parameters
    ----------
    name : str
    levels : tuple or None
        The levels of categories; None for numbers.
    means : ndarray of shape (n_classes, n_values)
        The mean of numbers in each class, or the proportion of each level.
    deviations : ndarray of shape (n_classes,) or None
        Standard deviations of numbers within classes; NaN where the corrected variance is negative.
    covariance : ndarray of shape (n_classes * n_values,) * 2
        Covariance matrix of the means, class after class.
    proportions : ndarray of shape (n_classes,)
        Proportions of the classes.
    classification : ndarray of shape (n_classes, n_classes)
        P(assigned to the column's class | class of the row).
    n_missing : float
        Rows without the outcome, by weight, which are left out.
    assignment : str
    n_boot : int
        Tables that were drawn for the covariance; 0 where it is over rows, for classes as they are.
    doubts : tuple of str
        Why the estimates should be read with care.
    """

    name: str
    levels: tuple | None
    means: np.ndarray
    deviations: np.ndarray | None
    covariance: np.ndarray
    proportions: np.ndarray
    classification: np.ndarray
    n_missing: float
    assignment: str
    n_boot: int
    doubts: tuple[str, ...] = ()

    @property
    def standard_errors(self) -> np.ndarray:
        """Standard errors of the means, of their shape."""
        return np.sqrt(np.diag(self.covariance)).reshape(self.means.shape)

    @property
    def wald_test(self) -> tuple[float, int, float]:
        """The Wald statistic of equal means in all classes, its degrees of freedom, and the p value."""
        n_classes, n_values = self.means.shape
        used = n_values if self.levels is None else n_values - 1
        differences = np.kron(np.diff(np.eye(n_classes), axis=0), np.eye(n_values)[:used])
        estimate = differences @ self.means.ravel()
        covariance = differences @ self.covariance @ differences.T
        statistic = float(estimate @ np.linalg.pinv(covariance, hermitian=True) @ estimate)
        return statistic, len(estimate), float(chi2.sf(statistic, len(estimate)))

    def records(self, level: float = 0.95) -> list[dict[str, Any]]:
        """A dict for each class, and level of categories: mean, standard error, normal interval.

        Parameters
        ----------
        level : float, default=0.95
            Level of the intervals.
        """
        check_level("records", level)
        width, errors, rows = norm.ppf(0.5 + level / 2), self.standard_errors, []
        for k in range(len(self.means)):
            for v, value in enumerate(self.levels or (None,)):
                mean, error = float(self.means[k, v]), float(errors[k, v])
                row: dict[str, Any] = {"class": k} | ({} if self.levels is None else {"level": value})
                row |= {
                    "mean": mean,
                    "standard_error": error,
                    "low": mean - width * error,
                    "high": mean + width * error,
                }
                if self.deviations is not None:
                    row["standard_deviation"] = float(self.deviations[k])
                rows.append(row)
        return rows

    def to_frame(self, level: float = 0.95):
        """The outcome as a pandas DataFrame, class, and level of categories, as its index."""
        index = ["class"] if self.levels is None else ["class", "level"]
        return data_frame(self.records(level), type(self).__name__).set_index(index)

    def _cells(self) -> list[list[str]]:
        title = "mean" if self.levels is None else "share"
        header = ["class", *(["level"] if self.levels is not None else []), title, "s.e.", "95 % interval"]
        cells = [header + (["s.d."] if self.deviations is not None else [])]
        for row in self.records():
            line = [str(row["class"]), *([str(row["level"])] if self.levels is not None else [])]
            line += [number(row["mean"]), number(row["standard_error"])]
            line.append(f"[{number(row['low'])}, {number(row['high'])}]")
            cells.append(line + ([number(row["standard_deviation"])] if self.deviations is not None else []))
        return cells

    def _notes(self) -> list[str]:
        statistic, df, p = self.wald_test
        notes = [f"{self.name} by class, {self.assignment} assignment, corrected (BCH)."]
        notes.append(f"Equal in all classes: Wald {statistic:.2f} on {df} degrees of freedom, p = {p:.3g}.")
        if self.n_missing:
            notes.append(f"Rows without {self.name} are left out: {self.n_missing:g}.")
        return [*notes, errors_in_words(self.n_boot), *self.doubts]

    def __repr__(self):
        header, *rows = self._cells()
        return "\n".join([*text_table(header, rows, n_labels=1 if self.levels is None else 2), *self._notes()])

    def _repr_html_(self):
        header, *rows = self._cells()
        return html_table(header, rows, n_labels=1 if self.levels is None else 2, notes=self._notes())


def distal(
    model,
    X,
    outcome,
    *,
    assignment="modal",
    latent=None,
    sample_weight=None,
    n_boot=0,
    random_state=None,
    n_jobs=None,
    verbose=None,
    time_budget=None,
) -> DistalOutcome:
    """An outcome of the classes, its mean or proportions in each, corrected after Bolck, Croon and Hagenaars (BCH).

    The outcome takes no part in finding the classes. Means of rows by their most probable class are too alike, since
    some rows are in the wrong one; the correction undoes that.

    Parameters
    ----------
    model : VBMixture, VBDiscreteDAG or VBNetwork
        Fitted to X without the outcome.
    X : table of shape (n_samples, n_features)
        The data of the fit; a data frame may have the outcome among its columns.
    outcome : str or array-like of shape (n_samples,)
        Name of a column of X, or the outcome: numbers, or categories as strings, booleans or a categorical type. Rows
        without it count for the classes alone.
    assignment : {"modal", "proportional"}, default="modal"
        To the most probable class, or in the proportions of the posterior.
    latent : str, default=None
        The hidden node of a network that has several.
    sample_weight : array-like of shape (n_samples,), default=None
        As in `fit`.
    n_boot : int, default=0
        Tables drawn with replacement, on each of which all steps are taken anew. 0 leaves errors over rows, for which
        the classes are certain.
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
    DistalOutcome

    Raises
    ------
    TypeError
        If the model has no classes of independent rows.
    ValueError
        If X is not the data of the fit, a class is empty, or an argument is none.

    See Also
    --------
    three_step : Covariates of class membership.

    Notes
    -----
    In one step the outcome is one more column of the model, which then takes part in finding the classes.

    Examples
    --------
    >>> from skvbem import VBDiscreteDAG, distal
    >>> from skvbem.datasets import load_cheating
    >>> students = load_cheating(as_frame=True).data.dropna()
    >>> questions = ["LIEEXAM", "LIEPAPER", "FRAUD", "COPYEXAM"]
    >>> model = VBDiscreteDAG(latents={"class": 2}, method="ml", tol=1e-9, random_state=0).fit(students[questions])
    >>> grades = distal(model, students, students["GPA"].astype(float))
    >>> sorted(grades.means.ravel().round(2).tolist())
    [1.63, 2.46]
    """
    check_choice("assignment", "distal", assignment, ASSIGNMENTS)
    at_hand = classified(model, X, "distal", latent, sample_weight)
    check_resampling("distal", n_boot, at_hand)
    table = table_beside("outcome", outcome, X, len(at_hand.posterior), "distal")
    if table.n_columns != 1:
        raise ValueError(f"The 'outcome' of distal must be one column. Got {table.n_columns}: take one after another.")
    column = read_column(table, 0, "distal")
    if not at_hand.weight[column.known].any():
        raise ValueError(f"The outcome {column.name!r} of distal is missing in every row that counts.")
    means, deviations, covariance = _estimates(column, assignment, at_hand)
    doubts = []
    if deviations is not None and np.isnan(deviations).any():
        doubts.append("A corrected variance is negative: its class is too uncertain for a standard deviation.")
    if column.levels is not None and ((means < 0) | (means > 1)).any():
        doubts.append("A corrected share lies outside 0 to 1: its class is too uncertain for so rare a level.")
    if n_boot:
        work = partial(_means, column, assignment)
        with long_method(model, "distal", verbose, time_budget):
            beside = np.column_stack([column.known, column.indicators])
            drawn = at_hand.by_resampling("distal", work, beside, int(n_boot), random_state, n_jobs)
        covariance, n_boot = np.cov(drawn, rowvar=False).reshape(covariance.shape), len(drawn)
    return DistalOutcome(
        column.name,
        column.levels,
        means,
        deviations,
        covariance,
        at_hand.proportions,
        at_hand.table(assignment),
        float(at_hand.weight[~column.known].sum()),
        assignment,
        int(n_boot),
        tuple(doubts),
    )


def _estimates(
    outcome: ReadColumn, assignment: str, at_hand: Classified
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
    """Means (n_classes, n_values), standard deviations of numbers, and the covariance of the means."""
    known, values = outcome.known, outcome.indicators[outcome.known]
    corrected = at_hand.corrected(assignment)[known]
    weight = at_hand.weight[known]
    total = weight @ corrected
    means = (weight[:, None] * corrected).T @ values / total[:, None]
    residuals, deviations = values[:, None] - means, None
    if outcome.levels is None:
        variance = weight @ (corrected * residuals[:, :, 0] ** 2) / total
        deviations = np.sqrt(np.where(variance >= 0, variance, np.nan))
    influence = (corrected / total)[:, :, None] * residuals
    flat = influence.reshape(len(values), -1)
    return means, deviations, (flat.T * weight) @ flat


def _means(outcome: ReadColumn, assignment: str, at_hand: Classified) -> np.ndarray:
    return _estimates(outcome, assignment, at_hand)[0].ravel()
