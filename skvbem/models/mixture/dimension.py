"""In how many directions a mixture can move the distribution of a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from skvbem.graphs import dimension
from skvbem.graphs.dag import DAG
from skvbem.models.mixture.model import Mixture


def identifiable_dimension(model: Mixture, hidden: Sequence, data: Any = None) -> int:
    """The generic rank of the map from parameters to the distribution of a row, whatever the data.

    Raises
    ------
    ValueError
        If it is not known for the emission.
    """
    if model.n_components == 1 or model.emission.identifies_components:
        return model.prior.n_free_parameters - model.emission.n_redundant_parameters(np.ones(model.n_components, bool))
    sizes = model.emission.n_outcomes
    if sizes is None:
        raise ValueError(
            "The identifiable dimension of a mixture of multinomial counts depends on the totals of the rows, and is "
            "not known here. Take dimension='free'."
        )
    columns = list(range(len(sizes)))
    dag = DAG.naive_bayes("component", columns)
    cardinalities: dict = {"component": model.n_components, **dict(enumerate(sizes))}
    return dimension.identifiable_dimension(dag, cardinalities, columns)
