"""`VBFactorAnalysis`: Bayesian factor analysis and probabilistic principal components."""

from __future__ import annotations

from numbers import Integral
from typing import ClassVar, cast

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, check_is_fitted

from skvbem._arguments import check_count, check_flag, check_level
from skvbem._compat import Interval, StrOptions, keep_parameters
from skvbem._docstrings import share_texts
from skvbem.blocks import Blocks
from skvbem.blocks.answers import by_partition
from skvbem.emissions import FactorGaussian
from skvbem.emissions.specification import HIERARCHICAL
from skvbem.estimators.base import MAX_ITER, MAX_MEMORY, SHARED_CONSTRAINTS, TOL, VBEstimator, has_posterior
from skvbem.estimators.factor_analysis.kind import FactorKind
from skvbem.estimators.mixture.kind import impute_rows, sample_rows
from skvbem.evidence.evaluation import Evaluation
from skvbem.fitted.factor_analysis import FittedFactorAnalysis
from skvbem.fitted.rotations import ROTATIONS
from skvbem.fitting.evaluation import evaluation_of, fit_at_hand, read_again, scored
from skvbem.fitting.fit import generator_of, question
from skvbem.reading.rows import TableReading
from skvbem.reports.fit_indices import FitIndices, fit_indices, saturated_model
from skvbem.uncertainty.posterior_draws import check_method, drawn_from_q
from skvbem.vbem import posteriors


@share_texts
class VBFactorAnalysis(VBEstimator):
    r"""Bayesian factor analysis: a few factors, hidden in each row, explain how columns of measurements vary together.

    :math:`y = \mu + \Lambda x + \epsilon` with factors :math:`x \sim N(0, I)` and noise of a variance for each column
    (factor analysis), or of one for all (probabilistic principal components). Any cells may be missing, and are summed
    out. It is a mixture of one component with the emission `FactorGaussian`: its `lower_bound_` compares across numbers
    of factors, and with mixtures and hidden Markov models. A rotation changes how loadings are shown, and no bound,
    index or prediction.

    Parameters
    ----------
    n_factors : int or "auto", default="auto"
        Number of factors. "auto" adds and deletes factors as long as that raises `lower_bound_`, which needs
        ``method="vb"``; see `n_factors_` and `moves_`.
    noise : {"diag", "spherical"}, default="diag"
        A variance of the noise for each column, or one for all columns.
    standardize : bool, default=False
        Whether noise="spherical" is one share of the variance of each column, as in principal components of
        correlations. By default it is one variance in the units of X, as in principal components of covariances: units
        of columns make a difference. For noise="diag" both are the same.
    method : {"vb", "map", "ml"}, default="vb"
        Variational Bayes, the posterior mode, or maximum likelihood, which has no priors.
    rotation : {"varimax", "quartimax", "promax", "oblimin"} or None, default=None
        How loadings are turned towards simple structure. Factors stay uncorrelated by the first two, and may be
        correlated by the others. Without one they are orthogonal in units of the noise.
    relevance : {"ard", "fixed"}, default="ard"
        Whether the loadings of each factor have a precision of their own, which is learned (automatic relevance
        determination), or one that is known, 1.
    relevance_prior : pair of float, default=(1.0, 1.0)
        Shape and rate of the Gamma prior of the precisions of loadings, in units of the noise.
    groups : list of columns, or mapping of names to columns, default=None
        Groups that together hold all columns, such as one group for each instrument. Each factor's loadings have a
        precision in each group, so that the factor may matter to some groups and not to others (group factor analysis
        [Virtanen et al. 2012; Klami et al. 2015]); see `relevance_`. Columns are given by names, positions, slices,
        masks, or a function of X. None is one group of all.
    noise_prior : pair of float or "hierarchical", default="hierarchical"
        Shape and rate of the Gamma prior of the precision of a noise, in units in which columns have variance 1;
        "hierarchical" has the rate of each column learned.
    mean_prior : array-like of shape (n_features,), default=None
        Prior mean of the means; by default the mean of X.
    mean_precision_prior : float or "hierarchical", default="hierarchical"
        How many rows `mean_prior` weighs; "hierarchical" has it learned.
    n_init : int, default=3
        Number of starts.
    init : {"auto", "random"}, default="auto"
        The first start is from the principal components of X and the others from loadings that are drawn, and they
        race: one is stopped when the best is out of its reach. Or all are drawn, and run to the end.
    %(max_iter, tol, acceleration, missing_values)s
    max_memory : float, default=4e9
        Most bytes that the parameters of all starts may take, and rows that are drawn.
    %(random_state, n_jobs)s
    warm_start : bool, default=False
        Whether a further call of `fit` starts from the last solution alone, if that has as many factors of as many
        columns.
    verbose : int, default=0

    Attributes
    ----------
    loadings_ : ndarray of shape (n_features, n_factors)
        Posterior means (VB) or the point found, in the units of the data, rotated. Factors come by the variance that
        they explain; the largest loading of each is positive.
    standardized_loadings_ : ndarray of shape (n_features, n_factors)
        Loadings of columns of variance 1, as psychologists print them.
    loadings_sd_ : ndarray of shape (n_features, n_factors)
        Standard deviations of `loadings_` under q(theta), the rotation held; `loadings_interval` has honest intervals.
    components_ : ndarray of shape (n_factors, n_features)
        `loadings_` transposed, scikit-learn's name.
    mean_, noise_variance_ : ndarray of shape (n_features,)
    uniquenesses_, communalities_ : ndarray of shape (n_features,)
        The share of each column's variance that is noise, and that factors explain.
    factor_variance_ : ndarray of shape (n_factors,)
        What each factor explains of the columns, each of variance 1: sums of squares of standardized loadings.
        Correlated factors share out what they explain together.
    factor_correlations_ : ndarray of shape (n_factors, n_factors)
        The identity unless the rotation is oblique.
    rotation_matrix_ : ndarray of shape (n_factors, n_factors)
        T: factors are those found times T, and loadings those found times the inverse of its transpose.
    relevance_ : ndarray of shape (n_factors,), or (n_groups, n_factors) of `groups`
        With ``relevance="ard"``, expected precisions of loadings; small ones matter. They are of the factors without a
        rotation, by the variance that these explain.
    heywood_ : list of str
        Columns of which next to nothing is noise.
    n_factors_, n_components_ : int
        Number of factors.
    moves_ : list of Move
        With ``n_factors="auto"``, the moves that raised the bound: kind, bound and number of factors after each.
    parameters_ : dict of str to dict of str to ndarray
        Under "factor" the means, loadings and what else draws and intervals have, by name.
    %(lower_bound_, log_posterior_)s
    lower_bounds_ : ndarray of shape (n_points,)
        The objective along the run that led to the fit; it never falls.
    restarts_ : Restarts
        Where every start ended.
    %(n_iter_, converged_, n_samples_, n_free_parameters_, n_features_in_, feature_names_in_)s

    See Also
    --------
    VBMixture : several components, each with factors of its own.
    VBHMM : states with factors of their own.

    Notes
    -----
    The prior of loadings is scaled by the noise, so that no unit of measure makes a difference. Therefore noise never
    vanishes (Heywood cases) under a prior. By maximum likelihood it is at least 0.005 of a column's variance.

    Examples
    --------
    >>> from skvbem import VBFactorAnalysis
    >>> from skvbem.datasets import load_ability_tests
    >>> tests = load_ability_tests()
    >>> model = VBFactorAnalysis(2, rotation="varimax", method="ml", tol=1e-8, random_state=0)
    >>> model = model.fit(tests.data, sample_weight=tests.sample_weight)
    >>> model.uniquenesses_.round(2).tolist()
    [0.46, 0.59, 0.22, 0.77, 0.05, 0.33]
    """

    _kind = FactorKind()

    _parameter_constraints: ClassVar[dict] = {
        "n_factors": [Interval(Integral, 0, None, closed="left"), StrOptions({"auto"})],
        "noise": [StrOptions({"diag", "spherical"})],
        "rotation": [StrOptions(set(ROTATIONS)), None],
        "standardize": ["boolean"],
        "relevance": [StrOptions({"ard", "fixed"})],
        "relevance_prior": "no_validation",
        "groups": "no_validation",
        "noise_prior": "no_validation",
        "mean_prior": "no_validation",
        "mean_precision_prior": FactorGaussian._parameter_constraints["mean_precision_prior"],
        "init": [StrOptions({"auto", "random"})],
        **{name: each for name, each in SHARED_CONSTRAINTS.items() if name != "map_basis"},
    }

    def __init__(
        self,
        n_factors="auto",
        *,
        noise="diag",
        standardize=False,
        method="vb",
        rotation=None,
        relevance="ard",
        relevance_prior=(1.0, 1.0),
        groups=None,
        noise_prior=HIERARCHICAL,
        mean_prior=None,
        mean_precision_prior=HIERARCHICAL,
        n_init=3,
        init="auto",
        max_iter=MAX_ITER,
        tol=TOL,
        acceleration=True,
        missing_values=np.nan,
        max_memory=MAX_MEMORY,
        random_state=None,
        n_jobs=None,
        warm_start=False,
        verbose=0,
    ):
        keep_parameters(self, locals())

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = False
        tags.input_tags.string = False
        return tags

    # Fitting ----------------------------------------------------------------------------------------------------------

    def fit(self, X, y=None, sample_weight=None):
        """Fit the model to a table.

        A fit that raises or is interrupted leaves the estimator as it was before.

        Parameters
        ----------
        %(blocks.X, y, blocks.sample_weight)s

        Returns
        -------
        %(self)s

        Raises
        ------
        %(fit.ValueError)s
        TooLargeError
            If parameters and starts take more than `max_memory`.
        """
        return self._fit(X, y, sample_weight)

    @available_if(has_posterior)
    def partial_fit(self, X, y=None, sample_weight=None):
        """Update the posterior with a batch, whose prior is the last posterior [Beal (2.114)-(2.117)].

        Exact with one component on complete data, whatever the batches. With several, a component that an early batch
        does not need is soon given up for good: let the first batch be large, or fit `blocks_of` all batches.
        `batch_lower_bound_` bounds the log probability of this batch given the approximate past; the sum over batches
        is no bound on the evidence of all data, so `lower_bound_`, `lower_bounds_` and `restarts_` go after the first
        batch. Only with ``method="vb"``.

        Parameters
        ----------
        %(partial_fit.X, y, sample_weight)s

        Returns
        -------
        %(self)s
        """
        if isinstance(X, Blocks):
            raise TypeError("A batch is a table; blocks are what fit takes. Give partial_fit one block at a time.")
        return self._partial_fit(X, y, sample_weight)

    @property
    def components_(self) -> np.ndarray:
        """`loadings_` transposed, as scikit-learn's FactorAnalysis has it, (n_factors, n_features)."""
        check_is_fitted(self)
        return self.loadings_.T

    @property
    def n_components_(self) -> int:
        """Number of factors."""
        check_is_fitted(self)
        return self.n_factors_

    @property
    def _n_features_out(self) -> int:
        return self._fitted_.n_factors

    # Asking -----------------------------------------------------------------------------------------------------------

    @by_partition()
    def score_samples(self, X):
        """Log predictive density of each row, nats; what is missing is integrated out.

        With ``method="vb"`` the exact average of p(row | theta) over q(theta), which integrates to one over all rows;
        with MAP and ML that of the point found. A row that is impossible scores -inf.

        %(X -> ndarray of shape (n_samples,))s
        """
        fitted, reading = question(self, X)
        return fitted.log_predictive(reading.values)

    @by_partition(width="n_factors_")
    def transform(self, X):
        """Scores: the posterior means of the factors of each row, rotated as the loadings are.

        Parameters
        ----------
        X : array-like, pandas or polars DataFrame of shape (n_samples, n_features)
            Any cells may be missing; a row without any observed one scores 0.

        Returns
        -------
        ndarray of shape (n_samples, n_factors)
        """
        fitted, reading = question(self, X)
        return fitted.scores(reading.values)[0]

    def score_covariance(self, X):
        """Posterior covariances of the factors of each row, which `transform` has the means of.

        %(rows.X -> ndarray of shape (n_samples, n_factors, n_factors))s
            Equal for all rows with the same cells missing.
        """
        fitted, reading = question(self, X)
        return fitted.scores(reading.values)[1]

    def inverse_transform(self, X):
        """Rows that are expected of factors with these scores.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_factors)
            Scores.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        q = self.n_factors_
        try:
            scores = check_array(X, dtype=float, ensure_min_features=min(q, 1), input_name="X")
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"X of inverse_transform must be a table of finite numbers. {error}") from None
        if scores.shape[1] != q:
            raise ValueError(
                f"inverse_transform of {type(self).__name__} takes scores on its {q} factors. Got {scores.shape[1]} "
                "columns."
            )
        return self.mean_ + scores @ self.loadings_.T

    def impute(self, X, return_variances=False, *, fill="auto", random_state=None):
        """X with missing cells filled by their means given the observed cells of the row, or by draws.

        Parameters
        ----------
        X : array-like, pandas or polars DataFrame of shape (n_samples, n_features)
        return_variances : bool, default=False
            Whether to return the variances of the cells that were filled, too.
        fill : {"auto", "cells", "joint", "draw"}, default="auto"
            "draw": cells are drawn together given the observed ones, under parameters that are drawn once for all rows.
            Several seeds make several completed tables (multiple imputation). All others: means.
        %(impute.random_state)s

        Returns
        -------
        filled : ndarray or DataFrame
            X in its own container; observed cells are untouched.
        variances : ndarray of shape (n_samples, n_features)
            Only if asked for: of the predictive distribution of each missing cell, 0 where observed.
        """
        check_flag("return_variances", "impute", return_variances)
        completed = impute_rows(self, X, fill, random_state)
        if not return_variances:
            return completed
        fitted, reading = question(self, X)
        return completed, np.where(fitted.groups.missing(reading.values), fitted.variances(reading.values), 0.0)

    def get_covariance(self):
        """Covariance of the columns: loadings times their transpose, and the variances of the noise.

        Returns
        -------
        ndarray of shape (n_features, n_features)
        """
        return self.fitted.as_found["covariances"].copy()

    def get_precision(self):
        """Inverse of `get_covariance`.

        Returns
        -------
        ndarray of shape (n_features, n_features)
        """
        loadings, noise = (self.fitted.as_found[name] for name in ("loadings", "noise_variances"))
        scaled = loadings / noise[:, None]
        inner = np.eye(self.n_factors_) + loadings.T @ scaled
        return np.diag(1 / noise) - scaled @ np.linalg.solve(inner, scaled.T)

    def sample(self, n_samples=1, random_state=None):
        """Rows drawn from the predictive distribution of a new row.

        Each row has parameters of its own, drawn from q(theta); of more than 1000 rows, each of 1000 parts of them has.

        %(sample.n_samples, sample.random_state -> ndarray or DataFrame of shape (n_samples, n_features))s
            In the container of the X that was fitted, with its names.
        """
        return sample_rows(self, n_samples, random_state)[0]

    def loadings_interval(
        self, X=None, level=0.95, *, method="draws", n_draws=2000, sample_weight=None, random_state=None
    ):
        """Equal-tailed intervals of `loadings_`, each draw in its own rotation, its factors named as those of the fit.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), default=None
            The data of the fit; needed unless ``method="vb"``.
        %(interval.level)s
        method : {"draws", "linear_response", "vb"}, default="draws"
            As of `credible_intervals`; of the last, draws from q(theta), somewhat too narrow. Linear response does not
            suit loadings: it takes turns of the factors, which may be far, for small steps.
        n_draws : int, default=2000
        %(sample_weight, draws.random_state)s

        Returns
        -------
        lower, upper : ndarray of shape (n_features, n_factors)

        Raises
        ------
        ValueError
            If the fit is a point, if X is lacking or other data, or the level is not between 0 and 1.
        """
        check_is_fitted(self)
        check_level("loadings_interval", level)
        check_method("loadings_interval", method)
        fit_at_hand(self, X).check_is_density("loadings_interval")
        check_count("n_draws", "loadings_interval", n_draws)
        if method == "vb":
            natural = drawn_from_q(self._fitted_, int(n_draws), generator_of(self, random_state))
            drawn = self._fitted_.parameters_of_draws(natural)
            (of_group,) = drawn.values()
            return tuple(np.quantile(of_group["loadings"], 0.5 + side * level / 2, axis=0) for side in (-1, 1))
        options = {"n_draws": n_draws, "sample_weight": sample_weight, "random_state": random_state}
        (of_group,) = self.credible_intervals(X, level, method, **options).values()
        return of_group["loadings"]

    def fit_indices(self, X, sample_weight=None) -> FitIndices:
        """Fit indices of as many factors by maximum likelihood: how well they account for the covariances of the data.

        Chi-square with its degrees of freedom and p, RMSEA with an interval, CFI, TLI, SRMR, AIC and BIC. After another
        `method` factors are fitted by maximum likelihood, from the starts of the fit and from where it ended. No
        rotation, and no row without an observed cell, changes them.

        Parameters
        ----------
        %(memory.X, sample_weight)s

        Returns
        -------
        FitIndices

        Raises
        ------
        ValueError
            If X is not the data of the fit, or no covariance matrix is most likely: there are not more rows than
            columns, or columns are constant or functions of each other.

        Examples
        --------
        >>> from skvbem import VBFactorAnalysis
        >>> from skvbem.datasets import load_ability_tests
        >>> tests = load_ability_tests()
        >>> model = VBFactorAnalysis(2, random_state=0).fit(tests.data, sample_weight=tests.sample_weight)
        >>> indices = model.fit_indices(tests.data, tests.sample_weight)
        >>> round(indices.chi2, 2), indices.degrees_of_freedom
        (6.11, 4)
        """
        check_is_fitted(self)
        reading = self._in_memory("fit_indices", X, sample_weight)
        fits = evaluation_of(self, reading)
        most_likely, bic = self._most_likely(fits), scored(self, fits, "bic", {})
        return fit_indices(
            reading,
            float(bic.details["log_likelihood"]),
            most_likely.as_found["covariances"],
            most_likely.n_factors,
            int(bic.n_free_parameters),
            type(self).__name__,
        )

    def saturated_covariance(self, X, sample_weight=None):
        """Covariance of the columns that is most likely without any factors, which `fit_indices` compares with.

        Where no cell is missing it is the covariance of the data, with divisor n; else it is found by EM.

        Parameters
        ----------
        %(memory.X, sample_weight)s

        Returns
        -------
        ndarray of shape (n_features, n_features)
        """
        check_is_fitted(self)
        reading = self._in_memory("saturated_covariance", X, sample_weight)
        return saturated_model(reading, f"saturated_covariance of {type(self).__name__}")[1]

    def _in_memory(self, caller: str, X, sample_weight) -> TableReading:
        """The data of the fit, read again; a ValueError if they come in blocks."""
        reading = cast(TableReading, read_again(self, X, sample_weight))
        if reading.are_in_blocks:
            raise ValueError(f"{caller} takes rows that are in memory; X comes in blocks.")
        return reading

    def _most_likely(self, evaluation: Evaluation) -> FittedFactorAnalysis:
        """The factors of maximum likelihood."""
        columns, fit = self._fitted_.columns, evaluation.fit("ml")
        return FittedFactorAnalysis(columns, evaluation.model, posteriors.ML, fit.statistics, rotation=self.rotation)


__all__ = ["VBFactorAnalysis"]
