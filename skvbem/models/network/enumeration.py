r"""The evidence of a network, summed over all ways to complete the rows [CH (6)].

.. math:: p(y) = \sum_x \mathrm{BD}(N(x, y)).

Equal rows are exchangeable, so that their completions are summed as multinomial allocations, and groups of rows that
share no table row are summed apart; see `skvbem.models.network.joint_states`.
"""

from __future__ import annotations

import numpy as np

from skvbem._kernels import _contexts
from skvbem._kernels._enumeration import log_sum_over_completions
from skvbem.models.network.joint_states import completions
from skvbem.models.network.model import DiscreteDAG
from skvbem.models.network.program import Program


def log_evidence_by_enumeration(model: DiscreteDAG, data: Program, max_terms: int) -> tuple[float, int]:
    """The log evidence, nats, and the number of ways to complete the rows; TooLargeError beyond `max_terms`."""
    prior = model.prior
    groups, complete = completions(data, max_terms), _contexts.complete_counts(data.contraction)
    row_of = np.repeat(np.arange(prior.n_rows), np.diff(prior.row_starts))
    row_prior, counts = prior.row_sums(prior.concentration), complete.astype(np.int64)
    row_counts = prior.row_sums(counts)
    value = float(prior.log_evidence(complete))
    for group in groups:
        value += log_sum_over_completions(
            prior.concentration, row_prior, row_of, counts, row_counts, group.weight, group.choice_starts,
            group.cell_starts, group.cells,
        )  # fmt: skip
    return value, max(sum(group.n_terms for group in groups), 1)
