"""Points to go on from that are drawn: parameters after a small part of what a fit has counted.

After few rows q(theta) is wide, so that draws lie on many sides of an optimum, and on the sides where the posterior is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skvbem.optima.tuning import TUNING


def drawn(ascent: Any, statistics: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Expected statistics (n_cells, n) under parameters drawn after small parts of the statistics (n_cells,) of a fit.

    Fewer than n where rounding spoils a draw, as a precision that is singular.

    Parameters
    ----------
    ascent : Ascent
        Which knows its `model`, and can `expect` statistics under natural parameters.
    statistics : ndarray of shape (n_cells,)
    n : int
    rng : numpy.random.Generator
    """
    prior = ascent.model.prior
    points = (prior + statistics[:, None] * np.resize(TUNING.fractions_of_draws, n)).sample(rng)
    try:
        with np.errstate(all="ignore"):
            expected = ascent.expect(np.ascontiguousarray(prior.natural(points)))
    except (np.linalg.LinAlgError, FloatingPointError):
        return np.empty((len(statistics), 0))
    return expected[:, np.isfinite(expected).all(axis=0)]
