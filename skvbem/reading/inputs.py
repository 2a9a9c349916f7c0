"""Inputs of sequences, as users give them beside X."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

import numpy as np

from skvbem._arguments import are_texts, is_list
from skvbem.data import mixed
from skvbem.reading.frequencies import Frequency
from skvbem.reading.names import compare_names
from skvbem.reading.rows import SequenceReading
from skvbem.reading.sequences import Sequences, read_sequences
from skvbem.reading.tables import are_observed, library_of
from skvbem.reading.times import dates_of_index

#: Name of a table beside X -> names of its columns, None of one without names.
InputNames = dict[str, list[str] | None]
# Squares of larger inputs, summed over rows, overflow.
_LARGEST = 1e140
# In hashes of rows, what tells an input from a measurement.
_OF_INPUTS = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, eq=False)
class SequencesWithInputs(Sequences):
    """Sequences, and what is known of each of their steps.

    Parameters
    ----------
    inputs, output_inputs : ndarray of shape (n_steps, n_inputs)
        Of the states, and of the measurements, in the order of time.
    input_names : dict
        Names of the columns of the tables that were given, None of one without names.
    """

    inputs: np.ndarray = field(kw_only=True)
    output_inputs: np.ndarray = field(kw_only=True)
    input_names: InputNames = field(default_factory=dict, kw_only=True)

    def only(self, which: int) -> SequencesWithInputs:
        """One of the sequences, as rows of one table."""
        end = int(self.lengths[: which + 1].sum())
        steps = slice(end - int(self.lengths[which]), end)
        one = super().only(which)
        return _with_inputs(one, self.inputs[steps], self.output_inputs[steps], self.input_names)


def with_inputs_ahead(sequences: SequencesWithInputs, ahead: tuple[np.ndarray, np.ndarray]) -> SequencesWithInputs:
    """Sequences with steps more, whose inputs are known.

    Parameters
    ----------
    sequences : SequencesWithInputs
    ahead : tuple of ndarray
        Inputs (n_sequences, n_steps, n_inputs) of the states and of the measurements of the steps to come.
    """
    n_steps = ahead[0].shape[1]
    ends = np.repeat(np.cumsum(sequences.lengths), n_steps)
    inputs, output_inputs = (
        np.insert(of_steps, ends, to_come.reshape(len(ends), of_steps.shape[1]), axis=0)
        for of_steps, to_come in zip((sequences.inputs, sequences.output_inputs), ahead)
    )
    return replace(sequences.extended(n_steps), inputs=inputs, output_inputs=output_inputs)


def read_with_inputs(
    X, sequence_id, lengths, inputs, output_inputs, owner: str, time=None, of_fit: Frequency | None = None
) -> SequencesWithInputs:
    """Sequences in any of their forms, with inputs in the same form; see `read_sequences`."""
    if isinstance(X, SequencesWithInputs):
        return X
    sequences = read_sequences(X, sequence_id, lengths, owner, time, of_fit)
    tables = {"inputs": inputs, "output_inputs": output_inputs}
    names = {
        name: column_names(given if sequences.are_listed else [given], name)
        for name, given in tables.items()
        if given is not None
    }
    values = [read_inputs(given, sequences, name) for name, given in tables.items()]
    return _with_inputs(sequences, values[0], values[1], names)


def _with_inputs(
    sequences: Sequences, inputs: np.ndarray, output_inputs: np.ndarray, names: InputNames
) -> SequencesWithInputs:
    known = {each.name: getattr(sequences, each.name) for each in fields(Sequences)}
    return SequencesWithInputs(**known, inputs=inputs, output_inputs=output_inputs, input_names=names)


def column_names(tables: Any, name: str) -> list[str] | None:
    """Names of the columns that all of some tables have, as the first has them, None if they have none.

    Raises
    ------
    ValueError
        If tables have different ones, or one has a name twice.
    """
    each = [_names_of(table) for table in tables]
    for k, names in enumerate(each):
        if len(set(names or [])) < len(names or []):
            raise ValueError(f"The columns of {name!r} must have different names. Got {names}.")
        if sorted(names or []) != sorted(each[0] or []):
            raise ValueError(
                f"The tables of {name!r} must have the same columns. Table 0 has {each[0]} and table {k} has {names}."
            )
    return each[0] if each else None


def _in_one_order(tables: Any) -> list:
    """Tables with the columns of the first one in its order, which frames are asked for by name."""
    first = _names_of(tables[0]) if len(tables) else None
    return [table if first is None or _names_of(table) == first else table[first] for table in tables]


def _names_of(table: Any) -> list[str] | None:
    """Names of the columns of a data frame, or that of a series; None unless all are texts."""
    if library_of(table):
        names: list = list(table.columns)
    else:
        names = [None if callable(table) else getattr(table, "name", None)]
    return names if are_texts(names) else None


def check_input_names(given: InputNames, estimator: Any) -> None:
    """Refuse tables of inputs whose columns are not those of the fit, in their order; see `check_names`.

    Parameters
    ----------
    given : dict
        Names of columns by names of tables.
    estimator : estimator
        Fitted.
    """
    of_fit = getattr(estimator, "_input_names_", {})
    for table, names in given.items():
        compare_names(table, of_fit.get(table.removeprefix("future_")), names, type(estimator).__name__)


def read_inputs(given: Any, sequences: Sequences, name: str) -> np.ndarray:
    """Inputs of steps, (n_steps, n_inputs), in the order of time.

    Of steps that no row stands for they are found by the dates in the index of the table of inputs.

    Raises
    ------
    ValueError
        If they are not finite numbers, one row for each row of X.
    """
    if given is None:
        return np.zeros((int(sequences.lengths.sum()), 0))
    tables = _in_one_order(given) if sequences.are_listed else [given]
    has_gaps = sequences.times is not None and sequences.times.n_filled > 0
    if has_gaps:
        tables = _by_date(tables, sequences, name)
    try:
        parts = [_matrix(part) for part in tables]
        values = np.concatenate(parts)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"{name!r} must hold real numbers, none of them masked, in a table with a row for each row of X."
        ) from None
    if (peak := np.abs(values).max(initial=0.0)) > _LARGEST and np.isfinite(peak):
        raise ValueError(f"{name!r} holds numbers up to {peak:.3g}, whose squares overflow. Give it in another unit.")
    n_rows = sequences.rows_of_each.tolist() if sequences.are_listed else [sequences.n_rows]
    given_rows = [len(part) for part in parts]
    if given_rows != n_rows and not has_gaps:
        raise ValueError(
            f"{name!r} must have a row for each row of X, in the same form: {_told(n_rows)}. Got {_told(given_rows)} "
            "instead."
        )
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        row, column = bad[0].tolist()
        raise ValueError(
            f"{name!r} must be finite: a step depends on them, so that none can be missing. Row {row} of column "
            f"{column} is {values[row, column]}. Fill them, or take what has gaps as columns of X."
        )
    return values if sequences.order is None or has_gaps else values[sequences.order]


def _by_date(tables: list, sequences: Sequences, name: str) -> list:
    """Tables of the inputs of all steps of each sequence, by the dates in their index.

    Raises
    ------
    ValueError
        If they have none, or lack the date of a step.
    """
    times = sequences.times
    assert times is not None
    wanted = (
        f"{name!r} must have the inputs of all steps, and {times.told_of_filled()}. Give it as a pandas DataFrame with "
        "an index of dates that has a row for each step"
    )
    of_each = []
    for which, n_steps in enumerate(sequences.lengths.tolist()):
        table = tables[which if sequences.are_listed else 0]
        index = dates_of_index(table)
        if index is None:
            raise ValueError(f"{wanted}.")
        if index.has_duplicates:
            raise ValueError(f"{wanted}: its index has {index[index.duplicated()][0]} twice.")
        steps = times.at(which, np.arange(n_steps))
        places = index.get_indexer(steps)
        if (places < 0).any():
            raise ValueError(f"{wanted}: it has none of {steps[int((places < 0).argmax())]}.")
        of_each.append(table.iloc[places])
    return of_each


def _told(n_rows: list[int]) -> str:
    """Numbers of rows in words."""
    if len(n_rows) == 1:
        return f"{n_rows[0]} rows"
    shown = ", ".join(map(str, n_rows[:3])) + (", ..." if len(n_rows) > 3 else "")
    return f"{len(n_rows)} tables of {shown} rows"


def _matrix(part: Any) -> np.ndarray:
    if np.ma.is_masked(part) or np.asarray(part).dtype.kind in "mMc":  # conversion would drop masks, units, and parts
        raise ValueError
    values = np.asarray(part, dtype=float)
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2:
        raise ValueError
    return values


@dataclass(frozen=True, eq=False)
class InputReading(SequenceReading):
    """Rows of sequences, read, with their inputs.

    Parameters
    ----------
    inputs, output_inputs : ndarray of shape (n_rows, n_inputs)
    """

    inputs: Any = None
    output_inputs: Any = None

    @classmethod
    def of(cls, reading: SequenceReading) -> Self:
        """A reading of `SequencesWithInputs`, with the inputs of its rows."""
        sequences, weighted = reading.sequences, reading.is_weighted
        steps = slice(None) if weighted is None else np.repeat(weighted, sequences.lengths)
        known = {each.name: getattr(reading, each.name) for each in fields(SequenceReading)}
        names = {"_input_names_": sequences.input_names} if sequences.input_names and reading.names else {}
        known["names"] = {**reading.names, **names}
        return cls(**known, inputs=sequences.inputs[steps], output_inputs=sequences.output_inputs[steps])

    def compiled(self, model: Any) -> Any:
        """The rows as a linear dynamical system takes them.

        Raises
        ------
        ValueError
            If there are not as many inputs as the model has.
        """
        for name, given, n in (
            ("inputs", self.inputs, model.n_inputs),
            ("output_inputs", self.output_inputs, model.n_output_inputs - 1),
        ):
            if given.shape[1] != n:
                raise ValueError(
                    f"{self.columns.owner} was fitted with {n} columns of {name!r}. Got {given.shape[1]}: give {n}."
                )
        return model.compile(self.values[0], self.lengths, self.weight, self.inputs, self.regressors)

    @property
    def before_last_observed(self) -> np.ndarray:
        """True for steps on whose states an observation of their sequence depends, (n_rows,)."""
        seen = are_observed(self.values)
        after = np.cumsum(seen[::-1])[::-1]  # observed steps from each step on, of all sequences
        last = np.cumsum(self.lengths) - 1
        return after > np.repeat(after[last] - seen[last], self.lengths)

    @property
    def regressors(self) -> np.ndarray:
        """Inputs of the measurements, the constant of their offset first."""
        return np.column_stack([np.ones(len(self.output_inputs)), self.output_inputs])

    @property
    def unit_hashes(self) -> np.ndarray:
        """Hashes of whole sequences, (n_sequences,)."""
        hashes = super().unit_hashes
        if not self.inputs.shape[1] + self.output_inputs.shape[1]:
            return hashes
        of_inputs = SequenceReading(self.columns, [self.inputs, self.output_inputs], self.lengths, None).unit_hashes
        return hashes + mixed(_OF_INPUTS + of_inputs)

    def taken(self, units: np.ndarray, weight: np.ndarray | None) -> Self:
        """The reading of some sequences."""
        taken = super().taken(units, weight)
        firsts = np.cumsum(self.lengths) - self.lengths
        new = np.cumsum(taken.lengths) - taken.lengths
        rows = np.arange(taken.lengths.sum()) + np.repeat(firsts[units] - new, taken.lengths)
        return replace(taken, inputs=self.inputs[rows], output_inputs=self.output_inputs[rows])


def inputs_of_steps(given: Any, name: str, shape: tuple[int, int, int], estimator: Any) -> np.ndarray:
    """Inputs of steps to come, (n_sequences, n_steps, n_inputs), of columns that a fitted estimator knows."""
    if given is None:
        values = np.zeros((*shape[:2], 0))
    else:
        tables = given if is_list(given) and any(map(_names_of, given)) else [given]
        check_input_names({name: column_names(tables, name)}, estimator)
        given = given if tables[0] is given else _in_one_order(tables)
        try:
            if np.ma.is_masked(given) or np.asarray(given).dtype.kind in "mMc":
                raise ValueError
            values = np.asarray(given, dtype=float)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"{name!r} must hold numbers, in tables of one shape for all sequences.") from None
        if values.ndim == 1 and shape[2] == 1:
            values = values[:, None]
        if values.ndim == 2:
            values = np.broadcast_to(values, (shape[0], *values.shape))
    if values.shape != shape or not np.isfinite(values).all():
        raise ValueError(
            f"{name!r} must be finite and of shape {shape}: inputs of each sequence and of each step, of which "
            f"'lengths' or 'n_steps' say how many. Got {'none' if given is None else f'shape {values.shape}'}."
        )
    return values
