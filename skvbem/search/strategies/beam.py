"""Search with a beam: several settings at once."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import numpy as np

from skvbem.search.strategies.base import Problem, Strategy
from skvbem.search.strategies.objectives import objective_of
from skvbem.search.strategies.starts import check_start, setting_to_start_from
from skvbem.spaces.rules import check_count


@dataclass(frozen=True)
class Beam(Strategy):
    """Tries the neighbors of the best settings, until all neighbors of the `width` best ones of all were tried.

    Parameters
    ----------
    width : int, default=5
        How many of the best settings have their neighbors tried. 1 climbs until no neighbor is better.
    start : {"emptiest", "random"} or mapping, default="emptiest"
        The setting to begin with, see `Greedy`.

    Notes
    -----
    What guides is the score that ranks plus the log prior of the setting, which where nothing is hidden is a sum over
    families, see `Greedy`. Among equal neighbors the last counts.

    Examples
    --------
    >>> from skvbem import StructureSearchCV, VBDiscreteDAG
    >>> from skvbem.datasets import load_carcinoma
    >>> from skvbem.search.strategies import Beam
    >>> space = {"latents": list(range(1, 9))}
    >>> search = StructureSearchCV(VBDiscreteDAG(), space, strategy=Beam(width=1), random_state=0)
    >>> search.fit(load_carcinoma().data).cv_results_["param_latents"].tolist()
    [1, 2, 3, 4]
    """

    width: int = 5
    start: str | Mapping = "emptiest"

    def __post_init__(self):
        check_start(self.start, "Beam")
        check_count(self.width, "The 'width' of Beam", 1)

    def search(self, problem: Problem) -> None:
        """Keep the best settings tried and try their neighbors, until those of the best `width` were tried."""
        objective = objective_of(problem)
        start = objective.at(setting_to_start_from(self.start, problem.space, problem.rng))
        beam = [start] if start.value > -np.inf else []
        done: set[Hashable] = set()
        while not problem.is_over and (new := [state for state in beam if state.key not in done]):
            near = objective.best_around(new, {state.key for state in beam} | done, self.width)
            done.update(state.key for state in new)
            beam = sorted(beam + near, key=lambda state: -state.value)[: self.width]
        objective.conclude()
