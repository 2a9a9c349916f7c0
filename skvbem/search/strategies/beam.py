"""Search with a beam: several settings at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from skvbem.graphs.names import shown
from skvbem.search.strategies.base import Problem, Strategy
from skvbem.search.strategies.starts import check_start, setting_to_start_from
from skvbem.spaces.rules import check_count
from skvbem.spaces.settings import canonical, distinct


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
    What guides is the score that ranks plus the log prior of the setting. Of equal settings the one tried first counts.

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
        if check_count(self.width, "The 'width' of Beam") < 1:
            raise ValueError(f"The 'width' of Beam must be an int >= 1. Got {shown(self.width)} instead.")

    def search(self, problem: Problem) -> None:
        """Keep the best settings tried and try their neighbors, until those of the best `width` were tried."""
        new = [setting_to_start_from(self.start, problem.space, problem.rng)]
        met = {canonical(new[0])}
        beam: list[tuple[float, dict, bool]] = []  # value, setting, whether its neighbors were tried
        while new and not problem.is_over:
            tried = zip(problem.log_posteriors(new), new)
            beam += [(value, setting, False) for value, setting in tried if value > -np.inf]
            beam = sorted(beam, key=lambda member: -member[0])[: self.width]
            around = (near for _, setting, done in beam if not done for near in problem.space.neighbors(setting))
            new = [setting for key, setting in distinct(problem.until_over(around)).items() if key not in met]
            beam = [(value, setting, True) for value, setting, _ in beam]
            met.update(map(canonical, new))
