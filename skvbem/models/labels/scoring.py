"""What scores ask alike of all models that have an emission: cells of its states, and their orders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from skvbem.emissions import Emission, Step
from skvbem.errors import TooLargeError
from skvbem.families import Product
from skvbem.models.relabelings import listed


class EmissionScoring:
    """Methods of a model whose last block is that of an emission."""

    emission: Emission
    prior: Product
    n_components: int
    relabelings: Callable
    #: What they are called in messages.
    hidden_states: str

    def step_at(self, natural: np.ndarray, data: Any) -> Step:
        """The emission at natural parameters (n_cells,) of one lane."""
        return self.emission.step(np.ascontiguousarray(self.prior.split(natural)[-1]), data.table)

    def cells_of_components(self) -> list[np.ndarray]:
        """The cells in which rows of each component have statistics of the emission, those of all components too."""
        component = self.emission.component_of_cell(self.n_components)
        first = sum(self.prior.n_cells) - len(component)
        return [first + np.flatnonzero((component == k) | (component == -1)) for k in range(self.n_components)]

    def log_n_labelings(self, hidden: Sequence) -> float:
        """ln of the number of orders of the components that the prior does not tell apart."""
        return float(np.log(float(self.relabelings(hidden).n)))

    def labelings(self, hidden: Sequence, limit: int) -> np.ndarray:
        """These orders as the cell that takes each cell's place, (n, n_cells); TooLargeError beyond `limit`."""
        found = listed(self.relabelings(hidden), sum(self.prior.n_cells), limit)
        if found is None:
            raise TooLargeError(
                f"There are {np.exp(self.log_n_labelings(hidden)):.4g} orders of the {self.n_components} "
                f"{self.hidden_states}, more than the {limit} that are mixed."
            )
        return found
