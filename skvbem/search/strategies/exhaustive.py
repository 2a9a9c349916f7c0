"""Every setting of a space."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from skvbem.search.strategies.base import Problem, Strategy

# Settings handed over at a time, so that a space of millions is never listed.
_AT_ONCE = 4096


@dataclass(frozen=True)
class Exhaustive(Strategy):
    """Tries every setting, in the order of the space."""

    def search(self, problem: Problem) -> None:
        """See `Strategy`."""
        settings = iter(problem.space)
        while not problem.is_over and (some := list(islice(settings, _AT_ONCE))):
            problem.scores(some)
