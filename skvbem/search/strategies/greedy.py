"""Hill climbing from setting to setting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from skvbem.graphs.dag import DAG
from skvbem.search.strategies.base import Problem, Strategy
from skvbem.search.strategies.objectives import climb_anew, objective_of
from skvbem.search.strategies.starts import check_start
from skvbem.spaces.rules import check_count


@dataclass(frozen=True)
class Greedy(Strategy):
    """Goes from setting to setting, each time to the best neighbor that was not visited lately.

    The space decides what a neighbor is: an edge added, removed or turned, a hidden node or a state more or less. All
    neighbors of a setting are tried together, in parallel, and none twice. Where nothing is hidden the score of a
    graph is a sum over families: neighbors are then valued by differences of such scores, each computed once from
    counts.

    Parameters
    ----------
    start : {"emptiest", "random"}, DAG or mapping, default="emptiest"
        The setting to begin with: one with few edges, one drawn from the space, or one given. A graph stands for the
        setting that has it, with the latents of the space.
    n_tabu : int, default=5
        Settings visited last that are not returned to, and steps that may go by without a new best setting. 0 stops at
        the first setting that no neighbor is better than.
    n_restarts : int, default=0
        How often to begin anew, a random walk away from the best setting so far.
    n_kicks : int, default=5
        Moves of that walk.
    n_perturbations : int, default=10
        Where scores are sums over families: climbs from graphs near the best so far, until so many in a row lead no
        higher. By turns such a graph is drawn from those that no data tell apart from it, and from those of what is
        left without half of its edges.

    Notes
    -----
    What guides is the score that ranks plus the log prior of the setting. Where scores are sums over families the table
    of the search, and its posterior, are over the hundred best of all graphs that were valued.

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

    start: str | DAG | Mapping = "emptiest"
    n_tabu: int = 5
    n_restarts: int = 0
    n_kicks: int = 5
    n_perturbations: int = 10

    def __post_init__(self):
        check_start(self.start, "Greedy")
        for name in ("n_tabu", "n_restarts", "n_kicks", "n_perturbations"):
            check_count(getattr(self, name), f"The {name!r} of Greedy")

    def search(self, problem: Problem) -> None:
        """Climb from the start, and again from where kicks lead."""
        objective = objective_of(problem)
        climb_anew(objective, self.start, self.n_tabu, self.n_restarts, self.n_kicks, self.n_perturbations)
