"""Starts: states along principal components, near them, and at random."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skvbem.models.linear_dynamical_system.data import LDSData
from skvbem.models.linear_dynamical_system.model import LinearDynamicalSystem

# Variance of states along principal components, and the standard deviation of starts near them.
_VARIANCE, _AWAY = 0.1, 0.5


@dataclass(frozen=True, eq=False)
class LDSStarts:
    """Starts of a linear dynamical system, the same for any order of the sequences.

    Parameters
    ----------
    kind : {"pca", "random"}
        Of "pca" the first start follows the principal components, every second one is random, the others are near the
        components.
    n_starts : int
    seed : tuple of int
    """

    kind: str
    n_starts: int
    seed: tuple[int, ...]

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kind of each."""
        by_turns = ("pca", "random") if self.kind == "pca" else ("random",)
        return tuple(by_turns[k % len(by_turns)] for k in range(self.n_starts))

    def __call__(self, ascent: Any) -> np.ndarray:
        """Statistics, (n_cells, n_starts)."""
        model, data = ascent.model, ascent.data
        rng, starts = np.random.default_rng(self.seed), []
        rows = rows_in_order(data)
        for number, kind in enumerate(self.kinds):
            noise = np.empty((len(data), model.n_states))
            noise[rows] = rng.standard_normal(noise.shape)
            if kind == "random":
                starts.append(model.statistics_of_start(data, noise, 1.0))
                continue
            away = _AWAY * noise if number else 0.0
            starts.append(model.statistics_of_start(data, principal_states(model, data, noise) + away, _VARIANCE))
        return np.stack(starts, axis=1)


def rows_in_order(data: LDSData) -> np.ndarray:
    """Rows of sequences in an order that their values decide."""
    parts = [np.arange(data.starts[n], data.ends[n]) for n in data.in_order]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


def principal_states(model: LinearDynamicalSystem, data: LDSData, noise: np.ndarray) -> np.ndarray:
    """Scores (n_rows, k) of principal components of unit variance, of delayed columns too where these are too few.

    Directions in which nothing varies are filled with noise.
    """
    k, p, weight = model.n_states, model.n_columns, data.row_weight
    mean = data.measured.T @ weight / np.maximum(data.counts, 1e-300)
    observed = data.patterns[data.pattern]
    centered = np.where(observed, data.measured - mean, 0.0)
    delayed, first = [centered], np.repeat(data.starts[:-1], np.diff(data.starts))
    for delay in range(1, -(-k // p)):
        source = np.arange(len(data)) - delay
        delayed.append(np.where((source >= first)[:, None], centered[np.maximum(source, 0)], 0.0))
    columns = np.concatenate(delayed, axis=1)
    variance, axes = np.linalg.eigh((columns * weight[:, None]).T @ columns / max(weight.sum(), 1e-300))
    order = np.argsort(-variance)[:k]
    usable = variance[order] > 1e-8 * max(variance.max(initial=0.0), 1e-300)
    scores = columns @ axes[:, order] / np.sqrt(np.where(usable, variance[order], 1.0))
    return np.where(usable, scores, noise)
