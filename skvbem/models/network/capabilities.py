"""Capabilities of a discrete network for scores of the evidence, composed over it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from skvbem.capabilities import Capabilities
from skvbem.families import DirichletMixture
from skvbem.graphs import dimension
from skvbem.models.network.cluster_chains import ClusterChains
from skvbem.models.network.information import score_covariance
from skvbem.models.network.joint_states import log_evidence_by_enumeration
from skvbem.models.network.marginals import NetworkMarginals, latent_entropy
from skvbem.models.network.model import DiscreteDAG
from skvbem.models.network.relabelings import NetworkRelabelings
from skvbem.models.network.sampling import NetworkBatches, NetworkSampler


def refuse_set(program: Any) -> None:
    """Refuse rows in which nodes were set where a dimension is of the distribution of rows that were observed."""
    if program.has_set:
        raise ValueError(
            "dimension='identifiable' is of rows that were only observed; here nodes were set in some. Take "
            "dimension='free'."
        )


def identifiable_dimension(model: DiscreteDAG, hidden: Sequence, data: Any = None) -> int:
    """The generic rank of the map from parameters to the distribution of all nodes but the hidden ones.

    Other data make no difference, but rows in which nodes were set have distributions of their own.

    Raises
    ------
    ValueError
        If there are such rows.
    """
    if data is not None:
        refuse_set(getattr(data, "exact", data))
    sizes = dict(zip(model.dag.nodes, model.layout.cardinalities))
    return dimension.identifiable_dimension(model.dag, sizes, [node for node in model.dag.nodes if node not in hidden])


def capabilities_of(model: DiscreteDAG) -> Capabilities:
    """The capabilities of a network: all, but those that need a row to be once in a table, where tables are tied."""
    is_tied = bool(model.layout.ties)
    sampler, has_mixture = NetworkSampler(model), isinstance(model.prior, DirichletMixture)
    return Capabilities(
        points=sampler,
        annealing=sampler,
        cluster_annealing=None if model.partition is None else ClusterChains(model),
        batches=NetworkBatches(),
        metropolis=None if has_mixture else sampler,
        relabelings=NetworkRelabelings(model),
        marginals=None if is_tied or has_mixture else NetworkMarginals(model),
        complete_evidence=model.prior.log_evidence,
        entropy=partial(latent_entropy, model),
        information=None if is_tied or has_mixture else score_covariance,
        enumeration=partial(log_evidence_by_enumeration, model),
        dimension=None if is_tied else partial(identifiable_dimension, model),
    )
