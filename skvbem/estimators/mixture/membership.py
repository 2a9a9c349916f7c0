"""The `membership` of a mixture: covariates of the component of a row, a group of columns of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import clone

from skvbem._arguments import is_list, is_option, listed
from skvbem.emissions.registry import EMISSIONS, family_of
from skvbem.emissions.softmax import Softmax
from skvbem.emissions.specification import EmissionSpecification
from skvbem.reading.column_groups import ColumnGroups, ColumnOptions
from skvbem.reading.names import ColumnSelection
from skvbem.reading.tables import Table, show

# Singular value of covariates of length 1, below which one of them follows from the others. By hand.
_COLLINEAR = 1e-7
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
    rows = np.sqrt(part.design.weight)[:, None] * part.design.regressors
    rows = rows / np.maximum(np.linalg.norm(rows, axis=0), np.finfo(float).tiny)
    kept: list[int] = []
    for j in range(rows.shape[1]):
        is_constant = j > 0 and not rows[:, j].any()  # about its mean: its slope is 0
        if not is_constant and np.linalg.matrix_rank(rows[:, [*kept, j]], tol=_COLLINEAR) <= len(kept):
            of_regressors = np.repeat(part.selected, [max(n - 1, n == 0) for n in part.n_categories])
            name = names[of_regressors[j - 1]]
            raise ValueError(
                f"Slopes of the membership of {type(estimator).__name__} are not unique by maximum likelihood: the "
                f"covariate {name!r} follows from those before it. Leave it out of Softmax, or take method='vb'."
            )
        kept += [] if is_constant else [j]


def _by_positions(membership: Softmax, places: list[int], table: Table) -> Softmax:
    """The membership of a group of these columns of X, its selection as truth values of the columns of the group."""
    whose, selected = "The 'selected' parameter of Softmax", membership.selected
    if selected is not None:
        if not is_list(selected):
            raise TypeError(f"{whose} must be None or a list of covariates. Got {show(selected)} instead.")
        named = ColumnSelection(whose, "covariate", table.names, table.source)
        chosen = named.positions(MEMBERSHIP, list(selected)) if len(selected) else []
        if not {*chosen} <= {*places}:
            raise ValueError(f"{whose} names a column that is none of its 'covariates'. Name it there, too.")
        selected = [at in chosen for at in places]
    return clone(membership).set_params(covariates=(), selected=selected)


def with_membership(estimator: Any, options: ColumnOptions, table: Table) -> list[tuple]:
    """The `emission` parameter as a list of groups, the covariates of the membership the last of them."""
    membership, whose = estimator.membership, "The 'covariates' parameter of Softmax"
    membership.check_parameters()
    given = listed(membership.covariates)
    if not given:
        raise ValueError(f"{whose} names no column. Name one, or leave 'membership' out.")
    places = ColumnSelection(whose, "covariate", table.names, table.source).positions(MEMBERSHIP, given)
    if len(set(places)) < len(places):
        raise ValueError(f"{whose} names a column twice. Name each once.")
    covariates = MEMBERSHIP, _by_positions(membership, places, table), places
    emission, others = options.emission, [at for at in range(table.n_columns) if at not in places]
    if not others:
        raise ValueError(f"{whose} names all columns of X: none is left that components could differ in.")
    if is_option(emission, "auto"):
        return [("remainder", "auto"), covariates]
    if isinstance(emission, EmissionSpecification) or is_option(emission, *EMISSIONS):
        name = emission if isinstance(emission, str) else family_of(emission)
        return [(name, emission, others), covariates]
    if isinstance(emission, Mapping):
        named = [item if item[0] == "remainder" else (item[0], *item) for item in emission.items()]
        return [*named, covariates]
    return [*emission, covariates] if is_list(emission) else [emission, covariates]
