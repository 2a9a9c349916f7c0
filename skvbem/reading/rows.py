"""Rows as estimators with emissions read them: tables, in memory or in blocks that come again, and sequences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from skvbem._lazy import cached_property
from skvbem._numerics import extremes
from skvbem.blocks import Blocks, map_reduce
from skvbem.data import fingerprint, fingerprint_of_parts, hash_sums, mixed, row_hashes, rows_that_count
from skvbem.emissions import Emission
from skvbem.emissions.base import parts_of
from skvbem.emissions.known_labels import PartlyLabeled
from skvbem.errors import DataWarning, warn
from skvbem.models.mixture.model import DataInParts, Mixture, MixtureData
from skvbem.reading.base import Extent, Reading
from skvbem.reading.column_groups import ColumnGroups, Group
from skvbem.reading.guesses import MARKS_OF_NUMBERS, marks_in_measurements
from skvbem.reading.labels import RowLabels
from skvbem.reading.tables import are_complete, are_observed, count_missing, listed, named_columns

if TYPE_CHECKING:
    from skvbem.models.hmm.model import HMM
    from skvbem.models.sequences import HMMData


@dataclass(frozen=True, eq=False)
class TableReading(Reading):
    """Rows of weight > 0, read; they do not depend on each other.

    Parameters
    ----------
    columns : ColumnGroups
    blocks : sequence or Blocks
        Of the values of each group, and of the weights of the rows or None. A sequence of one block is in memory.
    is_weighted : ndarray of bool or None
        Which rows of a table in memory these are, those that count; None for all.
    labels : RowLabels or None
        What is known of the components of rows in memory.
    are_in_blocks : bool
        One block of rows at a time is in memory.
    """

    columns: ColumnGroups
    blocks: Iterable[tuple[list[np.ndarray], np.ndarray | None]]
    is_weighted: np.ndarray | None = None
    labels: RowLabels | None = None
    are_in_blocks: bool = False

    @property
    def values(self) -> list[np.ndarray]:
        """Values of each group, of rows in memory."""
        ((values, _),) = self.blocks
        return values

    @property
    def as_independent(self) -> TableReading:
        """The rows themselves, which do not depend on each other."""
        return self

    @property
    def extent(self) -> Extent:
        """How much data these are; counted where they are in memory."""
        n_columns = self.columns.n_read
        if self.are_in_blocks:
            return Extent(n_columns)
        return Extent(n_columns, len(self.values[0]), count_missing(self.columns.without_given(self.values)))

    def emission(self) -> Emission:
        """The emission of the values."""
        if self.are_in_blocks:
            by_group = [cast(Blocks, self.blocks).map(partial(_of_group, k)) for k in range(len(self.columns.groups))]
            return self.columns.emission(by_group, None)
        ((values, weight),) = self.blocks
        emission = self.columns.emission(values, weight)
        return emission if self.labels is None else self.labels.known_by(emission)

    def compiled(self, model: Mixture) -> MixtureData | DataInParts:
        """The rows as a mixture takes them."""
        if not self.are_in_blocks:
            (block,) = self.blocks
            return _compiled(self.columns, self.labels, model, None, block)
        blocks = cast(Blocks, self.blocks)
        survey, n_rows, n_fractions, total_weight = map_reduce(partial(_survey, self.columns, model.emission), blocks)
        parts = blocks.map(partial(_compiled, self.columns, None, model, survey)).kept()
        return DataInParts(survey, parts, n_rows, total_weight, not n_fractions)

    def arranged(self, model: Mixture, survey: Any = None) -> Iterator[tuple]:
        """Of each block, in the order of rows that costs least: values, weight, table, and that order or None."""
        return (_arranged(self.columns, self.labels, model, survey, block) for block in self.blocks)

    @cached_property
    def fingerprint(self) -> str:
        """The text that tells these rows, and how they are read, from others."""
        if self.labels is None:
            return f"{fingerprint_of_parts(_of_blocks(self, hash_sums))} {self.columns.meaning()}"
        ((values, weight),) = self.blocks
        return (
            f"{fingerprint(_with_labels(values, self.labels), weight)} {self.columns.meaning()} {self.labels.names!r}"
        )

    @property
    def fingerprint_in_order(self) -> str:
        """The text that tells these rows, in this order, from others."""
        hashes = [row_hashes(_with_labels(values, self.labels), slice(None)) for values, _ in self.blocks]
        return f"{self.fingerprint} {_in_order(*hashes, *([] if self.is_weighted is None else [self.is_weighted]))}"

    @property
    def has_whole_weights(self) -> bool:
        """Whether every row or sequence counts a whole number of times."""
        return all(_of_blocks(self, _has_whole_weights))

    @property
    def unit_hashes(self) -> np.ndarray:
        """Hashes of rows in memory, (n_rows,)."""
        return row_hashes(_with_labels(self.values, self.labels), slice(None))

    @property
    def unit_weight(self) -> np.ndarray | None:
        """How often each row in memory counts."""
        ((_, weight),) = self.blocks
        return weight

    def taken(self, units: np.ndarray, weight: np.ndarray | None) -> Self:
        """The reading of some rows in memory."""
        labels = None if self.labels is None else self.labels[units]
        blocks = [([of_group[units] for of_group in self.values], weight)]
        return replace(self, blocks=blocks, is_weighted=None, labels=labels)

    def telling(self, values: list[np.ndarray]) -> list[np.ndarray]:
        """Values by which rows say something, where they are observed."""
        return self.columns.modeled(values)

    def informative(self) -> Self:
        """The reading without rows that say nothing; see `skvbem.reading.base.Reading`."""
        if self.are_in_blocks:
            return replace(self, blocks=cast(Blocks, self.blocks).map(partial(_informative, self.columns)))
        (block,) = self.blocks
        observed = _observed(self.telling(block[0]), self.labels)
        if observed is None or observed.all():
            return self
        rows, weight = rows_that_count(observed, block[1])
        counts = np.ones(len(observed), dtype=bool) if self.is_weighted is None else self.is_weighted.copy()
        counts[np.flatnonzero(counts)[np.delete(np.arange(len(observed)), rows)]] = False
        return replace(self.taken(rows, weight), is_weighted=counts)

    def one_by_one(self) -> Self:
        """The reading with repeated rows in place of weights."""
        weight = self.unit_weight
        if weight is None:
            return replace(self, is_weighted=None)
        return self.taken(np.repeat(np.arange(len(weight)), weight.astype(int)), None)

    def refilled(self, drawn: Any) -> Self:
        """The reading with values that a model drew, the same cells missing."""
        _refuse_labels(self.labels)
        ((values, weight),) = self.blocks
        return replace(self, blocks=[(self.columns.refilled(values, drawn), weight)])


def _arranged(
    columns: ColumnGroups, labels: RowLabels | None, model: Mixture, survey: Any, block: tuple
) -> tuple[list[np.ndarray], np.ndarray | None, Any, np.ndarray | None]:
    """A block in the order of rows that costs least: values, weight, table, and that order or None."""
    emission: Any = model.emission if labels is None else cast(Any, model.emission).of_rows
    values, weight = block
    table = emission.prepare(columns.as_emission_takes(values), survey)
    order = emission.row_order(table)
    if order is not None:
        values, weight = [of_group[order] for of_group in values], None if weight is None else weight[order]
        table = emission.prepare(columns.as_emission_takes(values), survey)
    return values, weight, table, order


def _compiled(
    columns: ColumnGroups, labels: RowLabels | None, model: Mixture, survey: Any, block: tuple
) -> MixtureData:
    """A block as a mixture takes it."""
    values, weight, table, order = _arranged(columns, labels, model, survey, block)
    labels = labels if labels is None or order is None else labels[order]
    observed = _observed(columns.modeled(values), labels)
    table = table if labels is None else PartlyLabeled(table, labels.codes)
    return model.compile(table, weight, observed, partial(row_hashes, _with_labels(values, labels)))


def _survey(columns: ColumnGroups, emission: Emission, block: tuple) -> tuple[Any, int, int, float]:
    """What an emission must know of the rows of a block, their number, that of fractional weights, and the weight."""
    values, weight = block
    survey, n_rows = emission.survey(columns.as_emission_takes(values)), len(values[0])
    if weight is None:
        return survey, n_rows, 0, float(n_rows)
    return survey, n_rows, int(np.count_nonzero(weight != np.floor(weight))), float(weight.sum())


def _has_whole_weights(block: tuple) -> bool:
    _, weight = block
    return weight is None or bool((weight == np.floor(weight)).all())


def _with_labels(values: list[np.ndarray], labels: RowLabels | None) -> list[np.ndarray]:
    """Values of groups, and labels as one more column."""
    return values if labels is None else [*values, labels.codes[:, None]]


def _observed(modeled: list[np.ndarray], labels: RowLabels | None) -> np.ndarray | None:
    """Whether anything is known of a row, a cell or its label; None where all cells are."""
    if are_complete(modeled):
        return None
    observed = are_observed(modeled)
    return observed if labels is None else observed | (labels.codes >= 0)


def _informative(columns: ColumnGroups, block: tuple) -> tuple:
    """A block without rows of which nothing is observed."""
    values, weight = block
    observed = _observed(columns.modeled(values), None)
    if observed is None or observed.all():
        return block
    rows, weight = rows_that_count(observed, weight)
    return [of_group[rows] for of_group in values], weight


def _refuse_labels(labels: RowLabels | None) -> None:
    """Refuse to draw rows anew whose labels are those of other rows."""
    if labels is not None:
        raise ValueError(
            "Rows drawn anew from a model have labels of their own, and those given belong to the rows of X. Fit "
            "without 'labels' for simulated data; a bootstrap of kind='nonparametric' keeps rows and labels together."
        )


def _in_order(*arrays: np.ndarray) -> str:
    """A text that tells arrays, element by element, from others."""
    digest = sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


def _of_group(k: int, block: tuple) -> tuple:
    values, weight = block
    return values[k], weight


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
        Where these rows stand among the user's, -1 of steps that are not among them.
    labels : RowLabels or None
        What is known of the states of rows.
    is_weighted : ndarray of bool or None
        Which of the sequences these are; all if None.
    """

    columns: ColumnGroups
    values: list[np.ndarray]
    lengths: np.ndarray
    weight: np.ndarray | None
    sequences: Any = None
    order: np.ndarray | None = None
    labels: RowLabels | None = None
    is_weighted: np.ndarray | None = None

    @property
    def as_independent(self) -> TableReading:
        """The rows themselves, which do not depend on each other."""
        weight = None if self.weight is None else np.repeat(self.weight, self.lengths)
        rows = [(self.values, weight)]
        return TableReading(self.columns, rows, labels=self.labels, names=self.names, given=self.given)

    def emission(self) -> Emission:
        """The emission of the values, whose prior rests on the rows that say something."""
        rows = self.as_independent
        observed = _observed(self.columns.observable(self.values), self.labels)
        if observed is None or observed.all():
            return rows.emission()
        return rows.taken(*rows_that_count(observed, rows.unit_weight)).emission()

    @property
    def extent(self) -> Extent:
        """How much data these are."""
        return replace(self.as_independent.extent, n_sequences=len(self.lengths))

    def compiled(self, model: HMM) -> HMMData:
        """The rows as a hidden Markov model takes them."""
        table = model.emission.prepare(self.columns.as_emission_takes(self.values))
        observed = _observed(self.columns.observable(self.values), self.labels)
        table = table if self.labels is None else PartlyLabeled(table, self.labels.codes)
        hashes = partial(row_hashes, _with_labels(self.values, self.labels))
        return model.compile(table, self.lengths, self.weight, observed, hashes)

    @cached_property
    def fingerprint(self) -> str:
        """The text that tells these rows, and how they are read, from others."""
        names = "" if self.labels is None else f" {self.labels.names!r}"
        return f"{fingerprint([self.unit_hashes[:, None]], self.weight)} {self.columns.meaning()}{names}"

    @property
    def unit_hashes(self) -> np.ndarray:
        """Hashes of whole sequences, (n_sequences,)."""
        firsts = np.cumsum(self.lengths) - self.lengths
        time = (np.arange(self.lengths.sum()) - np.repeat(firsts, self.lengths)).astype(np.uint64)
        of_rows = mixed(row_hashes(_with_labels(self.values, self.labels), slice(None)) + mixed(time * _MULTIPLIER))
        return np.add.reduceat(of_rows, firsts)

    @property
    def unit_weight(self) -> np.ndarray | None:
        """How often each sequence counts."""
        return self.weight

    def taken(self, units: np.ndarray, weight: np.ndarray | None) -> Self:
        """The reading of some sequences."""
        lengths = self.lengths[units]
        firsts = np.cumsum(self.lengths) - self.lengths
        rows = np.arange(lengths.sum()) + np.repeat(firsts[units] - (np.cumsum(lengths) - lengths), lengths)
        values, labels = [of_group[rows] for of_group in self.values], self.labels
        labels = None if labels is None else labels[rows]
        return replace(self, values=values, lengths=lengths, weight=weight, sequences=None, order=None, labels=labels)

    @property
    def fingerprint_in_order(self) -> str:
        """The text that tells these rows, in this order, from others."""
        places = [] if self.order is None else [self.order]
        hashes = row_hashes(_with_labels(self.values, self.labels), slice(None))
        return f"{self.fingerprint} {_in_order(hashes, self.lengths, *places)}"

    @property
    def has_whole_weights(self) -> bool:
        """Whether every row or sequence counts a whole number of times."""
        return self.weight is None or bool((self.weight == np.floor(self.weight)).all())

    def one_by_one(self) -> Self:
        """The reading with repeated rows in place of weights."""
        if self.weight is None:
            return self
        return self.taken(np.repeat(np.arange(len(self.lengths)), self.weight.astype(int)), None)

    def refilled(self, drawn: Any) -> Self:
        """The reading with values that a model drew, the same cells missing."""
        _refuse_labels(self.labels)
        return replace(self, values=self.columns.refilled(self.values, drawn))

    def warn_of_missing_steps(self) -> None:
        """Warn of steps that are not among the rows."""
        if self.sequences is not None and self.sequences.times is not None:
            self.sequences.times.warn_of_filled()

    def __getstate__(self):
        where = None if self.sequences is None else replace(self.sequences, rows=None, table=None, times=None)
        return {**super().__getstate__(), "sequences": where}


def warn_of_oddities(
    rows: TableReading, emission: Emission, n_components: int, n_rows: int, total_weight: float
) -> None:
    """Warn of components that must stay empty, and of columns of measurements that say nothing, or nothing new."""
    groups = rows.columns
    if n_components > total_weight:
        warn(
            f"'n_components' of {groups.owner} is {n_components} for rows of total weight {total_weight:g}: some "
            "components must stay empty."
        )
    if n_rows == 1:
        return
    for k, (group, part) in enumerate(zip(groups.groups, parts_of(emission))):
        if group.specification.needs_variation:
            low, high = ranges(rows, k)
            warn_of_marks(rows, k, low, high)
            if names := [group.names[j] for j in np.flatnonzero(low == high)]:
                what = "holds one value" if len(names) == 1 else "hold one value each"
                where = group.specification.where_measured
                warn(f"{named_columns(names)} of X {what} {where}: no component differs there.", DataWarning)
        names = [group.names[j] for j in part.collinear(total_weight)]
        if names:
            warn(
                f"{named_columns(names)} of X are linear functions of each other: only the prior, or the floor of "
                "maximum likelihood, gives components any width there. Leave one of them out.",
                DataWarning,
            )


def ranges(rows: TableReading, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The least and the largest value of each column of a group."""
    low, high = np.array(np.inf), np.array(-np.inf)
    group = rows.columns.groups[k]
    for lowest, highest in _of_blocks(rows, partial(_extremes, group, k)):
        low, high = np.fmin(low, lowest), np.fmax(high, highest)
    return low, high


def _of_blocks(rows: TableReading, step: Callable) -> Iterator:
    """What a step returns for each block of rows, in memory or not."""
    return rows.blocks.results(step) if isinstance(rows.blocks, Blocks) else map(step, rows.blocks)


def _extremes(group: Group, k: int, block: tuple) -> tuple[np.ndarray, np.ndarray]:
    """The least and the largest value of each column of a group in a block."""
    values, _ = block
    return extremes(group.specification.measured(group.modeled(values[k])))


def _column(group: Group, k: int, j: int, block: tuple) -> np.ndarray:
    """A column of a group in a block."""
    values, _ = block
    return group.modeled(values[k])[:, j]


def warn_of_marks(rows: TableReading, k: int, low: np.ndarray, high: np.ndarray) -> None:
    """Warn of columns of measurements with codes of missing cells, of ranges (n_columns,) that are known."""
    group, marks = rows.columns.groups[k], {}
    for j in np.flatnonzero(np.isin(low, MARKS_OF_NUMBERS) | np.isin(high, MARKS_OF_NUMBERS)).tolist():
        cells = np.concatenate(list(_of_blocks(rows, partial(_column, group, k, j))))
        if codes := marks_in_measurements(cells):
            marks[group.names[j]] = codes
    if marks:
        every = sorted({mark for of_column in marks.values() for mark in of_column})
        those = every[0] if len(every) == 1 else every
        several = len(marks) > 1
        warn(
            f"{named_columns([*marks])} of X hold{'' if several else 's'} {listed(map(repr, every))} again and again, "
            f"far from all else, taken as {'measurements' if several else 'a measurement'}. If that marks missing "
            f"cells, pass missing_values={those!r}.",
            DataWarning,
        )
