"""Every model, by name: adding a line here gives it to all scores, and to the laws that tests hold models to.

A model from outside is registered by the same line, ``MODELS["name"] = RegisteredModel(MyModel, capabilities_of)``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from skvbem.capabilities import Capabilities
from skvbem.models.base import LatentModel
from skvbem.models.hmm import capabilities as hmm
from skvbem.models.hmm.model import HMM
from skvbem.models.linear_dynamical_system import capabilities as linear_dynamical_system
from skvbem.models.linear_dynamical_system.model import LinearDynamicalSystem
from skvbem.models.mixed_network import capabilities as mixed_network
from skvbem.models.mixed_network.model import MixedNetwork
from skvbem.models.mixture import capabilities as mixture
from skvbem.models.mixture.model import Mixture
from skvbem.models.network import capabilities as network
from skvbem.models.network.model import DiscreteDAG
from skvbem.models.structural import capabilities as structural
from skvbem.models.structural.model import StructuralModel


@dataclass(frozen=True)
class RegisteredModel:
    """A class of models, and what they can do for scores.

    Parameters
    ----------
    model : type
        A subclass of `skvbem.models.base.LatentModel`.
    capabilities_of : callable of model to Capabilities
    """

    model: type[LatentModel]
    capabilities_of: Callable[[Any], Capabilities]


#: Every model by name.
MODELS = {
    "network": RegisteredModel(DiscreteDAG, network.capabilities_of),
    "mixture": RegisteredModel(Mixture, mixture.capabilities_of),
    "hmm": RegisteredModel(HMM, hmm.capabilities_of),
    "linear_dynamical_system": RegisteredModel(LinearDynamicalSystem, linear_dynamical_system.capabilities_of),
    "structural": RegisteredModel(StructuralModel, structural.capabilities_of),
    "mixed_network": RegisteredModel(MixedNetwork, mixed_network.capabilities_of),
}


def capabilities_of(model: LatentModel) -> Capabilities:
    """The capabilities of a model.

    Raises
    ------
    TypeError
        If its class is not registered, with those that are.
    """
    for registered in MODELS.values():
        if isinstance(model, registered.model):
            return registered.capabilities_of(model)
    raise TypeError(
        f"{type(model).__name__} is not registered as a model. Registered are {', '.join(MODELS)}. Add it to "
        "skvbem.models.MODELS with what makes its capabilities."
    )
