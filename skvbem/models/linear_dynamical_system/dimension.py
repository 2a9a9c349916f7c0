r"""The identifiable dimension of linear dynamical systems.

The matrices of A, C and of the noise have :math:`k^2 + pk + p` numbers. Turns of the states change nothing observed,
k (k - 1) / 2 directions, and where there are more states than columns the covariance of states can change without any
autocovariance of the columns: with :math:`m = \max(k - p, 0)` a further m (m + 1) / 2. Inputs add k q and p r. A mean
and a covariance of first states that are learned add k + k (k + 1) / 2: what leaves autocovariances as they are
changes the covariance of first states by as much as that of others.
"""

from __future__ import annotations


def identifiable_dimension(
    n_states: int, n_columns: int, n_inputs: int, n_output_inputs: int, *, learns_first: bool = False
) -> int:
    """The generic rank of the map from parameters to autocovariances of long sequences, and to effects of inputs."""
    k, p = n_states, n_columns
    m = max(k - p, 0)
    of_first = k + k * (k + 1) // 2 if learns_first else 0
    return k * (k + 1) // 2 + p * k + p - m * (m + 1) // 2 + k * n_inputs + p * n_output_inputs + of_first
