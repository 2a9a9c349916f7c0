"""Observations as models take them: codes, which cells are observed, and how much each row counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Rows:
    """A table of categorical observations.

    Parameters
    ----------
    names : tuple
        Names of the columns.
    codes : ndarray of int, shape (n_rows, n_columns)
        Category of each cell, 0, 1, ...; negative where the cell is missing.
    weight : ndarray of shape (n_rows,) or None
        How often each row counts, > 0; once each if None. Weights define the likelihood prod p(row)^weight.
    """

    names: tuple
    codes: np.ndarray
    weight: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def total_weight(self) -> float:
        """Sum of the weights: the n of every score."""
        return float(len(self) if self.weight is None else self.weight.sum())

    def release(self) -> None:
        """Give up the codes: whoever still holds a column keeps it, these rows are empty from now on."""
        object.__setattr__(self, "codes", np.empty((0, len(self.names)), dtype=self.codes.dtype))

    def column(self, name) -> np.ndarray:
        """The codes of one column."""
        return self.codes[:, self.names.index(name)]
