"""Settings of arithmetic while the library computes: one thread of BLAS, and 0 for what is too small for a double.

A BLAS library shares each product among its threads. The products of a pass are so small that threads then wait for
each other, and for a core, longer than they compute: a fit takes up to forty times the CPU. Rows are shared among
threads instead (`n_jobs`), and sums are added in an order that does not depend on the setting: the same bits. Weights
of far components underflow, which NumPy may have been set to raise as an error.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterable
from contextlib import ContextDecorator
from types import FunctionType
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController


def _set_n_threads(library: Any, n: int) -> None:
    """Set the number of threads of a library, whichever thread has done so last."""
    if library.num_threads == n:
        return
    let_go = getattr(library, "clear_controlling_thread", lambda force: None)  # from threadpoolctl 3.8 on
    let_go(force=True)
    library.set_num_threads(n)
    let_go(force=True)


class _Setting:
    """Numbers of threads of libraries, saved when they are first met within, and restored by the last to leave."""

    def __init__(self) -> None:
        self.n_within, self.saved = 0, {}  # type: int, dict[str, tuple[Any, int]]

    def enter(self, libraries: Iterable[Any]) -> None:
        """Have one thread in each library."""
        for library in libraries:
            if library.filepath not in self.saved:
                self.saved[library.filepath] = library, library.num_threads
                _set_n_threads(library, 1)
        self.n_within += 1

    def leave(self) -> None:
        """Restore what was saved, if nobody is within any more."""
        self.n_within = max(self.n_within - 1, 0)
        if not self.n_within:
            for library, n in self.saved.values():
                _set_n_threads(library, n)
            self.saved = {}


class _SettingOfThread(threading.local, _Setting):
    """The setting of one thread, in libraries where each thread has a number of its own, and NumPy's as it entered."""

    def __init__(self) -> None:
        super().__init__()
        self.errors: list[Any] = []


class _Arithmetic(ContextDecorator):
    """A context, and a decorator, within which each BLAS library of the process has one thread and underflow is 0.

    It may be nested, and entered by several threads: the last to leave restores what the first has found. An entry
    costs some 15 microseconds, within another one a microsecond.
    """

    def __init__(self) -> None:
        self._lock, self._of_process, self._of_thread = threading.Lock(), _Setting(), _SettingOfThread()
        self._n_modules, self._libraries = 0, ([], [])  # type: int, tuple[list, list]

    def __enter__(self) -> None:
        with self._lock:
            shared, by_thread = self._found()
            self._of_process.enter(shared)
        self._of_thread.enter(by_thread)
        self._of_thread.errors.append(np.seterr(under="ignore"))

    def __exit__(self, *error: object) -> None:
        np.seterr(**self._of_thread.errors.pop())
        self._of_thread.leave()
        with self._lock:
            self._of_process.leave()

    def _found(self) -> tuple[list, list]:
        """Libraries with a number for the process, and with one for each thread.

        To look for them takes milliseconds: they are looked for again only after modules came, which may have brought
        some.
        """
        if len(sys.modules) > self._n_modules:
            self._n_modules, self._libraries = len(sys.modules), ([], [])
            for each in ThreadpoolController().select(user_api="blas").lib_controllers:
                is_openmp = getattr(each, "threading_layer", "") == "openmp"
                self._libraries[is_openmp and hasattr(each, "clear_controlling_thread")].append(each)
        return self._libraries

    def go_on_in_child(self) -> None:
        """Forget threads that a forked child does not have; the first of its own to leave restores what was saved."""
        self._lock, self._of_process.n_within = threading.Lock(), 0

    def __reduce__(self) -> str:
        return "arithmetic"  # the one of the process, not a copy of its lock


arithmetic = _Arithmetic()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=arithmetic.go_on_in_child)


class ArithmeticMixin:
    """Of classes whose public methods each run in the `arithmetic` of the library."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name, method in list(vars(cls).items()):
            if isinstance(method, FunctionType) and not name.startswith("_"):
                setattr(cls, name, arithmetic(method))
