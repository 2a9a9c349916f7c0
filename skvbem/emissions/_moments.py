"""Weighted moments of tables with missing cells: the origins and units in which emissions measure.

Sums run over blocks of rows, so that no copy of the data is made.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

_BLOCK = 4096


class Moments(NamedTuple):
    """Moments of the observed cells.

    Parameters
    ----------
    origin : ndarray of shape (d,)
        The mean, as near as floats come to it.
    mean : ndarray of shape (d,)
        What is left: the mean above the origin.
    deviation : ndarray of shape (d,)
        Standard deviations; where a column is constant, its size (1 if that is 0).
    correlation : ndarray of shape (d, d)
        Of the columns with missing cells at their means, shrunk toward the identity by d / (n + d).
    """

    origin: np.ndarray
    mean: np.ndarray
    deviation: np.ndarray
    correlation: np.ndarray


def weighted_means(values: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """Means of the observed cells of each column; 0 in a column without any."""
    total, n = np.zeros(values.shape[1]), np.zeros(values.shape[1])
    for cells, w in _blocks(values, weight):
        observed = ~np.isnan(cells)
        total += w @ np.where(observed, cells, 0.0)
        n += w @ observed
    return np.divide(total, n, out=np.zeros(len(n)), where=n > 0)


def weighted_moments(values: np.ndarray, weight: np.ndarray | None) -> Moments:
    """Moments of a table (n_rows, d) with weights (n_rows,); NaN where a cell is missing.

    Raises
    ------
    ValueError
        If the square of a column's spread is too large or too small for a float.
    """
    origin = weighted_means(values, weight)
    d = len(origin)
    mean, n, cross, n_rows = np.zeros(d), np.zeros(d), np.zeros((d, d)), 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        for cells, w in _blocks(values, weight):
            observed = ~np.isnan(cells)
            above = np.where(observed, cells - origin, 0.0)
            mean += w @ above
            n += w @ observed
            cross += (w[:, None] * above).T @ above
            n_rows += w.sum()
        some = np.maximum(n, np.finfo(float).tiny)
        mean /= some
        variance = np.maximum(np.diagonal(cross) / some - mean**2, 0.0)
    if not np.isfinite(variance).all():
        column = int(np.argmin(np.isfinite(variance)))
        raise ValueError(
            f"Column {column} spreads so far about its mean, {origin[column]:.6g}, that the square of it is no float. "
            "Measure it in another unit."
        )
    size = np.where(origin != 0, abs(origin), 1.0)
    constant = variance <= (4 * np.finfo(float).eps * origin) ** 2
    deviation = np.where(constant, size, np.sqrt(variance))
    unit = np.sqrt(np.maximum(np.diagonal(cross), np.finfo(float).tiny))
    correlation = cross / unit / unit[:, None]
    correlation[constant] = correlation[:, constant] = 0.0
    shrinkage = d / (n_rows + d)
    correlation *= 1 - shrinkage
    np.fill_diagonal(correlation, 1.0)
    return Moments(origin, mean, deviation, correlation)


def _blocks(values: np.ndarray, weight: np.ndarray | None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rows as floats, and their weights."""
    for at in range(0, len(values), _BLOCK):
        cells = np.asarray(values[at : at + _BLOCK], dtype=float)
        yield cells, np.ones(len(cells)) if weight is None else np.asarray(weight[at : at + _BLOCK], dtype=float)
