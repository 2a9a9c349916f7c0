"""The container of a saved fit: a zip archive of three members, stored as they are, under checksums.

`header.json` says what the file is, by which version of the format it is to be read, and the SHA-256 of the other two:
`content.json`, which describes the fit, and `arrays.bin`, the bytes of its arrays one after the other. Members are not
compressed, so that no small file can stand for a large one.
"""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

#: What the header of a saved fit calls itself.
FORMAT = "skvbem saved fit"
#: The version of the format that is written; older ones are read, too.
VERSION = 1
#: Names of the members, in the order of the file.
MEMBERS = ("header.json", "content.json", "arrays.bin")
_AT_NO_TIME = (1980, 1, 1, 0, 0, 0)  # the same fit makes the same file
_MAX_HEADER_BYTES = 10_000
# Bytes that Python takes for each mark in JSON, half a text for a quotation mark; measured.
_BYTES_OF_MARKS = {b"[": 72, b"{": 232, b'"': 28, b",": 8}
# What a description may take: so many bytes in any case, and for each byte of the file. Long ones of fits are lists of
# texts, with 7; empty arrays have 17. By hand.
_SMALL, _BYTES_PER_BYTE = 2**26, 12


class DamagedError(ValueError):
    """What is wrong with a file, without its name."""


@dataclass(frozen=True)
class Archive:
    """What a file holds.

    Parameters
    ----------
    content : object
        The description of the fit, as JSON gives it.
    arrays : bytes
    written_by : str
        The version of the package that wrote it.
    """

    content: Any
    arrays: bytes
    written_by: str


def packed(archive: Archive, kind: str) -> bytes:
    """The bytes of a file; `kind` is the class of what is saved, for people who look into it."""
    content = json.dumps(archive.content, allow_nan=False, separators=(",", ":")).encode()
    header = {
        "format": FORMAT,
        "version": VERSION,
        "written by skvbem": archive.written_by,
        "holds": kind,
        "sha256": {name: sha256(part).hexdigest() for name, part in zip(MEMBERS[1:], (content, archive.arrays))},
    }
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as members:
        for name, part in zip(MEMBERS, (json.dumps(header, indent=1).encode(), content, archive.arrays)):
            members.writestr(zipfile.ZipInfo(name, _AT_NO_TIME), part)
    return file.getvalue()


def unpacked(data: bytes, this_version: str) -> Archive:
    """What the bytes of a file hold.

    Raises
    ------
    DamagedError
        If they are no archive that `packed` made, or one of a newer format.
    """
    if not data.startswith(b"PK\x03\x04"):
        raise DamagedError(_what_it_is_instead(data))
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as members:
            parts = _parts(members, len(data))
    except DamagedError:
        raise
    except Exception as error:  # whatever the module makes of damaged archives
        raise DamagedError(f"it is no whole zip archive ({error})") from None
    header = json_of(parts[0], "header.json")
    written_by = _check_header(header, this_version)
    sums = header.get("sha256")
    for name, part in zip(MEMBERS[1:], parts[1:]):
        if not isinstance(sums, dict) or sums.get(name) != sha256(part).hexdigest():
            raise DamagedError(f"the checksum of its member {name!r} is not that of what was written")
    planned = sum(n_bytes * parts[1].count(mark) for mark, n_bytes in _BYTES_OF_MARKS.items())
    if planned > max(_SMALL, _BYTES_PER_BYTE * len(data)):
        raise DamagedError(f"its description would take {planned:.2g} bytes of memory, more than that of any fit")
    return Archive(json_of(parts[1], "content.json"), parts[2], written_by)


def _parts(members: zipfile.ZipFile, n_bytes: int) -> list[bytes]:
    infos = members.infolist()
    names = tuple(info.filename for info in infos)
    if names != MEMBERS:
        raise DamagedError(f"its members must be {', '.join(MEMBERS)}; they are {', '.join(names)[:200] or 'none'}")
    for info in infos:
        if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size or info.flag_bits & 1:
            raise DamagedError(f"its member {info.filename!r} is compressed or encrypted, which save never does")
    if sum(info.file_size for info in infos) > n_bytes or infos[0].file_size > _MAX_HEADER_BYTES:
        raise DamagedError("its members are said to be larger than they can be")
    parts = []
    for info in infos:
        with members.open(info) as member:
            parts.append(member.read(info.file_size + 1))
        if len(parts[-1]) != info.file_size:
            raise DamagedError(f"its member {info.filename!r} is not as long as it is said to be")
    return parts


def _check_header(header: Any, this_version: str) -> str:
    """Refuse what is no header of a format that is known; else the version of the package that wrote it."""
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise DamagedError("its header is not that of a saved fit")
    version, written_by = header.get("version"), header.get("written by skvbem")
    if type(version) is not int or version < 1 or not isinstance(written_by, str):
        raise DamagedError("its header does not say by which version of the format it was written")
    if version > VERSION:
        raise DamagedError(
            f"its format is version {version}, written by skvbem {written_by[:40]!r}; this is skvbem {this_version}, "
            f"which reads versions up to {VERSION}. Update skvbem:  python -m pip install --upgrade skvbem"
        )
    return written_by


def json_of(text: bytes, name: str) -> Any:
    """What a member of JSON says; constants that are no JSON, and names that come twice, are refused."""
    try:
        return json.loads(text.decode("utf-8"), parse_constant=_refuse, object_pairs_hook=_each_once)
    except (ValueError, RecursionError) as error:
        raise DamagedError(f"its member {name!r} cannot be read ({error})") from None


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    by_name = dict(pairs)
    if len(by_name) < len(pairs):
        raise ValueError("a name comes twice")
    return by_name


def _what_it_is_instead(data: bytes) -> str:
    if not data:
        return "it is empty"
    if data[:1] == b"\x80":
        return "it looks like a pickle, which load never opens: pickles can run code"
    return "it is no zip archive"
