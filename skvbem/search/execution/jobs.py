"""Jobs, which score one candidate of a search: by the evidence of all rows, or by rows held out.

A job knows the estimator and the data; it is sent to a worker once for many candidates. It tells of every candidate by
a `Record`, also of one that failed.
"""

from __future__ import annotations

import hashlib
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.metrics import get_scorer
from sklearn.model_selection import cross_validate

from skvbem._compat import check_parameters
from skvbem._lazy import cached_property
from skvbem.errors import SearchCheckpointError
from skvbem.evidence import DEFAULT_SCORE, SCORES, Evidence, EvidenceScorer, score_of, scorer
from skvbem.evidence.evaluation import Evaluation
from skvbem.fitting.evaluation import evaluate, evaluation_of
from skvbem.fitting.kind import find_kind, kind_of
from skvbem.graphs.dag import DAG
from skvbem.reports.evidence_tables import last_step
from skvbem.search.checkpoint.fingerprints import content
from skvbem.search.execution.evaluations import Evaluations
from skvbem.search.execution.readings import Readings, candidate, shallow_candidate
from skvbem.search.families.decomposable import NEEDS_EVIDENCE, DecomposableScores, NotDecomposable
from skvbem.search.families.family_scores import Families
from skvbem.spaces.settings import canonical

# Parameters that change how a fit is run, not what comes out.
_NO_MATTER = ("n_jobs", "verbose", "max_memory")


@dataclass(frozen=True)
class Record:
    """Scores, errors and times of a candidate.

    Parameters
    ----------
    values : mapping of str to float
        Score by name, more is better; NaN where it failed.
    errors : mapping of str to float
        Standard errors, nats, of the scores that have one.
    splits : mapping of str to tuple of float
        Scores of every split of a cross-validation.
    n_free_parameters : int or None
    fit_seconds, score_seconds : tuple of float
        One for each split.
    failure : str
        What went wrong, or nothing.
    doubts : tuple of str
        Why scores should not be trusted, though they are there.
    inference : {"exact", "clusters"}
        Whether q(x) kept the joint of all that is hidden in a row.
    """

    values: Mapping[str, float]
    errors: Mapping[str, float] = field(default_factory=dict)
    splits: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    n_free_parameters: int | None = None
    fit_seconds: tuple[float, ...] = (0.0,)
    score_seconds: tuple[float, ...] = (0.0,)
    failure: str = ""
    doubts: tuple[str, ...] = ()
    inference: str = "exact"

    @classmethod
    def of(cls, scores: Mapping[str, float | Evidence], doubts: Sequence[str] = (), **rest) -> Self:
        """The record of these scores, which may be evidences, with their standard errors and doubts, and others."""
        evidences = {name: score for name, score in scores.items() if isinstance(score, Evidence)}
        return cls(
            {name: float(score) for name, score in scores.items()},
            {name: each.standard_error for name, each in evidences.items() if each.standard_error is not None},
            doubts=(*(doubt for each in evidences.values() for doubt in each.doubts), *doubts),
            **rest,
        )

    @property
    def seconds(self) -> float:
        """The time that a candidate took, seconds."""
        return sum(self.fit_seconds) + sum(self.score_seconds)

    def joined(self, other: Record) -> Record:
        """The record of one candidate with the scores of two."""
        return replace(
            other,
            values={**self.values, **other.values},
            errors={**self.errors, **other.errors},
            splits={**self.splits, **other.splits},
            fit_seconds=self.fit_seconds,
            score_seconds=tuple(np.add(self.score_seconds, other.score_seconds).tolist()),
            failure=self.failure or other.failure,
            doubts=(*self.doubts, *other.doubts),
        )


class Job(ABC):
    """The data of a search and how a candidate is scored on them.

    Parameters
    ----------
    estimator : estimator
        Unfitted; candidates are clones of it with other parameters.
    scorers : mapping of str to callable
        The scores by name, callables of (estimator, X, y).
    error_score : float or "raise"
        The scores of a candidate that fails; "raise" lets the error through.
    X, y, fit_params
        As `fit` takes them.
    readings : Readings or None
        Of the data, if the estimator can share what it read among candidates: then they stand for X.
    """

    estimator: BaseEstimator
    scorers: Mapping[str, Callable]
    error_score: float | str
    X: Any
    y: Any
    fit_params: Mapping[str, Any]
    readings: Readings | None

    @abstractmethod
    def measured(self, setting: Mapping) -> Record:
        """The record of one candidate; errors are those of the fit or the scores."""

    def summed(self, setting: Mapping) -> Record | None:
        """The record of a candidate whose scores are sums over families, without a fit; None where they are not."""
        return None

    def family_scores(self, setting: Mapping, name: str) -> Families:
        """The families whose scores sum up to the score of that name, for a setting and others of unlike graphs.

        Raises
        ------
        NotDecomposable
            If it is no such sum.
        """
        raise NotDecomposable(NEEDS_EVIDENCE)

    @abstractmethod
    def fingerprint(self) -> dict[str, str]:
        """By name, all that records depend on: the data, the estimator's parameters, and how it is scored."""

    def fit(self, estimator: BaseEstimator) -> BaseEstimator:
        """A candidate fitted to all data."""
        if self.readings is None:
            return estimator.fit(self.X, self.y, **self.fit_params)
        return estimator.fit(self.readings.of(estimator))

    def candidate_of(self, setting: Mapping) -> BaseEstimator:
        """The estimator of a setting, unfitted."""
        return candidate(self.estimator, setting)

    def scored_by(self, scorers: Mapping[str, Callable]) -> Self:
        """The job with other scores."""
        changed: Any = self
        return replace(changed, scorers=scorers)

    def memory_estimate(self, setting: Mapping) -> str:
        """A sentence on the memory that a candidate needs, or nothing."""
        return ""

    def record(self, setting: Mapping) -> Record:
        """The record of a candidate, which is tried."""
        try:
            return self.summed(setting) or self.measured(setting)
        except Exception as error:
            if self.error_score == "raise":
                raise
            return self.failed(f"{type(error).__name__}: {error}\n{_place(error)}")

    def failed(self, why: str) -> Record:
        """The record of a candidate that has no scores."""
        value = np.nan if self.error_score == "raise" else float(self.error_score)
        return Record(dict.fromkeys(self.scorers, value), failure=why)

    def as_scored(self, record: Record) -> Record:
        """A record that was kept, whose scores are those of this job; a checkpoint may hold what no search wrote."""
        if record.values.keys() != self.scorers.keys():
            raise SearchCheckpointError(
                f"The checkpoint holds a candidate with the scores {[*record.values]}; this search needs "
                f"{[*self.scorers]}. Put back a copy, or delete it and the files beside it to start anew."
            )
        of_splits = {len(scores) for scores in record.splits.values()}
        if of_splits and of_splits != {n_splits(self)}:
            raise SearchCheckpointError(
                f"The checkpoint holds a candidate with scores of {max(of_splits)} splits; this search has "
                f"{n_splits(self)}. Put back a copy, or delete it and the files beside it to start anew."
            )
        return record

    def _fingerprint(self, **data) -> dict[str, str]:
        """Of the estimator and the scores, with that of the data added."""
        params = {k: v for k, v in self.estimator.get_params().items() if k.rpartition("__")[2] not in _NO_MATTER}
        return {
            "estimator": content(type(self.estimator)),
            **{f"parameter {name!r}": content(value) for name, value in params.items()},
            **{f"score {name!r}": content(score) for name, score in self.scorers.items()},
            **{name: content(value) for name, value in data.items()},
        }


@dataclass(frozen=True, eq=False)
class EvidenceJob(Job):
    """Scores of the evidence, of an estimator that can share what it read among candidates.

    Parameters
    ----------
    estimator, error_score
        As of `Job`.
    readings : Readings
        Of the data.
    scorers : mapping of str to EvidenceScorer
    most_cells : float, default=inf
        Cells of the largest table that sums over families look at, of nodes with parents.
    evaluations : Evaluations, optional
        Of candidates, which jobs of other scores share.
    """

    estimator: BaseEstimator
    readings: Readings
    scorers: Mapping[str, EvidenceScorer]
    error_score: float | str = np.nan
    most_cells: float = inf
    evaluations: Evaluations = field(default_factory=Evaluations)

    def measured(self, setting: Mapping) -> Record:
        """The record of one candidate by scores of the evidence."""
        began = time.perf_counter()
        evaluation = self.evaluation(setting)
        fitted = time.perf_counter()
        scores, missing = each_score(self.scorers, lambda each: score_of(evaluation, each.kind, each.options))
        return Record.of(
            scores,
            missing,
            n_free_parameters=evaluation.model.n_free_parameters,
            fit_seconds=(fitted - began,),
            score_seconds=(time.perf_counter() - fitted,),
            inference="exact" if evaluation.is_exact else "clusters",
        )

    def evaluation(self, setting: Mapping) -> Evaluation:
        """The fit of one candidate, for scores: the one that is kept, or a new one."""
        estimator = shallow_candidate(self.estimator, setting)
        reading, to_check = self.readings.of(estimator), setting if self._is_valid else None
        n_cells = (reading.extent.n_rows or inf) * reading.extent.n_columns
        return self.evaluations.of(setting, n_cells, lambda: evaluate(estimator, reading, to_check))

    @cached_property
    def _is_valid(self) -> bool:
        """True if the parameters of candidates that no setting gives obey their constraints."""
        try:
            check_parameters(self.estimator)
        except ValueError:
            return False
        return True

    @cached_property
    def _sums(self) -> DecomposableScores:
        return DecomposableScores(self.estimator, self.readings.common, self.scorers, self.most_cells)

    def __getstate__(self) -> dict:
        """The job without what it remembers of families, which is computed again wherever it is needed."""
        return {name: value for name, value in vars(self).items() if name != "_sums"}

    def summed(self, setting: Mapping) -> Record | None:
        """The record of a candidate of which nothing is hidden, from families that are remembered."""
        began = time.perf_counter()
        known = self._sums.record(setting)
        if known is None:
            return None
        return Record(**known, score_seconds=(time.perf_counter() - began,))

    def family_scores(self, setting: Mapping, name: str) -> Families:
        """The families whose scores sum up to the score of that name, for a setting and others of unlike graphs."""
        return self._sums.scores(setting, name)

    def fingerprint(self) -> dict[str, str]:
        """By name, all that the records of this job depend on."""
        return self._fingerprint(data=self.readings.fingerprint())

    @property
    def fits_graphs(self) -> bool:
        """True if the estimator fits graphs, that is has a method `graph`."""
        return hasattr(find_kind(self.estimator), "graph")

    def graph(self, setting: Mapping) -> tuple[DAG, Mapping]:
        """The graph of a setting, and latent -> number of states, if the estimator fits graphs."""
        estimator: Any = shallow_candidate(self.estimator, setting)
        return kind_of(estimator).graph(estimator, self.readings.of(estimator))

    def network(self, setting: Mapping) -> Any:
        """The network of a setting, if the estimator fits networks, that is if it has a method `network`."""
        estimator = shallow_candidate(self.estimator, setting)
        return kind_of(estimator).network(estimator, self.readings.of(estimator))

    def memory_estimate(self, setting: Mapping) -> str:
        """A sentence on the memory that a candidate needs."""
        if not hasattr(find_kind(self.estimator), "network"):
            return ""
        network = self.network(setting)
        n_bytes, n_starts = 8.0 * network.dag.n_table_cells(network.cardinalities), self.estimator.n_init
        return f"Its tables alone take {n_bytes * n_starts:.3g} bytes in {n_starts} starts."


@dataclass(frozen=True, eq=False)
class AllRowsJob(Job):
    """Scores of an estimator fitted to all rows, by callables of (estimator, X, y).

    Parameters
    ----------
    estimator, error_score
        As of `Job`.
    X, y, fit_params
        As `fit` takes them.
    scorers : mapping of str to callable
        Returning a float or an `Evidence`, more is better.
    readings : Readings or None
        Of the data, if the estimator can share what it read among candidates.
    """

    estimator: BaseEstimator
    X: Any
    y: Any
    fit_params: Mapping[str, Any]
    scorers: Mapping[str, Callable]
    error_score: float | str = np.nan
    readings: Readings | None = None

    def measured(self, setting: Mapping) -> Record:
        """The record of one candidate by scores on all rows."""
        began = time.perf_counter()
        estimator: Any = self.candidate_of(setting)
        self.fit(estimator)
        fitted, model, evaluation = time.perf_counter(), last_step(estimator), None
        if self.readings is not None and any(isinstance(each, EvidenceScorer) for each in self.scorers.values()):
            evaluation = evaluation_of(estimator, self.readings.of(estimator))

        def score(each: Callable) -> float | Evidence:
            if not isinstance(each, EvidenceScorer):
                return each(estimator, self.X, self.y)
            if evaluation is None:
                return each.evidence(estimator, self.X, self.y, **self.fit_params)
            return score_of(evaluation, each.kind, each.options)

        scores, missing = each_score(self.scorers, score)
        return Record.of(
            scores,
            missing,
            n_free_parameters=getattr(model, "n_free_parameters_", None),
            fit_seconds=(fitted - began,),
            score_seconds=(time.perf_counter() - fitted,),
            inference="exact" if getattr(model, "row_gap_", 0.0) == 0.0 else "clusters",
        )

    def fingerprint(self) -> dict[str, str]:
        """By name, all that the records of this job depend on."""
        return self._fingerprint(data=(self.X, self.y, self.fit_params))


@dataclass(frozen=True, eq=False)
class HeldOutJob(Job):
    """Scores of rows held out, averaged over splits; more is better.

    Parameters
    ----------
    estimator, error_score
        As of `Job`.
    X, y, fit_params
        As `fit` takes them.
    splits : sequence of (train, test)
        Positions of rows.
    scorers : mapping of str to callable
        Of (estimator, X, y).
    """

    estimator: BaseEstimator
    X: Any
    y: Any
    fit_params: Mapping[str, Any]
    splits: Sequence[tuple]
    scorers: Mapping[str, Callable]
    error_score: float | str = np.nan

    #: Every split is read by itself.
    readings = None

    def measured(self, setting: Mapping) -> Record:
        """The record of one candidate by scores on held-out rows."""
        results = cross_validate(
            self.candidate_of(setting),
            self.X,
            self.y,
            cv=self.splits,
            scoring=dict(self.scorers),
            params=dict(self.fit_params) or None,
            error_score="raise",
            return_estimator=True,
        )
        splits = {name: tuple(results[f"test_{name}"].tolist()) for name in self.scorers}
        return Record(
            {name: float(np.mean(values)) for name, values in splits.items()},
            splits=splits,
            n_free_parameters=getattr(results["estimator"][0], "n_free_parameters_", None),
            fit_seconds=tuple(results["fit_time"].tolist()),
            score_seconds=tuple(results["score_time"].tolist()),
        )

    def fingerprint(self) -> dict[str, str]:
        """By name, all that the records of this job depend on."""
        return self._fingerprint(data=(self.X, self.y, self.fit_params), splits=self.splits)


def each_score(
    scorers: Mapping[str, Any], score: Callable[[Any], float | Evidence]
) -> tuple[dict[str, float | Evidence], list[str]]:
    """Scores by name, and a sentence on each that is NaN as it raised an error; the error of the first is let through.

    The first score ranks candidates. Others may not exist for all of them, or for none.
    """
    scores: dict[str, float | Evidence] = {}
    missing = []
    for name, each in scorers.items():
        try:
            scores[name] = score(each)
        except Exception as error:
            if not scores:
                raise
            scores[name] = np.nan
            missing.append(f"The score {name!r} is NaN: {type(error).__name__}: {error}")
    return scores, missing


def digest(setting: Mapping) -> str:
    """A name of a candidate that is the same in every process and whatever its latents are called."""
    return hashlib.sha256(content(canonical(setting)).encode()).hexdigest()[:32]


def _place(error: Exception) -> str:
    """The file and line that an error came from."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""


def scorings_by_name(scoring, estimator, cv, owner: str) -> dict:
    """The scores that a `scoring` parameter names, names or callables, by name.

    Raises
    ------
    TypeError, ValueError
        If it names none, or cannot be a score.
    """
    if scoring is None:
        scoring = getattr(find_kind(last_step(estimator)), "default_score", DEFAULT_SCORE) if cv is None else _own_score
    if isinstance(scoring, (str, EvidenceScorer)) or callable(scoring):
        given: dict = {"score": scoring}
    elif isinstance(scoring, Mapping):
        given = dict(scoring)
    elif isinstance(scoring, Sequence) and all(isinstance(each, (str, EvidenceScorer)) for each in scoring):
        given = {each if isinstance(each, str) else each.kind: each for each in scoring}
    else:
        raise TypeError(
            f"The 'scoring' parameter of {owner} must be a name, a callable of (estimator, X, y), a list of names, or "
            f"a mapping of names to these. Got {scoring!r} instead."
        )
    if not given:
        raise ValueError(f"The 'scoring' parameter of {owner} holds no score.")
    return given


def scorer_for(scoring, cv, owner: str) -> Callable:
    """One score as a callable of (estimator, X, y), of all rows or, with `cv`, of rows held out."""
    if cv is None:
        return scorer(scoring) if isinstance(scoring, str) else scoring
    if isinstance(scoring, EvidenceScorer) or (isinstance(scoring, str) and scoring in SCORES):
        kind = scoring if isinstance(scoring, str) else scoring.kind
        raise ValueError(
            f"{kind!r} is a score of the evidence of all rows, with its penalty for complexity built in, but {owner} "
            "holds rows out ('cv'). Leave 'cv' None, or take scoring=None, the log predictive probability of "
            "held-out rows."
        )
    return get_scorer(scoring) if isinstance(scoring, str) else scoring


def _own_score(estimator, X, y=None) -> float:
    """The estimator's own `score`."""
    return estimator.score(X) if y is None else estimator.score(X, y)


def n_splits(job: Job) -> int:
    """Number of splits of the rows, 1 where all are scored together."""
    return len(job.splits) if isinstance(job, HeldOutJob) else 1
