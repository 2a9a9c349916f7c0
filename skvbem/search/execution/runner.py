"""Candidates tried, each once: here or by workers, whichever is over sooner, until time or their number runs out.

What a candidate's record is does not depend on where it was made, nor on the order in which it was.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from itertools import takewhile
from typing import Self

from skvbem._compat import is_pool_warm
from skvbem.search.checkpoint.checkpoint import Checkpoint
from skvbem.search.execution.deadlines import Deadline
from skvbem.search.execution.jobs import Job, Record
from skvbem.search.execution.workers import Outcome, Workers, attempt
from skvbem.search.tuning import TUNING


class Runner:
    """Tries candidates, each once however often it is asked for. A context: workers are let go at its end.

    Parameters
    ----------
    job : Job
    n_jobs : int or None
        Workers, as joblib understands it.
    seconds : float or None
        After which no candidate is begun, but for the first.
    most : int or None
        Most candidates.
    checkpoint : Checkpoint, optional
        Holds records of candidates tried before, and keeps new ones.
    stage : str, optional
        What tells these records in the checkpoint from others of the same candidates.
    tell : callable of (setting, Record, bool), optional
        Called here for every record, and whether it is new or from the checkpoint; true ends the search.

    Attributes
    ----------
    over : str
        Why candidates are left untried: "max_candidates", "time_budget", "stopped", or "".
    """

    def __init__(
        self,
        job: Job,
        *,
        n_jobs: int | None = None,
        seconds: float | None = None,
        most: int | None = None,
        checkpoint: Checkpoint | None = None,
        stage: str = "",
        tell: Callable[[Mapping, Record, bool], bool] | None = None,
    ):
        self.job, self.over = job, ""
        self._checkpoint = Checkpoint() if checkpoint is None else checkpoint
        self._deadline = None if seconds is None else Deadline.after(seconds)
        self._workers = Workers(job, n_jobs, self._checkpoint.keep, self._deadline)
        self._known = dict(self._checkpoint.known)
        self._stage, self._tell, self._most = stage, tell, most
        self._asked: dict[str, dict] = {}
        self._records: dict[str, Record] = {}
        self._n_tried, self._seconds = 0, 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error) -> None:
        self._workers.close()

    def __call__(
        self, settings: Sequence[Mapping], *, at_any_time: bool = False, are_new: bool = False
    ) -> list[Record | None]:
        """The record of each candidate; None for those not tried since the search is over.

        Parameters
        ----------
        settings : sequence of mapping
        at_any_time : bool, default=False
            Whether they are tried though it is late, and here: what is known of them already is only to be written.
        are_new : bool, default=False
            Whether no two of them, and of all that were and will be asked for, are one model.
        """
        # to name thousands of large graphs takes seconds
        on_time = takewhile(lambda _: at_any_time or not self.is_late(), settings)
        names = [self._stage + self._checkpoint.name(setting, are_new) for setting in on_time]
        new: deque[tuple[str, Mapping]] = deque()
        for name, setting in zip(names, settings):
            if name in self._asked:
                continue
            if self.is_full():
                break
            self._asked[name] = dict(setting)
            if name in self._known:
                self._note(name, self.job.as_scored(self._known[name]), is_new=False)
            else:
                new.append((name, self._asked[name]))
        if at_any_time:
            for name, setting in new:
                self._add(attempt(self.job, name, setting, self._checkpoint.keep))
        else:
            self._try(new)
        return [self._records.get(name) for name in names] + [None] * (len(settings) - len(names))

    @property
    def is_limited(self) -> bool:
        """True if a number of candidates or of seconds ends the search."""
        return self._most is not None or self._deadline is not None

    def is_full(self) -> bool:
        """True if no further candidate may be tried, however early it is: to look for more is of no use."""
        if self._most is None or len(self._asked) < self._most:
            return False
        self.over = self.over or "max_candidates"
        return True

    @property
    def tried(self) -> list[tuple[dict, Record]]:
        """All candidates tried and their records, in the order in which they were first asked for."""
        return [(setting, self._records[name]) for name, setting in self._asked.items() if name in self._records]

    def is_late(self) -> bool:
        """True if no further candidate may be begun, by the clock or by a callback."""
        if self._deadline is not None and self._records and self._deadline.has_passed():
            self.over = "time_budget"
        return self.over in ("time_budget", "stopped")

    def _note(self, name: str, record: Record, *, is_new: bool) -> None:
        self._records[name] = record
        if self._tell is not None and self._tell(self._asked[name], record, is_new):
            self.over = "stopped"

    def _add(self, outcome: Outcome) -> None:
        """Take notice of the record of a candidate just tried."""
        self._n_tried += 1
        self._seconds += outcome.record.seconds
        if outcome.is_whole:
            self._checkpoint.note(outcome.name, outcome.record, outcome.is_kept)
        self._note(outcome.name, outcome.record, is_new=True)

    def _try(self, waiting: deque[tuple[str, Mapping]]) -> None:
        """Try candidates here, or from some moment on by workers."""
        n_here = len(waiting) // 4
        while waiting and not self.is_late() and not self._workers_pay(len(waiting), n_here):
            self._add(attempt(self.job, *waiting.popleft(), self._checkpoint.keep))
            n_here -= 1
        if waiting and not self.is_late():
            with closing(self._workers.tried(waiting, self.is_late, self._seconds_each)) as outcomes:
                for outcome in outcomes:
                    self._add(outcome)

    def _seconds_each(self) -> float | None:
        """Seconds that a candidate took, on average; None if that is not known."""
        return self._seconds / self._n_tried if self._n_tried else None

    def _workers_pay(self, n_waiting: int, n_here: int) -> bool:
        """True if workers would be done with so many candidates sooner, as far as is known."""
        if self._workers.n == 1 or n_waiting < 2 or (self._deadline is not None and not self._records):
            return False
        each, is_warm = self._seconds_each(), is_pool_warm()
        if each is None or not (is_warm or self._seconds > TUNING.measured_seconds or n_here < 0):
            return each is None and is_warm
        return each * n_waiting > (TUNING.batch_seconds if is_warm else TUNING.start_seconds)
