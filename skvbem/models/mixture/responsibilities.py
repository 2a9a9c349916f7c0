"""Responsibilities of the components of a mixture, block of rows after block, and their entropy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.special import xlogy

from skvbem._kernels import _mixture
from skvbem.models.mixture.model import Mixture, MixtureBlocks, MixtureData


def responsibilities(model: Mixture, natural: np.ndarray, data: MixtureData) -> Iterator[tuple[slice, np.ndarray]]:
    """q(x) of blocks of rows at natural parameters (n_cells,), (n_rows, n_components)."""
    log_weights = np.ascontiguousarray(model.weights.log_weights(model.prior.split(natural)[0][:, None]).T)
    step, size = model.step(natural, data), model.emission.block_rows(model.n_components)
    for at in range(0, len(data), size):
        rows = slice(at, min(at + size, len(data)))
        q = np.array(step.log_likelihood(data.table[rows]).T[None], order="C")
        _mixture.responsibilities(log_weights, np.ones(rows.stop - at), q, np.zeros(1))
        yield rows, q[0].T


def latent_entropy(model: Mixture, natural: np.ndarray, data: MixtureData | MixtureBlocks) -> float:
    """Entropy of the components under q(x) at natural parameters (n_cells,), nats."""
    total = 0.0
    for chunk in data.chunks():
        for rows, q in responsibilities(model, natural, chunk):
            total -= float(chunk.weight[rows] @ xlogy(q, q).sum(axis=1))
    return total
