"""The rows of a mixture: in memory, or in blocks that come again for every pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class MixtureData:
    """Rows in memory, as a mixture takes them.

    Parameters
    ----------
    table : Table
        As the emission prepared it, rows in the order in which blocks cost least.
    weight : ndarray of shape (n_rows,)
        How often each row counts; 0 for a row without any observed cell, which says nothing of its component.
    total_weight : float
        The n of every score, of all rows.
    has_whole_weights : bool
    row_hashes : callable or None
        Numbers of a slice of rows, equal for equal rows alone, (n_rows,) of uint64.
    """

    table: Any
    weight: np.ndarray
    total_weight: float
    has_whole_weights: bool = True
    row_hashes: Callable[[slice], np.ndarray] | None = None

    def __len__(self) -> int:
        return len(self.weight)

    @cached_property
    def one_by_one(self) -> MixtureData:
        """Rows of whole weights repeated, those of weight 0 left out."""
        if (self.weight == 1.0).all():
            return self
        rows = np.repeat(np.arange(len(self)), self.weight.astype(np.int64))
        return replace(self, table=self.table[rows], weight=np.ones(len(rows)))

    def chunks(self) -> Iterator[MixtureData]:
        """The rows, for a pass over all of them: one chunk."""
        yield self

    def blocks(self, size: int) -> Iterator[tuple[Any, np.ndarray]]:
        """Tables of at most so many rows, and the weights of these."""
        for at in range(0, len(self), size):
            yield self.table[at : at + size], self.weight[at : at + size]


@dataclass(frozen=True, eq=False)
class MixtureBlocks:
    """Rows of which one chunk at a time is in memory.

    Parameters
    ----------
    table : Table
        Without rows; what the emission must know of all.
    source : iterable of MixtureData
        The chunks, the same whenever it is iterated.
    n_rows : int
    total_weight : float
    has_whole_weights : bool
    """

    table: Any
    source: Iterable[MixtureData]
    n_rows: int
    total_weight: float
    has_whole_weights: bool = True

    #: Scores cannot look at rows one by one.
    rows_are_in_memory = False

    def __len__(self) -> int:
        return self.n_rows

    def chunks(self) -> Iterator[MixtureData]:
        """The rows, for a pass over all of them."""
        return iter(self.source)

    def blocks(self, size: int) -> Iterator[tuple[Any, np.ndarray]]:
        """Tables of at most so many rows, and the weights of these."""
        for chunk in self.chunks():
            yield from chunk.blocks(size)
