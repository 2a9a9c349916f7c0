"""How unlike rows find the components of a mixture, or the states of a hidden Markov model."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

# Stands for the log likelihood of a row that a component cannot make, nats.
_LOWEST = -1e30


def symmetric_divergences(n: int, blocks: Iterable[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    r"""How unlike rows find n components, (n, n), nats a row, 0 on the diagonal; NaN for components without any.

    :math:`\langle\ln p_a - \ln p_b\rangle_a + \langle\ln p_b - \ln p_a\rangle_b`, averages over the rows as far as they
    belong to a, and to b.

    Parameters
    ----------
    n : int
    blocks : iterable of pairs of ndarray of shape (n, n_rows)
        Responsibilities of components for blocks of rows, and log likelihoods of these, nats.
    """
    if n == 1:  # no pass over the rows
        return np.zeros((1, 1))
    total, counts = np.zeros((n, n)), np.zeros(n)
    for responsibilities, logs in blocks:
        counts += responsibilities.sum(axis=-1)
        total += responsibilities @ np.where(np.isfinite(logs), logs, _LOWEST).T
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = total / counts[:, None]
    diagonal = np.diagonal(mean)
    return diagonal[:, None] - mean + diagonal - mean.T
