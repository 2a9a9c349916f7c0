"""`VBLinearDynamicalSystem`: Bayesian state-space models of sequences of measurements."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skvbem._arguments import check_flag
from skvbem._compat import Interval, StrOptions, keep_parameters
from skvbem._docstrings import share_texts
from skvbem.estimators.base import MAX_ITER, MAX_MEMORY, SHARED_CONSTRAINTS, TOL, has_posterior
from skvbem.estimators.linear_dynamical_system.kind import LDSKind
from skvbem.estimators.linear_dynamical_system.known_matrices import checked_matrices, system_of_matrices
from skvbem.estimators.linear_dynamical_system.structural import StructuralKind
from skvbem.estimators.sequences import (
    SequenceEstimator,
    check_forecast,
    check_output,
    check_steps,
    drawn_sequences,
    paths_ahead,
    steps_of_question,
    with_times,
)
from skvbem.estimators.two_kinds import TwoKinds
from skvbem.fitted.fills import check_fill
from skvbem.fitted.state_space import LDSForecast, Matrices
from skvbem.fitted.structural import BlockTrack
from skvbem.fitting.fit import generator_of
from skvbem.reading.inputs import InputReading, inputs_of_steps, with_inputs_ahead


def has_blocks(estimator) -> bool:
    """True if states are those of blocks; an AttributeError says what it takes."""
    if estimator.blocks is None:
        raise AttributeError(
            f"decompose of {type(estimator).__name__} needs 'blocks', such as [Trend(), Season(12)] of "
            "skvbem.structural. Free states are no parts that have a meaning of their own."
        )
    return True


@share_texts
class VBLinearDynamicalSystem(TwoKinds, SequenceEstimator):
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
    blocks : list of blocks, default=None
        What columns are sums of, by `skvbem.structural`: levels, trends, seasons, cycles and autoregressions, such as
        ``[Trend(), Season(12)]``. Each column has blocks of its own. States, and how they move, are then those of the
        blocks, in the units of the data, and only variances of noises, and coefficients of an autoregression, are
        learned. See :doc:`/user_guide/structural`.
    state_scale_prior : float, default=1.0
        Scale of the half-Cauchy distributions of standard deviations of noises of blocks, in units of the root mean
        square change of the column from a step to the next.
    transition_precision_prior : float, default=None
        Precision, about 0, of what takes states and inputs to the next states, for inputs of mean square 1. By default
        `n_components`, under which states neither grow nor die within a step or two. With `blocks` that of coefficients
        of an `Autoregression`, in units of its noise over the mean square change of the column, by default 1.
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
    %(method, map_basis)s
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
    %(acceleration, missing_values)s
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
        C, in the units of the data. States come by the variance of columns that they explain, the most first, and the
        largest standardized loading of each is positive. They are uncorrelated over the steps seen, but with "ard".
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
    state_deviation_ : dict
        With `blocks`, standard deviations of their noises by name, (n_features,) each, in the units of the data.
    autoregression_ : ndarray of shape (n_features, order)
        With an `Autoregression` among `blocks`, its coefficients, of the last value first.
    n_components_ : int
        States that were not taken away.
    spectral_radius_ : float
        Largest absolute value of an eigenvalue of A; above 1 states grow without limit.
    %(lower_bound_, log_posterior_, lower_bounds_)s
    restarts_ : Restarts
        Where every start ended.
    %(n_iter_, converged_)s
    n_samples_ : float
        Time steps with an observed cell, each as often as its sequence counts.
    %(n_free_parameters_, n_features_in_, feature_names_in_)s

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

    _kinds = LDSKind(), StructuralKind()
    _chosen_by = "blocks"

    _parameter_constraints: ClassVar[dict] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "blocks": "no_validation",
        "state_scale_prior": [Interval(Real, 0, None, closed="neither")],
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
        **SHARED_CONSTRAINTS,
    }

    def __init__(
        self,
        n_components=1,
        *,
        blocks=None,
        state_scale_prior=1.0,
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

    @classmethod
    def from_parameters(
        cls,
        transition,
        loadings,
        noise_variance,
        *,
        offset=None,
        input=None,
        output_input=None,
        initial_mean=None,
        initial_covariance=None,
        columns=None,
        **params,
    ):
        r"""The system of known matrices, which filters, smooths, forecasts and draws without a fit.

        States follow :math:`x_t = A x_{t-1} + B u_t + w_t` with :math:`w_t \sim N(0, I)`, columns
        :math:`y_t = C x_t + c + D v_t + e_t` with independent noise. States whose covariance of :math:`w_t` is
        :math:`Q = L L^\top` are L times those of the system :math:`L^{-1} A L`, :math:`L^{-1} B`, :math:`C L`.

        Parameters
        ----------
        transition : array-like of shape (n_components, n_components)
            A.
        loadings : array-like of shape (n_features, n_components)
            C, in the units of the columns.
        noise_variance : array-like of shape (n_features,)
            Variances of the noise, > 0.
        offset : array-like of shape (n_features,), default=None
            c; 0 by default.
        input : array-like of shape (n_components, n_inputs), default=None
            B; no inputs by default.
        output_input : array-like of shape (n_features, n_output_inputs), default=None
            D; no such inputs by default.
        initial_mean : array-like of shape (n_components,), default=None
            Mean of first states; 0 by default.
        initial_covariance : array-like of shape (n_components, n_components), default=None
            Their covariance; the identity by default.
        columns : list of str, default=None
            Names of the columns; by default they have none.
        **params
            Other parameters of the class.

        Returns
        -------
        VBLinearDynamicalSystem

        Raises
        ------
        ValueError
            If an array has another shape, is not finite, or is no variance or covariance; the message names it.

        Examples
        --------
        The level of the Nile, with the variances of Durbin and Koopman: 1469.1 of its moves, 15099 of the noise.

        >>> from skvbem import VBLinearDynamicalSystem
        >>> move = 1469.1**0.5
        >>> first = [[1e7 / move**2]]
        >>> level = VBLinearDynamicalSystem.from_parameters([[1.0]], [[move]], [15099.0], initial_covariance=first)
        >>> states = level.filter([[1120.0], [1160.0], [963.0]])
        >>> (move * states).round(1).ravel().tolist()
        [1118.3, 1140.1, 1072.3]
        """
        given = (transition, input, loadings, offset, output_input, noise_variance, initial_mean, initial_covariance)
        matrices = checked_matrices(Matrices(*given))
        return system_of_matrices(cls(len(matrices.transition), **params), matrices, columns)

    # Fitting ----------------------------------------------------------------------------------------------------------

    def fit(
        self, X, y=None, sample_weight=None, sequence_id=None, lengths=None, inputs=None, output_inputs=None, time=None
    ):
        """Fit the model to sequences.

        A fit that raises or is interrupted leaves the estimator as it was before.

        Parameters
        ----------
        X : list of tables, or array-like, pandas or polars DataFrame of shape (n_rows, n_features)
            Measurements; NaN, None and NA are missing cells.
        %(y)s
        sample_weight : array-like of shape (n_sequences,) or (n_rows,), default=None
            How often each sequence counts: of a list an item for each sequence, of rows the same for all rows of one.
        %(fit.sequence_id, fit.lengths)s
        inputs : array-like of shape (n_rows, n_inputs), or list of these, default=None
            What moves states besides the states of the step before; the input of a first step is not used.
        output_inputs : array-like of shape (n_rows, n_output_inputs), or list of these, default=None
            What columns depend on besides the states of their step. With steps missing between rows, both are pandas
            DataFrames with an index of dates that has all steps.
        %(fit.time)s

        Returns
        -------
        %(self)s

        Raises
        ------
        %(fit.ValueError)s
        """
        return self._fit(X, y, sample_weight, **_where(sequence_id, lengths, inputs, output_inputs, time))

    @available_if(has_posterior)
    def partial_fit(
        self, X, y=None, sample_weight=None, sequence_id=None, lengths=None, inputs=None, output_inputs=None, time=None
    ):
        """Update the posterior with a batch of whole sequences, whose prior is the last posterior [Beal (2.114)].

        `batch_lower_bound_` bounds the log probability of this batch given the approximate past.

        Parameters
        ----------
        X : list of tables, or table
            The first batch is fitted as by `fit`: it fixes columns and units.
        %(y, inputs.sample_weight)s

        Returns
        -------
        %(self)s
        """
        return self._partial_fit(X, y, sample_weight, **_where(sequence_id, lengths, inputs, output_inputs, time))

    @property
    def _n_features_out(self) -> int:
        return self._fitted_.model.n_states

    # Asking -----------------------------------------------------------------------------------------------------------

    def transform(
        self, X, sequence_id=None, lengths=None, inputs=None, output_inputs=None, time=None, *, return_cov=False
    ):
        """Means of the states of each step given its whole sequence (smoothed), at the published parameters.

        Parameters
        ----------
        %(sequences.X, inputs.sequence_id, return_cov)s

        Returns
        -------
        %(states)s
        """
        check_flag("return_cov", "transform", return_cov)
        sequences = self._kind.located(self, X, **_where(sequence_id, lengths, inputs, output_inputs, time))
        check_output(self, sequences)
        fitted, reading, data = steps_of_question(self, sequences)
        return _given(reading, fitted.smoothed(data, fitted.natural("mean")), return_cov)

    def fit_transform(
        self, X, y=None, sample_weight=None, sequence_id=None, lengths=None, inputs=None, output_inputs=None, time=None
    ):
        """Fit, then return what `transform` says of the same sequences.

        %(sequences.X, y, inputs.sample_weight -> ndarray of shape (n_rows, n_components), or list of these)s
        """
        where = _where(sequence_id, lengths, inputs, output_inputs, time)
        return self.fit(X, y, sample_weight, **where).transform(X, **where)

    def fit_predict(
        self, X, y=None, sample_weight=None, sequence_id=None, lengths=None, inputs=None, output_inputs=None, time=None
    ):
        """Fit, then return what `predict` says of the same sequences.

        %(sequences.X, y, inputs.sample_weight -> ndarray of shape (n_rows, n_components), or list of these)s
        """
        where = _where(sequence_id, lengths, inputs, output_inputs, time)
        sequences = self._kind.located(self, X, is_fit=True, **where)
        return self.fit(sequences, y, sample_weight).predict(sequences)

    def predict(self, X, sequence_id=None, lengths=None, inputs=None, output_inputs=None, time=None):
        """The most probable states of each sequence together, which are their means: those of `transform`.

        %(sequences.X, inputs.sequence_id -> ndarray of shape (n_rows, n_components), or list of these)s
        """
        fitted, reading, data = steps_of_question(self, X, **_where(sequence_id, lengths, inputs, output_inputs, time))
        return _given(reading, fitted.smoothed(data, fitted.natural("mean")), False)

    def filter(
        self, X, sequence_id=None, lengths=None, inputs=None, output_inputs=None, time=None, *, return_cov=False
    ):
        """Means of the states of each step given its sequence up to this step, at the published parameters.

        Parameters
        ----------
        %(sequences.X, inputs.sequence_id, return_cov)s

        Returns
        -------
        %(states)s
        """
        check_flag("return_cov", "filter", return_cov)
        fitted, reading, data = steps_of_question(self, X, **_where(sequence_id, lengths, inputs, output_inputs, time))
        return _given(reading, fitted.filtered(data, fitted.natural("mean")), return_cov)

    @available_if(has_blocks)
    def decompose(self, X, sequence_id=None, lengths=None, inputs=None, output_inputs=None, time=None):
        """The part of each column that each block is, given whole sequences, at the published parameters.

        Means of all blocks, with offsets and effects of output inputs, sum to the expected columns. The method is there
        with `blocks` alone.

        Parameters
        ----------
        %(sequences.X, inputs.sequence_id)s

        Returns
        -------
        dict of str to BlockTrack
            Blocks by name, such as "level" or "season of 12", with `mean` and `deviation` in the units of the data:
            arrays of shape (n_rows, n_features), or lists of these where X is a list.

        Examples
        --------
        >>> import numpy as np
        >>> from skvbem import VBLinearDynamicalSystem
        >>> from skvbem.structural import Level, Season
        >>> months = np.arange(96)
        >>> X = (20 + np.cos(2 * np.pi * months / 12))[:, None]
        >>> model = VBLinearDynamicalSystem(blocks=[Level(), Season(12)], random_state=0).fit(X)
        >>> parts = model.decompose(X)
        >>> {name: parts[name].mean[:3].ravel().round(1).tolist() for name in parts}
        {'level': [20.0, 20.0, 20.0], 'season of 12': [1.0, 0.9, 0.5]}
        """
        fitted, reading, data = steps_of_question(self, X, **_where(sequence_id, lengths, inputs, output_inputs, time))
        given, tracks = reading.sequences.as_given, fitted.blocks(data, fitted.natural("mean"))
        return {
            name: BlockTrack(given(track.mean), given(track.deviation))
            for name, track in zip(fitted.model.design.block_names, tracks)
        }

    def score_samples(
        self, X, sequence_id=None, lengths=None, inputs=None, output_inputs=None, time=None, *, return_error=False
    ):
        """Log predictive density of each sequence, nats, what is missing integrated out.

        After VB it is the density that the `predictive` parameter names.

        Parameters
        ----------
        %(sequences.X, inputs.sequence_id, return_error)s

        Returns
        -------
        %(scores)s
        """
        check_flag("return_error", "score_samples", return_error)
        fitted, _, data = steps_of_question(self, X, **_where(sequence_id, lengths, inputs, output_inputs, time))
        scores, errors = fitted.log_predictive(data, self.predictive, self.n_draws)
        return (scores, errors) if return_error else scores

    def score(
        self, X, y=None, sample_weight=None, sequence_id=None, lengths=None, inputs=None, output_inputs=None, time=None
    ):
        """Log predictive density of all sequences over their number of time steps, nats a step.

        %(sequences.X, y, inputs.sample_weight -> float)s
        """
        sequences = self._kind.located(self, X, **_where(sequence_id, lengths, inputs, output_inputs, time))
        return self._score(sequences, y, sample_weight)

    def forecast(
        self, X, n_steps=1, sequence_id=None, lengths=None, inputs=None, output_inputs=None, time=None, *,
        future_inputs=None, future_output_inputs=None, level=0.95,
    ) -> LDSForecast:  # fmt: skip
        """Forecasts of the steps after the end of each sequence, with intervals that account for uncertain parameters.

        Under VB means, variances and intervals are those of a mixture over `n_draws` draws of the parameters, or at
        their means where `predictive` is not "average".

        Parameters
        ----------
        %(sequences.X, forecast.n_steps, inputs.sequence_id)s
        future_inputs, future_output_inputs : array-like of shape (n_sequences, n_steps, n_inputs), default=None
            Inputs of the steps to come; of shape (n_steps, n_inputs) the same for all sequences.
        level : float, default=0.95
            Mass of the intervals.

        Returns
        -------
        LDSForecast
        """
        check_forecast(X, n_steps, level)
        fitted, reading, data = steps_of_question(self, X, **_where(sequence_id, lengths, inputs, output_inputs, time))
        n, p, n_draws = len(reading.lengths), fitted.model.n_columns, self.n_draws
        self._check_memory(
            f"A forecast of {n_steps:.3g} steps for {n} sequences", 3 * n * int(n_steps) * p * n_draws, "fewer steps"
        )
        given = (future_inputs, "future_inputs", reading.inputs), (
            future_output_inputs, "future_output_inputs", reading.output_inputs,
        )  # fmt: skip
        future = tuple(
            inputs_of_steps(values, name, (n, int(n_steps), past.shape[1]), self) for values, name, past in given
        )
        naturals = list(fitted.draws_to_average(self.predictive, n_draws))
        ahead = fitted.forecast(data, int(n_steps), future, float(level), naturals)
        return with_times(ahead, reading.sequences, int(n_steps))

    def sample_ahead(
        self, X, n_steps=1, n_paths=100, sequence_id=None, lengths=None, inputs=None, output_inputs=None, time=None, *,
        future_inputs=None, future_output_inputs=None, random_state=None,
    ):  # fmt: skip
        """Steps after the end of each sequence, drawn together: for sums and largest values of steps to come.

        Each path has parameters of its own, drawn from q(theta), the same for all sequences.

        Parameters
        ----------
        %(sequences.X, forecast.n_steps)s
        n_paths : int, default=100
            How many paths.
        %(inputs.sequence_id)s
        future_inputs, future_output_inputs : array-like of shape (n_sequences, n_steps, n_inputs), default=None
            As in `forecast`.
        %(sample.random_state)s

        Returns
        -------
        ndarray of shape (n_paths, n_sequences, n_steps, n_features)
            Columns as in X.

        Examples
        --------
        >>> from skvbem import VBLinearDynamicalSystem
        >>> from skvbem.datasets import load_nile
        >>> flow = load_nile().data
        >>> model = VBLinearDynamicalSystem(1, random_state=0).fit(flow)
        >>> paths = model.sample_ahead(flow, n_steps=10, n_paths=200)
        >>> means = paths.mean(axis=2)  # of the next ten years
        >>> paths.shape, bool(700 < means.mean() < 1000)
        ((200, 1, 10, 1), True)
        """
        check_forecast(X, n_steps, 0.5)
        sequences = self._kind.located(self, X, **_where(sequence_id, lengths, inputs, output_inputs, time))
        given = (future_inputs, "future_inputs", sequences.inputs), (
            future_output_inputs, "future_output_inputs", sequences.output_inputs,
        )  # fmt: skip
        shape = len(sequences.lengths), int(n_steps)
        ahead = tuple(inputs_of_steps(values, name, (*shape, past.shape[1]), self) for values, name, past in given)
        fitted, rng = self.fitted, generator_of(self, random_state)

        def drawn(reading, data):
            return list(fitted.drawn_cells(reading, rng).T)

        return paths_ahead(self, with_inputs_ahead(sequences, ahead), int(n_steps), n_paths, drawn)

    def impute(
        self,
        X,
        sequence_id=None,
        lengths=None,
        inputs=None,
        output_inputs=None,
        time=None,
        *,
        return_variance=False,
        fill="auto",
        random_state=None,
    ):
        """X with missing cells filled by their means given the whole sequence, averaged as forecasts are, or by draws.

        Parameters
        ----------
        %(sequences.X, inputs.sequence_id)s
        return_variance : bool, default=False
            Whether to return the variances of the imputed cells, too.
        fill : {"auto", "cells", "joint", "draw"}, default="auto"
            "draw": cells are drawn together given the whole sequence, under parameters that are drawn once for all
            sequences. Several seeds make several completed tables (multiple imputation). All others: means.
        %(impute.random_state)s

        Returns
        -------
        X : ndarray or DataFrame, or list of these
            In its own container; observed cells are untouched.
        variance : ndarray of shape (n_rows, n_features), or list of these
            If asked for; 0 where a cell is observed.
        """
        check_flag("return_variance", "impute", return_variance)
        check_fill(fill)
        fitted, reading, data = steps_of_question(self, X, **_where(sequence_id, lengths, inputs, output_inputs, time))
        sequences, missing = reading.sequences, np.isnan(reading.values[0])
        naturals = list(fitted.draws_to_average(self.predictive, self.n_draws))
        means, variance = fitted.imputed(data, reading.output_inputs, naturals)
        variance = np.where(missing, variance, 0.0)
        if fill == "draw":
            means = fitted.drawn_cells(reading, generator_of(self, random_state))
        completed = sequences.completed(missing, list(means.T))
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
        %(sample.random_state)s

        Returns
        -------
        X : ndarray or DataFrame of shape (n_steps, n_features), or list of these
            In the container of the X that was fitted, with its names.
        states : ndarray of shape (n_steps, n_components), or list of these
            Lists where `lengths` is array-like.
        """
        check_is_fitted(self)
        steps = check_steps(lengths)
        fitted, n = self._fitted_, sum(steps.tolist())
        model = fitted.model
        self._check_memory(f"{n:.3g} steps drawn", n * (model.n_columns + model.n_states), "fewer at a time")
        rng = generator_of(self, random_state)
        given = (inputs, "inputs", model.n_inputs), (output_inputs, "output_inputs", model.n_output_inputs - 1)
        of_steps = (inputs_of_steps(values, name, (1, n, width), self)[0] for values, name, width in given)
        drawn, states = fitted.sample(steps.astype(np.int64), *of_steps, rng)
        X = drawn_sequences(self, list(drawn.T), steps)
        return (X[0], states) if np.ndim(lengths) == 0 else (X, np.split(states, np.cumsum(steps)[:-1]))


def _where(sequence_id, lengths, inputs, output_inputs, time) -> dict[str, Any]:
    """Arguments beside X, by name."""
    return {
        "sequence_id": sequence_id,
        "lengths": lengths,
        "inputs": inputs,
        "output_inputs": output_inputs,
        "time": time,
    }


def _given(reading: InputReading, states: Any, return_cov: bool):
    """States as the user has rows, with their covariances if asked for."""
    mean = reading.sequences.as_given(states.mean)
    return (mean, reading.sequences.as_given(states.covariance)) if return_cov else mean


__all__ = ["VBLinearDynamicalSystem"]
