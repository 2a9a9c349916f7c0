"""Text of networks from paths, open files, or the text itself, and to them."""

from __future__ import annotations

import gzip
import os
import stat
import tempfile
import zlib
from contextlib import suppress

from skvbem._names import shown
from skvbem.errors import TooLargeError
from skvbem.formats.tokens import Text

#: The end of the names of files that are not complete yet.
PART = ".part"
_GZIP = b"\x1f\x8b"
# Of an open file so much is read at once: files take memory for all that they are asked for, whatever their length.
_PIECE = 2**20


def path_of(source) -> str | None:
    """The path of a source that is one, or of an open file; None of a text."""
    if isinstance(source, str):
        is_path = len(source) <= 4096 and source.strip() and not set(source) & set("{<\r\n\0")
        return source if is_path else None
    named = source if isinstance(source, os.PathLike) else getattr(source, "name", None)
    return os.fspath(named) if isinstance(named, (str, os.PathLike)) else None


def read_text(source, max_bytes: int, what: str) -> Text:
    """The text of a source, its line breaks made uniform; `what` is the kind of text, as errors call it."""
    is_text = isinstance(source, str) and path_of(source) is None
    if is_text or isinstance(source, (bytes, bytearray, memoryview)):
        data, origin = source, f"{what} text"
    elif isinstance(source, (str, os.PathLike)):
        origin = os.fspath(source)
        data = read_bytes(source, max_bytes)
    elif hasattr(source, "read"):
        origin = str(getattr(source, "name", f"{what} text"))
        pieces, size = [], 0
        while size <= max_bytes and (piece := source.read(min(max_bytes + 1 - size, _PIECE))):
            pieces.append(piece)
            size += len(piece)
        data = type(pieces[0])().join(pieces) if pieces else ""
    else:
        raise TypeError(f"source must be a path, {what} text or a file object. Got {shown(source)} instead.")
    is_binary = not isinstance(data, str)
    if is_binary and bytes(data[:2]) == _GZIP:
        data = _unpacked(bytes(data), max_bytes, origin)
    if len(data) > max_bytes:
        raise TooLargeError(f"{origin}: the text is longer than max_bytes={max_bytes}.")
    if is_binary:
        data = bytes(data)
        try:
            data = data.decode("utf-8")
        except UnicodeDecodeError as error:
            line, column = data.count(b"\n", 0, error.start) + 1, error.start - data.rfind(b"\n", 0, error.start)
            raise ValueError(
                f"{origin}, line {line}, column {column}: byte 0x{data[error.start]:02x} is not UTF-8; save it as such."
            ) from None
    return Text(data.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n"), origin)


def _unpacked(data: bytes, max_bytes: int, origin: str) -> bytes:
    """What gzip has compressed; of more than `max_bytes` one byte more than these."""
    unpacker = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    try:
        unpacked = unpacker.decompress(data, max_bytes + 1)
    except zlib.error as error:
        raise ValueError(f"{origin} is no whole gzip file: {error}. Fetch or write it again.") from None
    if len(unpacked) <= max_bytes and not unpacker.eof:
        raise ValueError(f"{origin} is no whole gzip file: it ends too early. Fetch or write it again.")
    return unpacked


def read_bytes(path, max_bytes: int) -> bytes:
    """The bytes of a regular file; of one that is longer than `max_bytes` one more than these."""
    _check_regular(path)
    with open(path, "rb") as file:
        # No more than there is: memory is taken for the whole argument of `read`.
        return file.read(int(min(max_bytes, os.fstat(file.fileno()).st_size)) + 1)


def write_text(text: str, path) -> None:
    """Write a text in UTF-8, compressed if the path ends with .gz; as `write_bytes` does."""
    data = text.encode()
    # Without the time of writing, so that equal networks are equal files.
    write_bytes(gzip.compress(data, mtime=0) if os.fsdecode(path).endswith(".gz") else data, path)


def write_bytes(data: bytes, path) -> None:
    """Write a file, or replace it once the new one is complete."""
    _check_regular(path)
    path = os.path.realpath(path)
    with open(path, "ab"):  # makes the file with the usual permissions; one already there stays as it is
        pass
    write_atomically(path, data, stat.S_IMODE(os.stat(path).st_mode))


def write_atomically(path: str, data: bytes, mode: int) -> None:
    """Replace a file: after a crash at any moment it holds what it did before, or the new bytes.

    Raises
    ------
    OSError
        With the path, if there is no room for it or it cannot be written.
    """
    folder, name = os.path.split(path)
    descriptor, part = tempfile.mkstemp(prefix=f"{name}.", suffix=PART, dir=folder)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.chmod(part, mode)
            os.fsync(descriptor)
        os.replace(part, path)
    except BaseException as error:
        with suppress(OSError):
            os.unlink(part)
        if isinstance(error, OSError):
            error.filename = path  # which a full disk does not tell
        raise
    _sync_folder(folder)


def _sync_folder(folder: str) -> None:
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _check_regular(path):
    try:
        is_a_name = b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:  # half of a character
        is_a_name = False
    if not is_a_name:
        raise ValueError(f"The path {shown(path)} holds characters that no name of a file may have. Give another.")
    # Opening a pipe that nobody writes to would wait for ever.
    if os.path.exists(path) and not os.path.isfile(path):
        raise OSError(f"{os.fspath(path)!r} is no regular file.")
