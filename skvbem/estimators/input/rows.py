"""A table as estimators with emissions read it: in memory, or in blocks that come again for every pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Self

import numpy as np

from skvbem.blocks import Blocks
from skvbem.data import fingerprint_of_blocks, row_hashes
from skvbem.emissions import Emission
from skvbem.estimators.input.column_groups import ColumnGroups
from skvbem.estimators.input.numbers import are_complete, are_observed
from skvbem.estimators.input.weighted_blocks import WeightedTables
from skvbem.estimators.reading import Reading
from skvbem.models.mixture.data import MixtureBlocks, MixtureData
from skvbem.models.mixture.model import Mixture


@dataclass(frozen=True, eq=False)
class TableReading(Reading):
    """Rows of weight > 0, read; they do not depend on each other.

    Parameters
    ----------
    columns : ColumnGroups
    blocks : sequence or Blocks
        Of the values of each group, and of the weights of the rows or None. A sequence of one block is in memory.
    is_weighted : ndarray of bool or None
        Which rows of a table in memory have a weight > 0; None for all.
    """

    columns: ColumnGroups
    blocks: Iterable[tuple[list[np.ndarray], np.ndarray | None]]
    is_weighted: np.ndarray | None = None

    @classmethod
    def of_blocks(cls, columns: ColumnGroups, tables: WeightedTables, **options) -> TableReading:
        """Rows in blocks whose values were checked before."""
        blocks = tables.blocks.map(lambda block: (columns.values(block[0], is_known=True), block[1]))
        return cls(columns, blocks, **options)

    @property
    def are_in_blocks(self) -> bool:  # type: ignore[override]
        """Whether one block of rows at a time is in memory."""
        return isinstance(self.blocks, Blocks)

    @property
    def groups(self) -> ColumnGroups:
        """How columns are read."""
        return self.columns

    @property
    def as_independent(self) -> TableReading:
        """The rows themselves, which do not depend on each other."""
        return self

    def emission(self) -> Emission:
        """The emission of the values."""
        if isinstance(self.blocks, Blocks):
            by_group = [self.blocks.map(partial(_of_group, k)) for k in range(len(self.columns.groups))]
            return self.columns.emission(by_group, None)
        ((values, weight),) = self.blocks
        return self.columns.emission(values, weight)

    def compiled(self, model: Mixture) -> MixtureData | MixtureBlocks:
        """The rows as a mixture takes them."""
        if not self.are_in_blocks:
            return next(self._segments(model))
        survey, n_rows, total_weight, whole = None, 0, 0.0, True
        for values, weight in self.blocks:
            survey = model.emission.survey(self.columns.as_emission_takes(values), survey)
            n_rows += len(values[0])
            total_weight += float(len(values[0]) if weight is None else weight.sum())
            whole = whole and (weight is None or bool((weight == np.floor(weight)).all()))
        return MixtureBlocks(survey, Blocks(lambda: self._segments(model, survey)), n_rows, total_weight, whole)

    def arranged(self, model: Mixture, survey: Any = None) -> Iterator[tuple]:
        """Of each block, in the order of rows that costs least: values, weight, table, and that order or None."""
        for values, weight in self.blocks:
            table = model.emission.prepare(self.columns.as_emission_takes(values), survey)
            order = model.emission.row_order(table)
            if order is not None:
                values, weight = [of_group[order] for of_group in values], None if weight is None else weight[order]
                table = model.emission.prepare(self.columns.as_emission_takes(values), survey)
            yield values, weight, table, order

    def _segments(self, model: Mixture, survey: Any = None) -> Iterator[MixtureData]:
        for values, weight, table, _ in self.arranged(model, survey):
            observed = None if are_complete(values) else are_observed(values)
            yield model.compile(table, weight, observed, partial(row_hashes, values))

    @cached_property
    def fingerprint(self) -> str:
        """The text that tells these rows, and how they are read, from others."""
        return f"{fingerprint_of_blocks(self.blocks)} {self.columns.meaning()}"

    @property
    def has_whole_weights(self) -> bool:
        """Whether every row or sequence counts a whole number of times."""
        return all(weight is None or bool((weight == np.floor(weight)).all()) for _, weight in self.blocks)

    def one_by_one(self) -> Self:
        """The reading with repeated rows in place of weights."""
        ((values, weight),) = self.blocks
        if weight is not None:
            values = [np.repeat(of_group, weight.astype(int), axis=0) for of_group in values]
        return replace(self, blocks=[(values, None)], is_weighted=None)

    def refilled(self, drawn: Any) -> Self:
        """The reading with values that a model drew, the same cells missing."""
        ((values, weight),) = self.blocks
        return replace(self, blocks=[(self.columns.refilled(values, drawn), weight)])


def _of_group(k: int, block: tuple) -> tuple:
    values, weight = block
    return values[k], weight
