"""The softmax regression of something hidden as fitted: its columns, its coefficients, and where these stand."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Self

import numpy as np

from skvbem.emissions.softmax import SoftmaxMembership
from skvbem.models.labels.coefficients import leaves_of
from skvbem.reading.column_groups import Group


@dataclass(frozen=True, eq=False)
class Membership:
    """The softmax regression of the label of a row, or of the state of a node.

    Parameters
    ----------
    node : hashable
        "component", or the node of a network.
    part : SoftmaxMembership
    group : Group
        Columns of the covariates.
    prior : SoftmaxRegression
        Of the coefficients, below hidden precisions.
    cells, free : slice
        Places of the coefficients among natural parameters, and among unconstrained coordinates.
    point : ndarray of shape (n_labels, n_regressors)
        Coefficients of the fit.
    counts : ndarray of shape (n_labels,)
        Expected rows of each label.
    covariates : callable
        Covariates (n_rows, n_covariates) from the values of each group of columns.
    """

    node: Hashable
    part: SoftmaxMembership
    group: Group
    prior: Any
    cells: slice
    free: slice
    point: np.ndarray
    counts: np.ndarray
    covariates: Callable[[Sequence[np.ndarray]], np.ndarray]

    @classmethod
    def of_block(cls, prior: Any, number: int, **others: Any) -> Self:
        """The regression whose coefficients are a block of a prior, whose own blocks stand in the place of products."""
        cells, blocks = zip(*leaves_of(prior))
        firsts = list(accumulate((block.n_free_parameters for block in blocks), initial=0))
        block = getattr(blocks[number], "base", blocks[number])
        return cls(prior=block, cells=cells[number], free=slice(firsts[number], firsts[number + 1]), **others)
