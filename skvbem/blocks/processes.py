"""Parts of rows that processes of this machine read, such as memory-mapped arrays and functions that read files.

Processes are those of joblib. What is to stay for many passes is written to a temporary folder once, and every process
maps it into its memory: the system keeps one copy for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any
from weakref import finalize

import joblib
from joblib.externals.loky.process_executor import TerminatedWorkerError

from skvbem.blocks.elsewhere import BlocksElsewhere, Part, read
from skvbem.errors import LostBlockError

# How often parts are given out again after a process was killed.
_RETRIES = 2
# Parts whose results are waited for together.
_AT_ONCE = 64


class _Folder:
    """A temporary folder, which goes with this object."""

    def __init__(self) -> None:
        self.path = Path(mkdtemp(prefix="skvbem-"))
        finalize(self, rmtree, self.path, True)


class _Stored:
    """A value in a file of a folder, which stays as long as this."""

    def __init__(self, path: Path, folder: _Folder | None = None):
        self.path, self.folder = path, folder

    def __reduce__(self) -> tuple:
        return type(self), (self.path,)

    def value(self) -> Any:
        """The value, whose arrays are mapped from the file; what is written to them stays in this process."""
        return joblib.load(self.path, mmap_mode="c")


class Processes:
    """Takes steps to parts in processes of this machine.

    Parameters
    ----------
    n_jobs : int
        Number of processes.
    """

    def __init__(self, n_jobs: int):
        self.n_jobs = n_jobs

    def results(self, step: Callable[..., Any], parts: Sequence[Part]) -> Iterator:
        """What a step returns for each part, in the order of the parts."""
        for at in range(0, len(parts), _AT_ONCE):
            yield from self._taken(step, parts[at : at + _AT_ONCE])

    def _taken(self, step: Callable[..., Any], parts: Sequence[Part]) -> list:
        """What a step returns for each of few parts, given out again if a process was killed."""
        n_failed = 0
        while True:
            try:
                run = joblib.Parallel(self.n_jobs, backend="loky")
                return run(joblib.delayed(_taken)(step, part) for part in parts)
            except TerminatedWorkerError as error:
                n_failed += 1
                if n_failed > _RETRIES:
                    raise LostBlockError(
                        f"One of blocks {parts[0].number} to {parts[-1].number} of X ends the process that reads it, "
                        f"each of {_RETRIES + 1} times: {error}. Where memory is short, give smaller blocks, or a "
                        "smaller 'n_jobs'."
                    ) from error

    def kept(self, step: Callable[..., Any], parts: Sequence[Part]) -> list[Any]:
        """Files of what a step returns for each part."""
        folder = _Folder()
        paths = [folder.path / str(at) for at in range(len(parts))]
        to_files = [Part(part.number, (*part.items, path)) for part, path in zip(parts, paths)]
        for _ in self.results(_Written(step), to_files):
            pass
        return [_Stored(path, folder) for path in paths]


class _Written:
    """A step whose result goes to a file, the last item of a part."""

    def __init__(self, step: Callable[..., Any]):
        self.step = step

    def __call__(self, *items: Any) -> None:
        joblib.dump(self.step(*items[:-1]), items[-1])


def _taken(step: Callable[..., Any], part: Part) -> Any:
    """What a step returns for a part, in a process that reads it."""
    items = [item.value() if isinstance(item, _Stored) else read(part.number, item) for item in part.items]
    return step(*items)


def in_processes(blocks: Sequence, n_jobs: int) -> BlocksElsewhere:
    """Blocks, or functions that read them, as blocks that processes read and work on.

    Parameters
    ----------
    blocks : sequence
    n_jobs : int
        As joblib counts processes.
    """
    parts = [Part(number, (block,)) for number, block in enumerate(blocks)]
    return BlocksElsewhere(Processes(joblib.effective_n_jobs(n_jobs)), parts)
