r"""The evidence itself, for tiny data: a sum over all completions [CH (6)].

.. math:: p(y) = \sum_x p(x, y) = \sum_x \mathrm{BD}(N(x, y)).

Equal rows are exchangeable, so that their completions are summed as multinomial allocations; groups of rows that share
no parameters are summed apart.
"""

from __future__ import annotations

import numpy as np

from skvbem._kernels._enumeration import log_sum_over_completions
from skvbem.evidence.base import Evidence, check_whole_weights
from skvbem.evidence.evaluation import Evaluation


def exact(evaluation: Evaluation, *, max_terms: int = 2**24) -> Evidence:
    """The log marginal likelihood by enumeration, exact to rounding.

    Parameters
    ----------
    evaluation : Evaluation
    max_terms : int, default=2**24
        Most terms of the sum; 16 million take seconds.

    Raises
    ------
    TooLargeError
        If there are more terms, with their number.
    """
    check_whole_weights(evaluation, "exact")
    prior = evaluation.model.prior
    groups = evaluation.model.completions(evaluation.program, max_terms)
    complete = evaluation.model.complete_counts(evaluation.program)
    row_of = np.repeat(np.arange(prior.n_rows), np.diff(prior.row_starts))
    row_prior, counts = prior.row_sums(prior.concentration), complete.astype(np.int64)
    row_counts = prior.row_sums(counts)
    value = float(prior.log_evidence(complete))
    for group in groups:
        value += log_sum_over_completions(
            prior.concentration, row_prior, row_of, counts, row_counts, group.weight, group.choice_starts,
            group.cell_starts, group.cells,
        )  # fmt: skip
    return Evidence(
        value,
        "exact",
        is_lower_bound=True,
        n_free_parameters=prior.n_free_parameters,
        n_samples=evaluation.n_samples,
        details={"n_terms": max(sum(group.n_terms for group in groups), 1)},
    )
