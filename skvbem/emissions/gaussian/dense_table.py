"""Rows of measurements as a Gaussian with a precision matrix takes them, grouped by what is missing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

#: Largest precision times squared reach for which the square is expanded.
MAX_EXPANDED_SQUARE = 1e7
#: Most columns for which it is.
MAX_EXPANDED_COLUMNS = 40


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

    def __getitem__(self, rows: slice) -> Self:
        pattern = None if self.pattern is None else self.pattern[rows]
        return replace(self, values=self.values[rows], pattern=pattern)

    @cached_property
    def frame(self) -> np.ndarray:
        """Rows in the frame, (d, n_rows); what is missing is taken to be at the origin."""
        away = self.values - self.origin
        if self.pattern is not None:
            np.nan_to_num(away, copy=False, nan=0.0, posinf=np.inf, neginf=-np.inf)
        return self.whitener @ away.T

    @cached_property
    def features(self) -> np.ndarray:
        """1, the frame and its products, (1 + d + d (d + 1) / 2, n_rows)."""
        frame, (d, n) = self.frame, self.frame.shape
        features = np.empty((1 + d + d * (d + 1) // 2, n))
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
        if self.pattern is None:
            return [(slice(None), ())]
        order = np.argsort(self.pattern, kind="stable")
        starts = np.flatnonzero(np.diff(self.pattern[order], prepend=-1))
        runs: list[tuple[slice | np.ndarray, tuple[int, ...]]] = []
        for rows in np.split(order, starts[1:]):
            together = rows[-1] - rows[0] + 1 == len(rows)
            missing = tuple(np.flatnonzero(self.patterns[self.pattern[rows[0]]]).tolist())
            runs.append((slice(int(rows[0]), int(rows[-1]) + 1) if together else rows, missing))
        return runs


def missing_patterns(values: np.ndarray) -> tuple[np.ndarray | None, np.ndarray]:
    """Which pattern of missing cells each row has (None if no cell is missing), and the patterns."""
    n, d = values.shape
    packed = None
    for at in range(0, n if values.dtype.kind == "f" else 0, 4096):
        missing = np.isnan(values[at : at + 4096])
        if packed is None and missing.any():
            packed = np.zeros((n, -(-d // 8)), dtype=np.uint8)
        if packed is not None:
            packed[at : at + 4096] = np.packbits(missing, axis=1)
    if packed is None:
        return None, np.zeros((0, d), dtype=bool)
    keys = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
    _, first, pattern = np.unique(keys, return_index=True, return_inverse=True)
    return pattern.astype(np.int32).ravel(), np.unpackbits(packed[first], axis=1, count=d).astype(bool)
