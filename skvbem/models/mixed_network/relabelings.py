"""Relabelings of hidden nodes and of their states that leave a mixed network, its prior and data as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from skvbem.capabilities import Relabelings
from skvbem.graphs.dag import DAG
from skvbem.models.network.relabelings import NetworkRelabelings
from skvbem.models.relabelings import ListedRelabelings, relabelings_of_states


@dataclass(frozen=True, eq=False)
class MixedNetworkRelabelings(NetworkRelabelings):
    """The relabelings of a mixed network; see `skvbem.capabilities.Relabelable`.

    Components of emissions go with the joint states of their parents, as rows of tables do. They are found as if the
    cells of each emission stood component by component.
    """

    @property
    def dag(self) -> DAG:
        """The graph without edges from numbers to numbers, which no relabeling touches."""
        layout = self.model.layout
        parents = {name: [layout.names[p] for p in of] for name, of in zip(layout.names, layout.parents)}
        return DAG(self.model.dag.nodes, parents)

    @property
    def prior(self) -> np.ndarray:
        """Expected natural parameters under the prior, component by component, (n_cells,): what is alike is alike."""
        return self.model.prior.expected_natural()[self.model.by_component]

    def relabelings(self, hidden: Sequence, limit: int = 50_000) -> Relabelings | None:
        """Ways in which hidden labels can change unnoticed, None if too many to be found one by one."""
        relabelings: Any = super().relabelings(hidden, limit)
        order = self.model.by_component
        if relabelings is None or np.array_equal(order, np.arange(len(order))):
            return relabelings
        if not isinstance(relabelings, ListedRelabelings):
            return relabelings_of_states(order[relabelings.cells])
        cells = np.empty_like(relabelings.cells)
        cells[:, order] = order[relabelings.cells]
        return ListedRelabelings(cells)
