"""The prior of the weights of a mixture, from the parameters of `VBMixture`."""

from __future__ import annotations

import numpy as np

from skvbem.emissions.specification import positive
from skvbem.models.mixture.weights import FiniteWeights, StickBreaking, Weights
from skvbem.reading.tables import show

#: `weight_concentration_prior` whose strength is to be learned.
OPTIMIZED = "optimized"


def resolve_weights(kind: str, concentration, n_components: int, owner: str) -> Weights:
    """The prior of the weights that `weight_concentration_prior_type` and `weight_concentration_prior` stand for."""
    name = "weight_concentration_prior"
    base = concentration is None or (isinstance(concentration, str) and concentration == OPTIMIZED)
    given = positive(owner, name, 1.0 if base else concentration)
    if kind == "dirichlet_process":
        if given.ndim:
            raise ValueError(
                f"The {name!r} parameter of {owner} must be a number for sticks broken in turn. Got "
                f"{show(concentration)} instead."
            )
        return StickBreaking(n_components, float(given))
    if given.ndim and given.shape != (n_components,):
        raise ValueError(
            f"The {name!r} parameter of {owner} must be a number or have one for each of the {n_components} "
            f"components. Got an array of shape {given.shape}."
        )
    return FiniteWeights(np.broadcast_to(given, n_components).copy())
