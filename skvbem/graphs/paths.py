"""Paths of directed graphs: cycles, d-separation, and identified effects of setting nodes.

Two sets of nodes are separated by a third if removing it cuts them apart in the moral graph of all their ancestors:
parents of a common child joined, arrows dropped [LDLL90].

An effect is identified if any two networks with this graph that agree on the distribution of the observed nodes agree
on it. The ID algorithm decides that for sets of nodes [SP06], IDC for effects given evidence [SP06a]; both are
complete. They work on the latent projection of the graph, in which a directed edge stands for a path through hidden
nodes and a bidirected one for a common hidden cause.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Set
from dataclasses import dataclass
from itertools import combinations


def find_cycle(nodes: Iterable[Hashable], parents: Mapping[Hashable, Iterable[Hashable]]) -> tuple:
    """The nodes of one directed cycle, each a parent of the next and the last one of the first; empty if there is none.

    The cycle starts at the earliest of its nodes in `nodes`; `parents` maps child -> parents and may lack roots.
    """
    place = {node: position for position, node in enumerate(nodes)}
    done: set = set()
    exhausted = object()
    for start in place:
        path = {} if start in done else {start: iter(parents.get(start, ()))}
        while path:
            node = next(reversed(path))
            parent = next((parent for parent in path[node] if parent not in done), exhausted)
            if parent in path:
                against = list(path)
                cycle = against[against.index(parent) :][::-1]
                first = min(range(len(cycle)), key=lambda at: place[cycle[at]])
                return (*cycle[first:], *cycle[:first])
            if parent is exhausted:
                done.add(node)
                del path[node]
            else:
                path[parent] = iter(parents.get(parent, ()))
    return ()


def describe_cycle(cycle: tuple) -> str:
    """The error text that prints a cycle in the direction of its edges."""
    steps = [str(node) for node in (*cycle, cycle[0])]
    if len(steps) > 20:
        steps[10:-9] = ["..."]
    return f"The graph must have no directed cycle. It has {' -> '.join(steps)}; remove or turn one of these edges."


def markov_blanket(parents: Mapping, children: Mapping, node: Hashable) -> set:
    """Parents, children and the children's other parents: given these, no other node tells anything of this one."""
    blanket = {*parents[node], *children[node]}
    for child in children[node]:
        blanket.update(parents[child])
    return blanket - {node}


def are_separated(parents: Mapping, one: Set, other: Set, given: Set) -> bool:
    """True if `given` separates two sets of nodes: if they are independent under every choice of tables.

    Parameters
    ----------
    parents : mapping of node to tuple
        The graph.
    one, other, given : set
        Disjoint.
    """
    neighbors = moral_graph(parents, with_ancestors(parents, one | other | given))
    return not reached(neighbors, one, given) & other


def reached(neighbors: Mapping, nodes: Set, barred: Set) -> set:
    """Some nodes, and those to which paths of an undirected graph lead that avoid others."""
    inside, waiting = set(nodes), list(nodes)
    while waiting:
        new = neighbors[waiting.pop()] - barred - inside
        inside |= new
        waiting += new
    return inside


def with_ancestors(parents: Mapping, nodes: Set) -> set:
    """The nodes and their ancestors."""
    closure, waiting = set(nodes), list(nodes)
    while waiting:
        for parent in parents[waiting.pop()]:
            if parent not in closure:
                closure.add(parent)
                waiting.append(parent)
    return closure


def moral_graph(parents: Mapping, nodes: Set) -> dict[Hashable, set]:
    """Node -> its neighbors once parents of a common child are joined, of a set of nodes with all their ancestors."""
    neighbors: dict[Hashable, set] = {node: set() for node in nodes}
    for child in nodes:
        family = {child, *parents[child]}
        for member in family:
            neighbors[member] |= family - {member}
    return neighbors


Nodes = frozenset


def is_identified(parents: Mapping, hidden: Set, targets: Set, actions: Set, evidence: Set = frozenset()) -> bool:
    """True if p(targets | do(actions), evidence) follows from the distribution of the nodes that are not hidden.

    Parameters
    ----------
    parents : mapping of node to tuple
        The graph, hidden nodes included.
    hidden : set
    targets, actions, evidence : set
        Disjoint. If one of them holds a hidden node, the answer is no.
    """
    if hidden & (targets | actions | evidence):
        return False
    for node in evidence:
        others = evidence - {node}
        cut = {
            child: () if child in actions else tuple(parent for parent in family if parent != node)
            for child, family in parents.items()
        }
        if are_separated(cut, targets, {node}, actions | others):
            return is_identified(parents, hidden, targets, actions | {node}, others)
    return _Projection.of(parents, hidden).identifies(Nodes(targets | evidence), Nodes(actions))


@dataclass(frozen=True)
class _Projection:
    """A graph of observed nodes: directed edges child -> parents, and pairs of nodes with a common hidden cause."""

    nodes: Nodes
    parents: Mapping[Hashable, Nodes]
    confounded: frozenset[Nodes]

    @classmethod
    def of(cls, parents: Mapping, hidden: Set) -> _Projection:
        """The latent projection of a graph."""
        children: dict[Hashable, list] = {node: [] for node in parents}
        for child, family in parents.items():
            for parent in family:
                children[parent].append(child)

        def reached(node: Hashable) -> set:  # observed nodes at the ends of paths through hidden nodes alone
            ends, seen, waiting = set(), set(), [node]
            while waiting:
                for child in children[waiting.pop()]:
                    if child not in hidden:
                        ends.add(child)
                    elif child not in seen:
                        seen.add(child)
                        waiting.append(child)
            return ends

        observed = Nodes(node for node in parents if node not in hidden)
        causes: dict[Hashable, set] = {node: set() for node in observed}
        for node in observed:
            for child in reached(node):
                causes[child].add(node)
        pairs = {Nodes(pair) for node in hidden for pair in combinations(reached(node), 2)}
        return cls(observed, {node: Nodes(kin) for node, kin in causes.items()}, frozenset(pairs))

    def within(self, nodes: Nodes) -> _Projection:
        """The graph of some of the nodes."""
        return _Projection(
            nodes,
            {node: self.parents[node] & nodes for node in nodes},
            frozenset(pair for pair in self.confounded if pair <= nodes),
        )

    def ancestors(self, nodes: Nodes, without_arrows_into: Nodes = frozenset()) -> Nodes:
        """The nodes and all from which directed paths lead to them."""
        members, waiting = set(nodes), list(nodes)
        while waiting:
            node = waiting.pop()
            for parent in () if node in without_arrows_into else self.parents[node]:
                if parent not in members:
                    members.add(parent)
                    waiting.append(parent)
        return Nodes(members)

    def components(self) -> list[Nodes]:
        """Sets of nodes that bidirected edges connect."""
        left, components = set(self.nodes), []
        while left:
            component: set = set()
            waiting = [left.pop()]
            while waiting:
                node = waiting.pop()
                component.add(node)
                reached = {other for pair in self.confounded if node in pair for other in pair} & left
                left -= reached
                waiting += reached
            components.append(Nodes(component))
        return components

    def identifies(self, targets: Nodes, actions: Nodes) -> bool:
        """The ID algorithm, lines 1 to 7, for p(targets | do(actions))."""
        if not actions:
            return True
        ancestors = self.ancestors(targets)
        if ancestors != self.nodes:
            return self.within(ancestors).identifies(targets, actions & ancestors)
        irrelevant = self.nodes - actions - self.ancestors(targets, without_arrows_into=actions)
        if irrelevant:
            return self.identifies(targets, actions | irrelevant)
        parts = self.within(self.nodes - actions).components()
        if len(parts) > 1:
            return all(self.identifies(part, self.nodes - part) for part in parts)
        (part,) = parts
        whole = self.components()
        if part in whole:
            return True
        around = next(component for component in whole if part < component)
        return around != self.nodes and self.within(around).identifies(targets, actions & around)
