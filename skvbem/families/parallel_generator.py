"""Random streams of several lanes as one generator, for draws from many members of a family at once."""

from __future__ import annotations

from math import prod

import numpy as np

from skvbem._kernels import _random


class ParallelGenerator:
    """Random numbers of several lanes, which are the last axis; each lane's are those of its own stream.

    What a lane draws is what a generator of its stream alone draws, whatever lanes there are beside it.

    Parameters
    ----------
    streams : ndarray of uint64, shape (4, n_lanes)
        Words of a generator for each lane, in C order. They move on in place as numbers are drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from skvbem.families import Dirichlet
    >>> from skvbem.families.parallel_generator import ParallelGenerator
    >>> streams = np.random.default_rng(0).integers(0, 2**64, size=(4, 2), dtype=np.uint64)
    >>> coins, of_second = np.array([[1.0, 5.0], [1.0, 5.0]]), streams[:, 1:].copy()
    >>> both = Dirichlet(coins, np.array([0, 2])).sample(ParallelGenerator(streams))
    >>> second = Dirichlet(coins[:, 1:], np.array([0, 2])).sample(ParallelGenerator(of_second))
    >>> bool((both[:, 1:] == second).all()), bool((streams[:, 1:] == of_second).all())
    (True, True)
    """

    def __init__(self, streams: np.ndarray):
        self.streams = streams

    def random(self, shape: tuple[int, ...]) -> np.ndarray:
        """Uniform numbers, (..., n_lanes)."""
        numbers = self._room(shape)
        _random.uniforms(self.streams, numbers)
        return numbers.reshape(shape)

    def random_by_lane(self, n: int) -> np.ndarray:
        """So many uniform numbers of each lane, (n_lanes, n): those that `random` would draw one after the other."""
        numbers = np.empty((self.streams.shape[1], n))
        _random.uniforms_by_lane(self.streams, numbers)
        return numbers

    def standard_normal(self, shape: tuple[int, ...]) -> np.ndarray:
        """Standard normal numbers, (..., n_lanes)."""
        numbers = self._room(shape)
        _random.normals(self.streams, numbers)
        return numbers.reshape(shape)

    def standard_gamma(self, shape: np.ndarray) -> np.ndarray:
        """Gamma variables of unit rate and of these shapes, (..., n_lanes)."""
        numbers = self._room(shape.shape)
        _random.gammas(np.ascontiguousarray(shape, dtype=float).reshape(numbers.shape), self.streams, numbers)
        return numbers.reshape(shape.shape)

    def streams_of(self, shape: tuple[int, ...]) -> np.ndarray:
        """The streams, for numbers of a shape (..., n_lanes) that a kernel draws."""
        n_lanes = self.streams.shape[1]
        if shape[-1] != n_lanes:
            raise ValueError(f"There are {n_lanes} streams for {shape[-1]} lanes.")
        return self.streams

    def _room(self, shape: tuple[int, ...]) -> np.ndarray:
        return np.empty((prod(shape[:-1]), self.streams_of(shape).shape[1]))
