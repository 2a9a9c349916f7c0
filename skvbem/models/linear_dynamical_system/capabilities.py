"""What a linear dynamical system can do for scores of the evidence, composed over it."""

from __future__ import annotations

from functools import partial

from skvbem.capabilities import Capabilities
from skvbem.models.linear_dynamical_system.dimension import identifiable_dimension
from skvbem.models.linear_dynamical_system.model import LinearDynamicalSystem
from skvbem.models.linear_dynamical_system.sampling import StateRelabelings, StateSampler, completed, log_z


def capabilities_of(model: LinearDynamicalSystem) -> Capabilities:
    """The capabilities of a linear dynamical system: those that ask no states to be counted."""
    sampler = StateSampler(model, partial(log_z, model), partial(completed, model))
    of_rows = Capabilities(
        points=sampler,
        annealing=sampler,
        metropolis=sampler,
        relabelings=StateRelabelings(model),
        dimension=partial(identifiable_dimension, model),
    )
    return of_rows if model.prior.hyperprior is None else of_rows.with_hidden_hyperparameters()
