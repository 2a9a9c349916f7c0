"""Moves: the least changes of a structure, each with the move that undoes it.

An edge appears, disappears or turns; a latent appears with a few children or disappears; it gains or loses a state.
What a move may do is given from outside: edges obey rules, whole settings lie within a space.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, combinations, count

from skvbem._arguments import NUMBER
from skvbem._names import shown
from skvbem.errors import StructureError
from skvbem.graphs.dag import DAG
from skvbem.spaces.rules import EdgeRules, make_rules
from skvbem.spaces.settings import hidden_graph

__all__ = [
    "AddEdge",
    "AddLatent",
    "AddState",
    "Move",
    "RemoveEdge",
    "RemoveLatent",
    "RemoveState",
    "ReverseEdge",
    "edge_moves",
    "latent_moves",
    "possible_edge_moves",
    "state_moves",
]


class Move(ABC):
    """A change of a setting. `reverse` is the move that undoes it."""

    @property
    @abstractmethod
    def reverse(self) -> Move:
        """The move that leads back."""

    @abstractmethod
    def apply(self, setting: Mapping) -> dict:
        """The setting after the move, with its structure as a `DAG`.

        Raises
        ------
        StructureError
            If the move cannot be made from there.
        """


class _EdgeMove(Move):
    @abstractmethod
    def change(self, dag: DAG) -> DAG:
        """The graph after the move."""

    def apply(self, setting: Mapping) -> dict:
        """The setting after the move, with its structure as a `DAG`."""
        dag, _ = _parts(setting)
        return {**setting, "structure": self.change(dag)}


@dataclass(frozen=True)
class AddEdge(_EdgeMove):
    """The edge from `parent` to `child` appears."""

    parent: Hashable
    child: Hashable

    @property
    def reverse(self) -> RemoveEdge:
        """The move that removes the edge."""
        return RemoveEdge(self.parent, self.child)

    def change(self, dag: DAG) -> DAG:
        """The graph with the edge; StructureError if it has it, or if the edge would close a cycle."""
        return DAG.from_edges([*dag.edges, (self.parent, self.child)], dag.nodes)


@dataclass(frozen=True)
class RemoveEdge(_EdgeMove):
    """The edge from `parent` to `child` disappears."""

    parent: Hashable
    child: Hashable

    @property
    def reverse(self) -> AddEdge:
        """The move that adds the edge."""
        return AddEdge(self.parent, self.child)

    def change(self, dag: DAG) -> DAG:
        """The graph without the edge; StructureError if it has no such edge."""
        return DAG.from_edges(_without(dag, (self.parent, self.child)), dag.nodes)


@dataclass(frozen=True)
class ReverseEdge(_EdgeMove):
    """The edge from `parent` to `child` turns round."""

    parent: Hashable
    child: Hashable

    @property
    def reverse(self) -> ReverseEdge:
        """The move that turns the edge back."""
        return ReverseEdge(self.child, self.parent)

    def change(self, dag: DAG) -> DAG:
        """The graph with the edge turned; StructureError if it has no such edge, or if that closes a cycle."""
        return DAG.from_edges([*_without(dag, (self.parent, self.child)), (self.child, self.parent)], dag.nodes)


@dataclass(frozen=True)
class AddLatent(Move):
    """A latent of this name and number of states appears, with these children and parents."""

    latent: Hashable
    n_states: int
    children: tuple = ()
    parents: tuple = ()

    @property
    def reverse(self) -> RemoveLatent:
        """The move that removes the latent."""
        return RemoveLatent(self.latent, self.n_states, self.children, self.parents)

    def apply(self, setting: Mapping) -> dict:
        """The setting with the latent, with its structure as a `DAG`."""
        dag, latents = _parts(setting)
        if self.latent in dag.nodes:
            raise StructureError(f"{shown(self.latent)} is a node already. Give the new latent another name.")
        edges = [(self.latent, child) for child in self.children] + [(parent, self.latent) for parent in self.parents]
        for node in (*self.children, *self.parents):
            dag.parents(node)  # raises where there is no such node
        nodes = (*latents, self.latent, *(node for node in dag.nodes if node not in latents))
        grown = DAG.from_edges([*dag.edges, *edges], nodes)
        return {**setting, "structure": grown, "latents": {**latents, self.latent: self.n_states}}


@dataclass(frozen=True)
class RemoveLatent(Move):
    """The latent disappears, with its edges to these children and from these parents."""

    latent: Hashable
    n_states: int
    children: tuple = ()
    parents: tuple = ()

    @property
    def reverse(self) -> AddLatent:
        """The move that adds the latent."""
        return AddLatent(self.latent, self.n_states, self.children, self.parents)

    def apply(self, setting: Mapping) -> dict:
        """The setting without the latent, with its structure as a `DAG`."""
        dag, latents = _parts(setting)
        if latents.get(self.latent) != self.n_states or (
            set(dag.children(self.latent)) != set(self.children) or set(dag.parents(self.latent)) != set(self.parents)
        ):
            raise StructureError(f"The setting has no latent {shown(self.latent)} as {self} describes it.")
        nodes = [node for node in dag.nodes if node != self.latent]
        left = DAG.from_edges((edge for edge in dag.edges if self.latent not in edge), nodes)
        del latents[self.latent]
        return {**setting, "structure": left, "latents": latents}


@dataclass(frozen=True)
class AddState(Move):
    """The latent has one state more."""

    latent: Hashable

    @property
    def reverse(self) -> RemoveState:
        """The move that takes the state away."""
        return RemoveState(self.latent)

    def apply(self, setting: Mapping) -> dict:
        """The setting with one state more of the latent."""
        return _with_states(setting, self.latent, 1)


@dataclass(frozen=True)
class RemoveState(Move):
    """The latent has one state less."""

    latent: Hashable

    @property
    def reverse(self) -> AddState:
        """The move that adds the state."""
        return AddState(self.latent)

    def apply(self, setting: Mapping) -> dict:
        """The setting with one state less of the latent, which keeps at least one."""
        return _with_states(setting, self.latent, -1)


def edge_moves(dag: DAG, rules: EdgeRules | None = None) -> Iterator[tuple[AddEdge | RemoveEdge | ReverseEdge, DAG]]:
    """All changes of a single edge and the graphs they lead to: edges added, then removed, then turned.

    Parameters
    ----------
    dag : DAG
        A graph that obeys the rules.
    rules : EdgeRules, optional
        What the graphs must obey (see `skvbem.spaces.rules.make_rules`). By default any DAG will do.

    Yields
    ------
    move : AddEdge, RemoveEdge or ReverseEdge
    dag : DAG

    Raises
    ------
    StructureError
        If `dag` does not obey the rules.

    Examples
    --------
    >>> from skvbem.graphs.dag import DAG
    >>> from skvbem.spaces.moves import edge_moves
    >>> for move, dag in edge_moves(DAG.from_string("[x][y|x]")):
    ...     print(move, dag)
    RemoveEdge(parent='x', child='y') [x][y]
    ReverseEdge(parent='x', child='y') [x|y][y]
    """
    return ((move, move.change(dag)) for move in possible_edge_moves(dag, rules))


def possible_edge_moves(dag: DAG, rules: EdgeRules | None = None) -> Iterator[AddEdge | RemoveEdge | ReverseEdge]:
    """The moves of `edge_moves` without the graphs they lead to, for those who score a move before they make it.

    Parameters
    ----------
    dag : DAG
    rules : EdgeRules, optional
        As in `edge_moves`.

    Yields
    ------
    move : AddEdge, RemoveEdge or ReverseEdge

    Raises
    ------
    StructureError
        If `dag` does not obey the rules.
    """
    rules = make_rules(dag.nodes) if rules is None else rules
    if not rules.allow(dag):
        raise StructureError(f"{shown(dag)} does not obey the rules that its moves are to keep.")
    return _obeying_edge_moves(dag, rules)


def latent_moves(
    setting: Mapping,
    within: Container | None = None,
    *,
    n_states: Iterable[int] = (2,),
    n_children: Iterable[int] = (2,),
) -> Iterator[tuple[AddLatent | RemoveLatent, dict]]:
    """All ways to add a latent without parents above a few other nodes, and to remove such a latent.

    Parameters
    ----------
    setting : mapping
        With a `structure` and, if it has latents, `latents`.
    within : container of settings, optional
        Where the moves must end, for instance a space.
    n_states : iterable of int
        How many states latents have that come and go.
    n_children : iterable of int
        How many children they have when they do.

    Yields
    ------
    move : AddLatent or RemoveLatent
    setting : dict

    Notes
    -----
    A new latent gets the first of the names h0, h1, ... that is free.

    Examples
    --------
    >>> from skvbem.spaces.moves import latent_moves
    >>> for move, setting in latent_moves({"structure": "[x][y]"}):
    ...     print(move, setting["structure"])
    AddLatent(latent='h0', n_states=2, children=('x', 'y'), parents=()) [h0][x|h0][y|h0]
    """
    dag, latents = _parts(setting)
    states, sizes = sorted(set(n_states)), sorted(set(n_children))
    name = next(name for name in (f"h{place}" for place in count()) if name not in dag.nodes)
    added = (
        AddLatent(name, n, children) for size in sizes for children in combinations(dag.nodes, size) for n in states
    )
    removed = (
        RemoveLatent(latent, n, dag.children(latent))
        for latent, n in latents.items()
        if n in states and len(dag.children(latent)) in sizes and not dag.parents(latent)
    )
    return _ending_within(chain(added, removed), setting, within)


def state_moves(setting: Mapping, within: Container | None = None) -> Iterator[tuple[AddState | RemoveState, dict]]:
    """All ways to give one latent a state more or a state less.

    Parameters
    ----------
    setting : mapping
        With a `structure` and `latents`.
    within : container of settings, optional
        Where the moves must end. By default anywhere: latents keep at least one state.

    Yields
    ------
    move : AddState or RemoveState
    setting : dict

    Examples
    --------
    >>> from skvbem.spaces.moves import state_moves
    >>> for move, setting in state_moves({"structure": "[h][x|h][y|h]", "latents": {"h": 2}}):
    ...     print(move, setting["latents"])
    AddState(latent='h') {'h': 3}
    RemoveState(latent='h') {'h': 1}
    """
    _, latents = _parts(setting)
    removed = (RemoveState(latent) for latent, n in latents.items() if n != NUMBER and n > 1)
    added = (AddState(latent) for latent, n in latents.items() if n != NUMBER)
    return _ending_within(chain(added, removed), setting, within)


def _obeying_edge_moves(dag, rules):
    below = {node: dag.descendants([node]) for node in dag.nodes}
    n_parents = {node: len(dag.parents(node)) for node in dag.nodes}

    def may_gain(parent, child):
        rule = rules.parents[child]
        return parent in rule.possible and n_parents[child] < rule.most

    def may_lose(parent, child):
        rule = rules.parents[child]
        return parent not in rule.required and n_parents[child] > rule.least

    for child in dag.nodes:
        taken = {child, *dag.parents(child), *below[child]}
        for parent in dag.nodes:
            if parent not in taken and may_gain(parent, child):
                yield AddEdge(parent, child)
    for parent, child in dag.edges:
        if may_lose(parent, child):
            yield RemoveEdge(parent, child)
    for parent, child in dag.edges:
        detour = any(child in below[other] for other in dag.children(parent))
        if not detour and may_lose(parent, child) and may_gain(child, parent):
            yield ReverseEdge(parent, child)


def _ending_within(moves, setting, within):
    ends = ((move, move.apply(setting)) for move in moves)
    return ends if within is None else ((move, end) for move, end in ends if end in within)


def _parts(setting) -> tuple[DAG, dict]:
    graph, latents = hidden_graph(setting) or (None, {})
    if not isinstance(graph, DAG):
        raise StructureError(
            "A move needs a setting with a structure and, if it has them, latents; the structure must be directed. Got "
            f"{shown(setting)} instead."
        )
    return graph, latents


def _without(dag, edge):
    if edge not in dag.edges:
        raise StructureError(f"The graph has no edge {edge[0]} -> {edge[1]}.")
    return [other for other in dag.edges if other != edge]


def _with_states(setting, latent, more):
    _, latents = _parts(setting)
    n_states = latents.get(latent, 0)
    n_states = 0 if n_states == NUMBER else n_states + more
    if latent not in latents or n_states < 1:
        raise StructureError(f"{shown(latent)} is no latent with {max(1, 1 - more)} states or more.")
    return {**setting, "latents": {**latents, latent: n_states}}
