"""The machine, the deadline and the parent that the processes of one search share."""

from __future__ import annotations

import multiprocessing
import os
import platform
import threading
import time
import uuid
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from skvbem.search.tuning import TUNING


@cache
def machine() -> str:
    """A name of this machine since it was started: processes that share it share clocks, and locks of files."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return f"{platform.node()} {uuid.getnode():x}"


@dataclass(frozen=True)
class Deadline:
    """A moment to stop at that all workers know, wherever they are.

    Parameters
    ----------
    steady : float
        On the clock that is never set, which counts on the machine that made the deadline.
    wall : float
        On the clock on the wall, for all others.
    machine : str
    """

    steady: float
    wall: float
    machine: str

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        """The deadline so many seconds from now."""
        return cls(time.monotonic() + seconds, time.time() + seconds, machine())

    def has_passed(self) -> bool:
        """True if the deadline has passed."""
        return self.seconds_left() <= 0.0

    def seconds_left(self) -> float:
        """Seconds until the deadline, below 0 once it has passed."""
        return self.steady - time.monotonic() if machine() == self.machine else self.wall - time.time()


def end_with(parent: int) -> None:
    """Make this process end within seconds after the process `parent`, if that is the one which started it.

    The workers of joblib's own pool would else work on, and then wait five minutes for more. To be called at the start
    of every task: work that is left over when the parent dies tells a worker that has not yet had any to end as well.
    """
    starter = multiprocessing.parent_process()
    if starter is None or starter.pid != parent:
        return  # a thread of the parent itself, or a worker of someone else's cluster
    if os.getppid() != parent:
        os._exit(1)
    if not any(thread.name == _watch.__qualname__ for thread in threading.enumerate()):
        threading.Thread(target=_watch, args=(parent,), name=_watch.__qualname__, daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(TUNING.tick)
    os._exit(1)
