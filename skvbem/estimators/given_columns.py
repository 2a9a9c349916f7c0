"""Columns that a Softmax takes as given: where they stand, and the groups of columns with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from skvbem._arguments import is_list, is_option, listed
from skvbem.emissions.registry import EMISSIONS, family_of
from skvbem.emissions.softmax import Softmax
from skvbem.emissions.specification import EmissionSpecification
from skvbem.families.softmax_maximum import Design
from skvbem.reading.column_groups import ColumnOptions
from skvbem.reading.names import ColumnSelection
from skvbem.reading.tables import Table, show

# Singular value of covariates of length 1, below which one of them follows from the others. By hand: what follows
# exactly leaves less than 1e-14, and a maximum is found down to 2e-6, so that half and double make no difference to it.
_COLLINEAR = 1e-5


def places_of_covariates(
    softmax: Softmax, whose: str, parameter: str, names: Sequence[str], source: Any = None
) -> tuple[list[int], list[int]]:
    """Positions in X of the covariates of a Softmax, and of those of them that have slopes.

    Parameters
    ----------
    softmax : Softmax
    whose : str
        How messages call it, such as "Softmax".
    parameter : str
        Of the estimator, that holds it.
    names : sequence of str
        Of all columns.
    source : array-like or DataFrame
        X as the user has it.
    """
    text = f"The 'covariates' parameter of {whose}"
    given = listed(softmax.covariates)
    if not given:
        raise ValueError(f"{text} names no column. Name one, or leave {parameter!r} out.")
    places = ColumnSelection(text, "covariate", names, source).positions(parameter, given)
    if len(set(places)) < len(places):
        raise ValueError(f"{text} names a column twice. Name each once.")
    if parameter != "transitions" and softmax.at != "departure":
        raise ValueError(
            f"The 'at' parameter of {whose} says which covariates drive a transition, and {parameter!r} has none. "
            "Leave 'at' out."
        )
    selected, text = softmax.selected, f"The 'selected' parameter of {whose}"
    if selected is None:
        return places, places
    if not is_list(selected):
        raise TypeError(f"{text} must be None or a list of covariates. Got {show(selected)} instead.")
    named = ColumnSelection(text, "covariate", names, source)
    chosen = named.positions(parameter, list(selected)) if len(selected) else []
    if not {*chosen} <= {*places}:
        raise ValueError(f"{text} names a column that is none of its 'covariates'. Name it there, too.")
    return places, chosen


def with_given(options: ColumnOptions, covariates: tuple[str, Any, list[int]], table: Table, whose: str) -> list[tuple]:
    """The `emission` parameter as a list of groups, the last of them (name, specification, columns) that are given."""
    places = covariates[2]
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


def refuse_collinear(design: Design, names: Sequence[str], whose: str) -> None:
    """Refuse covariates, by name, of which one follows from the others: by maximum likelihood slopes are not unique."""
    rows = np.sqrt(design.weight)[:, None] * design.regressors
    rows = rows / np.maximum(np.linalg.norm(rows, axis=0), np.finfo(float).tiny)
    kept: list[int] = []
    for j in range(rows.shape[1]):
        is_constant = j > 0 and not rows[:, j].any()  # about its mean: its slope is 0
        if not is_constant and np.linalg.matrix_rank(rows[:, [*kept, j]], tol=_COLLINEAR) <= len(kept):
            raise ValueError(
                f"Slopes of {whose} are not unique by maximum likelihood: the covariate {names[j - 1]!r} follows from "
                "those before it. Leave it out of Softmax, or take method='vb'."
            )
        kept += [] if is_constant else [j]
