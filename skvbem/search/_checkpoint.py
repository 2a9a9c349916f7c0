"""Finished candidates on disk, from which an interrupted search goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from skvbem.search._jobs import Record


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """Where records go as they are made, and those found there at the start.

    Parameters
    ----------
    known : dict of str to Record
        By digest of the candidate.
    keep : callable of (str, Record) or None
        Picklable: workers call it.
    """

    known: dict[str, Record] = field(default_factory=dict)
    keep: Callable[[str, Record], object] | None = None

    @classmethod
    @contextmanager
    def opened(cls, path, fingerprint: str) -> Iterator[Checkpoint]:
        """The checkpoint at a path, None for none, closed at the end."""
        yield cls()
