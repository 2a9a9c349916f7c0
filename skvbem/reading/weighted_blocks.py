"""Blocks of rows as tables that agree with each other, and the weights beside them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import zip_longest
from numbers import Number
from typing import Any

import numpy as np

from skvbem._compat import check_sample_weight
from skvbem._lazy import cached_property
from skvbem.blocks import Blocks, blocks_of, is_dask
from skvbem.blocks.elsewhere import BlocksElsewhere
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
        return (
            Blocks(self._weighted_blocks)
            if self.X.are_here
            else self._raw_elsewhere.map(partial(_weighted, self.owner))
        )

    @property
    def tables(self) -> Blocks:
        """The tables of all blocks, without their weights."""
        return self.blocks.map(_first_of)

    @property
    def first(self) -> Table:
        """A table with the names and the container of all: the first block, or its first row where it is elsewhere."""
        if self.X.are_here:
            return next(iter(self.tables))
        (row,) = self._raw_elsewhere.those([0]).results(_row_of)
        return read_table(row, self.owner)

    @cached_property
    def _raw_elsewhere(self) -> BlocksElsewhere:
        """Blocks that are elsewhere and have rows that count, as they were given, beside their weights.

        Two passes find how many rows they have, and how many of these count; no rows come back.
        """
        X: Any = self.X
        extents = list(X.results(partial(_extent_of, self.owner)))
        n_rows = [n for n, _ in extents]
        names = next((names for _, names in extents if names is not None), None)
        if names is None:
            raise self._no_rows()
        for number, (_, of_block) in enumerate(extents):
            if of_block not in (None, names):
                raise _other_columns(names, number, of_block)
        pairs = X.beside(self._weights_elsewhere(n_rows))
        if self.sample_weight is None:
            return pairs.those(np.flatnonzero(n_rows).tolist())
        n_counting = list(pairs.results(_n_counting))
        for number, (n, (n_weights, _)) in enumerate(zip(n_rows, n_counting)):
            if n_weights not in (None, n):
                raise _other_length(number, n, n_weights)
        counting = np.array([n and count for n, (_, count) in zip(n_rows, n_counting)])
        if not counting.any():
            raise ValueError(_NO_WEIGHT)
        return pairs.those(np.flatnonzero(counting).tolist())

    def _weights_elsewhere(self, n_rows: list[int]) -> Any:
        """What is sent beside each block, of its number of rows: its weights, that of every row of it, or None."""
        if self._in_blocks:
            weights = self.sample_weight if not self.sample_weight.are_here else list(self.sample_weight)
            if len(weights) != len(n_rows):
                raise _other_number(len(n_rows), len(weights))
            return weights
        if not self._of_all:
            number = self.sample_weight
            weight = None if number is None else float(check_sample_weight(number, np.empty((1, 1)))[0])
            return [weight] * len(n_rows)
        if len(self.sample_weight) != sum(n_rows):
            raise self._other_total(sum(n_rows))
        return np.split(self.sample_weight, np.cumsum(n_rows)[:-1])

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
            raise ValueError(_NO_WEIGHT)

    def _given(self) -> Iterator[tuple[Table, np.ndarray | None]]:
        """All tables with rows, and their weights; what does not agree is refused."""
        n_rows, names = 0, None
        for number, (block, weight) in enumerate(self._pairs()):
            if getattr(block, "shape", (1,))[0] == 0:
                continue
            table = read_table(block, self.owner)
            names = table.names if names is None else names
            if table.names != names:
                raise _other_columns(names, number, table.names)
            yield table, self._weight_of(weight, n_rows, table.n_samples, number)
            n_rows += table.n_samples
        if not n_rows:
            raise self._no_rows()
        if self._n_given not in (None, n_rows):
            raise ValueError(
                "Blocks must be the same for every pass over the rows. X had "
                f"{self._n_given} rows before, and {n_rows} now."
            )
        if self._of_all and len(self.sample_weight) != n_rows:
            raise self._other_total(n_rows)
        self._n_given = n_rows

    def _pairs(self) -> Iterator[tuple]:
        if not self._in_blocks:
            yield from ((block, None) for block in self.X)
            return
        nothing = object()
        for block, weight in zip_longest(self.X, self.sample_weight, fillvalue=nothing):
            if block is nothing or weight is nothing:
                raise _other_number(int(weight is nothing), int(block is nothing))
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
            weight = _checked(block)
        if len(weight) != n_rows:
            raise _other_length(number, n_rows, len(weight))
        return weight

    def _other_total(self, n_rows: int) -> ValueError:
        return ValueError(f"'sample_weight' has {len(self.sample_weight)} weights, and X has {n_rows} rows.")

    @staticmethod
    def _no_rows() -> ValueError:
        return ValueError("X has no rows: none of its blocks has any, or they do not come again for another pass.")


# Of blocks that are elsewhere -----------------------------------------------------------------------------------------


def _extent_of(owner: str, block: Any) -> tuple[int, list | None]:
    """The number of rows of a block, and the names of its columns if it has rows."""
    if getattr(block, "shape", (1,))[0] == 0:
        return 0, None
    table = read_table(block, owner)
    return table.n_samples, table.names


def _n_counting(pair: tuple) -> tuple[int | None, int]:
    """How many weights a block has, None for one of all its rows, and how many are above 0."""
    _, weight = pair
    if isinstance(weight, float):
        return None, int(weight > 0)
    weight = _checked(weight)
    return len(weight), int(np.count_nonzero(weight))


def _weighted(owner: str, pair: tuple) -> tuple[Table, np.ndarray | None]:
    """The table of a block and the weights of its rows, those of weight 0 left out."""
    block, weight = pair
    table = read_table(block, owner)
    if weight is None:
        return table, None
    weight = np.full(table.n_samples, weight) if isinstance(weight, float) else _checked(weight)
    return (table, weight) if weight.all() else (table.rows(weight > 0), weight[weight > 0])


def _row_of(pair: tuple) -> Any:
    """The first row of a block, in the container of the block."""
    block, _ = pair
    return block[:1]


def _first_of(pair: tuple) -> Any:
    return pair[0]


# What all blocks share ------------------------------------------------------------------------------------------------

_NO_WEIGHT = "Sample weights must contain at least one non-zero number."


def _checked(weight: Any) -> np.ndarray:
    """The weights of a block, not all of which need be above 0."""
    weight = np.append(np.asarray(weight), 1.0)
    return check_sample_weight(weight, np.empty((len(weight), 1)))[:-1]


def _other_columns(names: list, number: int, of_block: list) -> ValueError:
    return ValueError(f"Blocks must have the same columns. The first one of X has {names}, block {number} {of_block}.")


def _other_length(number: int, n_rows: int, n_weights: int) -> ValueError:
    return ValueError(f"Block {number} of X has {n_rows} rows, but there are {n_weights} weights for them.")


def _other_number(of_rows: int, of_weights: int) -> ValueError:
    more, fewer = ("X", "sample_weight") if of_rows > of_weights else ("sample_weight", "X")
    return ValueError(
        f"There are more blocks of {more} than of {fewer}. A block of weights belongs to each block of rows."
    )
