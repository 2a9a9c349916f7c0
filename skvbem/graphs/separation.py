"""Which nodes of a graph tell nothing of others once some are known: d-separation and Markov blankets.

Two sets are separated by a third if removing it cuts them apart in the moral graph of all their ancestors: parents of a
common child joined, arrows dropped [LDLL90].
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Set


def markov_blanket(parents: Mapping, children: Mapping, node: Hashable) -> set:
    """Parents, children and the children's other parents: given these, no other node tells anything of this one."""
    blanket = {*parents[node], *children[node]}
    for child in children[node]:
        blanket.update(parents[child])
    return blanket - {node}


def are_separated(parents: Mapping, one: Set, other: Set, given: Set) -> bool:
    """Whether `given` separates two sets of nodes: whether they are independent under every choice of tables.

    Parameters
    ----------
    parents : mapping of node to tuple
        The graph.
    one, other, given : set
        Disjoint.
    """
    neighbors = _moral_graph(parents, _with_ancestors(parents, one | other | given))
    reached, waiting = set(one), list(one)
    while waiting:
        for node in neighbors[waiting.pop()] - given - reached:
            reached.add(node)
            waiting.append(node)
    return not reached & other


def _with_ancestors(parents: Mapping, nodes: Set) -> set:
    closure, waiting = set(nodes), list(nodes)
    while waiting:
        for parent in parents[waiting.pop()]:
            if parent not in closure:
                closure.add(parent)
                waiting.append(parent)
    return closure


def _moral_graph(parents: Mapping, nodes: Set) -> dict[Hashable, set]:
    neighbors: dict[Hashable, set] = {node: set() for node in nodes}
    for child in nodes:
        family = {child, *parents[child]}
        for member in family:
            neighbors[member] |= family - {member}
    return neighbors
