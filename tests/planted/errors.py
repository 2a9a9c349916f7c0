"""Errors to plant: what the code says, what it should not say instead, and the tests that should notice.

Each room of the package has a file of errors in the folder `rooms`. It holds ``TESTS``, patterns of test files relative
to ``tests``, the quick ones first, and ``ERRORS``, which maps the name of an error to its changes (right text, wrong
text). An error names no file of the package: a right text stands exactly once in all of its sources, wherever that is.
"""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent
ROOT = TESTS.parent
PACKAGE = "skvbem"
RECORD = HERE / "noticed_by.json"  # of each error, the test that noticed it last
COMPILED = {".pyx", ".pxd", ".h"}


@dataclass(frozen=True)
class Error:
    """One way to break the package, and where to look for the tests that notice."""

    name: str
    room: str
    changes: tuple[tuple[str, str], ...]
    patterns: tuple[str, ...]

    def tests(self) -> list[str]:
        """Files and folders of tests, relative to the checkout, in the order in which they are asked."""
        return [path.relative_to(ROOT).as_posix() for pattern in self.patterns for path in sorted(TESTS.glob(pattern))]

    def has(self, words: Sequence[str]) -> bool:
        """Tell whether a word is in the name, or is the room or the beginning of its path."""
        return any(word in self.name or f"{self.room}/".startswith(f"{word}/") for word in words)


class Sources:
    """The texts of the package, in which right texts are looked up."""

    def __init__(self, package: Path):
        self.texts = {
            path.relative_to(package.parent): path.read_text()
            for path in sorted(package.rglob("*"))
            if path.suffix in COMPILED | {".py"}
        }

    def place(self, right: str) -> Path:
        """Find the only file with this text, as a path that begins with the package."""
        counts = {path: text.count(right) for path, text in self.texts.items() if right in text}
        if sum(counts.values()) != 1:
            where = ", ".join(f"{count} in {path}" for path, count in counts.items()) or "not at all"
            raise LookupError(f"A right text must stand once in the package. It stands {where}: {right.strip()!r}")
        return next(iter(counts))

    def hold(self, error: Error) -> bool:
        """Tell whether an error can be planted; say why not."""
        try:
            return bool([self.place(right) for right, _ in error.changes])
        except LookupError as why:
            print(f"{error.name}: {why}")
            return False

    def broken_by(self, error: Error) -> dict[Path, str]:
        """Rewrite the files that an error changes."""
        broken: dict[Path, str] = {}
        for right, wrong in error.changes:
            path = self.place(right)
            broken[path] = broken.get(path, self.texts[path]).replace(right, wrong)
        return broken

    def needs_compiler(self, error: Error) -> bool:
        return any(self.place(right).suffix in COMPILED for right, _ in error.changes)

    def fingerprint(self) -> str:
        """Tell these sources from others."""
        digest = hashlib.sha256()
        for path, text in self.texts.items():
            digest.update(f"{path.as_posix()}\0{text}\0".encode())
        return digest.hexdigest()[:12]


def all_errors() -> list[Error]:
    """Collect the errors of all rooms, room by room."""
    errors = []
    for path in sorted((HERE / "rooms").rglob("*.py")):
        room = path.relative_to(HERE / "rooms").with_suffix("")
        module = importlib.import_module(".".join(("planted", "rooms", *room.parts)))
        errors += [
            Error(name, room.as_posix(), tuple(changes), tuple(module.TESTS)) for name, changes in module.ERRORS.items()
        ]
    return errors
