"""What is said of an attribute that an estimator does not have: whether a fit makes it, and what was meant."""

from __future__ import annotations

from typing import Any

from sklearn.exceptions import NotFittedError

from skvbem._names import did_you_mean

# Where attributes of other estimators, and of other libraries, are found.
_ELSEWHERE = {
    "classes_": "It finds hidden states, and knows no classes: VBClassifier is the classifier.",
    **dict.fromkeys(("tables_", "means_"), "'parameters_' holds what is learned of columns, by group and name."),
    "labels_": "predict(X) has the most probable state of each row.",
}
# What a fit by another method maximizes.
_OBJECTIVES = ("lower_bound_", "log_posterior_", "log_likelihood_")


def absent(estimator: Any, name: str, is_fitted: bool) -> AttributeError:
    """The error of a public attribute that is not there, of an estimator or a search, fitted or not."""
    owner, state = type(estimator).__name__, vars(estimator)
    told = f"{owner!r} object has no attribute {name!r}"
    if not name.endswith("_"):
        return _Absent(told, name, estimator)
    if not is_fitted:
        hint = _ELSEWHERE.get(name, "")
        told = f"This {owner} instance is not fitted yet, so that it has no {name!r}. Call 'fit' first."
        error = NotFittedError(f"{told} {hint}".rstrip())
        error.name, error.obj = name, estimator  # as Python's own has them
        return error
    reached = [each for each in (*_OBJECTIVES, *(f"{each}bound_" for each in _OBJECTIVES[1:])) if each in state]
    if name in _OBJECTIVES and reached:
        method = state["_fitted_"].form.name
        hint = f" The fit is by method={method!r}, and what it has reached is {reached[0]!r}."
    elif name in _ELSEWHERE:
        hint = f" {_ELSEWHERE[name]}"
    else:
        return _Absent(told, name, estimator)
    return AttributeError(f"{told}.{hint}", name=name, obj=estimator)


def _public(estimator: Any) -> list[str]:
    """Names of attributes; `dir` of an estimator would ask for each of them, and come back here."""
    return [each for each in {**dict.fromkeys(dir(type(estimator))), **vars(estimator)} if not each.startswith("_")]


class _Absent(AttributeError):
    """Looks for what was meant only where its text is read: many ask whether an attribute is there, `hasattr` first."""

    def __init__(self, told: str, name: str, estimator: Any):
        super().__init__(told, name=name, obj=estimator)

    def __str__(self) -> str:
        return f"{self.args[0]}.{did_you_mean(self.name, _public(self.obj))}"

    def __reduce__(self):
        return AttributeError, (str(self),)


_Absent.__name__ = _Absent.__qualname__ = "AttributeError"  # as which it is shown
_Absent.__module__ = "builtins"
