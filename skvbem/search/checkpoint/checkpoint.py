"""Finished candidates on disk, from which an interrupted search goes on.

The checkpoint itself is one JSON file with a checksum over all of it, replaced as a whole. Beside it lies a journal, to
which every worker appends each candidate as soon as it has its scores: whatever is killed, at most the candidates in
work are lost. The journal is taken into the checkpoint at the start of a search, when it has grown long, and at the
end. Workers on other machines leave the writing to the process of the search.

A candidate that failed is not written: it is tried again, as what made it fail may be gone. Nothing is unpickled.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import isfinite
from typing import Any

import joblib
import numpy
import scipy
import sklearn

from skvbem.errors import SearchCheckpointError, SearchWarning, warn
from skvbem.formats.files import write_atomically
from skvbem.search.checkpoint.fingerprints import is_lasting
from skvbem.search.checkpoint.journal import Journal, lines_of, locked, read_whole, remove_partial_files
from skvbem.search.execution.jobs import Record, digest
from skvbem.search.tuning import TUNING
from skvbem.spaces.settings import canonical

# What content that no search has written raises when it is read.
_NOT_WRITTEN = (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError)
_FORMAT = "skvbem search checkpoint, version 1"
_SEAL = ', "sha256": "%s"}\n'


class Checkpoint:
    """The records of a search, where they go as they are made and those known at the start. This one keeps nothing.

    Attributes
    ----------
    known : dict of str to Record
        By name of the candidate.
    keep : callable of (str, Record) or None
        Picklable; writes a record wherever it is called, and returns whether it could.
    """

    keep: Callable[[str, Record], bool] | None = None

    def __init__(self):
        self.known: dict[str, Record] = {}
        self._numbers: dict[Hashable, int] = {}

    def name(self, setting: Mapping, is_new: bool = False) -> str:
        """The name of a candidate among the records, whatever its latents are called; new ones are as they come."""
        key = len(self._numbers) if is_new else canonical(setting)
        return str(self._numbers.setdefault(key, len(self._numbers)))

    def note(self, name: str, record: Record, is_kept: bool) -> None:
        """Take notice, in the process of the search, of a record and of whether it was written where it was made."""

    @classmethod
    @contextmanager
    def opened(cls, path, fingerprint: Callable[[], Mapping[str, str]]) -> Iterator[Checkpoint]:
        """The checkpoint at a path, held until the end; for None one that keeps nothing.

        Parameters
        ----------
        path : str, path-like or None
        fingerprint : callable
            Returns, by name, all that the records depend on.

        Raises
        ------
        SearchCheckpointError
            If the file is damaged, of another search, or in use by another one.
        OSError
            If it cannot be read or written.
        """
        if path is None:
            yield cls()
            return
        place = os.path.realpath(os.fsdecode(path))
        with locked(f"{place}.lock"):
            checkpoint = FileCheckpoint(place, _lasting({**fingerprint(), **_versions()}))
            try:
                yield checkpoint
            finally:
                checkpoint.close()


class FileCheckpoint(Checkpoint):
    """A checkpoint in a file that no other search has open.

    Parameters
    ----------
    path : str
    fingerprint : mapping of str to str
    """

    def __init__(self, path: str, fingerprint: Mapping[str, str]):
        super().__init__()
        self._path, self._fingerprint = path, dict(fingerprint)
        self._mode = os.stat(f"{path}.lock").st_mode & 0o666
        self._tag = _tag_of(self._fingerprint)
        self._has_warned, self._synced = False, time.monotonic()
        self.known = self._read()
        remove_partial_files(path)
        self._length = self._write()
        self._journal = Journal.made_at(f"{path}.journal")
        self.keep = JournalWriter(self._journal, self._tag)

    def name(self, setting: Mapping, is_new: bool = False) -> str:
        """The name of a candidate, the same in every process."""
        return digest(setting)

    def note(self, name: str, record: Record, is_kept: bool) -> None:
        """Take notice of a record, and write it if that was not done where it was made."""
        if record.failure:
            return
        self.known[name] = record
        try:
            if not is_kept:
                self._journal.append(_entry(self._tag, name, record))
            if self._journal.n_bytes > max(TUNING.shared_bytes, self._length):
                self._take_in()
            elif time.monotonic() - self._synced > TUNING.tick:
                self._sync()
        except (OSError, SearchCheckpointError) as error:
            self._warn_once(error)

    def close(self) -> None:
        """Write all records known, and leave no journal; where that fails, what is on disk stays valid."""
        try:
            self._take_in()
            os.unlink(self._journal.path)
        except (OSError, SearchCheckpointError) as error:
            self._warn_once(error)

    def _take_in(self) -> None:
        """Write the checkpoint with all records that the journal holds, and empty the journal."""
        with self._journal.opened() as descriptor:
            self._read_journal(self.known)
            self._length = self._write()
            os.ftruncate(descriptor, 0)

    def _sync(self) -> None:
        with self._journal.opened() as descriptor:
            os.fsync(descriptor)
        self._synced = time.monotonic()

    def _warn_once(self, error: Exception) -> None:
        if not self._has_warned:
            warn(
                f"The checkpoint {self._path!r} could not be written ({error}). The search goes on, and what was "
                "written before stays valid.",
                SearchWarning,
            )
        self._has_warned = True

    # The file ---------------------------------------------------------------------------------------------------------

    def _write(self) -> int:
        """Replace the file of the checkpoint; its length."""
        candidates = {name: _encoded(record) for name, record in self.known.items()}
        whole = {"format": _FORMAT, "search": self._fingerprint, "candidates": candidates}
        body = json.dumps(whole, allow_nan=False).removesuffix("}")
        text = (body + _SEAL % hashlib.sha256(body.encode()).hexdigest()).encode()
        write_atomically(self._path, text, self._mode)
        return len(text)

    def _read(self) -> dict[str, Record]:
        """The records of the file and of its journal."""
        text = read_whole(self._path)
        if text is None:
            if read_whole(f"{self._path}.journal") is not None:
                raise SearchCheckpointError(
                    f"The checkpoint {self._path!r} is missing, but its journal '{self._path}.journal' is there. Put "
                    "the checkpoint back, or delete the journal too to start anew."
                )
            return {}
        known = self._read_checkpoint(text)
        self._read_journal(known)
        return known

    def _read_checkpoint(self, text: bytes) -> dict[str, Record]:
        body, seal = text[: -len(_SEAL % ("0" * 64))], text[-len(_SEAL % ("0" * 64)) :]
        if not text.startswith(f'{{"format": "{_FORMAT}"'.encode()):
            raise SearchCheckpointError(
                f"{self._path!r} is no checkpoint of a search by this version, or its beginning is damaged: it must "
                f"begin with the format {_FORMAT!r}. It begins with {text[:60]!r}. Give the search another file, or "
                "delete this one."
            )
        if seal != (_SEAL % hashlib.sha256(body).hexdigest()).encode():
            raise self._damaged("its checksum is not that of its content")
        try:
            whole = json.loads(body + b"}")
            self._refuse_if_foreign(dict(whole["search"]))
            return {name: _decoded(entry) for name, entry in whole["candidates"].items()}
        except _NOT_WRITTEN as error:
            if isinstance(error, SearchCheckpointError):
                raise
            raise self._damaged("its content is not what a search writes") from error

    def _read_journal(self, known: dict[str, Record]) -> None:
        """Add the records of the journal to those known."""
        path = f"{self._path}.journal"
        for number, body in lines_of(read_whole(path) or b""):
            if body is None:
                raise self._damaged(f"line {number} of its journal {path!r} is not what was written")
            try:
                entry = json.loads(body)
                if entry["search"] != self._tag:
                    raise SearchCheckpointError(
                        f"The journal {path!r} beside the checkpoint is of another search. Delete it, or give this "
                        "search another file."
                    )
                known.setdefault(str(entry["candidate"]), _decoded(entry["record"]))
            except _NOT_WRITTEN as error:
                if isinstance(error, SearchCheckpointError):
                    raise
                raise self._damaged(f"line {number} of its journal is not what a search writes") from error

    def _refuse_if_foreign(self, theirs: Mapping[str, str]) -> None:
        ours, versions = self._fingerprint, _versions()
        differing = [
            f"{name} ({theirs.get(name)} there, {ours.get(name)} here)" if name in versions else name
            for name in dict.fromkeys([*ours, *theirs])
            if ours.get(name) != theirs.get(name)
        ]
        if differing:
            raise SearchCheckpointError(
                f"The checkpoint {self._path!r} is of another search, which differs in: {', '.join(differing)}. Give "
                "this search another file, or delete that one to start anew."
            )

    def _damaged(self, why: str) -> SearchCheckpointError:
        return SearchCheckpointError(
            f"The checkpoint {self._path!r} is damaged: {why}. Put back a copy, or delete it and the files beside it "
            "to start anew."
        )


@dataclass(frozen=True)
class JournalWriter:
    """Appends records to the journal of a checkpoint, in any process that sees it.

    Parameters
    ----------
    journal : Journal
    tag : str
        Of the search.
    """

    journal: Journal
    tag: str

    def __call__(self, name: str, record: Record) -> bool:
        """Write a record; whether it is on disk now: if not, the process of the search has to see to it."""
        try:
            if not self.journal.is_here():
                return False
            self.journal.append(_entry(self.tag, name, record))
        except OSError:
            return False
        return True


def _entry(tag: str, name: str, record: Record) -> bytes:
    entry = {"search": tag, "candidate": name, "record": _encoded(record)}
    return json.dumps(entry, allow_nan=False).encode()


def _encoded(record: Record) -> dict[str, Any]:
    return {
        "values": {name: _number(value) for name, value in record.values.items()},
        "errors": {name: _number(value) for name, value in record.errors.items()},
        "splits": {name: list(map(_number, values)) for name, values in record.splits.items()},
        "n_free_parameters": None if record.n_free_parameters is None else int(record.n_free_parameters),
        "fit_seconds": list(map(_number, record.fit_seconds)),
        "score_seconds": list(map(_number, record.score_seconds)),
        "doubts": list(record.doubts),
        "inference": record.inference,
    }


def _decoded(entry: Mapping[str, Any]) -> Record:
    """The record of an entry; a ValueError if it means nothing."""
    count, inference = entry["n_free_parameters"], entry.get("inference", "exact")
    if inference not in ("exact", "clusters") or (count is not None and (type(count) is not int or count < 0)):
        raise ValueError("a record of no fit")
    if not isinstance(entry["doubts"], list) or any(float(error) < 0 for error in entry["errors"].values()):
        raise ValueError("a record without doubts, or with errors below 0")
    if not all(isinstance(entry[name], list) and entry[name] for name in ("fit_seconds", "score_seconds")):
        raise ValueError("a record without times")
    return Record(
        {name: float(value) for name, value in entry["values"].items()},
        {name: float(value) for name, value in entry["errors"].items()},
        {name: tuple(map(float, values)) for name, values in entry["splits"].items()},
        count,
        tuple(map(float, entry["fit_seconds"])),
        tuple(map(float, entry["score_seconds"])),
        doubts=tuple(map(str, entry["doubts"])),
        inference=inference,
    )


def _number(value: float) -> float | str:
    """A number for JSON, which knows neither NaN nor infinity."""
    value = float(value)
    return value if isfinite(value) else str(value)


def _tag_of(fingerprint: Mapping[str, str]) -> str:
    """A short name of a search, in every line of its journal."""
    return hashlib.sha256(json.dumps(fingerprint, sort_keys=True).encode()).hexdigest()[:16]


def _versions() -> dict[str, str]:
    package = sys.modules[__name__.partition(".")[0]]
    return {f"version of {module.__name__}": module.__version__ for module in (package, numpy, scipy, sklearn, joblib)}


def _lasting(fingerprint: dict[str, str]) -> dict[str, str]:
    """The fingerprint of a search, if it means the same in another process."""
    fleeting = [name for name, text in fingerprint.items() if not is_lasting(text)]
    if fleeting:
        raise SearchCheckpointError(
            f"A checkpoint could not recognize this search in another process: its {', '.join(fleeting)} cannot be "
            "pickled. Define it in a module, or search without a checkpoint."
        )
    return {
        name: hashlib.sha256(text.encode()).hexdigest()[:32] if len(text) > 64 else text
        for name, text in fingerprint.items()
    }
