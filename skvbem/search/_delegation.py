"""Delegation of a search to its best estimator, whose methods it has once it is fitted."""

from __future__ import annotations

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skvbem.search._averaging import Average


def _best_estimator_has(name: str):
    def check(search) -> bool:
        return hasattr(search.best_estimator_ if hasattr(search, "best_estimator_") else search.estimator, name)

    return available_if(check)


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

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        average: Average | None = getattr(self, "averaged_", None)
        return self._asked().score_samples(X) if average is None else average.score_samples(X)

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

    @_best_estimator_has("predict")
    def predict(self, X):
        """Predictions of the best estimator.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray
        """
        return self._asked().predict(X)

    @_best_estimator_has("predict_proba")
    def predict_proba(self, X):
        """Probabilities of what the best estimator predicts.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray or list of ndarray
        """
        return self._asked().predict_proba(X)

    @_best_estimator_has("predict_log_proba")
    def predict_log_proba(self, X):
        """Log probabilities of what the best estimator predicts.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray or list of ndarray
        """
        return self._asked().predict_log_proba(X)

    @_best_estimator_has("decision_function")
    def decision_function(self, X):
        """Values of the best estimator's decision function.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray
        """
        return self._asked().decision_function(X)

    @_best_estimator_has("transform")
    def transform(self, X):
        """Rows as the best estimator transforms them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray
        """
        return self._asked().transform(X)

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

    @_best_estimator_has("inverse_transform")
    def inverse_transform(self, X):
        """Rows that the best estimator makes of transformed ones.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_transformed)

        Returns
        -------
        ndarray
        """
        return self._asked().inverse_transform(X)

    @_best_estimator_has("summary")
    def summary(self, X=None, **options):
        """A report of the best estimator: all parameters with intervals, given the structure that was found.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), default=None
            The data of the search, which intervals need.
        **options
            As of the estimator's `summary`.

        Returns
        -------
        Summary
        """
        return self._asked().summary(X, **options)

    @_best_estimator_has("sample_posterior")
    def sample_posterior(self, X, n_draws=1000, **options):
        """Draws of all parameters of the best estimator from their posterior, given the structure that was found.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data of the search.
        n_draws : int, default=1000
        **options
            As of the estimator's `sample_posterior`.

        Returns
        -------
        PosteriorDraws
        """
        return self._asked().sample_posterior(X, n_draws, **options)

    @_best_estimator_has("credible_intervals")
    def credible_intervals(self, X=None, level=0.95, method="draws", **options):
        """Equal-tailed intervals of each parameter of the best estimator, given the structure that was found.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), default=None
            The data of the search; needed unless ``method="vb"``.
        level : float, default=0.95
        method : {"draws", "linear_response", "vb"}, default="draws"
        **options
            As of the estimator's `credible_intervals`.

        Returns
        -------
        dict of str to dict of str to tuple of two ndarrays
        """
        return self._asked().credible_intervals(X, level, method, **options)

    @_best_estimator_has("standard_errors")
    def standard_errors(self, X, **options):
        """Standard errors of all parameters of the best estimator, fitted by maximum likelihood or MAP.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data of the search.
        **options
            As of the estimator's `standard_errors`.

        Returns
        -------
        StandardErrors
        """
        return self._asked().standard_errors(X, **options)

    @_best_estimator_has("bootstrap")
    def bootstrap(self, X, n_draws=200, **options):
        """How estimates of the best estimator vary: fits of the structure that was found to data made anew.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data of the search.
        n_draws : int, default=200
        **options
            As of the estimator's `bootstrap`.

        Returns
        -------
        BootstrapDraws
        """
        return self._asked().bootstrap(X, n_draws, **options)

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

    @_best_estimator_has("get_feature_names_out")
    def get_feature_names_out(self, input_features=None):
        """Names of the columns that `transform` of the best estimator returns.

        Parameters
        ----------
        input_features : array-like of str or None, default=None

        Returns
        -------
        ndarray of str
        """
        return self._asked().get_feature_names_out(input_features)
