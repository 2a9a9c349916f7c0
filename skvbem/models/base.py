"""The outcome of an E step, the same of every model."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, floor, log

import numpy as np


@dataclass(frozen=True, eq=False)
class Expectation:
    """What an E step returns: expected statistics (n_cells, n_lanes) and ln Z of q(x) (n_lanes,), nats."""

    statistics: np.ndarray
    log_normalizer: np.ndarray


def figure(log_n: float) -> str:
    """A number of any size, from its logarithm."""
    if log_n < log(1e15):
        return f"{exp(log_n):.4g}"
    power = floor(log_n / log(10.0))
    return f"{exp(log_n - power * log(10.0)):.2f}e+{power}"
