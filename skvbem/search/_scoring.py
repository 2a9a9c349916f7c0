"""What the `scoring` parameter of a search says, as callables of (estimator, X, y)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sklearn.metrics import get_scorer

from skvbem.evidence import DEFAULT_SCORE, SCORES, EvidenceScorer, scorer
from skvbem.fitting.kind import find_kind


def scorings_by_name(scoring, estimator, cv, owner: str) -> dict:
    """The scores that a `scoring` parameter names, names or callables, by name.

    Raises
    ------
    TypeError, ValueError
        If it names none, or cannot be a score.
    """
    if scoring is None:
        scoring = getattr(find_kind(estimator), "default_score", DEFAULT_SCORE) if cv is None else _own_score
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
