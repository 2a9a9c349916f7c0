"""Warnings of data that no fit can do much with: components that must stay empty, columns that say nothing new."""

from __future__ import annotations

import numpy as np

from skvbem._compat import warn
from skvbem.emissions import Emission
from skvbem.emissions.base import parts_of
from skvbem.errors import DataWarning
from skvbem.reading.rows import TableReading
from skvbem.reading.tables import named_columns


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
    for k, (group, part) in enumerate(zip(groups.groups, parts_of(emission))):
        if group.specification.needs_variation:
            constant = _constant(rows, k)
            if names := [group.names[j] for j in constant]:
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
        cells = rows.groups.groups[k].modeled(values[k])
        low = np.fmin(low, np.fmin.reduce(cells, axis=0, initial=np.inf))
        high = np.fmax(high, np.fmax.reduce(cells, axis=0, initial=-np.inf))
    return np.flatnonzero(low == high)
