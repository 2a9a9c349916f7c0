"""Times of the steps of sequences: which they are, their order, the steps that are missing, and those to come."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import numpy as np

from skvbem._arguments import is_option, is_real
from skvbem.errors import DataWarning, warn
from skvbem.reading.frequencies import Even, Frequency, Ticks, frequency_named, frequency_of
from skvbem.reading.moments import Moments, shown_times
from skvbem.reading.tables import show

# Steps that a row may stand for in the mean: more are a wrong date, or a wrong frequency.
_MAX_STEPS_PER_ROW = 50
# Steps from row to row, of fewer than which the frequency of the fit is that of the rows if it can be.
_MIN_STEPS_FOR_FREQUENCY = 3
_ORDERS, _GAPS = ("check", "sort"), ("warn", "missing", "refuse")


@dataclass(frozen=True, eq=False)
class TimeAxis:
    """When the steps of sequences are, for the argument `time` of `fit` and of other methods.

    A step of a sequence is a step of a regular frequency: steps that are missing between rows become steps without an
    observed cell. The frequency is that of the times, found or given; all sequences have the same.

    Parameters
    ----------
    times : str or array-like of shape (n_rows,), default=None
        Dates, periods or numbers. A str is the name of a column of X, which then is none of the model, or of a level
        of its index; "index" is the index itself. By default the index of a pandas X if it holds dates or periods.
    frequency : str, number, timedelta or offset of pandas, default=None
        Such as "D", "B" (Monday to Friday), "W", "MS" and "ME" (first and last days of months), "QE", "YE", "15min", or
        the difference of numbers. By default it is found: times are on its grid, and none of their steps is more
        common.
    order : {"check", "sort"}, default="check"
        Whether rows of a sequence that are not in the order of time are refused or sorted.
    gaps : {"warn", "missing", "refuse"}, default="warn"
        Whether missing steps are filled with missing cells and `fit` warns of it, are filled without a word, or are
        refused.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skvbem import TimeAxis, VBLinearDynamicalSystem
    >>> months = pd.date_range("2020-01", periods=40, freq="MS")
    >>> sales = pd.DataFrame({"month": months, "sales": 100.0 + np.arange(40) % 12})
    >>> shuffled = sales.drop(index=[7, 20]).sample(frac=1.0, random_state=0)
    >>> axis = TimeAxis("month", order="sort", gaps="missing")
    >>> model = VBLinearDynamicalSystem(1, random_state=0).fit(shuffled, time=axis)
    >>> ahead = model.forecast(shuffled, 2, time=axis)
    >>> ahead.times[0].strftime("%Y-%m-%d").tolist()
    ['2023-05-01', '2023-06-01']
    """

    times: Any = None
    frequency: Any = None
    order: str = "check"
    gaps: str = "warn"

    def __post_init__(self):
        for name, choices in (("order", _ORDERS), ("gaps", _GAPS)):
            if not is_option(getattr(self, name), *choices):
                raise ValueError(
                    f"The {name!r} parameter of TimeAxis must be {' or '.join(map(repr, choices))}. Got "
                    f"{show(getattr(self, name))} instead."
                )
        if self.frequency is not None and self.grid is None:
            raise ValueError(
                "The 'frequency' parameter of TimeAxis must be a name such as 'D', 'B', 'W', 'MS', 'ME', 'QE', 'YE', "
                f"'h', '15min', or a number > 0. Got {show(self.frequency)} instead."
            )

    @property
    def grid(self) -> Frequency | None:
        """The frequency that was given; None without one, and of what is none."""
        given = self.frequency
        if given is None:
            return None
        if isinstance(given, (timedelta, np.timedelta64)):
            size = int(np.timedelta64(given).astype("m8[ns]").astype(np.int64))
            return Even(size, True) if size > 0 else None
        if is_real(given) and not isinstance(given, str):
            return Even(given, False) if np.isfinite(given) and given > 0 else None
        return frequency_named(str(getattr(given, "freqstr", given)))


@dataclass(frozen=True, eq=False)
class StepTimes:
    """Times of the steps of some sequences.

    Parameters
    ----------
    moments : Moments
        Of the user's rows.
    frequency : Frequency or None
        None where nothing says it: sequences of one row.
    firsts : ndarray of int, shape (n_sequences,)
        The row of the first step of each sequence.
    n_filled : int
        Steps that no row stands for.
    first_filled : str
        The first of these.
    tells : bool
        Whether a fit is to say so.
    """

    moments: Moments
    frequency: Frequency | None
    firsts: np.ndarray
    n_filled: int = 0
    first_filled: str = ""
    tells: bool = False

    def at(self, which: int, positions: np.ndarray) -> Any:
        """Times of some steps of a sequence, counted from its first, in the container of the user's times."""
        assert self.frequency is not None
        first, steps = self.moments.ticks[self.firsts[which : which + 1]], np.asarray(positions)
        ticks = self.frequency.after(first, steps)
        if first.unit and (ticks[1:] < ticks[:-1]).any():  # beyond 64 bits
            raise ValueError(
                f"Dates counted in {first.unit} have no times of these steps. Count them in seconds, such as by "
                "X.index = X.index.as_unit('s'), or ask for fewer steps."
            )
        return self.moments.again(ticks, self.frequency.on_clock)

    def only(self, which: int) -> StepTimes:
        """Times of one of the sequences."""
        return replace(self, firsts=self.firsts[which : which + 1])

    def shown(self, which: int, positions: Any) -> list[str]:
        """Times of some steps of a sequence as tables show them."""
        return shown_times(self.at(which, positions))

    def told_of_filled(self) -> str:
        """How many steps are missing, and the first of them."""
        steps = "1 step is" if self.n_filled == 1 else f"{self.n_filled:,} steps are"
        return (
            f"{steps} missing from the times of X, whose frequency is {self.moments.named(self.frequency)}, the first "
            f"of them {self.first_filled}"
        )

    def warn_of_filled(self) -> None:
        """Warn of steps that are not there."""
        if self.n_filled and self.tells:
            warn(
                f"{self.told_of_filled()}: steps without an observed cell take their place. Pass "
                "time=TimeAxis(gaps='missing') to have no such warning, or gaps='refuse' to have an error.",
                DataWarning,
            )

    def check_like_fit(self, estimator) -> None:
        """Refuse a frequency that is not that of the fit."""
        of_fit = frequency_of_fit(estimator)
        if of_fit is not None and self.frequency is not None and not of_fit.is_like(self.frequency):
            raise ValueError(
                f"The times of X have the frequency {self.moments.named(self.frequency)}, and "
                f"{type(estimator).__name__} was fitted to times of the frequency {str(of_fit)!r}. Bring X to that "
                "frequency, such as by its 'resample'; "
                f"if it has that frequency with many steps missing, pass time=TimeAxis(frequency={_said(of_fit)})."
            )


def _said(frequency: Frequency) -> str:
    text = str(frequency)
    return repr(text) if not isinstance(frequency, Even) or frequency.of_dates else text


def is_name_of_frequency(name: Any) -> bool:
    """Whether a value is what a fit keeps of the frequency of its times."""
    if not isinstance(name, str) or frequency_named(name) is not None:
        return isinstance(name, str)
    try:
        return 0.0 < float(name) < np.inf
    except ValueError:
        return False


def frequency_of_fit(estimator) -> Frequency | None:
    """The frequency of the times that an estimator was fitted to, if any."""
    name = vars(estimator).get("_frequency_")
    if name is None:
        return None
    return frequency_named(name) or Even(float(name), False)


# Steps ----------------------------------------------------------------------------------------------------------------


def in_time(
    moments: Moments, lengths: np.ndarray, order: np.ndarray | None, axis: TimeAxis, of_fit: Frequency | None
) -> tuple[np.ndarray, np.ndarray | None, StepTimes]:
    """Lengths of sequences with all of their steps, the row of each step (-1 where there is none), and their times.

    Parameters
    ----------
    moments : Moments
        Of the rows.
    lengths : ndarray of int64, shape (n_sequences,)
        Rows of each sequence.
    order : ndarray of int or None
        The rows of the sequences, one sequence after the other.
    axis : TimeAxis
    of_fit : Frequency or None
        That of the fit, where the rows are those of a question.

    Raises
    ------
    ValueError
        If times are missing, out of order, not regular, or twice there.
    """
    if moments.missing.any():
        row = int(moments.missing.argmax())
        raise ValueError(f"The time of row {row} of X is missing. Give every row its time, or leave such rows out.")
    rows, is_sorted = _ascending(moments, order, lengths, axis)
    starts = np.cumsum(lengths) - lengths
    frequency, steps = _steps(moments, rows, lengths, axis, of_fit)
    times = StepTimes(moments, frequency, rows[starts])
    of_each = steps[starts + lengths - 1] + 1
    n_filled = int(of_each.sum()) - len(rows)
    if not n_filled:
        return lengths, order if is_sorted else rows, times
    places = np.full(n_filled + len(rows), -1)
    places[np.repeat(np.cumsum(of_each) - of_each, lengths) + steps] = rows
    first = int((places < 0).argmax())
    which = int(np.searchsorted(np.cumsum(of_each), first, side="right"))
    at = first - int(of_each[:which].sum())
    times = replace(times, n_filled=n_filled, first_filled=times.shown(which, [at])[0], tells=axis.gaps == "warn")
    if axis.gaps == "refuse":
        raise ValueError(
            f"{times.told_of_filled()}. Add rows with missing cells there, or pass time=TimeAxis(gaps='missing'): it "
            "does so."
        )
    return of_each, places, times


def _ascending(
    moments: Moments, order: np.ndarray | None, lengths: np.ndarray, axis: TimeAxis
) -> tuple[np.ndarray, bool]:
    """The rows of the sequences in the order of time, and whether they stood so."""
    rows = np.arange(len(moments.missing)) if order is None else order
    which, times = np.repeat(np.arange(len(lengths)), lengths), moments.ticks.even[rows]
    within, steps = which[1:] == which[:-1], np.diff(times)
    is_sorted = not (steps[within] < 0).any()
    if not is_sorted and axis.order == "sort":
        rows = rows[np.lexsort((times, which))]
        steps = np.diff(moments.ticks.even[rows])
    elif not is_sorted:
        a, b = _pair(rows, within & (steps < 0))
        raise ValueError(
            f"The times of X are not in order: row {b} is of {_shown(moments, b)}, after row {a} of "
            f"{_shown(moments, a)}. Sort the rows by time, or pass time=TimeAxis(order='sort'). Rows of several "
            "sequences need 'sequence_id'."
        )
    if (within & (steps == 0)).any():
        a, b = _pair(rows, within & (steps == 0))
        raise ValueError(
            f"Rows {a} and {b} of X have one time, {_shown(moments, a)}. If they belong to several sequences, give "
            "'sequence_id'; if to one, aggregate them first, such as by the mean of the rows of each time."
        )
    return rows, is_sorted


def _steps(
    moments: Moments, rows: np.ndarray, lengths: np.ndarray, axis: TimeAxis, of_fit: Frequency | None
) -> tuple[Frequency | None, np.ndarray]:
    """The frequency of ascending times, and the position of each row in its sequence."""
    ticks, starts = moments.ticks[rows], np.cumsum(lengths) - lengths
    first = ticks[np.repeat(starts, lengths)]
    frequency = moments.frequency(axis.grid or (moments.declared if moments.is_binding else None))
    if frequency is None:
        frequency = (moments.declared if len(lengths) == 1 else None) or frequency_of(ticks, starts)
        says_little = frequency is None or len(rows) - len(lengths) < _MIN_STEPS_FOR_FREQUENCY
        if says_little and of_fit is not None and not _off_grid(of_fit, ticks, first).any():
            frequency = of_fit
    if frequency is None:
        if lengths.max() == 1:
            return None, np.zeros(len(rows), dtype=np.int64)
        raise ValueError(_irregular(moments, rows, lengths))
    off = _off_grid(frequency, ticks, first)
    if off.any():
        at = int(off.argmax())
        begin = rows[np.repeat(starts, lengths)[at]]
        raise ValueError(
            f"The time of row {rows[at]} of X, {_shown(moments, rows[at])}, is no step of the frequency "
            f"{moments.named(frequency)} from {_shown(moments, begin)} on. {_REMEDY}"
        )
    positions = frequency.positions(ticks, first)
    if (most := positions[starts + lengths - 1].sum() + len(lengths)) > _MAX_STEPS_PER_ROW * len(rows):
        far = int(
            np.where(np.arange(len(rows)) == np.repeat(starts, lengths), 0, np.diff(positions, prepend=0)).argmax()
        )
        raise ValueError(
            f"The {len(rows):,} rows of X would be {most:,.0f} steps of the frequency {moments.named(frequency)}: "
            f"between rows {rows[far - 1]} and {rows[far]}, of {_shown(moments, rows[far - 1])} and "
            f"{_shown(moments, rows[far])}, "
            "most of them are missing. Mend these times, or pass time=False: steps are then rows."
        )
    return frequency, positions.astype(np.int64)


_REMEDY = (
    "Bring X to a regular frequency, such as by its 'resample', or pass time=False, or X.to_numpy(): steps are then "
    "rows, whatever their times."
)


def _off_grid(frequency: Frequency, ticks: Ticks, first: Ticks) -> np.ndarray:
    """Which times are no steps of a frequency."""
    if bool(ticks.unit) != (not isinstance(frequency, Even) or frequency.of_dates):
        return np.ones(len(ticks.clock), dtype=bool)
    positions = frequency.positions(ticks, first)
    return ~(positions == np.floor(positions))


def _irregular(moments: Moments, rows: np.ndarray, lengths: np.ndarray) -> str:
    """The message of times that have no frequency."""
    which = int((lengths > 1).argmax())
    begin = int(lengths[:which].sum())
    shown = [_shown(moments, row) for row in rows[begin : begin + min(4, int(lengths[which]))]]
    return (
        f"The times of X are not regular: no frequency has all of them on its grid and its step as the most common "
        f"one. They begin {', '.join(shown)}. {_REMEDY} If many steps are missing, say the frequency, as in "
        "time=TimeAxis(frequency='D')."
    )


def _pair(rows: np.ndarray, where: np.ndarray) -> tuple[int, int]:
    """The first two rows of which something is true."""
    at = int(where.argmax())
    return int(rows[at]), int(rows[at + 1])


def _shown(moments: Moments, row: int) -> str:
    return moments.shown(moments.ticks.even[row : row + 1], False)[0]
