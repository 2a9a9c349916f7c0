r"""The evidence of a network, summed over all ways to complete the rows [CH (6)].

.. math:: p(y) = \sum_x \mathrm{BD}(N(x, y)).

Equal rows are exchangeable, so that their completions are summed as multinomial allocations, and groups of rows that
share no table row are summed apart; see `skvbem.models.network.joint_states`.
"""

from __future__ import annotations

import numpy as np

from skvbem._kernels import _contexts
from skvbem._kernels._enumeration import log_sum_over_completions
from skvbem.errors import TooLargeError
from skvbem.models.network.joint_states import completions
from skvbem.models.network.model import DiscreteDAG
from skvbem.models.network.program import Program
from skvbem.models.network.structured import StructuredProgram

# Rows with something hidden in them whose table rows may meet: each is a level of the sum, of so many bytes.
_MAX_ROWS, _BYTES_OF_ROW = 2**24, 40


def log_evidence_by_enumeration(
    model: DiscreteDAG, data: Program | StructuredProgram, max_terms: int
) -> tuple[float, int]:
    """The log evidence, nats, and the number of ways to complete the rows.

    Raises
    ------
    TooLargeError
        If there are more than `max_terms`, or rows by the million.
    """
    prior = model.prior
    program = model.with_partition(None).compile(data.source) if isinstance(data, StructuredProgram) else data
    groups, complete = completions(program, max_terms), _contexts.complete_counts(program.contraction)
    most = max((int(group.weight.sum()) for group in groups), default=0)
    if most > _MAX_ROWS:
        raise TooLargeError(
            f"The exact evidence takes rows with something hidden one by one, as often as they weigh: {most:.4g} "
            f"of them take {_BYTES_OF_ROW * most:.3g} bytes; {_MAX_ROWS:.4g} rows are allowed. Divide weights that are "
            "sizes or shares by their mean. Else take a score that approximates it, such as 'lower_bound', which is "
            "exact where each hidden node has one state."
        )
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
