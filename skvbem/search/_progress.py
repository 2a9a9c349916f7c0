"""How far a search is, told to callbacks and on the screen."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import numpy as np

from skvbem._compat import IterationReport
from skvbem.search._results import describe
from skvbem.search.execution.jobs import Record

# Seconds between lines, and their share of the time that has passed: hours are not told of every second.
_BETWEEN, _SHARE = 1.0, 0.02


class Progress:
    """Tells callbacks and, if asked to, the screen how far a search is.

    Parameters
    ----------
    owner : str
    verbose : int
        1 for lines now and then, 2 for one of every candidate too.
    report : IterationReport
    """

    def __init__(self, owner: str, verbose: int, report: IterationReport):
        self._owner, self._verbose, self._report = owner, verbose, report

    def tell(self, text: str) -> None:
        """Print a line, if the screen is told anything."""
        if self._verbose:
            print(f"[{self._owner}] {text}", flush=True)

    @contextmanager
    def stage(self, name: str, ranking: str, n: int | None, seconds: float | None = None) -> Iterator[Stage]:
        """What to call for every candidate of a stage; its end is told too.

        Parameters
        ----------
        name : str
        ranking : str
            The score whose best value is told.
        n : int or None
            Candidates there will be at most, if that is known.
        seconds : float or None
            After which the stage ends.
        """
        report = self._report.stage(name, "candidate", n)
        stage = Stage(f"[{self._owner}] {name}: ", self._verbose, report, ranking, n, seconds)
        yield stage
        stage.close()
        report.close()


class Stage:
    """One stage of a search, see `Progress.stage`."""

    def __init__(
        self, head: str, verbose: int, report: IterationReport, ranking: str, n: int | None, seconds: float | None
    ):
        self._head, self._verbose, self._report, self._ranking = head, verbose, report, ranking
        self._n, self._limit = n, seconds
        self._n_done, self._n_new, self._best = 0, 0, -np.inf
        self._began = self._told = time.monotonic()

    def __call__(self, setting: Mapping, record: Record, is_new: bool = True) -> bool:
        """Note one more candidate, new or known from before; true if a callback asks to stop."""
        self._n_done += 1
        self._n_new += is_new
        value = record.values.get(self._ranking, np.nan)
        self._best = max(self._best, value) if value == value else self._best
        if self._verbose > 1:
            outcome = f"failed: {record.failure.splitlines()[0]}" if record.failure else f"{value:.4f}"
            self._print(f"{self._count()}, {describe(setting)}: {outcome}{'' if is_new else ' (known from before)'}")
        now = time.monotonic()
        if self._verbose and self._n_done != self._n and now - self._told > max(_BETWEEN, _SHARE * (now - self._began)):
            self._told = now
            self._print(f"{self._so_far()}, {self._left(now - self._began)}")
        return self._report()

    def close(self) -> None:
        """Tell that the stage is over."""
        if self._verbose:
            self._print(f"{self._so_far()}, done in {duration(time.monotonic() - self._began)}")

    def _so_far(self) -> str:
        known = self._n_done - self._n_new
        return f"{self._count()} candidates{f' ({known} known from before)' if known else ''}, best {self._best:.4f}"

    def _count(self) -> str:
        return f"{self._n_done}" if self._n is None else f"{self._n_done} of {self._n}"

    def _left(self, passed: float) -> str:
        """The time left for a stage, from what new candidates took; the time passed if their number is not known."""
        limits = [] if self._limit is None else [max(self._limit - passed, 0.0)]
        if self._n is not None and self._n_new:
            limits.append(passed / self._n_new * max(self._n - self._n_done, 0))
        return f"about {duration(min(limits))} left" if limits else f"{duration(passed)} so far"

    def _print(self, text: str) -> None:
        print(self._head + text, flush=True)


def duration(seconds: float) -> str:
    """A time in words: in seconds, minutes or hours."""
    if seconds < 100:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
