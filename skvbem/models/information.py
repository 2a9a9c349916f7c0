"""Unconstrained coordinates in blocks, between which covariances of complete-data scores are wanted."""

from __future__ import annotations

import numpy as np


def coordinate_blocks(free: list[np.ndarray], d: int) -> list[np.ndarray]:
    """The d unconstrained coordinates in blocks: those of each component alone, and those of several.

    Parameters
    ----------
    free : list of ndarray of int
        The coordinates that each component has a part in.
    d : int
    """
    n_components = np.zeros(d, dtype=int)
    for coordinates in free:
        n_components[coordinates] += 1
    shared = np.flatnonzero(n_components > 1)
    return [np.setdiff1d(coordinates, shared) for coordinates in free] + [shared]
