"""The entropy of hidden paths."""

from __future__ import annotations

import numpy as np

from skvbem.models.hmm.model import HMM
from skvbem.models.hmm.sampling import log_z
from skvbem.models.sequences.data import HMMData


def latent_entropy(model: HMM, natural: np.ndarray, data: HMMData) -> float:
    """Entropy of the paths under q(x) at natural parameters (n_cells,), nats: ln Z less what q(x) expects of ln."""
    log_first, log_pairs = (logs[0] for logs in model.log_chain(natural[:, None]))
    passes = model.forward_backward(natural[:, None], data)
    entropy = float(log_z(model, natural[:, None], data)[0])
    for smoothed, logs in model.smoothed_blocks(passes, data):
        entropy -= _expected(smoothed, logs)
    return entropy - _expected(passes.first_counts[0], log_first) - _expected(passes.counts[0], log_pairs)


def _expected(probability: np.ndarray, logs: np.ndarray) -> float:
    """The sum of logs times probabilities; what is impossible has none, but for a trace that passes leave."""
    return float((probability * np.where(np.isfinite(logs), logs, 0.0)).sum())
