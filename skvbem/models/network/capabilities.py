"""What a discrete network can do for scores of the evidence, composed over it."""

from __future__ import annotations

from functools import partial

from skvbem.capabilities import Capabilities
from skvbem.models.network.cluster_chains import ClusterChains
from skvbem.models.network.dimension import identifiable_dimension
from skvbem.models.network.enumeration import log_evidence_by_enumeration
from skvbem.models.network.information import score_covariance
from skvbem.models.network.marginals import NetworkMarginals, latent_entropy
from skvbem.models.network.model import DiscreteDAG
from skvbem.models.network.portions import NetworkPortions
from skvbem.models.network.relabelings import NetworkRelabelings
from skvbem.models.network.sampling import NetworkSampler


def capabilities_of(model: DiscreteDAG) -> Capabilities:
    """The capabilities of a network: all, but those that need a row to be once in a table, where tables are tied."""
    is_tied = bool(model.layout.ties)
    sampler = NetworkSampler(model)
    return Capabilities(
        points=sampler,
        annealing=sampler,
        cluster_annealing=None if model.partition is None else ClusterChains(model),
        portions=NetworkPortions(),
        metropolis=sampler,
        relabelings=NetworkRelabelings(model),
        marginals=None if is_tied else NetworkMarginals(model),
        complete_evidence=model.prior.log_evidence,
        entropy=partial(latent_entropy, model),
        information=None if is_tied else score_covariance,
        enumeration=partial(log_evidence_by_enumeration, model),
        dimension=None if is_tied else partial(identifiable_dimension, model),
    )
