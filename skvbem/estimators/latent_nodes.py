"""Estimators with hidden nodes: posteriors of these given rows, and their names."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skvbem._compat import check_feature_names_in
from skvbem._docstrings import share_texts
from skvbem.estimators.base import VBEstimator, has_posterior
from skvbem.reading.tables import weighted_mean
from skvbem.reports.membership import class_probabilities, odds_ratios


@share_texts
class LatentNodesEstimator(VBEstimator):
    """An estimator of a network with hidden nodes, `latent_names_`."""

    # Fitting ----------------------------------------------------------------------------------------------------------

    def fit(self, X, y=None, sample_weight=None, *, interventions=None):
        """Fit the network to a table.

        A fit that raises or is interrupted leaves the estimator as it was before.

        Parameters
        ----------
        X : array-like, pandas or polars DataFrame of shape (n_samples, n_features)
            Categories, and what else the estimator takes; NaN, None and NA are missing cells.
        %(y)s
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts; rows of weight 0 are as if absent.
        interventions : array-like of shape (n_samples,) or (n_samples, n_features), or str, default=None
            What an experimenter set in each row: the name of a column, a list of names, or None or NaN where nothing
            was set. A table of booleans, one for each cell, says the same; a string names a column of X that holds the
            names and is no node. A node that was set tells of its children, never of its parents: its own table does
            not count the row. `log_evidence`, draws and reports need the interventions again.

        Returns
        -------
        %(self)s

        Raises
        ------
        StructureError
            If the structure is no DAG, names a node that is neither column nor latent, or has numbers as parents of
            nodes with a table.
        TooLargeError
            If a table or the whole fit exceeds `max_table_cells` or `max_memory`.
        %(fit.ValueError)s
        """
        return self._fit(X, y, sample_weight, interventions=interventions)

    @available_if(has_posterior)
    def partial_fit(self, X, y=None, sample_weight=None, *, interventions=None):
        """Update the posterior with a batch, whose prior is the last posterior [Beal (2.114)-(2.117)].

        Exact on complete data, whatever the batches. With hidden variables a state that an early batch does not need is
        soon given up for good: let the first batch be large, or use `fit`. `batch_lower_bound_` bounds the log
        probability of this batch given the approximate past; the sum over batches is no bound on the evidence of all
        data, so `lower_bound_`, `lower_bounds_` and `restarts_` go after the first batch. Only with ``method="vb"``.

        Parameters
        ----------
        X : array-like, pandas or polars DataFrame of shape (n_samples, n_features)
            The first batch fixes columns, categories, units, structure and prior.
        %(y, sample_weight, interventions)s

        Returns
        -------
        %(self)s
        """
        return self._partial_fit(X, y, sample_weight, interventions=interventions)

    # Asking -----------------------------------------------------------------------------------------------------------

    @property
    def latent_states_(self) -> dict:
        """Use of the states of each latent, a dict of latent to LatentStates."""
        check_is_fitted(self)
        return {name: self._fitted_.states_of(name) for name in self.latent_names_}

    def score(self, X, y=None, sample_weight=None, *, interventions=None):
        """Mean log predictive probability (density) of the rows, nats per row: the mean of `score_samples`.

        A row without an observed cell has 0 nats, and counts as a row.

        %(X, y, sample_weight, interventions -> float)s
        """
        return weighted_mean(self.score_samples(X, interventions=interventions), sample_weight)

    @abstractmethod
    def score_samples(self, X, *, interventions=None):
        """Log predictive probability (density) of each row, nats."""

    @abstractmethod
    def _latent_marginals(self, X, interventions=None) -> list[np.ndarray]:
        """Posteriors (n_samples, n_states) of the latents, in the order of `latent_names_`."""

    def predict_proba(self, X, *, interventions=None):
        """Posterior probabilities of each latent's states given each row.

        %(X, interventions -> ndarray of shape (n_samples, n_states), or list of such)s
            One array if there is one latent, else a list in the order of `latent_names_`, as scikit-learn's
            multi-output classifiers return. A row that is impossible under the fit gets the probabilities of an empty
            row.
        """
        marginals = self._latent_marginals(X, interventions)
        return marginals[0] if len(marginals) == 1 else marginals

    def predict(self, X, *, interventions=None):
        """Most probable state of each latent, one by one, given each row.

        %(X, interventions -> ndarray of int, shape (n_samples,) or (n_samples, n_latents))s
        """
        return as_columns([marginal.argmax(axis=1) for marginal in self._latent_marginals(X, interventions)])

    @abstractmethod
    def impute(self, X, *, fill="auto", return_proba=False):
        """X with missing cells filled."""

    @abstractmethod
    def _joint_modes(self, X) -> list[np.ndarray]:
        """Codes (n_samples,) of the latents at the joint mode of each row, in the order of `latent_names_`."""

    def decode(self, X):
        """Most probable joint state of all latents (and of missing categories that bear on them) given each row.

        `predict` has the most probable state of each latent, one by one.

        %(X -> ndarray of int, shape (n_samples,) or (n_samples, n_latents))s
            Without latents X with its missing cells filled, as by ``impute(X, fill="joint")``.
        """
        check_is_fitted(self)
        if not self.latent_names_:
            return self.impute(X, fill="joint")
        return as_columns(self._joint_modes(X))

    def transform(self, X):
        """Posterior probabilities of all latents' states, side by side; names by `get_feature_names_out`.

        %(X -> ndarray of shape (n_samples, total number of latent states))s
        """
        return np.hstack(self._latent_marginals(X))

    def get_feature_names_out(self, input_features=None):
        """Names of the columns of `transform`: latent and state, as in h0_0, h0_1.

        %(input_features -> ndarray of str)s
        """
        check_is_fitted(self)
        check_feature_names_in(self, input_features, generate_names=False)
        names = [f"{name}_{state}" for name in self.latent_names_ for state in self._fitted_.levels[name]]
        return np.asarray(names, dtype=object)

    # Covariates of latents --------------------------------------------------------------------------------------------

    def odds_ratios(self, X=None, reference=None, *, node=None, level=0.95, draws=None, sample_weight=None):
        """Odds of each state of a node against one of them, by covariate, with intervals and tests.

        Parameters
        ----------
        %(odds.X)s
        reference : int, default=None
            The state that odds are against; by default the largest.
        %(driven.node, interval.level, interval.draws, sample_weight)s

        Returns
        -------
        %(OddsRatios)s

        Raises
        ------
        %(argument.TypeError, odds.ValueError)s
        """
        return odds_ratios(self, X, reference, node=node, level=level, draws=draws, sample_weight=sample_weight)

    def class_probabilities(self, X, covariate, values=None, *, node=None, level=0.95, draws=None, sample_weight=None):
        """Probabilities of the states of a node at values of a covariate, the others averaged over rows.

        Parameters
        ----------
        %(classes.X)s
        covariate : str or int
        %(classes.values, driven.node, interval.level, interval.draws, sample_weight)s

        Returns
        -------
        %(ClassProbabilities)s

        Raises
        ------
        %(classes.ValueError, classes.TypeError)s
        """
        options = {"node": node, "level": level, "draws": draws, "sample_weight": sample_weight}
        return class_probabilities(self, X, covariate, values, **options)


def as_columns(columns: list[np.ndarray]) -> np.ndarray:
    """One column as it is, several as the columns of one array."""
    return columns[0] if len(columns) == 1 else np.stack(columns, axis=1)
