"""`VBMixture`: Bayesian mixtures for tables of any kind of columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from numbers import Integral
from typing import ClassVar

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from skvbem._compat import Interval, IterationReport, StrOptions, fit_context, warn
from skvbem.blocks import Blocks, blocks_of, is_dask
from skvbem.errors import DataWarning
from skvbem.estimators.base import check_count, feature_names, has_posterior
from skvbem.estimators.evidence import FittedRun
from skvbem.estimators.input.column_groups import ColumnGroups
from skvbem.estimators.input.numbers import are_observed, is_missing
from skvbem.estimators.input.output import as_array, filled
from skvbem.estimators.input.rows import MixtureRows
from skvbem.estimators.input.tables import Table, read_table
from skvbem.estimators.input.weighted_blocks import WeightedTables
from skvbem.estimators.labels.emission_parameters import tells_what_moved
from skvbem.estimators.labels.estimator import EmissionEstimator
from skvbem.estimators.labels.priors import check_size, resolve_emission_prior, responsibilities_of, warn_of_oddities
from skvbem.estimators.mixture.fitted import FittedMixture, MixtureRecipe, with_best_strength
from skvbem.estimators.mixture.growth import Growth
from skvbem.estimators.mixture.priors import OPTIMIZED, resolve_weights
from skvbem.evidence import Evidence
from skvbem.evidence.evaluation import Evaluation
from skvbem.models.mixture.data import MixtureBlocks, MixtureData
from skvbem.models.mixture.model import Mixture
from skvbem.models.mixture.starts import seeded_starts, starts_of
from skvbem.vbem import posteriors
from skvbem.vbem.fit import Fit

# Scores that need no more of the rows than sums over them.
_PASSING = ("lower_bound", "bic", "draper", "bicp", "cheeseman_stutz", "mled", "importance")


class VBMixture(EmissionEstimator):
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
        categories of strings, booleans and pandas categories. An object of `skvbem.emissions`, such as
        ``Gaussian(mean_precision_prior=0.1)``, takes all columns, and so does the name of one ("gaussian",
        "categorical", "bernoulli", "poisson", "multinomial", "exponential"), with default priors. A mapping gives each
        name its columns, by name or position: ``{"gaussian": ["height", "weight"], "poisson": "visits"}``. A list of
        (name, emission, columns), as in scikit-learn's ColumnTransformer, names groups, of which several may have the
        same emission: ``[("seen", Poisson(), "visits"), ("sick", Poisson(shape_prior=2.0), ["days", "weeks"])]``.
    covariance_type : {"full", "tied", "diag", "spherical"}, default="full"
        Of a Gaussian group given by name, or "auto": a covariance matrix for each component, one for all, a variance
        for each column, one variance for each component. An object has its own, ``Gaussian("diag")``; any other value
        here than its own or the default is then an error.
    weight_concentration_prior_type : {"dirichlet_distribution", "dirichlet_process"}, default="dirichlet_distribution"
        A Dirichlet prior of the weights, or sticks broken in turn, where late components are small.
    weight_concentration_prior : float, array-like of shape (n_components,) or "optimized", default=1.0
        Its concentration, for each component. Small values empty components. "optimized" takes the one that raises the
        bound most [Beal (2.79)], from 0.001 to 1000; the bound is then one given that prior. Needs ``method="vb"``.
    categories : "auto" or mapping of column to array-like, default="auto"
        Levels of categorical columns by name, which of an array is x0, x1, ...; see `VBDiscreteDAG`.
    method : {"vb", "map", "ml"}, default="vb"
        Variational Bayes, the posterior mode, or maximum likelihood.
    map_basis : {"natural", "probability"}, default="natural"
        Coordinates in which ``method="map"`` takes the mode. The natural mode always exists.
    n_init : int, default=10
        Number of starts.
    init : {"k-means++", "random", "tournament", "hierarchical"} or array-like, default="k-means++"
        Components start around rows that lie apart, or around any rows; "tournament" draws spread starts and drops
        half of them after 1, 2, 4, ... steps; "hierarchical" has one start that joins rows, two by two, where the prior
        finds the union most probable, and spread ones beside it. An array of shape (n_samples, n_components) gives
        responsibilities to start from.
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
    warm_start : bool, default=False
        Whether a further call of `fit` starts from the last solution alone, in place of `n_init` starts, as
        scikit-learn's mixtures do: from what it says of the rows at hand. Where the components or the columns are
        others, the start is a fresh one.
    verbose : int, default=0

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
        Posterior means (VB) or the point found.
    means_, covariances_, precisions_ : ndarray
        As in scikit-learn's mixtures, if there is a Gaussian group; where there are several, by group, as are the other
        attributes of measurements.
    weight_concentration_ : ndarray of shape (n_components,), or (n_components - 1, 2) of sticks
    mean_precision_, degrees_of_freedom_ : ndarray
        Of the posterior (``method="vb"``), the latter two if there is a Gaussian group.
    weight_concentration_prior_, mean_prior_, mean_precision_prior_, degrees_of_freedom_prior_, covariance_prior_
        The prior as it was resolved, what was taken from X too.
    parameters_ : dict of str to dict of str to ndarray
        By group, the parameters of its columns: of VB the mode of q(theta) in natural coordinates, which for
        probabilities, rates and means is the posterior mean.
    counts_ : ndarray of float, shape (n_components,)
        Expected rows of each component.
    component_states_ : LatentStates
        Components in use, empty ones, duplicates that rows (of the last batch) do not tell apart, and how many there
        are in effect.
    lower_bound_ : float
        Bound on the log evidence, total nats (``method="vb"``).
    batch_lower_bound_ : float
        After `partial_fit`, the bound of the last batch given those before.
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
    n_components_ : int
    moves_ : list of Move
        With ``n_components="auto"``, the moves that raised the bound: kind, number of components and bound after each.
    groups_ : dict of str to list of str
        Group -> names of its columns. A group has the name that a list gives it, else that of its emission.
    categories_ : dict of str to ndarray
        Levels of each categorical column, in the order of its probabilities.
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

    _label = "component"
    _recipe_type = MixtureRecipe

    _parameter_constraints: ClassVar[dict] = {
        "n_components": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        **EmissionEstimator._parameter_constraints,
        "weight_concentration_prior_type": [StrOptions({"dirichlet_distribution", "dirichlet_process"})],
        "weight_concentration_prior": "no_validation",
        "init": [StrOptions({"k-means++", "random", "tournament", "hierarchical"}), "array-like"],
    }

    @tells_what_moved
    def __init__(
        self,
        n_components=1,
        *,
        emission="auto",
        covariance_type="full",
        weight_concentration_prior_type="dirichlet_distribution",
        weight_concentration_prior=1.0,
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
        warm_start=False,
        verbose=0,
    ):
        self.n_components = n_components
        self.emission = emission
        self.covariance_type = covariance_type
        self.weight_concentration_prior_type = weight_concentration_prior_type
        self.weight_concentration_prior = weight_concentration_prior
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
        self.warm_start = warm_start
        self.verbose = verbose

    # Fitting ----------------------------------------------------------------------------------------------------------

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Fit the mixture to a table.

        A fit that raises or is interrupted leaves the estimator as it was before.

        Parameters
        ----------
        X : array-like, pandas or polars DataFrame of shape (n_samples, n_features), dask collection, or Blocks
            NaN, None and NA are missing cells. An array of floats in C order is read where it lies. Of rows in blocks
            (see `blocks_of`) one block at a time is in memory.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), dask array or Blocks, default=None
            How often each row counts; rows of weight 0 are as if absent. Where X comes in blocks, so may these.

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
        X = blocks_of(X) if is_dask(X) else X
        self._check_together(isinstance(X, Blocks))
        rows = self._rows(X, sample_weight)
        names = feature_names(next(iter(X)) if isinstance(X, Blocks) else X)
        report = IterationReport(self, X, metadata={"sample_weight": sample_weight})
        model_of = self._models(rows)
        model = model_of(1 if self.n_components == "auto" else self.n_components)
        data = rows.compiled(model)
        if len(data) == 1:
            warn("X has one row: the fit is mostly prior.", DataWarning)
        warn_of_oddities(rows, model.emission, model.n_components, len(data), data.total_weight)
        if self.n_components == "auto":
            assert isinstance(data, MixtureData)
            model, recipe, fit, more = self._grown(model_of, data, report)
        else:
            recipe, more = self._recipe(model, data, rows), {}
            fit = recipe.run(model, data, self._form(), effective_n_jobs(self.n_jobs), self._cycle(report))
        note = ""
        if isinstance(self.weight_concentration_prior, str):
            fit, model = with_best_strength(
                model, data, fit, stop=self._cycle(report), stopped=lambda: report.stopped, **self._options()
            )
            note = "given the optimized prior"
        fitted = FittedMixture(rows.groups, model, self._form(), fit.statistics)
        self._warn_unless_converged(fit, report)
        self._warn_of_floor(fitted)
        state = names | self._run_state(fit, fitted.form) | self._model_state(fitted) | more
        state |= {
            "component_states_": self._component_states(fitted, data),
            "_run_": FittedRun(fit, recipe, note, rows.fingerprint()),
            "n_samples_": data.total_weight,
        }
        self._publish(state)
        report.close(lambda: state)
        return self

    @available_if(has_posterior)
    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X, y=None, sample_weight=None):
        """Update the posterior with a batch, whose prior is the last posterior [Beal (2.114)-(2.117)].

        Exact with one component on complete data, whatever the batches. With several, a component that an early batch
        does not need is soon given up for good: let the first batch be large, or fit `blocks_of` all batches.
        `batch_lower_bound_` bounds the log probability of this batch given the approximate past; the sum over batches
        is no bound on the evidence of all data, so `lower_bound_`, `lower_bounds_` and `restarts_` go after the first
        batch. Only with ``method="vb"``.

        Parameters
        ----------
        X : array-like, pandas or polars DataFrame of shape (n_samples, n_features)
            The first batch is fitted as by `fit`: it fixes columns, categories, units and the priors taken from data.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            As in `fit`.

        Returns
        -------
        self : VBMixture
            Fitted.
        """
        if isinstance(X, Blocks):
            raise TypeError("A batch is a table; blocks are what fit takes. Give partial_fit one block at a time.")
        if not hasattr(self, "_fitted_"):
            self.fit(X, sample_weight=sample_weight)
            self.batch_lower_bound_ = self.lower_bound_
            return self
        fitted, _ = self._asked_of(X)
        self._check_can_go_on(fitted.form)
        rows = self._rows(X, sample_weight, fitted.groups)
        report = IterationReport(self, X, metadata={"sample_weight": sample_weight})
        return self._go_on(fitted, rows, report)

    def _counted(self, X, sample_weight):
        """The rows of weight > 0, their weights, and which rows these are (None for all)."""
        table = read_table(X, type(self).__name__)
        weights = self._weights(sample_weight, table.n_samples)
        if weights is None or weights.all():
            return table, weights, None
        counted = weights > 0
        return table.rows(counted), weights[counted], counted

    def _rows(self, X, sample_weight, groups: ColumnGroups | None = None) -> MixtureRows:
        """X as read, by groups of columns that are known or else learned from it."""
        owner, options = type(self).__name__, self._reading()
        if isinstance(X, Blocks):
            tables = WeightedTables(X, sample_weight, owner)
            if groups is None:
                groups = ColumnGroups.learned_from_blocks(tables.tables, self.emission, owner, **options)
            return MixtureRows.of_blocks(groups, tables)
        table, weight, counted = self._counted(X, sample_weight)
        if groups is not None:
            return MixtureRows(groups, [(groups.values(table), weight)], counted)
        groups, values = ColumnGroups.learned(table, self.emission, owner, **options)
        if not are_observed(values).any():
            raise ValueError(f"X must have an observed cell. Got {table.n_samples} x {table.n_columns} missing ones.")
        return MixtureRows(groups, [(values, weight)], counted)

    def _models(self, rows: MixtureRows) -> Callable[[int], Mixture]:
        """The mixture to fit, of any number of components."""
        owner, n_starts = type(self).__name__, self.n_init if isinstance(self.init, str) else 1
        emission = rows.emission()

        def model_of(n_components: int) -> Mixture:
            check_size(emission, n_components, n_starts, self.max_memory, owner)
            weights = resolve_weights(
                self.weight_concentration_prior_type, self.weight_concentration_prior, n_components, owner
            )
            return Mixture(emission, weights, resolve_emission_prior(rows.groups, emission, n_components))

        return model_of

    def _grown(
        self, model_of: Callable[[int], Mixture], data: MixtureData, report: IterationReport
    ) -> tuple[Mixture, MixtureRecipe, Fit, dict]:
        """The best fit of the mixture whose number of components no move betters."""
        seed = self._seed(self.random_state)
        growth = Growth(
            model_of,
            data,
            n_init=self.n_init,
            init=self.init,
            seed=seed,
            stop=self._cycle(report),
            stopped=lambda: report.stopped,
            **self._options(),
        )
        state, moves = growth.run()
        return (
            state.model,
            MixtureRecipe(seed, state.starts, False, self._limits_of_run()),
            state.fit,
            {"moves_": moves},
        )

    def _check_together(self, are_in_blocks: bool) -> None:
        """Refuse parameters that make no sense together, or of rows that come in blocks."""
        owner = f"of {type(self).__name__}"
        auto, optimized = self.n_components == "auto", isinstance(self.weight_concentration_prior, str)
        if self.method != "vb" and (auto or optimized):
            asked = "n_components='auto'" if auto else f"weight_concentration_prior={OPTIMIZED!r}"
            raise ValueError(f"{asked} {owner} needs method='vb', whose bound decides. Got method={self.method!r}.")
        if auto and not isinstance(self.init, str):
            raise ValueError(f"n_components='auto' {owner} makes its own starts. Got responsibilities in 'init'.")
        if auto and np.ndim(self.weight_concentration_prior):
            raise ValueError(
                f"n_components='auto' {owner} needs one number as 'weight_concentration_prior'. Got "
                f"{self.weight_concentration_prior!r}."
            )
        if not are_in_blocks:
            return
        if not isinstance(self.init, str):
            raise ValueError(f"The 'init' parameter {owner} must be a name where X comes in blocks. Got an array.")
        if auto or self.init == "hierarchical":
            asked = "n_components='auto'" if auto else "init='hierarchical'"
            raise ValueError(f"{asked} {owner} needs rows in memory; X comes in blocks. Try it on some of the blocks.")

    def _recipe(self, model: Mixture, data: MixtureData | MixtureBlocks, rows: MixtureRows) -> MixtureRecipe:
        """Where to start and when to stop."""
        seed = self._seed(self.random_state)
        limits = self._limits_of_run()
        last = self._continued(rows.groups, model)
        if last is not None:
            shares = (part for values, *_ in rows.arranged(model) for part in last.e_step(values))
            return MixtureRecipe(seed, model.statistics_of(shares, data)[:, None], False, limits)
        if isinstance(self.init, str):
            starts = starts_of(self.init, model, data, self.n_init, np.random.default_rng(seed))
            return MixtureRecipe(seed, starts, self.init == "tournament", limits)
        statistics = model.statistics_of(self._given_responsibilities(model, data, rows), data)
        return MixtureRecipe(seed, statistics[:, None], False, limits)

    def _given_responsibilities(self, model: Mixture, data, rows: MixtureRows) -> np.ndarray:
        """Those of the `init` parameter, in the order of the rows of the data."""
        n_rows = len(data) if rows.counted is None else len(rows.counted)
        given = responsibilities_of(self.init, n_rows, model.n_components, type(self).__name__)
        given = given if rows.counted is None else given[rows.counted]
        ((*_, order),) = rows.arranged(model)
        return given if order is None else given[order]

    @staticmethod
    def _model_state(fitted: FittedMixture) -> dict:
        """The attributes that tell of the mixture."""
        return {
            **EmissionEstimator._emission_state(fitted),
            "n_components_": fitted.model.n_components,
            "weights_": fitted.weights,
            "counts_": fitted.counts,
        }

    # Scores of the evidence -------------------------------------------------------------------------------------------

    def _scored(self, X, sample_weight, kind: str, random_state, options: Mapping) -> Evidence:
        if (isinstance(X, Blocks) or is_dask(X)) and (kind not in _PASSING or options.get("alias")):
            what = f"with alias=True {kind!r}" if kind in _PASSING else repr(kind)
            raise ValueError(
                f"The score {what} looks at rows in memory; X comes in blocks. Use a score that only passes over rows: "
                f"{', '.join(map(repr, _PASSING))}."
            )
        return super()._scored(X, sample_weight, kind, random_state, options)

    def _evaluation(self, X, sample_weight, random_state) -> Evaluation:
        X = blocks_of(X) if is_dask(X) else X
        fitted = self._fitted_ if isinstance(X, Blocks) else self._asked_of(X)[0]
        run = self._scored_run()
        rows = self._rows(X, sample_weight, fitted.groups)
        self._check_fingerprint(run, rows.fingerprint())
        return self._evaluate(fitted.model, fitted.form, run, rows.compiled(fitted.model), random_state)

    def _simulated(self, X, sample_weight, random_state) -> tuple[Evaluation, np.ndarray]:
        fitted, _ = self._asked_of(X)
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
        data = MixtureRows(groups, [(values, None)]).compiled(model)
        rng = np.random.default_rng(seed)
        starts = seeded_starts(model, data, run.recipe.starts.shape[1], spread=True, rng=rng)
        recipe = replace(run.recipe, starts=starts)
        simulated = FittedRun(recipe.run(model, data, posteriors.VB), recipe)
        return self._evaluate(model, posteriors.VB, simulated, data, random_state), model.prior.natural(point)

    # Asking -----------------------------------------------------------------------------------------------------------

    def _asked_of(self, X) -> tuple[FittedMixture, Table]:
        """What was fitted, and a table of the same columns."""
        check_is_fitted(self)
        table = read_table(X, type(self).__name__)
        validate_data(self, X, skip_check_array=True, reset=False)
        return self._fitted_, table

    def _asked(self, X) -> tuple[FittedMixture, list[np.ndarray]]:
        """What was fitted, and the values of a table to ask it about."""
        fitted, table = self._asked_of(X)
        return fitted, fitted.groups.values(table)

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
        fitted, values = self._asked(X)
        return fitted.components(values)

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
        found = fitted.imputed(table[0 : len(table)], fitted.responsibilities(values))
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


__all__ = ["VBMixture"]
