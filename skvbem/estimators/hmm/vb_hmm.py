"""`VBHMM`: Bayesian hidden Markov models for sequences of any kind of columns."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import ClassVar

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from skvbem._compat import Interval, IterationReport, StrOptions, fit_context, output_of, warn
from skvbem.errors import DataWarning
from skvbem.estimators.base import check_count, feature_names, has_posterior
from skvbem.estimators.evidence import FittedRun
from skvbem.estimators.hmm.fitted import FittedHMM, Forecast, HMMRecipe, with_best_strengths
from skvbem.estimators.hmm.priors import resolve_chain
from skvbem.estimators.input.column_groups import ColumnGroups
from skvbem.estimators.input.numbers import are_observed, is_missing
from skvbem.estimators.input.output import as_array, filled
from skvbem.estimators.input.sequences import Sequences, read_sequences, refuse_lengths_as_y, sequence_weights
from skvbem.estimators.input.values import _show
from skvbem.estimators.labels.emission_parameters import tells_what_moved
from skvbem.estimators.labels.estimator import EmissionEstimator
from skvbem.estimators.labels.priors import check_size, resolve_emission_prior, responsibilities_of, warn_of_oddities
from skvbem.estimators.sequences.rows import HMMRows
from skvbem.evidence.evaluation import Evaluation
from skvbem.models.hmm.model import HMM
from skvbem.models.sequences.data import HMMData
from skvbem.vbem import posteriors


class VBHMM(EmissionEstimator):
    r"""Bayesian hidden Markov model, for sequences of measurements, counts, categories and mixed columns.

    A step is in one of `n_components` states, which the next state depends on; given the state, its columns, or groups
    of columns, are independent. Sequences are independent of each other. Missing cells, and steps in which nothing was
    observed, are summed out exactly. The lower bound on the log evidence has all its constants: it compares across
    numbers of states, masks, families and estimator classes.

    Sequences come in one of three forms:

    - X is a list (or tuple) of tables, one for each sequence: each item is a sample, which cross-validation splits.
    - X is one table and `sequence_id` has an id for each row. Rows of one id are a sequence, in the order in which they
      stand, also where other rows are between them; sequences are in the order of appearance. Splitters by groups,
      such as scikit-learn's ``GroupKFold``, keep sequences whole. Without `sequence_id` all rows are one sequence.
    - X is one table and `lengths` has the number of rows of each sequence, one after the other. Cross-validation,
      which splits rows, cannot split these.

    Parameters
    ----------
    n_components : int, default=1
        Number of states. Empty ones are kept; see `counts_`.
    emission : str, emission, mapping or list, default="auto"
        What the columns hold, and priors of it, as in `VBMixture`. "auto" makes one Gaussian group of all columns of
        numbers, and categories of strings, booleans and pandas categories. An object of `skvbem.emissions`, such as
        ``Poisson(shape_prior=2.0)``, takes all columns, and so does the name of one, with default priors. A mapping
        gives each name its columns, a list of (name, emission, columns) names groups.
    covariance_type : {"full", "tied", "diag", "spherical"}, default="full"
        Of a Gaussian group given by name, or "auto": a covariance matrix for each state, one for all, a variance for
        each column, one variance for each state. An object has its own, ``Gaussian("diag")``; any other value here than
        its own or the default is then an error.
    startprob_prior : float, "unit" or array-like of shape (n_components,), default=1.0
        Concentration of each state that a sequence may begin in; "unit" shares a total of 1 evenly. 0 rules a state
        out.
    transmat_prior : float, "unit" or array-like of shape (n_components, n_components), default=1.0
        Concentration of each transition; "unit" shares a total of 1 evenly among those from a state, which empties
        states that are not needed. 0 rules a transition out.
    sticky : float, default=0.0
        Added to the concentrations of staying in a state.
    transmat_mask : None, "left-to-right", int or array-like of bool of shape (n_components, n_components), default=None
        Which transitions there are; others have no prior and count as no parameter. "left-to-right": to the same state
        or the next, from the first on. An int: no farther than so many states away.
    learn_prior : bool, default=False
        Whether `startprob_prior` and `transmat_prior` are each multiplied by the number, from 0.001 to 1000, that
        raises the bound most [Beal (2.79)]; the bound is then one given that prior. Needs ``method="vb"``.
    categories : "auto" or mapping of column to array-like, default="auto"
        Levels of categorical columns by name, which of an array is x0, x1, ...; see `VBDiscreteDAG`.
    method : {"vb", "map", "ml"}, default="vb"
        Variational Bayes, the posterior mode, or maximum likelihood.
    map_basis : {"natural", "probability"}, default="natural"
        Coordinates in which ``method="map"`` takes the mode. The natural mode always exists.
    predictive : {"mean", "vb", "average"}, default="mean"
        Probability of sequences after ``method="vb"``, where the average over q(theta) has no closed form: at the
        published parameters, which are posterior means; at the point of VB, :math:`e^{\langle\ln\theta\rangle}`, which
        gives a lower bound on the average; or the average over `n_draws` draws. States are told at the published
        parameters, with "vb" at that point.
    n_draws : int, default=100
        Draws of ``predictive="average"``.
    n_init : int, default=10
        Number of starts.
    init : {"k-means++", "random", "tournament"} or array-like of shape (n_rows, n_components), default="k-means++"
        States start around rows that lie apart, or around any rows, each start more blurred than the last; "tournament"
        draws spread starts and drops half of them after 1, 2, 4, ... steps. An array gives probabilities of the states
        of all rows to start from; for a list of sequences it may be a list of arrays.
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
        Most bytes that the parameters of all states in all starts may take.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts and draws. The same seed gives the same result for any `n_jobs`.
    n_jobs : int, default=None
        Threads that share the sequences; the result does not depend on it.
    warm_start : bool, default=False
        Whether a further call of `fit` starts from the last solution alone, in place of `n_init` starts: from the
        states that it expects of the sequences at hand. Where the states, the transitions that there are, or the
        columns are others, the start is a fresh one.
    verbose : int, default=0

    Attributes
    ----------
    startprob_ : ndarray of shape (n_components,)
    transmat_ : ndarray of shape (n_components, n_components)
        Posterior means (VB) or the point found.
    startprob_concentration_, transmat_concentration_ : ndarray
        Of the posterior (``method="vb"``), 0 where a mask rules out.
    startprob_prior_, transmat_prior_ : ndarray
        Concentrations of the prior as it was resolved, or learned.
    counts_ : ndarray of float, shape (n_components,)
        Expected steps in each state, those after the last observation of a sequence left out.
    component_states_ : LatentStates
        States in use, empty ones, and duplicates, which neither rows nor the ways on from them tell apart.
    means_, covariances_, precisions_ : ndarray
        As in scikit-learn's mixtures, if there is a Gaussian group; where there are several, by group, as are the other
        attributes of measurements.
    mean_precision_, degrees_of_freedom_ : ndarray
        Of the posterior (``method="vb"``), if there is a Gaussian group.
    mean_prior_, mean_precision_prior_, degrees_of_freedom_prior_, covariance_prior_
        The prior of a Gaussian group as it was resolved.
    parameters_ : dict of str to dict of str to ndarray
        By group, the parameters of its columns: of VB the mode of q(theta) in natural coordinates, which for
        probabilities, rates and means is the posterior mean.
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
        Time steps, each as often as its sequence counts: the n of BIC.
    n_free_parameters_ : int
    groups_ : dict of str to list of str
        Group -> names of its columns. A group has the name that a list gives it, else that of its emission.
    categories_ : dict of str to ndarray
        Levels of each categorical column, in the order of its probabilities.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        If X has string column names.

    See Also
    --------
    VBMixture : The same for rows that are independent: what this is for sequences of one step.

    Notes
    -----
    q(theta) q(states) is optimal given the split between them [BG]_. The forward-backward algorithm takes
    :math:`e^{\langle\ln\theta\rangle}` as they are, with rows that sum to less than one: normalized, they would give no
    bound.

    Examples
    --------
    >>> from skvbem import VBHMM
    >>> from skvbem.datasets import load_earthquakes
    >>> X = load_earthquakes().data
    >>> fits = {k: VBHMM(k, emission="poisson", random_state=0).fit(X) for k in (1, 2, 3)}
    >>> max(fits, key=lambda k: fits[k].lower_bound_)
    3
    """

    _label = "state"
    _recipe_type = HMMRecipe
    # Of a search that names none: that of networks and mixtures is drawn here, path by path, and has an error bar.
    _default_score = "lower_bound"

    _parameter_constraints: ClassVar[dict] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        **EmissionEstimator._parameter_constraints,
        "startprob_prior": "no_validation",
        "transmat_prior": "no_validation",
        "sticky": [Interval(Real, 0, 1e300, closed="both")],
        "transmat_mask": "no_validation",
        "learn_prior": ["boolean"],
        "predictive": [StrOptions({"mean", "vb", "average"})],
        "n_draws": [Interval(Integral, 1, None, closed="left")],
        "init": [StrOptions({"k-means++", "random", "tournament"}), "array-like"],
    }

    @tells_what_moved
    def __init__(
        self,
        n_components=1,
        *,
        emission="auto",
        covariance_type="full",
        startprob_prior=1.0,
        transmat_prior=1.0,
        sticky=0.0,
        transmat_mask=None,
        learn_prior=False,
        categories="auto",
        method="vb",
        map_basis="natural",
        predictive="mean",
        n_draws=100,
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
        self.startprob_prior = startprob_prior
        self.transmat_prior = transmat_prior
        self.sticky = sticky
        self.transmat_mask = transmat_mask
        self.learn_prior = learn_prior
        self.categories = categories
        self.method = method
        self.map_basis = map_basis
        self.predictive = predictive
        self.n_draws = n_draws
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
    def fit(self, X, y=None, sample_weight=None, sequence_id=None, lengths=None):
        """Fit the model to sequences.

        A fit that raises or is interrupted leaves the estimator as it was before.

        Parameters
        ----------
        X : list of tables, or array-like, pandas or polars DataFrame of shape (n_rows, n_features)
            NaN, None and NA are missing cells.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_sequences,) or (n_rows,), default=None
            How often each sequence counts: of a list an item for each sequence, of rows the same for all rows of one.
            Sequences of weight 0 are as if absent.
        sequence_id : array-like of shape (n_rows,), default=None
            Which sequence each row belongs to.
        lengths : array-like of int, default=None
            Rows of each sequence, one after the other.

        Returns
        -------
        self : VBHMM
            Fitted.

        Raises
        ------
        ValueError
            If X or a parameter is not what it should be; the message names which and what would be right.
        TooLargeError
            If states and starts take more than `max_memory`.
        """
        if self.learn_prior and self.method != "vb":
            raise ValueError(
                f"learn_prior=True of VBHMM needs method='vb', whose bound decides. Got method={self.method!r}."
            )
        sequences = self._located(X, sequence_id, lengths)
        refuse_lengths_as_y(y, sequences, "fit")
        rows, counted = self._rows(sequences, sample_weight)
        names = feature_names(sequences.rows)
        report = IterationReport(self, X, metadata={"sample_weight": sample_weight})
        model = self._model(rows)
        data = rows.compiled(model)
        if len(data) == 1:
            warn("X has one row: the fit is mostly prior.", DataWarning)
        warn_of_oddities(rows.as_independent, model.emission, model.n_components, len(data), data.total_weight)
        recipe = self._recipe(model, data, rows, sequences, counted)
        fit = recipe.run(model, data, self._form(), effective_n_jobs(self.n_jobs), self._cycle(report))
        note = ""
        if self.learn_prior:
            fit, model = with_best_strengths(
                model, data, fit, stop=self._cycle(report), stopped=lambda: report.stopped, **self._options()
            )
            note = "given the optimized prior"
        fitted = FittedHMM(rows.groups, model, self._form(), fit.statistics, recipe.seed)
        self._warn_unless_converged(fit, report)
        self._warn_of_floor(fitted)
        state = names | self._run_state(fit, fitted.form) | self._model_state(fitted)
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
    def partial_fit(self, X, y=None, sample_weight=None, sequence_id=None, lengths=None):
        """Update the posterior with a batch of whole sequences, whose prior is the last posterior [Beal (2.114)].

        Exact with one state on complete data, whatever the batches. `batch_lower_bound_` bounds the log probability of
        this batch given the approximate past; the sum over batches is no bound on the evidence of all data, so
        `lower_bound_`, `lower_bounds_` and `restarts_` go after the first batch. Only with ``method="vb"``.

        Parameters
        ----------
        X : list of tables, or array-like, pandas or polars DataFrame of shape (n_rows, n_features)
            The first batch is fitted as by `fit`: it fixes columns, categories, units and the priors taken from data.
        y : None
            Ignored.
        sample_weight, sequence_id, lengths : array-like, default=None
            As in `fit`.

        Returns
        -------
        self : VBHMM
            Fitted.
        """
        if not hasattr(self, "_fitted_"):
            self.fit(X, sample_weight=sample_weight, sequence_id=sequence_id, lengths=lengths)
            self.batch_lower_bound_ = self.lower_bound_
            return self
        fitted, sequences = self._asked_of(X, sequence_id, lengths)
        self._check_can_go_on(fitted.form)
        rows, _ = self._rows(sequences, sample_weight, fitted.groups)
        report = IterationReport(self, X, metadata={"sample_weight": sample_weight})
        return self._go_on(fitted, rows, report)

    def fit_predict(self, X, y=None, sample_weight=None, sequence_id=None, lengths=None):
        """Fit, then return what `predict` says of the same sequences.

        Parameters
        ----------
        X : list of tables, or table
        y : None
            Ignored.
        sample_weight, sequence_id, lengths : array-like, default=None
            As in `fit`.

        Returns
        -------
        ndarray of int, shape (n_rows,), or list of these
        """
        self.fit(X, y, sample_weight=sample_weight, sequence_id=sequence_id, lengths=lengths)
        return self.predict(X, sequence_id=sequence_id, lengths=lengths)

    def fit_transform(self, X, y=None, sample_weight=None, sequence_id=None, lengths=None):
        """Fit, then return what `transform` says of the same sequences.

        Parameters
        ----------
        X : list of tables, or table
        y : None
            Ignored.
        sample_weight, sequence_id, lengths : array-like, default=None
            As in `fit`.

        Returns
        -------
        ndarray of shape (n_rows, n_components), or list of these
        """
        self.fit(X, y, sample_weight=sample_weight, sequence_id=sequence_id, lengths=lengths)
        return self.transform(X, sequence_id=sequence_id, lengths=lengths)

    def _located(self, X, sequence_id=None, lengths=None) -> Sequences:
        """X as sequences, which every method takes in place of X and what locates them."""
        return read_sequences(X, sequence_id, lengths, type(self).__name__)

    def _rows(
        self, sequences: Sequences, sample_weight, groups: ColumnGroups | None = None
    ) -> tuple[HMMRows, np.ndarray]:
        """Rows of sequences that count, by groups of columns that are known or else learned, and where they stand."""
        owner = type(self).__name__
        table = sequences.table
        n = len(sequences.lengths) if sequences.are_listed else sequences.n_rows
        weight = sequence_weights(self._weights(sample_weight, n), sequences)
        order = np.arange(sequences.n_rows) if sequences.order is None else sequences.order
        lengths, place = sequences.lengths, order
        if weight is not None and not weight.all():
            kept = weight > 0
            order, lengths, weight = order[np.repeat(kept, lengths)], lengths[kept], weight[kept]
            stays = np.zeros(sequences.n_rows, dtype=bool)
            stays[order] = True
            table, place = table.rows(stays), (np.cumsum(stays) - 1)[order]
        if groups is None:
            groups, values = ColumnGroups.learned(table, self.emission, owner, **self._reading())
            if not are_observed(values).any():
                raise ValueError(
                    f"X must have an observed cell. Got {table.n_samples} x {table.n_columns} missing ones."
                )
        else:
            values = groups.values(table)
        if (np.diff(place) != 1).any():
            values = [of_group[place] for of_group in values]
        return HMMRows(groups, values, lengths, weight), order

    def _model(self, rows: HMMRows) -> HMM:
        """The model to fit."""
        owner, n_starts = type(self).__name__, self.n_init if isinstance(self.init, str) else 1
        emission = rows.as_independent.emission()
        check_size(emission, self.n_components, n_starts, self.max_memory, owner, self.n_components + 1)
        chain = resolve_chain(self)
        return HMM(emission, *chain, resolve_emission_prior(rows.groups, emission, self.n_components))

    def _recipe(self, model: HMM, data: HMMData, rows: HMMRows, sequences: Sequences, counted) -> HMMRecipe:
        """Where to start and when to stop."""
        seed, limits = self._seed(self.random_state), self._limits_of_run()
        last = self._continued(rows.groups, model)
        if last is not None:
            return HMMRecipe(seed, last.start_of(rows, model, data)[:, None], False, limits)
        if isinstance(self.init, str):
            rng, spread = np.random.default_rng(seed), self.init != "random"
            starts = rows.starts(model, data, self.n_init, spread=spread, rng=rng)
            return HMMRecipe(seed, starts, self.init == "tournament", limits)
        given = self.init
        if sequences.are_listed and isinstance(given, (list, tuple)) and given and np.ndim(given[0]) == 2:
            given = np.concatenate([np.asarray(of_sequence) for of_sequence in given])
        given = responsibilities_of(given, sequences.n_rows, model.n_components, type(self).__name__)
        return HMMRecipe(seed, model.statistics_of(given[counted], data)[:, None], False, limits)

    @staticmethod
    def _model_state(fitted: FittedHMM) -> dict:
        """The attributes that tell of the model."""
        return {
            **EmissionEstimator._emission_state(fitted),
            "startprob_": fitted.startprob,
            "transmat_": fitted.transmat,
            "counts_": fitted.counts,
        }

    # Scores of the evidence -------------------------------------------------------------------------------------------

    def log_evidence(
        self,
        X=None,
        *,
        sample_weight=None,
        sequence_id=None,
        lengths=None,
        kind="lower_bound",
        random_state=None,
        **options,
    ):
        """Log marginal likelihood of the sequences this estimator was fitted to, by one of many approximations.

        Values are total nats with every constant, more is better: they compare across structures, numbers of states and
        estimator classes. :doc:`/user_guide/scores` says when to use which, :doc:`/user_guide/sequences` which there
        are for sequences.

        Parameters
        ----------
        X : list of tables, or table
            The data of the fit, sequences in any order. May be left out for ``kind="lower_bound"``.
        sample_weight, sequence_id, lengths : array-like, default=None
            As in `fit`.
        kind : str, default="lower_bound"
            Name of a score in `skvbem.evidence.SCORES`, such as "ais", "bic" or "importance".
        random_state : int, RandomState instance or None, default=None
            Of scores that draw; by default they follow from the seed of the fit.
        **options
            Of the score.

        Returns
        -------
        Evidence
            With `value` and, where it is random, `standard_error`, in nats.

        Raises
        ------
        ValueError
            If X is not the data of the fit, or the estimator was updated by `partial_fit`.
        TypeError
            If the score has no such option.
        TooLargeError
            If ``kind="exact"`` has more paths to sum than its option `max_terms` allows.
        """
        located = None if X is None else self._located(X, sequence_id, lengths)
        return super().log_evidence(
            located, sample_weight=sample_weight, kind=kind, random_state=random_state, **options
        )

    def bic(self, X, sample_weight=None, sequence_id=None, lengths=None):
        """Bayesian information criterion as scikit-learn has it, -2 ln L + d ln n, n time steps: LOWER is better.

        Parameters
        ----------
        X : list of tables, or table
            The data of the fit.
        sample_weight, sequence_id, lengths : array-like, default=None
            As in `fit`.

        Returns
        -------
        float
        """
        return super().bic(self._located(X, sequence_id, lengths), sample_weight)

    def aic(self, X, sample_weight=None, sequence_id=None, lengths=None):
        """Akaike's information criterion as scikit-learn has it, -2 ln L + 2 d: LOWER is better. No evidence.

        Parameters
        ----------
        X : list of tables, or table
            The data of the fit.
        sample_weight, sequence_id, lengths : array-like, default=None
            As in `fit`.

        Returns
        -------
        float
        """
        return super().aic(self._located(X, sequence_id, lengths), sample_weight)

    def _evaluation(self, X, sample_weight, random_state) -> Evaluation:
        fitted, sequences = self._asked_of(X)
        run = self._scored_run()
        rows, _ = self._rows(sequences, sample_weight, fitted.groups)
        self._check_fingerprint(run, rows.fingerprint())
        return self._evaluate(fitted.model, fitted.form, run, rows.compiled(fitted.model), random_state)

    def _simulated(self, X, sample_weight, random_state) -> tuple[Evaluation, np.ndarray]:
        fitted, sequences = self._asked_of(X)
        run, model = self._scored_run(), fitted.model
        like, _ = self._rows(sequences, sample_weight, fitted.groups)
        if like.weight is not None and (like.weight != np.floor(like.weight)).any():
            raise ValueError("Data can be simulated only like sequences of whole-number weights.")
        seed = run.recipe.seed if random_state is None else self._seed(random_state)
        rng = np.random.default_rng([*seed, 2**31])
        repeats = np.ones(len(like.lengths), int) if like.weight is None else like.weight.astype(int)
        lengths = np.repeat(like.lengths, repeats)
        firsts = np.repeat(np.cumsum(like.lengths) - like.lengths, repeats)
        rows = np.arange(lengths.sum()) + np.repeat(firsts - (np.cumsum(lengths) - lengths), lengths)
        point = model.prior.sample(rng)
        drawn, _ = model.sample(point, lengths, rng)
        values = []
        for of_group, as_drawn in zip(like.values, fitted.groups.as_list(drawn)):
            there = of_group[rows]
            values.append(np.where(is_missing(there), there, as_drawn).astype(of_group.dtype))
        simulated = HMMRows(fitted.groups, values, lengths, None)
        data = simulated.compiled(model)
        n_starts = run.recipe.starts.shape[1]
        starts = simulated.starts(model, data, n_starts, spread=True, rng=np.random.default_rng(seed))
        recipe = replace(run.recipe, starts=starts)
        of_these = FittedRun(recipe.run(model, data, posteriors.VB), recipe)
        return self._evaluate(model, posteriors.VB, of_these, data, random_state), model.prior.natural(point)

    # Asking -----------------------------------------------------------------------------------------------------------

    def _asked_of(self, X, sequence_id=None, lengths=None) -> tuple[FittedHMM, Sequences]:
        """What was fitted, and sequences of the same columns."""
        check_is_fitted(self)
        sequences = self._located(X, sequence_id, lengths)
        validate_data(self, sequences.rows, skip_check_array=True, reset=False)
        return self._fitted_, sequences

    def _asked(self, X, sequence_id, lengths) -> tuple[FittedHMM, Sequences, HMMData]:
        """What was fitted, sequences to ask it about, and these as the model takes them."""
        fitted, sequences = self._asked_of(X, sequence_id, lengths)
        rows, _ = self._rows(sequences, None, fitted.groups)
        return fitted, sequences, rows.compiled(fitted.model)

    def score_samples(self, X, sequence_id=None, lengths=None, *, return_error=False):
        """Log predictive probability (density) of each sequence, nats, what is missing summed out.

        Of VB that which the `predictive` parameter says. A sequence that is impossible scores -inf. By maximum
        likelihood that is one which needs a transition or a category of probability 0, as are those below 5e-32; counts
        in states that have seen none cost up to 691 nats each.

        Parameters
        ----------
        X : list of tables, or table
        sequence_id, lengths : array-like, default=None
            As in `fit`.
        return_error : bool, default=False
            Whether to return standard errors, too: 0 but for ``predictive="average"``.

        Returns
        -------
        scores : ndarray of shape (n_sequences,)
        errors : ndarray of shape (n_sequences,)
            If asked for.
        """
        fitted, _, data = self._asked(X, sequence_id, lengths)
        scores, errors = fitted.log_predictive(data, self.predictive, self.n_draws)
        return (scores, errors) if return_error else scores

    def score(self, X, y=None, sample_weight=None, sequence_id=None, lengths=None):
        """Log predictive probability (density) of all sequences over their number of time steps, nats a step.

        The mean, as of scikit-learn's mixtures, so that folds of other lengths compare. (hmmlearn's is the total: the
        sum of `score_samples`.)

        Parameters
        ----------
        X : list of tables, or table
        y : None
            Ignored.
        sample_weight, sequence_id, lengths : array-like, default=None
            As in `fit`.

        Returns
        -------
        float
        """
        fitted, sequences, data = self._asked(X, sequence_id, lengths)
        refuse_lengths_as_y(y, sequences, "score")
        scores, _ = fitted.log_predictive(data, self.predictive, self.n_draws)
        n = len(scores) if sequences.are_listed else sequences.n_rows
        weights = sequence_weights(self._weights(sample_weight, n), sequences)
        weights = np.ones(len(scores)) if weights is None else weights
        counted = weights > 0  # a sequence that counts for nothing may be impossible
        return float(weights[counted] @ scores[counted] / (weights @ sequences.lengths))

    def decode(self, X, sequence_id=None, lengths=None):
        """The most probable path of each sequence (Viterbi), and its log probability.

        Parameters
        ----------
        X : list of tables, or table
        sequence_id, lengths : array-like, default=None
            As in `fit`.

        Returns
        -------
        states : ndarray of int, shape (n_rows,), or list of these
        log_probability : ndarray of shape (n_sequences,)
            ln p(rows, path), nats, at the parameters that `predictive` says; of equal paths the first. -inf for a
            sequence that no path can make, whose states then mean nothing.

        Examples
        --------
        >>> import numpy as np
        >>> from skvbem import VBHMM
        >>> words = [np.array(list(word))[:, None] for word in ("aaabbb", "aabbbb", "aaaab")]
        >>> model = VBHMM(2, transmat_mask="left-to-right", random_state=0).fit(words)
        >>> states, log_probability = model.decode(words)
        >>> [path.tolist() for path in states]
        [[0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 1, 1], [0, 0, 0, 0, 1]]
        >>> log_probability.round(2).tolist()
        [-2.81, -2.39, -3.05]
        """
        fitted, sequences, data = self._asked(X, sequence_id, lengths)
        states, log_joint = fitted.model.decoded(fitted.natural(self.predictive), data)
        return sequences.as_given(states), log_joint

    def predict(self, X, sequence_id=None, lengths=None):
        """The states of each sequence's most probable path (Viterbi).

        Parameters
        ----------
        X : list of tables, or table
        sequence_id, lengths : array-like, default=None
            As in `fit`.

        Returns
        -------
        ndarray of int, shape (n_rows,), or list of these
            Rows as they are in X; of a list of sequences an array for each.
        """
        return self.decode(X, sequence_id, lengths)[0]

    def predict_proba(self, X, sequence_id=None, lengths=None):
        """Probabilities of the states of each step given its whole sequence (smoothed).

        Parameters
        ----------
        X : list of tables, or table
        sequence_id, lengths : array-like, default=None
            As in `fit`.

        Returns
        -------
        ndarray of shape (n_rows, n_components), or list of these
            Steps of a sequence that is impossible under the fit get `counts_` over their sum.
        """
        fitted, sequences, data = self._asked(X, sequence_id, lengths)
        return sequences.as_given(self._smoothed(fitted, data))

    def _smoothed(self, fitted: FittedHMM, data: HMMData) -> np.ndarray:
        return fitted.possible(fitted.model.smoothed(fitted.natural(self.predictive), data))

    def filter(self, X, sequence_id=None, lengths=None):
        """Probabilities of the states of each step given its sequence up to this step.

        Parameters
        ----------
        X : list of tables, or table
        sequence_id, lengths : array-like, default=None
            As in `fit`.

        Returns
        -------
        ndarray of shape (n_rows, n_components), or list of these
            From the first step on that is impossible under the fit, `counts_` over their sum.
        """
        fitted, sequences, data = self._asked(X, sequence_id, lengths)
        return sequences.as_given(self._filtered(fitted, data))

    def _filtered(self, fitted: FittedHMM, data: HMMData) -> np.ndarray:
        return fitted.possible(fitted.model.filtered(fitted.natural(self.predictive), data))

    def forecast(self, X, n_steps=1, sequence_id=None, lengths=None):
        """What comes after the end of each sequence: probabilities of states, and what columns are expected to hold.

        At the published parameters.

        Parameters
        ----------
        X : list of tables, or table
        n_steps : int, default=1
            How many steps ahead.
        sequence_id, lengths : array-like, default=None
            As in `fit`.

        Returns
        -------
        Forecast

        Examples
        --------
        >>> import numpy as np
        >>> from skvbem import VBHMM
        >>> words = [np.array(list(word))[:, None] for word in ("aaabbb", "aabbbb", "aaaab")]
        >>> model = VBHMM(2, transmat_mask="left-to-right", random_state=0).fit(words)
        >>> ahead = model.forecast([words[0][:2]], n_steps=2)  # after "aa"
        >>> ahead.state_probabilities.round(2).tolist()
        [[[0.57, 0.43], [0.36, 0.64]]]
        >>> ahead.expected["x0"].round(2).tolist()  # of a and b
        [[[0.57, 0.43], [0.42, 0.58]]]
        """
        check_count("n_steps", "forecast", n_steps)
        fitted, sequences, data = self._asked(X, sequence_id, lengths)
        last = np.cumsum(sequences.lengths) - 1
        states = fitted.ahead(self._filtered(fitted, data)[last], int(n_steps))
        return Forecast(states, fitted.expected_values(states))

    def transform(self, X, sequence_id=None, lengths=None):
        """Probabilities of the states of each step given its whole sequence, as `predict_proba`.

        Parameters
        ----------
        X : list of tables, or table
        sequence_id, lengths : array-like, default=None
            As in `fit`.

        Returns
        -------
        ndarray of shape (n_rows, n_components), or list of these
        """
        sequences = self._located(X, sequence_id, lengths)
        if sequences.are_listed and output_of("transform", self) != "default":
            raise ValueError(
                f"set_output lets 'transform' of {type(self).__name__} return one table, but X is a list of sequences. "
                "Give rows with 'sequence_id', or take set_output(transform='default') for a list of arrays."
            )
        return self.predict_proba(sequences)

    def impute(self, X, sequence_id=None, lengths=None):
        """X with missing cells filled, given the whole sequence: numbers by means, categories by the most probable one.

        Parameters
        ----------
        X : list of tables, or table
        sequence_id, lengths : array-like, default=None
            As in `fit`.

        Returns
        -------
        ndarray or DataFrame, or list of these
            X in its own container; observed cells are untouched.

        Examples
        --------
        >>> import numpy as np
        >>> from skvbem import VBHMM
        >>> words = [np.array(list(word))[:, None] for word in ("aaabbb", "aabbbb", "aaaab")]
        >>> model = VBHMM(2, transmat_mask="left-to-right", random_state=0).fit(words)
        >>> gaps = np.array([["a"], [None], ["a"], [None], ["b"]], dtype=object)
        >>> model.impute([gaps])[0].ravel().tolist()
        ['a', 'a', 'a', 'b', 'b']
        """
        fitted, sequences = self._asked_of(X, sequence_id, lengths)
        rows, _ = self._rows(sequences, None, fitted.groups)
        data, groups = rows.compiled(fitted.model), fitted.groups
        states = self._smoothed(fitted, data)
        found = fitted.imputed(data.table[0 : len(data)], states)
        missing = groups.missing(rows.values)
        if not sequences.are_listed:
            found, missing = [sequences.as_given(of_group) for of_group in found], sequences.as_given(missing)
        completed = filled(sequences.rows, missing, groups.columns_of(found))
        return sequences.split(completed) if sequences.are_listed else completed

    def credible_intervals(self, level=0.95):
        """Equal-tailed intervals of q(theta): of first states, transitions, means, rates, probabilities and shares.

        They are those of each parameter by itself: where states overlap VB is too sure of itself, so read them as a
        lower limit of the uncertainty.

        Parameters
        ----------
        level : float, default=0.95
            Mass of each interval.

        Returns
        -------
        dict of str to dict of str to tuple of two ndarrays
            By group and parameter, the lower and upper ends, of the shapes of `parameters_`; under "chain" those of
            "startprob" and "transmat", of the shapes of `startprob_` and `transmat_`, 0 where there is no transition.

        Raises
        ------
        ValueError
            If the fit is a point, by ``method="map"`` or "ml", or the level no share.
        """
        found = super().credible_intervals(level)
        lower, upper = (self._fitted_.chain_quantiles(share) for share in (0.5 - level / 2, 0.5 + level / 2))
        return {"chain": {name: (lower[name], upper[name]) for name in lower}} | found

    def sample(self, lengths=1, random_state=None):
        """Sequences drawn from the predictive distribution, and the states behind them.

        Each sequence has parameters of its own, drawn from q(theta).

        Parameters
        ----------
        lengths : int or array-like of int, default=1
            Steps of one sequence, or of each of several.
        random_state : int, RandomState instance or None, default=None
            By default the estimator's own `random_state`.

        Returns
        -------
        X : ndarray of shape (n_steps, n_features), or list of these
        states : ndarray of int, shape (n_steps,), or list of these
            Lists where `lengths` is array-like.
        """
        check_is_fitted(self)
        steps = np.atleast_1d(np.asarray(lengths))
        if steps.ndim != 1 or steps.dtype.kind not in "iu" or (steps < 1).any() or not len(steps):
            raise ValueError(
                f"The 'lengths' parameter of sample must be an int >= 1, or such ints. Got {_show(lengths)} instead."
            )
        fitted = self._fitted_
        rng = self._rng(self.random_state if random_state is None else random_state)
        drawn, states = fitted.sample(steps.astype(np.int64), rng)
        X = as_array(fitted.groups.columns_of(fitted.groups.as_list(drawn)))
        if np.ndim(lengths) == 0:
            return X, states
        ends = np.cumsum(steps)[:-1]
        return np.split(X, ends), np.split(states, ends)


__all__ = ["VBHMM"]
