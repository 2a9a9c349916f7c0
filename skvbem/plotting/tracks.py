"""One sequence step by step: the values of its columns, what its path expects of them, and where its steps stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import numpy as np

from skvbem._arguments import check_count, is_whole
from skvbem.emissions.profiles import named
from skvbem.fitting.fit import read
from skvbem.plotting.choice import column_positions

# Columns drawn where none is named.
_MAX_DEFAULT_TRACKS = 4


@dataclass(frozen=True, eq=False)
class Track:
    """The values of a column over the steps of a sequence.

    Parameters
    ----------
    name : str
    values : ndarray of float, shape (n_steps,)
        Of categories their positions in `labels`; NaN where the cell is missing.
    levels : ndarray of float, shape (n_steps,), or None
        What the column is expected to hold in the state of each step; None of categories, and of what is only given.
    labels : sequence of str, default=()
        Categories.
    """

    name: str
    values: np.ndarray
    levels: np.ndarray | None
    labels: Sequence[str] = ()


def tracks_of(fitted, values: Sequence[np.ndarray], path: np.ndarray, features, owner: str) -> list[Track]:
    """The columns of one sequence as tracks, by default the first four.

    Parameters
    ----------
    fitted : FittedHMM
    values : sequence of ndarray
        Of each group of columns, (n_steps, n_columns).
    path : ndarray of int, shape (n_steps,)
    features : list of str or int, or None
    owner : str
        Name of the display.
    """
    names = list(fitted.groups.names)
    chosen = columns_to_draw(features, names, owner)
    missing = fitted.groups.missing_as_read(values)
    expected = fitted.expected_values(np.eye(len(fitted.startprob)))
    tracks: dict[int, Track] = {}
    for group, cells in zip(fitted.groups.groups, values):
        for k, at in enumerate(group.columns):
            if at not in chosen:
                continue
            column = np.where(missing[:, at], np.nan, cells[:, k])
            if group.encoder is not None:
                labels = [named(level) for level in group.encoder.categories_[k].tolist()]
                tracks[at] = Track(names[at], column, None, labels)
                continue
            if names[at] not in expected:  # it is only given
                tracks[at] = Track(names[at], column, None)
                continue
            levels = expected[names[at]][path] * group.specification.exposure(cells)
            tracks[at] = Track(names[at], column, levels)
        for k, at in enumerate(group.given, start=len(group.columns)):
            if at in chosen:
                tracks.setdefault(at, Track(names[at], cells[:, k], None))
    return [tracks[at] for at in chosen]


def columns_to_draw(features, names: Sequence[str], owner: str) -> Sequence[int]:
    """Positions of the columns named by a display, by default of the first four."""
    return range(min(len(names), _MAX_DEFAULT_TRACKS)) if features is None else column_positions(features, names, owner)


# Which sequence, and when ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SequenceToDraw:
    """One sequence of X, as displays read it.

    Parameters
    ----------
    sequence : Sequences
        It alone, as methods take it in place of X.
    reading : Reading
        It as it is read.
    times, times_ahead : ndarray of shape (n_steps,), (n_ahead,), or None
        Times of its steps, and of some to come: numbers or datetime64. None without times.
    time_label : str or None
    """

    sequence: Any
    reading: Any
    times: np.ndarray | None
    times_ahead: np.ndarray | None
    time_label: str | None


def sequence_to_draw(
    estimator: Any, X: Any, owner: str, sequence: Any, times: Any, n_ahead: int = 0, **where: Any
) -> SequenceToDraw:
    """One sequence of X under a fit, with times given for its steps, or those of X.

    Parameters
    ----------
    estimator : fitted VBHMM or VBLinearDynamicalSystem
    X : as `fit` takes it
    owner : str
        Name of the display.
    sequence : int
        Its position.
    times : array-like or None
        As of `times_of_sequence`.
    n_ahead : int, default=0
        Steps to come.
    **where
        What finds the sequences in X, as in `fit`.

    Raises
    ------
    ValueError, TypeError
        If there is no such sequence, or as of `times_of_sequence`.
    """
    columns = estimator.fitted.columns
    reading: Any = read(estimator, X, columns=columns, **where)
    sequences = reading.sequences
    check_is_sequence(sequence, sequences, owner)
    if times is None:
        times, times_ahead, time_label = times_of_steps(sequences, sequence, n_ahead)
    else:
        times_ahead, time_label = None, getattr(times, "name", None)
        times = times_of_sequence(times, sequences, sequence, owner)
    one = sequences.only(sequence)
    return SequenceToDraw(one, read(estimator, one, columns=columns), times, times_ahead, time_label)


def steps_to_draw(last: Any, owner: str) -> slice:
    """The last steps of a sequence, as many as the `last` parameter of a display says; all if it is None."""
    if last is None:
        return slice(None)
    check_count("last", owner, last)
    return slice(-int(last), None)


def check_is_sequence(which, sequences, owner: str) -> None:
    """Raise a ValueError if there is no such sequence."""
    n = len(sequences.lengths)
    if not is_whole(which) or not 0 <= int(which) < n:
        raise ValueError(
            f"The 'sequence' parameter of {owner} must be an int from 0 to {n - 1}, the position of a sequence of X. "
            f"Got {which!r} instead."
        )


def times_of_sequence(times, sequences, which: int, owner: str) -> np.ndarray:
    """The times of the steps of one sequence: numbers or datetime64, ascending.

    Parameters
    ----------
    times : array-like
        For each step of the sequence, or for each row of X; or a list of such, one for each sequence.
    sequences : Sequences
    which : int
    owner : str
        Name of the display.

    Raises
    ------
    ValueError, TypeError
        If they are too few or many, no numbers or dates, or not ascending.
    """
    rows, n_rows = sequences.places(which), sequences.n_rows
    if (rows < 0).any():
        raise ValueError(
            f"Steps are missing between the rows of X, so that the 'times' parameter of {owner} has none of theirs. "
            "Leave it out: the axis then has the times of all steps."
        )
    if isinstance(times, (list, tuple)) and len(times) == len(sequences.lengths) and np.ndim(times[0]) == 1:
        times = times[which]
    moments = np.asarray(times)
    if moments.shape not in ((len(rows),), (n_rows,)):
        alternative = f", or one for each of the {n_rows} rows of X" if n_rows > len(rows) else ""
        raise ValueError(
            f"The 'times' parameter of {owner} must have one for each of the {len(rows)} steps of the sequence"
            f"{alternative}. Got an array of shape {moments.shape}."
        )
    if len(moments) > len(rows):
        moments = moments[rows]
    if moments.dtype == object:
        moments = _as_dates(moments)
    if moments.dtype.kind not in "iufM":
        raise TypeError(f"The 'times' parameter of {owner} must hold numbers or dates. Got {moments[0]}.")
    back = np.flatnonzero(~(moments[1:] > moments[:-1]))  # also where one is missing
    if len(back):
        a, b = moments[back[0]], moments[back[0] + 1]
        raise ValueError(
            f"The 'times' parameter of {owner} must ascend from step to step. After {a} comes {b}, at step "
            f"{back[0] + 1}."
        )
    return moments


def times_of_steps(sequences, which: int, n_ahead: int = 0) -> tuple[np.ndarray | None, np.ndarray | None, str | None]:
    """Times of the steps of one sequence and of some to come, numbers or datetime64, and a name; None without times."""
    times = sequences.times
    if times is None or times.frequency is None:
        return None, None, None
    n_steps = int(sequences.lengths[which])
    whole = times.at(which, np.arange(n_steps + n_ahead))
    if hasattr(whole, "to_timestamp"):  # periods of pandas
        whole = whole.to_timestamp()
    if getattr(whole, "tz", None) is not None:
        whole = whole.tz_localize(None)
    moments = np.asarray(whole)
    moments = _as_dates(moments) if moments.dtype == object else moments
    if moments.dtype.kind == "m":
        moments = moments.astype(float)
    name = times.moments.name
    return moments[:n_steps], moments[n_steps:], name if isinstance(name, str) else None


def _as_dates(values: np.ndarray) -> np.ndarray:
    """Dates of Python and pandas as datetime64, those of a time zone by its clock; anything else as it is."""
    if not all(isinstance(value, date) for value in values):
        return values
    clock = [value.replace(tzinfo=None) if isinstance(value, datetime) else value for value in values]
    return np.array(clock, dtype="datetime64[us]")


def positions_of(times: np.ndarray | None, n_steps: int) -> tuple[np.ndarray, bool]:
    """Positions of the steps on an axis, from 0 where there are no times, and whether these are dates."""
    if times is None:
        return np.arange(float(n_steps)), False
    times = np.asarray(times)
    if times.dtype.kind != "M":
        return times.astype(float), False
    from matplotlib.dates import date2num

    return date2num(times), True


def edges_of(positions: np.ndarray) -> np.ndarray:
    """Edges of the steps' parts of the axis, half way between neighbors, (n_steps + 1,)."""
    if len(positions) == 1:
        return positions[0] + np.array([-0.5, 0.5])
    middle = (positions[1:] + positions[:-1]) / 2
    return np.concatenate([[2 * positions[0] - middle[0]], middle, [2 * positions[-1] - middle[-1]]])


# Long sequences -------------------------------------------------------------------------------------------------------


def pooled(path: np.ndarray, state_probs: np.ndarray, edges: np.ndarray, most: int):
    """Fractions of states on the path and mean probabilities, of runs of equally many steps if there are too many.

    Parameters
    ----------
    path : ndarray of int, shape (n_steps,)
    state_probs : ndarray of shape (n_steps, n_states)
    edges : ndarray of shape (n_steps + 1,)
    most : int
        Most runs.

    Returns
    -------
    on_path, probable : ndarray of shape (n_runs, n_states)
    edges : ndarray of shape (n_runs + 1,)
    """
    n_steps, n_states = state_probs.shape
    length = -(-n_steps // most)
    starts = np.arange(0, n_steps, length)
    sizes = np.diff(np.append(starts, n_steps))[:, None]
    run = np.arange(n_steps) // length
    on_path = np.bincount(run * n_states + path, minlength=len(starts) * n_states).reshape(-1, n_states) / sizes
    return on_path, np.add.reduceat(state_probs, starts, axis=0) / sizes, edges[np.append(starts, n_steps)]
