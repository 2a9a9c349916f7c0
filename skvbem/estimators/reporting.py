"""What every estimator reports of a fit: how it went, what it found, and how sure it is of it."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any, ClassVar

from sklearn.utils.validation import check_is_fitted

from skvbem._arguments import check_level
from skvbem.estimators.base import objective_of
from skvbem.estimators.evidence import EvidenceEstimator
from skvbem.reports.goodness_of_fit import fit_indices
from skvbem.reports.summary import Summary
from skvbem.uncertainty.bootstrap import bootstrap
from skvbem.uncertainty.intervals import default_draws, reported_intervals
from skvbem.uncertainty.posterior_draws import PosteriorDraws
from skvbem.uncertainty.standard_errors import standard_errors

_METHODS = {"vb": "variational Bayes", "map": "the posterior mode (MAP)", "ml": "maximum likelihood"}


class ReportingEstimator(EvidenceEstimator):
    """An estimator that reports what it found."""

    #: What intervals are from where rows cannot be drawn.
    _without_rows: ClassVar[str] = "linear_response"

    def summary(self, X=None, *, level=0.95, method="auto", draws=None, sample_weight=None, random_state=None, **where):
        """A report of the fit: what was fitted, how well it went, states in use, and all parameters with intervals.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), default=None
            The data of the fit, which intervals need; without X there are none.
        level : float, default=0.95
            Mass of each interval.
        method : {"auto", "draws", "linear_response", "vb"}, default="auto"
            As in `credible_intervals`. "auto" takes draws of the posterior, which hold the truth as often as they say.
            It takes linear response where rows cannot be drawn, since weights are no whole numbers or rows come in
            blocks. If the estimator has ``method="map"`` or "ml", it takes `standard_errors`. The summary says which.
            "vb" needs no X, and is too narrow where states overlap.
        draws : PosteriorDraws, BootstrapDraws or StandardErrors, default=None
            What `sample_posterior`, `bootstrap` or `standard_errors` returned: intervals are then from these, and X is
            not needed.
        sample_weight, random_state, **where
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
        check_is_fitted(self)
        check_level("summary", level)
        at_hand = self._at_hand(X, sample_weight, random_state, **where)
        intervals = reported_intervals(at_hand, level, method, draws, self._without_rows)
        return Summary(
            f"{type(self).__name__}: {self._what_was_fitted(self._fitted_)}",
            self._facts(),
            (*self._doubts(), *intervals.doubts),
            {} if self._fitted_.given is not None else self.latent_states_,
            tuple(self._fitted_.report(intervals.ends)),
            level,
            intervals.method,
        )

    def draws_that_suit(self, X, sample_weight=None, random_state=None, **where) -> PosteriorDraws:
        """Draws of all parameters by the best method that the data allow, of which reports and displays have intervals.

        Parameters
        ----------
        X, sample_weight, random_state, **where
            As of `sample_posterior`.

        Returns
        -------
        PosteriorDraws
            Draws of the posterior, or of linear response where rows cannot be drawn, since weights are no whole
            numbers or rows come in blocks.
        """
        return default_draws(self._at_hand(X, sample_weight, random_state, **where), self._without_rows)

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
            For sequences, `sequence_id`, `lengths` and inputs as in `fit`.

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
        check_is_fitted(self)
        reading = self.read(X, None, sample_weight, columns=self._fitted_.columns, **where)
        if reading.are_in_blocks:
            raise TypeError("goodness_of_fit needs rows in memory; X comes in blocks. Give it one block.")
        return fit_indices(self.n_free_parameters_, self._fitted_.under_fit(reading, **self._limits()))

    def _limits(self) -> dict:
        """Limits of what a question about rows may take."""
        return {}

    def standard_errors(self, X, *, sample_weight=None, max_states=4096, **where):
        """Standard errors of all parameters of a fit by ``method="ml"`` or "map", from the observed information.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data of the fit, rows in any order.
        sample_weight : array-like of shape (n_samples,), default=None
            As in `fit`.
        max_states : int, default=4096
            Most joint states of what is hidden in one row, which are summed over.
        **where
            For sequences, `sequence_id` or `lengths` as in `fit`.

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
        return standard_errors(self._at_hand(X, sample_weight, **where), max_states)

    def bootstrap(
        self,
        X,
        n_draws=200,
        *,
        kind="nonparametric",
        sample_weight=None,
        random_state=None,
        n_jobs=None,
        **where,
    ):
        """How estimates vary from one data set to the next: fits to data made anew, each from where this fit ended.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data of the fit, rows in any order.
        n_draws : int, default=200
            Data sets made anew. Standard errors need some hundred, ends of 95 % intervals a thousand.
        kind : {"nonparametric", "parametric"}, default="nonparametric"
            Rows, or whole sequences, drawn with replacement; or as many drawn from the model at the fit, the same cells
            missing. Rows that count a whole number of times are so many rows; where weights are fractions, rows are
            drawn and keep their weights.
        sample_weight : array-like of shape (n_samples,), default=None
            As in `fit`; whole numbers for ``kind="parametric"``.
        random_state : int, RandomState instance or None, default=None
            By default draws follow from the seed of the fit.
        n_jobs : int, default=None
            Processes of joblib; draws do not depend on it, nor on the order of rows.
        **where
            For sequences, `sequence_id` or `lengths` as in `fit`.

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
        reading = self._read_again(X, sample_weight, **where)
        return bootstrap(
            replace(self._at_hand(reading), fitted=self._fitted_to(reading)),
            reading,
            n_draws,
            kind=kind,
            seed=None if random_state is None else self._seed(random_state),
            n_jobs=n_jobs,
            compiled=self._compiled,
            drawn_like=self._drawn_like,
        )

    @abstractmethod
    def _what_was_fitted(self, fitted: Any) -> str:
        """The model in words, as the title of a report."""

    def _facts(self) -> dict[str, Any]:
        """What was fitted and how well that went, by name."""
        if self._fitted_.given is not None:
            return {"parameters": "given, and not fitted", "free parameters": self.n_free_parameters_}
        form, run = self._fitted_.form, getattr(self, "_run_", None)
        facts: dict[str, Any] = {"fitted by": _METHODS[form.name] + " in probabilities" * bool(form.lowered_by)}
        if run is None:
            facts["data"] = f"rows of total weight {self.n_samples_:g}, in batches"
        else:
            weight = "" if self.n_samples_ == run.extent.n_rows else f", total weight {self.n_samples_:g}"
            facts["data"] = f"{run.extent}{weight}"
        if run is not None and form.prior_share:
            facts["prior"] = run.prior
        if run is None:
            facts["lower bound of the last batch"] = self.batch_lower_bound_
        else:
            objective = objective_of(form.name, run.fit.state is None)
            facts[objective[:-1].replace("_", " ")] = getattr(self, objective)
        facts["free parameters"] = self.n_free_parameters_
        facts["steps"] = f"{self.n_iter_:,}, {'converged' if self.converged_ else 'not converged'}"
        if run is not None:
            facts["starts"] = self.restarts_.in_words()
        return facts

    def _doubts(self) -> tuple[str, ...]:
        """Why the fit should be read with care."""
        if self._fitted_.given is not None:
            return ()
        doubts, n_free = [], self.n_free_parameters_
        if not self.converged_:
            doubts.append("The fit has not converged: raise 'max_iter'.")
        if hasattr(self, "_run_"):
            doubts += self.restarts_.doubts()
        if n_free > self.n_samples_:
            doubts.append(f"There are more free parameters ({n_free:,}) than rows.")
        return (*doubts, *self._doubts_of_fit(self._fitted_))

    def _doubts_of_fit(self, fitted: Any) -> list[str]:
        """Why a fit of this kind of model should be read with care."""
        return []
