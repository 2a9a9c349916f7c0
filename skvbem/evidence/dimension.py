"""Which number of parameters enters a score: free ones, or directions in which the model can move."""

from __future__ import annotations

from skvbem.evidence.evaluation import Evaluation

#: What `dimension_of` can return.
DIMENSIONS = ("free", "identifiable")


def dimension_of(evaluation: Evaluation, which: str) -> int:
    """The dimension of a model.

    Parameters
    ----------
    evaluation : Evaluation
    which : {"free", "identifiable"}
        The count d' of free parameters, or the generic rank d of the Jacobian of the map from parameters to the
        distribution of what is observed, in sequences as long as those of the data: d <= d', less where parameters
        trade off [Geiger, Heckerman & Meek 1996].

    Returns
    -------
    int
    """
    if which not in DIMENSIONS:
        raise ValueError(f"A dimension must be 'free' or 'identifiable'. Got {which!r} instead.")
    if which == "free":
        return evaluation.model.n_free_parameters
    identifiable = evaluation.capability("dimension", "dimension='identifiable'")
    return identifiable(evaluation.hidden, evaluation.data)
