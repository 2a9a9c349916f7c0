"""Which candidates of a space a search tries.

=============  ==========================================================  =========================================
name           tries                                                       for
=============  ==========================================================  =========================================
"exhaustive"   every setting                                               spaces that can be gone through
"greedy"       the neighbors of the setting it is at                       any space
"beam"         the neighbors of several settings                           any space
"mc3"          what Markov chains propose                                  any space, for its posterior
=============  ==========================================================  =========================================
"""

from skvbem.search.strategies.base import Problem, Strategy
from skvbem.search.strategies.beam import Beam
from skvbem.search.strategies.exact import Exact
from skvbem.search.strategies.exhaustive import Exhaustive
from skvbem.search.strategies.greedy import Greedy
from skvbem.search.strategies.mc3 import MC3
from skvbem.search.strategies.registry import STRATEGIES, resolve_strategy

__all__ = [
    "MC3",
    "STRATEGIES",
    "Beam",
    "Exact",
    "Exhaustive",
    "Greedy",
    "Problem",
    "Strategy",
    "resolve_strategy",
]
