"""In how many directions a mixed network can move the distribution of what is observed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from skvbem.graphs import dimension
from skvbem.graphs.dag import DAG
from skvbem.models.mixed_network.model import MixedNetwork


def identifiable_dimension(model: MixedNetwork, hidden: Sequence, data: Any = None) -> int:
    """The generic rank of the map from parameters to the distribution of a row, whatever the data.

    Densities of an emission that tells the components of any mixture apart are linearly independent, and so are their
    derivatives. So its parameters add up with all others, and tables move what they could move were the parents of the
    node observed. Columns of other emissions with finitely many values are nodes with a table.

    Raises
    ------
    ValueError
        If it is not known for an emission.
    """
    layout = model.layout
    tables = layout.names[: layout.n_tables]
    sizes = dict(zip(tables, layout.cardinalities))
    parents: dict = {node: model.dag.parents(node) for node in tables}
    observed, n_of_emissions = {node for node in tables if node not in hidden}, 0
    for node, emission, block, n_states in zip(
        layout.names[layout.n_tables :], model.emissions, model.prior.blocks[1:], model.n_states
    ):
        with_table = [parent for parent in model.dag.parents(node) if parent in tables]
        if emission.identifies_components or not with_table:
            n_of_emissions += block.n_free_parameters - emission.n_redundant_parameters(np.ones(n_states, dtype=bool))
            observed |= set(with_table)
            continue
        if emission.n_outcomes is None:
            raise ValueError(
                f"The identifiable dimension of a network with multinomial counts, such as those of node {node!r}, "
                "depends on the totals of the rows, and is not known here. Take dimension='free'."
            )
        columns = {(node, k): size for k, size in enumerate(emission.n_outcomes)}
        sizes |= columns
        parents |= dict.fromkeys(columns, with_table)
        observed |= columns.keys()
    nodes = sorted(sizes, key=str)
    return n_of_emissions + dimension.identifiable_dimension(DAG(nodes, parents), sizes, observed)
