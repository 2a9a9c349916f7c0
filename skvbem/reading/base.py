"""X as an estimator has read it, once: the only thing below the estimator that has seen X."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from skvbem.data import resampled
from skvbem.errors import DataWarning, warn


@dataclass(frozen=True)
class Extent:
    """How much data a fit has seen.

    Parameters
    ----------
    n_columns : int
    n_rows, n_missing : int or None
        Rows of weight > 0, and missing cells; None where rows came in blocks, which are not read once more for it.
    n_sequences : int or None
        Sequences that the rows belong to; None where they depend on nothing.
    """

    n_columns: int
    n_rows: int | None = None
    n_missing: int | None = None
    n_sequences: int | None = None

    def __str__(self) -> str:
        columns = f"{self.n_columns} column{'s' * (self.n_columns != 1)}"
        if self.n_rows is None:
            return f"rows in blocks, {columns}"
        rows = f"{self.n_rows:,} row{'s' * (self.n_rows != 1)}"
        if self.n_sequences is not None:
            rows += f" in {self.n_sequences:,} sequence{'s' * (self.n_sequences != 1)}"
        missing = f"{self.n_missing:,}" if self.n_missing else "no"
        return f"{rows}, {columns}, {missing} missing cell{'s' * (self.n_missing != 1)}"


@dataclass(frozen=True, eq=False)
class Reading(ABC):
    """Rows of weight > 0, read: what fits, scores and searches share of one X.

    Parameters
    ----------
    columns : ColumnGroups or CategoryEncoder
        How columns are read, as learned from these rows or from those of an earlier fit.
    names : mapping
        The attributes `n_features_in_` and, if X has string column names, `feature_names_in_`.
    given : mapping
        What callbacks are told: X, and the metadata beside it. It is not sent to other processes.
    """

    columns: Any
    names: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    given: Mapping[str, Any] = field(default_factory=lambda: {"X": None}, kw_only=True)

    #: Whether one block of rows at a time is in memory.
    are_in_blocks = False

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """What tells these rows, in any order, and how their values are read, from others."""

    @property
    def fingerprint_in_order(self) -> str:
        """What tells these rows, in this order, from others: for what is given row by row, as responsibilities are."""
        return self.fingerprint

    @property
    @abstractmethod
    def extent(self) -> Extent:
        """How much data these are."""

    @property
    @abstractmethod
    def has_whole_weights(self) -> bool:
        """Whether everything counts a whole number of times."""

    @property
    @abstractmethod
    def unit_hashes(self) -> np.ndarray:
        """What tells units that depend on no other, rows or whole sequences, from different ones, (n_units,)."""

    @property
    @abstractmethod
    def unit_weight(self) -> np.ndarray | None:
        """How often each unit counts, (n_units,); once if None."""

    @property
    def intervention_targets(self) -> tuple[tuple, ...]:
        """The columns that were set together in some rows: () where nothing was; none where nothing ever was."""
        return ()

    @abstractmethod
    def taken(self, units: np.ndarray, weight: np.ndarray | None) -> Self:
        """The reading of the units at some positions, in this order, each with a weight."""

    def resampled(self, rng: np.random.Generator) -> Self:
        """The reading of units drawn with replacement, the same for any order of theirs."""
        return self.taken(*resampled(self.unit_hashes, self.unit_weight, rng))

    def in_order(self) -> Self:
        """The reading of units in an order that their values alone decide."""
        weight, order = self.unit_weight, np.argsort(self.unit_hashes, kind="stable")
        return self.taken(order, None if weight is None else weight[order])

    @abstractmethod
    def one_by_one(self) -> Self:
        """Everything as often as it counts, in place of weights."""

    @abstractmethod
    def refilled(self, drawn: Any) -> Self:
        """The reading with values that a model drew, the same cells missing."""

    def informative(self) -> Self:
        """The reading without rows that say nothing: those without an observed cell, if no other row depends on them.

        If all are such, one of weight 0 stays.
        """
        return self

    def shared(self) -> Self:
        """The reading as many fits share it."""
        return self

    def kept(self) -> Self:
        """The reading for one fit, which may give its arrays up while this one stays as it is."""
        return self

    def __getstate__(self):
        return {**self.__dict__, "given": {"X": None}}


def warn_of_one_row() -> None:
    """Warn of data that say next to nothing."""
    warn("X has one row: the fit is mostly prior.", DataWarning)
