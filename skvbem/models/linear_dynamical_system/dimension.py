r"""The identifiable dimension of linear dynamical systems.

The matrices of A, C and of the noise have :math:`k^2 + pk + p` numbers. Turns of the states change nothing observed,
k (k - 1) / 2 directions, and where there are more states than columns the covariance of states can change without any
autocovariance of the columns: with :math:`m = \max(k - p, 0)` a further m (m + 1) / 2. Inputs add k q and p r.
"""

from __future__ import annotations

from collections.abc import Sequence

from skvbem.models.linear_dynamical_system.data import LDSData
from skvbem.models.linear_dynamical_system.model import LinearDynamicalSystem


def identifiable_dimension(model: LinearDynamicalSystem, hidden: Sequence, data: LDSData) -> int:
    """The generic rank of the map from parameters to autocovariances of long sequences."""
    k, p = model.n_states, model.n_columns
    m = max(k - p, 0)
    of_inputs = k * model.n_inputs + p * model.n_output_inputs
    return k * (k + 1) // 2 + p * k + p - m * (m + 1) // 2 + of_inputs
