"""How far a search is, told to callbacks and on the screen."""

from __future__ import annotations

import time
from collections.abc import Mapping

import numpy as np

from skvbem._compat import IterationReport
from skvbem.search._jobs import Record
from skvbem.search._results import describe


class Progress:
    """Tells callbacks and, if asked to, the screen how far a search is.

    Parameters
    ----------
    owner : str
    space : Space
    verbose : int
    report : IterationReport
    """

    def __init__(self, owner: str, space, verbose: int, report: IterationReport):
        self._owner, self._verbose, self._report = owner, verbose, report
        self._n, self._done, self._best = space.n_settings, 0, -np.inf
        self._began = self._said = time.monotonic()

    def again(self, n: int) -> None:
        """Begin a second round over so many candidates."""
        self._n, self._done, self._best, self._began = n, 0, -np.inf, time.monotonic()

    def __call__(self, setting: Mapping, record: Record) -> bool:
        """Note one more candidate; true if a callback asks to stop."""
        self._done += 1
        value = next(iter(record.values.values()), np.nan)
        if value > self._best:
            self._best = value
        now = time.monotonic()
        if self._verbose > 1:
            what = f"failed: {record.failure}" if record.failure else f"{value:.4f}"
            print(f"[{self._owner}] {describe(setting)}: {what}")
        if self._verbose and (now - self._said > 1.0 or self._done == self._n):
            left = (now - self._began) / self._done * max(self._n - self._done, 0)
            print(
                f"[{self._owner}] {self._done} of at most {self._n} candidates, best {self._best:.4f}, "
                f"at most about {left:.0f} s left"
            )
            self._said = now
        return self._report()
