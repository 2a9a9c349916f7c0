"""Profiles of columns in each component, or in each joint state of parents, as rows of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from skvbem.emissions import EmissionSpecification, Numbers


def rows_of_profiles(
    specification: EmissionSpecification,
    names: Sequence[str],
    levels: Sequence[np.ndarray],
    parameters: Mapping,
    intervals: Mapping | None,
) -> tuple[list[str], np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """Means and deviations of columns of numbers, and probabilities of categories, in each component.

    Parameters
    ----------
    specification : EmissionSpecification
        Specification of the columns.
    names : sequence of str
        Of these.
    levels : sequence of ndarray
        Levels of each column of categories.
    parameters : mapping of str to ndarray
        Of their emission.
    intervals : mapping of str to pair of ndarray, or None
        Of these.

    Returns
    -------
    names : list of str
        What each row is called.
    values : ndarray of shape (n_rows, n_components)
    ends : pair of ndarray of shape (n_rows, n_components)
        Of intervals, NaN where there are none.
    """
    ends = None
    if intervals is not None:
        lower, upper = ({name: pair[side] for name, pair in intervals.items()} for side in (0, 1))
        ends = lower, upper
    rows: list[tuple] = []
    for profile in specification.profiles(names, parameters, ends, levels):
        if isinstance(profile, Numbers):
            rows.append((f"{profile.name} mean", profile.values, profile.intervals))
            if len(parameters) > 1:  # else it is a function of the mean
                rows.append((f"{profile.name} s.d.", profile.deviations, profile.of_deviations))
            continue
        for k, level in enumerate(profile.labels):
            label = level if k == 0 else f"{profile.name} = {level}"
            pair = None if profile.intervals is None else tuple(end[:, k] for end in profile.intervals)
            rows.append((label, profile.values[:, k], pair))
    rows += specification.further_rows(names, parameters, ends)
    values = np.stack([of_row for _, of_row, _ in rows])
    unknown = np.full(values.shape[1], np.nan)
    low, high = (np.stack([unknown if pair is None else pair[side] for *_, pair in rows]) for side in (0, 1))
    return [label for label, *_ in rows], values, (low, high)
