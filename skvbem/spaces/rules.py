"""Rules for the parents of every node: what all graphs of a search have in common.

A rule is about one node: parents it may have, parents it must have, how many. Graphs obey the rules when every node
does and there is no cycle, so that rules can be checked, counted and enumerated node by node.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Set
from dataclasses import dataclass, replace
from numbers import Integral

from skvbem._arguments import is_collection, is_whole
from skvbem._names import did_you_mean, shown
from skvbem.errors import StructureError
from skvbem.graphs.dag import DAG
from skvbem.graphs.paths import describe_cycle, find_cycle

__all__ = ["EdgeRules", "ParentRule", "check_count", "edge_pairs", "make_rules", "one_or_more", "tier_members"]


@dataclass(frozen=True)
class ParentRule:
    """The sets of parents that one node may have.

    Parameters
    ----------
    possible : frozenset
        The parents it may have, those it must have among them.
    required : frozenset
        The parents it must have.
    least, most : int
        The least and the largest number of parents.
    """

    possible: frozenset
    required: frozenset = frozenset()
    least: int = 0
    most: int = 0

    def allows(self, parents: Iterable[Hashable]) -> bool:
        """True if these nodes may be the parents."""
        parents = frozenset(parents)
        return self.required <= parents <= self.possible and self.least <= len(parents) <= self.most

    def relabel(self, mapping: Mapping[Hashable, Hashable]) -> ParentRule:
        """The rule with nodes renamed as `mapping` (old -> new) says."""
        possible, required = (
            frozenset(mapping.get(node, node) for node in nodes) for nodes in (self.possible, self.required)
        )
        return replace(self, possible=possible, required=required)


@dataclass(frozen=True)
class EdgeRules:
    """The rules of a graph: for every node, the parents it may have.

    Parameters
    ----------
    parents : mapping
        Node -> its `ParentRule`, for all nodes, in their order.

    Examples
    --------
    >>> from skvbem.graphs.dag import DAG
    >>> from skvbem.spaces.rules import make_rules
    >>> rules = make_rules(["age", "smoker", "cancer"], tiers=[["age"], ["smoker", "cancer"]], max_parents=1)
    >>> rules.allow(DAG.from_string("[age][smoker|age][cancer|smoker]"))
    True
    >>> rules.allow(DAG.from_string("[age|smoker][smoker][cancer]"))
    False
    """

    parents: Mapping[Hashable, ParentRule]

    @property
    def nodes(self) -> tuple:
        """The nodes that the rules are for, in order."""
        return tuple(self.parents)

    def allow(self, dag: DAG) -> bool:
        """True if the graph has these nodes and obeys the rule of each."""
        return self.parents.keys() == set(dag.nodes) and all(
            rule.allows(dag.parents(node)) for node, rule in self.parents.items()
        )

    def fix(self, edge: tuple[Hashable, Hashable]) -> bool:
        """True if the edge (parent, child) is required, or may not turn."""
        parent, child = edge
        return parent in self.parents[child].required or child not in self.parents[parent].possible

    def alike(self, one: Hashable, other: Hashable) -> bool:
        """True if the rules stay the same when the two nodes trade places."""
        swapped = {one: other, other: one}
        return self.parents[other] == self.parents[one].relabel(swapped) and all(
            (one in among) == (other in among)
            for node, rule in self.parents.items()
            if node not in swapped
            for among in (rule.possible, rule.required)
        )


def make_rules(
    nodes: Iterable[Hashable],
    *,
    tiers: Iterable[Iterable[Hashable]] | None = None,
    required: Iterable[tuple[Hashable, Hashable]] = (),
    forbidden: Iterable[tuple[Hashable, Hashable]] = (),
    allowed: Iterable[tuple[Hashable, Hashable]] | None = None,
    max_parents: int | None = None,
) -> EdgeRules:
    """The rules under which edges run within a tier or to a later one, some must be there, some may not.

    Parameters
    ----------
    nodes : iterable of hashable
        All nodes, in order.
    tiers : iterable of iterables of hashable, optional
        Every node once; edges never run from a later tier to an earlier one. By default all nodes are in one tier.
    required, forbidden : iterable of (parent, child), mapping child -> parents, or DAG
        Edges that every graph has, and edges that none has.
    allowed : iterable of (parent, child), mapping child -> parents, or DAG, optional
        The only edges that a graph may have. By default any.
    max_parents : int, optional
        The largest number of parents of a node.

    Raises
    ------
    StructureError
        If an edge or a tier names an unknown node, if required edges close a cycle or break another rule.
    """
    nodes = one_or_more(nodes)
    most = len(nodes) - 1 if max_parents is None else check_count(max_parents, "max_parents")
    tier = _tier_of_each(nodes, tier_members(tiers))
    must, never = _edges(required, "required", nodes), _edges(forbidden, "forbidden", nodes)
    among = {node: set(nodes) for node in nodes} if allowed is None else _edges(allowed, "allowed", nodes)
    if cycle := find_cycle(nodes, must):
        raise StructureError(f"The required edges close a cycle. {describe_cycle(cycle)}")
    rules = {}
    for child in nodes:
        possible = {node for node in among[child] if tier[node] <= tier[child]} - never[child] - {child}
        for parent in nodes:
            if parent in must[child] and parent not in possible:
                if parent not in among[child]:
                    raise StructureError(f"The required edge {parent} -> {child} is not allowed. Allow it, too.")
                why = "forbidden too" if parent in never[child] else "forbidden by the tiers"
                raise StructureError(f"The required edge {parent} -> {child} is {why}. Drop one of the two.")
        if len(must[child]) > most:
            raise StructureError(
                f"Node {shown(child)} has {len(must[child])} required parents; max_parents={max_parents}. Raise it."
            )
        if len(must[child]) == most:
            possible = must[child]
        rules[child] = ParentRule(frozenset(possible), frozenset(must[child]), 0, min(most, len(possible)))
    return EdgeRules(rules)


def check_count(value, name: str, least: int = 0) -> int:
    """The value as an int >= `least`; ValueError if it is none."""
    if not is_whole(value) or value < least:
        raise ValueError(f"{name} must be an int >= {least}. Got {shown(value)} instead.")
    return int(value)


def edge_pairs(edges, name: str) -> tuple[tuple[Hashable, Hashable], ...]:
    """The (parent, child) pairs of a `DAG`, a mapping child -> parents, pairs or a frame with a row for each pair."""
    if isinstance(edges, DAG):
        return edges.edges
    if hasattr(edges, "columns") and hasattr(edges, "to_numpy"):
        edges = edges.to_numpy().tolist()
    if isinstance(edges, Mapping):
        families = edges.items()
        return tuple((parent, child) for child, parents in families for parent in one_or_more(parents))
    pairs = []
    for edge in edges if is_collection(edges) else [edges]:
        pair = () if isinstance(edge, (str, Set)) or not isinstance(edge, Iterable) else tuple(edge)
        if len(pair) != 2:
            raise TypeError(f"{name} must hold pairs (parent, child). Got {shown(edge)} instead.")
        pairs.append(pair)
    return tuple(pairs)


def tier_members(tiers) -> tuple[tuple, ...] | None:
    """The nodes of each tier; a str or an int stands for a tier of one."""
    return None if tiers is None else tuple(map(one_or_more, tiers))


def _tier_of_each(nodes, tiers):
    if tiers is None:
        return dict.fromkeys(nodes, 0)
    tier: dict = {}
    for place, members in enumerate(tiers):
        for node in members:
            if node not in nodes:
                raise StructureError(f"tiers name {shown(node)}, which is not a node.{did_you_mean(node, nodes)}")
            if node in tier:
                raise StructureError(f"tiers name {shown(node)} twice. Name each node once.")
            tier[node] = place
    if missing := [node for node in nodes if node not in tier]:
        raise StructureError(f"tiers must name every node. They lack {shown(missing[0])}.")
    return tier


def _edges(edges, what, nodes):
    """Child -> set of its parents, for all nodes."""
    parents: dict = {node: set() for node in nodes}
    for edge in edge_pairs(edges, what):
        for node in edge:
            if node not in parents:
                raise StructureError(
                    f"{what} names the edge {edge[0]} -> {edge[1]}, but {shown(node)} is not a node."
                    f"{did_you_mean(node, nodes)}"
                )
        parents[edge[1]].add(edge[0])
    return parents


def one_or_more(value) -> tuple:
    """Nodes as a tuple; a str or an int stands for one."""
    return (value,) if isinstance(value, (str, Integral)) else tuple(value)
