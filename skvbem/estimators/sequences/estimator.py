"""What estimators of sequences do alike, whatever their hidden variables are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skvbem._arguments import check_count, check_level
from skvbem._compat import output_of
from skvbem.estimators.evidence import EvidenceEstimator
from skvbem.evidence import Evidence
from skvbem.reading.column_groups import ColumnGroups
from skvbem.reading.names import check_names
from skvbem.reading.output import as_fit_saw
from skvbem.reading.rows import SequenceReading
from skvbem.reading.sequences import Sequences, read_sequences, refuse_lengths_as_y, sequence_weights
from skvbem.reading.tables import Table


class SequenceEstimator(EvidenceEstimator):
    """What `VBHMM` has in common with other models of sequences.

    Where other estimators take a table, these take a list of tables, or a table and `sequence_id` or `lengths`.
    """

    #: How columns of a table are read, and the values of each group of them.
    _learned_columns: Callable[[Table], tuple[ColumnGroups, list[np.ndarray]]]
    _located_by: ClassVar[tuple[str, ...]] = ("sequence_id", "lengths")

    def fit(self, X, y=None, sample_weight=None, sequence_id=None, lengths=None, **where):
        """Fit the model to sequences.

        Parameters
        ----------
        X : list of tables, or table
        y : None
            Ignored.
        sample_weight, sequence_id, lengths : array-like, default=None
            See `read`.
        **where
            What else is known of rows.

        Returns
        -------
        self
            Fitted.
        """
        return super().fit(X, y, sample_weight, sequence_id=sequence_id, lengths=lengths, **where)

    def _check_y(self, y, reading: Any) -> None:
        if y is not None:
            refuse_lengths_as_y(y, reading.sequences, "fit")

    def _read(self, X, sample_weight, columns: ColumnGroups | None, where: Mapping) -> SequenceReading:
        sequences = self._located(X, **where)
        given = {"X": X, "metadata": {"sample_weight": sample_weight}}
        if columns is not None:
            check_names(sequences.table, self)
        table, lengths, weight, order, place = self._weighted_sequences(sequences, sample_weight)
        names = {}
        if columns is None:
            columns, values = self._learned_columns(table)
            names = table.names_of_fit()
        else:
            values = columns.values(table)
        if (np.diff(place) != 1).any():
            values = [of_group[place] for of_group in values]
        values = columns.with_lags(values, lengths)
        return self._reading(columns, values, lengths, weight, sequences, order, names=names, given=given)

    def _reading(self, *parts: Any, **names: Any) -> SequenceReading:
        """What was read of sequences, from the parts of a `SequenceReading`."""
        return SequenceReading(*parts, **names)

    def _located(self, X, sequence_id=None, lengths=None) -> Sequences:
        """X as sequences, which every method takes in place of X and what locates them."""
        return read_sequences(X, sequence_id, lengths, type(self).__name__)

    def _weighted_sequences(
        self, sequences: Sequences, sample_weight
    ) -> tuple[Table, np.ndarray, np.ndarray | None, np.ndarray, np.ndarray]:
        """Rows of the sequences of weight > 0: table, lengths, weights, and places in the user's table and in this."""
        weight = self._weights_of_sequences(sample_weight, sequences)
        order = np.arange(sequences.n_rows) if sequences.order is None else sequences.order
        if weight is None or weight.all():
            return sequences.table, sequences.lengths, weight, order, order
        is_weighted = weight > 0
        order = order[np.repeat(is_weighted, sequences.lengths)]
        stays = np.zeros(sequences.n_rows, dtype=bool)
        stays[order] = True
        place = (np.cumsum(stays) - 1)[order]
        return sequences.table.rows(stays), sequences.lengths[is_weighted], weight[is_weighted], order, place

    def _weights_of_sequences(self, sample_weight, sequences: Sequences) -> np.ndarray | None:
        """The checked weight of each sequence; None where each counts once."""
        n_rows, n_sequences = sequences.n_rows, len(sequences.lengths)
        shape = np.asarray(sample_weight, dtype=object).shape
        if not sequences.are_listed and shape == (n_sequences,) != (n_rows,):
            raise ValueError(
                f"'sample_weight' has {n_sequences} weights, one for each sequence. X is a table of {n_rows} rows: "
                "give a weight for each row, the same for all rows of a sequence, as by np.repeat(sample_weight, "
                "lengths); or give X as a list of sequences, which takes one weight for each."
            )
        n = n_sequences if sequences.are_listed else n_rows
        return sequence_weights(self._weights(sample_weight, n), sequences)

    def _sequences_of(self, columns: Sequence[np.ndarray], lengths: np.ndarray) -> list:
        """Columns of drawn steps as sequences, each in the container of those that were fitted."""
        ends = np.cumsum(lengths)
        return [as_fit_saw(self, [of_column[end - n : end] for of_column in columns]) for n, end in zip(lengths, ends)]

    @staticmethod
    def _check_forecast(X, n_steps, level) -> None:
        if isinstance(X, Integral):
            raise TypeError(
                "The first argument of forecast is X, the sequences to go on from. Name the number of steps: "
                f"forecast(X, n_steps={X!r})."
            )
        check_count("n_steps", "forecast", n_steps)
        check_level("forecast", level)

    def asked(self, X, sequence_id=None, lengths=None) -> tuple:
        """What was fitted, sequences to ask it about as read, and these as the model takes them.

        Parameters
        ----------
        X : list of tables, or table
        sequence_id, lengths : array-like, default=None
            As in `fit`.

        Returns
        -------
        fitted : Fitted
        reading : SequenceReading
        data : object
            As the model compiled them.
        """
        check_is_fitted(self)
        fitted = self._fitted_
        reading = self.read(X, columns=fitted.columns, sequence_id=sequence_id, lengths=lengths)
        return fitted, reading, self._compiled(fitted.model, reading, 1)

    def fit_predict(self, X, y=None, sample_weight=None, sequence_id=None, lengths=None):
        """Fit, then return what `predict` says of the same sequences.

        Parameters
        ----------
        X : list of tables, or table
        y : None
            Ignored.
        sample_weight, sequence_id, lengths : array-like, default=None
            As in `fit`.

        Returns
        -------
        ndarray of int, shape (n_rows,), or list of these
        """
        self.fit(X, y, sample_weight=sample_weight, sequence_id=sequence_id, lengths=lengths)
        return self.predict(X, sequence_id=sequence_id, lengths=lengths)

    def fit_transform(self, X, y=None, sample_weight=None, sequence_id=None, lengths=None):
        """Fit, then return what `transform` says of the same sequences.

        Parameters
        ----------
        X : list of tables, or table
        y : None
            Ignored.
        sample_weight, sequence_id, lengths : array-like, default=None
            As in `fit`.

        Returns
        -------
        ndarray of shape (n_rows, n_components), or list of these
        """
        self.fit(X, y, sample_weight=sample_weight, sequence_id=sequence_id, lengths=lengths)
        return self.transform(X, sequence_id=sequence_id, lengths=lengths)

    def transform(self, X, sequence_id=None, lengths=None):
        """Probabilities of the states of each step given its whole sequence, as `predict_proba`.

        Parameters
        ----------
        X : list of tables, or table
        sequence_id, lengths : array-like, default=None
            As in `fit`.

        Returns
        -------
        ndarray of shape (n_rows, n_components), or list of these
        """
        sequences = self._located(X, sequence_id, lengths)
        self._check_output(sequences)
        return self.predict_proba(sequences)

    def _check_output(self, sequences: Sequences) -> None:
        """Refuse to make one table of a list."""
        if sequences.are_listed and output_of("transform", self) != "default":
            raise ValueError(
                f"set_output lets 'transform' of {type(self).__name__} return one table, but X is a list of sequences. "
                "Give rows with 'sequence_id', or take set_output(transform='default') for a list of arrays."
            )

    def score(self, X, y=None, sample_weight=None, sequence_id=None, lengths=None):
        """Log predictive probability (density) of all sequences over their number of time steps, nats a step.

        The mean, as of scikit-learn's mixtures, so that folds of other lengths compare. (hmmlearn's is the total: the
        sum of `score_samples`.)

        Parameters
        ----------
        X : list of tables, or table
        y : None
            Ignored.
        sample_weight, sequence_id, lengths : array-like, default=None
            As in `fit`.

        Returns
        -------
        float
        """
        sequences = self._located(X, sequence_id, lengths)
        refuse_lengths_as_y(y, sequences, "score")
        scores = self.score_samples(sequences)
        weights = self._weights_of_sequences(sample_weight, sequences)
        weights = np.ones(len(scores)) if weights is None else weights
        is_weighted = weights > 0  # a sequence that counts for nothing may be impossible
        return float(weights[is_weighted] @ scores[is_weighted] / (weights @ sequences.lengths))

    def log_evidence(
        self,
        X=None,
        *,
        sample_weight=None,
        sequence_id=None,
        lengths=None,
        kind="lower_bound",
        random_state=None,
        **options,
    ):
        """Log marginal likelihood of the sequences this estimator was fitted to, by one of many approximations.

        Values are total nats with every constant, more is better: they compare across structures, numbers of states and
        estimator classes. :doc:`/user_guide/scores` says when to use which, :doc:`/user_guide/sequences` which there
        are for sequences.

        Parameters
        ----------
        X : list of tables, or table
            The data of the fit, sequences in any order. May be left out for ``kind="lower_bound"``.
        sample_weight, sequence_id, lengths : array-like, default=None
            As in `fit`.
        kind : str or Score, default="lower_bound"
            Name of a score in `skvbem.evidence.SCORES`, such as "ais", "bic" or "importance".
        random_state : int, RandomState instance or None, default=None
            Seed of scores that draw; by default it follows from the seed of the fit.
        **options
            Options of the score, and what else locates rows: `inputs` and `output_inputs` where `fit` takes them.

        Returns
        -------
        Evidence
            With `value` and, where it is random, `standard_error`, in nats.

        Raises
        ------
        ValueError
            If X is not the data of the fit, or the estimator was updated by `partial_fit`.
        TypeError
            If the score has no such option.
        TooLargeError
            If ``kind="exact"`` has more paths to sum than its option `max_terms` allows.
        """
        where = {"sample_weight": sample_weight, "sequence_id": sequence_id, "lengths": lengths}
        where |= {name: options.pop(name) for name in self._located_by if name in options}
        return self._log_evidence(X, where, kind, random_state, options)

    def bic(self, X, sample_weight=None, sequence_id=None, lengths=None, **where):
        """Bayesian information criterion as scikit-learn has it, -2 ln L + d ln n, n time steps: LOWER is better.

        Parameters
        ----------
        X : list of tables, or table
            The data of the fit.
        sample_weight, sequence_id, lengths : array-like, default=None
            As in `fit`.
        **where
            `inputs` and `output_inputs`, where `fit` takes them.

        Returns
        -------
        float
        """
        return -2.0 * self._bic_evidence(X, sample_weight, sequence_id, lengths, where).value

    def aic(self, X, sample_weight=None, sequence_id=None, lengths=None, **where):
        """Akaike's information criterion as scikit-learn has it, -2 ln L + 2 d: LOWER is better. No evidence.

        Parameters
        ----------
        X : list of tables, or table
            The data of the fit.
        sample_weight, sequence_id, lengths : array-like, default=None
            As in `fit`.
        **where
            `inputs` and `output_inputs`, where `fit` takes them.

        Returns
        -------
        float
        """
        return self._aic(self._bic_evidence(X, sample_weight, sequence_id, lengths, where))

    def _bic_evidence(self, X, sample_weight, sequence_id, lengths, where: Mapping) -> Evidence:
        """The score "bic", which both criteria are read from."""
        where = {"sample_weight": sample_weight, "sequence_id": sequence_id, "lengths": lengths, **where}
        return self._log_evidence(X, where, "bic", None, {})
