"""Random members, points and statistics of every family in the registry: what the laws of families are tried on."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from skvbem.families import Dirichlet
from skvbem.families.base import ConjugateFamily


class Case(NamedTuple):
    """A prior, statistics of complete data under it, and the prior's additive coordinates (of the statistics' shape).

    `at` makes a member of other coordinates. The last axis runs over members side by side.
    """

    prior: ConjugateFamily
    statistics: np.ndarray
    coordinates: np.ndarray
    at: Callable


def dirichlet(rng, n_members=3):
    """Rows of one to five cells, the first of two at least; concentrations from 1e-3 to 1e5; counts, many of them 0."""
    rows = [rng.integers(2, 6), *rng.integers(1, 6, size=rng.integers(0, 4))]
    starts = np.concatenate([[0], np.cumsum(rows)]).astype(np.int64)
    shape = (starts[-1], n_members)
    concentration = 10.0 ** rng.uniform(-3, 5, size=shape)
    counts = rng.exponential(10.0 ** rng.uniform(-1, 3), size=shape) * (rng.random(shape) < 0.7)
    return Case(Dirichlet(concentration, starts), counts, concentration, lambda c: Dirichlet(c, starts))


CASES = {"dirichlet": dirichlet}
