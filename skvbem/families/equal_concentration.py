"""Dirichlet priors that are equal in every cell of a table, as users name them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np


@dataclass(frozen=True)
class EqualConcentration:
    """A concentration spread evenly over the cells of a table.

    Parameters
    ----------
    total : float
        Counts, > 0.
    over : {"cell", "row", "table"}
        What gets so much in all: each cell, each distribution (row), or the table, as in BDeu.

    Examples
    --------
    >>> from skvbem.families.equal_concentration import EqualConcentration
    >>> EqualConcentration(1.0, "table").table((2, 2))
    array([[0.25, 0.25],
           [0.25, 0.25]])
    """

    total: float
    over: str

    def table(self, shape: Sequence[int]) -> np.ndarray:
        """The concentrations of a table of this shape, one distribution along the last axis."""
        return np.full(shape, self.total / {"cell": 1, "row": shape[-1], "table": prod(shape)}[self.over])
