"""Counts that are kept and say nothing: statistics of labels whose probabilities have parameters elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skvbem.families.base import FlatFamily
from skvbem.families.parallel_generator import ParallelGenerator


@dataclass(frozen=True, eq=False)
class Inert(FlatFamily):
    """A family without parameters: its natural parameters are 0, whatever the statistics.

    Examples
    --------
    >>> import numpy as np
    >>> from skvbem.families.inert import Inert
    >>> counted = Inert(np.zeros(2)) + np.array([3.0, 4.0])
    >>> counted.coordinates.tolist(), float(counted.log_normalizer())
    ([3.0, 4.0], 0.0)
    """

    @property
    def n_free_parameters(self) -> int:
        """No parameter."""
        return 0

    @property
    def is_valid(self) -> np.ndarray:
        """True, of the shape of the batch."""
        return np.ones(self.coordinates.shape[1:], dtype=bool)

    @property
    def signed(self) -> np.ndarray:
        """No count is negative."""
        return np.zeros(len(self.coordinates), dtype=bool)

    def log_normalizer(self) -> np.ndarray:
        """0, of the shape of the batch."""
        return np.zeros(self.coordinates.shape[1:])

    def log_normalizer_increment(self, statistics: np.ndarray) -> np.ndarray:
        """0, of the shape of the batch."""
        return np.zeros(np.shape(statistics)[1:])

    def expected_natural(self) -> np.ndarray:
        """Zeros, of the shape of the coordinates."""
        return np.zeros(self.coordinates.shape)

    def natural(self, point: np.ndarray) -> np.ndarray:
        """Zeros, of the shape of the point."""
        return np.zeros(np.shape(point))

    def mode(self, basis: str = "natural") -> np.ndarray:
        """Zeros: the one point there is."""
        return np.zeros(self.coordinates.shape)

    def most_likely(self, statistics: np.ndarray) -> np.ndarray:
        """Zeros, of the shape of the statistics."""
        return np.zeros(np.shape(statistics))

    def sample(self, rng: np.random.Generator | ParallelGenerator) -> np.ndarray:
        """Zeros: the one point there is."""
        return np.zeros(self.coordinates.shape)

    def to_unconstrained(self, point: np.ndarray) -> np.ndarray:
        """No coordinate, (0, ...)."""
        return np.zeros((0, *point.shape[1:]))

    def from_unconstrained(self, free: np.ndarray) -> np.ndarray:
        """Zeros: the one point there is."""
        return np.zeros((len(self.coordinates), *free.shape[1:]))

    def from_natural(self, natural: np.ndarray) -> np.ndarray:
        """Zeros: the one point there is."""
        return np.zeros(natural.shape)

    def jacobian(self, point: np.ndarray) -> np.ndarray:
        """No derivative, (n_cells, 0)."""
        return np.zeros((len(self.coordinates), 0))

    def information(self, point: np.ndarray, coordinates: np.ndarray, free: np.ndarray | None = None) -> np.ndarray:
        """No information, (0, 0)."""
        return np.zeros((0, 0))

    @property
    def probability_shift(self) -> np.ndarray:
        """No shift."""
        return np.zeros(len(self.coordinates))

    def _log_natural_measure(self, point: np.ndarray) -> np.ndarray:
        return np.zeros(point.shape[1:])
