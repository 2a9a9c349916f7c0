"""Use of the states of latents of a network, and the cells that its fit indices are made of."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from skvbem.data import Rows
from skvbem.errors import TooLargeError
from skvbem.fitted.latent_states import MAX_VARIATION_OF_DUPLICATES, LatentStates
from skvbem.fitted.under_fit import Cells, UnderFit, entropy_r2
from skvbem.models import DiscreteDAG
from skvbem.models.network import queries


def find_states(model: DiscreteDAG, point: np.ndarray, counts: np.ndarray, latent) -> LatentStates:
    """The states of one latent that are in use, empty, or duplicates."""
    layout, k = model.layout, model.position[latent]
    of_latent = layout.table(counts, k)
    mass = of_latent.reshape(-1, of_latent.shape[-1]).sum(axis=0)
    tables = [
        np.moveaxis(layout.table(point, child), layout.parents[child].index(k), 0) for child in layout.children[k]
    ]
    return LatentStates.of(
        mass,
        lambda a, b: (
            bool(tables)
            and all(
                0.5 * np.abs(table[a] - table[b]).sum(axis=-1).max() < MAX_VARIATION_OF_DUPLICATES for table in tables
            )
        ),
    )


def under_fit(model: DiscreteDAG, point: np.ndarray, data: Rows, latents, limits: Mapping) -> UnderFit:
    """Likelihoods and cells of a table of rows under a network at a point, for fit indices."""
    posteriors = queries.marginals(model, point, data, latents, **limits) if latents else {}
    nothing = Rows((), np.zeros((1, 0), dtype=np.int8))

    def joint(i: int, j: int) -> np.ndarray | None:
        try:
            return queries.joint(model, point, nothing, (data.names[i], data.names[j]), **limits)[0]
        except TooLargeError:
            return None

    return UnderFit(
        queries.log_likelihood(model, point, data, **limits),
        data.weight,
        data.total_weight,
        {name: entropy_r2(posteriors[name], data.weight) for name in latents},
        Cells(data.codes, [model.layout.cardinalities[model.position[name]] for name in data.names], data.names, joint),
    )
