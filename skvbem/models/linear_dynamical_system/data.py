"""Sequences of measurements, compiled: patterns of observed cells, inputs, and sequences of one shape.

Steps after the last observed one of a sequence are left out: nothing observed depends on their states.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from skvbem._lazy import cached_property
from skvbem.emissions.gaussian.dense_table import missing_patterns

# Rows of a unit, the least that threads share; a longer sequence is a unit by itself.
_UNIT_ROWS = 2**14
# Rows whose products are formed at once.
_CHUNK_ROWS = 2**14


@dataclass(frozen=True, eq=False)
class LDSData:
    """Sequences as a linear dynamical system takes them: their rows one after the other.

    Parameters
    ----------
    measured : ndarray of shape (n_rows, n_columns)
        In the unit of the model, 0 where a cell is missing.
    patterns : ndarray of bool, shape (n_patterns, n_columns)
        Which cells are observed.
    pattern : ndarray of int64, shape (n_rows,)
        Which of the patterns each row has.
    inputs : ndarray of shape (n_rows, n_inputs)
        Of the states, u.
    output_inputs : ndarray of shape (n_rows, n_output_inputs)
        Of the measurements, v.
    starts : ndarray of int64, shape (n_sequences + 1,)
        First row of each sequence, and the end.
    weight : ndarray of shape (n_sequences,)
        How often each sequence counts.
    rows : ndarray of int64, shape (n_rows,)
        Where each row stands among those that were given.
    lengths_given : ndarray of int64, shape (n_sequences,)
        Steps of each sequence as it was given.
    inputs_given : ndarray of shape (n_rows_given, n_inputs), optional
        Inputs of all steps, those that were left out among them; not of a part of the sequences.
    """

    measured: np.ndarray
    patterns: np.ndarray
    pattern: np.ndarray
    inputs: np.ndarray
    output_inputs: np.ndarray
    starts: np.ndarray
    weight: np.ndarray
    rows: np.ndarray
    lengths_given: np.ndarray
    inputs_given: np.ndarray | None = None
    _units: list[LDSData] = field(default_factory=list, init=False, repr=False)

    @classmethod
    def of(
        cls,
        measured: np.ndarray,
        lengths: Sequence[int] | np.ndarray,
        inputs: np.ndarray,
        output_inputs: np.ndarray,
        weight: np.ndarray,
    ) -> Self:
        """Rows (n_rows, n_columns), NaN where a cell is missing, of sequences of these lengths."""
        lengths = np.asarray(lengths, dtype=np.int64)
        observed = ~np.isnan(measured)
        given = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        sequence = np.repeat(np.arange(len(lengths)), lengths)
        seen = np.flatnonzero(observed.any(axis=1))
        ends = given[:-1].copy()
        np.maximum.at(ends, sequence[seen], seen + 1)
        rows = np.flatnonzero(np.arange(len(measured)) < ends[sequence])
        pattern, missing = missing_patterns(measured[rows])
        if pattern is None:
            pattern, missing = np.zeros(len(rows)), np.zeros((1, measured.shape[1]), dtype=bool)
        starts = np.concatenate([[0], np.cumsum(ends - given[:-1])]).astype(np.int64)
        values = np.where(observed[rows], measured[rows], 0.0)
        return cls(
            np.ascontiguousarray(values),
            ~missing,
            pattern.astype(np.int64),
            np.ascontiguousarray(inputs[rows], dtype=float),
            np.ascontiguousarray(output_inputs[rows], dtype=float),
            starts,
            np.ascontiguousarray(weight, dtype=float),
            rows,
            lengths,
            inputs,
        )

    def __len__(self) -> int:
        return len(self.measured)

    @property
    def n_sequences(self) -> int:
        """Number of sequences."""
        return len(self.weight)

    @property
    def ends(self) -> np.ndarray:
        """The row after the last of each sequence, (n_sequences,)."""
        return self.starts[1:]

    @cached_property
    def total_weight(self) -> float:
        """The n of every score: time steps with an observed cell, each as often as its sequence counts."""
        return float(self.row_weight @ np.any(self.patterns, axis=1).take(self.pattern))

    @cached_property
    def has_whole_weights(self) -> bool:
        """True if every sequence counts a whole number of times."""
        return bool((self.weight == np.floor(self.weight)).all())

    @cached_property
    def row_weight(self) -> np.ndarray:
        """Weight of each row, (n_rows,)."""
        return np.repeat(self.weight, np.diff(self.starts))

    @cached_property
    def is_unweighted(self) -> bool:
        """True if every sequence counts once."""
        return bool((self.weight == 1.0).all())

    @cached_property
    def before(self) -> np.ndarray:
        """Rows that another step follows, (n_transitions,)."""
        follows = np.ones(len(self), dtype=bool)
        follows[self.last_rows] = False
        return np.flatnonzero(follows)

    @cached_property
    def follows(self) -> np.ndarray | None:
        """1 for rows that follow another, 0 for first ones, (n_rows,); None if there is one sequence."""
        if len(self.first_rows) < 2:
            return None
        follows = np.ones(len(self))
        follows[self.first_rows] = 0.0
        return follows

    @cached_property
    def last_rows(self) -> np.ndarray:
        """Last rows of sequences that have any, (n,)."""
        return self.ends[self.ends > self.starts[:-1]] - 1

    @cached_property
    def chunks(self) -> list[slice]:
        """Rows in pieces of which products are formed one after the other."""
        return [slice(a, min(a + _CHUNK_ROWS, len(self))) for a in range(0, len(self), _CHUNK_ROWS)]

    @cached_property
    def first_rows(self) -> np.ndarray:
        """First rows of sequences that have any, (n,)."""
        return self.starts[:-1][self.ends > self.starts[:-1]]

    @cached_property
    def group_mask(self) -> np.ndarray | None:
        """Observed groups of columns, (n_rows, n_groups) of 0 and 1; None if all cells are."""
        if self.mask is None:
            return None
        return np.ascontiguousarray(self.mask[:, self.groups[1]])

    @cached_property
    def mask(self) -> np.ndarray | None:
        """Observed cells, (n_rows, n_columns) of 0 and 1; None if all are."""
        return None if self.patterns.all() else self.patterns[self.pattern].astype(float)

    @cached_property
    def groups(self) -> tuple[np.ndarray, np.ndarray]:
        """Number of the group of columns observed together that each is in, and the first column of each group."""
        _, first, group = np.unique(self.patterns, axis=1, return_index=True, return_inverse=True)
        order = np.argsort(first)
        return np.argsort(order)[group.ravel()], first[order]

    @cached_property
    def counts(self) -> np.ndarray:
        """Observed cells of each column, each as often as its sequence counts, (n_columns,)."""
        return np.bincount(self.pattern, self.row_weight, len(self.patterns)) @ self.patterns

    @cached_property
    def squares(self) -> np.ndarray:
        """Sums of squares of the observed cells of each column, (n_columns,)."""
        return np.einsum("ts,ts,t->s", self.measured, self.measured, self.row_weight)

    @cached_property
    def shapes(self) -> tuple[np.ndarray, np.ndarray]:
        """The shape of each sequence, (n_sequences,), and a sequence of each: of equal length and patterns."""
        known: dict[bytes, int] = {}
        shape = np.zeros(self.n_sequences, dtype=np.int64)
        first: list[int] = []
        for n in range(self.n_sequences):
            key = self.pattern[self.starts[n] : self.starts[n + 1]].tobytes()
            if key not in known:
                known[key] = len(first)
                first.append(n)
            shape[n] = known[key]
        return shape, np.array(first, dtype=np.int64)

    @property
    def parts(self) -> tuple[LDSData]:
        """The sequences as parts that are summed over: one."""
        return (self,)

    @property
    def units(self) -> list[LDSData]:
        """Neighboring sequences together, what threads share; the same for any number of threads."""
        if not self._units:
            self._units.extend(self._cut())
        return self._units

    def _cut(self) -> list[LDSData]:
        bounds = [0]
        while bounds[-1] < self.n_sequences:
            at = int(self.starts[bounds[-1]])
            last = int(np.searchsorted(self.starts, at + _UNIT_ROWS, side="right")) - 1
            bounds.append(min(max(last, bounds[-1] + 1), self.n_sequences))
        if len(bounds) < 3:
            return [self]
        return [self.sequences(slice(a, b)) for a, b in itertools.pairwise(bounds)]

    @cached_property
    def in_order(self) -> np.ndarray:
        """Numbers of the sequences, in an order that their values decide, (n_sequences,)."""
        values = np.concatenate([self.measured, self.inputs, self.output_inputs, self.pattern[:, None]], axis=1)
        keys = [values[a:b].tobytes() for a, b in zip(self.starts, self.ends)]
        return np.array(sorted(range(self.n_sequences), key=keys.__getitem__), dtype=np.int64)

    @cached_property
    def one_by_one(self) -> LDSData:
        """Sequences of whole weights repeated, in an order that their values decide."""
        repeated = np.repeat(self.in_order, self.weight[self.in_order].astype(np.int64))
        return self.until(repeated, self.ends[repeated])

    def until(self, chosen: np.ndarray, ends: np.ndarray) -> LDSData:
        """Some sequences, each of which counts once, up to a row of each."""
        lengths = ends - self.starts[:-1][chosen]
        starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        rows = np.arange(starts[-1]) + np.repeat(self.starts[:-1][chosen] - starts[:-1], lengths)
        return self._taken(chosen, rows, starts, np.ones(len(chosen)))

    def _taken(
        self, chosen: slice | np.ndarray, rows: slice | np.ndarray, starts: np.ndarray, weight: np.ndarray
    ) -> LDSData:
        """Some sequences with these rows, first rows and weights."""
        measured, pattern, where = self.measured[rows], self.pattern[rows], self.rows[rows]
        inputs = self.inputs[rows], self.output_inputs[rows]
        return LDSData(measured, self.patterns, pattern, *inputs, starts, weight, where, self.lengths_given[chosen])

    def for_draws(self, emission: None) -> LDSData:
        """Sequences `one_by_one`: what is drawn for them does not hang on the order in which they were given."""
        return self.one_by_one

    def sequences(self, chosen: slice) -> LDSData:
        """Some neighboring sequences."""
        starts = self.starts[chosen.start : chosen.stop + 1]
        rows = slice(int(starts[0]), int(starts[-1]))
        return self._taken(chosen, rows, starts - starts[0], self.weight[chosen])
