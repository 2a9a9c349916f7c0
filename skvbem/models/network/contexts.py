"""Distinct rows of data as far as a factor sees them, counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from skvbem.data import have_set

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

    A node may be missing in some: its value is -1 then. Made in two steps, keys and then `settle`, so that columns can
    be freed in between where keys hold all values.

    Parameters
    ----------
    layout : Layout
    codes : dict of int to ndarray of shape (n_rows of the component,)
        Of each observed node around the component.
    rows : ndarray or None
        Numbers of these rows; None: all.
    n_rows : int
        Of the whole table.
    weight : ndarray or None
        Of the whole table.
    keep_rows : bool
    """

    def __init__(self, layout, codes, rows, n_rows, weight, keep_rows):
        self.layout = layout
        self.of_row = self.a_row = None
        self._around = sorted(codes)
        self.has_gaps = {node: bool(len(codes[node]) and codes[node].min() < 0) for node in self._around}
        self.has_set = {node: have_set(codes[node], layout.cardinalities[node]) for node in self._around}
        self._sizes = [self.radix(node) for node in self._around]
        self._rows, self._keep_rows = rows, keep_rows
        self.needs_columns = keep_rows or prod(self._sizes) > _LARGEST_KEY
        self._codes = codes if self.needs_columns else None
        self._weight = weight if weight is None or rows is None else weight[rows]
        columns = [codes[node] + np.int64(1) if self.has_gaps[node] else codes[node] for node in self._around]
        self._keys = joint_keys(columns, self._sizes, n_rows if rows is None else len(rows))

    def radix(self, node: int) -> int:
        """Number of values of an observed node, counted from -1 if it is missing in some contexts; twice if set."""
        return self.layout.cardinalities[node] * (1 + self.has_set.get(node, False)) + self.has_gaps.get(node, False)

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
        self._first = first
        if self._keep_rows:
            self.of_row, self.a_row = inverse, first if self._rows is None else self._rows[first]

    def value(self, node: int, part) -> np.ndarray:
        """The code of an observed node in some contexts, -1 where it is missing; see `Rows`."""
        if self.needs_columns:
            return self._codes[node][self._first[part]]
        return self._keys[part] // self._place[node] % self.radix(node) - self.has_gaps[node]

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
        values = [self.value(node, part) for node in observed]
        values = [each + np.int64(1) if self.has_gaps.get(node) else each for node, each in zip(observed, values)]
        return joint_keys(values, [self.radix(node) for node in observed], len(self.weight[part]))


class RowContexts(Contexts):
    """The rows themselves, one context each, in their order: where a factor may differ from row to row."""

    def __init__(self, layout, codes, rows, n_rows, weight):
        self.layout, self.needs_columns, self._codes = layout, True, codes
        self.has_gaps = {node: bool(len(each) and each.min() < 0) for node, each in codes.items()}
        self.has_set = {node: have_set(each, layout.cardinalities[node]) for node, each in codes.items()}
        self.a_row = np.arange(n_rows) if rows is None else rows
        self.n = len(self.a_row)
        self.weight = np.ones(self.n) if weight is None else weight[self.a_row].astype(float)
        self.of_row = self._first = np.arange(self.n)

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


def disjoint(scopes: Iterable[tuple[int, list[int]]]) -> list[tuple[int, list[int]]]:
    """Scopes, nodes as bits with the families that have them, made one where they share nodes; empty ones left out."""
    groups: list[tuple[int, list[int]]] = []
    for scope, families in scopes:
        if not scope:
            continue
        others = []
        for nodes, members in groups:
            if nodes & scope:
                scope, families = scope | nodes, families + members
            else:
                others.append((nodes, members))
        groups = [*others, (scope, families)]
    return groups
