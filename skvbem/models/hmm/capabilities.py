"""Capabilities of a hidden Markov model for scores of the evidence, composed over it."""

from __future__ import annotations

from functools import partial

from skvbem.capabilities import Capabilities
from skvbem.models.hmm.dimension import identifiable_dimension
from skvbem.models.hmm.enumeration import log_evidence_by_enumeration
from skvbem.models.hmm.information import score_covariance
from skvbem.models.hmm.model import HMM
from skvbem.models.hmm.sampling import completed, latent_entropy, log_z, relabelings
from skvbem.models.labels.gibbs import GibbsSampler, StepBatches
from skvbem.models.labels.relabelings import LabelRelabelings


def capabilities_of(model: HMM) -> Capabilities:
    """The capabilities of a hidden Markov model: all but marginals, as steps of a path are not independent."""
    gibbs = GibbsSampler(model, partial(log_z, model), partial(completed, model))
    capabilities = Capabilities(
        points=gibbs,
        annealing=gibbs,
        batches=StepBatches(model),
        metropolis=gibbs,
        relabelings=LabelRelabelings(model, relabelings),
        complete_evidence=model.prior.log_evidence,
        entropy=partial(latent_entropy, model),
        information=partial(score_covariance, model),
        enumeration=partial(log_evidence_by_enumeration, model),
        dimension=None if model.emission.n_levels else partial(identifiable_dimension, model),
    )
    return capabilities.with_hidden_hyperparameters(model.prior)
