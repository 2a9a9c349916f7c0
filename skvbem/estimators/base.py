"""What every estimator of the library does: weights, seeds, callbacks, and publishing a fit in one step."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, DensityMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skvbem._absent import AbsentAttributes
from skvbem._compat import (
    CallbackSupportMixin,
    IterationReport,
    check_sample_weight,
    fit_context,
    warn,
)
from skvbem._version import __version__ as VERSION
from skvbem.errors import check_memory
from skvbem.estimators.cycle_line import CycleLine
from skvbem.evidence import DEFAULT_SCORE
from skvbem.fitted.base import Fitted, FittedRun, Solved
from skvbem.reading.base import Reading
from skvbem.reports.restarts import Restarts
from skvbem.vbem import posteriors
from skvbem.vbem.fit import Fit, FitMethod, FitPlan, PriorStart

#: What the first batch fixes; the rest is told anew by each.
KEPT_BY_PARTIAL_FIT = ("n_features_in_", "feature_names_in_", "_frames_of_")
#: Name of the attribute that holds the objective of each method.
OBJECTIVES = {"vb": "lower_bound_", "map": "log_posterior_", "ml": "log_likelihood_"}


def objective_of(form: str, is_exact: bool) -> str:
    """Name of the attribute that holds the objective of a form, or a bound of it where q(x) is not exact."""
    return OBJECTIVES[form] if is_exact or form == "vb" else f"{OBJECTIVES[form]}bound_"


def has_posterior(estimator) -> bool:
    """Whether a batch leaves a density that can be the prior of the next; an AttributeError says what it takes."""
    if estimator.method != "vb":
        raise AttributeError(
            f"partial_fit of {type(estimator).__name__} needs method='vb', whose posterior is the prior of the next "
            f"batch. Got method={estimator.method!r}."
        )
    return True


def predicts(estimator) -> bool:
    """Whether rows have labels to predict."""
    return hasattr(estimator, "predict")


class VBEstimator(AbsentAttributes, CallbackSupportMixin, DensityMixin, TransformerMixin, BaseEstimator):
    """Common face of models fitted by VBEM, MAP-EM or ML-EM.

    What a fit leaves are the attributes whose names end in an underscore. `fit` gathers them in a dict and publishes
    all at once when nothing can go wrong any more: a fit that raises or is interrupted leaves the estimator as it was.
    """

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    # The one path of a fit: read, model, data, starts, the best of them, learned priors, publish ----------------------

    #: Parameters that say how X is read: fits that have them alike can share a reading.
    reading_parameters: ClassVar[frozenset[str]] = frozenset({"categories", "missing_values", "handle_unknown"})
    #: The score of a search that names none.
    default_score: ClassVar[str] = DEFAULT_SCORE
    #: What says where rows belong, beside X.
    _located_by: ClassVar[tuple[str, ...]] = ()
    #: Parameters of the constructor that say what the prior is.
    _prior_parameters: ClassVar[tuple[str, ...]] = ()
    #: How such models are fitted, and their fits as values.
    _method: ClassVar[FitMethod]
    _fitted_type: ClassVar[type[Fitted]]

    def read(self, X, y=None, sample_weight=None, *, columns=None, **where) -> Reading:
        """X as this estimator reads it, which `fit`, `evaluate` and `evaluation` take in place of X and its weights.

        So one reading serves several fits, of estimators whose `reading_parameters` are alike.

        Parameters
        ----------
        X : as `fit` takes it
            A reading is returned as it is.
        y : None
            Ignored.
        sample_weight : array-like, default=None
            As in `fit`.
        columns : ColumnGroups or CategoryEncoder, default=None
            How columns were read before; by default learned from X.
        **where
            What else `fit` takes to find the rows, as `sequence_id` and `lengths` of sequences.

        Returns
        -------
        Reading
        """
        if isinstance(X, Reading):
            return X.kept()
        unknown = sorted(where.keys() - set(self._located_by))
        if unknown:
            raise TypeError(f"{type(self).__name__} takes no {unknown[0]!r} beside X.")
        reading = self._read(X, sample_weight, columns, where)
        self._check_y(y, reading)
        return reading

    @abstractmethod
    def _read(self, X, sample_weight, columns: Any, where: Mapping[str, Any]) -> Reading:
        """The reading of an X that was not read before."""

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None, **where):
        """Fit the model.

        A fit that raises or is interrupted leaves the estimator as it was before.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or reading
            Data, or what `read` returned for them.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts; rows of weight 0 are as if absent.
        **where
            What else says where rows belong.

        Returns
        -------
        self
            Fitted.
        """
        self._check_together(X)
        reading = self.read(X, y, sample_weight, **where)
        report = IterationReport(self, **reading.given)
        solved = self._solved(reading, report, self._warn_of_data)
        fit, fitted = solved.run.fit, solved.fitted
        self._warn_unless_converged(fit, report)
        self._warn_of_fit(fitted, solved.data)
        state = dict(reading.names) | self._run_state(fit, fitted.form) | self._model_state(fitted) | solved.state
        state |= self._data_state(fitted, reading, solved.data)
        state |= {
            "_run_": solved.run.of(reading, self._prior_in_words(reading.columns)),
            "n_samples_": solved.data.total_weight,
        }
        self._publish(state)
        report.close(lambda: state)
        return self

    def _solved(self, reading: Any, report: IterationReport, warn_of_data: Callable | None = None) -> Solved:
        """The best fit to what was read, nothing published."""
        model = self._model(reading)
        data = self._compiled(model, reading, self._n_starts())
        if warn_of_data is not None:
            warn_of_data(reading, model, data)
        model, plan, fit, state = self._best_fit(model, data, reading, report)
        note = ""
        if self._learns_prior():
            fit, model = plan.learned_prior(model, data, fit, stopped=lambda: report.stopped, **self._options(report))
            note = "given the optimized prior"
        fitted = self._fitted_type(reading.columns, model, self._form(), fit.statistics, plan.seed, **self._shown())
        return Solved(fitted, data, FittedRun(fit, plan, note), state)

    def _shown(self) -> dict[str, Any]:
        """What of this estimator says how a fit is shown, as fields of it; it changes no fit."""
        return {}

    def _best_fit(self, model, data, reading: Any, report: IterationReport) -> tuple[Any, FitPlan, Fit, dict]:
        """The model, the plan of its fit, the best fit, and attributes that tell of the way there."""
        plan = self._plan(model, data, reading)
        return model, plan, plan.run(model, data, self._form(), **self._options(report)), {}

    @available_if(has_posterior)
    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X, y=None, sample_weight=None, **where):
        """Update the posterior with a batch, whose prior is the last posterior [Beal (2.114)-(2.117)].

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The first batch is fitted as by `fit`.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            As in `fit`.
        **where
            As in `fit`.

        Returns
        -------
        self
            Fitted.
        """
        if not hasattr(self, "_fitted_"):
            self.fit(X, sample_weight=sample_weight, **where)
            self.batch_lower_bound_ = self.lower_bound_
            return self
        before = self._fitted_
        self._check_can_go_on(before.form)
        reading = self.read(X, None, sample_weight, columns=before.columns, **where)
        report = IterationReport(self, **reading.given)
        model = self._continued_model(before)
        data = self._compiled(model, reading, 1)
        plan = FitPlan(self._method, (), PriorStart(), self._limits_of_run())
        fit = plan.run(model, data, before.form, **self._options(report))
        self._warn_unless_converged(fit, report)
        fitted = replace(before, statistics=before.statistics + fit.statistics)
        state = self._batch_state(fit, data.total_weight) | self._model_state(fitted)
        state |= self._data_state(fitted, reading, data, is_batch=True)
        self._publish(state)
        report.close(lambda: state)
        return self

    # What each kind of model says of the steps ------------------------------------------------------------------------

    @abstractmethod
    def _model(self, reading: Any) -> Any:
        """The model to fit."""

    @abstractmethod
    def _compiled(self, model, reading: Any, n_starts: int) -> Any:
        """Rows of a reading as the model takes them."""

    @abstractmethod
    def _starts(self, model, data, reading: Any, seed: tuple[int, ...]) -> Any:
        """Where the `init` parameter says to start, as the `starts` of a `FitPlan`."""

    @abstractmethod
    def _start_from(self, last: Any, model, data, reading: Any) -> np.ndarray:
        """Statistics (n_cells,) that go on from the last solution."""

    @abstractmethod
    def _continued_model(self, fitted: Any) -> Any:
        """The model whose prior is the posterior of a fit [Beal (2.114)]."""

    def _prior_in_words(self, columns: Any) -> str:
        """The prior of a fit to columns so read, by parameters that say what it is."""
        words = [f"{name}={getattr(self, name)!r}" for name in self._prior_parameters]
        return ", ".join([*words, *(["strengths learned"] if self._learns_prior() else [])])

    def _learns_prior(self) -> bool:
        """Whether strengths of the prior are learned."""
        return self.learn_prior

    @staticmethod
    @abstractmethod
    def _model_state(fitted: Any) -> dict:
        """The published attributes that tell of the fitted model."""

    @abstractmethod
    def _data_state(self, fitted, reading, data, *, is_batch: bool = False) -> dict:
        """The attributes that tell of the data under the fit; of a batch, together with those before it."""

    @abstractmethod
    def _warn_of_data(self, reading, model, data) -> None:
        """Warn of what is odd in data, before they are fitted."""

    def _warn_of_fit(self, fitted, data) -> None:
        """Warn of what is odd in a fit."""

    def _check_together(self, X) -> None:
        """Refuse parameters that make no sense together, or for X."""
        if self._learns_prior() and self.method != "vb":
            raise ValueError(
                f"learn_prior=True of {type(self).__name__} needs method='vb', whose bound decides. Got "
                f"method={self.method!r}."
            )

    def _check_y(self, y, reading: Any) -> None:
        """Refuse what is ignored as y and cannot be meant so."""

    def _plan(self, model, data, reading: Any, seed: tuple[int, ...] | None = None) -> FitPlan:
        """Where to start and when to stop; with `warm_start` from the last solution, if it is one of such a model."""
        seed, limits = self._seed(self.random_state) if seed is None else seed, self._limits_of_run()
        last = getattr(self, "_fitted_", None) if self.warm_start else None
        if last is not None and last.continues(reading.columns, model):
            start = self._start_from(last, model.with_known_hyperparameters(), data, reading)
            if model.prior.hyperprior is not None and self._form().prior_share:
                natural = last.natural_of_q
                of_such = len(natural) == model.n_cells  # else its components had covariances of another type
                start = start + model.prior.hyperparameters(natural) if of_such else model.started(start)
            return FitPlan(self._method, seed, start[:, None], limits)
        # maximum likelihood asks no prior: neither do its starts
        of_starts = model if self._form().prior_share else model.with_known_hyperparameters()
        starts = self._starts(of_starts, data, reading, seed)
        explore = isinstance(self.init, str) and self.init == "auto" and not self._inverse_temperatures()
        return FitPlan(self._method, seed, starts, limits, self._inverse_temperatures(), explore)

    def _inverse_temperatures(self) -> tuple[float, ...]:
        """Inverse temperatures of annealed steps before a run."""
        return ()

    def _n_starts(self) -> int:
        return self.n_init if isinstance(self.init, str) else 1

    def _limits_of_run(self) -> dict:
        return {"tol": self.tol, "max_iter": self.max_iter, "accelerate": self.acceleration}

    def _options(self, report: IterationReport) -> dict:
        """How a run is watched, and how many threads it has."""
        return {"stop": self._cycle(report), "n_threads": effective_n_jobs(self.n_jobs)}

    @property
    def fitted(self) -> Any:
        """What was fitted, as a value to which every question after `fit` is put."""
        check_is_fitted(self)
        return self._fitted_

    @available_if(predicts)
    def fit_predict(self, X, y=None, sample_weight=None):
        """Fit, then return what `predict` says of the same rows.

        Parameters
        ----------
        X : array-like, pandas or polars DataFrame of shape (n_samples, n_features)
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts.

        Returns
        -------
        ndarray of int, shape (n_samples,) or (n_samples, n_latents)
        """
        return self.fit(X, y, sample_weight=sample_weight).predict(X)

    def score(self, X, y=None, sample_weight=None):
        """Mean log predictive probability (density) of the rows, nats per row; see `score_samples`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        float
        """
        scores = self.score_samples(X)
        weights = self._weights(sample_weight, len(scores))
        if weights is not None:  # a row that counts for nothing may be impossible
            scores, weights = scores[weights > 0], weights[weights > 0]
        return float(np.average(scores, weights=weights))

    def _check_memory(self, what: str, n_numbers: float, least: str) -> None:
        """Refuse an answer of more numbers than `max_memory` holds, before anything is allocated."""
        check_memory(what, n_numbers, least, self.max_memory, type(self).__name__)

    def _form(self) -> posteriors.Form:
        if self.method == "map" and self.map_basis == "probability":
            return posteriors.MAP_IN_PROBABILITIES
        return {"vb": posteriors.VB, "map": posteriors.MAP, "ml": posteriors.ML}[self.method]

    def _weights(self, sample_weight, n_samples: int) -> np.ndarray | None:
        """Checked weights, or None where every row counts once."""
        if sample_weight is None:
            return None
        weights = check_sample_weight(sample_weight, np.empty((n_samples, 1)))
        return None if (weights == 1.0).all() else weights

    def _weighted_rows(self, table, sample_weight) -> tuple[Any, np.ndarray | None, np.ndarray | None]:
        """The rows of weight > 0, their weights, and which rows these are (None for all)."""
        weights = self._weights(sample_weight, table.n_samples)
        if weights is None or weights.all():
            return table, weights, None
        is_weighted = weights > 0
        return table.rows(is_weighted), weights[is_weighted], is_weighted

    def _seed(self, random_state) -> tuple[int, ...]:
        """What a random_state stands for, drawn once if it is None or a generator."""
        try:
            if not isinstance(random_state, Integral):
                return tuple(check_random_state(random_state).randint(0, 2**31 - 1, size=4).tolist())
            seed = int(random_state)
            np.random.SeedSequence(seed)
            return (seed,)
        except ValueError:
            raise ValueError(
                f"The 'random_state' parameter of {type(self).__name__} must be an int in the range [0, 4294967295], a "
                f"numpy.random.RandomState or None. Got {random_state!r} instead."
            ) from None

    def _rng(self, random_state) -> np.random.Generator:
        return np.random.default_rng(self._seed(random_state))

    def _cycle(self, report: IterationReport) -> Callable[[int, float, int, float], bool]:
        """What the driver calls after every cycle; true stops the run."""
        objective = OBJECTIVES[self.method][:-1]
        return CycleLine(type(self).__name__, objective, report) if self.verbose else lambda *cycle: report()

    def _check_can_go_on(self, form: posteriors.Form) -> None:
        """Refuse to take a batch after a fit that left no density."""
        self._fitted_.check_was_found("partial_fit", type(self).__name__)
        if not form.density:
            raise ValueError(
                f"partial_fit continues a fit by method='vb'; this {type(self).__name__} was fitted by "
                f"method={form.name!r}. Fit it again."
            )

    def _batch_state(self, fit: Fit, total_weight: float) -> dict:
        """The attributes that every batch but the first leaves, whatever the model."""
        kept = {name: value for name, value in vars(self).items() if name in KEPT_BY_PARTIAL_FIT}
        return kept | {
            "batch_lower_bound_": fit.objective,
            "n_iter_": fit.n_iter,
            "converged_": fit.converged,
            "n_samples_": self.n_samples_ + total_weight,
        }

    def _warn_unless_converged(self, fit: Fit, report: IterationReport) -> None:
        if not (fit.converged or report.stopped):
            warn(
                f"The best start of {type(self).__name__} did not converge in {self.max_iter} steps (tol={self.tol:g} "
                "nats). Raise 'max_iter', or 'tol' if the last digits do not matter.",
                ConvergenceWarning,
            )

    @staticmethod
    def _run_state(fit: Fit, form: posteriors.Form) -> dict:
        """The published attributes that tell of the run of a fit."""
        return {
            objective_of(form.name, fit.state is None): fit.objective,
            "lower_bounds_": np.array(fit.trace),
            "n_iter_": fit.n_iter,
            "converged_": fit.converged,
            "restarts_": Restarts.of(fit),
        }

    def _publish(self, state: dict) -> None:
        """Replace all that an earlier fit left by `state`, in one step."""
        kept = {name: value for name, value in vars(self).items() if not name.endswith("_")}
        self.__dict__ = {**kept, **state}

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
        fitted = state.get("_fitted_")
        try:
            if lacking:
                why = f"it lacks the parameter {lacking[0]!r}"
            elif fitted is not None and type(fitted) is not self._fitted_type:
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
