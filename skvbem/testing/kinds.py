"""Laws of the kind of an estimator: what fits and predictions owe to its one reading of X."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from skvbem.fitting.evaluation import evaluate
from skvbem.fitting.fit import question, read
from skvbem.fitting.kind import kind_of
from skvbem.testing.laws import Report, agree, hold, require

# Methods whose answer is one for each row, or one for each sequence of a list.
_PREDICTIONS = ("score_samples", "predict", "predict_proba")


@dataclass(frozen=True, eq=False)
class _OnData:
    """An estimator, X, and its fit to X."""

    estimator: Any
    X: Any
    fit: Any


def check_kind(estimator, X, *, laws: Iterable[str] | None = None) -> Report:
    """Hold the kind of an estimator to the laws of the path from X to a fit, and from a fit to predictions.

    Parameters
    ----------
    estimator : estimator
        With a `skvbem.fitting.kind.Kind`; a clone of it is fitted, with ``random_state=0``.
    X : array, DataFrame or list
        A few rows, or sequences, not the same in reverse. The class of the estimator says of which shape.
    laws : iterable of str, optional
        Names in `skvbem.testing.kinds.LAWS`; all if None.

    Returns
    -------
    Report

    Raises
    ------
    AssertionError
        If a law is broken: which, and by how much.

    Examples
    --------
    >>> import numpy as np
    >>> from skvbem import VBMixture
    >>> from skvbem.testing import check_kind
    >>> X = np.random.default_rng(0).normal(size=(12, 2))
    >>> len(check_kind(VBMixture(2), X).held)
    3
    """
    estimator = clone(estimator).set_params(random_state=0)
    case = _OnData(estimator, X, clone(estimator).fit(X))
    return hold(f"The kind of {type(estimator).__name__}", "kinds", LAWS, laws, lambda law: law(case))


def predictions_are_of_the_rows_that_the_kind_reads(case: _OnData) -> None:
    """Whatever `read` of the kind makes of X is predicted: rows in reverse have their predictions in reverse."""
    kind: Any = type(kind_of(case.fit))

    class Reversed(kind):
        def read(self, estimator, X, sample_weight, columns, where):
            return super().read(estimator, X[::-1], sample_weight, columns, where)

    owner = type(case.fit)
    other: Any = object.__new__(type(owner.__name__, (owner,), {"_kind": Reversed()}))
    vars(other).update(vars(case.fit))
    for name in filter(lambda name: hasattr(case.fit, name), _PREDICTIONS):
        computed, wanted = (_flat(getattr(each, name)(X)) for each, X in ((other, case.X), (case.fit, case.X[::-1])))
        agree(f"{name} of rows that the kind reads in reverse", computed, wanted)


def a_reading_stands_for_its_data(case: _OnData) -> None:
    """A fit to the reading of X is the fit to X, and a question about it the question about X."""
    evaluation = evaluate(case.estimator, read(case.estimator, case.X))
    statistics = case.fit.fitted.statistics
    agree("statistics of a fit to a reading", evaluation.fit(evaluation.method).statistics, statistics)
    fitted, reading = question(case.fit, case.X)
    require(fitted is case.fit.fitted, "The fitted value that is asked is another than that of the estimator.")
    again = question(case.fit, reading)[1]
    require(again.fingerprint == reading.fingerprint, "The reading of a reading is of other rows.")


def kinds_hold_nothing(case: _OnData) -> None:
    """A kind is shared by all its estimators: it has no attribute of its own, before a fit or after it."""
    held = vars(kind_of(case.fit))
    require(not held, f"The kind holds {', '.join(held)}.")


def _flat(values: Any) -> np.ndarray:
    """Numbers of an answer, which may be a list of arrays, in a row."""
    parts = values if isinstance(values, list) else [values]
    return np.concatenate([np.ravel(np.asarray(part, dtype=float)) for part in parts])


LAWS = {
    law.__name__: law
    for law in (predictions_are_of_the_rows_that_the_kind_reads, a_reading_stands_for_its_data, kinds_hold_nothing)
}
