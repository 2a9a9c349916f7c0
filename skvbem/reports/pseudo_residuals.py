r"""Pseudo-residuals: how probable it was that a cell held no more than it does, on a uniform and on a normal scale.

With the distribution F of a cell under the fit, :math:`u = F(y)` is uniform where the fit is right, and
:math:`z = \Phi^{-1}(u)` is normal [ZM09]. A count has a step of F at y, and u is drawn between its ends,
:math:`F(y - 1)` and :math:`F(y)` [DS96].
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy.special import ndtri

from skvbem._arguments import check_choice, check_count
from skvbem._tabular import data_frame, html_table, number, text_table

# Doubles of cumulative probabilities of all components that are in memory at once. By hand.
_AT_ONCE = 2**22
# Ends of the uniform scale: -37 and 8.2 on the normal one.
_SMALLEST_UNIFORM, _LARGEST_UNIFORM = 1e-300, 1 - 2**-53


@dataclass(frozen=True, eq=False)
class PseudoResiduals:
    """Pseudo-residuals of the cells of a table or of sequences; normal with mean 0 and deviation 1 if the fit is right.

    It prints as a table, one line for each column, and `to_frame` has all cells.

    Parameters
    ----------
    names : tuple of str
        Columns that have any; columns of categories have none.
    below, up_to : ndarray of shape (n_rows, n_columns)
        Probabilities of less than a cell holds, and of at most as much. Both are equal under a density; missing cells
        have NaN. Rows are those of X; sequences of a list follow each other.
    uniform : ndarray of shape (n_rows, n_columns)
        On the uniform scale, between the two.
    lengths : ndarray of int, shape (n_sequences,), or None
        Steps of sequences; None of rows that have no order.
    order : ndarray of int, shape (n_rows,), or None
        Rows in the order of time, one sequence after the other, -1 of a step that is no row; None where X has this
        order.
    """

    names: tuple[str, ...]
    below: np.ndarray
    up_to: np.ndarray
    uniform: np.ndarray
    lengths: np.ndarray | None = None
    order: np.ndarray | None = None

    def of_sequences(self, lengths: np.ndarray, order: np.ndarray | None) -> Self:
        """Residuals of steps, which stand in the order of time here, as rows of X."""
        if order is None:
            return replace(self, lengths=lengths)
        place = np.argsort(order)[np.count_nonzero(order < 0) :]
        below, up_to, uniform = (each[place] for each in (self.below, self.up_to, self.uniform))
        return replace(self, below=below, up_to=up_to, uniform=uniform, lengths=lengths, order=order)

    @property
    def normal(self) -> np.ndarray:
        """On the normal scale, (n_rows, n_columns), from -37 to 8.2; NaN of missing cells."""
        return ndtri(np.clip(self.uniform, _SMALLEST_UNIFORM, _LARGEST_UNIFORM))

    @property
    def largest_gaps(self) -> np.ndarray:
        """Largest differences of the shares of residuals up to a number and that number, (n_columns,) (Kolmogorov)."""
        return np.array([_largest_gap(column[~np.isnan(column)]) for column in self.uniform.T])

    def autocorrelations(self, n_lags: int = 20) -> np.ndarray:
        """Autocorrelations of normal residuals within sequences, (n_lags + 1, n_columns), of the pairs that are there.

        At each lag the sum of products of residuals, about the mean of their column, over the root of both sums of
        squares of the same pairs. So gaps leave it between -1 and 1. Lags without a pair have NaN.

        Raises
        ------
        ValueError
            If rows have no order, or the number of lags is below 1.
        """
        check_count("n_lags", "autocorrelations", n_lags)
        centered = self.in_time(self.normal - _over_known(np.nanmean, self.normal))
        correlations = []
        for later, earlier in self._pairs(centered, n_lags):
            squares = (later**2).sum(axis=0) * (earlier**2).sum(axis=0)
            with np.errstate(invalid="ignore", divide="ignore"):
                correlations.append((later * earlier).sum(axis=0) / np.sqrt(squares))
        return np.clip(correlations, -1.0, 1.0)  # but for rounding

    def n_pairs(self, n_lags: int = 20) -> np.ndarray:
        """How many pairs of residuals within sequences each autocorrelation is of, (n_lags + 1, n_columns).

        Raises
        ------
        ValueError
            If rows have no order, or the number of lags is below 1.
        """
        check_count("n_lags", "n_pairs", n_lags)
        known = np.where(np.isnan(self.in_time(self.normal)), np.nan, 1.0)
        return np.array([(later * earlier).sum(axis=0) for later, earlier in self._pairs(known, n_lags)]).astype(int)

    def in_time(self, values: np.ndarray) -> np.ndarray:
        """Values of rows, (n_rows, n_columns), of steps in the order of time; NaN of steps that are no rows."""
        if self.lengths is None:
            raise ValueError("Rows of a mixture have no order: only residuals of sequences have autocorrelations.")
        if self.order is None:
            return values
        return np.where((self.order < 0)[:, None], np.nan, values[self.order])

    def _pairs(self, in_time: np.ndarray, n_lags: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Of each lag the later and the earlier numbers of pairs within sequences, 0 where either is missing."""
        assert self.lengths is not None
        step = np.arange(len(in_time)) - np.repeat(np.cumsum(self.lengths) - self.lengths, self.lengths)
        for lag in range(n_lags + 1):
            at = np.flatnonzero(step >= lag)
            later, earlier = in_time[at], in_time[at - lag]
            lacking = np.isnan(later) | np.isnan(earlier)
            yield np.where(lacking, 0.0, later), np.where(lacking, 0.0, earlier)

    def to_frame(self):
        """All cells as a pandas DataFrame.

        Returns
        -------
        pandas.DataFrame
            Columns row, column, below, up_to, uniform, normal.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        columns = ["row", "column", "below", "up_to", "uniform", "normal"]
        return data_frame(self._records(), type(self).__name__, columns=columns)

    def _records(self) -> Iterator[tuple]:
        numbers = [self.below, self.up_to, self.uniform, self.normal]
        for row, column in np.ndindex(self.uniform.shape):
            yield row, self.names[column], *(float(each[row, column]) for each in numbers)

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        z = self.normal
        header = ["column", "cells", "mean", "s.d.", "skewness", "largest gap"]
        columns = [_over_known(np.nanmean, z), _over_known(np.nanstd, z), _skewness(z), self.largest_gaps]
        if self.lengths is not None:
            header, columns = [*header, "lag 1"], [*columns, self.autocorrelations(1)[1]]
        known = (~np.isnan(z)).sum(axis=0)
        rows = [
            [name, str(known[j]), *(number(float(each[j])) for each in columns)] for j, name in enumerate(self.names)
        ]
        return header, rows

    def __repr__(self):
        return "\n".join(text_table(*self._cells()))

    def _repr_html_(self):
        return html_table(*self._cells())


def pseudo_residuals(
    fitted: Any, values: Sequence[np.ndarray], weights: np.ndarray, discrete: str, rng: np.random.Generator
) -> PseudoResiduals:
    """Pseudo-residuals of rows whose components have some probabilities before they are seen.

    Parameters
    ----------
    fitted : FittedEmissions
    values : list of ndarray
        Of each group, as read.
    weights : ndarray of shape (n_rows, n_components)
    discrete : {"random", "middle"}
    rng : numpy.random.Generator

    Raises
    ------
    ValueError
        If `discrete` is none of these, or no column has any.
    """
    check_choice("discrete", "pseudo_residuals", discrete, ("random", "middle"))
    names, ends = [], []
    for group, of_group, parameters in zip(fitted.groups.groups, values, fitted.parameters()):
        of_columns = _ends(group.specification, of_group, parameters, weights)
        if of_columns is None:
            continue
        for j, name in enumerate(group.names):
            if not np.isnan(of_columns[0][:, j]).all():
                names.append(name)
                ends.append([each[:, j] for each in of_columns])
    if not names:
        raise ValueError(
            "Pseudo-residuals are those of observed cells of numbers: categories have no order. X has none in columns "
            f"that the fit has a distribution of, {', '.join(map(repr, fitted.groups.names))}. Give rows with observed "
            "numbers."
        )
    below, up_to = np.clip(np.stack(ends, axis=-1), 0.0, 1.0)
    within = rng.random(below.shape) if discrete == "random" else 0.5
    return PseudoResiduals(tuple(names), below, up_to, below + within * (up_to - below))


def _ends(
    specification: Any, values: np.ndarray, parameters: Any, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """Probabilities of less than cells hold, and of at most as much, averaged over components."""
    parts, size = [], max(_AT_ONCE // max(weights.shape[1] * values.shape[1], 1), 1)
    for at in range(0, max(len(values), 1), size):
        of_components = specification.cumulative_of_cells(values[at : at + size], parameters)
        if of_components is None:
            return None
        parts.append([np.einsum("ik,kij->ij", weights[at : at + size], each) for each in of_components])
    below, up_to = (np.concatenate(each) for each in zip(*parts))
    return below, up_to


def _over_known(function: Any, z: np.ndarray) -> np.ndarray:
    """A moment of the known cells of each column."""
    return np.array([function(column) for column in z.T])


def _skewness(z: np.ndarray) -> np.ndarray:
    centered = z - _over_known(np.nanmean, z)
    with np.errstate(invalid="ignore", divide="ignore"):
        return _over_known(np.nanmean, centered**3) / _over_known(np.nanmean, centered**2) ** 1.5


def _largest_gap(uniform: np.ndarray) -> float:
    """Kolmogorov's distance of a sample and the uniform distribution."""
    ordered, n = np.sort(uniform), len(uniform)
    steps = np.arange(n + 1) / n
    return float(max((steps[1:] - ordered).max(), (ordered - steps[:-1]).max()))
