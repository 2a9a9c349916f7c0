"""Candidates tried by workers in parallel, whichever backend of joblib they come from.

A candidate takes milliseconds and a task of joblib some too, so that a task is a batch of candidates, cut when it is
sent by what candidates have cost so far. The job, which holds the data, is pickled once; its arrays lie beside the
pickle, so that a backend shares them among the tasks (a memory map, or data scattered to a cluster) instead of sending
them with each.
"""

from __future__ import annotations

import os
import pickle
import threading
import time
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping
from itertools import count
from math import inf
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs, parallel_config
from sklearn.utils.parallel import Parallel, delayed

from skvbem._arithmetic import arithmetic
from skvbem._compat import has_shared_memory, hold_workers, in_store, pickled, returns_one_by_one, worker_deaths
from skvbem._lazy import cached_property
from skvbem._progress import CANDIDATE, long_call, working_for
from skvbem.emissions.registry import know_emissions, registered_emissions
from skvbem.search.execution.deadlines import Deadline, end_with
from skvbem.search.execution.jobs import Job, Record
from skvbem.search.tuning import TUNING

Keep = Callable[[str, Record], bool]


class Outcome(NamedTuple):
    """A candidate's record, whether it is on disk, and whether nothing of it was left out for lack of time."""

    name: str
    record: Record
    is_kept: bool = False
    is_whole: bool = True


class Batch(NamedTuple):
    """The outcomes of the first candidates of a batch, and the error that ends the search."""

    number: int
    outcomes: list[Outcome]
    error: Exception | None


@arithmetic
def attempt(job: Job, name: str, setting: Mapping, keep: Keep | None) -> Outcome:
    """The outcome of a candidate tried in this process, kept at once; errors are those that a job lets through."""
    one_worker = parallel_config(backend="threading", n_jobs=1)  # unless the estimator has its own `n_jobs`
    with one_worker, long_call(CANDIDATE) as call:
        record = job.record(setting)
    is_kept = keep is not None and not record.failure and not call.was_cut and keep(name, record)
    return Outcome(name, record, is_kept, not call.was_cut)


class Shared:
    """A job shared among threads, or kept in the process that made it.

    Parameters
    ----------
    job : Job
    """

    def __init__(self, job: Job):
        self.job = job


class Packed:
    """A job pickled once, with its arrays beside it.

    Parameters
    ----------
    head : ndarray of uint8
        The pickle.
    buffers : tuple of ndarray of uint8
        Memory of the arrays, which is not copied.
    """

    def __init__(self, head: np.ndarray, buffers: tuple[np.ndarray, ...]):
        self._head, self._buffers = head, buffers

    @classmethod
    def of(cls, job: Job) -> Packed:
        """A job, packed."""
        buffers: list[np.ndarray] = []

        def keep_inside(buffer: pickle.PickleBuffer) -> bool:
            memory = np.frombuffer(buffer.raw(), np.uint8)
            if memory.nbytes >= TUNING.shared_bytes:
                buffers.append(memory)
            return memory.nbytes < TUNING.shared_bytes

        head = np.frombuffer(pickled((registered_emissions(), job), keep_inside), np.uint8)
        return cls(head, tuple(buffers))

    @cached_property
    def job(self) -> Job:
        """The job as it was, on the memory of the buffers, once the emissions are known that it may name."""
        emissions, job = pickle.loads(self._head.data, buffers=self._buffers)
        know_emissions(emissions)
        return job

    def __reduce__(self):
        return type(self), (self._head, self._buffers)

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self._head.nbytes + sum(each.nbytes for each in self._buffers)


class Stored:
    """A job in the store of a cluster.

    Parameters
    ----------
    taken : callable
        Returns the packed job, in any worker.
    """

    def __init__(self, taken: Callable[[], Packed]):
        self._taken = taken

    @property
    def job(self) -> Job:
        """The job as it was, on the memory of the store."""
        return self._taken().job


def data_for_workers(job: Job) -> Shared | Packed | Stored:
    """The job as it is sent to the workers of the backend in force."""
    if has_shared_memory():
        return Shared(job)
    packed = Packed.of(job)
    taken = in_store(packed)
    return packed if taken is None else Stored(taken)


def try_batch(
    number: int,
    data: Shared | Packed | Stored,
    batch: list[tuple[str, Mapping]],
    keep: Keep | None,
    deadline: Deadline | None,
    parent: int,
) -> Batch:
    """Outcomes of the candidates of a batch that a worker began before the deadline."""
    end_with(parent)
    outcomes: list[Outcome] = []
    job = None
    for name, setting in batch:
        if deadline is not None and deadline.has_passed():
            break
        try:
            job = data.job if job is None else job
            with working_for("a search", None if deadline is None else time.monotonic() + deadline.seconds_left()):
                outcomes.append(attempt(job, name, setting, keep))
        except Exception as error:
            return Batch(number, outcomes, _portable(error))
    return Batch(number, outcomes, None)


class Workers:
    """The workers of joblib's backend in force, from the first candidate sent to them until they are let go.

    Parameters
    ----------
    job : Job
    n_jobs : int or None
        As joblib understands it.
    keep : callable of (str, Record), optional
        Picklable; called wherever a candidate is tried, as soon as it was. True if the record is on disk.
    deadline : Deadline, optional
        After which no candidate is begun.
    """

    def __init__(self, job: Job, n_jobs: int | None, keep: Keep | None, deadline: Deadline | None):
        self.n = effective_n_jobs(n_jobs)
        self._job, self._n_jobs, self._keep, self._deadline = job, n_jobs, keep, deadline
        self._data: Shared | Packed | Stored | None = None
        self._parallel: Parallel | None = None

    def tried(
        self,
        waiting: deque[tuple[str, Mapping]],
        is_late: Callable[[], bool],
        seconds_each: Callable[[], float | None],
    ) -> Generator[Outcome, None, None]:
        """Outcomes as workers have them, of all that wait unless it gets late; close it to stop the workers.

        Of the batches in work when a worker died each candidate is sent by itself, and those in work when one dies
        again are tried once more, one after the other.
        """
        suspects: deque[tuple[str, Mapping]] = deque()

        def batches() -> Iterator[list[tuple[str, Mapping]]]:
            n_left = self._n_at_once(seconds_each())
            while suspects and not is_late():
                yield [suspects.popleft()]
            while waiting and n_left > 0 and not is_late():
                n_left -= 1
                each = seconds_each()
                size = 1 if each is None else int(TUNING.batch_seconds / max(each, 1e-6))
                size = min(size, -(-len(waiting) // (4 * self.n)))
                yield [waiting.popleft() for _ in range(max(size, 1))]

        while (waiting or suspects) and not is_late():
            sent: dict[int, list[tuple[str, Mapping]]] = {}
            try:
                for batch, outcomes in self._stream(batches(), sent):
                    waiting.extendleft(reversed(batch[len(outcomes) :]))
                    yield from outcomes
            except worker_deaths():
                self.close()
            for batch in sent.values():
                if len(batch) == 1:
                    yield from self._alone(*batch[0])
                else:
                    suspects.extend(batch)

    def _n_at_once(self, seconds_each: float | None) -> float:
        """Batches to send before the first comes back: not all, where joblib returns all at once in the end."""
        if returns_one_by_one():
            return inf
        return self.n if seconds_each is None else TUNING.n_round * self.n

    def close(self) -> None:
        """Let the workers go, to whoever calls joblib next."""
        parallel, self._parallel = self._parallel, None
        if parallel is not None:
            parallel.__exit__(None, None, None)

    def _alone(self, name: str, setting: Mapping) -> list[Outcome]:
        """The outcome of a candidate that may have killed its worker, while nothing else is in work; none if late."""
        try:
            return [outcome for _, outcomes in self._stream(iter([[(name, setting)]]), {}) for outcome in outcomes]
        except worker_deaths():
            self.close()
            why = "The worker that tried it died twice: it was killed, or ran out of memory."
            return [Outcome(name, self._job.failed(" ".join(filter(None, (why, self._job.memory_estimate(setting))))))]

    def _stream(self, batches: Iterator[list], sent: dict[int, list]) -> Iterator[tuple[list, list[Outcome]]]:
        """Batches and their outcomes; `sent` holds those that were sent and did not come back."""
        if self._data is None:
            self._data = data_for_workers(self._job)
        sending = threading.Lock()  # joblib asks for tasks from threads of its own, also when it has just failed

        def tasks():
            for number in count():
                with sending:
                    batch = next(batches, None)
                    if batch is None:
                        return
                    sent[number] = batch
                yield delayed(try_batch)(number, self._data, batch, self._keep, self._deadline, os.getpid())

        results = self._opened()(tasks())
        try:
            for number, outcomes, error in results:
                yield sent.pop(number), outcomes
                if error is not None:
                    raise error
        finally:
            with sending:
                batches = iter(())
            _close(results)

    def _opened(self) -> Parallel:
        """joblib's workers, held from now on: so data are shared, and pools are made, once."""
        if self._parallel is None:
            how: dict[str, Any] = {"return_as": "generator_unordered"} if returns_one_by_one() else {}
            # few batches wait at a worker, so that few candidates are in doubt when one dies
            self._parallel = Parallel(n_jobs=self._n_jobs, pre_dispatch="2*n_jobs", batch_size=1, **how)
            hold_workers(self._parallel)
        return self._parallel


def _close(results) -> None:
    """Stop the workers of results that nobody waits for any more; no news to whoever stopped them."""
    if hasattr(results, "close"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results.close()


def _portable(error: Exception) -> Exception:
    """The error, or what can be said of it, in a form that processes can send to each other."""
    error.add_note("In a worker:\n" + "".join(traceback.format_exception(error)))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}\n" + "\n".join(error.__notes__))
    return error
