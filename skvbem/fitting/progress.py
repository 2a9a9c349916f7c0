"""Progress of a fit, on one line that moves on a terminal, and line by line elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable


class CycleLine:
    """Told after every cycle of a run: prints where it is, and says whether a callback asks to stop.

    Parameters
    ----------
    owner : str
    objective : str
        Its name.
    asks_to_stop : callable
    """

    def __init__(self, owner: str, objective: str, asks_to_stop: Callable[[], bool]):
        self._owner, self._objective, self._asks_to_stop = owner, objective, asks_to_stop
        self._began, self._width = time.perf_counter(), 0

    def __call__(self, n_iter: int, objective: float, n_live: int, to_come: float) -> bool:
        """Print the cycle; True if the run is to end."""
        ends = self._asks_to_stop()
        seconds = time.perf_counter() - self._began
        text = (
            f"[{self._owner}] step {n_iter}: {self._objective} {objective:.6f}, {to_come:.1e} nats to come, {n_live} "
            f"start{'s' * (n_live != 1)} going on, {seconds:.1f} s"
        )
        moves = sys.stdout.isatty()
        print(text.ljust(self._width), end="\r" if moves and n_live and not ends else "\n", flush=moves)
        self._width = len(text) if moves else 0
        return ends
