"""The outcome of an E step, the same of every model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Expectation:
    """What an E step returns: expected statistics (n_cells, n_lanes) and ln Z of q(x) (n_lanes,), nats."""

    statistics: np.ndarray
    log_normalizer: np.ndarray
