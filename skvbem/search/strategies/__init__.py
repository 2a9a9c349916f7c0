"""Strategies: which candidates of a space a search tries.

=============  ==========================================================  =========================================
name           tries                                                       for
=============  ==========================================================  =========================================
"auto"         what the strategy below does that suits the search          any search
"exhaustive"   every setting                                               spaces that can be gone through
"greedy"       all neighbors of the setting it is at                       any space
"mc3"          what Markov chains propose                                  any space, for its posterior
"structural"   the summits of a climb along bounds, which needs few fits   networks
"exact"        the best graph, found by dynamic programming                complete data, 20 nodes, no latents
=============  ==========================================================  =========================================
"""

from skvbem.search.strategies.base import Problem, Strategy
from skvbem.search.strategies.exact import Exact
from skvbem.search.strategies.exhaustive import Exhaustive
from skvbem.search.strategies.greedy import Greedy
from skvbem.search.strategies.mc3 import MC3
from skvbem.search.strategies.registry import STRATEGIES, Auto, resolve_strategy
from skvbem.search.strategies.structural.climb import StructuralVBEM

__all__ = [
    "MC3",
    "STRATEGIES",
    "Auto",
    "Exact",
    "Exhaustive",
    "Greedy",
    "Problem",
    "Strategy",
    "StructuralVBEM",
    "resolve_strategy",
]
