"""Observations as models take them: codes, which cells are observed, and how much each row counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from skvbem._kernels import _hashes

_ROWS_AT_ONCE = 2**14
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, eq=False)
class Rows:
    """A table of categorical observations.

    Parameters
    ----------
    names : tuple
        Names of the columns.
    codes : ndarray of int, shape (n_rows, n_columns)
        Category of each cell, 0, 1, ...; negative where the cell is missing. A cell that an experimenter set has as
        much more as its column has categories: its own node's table does not count it, those of the children do.
    weight : ndarray of shape (n_rows,) or None
        How often each row counts, > 0; once each if None. Weights define the likelihood prod p(row)^weight.
    """

    names: tuple
    codes: np.ndarray
    weight: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def total_weight(self) -> float:
        """Sum of the weights: the n of every score."""
        return float(len(self) if self.weight is None else self.weight.sum())

    def distinct(self) -> Rows:
        """The distinct rows, in lexicographic order, with the weights of all equal ones added up."""
        if not len(self):
            return Rows(self.names, self.codes, np.zeros(0))
        words = _words(self.codes)
        order = np.lexsort(words[:, ::-1].T)
        words = words[order]
        begins = np.concatenate([[True], (words[1:] != words[:-1]).any(axis=1)])
        weight = np.bincount(np.cumsum(begins) - 1, None if self.weight is None else self.weight[order])
        return Rows(self.names, self.codes[order[begins]], weight.astype(float))

    def fingerprint(self) -> str:
        """A fingerprint of the rows: equal for the same rows in any order, and for weights as for repeated rows."""
        return fingerprint([self.codes], self.weight)

    @property
    def has_whole_weights(self) -> bool:
        """True if every row counts a whole number of times."""
        return _are_whole(self.weight)

    def release(self) -> None:
        """Give up the codes: whoever still holds a column keeps it, these rows are empty from now on."""
        object.__setattr__(self, "codes", np.empty((0, len(self.names)), dtype=self.codes.dtype))

    def column(self, name) -> np.ndarray:
        """The codes of one column."""
        return self.codes[:, self.names.index(name)]


def have_set(codes: np.ndarray, n_categories: Any) -> bool:
    """True if a cell was set by an experimenter; `n_categories` is a number, or one for each column."""
    return bool(codes.size) and bool((codes.max(axis=0) >= n_categories).any())


def categories_of(codes: np.ndarray, n_categories: Any) -> np.ndarray:
    """Categories of cells, observed or set; negative where they are missing."""
    return np.where(codes >= n_categories, codes - n_categories, codes) if have_set(codes, n_categories) else codes


def _words(codes: np.ndarray) -> np.ndarray:
    """Rows of signed codes as words of 64 bits, (n_rows, n_words), whose lexicographic order is that of the rows."""
    n_rows, n_columns = codes.shape
    size = codes.dtype.itemsize
    sign = np.array(1 << (8 * size - 1), dtype=f"u{size}")
    unsigned = np.ascontiguousarray(codes).view(sign.dtype) ^ sign
    octets = np.zeros((n_rows, max(-(-n_columns * size // 8), 1) * 8), dtype=np.uint8)
    octets[:, : n_columns * size] = unsigned.astype(f">u{size}").view(np.uint8)
    return octets.view(">u8").astype(np.uint64)


def rows_that_count(observed: np.ndarray, weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
    """Places of the rows in which something is observed, and their weights; the first row, of weight 0, if none is.

    Parameters
    ----------
    observed : ndarray of bool, shape (n_rows,)
    weight : ndarray of shape (n_rows,) or None
    """
    if not observed.any():
        return np.zeros(1, dtype=np.int64), np.zeros(1)
    rows = np.flatnonzero(observed)
    return rows, None if weight is None else weight[rows]


def fingerprint(tables: Sequence[np.ndarray], weight: np.ndarray | None) -> str:
    """A fingerprint of rows: equal for the same rows in any order, and for weights (n_rows,) as for repeated rows.

    Parameters
    ----------
    tables : sequence of ndarray of shape (n_rows, n_columns)
        Codes or floats, side by side.
    """
    return fingerprint_of_parts([hash_sums((tables, weight))])


def fingerprint_of_parts(sums: Iterable[tuple[int, int, bool]]) -> str:
    """The fingerprint of all rows from the `hash_sums` of their parts, either all with weights or none."""
    of_whole, of_any, are_whole = map(list, zip(*sums))
    return f"{sum(of_whole if all(are_whole) else of_any) % 2**64:016x}"


def hash_sums(part: tuple[Sequence[np.ndarray], np.ndarray | None]) -> tuple[int, int, bool]:
    """Sums of hashes of rows, of a part (tables, weight): as often as they count, with weights, and which are these."""
    tables, weight = part
    of_whole, of_any, whole = 0, 0, _are_whole(weight)
    for at in range(0, len(tables[0]), _ROWS_AT_ONCE):
        rows = slice(at, at + _ROWS_AT_ONCE)
        hashes = row_hashes(tables, rows)
        if weight is not None:
            of_any += int(mixed(hashes ^ weight[rows].view(np.uint64)).sum(dtype=np.uint64))
        if whole:
            times = np.uint64(1) if weight is None else weight[rows].astype(np.uint64)
            of_whole += int((mixed(hashes) * times).sum(dtype=np.uint64))
    return of_whole, of_any, whole


def row_hashes(tables: Sequence[np.ndarray], rows: slice) -> np.ndarray:
    """A hash of each row that its values decide: equal for equal rows, and as good as never for others."""
    hashes = np.zeros(len(tables[0][rows]), dtype=np.uint64)
    for table in tables:
        if table.dtype.kind == "f":
            _hashes.add_floats(table[rows].astype(float, copy=False), hashes)
            continue
        for column in table[rows].T:
            hashes = hashes * _MULTIPLIER + column.astype(np.uint64) + _MULTIPLIER
    return hashes


def resampled(hashes: np.ndarray, weight: np.ndarray | None, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Units drawn with replacement: which were drawn, and how much each counts; the same for any order of the units.

    A unit that counts a whole number of times is so many units, of which as many are drawn as there are. Where weights
    are fractions, as many units are drawn as there are, and each keeps its weight.

    Parameters
    ----------
    hashes : ndarray of uint64, shape (n_units,)
        Of their values, by which units are put in order.
    weight : ndarray of shape (n_units,) or None
    rng : numpy.random.Generator

    Returns
    -------
    positions : ndarray of int
    weight : ndarray of float
    """
    if weight is not None and not _are_whole(weight):
        order = np.lexsort((weight, hashes))
        times = rng.multinomial(len(order), np.full(len(order), 1 / len(order)))
        drawn = times > 0
        return order[drawn], times[drawn] * weight[order[drawn]]
    _, first, position = np.unique(hashes, return_index=True, return_inverse=True)
    count = np.bincount(position.ravel(), weight, len(first))
    times = rng.multinomial(round(count.sum()), count / count.sum())
    drawn = times > 0
    return first[drawn], times[drawn].astype(float)


def _are_whole(weight: np.ndarray | None) -> bool:
    return weight is None or bool((weight == np.floor(weight)).all())


def mixed(hashes: np.ndarray) -> np.ndarray:
    """Hashes whose every bit depends on every bit of those given, so that sums of them tell sets of rows apart."""
    mixed = np.empty(hashes.size, dtype=np.uint64)
    _hashes.mix(np.ascontiguousarray(hashes).ravel(), mixed)
    return mixed.reshape(hashes.shape)
