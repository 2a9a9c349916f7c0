"""What every estimator says of the evidence: one method for all scores, and BIC and AIC in scikit-learn's sign."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skvbem._compat import warn
from skvbem.data import Rows
from skvbem.errors import EvidenceWarning
from skvbem.evidence import Evidence, get_score
from skvbem.evidence.evaluation import Evaluation
from skvbem.vbem.fit import Fit


@dataclass(frozen=True, eq=False)
class FittedRun:
    """How a fit was made, and of which data, for the scores that come after it.

    Parameters
    ----------
    fit : Fit
    recipe : Recipe
    note : str
        What its scores are conditional on.
    fingerprint : str
        Of the rows.
    """

    fit: Fit
    recipe: Any
    note: str = ""
    fingerprint: str = ""


class EvidenceMixin:
    """Adds `log_evidence`, `bic` and `aic` to an estimator that can make an `Evaluation`."""

    @abstractmethod
    def _evaluation(self, X, sample_weight, random_state) -> Evaluation:
        """What scores take, of the fit at hand on the data it was fitted to."""

    @abstractmethod
    def _simulated(self, X, sample_weight, random_state) -> tuple[Evaluation, np.ndarray]:
        """A VB fit to data simulated like X from parameters drawn from the prior, and ln of these."""

    @abstractmethod
    def _log_point(self, tables: Mapping) -> np.ndarray:
        """ln of parameters as a user gives them, (n_cells,)."""

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
        kind : str, default="lower_bound"
            Name of a score in `skvbem.evidence.SCORES`, such as "ais" (the most exact one for data of any size),
            "collapsed", "bic", "cheeseman_stutz", "laplace", "importance" or "exact".
        random_state : int, RandomState instance or None, default=None
            Of scores that draw; by default they follow from the seed of the fit.
        **options
            Of the score; :doc:`/user_guide/scores` lists them. Parameters of the model, as the `start` of
            "ais_metropolis", are given as a mapping of nodes to tables.

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
        check_is_fitted(self)
        if X is not None:
            found = self._scored(X, sample_weight, kind, random_state, options)
            for doubt in found.doubts:
                warn(doubt, EvidenceWarning)
            return found
        get_score(kind)  # an unknown name is refused as such
        run, method = self._scored_run(), self._fitted_.form.name
        if kind != "lower_bound" or options or method != "vb":
            raise ValueError(
                f"log_evidence of {type(self).__name__} needs X, the data of the fit. Without it there is only "
                f"kind='lower_bound', without options, after method='vb'. Got kind={kind!r} after method={method!r}."
            )
        return Evidence(
            self.lower_bound_,
            kind,
            is_lower_bound=True,
            form="vb",
            n_free_parameters=self.n_free_parameters_,
            n_samples=self.n_samples_,
            details={"converged": self.converged_},
            note=run.note,
        )

    def _scored(self, X, sample_weight, kind: str, random_state, options: Mapping) -> Evidence:
        """`log_evidence` of data, its doubts not spoken."""
        score = get_score(kind)
        return score(self._evaluation(X, sample_weight, random_state), **self._as_scores_take(options))

    def bic(self, X, sample_weight=None):
        """Bayesian information criterion as scikit-learn has it, -2 ln L + d ln n: LOWER is better.

        It is -2 times ``log_evidence(X, kind="bic")``, which is in nats and more is better, like all other scores.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data of the fit.
        sample_weight : array-like of shape (n_samples,), default=None
            As in `fit`.

        Returns
        -------
        float
        """
        return -2.0 * self.log_evidence(X, sample_weight=sample_weight, kind="bic").value

    def aic(self, X, sample_weight=None):
        """Akaike's information criterion as scikit-learn has it, -2 ln L + 2 d: LOWER is better. No evidence.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data of the fit.
        sample_weight : array-like of shape (n_samples,), default=None
            As in `fit`.

        Returns
        -------
        float
        """
        found = self.log_evidence(X, sample_weight=sample_weight, kind="bic")
        return -2.0 * (found.details["log_likelihood"] - found.n_free_parameters)

    def _as_scores_take(self, options: Mapping) -> dict:
        """Options of a score, tables of nodes among them as the points (n_cells,) that scores know."""
        return {
            name: np.exp(self._log_point(value)) if isinstance(value, Mapping) else value
            for name, value in options.items()
        }

    def _scored_run(self) -> FittedRun:
        """The run that made the fit at hand."""
        if not hasattr(self, "_run_"):
            raise ValueError(
                f"Scores of the evidence are those of one fit to all data; this {type(self).__name__} was updated by "
                "partial_fit. Its 'batch_lower_bound_' bounds the last batch given the past; fit all data for a score."
            )
        return self._run_

    def _check_same_data(self, run: FittedRun, data: Rows) -> None:
        self._check_fingerprint(run, data.fingerprint())

    def _check_fingerprint(self, run: FittedRun, fingerprint: str) -> None:
        if fingerprint != run.fingerprint:
            raise ValueError(
                f"The evidence is that of the data a {type(self).__name__} was fitted to; X (or sample_weight) is "
                "other data, as it is in the test folds of a cross-validation. Fit X for its evidence, or use "
                "score_samples for the log predictive probability of new rows."
            )
