"""Blocks of rows as tables that agree with each other, and the weights beside them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from numbers import Number

import numpy as np

from skvbem._compat import check_sample_weight
from skvbem.blocks import Blocks, blocks_of, is_dask
from skvbem.reading.tables import Table, read_table


class WeightedTables:
    """Tables of blocks, and the weights of their rows; rows of weight 0 are left out.

    Parameters
    ----------
    X : Blocks
    sample_weight : Blocks, array-like of shape (n_samples,), float or None
        In blocks like those of X, or of all rows one after the other.
    owner : str
        Name of the estimator's class, for messages.
    """

    def __init__(self, X: Blocks, sample_weight, owner: str):
        self.X, self.owner = X, owner
        self._n_given: int | None = None
        if is_dask(sample_weight):
            sample_weight = blocks_of(sample_weight)
        self._in_blocks = isinstance(sample_weight, Blocks)
        self._of_all = not (sample_weight is None or self._in_blocks or isinstance(sample_weight, Number))
        if self._of_all:
            sample_weight = check_sample_weight(sample_weight, np.empty((len(np.atleast_1d(sample_weight)), 1)))
        self.sample_weight = sample_weight

    @property
    def blocks(self) -> Blocks:
        """Of (Table, ndarray of weights or None), those without rows left out."""
        return Blocks(self._weighted_blocks)

    @property
    def tables(self) -> Blocks:
        """The tables of all blocks, without their weights."""
        return self.blocks.map(lambda block: block[0])

    def _weighted_blocks(self) -> Iterator[tuple[Table, np.ndarray | None]]:
        is_empty = True
        for table, weight in self._given():
            if weight is not None and not weight.any():
                continue
            is_empty = False
            if weight is None or weight.all():
                yield table, weight
            else:
                yield table.rows(weight > 0), weight[weight > 0]
        if is_empty:
            raise ValueError("Sample weights must contain at least one non-zero number.")

    def _given(self) -> Iterator[tuple[Table, np.ndarray | None]]:
        """All tables with rows, and their weights; what does not agree is refused."""
        n_rows, names = 0, None
        for number, (block, weight) in enumerate(self._pairs()):
            if getattr(block, "shape", (1,))[0] == 0:
                continue
            table = read_table(block, self.owner)
            names = table.names if names is None else names
            if table.names != names:
                raise ValueError(
                    f"Blocks must have the same columns. The first one of X has {names}, block {number} {table.names}."
                )
            yield table, self._weight_of(weight, n_rows, table.n_samples, number)
            n_rows += table.n_samples
        if not n_rows:
            raise ValueError("X has no rows: none of its blocks has any, or they do not come again for another pass.")
        if self._n_given not in (None, n_rows):
            raise ValueError(
                "Blocks must be the same for every pass over the rows. X had "
                f"{self._n_given} rows before, and {n_rows} now."
            )
        if self._of_all and len(self.sample_weight) != n_rows:
            raise ValueError(f"'sample_weight' has {len(self.sample_weight)} weights, and X has {n_rows} rows.")
        self._n_given = n_rows

    def _pairs(self) -> Iterator[tuple]:
        if not self._in_blocks:
            yield from ((block, None) for block in self.X)
            return
        nothing = object()
        for block, weight in zip_longest(self.X, self.sample_weight, fillvalue=nothing):
            if block is nothing or weight is nothing:
                raise ValueError(
                    f"There are more blocks of {'sample_weight' if block is nothing else 'X'} than of "
                    f"{'X' if block is nothing else 'sample_weight'}. A block of weights belongs to each block of rows."
                )
            yield block, weight

    def _weight_of(self, block, n_before: int, n_rows: int, number: int) -> np.ndarray | None:
        """The weights of a block of rows."""
        if self.sample_weight is None:
            return None
        if self._of_all:
            weight = self.sample_weight[n_before : n_before + n_rows]
        elif not self._in_blocks:  # a number, of every row
            return check_sample_weight(self.sample_weight, np.empty((n_rows, 1)))
        else:  # not all weights of a block need be above 0
            weight = np.append(np.asarray(block), 1.0)
            weight = check_sample_weight(weight, np.empty((len(weight), 1)))[:-1]
        if len(weight) != n_rows:
            raise ValueError(f"Block {number} of X has {n_rows} rows, but there are {len(weight)} weights for them.")
        return weight
