"""Copies of the package in which errors come and go, and the question which test notices."""

from __future__ import annotations

import compileall
import importlib.util
import math
import os
import py_compile
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from planted.errors import COMPILED, PACKAGE, ROOT, Error, Sources

BUILT_FROM = (PACKAGE, ".ci", "pyproject.toml", "meson.build", "meson.options", "README.md", "LICENSE")
DIED = "pytest, which died"
# An editable installation comes before PYTHONPATH, in the tests and in what they start.
NO_EDITABLE_INSTALLATION = """import sys

sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__name__ != "MesonpyMetaFinder"]
"""


class Copy:
    """A copy of the package that tests import; its kernels are those installed until an error needs the compiler."""

    def __init__(self, folder: Path, sources: Sources):
        self.folder, self.sources = folder, sources
        self.source, self.site = folder / "source", folder / "site"
        ignored = shutil.ignore_patterns("*.so", "*.pyd", "__pycache__", "meson.build", *(f"*{s}" for s in COMPILED))
        shutil.copytree(ROOT / PACKAGE, self.site / PACKAGE, ignore=ignored)
        for kernel in sorted((ROOT / PACKAGE).rglob("*.pyx")):
            place = kernel.relative_to(ROOT).with_suffix("")
            shutil.copy2(installed(".".join(place.parts)), self.site / place.parent)
        shutil.copy2(installed(f"{PACKAGE}._kernels._cython_shared"), self.site / PACKAGE / "_kernels")
        (self.site / "sitecustomize.py").write_text(NO_EDITABLE_INSTALLATION)
        compileall.compile_dir(self.site, quiet=2, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)

    def check_origin(self) -> None:
        """Refuse to go on if another copy than this one would be tested."""
        done = self._run("-P", "-c", f"import {PACKAGE}; print({PACKAGE}.__file__)")
        if not done.stdout.startswith(str(self.site)):
            raise SystemExit(f"The copy is not what is imported, but {done.stdout.strip() or done.stderr}")

    @contextmanager
    def planted(self, error: Error) -> Iterator[None]:
        """Hold an error; after one that needs the compiler, only another such one makes the kernels right again."""
        compiled = self.sources.needs_compiler(error)
        if compiled:
            self._lay_out_sources()
        tree, broken = self.source if compiled else self.site, self.sources.broken_by(error)
        try:
            for path, text in broken.items():
                (tree / path).write_text(text)
            if compiled:
                self._build()
            yield
        finally:
            for path in broken:
                (tree / path).write_text(self.sources.texts[path])

    def first_failing(self, tests: Sequence[str], spared: Sequence[str] = ()) -> str | None:
        """Name the first of these tests that fails here, `DIED` if pytest does not come to an end."""
        options = ["-q", "-x", "-p", "no:cacheprovider", "--tb=no", "-rfE", *(f"--deselect={name}" for name in spared)]
        done = self._run("-P", "-m", "pytest", *options, *tests)
        failing = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - |$)", done.stdout, flags=re.MULTILINE)
        if failing:
            return failing[1]
        all_pass = done.returncode in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
        gone = done.returncode == pytest.ExitCode.USAGE_ERROR and "not found: " in done.stdout + done.stderr
        return None if all_pass or gone else DIED

    def _lay_out_sources(self) -> None:
        ignored = shutil.ignore_patterns("*.so", "*.pyd", "__pycache__")
        for path in (ROOT / name for name in BUILT_FROM if not (self.source / name).exists()):
            if path.is_dir():
                shutil.copytree(path, self.source / path.name, ignore=ignored)
            elif path.exists():
                shutil.copy2(path, self.source / path.name)

    def _build(self) -> None:
        """Compile what changed, install all."""
        isolation = ["--no-build-isolation"] if importlib.util.find_spec("mesonpy") else []
        done = self._run(
            *("-m", "pip", "install", "--quiet", "--no-deps", "--upgrade", *isolation),
            *("--target", str(self.site), f"-Cbuild-dir={self.folder / 'build'}", str(self.source)),
        )
        if done.returncode:
            raise SystemExit(f"The copy does not build:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")

    def _run(self, *arguments: str) -> subprocess.CompletedProcess:
        """Run Python with this copy in front of what is installed."""
        environment = os.environ | {
            "PYTHONPATH": str(self.site),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        }
        command = [sys.executable, *arguments]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=environment)


def installed(kernel: str) -> str:
    """Find the file of a compiled module."""
    try:
        return importlib.util.find_spec(kernel).origin
    except (ModuleNotFoundError, AttributeError):
        message = f"The kernels are taken as they are installed, and {kernel} is not. Install this checkout first."
        raise SystemExit(message) from None


class CleanCopy(Copy):
    """The copy without any error, in which a test has to pass before its failing elsewhere counts."""

    def __init__(self, folder: Path, sources: Sources):
        super().__init__(folder, sources)
        self.seconds_of = cache(self._seconds_of)

    def _seconds_of(self, test: str) -> float | None:
        """Seconds that a test takes alone, None if it fails here too."""
        began = time.perf_counter()
        fails = self.first_failing([test]) is not None
        return None if fails else time.perf_counter() - began


@dataclass(frozen=True)
class Noticed:
    """The test that noticed an error, and the seconds that it takes alone where there is none."""

    test: str
    seconds: float


def noticed_by(error: Error, copy: Copy, clean: CleanCopy, first_asked: str | None) -> Noticed | None:
    """Find a test that fails because of an error; None if the error survives all tests of its room."""
    with copy.planted(error):
        for tests in [[first_asked]] * (first_asked is not None) + [error.tests()]:
            spared: list[str] = []
            while (name := copy.first_failing(tests, spared)) and name not in spared:
                if name == DIED:
                    return Noticed(DIED, math.nan)
                seconds = clean.seconds_of(name)
                if seconds is not None and (tests == [first_asked] or copy.first_failing([name])):  # not by chance
                    return Noticed(name, seconds)
                spared.append(name)
    return None
