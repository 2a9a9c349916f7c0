"""Sequences as estimators with emissions read them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Self

import numpy as np

from skvbem.data import fingerprint, mixed, row_hashes
from skvbem.estimators.input.column_groups import ColumnGroups
from skvbem.estimators.input.numbers import are_complete, are_observed
from skvbem.estimators.input.rows import TableReading
from skvbem.estimators.reading import Reading
from skvbem.models.hmm.model import HMM
from skvbem.models.hmm.starts import seeded_starts
from skvbem.models.sequences.data import HMMData

_MULTIPLIER = np.uint64(0xD1342543DE82EF95)


@dataclass(frozen=True, eq=False)
class SequenceReading(Reading):
    """Rows of sequences of weight > 0, read, in the order of time.

    Parameters
    ----------
    columns : ColumnGroups
    values : list of ndarray
        Of each group.
    lengths : ndarray of int64, shape (n_sequences,)
    weight : ndarray of shape (n_sequences,) or None
        How often each sequence counts; once if None.
    sequences : Sequences or None
        All of them, where the user's rows are and which belong together.
    order : ndarray of int, shape (n_rows,) or None
        Where these rows stand among the user's.
    """

    columns: ColumnGroups
    values: list[np.ndarray]
    lengths: np.ndarray
    weight: np.ndarray | None
    sequences: Any = None
    order: np.ndarray | None = None

    @property
    def as_independent(self) -> TableReading:
        """The rows, whatever sequence they are of."""
        weight = None if self.weight is None else np.repeat(self.weight, self.lengths)
        return TableReading(self.columns, [(self.values, weight)])

    def compiled(self, model: HMM) -> HMMData:
        """The rows as a hidden Markov model takes them."""
        table = model.emission.prepare(self.columns.as_emission_takes(self.values))
        observed = None if are_complete(self.values) else are_observed(self.values)
        return model.compile(table, self.lengths, self.weight, observed)

    def starts(self, model: HMM, data: HMMData, n_starts: int, *, spread: bool, rng: np.random.Generator) -> np.ndarray:
        """Statistics of random starts for sequences, (n_cells, n_starts)."""
        return seeded_starts(model, data, partial(row_hashes, self.values), n_starts, spread=spread, rng=rng)

    @cached_property
    def fingerprint(self) -> str:
        """The text that tells these rows, and how they are read, from others."""
        firsts = np.cumsum(self.lengths) - self.lengths
        time = (np.arange(self.lengths.sum()) - np.repeat(firsts, self.lengths)).astype(np.uint64)
        of_rows = mixed(row_hashes(self.values, slice(None)) + mixed(time * _MULTIPLIER))
        of_sequences = np.add.reduceat(of_rows, firsts)[:, None]
        return f"{fingerprint([of_sequences], self.weight)} {self.columns.meaning()}"

    @property
    def has_whole_weights(self) -> bool:
        """Whether every row or sequence counts a whole number of times."""
        return self.weight is None or bool((self.weight == np.floor(self.weight)).all())

    def one_by_one(self) -> Self:
        """The reading with repeated rows in place of weights."""
        if self.weight is None:
            return self
        times = self.weight.astype(int)
        lengths = np.repeat(self.lengths, times)
        firsts = np.repeat(np.cumsum(self.lengths) - self.lengths, times)
        rows = np.arange(lengths.sum()) + np.repeat(firsts - (np.cumsum(lengths) - lengths), lengths)
        return replace(self, values=[of_group[rows] for of_group in self.values], lengths=lengths, weight=None)

    def refilled(self, drawn: Any) -> Self:
        """The reading with values that a model drew, the same cells missing."""
        return replace(self, values=self.columns.refilled(self.values, drawn))

    def __getstate__(self):
        where = None if self.sequences is None else replace(self.sequences, rows=None, table=None)
        return {**super().__getstate__(), "sequences": where}
