"""`VBMixture`: Bayesian mixtures for tables of any kind of columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from numbers import Integral, Real
from typing import ClassVar

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils.validation import check_is_fitted, validate_data

from skvbem._compat import Interval, IterationReport, StrOptions, check_feature_names_in, fit_context, warn
from skvbem.data import fingerprint, marks_of
from skvbem.emissions import COVARIANCE_TYPES
from skvbem.errors import DataWarning
from skvbem.estimators._base import VBEstimator, check_count, feature_names
from skvbem.estimators._decoding import as_array, filled
from skvbem.estimators._encoding import _some, read_table
from skvbem.estimators._evidence import EvidenceMixin, FittedRun
from skvbem.estimators._groups import ColumnGroups, are_observed, is_missing
from skvbem.estimators._mixture import FittedMixture, MixtureRecipe
from skvbem.estimators._mixture_priors import (
    check_size,
    resolve_emission_prior,
    resolve_weights,
    responsibilities_of,
    warn_of_oddities,
)
from skvbem.estimators._reports import states_of_components
from skvbem.evidence.evaluation import Evaluation
from skvbem.families.normal_gamma import VARIANCE_FLOOR
from skvbem.models._seeding import seeded_starts
from skvbem.models.mixture import Mixture, MixtureData
from skvbem.vbem import posteriors


class VBMixture(EvidenceMixin, VBEstimator):
    r"""Bayesian mixture of components, for measurements, counts, categories and tables that mix them.

    A row belongs to one of `n_components` components; its columns, or groups of columns, are independent given that.
    Missing cells are summed out, in every family and exactly. The lower bound on the log evidence has all its
    constants: it compares across numbers of components, families and estimator classes.

    Parameters
    ----------
    n_components : int, default=1
        Number of components. Empty ones are kept; see `counts_`.
    emission : str or mapping, default="auto"
        What the columns hold. "auto" makes one Gaussian group of all columns of numbers, and categories of strings,
        booleans and pandas categories. A name of a family ("gaussian", "categorical", "bernoulli", "poisson",
        "multinomial", "exponential") takes all columns so; a mapping gives each family its columns, by name or
        position, such as ``{"gaussian": ["height", "weight"], "poisson": "visits"}``.
    covariance_type : {"full", "tied", "diag", "spherical"}, default="full"
        Of the Gaussian group: a covariance matrix for each component, one for all, a variance for each column, one
        variance for each component.
    weight_concentration_prior_type : {"dirichlet_distribution", "dirichlet_process"}, default="dirichlet_distribution"
        A Dirichlet prior of the weights, or sticks broken in turn, where late components are small.
    weight_concentration_prior : float or array-like of shape (n_components,), default=1.0
        Its concentration, for each component. Small values empty components.
    mean_prior : array-like of shape (n_numbers,), default=None
        Prior mean of measurements; by default the mean of X.
    mean_precision_prior : float, default=1.0
        How many rows `mean_prior` weighs.
    degrees_of_freedom_prior : float, default=None
        Of precisions; more than the number of measurements less one, by default that number.
    covariance_prior : array-like, default=None
        Prior covariance of a component, (d, d) for "full" and "tied", (d,) for "diag", a number for "spherical". By
        default the covariance of X, its correlations shrunk towards 0 a little where rows are few.
    concentration_prior : float, default=1.0
        Of each category of each column.
    shape_prior, rate_prior : float or array-like, default=1.0 and None
        Of Gamma priors of rates of counts and of waiting times; by default the prior mean is that of X.
    categories : "auto" or mapping of column to array-like, default="auto"
        Levels of categorical columns; see `VBDiscreteDAG`.
    method : {"vb", "map", "ml"}, default="vb"
        Variational Bayes, the posterior mode, or maximum likelihood.
    map_basis : {"natural", "probability"}, default="natural"
        Coordinates in which ``method="map"`` takes the mode. The natural mode always exists.
    n_init : int, default=10
        Number of starts.
    init : {"k-means++", "random", "tournament"} or array-like of shape (n_samples, n_components), default="k-means++"
        Components start around rows that lie apart, or around any rows; "tournament" draws spread starts and drops
        half of them after 1, 2, 4, ... steps. An array gives responsibilities to start from.
    max_iter : int, default=10000
        Most steps of each start.
    tol : float, default=1e-5
        A start has converged when the gain of the objective still to come is below this, in total nats.
    acceleration : bool, default=True
        Whether steps are extrapolated (SQUAREM) where that raises the objective.
    handle_unknown : {"warn", "missing", "error"}, default="warn"
        What a category that fit did not see becomes.
    missing_values : scalar or list, default=np.nan
        Values that mean "missing" besides NaN, None, pandas.NA and null.
    max_memory : float, default=4e9
        Most bytes that the parameters of all components in all starts may take.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts. The same seed gives the same result for any `n_jobs` and row order.
    n_jobs : int, default=None
        Threads that share the rows of a large table; the result does not depend on it.
    verbose : int, default=0

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
        Posterior means (VB) or the point found.
    means_, covariances_, precisions_ : ndarray
        As in scikit-learn's mixtures, if there is a Gaussian group.
    weight_concentration_ : ndarray of shape (n_components,), or (n_components - 1, 2) of sticks
    mean_precision_, degrees_of_freedom_ : ndarray
        Of the posterior (``method="vb"``), the latter two if there is a Gaussian group.
    weight_concentration_prior_, mean_prior_, mean_precision_prior_, degrees_of_freedom_prior_, covariance_prior_
        The prior as it was resolved, what was taken from X too.
    parameters_ : dict of str to dict of str to ndarray
        By family, the parameters of its columns: of VB the mode of q(theta) in natural coordinates, which for
        probabilities, rates and means is the posterior mean.
    counts_ : ndarray of float, shape (n_components,)
        Expected rows of each component.
    component_states_ : LatentStates
        Components in use, empty ones, duplicates that rows do not tell apart, and how many there are in effect.
    lower_bound_ : float
        Bound on the log evidence, total nats (``method="vb"``).
    log_posterior_, log_likelihood_ : float
        The objective of MAP and ML.
    lower_bounds_ : ndarray of shape (n_points,)
        The objective along the run of the best start.
    restarts_ : Restarts
        Where every start ended.
    n_iter_ : int
    converged_ : bool
    n_samples_ : float
        Sum of the weights of the rows.
    n_free_parameters_ : int
    groups_ : dict of str to list of str
        Family -> names of its columns.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        If X has string column names.

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

    _parameter_constraints: ClassVar[dict] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "emission": "no_validation",
        "covariance_type": [StrOptions(set(COVARIANCE_TYPES))],
        "weight_concentration_prior_type": [StrOptions({"dirichlet_distribution", "dirichlet_process"})],
        "weight_concentration_prior": "no_validation",
        "mean_prior": "no_validation",
        "mean_precision_prior": [Interval(Real, 0, None, closed="neither")],
        "degrees_of_freedom_prior": [Interval(Real, 0, None, closed="neither"), None],
        "covariance_prior": "no_validation",
        "concentration_prior": "no_validation",
        "shape_prior": "no_validation",
        "rate_prior": "no_validation",
        "categories": "no_validation",
        "method": [StrOptions({"vb", "map", "ml"})],
        "map_basis": [StrOptions({"natural", "probability"})],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "init": [StrOptions({"k-means++", "random", "tournament"}), "array-like"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "acceleration": ["boolean"],
        "handle_unknown": [StrOptions({"warn", "missing", "error"})],
        "missing_values": "no_validation",
        "max_memory": [Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_components=1,
        *,
        emission="auto",
        covariance_type="full",
        weight_concentration_prior_type="dirichlet_distribution",
        weight_concentration_prior=1.0,
        mean_prior=None,
        mean_precision_prior=1.0,
        degrees_of_freedom_prior=None,
        covariance_prior=None,
        concentration_prior=1.0,
        shape_prior=1.0,
        rate_prior=None,
        categories="auto",
        method="vb",
        map_basis="natural",
        n_init=10,
        init="k-means++",
        max_iter=10_000,
        tol=1e-5,
        acceleration=True,
        handle_unknown="warn",
        missing_values=np.nan,
        max_memory=4e9,
        random_state=None,
        n_jobs=None,
        verbose=0,
    ):
        self.n_components = n_components
        self.emission = emission
        self.covariance_type = covariance_type
        self.weight_concentration_prior_type = weight_concentration_prior_type
        self.weight_concentration_prior = weight_concentration_prior
        self.mean_prior = mean_prior
        self.mean_precision_prior = mean_precision_prior
        self.degrees_of_freedom_prior = degrees_of_freedom_prior
        self.covariance_prior = covariance_prior
        self.concentration_prior = concentration_prior
        self.shape_prior = shape_prior
        self.rate_prior = rate_prior
        self.categories = categories
        self.method = method
        self.map_basis = map_basis
        self.n_init = n_init
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.acceleration = acceleration
        self.handle_unknown = handle_unknown
        self.missing_values = missing_values
        self.max_memory = max_memory
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    # Fitting ----------------------------------------------------------------------------------------------------------

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Fit the mixture to a table.

        A fit that raises or is interrupted leaves the estimator as it was before.

        Parameters
        ----------
        X : array-like, pandas or polars DataFrame of shape (n_samples, n_features)
            NaN, None and NA are missing cells.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts; rows of weight 0 are as if absent.

        Returns
        -------
        self : VBMixture
            Fitted.

        Raises
        ------
        ValueError
            If X or a parameter is not what it should be; the message names which and what would be right.
        TooLargeError
            If components and starts take more than `max_memory`.
        """
        table, weight, counted = self._counted(X, sample_weight)
        groups, values = ColumnGroups.learned(
            table,
            self.emission,
            type(self).__name__,
            categories=self.categories,
            missing_values=self.missing_values,
            handle_unknown=self.handle_unknown,
        )
        if not are_observed(values).any():
            raise ValueError(f"X must have an observed cell. Got {table.n_samples} x {table.n_columns} missing ones.")
        names = feature_names(X)
        if table.n_samples == 1:
            warn("X has one row: the fit is mostly prior.", DataWarning)
        report = IterationReport(self, X, metadata={"sample_weight": sample_weight})
        model = self._model_for(groups, values, weight)
        n_samples = float(table.n_samples if weight is None else weight.sum())
        warn_of_oddities(groups, values, model.emission, self.n_components, n_samples)
        data, marks, order = _compiled(model, groups, values, weight)
        recipe = self._recipe(model, data, marks, order, counted)
        fit = recipe.run(model, data, self._form(), effective_n_jobs(self.n_jobs), self._cycle(report))
        fitted = FittedMixture(groups, model, self._form(), fit.statistics)
        self._warn_unless_converged(fit, report)
        self._warn_of_floor(fitted)
        state = names | self._run_state(fit, fitted.form) | self._mixture_state(fitted)
        natural, _ = fitted.form.of(model.prior, fit.statistics[:, None])
        state |= {
            "component_states_": states_of_components(fitted.counts, model.divergences(natural[:, 0], data)),
            "_run_": FittedRun(fit, recipe, fingerprint=_fingerprint(groups, values, weight)),
            "n_samples_": data.total_weight,
        }
        self._publish(state)
        report.close(lambda: state)
        return self

    def _counted(self, X, sample_weight):
        """The rows of weight > 0, their weights, and which rows these are (None for all)."""
        table = read_table(X, type(self).__name__)
        weights = self._weights(sample_weight, table.n_samples)
        if weights is None or weights.all():
            return table, weights, None
        counted = weights > 0
        return table.rows(counted), weights[counted], counted

    def _model_for(self, groups: ColumnGroups, values: list[np.ndarray], weight: np.ndarray | None) -> Mixture:
        """The mixture to fit."""
        owner = type(self).__name__
        emission = groups.emission(values, weight, {"gaussian": {"covariance_type": self.covariance_type}})
        n_starts = self.n_init if isinstance(self.init, str) else 1
        check_size(emission, self.n_components, n_starts, self.max_memory, owner)
        weights = resolve_weights(
            self.weight_concentration_prior_type, self.weight_concentration_prior, self.n_components, owner
        )
        return Mixture(emission, weights, resolve_emission_prior(self, groups, emission, self.n_components))

    def _recipe(self, model: Mixture, data: MixtureData, marks: np.ndarray, order, counted) -> MixtureRecipe:
        """Where to start and when to stop."""
        seed = self._seed(self.random_state)
        limits = {"tol": self.tol, "max_iter": self.max_iter, "accelerate": self.acceleration}
        if isinstance(self.init, str):
            starts = seeded_starts(
                model, data, marks, self.n_init, spread=self.init != "random", rng=np.random.default_rng(seed)
            )
            return MixtureRecipe(seed, starts, self.init == "tournament", limits)
        n_rows = len(data) if counted is None else len(counted)
        given = responsibilities_of(self.init, n_rows, model.n_components, type(self).__name__)
        given = given if counted is None else given[counted]
        statistics = model.statistics_of(given if order is None else given[order], data)
        return MixtureRecipe(seed, statistics[:, None], False, limits)

    def _warn_of_floor(self, fitted: FittedMixture) -> None:
        stopped = fitted.at_floor() if self.method == "ml" else []
        if stopped:
            who = f"Component {stopped[0]} has" if len(stopped) == 1 else f"Components {_some(map(str, stopped))} have"
            warn(
                f"{who} no width in some direction: the variance there is the floor of {VARIANCE_FLOOR:g} times that "
                "of X, without which the likelihood has no maximum. Take fewer components, or method='vb' or 'map'.",
                DataWarning,
            )

    @staticmethod
    def _mixture_state(fitted: FittedMixture) -> dict:
        """The attributes that tell of the mixture."""
        parameters = {group.family: of for group, of in zip(fitted.groups.groups, fitted.parameters())}
        state = {
            "_fitted_": fitted,
            "weights_": fitted.weights,
            "counts_": fitted.counts,
            "parameters_": parameters,
            "groups_": {group.family: list(group.names) for group in fitted.groups.groups},
            "n_free_parameters_": fitted.model.prior.n_free_parameters,
        }
        state |= {f"{name}_": value for name, value in parameters.get("gaussian", {}).items()}
        return state | fitted.hyperparameters()

    # Scores of the evidence -------------------------------------------------------------------------------------------

    def _evaluation(self, X, sample_weight, random_state) -> Evaluation:
        fitted, _ = self._asked(X)
        run = self._scored_run()
        table, weight, _ = self._counted(X, sample_weight)
        values = fitted.groups.values(table)
        self._check_fingerprint(run, _fingerprint(fitted.groups, values, weight))
        data, _, _ = _compiled(fitted.model, fitted.groups, values, weight)
        return self._evaluate(fitted.model, fitted.form, run, data, random_state)

    def _evaluate(
        self, model: Mixture, form: posteriors.Form, run: FittedRun, data: MixtureData, random_state
    ) -> Evaluation:
        """What scores take: a fitted mixture on its data."""
        n_threads = effective_n_jobs(self.n_jobs)
        return Evaluation(
            model,
            data,
            lambda other, fit: run.recipe.refit(model, data, other, fit, n_threads),
            run.fit,
            "map_probability" if form is posteriors.MAP_IN_PROBABILITIES else form.name,
            data.total_weight,
            ("component",),
            run.recipe.seed if random_state is None else self._seed(random_state),
            n_threads,
            run.note,
        )

    def _simulated(self, X, sample_weight, random_state) -> tuple[Evaluation, np.ndarray]:
        fitted, _ = self._asked(X)
        run, model, groups = self._scored_run(), fitted.model, fitted.groups
        table, weight, _ = self._counted(X, sample_weight)
        like = groups.values(table)
        if weight is not None:
            if (weight != np.floor(weight)).any():
                raise ValueError("Data can be simulated only like rows of whole-number weights.")
            like = [np.repeat(of_group, weight.astype(int), axis=0) for of_group in like]
        seed = run.recipe.seed if random_state is None else self._seed(random_state)
        rng = np.random.default_rng([*seed, 2**31])
        point = model.prior.sample(rng)
        drawn = FittedMixture.drawn_at(model, point, len(like[0]), rng)
        values = []
        for of_group, as_drawn in zip(like, groups.as_list(drawn[0])):
            missing = is_missing(of_group)
            values.append(np.where(missing, of_group, as_drawn).astype(of_group.dtype))
        data, marks, _ = _compiled(model, groups, values, None)
        rng = np.random.default_rng(seed)
        starts = seeded_starts(model, data, marks, run.recipe.starts.shape[1], spread=True, rng=rng)
        recipe = replace(run.recipe, starts=starts)
        simulated = FittedRun(recipe.run(model, data, posteriors.VB), recipe)
        return self._evaluate(model, posteriors.VB, simulated, data, random_state), model.prior.natural(point)

    def _log_point(self, tables: Mapping) -> np.ndarray:
        raise TypeError(f"Scores of {type(self).__name__} take no parameters of the model; there is no need of any.")

    # Asking -----------------------------------------------------------------------------------------------------------

    def _asked(self, X) -> tuple[FittedMixture, list[np.ndarray]]:
        """What was fitted, and the values of a table to ask it about."""
        check_is_fitted(self)
        table = read_table(X, type(self).__name__)
        validate_data(self, X, skip_check_array=True, reset=False)
        return self._fitted_, self._fitted_.groups.values(table)

    def score_samples(self, X):
        """Log predictive density of each row, nats; what is missing is integrated out.

        With ``method="vb"`` the exact average of p(row | theta) over q(theta), which integrates to one over all rows;
        with MAP and ML that of the point found. A row that is impossible scores -inf.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        fitted, values = self._asked(X)
        return fitted.log_predictive(values)

    def predict_proba(self, X):
        """Posterior probabilities of the components given each row, under the predictive distribution.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            A row that is impossible under the fit gets the weights.
        """
        fitted, values = self._asked(X)
        return fitted.responsibilities(values)

    def predict(self, X):
        """Most probable component of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of int, shape (n_samples,)
        """
        return self.predict_proba(X).argmax(axis=1)

    def transform(self, X):
        """Posterior probabilities of the components, as `predict_proba`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_components)
        """
        return self.predict_proba(X)

    def get_feature_names_out(self, input_features=None):
        """Names of the columns of `transform`: vbmixture0, vbmixture1, ...

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Names of the columns of X, only compared with those that fit saw.

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        check_feature_names_in(self, input_features, generate_names=False)
        prefix = type(self).__name__.lower()
        return np.asarray([f"{prefix}{k}" for k in range(len(self.weights_))], dtype=object)

    def impute(self, X):
        """X with missing cells filled: numbers by predictive means given the row, categories by the most probable one.

        Parameters
        ----------
        X : array-like, pandas or polars DataFrame of shape (n_samples, n_features)

        Returns
        -------
        ndarray or DataFrame
            X in its own container; observed cells are untouched.
        """
        fitted, values = self._asked(X)
        emission, groups = fitted.emission, fitted.groups
        table = emission.prepare(groups.as_emission_takes(values))
        posterior = fitted.posterior.blocks[1]
        found = groups.as_list(emission.impute(table[0 : len(table)], posterior, fitted.responsibilities(values)))
        return filled(X, groups.missing(values), groups.columns_of(found))

    def sample(self, n_samples=1, random_state=None):
        """Rows drawn from the predictive distribution of a new row, and the components behind them.

        Each row has parameters of its own, drawn from q(theta); of more than 1000 rows, each of 1000 parts of them has.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.
        random_state : int, RandomState instance or None, default=None
            By default the estimator's own `random_state`.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
        components : ndarray of int, shape (n_samples,)
        """
        check_is_fitted(self)
        check_count("n_samples", "sample", n_samples)
        fitted = self._fitted_
        rng = self._rng(self.random_state if random_state is None else random_state)
        drawn, components = fitted.sample(int(n_samples), rng)
        return as_array(fitted.groups.columns_of(fitted.groups.as_list(drawn))), components


def _compiled(
    model: Mixture, groups: ColumnGroups, values: list[np.ndarray], weight: np.ndarray | None
) -> tuple[MixtureData, np.ndarray, np.ndarray | None]:
    """The rows in the order that costs least, their marks, and that order (None for that of the table)."""
    table = model.emission.prepare(groups.as_emission_takes(values))
    order = model.emission.row_order(table)
    if order is not None:
        values, weight = [of_group[order] for of_group in values], None if weight is None else weight[order]
        table = model.emission.prepare(groups.as_emission_takes(values))
    complete = not any(is_missing(of_group).any() for of_group in values)
    data = model.compile(table, weight, None if complete else are_observed(values))
    return data, marks_of(values, slice(None)), order


def _fingerprint(groups: ColumnGroups, values: list[np.ndarray], weight: np.ndarray | None) -> str:
    return f"{fingerprint(values, weight, len(values[0]))} {groups.meaning()}"


__all__ = ["VBMixture"]
