"""Measuring in turns and printing the outcome."""

from __future__ import annotations

import ctypes
import time
from contextlib import suppress
from pathlib import Path

import numpy as np


def timed(work, *args, **kwargs):
    """The seconds a call took, and what it returned."""
    began = time.perf_counter()
    result = work(*args, **kwargs)
    return time.perf_counter() - began, result


def timed_on_processor(work, *args, **kwargs):
    """The seconds that a call kept processors busy, and what it returned: other work on the machine counts little."""
    began = time.process_time()
    result = work(*args, **kwargs)
    return time.process_time() - began, result


def _status(field: str) -> int | None:
    """A line of this process's /proc status, in bytes."""
    status = Path("/proc/self/status")
    if not status.exists():
        return None
    line = next(line for line in status.read_text().splitlines() if line.startswith(field))
    return 1024 * int(line.split()[1])


def peak_growth(work, *args, **kwargs) -> int | None:
    """The bytes by which resident memory grew at the peak of a call; None where there is no /proc, as Linux has it."""
    if _status("VmRSS") is None:
        return None
    with suppress(AttributeError, OSError):  # of another C library than GNU's
        ctypes.CDLL(None).malloc_trim(0)  # what was freed and is held for later would hide as much
    before = _status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # VmHWM starts again from here
    work(*args, **kwargs)
    return _status("VmHWM") - before


def interleave(cases, repeats: int) -> dict[str, np.ndarray]:
    """What each case measured in each round, the cases taking turns: A B C A B C ...

    ``cases`` maps a name to a callable that returns one number.
    """
    measured = {name: [] for name in cases}
    for _ in range(repeats):
        for name, case in cases.items():
            measured[name].append(case())
    return {name: np.array(values) for name, values in measured.items()}


def number(value: float) -> str:
    """Three significant digits, no exponent where a reader can do without."""
    if not np.isfinite(value) or value == 0:
        return f"{value:.0f}"
    digits = 2 - int(np.floor(np.log10(abs(value))))
    return f"{value:.{max(digits, 0)}f}" if -4 < digits < 8 else f"{value:.2e}"


def spread(values, scale: float = 1.0) -> str:
    """Median (smallest to largest)."""
    values = scale * np.asarray(values)
    return f"{number(np.median(values))} ({number(values.min())} to {number(values.max())})"


def show(title: str, header, rows):
    """Print a table with aligned columns, and nothing if it has no rows."""
    if not rows:
        return
    cells = [[str(cell) for cell in row] for row in [header, *rows]]
    widths = [max(map(len, column)) for column in zip(*cells)]
    print(f"\n{title}")
    for k, row in enumerate(cells):
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
        if k == 0:
            print("  " + "  ".join("-" * width for width in widths))
