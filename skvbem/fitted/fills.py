"""Missing cells filled together where categories most probable one by one hardly occur together, and by draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from skvbem._arguments import is_option
from skvbem._names import did_you_mean
from skvbem.errors import DataWarning, warn
from skvbem.reading.tables import is_missing

#: The most probable category of each cell ("cells"); the most probable combination; the first unless it hardly occurs;
#: draws of all cells, numbers too, from their distribution given what is observed.
FILLS = ("auto", "cells", "joint", "draw")
# A combination that is less probable than another by more hardly occurs, nats: ln of 10 000, by hand.
_HARDLY = 9.2


def check_fill(fill: Any) -> None:
    """Refuse what is no way to fill cells."""
    if not is_option(fill, *FILLS):
        wanted = f"The 'fill' parameter of impute must be one of {list(FILLS)}."
        raise ValueError(f"{wanted} Got {fill!r} instead.{did_you_mean(fill, FILLS)}")


def filled_together(
    fill: str,
    n_missing: np.ndarray,
    log_observed: Callable[[np.ndarray], np.ndarray],
    log_by_cell: Callable[[np.ndarray], np.ndarray],
    best: Callable[[np.ndarray], tuple[Any, np.ndarray]],
) -> tuple[np.ndarray, Any]:
    """The rows whose missing categories are filled together, and what they are filled with.

    Parameters
    ----------
    fill : str
        One of `FILLS`.
    n_missing : ndarray of int, shape (n_rows,)
        Missing cells of categories in each row.
    log_observed : callable
        ln p of what is observed of some rows, nats.
    log_by_cell : callable
        The same with the most probable category in each missing cell.
    best : callable
        Fills of some rows by the most probable combination, and ln p with them, nats.
    """
    nothing = np.zeros(0, dtype=np.int64), None
    rows = np.flatnonzero(n_missing > 1) if fill != "cells" else nothing[0]
    if not len(rows):
        return nothing
    by_cell = log_by_cell(rows)
    if fill == "auto":
        observed = log_observed(rows)
        is_doubtful = np.isfinite(observed) & (by_cell < observed - _HARDLY)  # else no other is so much better
        rows, by_cell = rows[is_doubtful], by_cell[is_doubtful]
        if not len(rows):
            return nothing
    together, log_together = best(rows)
    margin = _HARDLY if fill == "auto" else 0.0
    better = np.flatnonzero(log_together > by_cell + margin)
    if fill == "auto" and len(better):
        warn(
            f"{len(better)} of {len(n_missing)} rows, the first at position {rows[better[0]]}, are filled by the most "
            "probable combination of categories: those that are most probable cell by cell hardly occur together. "
            "Pass fill='cells' to have them all the same, or fill='joint' for combinations in all rows.",
            DataWarning,
        )
    return rows[better], together[better]


def drawn_cells(
    emission: Any, values: np.ndarray, point: Any, components: np.ndarray, n_components: int, rng: np.random.Generator
) -> np.ndarray:
    """Rows with missing cells drawn from their distribution given the observed ones, at a point.

    A row is drawn, and with it what its observed columns foretell of the others. Its missing cells differ from that as
    those of the row at hand do: exact for columns that are jointly normal, or independent (Matheron's rule).

    Parameters
    ----------
    emission : Emission
        Of the columns, without known labels.
    values : ndarray of shape (n_rows, n_columns)
        As `prepare` takes them, with those of columns that are given.
    point : object
        Of the emission.
    components : ndarray of int, shape (n_rows,)
    n_components : int
    rng : numpy.random.Generator
    """
    is_in = np.eye(n_components)[components]

    def foretold(rows: np.ndarray) -> np.ndarray:
        table = emission.prepare(rows)
        return emission.impute(table[0 : len(table)], point, is_in)

    missing, means = is_missing(values), foretold(values)
    drawn = emission.sample_given(means, None, point, components, rng)
    like = np.where(missing, values, drawn).astype(values.dtype)
    return np.where(missing, means - foretold(like) + drawn, values)
