"""The entropy of hidden paths of states, relative to states that move by chance alone.

A first state whose distribution is learned has no chance of its own: its entropy is that of its density.
"""

from __future__ import annotations

import numpy as np

from skvbem.models.linear_dynamical_system.data import LDSData
from skvbem.models.linear_dynamical_system.model import LinearDynamicalSystem


def latent_entropy(model: LinearDynamicalSystem, natural: np.ndarray, data: LDSData) -> float:
    r"""What q(x) at natural parameters (n_cells,) adds to the log evidence of complete data, nats.

    That is :math:`\ln Z - \phi \cdot \bar u`, minus the divergence of q(x) from independent states of the unit of the
    noise: as states have densities it is never above 0 but for what learned first states have.
    """
    expectation = model.expect(natural[:, None], data)
    return float(expectation.log_normalizer[0] - expectation.statistics[:, 0] @ natural)
