"""Rows of sequences, read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from skvbem.data import fingerprint, mixed, row_hashes
from skvbem.estimators.input.column_groups import ColumnGroups
from skvbem.estimators.input.numbers import are_complete, are_observed
from skvbem.estimators.input.rows import MixtureRows
from skvbem.models.hmm.model import HMM
from skvbem.models.hmm.starts import seeded_starts
from skvbem.models.sequences.data import HMMData

_MULTIPLIER = np.uint64(0xD1342543DE82EF95)


@dataclass(frozen=True, eq=False)
class HMMRows:
    """Rows of sequences of weight > 0, read, in the order of time.

    Parameters
    ----------
    groups : ColumnGroups
    values : list of ndarray
        Of each group.
    lengths : ndarray of int64, shape (n_sequences,)
    weight : ndarray of shape (n_sequences,) or None
        How often each sequence counts; once if None.
    """

    groups: ColumnGroups
    values: list[np.ndarray]
    lengths: np.ndarray
    weight: np.ndarray | None

    @property
    def as_independent(self) -> MixtureRows:
        """The rows, whatever sequence they are of."""
        weight = None if self.weight is None else np.repeat(self.weight, self.lengths)
        return MixtureRows(self.groups, [(self.values, weight)])

    def compiled(self, model: HMM) -> HMMData:
        """The rows as a hidden Markov model takes them."""
        table = model.emission.prepare(self.groups.as_emission_takes(self.values))
        observed = None if are_complete(self.values) else are_observed(self.values)
        return model.compile(table, self.lengths, self.weight, observed)

    def starts(self, model: HMM, data: HMMData, n_starts: int, *, spread: bool, rng: np.random.Generator) -> np.ndarray:
        """Statistics of starts, (n_cells, n_starts)."""
        return seeded_starts(model, data, partial(row_hashes, self.values), n_starts, spread=spread, rng=rng)

    def fingerprint(self) -> str:
        """What tells these sequences, in any order, and how their values are read, from others."""
        firsts = np.cumsum(self.lengths) - self.lengths
        time = (np.arange(self.lengths.sum()) - np.repeat(firsts, self.lengths)).astype(np.uint64)
        of_rows = mixed(row_hashes(self.values, slice(None)) + mixed(time * _MULTIPLIER))
        of_sequences = np.add.reduceat(of_rows, firsts)[:, None]
        return f"{fingerprint([of_sequences], self.weight)} {self.groups.meaning()}"
