"""Counts of a network as sums over independent rows, and the entropy of what is hidden in these."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skvbem._numerics import times_log
from skvbem.capabilities import CountBlock, RowMarginals
from skvbem.models.network.cluster_marginals import marginals_of_clusters
from skvbem.models.network.model import DiscreteDAG
from skvbem.models.network.program import Program
from skvbem.models.network.row_marginals import row_marginals
from skvbem.models.network.structured import StructuredProgram


@dataclass(frozen=True, eq=False)
class NetworkMarginals:
    """Counts of table cells as sums over independent rows; see `skvbem.capabilities.Marginals`.

    Parameters
    ----------
    model : DiscreteDAG
    """

    model: DiscreteDAG

    def count_block(self) -> CountBlock:
        """The coordinates of the prior that count rows: all of them, for a network."""
        return CountBlock(np.arange(self.model.layout.n_cells), self.model.prior)

    def row_marginals(self, natural: np.ndarray, data: Program | StructuredProgram) -> RowMarginals:
        """Where each distinct row of data falls in the tables under q(x) at natural parameters (n_cells,)."""
        if isinstance(data, StructuredProgram):
            return marginals_of_clusters(data, natural)
        return row_marginals(data, natural)


def latent_entropy(model: DiscreteDAG, natural: np.ndarray, data: Program | StructuredProgram) -> float:
    """Entropy of what is hidden under q(x) at natural parameters (n_cells,), nats."""
    expectation = model.expect(natural[:, None], data)
    return float(expectation.log_normalizer[0] - times_log(expectation.statistics[:, 0], natural).sum())
