"""Estimators of sequences: tables with `sequence_id` or `lengths`, or lists of tables, in place of a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np

from skvbem._arguments import check_count, check_level, whole_numbers
from skvbem._compat import output_of
from skvbem._docstrings import share_texts
from skvbem.estimators.base import VBEstimator
from skvbem.fitting.fit import question
from skvbem.fitting.kind import kind_of
from skvbem.reading.names import check_names
from skvbem.reading.output import as_array, as_fit_saw
from skvbem.reading.rows import SequenceReading
from skvbem.reading.sequences import Sequences, refuse_lengths_as_y, sequence_weights
from skvbem.reading.tables import Table, checked_weights, show


def read_steps(
    estimator,
    sequences: Sequences,
    given: Any,
    sample_weight,
    columns: Any,
    learned_columns: Callable[[Table], tuple],
) -> SequenceReading:
    """The reading of sequences, from their table and where they are; `given` is X as the user gave it."""
    if columns is not None:
        check_names(sequences.table, estimator)
    weight = None if sample_weight is None else weights_of_sequences(sample_weight, sequences)
    is_weighted = None if weight is None or weight.all() else weight > 0
    table, lengths, order, place = _weighted_sequences(sequences, is_weighted)
    weight = weight if weight is None or is_weighted is None else weight[is_weighted]
    names, times = {}, sequences.times
    if columns is None:
        columns, values = learned_columns(table)
        names = table.names_of_fit()
        if times is not None and times.frequency is not None:
            names["_frequency_"] = str(times.frequency)
    else:
        values = columns.values(table)
        if times is not None:
            times.check_like_fit(estimator)
    if (np.diff(place) != 1).any():
        values = [each[place] for each in values]
    values = columns.with_lags(values, lengths)
    told = {"X": given, "metadata": {"sample_weight": sample_weight}}
    return SequenceReading(
        columns, values, lengths, weight, sequences, order, is_weighted=is_weighted, names=names, given=told
    )


def _weighted_sequences(
    sequences: Sequences, is_weighted: np.ndarray | None
) -> tuple[Table, np.ndarray, np.ndarray, np.ndarray]:
    """Steps of the sequences that count: table, lengths, and places in the user's table and in this."""
    lengths, order = sequences.lengths, sequences.order
    order = np.arange(sequences.n_rows) if order is None else order
    if is_weighted is not None:
        order, lengths = order[np.repeat(is_weighted, lengths)], lengths[is_weighted]
    if (order < 0).any():
        return sequences.table.taken(order), lengths, order, np.arange(len(order))
    if is_weighted is None:
        return sequences.table, lengths, order, order
    stays = np.zeros(sequences.n_rows, dtype=bool)
    stays[order] = True
    return sequences.table.rows(stays), lengths, order, (np.cumsum(stays) - 1)[order]


def weights_of_sequences(sample_weight, sequences: Sequences) -> np.ndarray | None:
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
    return sequence_weights(checked_weights(sample_weight, n), sequences)


def check_steps(lengths) -> np.ndarray:
    """Lengths of sequences to draw, as an array of them."""
    steps = whole_numbers(lengths)
    if steps is None or steps.ndim > 1 or (steps < 1).any() or not steps.size:
        raise ValueError(
            f"The 'lengths' parameter of sample must be an int >= 1, or such ints. Got {show(lengths)} instead."
        )
    return np.atleast_1d(steps)


def check_forecast(X, n_steps, level) -> None:
    """Refuse a number of steps in the place of X, and steps and levels that are none."""
    if isinstance(X, Integral):
        raise TypeError(
            "The first argument of forecast is X, the sequences to go on from. Name the number of steps: "
            f"forecast(X, n_steps={X!r})."
        )
    check_count("n_steps", "forecast", n_steps)
    check_level("forecast", level)


def drawn_sequences(estimator, columns: Sequence[np.ndarray], lengths: np.ndarray) -> list:
    """Columns of drawn steps as sequences, each in the container of those that were fitted."""
    ends = np.cumsum(lengths)
    return [as_fit_saw(estimator, [each[end - n : end] for each in columns]) for n, end in zip(lengths, ends)]


def steps_of_question(estimator, X, **where) -> tuple[Any, Any, Any]:
    """The fit, sequences that it is asked about as read, and these as the model takes them."""
    fitted, reading = question(estimator, X, **where)
    return fitted, reading, kind_of(estimator).compiled(estimator, fitted.model, reading, 1)


def with_times(forecast: Any, sequences: Sequences, n_steps: int) -> Any:
    """A forecast with the times of its steps, and the ids of the sequences."""
    times, ahead = sequences.times, None
    if times is not None and times.frequency is not None:
        ahead = [times.at(k, n + np.arange(n_steps)) for k, n in enumerate(sequences.lengths.tolist())]
    return replace(forecast, times=ahead, sequences=sequences.ids)


def paths_ahead(
    estimator: Any, sequences: Sequences, n_steps: int, n_paths: Any, drawn: Callable[[Any, Any], Sequence[np.ndarray]]
) -> np.ndarray:
    """Cells of the last steps of extended sequences, drawn again and again, (n_paths, n_sequences, n_steps, n_columns).

    Parameters
    ----------
    estimator : estimator
        Fitted.
    sequences : Sequences
        With the steps to come, which no row stands for.
    n_steps : int
        How many of them each sequence has.
    n_paths : int
    drawn : callable of reading and data
        Columns of all steps, those of missing cells drawn.
    """
    check_count("n_paths", "sample_ahead", n_paths)
    fitted, reading, data = steps_of_question(estimator, sequences)
    ends, n_columns = np.cumsum(sequences.lengths), len(fitted.groups.names)
    estimator._check_memory(f"{n_paths:.3g} paths", int(n_paths) * len(ends) * n_steps * n_columns, "fewer paths")
    ahead = (ends[:, None] - n_steps + np.arange(n_steps)).ravel()
    paths = (as_array([column[ahead] for column in drawn(reading, data)]) for _ in range(int(n_paths)))
    return np.stack([path.reshape(len(ends), n_steps, n_columns) for path in paths])


def check_output(estimator, sequences: Sequences) -> None:
    """Refuse to make one table of a list."""
    if sequences.are_listed and output_of("transform", estimator) != "default":
        raise ValueError(
            f"set_output lets 'transform' of {type(estimator).__name__} return one table, but X is a list of "
            "sequences. Give rows with 'sequence_id', or take set_output(transform='default') for a list of arrays."
        )


@share_texts
class SequenceEstimator(VBEstimator):
    """An estimator of sequences: its methods take `sequence_id` or `lengths` beside X."""

    def fit_predict(self, X, y=None, sample_weight=None, sequence_id=None, lengths=None, time=None):
        """Fit, then return what `predict` says of the same sequences.

        %(sequences.X, y, sequences.sample_weight -> ndarray of int, shape (n_rows,), or list of these)s
        """
        self.fit(X, y, sample_weight=sample_weight, sequence_id=sequence_id, lengths=lengths, time=time)
        return self.predict(X, sequence_id=sequence_id, lengths=lengths, time=time)

    def fit_transform(self, X, y=None, sample_weight=None, sequence_id=None, lengths=None, time=None):
        """Fit, then return what `transform` says of the same sequences.

        %(sequences.X, y, sequences.sample_weight -> ndarray of shape (n_rows, n_components), or list of these)s
        """
        self.fit(X, y, sample_weight=sample_weight, sequence_id=sequence_id, lengths=lengths, time=time)
        return self.transform(X, sequence_id=sequence_id, lengths=lengths, time=time)

    def transform(self, X, sequence_id=None, lengths=None, time=None):
        """Probabilities of the states of each step given its whole sequence, as `predict_proba`.

        %(sequences.X, sequence_id -> ndarray of shape (n_rows, n_components), or list of these)s
        """
        sequences = self._kind.located(self, X, sequence_id=sequence_id, lengths=lengths, time=time)
        check_output(self, sequences)
        return self.predict_proba(sequences)

    def score(self, X, y=None, sample_weight=None, sequence_id=None, lengths=None, time=None):
        """Log predictive probability (density) of all sequences over their number of time steps, nats a step.

        The mean, as of scikit-learn's mixtures, so that folds of other lengths compare. Steps without an observed cell
        are steps. (hmmlearn's is the total: the sum of `score_samples`.)

        %(sequences.X, y, sequences.sample_weight -> float)s
        """
        sequences = self._kind.located(self, X, sequence_id=sequence_id, lengths=lengths, time=time)
        return self._score(sequences, y, sample_weight)

    def _score(self, sequences: Sequences, y, sample_weight) -> float:
        refuse_lengths_as_y(y, sequences, "score")
        scores = self.score_samples(sequences)
        weights = weights_of_sequences(sample_weight, sequences)
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
        time=None,
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
        %(sequences.sample_weight)s
        kind : str or Score, default="lower_bound"
            Name of a score in `skvbem.evidence.SCORES`, such as "ais", "bic" or "importance".
        %(score.random_state)s
        **options
            Options of the score, and what else locates rows: `inputs` and `output_inputs` where `fit` takes them.

        Returns
        -------
        %(Evidence)s

        Raises
        ------
        %(data.ValueError)s
        TypeError
            If the score has no such option.
        TooLargeError
            If ``kind="exact"`` has more paths to sum than its option `max_terms` allows.
        """
        where = {"sample_weight": sample_weight, "sequence_id": sequence_id, "lengths": lengths, "time": time}
        where |= {name: options.pop(name) for name in self._kind.located_by if name in options}
        return self._log_evidence(X, where, kind, random_state, options)

    def bic(self, X, sample_weight=None, sequence_id=None, lengths=None, time=None, **where):
        """Bayesian information criterion as scikit-learn has it, -2 ln L + d ln n, n time steps: LOWER is better.

        %(fitted.X, sequences.sample_weight, fitted.**where -> float)s
        """
        where = {"sample_weight": sample_weight, "sequence_id": sequence_id, "lengths": lengths, "time": time, **where}
        return super().bic(X, **where)

    def aic(self, X, sample_weight=None, sequence_id=None, lengths=None, time=None, **where):
        """Akaike's information criterion as scikit-learn has it, -2 ln L + 2 d: LOWER is better. No evidence.

        %(fitted.X, sequences.sample_weight, fitted.**where -> float)s
        """
        where = {"sample_weight": sample_weight, "sequence_id": sequence_id, "lengths": lengths, "time": time, **where}
        return super().aic(X, **where)
