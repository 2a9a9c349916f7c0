"""The different optima of a fit as parts of the posterior: their bounds, and how many chains or draws each is given."""

from __future__ import annotations

from typing import Any

import numpy as np

from skvbem.vbem.posteriors import VB


def bounds_of(model: Any, data: Any, optima: np.ndarray) -> np.ndarray:
    """The lower bound at each optimum, (n_optima,), nats.

    Parameters
    ----------
    model : LatentModel
    data : object
    optima : ndarray of shape (n_cells, n_optima)
        Expected statistics of fits by VB.
    """
    natural, penalty = VB.of(model.prior, optima)
    bounds = model.expect(natural, data).log_normalizer + penalty
    return bounds + model.prior.log_normalizer_of_hyperparameters(natural)


def split_by_weight(weights: np.ndarray, n: int) -> np.ndarray:
    """The optimum that each of n chains, or draws, belongs to, (n,): as many as its share, rounded."""
    return np.searchsorted(np.cumsum(weights), (np.arange(n) + 0.5) / n * weights.sum(), side="right")
