"""The prior of an emission as its specifications resolve it, and warnings and refusals of what makes no fit."""

from __future__ import annotations

import numpy as np

from skvbem._compat import warn
from skvbem.emissions import Emission
from skvbem.errors import DataWarning, TooLargeError
from skvbem.estimators.input.column_groups import ColumnGroups
from skvbem.estimators.input.rows import TableReading
from skvbem.estimators.input.values import listed, named_columns, show
from skvbem.families.base import ConjugateFamily


def warn_of_oddities(
    rows: TableReading, emission: Emission, n_components: int, n_rows: int, total_weight: float
) -> None:
    """Warn of components that must stay empty, and of columns of measurements that say nothing, or nothing new."""
    groups = rows.groups
    if n_components > total_weight:
        warn(
            f"'n_components' of {groups.owner} is {n_components} for rows of total weight {total_weight:g}: some "
            "components must stay empty."
        )
    if n_rows == 1:
        return
    for k, (group, part) in enumerate(zip(groups.groups, getattr(emission, "parts", (emission,)))):
        if group.specification.needs_variation:
            constant = _constant(rows, k)
            if len(constant):
                names = [group.names[j] for j in constant]
                what = "holds one value" if len(names) == 1 else "hold one value each"
                warn(f"{named_columns(names)} of X {what} wherever observed: no component differs there.", DataWarning)
        names = [group.names[j] for j in group.specification.collinear(part, total_weight)]
        if names:
            warn(
                f"{named_columns(names)} of X are linear functions of each other: only the prior, or the floor of "
                "maximum likelihood, gives components any width there. Leave one of them out.",
                DataWarning,
            )


def _constant(rows: TableReading, k: int) -> np.ndarray:
    """The columns of a group that hold one value."""
    low, high = np.inf, -np.inf
    for values, _ in rows.blocks:
        low = np.fmin(low, np.fmin.reduce(values[k], axis=0, initial=np.inf))
        high = np.fmax(high, np.fmax.reduce(values[k], axis=0, initial=-np.inf))
    return np.flatnonzero(low == high)


def check_size(
    emission: Emission, n_components: int, n_starts: int, max_memory: float, owner: str, more_cells: int = 0
) -> None:
    """Refuse components and starts that take more memory than the limit, before anything is allocated.

    A component has the cells of the emission and `more_cells`.
    """
    cells = len(emission.component_of_cell(2)) - len(emission.component_of_cell(1)) + more_cells
    # the driver holds four points of each start; the least block of rows is 16
    n_bytes = 8.0 * n_components * n_starts * (4 * cells + 2 * 16)
    if n_bytes > max_memory:
        raise TooLargeError(
            f"{n_components} components of {cells} numbers each take at least {n_bytes:.4g} bytes in {n_starts} "
            f"start{'s' * (n_starts > 1)}; the 'max_memory' parameter of {owner} allows {max_memory:.4g}. Raise it, or "
            "take fewer components or starts."
        )


def resolve_emission_prior(groups: ColumnGroups, emission: Emission, n_components: int) -> ConjugateFamily:
    """The prior of the emission that the parameters of its groups' specifications stand for."""
    parts = getattr(emission, "parts", (emission,))
    options = [group.specification.prior_options(part, group.names) for group, part in zip(groups.groups, parts)]
    if len(options) == 1:
        prior = emission.default_prior(n_components, **options[0])
    else:
        prior = emission.default_prior(n_components, options=options)  # type: ignore[call-arg]
    if not np.all(prior.is_valid):
        names = [
            f"{name!r} of {type(group.specification).__name__}"
            for group in groups.groups
            for name in group.specification.get_params(deep=False)
            if name.endswith("_prior")
        ]
        raise ValueError(
            f"The parameters {listed(dict.fromkeys(names))} make no prior for this X: in the units of the data its "
            "numbers leave the floats. Leave them at their defaults, or measure X in another unit."
        )
    return prior


def responsibilities_of(init, n_rows: int, n_components: int, owner: str) -> np.ndarray:
    """Responsibilities given to start from, checked, (n_rows, n_components)."""
    whose = f"The 'init' parameter of {owner}"
    try:
        given = np.asarray(init, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{whose} must hold numbers, rows of one length. Got {show(init)} instead.") from None
    if given.shape != (n_rows, n_components):
        raise ValueError(
            f"{whose} must have a row for each of the {n_rows} rows of X and a column for each of the {n_components} "
            f"components. Got an array of shape {given.shape}."
        )
    bad = np.flatnonzero(~((given >= 0).all(axis=1) & np.isclose(given.sum(axis=1), 1.0)))
    if len(bad):
        raise ValueError(
            f"{whose} must have rows of responsibilities >= 0 that sum to 1. Row {bad[0]} is {show(given[bad[0]])}."
        )
    return given
