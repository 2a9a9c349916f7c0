"""A table as networks read it: codes of categories."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import compress
from typing import Self

import numpy as np

from skvbem._lazy import cached_property
from skvbem.data import Rows, have_set, row_hashes, rows_that_count
from skvbem.reading.base import Extent, Reading
from skvbem.reading.categories import CategoryEncoder


@dataclass(frozen=True, eq=False)
class NetworkReading(Reading):
    """Rows of weight > 0, read as codes of categories.

    Parameters
    ----------
    columns : CategoryEncoder
    rows : Rows
    n_rows : int
        Of the rows as they were read, whatever becomes of the codes.
    n_rows_all_missing : int
        Rows of X without an observed cell that was not set.
    n_missing : int
        Missing cells of these rows.
    of_rows : str
        Fingerprint of these rows.
    """

    columns: CategoryEncoder
    rows: Rows
    n_rows: int
    n_rows_all_missing: int
    n_missing: int
    of_rows: str

    @classmethod
    def of(cls, columns: CategoryEncoder, rows: Rows, **options) -> Self:
        """The reading of rows of X."""
        empty, n_missing = np.ones(len(rows), dtype=bool), 0
        for column, n_categories in zip(rows.codes.T, columns.n_categories_):
            n_missing += int(np.count_nonzero(column < 0))
            empty &= (column < 0) | (column >= n_categories)
        return cls(columns, rows, len(rows), int(empty.sum()), n_missing, rows.fingerprint(), **options)

    @property
    def extent(self) -> Extent:
        """How much data these are."""
        return Extent(len(self.rows.names), self.n_rows, self.n_missing)

    @property
    def has_interventions(self) -> bool:
        """True if an experimenter set a cell."""
        return have_set(self.rows.codes, self.columns.n_categories_)

    @property
    def intervention_targets(self) -> tuple[tuple, ...]:
        """See `Reading`."""
        if not self.has_interventions:
            return ()
        patterns = np.unique(self.rows.codes >= self.columns.n_categories_, axis=0)
        return tuple(tuple(compress(self.rows.names, pattern)) for pattern in patterns)

    @property
    def is_complete(self) -> bool:
        """Whether no cell is missing."""
        return not (self.rows.codes < 0).any()

    @cached_property
    def fingerprint(self) -> str:
        """The text that tells these rows, and how they are read, from others."""
        encoder = self.columns
        levels = "|".join(f"{name}:{values.tolist()}" for name, values in zip(encoder.names_, encoder.categories_))
        return f"{self.of_rows} {levels}"

    def observed_weight(self) -> dict:
        """Column -> weight of the rows in which it is observed."""
        weight = np.ones(len(self.rows)) if self.rows.weight is None else self.rows.weight
        return dict(zip(self.rows.names, (weight @ (self.rows.codes >= 0)).tolist()))

    @property
    def has_whole_weights(self) -> bool:
        """Whether every row or sequence counts a whole number of times."""
        return self.rows.has_whole_weights

    @property
    def unit_hashes(self) -> np.ndarray:
        """Hashes of rows, (n_rows,)."""
        return row_hashes([self.rows.codes], slice(None))

    @property
    def unit_weight(self) -> np.ndarray | None:
        """How often each row counts."""
        return self.rows.weight

    def taken(self, units: np.ndarray, weight: np.ndarray | None) -> Self:
        """The reading of some rows."""
        return replace(self, rows=Rows(self.rows.names, self.rows.codes[units], weight))

    def one_by_one(self) -> Self:
        """The reading with repeated rows in place of weights."""
        if self.rows.weight is None:
            return self
        codes = np.repeat(self.rows.codes, self.rows.weight.astype(int), axis=0)
        return replace(self, rows=Rows(self.rows.names, codes))

    def refilled(self, drawn: Mapping) -> Self:
        """The reading with values that a model drew, the same cells missing."""
        like = self.rows
        codes = np.stack([drawn[name] for name in like.names], axis=1).astype(like.codes.dtype)
        codes = np.where((like.codes < 0) | (like.codes >= self.columns.n_categories_), like.codes, codes)
        return replace(self, rows=Rows(like.names, codes, like.weight))

    def informative(self) -> Self:
        """The reading without rows that say nothing; see `skvbem.reading.base.Reading`."""
        if not self.n_rows_all_missing:
            return self
        codes = self.rows.codes
        tell = (codes >= 0) & (codes < self.columns.n_categories_)
        rows, weight = rows_that_count(np.logical_or.reduce(tell, axis=1), self.rows.weight)
        kept = self.of(self.columns, Rows(self.rows.names, codes[rows], weight))
        return replace(kept, n_rows_all_missing=self.n_rows_all_missing, names=self.names, given=self.given)

    def shared(self) -> Self:
        """The reading as many fits share it: equal rows counted once, with their weights."""
        return replace(self, rows=self.rows.distinct())

    def kept(self) -> Self:
        """See `Reading`: the codes of the one are given up once they are compiled."""
        return replace(self, rows=replace(self.rows))
