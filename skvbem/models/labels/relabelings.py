"""Relabelings of the components of a mixture or the states of a chain: orders that the prior does not tell apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from skvbem.capabilities import Relabelings
from skvbem.errors import TooLargeError
from skvbem.models.labels.model import LabelModel
from skvbem.models.relabelings import listed


@dataclass(frozen=True, eq=False)
class LabelRelabelings:
    """The relabelings of a model with one label per row; see `skvbem.capabilities.Relabelable`.

    What is hidden is the label alone, so that it makes no difference what `hidden` names.

    Parameters
    ----------
    model : LabelModel
    find : callable of (LabelModel, int) to Relabelings
        All of them; one by one only where there are no more than a limit.
    """

    model: LabelModel
    find: Callable[..., Relabelings]

    def relabelings(self, hidden: Sequence, limit: int = 50_000) -> Relabelings:
        """All orders of the labels that leave the prior as it is."""
        return self.find(self.model, limit)

    def log_n_relabelings(self, hidden: Sequence) -> float:
        """ln of the number of relabelings of components or states."""
        return float(np.log(float(self.relabelings(hidden).n)))

    def listed_relabelings(self, hidden: Sequence, limit: int) -> np.ndarray:
        """Each as the cell that takes each cell's place, (n, n_cells); TooLargeError beyond `limit`."""
        cells = listed(self.relabelings(hidden), self.model.n_cells, limit)
        if cells is None:
            raise TooLargeError(
                f"There are {np.exp(self.log_n_relabelings(hidden)):.4g} orders of the {self.model.n_components} "
                f"{self.model.labels}, more than the {limit} that are mixed."
            )
        return cells
