"""Frequencies of times: regular grids of dates or numbers, by name, or as the times themselves show them.

Dates are whole numbers of a unit since 1970; `Ticks` says which. No library of data frames is needed: the answers are
the same for all of them.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

#: Nanoseconds in units of time, the longest first.
NANOSECONDS = {
    "D": 86_400 * 10**9,
    "h": 3_600 * 10**9,
    "min": 60 * 10**9,
    "s": 10**9,
    "ms": 10**6,
    "us": 10**3,
    "ns": 1,
}
# Of a step, by which numbers may be off the grid; so are floats after sums.
_ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class Ticks:
    """Times as numbers: for each the one on the clock, and the one that passes evenly, also where clocks are changed.

    Parameters
    ----------
    clock, even : ndarray of int64 or float64, shape (n_times,)
        They differ only in time zones. Dates are whole numbers.
    unit : {"s", "ms", "us", "ns", ""}
        Of dates; "" of numbers.
    """

    clock: np.ndarray
    even: np.ndarray
    unit: str

    @property
    def per_day(self) -> int:
        """Ticks of a day."""
        return NANOSECONDS["D"] // NANOSECONDS[self.unit]

    @property
    def days(self) -> np.ndarray:
        """Days by the clock, datetime64[D]."""
        return np.floor_divide(self.clock, self.per_day).astype("datetime64[D]")

    @property
    def times_of_day(self) -> np.ndarray:
        """Ticks since midnight, by the clock."""
        return np.remainder(self.clock, self.per_day)

    def __getitem__(self, places) -> Ticks:
        return Ticks(self.clock[places], self.even[places], self.unit)


class Frequency(ABC):
    """A regular grid, whatever time it begins at."""

    #: Whether steps are even on the clock, rather than in the time that passes.
    on_clock: bool = True

    @abstractmethod
    def positions(self, ticks: Ticks, first: Ticks) -> np.ndarray:
        """Steps from the first time to each, (n_times,), of float: no whole number off the grid, NaN far off."""

    @abstractmethod
    def after(self, first: Ticks, positions: np.ndarray) -> np.ndarray:
        """Ticks that are some steps after a first time, of the clock or even as `on_clock` says."""

    @abstractmethod
    def is_like(self, other: Frequency) -> bool:
        """Whether steps are as long as those of another, wherever in a month, or in a week, they begin."""

    @abstractmethod
    def times(self, n: int) -> Frequency:
        """The frequency of steps that are so many of these."""


@dataclass(frozen=True)
class Even(Frequency):
    """Steps of one size.

    Parameters
    ----------
    size : int or float
        Nanoseconds of dates; of numbers their difference.
    of_dates : bool
    on_clock : bool
    """

    size: int | float
    of_dates: bool
    on_clock: bool = True

    def _ticks(self, unit: str) -> Fraction:
        return Fraction(int(self.size), NANOSECONDS[unit])

    def positions(self, ticks: Ticks, first: Ticks) -> np.ndarray:
        """Steps from the first time to each."""
        far = ticks.clock - first.clock if self.on_clock else ticks.even - first.even
        if not self.of_dates:
            steps = far / self.size
            return np.where(np.abs(steps - np.rint(steps)) < _ROUNDING, np.rint(steps), steps)
        step = self._ticks(ticks.unit)
        whole = far * step.denominator
        return np.where(whole % step.numerator == 0, whole // step.numerator, np.nan)

    def after(self, first: Ticks, positions: np.ndarray) -> np.ndarray:
        """Ticks some steps after a first time."""
        begin = first.clock if self.on_clock else first.even
        if not self.of_dates:
            return begin + self.size * positions
        step = self._ticks(first.unit)
        return begin + step.numerator * positions // step.denominator

    def is_like(self, other: Frequency) -> bool:
        """Whether steps are as long."""
        if not isinstance(other, Even) or other.of_dates != self.of_dates:
            return False
        return abs(other.size - self.size) <= (0 if self.of_dates else _ROUNDING * abs(self.size))

    def times(self, n: int) -> Even:
        """Steps that are so many of these."""
        return replace(self, size=n * self.size)

    def __str__(self) -> str:
        if not self.of_dates:
            return f"{self.size:.12g}"
        units = list(NANOSECONDS.items())[0 if self.on_clock else 1 :]
        unit, size = next((name, size) for name, size in units if self.size % size == 0)
        n = self.size // size
        if unit == "D" and n % 7 == 0:
            unit, n = "W", n // 7
        by_clock = " by the clock" if self.on_clock and self.size % NANOSECONDS["D"] else ""
        return f"{'' if n == 1 else n}{unit}{by_clock}"


@dataclass(frozen=True)
class BusinessDays(Frequency):
    """Steps of some days from Monday to Friday."""

    n: int = 1

    def positions(self, ticks: Ticks, first: Ticks) -> np.ndarray:
        """Steps from the first time to each."""
        on_grid = np.is_busday(ticks.days) & (ticks.times_of_day == first.times_of_day)
        return np.where(on_grid, np.busday_count(first.days, ticks.days) / self.n, np.nan)

    def after(self, first: Ticks, positions: np.ndarray) -> np.ndarray:
        """Ticks some steps after a first time."""
        days = np.busday_offset(first.days, self.n * positions)
        return days.astype(np.int64) * first.per_day + first.times_of_day

    def is_like(self, other: Frequency) -> bool:
        """Whether steps are as long."""
        return self == other

    def times(self, n: int) -> BusinessDays:
        """Steps that are so many of these."""
        return BusinessDays(n * self.n)

    def __str__(self) -> str:
        return f"{'' if self.n == 1 else self.n}B"


@dataclass(frozen=True)
class Months(Frequency):
    """Steps of some months.

    Parameters
    ----------
    n : int
    day : int
        Of the month, from 1 on, or its last one if it has fewer; 0 for its first day from Monday to Friday and -1 for
        its last.
    """

    n: int
    day: int

    def _days(self, months: np.ndarray) -> np.ndarray:
        """The day of the grid in each month, datetime64[D]."""
        begin, end = (each.astype("datetime64[D]") for each in (months, months + 1))
        if self.day == 0:
            return np.busday_offset(begin, 0, roll="forward")
        if self.day < 0:
            return np.busday_offset(end - 1, 0, roll="backward")
        return np.minimum(begin + (self.day - 1), end - 1)

    def positions(self, ticks: Ticks, first: Ticks) -> np.ndarray:
        """Steps from the first time to each."""
        months = ticks.days.astype("datetime64[M]")
        on_grid = (self._days(months) == ticks.days) & (ticks.times_of_day == first.times_of_day)
        far = (months - first.days.astype("datetime64[M]")).astype(np.int64)
        return np.where(on_grid, far / self.n, np.nan)

    def after(self, first: Ticks, positions: np.ndarray) -> np.ndarray:
        """Ticks some steps after a first time."""
        days = self._days(first.days.astype("datetime64[M]") + self.n * positions)
        return days.astype(np.int64) * first.per_day + first.times_of_day

    def is_like(self, other: Frequency) -> bool:
        """Whether steps are as many months."""
        return isinstance(other, Months) and other.n == self.n

    def times(self, n: int) -> Months:
        """Steps that are so many of these."""
        return Months(n * self.n, self.day)

    def __str__(self) -> str:
        n, letter = next((self.n // k, name) for k, name in ((12, "Y"), (3, "Q"), (1, "M")) if self.n % k == 0)
        ends = {1: ("", "S"), 31: ("", "E"), 0: ("B", "S"), -1: ("B", "E")}
        before, end = ends.get(self.day, ("", f"S on day {self.day}"))
        return f"{'' if n == 1 else n}{before}{letter}{end}"


# By name --------------------------------------------------------------------------------------------------------------

_NAME = re.compile(r"(\d+(?:\.\d+)?)?\s*([A-Za-z]+)(?:-[A-Za-z]{3})?( by the clock| on day (\d+))?")
# Names of steps of one size, those of older versions of pandas among them.
_EVEN = {
    "W": 7 * NANOSECONDS["D"], **NANOSECONDS, "H": NANOSECONDS["h"], "T": NANOSECONDS["min"], "S": NANOSECONDS["s"],
    "L": NANOSECONDS["ms"], "U": NANOSECONDS["us"], "N": 1,
}  # fmt: skip
_MONTHS = {"M": 1, "Q": 3, "Y": 12, "A": 12}
_MONTH_NAME = re.compile("(B?)([MQYA])([SE]?)")


def frequency_named(name: str) -> Frequency | None:
    """The frequency that pandas has under a name, such as "D", "B", "W", "MS", "QE-DEC", "15min"; None of others.

    Parameters
    ----------
    name : str
    """
    match = _NAME.fullmatch(name.strip())
    if match is None:
        return None
    number, letters, further, day = match.groups()
    n = Fraction(number or 1)
    if n <= 0:
        return None
    if letters in _EVEN:
        size, on_day = n * _EVEN[letters], letters in ("W", "D")
        is_whole = size.denominator == 1 and not (on_day and n.denominator > 1)
        return Even(int(size), True, on_day or bool(further)) if is_whole else None
    if n.denominator > 1:
        return None
    if letters == "B":
        return BusinessDays(int(n))
    of_months = _MONTH_NAME.fullmatch(letters)
    if of_months is None:
        return None
    of_business, letter, end = of_months.groups()
    days = {("", "S"): 1, ("", "E"): 31, ("B", "S"): 0, ("B", "E"): -1}
    return Months(int(n) * _MONTHS[letter], int(day) if day else days[of_business, end or "E"])


# From times -----------------------------------------------------------------------------------------------------------


def frequency_of(ticks: Ticks, starts: np.ndarray) -> Frequency | None:
    """The frequency of sequences of ascending times: all are on its grid, and its step is the most common one.

    Parameters
    ----------
    ticks : Ticks
        Of all sequences, one after the other.
    starts : ndarray of int, shape (n_sequences,)
        Where each begins.

    Returns
    -------
    Frequency or None
        None where there is none, or no two times are of one sequence.
    """
    inner = np.ones(len(ticks.clock), dtype=bool)
    inner[starts] = False
    if not inner.any():
        return None
    if not ticks.unit:
        return _of_numbers(np.diff(ticks.clock)[inner[1:]])
    first = ticks[np.repeat(starts, np.diff(np.append(starts, len(inner))))]
    for unit in _units(ticks, inner):
        positions = unit.positions(ticks, first)
        if not np.isnan(positions).any() and (n := _step(np.diff(positions)[inner[1:]])):
            return unit.times(n)
    return None


def _units(ticks: Ticks, inner: np.ndarray):
    """Frequencies to try on dates: months, business days, and steps as short as the shortest, in this order."""
    days = ticks.days
    months = days.astype("datetime64[M]")
    of_month = (days - months.astype("datetime64[D]")).astype(np.int64) + 1
    if (np.diff(months)[inner[1:]] > np.timedelta64(0, "M")).all():
        yield from (Months(1, day) for day in (31, int(of_month.max()), -1, 0))
    shortest = [int(np.diff(each)[inner[1:]].min()) for each in (ticks.clock, ticks.even)]
    per_tick = NANOSECONDS[ticks.unit]
    on_clock, even = (Even(size * per_tick, True, k == 0) for k, size in enumerate(shortest))
    if shortest[0] == ticks.per_day and np.is_busday(days).all():
        between = np.busday_count(days[:-1], days[1:]) < np.diff(days).astype(np.int64)
        if between[inner[1:]].any():  # a weekend that is not there
            yield BusinessDays()
    yield from (on_clock, even) if shortest[0] >= ticks.per_day else (even, on_clock)


def _step(steps: np.ndarray) -> int:
    """The shortest of steps, if all are multiples of it and none is more common; else 0."""
    shortest = int(steps.min())
    if shortest < 1 or (steps % shortest).any():
        return 0
    _, counts = np.unique(steps, return_counts=True)
    return shortest if counts[0] == counts.max() else 0


def _of_numbers(steps: np.ndarray) -> Even | None:
    """The frequency of numbers with these steps."""
    counts = np.rint(steps / steps.min())
    size = steps.sum() / counts.sum()
    if np.abs(steps / size - counts).max() > _ROUNDING or not _step(counts):
        return None
    return Even(int(size) if steps.dtype.kind == "i" and size == int(size) else float(size), False)
