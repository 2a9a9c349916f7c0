"""`VBMixture`: Bayesian mixtures for tables of any kind of columns."""

from __future__ import annotations

from numbers import Integral
from typing import ClassVar

import numpy as np
from sklearn.utils.metaestimators import available_if

from skvbem._compat import Interval, StrOptions, keep_parameters
from skvbem._docstrings import share_texts
from skvbem.blocks import Blocks
from skvbem.blocks.answers import by_partition
from skvbem.estimators.base import MAX_ITER, MAX_MEMORY, SHARED_CONSTRAINTS, TOL, VBEstimator, has_posterior
from skvbem.estimators.given_parameters import fit_of_parameters, given_distributions
from skvbem.estimators.labels import COLUMN_CONSTRAINTS
from skvbem.estimators.mixture.kind import MixtureKind, impute_rows, sample_rows
from skvbem.fitting.fit import generator_of, question
from skvbem.models.mixture.model import Mixture
from skvbem.optima.tuning import EFFORTS
from skvbem.reports.membership import class_probabilities, odds_ratios
from skvbem.reports.pseudo_residuals import pseudo_residuals


@share_texts
class VBMixture(VBEstimator):
    r"""Bayesian mixture of components, for measurements, counts, categories and tables that mix them.

    A row belongs to one of `n_components` components; its columns, or groups of columns, are independent given that.
    Missing cells are summed out, in every family and exactly. The lower bound on the log evidence has all its
    constants: it compares across numbers of components, families and estimator classes.

    Parameters
    ----------
    n_components : int or "auto", default=1
        Number of components. Empty ones are kept; see `counts_`. "auto" splits, joins and drops components as long as
        that raises `lower_bound_`, which needs ``method="vb"``; see `n_components_` and `moves_`.
    emission : str, emission, mapping or list, default="auto"
        What the columns hold, and priors of it. "auto" makes one Gaussian group of all columns of numbers, and
        categories of strings, booleans and pandas categories; numbers that look like categories or counts draw a
        `DataWarning`. An object of `skvbem.emissions`, such as
        ``Gaussian(mean_precision_prior=0.1)``, takes all columns, and so does the name of one ("gaussian",
        "categorical", "bernoulli", "poisson", "multinomial", "exponential"), with default priors. A mapping gives each
        name its columns, by name or position: ``{"gaussian": ["height", "weight"], "poisson": "visits"}``. A list of
        (name, emission, columns), as in scikit-learn's ColumnTransformer, names groups, of which several may have the
        same emission: ``[("seen", Poisson(), "visits"), ("sick", Poisson(shape_prior=2.0), ["days", "weeks"])]``.
        Columns that are not named are an error, unless the remainder is said: ``{"poisson": "visits", "remainder":
        "auto"}``, or ``("remainder", "auto")`` in a list. "auto" reads data types, "drop" leaves these columns out of
        the model, and an emission takes them all.
    covariance_type : {"full", "tied", "diag", "spherical"}, default="full"
        For a Gaussian group given by name, or "auto": a covariance matrix for each component, one for all, a variance
        for each column, one variance for each component. An object has its own, ``Gaussian("diag")``; any other value
        here than its own or the default is then an error.
    weight_concentration_prior_type : {"dirichlet_distribution", "dirichlet_process"}, default="dirichlet_distribution"
        A Dirichlet prior of the weights, or sticks broken in turn, where late components are small.
    weight_concentration_prior : float, array-like of shape (n_components,) or "optimized", default=1.0
        Its concentration, for each component. Small values empty components. "optimized" takes the one that raises the
        bound most [Beal (2.79)], from 0.001 to 1000; the bound is then one given that prior. Needs ``method="vb"``.
    membership : Softmax, default=None
        Covariates that drive the component of a row, as in ``Softmax(["age", "income"])``, in place of weights that all
        rows share; see `skvbem.emissions.Softmax`. Covariates are columns of X that no emission names.
    categories : "auto" or mapping of column to array-like, default="auto"
        Levels of categorical columns by name, which of an array is x0, x1, ...; see `VBDiscreteDAG`.
    %(method, map_basis, n_init)s
    init : {"auto", "k-means++", "random", "hierarchical"} or array-like, default="auto"
        Components start around rows that lie apart ("k-means++"), or around any rows ("random"), and every start is
        run to the end. "hierarchical" has one start that joins rows, two by two, where the prior finds the union most
        probable, beside starts around rows that lie apart. "auto" has starts of the first two kinds by turns. They
        race: one is stopped when the best is out of its reach. Once they have ended, moves join the race (components
        are divided, joined and dropped, share out their rows anew, or come from two optima) until a few rounds have
        found nothing better. Where rows are many, starts and moves see a sample, and what survives sees more. By
        maximum likelihood a solution in which some component has no width in some direction, or no more rows than
        columns, is refused while there is another. An array of shape (n_samples, n_components) gives responsibilities
        to start from.
    %(search_effort, max_iter, tol, acceleration, handle_unknown, missing_values)s
    max_memory : float, default=4e9
        Most bytes that the parameters of all components in all starts may take, and rows that are drawn.
    %(random_state, n_jobs)s
    warm_start : bool, default=False
        Whether a further call of `fit` starts from the last solution alone, in place of `n_init` starts, as
        scikit-learn's mixtures do: from what it says of the rows at hand. Where the components or the columns are
        others, the start is a fresh one.
    verbose : int, default=0

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
        Posterior means (VB) or the point found; with `membership` proportions of the rows of X.
    %(means_)s
    weight_concentration_ : ndarray of shape (n_components,), or (n_components - 1, 2) of sticks
    mean_precision_, degrees_of_freedom_ : ndarray
        Parameters of the posterior (``method="vb"``). The last two exist if there is a Gaussian group.
    weight_concentration_prior_, mean_prior_, mean_precision_prior_, degrees_of_freedom_prior_, covariance_prior_
        The prior as it was resolved, with what was taken from X, and hidden hyperparameters as they are expected.
    %(parameters_)s
    counts_ : ndarray of float, shape (n_components,)
        Expected rows of each component.
    latent_states_ : dict of str to LatentStates
        Under "component" the components in use, empty ones, duplicates that rows (of the last batch) do not tell apart,
        and how many there are in effect.
    %(lower_bound_)s
    batch_lower_bound_ : float
        After `partial_fit`, the bound of the last batch given those before.
    %(log_posterior_)s
    lower_bounds_ : ndarray of shape (n_points,)
        The objective along the run that led to the fit; it never falls. Where sticks made components change places,
        that is the run after it.
    %(restarts_, n_iter_, converged_, n_samples_, n_free_parameters_)s
    n_components_ : int
    component_names_ : ndarray of object, shape (n_components,)
        What components are called by the `labels` of `fit`, if it was given any; their numbers where none calls them.
        ``component_names_[predict(X)]`` are the labels of rows.
    moves_ : list of Move
        With ``n_components="auto"``, and where factors are counted (``FactorGaussian("auto")``), the moves that raised
        the bound: kind, number of components, bound and numbers of factors after each.
    n_factors_ : ndarray of int, shape (n_components,)
        Factors of each component, if there is a group with factors; where there are several, by group.
    %(groups_, categories_, n_features_in_, feature_names_in_)s

    See Also
    --------
    VBDiscreteDAG : Networks of categories; its latent class model is a mixture of categories.

    Notes
    -----
    q(theta) q(x) is optimal given the split between them [BG]_; `score_samples` integrates q(theta) out: Student's t,
    negative binomials, and so on.

    Examples
    --------
    >>> import numpy as np
    >>> from skvbem import VBMixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(size=(100, 2)), rng.normal(size=(50, 2)) + 6])
    >>> bounds = [VBMixture(k, random_state=0).fit(X).lower_bound_ for k in (1, 2, 3)]
    >>> int(np.argmax(bounds)) + 1
    2
    """

    _kind = MixtureKind()

    _parameter_constraints: ClassVar[dict] = {
        "n_components": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        **SHARED_CONSTRAINTS,
        **COLUMN_CONSTRAINTS,
        "weight_concentration_prior_type": [StrOptions({"dirichlet_distribution", "dirichlet_process"})],
        "weight_concentration_prior": "no_validation",
        "membership": "no_validation",
        "init": [StrOptions({"auto", "k-means++", "random", "hierarchical"}), "array-like"],
        "search_effort": [StrOptions({*EFFORTS})],
    }

    def __init__(
        self,
        n_components=1,
        *,
        emission="auto",
        covariance_type="full",
        weight_concentration_prior_type="dirichlet_distribution",
        weight_concentration_prior=1.0,
        membership=None,
        categories="auto",
        method="vb",
        map_basis="natural",
        n_init=10,
        init="auto",
        search_effort="auto",
        max_iter=MAX_ITER,
        tol=TOL,
        acceleration=True,
        handle_unknown="warn",
        missing_values=np.nan,
        max_memory=MAX_MEMORY,
        random_state=None,
        n_jobs=None,
        warm_start=False,
        verbose=0,
    ):
        keep_parameters(self, locals())

    @classmethod
    def from_parameters(cls, weights, parameters, *, emission, columns=None, **params):
        """A mixture whose parameters are known, ready to predict, score, impute and sample without a fit.

        Nothing is estimated: every answer is that at these parameters. Bounds, scores of the evidence and
        intervals need data; they are refused with the reason. `fit` forgets the parameters, or goes on from them with
        ``warm_start=True``.

        Parameters
        ----------
        weights : array-like of shape (n_components,)
            They sum to one.
        parameters : mapping
            Parameters of the emission by name, as in `parameters_`. Gaussians have "means" and "covariances", of the
            shape that `covariance_type` says; counts and waiting times have "rates". Categories have "probabilities"
            (n_components, n_columns, n_categories), zeros and ones (n_components, n_columns). Shares of a total have
            "shares" beside "n_trials". Regressions have "coefficients", "intercepts" and "variances". If there are
            several groups of columns, each group has a mapping of its own.
        emission : str, emission, mapping or list
            What the columns hold, as in `VBMixture`, but "auto", which asks data.
        columns : sequence of str or int, default=None
            Names of all columns, or how many there are; needed where `emission` shares them out. By default columns
            have no names.
        **params
            Other parameters of `VBMixture`, as `covariance_type`; of categories other than 0, 1, ... the `categories`.

        Returns
        -------
        VBMixture

        Raises
        ------
        ValueError
            If weights or tables do not sum to one, a covariance is not positive definite, or shapes do not belong
            together.

        Examples
        --------
        >>> from skvbem import VBMixture
        >>> parameters = {"means": [[0.0], [4.0]], "covariances": [[[1.0]], [[2.0]]]}
        >>> model = VBMixture.from_parameters([0.7, 0.3], parameters, emission="gaussian")
        >>> model.predict([[0.5], [3.5]]).tolist()
        [0, 1]
        >>> model.score_samples([[0.0]]).round(4).tolist()  # ln(0.7 N(0; 0, 1) + 0.3 N(0; 4, 2))
        [-1.2701]
        """
        weights = given_distributions(cls.__name__, "weights", weights, 1)
        model = cls(len(weights), emission=emission, **params)

        def point_of(mixture: Mixture) -> tuple:
            return (mixture.weights.prior.most_likely(mixture.weights.statistics(weights)),)

        return fit_of_parameters(model, parameters, columns, point_of)

    def fit(self, X, y=None, sample_weight=None, *, labels=None):
        """Fit the model to a table.

        A fit that raises or is interrupted leaves the estimator as it was before.

        Parameters
        ----------
        %(blocks.X)s
        y : None
            Ignored; components of rows that are known are `labels`.
        %(blocks.sample_weight)s
        labels : array-like of shape (n_samples,), default=None
            Components of rows, as far as they are known. Labels are names, which components get in increasing order (a
            pandas Categorical has its own order), or numbers 0, 1, ... of components. None, NaN and NA, and -1 among
            numbers, stand for a component that is not known. Components without a name come after those with one. The
            evidence is then the evidence of X and of the known labels. `log_evidence`, draws and reports need the
            labels again.

        Returns
        -------
        %(self)s

        Raises
        ------
        ValueError
            If X, `labels` or a parameter is not what it should be; the message names which and what would be right.
        TooLargeError
            If parameters and starts take more than `max_memory`.
        """
        return self._fit(X, y, sample_weight, labels=labels)

    @available_if(has_posterior)
    def partial_fit(self, X, y=None, sample_weight=None):
        """Update the posterior with a batch, whose prior is the last posterior [Beal (2.114)-(2.117)].

        Exact with one component on complete data, whatever the batches. With several, a component that an early batch
        does not need is soon given up for good: let the first batch be large, or fit `blocks_of` all batches.
        `batch_lower_bound_` bounds the log probability of this batch given the approximate past; the sum over batches
        is no bound on the evidence of all data, so `lower_bound_`, `lower_bounds_` and `restarts_` go after the first
        batch. With `membership` the covariates of all batches are kept, equal ones once, in units of the first batch.
        Only with ``method="vb"``.

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

    def impute(self, X, *, fill="auto", random_state=None):
        """X with missing cells filled: numbers by predictive means given the row, categories by the most probable ones.

        %(rows.X, impute.fill, impute.random_state -> ndarray or DataFrame)s
            X in its own container; observed cells are untouched. A combination is the most probable one among the
            components' own.
        """
        return impute_rows(self, X, fill, random_state)

    @by_partition(width="n_components_")
    def predict_proba(self, X):
        """Posterior probabilities of the components given each row, under the predictive distribution.

        %(X -> ndarray of shape (n_samples, n_components))s
            A row that is impossible under the fit gets the weights.
        """
        fitted, reading = question(self, X)
        return fitted.responsibilities(reading.values)

    @by_partition(int)
    def predict(self, X):
        """Most probable component of each row.

        %(X -> ndarray of int, shape (n_samples,))s
        """
        fitted, reading = question(self, X)
        return fitted.components(reading.values)

    def transform(self, X):
        """Posterior probabilities of the components, as `predict_proba`.

        %(X -> ndarray of shape (n_samples, n_components))s
        """
        return self.predict_proba(X)

    def sample(self, n_samples=1, random_state=None, *, given=None):
        """Rows drawn from the predictive distribution of a new row, and the components behind them.

        Each row has parameters of its own, drawn from q(theta); of more than 1000 rows, each of 1000 parts of them has.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows; as many as `given` has where there are such.
        %(sample.random_state)s
        given : array-like of shape (n_samples, n_features), default=None
            Rows whose covariates new rows have, where an emission has `covariates`; their other cells are not asked.

        Returns
        -------
        X : ndarray or DataFrame of shape (n_samples, n_features)
            In the container of the X that was fitted, with its names.
        components : ndarray of int, shape (n_samples,)
        """
        return sample_rows(self, n_samples, random_state, given)

    def pseudo_residuals(self, X, *, discrete="random", random_state=None):
        """Pseudo-residuals (quantile residuals) of the cells of X, which are normal where the fit is right.

        A cell has the probability that its column holds no more than it does, under the published parameters. It is
        that of the column by itself, whatever the others hold.

        Parameters
        ----------
        X : array-like, pandas or polars DataFrame of shape (n_samples, n_features)
        %(residuals.discrete)s
        %(residuals.random_state)s

        Returns
        -------
        PseudoResiduals
            With `normal` and `uniform`, (n_samples, n_columns), NaN where a cell is missing.

        Raises
        ------
        ValueError
            If no column holds numbers, or `discrete` is none of these.

        Examples
        --------
        Five kinds of pupils by Poisson counts are too even; one kind whose counts spread is right:

        >>> import numpy as np
        >>> from skvbem import VBMixture
        >>> days = np.random.default_rng(0).negative_binomial(1.0, 0.06, size=(500, 1))
        >>> one = VBMixture(1, emission="poisson", random_state=0).fit(days)
        >>> one.pseudo_residuals(days).normal.std().round(1)
        np.float64(3.6)
        >>> spread = VBMixture(1, emission="negative_binomial", random_state=0).fit(days)
        >>> spread.pseudo_residuals(days).normal.std().round(1)
        np.float64(1.0)
        """
        fitted, reading = question(self, X)
        rng, values = generator_of(self, random_state), reading.values
        return pseudo_residuals(fitted, values, fitted.weights_of_rows(values), discrete, rng)

    # Covariates of the component --------------------------------------------------------------------------------------

    def odds_ratios(
        self, X=None, reference=None, *, level=0.95, draws=None, likelihood_ratio=False, sample_weight=None
    ):
        """Odds of each component against one of them, by covariate of `membership`, with intervals and tests.

        Parameters
        ----------
        %(odds.X)s
        reference : int, default=None
            The component that odds are against; by default the largest.
        %(interval.level, interval.draws)s
        likelihood_ratio : bool, default=False
            True tests each covariate against a fit without it, beside the test by Wald; for ``method="ml"``.
        %(sample_weight)s

        Returns
        -------
        %(OddsRatios)s

        Raises
        ------
        %(argument.TypeError, odds.ValueError)s

        Examples
        --------
        >>> import numpy as np
        >>> from skvbem import VBMixture
        >>> from skvbem.emissions import Softmax
        >>> dose = np.random.default_rng(0).uniform(0, 10, size=300)
        >>> responds = np.random.default_rng(1).random(300) < 1 / (1 + np.exp(5 - dose))
        >>> X = np.column_stack([np.random.default_rng(2).normal(4.0 * responds), dose])
        >>> model = VBMixture(2, membership=Softmax([1]), method="ml", random_state=0).fit(X)
        >>> ratios = model.odds_ratios(X, reference=int(model.parameters_["gaussian"]["means"].argmin()))
        >>> bool(ratios.lower[0, 1] < 1.0 < ratios.upper[0, 1])
        True
        >>> [(name, test, df, p < 1e-6) for name, test, _, df, p in ratios.tests]
        [('x1', 'Wald', 1, True)]
        """
        return odds_ratios(
            self,
            X,
            reference,
            level=level,
            draws=draws,
            likelihood_ratio=likelihood_ratio,
            sample_weight=sample_weight,
        )

    def class_probabilities(self, X, covariate, values=None, *, level=0.95, draws=None, sample_weight=None):
        """Probabilities of components at values of a covariate of `membership`, the others averaged over rows.

        Parameters
        ----------
        %(classes.X)s
        covariate : str or int
        %(classes.values, interval.level, interval.draws, sample_weight)s

        Returns
        -------
        %(ClassProbabilities)s

        Raises
        ------
        %(classes.ValueError, classes.TypeError)s
        """
        return class_probabilities(self, X, covariate, values, level=level, draws=draws, sample_weight=sample_weight)


__all__ = ["VBMixture"]
