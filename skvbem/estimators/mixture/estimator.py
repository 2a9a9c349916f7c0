"""What estimators of mixtures do alike, whatever their components: they read tables, go on with batches, fill gaps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skvbem._arguments import check_count
from skvbem.blocks import Blocks, blocks_of, is_dask
from skvbem.emissions import Emission
from skvbem.estimators.base import has_posterior
from skvbem.estimators.labels.estimator import EmissionEstimator, check_size
from skvbem.estimators.labels.priors import resolve_emission_prior
from skvbem.fitted.mixture import FittedMixture
from skvbem.models.mixture.model import Mixture
from skvbem.models.mixture.weights import Weights
from skvbem.optima.mixture import MixtureMethod
from skvbem.reading.column_groups import ColumnGroups
from skvbem.reading.names import check_names
from skvbem.reading.output import as_fit_saw, filled
from skvbem.reading.rows import TableReading
from skvbem.reading.tables import read_table
from skvbem.reading.weighted_blocks import WeightedTables


class MixtureEstimator(EmissionEstimator):
    """Parameters and methods of `VBMixture`, and of models that are mixtures of one component."""

    _label = "component"
    _method = MixtureMethod()
    _fitted_type = FittedMixture
    # Of a search that names none: that of networks is refused where hyperparameters are hidden.
    default_score = "lower_bound"

    def fit(self, X, y=None, sample_weight=None):
        """Fit the model to a table.

        A fit that raises or is interrupted leaves the estimator as it was before.

        Parameters
        ----------
        X : array-like, pandas or polars DataFrame of shape (n_samples, n_features), dask collection, or Blocks
            NaN, None and NA are missing cells. An array of floats in C order is read where it lies. If rows come in
            blocks (see `blocks_of`), one block at a time is in memory.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), dask array or Blocks, default=None
            How often each row counts; rows of weight 0 are as if absent. Where X comes in blocks, so may these.

        Returns
        -------
        self : estimator
            Fitted.

        Raises
        ------
        ValueError
            If X or a parameter is not what it should be; the message names which and what would be right.
        TooLargeError
            If parameters and starts take more than `max_memory`.
        """
        return super().fit(X, y, sample_weight)

    @available_if(has_posterior)
    def partial_fit(self, X, y=None, sample_weight=None):
        """Update the posterior with a batch, whose prior is the last posterior [Beal (2.114)-(2.117)].

        Exact with one component on complete data, whatever the batches. With several, a component that an early batch
        does not need is soon given up for good: let the first batch be large, or fit `blocks_of` all batches.
        `batch_lower_bound_` bounds the log probability of this batch given the approximate past; the sum over batches
        is no bound on the evidence of all data, so `lower_bound_`, `lower_bounds_` and `restarts_` go after the first
        batch. Only with ``method="vb"``.

        Parameters
        ----------
        X : array-like, pandas or polars DataFrame of shape (n_samples, n_features)
            The first batch is fitted as by `fit`: it fixes columns, categories, units and the priors taken from data.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            As in `fit`.

        Returns
        -------
        self : estimator
            Fitted.
        """
        if isinstance(X, Blocks):
            raise TypeError("A batch is a table; blocks are what fit takes. Give partial_fit one block at a time.")
        return super().partial_fit(X, y, sample_weight)

    def _read(self, X, sample_weight, columns: ColumnGroups | None, where: Mapping) -> TableReading:
        owner = type(self).__name__
        given = {"X": X, "metadata": {"sample_weight": sample_weight}}
        if not isinstance(X, np.ndarray) and is_dask(X):
            X = blocks_of(X)
        if isinstance(X, Blocks):
            tables, names = WeightedTables(X, sample_weight, owner), {}
            if columns is None:
                columns = ColumnGroups.learned_from_blocks(
                    tables.tables, self._given_emission(), owner, **self._reading_options()
                )
                names = next(iter(tables.tables)).names_of_fit()
            return TableReading.of_blocks(columns, tables, names=names, given=given)
        table = read_table(X, owner)
        if columns is not None:
            check_names(table, self)
        table, weight, is_weighted = self._weighted_rows(table, sample_weight)
        if columns is not None:
            return TableReading(columns, [(columns.values(table), weight)], is_weighted, given=given)
        columns, values = self._learned_columns(table)
        return TableReading(columns, [(values, weight)], is_weighted, names=table.names_of_fit(), given=given)

    def _mixture(
        self, reading: TableReading, emission: Emission, n_components: int, weights: Callable[[int], Weights]
    ) -> Mixture:
        """The mixture of so many components of an emission, whose weights have some prior."""
        check_size(emission, n_components, self._n_starts(), self.max_memory, type(self).__name__)
        return Mixture(emission, weights(n_components), resolve_emission_prior(reading.groups, emission, n_components))

    def _drawn_like(self, like: TableReading, model: Mixture, point, rng: np.random.Generator):
        ((values, _),) = like.blocks
        given = like.groups.as_emission_takes(values)
        return self._fitted_type.drawn_at(model, point, len(values[0]), rng, given)[0]

    # Asking ---------------------------------------------------------------------------------------------------

    def asked(self, X) -> tuple[FittedMixture, list[np.ndarray]]:
        """What was fitted, and the values of a table to ask it about, by group of columns.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        fitted : FittedMixture
        values : list of ndarray
        """
        check_is_fitted(self)
        table = read_table(X, type(self).__name__)
        check_names(table, self)
        return self._fitted_, self._fitted_.groups.values(table)

    def score_samples(self, X):
        """Log predictive density of each row, nats; what is missing is integrated out.

        With ``method="vb"`` the exact average of p(row | theta) over q(theta), which integrates to one over all rows;
        with MAP and ML that of the point found. A row that is impossible scores -inf.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        fitted, values = self.asked(X)
        return fitted.log_predictive(values)

    def impute(self, X):
        """X with missing cells filled: numbers by predictive means given the row, categories by the most probable one.

        Parameters
        ----------
        X : array-like, pandas or polars DataFrame of shape (n_samples, n_features)

        Returns
        -------
        ndarray or DataFrame
            X in its own container; observed cells are untouched.
        """
        fitted, values = self.asked(X)
        emission, groups = fitted.emission, fitted.groups
        table = emission.prepare(groups.as_emission_takes(values))
        imputed = fitted.imputed(table[0 : len(table)], fitted.responsibilities(values))
        return filled(X, groups.missing(values), groups.columns_of(imputed))

    def _sampled(self, n_samples, random_state, given=None) -> tuple[Any, np.ndarray]:
        """Rows drawn from the predictive distribution of a new row, and the components behind them."""
        check_is_fitted(self)
        check_count("n_samples", "sample", n_samples)
        fitted = self._fitted_
        fitted.groups.check_covariates("sample", given)
        if given is not None:
            _, given = self.asked(given)
            if n_samples not in (1, len(given[0])):
                raise ValueError(
                    f"'given' has {len(given[0])} rows, and 'n_samples' is {n_samples}. Leave 'n_samples' out."
                )
            n_samples = len(given[0])
        numbers = int(n_samples) * (2 * len(fitted.groups.names) + 2)
        self._check_memory(f"{n_samples:.3g} rows drawn", numbers, "fewer at a time")
        rng = self._rng(self.random_state if random_state is None else random_state)
        drawn, components = fitted.sample(int(n_samples), rng, given)
        return as_fit_saw(self, fitted.groups.columns_of(fitted.groups.as_list(drawn))), components
