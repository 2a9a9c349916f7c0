"""p(x, y | theta): latent variable models, their E steps, and what each can do for scores of the evidence.

`skvbem.models.base` says what a model owes, `skvbem.capabilities` what it may offer beyond, and `MODELS` which there
are.
"""

from typing import TYPE_CHECKING

from skvbem._lazy import names_on_demand

if TYPE_CHECKING:
    from skvbem.models.base import Expectation, LatentModel
    from skvbem.models.network.model import DirichletAscent, DiscreteDAG
    from skvbem.models.registry import MODELS, RegisteredModel, capabilities_of

__all__ = [
    "MODELS",
    "DirichletAscent",
    "DiscreteDAG",
    "Expectation",
    "LatentModel",
    "RegisteredModel",
    "capabilities_of",
]

__getattr__, __dir__ = names_on_demand(
    __name__,
    {
        "skvbem.models.base": ("Expectation", "LatentModel"),
        "skvbem.models.network.model": ("DirichletAscent", "DiscreteDAG"),
        "skvbem.models.registry": ("MODELS", "RegisteredModel", "capabilities_of"),
    },
)
