"""What a linear dynamical system can do for scores of the evidence, composed over it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from skvbem.capabilities import Capabilities
from skvbem.models.linear_dynamical_system.data import LDSData
from skvbem.models.linear_dynamical_system.entropy import latent_entropy
from skvbem.models.linear_dynamical_system.model import LinearDynamicalSystem
from skvbem.models.linear_dynamical_system.portions import ObservedStepPortions
from skvbem.models.linear_dynamical_system.sampling import StateRelabelings, StateSampler, completed, log_z


def capabilities_of(model: LinearDynamicalSystem) -> Capabilities:
    """The capabilities of a linear dynamical system: all but those that count hidden states."""
    sampler = StateSampler(model, partial(log_z, model), partial(completed, model))
    of_rows = Capabilities(
        points=sampler,
        annealing=sampler,
        portions=ObservedStepPortions(model),
        metropolis=sampler,
        relabelings=StateRelabelings(model),
        complete_evidence=model.prior.log_evidence,
        entropy=partial(latent_entropy, model),
        dimension=partial(_dimension, model),
    )
    return of_rows if model.prior.hyperprior is None else of_rows.with_hidden_hyperparameters()


def _dimension(model: LinearDynamicalSystem, hidden: Sequence, data: LDSData) -> int:
    return model.n_free_parameters
