"""Labels of hidden states alike in all draws: those nearest to the labels of a fit [Stephens00]."""

from __future__ import annotations

import numpy as np

from skvbem.capabilities import Relabelings

# In place of the logarithm of a probability that is below all floats.
_LOWEST = -1e12


def aligned(relabelings: Relabelings | None, anchor: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Points with the labels that are nearest to those of a fit, (n_cells, n_points).

    Parameters
    ----------
    relabelings : Relabelings or None
        None where there are too many: then labels stay as they come.
    anchor : ndarray of shape (n_cells,)
        Expected statistics of the fit.
    points : ndarray of shape (n_cells, n_points)
        Natural parameters.
    """
    points = np.maximum(points, _LOWEST)
    if relabelings is None or relabelings.n == 1:
        return points
    return relabelings.nearest(anchor, points)
