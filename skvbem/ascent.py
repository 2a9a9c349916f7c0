"""Full steps of VBEM: what the driver and the search for optima ask of a model, its data and a form of q(theta)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np


class Ascent(ABC):
    """Full steps of VBEM on one objective.

    A model's ascent knows its model, data, form and number of threads, which starts and moves are made from.

    Attributes
    ----------
    signed : ndarray of bool, shape (n_cells,)
        Statistics that may be negative.
    magnitude : float
        Size of the terms whose sum is the objective, nats: the scale of its rounding.
    model, data, form : object, optional
    n_threads : int
    is_sample : bool
        The data are a sample of others, for starts to grow up on.
    suspicion : str or None
        A hint for the error message if the objective falls: the user's emission, if there is one.
    """

    signed: np.ndarray
    magnitude: Any
    model: Any = None
    data: Any = None
    form: Any = None
    n_threads: int = 1
    is_sample: bool = False
    suspicion: Any = None

    @abstractmethod
    def advance(self, statistics: np.ndarray, n_steps: int) -> np.ndarray:
        """Take full steps in place; the objective (n_steps, n_lanes) at the statistics that each step started from.

        -inf where a leap went to statistics of no density.
        """

    def rounding(self, statistics: np.ndarray) -> np.ndarray:
        """A bound of what rounding adds to the objective at statistics (n_cells, n_lanes), nats, (n_lanes,).

        It is asked only where the objective seems to fall, of terms that cancel and are larger than `magnitude`.
        """
        return np.zeros(statistics.shape[1])

    def failure(self) -> Exception:
        """The error that says why the objective of a plain step is not a number."""
        return FloatingPointError("The objective is not a number.")
