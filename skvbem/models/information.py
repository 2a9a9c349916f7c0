"""Covariances of complete-data scores: what is lost of the information because variables are hidden."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class ScoreCovariance:
    """Covariance of some of the scores of complete data, and no covariance with any others.

    Parameters
    ----------
    free : ndarray of int, shape (d,)
        The unconstrained coordinates by which these scores are derivatives.
    covariance : ndarray of shape (d, d)
        Summed over rows of data.
    """

    free: np.ndarray
    covariance: np.ndarray


def apart(free: list[np.ndarray], d: int) -> list[np.ndarray]:
    """Of the d unconstrained coordinates those of each component alone, and those of several."""
    n_components = np.zeros(d, dtype=int)
    for of in free:
        n_components[of] += 1
    shared = np.flatnonzero(n_components > 1)
    return [np.setdiff1d(of, shared) for of in free] + [shared]
