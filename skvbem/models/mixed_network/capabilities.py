"""What a mixed network can do for scores of the evidence, composed over it."""

from __future__ import annotations

from skvbem.capabilities import Capabilities
from skvbem.models.mixed_network.model import MixedNetwork


def capabilities_of(model: MixedNetwork) -> Capabilities:
    """The capabilities of a mixed network."""
    return Capabilities()
