"""Proposals for measurements with ties: columns of whole numbers, marks or shares among others, such as sex or years.

Where many rows have one value of a column, a component of these alone has no width there but that of its prior, and is
hundreds of nats better. Neighborhoods in all columns together, by which other proposals divide components, do not show
such rows: they lie as far apart in the other columns as any.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skvbem.models.labels.distinct_rows import DistinctRows, draws, sums_by_group
from skvbem.optima.tuning import TUNING


def matter(prior: Any, rows: DistinctRows) -> bool:
    """True if columns have ties, and a component of tied rows would be a spike but for its prior."""
    return can_be_spikes(prior) and bool(rows.ties.any())  # ties take longer to count


def can_be_spikes(prior: Any) -> bool:
    """True if components of an emission with this prior could be spikes by maximum likelihood."""
    return prior.are_spikes(np.zeros((len(prior.coordinates), 1))) is not None


def tied_halves(rows: DistinctRows, sets: np.ndarray, seed: np.uint64, rng: np.random.Generator) -> np.ndarray:
    """Shares (2, n_sets, n_rows) of the rows of each set with the value that a random one has in a column, and others.

    Parameters
    ----------
    rows : DistinctRows
    sets : ndarray of shape (n_sets, n_rows)
        Expected rows.
    seed : uint64
        Of the random row of each set, the same for any order of rows.
    rng : numpy.random.Generator
        Of the column, one with ties at that row if there is one.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        near = np.argmin(draws(rows.hashes, seed) / sets, axis=1)
    first = np.empty(sets.shape, dtype=bool)
    for k, row in enumerate(near):
        with_ties = np.flatnonzero(rows.ties[:, row])
        columns = with_ties if len(with_ties) else np.arange(len(rows.ties))
        column = rows.coordinates[:, columns[int(rng.integers(len(columns)))]]
        first[k] = column == column[row]
    return ((1 - TUNING.elsewhere) * np.stack([first, ~first]) + TUNING.elsewhere / 2) * sets


def tied_anew(rows: DistinctRows, n_components: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """Expected rows (n, n_components, n_rows): the largest component gives up the rows with one value of a column.

    The value is the most frequent one there, or a random one. The column is the next of a random order of those with
    ties, now and then, and else the same again.
    """
    columns, ties = rows.coordinates.T, rows.ties
    order = np.flatnonzero(ties.any(axis=1))
    shared = np.empty((n, n_components, len(rows)))
    for each in shared:
        order, labels, at = rng.permutation(order), np.zeros(len(rows), dtype=int), 0
        for k in range(1, n_components):
            at = (at + int(rng.random() < TUNING.next_column)) % len(order)
            largest = labels == sums_by_group(labels, rows.weight).argmax()
            for column in np.roll(order, -at):
                tied = largest & (ties[column] > 0)
                values, which = np.unique(columns[column][tied], return_inverse=True)
                counts = sums_by_group(which, rows.weight[tied])
                n_parts = len(values) + int((tied != largest).any())
                if len(values) and n_parts > 1:
                    drawn = int(rng.choice(len(values), p=counts / counts.sum()))
                    value = values[counts.argmax() if rng.random() < TUNING.most_frequent else drawn]
                    labels[tied & (columns[column] == value)] = k
                    break
        each[:] = (labels == np.arange(n_components)[:, None]) * rows.weight
    return shared
