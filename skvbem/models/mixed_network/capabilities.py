"""Capabilities of a mixed network for scores of the evidence, composed over it: relabelings, dimension, and others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from skvbem.capabilities import Capabilities, Relabelings
from skvbem.emissions.base import n_redundant_parameters
from skvbem.graphs import dimension
from skvbem.graphs.dag import DAG
from skvbem.models.mixed_network.beliefs import latent_entropy
from skvbem.models.mixed_network.enumeration import log_evidence_by_enumeration
from skvbem.models.mixed_network.information import score_covariance
from skvbem.models.mixed_network.model import MixedNetwork
from skvbem.models.mixed_network.sampling import MixedNetworkBatches, MixedNetworkSampler, log_z
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
            n_of_emissions += block.n_free_parameters - n_redundant_parameters(emission, np.ones(n_states, dtype=bool))
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


def capabilities_of(model: MixedNetwork) -> Capabilities:
    """The capabilities of a mixed network: all but counts by rows."""
    sampler = MixedNetworkSampler(model, partial(log_z, model), model.completed)
    capabilities = Capabilities(
        points=sampler,
        annealing=sampler,
        batches=MixedNetworkBatches(model),
        metropolis=sampler,
        relabelings=MixedNetworkRelabelings(model) if model.has_own_cells else None,
        complete_evidence=model.prior.log_evidence,
        entropy=partial(latent_entropy, model),
        information=partial(score_covariance, model),
        dimension=partial(identifiable_dimension, model),
        enumeration=partial(log_evidence_by_enumeration, model),
    )
    return capabilities.with_hidden_hyperparameters(model.prior)
