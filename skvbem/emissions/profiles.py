"""Profiles of columns in each class: probabilities of labels, or means and deviations of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class Probabilities:
    """A column of categories in each class.

    Parameters
    ----------
    name : str
        The column.
    labels : sequence of str
        What the probabilities are of.
    values : ndarray of shape (n_classes, n_labels)
    intervals : pair of ndarray of shape (n_classes, n_labels), or None
    """

    name: str
    labels: Sequence[str]
    values: np.ndarray
    intervals: tuple[np.ndarray, np.ndarray] | None

    def rows(self, n_parameters: int) -> list[tuple]:
        """Rows of a table of classes: their names, values and intervals, None without any; one for each label."""
        rows: list[tuple] = []
        for k, level in enumerate(self.labels):
            label = level if k == 0 else f"{self.name} = {level}"
            pair = None if self.intervals is None else tuple(end[:, k] for end in self.intervals)
            rows.append((label, self.values[:, k], pair))
        return rows


@dataclass(frozen=True, eq=False)
class Numbers:
    """A column of numbers in each class.

    Parameters
    ----------
    name : str
        The column.
    values, deviations : ndarray of shape (n_classes,)
        Mean and standard deviation of rows.
    intervals : pair of ndarray of shape (n_classes,), or None
        Intervals of the means.
    of_deviations : pair of ndarray of shape (n_classes,), or None
        Intervals of the standard deviations, where these have parameters of their own.
    """

    name: str
    values: np.ndarray
    deviations: np.ndarray
    intervals: tuple[np.ndarray, np.ndarray] | None
    of_deviations: tuple[np.ndarray, np.ndarray] | None = None

    def rows(self, n_parameters: int) -> list[tuple]:
        """As of `Probabilities`: means, and deviations, unless these are functions of the only parameter."""
        means = (f"{self.name} mean", self.values, self.intervals)
        deviations = (f"{self.name} s.d.", self.deviations, self.of_deviations)
        return [means, deviations] if n_parameters > 1 else [means]

    def overall(self, weights: np.ndarray) -> tuple[float, float]:
        """Mean and standard deviation of rows of all classes."""
        fractions = weights / weights.sum()
        mean = float(fractions @ self.values)
        return mean, float(np.sqrt(fractions @ (self.deviations**2 + (self.values - mean) ** 2)))


@dataclass(frozen=True, eq=False)
class Logarithms(Numbers):
    """A column of numbers whose logarithms are normally distributed in each class.

    Reports have medians of the numbers: under a density the mean of one is often infinite.

    Parameters
    ----------
    medians, spreads : tuple
        Medians, exp(log mean), and standard deviations of logarithms, (n_classes,), and pairs of ends of their
        intervals, or None.
    """

    medians: tuple = ()
    spreads: tuple = ()

    def rows(self, n_parameters: int) -> list[tuple]:
        """As of `Probabilities`: medians, and standard deviations of logarithms."""
        return [(f"{self.name} median", *self.medians), (f"{self.name} log s.d.", *self.spreads)]


def named(value: Any) -> str:
    """A level as a user would write it."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def of_levels(name: str, levels: Sequence, values: np.ndarray, intervals) -> Probabilities:
    """The probabilities of a column's levels; of two levels, that of the second says all."""
    values = np.asarray(values)[:, : len(levels)]
    if intervals is not None:
        intervals = tuple(np.asarray(ends)[:, : len(levels)] for ends in intervals)
    labels = [f"{name} = {named(levels[0])}", *map(named, levels[1:])]
    if len(levels) == 2:
        labels, values = [f"{name} = {named(levels[1])}"], values[:, 1:]
        intervals = None if intervals is None else tuple(ends[:, 1:] for ends in intervals)
    return Probabilities(name, labels, values, intervals)
