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

    @classmethod
    def of(cls, blocks: Sequence[Block], step: np.ndarray) -> Self:
        """Blocks of each column, whose changes from step to step have these sizes in its unit, (n_columns,)."""
        each = [block.states for block in blocks]
        k, p = sum(len(states.reading) for states in each), len(step)
        transition, reading = np.zeros((k * p, k * p)), np.zeros((p, k * p))
        noise_of, block_of, column_of, start, is_level, at = [], [], [], [], [], 0
        noise_names: list[str] = []
        for j in range(p):
            for number, states in enumerate(each):
                here = slice(at, at + len(states.reading))
                transition[here, here], reading[j, here] = states.transition, states.reading
                names = list(dict.fromkeys(name for name in states.noise if name is not None))
                noise_of += [-1 if name is None else len(noise_names) + names.index(name) for name in states.noise]
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

    @cached_property
    def sparse(self) -> tuple[np.ndarray, ...]:
        """A, the rows of readings, and variances of first states, as kernels take them."""
        return *SparseRows.of(self.transition), *SparseRows.of(self.reading), np.ascontiguousarray(self.start)
