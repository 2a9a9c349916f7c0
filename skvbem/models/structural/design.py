"""The states of all blocks of all columns: how they move, what columns are of them, and which noises move them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from skvbem._lazy import cached_property
from skvbem.structural import Block


class SparseRows(NamedTuple):
    """Rows of a matrix without their zeros, as kernels take them.

    Parameters
    ----------
    ends : ndarray of int64, shape (n_rows,)
        Where each row ends in the others.
    columns : ndarray of int64
    values : ndarray
    """

    ends: np.ndarray
    columns: np.ndarray
    values: np.ndarray

    @classmethod
    def of(cls, matrix: np.ndarray) -> Self:
        """A dense matrix; one that is all zeros keeps a zero, so that no array is empty."""
        row, column = np.nonzero(matrix)
        ends = np.cumsum(np.bincount(row, minlength=len(matrix))).astype(np.int64)
        if not len(row):
            return cls(ends, np.zeros(1, dtype=np.int64), np.zeros(1))
        return cls(ends, column.astype(np.int64), matrix[row, column].astype(float))


@dataclass(frozen=True, eq=False)
class Design:
    """The states of all blocks of all columns, column after column and block after block.

    Parameters
    ----------
    transition : ndarray of shape (k, k)
        A.
    reading : ndarray of shape (n_columns, k)
        What each column is of the states.
    noise_of : ndarray of int, shape (k,)
        The noise that moves each state, -1 where none does.
    block_of, column_of : ndarray of int, shape (k,)
        The block, and the column, that each state belongs to.
    start : ndarray of shape (k,)
        Variances of first states, in the unit of the column of each.
    is_level : ndarray of bool, shape (k,)
        Which states are levels; where columns have one they need no offset.
    noise_names : tuple of str, one for each noise
    block_names : tuple of str, one for each block
    learned : ndarray of int, shape (n_columns,) or (0,)
        The state of each column whose row of A is learned, the first of an autoregression, if there is one.
    order : int
        Learned entries of these rows: those of the state itself and of the ones behind it.

    Notes
    -----
    Noises of autoregressions are not among those of `noise_of`: their precisions go with the learned rows.
    """

    transition: np.ndarray
    reading: np.ndarray
    noise_of: np.ndarray
    block_of: np.ndarray
    column_of: np.ndarray
    start: np.ndarray
    is_level: np.ndarray
    noise_names: tuple[str, ...]
    block_names: tuple[str, ...]
    learned: np.ndarray
    order: int

    @classmethod
    def of(cls, blocks: Sequence[Block], step: np.ndarray) -> Self:
        """Blocks of each column, whose changes from step to step have these sizes in its unit, (n_columns,)."""
        each = [block.states for block in blocks]
        k, p = sum(len(states.reading) for states in each), len(step)
        transition, reading = np.zeros((k * p, k * p)), np.zeros((p, k * p))
        noise_of, block_of, column_of, start, is_level, at = [], [], [], [], [], 0
        noise_names: list[str] = []
        learned: list[int] = []
        for j in range(p):
            for number, states in enumerate(each):
                here = slice(at, at + len(states.reading))
                transition[here, here], reading[j, here] = states.transition, states.reading
                learned += [at] * (states.order > 0)
                noises = (None,) * len(states.noise) if states.order else states.noise
                names = list(dict.fromkeys(name for name in noises if name is not None))
                noise_of += [-1 if name is None else len(noise_names) + names.index(name) for name in noises]
                unit = np.where(states.are_steps, step[j] ** 2, 1.0)
                start += [*(unit * states.start)]
                block_of += [number] * len(states.reading)
                column_of += [j] * len(states.reading)
                is_level += [blocks[number].has_level and i == 0 for i in range(len(states.reading))]
                noise_names += names
                at = here.stop
        return cls(
            transition,
            reading,
            np.array(noise_of),
            np.array(block_of),
            np.array(column_of),
            np.array(start),
            np.array(is_level),
            tuple(noise_names),
            tuple(block.label for block in blocks),
            np.array(learned, dtype=np.int64),
            max(states.order for states in each),
        )

    @property
    def n_noises(self) -> int:
        """Number of noises of all columns."""
        return len(self.noise_names)

    @cached_property
    def has_level(self) -> bool:
        """True if columns have a level."""
        return bool(self.is_level.any())

    @property
    def n_states(self) -> int:
        """Number of states of all columns, k."""
        return len(self.start)

    @cached_property
    def states_of_noise(self) -> np.ndarray:
        """Which states each noise moves, (n_noises, k) of 0 and 1."""
        return (self.noise_of == np.arange(self.n_noises)[:, None]).astype(float)

    @property
    def column_of_noise(self) -> np.ndarray:
        """The column of each noise, (n_noises,)."""
        return self.column_of[self.states_of_noise.argmax(axis=1)] if self.n_noises else np.zeros(0, dtype=int)

    def transition_at(self, coefficients: np.ndarray) -> np.ndarray:
        """A with learned rows of these coefficients, (n_columns, order) or (0, 0)."""
        matrix = self.transition.copy()
        for state, row in zip(self.learned, coefficients):
            matrix[state, state : state + self.order] = row
        return matrix

    @cached_property
    def sparse(self) -> SparseRows:
        """A without its zeros, learned entries among the rest."""
        return SparseRows.of(self.transition_at(np.ones((len(self.learned), self.order))))

    def transition_values(self, coefficients: np.ndarray) -> np.ndarray:
        """Values of `sparse` at coefficients (n_lanes, n_learned, order), (n_lanes, n_values)."""
        ends, _, known = self.sparse
        values = np.repeat(known[None], len(coefficients), axis=0)
        for row, state in enumerate(self.learned):
            values[:, ends[state] - self.order : ends[state]] = coefficients[:, row]
        return values

    @cached_property
    def sparse_readings(self) -> SparseRows:
        """Readings of columns, without zeros."""
        return SparseRows.of(self.reading)

    @cached_property
    def sparse_readings_and_lags(self) -> SparseRows:
        """Readings of columns, and `order` rows of the lags of each autoregression with values to be filled in."""
        lags = np.zeros((len(self.learned), self.order, self.n_states))
        for row, state in enumerate(self.learned):
            lags[row, :, state + 1 : state + 1 + self.order] = 1.0
        return SparseRows.of(np.concatenate([self.reading, lags.reshape(-1, self.n_states)]))
