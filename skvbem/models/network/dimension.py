"""In how many directions a network can move the distribution of what is observed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from skvbem.graphs import dimension
from skvbem.models.network.model import DiscreteDAG


def identifiable_dimension(model: DiscreteDAG, hidden: Sequence, data: Any = None) -> int:
    """The generic rank of the map from parameters to the distribution of all nodes but the hidden ones.

    The data make no difference.
    """
    sizes = dict(zip(model.dag.nodes, model.layout.cardinalities))
    return dimension.identifiable_dimension(model.dag, sizes, [node for node in model.dag.nodes if node not in hidden])
