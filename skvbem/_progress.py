"""The progress, the cost and the time budget of long calls, for all of them alike.

A public call that may take long opens `long_call`. Loops within it count their `steps`, and ask `is_over` before they
begin what may be left out. Calls within calls, such as the evidences of the candidates of a search, share the outermost
one: its line moves, and the earliest of all deadlines holds. Where nothing is at work `steps` and `is_over` do nothing.

Every default budget counts work (draws, steps, candidates), so that the same seed gives the same result. Only a
`time_budget` that a user gives ends work by the clock.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from skvbem._arguments import check_argument, is_real

#: The logger of the library, which has the expected cost of long calls.
LOGGER = logging.getLogger("skvbem")
# Seconds: between two changes of a line that moves; between two lines where none moves; of work before its cost is
# estimated; of a call worth a line of its cost. By hand.
_TICK, _LINE_TICK, _MEASURED, _LONG = 0.1, 1.0, 1.0, 5.0
# The share of the time passed that goes by between two lines, so that hours are not told by the second; by hand.
_SHARE = 0.02


class LongCall:
    """A long call at work: how far it is, and when it must end.

    Parameters
    ----------
    name : str
    verbose : int
        Above 0 a line on the screen says how far it is, unless that of an outer call does.
    deadline : float or None
        On the clock of `time.monotonic`.
    progress : callable of (int, int) or None
        Told the number of outermost steps that are done, and of all, whenever one is done.
    outer : LongCall or None
        The call within which this one is.
    is_silent : bool
        Whether nothing is said in the log, as in workers.
    """

    def __init__(
        self,
        name: str,
        verbose: int = 0,
        deadline: float | None = None,
        progress: Callable[[int, int], object] | None = None,
        outer: LongCall | None = None,
        is_silent: bool = False,
    ):
        self.name, self.deadline, self.progress, self.outer = name, deadline, progress, outer
        self.levels: list[Steps] = [] if outer is None else outer.levels
        self.was_cut, self._is_silent = False, is_silent
        self._base, self._began, self._last = len(self.levels), time.monotonic(), -float("inf")
        self._screen = Screen(f"[{name}] ") if verbose and not (outer and outer.is_shown) else None
        #: Called after each step of work, for further lines.
        self.on_tick: Callable[[], object] | None = None

    @property
    def is_shown(self) -> bool:
        """True if a line on the screen says how far this call is, or one around it."""
        return self._screen is not None or (self.outer is not None and self.outer.is_shown)

    @property
    def own_levels(self) -> list[Steps]:
        """The steps that are counted within this call, the outermost first."""
        return self.levels[self._base :]

    def is_over(self) -> bool:
        """True if time is up, so that work is left out."""
        over = self.deadline is not None and time.monotonic() >= self.deadline
        self.was_cut |= over
        return over

    def seconds_left(self) -> float | None:
        """Seconds until the deadline; None if there is none."""
        return None if self.deadline is None else max(self.deadline - time.monotonic(), 0.0)

    def share_done(self) -> float | None:
        """The share of the outermost steps that is done; None if their number is not known."""
        share: float | None = None
        for level in reversed(self.own_levels):
            share = None if level.n is None else min((level.done + (share or 0.0)) / max(level.n, 1), 1.0)
        return share

    def expected(self) -> float | None:
        """Seconds that all of the outermost steps will have taken; None if that is not known."""
        share = self.share_done()
        return (time.monotonic() - self.own_levels[0].began) / share if share else None

    def in_words(self) -> str:
        """The steps done and the time left, or the time passed where that is not known."""
        counts = ", ".join(each.in_words() for each in self.own_levels[:2]) or "at work"
        expected, left = self.expected(), self.seconds_left()
        limits = [] if left is None else [left]
        if expected is not None:
            limits.append(max(expected - (time.monotonic() - self.own_levels[0].began), 0.0))
        passed = duration(time.monotonic() - self._began)
        return f"{counts}, about {duration(min(limits))} left" if limits else f"{counts}, {passed} so far"

    def tell(self) -> None:
        """Bring the line on the screen up to date, and say once in the log what a long call costs."""
        passed = time.monotonic() - self._began
        if self._screen is not None and passed - self._last >= self._screen.seconds_between(passed):
            self._last = passed
            self._screen.write(self.in_words())
        if self.on_tick is not None:
            self.on_tick()
        if self.outer is not None:
            self.outer.tell()
        elif not self._is_silent and passed >= _MEASURED:
            self._tell_cost(passed)

    def _tell_cost(self, passed: float) -> None:
        expected, left = self.expected(), self.seconds_left()
        if (passed if expected is None else expected) < _LONG:
            return
        self._is_silent = True
        cost = f"takes more than {duration(passed)}" if expected is None else f"will take about {duration(expected)}"
        limit = "'time_budget' (seconds) ends it earlier" if left is None else f"its budget ends in {duration(left)}"
        LOGGER.warning("%s %s: %s, verbose=1 shows how far it is.", self.name, cost, limit)

    def close(self) -> None:
        """End the line on the screen."""
        if self._screen is not None:
            self._screen.tell(f"done in {duration(time.monotonic() - self._began)}")


class Steps:
    """Steps of one kind within a long call, to be called when one is done, or several.

    Parameters
    ----------
    call : LongCall or None
        None where nothing is at work.
    n : int or None
        How many there will be, if that is known.
    name : str
        What they are, in the plural.
    """

    def __init__(self, call: LongCall | None, n: int | None, name: str):
        self._call, self.n, self.name, self.done, self.began = call, n, name, 0, time.monotonic()

    def __call__(self, n_done: int = 1) -> None:
        self.done += n_done
        if self._call is not None:
            self._call.tell()
            if self._call.progress is not None and self._call.own_levels[:1] == [self]:
                self._call.progress(self.done, self.done if self.n is None else self.n)

    def in_words(self) -> str:
        """The number of steps done, and of all."""
        return f"{self.done} {'' if self.n is None else f'of {self.n} '}{self.name}"


class Screen:
    """A line on the screen that moves in terminals and notebooks; elsewhere one line after the other.

    Parameters
    ----------
    head : str
        What each line begins with.
    """

    def __init__(self, head: str):
        self._head, self._width = head, 0
        self.moves = "ipykernel" in sys.modules or bool(getattr(sys.stdout, "isatty", bool)())

    def seconds_between(self, passed: float) -> float:
        """Seconds between two texts, once so many have passed: hours are not told of by the second."""
        return _TICK if self.moves else max(_LINE_TICK, _SHARE * passed)

    def write(self, text: str, is_last: bool = False) -> None:
        """Put a text in the place of the last one."""
        line = self._head + text
        if self.moves:
            print(f"\r{line:<{self._width}}", end="\n" if is_last else "", flush=True)
            self._width = 0 if is_last else len(line)
        else:
            print(line, flush=True)

    def tell(self, text: str) -> None:
        """Write a line that stays."""
        self.write(text, is_last=True)


_AT_WORK: ContextVar[LongCall | None] = ContextVar("at_work", default=None)


@contextmanager
def long_call(
    name: str,
    *,
    verbose: int = 0,
    time_budget: float | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Iterator[LongCall]:
    """A context within which a call is at work.

    Parameters
    ----------
    name : str
    verbose : int, default=0
        Above 0 a line says how far it is, unless that of an outer call does.
    time_budget : float, optional
        Seconds after which nothing is begun that can be left out.
    progress : callable of (int, int), optional
        Told the number of outermost steps that are done, and of all.

    Raises
    ------
    ValueError
        If the budget is no number of seconds.
    """
    check_time_budget(time_budget)
    is_right = isinstance(verbose, (bool, np.bool_)) or (is_real(verbose) and verbose >= 0)
    check_argument(is_right, "verbose", name, "True, False or a number >= 0", verbose)
    outer = _AT_WORK.get()
    deadlines = [] if time_budget is None else [time.monotonic() + time_budget]
    if outer is not None and outer.deadline is not None:
        deadlines.append(outer.deadline)
    call = LongCall(name, verbose, min(deadlines, default=None), progress, outer)
    with _at_work(call):
        call.tell()
        yield call
        call.close()
    if outer is not None and outer.deadline == call.deadline:
        outer.was_cut |= call.was_cut


def long_method(estimator, method: str, verbose: int | None, time_budget: float | None, **more):
    """The `long_call` of a method of an estimator, whose own `verbose` is the default."""
    verbose = getattr(estimator, "verbose", 0) if verbose is None else verbose
    return long_call(f"{type(estimator).__name__}.{method}", verbose=verbose, time_budget=time_budget, **more)


@contextmanager
def _at_work(call: LongCall) -> Iterator[None]:
    token = _AT_WORK.set(call)
    try:
        yield
    finally:
        _AT_WORK.reset(token)


@contextmanager
def steps(n: int | None = None, name: str = "steps") -> Iterator[Steps]:
    """A context in which steps of the call at work are counted; see `Steps`."""
    call = _AT_WORK.get()
    count = Steps(call, n, name)
    if call is None:
        yield count
        return
    call.levels.append(count)
    try:
        call.tell()
        yield count
    finally:
        call.levels.remove(count)


def is_over() -> bool:
    """True if the time of the call at work is up; each time that a loop asks, the line on the screen moves on."""
    call = _AT_WORK.get()
    if call is None:
        return False
    call.tell()
    return call.is_over()


def call_at_work() -> LongCall | None:
    """The call at work, for threads and processes that work for it; see `working_for`."""
    return _AT_WORK.get()


#: The name of a call that tries a candidate of a search.
CANDIDATE = "a candidate"


def is_candidate() -> bool:
    """True if the call at work is for a candidate of a search, in any process."""
    call = _AT_WORK.get()
    while call is not None and call.name != CANDIDATE:
        call = call.outer
    return call is not None


@contextmanager
def working_for(name: str, deadline: float | None) -> Iterator[LongCall]:
    """A context in which a thread or a worker works for the call of another, up to its deadline, and says nothing."""
    silent = LongCall(name, deadline=deadline, is_silent=True)
    with _at_work(silent):
        yield silent


def check_time_budget(seconds: Any) -> None:
    """Raise a ValueError if this is no number of seconds that work may take; None is without end."""
    if seconds is not None and not (is_real(seconds) and seconds >= 0):
        raise ValueError(f"A 'time_budget' must be None or seconds >= 0. Got {seconds!r}.")


def duration(seconds: float) -> str:
    """A time in words: in seconds, minutes or hours."""
    if seconds < 100:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
