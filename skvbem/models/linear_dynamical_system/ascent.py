"""Full steps of a linear dynamical system: after each E step states go into the basis in which the bound is best."""

from __future__ import annotations

from typing import Any

import numpy as np

from skvbem.models.ascent import ModelAscent
from skvbem.models.linear_dynamical_system.model import LinearDynamicalSystem
from skvbem.models.linear_dynamical_system.state_map import StateBasis


class LDSAscent(ModelAscent[LinearDynamicalSystem]):
    """Full steps of one linear dynamical system on its data."""

    label = "noise"

    def _expanded(
        self, statistics: np.ndarray, hidden: np.ndarray, natural: np.ndarray, expansion: Any
    ) -> tuple[np.ndarray, Any]:
        """Statistics of states in the basis in which the bound is best, hyperparameters as they are."""
        prior, turned = self.model.prior, statistics + hidden
        for lane in range(statistics.shape[1]):
            given = prior
            if self.hyperprior is not None:
                given = prior.given_hyperparameters(hidden[:, lane])
            basis = StateBasis(self.form, given, self.model.first, statistics[:, lane], expansion.of_lane(lane))
            map = basis.best()
            if map is not None:
                turned[:, lane] = basis.statistics(map) + hidden[:, lane]
        return turned, None
