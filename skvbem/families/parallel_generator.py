"""Generators of several lanes as one, for draws from many members of a family at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


class ParallelGenerator:
    """Random numbers of several lanes, which are the last axis; each lane's are those of its own generator.

    What a lane draws is what a generator that is given its member alone draws, whatever lanes there are beside it.

    Parameters
    ----------
    rngs : sequence of numpy.random.Generator
        One for each lane.

    Examples
    --------
    >>> import numpy as np
    >>> from skvbem.families import Dirichlet
    >>> from skvbem.families.parallel_generator import ParallelGenerator
    >>> coins = Dirichlet(np.array([[1.0, 5.0], [1.0, 5.0]]), np.array([0, 2]))
    >>> both = coins.sample(ParallelGenerator([np.random.default_rng(seed) for seed in (0, 1)]))
    >>> second = Dirichlet(np.array([5.0, 5.0]), np.array([0, 2])).sample(np.random.default_rng(1))
    >>> bool((both[:, 1] == second).all())
    True
    """

    def __init__(self, rngs: Sequence[np.random.Generator]):
        self.rngs = rngs

    def random(self, shape: tuple[int, ...]) -> np.ndarray:
        """Uniform numbers, (..., n_lanes)."""
        numbers = self._room(shape)
        for rng, of_lane in zip(self.rngs, numbers):
            rng.random(out=of_lane)
        return np.moveaxis(numbers, 0, -1)

    def standard_normal(self, shape: tuple[int, ...]) -> np.ndarray:
        """Standard normal numbers, (..., n_lanes)."""
        numbers = self._room(shape)
        for rng, of_lane in zip(self.rngs, numbers):
            rng.standard_normal(out=of_lane)
        return np.moveaxis(numbers, 0, -1)

    def standard_gamma(self, shape: np.ndarray) -> np.ndarray:
        """Gamma variables of unit rate and of these shapes, (..., n_lanes)."""
        numbers = self._room(shape.shape)
        for rng, of_lane, out in zip(self.rngs, np.ascontiguousarray(np.moveaxis(shape, -1, 0)), numbers):
            rng.standard_gamma(of_lane, out=out)
        return np.moveaxis(numbers, 0, -1)

    def _room(self, shape: tuple[int, ...]) -> np.ndarray:
        if shape[-1] != len(self.rngs):
            raise ValueError(f"There are {len(self.rngs)} generators for {shape[-1]} lanes.")
        return np.empty((shape[-1], *shape[:-1]))
