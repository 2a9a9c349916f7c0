"""Distinct rows of data as far as a factor sees them, counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

# Joint codes of several columns stay below this, so that they fit an int64.
_LARGEST_KEY = 2**62


# Contexts are decoded so many at a time.
_CHUNK = 2**16


def joint_keys(columns: Sequence[np.ndarray], radices: Sequence[int], n_rows: int) -> np.ndarray:
    """One int64 for the values of several columns, in lexicographic order."""
    keys, size = np.zeros(n_rows, dtype=np.int64), 1
    for column, radix in zip(columns, radices, strict=True):
        if size * radix > _LARGEST_KEY:
            values, keys = np.unique(keys, return_inverse=True)
            size = len(values)
        keys *= radix
        keys += column
        size *= radix
    return keys


class Contexts:
    """Distinct values of the observed nodes around a component, with weights; ordered by weight, then by values.

    Made in two steps, keys and then `settle`, so that columns can be freed in between where keys hold all values.
    """

    def __init__(self, layout, columns, around, rows, n_rows, weight, keep_rows):
        picked = (lambda column: column) if rows is None else (lambda column: column[rows])
        sizes = [layout.cardinalities[node] for node in around]
        self.layout = layout
        self.needs_columns = keep_rows or prod(sizes) > _LARGEST_KEY
        self.of_row = self.a_row = None
        self._around, self._sizes, self._rows, self._keep_rows = around, sizes, rows, keep_rows
        self._columns = columns if self.needs_columns else None
        self._weight = None if weight is None else picked(weight)
        self._keys = joint_keys(
            [picked(columns[node]) for node in around], sizes, n_rows if rows is None else len(rows)
        )

    def settle(self) -> None:
        """Find the distinct keys of contexts and their weights."""
        first: Any = None
        inverse: Any = None
        order = None
        if self._weight is None and not self.needs_columns:
            self._keys, self.weight = _distinct_keys(self._keys)
        else:
            self._keys, first, inverse = np.unique(self._keys, return_index=True, return_inverse=True)
            self.weight = np.bincount(inverse, weights=self._weight).astype(float)
        self.n = len(self._keys)
        if self.weight.min(initial=np.inf) < self.weight.max(initial=0.0):
            order = np.argsort(self.weight, kind="stable")
            self._keys = self._keys[order]
            self.weight = self.weight[order]
        if not self.needs_columns:
            places = reversed(np.cumprod([1, *reversed(self._sizes)])[:-1].tolist())
            self._place = dict(zip(self._around, places))
            return
        if order is not None:
            first = first[order]
            position = np.empty(self.n, dtype=np.int64)
            position[order] = np.arange(self.n)
            inverse = position[inverse]
        self._at = first if self._rows is None else self._rows[first]
        if self._keep_rows:
            self.of_row, self.a_row = inverse, self._at

    def value(self, node: int, part) -> np.ndarray:
        """The value of an observed node in some contexts."""
        if self.needs_columns:
            return self._columns[node][self._at[part]]
        return self._keys[part] // self._place[node] % self.layout.cardinalities[node]

    def fill_codes(self, slot: _Slot, codes: np.ndarray) -> np.ndarray:
        """Write each context's code in a slot, (n,); the weight of each code."""
        mass = np.zeros(slot.n_codes)
        if slot.values is not None:
            codes[:] = np.unique(self.raw_codes(slot.observed), return_inverse=True)[1]
        for at in range(0, self.n, _CHUNK):
            part = slice(at, min(at + _CHUNK, self.n))
            if slot.values is None:
                codes[part] = self.raw_codes(slot.observed, part)
            mass += np.bincount(codes[part], weights=self.weight[part], minlength=slot.n_codes)
        return mass

    def raw_codes(self, observed: tuple[int, ...], part: slice = slice(None)) -> np.ndarray:
        """The joint value of some observed nodes in each context."""
        sizes = [self.layout.cardinalities[node] for node in observed]
        return joint_keys([self.value(node, part) for node in observed], sizes, len(self.weight[part]))


class RowContexts(Contexts):
    """The rows themselves, one context each, in their order: where a factor may differ from row to row."""

    def __init__(self, layout, columns, rows, n_rows, weight):
        self.layout, self.needs_columns, self._columns = layout, True, columns
        self._at = np.arange(n_rows) if rows is None else rows
        self.weight = np.ones(len(self._at)) if weight is None else weight[self._at].astype(float)
        self.n = len(self._at)
        self.of_row, self.a_row = np.arange(self.n), self._at

    def settle(self) -> None:
        """Nothing is to be found: each row is a context."""


def _distinct_keys(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct keys ascending and how often each occurs; `keys` is sorted in place, to save memory."""
    keys.sort()
    new = np.empty(len(keys), dtype=bool)
    new[:1] = True
    np.not_equal(keys[1:], keys[:-1], out=new[1:])
    if new.all():
        return keys, np.ones(len(keys))
    starts = np.flatnonzero(new)
    counts = np.empty(len(starts))
    np.subtract(starts[1:], starts[:-1], out=counts[:-1], casting="unsafe")
    counts[-1] = len(keys) - starts[-1]
    del starts
    return keys[new], counts


@dataclass(frozen=True)
class _Slot:
    """Families whose product is one table per joint value of the observed nodes around them."""

    families: tuple[int, ...]
    observed: tuple[int, ...]
    n_codes: int
    values: Callable | None  # observed node -> its value at each code; None: codes are mixed radix
