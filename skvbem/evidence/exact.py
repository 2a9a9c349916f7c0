r"""The evidence itself, for tiny data: a sum over all completions [CH (6)].

.. math:: p(y) = \sum_x p(x, y) = \sum_x \mathrm{BD}(N(x, y)).

The model does it, as it knows what spares terms: equal rows are exchangeable, so that their completions are summed as
multinomial allocations, and groups of rows that share no parameters are summed apart.
"""

from __future__ import annotations

from skvbem.evidence.base import Evidence, check_whole_weights
from skvbem.evidence.chains import check_at_least
from skvbem.evidence.evaluation import Evaluation


def exact(evaluation: Evaluation, *, max_terms: int = 2**24) -> Evidence:
    """The log marginal likelihood by enumeration, exact to rounding.

    Parameters
    ----------
    evaluation : Evaluation
    max_terms : int, default=2**24
        Most terms of the sum; 16 million take seconds, and about a minute where they are paths of sequences.

    Raises
    ------
    TooLargeError
        If there are more terms, with their number.
    ValueError
        If completed rows have no evidence in closed form: full or tied Gaussians with missing cells.
    """
    check_whole_weights(evaluation, "exact")
    check_at_least("exact", max_terms=(max_terms, 1))
    value, n_terms = evaluation.capability("enumeration")(evaluation.data, max_terms)
    return Evidence(
        value,
        "exact",
        is_lower_bound=True,
        n_free_parameters=evaluation.model.prior.n_free_parameters,
        n_samples=evaluation.n_samples,
        details={"n_terms": n_terms},
    )
