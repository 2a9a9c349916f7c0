"""`VBLinearDynamicalSystem`: Bayesian state-space models of sequences of measurements."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skvbem._arguments import check_flag
from skvbem._compat import Interval, IterationReport, StrOptions, warn
from skvbem.errors import DataWarning
from skvbem.estimators.base import has_posterior
from skvbem.estimators.labels.estimator import EmissionEstimator
from skvbem.estimators.linear_dynamical_system.priors import RELEVANCE, resolve_model, warn_of_columns
from skvbem.estimators.reporting import ReportingEstimator
from skvbem.estimators.sequences.estimator import SequenceEstimator
from skvbem.fitted.linear_dynamical_system import FittedLDS, LDSForecast
from skvbem.models.linear_dynamical_system.data import LDSData
from skvbem.models.linear_dynamical_system.model import LinearDynamicalSystem
from skvbem.models.linear_dynamical_system.starts import LDSStarts
from skvbem.optima.linear_dynamical_system import LDSMethod, LearnedPrecisions
from skvbem.reading.base import Reading
from skvbem.reading.column_groups import ColumnGroups
from skvbem.reading.inputs import (
    InputReading,
    inputs_of_steps,
    read_with_inputs,
)
from skvbem.reading.output import filled
from skvbem.reading.tables import Table, show
from skvbem.vbem.fit import Fit, FitPlan

_SHARED_PARAMETERS = (
    "method", "map_basis", "n_init", "max_iter", "tol", "acceleration", "missing_values", "max_memory", "random_state",
    "n_jobs", "warm_start", "verbose",
)  # fmt: skip


class VBLinearDynamicalSystem(ClassNamePrefixFeaturesOutMixin, SequenceEstimator, ReportingEstimator):
    r"""Bayesian linear dynamical system: sequences of measurements of hidden states that move linearly.

    A step has `n_components` normal states. They follow linearly from those of the step before and from inputs. Columns
    are linear in states and in inputs of their own, with independent normal noise. Any cells, and whole steps, may be
    missing. The lower bound on the log evidence has all its constants: it compares across numbers of states, inputs and
    estimator classes.

    Sequences come in one of three forms, as of `VBHMM`: a list of tables; one table with `sequence_id`; one table with
    `lengths`. Inputs come in the same form.

    Parameters
    ----------
    n_components : int, default=1
        Number of states, k.
    transition_precision_prior : float, default=None
        Precision, about 0, of what takes states and inputs to the next states, for inputs of mean square 1. By default
        `n_components`, under which states neither grow nor die within a step or two.
    loading_precision_prior : float, default=1.0
        Precision, about 0, of loadings and of effects of output inputs of mean square 1, in units of that of the noise.
    learn_prior : {False, "strength", "ard"}, default=False
        "strength" learns one multiple of each precision. "ard" (automatic relevance determination) gives each state
        precisions of its own, which are hidden variables with exponential priors, so that the bound stays one.
    noise_shape_prior : float, default=1.0
        Shape of the Gamma distribution of the precision of a column's noise.
    noise_rate_prior : float, default=None
        Its rate, in units of the variance of the column. By default each column's rate is hidden, too, with an
        exponential prior of mean 1, so that no share of noise is likelier than another. Scores that need the evidence
        of known states in closed form ask for a number.
    offset_precision_prior : float, default=0.01
        Precision of a column's offset about its mean, in units of that of the noise.
    initial : {"unit", "learned"}, default="unit"
        Distribution of the first states of sequences. "unit" is normal with mean 0 and the identity as its covariance.
        "learned" has a mean and a covariance that are learned, which is worth it where there are many sequences. Their
        prior is that of `skvbem.models.linear_dynamical_system.first_states.round_prior`.
    prune : bool, default=True
        With ``learn_prior="ard"``, whether states are taken away where the bound rises by it.
    method : {"vb", "map", "ml"}, default="vb"
        Variational Bayes, the posterior mode, or maximum likelihood.
    map_basis : {"natural", "probability"}, default="natural"
        The coordinates whose density MAP maximizes.
    predictive : {"average", "mean", "vb"}, default="average"
        How parameters enter predictions of VB: averaged over `n_draws` draws, at their posterior means, or by the
        normalizer of q(states), a lower bound on the average.
    n_draws : int, default=100
        Draws of the parameters that predictions average over.
    n_init : int, default=3
        Starts, of which the best is kept.
    init : {"pca", "subspace", "random"}, default="pca"
        Where to start: along principal components, near them and at random; with states as a singular value
        decomposition of lagged covariances has them in the place of the components; or at random alone. The third start
        is along principal components of columns in units of their changes, but of random ones.
    max_iter : int, default=10000
        Most steps of a start.
    tol : float, default=1e-5
        Nats still to be gained, as estimated, below which a start has converged.
    acceleration : bool, default=True
        Whether to extrapolate steps.
    missing_values : number, default=np.nan
        What stands for a missing cell, besides NaN, None and NA.
    max_memory : float, default=4e9
        Bytes that an answer may take.
    random_state : int, RandomState instance or None, default=None
        Seed of starts and draws.
    n_jobs : int, default=None
        Threads; the result does not depend on them.
    warm_start : bool, default=False
        Whether `fit` starts from the last solution.
    verbose : int, default=0

    Attributes
    ----------
    transition_ : ndarray of shape (n_components, n_components)
        A, posterior means (VB) or the point found. States have a unit in which what moves them by chance has the
        identity as its covariance.
    input_ : ndarray of shape (n_components, n_inputs)
        B.
    loadings_ : ndarray of shape (n_features, n_components)
        C, in the units of the data.
    standardized_loadings_ : ndarray of shape (n_features, n_components)
        In the units of the standard deviations of columns, and of states over the steps seen.
    offset_ : ndarray of shape (n_features,)
    output_input_ : ndarray of shape (n_features, n_output_inputs)
        D.
    noise_variance_ : ndarray of shape (n_features,)
    initial_mean_ : ndarray of shape (n_components,)
        Mean of the states of first steps.
    initial_covariance_ : ndarray of shape (n_components, n_components)
        Their covariance; the inverse of the mean of the precision (VB) where it is learned.
    transition_precision_, loading_precision_ : ndarray
        Precisions of the prior of states and inputs, and of states, offset and output inputs, as learned.
    n_components_ : int
        States that were not taken away.
    spectral_radius_ : float
        Largest absolute value of an eigenvalue of A; above 1 states grow without limit.
    lower_bound_ : float
        Lower bound on the log evidence, nats (VB).
    log_posterior_, log_likelihood_ : float
        The objective of MAP and ML.
    lower_bounds_ : ndarray of shape (n_points,)
        The objective along the run of the best start; it never falls.
    restarts_ : Restarts
        Where every start ended.
    n_iter_ : int
    converged_ : bool
    n_samples_ : float
        Time steps with an observed cell, each as often as its sequence counts.
    n_free_parameters_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        If X has string column names.

    See Also
    --------
    VBHMM : Sequences whose states are one of several.
    skvbem.plotting.ForecastDisplay : A sequence, its states, and what comes next.
    skvbem.plotting.PolesDisplay : How states move.

    Examples
    --------
    >>> import numpy as np
    >>> from skvbem import VBLinearDynamicalSystem
    >>> rng = np.random.default_rng(0)
    >>> level = np.cumsum(rng.normal(size=60))
    >>> X = level[:, None] + rng.normal(size=(60, 2))
    >>> X[20:25] = np.nan
    >>> model = VBLinearDynamicalSystem(1, random_state=0).fit(X)
    >>> bool(0.8 < model.spectral_radius_ < 1.05)
    True
    >>> ahead = model.forecast(X, n_steps=3)
    >>> ahead.mean.shape, bool((ahead.lower < ahead.upper).all())
    ((1, 3, 2), True)
    """

    _located_by = ("sequence_id", "lengths", "inputs", "output_inputs")
    _prior_parameters = (
        "transition_precision_prior",
        "loading_precision_prior",
        "noise_shape_prior",
        "noise_rate_prior",
    )
    _method = LDSMethod()
    _fitted_type = FittedLDS
    default_score = "lower_bound"
    reading_parameters = frozenset({"missing_values"})

    _parameter_constraints: ClassVar[dict] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "transition_precision_prior": [None, Interval(Real, 0, None, closed="neither")],
        "loading_precision_prior": [Interval(Real, 0, None, closed="neither")],
        "learn_prior": ["boolean", StrOptions({"strength", "ard"})],
        "noise_shape_prior": [Interval(Real, 0, None, closed="neither")],
        "noise_rate_prior": [None, Interval(Real, 0, None, closed="neither")],
        "offset_precision_prior": [Interval(Real, 0, None, closed="neither")],
        "initial": [StrOptions({"unit", "learned"})],
        "prune": ["boolean"],
        "predictive": [StrOptions({"mean", "vb", "average"})],
        "n_draws": [Interval(Integral, 1, None, closed="left")],
        "init": [StrOptions({"pca", "subspace", "random"})],
        **{name: EmissionEstimator._parameter_constraints[name] for name in _SHARED_PARAMETERS},
    }

    def __init__(
        self,
        n_components=1,
        *,
        transition_precision_prior=None,
        loading_precision_prior=1.0,
        learn_prior=False,
        noise_shape_prior=1.0,
        noise_rate_prior=None,
        offset_precision_prior=0.01,
        initial="unit",
        prune=True,
        method="vb",
        map_basis="natural",
        predictive="average",
        n_draws=100,
        n_init=3,
        init="pca",
        max_iter=10_000,
        tol=1e-5,
        acceleration=True,
        missing_values=np.nan,
        max_memory=4e9,
        random_state=None,
        n_jobs=None,
        warm_start=False,
        verbose=0,
    ):
        self.n_components = n_components
        self.transition_precision_prior = transition_precision_prior
        self.loading_precision_prior = loading_precision_prior
        self.learn_prior = learn_prior
        self.noise_shape_prior = noise_shape_prior
        self.noise_rate_prior = noise_rate_prior
        self.offset_precision_prior = offset_precision_prior
        self.initial = initial
        self.prune = prune
        self.method = method
        self.map_basis = map_basis
        self.predictive = predictive
        self.n_draws = n_draws
        self.n_init = n_init
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.acceleration = acceleration
        self.missing_values = missing_values
        self.max_memory = max_memory
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.verbose = verbose

    # Fitting ----------------------------------------------------------------------------------------------------------

    def fit(self, X, y=None, sample_weight=None, sequence_id=None, lengths=None, inputs=None, output_inputs=None):
        """Fit the model to sequences.

        A fit that raises or is interrupted leaves the estimator as it was before.

        Parameters
        ----------
        X : list of tables, or array-like, pandas or polars DataFrame of shape (n_rows, n_features)
            Measurements; NaN, None and NA are missing cells.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_sequences,) or (n_rows,), default=None
            How often each sequence counts: of a list an item for each sequence, of rows the same for all rows of one.
        sequence_id : array-like of shape (n_rows,), default=None
            Which sequence each row belongs to.
        lengths : array-like of int, default=None
            Rows of each sequence, one after the other.
        inputs : array-like of shape (n_rows, n_inputs), or list of these, default=None
            What moves states besides the states of the step before; the input of a first step is not used.
        output_inputs : array-like of shape (n_rows, n_output_inputs), or list of these, default=None
            What columns depend on besides the states of their step.

        Returns
        -------
        self : VBLinearDynamicalSystem
            Fitted.

        Raises
        ------
        ValueError
            If X or a parameter is not what it should be; the message names which and what would be right.
        """
        return super().fit(self._located(X, sequence_id, lengths, inputs, output_inputs), y, sample_weight)

    @available_if(has_posterior)
    def partial_fit(
        self, X, y=None, sample_weight=None, sequence_id=None, lengths=None, inputs=None, output_inputs=None
    ):
        """Update the posterior with a batch of whole sequences, whose prior is the last posterior [Beal (2.114)].

        `batch_lower_bound_` bounds the log probability of this batch given the approximate past.

        Parameters
        ----------
        X : list of tables, or table
            The first batch is fitted as by `fit`: it fixes columns and units.
        y : None
            Ignored.
        sample_weight, sequence_id, lengths, inputs, output_inputs : array-like, default=None
            As in `fit`.

        Returns
        -------
        self : VBLinearDynamicalSystem
            Fitted.
        """
        return super().partial_fit(self._located(X, sequence_id, lengths, inputs, output_inputs), y, sample_weight)

    def _located(self, X, sequence_id=None, lengths=None, inputs=None, output_inputs=None) -> Any:
        """X as sequences with inputs; a reading, which is past this, as it is."""
        if isinstance(X, Reading):
            return X
        return read_with_inputs(X, sequence_id, lengths, inputs, output_inputs, type(self).__name__)

    def _learned_columns(self, table: Table) -> tuple[ColumnGroups, list[np.ndarray]]:
        owner = type(self).__name__
        return ColumnGroups.learned(
            table, "gaussian", owner, covariance_type="diag", missing_values=self.missing_values
        )

    def _reading(self, *parts: Any, **names: Any) -> InputReading:
        return InputReading.of(super()._reading(*parts, **names))

    def _model(self, reading: InputReading) -> LinearDynamicalSystem:
        k = self.n_components
        numbers = 4 * (k + reading.inputs.shape[1]) ** 2 + 3 * k * len(reading.inputs)
        self._check_memory(f"A system of {k:.3g} states", numbers, "fewer")
        return resolve_model(self, reading, self.n_components)

    def _learns_prior(self) -> bool:
        return self.learn_prior == "strength"

    def _check_together(self, X) -> None:
        if self.learn_prior is not False and (self.learn_prior is True or self.method != "vb"):
            raise ValueError(
                f"The 'learn_prior' parameter of {type(self).__name__} must be False, or with method='vb', whose bound "
                f"decides, 'strength' or 'ard'. Got {self.learn_prior!r} with method={self.method!r} instead."
            )

    def _best_fit(
        self, model: LinearDynamicalSystem, data: LDSData, reading: Any, report: IterationReport
    ) -> tuple[LinearDynamicalSystem, FitPlan, Fit, dict]:
        if self.learn_prior != "ard":
            return super()._best_fit(model, data, reading, report)
        plan = self._plan(model, data, reading)
        learned = LearnedPrecisions(
            plan, self._form(), lambda k: resolve_model(self, reading, k, RELEVANCE), self.prune
        )
        of_fit, fit = learned.fit(model, data, **self._options(report))
        return of_fit, plan, fit, {}

    def _compiled(self, model: LinearDynamicalSystem, reading: InputReading, n_starts: int) -> LDSData:
        return reading.compiled(model)

    def _starts(self, model: LinearDynamicalSystem, data: LDSData, reading: InputReading, seed: tuple) -> LDSStarts:
        return LDSStarts(self.init, self.n_init, seed)

    def _starts_anew(self, plan: FitPlan, model, data, reading, seed: tuple[int, ...]) -> LDSStarts:
        return LDSStarts("pca", plan.n_starts, seed)

    def _start_from(self, last: FittedLDS, model, data: LDSData, reading: InputReading) -> np.ndarray:
        natural, _ = last.form.of(last.model.prior, last.statistics[:, None])
        here = reading.compiled(last.model)
        states = last.smoothed(here, natural[:, 0])
        return model.statistics_of_start(data, states.mean[data.rows], states.covariance[data.rows].mean(axis=0))

    def _continued_model(self, fitted: FittedLDS) -> LinearDynamicalSystem:
        return fitted.model.updated(fitted.statistics)

    def _drawn_like(self, like: InputReading, model: LinearDynamicalSystem, point, rng: np.random.Generator):
        fitted = FittedLDS(like.columns, model, self._form(), np.zeros(model.n_cells))
        return like.columns.as_emission_takes([fitted.drawn_like(point, like, rng)])

    def _warn_of_data(self, reading: InputReading, model: LinearDynamicalSystem, data: LDSData) -> None:
        warn_of_columns(reading)

    def _warn_of_fit(self, fitted: FittedLDS, data: LDSData) -> None:
        stopped = fitted.at_floor() if self.method == "ml" else []
        if stopped:
            warn(
                f"The noise of column {stopped[0]!r} has no width: its variance is a floor, without which the "
                "likelihood has no maximum, as a state can follow one column. Take fewer states, or method='vb' or "
                "'map'.",
                DataWarning,
            )

    def _what_was_fitted(self, fitted: FittedLDS) -> str:
        k, p = fitted.model.n_states, fitted.model.n_columns
        return f"{k} state{'s' * (k > 1)} of {p} column{'s' * (p > 1)}"

    def _doubts_of_fit(self, fitted: FittedLDS) -> list[str]:
        radius = np.abs(np.linalg.eigvals(fitted.matrices.transition)).max()
        return [f"States grow by {radius:.3g} a step: forecasts have no limit."] if radius > 1 else []

    def _hidden(self, fitted: FittedLDS) -> tuple:
        return ("state",)

    log_point = EmissionEstimator.log_point

    @staticmethod
    def _model_state(fitted: FittedLDS) -> dict:
        """The attributes that tell of the model."""
        matrices, prior = fitted.matrices, fitted.model.prior
        if prior.hyperprior is not None:
            natural, _ = fitted.form.of(prior, fitted.statistics[:, None])
            prior = prior.given_hyperparameters(prior.hyperparameters(natural[:, 0]))
        transition, loading = (np.diagonal(np.linalg.inv(block.covariance[0])).copy() for block in prior.blocks[:2])
        return {
            "_fitted_": fitted,
            **{f"{name}_": value for name, value in matrices._asdict().items()},
            "standardized_loadings_": fitted.standardized_loadings,
            "transition_precision_": transition,
            "loading_precision_": loading,
            "n_components_": fitted.model.n_states,
            "spectral_radius_": float(np.abs(np.linalg.eigvals(matrices.transition)).max()),
            "n_free_parameters_": fitted.model.prior.n_free_parameters,
        }

    def _data_state(self, fitted: FittedLDS, reading, data, *, is_batch: bool = False) -> dict:
        return {"latent_states_": {}}

    @property
    def _n_features_out(self) -> int:
        return self._fitted_.model.n_states

    # Asking -----------------------------------------------------------------------------------------------------------

    def transform(self, X, sequence_id=None, lengths=None, inputs=None, output_inputs=None, *, return_cov=False):
        """Means of the states of each step given its whole sequence (smoothed), at the published parameters.

        Parameters
        ----------
        X : list of tables, or table
        sequence_id, lengths, inputs, output_inputs : array-like, default=None
            As in `fit`.
        return_cov : bool, default=False
            Whether to return the covariances of the states, too.

        Returns
        -------
        states : ndarray of shape (n_rows, n_components), or list of these
        covariances : ndarray of shape (n_rows, n_components, n_components), or list of these
            If asked for.
        """
        check_flag("return_cov", "transform", return_cov)
        sequences = self._located(X, sequence_id, lengths, inputs, output_inputs)
        self._check_output(sequences)
        fitted, reading, data = self.asked(sequences)
        return _given(reading, fitted.smoothed(data, fitted.natural("mean")), return_cov)

    def fit_transform(
        self, X, y=None, sample_weight=None, sequence_id=None, lengths=None, inputs=None, output_inputs=None
    ):
        """Fit, then return what `transform` says of the same sequences.

        Parameters
        ----------
        X : list of tables, or table
        y : None
            Ignored.
        sample_weight, sequence_id, lengths, inputs, output_inputs : array-like, default=None
            As in `fit`.

        Returns
        -------
        ndarray of shape (n_rows, n_components), or list of these
        """
        where = {"sequence_id": sequence_id, "lengths": lengths, "inputs": inputs, "output_inputs": output_inputs}
        return self.fit(X, y, sample_weight, **where).transform(X, **where)

    def fit_predict(
        self, X, y=None, sample_weight=None, sequence_id=None, lengths=None, inputs=None, output_inputs=None
    ):
        """Fit, then return what `predict` says of the same sequences.

        Parameters
        ----------
        X : list of tables, or table
        y : None
            Ignored.
        sample_weight, sequence_id, lengths, inputs, output_inputs : array-like, default=None
            As in `fit`.

        Returns
        -------
        ndarray of shape (n_rows, n_components), or list of these
        """
        sequences = self._located(X, sequence_id, lengths, inputs, output_inputs)
        return self.fit(sequences, y, sample_weight).predict(sequences)

    def predict(self, X, sequence_id=None, lengths=None, inputs=None, output_inputs=None):
        """The most probable states of each sequence together, which are their means: those of `transform`.

        Parameters
        ----------
        X : list of tables, or table
        sequence_id, lengths, inputs, output_inputs : array-like, default=None
            As in `fit`.

        Returns
        -------
        ndarray of shape (n_rows, n_components), or list of these
        """
        fitted, reading, data = self.asked(self._located(X, sequence_id, lengths, inputs, output_inputs))
        return _given(reading, fitted.smoothed(data, fitted.natural("mean")), False)

    def filter(self, X, sequence_id=None, lengths=None, inputs=None, output_inputs=None, *, return_cov=False):
        """Means of the states of each step given its sequence up to this step, at the published parameters.

        Parameters
        ----------
        X : list of tables, or table
        sequence_id, lengths, inputs, output_inputs : array-like, default=None
            As in `fit`.
        return_cov : bool, default=False
            Whether to return the covariances of the states, too.

        Returns
        -------
        states : ndarray of shape (n_rows, n_components), or list of these
        covariances : ndarray of shape (n_rows, n_components, n_components), or list of these
            If asked for.
        """
        check_flag("return_cov", "filter", return_cov)
        fitted, reading, data = self.asked(self._located(X, sequence_id, lengths, inputs, output_inputs))
        return _given(reading, fitted.filtered(data, fitted.natural("mean")), return_cov)

    def score_samples(self, X, sequence_id=None, lengths=None, inputs=None, output_inputs=None, *, return_error=False):
        """Log predictive density of each sequence, nats, what is missing integrated out.

        After VB it is the density that the `predictive` parameter names.

        Parameters
        ----------
        X : list of tables, or table
        sequence_id, lengths, inputs, output_inputs : array-like, default=None
            As in `fit`.
        return_error : bool, default=False
            Whether to return standard errors, too: 0 but for ``predictive="average"``.

        Returns
        -------
        scores : ndarray of shape (n_sequences,)
        errors : ndarray of shape (n_sequences,)
            If asked for.
        """
        check_flag("return_error", "score_samples", return_error)
        fitted, _, data = self.asked(self._located(X, sequence_id, lengths, inputs, output_inputs))
        scores, errors = fitted.log_predictive(data, self.predictive, self.n_draws)
        return (scores, errors) if return_error else scores

    def score(self, X, y=None, sample_weight=None, sequence_id=None, lengths=None, inputs=None, output_inputs=None):
        """Log predictive density of all sequences over their number of time steps, nats a step.

        Parameters
        ----------
        X : list of tables, or table
        y : None
            Ignored.
        sample_weight, sequence_id, lengths, inputs, output_inputs : array-like, default=None
            As in `fit`.

        Returns
        -------
        float
        """
        return super().score(self._located(X, sequence_id, lengths, inputs, output_inputs), y, sample_weight)

    def forecast(
        self, X, n_steps=1, sequence_id=None, lengths=None, inputs=None, output_inputs=None, *,
        future_inputs=None, future_output_inputs=None, level=0.95,
    ) -> LDSForecast:  # fmt: skip
        """What comes after the end of each sequence, with intervals that know how little was learned.

        Under VB means, variances and intervals are those of a mixture over `n_draws` draws of the parameters, or at
        their means where `predictive` is not "average".

        Parameters
        ----------
        X : list of tables, or table
        n_steps : int, default=1
            How many steps ahead.
        sequence_id, lengths, inputs, output_inputs : array-like, default=None
            As in `fit`.
        future_inputs, future_output_inputs : array-like of shape (n_sequences, n_steps, n_inputs), default=None
            Inputs of the steps to come; of shape (n_steps, n_inputs) the same for all sequences.
        level : float, default=0.95
            Mass of the intervals.

        Returns
        -------
        LDSForecast
        """
        self._check_forecast(X, n_steps, level)
        fitted, reading, data = self.asked(self._located(X, sequence_id, lengths, inputs, output_inputs))
        n, p, n_draws = len(reading.lengths), fitted.model.n_columns, self.n_draws
        self._check_memory(
            f"A forecast of {n_steps:.3g} steps for {n} sequences", 3 * n * int(n_steps) * p * n_draws, "fewer steps"
        )
        given = (future_inputs, "future_inputs", reading.inputs), (
            future_output_inputs, "future_output_inputs", reading.output_inputs,
        )  # fmt: skip
        future = tuple(inputs_of_steps(values, name, (n, int(n_steps), past.shape[1])) for values, name, past in given)
        naturals = list(fitted.draws_to_average(self.predictive, n_draws))
        return fitted.forecast(data, int(n_steps), future, float(level), naturals)

    def impute(self, X, sequence_id=None, lengths=None, inputs=None, output_inputs=None, *, return_variance=False):
        """X with missing cells filled by their means given the whole sequence, averaged as forecasts are.

        Parameters
        ----------
        X : list of tables, or table
        sequence_id, lengths, inputs, output_inputs : array-like, default=None
            As in `fit`.
        return_variance : bool, default=False
            Whether to return the variances of the imputed cells, too.

        Returns
        -------
        X : ndarray or DataFrame, or list of these
            In its own container; observed cells are untouched.
        variance : ndarray of shape (n_rows, n_features), or list of these
            If asked for; 0 where a cell is observed.
        """
        check_flag("return_variance", "impute", return_variance)
        fitted, reading, data = self.asked(self._located(X, sequence_id, lengths, inputs, output_inputs))
        sequences, missing = reading.sequences, np.isnan(reading.values[0])
        naturals = list(fitted.draws_to_average(self.predictive, self.n_draws))
        means, variance = fitted.imputed(data, reading.output_inputs, naturals)
        variance = np.where(missing, variance, 0.0)
        of_rows = [sequences.as_given(x) if not sequences.are_listed else x for x in (means, missing)]
        completed = filled(sequences.rows, of_rows[1], list(of_rows[0].T))
        completed = sequences.split(completed) if sequences.are_listed else completed
        return (completed, sequences.as_given(variance)) if return_variance else completed

    def sample(self, lengths=1, inputs=None, output_inputs=None, random_state=None):
        """Sequences drawn from the predictive distribution, and the states behind them.

        Each sequence has parameters of its own, drawn from q(theta).

        Parameters
        ----------
        lengths : int or array-like of int, default=1
            Steps of one sequence, or of each of several.
        inputs, output_inputs : array-like of shape (n_steps, n_inputs), default=None
            Inputs of all steps, one sequence after the other, if the fit has inputs.
        random_state : int, RandomState instance or None, default=None
            By default the estimator's own `random_state`.

        Returns
        -------
        X : ndarray or DataFrame of shape (n_steps, n_features), or list of these
            In the container of the X that was fitted, with its names.
        states : ndarray of shape (n_steps, n_components), or list of these
            Lists where `lengths` is array-like.
        """
        check_is_fitted(self)
        steps = np.atleast_1d(np.asarray(lengths))
        if steps.ndim != 1 or steps.dtype.kind not in "iu" or (steps < 1).any() or not len(steps):
            raise ValueError(
                f"The 'lengths' parameter of sample must be an int >= 1, or such ints. Got {show(lengths)} instead."
            )
        fitted, n = self._fitted_, sum(steps.tolist())
        model = fitted.model
        self._check_memory(f"{n:.3g} steps drawn", n * (model.n_columns + model.n_states), "fewer at a time")
        rng = self._rng(self.random_state if random_state is None else random_state)
        given = (inputs, "inputs", model.n_inputs), (output_inputs, "output_inputs", model.n_output_inputs - 1)
        of_steps = (inputs_of_steps(values, name, (1, n, width))[0] for values, name, width in given)
        drawn, states = fitted.sample(steps.astype(np.int64), *of_steps, rng)
        X = self._sequences_of(list(drawn.T), steps)
        return (X[0], states) if np.ndim(lengths) == 0 else (X, np.split(states, np.cumsum(steps)[:-1]))


def _given(reading: InputReading, states: Any, return_cov: bool):
    """States as the user has rows, with their covariances if asked for."""
    mean = reading.sequences.as_given(states.mean)
    return (mean, reading.sequences.as_given(states.covariance)) if return_cov else mean


__all__ = ["VBLinearDynamicalSystem"]
