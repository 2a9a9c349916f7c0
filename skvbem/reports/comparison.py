"""`compare`: fits of the same data side by side, in the table that papers on latent classes print."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import softmax, xlogy
from sklearn.utils.validation import check_is_fitted

from skvbem._arguments import is_collection
from skvbem._names import shown
from skvbem._tabular import data_frame, html_table, text_table
from skvbem.evidence import Evidence, Score, get_score
from skvbem.fitting.evaluation import evaluation_of

# Columns after the name: title, format of a number.
_COLUMNS = {
    "n_free_parameters": ("d", "d"),
    "lower_bound": ("bound", ",.2f"),
    "evidence": ("evidence", ",.2f"),
    "standard_error": ("s.e.", ".2g"),
    "probability": ("probability", ".3f"),
    "log_likelihood": ("log likelihood", ",.2f"),
    "aic": ("AIC", ",.2f"),
    "bic": ("BIC", ",.2f"),
    "entropy_r2": ("entropy R2", ".3f"),
}


@dataclass(frozen=True, eq=False)
class Comparison:
    """Fits of the same data side by side.

    Parameters
    ----------
    rows : mapping of str to mapping
        What is known of each fit, by its name: "n_free_parameters", "lower_bound", "evidence", "standard_error",
        "probability", "log_likelihood", "aic", "bic" and "entropy_r2". What does not exist for a fit is None.
    remarks : mapping of str to str
        Why something does not exist, by the name of the fit.
    """

    rows: Mapping[str, Mapping[str, float | None]]
    remarks: Mapping[str, str]

    @property
    def best(self) -> str:
        """The name of the fit of the highest evidence; of the highest bound, where no evidence was asked for."""
        by = "evidence" if self._has("evidence") else "lower_bound"
        known = {name: value for name, row in self.rows.items() if (value := row[by]) is not None}
        return max(known, key=lambda name: known[name])

    def records(self) -> list[dict[str, Any]]:
        """A dict for each fit, its name under "model"."""
        return [{"model": name, **row} for name, row in self.rows.items()]

    def to_frame(self):
        """The table as a pandas DataFrame, names as its index; columns that no fit has are left out."""
        return data_frame(self.records(), type(self).__name__).set_index("model")[[*self._columns()]]

    def _has(self, column: str) -> bool:
        return any(row[column] is not None for row in self.rows.values())

    def _columns(self) -> dict[str, tuple[str, str]]:
        return {column: shown for column, shown in _COLUMNS.items() if self._has(column)}

    def _cells(self) -> list[list[str]]:
        columns = self._columns()
        titles = ["", *(title for title, _ in columns.values())]
        return [titles] + [
            [name, *("" if row[column] is None else format(row[column], how) for column, (_, how) in columns.items())]
            for name, row in self.rows.items()
        ]

    def __repr__(self):
        header, *rows = self._cells()
        return "\n".join([*text_table(header, rows), *self._notes()])

    def _repr_html_(self):
        header, *rows = self._cells()
        return html_table(header, rows, notes=self._notes())

    def _notes(self) -> list[str]:
        return [f"{name}: {remark}" for name, remark in self.remarks.items()]


def compare(
    fits, X, *, evidence: str | Score | None = None, sample_weight=None, random_state=None, **where
) -> Comparison:
    """Fits of the same data in one table: bound, evidence with its error, log likelihood, AIC, BIC, entropy.

    Parameters
    ----------
    fits : list of estimators, or mapping of names to them
        Fitted, all to X. In a list each is named by what tells it from the others.
    X : array-like of shape (n_samples, n_features)
        The data of the fits.
    evidence : str or Score, default=None
        A score that samples the evidence, best "auto", which gives a column with standard errors and the probability of
        each fit, if all were as probable before. None leaves these columns out: shares of a bound are no probabilities.
    sample_weight : array-like of shape (n_samples,), default=None
        As in `fit`.
    random_state : int, RandomState instance or None, default=None
        Seed of the evidence; by default it follows from the seed of each fit.
    **where
        `sequence_id`, `lengths`, `inputs`, where `fit` takes them.

    Returns
    -------
    Comparison

    Raises
    ------
    ValueError
        If X is not the data of a fit, or there is no fit.

    Notes
    -----
    Log likelihood, AIC and BIC are of the maximum of the likelihood that is next to the fit; lower AIC and BIC are
    better. Entropy R2 is 1 - (mean entropy of hidden states given their row) / (its most), 1 where every state is
    certain. Bounds and evidences compare where fits describe the same columns in the same way: the density of
    measurements is no probability of categories.

    Examples
    --------
    >>> from skvbem import VBDiscreteDAG, compare
    >>> from skvbem.datasets import load_carcinoma
    >>> X = load_carcinoma().data
    >>> fits = [VBDiscreteDAG(latents=n_classes, random_state=0).fit(X) for n_classes in (1, 2, 3)]
    >>> table = compare(fits, X)
    >>> table.best
    'VBDiscreteDAG(latents=3)'
    >>> [round(row["bic"]) for row in table.records()]
    [1082, 706, 697]
    """
    named = _named(fits)
    if evidence is not None:
        get_score(evidence)
    given = {"sample_weight": sample_weight, **where}
    rows, remarks = {}, {}
    for name, fit in named.items():
        rows[name], why = _row(fit, X, evidence, random_state, given)
        if why:
            remarks[name] = "; ".join(why)
    known = [name for name, row in rows.items() if row["evidence"] is not None]
    for name, share in zip(known, softmax([rows[name]["evidence"] for name in known]) if known else ()):
        rows[name]["probability"] = float(share)
    return Comparison(rows, remarks)


def _row(fit, X, evidence, random_state, given: Mapping) -> tuple[dict[str, Any], list[str]]:
    """A row of the table, and the reasons for what it lacks."""
    row: dict[str, Any] = dict.fromkeys(_COLUMNS)
    row["n_free_parameters"] = fit.n_free_parameters_
    why = []

    def scored(kind, **options) -> Evidence | None:
        try:
            return fit.log_evidence(X, kind=kind, **given, **options)
        except ValueError as error:
            why.append(str(error))
            return None

    evaluation_of(fit, X, **given)  # other data than those of the fit are refused, not remarked on
    bound, likelihood = scored("lower_bound"), scored("bic")
    row["lower_bound"] = None if bound is None else bound.value
    if likelihood is not None:
        row["log_likelihood"] = likelihood.details["log_likelihood"]
        row["bic"] = -2.0 * likelihood.value
        row["aic"] = -2.0 * (row["log_likelihood"] - likelihood.n_free_parameters)
    if evidence is not None and (sampled := scored(evidence, random_state=random_state)) is not None:
        row["evidence"], row["standard_error"] = sampled.value, sampled.standard_error
    row["entropy_r2"] = _entropy_r2(fit, X, given)
    return row, why


def _entropy_r2(fit, X, given: Mapping) -> float | None:
    """Entropy R² of hidden states given their rows, 1 at most; None where there is none of two states."""
    if not hasattr(fit, "predict_proba"):
        return None
    where = {name: value for name, value in given.items() if name != "sample_weight" and value is not None}
    try:
        answers, weight = fit.predict_proba(X, **where), given["sample_weight"]
    except ValueError:  # a network without hidden nodes
        return None
    missing, most = 0.0, 0.0
    for k, table in enumerate(answers if isinstance(answers, list) else [answers]):  # of each latent, or sequence
        of_rows = np.ones(len(table))
        if weight is not None:
            of_rows *= weight if len(weight) == len(table) else weight[k]
        missing -= float(of_rows @ xlogy(table, table).sum(axis=1))
        most += float(of_rows.sum()) * np.log(table.shape[1])
    return 1.0 - missing / most if most > 0 else None


def _named(fits) -> dict[str, Any]:
    """Fits by name; those of a list by the parameters in which they differ."""
    if _is_estimator(fits):
        raise TypeError("compare takes a list of fits, and then their data, as in compare([two, three], X).")
    by_name = fits if isinstance(fits, Mapping) else None
    listed = list(by_name.values()) if by_name is not None else list(fits) if is_collection(fits) else []
    for fit in listed:
        if not _is_estimator(fit):
            raise TypeError(
                f"compare takes fitted estimators of this library, such as [VBMixture(2).fit(X)]. Got {fit!r} among "
                "them."
            )
        check_is_fitted(fit)
    if not listed:
        raise ValueError(f"compare needs at least one fit. Got {fits!r}.")
    if by_name is not None:
        return {str(name): fit for name, fit in by_name.items()}
    names = [_name(fit, [other for other in listed if type(other) is type(fit)]) for fit in listed]
    if len(set(names)) < len(names):
        names = [f"{number}. {name}" for number, name in enumerate(names, 1)]
    return dict(zip(names, listed))


def _is_estimator(fit) -> bool:
    """True if a value is an estimator whose fits have an evidence."""
    return hasattr(type(fit), "log_evidence") and hasattr(fit, "get_params")


def _name(fit, alike: list) -> str:
    """The class of a fit, and the parameters in which it differs from others of its class."""
    params = [{name: shown(value) for name, value in each.get_params(deep=False).items()} for each in (fit, *alike)]
    differing = [f"{name}={text}" for name, text in params[0].items() if any(each[name] != text for each in params)]
    return f"{type(fit).__name__}({', '.join(differing)})"
