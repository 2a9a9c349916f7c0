"""What every estimator says of the evidence: one method for all scores, and BIC and AIC in scikit-learn's sign."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from functools import partial
from numbers import Real
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils.validation import check_is_fitted

from skvbem._compat import IterationReport, warn
from skvbem.errors import EvidenceWarning
from skvbem.estimators.base import KEPT_BY_PARTIAL_FIT, VBEstimator
from skvbem.evidence import Evidence, Score, get_score, score_of
from skvbem.evidence.evaluation import Evaluation
from skvbem.fitted.base import Fitted, FittedRun
from skvbem.reading.base import Reading
from skvbem.uncertainty.draws import FitAtHand
from skvbem.uncertainty.intervals import credible_intervals
from skvbem.uncertainty.posterior_draws import sample_posterior
from skvbem.vbem import posteriors
from skvbem.vbem.fit import FitPlan


class EvidenceEstimator(VBEstimator):
    """An estimator whose fits scores of the evidence take."""

    def evaluate(self, reading: Reading) -> Evaluation:
        """The fit to what `read` returned, as scores take it; it is not published, and nothing is warned of.

        Parameters
        ----------
        reading : Reading

        Returns
        -------
        Evaluation
        """
        self._validate_params()
        self._check_together(reading)
        solved = self._solved(self.read(reading), IterationReport(None, None))
        return self._evaluation_of(solved.fitted, solved.run, solved.data, None)

    def evaluation(self, X, sample_weight=None, random_state=None, **where) -> Evaluation:
        """The fit at hand on its data, as scores take it.

        Parameters
        ----------
        X : as `fit` takes it, or reading
            The data of the fit.
        sample_weight : array-like, default=None
            As in `fit`.
        random_state : int, RandomState instance or None, default=None
            Seed of scores that draw.
        **where
            As in `fit`.

        Returns
        -------
        Evaluation

        Raises
        ------
        ValueError
            If these are other data.
        """
        check_is_fitted(self)
        reading, run = self._read_again(X, sample_weight, **where), self._scored_run()
        fitted = self._fitted_to(reading)
        data = self._compiled(fitted.model, reading, run.plan.n_starts)
        return self._evaluation_of(fitted, run, data, random_state)

    def _fitted_to(self, reading: Reading) -> Any:
        """What was fitted, with all that is known of the rows of its data."""
        return self._fitted_

    def _read_again(self, X, sample_weight=None, **where) -> Reading:
        """The data of the fit as they were read then; a ValueError if these are other data."""
        reading = self.read(X, None, sample_weight, columns=self._fitted_.columns, **where)
        if reading.fingerprint != self._scored_run().fingerprint:
            raise ValueError(
                f"The evidence and the posterior of this {type(self).__name__} belong to the data of its fit. X (or "
                "sample_weight) is other data, as the test folds of a cross-validation are. Fit X for its evidence "
                "or posterior, or use score_samples for the log predictive probability of new rows."
                f"{self._other_data(where)}"
            )
        return reading

    def _other_data(self, where: Mapping) -> str:
        """What may be amiss where data are others than those of the fit, as a further sentence."""
        return ""

    def simulated(self, X, sample_weight=None, random_state=None, **where) -> tuple[Evaluation, np.ndarray]:
        """A VB fit to data simulated like X from parameters drawn from the prior, and ln of these.

        Parameters
        ----------
        X, sample_weight, random_state, **where
            As of `evaluation`.

        Returns
        -------
        evaluation : Evaluation
        log_point : ndarray of shape (n_cells,)
        """
        check_is_fitted(self)
        fitted, run = replace(self._fitted_, form=posteriors.VB), self._scored_run()
        like = self.read(X, None, sample_weight, columns=fitted.columns, **where)
        if like.are_in_blocks:
            raise TypeError("Data can be simulated only like rows in memory; X comes in blocks. Give one block.")
        if not like.has_whole_weights:
            raise ValueError("Data can be simulated only like rows, or sequences, of whole-number weights.")
        like = like.one_by_one()
        seed = run.plan.seed if random_state is None else self._seed(random_state)
        rng = np.random.default_rng([*seed, 2**31])
        point = fitted.model.prior.sample(rng)
        reading = like.refilled(self._drawn_like(like, fitted.model, point, rng))
        data = self._compiled(fitted.model, reading, run.plan.n_starts)
        plan = replace(run.plan, starts=self._starts_anew(run.plan, fitted.model, data, reading, seed))
        fit = plan.run(fitted.model, data, fitted.form)
        fitted = replace(fitted, statistics=fit.statistics)
        return self._evaluation_of(fitted, FittedRun(fit, plan), data, random_state), fitted.model.prior.natural(point)

    def _evaluation_of(self, fitted: Fitted, run: FittedRun, data, random_state) -> Evaluation:
        """What scores take: a fitted model on its data."""
        from skvbem.models import capabilities_of  # the registry imports every model, and a fit needs one

        model, form, n_threads = fitted.model, fitted.form, effective_n_jobs(self.n_jobs)
        return Evaluation(
            model,
            capabilities_of(model),
            data,
            lambda other, fit: run.plan.refit(model, data, other, fit, n_threads),
            run.fit,
            "map_probability" if form == posteriors.MAP_IN_PROBABILITIES else form.name,
            data.total_weight,
            self._hidden(fitted),
            run.plan.seed if random_state is None else self._seed(random_state),
            n_threads,
            run.note,
            self.max_memory,
            type(self).__name__,
            lambda fit: run.plan.run_optima(model, data, fit, n_threads),
        )

    @abstractmethod
    def _hidden(self, fitted: Any) -> tuple:
        """Names of nodes never observed."""

    @abstractmethod
    def _drawn_like(self, like: Any, model, point, rng: np.random.Generator) -> Any:
        """As many values as a reading has, drawn from the model at a point."""

    def _starts_anew(self, plan: FitPlan, model, data, reading, seed: tuple[int, ...]) -> Any:
        """The starts of a plan for other data."""
        return plan.starts

    def log_point(self, tables: Mapping) -> np.ndarray:
        """Log parameters, (n_cells,), of those that a user gives, where scores take some.

        Parameters
        ----------
        tables : mapping

        Returns
        -------
        ndarray

        Raises
        ------
        TypeError
            If no score takes parameters of such models.
        """
        raise TypeError(f"Scores of {type(self).__name__} take no parameters. Leave 'tables' out.")

    def score_options(self, options: Mapping) -> dict:
        """Options of a score, tables of nodes among them as the points (n_cells,) that scores know.

        Parameters
        ----------
        options : mapping

        Returns
        -------
        dict
        """
        return {
            name: np.exp(self.log_point(value)) if isinstance(value, Mapping) else value
            for name, value in options.items()
        }

    def log_evidence(self, X=None, *, sample_weight=None, kind="lower_bound", random_state=None, **options):
        """Log marginal likelihood of the data this estimator was fitted to, by one of many approximations.

        Values are total nats with every constant, more is better: they compare across structures, numbers of states and
        estimator classes. :doc:`/user_guide/scores` says when to use which.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data of the fit, rows in any order. May be left out for ``kind="lower_bound"``.
        sample_weight : array-like of shape (n_samples,), default=None
            As in `fit`.
        kind : str or Score, default="lower_bound"
            Name of a score in `skvbem.evidence.SCORES`, such as "ais" (the most exact one for data of any size),
            "collapsed", "bic", "cheeseman_stutz", "laplace", "importance" or "exact".
        random_state : int, RandomState instance or None, default=None
            Seed of scores that draw; by default it follows from the seed of the fit.
        **options
            Options of the score; :doc:`/user_guide/scores` lists them. Parameters of the model, as the `start` of
            "ais_metropolis", are given as a mapping of nodes to tables. `labels` are needed if `fit` was given any.

        Returns
        -------
        Evidence
            With `value` and, where it is random, `standard_error`, in nats.

        Raises
        ------
        ValueError
            If X is not the data of the fit, or the estimator was updated by `partial_fit`.

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
        where |= {name: options.pop(name) for name in self._located_by if name in options}
        return self._log_evidence(X, where, kind, random_state, options)

    def _log_evidence(self, X, where: Mapping, kind: str | Score, random_state, options: Mapping) -> Evidence:
        """`log_evidence` of data that `where` says more of."""
        check_is_fitted(self)
        if X is not None:
            get_score(kind)  # an unknown name is refused before X is read
            evaluation = self.evaluation(X, random_state=random_state, **where)
            return self._scored(evaluation, kind, options)
        get_score(kind)  # an unknown name is refused as such
        run, method = self._scored_run(), self._fitted_.form.name
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

    def _scored(self, evaluation: Evaluation, kind: str | Score, options: Mapping) -> Evidence:
        """The evidence of a fit on its data by a score, whose doubts are warned of."""
        evidence = score_of(evaluation, kind, self.score_options(options))
        for doubt in evidence.doubts:
            warn(doubt, EvidenceWarning)
        return evidence

    def _check_data(self, method: str, X) -> None:
        """Refuse a question that looks at the rows of the fit, without them."""
        if X is None:
            raise TypeError(f"{method} of {type(self).__name__} needs X, the data of the fit, as in {method}(X).")

    def bic(self, X=None, sample_weight=None, **where):
        """Bayesian information criterion as scikit-learn has it, -2 ln L + d ln n: LOWER is better.

        It is -2 times ``log_evidence(X, kind="bic")``, which is in nats and more is better, like all other scores.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data of the fit; without them an error says so.
        sample_weight : array-like of shape (n_samples,), default=None
            As in `fit`.
        **where
            `labels`, if `fit` was given any.

        Returns
        -------
        float
        """
        self._check_data("bic", X)
        return -2.0 * self._log_evidence(X, {"sample_weight": sample_weight, **where}, "bic", None, {}).value

    def aic(self, X=None, sample_weight=None, **where):
        """Akaike's information criterion as scikit-learn has it, -2 ln L + 2 d: LOWER is better. No evidence.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data of the fit; without them an error says so.
        sample_weight : array-like of shape (n_samples,), default=None
            As in `fit`.
        **where
            `labels`, if `fit` was given any.

        Returns
        -------
        float
        """
        self._check_data("aic", X)
        return self._aic(self._log_evidence(X, {"sample_weight": sample_weight, **where}, "bic", None, {}))

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
        **where,
    ):
        """Draws of all parameters from their posterior, labels as in the fit.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data of the fit, rows in any order.
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
        random_state : int, RandomState instance or None, default=None
            By default draws follow from the seed of the fit.
        **where
            For sequences, `sequence_id` or `lengths` as in `fit`.

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
        at_hand = self._at_hand(X, sample_weight, random_state, **where)
        return sample_posterior(at_hand, n_draws, method=method, n_chains=n_chains, max_sweeps=max_sweeps)

    def _at_hand(self, X, sample_weight=None, random_state=None, **where) -> FitAtHand:
        """The fit as the functions of `skvbem.uncertainty` take it; X is read when they need it."""
        evaluate = None if X is None else partial(self.evaluation, X, sample_weight, random_state, **where)
        return FitAtHand(self.fitted, getattr(self, "_run_", None), evaluate, type(self).__name__, self._at)

    def _at(self, natural: np.ndarray) -> Self:
        """An estimator with the parameters of a draw, natural parameters (n_cells,), in place of those of the fit."""
        other = copy(self)
        names = {name: value for name, value in vars(self).items() if name in KEPT_BY_PARTIAL_FIT}
        other._publish(names | self._model_state(self._fitted_.at(natural)))
        return other

    def credible_intervals(
        self, X=None, level=0.95, method="draws", *, n_draws=2000, sample_weight=None, random_state=None, **where
    ):
        """Equal-tailed intervals of each parameter by itself: probabilities, means, rates, shares, weights.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), default=None
            The data of the fit, which an estimator does not keep; needed unless ``method="vb"``.
        level : float, default=0.95
            Mass of each interval.
        method : {"draws", "linear_response", "vb"}, default="draws"
            "draws" of the posterior cover as they should. "linear_response" costs little, and is too narrow where
            labels overlap and rows are few. "vb" takes the quantiles of q(theta), which are too narrow wherever labels
            overlap; it needs no X. :doc:`/user_guide/intervals` says how often each covers.
        n_draws : int, default=2000
            Number of draws from which quantiles are taken.
        sample_weight, random_state, **where
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
        check_is_fitted(self)
        if isinstance(X, Real):
            raise ValueError(
                "The 'X' parameter of credible_intervals must be the data of the fit, or None for method='vb'. Got "
                f"{X!r} instead. The mass of intervals is given by name, as level=0.9."
            )
        at_hand = self._at_hand(X, sample_weight, random_state, **where)
        return credible_intervals(at_hand, level, method, n_draws=n_draws)

    @staticmethod
    def _aic(bic: Evidence) -> float:
        return -2.0 * (bic.details["log_likelihood"] - bic.n_free_parameters)

    def _scored_run(self) -> FittedRun:
        """The run that made the fit at hand."""
        self._fitted_.check_was_found("A score, bootstrap or posterior", type(self).__name__)
        if not hasattr(self, "_run_"):
            raise ValueError(
                f"Scores of the evidence need one fit to all data; this {type(self).__name__} was updated by "
                "partial_fit. Its 'batch_lower_bound_' bounds the last batch given the past. Fit all data for a score."
            )
        return self._run_
