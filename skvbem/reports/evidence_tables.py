"""Scores of fitted estimators: several in one table, one as scikit-learn's scoring, and both sides of the evidence."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import _num_samples

from skvbem._arguments import check_mapping, is_collection, is_option
from skvbem._progress import is_over, long_method, steps
from skvbem._tabular import data_frame, html_table
from skvbem.errors import EvidenceWarning
from skvbem.evidence.base import Evidence, Score, cut_short
from skvbem.evidence.certify import Certificate
from skvbem.evidence.certify import certify_evidence as certify
from skvbem.evidence.registry import LIBRARY_SCORES, SCORES, get_score, register_score, score_of
from skvbem.fitting.evaluation import evaluation_of, is_data_of_fit, score_options, simulated
from skvbem.fitting.kind import kind_of

# What the scorer does with rows that are not those of the fit.
_HELD_OUT = ("error", "predictive")
#: Scores of a table that names none: every deterministic one, and annealed importance sampling.
IN_TABLE = (
    "lower_bound",
    "collapsed",
    "collapsed_ascent",
    "ais",
    "laplace",
    "cheeseman_stutz",
    "draper",
    "bicp",
    "bic",
    "mled",
)


@dataclass(frozen=True, eq=False)
class EvidenceTable(Mapping):
    """Scores of one fit by name, best first; nats, more is better.

    Parameters
    ----------
    evidences : mapping of str to Evidence
    seconds : mapping of str to float
        What each score took, with the fits it needed if no score before it had made them.
    remarks : mapping of str to str
        Warnings of a score, or why there is no value.
    """

    evidences: Mapping[str, Evidence]
    seconds: Mapping[str, float]
    remarks: Mapping[str, str]

    def __getitem__(self, kind: str) -> Evidence:
        return self.evidences[kind]

    def __iter__(self) -> Iterator[str]:
        return iter(self.evidences)

    def __len__(self) -> int:
        return len(self.evidences)

    def records(self) -> list[dict[str, Any]]:
        """A dict for each score asked for, those without a value last."""
        with_values = [
            {
                "score": kind,
                "nats": evidence.value,
                "standard_error": evidence.standard_error,
                "is_lower_bound": evidence.is_lower_bound,
                "form": evidence.form,
                "n_free_parameters": evidence.n_free_parameters,
                "seconds": self.seconds[kind],
                "remark": self.remarks.get(kind, ""),
            }
            for kind, evidence in self.evidences.items()
        ]
        lacking = [kind for kind in self.remarks if kind not in self.evidences]
        return with_values + [
            {"score": kind, "seconds": self.seconds.get(kind), "remark": self.remarks[kind]} for kind in lacking
        ]

    def to_frame(self):
        """The table as a pandas DataFrame, scores as its index."""
        return data_frame(self.records(), type(self).__name__).set_index("score")

    def __repr__(self):
        lines = [f"{'score':<24}{'nats':>14}{'s.e.':>9}  bound  form {'d':>6}{'seconds':>10}"]
        for kind, evidence in self.evidences.items():
            error = "" if evidence.standard_error is None else f"{evidence.standard_error:.2g}"
            lines.append(
                f"{kind:<24}{evidence.value:>14.4f}{error:>9}  {'lower' if evidence.is_lower_bound else '':<5}  "
                f"{evidence.form or '':<4} {evidence.n_free_parameters:>6}{self.seconds[kind]:>10.3f}"
            )
        lines += [f"{kind}: {remark}" for kind, remark in self.remarks.items()]
        return "\n".join(lines)

    def _repr_html_(self):
        header = ["score", "nats", "s.e.", "bound", "form", "d", "seconds"]
        rows = [
            [
                kind,
                f"{evidence.value:.4f}",
                "" if evidence.standard_error is None else f"{evidence.standard_error:.2g}",
                "lower" * evidence.is_lower_bound,
                evidence.form or "",
                str(evidence.n_free_parameters),
                f"{self.seconds[kind]:.3f}",
            ]
            for kind, evidence in self.evidences.items()
        ]
        return html_table(header, rows, notes=[f"{kind}: {remark}" for kind, remark in self.remarks.items()])


def evidence_table(
    estimator,
    X,
    kinds: Iterable[str] = IN_TABLE,
    *,
    sample_weight=None,
    random_state=None,
    options: Mapping | None = None,
    verbose: int | None = None,
    time_budget: float | None = None,
) -> EvidenceTable:
    """Scores of a fitted estimator side by side.

    Parameters
    ----------
    estimator : estimator of this library
        Fitted.
    X : array-like of shape (n_samples, n_features)
        The data of the fit.
    kinds : iterable of str or Score
        Names in `SCORES`, or scores; by default all deterministic approximations and "ais".
    sample_weight : array-like of shape (n_samples,), default=None
        As in `fit`.
    random_state : int, RandomState instance or None, default=None
        Seed of scores that draw; by default it follows from the seed of the fit.
    options : mapping of str to mapping, default=None
        Options of scores by name, as in ``{"ais": {"n_chains": 64}}``.
    verbose : int, default=None
        Above 0 a line says how far it is; by default as the estimator's own.
    time_budget : float, default=None
        Seconds after which no further score is begun; `remarks` names those that were not reached.

    Returns
    -------
    EvidenceTable
        A mapping of names to `Evidence`, best first. A score that does not exist here (too many terms, no interior
        mode, no closed form of complete data) is missing from it, with the reason in `remarks`.

    Raises
    ------
    TypeError
        If `kinds` or `options` are not what they should be.
    ValueError
        If X is other data than those of the fit.

    Examples
    --------
    >>> from skvbem import VBDiscreteDAG
    >>> from skvbem.datasets import load_carcinoma
    >>> from skvbem.evidence import evidence_table
    >>> X = load_carcinoma().data
    >>> table = evidence_table(VBDiscreteDAG(latents=3, random_state=0).fit(X), X, ["bicp", "lower_bound", "collapsed"])
    >>> list(table)
    ['collapsed', 'lower_bound', 'bicp']
    """
    _check_fit(estimator, "evidence_table")
    if not is_collection(kinds):
        raise TypeError(
            f"The 'kinds' parameter of evidence_table must be a list of names of scores, such as ['bic', 'ais']. Got "
            f"{kinds!r}."
        )
    options = {} if options is None else options
    check_mapping("options", "evidence_table", options, "{'ais': {'n_chains': 64}}")
    scores = [get_score(kind) for kind in kinds]
    fits = evaluation_of(estimator, X, sample_weight, random_state)
    evidences: dict[str, Evidence] = {}
    seconds, remarks = dict[str, float](), dict[str, str]()
    with (
        long_method(estimator, "evidence_table", verbose, time_budget),
        steps(len(scores), "scores") as count,
    ):
        for score in scores:
            began, given = time.perf_counter(), score_options(estimator, options.get(score.name, {}))
            score.check_options(given)
            if evidences and is_over():
                remarks[score.name] = "The 'time_budget' of evidence_table ended before this score."
                continue
            try:
                evidences[score.name] = score_of(fits, score, given)
                remark = "; ".join(evidences[score.name].doubts)
            except (ValueError, TypeError) as error:  # a TypeError if the model lacks what the score needs
                remark = str(error)
            seconds[score.name] = time.perf_counter() - began
            if remark:
                remarks[score.name] = remark
            count()
    best_first = sorted(evidences, key=lambda kind: -evidences[kind].value)
    return EvidenceTable({kind: evidences[kind] for kind in best_first}, seconds, remarks)


class AllRows:
    """The splitter whose one split has all rows on both sides, as searches by an evidence take it.

    The evidence is that of the data of the fit, so that there is nothing to hold out. Unlike indices that are written
    down, it also suits a search within a cross-validation, whose folds have fewer rows.

    Examples
    --------
    >>> import numpy as np
    >>> from skvbem.evidence import AllRows
    >>> [(train, test)] = AllRows().split(np.zeros((3, 2)))
    >>> train, test
    (array([0, 1, 2]), array([0, 1, 2]))
    """

    def split(self, X, y=None, groups=None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the indices of all rows of X twice: for the fit, and for its score."""
        rows = np.arange(_num_samples(X))
        yield rows, rows

    def get_n_splits(self, X=None, y=None, groups=None) -> int:
        """The number of splits, one."""
        return 1

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


@dataclass(frozen=True)
class EvidenceScorer:
    """A score as scikit-learn's `scoring`: a callable of (estimator, X, y); more is better.

    Parameters
    ----------
    kind : str
    options : mapping
    score : Score, optional
        The score; by default the score that `SCORES` has under this name.
    held_out : {"error", "predictive"}, default="error"
        What rows get that are not those of the fit; see `scorer`.
    """

    kind: str
    options: Mapping[str, Any]
    score: Score | None = None
    held_out: str = "error"

    def __getstate__(self) -> dict[str, Any]:
        """A score from outside the library goes along, so that it is known in other processes, too."""
        registered = None if self.kind in LIBRARY_SCORES else SCORES.get(self.kind)
        return {**self.__dict__, "registered": registered}

    def __setstate__(self, state: dict[str, Any]) -> None:
        score = state.pop("registered")
        if score is not None and score.name not in SCORES:
            register_score(score)
        self.__dict__.update(state)

    def __call__(self, estimator, X, y=None, **fit_params) -> float:
        """The score of a fitted estimator on the data of its fit, nats; `fit_params` are those of its `fit`.

        Of a pipeline it is that of the last step, on the rows as the steps before it made them, and of a search that of
        its best estimator.
        """
        part, of_part, params = _scored_part(estimator, X, y, fit_params)
        _check_fit(part, f"The scorer {self.kind!r}", "log_evidence")
        if self.held_out == "predictive" and not is_data_of_fit(part, of_part, **params):
            return _best(estimator).score(X, **fit_params)
        return part.log_evidence(of_part, kind=self.score or self.kind, **params, **self.options).value

    def evidence(self, estimator, X, y=None, **fit_params) -> Evidence:
        """The score with its standard error and doubts, which are not warned of; `fit_params` are those of `fit`."""
        part, of_part, params = _scored_part(estimator, X, y, fit_params)
        _check_fit(part, f"The scorer {self.kind!r}", "log_evidence")
        return score_of(evaluation_of(part, of_part, **params), self.score or self.kind, self.options)


def scorer(kind: str | Score, *, held_out: str = "error", **options) -> EvidenceScorer:
    """A score by name as a callable of (estimator, X, y=None), for scikit-learn's model selection.

    The evidence has its penalty for complexity built in and is that of the data of the fit: a splitter that holds rows
    out makes it an error. Give searches ``cv=AllRows()``. A search within a cross-validation has a score of
    the rows held out, too: ``held_out="predictive"`` gives these rows their log predictive probability.

    In a pipeline the last step is scored, of a search its best estimator. Compare pipelines only if the steps before
    the last are the same: on other columns, or in other units, the evidence is that of other data.

    Parameters
    ----------
    kind : str or Score
        A name in `SCORES`, or a score that needs no name there.
    held_out : {"error", "predictive"}, default="error"
        What rows get that are not those of the fit. "predictive" is the estimator's `score`, the mean log predictive
        probability of a row, in nats.
    **options
        Options of the score.

    Returns
    -------
    EvidenceScorer

    Raises
    ------
    TypeError
        If the score does not have an option.
    ValueError
        If there is no such score, or `held_out` is neither of the two.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from skvbem import VBDiscreteDAG
    >>> from skvbem.datasets import load_carcinoma
    >>> from skvbem.evidence import AllRows, scorer
    >>> X = load_carcinoma().data
    >>> model, grid = VBDiscreteDAG(random_state=0), {"latents": [2, 3, 4]}
    >>> search = GridSearchCV(model, grid, scoring=scorer("collapsed"), cv=AllRows())
    >>> search.fit(X).best_params_
    {'latents': 3}

    The whole search is judged by rows held out:

    >>> from sklearn.model_selection import KFold, cross_val_score
    >>> search = GridSearchCV(model, grid, scoring=scorer("lower_bound", held_out="predictive"), cv=AllRows())
    >>> cross_val_score(search, X, cv=KFold(2, shuffle=True, random_state=0)).round(1).tolist()
    [-2.8, -2.8]
    """
    score = get_score(kind)
    score.check_options(options)
    if not is_option(held_out, *_HELD_OUT):
        raise ValueError(
            f"The 'held_out' parameter of scorer must be 'error' or 'predictive'. Got {held_out!r} instead."
        )
    return EvidenceScorer(score.name, dict(options), None if kind == score.name else score, held_out)


def certify_evidence(estimator, X, tables: Mapping | None = None, *, sample_weight=None, random_state=None, **options):
    """The log evidence of simulated data from both sides, each unlikely to be wrong.

    Forward chains give a lower bound in expectation, backward chains from the parameters that made the data an upper
    one: if both agree, sampling scores can be trusted on data like these.

    Parameters
    ----------
    estimator : estimator of this library
        Fitted.
    X : array-like of shape (n_samples, n_features)
        The data of the fit. Without `tables` only their number of rows, weights and missing cells matter: data like
        these are simulated from parameters drawn from the prior, and fitted by VB.
    tables : mapping of node to array-like, default=None
        The parameters that made X, drawn from the prior, such as axes ``(*parents, node)`` of a network.
    sample_weight : array-like of shape (n_samples,), default=None
        As in `fit`.
    random_state : int, RandomState instance or None, default=None
    **options
        `n_chains`, `n_steps` and `fraction` of `skvbem.evidence.certify.certify_evidence`; `verbose`, `time_budget` and
        `progress` as of `log_evidence`.

    Returns
    -------
    Certificate
        With `lower`, `upper` and their `gap`, nats.
    """
    _check_fit(estimator, "certify_evidence")
    limits = {name: options.pop(name, None) for name in ("verbose", "time_budget", "progress")}
    with long_method(estimator, "certify_evidence", **limits) as call:
        if tables is None:
            fits, log_point = simulated(estimator, X, sample_weight, random_state)
        else:
            fits = evaluation_of(estimator, X, sample_weight, random_state)
            log_point = kind_of(estimator).log_point(estimator.fitted, tables, type(estimator).__name__)
        certificate = certify(fits, log_point, **options)
    lower = certificate.lower
    for doubt in (*lower.doubts, *([cut_short(lower)] if call.was_cut else [])):
        warnings.warn(doubt, EvidenceWarning, stacklevel=2)
    return certificate


def _scored_part(estimator, X, y, fit_params: Mapping[str, Any]) -> tuple[Any, Any, Mapping[str, Any]]:
    """The best estimator of a search, or the last step of a pipeline, and the rows and parameters of its fit."""
    if (best := _best(estimator)) is not estimator:
        return _scored_part(best, X, y, fit_params)
    if not (steps := _steps(estimator)):
        return estimator, X, fit_params
    prefix = f"{steps[-1][0]}__"
    of_others = {key: value for key, value in fit_params.items() if "__" in key and not key.startswith(prefix)}
    of_last = {key.removeprefix(prefix): value for key, value in fit_params.items() if key not in of_others}
    if len(steps) > 1:
        # Fitted anew: of some steps, PCA for one, `transform` gives other last digits than what the fit has seen.
        X = deepcopy(estimator[:-1]).fit_transform(X, y, **of_others)
    return _scored_part(estimator[-1], X, y, of_last)


def _best(estimator) -> Any:
    """The best estimator of a fitted search, whose own scores may be of another kind; any other estimator itself."""
    return getattr(estimator, "best_estimator_", estimator)


def last_step(estimator) -> Any:
    """The last step of a pipeline, in pipelines too; any other estimator itself."""
    while steps := _steps(estimator):
        estimator = steps[-1][1]
    return estimator


def _steps(estimator) -> Any:
    """The steps of a pipeline; none of what is no estimator, but a class of them."""
    return () if isinstance(estimator, type) else getattr(estimator, "steps", ())


def _check_fit(estimator, who: str, method: str = "goodness_of_fit") -> None:
    """Refuse what is no estimator whose evidence can be asked for."""
    is_class = isinstance(estimator, type)
    if is_class or not hasattr(estimator, method):
        given = f"the class {estimator.__name__}" if is_class else repr(estimator)
        raise TypeError(
            f"{who} takes a fitted estimator of this library, such as VBMixture(2).fit(X). Got {given} instead."
        )


__all__ = [
    "IN_TABLE",
    "SCORES",
    "Certificate",
    "EvidenceScorer",
    "EvidenceTable",
    "certify_evidence",
    "evidence_table",
    "scorer",
]
