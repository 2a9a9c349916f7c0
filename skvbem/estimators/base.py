"""`VBEstimator`: the face that all estimators share, over the path of a fit, scores, draws and reports."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin, TransformerMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skvbem._absent import absent
from skvbem._arguments import check_level
from skvbem._arithmetic import ArithmeticMixin, arithmetic
from skvbem._compat import (
    N_JOBS,
    CallbackSupportMixin,
    Interval,
    IterationReport,
    StrOptions,
    SuggestingMixin,
    check_feature_names_in,
    fit_context,
)
from skvbem._docstrings import share_texts
from skvbem._progress import long_method
from skvbem._version import __version__ as VERSION
from skvbem.errors import check_memory, together, warn
from skvbem.estimators.emission_parameters import moved, nested_parameters, set_nested
from skvbem.evidence import Evidence, get_score
from skvbem.fitting.evaluation import evaluation_of, fit_at_hand, read_again, run_of, scored
from skvbem.fitting.fit import (
    is_of_data,
    published,
    read,
    seed_of,
    solve,
    state_of_batch,
    state_of_fit,
    warn_unless_converged,
)
from skvbem.fitting.kind import Kind
from skvbem.reading.tables import weighted_mean
from skvbem.reports.goodness_of_fit import goodness_of_fit
from skvbem.reports.summary import summary
from skvbem.uncertainty.bootstrap import bootstrap
from skvbem.uncertainty.intervals import credible_intervals, reported_intervals
from skvbem.uncertainty.posterior_draws import sample_posterior
from skvbem.uncertainty.standard_errors import standard_errors

# Defaults that constructors share: starts' largest number of steps; nats still to be gained below which a start has
# converged; bytes that parameters, starts and answers may take.
MAX_ITER, TOL, MAX_MEMORY = 10_000, 1e-5, 4e9
#: Constraints of the parameters that all estimators have.
SHARED_CONSTRAINTS: dict[str, Any] = {
    "method": [StrOptions({"vb", "map", "ml"})],
    "map_basis": [StrOptions({"natural", "probability"})],
    "n_init": [Interval(Integral, 1, None, closed="left")],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "tol": [Interval(Real, 0, None, closed="left")],
    "acceleration": ["boolean"],
    "missing_values": "no_validation",
    "max_memory": [Interval(Real, 0, None, closed="neither")],
    "random_state": ["random_state"],
    "n_jobs": N_JOBS,
    "warm_start": ["boolean"],
    "verbose": ["verbose"],
}


def has_posterior(estimator) -> bool:
    """True if a batch leaves a density that can be the prior of the next; an AttributeError says what it takes."""
    if estimator.method != "vb":
        raise AttributeError(
            f"partial_fit of {type(estimator).__name__} needs method='vb', whose posterior is the prior of the next "
            f"batch. Got method={estimator.method!r}."
        )
    return True


def predicts(estimator) -> bool:
    """True if rows have labels to predict."""
    return hasattr(estimator, "predict")


@share_texts
class VBEstimator(
    ArithmeticMixin, SuggestingMixin, CallbackSupportMixin, DensityMixin, TransformerMixin, BaseEstimator
):
    """Common face of models fitted by VBEM, MAP-EM or ML-EM; a subclass has parameters, signatures and a `Kind`.

    The attributes of a fit end in an underscore. They are gathered first and published together: a fit that raises or
    is interrupted leaves the estimator as it was.
    """

    _kind: ClassVar[Kind]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    # Parameters and attributes ----------------------------------------------------------------------------------------

    def get_params(self, deep=True):
        """Parameters of this estimator and, by nested names, of its emissions.

        Parameters
        ----------
        deep : bool, default=True
            Whether those of emissions are among them, such as "emission__covariance_type" of an object, or
            "emission__visits__shape_prior" of the emission named "visits" in a list.

        Returns
        -------
        dict of str to object
        """
        params = super().get_params(deep=deep)
        return params | nested_parameters(params.get("emission")) if deep else params

    def set_params(self, **params):
        """Set parameters of this estimator or, by nested names, of its emissions.

        Parameters
        ----------
        **params
            By the names that `get_params` has.

        Returns
        -------
        self : estimator instance

        Raises
        ------
        ValueError
            If there is no such parameter; of one that emissions have the message says where it is.
        """
        nested = {name: value for name, value in params.items() if name.startswith("emission__")}
        super().set_params(**{name: value for name, value in params.items() if name not in nested})
        if nested:
            self.emission = set_nested(self.emission, nested, type(self).__name__)
        return self

    @classmethod
    def _told_of_unknown(cls, name: str) -> str:
        where = moved(cls.__name__, [name]) if "emission" in cls._get_param_names() else ""
        return where or super()._told_of_unknown(name)

    def _absent(self, name: str) -> AttributeError:
        fitted, owner = vars(self).get("_fitted_"), type(self).__name__
        if fitted is not None and fitted.given is not None and is_of_data(name):
            why = f"This {owner} has no {name!r}: its parameters were given, and not found by a fit to data."
            return AttributeError(why, name=name, obj=self)
        return absent(self, name, is_fitted=fitted is not None)

    # Fitting ----------------------------------------------------------------------------------------------------------

    @fit_context(prefer_skip_nested_validation=True)
    def _fit(self, X, y, sample_weight, **where) -> Self:
        """Fit, and publish all attributes together."""
        kind = self._kind
        kind.check(self, X)
        with together():
            reading = read(self, X, y, sample_weight, **where)
            report = IterationReport(self, **reading.given)
            solved = solve(self, reading, report, warns=True)
            warn_unless_converged(self, solved.run.fit, report)
            kind.warn_of_fit(self, solved.fitted, solved.data)
        state = state_of_fit(self, reading, solved)
        self.__dict__ = published(self, state)
        report.close(lambda: state)
        return self

    @arithmetic
    @fit_context(prefer_skip_nested_validation=True)
    def _partial_fit(self, X, y, sample_weight, **where) -> Self:
        """Take one more batch; the first one is fitted."""
        if "_fitted_" not in vars(self):
            self._fit(X, y, sample_weight, **where)
            self.batch_lower_bound_ = self.lower_bound_
            return self
        state, report = state_of_batch(self, X, y, sample_weight, where)
        self.__dict__ = published(self, state)
        report.close(lambda: state)
        return self

    @available_if(predicts)
    def fit_predict(self, X, y=None, sample_weight=None):
        """Fit, then return what `predict` says of the same rows.

        Parameters
        ----------
        X : array-like, pandas or polars DataFrame of shape (n_samples, n_features)
        %(y)s
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts.

        Returns
        -------
        ndarray of int, shape (n_samples,) or (n_samples, n_latents)
        """
        return self.fit(X, y, sample_weight=sample_weight).predict(X)

    # Asking -----------------------------------------------------------------------------------------------------------

    @property
    def fitted(self) -> Any:
        """The fit as a value, which answers every question after `fit`."""
        check_is_fitted(self)
        return self._fitted_

    def score(self, X, y=None, sample_weight=None):
        """Mean log predictive probability (density) of the rows, nats per row: the mean of `score_samples`.

        A row without an observed cell has 0 nats, and counts as a row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        %(y)s
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        float
        """
        return weighted_mean(self.score_samples(X), sample_weight)

    def _check_memory(self, what: str, n_numbers: float, least: str) -> None:
        """Refuse an answer of more numbers than `max_memory` holds, before anything is allocated."""
        check_memory(what, n_numbers, least, self.max_memory, type(self).__name__)

    def get_feature_names_out(self, input_features=None):
        """Names of the columns of `transform`: the name of the class in lower case, then 0, 1, ...

        %(input_features -> ndarray of str)s
        """
        check_is_fitted(self)
        check_feature_names_in(self, input_features, generate_names=False)
        prefix = type(self).__name__.lower()
        return np.asarray([f"{prefix}{k}" for k in range(self._n_features_out)], dtype=object)

    @property
    def _n_features_out(self) -> int:
        """Number of columns that `transform` makes."""
        return self._fitted_.model.n_components

    # The evidence -----------------------------------------------------------------------------------------------------

    def log_evidence(self, X=None, *, sample_weight=None, kind="lower_bound", random_state=None, **options):
        """Log marginal likelihood of the data this estimator was fitted to, by one of many approximations.

        Values are total nats with every constant, more is better: they compare across structures, numbers of states and
        estimator classes. :doc:`/user_guide/scores` says when to use which.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data of the fit, rows in any order. May be left out for ``kind="lower_bound"``.
        %(sample_weight)s
        kind : str or Score, default="lower_bound"
            Name of a score in `skvbem.evidence.SCORES`, such as "auto" (the one to report, for data of any size),
            "collapsed", "bic", "cheeseman_stutz", "laplace", "ais" or "exact".
        %(score.random_state)s
        **options
            Options of the score; :doc:`/user_guide/scores` lists them. Every score takes `verbose`, `time_budget`
            (seconds) and `progress` (a callable of the number of steps done, and of all). Parameters of the model, as
            the `start` of "ais_metropolis", are given as a mapping of nodes to tables. `labels` or `interventions` are
            needed if `fit` was given any.

        Returns
        -------
        %(Evidence)s

        Raises
        ------
        %(data.ValueError)s

        Notes
        -----
        A score that needs another form of fit (BIC needs maximum likelihood) makes it, from the starts of this fit and
        from where it ended; `Evidence.form` says which.

        Examples
        --------
        >>> from skvbem import VBDiscreteDAG
        >>> from skvbem.datasets import load_carcinoma
        >>> X = load_carcinoma().data
        >>> two, three = (VBDiscreteDAG(latents=k, random_state=0).fit(X) for k in (2, 3))
        >>> three.log_evidence(X, kind="ais") > two.log_evidence(X, kind="ais")
        True
        """
        where = {"sample_weight": sample_weight}
        where |= {name: options.pop(name) for name in self._kind.located_by if name in options}
        return self._log_evidence(X, where, kind, random_state, options)

    def _log_evidence(self, X, where: Mapping, kind, random_state, options: Mapping) -> Evidence:
        """`log_evidence` of data with what `where` adds to X."""
        check_is_fitted(self)
        get_score(kind)  # an unknown name is refused before X is read
        if X is not None:
            options = {"verbose": self.verbose, **options}
            return scored(self, evaluation_of(self, X, random_state=random_state, **where), kind, options)
        run, method = run_of(self), self._fitted_.form.name
        if kind not in ("lower_bound", get_score("lower_bound")) or options or method != "vb":
            raise ValueError(
                f"log_evidence of {type(self).__name__} needs X, the data of the fit. Without it there is only "
                f"kind='lower_bound', without options, after method='vb'. Got kind={kind!r} after method={method!r}."
            )
        return Evidence(
            self.lower_bound_,
            "lower_bound",
            is_lower_bound=True,
            form="vb",
            n_free_parameters=self.n_free_parameters_,
            n_samples=self.n_samples_,
            details={"converged": self.converged_},
            note=run.note,
        )

    def bic(self, X=None, sample_weight=None, **where):
        """Bayesian information criterion as scikit-learn has it, -2 ln L + d ln n: LOWER is better.

        It is -2 times ``log_evidence(X, kind="bic")``, which is in nats and more is better, like all other scores.

        %(criterion.X, sample_weight, criterion.**where -> float)s
        """
        return -2.0 * self._bic("bic", X, {"sample_weight": sample_weight, **where}).value

    def aic(self, X=None, sample_weight=None, **where):
        """Akaike's information criterion as scikit-learn has it, -2 ln L + 2 d: LOWER is better. No evidence.

        %(criterion.X, sample_weight, criterion.**where -> float)s
        """
        bic = self._bic("aic", X, {"sample_weight": sample_weight, **where})
        return -2.0 * (bic.details["log_likelihood"] - bic.n_free_parameters)

    def _bic(self, caller: str, X, where: Mapping) -> Evidence:
        """The score "bic", from which both criteria are read."""
        if X is None:
            raise TypeError(f"{caller} of {type(self).__name__} needs X, the data of the fit, as in {caller}(X).")
        return self._log_evidence(X, where, "bic", None, {})

    # How sure ---------------------------------------------------------------------------------------------------------

    def sample_posterior(
        self,
        X,
        n_draws=1000,
        *,
        method="draws",
        sample_weight=None,
        n_chains=32,
        max_sweeps=16384,
        random_state=None,
        verbose=None,
        time_budget=None,
        **where,
    ):
        """Draws of all parameters from their posterior, labels as in the fit.

        Parameters
        ----------
        %(data.X)s
        n_draws : int, default=1000
        method : {"draws", "linear_response", "vb"}, default="draws"
            "draws" are exact, by Gibbs chains. The chains start from what the starts of the fit have found, and run
            until they agree and their draws are worth half as many independent ones. "linear_response" draws with the
            means of q(theta) and the covariances of linear response, around each optimum that the fit has met. "vb"
            draws from q(theta), which vary too little where labels overlap.
        sample_weight : array-like of shape (n_samples,), default=None
            As in `fit`; whole numbers for ``method="draws"``.
        n_chains : int, default=32
        max_sweeps : int, default=16384
            Most sweeps of a chain, but it makes 128 in any case, and two for each of its draws. If they are not enough,
            a `PosteriorWarning` says so.
        %(draws.random_state, long.verbose, long.time_budget, data.**where)s

        Returns
        -------
        PosteriorDraws

        Raises
        ------
        ValueError
            If the fit is no density, or X is not the data of the fit.

        Examples
        --------
        >>> from skvbem import VBDiscreteDAG
        >>> from skvbem.datasets import load_carcinoma
        >>> X = load_carcinoma().data
        >>> model = VBDiscreteDAG(latents=2, random_state=0).fit(X)
        >>> draws = model.sample_posterior(X)
        >>> draws.parameters["tables"]["h0"].shape
        (1000, 2)
        >>> bool(draws.ess["tables"]["h0"].min() > 400)
        True
        """
        fit = fit_at_hand(self, X, sample_weight, random_state, **where)
        with long_method(self, "sample_posterior", verbose, time_budget):
            return sample_posterior(fit, n_draws, method=method, n_chains=n_chains, max_sweeps=max_sweeps)

    def credible_intervals(
        self,
        X=None,
        level=0.95,
        method="draws",
        *,
        n_draws=2000,
        sample_weight=None,
        random_state=None,
        verbose=None,
        time_budget=None,
        **where,
    ):
        """Equal-tailed intervals of each parameter by itself: probabilities, means, rates, shares, weights.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), default=None
            The data of the fit, which an estimator does not keep; needed unless ``method="vb"``.
        %(interval.level)s
        method : {"draws", "linear_response", "vb"}, default="draws"
            "draws" of the posterior cover as they should. "linear_response" costs little, and is too narrow where
            labels overlap and rows are few. "vb" takes the quantiles of q(theta), which are too narrow wherever labels
            overlap; it needs no X. :doc:`/user_guide/intervals` says how often each covers.
        n_draws : int, default=2000
            Number of draws from which quantiles are taken.
        sample_weight, random_state, verbose, time_budget, **where
            As of `sample_posterior`.

        Returns
        -------
        ParameterIntervals
            A dict of str to dict of str to tuple of two ndarrays: by group of columns and name, the lower and upper
            ends, of the shapes of `parameters_`. A mixture has its "weights" under "mixture". A chain has "startprob"
            and "transmat" under "chain" (0 where there is no transition). A network has a table per node under
            "tables". Quantiles of q(theta) exist only where they have a form; covariances have none.

        Raises
        ------
        ValueError
            If the fit is a point, by ``method="map"`` or "ml" of the estimator, if X is lacking or other data, or the
            level is not between 0 and 1.
        """
        if isinstance(X, Real):
            raise ValueError(
                "The 'X' parameter of credible_intervals must be the data of the fit, or None for method='vb'. Got "
                f"{X!r} instead. The mass of intervals is given by name, as level=0.9."
            )
        fit = fit_at_hand(self, X, sample_weight, random_state, **where)
        with long_method(self, "credible_intervals", verbose, time_budget):
            return credible_intervals(fit, level, method, n_draws=n_draws)

    def standard_errors(self, X, *, sample_weight=None, max_states=4096, **where):
        """Standard errors of all parameters of a fit by ``method="ml"`` or "map", from the observed information.

        Parameters
        ----------
        %(data.X, sample_weight)s
        max_states : int, default=4096
            Most joint states of what is hidden in one row, which are summed over.
        %(data.**where)s

        Returns
        -------
        StandardErrors
            With `errors` by group and name, and `intervals`.

        Raises
        ------
        ValueError
            If the fit is a density, by ``method="vb"``, whose intervals are `credible_intervals`; if X is not the data
            of the fit; if a component of maximum likelihood has no width.
        TooLargeError
            If a row has more joint states than `max_states`.

        Examples
        --------
        >>> from skvbem import VBDiscreteDAG
        >>> answers = [["yes"]] * 30 + [["no"]] * 10
        >>> model = VBDiscreteDAG(structure=[], method="ml").fit(answers)
        >>> found = model.standard_errors(answers)
        >>> found.errors["tables"]["x0"].round(4).tolist()  # sqrt(0.75 x 0.25 / 40)
        [0.0685, 0.0685]
        """
        return standard_errors(fit_at_hand(self, X, sample_weight, **where), max_states)

    def bootstrap(
        self,
        X,
        n_draws=200,
        *,
        kind="nonparametric",
        sample_weight=None,
        random_state=None,
        n_jobs=None,
        verbose=None,
        time_budget=None,
        **where,
    ):
        """Bootstrap: fits to data made anew, each from where this fit ended, for the variation of estimates.

        Parameters
        ----------
        %(data.X)s
        n_draws : int, default=200
            Data sets made anew. Standard errors need some hundred, ends of 95 % intervals a thousand.
        kind : {"nonparametric", "parametric"}, default="nonparametric"
            Rows, or whole sequences, drawn with replacement; or as many drawn from the model at the fit, the same cells
            missing. Rows that count a whole number of times are so many rows; where weights are fractions, rows are
            drawn and keep their weights.
        sample_weight : array-like of shape (n_samples,), default=None
            As in `fit`; whole numbers for ``kind="parametric"``.
        %(draws.random_state)s
        n_jobs : int, default=None
            Processes of joblib; draws do not depend on it, nor on the order of rows.
        %(long.verbose, long.time_budget, data.**where)s

        Returns
        -------
        BootstrapDraws
            With `errors` by group and name, and `intervals` by percentiles; labels are nearest to those of the fit.

        Raises
        ------
        ValueError
            If X is not the data of the fit, or comes in blocks.

        Notes
        -----
        Priors are those of the fit, strengths that it learned among them. A fit by VB or MAP is drawn towards its
        prior in every data set, so that the bootstrap says how much estimates vary, not how far they are off.

        Examples
        --------
        >>> from skvbem import VBDiscreteDAG
        >>> answers = [["yes"]] * 30 + [["no"]] * 10
        >>> model = VBDiscreteDAG(structure=[], method="ml", random_state=0).fit(answers)
        >>> draws = model.bootstrap(answers, 1000)
        >>> bool(abs(draws.errors["tables"]["x0"][1] - 0.0685) < 0.01)  # sqrt(0.75 x 0.25 / 40)
        True
        """
        check_is_fitted(self)
        reading, kind_of_model = read_again(self, X, sample_weight, **where), self._kind
        with long_method(self, "bootstrap", verbose, time_budget):
            return bootstrap(
                fit_at_hand(self, reading),
                reading,
                n_draws,
                kind=kind,
                seed=None if random_state is None else seed_of(self, random_state),
                n_jobs=n_jobs,
                compiled=partial(kind_of_model.compiled, self),
                drawn_like=kind_of_model.drawn_like,
            )

    # Reports ----------------------------------------------------------------------------------------------------------

    def summary(
        self,
        X=None,
        *,
        level=0.95,
        method="auto",
        draws=None,
        sample_weight=None,
        random_state=None,
        verbose=None,
        time_budget=None,
        **where,
    ):
        """A report of the fit: what was fitted, how well it went, states in use, and all parameters with intervals.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), default=None
            The data of the fit, which intervals need; without X there are none.
        %(interval.level)s
        method : {"auto", "draws", "linear_response", "vb"}, default="auto"
            As in `credible_intervals`. "auto" takes draws of the posterior, which hold the truth as often as they say.
            It takes linear response where chains do not agree within about a second of work, and where rows cannot be
            drawn, since weights are no whole numbers or rows come in blocks. If the estimator has ``method="map"`` or
            "ml", it takes `standard_errors`. The summary says which.
            "vb" needs no X, and is too narrow where states overlap.
        draws : PosteriorDraws, BootstrapDraws or StandardErrors, default=None
            What `sample_posterior`, `bootstrap` or `standard_errors` returned: intervals are then from these, and X is
            not needed.
        sample_weight, random_state, verbose, time_budget, **where
            As of `sample_posterior`.

        Returns
        -------
        Summary
            It prints as text and as HTML; its `to_frame` has all parameters.

        Raises
        ------
        ValueError
            If X is other data than those of the fit, or the level is not between 0 and 1.
        """
        check_level("summary", level)
        fit = fit_at_hand(self, X, sample_weight, random_state, **where)
        with long_method(self, "summary", verbose, time_budget):
            intervals = reported_intervals(fit, level, method, draws)
        return summary(self, intervals, level)

    def goodness_of_fit(self, X, sample_weight=None, **where):
        """Fit indices that users of latent class models, and of other models with hidden states, print first.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data of the fit, or other data. G², X² and bivariate residuals use the rows without missing cells, the
            rest all rows.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts.
        **where
            For sequences, `sequence_id`, `lengths` and inputs as in `fit`; `interventions` in networks.

        Returns
        -------
        GoodnessOfFit
            Log likelihood, AIC, BIC, SABIC, CAIC, entropy R² of each latent. Where columns have finitely many values,
            also G², X², degrees of freedom and bivariate residuals of each pair of columns.

        Raises
        ------
        TypeError
            If X comes in blocks.

        Examples
        --------
        >>> from skvbem import VBMixture
        >>> from skvbem.datasets import load_carcinoma
        >>> slides = load_carcinoma().data
        >>> three = VBMixture(3, emission="categorical", method="ml", random_state=0).fit(slides)
        >>> found = three.goodness_of_fit(slides)
        >>> round(found.bic, 2), round(found.g2, 2), found.degrees_of_freedom
        (697.14, 15.26, 104)
        """
        return goodness_of_fit(self, X, sample_weight, **where)

    # Files ------------------------------------------------------------------------------------------------------------

    def __getstate__(self):
        return {**super().__getstate__(), "_skvbem_version": VERSION}

    def __setstate__(self, state):
        state = dict(state)
        version = state.pop("_skvbem_version", "an unknown version")
        if version != VERSION:
            warn(
                f"This {type(self).__name__} was pickled by skvbem {version} and is loaded by {VERSION}: it may not "
                "work. Fit it again."
            )
        self._check_loaded(state)
        super().__setstate__(state)

    def _check_loaded(self, state: Mapping) -> None:
        """Refuse a state that is none of this class, or a fit whose arrays do not belong together."""
        lacking = [name for name in self._get_param_names() if name not in state]
        fitted, described = state.get("_fitted_"), object.__new__(type(self))
        described.__dict__.update(state)  # a kind may depend on parameters
        try:
            if lacking:
                why = f"it lacks the parameter {lacking[0]!r}"
            elif fitted is not None and type(fitted) is not described._kind.fitted:
                why = f"its fit is a {type(fitted).__name__}"
            else:
                why = "" if fitted is None else fitted.damage()
        except Exception as error:  # whatever damaged objects raise when they are looked at
            why = f"its fit cannot be read ({type(error).__name__}: {error})"
        if why:
            raise ValueError(
                f"What was loaded is no {type(self).__name__}, or is damaged: {why}. Load an undamaged file, by the "
                "version that wrote it, or fit anew."
            )
