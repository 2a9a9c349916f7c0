"""What columns hold where nobody says it: whole numbers that look unlike measurements, and names that tell rows apart.

Nothing is taken for anything else here: columns are what their data types make them, and a warning says what to say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from skvbem._compat import warn
from skvbem.emissions.registry import FOR_CATEGORIES, FOR_NUMBERS
from skvbem.errors import DataWarning
from skvbem.reading.tables import listed, named_columns

# Values of whole numbers that look like categories at most, and rows for each; values of counts, and rows.
_MAX_CATEGORIES, _ROWS_PER_CATEGORY = 10, 10
_MAX_COUNTS, _ROWS_PER_COUNT, _MIN_ROWS = 30, 3, 20
# Least values of counts, and how rare the largest of those is that could be categories as well.
_MIN_COUNTS, _RARE = 5, 0.05
# Between which variances of counts lie, as multiples of their means.
_DISPERSION = 0.5, 10.0
#: Levels that no column has more of which tell rows apart.
MIN_LEVELS = 20
# The share of rows with a level of their own from which on levels tell rows apart.
_SHARE_OF_ROWS = 0.5
# Columns in a mapping that a message writes out.
_MAX_COLUMNS = 40
_COUNTS = "poisson"


def warn_of_numbers(
    names: Sequence[str], groups: Mapping[str, tuple[Sequence[int], np.ndarray]], by_name: bool, owner: str
) -> None:
    """Warn of numbers that nobody said to be measurements, and that look like categories or counts.

    Parameters
    ----------
    names : sequence of str
        Of the columns of X.
    groups : mapping of str to (columns, values)
        Positions and values of the columns that each family was given.
    by_name : bool
        Whether the columns of X have names of their own.
    owner : str
        Name of the estimator's class.
    """
    columns, values = groups.get(FOR_NUMBERS, ((), np.empty((0, 0))))
    looks = {at: _looks_like(cells) for at, cells in zip(columns, values.T)}
    doubtful = {family: [at for at in columns if looks[at] == family] for family in (FOR_CATEGORIES, _COUNTS)}
    if not any(doubtful.values()):
        return
    what = []
    for family, words in (
        (FOR_CATEGORIES, "few whole numbers, as categories are"),
        (_COUNTS, "whole numbers, as counts are"),
    ):
        if of_family := [names[at] for at in doubtful[family]]:
            what.append(f"{named_columns(of_family)} of X hold{'s' * (len(of_family) == 1)} {words}.")
    families: dict[str, list] = {
        FOR_CATEGORIES: sorted([*groups.get(FOR_CATEGORIES, ((), None))[0], *doubtful[FOR_CATEGORIES]]),
        _COUNTS: doubtful[_COUNTS],
        FOR_NUMBERS: [at for at in columns if looks[at] is None],
    }
    said = _as_parameter({family: at for family, at in families.items() if at}, names, by_name)
    warn(
        f"{' '.join(what)} emission='auto' of {owner} takes numbers for measurements, {FOR_NUMBERS!r}. Say what they "
        f"are, as by emission={said}; columns under {FOR_NUMBERS!r} there are measurements, without this warning.",
        DataWarning,
    )


def warn_of_names_of_rows(names: Sequence[str], codes: np.ndarray, n_categories: np.ndarray, categories) -> None:
    """Warn of columns of categories that tell rows apart, unless their levels are declared.

    Parameters
    ----------
    names : sequence of str
    codes : ndarray of int, shape (n_rows, n_columns)
        -1 where a cell is missing.
    n_categories : ndarray of int, shape (n_columns,)
    categories : "auto", mapping or sequence
        Levels that users declare.
    """
    if not isinstance(categories, (str, Mapping)):
        return
    doubtful = []
    for j in np.flatnonzero(n_categories > MIN_LEVELS).tolist():
        seen = codes[:, j][codes[:, j] >= 0]
        n_levels = int(np.count_nonzero(np.bincount(seen)))
        is_declared = isinstance(categories, Mapping) and names[j] in categories
        if n_levels > max(MIN_LEVELS, _SHARE_OF_ROWS * len(seen)) and not is_declared:
            doubtful.append((names[j], n_levels, len(seen)))
    if not doubtful:
        return
    _, n_levels, n_rows = doubtful[0]
    several = len(doubtful) > 1
    warn(
        f"{named_columns([name for name, *_ in doubtful])} of X {'have' if several else 'has'} {n_levels} distinct "
        f"values in {n_rows} rows{' (the first)' * several}, each taken as a category with parameters of its own. If "
        "they are names or numbers of rows, leave them out, as by X.drop(columns=[...]); else group them into fewer.",
        DataWarning,
    )


def _looks_like(cells: np.ndarray) -> str | None:
    """The family that numbers look to be of, but are not taken for; None of measurements."""
    seen = cells[~np.isnan(cells)]
    n = len(seen)
    if n < _MIN_ROWS or not np.array_equal(np.trunc(seen), seen):
        return None
    levels, repeats = np.unique(seen, return_counts=True)
    k, low, high, mean = len(levels), levels[0], levels[-1], float(seen.mean())
    if k < 2:
        return None
    is_skewed = 0 <= low <= 1 and mean < high / 2 and _DISPERSION[0] <= seen.var() / mean <= _DISPERSION[1]
    if k <= _MAX_CATEGORIES and k * _ROWS_PER_CATEGORY <= n:
        are_counts = is_skewed and low == 0 and k >= _MIN_COUNTS and repeats[-1] < _RARE * n
        return _COUNTS if are_counts else FOR_CATEGORIES
    are_counts = is_skewed and _MIN_COUNTS <= k <= _MAX_COUNTS and k * _ROWS_PER_COUNT <= n
    return _COUNTS if are_counts else None


def _as_parameter(families: Mapping[str, list[int]], names: Sequence[str], by_name: bool) -> str:
    """The `emission` parameter of families and their columns, as users write it."""
    if len(families) == 1:
        return repr(next(iter(families)))
    parts = [
        f"{family!r}: [{listed((repr(names[at]) if by_name else str(at) for at in columns), _MAX_COLUMNS)}]"
        for family, columns in families.items()
    ]
    return "{" + ", ".join(parts) + "}"
