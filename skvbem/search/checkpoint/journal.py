"""Files that survive: replaced as a whole or not at all, appended to line by line, held by one search at a time."""

from __future__ import annotations

import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from skvbem.errors import SearchCheckpointError
from skvbem.formats.files import PART
from skvbem.search.execution.deadlines import machine

try:
    import fcntl
except ImportError:  # Windows: nothing keeps two searches apart
    fcntl = None  # type: ignore[assignment]

_APPEND = os.O_RDWR | os.O_APPEND | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)


@contextmanager
def locked(path: str) -> Iterator[None]:
    """Hold the lock of a file, which no other process then gets; the file goes away with the process that dies.

    Raises
    ------
    SearchCheckpointError
        If another one holds it.
    """
    while True:
        descriptor = os.open(path, _APPEND | os.O_CREAT, 0o666)
        try:
            _lock_at_once(descriptor, path)
            if _is_at(descriptor, path):
                break
            os.close(descriptor)  # the one who held it has just removed it
        except BaseException:
            os.close(descriptor)
            raise
    try:
        os.ftruncate(descriptor, 0)
        with suppress(OSError):  # a full disk: whoever finds the file locked does not learn by whom
            os.write(descriptor, f"process {os.getpid()}".encode())
        yield
    finally:
        with suppress(OSError):
            os.unlink(path)
        os.close(descriptor)


def _lock_at_once(descriptor: int, path: str) -> None:
    if fcntl is None:
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(descriptor, 100, 0).decode(errors="replace")
        raise SearchCheckpointError(
            f"The checkpoint {path.removesuffix('.lock')!r} is in use by another search ({holder or 'just begun'}). "
            "Wait until that one ends, or give this one another file."
        ) from None


def _is_at(descriptor: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def read_whole(path: str) -> bytes | None:
    """The content of a file, None if there is none.

    Raises
    ------
    OSError
        If it cannot be read, or is no ordinary file.
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise OSError(f"The checkpoint {path!r} must be a file. It is a folder, a device or a pipe.")
    except FileNotFoundError:
        return None
    with open(path, "rb") as file:
        return file.read()


def remove_partial_files(path: str) -> None:
    """Remove partial files that crashes left of `write_atomically`."""
    folder, name = os.path.split(path)
    for other in os.listdir(folder):
        if other.startswith(f"{name}.") and other.endswith(PART):
            os.unlink(os.path.join(folder, other))


@dataclass(frozen=True)
class Journal:
    """A file of lines, each with a checksum, to which all processes of a machine may append at any time.

    What is appended is there when the process dies. A line that was being written then is cut off by whoever appends
    next, so that only the last line of a journal can be a torn one.

    Parameters
    ----------
    path : str
    machine : str
        Where it was made: locks, and appends that do not mix, can be relied on there.
    device, inode : int
        Of the file that was made.
    """

    path: str
    machine: str
    device: int
    inode: int

    @classmethod
    def made_at(cls, path: str) -> Journal:
        """A new journal, in place of any other."""
        with suppress(FileNotFoundError):
            os.unlink(path)
        descriptor = os.open(path, _APPEND | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            status = os.fstat(descriptor)
        finally:
            os.close(descriptor)
        return cls(path, machine(), status.st_dev, status.st_ino)

    def is_here(self) -> bool:
        """True if this process can see the file of the journal, and may append to it."""
        try:
            status = os.stat(self.path)
        except OSError:
            return False
        return machine() == self.machine and (status.st_dev, status.st_ino) == (self.device, self.inode)

    def append(self, body: bytes) -> None:
        """Append a line; after an OSError, such as of a full disk, the journal is as it was."""
        line = b"%08x %s\n" % (zlib.crc32(body), body)
        with self.opened() as descriptor:
            size = _whole_lines(descriptor)
            try:
                n_written = os.write(descriptor, line)
                if n_written < len(line):
                    raise OSError(f"No space left to write {self.path!r}.")
            except BaseException:
                os.ftruncate(descriptor, size)
                raise

    @contextmanager
    def opened(self) -> Iterator[int]:
        """The open descriptor of the file, to which nobody else appends meanwhile."""
        descriptor = os.open(self.path, _APPEND)
        try:
            if fcntl is not None:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield descriptor
        finally:
            os.close(descriptor)

    @property
    def n_bytes(self) -> int:
        """The length of the journal."""
        return os.stat(self.path).st_size


def lines_of(text: bytes) -> Iterator[tuple[int, bytes | None]]:
    """Number and body of every whole line of a journal, None for a body that is not what was written."""
    for number, line in enumerate(text.split(b"\n")[:-1], start=1):
        body = line[9:]
        yield number, body if line[:9] == b"%08x " % zlib.crc32(body) else None


def _whole_lines(descriptor: int) -> int:
    """The length of a journal, once a torn last line is cut off."""
    size = os.fstat(descriptor).st_size
    if size == 0 or _read_at(descriptor, size - 1, 1) == b"\n":
        return size
    size = _read_at(descriptor, 0, size).rfind(b"\n") + 1
    os.ftruncate(descriptor, size)
    return size


def _read_at(descriptor: int, at: int, n_bytes: int) -> bytes:
    os.lseek(descriptor, at, os.SEEK_SET)
    content = b""
    while len(content) < n_bytes and (piece := os.read(descriptor, n_bytes - len(content))):
        content += piece
    return content
