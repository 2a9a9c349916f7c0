"""Every strategy by name, and the one that suits a search."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from skvbem._names import did_you_mean
from skvbem.fitting.kind import find_kind
from skvbem.search.execution.jobs import Job
from skvbem.search.strategies.base import Problem, Strategy
from skvbem.search.strategies.exact import Exact
from skvbem.search.strategies.exhaustive import Exhaustive
from skvbem.search.strategies.greedy import Greedy
from skvbem.search.strategies.mc3 import MC3
from skvbem.search.strategies.structural.climb import StructuralVBEM
from skvbem.search.strategies.structural.fitter import why_no_bounds
from skvbem.search.tuning import TUNING
from skvbem.spaces import ListSpace, Space
from skvbem.spaces.priors import StructurePrior
from skvbem.spaces.rules import check_count


@dataclass(frozen=True)
class Auto(Strategy):
    """Takes the strategy that suits a search: which one, `strategy_` of the search says.

    1. `Exhaustive`, if the space has at most `max_settings`, and whatever its size if it is a grid or a list: the
       posterior is then over all of it.
    2. `Exact`, if nothing is hidden, no cell is missing, the score is a sum over families and nodes are so few that
       the best graph takes less than about a second: some 16 of them. Networks with numbers (`VBNetwork`) may
       have some 2 000 families, each of which is fitted: ten nodes or so, in a minute.
    3. `StructuralVBEM` for other networks of tables.
    4. `Greedy` where that has no bounds to climb: rows held out, scores that are callables, learned priors. So it is
       for networks with numbers.

    Parameters
    ----------
    max_settings : int, default=10_000
        Most structures that are all tried.

    Examples
    --------
    >>> from skvbem import StructureSearchCV, VBDiscreteDAG
    >>> from skvbem.datasets import load_lizards
    >>> from skvbem.spaces import DAGSpace
    >>> X = load_lizards().data
    >>> StructureSearchCV(VBDiscreteDAG(), DAGSpace(["x0", "x1", "x2"])).fit(X).strategy_
    Exhaustive(prune=False)
    """

    max_settings: int = 10_000

    def __post_init__(self):
        check_count(self.max_settings, "The 'max_settings' of Auto")

    def chosen_for(self, space: Space, job: Job, ranking: str, prior: StructurePrior) -> Strategy:
        """The strategy that suits a search."""
        is_listed = isinstance(space, ListSpace) or not space.parameters & {"structure", "latents"}
        if is_listed or not space.has_more_than(self.max_settings):
            return Exhaustive()
        exact = Exact()
        if exact.n_operations(space, job, ranking, prior) <= TUNING.max_operations:
            return exact
        are_tables = hasattr(find_kind(job.estimator), "network")
        return StructuralVBEM() if are_tables and not why_no_bounds(job, space) else Greedy()

    def search(self, problem: Problem):
        """Search by the strategy that suits the problem."""
        chosen = self.chosen_for(problem.space, problem.job, problem.ranking, problem.prior)
        return chosen.search(problem)


#: Strategies that a search may name, with their default options.
STRATEGIES: dict[str, Callable[[], Strategy]] = {
    "auto": Auto,
    "exhaustive": Exhaustive,
    "greedy": Greedy,
    "mc3": MC3,
    "structural": StructuralVBEM,
    "exact": Exact,
}


def resolve_strategy(strategy) -> Strategy:
    """The strategy of a name, or the one given.

    Raises
    ------
    ValueError
        If there is none of that name, with all names.
    TypeError
        If it is no strategy.
    """
    if isinstance(strategy, Strategy):
        return strategy
    if not isinstance(strategy, str):
        raise TypeError(f"A strategy must be a name or a Strategy. Got {strategy!r} instead.")
    if strategy not in STRATEGIES:
        hint = did_you_mean(strategy, STRATEGIES)
        raise ValueError(f"There is no strategy {strategy!r}.{hint} The strategies are {', '.join(STRATEGIES)}.")
    return STRATEGIES[strategy]()
