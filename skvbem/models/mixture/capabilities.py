"""What a mixture can do for scores of the evidence, composed over it."""

from __future__ import annotations

from functools import partial

from skvbem.capabilities import Capabilities
from skvbem.models.labels.gibbs import GibbsSampler
from skvbem.models.labels.portions import RowPortions
from skvbem.models.labels.relabelings import LabelRelabelings
from skvbem.models.mixture.dimension import identifiable_dimension
from skvbem.models.mixture.enumeration import log_evidence_by_enumeration
from skvbem.models.mixture.information import score_covariance
from skvbem.models.mixture.marginals import MixtureMarginals
from skvbem.models.mixture.model import Mixture
from skvbem.models.mixture.responsibilities import latent_entropy
from skvbem.models.mixture.sampling import completed, log_z, relabelings


def capabilities_of(model: Mixture) -> Capabilities:
    """The capabilities of a mixture: all."""
    gibbs = GibbsSampler(model, partial(log_z, model), partial(completed, model))
    of_rows = Capabilities(
        points=gibbs,
        annealing=gibbs,
        portions=RowPortions(model),
        metropolis=gibbs,
        relabelings=LabelRelabelings(model, relabelings),
        marginals=MixtureMarginals(model),
        complete_evidence=model.prior.log_evidence,
        entropy=partial(latent_entropy, model),
        information=partial(score_covariance, model),
        enumeration=partial(log_evidence_by_enumeration, model),
        dimension=None if model.emission.n_levels else partial(identifiable_dimension, model),
    )
    return of_rows if model.prior.hyperprior is None else of_rows.with_hidden_hyperparameters()
