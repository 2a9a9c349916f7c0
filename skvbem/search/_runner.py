"""Candidates tried in parallel, each once: batches of measured cost, workers that die, time that runs out.

A candidate takes milliseconds and a task of joblib some too, so that a task is a batch of candidates whose cost was
measured on the first ones. What a candidate's record is does not depend on batches, workers or their order.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from joblib import effective_n_jobs
from sklearn.utils.parallel import Parallel, delayed

from skvbem._compat import BrokenPool, is_pool_warm, returns_one_by_one
from skvbem.search._jobs import Job, Record, digest

# Seconds that a batch should take.
_BATCH = 0.25
# Work worth sending to workers that are there already, and to workers that must be started first; seconds.
_WORTH_SENDING, _WORTH_STARTING = 0.2, 3.0
# The cost is known after so many seconds of trying candidates here.
_MEASURED = 0.1


def records_of(job: Job, settings: Sequence[Mapping], keep: Callable[[str, Record], object] | None) -> list[Record]:
    """The records of some candidates, handed to `keep` one by one as they are made."""
    found = []
    for setting in settings:
        found.append(job.record(setting))
        if keep is not None:
            keep(digest(setting), found[-1])
    return found


class Runner:
    """Tries candidates, each once however often it is asked for.

    Parameters
    ----------
    job : Job
    n_jobs : int or None
        Workers, as joblib understands it.
    seconds : float or None
        After which no candidate is begun.
    most : int or None
        Most candidates.
    known : mapping of str to Record
        Records of candidates tried before, by digest.
    keep : callable of (str, Record), optional
        Picklable; called wherever a candidate is tried, as soon as it was.
    tell : callable of (setting, Record), optional
        Called here for every new record; true ends the search.

    Attributes
    ----------
    over : str
        Why candidates are left untried: "max_candidates", "time_limit", "stopped", or "".
    """

    def __init__(
        self,
        job: Job,
        *,
        n_jobs: int | None = None,
        seconds: float | None = None,
        most: int | None = None,
        known: Mapping[str, Record] | None = None,
        keep: Callable[[str, Record], object] | None = None,
        tell: Callable[[Mapping, Record], bool] | None = None,
    ):
        self.job, self.over = job, ""
        self.n_jobs, self._given_n_jobs = effective_n_jobs(n_jobs), n_jobs
        self._keep, self._tell, self._most = keep, tell, most
        self._until = None if seconds is None else time.monotonic() + seconds
        self._known = dict(known or {})
        self._asked: dict[str, dict] = {}
        self._records: dict[str, Record] = {}

    def __call__(self, settings: Sequence[Mapping]) -> list[Record | None]:
        """The record of each candidate; None for those not tried since the search is over."""
        names = [digest(setting) for setting in settings]
        new: dict[str, dict] = {}
        for name, setting in zip(names, settings):
            if name in self._asked:
                continue
            if self._most is not None and len(self._asked) >= self._most:
                self.over = self.over or "max_candidates"
                break
            self._asked[name] = dict(setting)
            if name in self._known:
                self._note(name, self._known[name])
            else:
                new[name] = dict(setting)
        if new and not self._late():
            self._try(new)
        return [self._records.get(name) for name in names]

    @property
    def found(self) -> list[tuple[dict, Record]]:
        """All candidates tried and their records, in the order in which they were first asked for."""
        return [(setting, self._records[name]) for name, setting in self._asked.items() if name in self._records]

    def _late(self) -> bool:
        if self._until is not None and time.monotonic() >= self._until and self._records:
            self.over = "time_limit"
        return self.over in ("time_limit", "stopped")

    def _note(self, name: str, record: Record) -> None:
        self._records[name] = record
        if self._tell is not None and self._tell(self._asked[name], record):
            self.over = "stopped"

    def _try(self, new: dict[str, dict]) -> None:
        """Try some candidates here, then the rest by workers if that pays."""
        waiting, began, n_tried = list(new), time.perf_counter(), 0
        while waiting and not self._late():
            spent = time.perf_counter() - began
            if self.n_jobs > 1 and (spent > _MEASURED or n_tried > len(new) // 4):
                least = _WORTH_SENDING if is_pool_warm() else _WORTH_STARTING
                if spent / max(n_tried, 1) * len(waiting) > least:
                    break
            name = waiting.pop(0)
            n_tried += 1
            self._note(name, records_of(self.job, [new[name]], self._keep)[0])
        if waiting and not self._late():
            each = max((time.perf_counter() - began) / max(n_tried, 1), 1e-4)
            size = max(1, min(int(_BATCH / each), -(-len(waiting) // (4 * self.n_jobs))))
            for name, record in self._by_workers([waiting[at : at + size] for at in range(0, len(waiting), size)], new):
                self._note(name, record)

    def _by_workers(self, batches: list[list[str]], new: Mapping[str, dict]) -> Iterator[tuple[str, Record]]:
        """Records as workers make them. Of candidates in work when a worker died each is tried once more, alone."""
        done: set[int] = set()
        while len(done) < len(batches) and not self._late():
            sent: set[int] = set()
            try:
                for at, records in self._stream(batches, done, sent, new):
                    done.add(at)
                    yield from zip(batches[at], records)
            except BrokenPool:
                for at in sorted(sent - done):
                    done.add(at)
                    for name in batches[at]:
                        yield name, self._alone(new[name])

    def _stream(self, batches, done, sent, new) -> Iterator[tuple[int, list[Record]]]:
        def tasks():
            for at, batch in enumerate(batches):
                if at not in done and not self._late():
                    sent.add(at)
                    yield delayed(_numbered)(at, self.job, [new[name] for name in batch], self._keep)

        how: dict[str, Any] = {"return_as": "generator_unordered"} if returns_one_by_one() else {}
        # few batches wait at a worker, so that few candidates are in doubt when one dies
        yield from Parallel(n_jobs=self._given_n_jobs, pre_dispatch="2*n_jobs", batch_size=1, **how)(tasks())

    def _alone(self, setting: Mapping) -> Record:
        """The record of a candidate that may have killed its worker, tried in one again."""
        try:
            # a second task, of nothing, keeps joblib from trying the first one in this process
            tasks = (delayed(records_of)(self.job, some, self._keep) for some in ([setting], []))
            return Parallel(n_jobs=max(self.n_jobs, 2), batch_size=1)(tasks)[0][0]
        except BrokenPool:
            return self.job.failed("The worker that tried it died twice: killed, or out of memory.")


def _numbered(at: int, job: Job, settings: Sequence[Mapping], keep) -> tuple[int, list[Record]]:
    return at, records_of(job, settings, keep)
