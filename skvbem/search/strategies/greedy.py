"""Hill climbing from setting to setting."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from skvbem.search.strategies.base import Problem, Strategy, gains
from skvbem.search.strategies.starts import check_start, random_walk, setting_to_start_from
from skvbem.spaces.rules import check_count
from skvbem.spaces.settings import canonical


@dataclass(frozen=True)
class Greedy(Strategy):
    """Goes from setting to setting, each time to the best neighbor that was not visited lately.

    All neighbors of a setting are tried together, in parallel, and none twice. What a neighbor is, the space says: an
    edge added, removed or turned, a hidden node or a state more or less.

    Parameters
    ----------
    start : {"emptiest", "random"} or mapping, default="emptiest"
        The setting to begin with: one with few edges, one drawn from the space, or one given.
    n_tabu : int, default=5
        Settings visited last that are not returned to, and steps that may go by without a new best setting. 0 stops at
        the first setting that no neighbor is better than.
    n_restarts : int, default=0
        How often to begin anew, a random walk away from the best setting so far.
    n_kicks : int, default=5
        Moves of that walk.

    Notes
    -----
    What guides is the score that ranks plus the log prior of the setting.

    Examples
    --------
    >>> from skvbem import StructureSearchCV, VBDiscreteDAG
    >>> from skvbem.datasets import load_lizards
    >>> from skvbem.spaces import DAGSpace
    >>> from skvbem.search.strategies import Greedy
    >>> X = load_lizards().data
    >>> search = StructureSearchCV(VBDiscreteDAG(), DAGSpace(["x0", "x1", "x2"]), strategy=Greedy(n_tabu=0))
    >>> len(search.fit(X).cv_results_["params"]) < 25
    True
    """

    start: str | Mapping = "emptiest"
    n_tabu: int = 5
    n_restarts: int = 0
    n_kicks: int = 5

    def __post_init__(self):
        check_start(self.start, "Greedy")
        for name in ("n_tabu", "n_restarts", "n_kicks"):
            check_count(getattr(self, name), f"The {name!r} of Greedy")

    def search(self, problem: Problem) -> None:
        """Climb from the start, and again from where kicks lead."""
        best, top = self._climb(problem, setting_to_start_from(self.start, problem.space, problem.rng))
        for _ in range(self.n_restarts):
            if problem.is_over:
                break
            summit, value = self._climb(problem, random_walk(problem.space, best, self.n_kicks, problem.rng))
            if gains(value, top):
                best, top = summit, value

    def _climb(self, problem: Problem, start: Mapping) -> tuple[Mapping, float]:
        """The best setting of a climb, and its log posterior up to a constant."""
        here = best = start
        top = problem.log_posteriors([start])[0]
        lately, n_waited = deque([canonical(start)], maxlen=max(self.n_tabu, 1)), 0
        while not problem.is_over and n_waited <= self.n_tabu:
            around = problem.until_over(problem.space.neighbors(here))
            near = [setting for setting in around if canonical(setting) not in lately]
            values = problem.log_posteriors(near)
            if not np.any(values > -np.inf):
                break
            k = int(np.argmax(values))
            here, n_waited = near[k], n_waited + 1
            lately.append(canonical(here))
            if gains(values[k], top):
                best, top, n_waited = here, values[k], 0
        return best, top
