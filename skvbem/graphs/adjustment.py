"""Sets of nodes to adjust for: what has to be known beside actions and targets to find an effect from observations.

A set Z is an *adjustment set* if p(targets | do(actions)) is the average of p(targets | actions, z) over p(z), under
all choices of tables. That is so if and only if Z has no node on a proper causal path, nor a descendant of one, and
blocks all other paths [SVR10]. For one action and one target the smallest such sets are those of the back-door
criterion [Pearl09 definition 3.3.1]. A *front-door set* lies on all directed paths, and is not confounded with actions,
nor, given these, with targets [Pearl09 definition 3.3.3, JTB22].

The smallest adjustment sets are the smallest sets that separate actions and targets in a moral graph, which can be
listed one from the other [KK98]. Front-door sets are found by asking which sets of nodes have one among them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from itertools import islice
from typing import Any

from skvbem._arguments import is_real
from skvbem._names import shown
from skvbem.errors import TooLargeError
from skvbem.graphs.paths import are_separated, moral_graph, reached, with_ancestors

Nodes = frozenset
# Most sets that are listed, by hand.
_MAX_SETS = 10_000


def adjustment_sets(parents: Mapping, targets: Set, actions: Set, hidden: Set) -> Iterator[Nodes]:
    """Each set of observed nodes to adjust for that has no other as a part, once.

    Parameters
    ----------
    parents : mapping of node to tuple
        The graph, hidden nodes included.
    targets, actions, hidden : set
        Disjoint.
    """
    into_actions_cut = {node: () if node in actions else family for node, family in parents.items()}
    out_of_actions_cut = {node: tuple(p for p in family if p not in actions) for node, family in parents.items()}
    causal = (_with_descendants(into_actions_cut, actions) - actions) & with_ancestors(out_of_actions_cut, targets)
    # without the first edges of causal paths
    others = {node: out_of_actions_cut[node] if node in causal else family for node, family in parents.items()}
    relevant = with_ancestors(others, actions | targets)
    allowed = relevant - actions - targets - hidden - _with_descendants(parents, causal)
    return _separators(moral_graph(others, relevant), actions, targets, allowed)


def _separators(neighbors: Mapping, one: Set, other: Set, among: Set) -> Iterator[Nodes]:
    """Each smallest set among some nodes that cuts two others apart in an undirected graph, once.

    The one next to `one` comes first. From each all others follow by going one of its nodes further [KK98].
    """

    def next_to(inside: Set) -> Nodes | None:
        """The set next to some nodes around `one`; None if nothing cuts these off from `other`."""
        inside = reached(neighbors, inside, among - inside)
        if inside & other:
            return None
        border = set().union(*(neighbors[node] for node in inside)) - inside
        beyond = reached(neighbors, other, border)
        return Nodes(border & set().union(*(neighbors[node] for node in beyond)))

    waiting, seen = [next_to(one)], set[Nodes]()
    while waiting:
        separator = waiting.pop()
        if separator is not None and separator not in seen:
            seen.add(separator)
            yield separator
            inside = reached(neighbors, one, separator)
            waiting += [next_to(inside | {node}) for node in sorted(separator, key=str)]


def front_door_sets(parents: Mapping, targets: Set, actions: Set, hidden: Set) -> Iterator[Nodes]:
    """Each front-door set of observed nodes that has no other as a part, once; as `adjustment_sets` takes them."""
    out_of_actions_cut = {node: tuple(p for p in family if p not in actions) for node, family in parents.items()}
    open_to_use = Nodes(parents) - targets - actions - hidden
    unconfounded = (node for node in open_to_use if are_separated(out_of_actions_cut, actions, {node}, set()))

    def largest(among: Nodes) -> Nodes:
        """The largest part of which no node is confounded with targets given actions, once edges out of it are cut."""
        while True:
            cut = {node: tuple(p for p in family if p not in among) for node, family in parents.items()}
            kept = Nodes(node for node in among if are_separated(cut, {node}, targets, actions))
            if kept == among:
                return among
            among = kept

    def intercept(among: Nodes) -> bool:
        barred = largest(among)
        open_paths = {node: () if node in barred else family for node, family in parents.items()}
        return not with_ancestors(open_paths, targets) & actions

    return _smallest(intercept, Nodes(unconfounded))


def first_of(sets: Iterator[Nodes]) -> list[Nodes]:
    """All sets; TooLargeError if they are more than can be looked at."""
    listed = list(islice(sets, _MAX_SETS + 1))
    if len(listed) > _MAX_SETS:
        raise TooLargeError(
            f"There are more than {_MAX_SETS} such sets. Name nodes that cannot be observed as 'hidden', or ask the "
            "graph of fewer nodes."
        )
    return listed


def check_cost(cost: Any) -> float:
    """The cost of a node, if it is one; else ValueError."""
    if not is_real(cost) or not cost >= 0:
        raise ValueError(f"The costs of nodes must be numbers >= 0. Got {shown(cost)} among them.")
    return float(cost)


def _smallest(suffices: Callable[[Nodes], bool], among: Nodes) -> Iterator[Nodes]:
    """The sets that suffice and of which no part does; more nodes than suffice have to suffice, too.

    Each of them but one lacks a node of this one: so all are found within what is left without one of its nodes.
    """
    waiting, seen, solutions = [among], {among}, set[Nodes]()
    while waiting:
        around = waiting.pop()
        if not suffices(around):
            continue
        smallest = around
        for node in sorted(around, key=str):
            if suffices(smallest - {node}):
                smallest -= {node}
        if smallest not in solutions:
            solutions.add(smallest)
            yield smallest
        new = {around - {node} for node in smallest} - seen
        seen |= new
        waiting += sorted(new, key=lambda nodes: sorted(map(str, nodes)))


def _with_descendants(parents: Mapping, nodes: Set) -> set:
    children: dict = {node: [] for node in parents}
    for child, family in parents.items():
        for parent in family:
            children[parent].append(child)
    return with_ancestors(children, nodes)
