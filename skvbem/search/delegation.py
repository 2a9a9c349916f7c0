"""Delegation of a search to its best estimator, whose methods it has once it is fitted."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skvbem._docstrings import share_texts

_ROWS = "array-like of shape (n_samples, n_features)"
_DATA = f"{_ROWS}\n    The data of the search."
_TYPES = {"n_draws": "int", "level": "float", "method": '{"draws", "linear_response", "vb"}'}


def _best_estimator_has(name: str):
    def check(search) -> bool:
        return hasattr(search.best_estimator_ if hasattr(search, "best_estimator_") else search.estimator, name)

    return available_if(check)


def _delegated(returns: str, rows: str = _ROWS, **types: str) -> Callable[[Callable], Any]:
    """A decorator: the method of this name and signature of the best estimator, which a search has if that has it.

    Parameters
    ----------
    returns : str
        The type of the result.
    rows : str
        The type of X, and what it is.
    types : str
        Types of other parameters, by name.
    """

    def decorated(declared: Callable) -> Any:
        name = declared.__name__

        @wraps(declared)
        def method(self, *args, **options):
            return getattr(self._asked(), name)(*args, **options)

        method.__doc__ = _documented(declared, returns, {**_TYPES, "X": rows, **types})
        return _best_estimator_has(name)(method)

    return decorated


def _documented(declared: Callable, returns: str, types: dict[str, str]) -> str:
    """The docstring of a delegated method: its own first line, its parameters with their types, and its result."""
    lines = [inspect.getdoc(declared) or "", "", "Parameters", "----------"]
    for name, parameter in list(inspect.signature(declared).parameters.items())[1:]:
        if parameter.kind is parameter.VAR_KEYWORD:
            lines += [f"**{name}", f"    As of the estimator's `{declared.__name__}`."]
            continue
        kind, *text = types[name].split("\n")
        default = "" if parameter.default is parameter.empty else f", default={parameter.default!r}".replace("'", '"')
        lines += [f"{name} : {kind}{default}", *text]
    return "\n".join([*lines, "", "Returns", "-------", returns])


@share_texts
class BestEstimatorDelegation:
    """The methods of `best_estimator_`, which a search has if its `estimator` has them."""

    def _asked(self):
        check_is_fitted(self)
        if not hasattr(self, "best_estimator_"):
            raise AttributeError(
                f"This {type(self).__name__} was made with refit=False: it has no fitted best estimator to ask. Fit "
                "estimator.set_params(**search.best_params_) yourself, or search with refit=True."
            )
        return self.best_estimator_

    @_best_estimator_has("score_samples")
    def score_samples(self, X):
        """Log predictive probability of each row, nats: of the best estimator, or averaged over the posterior.

        %(X -> ndarray of shape (n_samples,))s
        """
        check_is_fitted(self)
        average = vars(self).get("averaged_")
        return (self._asked() if average is None else average).score_samples(X)

    def score(self, X, y=None):
        """Mean log predictive probability of rows, nats per row, of the best estimator or of the average.

        For an estimator without `score_samples`, what its own `score` is.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like, default=None

        Returns
        -------
        float
        """
        if hasattr(self, "averaged_"):
            return float(np.mean(self.score_samples(X)))
        return self._asked().score(X) if y is None else self._asked().score(X, y)

    @_delegated("ndarray")
    def predict(self, X):
        """Predictions of the best estimator."""

    @_delegated("ndarray or list of ndarray")
    def predict_proba(self, X):
        """Probabilities of what the best estimator predicts."""

    @_delegated("ndarray or list of ndarray")
    def predict_log_proba(self, X):
        """Log probabilities of what the best estimator predicts."""

    @_delegated("ndarray")
    def decision_function(self, X):
        """Values of the best estimator's decision function."""

    @_delegated("ndarray")
    def transform(self, X):
        """Rows as the best estimator transforms them."""

    @_best_estimator_has("transform")
    def fit_transform(self, X, y=None, **params):
        """The rows of the search as its best estimator transforms them: `fit`, then `transform`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like, default=None
        **params
            See `fit`.

        Returns
        -------
        ndarray
        """
        return self.fit(X, y, **params).transform(X)

    @_delegated("ndarray", rows="array-like of shape (n_samples, n_transformed)")
    def inverse_transform(self, X):
        """Rows that the best estimator makes of transformed ones."""

    @_delegated("Summary", rows=f"{_ROWS}\n    The data of the search, which intervals need.")
    def summary(self, X=None, **options):
        """A report of the best estimator: all parameters with intervals, given the structure that was found."""

    @_delegated("PosteriorDraws", rows=_DATA)
    def sample_posterior(self, X, n_draws=1000, **options):
        """Draws of all parameters of the best estimator from their posterior, given the structure that was found."""

    @_delegated(
        "dict of str to dict of str to tuple of two ndarrays",
        rows=f'{_ROWS}\n    The data of the search; needed unless ``method="vb"``.',
    )
    def credible_intervals(self, X=None, level=0.95, method="draws", **options):
        """Equal-tailed intervals of each parameter of the best estimator, given the structure that was found."""

    @_delegated("StandardErrors", rows=_DATA)
    def standard_errors(self, X, **options):
        """Standard errors of all parameters of the best estimator, fitted by maximum likelihood or MAP."""

    @_delegated("BootstrapDraws", rows=_DATA)
    def bootstrap(self, X, n_draws=200, **options):
        """Estimates of the best estimator from bootstrapped data, given the structure that was found."""

    @_best_estimator_has("set_output")
    def set_output(self, *, transform=None):
        """Let `transform` return what scikit-learn's ``set_output`` says, now and after the next `fit`.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"} or None, default=None
            None leaves it as it is.

        Returns
        -------
        self : StructureSearchCV
            Its `estimator` is told too, as a ``Pipeline`` tells its steps.
        """
        for each in (self.estimator, getattr(self, "best_estimator_", None)):
            if each is not None:
                each.set_output(transform=transform)
        return self

    @_delegated("ndarray of str", input_features="array-like of str or None")
    def get_feature_names_out(self, input_features=None):
        """Names of the columns that `transform` of the best estimator returns."""
