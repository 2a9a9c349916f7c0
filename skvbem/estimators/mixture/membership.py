"""The `membership` of a mixture: covariates of the component of a row, a group of columns of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from skvbem.emissions.softmax import Softmax
from skvbem.estimators.given_columns import places_of_covariates, refuse_collinear, with_given
from skvbem.reading.column_groups import ColumnGroups, ColumnOptions
from skvbem.reading.tables import Table, show

#: Name of the group of covariates.
MEMBERSHIP = "membership"


def check_membership(estimator: Any) -> None:
    """Refuse what is no membership, and what does not go with one."""
    owner, membership = type(estimator).__name__, estimator.membership
    if not isinstance(membership, Softmax):
        raise TypeError(
            f"The 'membership' parameter of {owner} must be None or a Softmax, such as Softmax(['age']). Got "
            f"{show(membership)} instead."
        )
    concentration, kind = estimator.weight_concentration_prior, estimator.weight_concentration_prior_type
    is_default = concentration is None or (not isinstance(concentration, str) and np.array_equal(concentration, 1.0))
    if kind != "dirichlet_distribution" or not is_default:
        raise ValueError(
            f"'membership' of {owner} takes the place of weights: leave 'weight_concentration_prior' and its type at "
            "their defaults, and say the prior in Softmax."
        )


def check_not_collinear(estimator: Any, emission: Any, columns: ColumnGroups) -> None:
    """Refuse covariates of which one follows from the others: by maximum likelihood their slopes are not unique."""
    at = next(k for k, group in enumerate(columns.groups) if group.specification.are_given)
    part, names = emission.parts[at], columns.groups[at].names
    of_regressors = np.repeat(part.selected, part.n_slopes)
    whose = f"the membership of {type(estimator).__name__}"
    refuse_collinear(part.design, [names[at] for at in of_regressors], whose)


def with_membership(estimator: Any, options: ColumnOptions, table: Table) -> list[tuple]:
    """The `emission` parameter as a list of groups, the covariates of the membership the last of them."""
    membership = estimator.membership
    membership.check_parameters()
    places, chosen = places_of_covariates(membership, "Softmax", MEMBERSHIP, table.names, table.source)
    selected = None if membership.selected is None else [at in chosen for at in places]
    specification = clone(membership).set_params(covariates=(), selected=selected)
    whose = "The 'covariates' parameter of Softmax"
    return with_given(options, (MEMBERSHIP, specification, places), table, whose)
