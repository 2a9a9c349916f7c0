"""Which candidates of a space a search tries."""

from skvbem.search.strategies.base import Problem, Strategy
from skvbem.search.strategies.exhaustive import Exhaustive
from skvbem.search.strategies.registry import STRATEGIES, resolve_strategy

__all__ = ["STRATEGIES", "Exhaustive", "Problem", "Strategy", "resolve_strategy"]
