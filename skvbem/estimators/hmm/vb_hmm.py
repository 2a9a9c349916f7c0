"""`VBHMM`: Bayesian hidden Markov models for sequences of any kind of columns."""

from __future__ import annotations

from numbers import Integral, Real
from typing import ClassVar

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skvbem._arguments import check_choice, check_count, check_flag, check_level, is_list
from skvbem._compat import Interval, StrOptions, keep_parameters
from skvbem._docstrings import share_texts
from skvbem.errors import warn_of_impossible
from skvbem.estimators.base import MAX_ITER, MAX_MEMORY, SHARED_CONSTRAINTS, TOL, has_posterior
from skvbem.estimators.given_parameters import fit_of_parameters, given_distributions
from skvbem.estimators.hmm.covariates import has_covariates
from skvbem.estimators.hmm.durations import check_durations, given_next_states, has_durations, point_of_stays
from skvbem.estimators.hmm.kind import HMMKind
from skvbem.estimators.labels import COLUMN_CONSTRAINTS
from skvbem.estimators.sequences import (
    SequenceEstimator,
    check_forecast,
    check_steps,
    drawn_sequences,
    paths_ahead,
    steps_of_question,
    with_times,
)
from skvbem.fitted.durations import durations_of
from skvbem.fitted.fills import check_fill
from skvbem.fitted.hmm import FittedHMM, have_intervals
from skvbem.fitting.fit import generator_of
from skvbem.models.hmm.left_out import states_given_earlier, states_given_others
from skvbem.models.hmm.model import HMM
from skvbem.models.sequences import HMMData
from skvbem.optima.tuning import EFFORTS
from skvbem.reading.tables import listed, show
from skvbem.reports.long_run import long_run
from skvbem.reports.pseudo_residuals import pseudo_residuals


@share_texts
class VBHMM(SequenceEstimator):
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
    n_components : int or "auto", default=1
        Number of states. Empty ones are kept; see `counts_`. "auto" splits, joins and drops states as long as that
        raises `lower_bound_`, which needs ``method="vb"``; see `n_components_` and `moves_`.
    emission : str, emission, mapping or list, default="auto"
        What the columns hold, and priors of it, as in `VBMixture`. "auto" makes one Gaussian group of all columns of
        numbers, and categories of strings, booleans and pandas categories. An object of `skvbem.emissions`, such as
        ``Poisson(shape_prior=2.0)``, takes all columns, and so does the name of one, with default priors. A mapping
        gives each name its columns, a list of (name, emission, columns) names groups; both may say what to do with the
        remainder.
    covariance_type : {"full", "tied", "diag", "spherical"}, default="full"
        For a Gaussian group given by name, or "auto": a covariance matrix for each state, one for all, a variance for
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
    transitions : Softmax, default=None
        Covariates that drive transitions, such as ``Softmax(["temperature"])``: from each state the logits of the next
        state are linear in them. They are given, and in X at every step; `at` says whether those of the step that is
        left count, or of the step that is arrived at. In place of `transmat_prior`. See
        :doc:`/user_guide/driven_transitions`.
    start : Softmax, default=None
        Covariates, at the first step of each sequence, that drive its state. In place of `startprob_prior`.
    durations : "geometric", Hazards or Stages, default="geometric"
        How long a stay in a state lasts. "geometric": a state is left with the same probability at every step.
        `durations.Hazards` has one for each age of the stay, `durations.Stages` equal stages. `transmat_prior` then is
        that of the next state, and of leaving where they say so. See :doc:`/user_guide/durations`.
    learn_prior : bool, default=False
        Whether `startprob_prior` and `transmat_prior` are each multiplied by the number, from 0.001 to 1000, that
        raises the bound most [Beal (2.79)]; the bound is then one given that prior. Needs ``method="vb"``.
    categories : "auto" or mapping of column to array-like, default="auto"
        Levels of categorical columns by name, which of an array is x0, x1, ...; see `VBDiscreteDAG`.
    %(method, map_basis)s
    predictive : {"mean", "vb", "average"}, default="mean"
        What takes the place of the average over q(theta) in probabilities of sequences, after ``method="vb"``: the
        average has no closed form. "mean" takes the published parameters, which are posterior means. "vb" takes the
        point of VB, :math:`e^{\langle\ln\theta\rangle}`, which gives a lower bound on the average. "average" takes
        `n_draws` draws. States are inferred at the published parameters, with "vb" at its point.
    n_draws : int, default=100
        Draws of ``predictive="average"``.
    %(n_init)s
    init : {"auto", "k-means++", "random"} or array-like of shape (n_rows, n_components), default="auto"
        States start around rows that lie apart ("k-means++"), or around any rows ("random"), each start more blurred
        than the last, and every start is run to the end. "auto" has starts of both kinds by turns; they race, and
        moves join them, as in `VBMixture`. An array gives probabilities of the states of all rows to start from; for a
        list of sequences it may be a list of arrays.
    %(search_effort, max_iter, tol, acceleration, handle_unknown, missing_values)s
    max_memory : float, default=4e9
        Most bytes that the parameters of all states in all starts may take, what a fit holds of the steps beside X, and
        steps that are drawn or forecast.
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
        Posterior means (VB) or the point found. Where covariates drive them, shares of the transitions in X that are
        expected from each state. With `durations`, probabilities of the next state, which is another.
    startprob_concentration_, transmat_concentration_ : ndarray
        Concentrations of the posterior (``method="vb"``), 0 where a mask rules a transition out.
    startprob_prior_, transmat_prior_ : ndarray
        Concentrations of the prior as it was resolved, or learned.
    counts_ : ndarray of float, shape (n_components,)
        Expected steps in each state, those after the last observation of a sequence left out.
    component_names_ : ndarray of object, shape (n_components,)
        What states are called by the `labels` of `fit`, if it was given any; their numbers where none calls them.
    latent_states_ : dict of str to LatentStates
        Under "state" the states in use, empty ones, and duplicates, which neither rows nor the ways on from them tell
        apart.
    %(means_)s
    mean_precision_, degrees_of_freedom_ : ndarray
        For the posterior (``method="vb"``), if there is a Gaussian group.
    mean_prior_, mean_precision_prior_, degrees_of_freedom_prior_, covariance_prior_
        The prior of a Gaussian group as it was resolved, hidden hyperparameters as they are expected.
    %(parameters_, lower_bound_)s
    batch_lower_bound_ : float
        After `partial_fit`, the bound of the last batch given those before.
    %(log_posterior_, lower_bounds_, restarts_, n_iter_, converged_)s
    n_samples_ : float
        Time steps with an observed cell, each as often as its sequence counts: the n of BIC.
    n_free_parameters_ : int
    n_components_ : int
    moves_ : list of Move
        With ``n_components="auto"``, and where factors are counted (``FactorGaussian("auto")``), the moves that raised
        the bound: kind, number of states, bound and numbers of factors after each.
    n_factors_ : ndarray of int, shape (n_components,)
        Factors of each state, if there is a group with factors; where there are several, by group.
    %(groups_, categories_, n_features_in_, feature_names_in_)s

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
    >>> VBHMM("auto", emission="poisson", random_state=0).fit(X).n_components_
    3
    """

    _kind = HMMKind()

    _parameter_constraints: ClassVar[dict] = {
        "n_components": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        **SHARED_CONSTRAINTS,
        **COLUMN_CONSTRAINTS,
        "startprob_prior": "no_validation",
        "transmat_prior": "no_validation",
        "sticky": [Interval(Real, 0, 1e300, closed="both")],
        "transmat_mask": "no_validation",
        "transitions": "no_validation",
        "start": "no_validation",
        "durations": "no_validation",
        "learn_prior": ["boolean"],
        "predictive": [StrOptions({"mean", "vb", "average"})],
        "n_draws": [Interval(Integral, 1, None, closed="left")],
        "init": [StrOptions({"auto", "k-means++", "random"}), "array-like"],
        "search_effort": [StrOptions({*EFFORTS})],
    }

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
        transitions=None,
        start=None,
        durations="geometric",
        learn_prior=False,
        categories="auto",
        method="vb",
        map_basis="natural",
        predictive="mean",
        n_draws=100,
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
    def from_parameters(cls, startprob, transmat, parameters, *, emission, columns=None, stays=None, **params):
        """A model whose parameters are known, ready to decode, score, forecast, impute and sample without a fit.

        Nothing is estimated: every answer is that at these parameters. Bounds, scores of the evidence and
        intervals need data; they are refused with the reason. `fit` forgets the parameters, or goes on from them with
        ``warm_start=True``.

        Parameters
        ----------
        startprob : array-like of shape (n_components,)
            Probabilities of the first state. 0 is allowed here and below: a path that needs it is impossible.
        transmat : array-like of shape (n_components, n_components)
            Rows of probabilities of the next state; with `durations` it is another, and the diagonal holds 0.
        parameters : mapping
            Parameters of the emission, as in `VBMixture.from_parameters`.
        emission : str, emission, mapping or list
            What the columns hold, but "auto", which asks data.
        columns : sequence of str or int, default=None
            Names of all columns, or how many there are; needed where `emission` shares them out.
        stays : mapping, default=None
            With `durations`, and with them alone, when stays end, as ``parameters_["chain"]`` of a fit has it.
            `Hazards` have "hazards" (n_components, n_bins), the probability that a stay ends by bin of ages, `Stages`
            "stage_ends" (n_components,), the probability that a stage ends. ``first="any"`` adds "first_ages"
            (n_components, n_ages), rows of probabilities of the age, or stage, in which a sequence begins.
        **params
            Other parameters of `VBHMM`, as `covariance_type`; of categories other than 0, 1, ... the `categories`.

        Returns
        -------
        VBHMM

        Raises
        ------
        ValueError
            If rows do not sum to one, a covariance is not positive definite, or shapes do not belong together; if
            `durations` come without `stays`, or these without those.

        Examples
        --------
        An honest die and a loaded one:

        >>> import numpy as np
        >>> from skvbem import VBHMM
        >>> faces = {"probabilities": [[1 / 6] * 6, [0.1] * 5 + [0.5]]}
        >>> change = [[0.95, 0.05], [0.1, 0.9]]
        >>> of_columns = {"emission": "categorical", "categories": {"x0": range(1, 7)}}
        >>> dice = VBHMM.from_parameters([1.0, 0.0], change, faces, **of_columns)
        >>> states, log_probability = dice.decode(np.array([[3, 1, 6, 6, 5, 6, 6, 6, 6, 6]]).T)
        >>> states.tolist()
        [0, 0, 1, 1, 1, 1, 1, 1, 1, 1]

        The same dice, of which the loaded one is rolled exactly three times in a row:

        >>> from skvbem.durations import Hazards
        >>> three = {"hazards": [[0.05, 0.05, 0.05], [0.0, 0.0, 1.0]]}
        >>> family = Hazards(3, bins="single")
        >>> dice = VBHMM.from_parameters([1, 0], [[0, 1], [1, 0]], faces, durations=family, stays=three, **of_columns)
        >>> dice.decode(np.array([[3, 1, 2, 6, 6, 6, 4, 1, 5, 2]]).T)[0].tolist()
        [0, 0, 0, 1, 1, 1, 0, 0, 0, 0]
        """
        owner = cls.__name__
        startprob = given_distributions(owner, "startprob", startprob, 1)
        n = len(startprob)
        model = cls(n, emission=emission, **params)
        if has_covariates(model):
            raise ValueError(
                f"from_parameters of {owner} takes no 'transitions' and no 'start': coefficients are found by a fit. "
                "Leave them out, or fit."
            )
        if has_durations(model):
            check_durations(model)
            transmat = given_next_states(owner, transmat)
        elif stays is not None:
            raise ValueError(
                f"'stays' of {owner} go with 'durations', such as Hazards(8). Give these, or leave them out."
            )
        else:
            transmat = given_distributions(owner, "transmat", transmat, 2)
        if transmat.shape != (n, n):
            raise ValueError(
                f"The 'transmat' of {owner} must have the shape {(n, n)}, as there are {n} states in 'startprob'. Got "
                f"{transmat.shape} instead."
            )

        def point_of(chain: HMM) -> tuple:
            for name, rows, probabilities in (
                ("startprob", chain.initial, startprob[None]),
                ("transmat", chain.transitions, transmat),
            ):
                if (probabilities[~rows.allowed] > 0).any():
                    raise ValueError(f"The {name!r} of {owner} is > 0 somewhere where a prior or mask rules it out.")
            return chain.initial.statistics(startprob[None]), point_of_stays(owner, chain.transitions, transmat, stays)

        return fit_of_parameters(model, parameters, columns, point_of)

    # Fitting ----------------------------------------------------------------------------------------------------------

    def fit(self, X, y=None, sample_weight=None, sequence_id=None, lengths=None, time=None, *, labels=None):
        """Fit the model to sequences.

        A fit that raises or is interrupted leaves the estimator as it was before.

        Parameters
        ----------
        X : list of tables, or array-like, pandas or polars DataFrame of shape (n_rows, n_features)
            NaN, None and NA are missing cells.
        %(y)s
        sample_weight : array-like of shape (n_sequences,) or (n_rows,), default=None
            How often each sequence counts: of a list an item for each sequence, of rows the same for all rows of one.
            Sequences of weight 0 are as if absent.
        %(fit.sequence_id, fit.lengths, fit.time)s
        labels : array-like of shape (n_rows,), or list of such, default=None
            States of steps, as far as they are known. Labels are names, which states get in increasing order (a pandas
            Categorical has its own order), or numbers 0, 1, ... of states. None, NaN and NA, and -1 among numbers,
            stand for a state that is not known. A list of sequences has a list with an array for each. States without a
            name come after those with one. The evidence is then the evidence of X and of the known labels.
            `log_evidence`, draws and reports need the labels again.

        Returns
        -------
        %(self)s

        Raises
        ------
        ValueError
            If X, `labels` or a parameter is not what it should be; the message names which and what would be right.
        TooLargeError
            If states and starts take more than `max_memory`.
        """
        return self._fit(X, y, sample_weight, sequence_id=sequence_id, lengths=lengths, time=time, labels=labels)

    @available_if(has_posterior)
    def partial_fit(self, X, y=None, sample_weight=None, sequence_id=None, lengths=None, time=None):
        """Update the posterior with a batch of whole sequences, whose prior is the last posterior [Beal (2.114)].

        Exact with one state on complete data, whatever the batches. `batch_lower_bound_` bounds the log probability of
        this batch given the approximate past; the sum over batches is no bound on the evidence of all data, so
        `lower_bound_`, `lower_bounds_` and `restarts_` go after the first batch. Only with ``method="vb"``.

        Parameters
        ----------
        X : list of tables, or array-like, pandas or polars DataFrame of shape (n_rows, n_features)
            The first batch is fitted as by `fit`: it fixes columns, categories, units and the priors taken from data.
        %(y, sequences.sample_weight)s

        Returns
        -------
        %(self)s
        """
        if has_covariates(self):
            raise ValueError(
                "A batch has covariates of its own, and partial_fit of VBHMM has no 'transitions' and no 'start'. Fit "
                "all sequences at once."
            )
        return self._partial_fit(X, y, sample_weight, sequence_id=sequence_id, lengths=lengths, time=time)

    # Asking -----------------------------------------------------------------------------------------------------------

    def score_samples(self, X, sequence_id=None, lengths=None, time=None, *, return_error=False):
        """Log predictive probability (density) of each sequence, nats, what is missing summed out.

        After VB it is the probability that the `predictive` parameter names. An impossible sequence scores -inf. By
        maximum likelihood such a sequence needs a transition or a category of probability 0; probabilities below 5e-32
        count as 0. Counts in states that have seen none cost up to 691 nats each.

        Parameters
        ----------
        %(sequences.X, sequence_id, return_error)s

        Returns
        -------
        %(scores)s
        """
        check_flag("return_error", "score_samples", return_error)
        fitted, _, data = steps_of_question(self, X, sequence_id=sequence_id, lengths=lengths, time=time)
        scores, errors = fitted.log_predictive(data, self.predictive, self.n_draws)
        return (scores, errors) if return_error else scores

    def decode(self, X, sequence_id=None, lengths=None, time=None):
        """The most probable path of each sequence (Viterbi), and its log probability.

        %(sequences.X, sequence_id -> states : ndarray of int, shape (n_rows,), or list of these)s
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
        >>> log_probability.round(1).tolist()
        [-2.8, -2.4, -3.0]
        """
        fitted, reading, data = steps_of_question(self, X, sequence_id=sequence_id, lengths=lengths, time=time)
        states, log_joint = fitted.model.decoded(fitted.natural(self.predictive), data)
        warn_of_impossible(np.flatnonzero(np.isneginf(log_joint)), len(log_joint), "arbitrary paths", "sequences")
        return reading.sequences.as_given(states), log_joint

    def predict(self, X, sequence_id=None, lengths=None, time=None):
        """The states of each sequence's most probable path (Viterbi).

        %(sequences.X, sequence_id -> ndarray of int, shape (n_rows,), or list of these)s
            Rows as they are in X; of a list of sequences an array for each.
        """
        return self.decode(X, sequence_id, lengths, time)[0]

    def predict_proba(self, X, sequence_id=None, lengths=None, time=None):
        """Probabilities of the states of each step given its whole sequence (smoothed).

        %(sequences.X, sequence_id -> ndarray of shape (n_rows, n_components), or list of these)s
            Steps of a sequence that is impossible under the fit get `counts_` over their sum.
        """
        fitted, reading, data = steps_of_question(self, X, sequence_id=sequence_id, lengths=lengths, time=time)
        return reading.sequences.as_given(self._smoothed(fitted, data))

    def _smoothed(self, fitted: FittedHMM, data: HMMData) -> np.ndarray:
        return fitted.possible(fitted.model.smoothed(fitted.natural(self.predictive), data), warns=True)

    def filter(self, X, sequence_id=None, lengths=None, time=None):
        """Probabilities of the states of each step given its sequence up to this step.

        %(sequences.X, sequence_id -> ndarray of shape (n_rows, n_components), or list of these)s
            From the first step on that is impossible under the fit, `counts_` over their sum.
        """
        fitted, reading, data = steps_of_question(self, X, sequence_id=sequence_id, lengths=lengths, time=time)
        return reading.sequences.as_given(self._filtered(fitted, data))

    def _filtered(self, fitted: FittedHMM, data: HMMData) -> np.ndarray:
        return fitted.possible(fitted.model.filtered(fitted.natural(self.predictive), data), warns=True)

    def forecast(self, X, n_steps=1, sequence_id=None, lengths=None, time=None, *, level=0.95, draws=None):
        """Forecasts of the steps after the end of each sequence, with intervals that account for uncertain parameters.

        States and expected values are those at the published parameters; of ``predictive="average"``, or with `draws`,
        they are averages over draws of the parameters. Intervals, and variances, under VB always are. Intervals of
        angles go round the circle, and zeros of their own may be an end. Intervals of columns that hang on their
        earlier values (`lags` of `Regression`) are quantiles of 4000 paths drawn.

        Parameters
        ----------
        %(sequences.X, forecast.n_steps, sequence_id)s
        level : float, default=0.95
            Mass of the intervals.
        draws : PosteriorDraws or BootstrapDraws, default=None
            What `sample_posterior` or `bootstrap` returned, to average over; by default `n_draws` draws from q(theta),
            which vary too little where states overlap, or of a point itself.

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

        Columns of numbers have intervals:

        >>> from skvbem.datasets import load_earthquakes
        >>> quakes = load_earthquakes().data
        >>> model = VBHMM(3, emission="poisson", random_state=0).fit(quakes)
        >>> ahead = model.forecast([quakes], n_steps=2, level=0.9)
        >>> ahead.lower["x0"].tolist(), ahead.upper["x0"].tolist()
        ([[8.0, 8.0]], [[26.0, 29.0]])
        """
        check_forecast(X, n_steps, level)
        fitted, reading, data = steps_of_question(self, X, sequence_id=sequence_id, lengths=lengths, time=time)
        fitted.groups.check_forecast()
        if fitted.model.has_ages and any(group.specification.lags for group in fitted.groups.groups):
            raise ValueError(
                f"forecast of {type(self).__name__} with 'durations' has no values of columns that hang on their "
                "earlier ones. Take an emission without 'lags', or leave 'durations' at 'geometric'."
            )
        levels = [len(of_column) for group in fitted.groups.groups for of_column in group.levels]
        naturals = self._drawn_to_average(fitted, draws)
        numbers = 2 * fitted.model.n_components + sum(levels) + len(fitted.groups.names) - len(levels)
        numbers += 2 * naturals.shape[1] * fitted.model.n_components
        self._check_memory(
            f"A forecast of {n_steps:.3g} steps for {len(reading.lengths)} sequences",
            len(reading.lengths) * int(n_steps) * numbers,
            "fewer steps",
        )
        last = np.cumsum(reading.lengths) - 1
        averages = draws is not None or (self.predictive == "average" and fitted.form.density)
        at = None if averages else fitted.natural(self.predictive)
        ahead = fitted.forecast(data, last, int(n_steps), float(level), naturals, at)
        return with_times(ahead, reading.sequences, int(n_steps))

    def sample_ahead(self, X, n_steps=1, n_paths=100, sequence_id=None, lengths=None, time=None, *, random_state=None):
        """Steps after the end of each sequence, drawn together: for sums and largest values of steps to come.

        Each path has parameters of its own, drawn from q(theta), the same for all sequences.

        Parameters
        ----------
        %(sequences.X, forecast.n_steps)s
        n_paths : int, default=100
            How many paths.
        %(sequence_id, sample.random_state)s

        Returns
        -------
        ndarray of shape (n_paths, n_sequences, n_steps, n_features)
            Columns as in X; objects where a column holds categories.

        Examples
        --------
        >>> import numpy as np
        >>> from skvbem import VBHMM
        >>> from skvbem.datasets import load_earthquakes
        >>> quakes = load_earthquakes().data
        >>> model = VBHMM(3, emission="poisson", random_state=0).fit(quakes)
        >>> paths = model.sample_ahead(quakes, n_steps=10, n_paths=200)
        >>> most = paths.max(axis=2)  # in one of the next ten years
        >>> paths.shape, bool(20 < np.median(most) < 35)
        ((200, 1, 10, 1), True)
        """
        check_forecast(X, n_steps, 0.5)
        where = {"sequence_id": sequence_id, "lengths": lengths, "time": time}
        sequences, rng = self._kind.located(self, X, **where).extended(int(n_steps)), generator_of(self, random_state)
        fitted = self.fitted
        fitted.groups.check_forecast()

        def drawn(reading, data):
            return fitted.groups.columns_of(fitted.drawn_steps(reading, data, rng))

        return paths_ahead(self, sequences, int(n_steps), n_paths, drawn)

    def _drawn_to_average(self, fitted: FittedHMM, draws) -> np.ndarray:
        """Natural parameters (n_cells, n_draws) that intervals of forecasts average over."""
        if draws is not None:
            return self._natural_of(draws, "forecast", fitted)
        if not fitted.form.density:
            return fitted.natural("mean")[:, None]
        if self.predictive != "average" and not have_intervals(fitted.groups):
            return np.empty((fitted.model.n_cells, 0))
        return fitted.draws(self.n_draws, fitted.rng_of_draws)

    def _natural_of(self, draws, method: str, fitted: FittedHMM) -> np.ndarray:
        """Natural parameters (n_cells, n_draws) of draws that a method of this estimator was given."""
        natural = getattr(draws, "natural", None)
        if natural is None or len(natural) != fitted.model.n_cells:
            raise ValueError(
                f"The 'draws' parameter of {method} must be what sample_posterior or bootstrap of this "
                f"{type(self).__name__} returned. Got {show(draws)} instead."
            )
        return natural

    def long_run(
        self, X=None, *, level=0.95, draws=None, sample_weight=None, sequence_id=None, lengths=None, time=None
    ):
        r"""Shares of states in the long run, and how many steps a stay in each lasts, with intervals.

        Shares are the stationary distribution :math:`\pi = \pi A` of the transitions. A stay in state k lasts
        :math:`1 / (1 - A_{kk})` steps on average, at the published `transmat_`. With `durations` a state's share is
        that of its stays times the steps that they last on average.

        Parameters
        ----------
        X : list of tables, or table, default=None
            The data of the fit. Without X, intervals after VB are those of q(theta), which are too narrow where states
            overlap; of a point there are none.
        %(interval.level)s
        draws : PosteriorDraws, BootstrapDraws or StandardErrors, default=None
            The source of intervals; by default as in `summary`.
        sample_weight : array-like of shape (n_sequences,), default=None
        sequence_id : array-like of shape (n_rows,), default=None
        lengths : array-like of int, default=None
        time : str, array-like, TimeAxis or False, default=None
            As in `fit`.

        Returns
        -------
        LongRun
            With `stationary` and `mean_stays`, (n_components,), and the ends of their intervals. It prints as a table.

        Raises
        ------
        ValueError
            If covariates drive the transitions, if the chain never leaves either of several sets of states, or X is
            other data than those of the fit.
        TypeError
            If `draws` are none.

        Examples
        --------
        >>> from skvbem import VBHMM
        >>> from skvbem.datasets import load_earthquakes
        >>> quakes = load_earthquakes().data
        >>> run = VBHMM(2, emission="poisson", random_state=0).fit(quakes).long_run(quakes)
        >>> run.stationary.round(2), run.mean_stays.round(1)  # years
        (array([0.38, 0.62]), array([ 6.9, 11.4]))
        >>> [end.round() for end in run.mean_stays_interval]
        [array([3., 5.]), array([20., 35.])]
        """
        where = {"sequence_id": sequence_id, "lengths": lengths, "time": time}
        return long_run(self, X, level=level, draws=draws, sample_weight=sample_weight, **where)

    def duration_distribution(self, state=None, n_steps=None, *, level=0.95, draws=None):
        """How long stays in states last: probabilities of each number of steps, means and quantiles, with intervals.

        Parameters
        ----------
        state : int or str, default=None
            Number or name of a state; by default all.
        n_steps : int, default=None
            Steps of the longest stay; by default few stays last longer.
        level : float, default=0.95
            Mass of the intervals.
        draws : PosteriorDraws or BootstrapDraws, default=None
            What `sample_posterior` or `bootstrap` returned; by default `n_draws` draws from q(theta), which vary too
            little where states overlap. Points of ML and MAP have no intervals without.

        Returns
        -------
        DurationDistribution

        Raises
        ------
        ValueError
            If covariates drive transitions, so that stays have no one distribution, or there is no such state.

        Examples
        --------
        >>> from skvbem import VBHMM
        >>> from skvbem.datasets import load_earthquakes
        >>> from skvbem.durations import Hazards
        >>> quakes = load_earthquakes().data
        >>> model = VBHMM(2, emission="poisson", durations=Hazards(16), random_state=0).fit(quakes)
        >>> stays = model.duration_distribution()
        >>> sorted(stays.means.round().tolist())
        [9.0, 15.0]
        """
        check_is_fitted(self)
        fitted, owner = self._fitted_, type(self).__name__
        check_level("duration_distribution", level)
        if not fitted.model.is_homogeneous:
            raise ValueError(
                f"Covariates drive transitions of this {owner}, so that stays have no one distribution. Predict states "
                "at covariates of interest."
            )
        if n_steps is not None:
            check_count("n_steps", "duration_distribution", n_steps)
        names = dict(enumerate(fitted.component_names.tolist()))
        if state is not None:
            at = [k for k, name in names.items() if state in (k, name)]
            if not at:
                raise ValueError(
                    f"The 'state' parameter of duration_distribution must be a state of this {owner}, one of "
                    f"{listed(map(show, names.values()))}. Got {show(state)} instead."
                )
            names = {at[0]: names[at[0]]}
        if draws is not None:
            naturals = self._natural_of(draws, "duration_distribution", fitted)
        elif fitted.form.density:
            naturals = fitted.draws(self.n_draws, fitted.rng_of_draws)
        else:
            naturals = np.empty((fitted.model.n_cells, 0))
        _, drawn, _ = fitted.model.prior.split(naturals)
        return durations_of(fitted.model.transitions, fitted.point[1], drawn, names, n_steps, level)

    def pseudo_residuals(
        self, X, sequence_id=None, lengths=None, time=None, *, kind="forecast", discrete="random", random_state=None
    ):
        """Pseudo-residuals of the cells of sequences, which are normal where the fit is right [ZM09].

        A cell has the probability that its column holds no more than it does, under the published parameters. Other
        columns of its step say nothing of it; other steps do.

        Parameters
        ----------
        %(sequences.X, sequence_id)s
        kind : {"forecast", "ordinary"}, default="forecast"
            "forecast": given the steps before; residuals are then independent, too. "ordinary": given all other steps
            of the sequence, for outliers.
        %(residuals.discrete)s
        %(residuals.random_state)s

        Returns
        -------
        PseudoResiduals
            With `normal` and `uniform`, (n_rows, n_columns), NaN where a cell is missing; rows as they are in X, those
            of a list of sequences one after the other.

        Raises
        ------
        ValueError
            If no column holds numbers, or `kind` or `discrete` is none of these.

        Examples
        --------
        >>> from skvbem import VBHMM
        >>> from skvbem.datasets import load_earthquakes
        >>> quakes = load_earthquakes().data
        >>> for k in (1, 3):
        ...     model = VBHMM(k, emission="poisson", random_state=0).fit(quakes)
        ...     print(k, model.pseudo_residuals(quakes).autocorrelations(1)[1].round(1))
        1 [0.6]
        3 [0.1]
        """
        check_choice("kind", "pseudo_residuals", kind, ("forecast", "ordinary"))
        fitted, reading, data = steps_of_question(self, X, sequence_id=sequence_id, lengths=lengths, time=time)
        states_given = states_given_earlier if kind == "forecast" else states_given_others
        states = fitted.possible(states_given(fitted.model, fitted.natural("mean"), data))
        residuals = pseudo_residuals(fitted, reading.values, states, discrete, generator_of(self, random_state))
        return residuals.of_sequences(reading.lengths, reading.sequences.order)

    def impute(self, X, sequence_id=None, lengths=None, time=None, *, fill="auto", random_state=None):
        """X with missing cells filled, given whole sequences: numbers by means, categories by the most probable ones.

        Parameters
        ----------
        %(sequences.X, sequence_id)s
        fill : {"auto", "cells", "joint", "draw"}, default="auto"
            "cells": the most probable category of each cell. "joint": the most probable one of each step's state on the
            most probable path, so that they occur together. "auto": as "cells", but as "joint" in sequences that would
            have probability 0; a warning names them. "draw": cells drawn together given the whole sequence, under
            parameters that are drawn once for all sequences. Several seeds make several completed tables (multiple
            imputation).
        %(impute.random_state)s

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
        fitted, reading, data = steps_of_question(self, X, sequence_id=sequence_id, lengths=lengths, time=time)
        check_fill(fill)
        groups = fitted.groups
        if fill == "draw":
            imputed = fitted.drawn_steps(reading, data, generator_of(self, random_state))
        else:
            states = self._smoothed(fitted, data)
            imputed = fitted.imputed_steps(reading, data, states, fitted.natural(self.predictive), fill)
        return reading.sequences.completed(groups.missing(reading.values), groups.columns_of(imputed))

    def sample(self, lengths=1, random_state=None, *, given=None):
        """Sequences drawn from the predictive distribution, and the states behind them.

        Each sequence has parameters of its own, drawn from q(theta). Columns that hang on their earlier values (`lags`
        of `Regression`) begin from the means of the data, or go on from the first rows of `given`.

        Parameters
        ----------
        lengths : int or array-like of int, default=1
            Steps of one sequence, or of each of several.
        %(sample.random_state)s
        given : list of tables, or table, default=None
            Sequences of these lengths whose covariates new ones have, where an emission has `covariates`, and whose
            first rows they have, as many as there are lags.

        Returns
        -------
        X : ndarray or DataFrame of shape (n_steps, n_features), or list of these
            In the container of the X that was fitted, with its names.
        states : ndarray of int, shape (n_steps,), or list of these
            Lists where `lengths` is array-like.
        """
        check_is_fitted(self)
        steps = check_steps(lengths)
        fitted, n_steps = self._fitted_, sum(steps.tolist())
        numbers = n_steps * (2 * len(fitted.groups.names) + 2)
        self._check_memory(f"{n_steps:.3g} steps drawn", numbers, "fewer at a time")
        fitted.groups.check_covariates("sample", given)
        if given is not None:
            given = self._given_of_lengths(given, steps)
        rng = generator_of(self, random_state)
        drawn, states = fitted.sample(steps.astype(np.int64), rng, given)
        X = drawn_sequences(self, fitted.groups.columns_of(fitted.groups.as_list(drawn)), steps)
        return (X[0], states) if np.ndim(lengths) == 0 else (X, np.split(states, np.cumsum(steps)[:-1]))

    def _given_of_lengths(self, given, steps: np.ndarray) -> list[np.ndarray]:
        """Values of sequences that new ones of some lengths go by."""
        lengths = steps if not (is_list(given) or len(steps) == 1) else None
        reading = steps_of_question(self, given, lengths=lengths)[1]
        if not np.array_equal(reading.lengths, steps):
            raise ValueError(
                f"'given' of sample holds sequences of {listed(map(str, reading.lengths))} steps, and 'lengths' says "
                f"{listed(map(str, steps))}. Give sequences of the lengths that are wanted."
            )
        return reading.values


__all__ = ["VBHMM"]
