"""Priors over structures that are sums over edges."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from math import inf, log, log1p

from skvbem.spaces.priors import EdgePrior, StructurePrior, UniformPrior
from skvbem.spaces.rules import EdgeRules


@dataclass(frozen=True)
class EdgeOdds:
    """The log odds of edges that a prior over graphs is a sum of, with the rules that graphs obey.

    Parameters
    ----------
    rules : EdgeRules
        With the edges that the prior demands.
    log_odds : mapping of (parent, child) to float
        What an edge adds to the log prior, nats; nothing where it is not named.
    """

    rules: EdgeRules
    log_odds: Mapping[tuple[Hashable, Hashable], float]

    @classmethod
    def of(cls, prior: StructurePrior, rules: EdgeRules) -> EdgeOdds | None:
        """The odds of a uniform prior or an `EdgePrior`; None for others."""
        if isinstance(prior, UniformPrior):
            return cls(rules, {})
        if not isinstance(prior, EdgePrior):
            return None
        given = prior.probability
        by_edge, default = (given, prior.default) if isinstance(given, Mapping) else ({}, given)
        log_odds: dict[tuple[Hashable, Hashable], float] = {}
        parents = {}
        for child, rule in rules.parents.items():
            probability = {parent: by_edge.get((parent, child), default) for parent in rules.nodes if parent != child}
            demanded = {parent for parent, p in probability.items() if p == 1}
            parents[child] = replace(rule, required=rule.required | demanded)
            log_odds |= {
                (parent, child): log(p) - log1p(-p) if p else -inf for parent, p in probability.items() if p < 1
            }
        return cls(EdgeRules(parents), log_odds)
