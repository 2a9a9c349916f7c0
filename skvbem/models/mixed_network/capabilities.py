"""What a mixed network can do for scores of the evidence, composed over it."""

from __future__ import annotations

from functools import partial

from skvbem.capabilities import Capabilities
from skvbem.models.mixed_network.beliefs import latent_entropy
from skvbem.models.mixed_network.dimension import identifiable_dimension
from skvbem.models.mixed_network.enumeration import log_evidence_by_enumeration
from skvbem.models.mixed_network.information import score_covariance
from skvbem.models.mixed_network.model import MixedNetwork
from skvbem.models.mixed_network.relabelings import MixedNetworkRelabelings
from skvbem.models.mixed_network.sampling import MixedNetworkPortions, MixedNetworkSampler, log_z


def capabilities_of(model: MixedNetwork) -> Capabilities:
    """The capabilities of a mixed network: all but counts by rows."""
    sampler = MixedNetworkSampler(model, partial(log_z, model), model.completed)
    of_rows = Capabilities(
        points=sampler,
        annealing=sampler,
        portions=MixedNetworkPortions(model),
        metropolis=sampler,
        relabelings=MixedNetworkRelabelings(model) if model.has_own_cells else None,
        complete_evidence=model.prior.log_evidence,
        entropy=partial(latent_entropy, model),
        information=partial(score_covariance, model),
        dimension=partial(identifiable_dimension, model),
        enumeration=partial(log_evidence_by_enumeration, model),
    )
    return of_rows if model.prior.hyperprior is None else of_rows.with_hidden_hyperparameters()
