"""Counts at which negative binomial log likelihoods are known, and interpolation between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from scipy.sparse import csr_array

from skvbem._kernels._categorical import N_POWERS
from skvbem._lazy import cached_property
from skvbem._numerics import log_gamma, log_rising

# Counts up to which each has a cell. Beyond, intervals from a count to 16 times that count have so many that
# interpolation errs by less than 1e-9 nats to counts of 1e4 (`tests/emissions/test_one_dimensional.py`), and from 1e7
# on by the rounding of the log likelihood itself, 36 = ln 4e15.
_SMALL, _RATIO = 64, 16.0
_LOG_ERROR, _LOG_DIGITS = np.log(2e-9), 36.0
# Error of log likelihoods within a bin, nats: a fortieth of that of knots.
_LOG_ERROR_OF_BINS = np.log(5e-11)


@dataclass(frozen=True, eq=False)
class Knots:
    r"""Counts, and numbers between counts, between which log likelihoods are interpolated.

    Whole counts to 64 are knots. Then come Chebyshev's points of intervals of ln y, of equal length, in which
    :math:`\ln\Gamma(y + r) - \ln\Gamma(r) - \ln\Gamma(y)` is near a polynomial. Whatever the size r is, its
    singularities lie at a distance of pi: the error falls by the same factor with each knot. Those to a smaller count
    are the first of those to a larger one.

    Parameters
    ----------
    counts : ndarray of shape (n_knots,)
    starts : tuple of float
        Where intervals begin.
    sizes : tuple of int
        Knots of each interval.
    """

    counts: np.ndarray
    starts: tuple[float, ...]
    sizes: tuple[int, ...]

    @classmethod
    def to(cls, most: float) -> Self:
        """Knots that reach to a count at least."""
        starts, sizes, knots = [float(_SMALL)], [], [np.arange(1.0, _SMALL + 1)]
        half = np.log(_RATIO) / 2
        per_knot = np.arcsinh(np.pi / half)
        while starts[-1] < most:
            low = starts[-1]
            sizes.append(int(np.ceil(min(np.log(low * _RATIO) - _LOG_ERROR, _LOG_DIGITS) / per_knot)))
            knots.append(low * np.exp(half * (1 + _points(sizes[-1]))))
            starts.append(low * _RATIO)
        return cls(np.concatenate(knots), tuple(starts[:-1]), tuple(sizes))

    @property
    def last(self) -> float:
        """The largest count between knots; of those beyond, log likelihoods are not interpolated."""
        return _RATIO * self.starts[-1] if self.starts else float(_SMALL)

    def weights(self, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Knots of counts and their weights, (n_counts, n), and the rest of the log likelihood, (n_counts,).

        The rest is minus ln y!, and what interpolation leaves out. Counts beyond the last knot have no weights.
        """
        width = max(self.sizes, default=1)
        places, weights = (np.zeros((len(counts), width), dtype=kind) for kind in (np.int64, float))
        base = -log_rising(1.0, counts)
        small = counts <= _SMALL
        places[small, 0], weights[small, 0] = np.maximum(counts[small] - 1, 0), counts[small] > 0
        at = _SMALL
        for low, n in zip(self.starts, self.sizes):
            these = np.flatnonzero((counts > low) & (counts <= _RATIO * low))
            x = 2 * np.log(counts[these] / low) / np.log(_RATIO) - 1
            places[these[:, None], np.arange(n)] = at + np.arange(n)
            weights[these[:, None], np.arange(n)] = here = _interpolation(x, n)
            base[these] += log_gamma(counts[these]) - here @ log_gamma(self.counts[at : at + n])
            at += n
        return places, weights, base


class BinnedRows(NamedTuple):
    """Rows of counts by bins.

    Parameters
    ----------
    codes : ndarray of int32, shape (n_rows, n_columns)
        The bin of each cell, those of all columns numbered through; the last for none.
    place : ndarray of shape (n_rows, n_columns)
        Where in its bin a cell is, from -1 to 1.
    base : ndarray of shape (n_rows,)
        What all components add to the log likelihoods of bins, nats.
    """

    codes: np.ndarray
    place: np.ndarray
    base: np.ndarray

    def of(self, rows: slice) -> BinnedRows:
        """Some of the rows."""
        return BinnedRows(*(each[rows] for each in self))


@dataclass(frozen=True, eq=False)
class Bins:
    """Bins of counts, in each of which log likelihoods are polynomials, of degree 5 in ln y.

    There are so few that their sums stay in the cache, where distinct counts are many. Whole counts to 64 have a bin
    each. Between knots a log likelihood but for ln Gamma(y) is the analytic function of `Knots`, and a bin is as
    narrow as six of Chebyshev's points take.

    Parameters
    ----------
    n_columns : int
    starts, widths : ndarray of shape (n_bins,)
        ln of the first count of each bin beyond the whole ones, and its width in ln y.
    of_nodes : csr_array of shape (n_columns * n_nodes, cells of a component)
        Statistics of the nodes of each column: of the whole counts from 0 on, then of six in each bin.
    base : ndarray of shape (n_columns * n_nodes,)
        What all components add there, nats.
    """

    n_columns: int
    starts: np.ndarray
    widths: np.ndarray
    of_nodes: csr_array
    base: np.ndarray

    @classmethod
    def between(cls, knots: Knots, n_columns: int, statistics_of: Callable) -> Self:
        """Bins up to the last of some knots, `statistics_of` counts of columns and of their knots and weights."""
        starts, widths = [np.zeros(0)], [np.zeros(0)]
        for low in knots.starts:
            n = int(np.ceil(np.log(_RATIO) / (2 * _half_width(low))))
            starts.append(np.log(low) + np.log(_RATIO) / n * np.arange(n))
            widths.append(np.full(n, np.log(_RATIO) / n))
        first, width = np.concatenate(starts), np.concatenate(widths)
        nodes = np.exp(first[:, None] + width[:, None] * (1 + _points(N_POWERS)) / 2).ravel()
        counts = np.concatenate([np.arange(_SMALL + 1.0), nodes])
        places, weights, base = knots.weights(counts)
        base[_SMALL + 1 :] += np.log(nodes)  # of each count itself, beside bins
        of_columns = [(places, weights, base)] * n_columns
        of_nodes = statistics_of((counts,) * n_columns, of_columns)[: n_columns * len(counts)]
        return cls(n_columns, first, width, of_nodes, np.tile(base, n_columns))

    @property
    def n_codes(self) -> int:
        """Bins of all columns, and the one of no count."""
        return self.n_columns * self._n_of_column + 1

    @property
    def _n_of_column(self) -> int:
        return _SMALL + 1 + len(self.starts)

    @cached_property
    def _coefficients(self) -> np.ndarray:
        """Of values at Chebyshev's points those of the polynomial through them, (n_powers, n_points)."""
        return np.linalg.inv(_points(N_POWERS)[:, None] ** np.arange(N_POWERS))

    def binned(self, values: np.ndarray) -> BinnedRows:
        """Rows of counts (n_rows, n_columns), NaN where a cell is missing; none beyond the last knot."""
        missing, is_large = np.isnan(values), values > _SMALL
        logs = np.log(np.where(is_large, values, 1.0))
        number = np.clip(np.searchsorted(self.starts, logs, side="right") - 1, 0, None)
        codes = np.where(is_large, _SMALL + 1 + number, np.where(missing, 0.0, values))
        codes = np.where(missing, self.n_codes - 1, codes + self._n_of_column * np.arange(self.n_columns))
        place = np.zeros(values.shape)
        at = number[is_large]
        place[is_large] = 2 * (logs[is_large] - self.starts[at]) / self.widths[at] - 1
        return BinnedRows(codes.astype(np.int32), place, -logs.sum(axis=1))

    def tables(self, cells: np.ndarray, width: int) -> np.ndarray:
        """Coefficients (n_codes, n_powers, width) of bins, of natural parameters (n_out, cells of a component)."""
        tables, n_out = np.zeros((self.n_codes, N_POWERS, width)), len(cells)
        at_nodes = (self.of_nodes @ cells.T + self.base[:, None]).reshape(self.n_columns, -1, n_out)
        of_columns = tables[:-1].reshape(self.n_columns, self._n_of_column, N_POWERS, width)
        of_columns[:, : _SMALL + 1, 0, :n_out] = at_nodes[:, : _SMALL + 1]
        of_bins = at_nodes[:, _SMALL + 1 :].reshape(self.n_columns, len(self.starts), N_POWERS, n_out)
        of_columns[:, _SMALL + 1 :, :, :n_out] = self._coefficients @ of_bins
        return tables

    def statistics(self, total: np.ndarray) -> np.ndarray:
        """Statistics (cells of a component, n_out) of sums of powers, (n_codes, n_powers, n_out)."""
        of_columns = total[:-1].reshape(self.n_columns, self._n_of_column, N_POWERS, -1)
        of_bins = self._coefficients.T @ of_columns[:, _SMALL + 1 :]
        of_bins = of_bins.reshape(self.n_columns, -1, total.shape[-1])
        at_nodes = np.concatenate([of_columns[:, : _SMALL + 1, 0], of_bins], axis=1)
        return self.of_nodes.T @ at_nodes.reshape(-1, total.shape[-1])


def _half_width(low: float) -> float:
    """Half of the width in ln y of bins from a count to 16 times that count."""
    return float(np.pi / np.sinh((np.log(low * _RATIO) - _LOG_ERROR_OF_BINS) / N_POWERS))


def _interpolation(x: np.ndarray, n: int) -> np.ndarray:
    """Weights (n_x, n) of values at Chebyshev's points in the polynomial through them, at x from -1 to 1."""
    k = np.arange(n)
    polynomials = np.cos(k * np.arccos(np.clip(x, -1.0, 1.0))[:, None]) * np.where(k > 0, 2.0, 1.0)
    return polynomials @ np.cos(k[:, None] * np.arccos(_points(n))) / n


def _points(n: int) -> np.ndarray:
    """Chebyshev's n points from -1 to 1."""
    return np.cos(np.pi * (np.arange(n) + 0.5) / n)[::-1]
