"""Rows of measurements in the frame of a dense Gaussian, by which of their cells are missing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import Self

import numpy as np

from skvbem._lazy import cached_property
from skvbem._memory import OF_BLOCKS
from skvbem.emissions.moments import ROWS_AT_ONCE


@dataclass(frozen=True, eq=False)
class DenseTable:
    """Rows of measurements.

    Parameters
    ----------
    origin : ndarray of shape (d,)
        Of the frame, in the units of the data.
    whitener : ndarray of shape (d, d)
        What makes distances from the origin coordinates in the frame.
    values : ndarray of shape (n_rows, d)
        NaN where a cell is missing.
    pattern : ndarray of int, shape (n_rows,), or None
        Which of the patterns of missing cells each row has; None if no cell of the table is missing.
    patterns : ndarray of bool, shape (n_patterns, d)
        Which cells are missing.
    reach : ndarray of shape (d,)
        How far the rows reach in the frame.
    """

    origin: np.ndarray
    whitener: np.ndarray
    values: np.ndarray
    pattern: np.ndarray | None
    patterns: np.ndarray
    reach: np.ndarray

    def __len__(self) -> int:
        return len(self.values)

    def __add__(self, other: DenseTable) -> Self:
        """What must be known of the rows of both, of tables without rows."""
        return replace(self, reach=np.maximum(self.reach, other.reach))

    def __getitem__(self, rows: slice) -> Self:
        if isinstance(rows, slice) and rows.indices(len(self)) == (0, len(self), 1):
            return self  # whose frame and features are kept from step to step
        pattern = None if self.pattern is None else self.pattern[rows]
        return replace(self, values=self.values[rows], pattern=pattern)

    @cached_property
    def frame(self) -> np.ndarray:
        """Rows in the frame, (d, n_rows); what is missing is taken to be at the origin."""
        away = np.subtract(self.values, self.origin, out=OF_BLOCKS.empty(*self.values.shape))
        if self.pattern is not None:
            np.nan_to_num(away, copy=False, nan=0.0, posinf=np.inf, neginf=-np.inf)
        return np.matmul(self.whitener, away.T, out=OF_BLOCKS.empty(*away.T.shape))

    @cached_property
    def features(self) -> np.ndarray:
        """1, the frame and its products, (1 + d + d (d + 1) / 2, n_rows)."""
        frame, (d, n) = self.frame, self.frame.shape
        features = OF_BLOCKS.empty(1 + d + d * (d + 1) // 2, n)
        features[0] = 1.0
        features[1 : 1 + d] = frame
        at = 1 + d
        for i in range(d):
            np.multiply(frame[i], frame[i:], out=features[at : at + d - i])
            at += d - i
        return features

    @cached_property
    def runs(self) -> list[tuple[slice | np.ndarray, tuple[int, ...]]]:
        """Rows with the same missing columns, and these columns."""
        return runs_of_patterns(self.pattern, self.patterns)

    @cached_property
    def observed_runs(self) -> list[tuple[slice | np.ndarray, tuple[int, ...]]]:
        """The runs that have an observed cell."""
        return [run for run in self.runs if len(run[1]) < len(self.origin)]

    @cached_property
    def hidden_cells(self) -> tuple[np.ndarray, np.ndarray]:
        """Missing columns of these runs, one run after the other, and where those of each begin and end."""
        columns = [missing for _, missing in self.observed_runs]
        ends = np.cumsum([0, *map(len, columns)])
        return np.array(list(chain.from_iterable(columns)), dtype=np.intp), ends.astype(np.intp)


def runs_of_patterns(
    pattern: np.ndarray | None, patterns: np.ndarray
) -> list[tuple[slice | np.ndarray, tuple[int, ...]]]:
    """Rows with the same missing columns, and these columns, of patterns as `missing_patterns` has them."""
    if pattern is None or not len(pattern):
        return [(slice(None), ())]
    order = None if (pattern[1:] >= pattern[:-1]).all() else np.argsort(pattern, kind="stable")
    by_pattern = pattern if order is None else pattern[order]
    starts = np.flatnonzero(np.diff(by_pattern, prepend=-1))
    hidden = patterns[by_pattern[starts]]
    columns, ends = hidden.nonzero()[1].tolist(), [0, *hidden.sum(axis=1).cumsum().tolist()]
    runs: list[tuple[slice | np.ndarray, tuple[int, ...]]] = []
    for k, (first, end) in enumerate(pairwise([*starts.tolist(), len(pattern)])):
        rows = slice(first, end) if order is None else _as_slice(order[first:end])
        runs.append((rows, tuple(columns[ends[k] : ends[k + 1]])))
    return runs


def _as_slice(rows: np.ndarray) -> slice | np.ndarray:
    """Rows in increasing order, as a slice where they follow each other."""
    together = rows[-1] - rows[0] + 1 == len(rows)
    return slice(int(rows[0]), int(rows[-1]) + 1) if together else rows


def missing_patterns(values: np.ndarray) -> tuple[np.ndarray | None, np.ndarray]:
    """Number of the pattern of missing cells of each row (None if no cell is missing), and the patterns."""
    n, d = values.shape
    packed = None
    for at in range(0, n if values.dtype.kind == "f" else 0, ROWS_AT_ONCE):
        missing = np.isnan(values[at : at + ROWS_AT_ONCE])
        if packed is None and missing.any():
            packed = np.zeros((n, -(-d // 8)), dtype=np.uint8)
        if packed is not None:
            packed[at : at + ROWS_AT_ONCE] = np.packbits(missing, axis=1)
    if packed is None:
        return None, np.zeros((0, d), dtype=bool)
    keys = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
    _, first, pattern = np.unique(keys, return_index=True, return_inverse=True)
    return pattern.astype(np.int32).ravel(), np.unpackbits(packed[first], axis=1, count=d).astype(bool)
