"""Whole numbers from 0 on, which several families count with."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

#: Largest count: the log likelihood of a cell, a difference of numbers 27 times as large, then errs by some 1e-2 nats.
LARGEST_COUNT = 1e12


class CountCells:
    """Cells that are counts."""

    wanted: ClassVar[str] = "counts are whole numbers >= 0"
    holds_counts: ClassVar[bool] = True
    largest: ClassVar[float] = LARGEST_COUNT
    if_larger: ClassVar[str] = (
        f"of counts above {LARGEST_COUNT:g} the likelihood keeps no digits. Count in larger units"
    )

    def impossible(self, values: np.ndarray) -> np.ndarray:
        """Negative numbers and fractions."""
        return (values < 0) | (values != np.floor(values))
