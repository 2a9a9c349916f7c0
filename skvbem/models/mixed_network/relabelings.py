"""Relabelings of hidden nodes and of their states that leave a mixed network, its prior and data as they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skvbem.models.network.relabelings import NetworkRelabelings


@dataclass(frozen=True, eq=False)
class MixedNetworkRelabelings(NetworkRelabelings):
    """The relabelings of a mixed network; see `skvbem.capabilities.Relabelable`.

    Components of emissions go with the joint states of their parents, as rows of tables do.
    """

    @property
    def prior(self) -> np.ndarray:
        """Expected natural parameters under the prior, (n_cells,): what is alike in them is alike."""
        return self.model.prior.expected_natural()
