"""Every strategy by name."""

from __future__ import annotations

from collections.abc import Callable

from skvbem._names import did_you_mean
from skvbem.search.strategies.auto import Auto
from skvbem.search.strategies.base import Strategy
from skvbem.search.strategies.beam import Beam
from skvbem.search.strategies.exact.exact import Exact
from skvbem.search.strategies.exhaustive import Exhaustive
from skvbem.search.strategies.greedy import Greedy
from skvbem.search.strategies.mc3 import MC3
from skvbem.search.strategies.structural.structural import StructuralVBEM

#: Strategies that a search may name, with their default options.
STRATEGIES: dict[str, Callable[[], Strategy]] = {
    "auto": Auto,
    "exhaustive": Exhaustive,
    "greedy": Greedy,
    "beam": Beam,
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
