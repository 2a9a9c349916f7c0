"""Missing cells filled as a step of a pipeline."""

from __future__ import annotations

from typing import ClassVar

from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from skvbem._compat import HasMethods, StrOptions, check_feature_names_in, fit_context, output_of
from skvbem._docstrings import share_texts
from skvbem.estimators.mixture.vb_mixture import VBMixture
from skvbem.fitted.fills import FILLS
from skvbem.reading.tables import library_of


@share_texts
class VBImputer(TransformerMixin, BaseEstimator):
    """Missing cells filled by a model of all columns, as a step of a pipeline.

    Each missing cell gets what the model expects given the observed cells of its row: the mean of a measurement, the
    most probable category. Observed cells stay as they are, to the last bit.

    Parameters
    ----------
    estimator : estimator with `fit` and `impute`, default=None
        Any of this package's: a mixture, a network, a factor analysis, or one for sequences, for which the rows of a
        table are one sequence. None stands for ``VBMixture("auto", search_effort="fast")``, which takes numbers for
        measurements, words and truth values for categories, and divides components as long as that raises the bound.
    fill : {"auto", "cells", "joint", "draw"}, default="auto"
        What missing categories become, as for `impute`: the most probable of each cell, or combinations that occur
        together. "draw" draws all missing cells, numbers too, given the observed ones.
    random_state : int, RandomState instance or None, default=None
        Seed of the default estimator, and of draws; an estimator that is given has its own.

    Attributes
    ----------
    estimator_ : estimator
        As fitted.
    %(n_features_in_, feature_names_in_)s

    See Also
    --------
    VBMixture.impute, VBDiscreteDAG.impute, VBNetwork.impute : The answers themselves, with probabilities of cells.

    Notes
    -----
    Fills are single values: they say nothing of how sure they are, and variances of filled tables are too small. Where
    that matters, fill by draws, several times with other seeds, and combine what follows from each completed table
    (multiple imputation). `impute` of networks also gives probabilities. What `handle_unknown` of the estimator makes
    missing, categories that fit did not see, is filled, too, with its warning.

    Examples
    --------
    >>> import numpy as np
    >>> from skvbem import VBImputer
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 1)) @ np.ones((1, 2)) + rng.normal(scale=0.1, size=(200, 2))
    >>> X[0] = 2.0, np.nan
    >>> VBImputer(random_state=0).fit_transform(X)[0].round(1)
    array([2., 2.])
    """

    _parameter_constraints: ClassVar[dict] = {
        "estimator": [HasMethods(["fit", "impute"]), None],
        "fill": [StrOptions(set(FILLS))],
        "random_state": ["random_state"],
    }

    def __init__(self, estimator=None, *, fill="auto", random_state=None):
        self.estimator = estimator
        self.fill = fill
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y=None, sample_weight=None):
        """Fit the model to the observed cells.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
        %(y)s
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts.

        Returns
        -------
        self
        """
        estimator = self.estimator
        if estimator is None:
            estimator = VBMixture("auto", search_effort="fast", random_state=self.random_state)
        self.estimator_ = clone(estimator).fit(X, sample_weight=sample_weight)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
            elif hasattr(self, name):  # of an earlier fit
                delattr(self, name)
        return self

    def transform(self, X):
        """X with its missing cells filled.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)

        Returns
        -------
        ndarray or DataFrame
            An array, as scikit-learn's transformers return; the frame that `set_output` asks for. A pandas or polars
            frame for which the same is asked keeps the types of its columns.
        """
        check_is_fitted(self)
        way = {} if self.fill == "auto" else {"fill": self.fill}
        way |= {"random_state": self.random_state} if self.fill == "draw" else {}
        completed, wanted = self.estimator_.impute(X, **way), output_of("transform", self)
        stays = library_of(completed) == wanted  # with the types of its columns
        return completed if stays or not hasattr(completed, "to_numpy") else completed.to_numpy()

    def get_feature_names_out(self, input_features=None):
        """Names of the columns, which are those of X.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names of the columns, if X had none.

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        return check_feature_names_in(self, input_features)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        of_cells = get_tags(VBMixture() if self.estimator is None else self.estimator).input_tags
        tags.input_tags = of_cells
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = []
        return tags
