"""Spaces of graphs that obey rules, up to the names of exchangeable latents.

Latents with as many states as each other are exchangeable: graphs that differ by a permutation of their names are one
model, and one of these graphs stands for all. Rules may name a latent; then not every permutation stays in the space.
Within classes of latents that the rules treat alike `DAG.canonical` finds the graph that stands for the class; the few
ways to deal names out to such classes are tried one by one.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from itertools import combinations, product
from math import comb, factorial, prod
from types import MappingProxyType
from typing import Any

from skvbem._arguments import check_argument, check_limit
from skvbem._lazy import cached_property
from skvbem._names import shown
from skvbem.errors import StructureError, TooLargeError
from skvbem.graphs.dag import DAG
from skvbem.graphs.undirected import UndirectedGraph
from skvbem.spaces.base import MAX_LISTED, Space
from skvbem.spaces.counting import count_graphs
from skvbem.spaces.moves import edge_moves
from skvbem.spaces.rules import EdgeRules
from skvbem.spaces.settings import check_latent_names, hidden_graph, kind_order, resolve_latents

__all__ = ["StructureSpace", "check_latents", "check_nodes", "graph_named_as", "name_order"]


class StructureSpace(Space):
    """Settings of a structure, and of latents if there are any; a neighbor differs by one edge.

    Subclasses supply `latents`, `observed`, `childless`, `rules` and `_graphs`.
    """

    latents: Any
    childless: bool
    observed: Any

    @property
    @abstractmethod
    def rules(self) -> EdgeRules:
        """The rule for the parents of every node: latents first, then observed nodes."""

    @abstractmethod
    def _graphs(self) -> Iterator[DAG]:
        """The graph that stands for each model, as `representative` chooses it."""

    @property
    def parameters(self) -> frozenset:
        """The names of the parameters that settings give: the structure, and latents if there are any."""
        return frozenset({"structure", "latents"} if self.latents else {"structure"})

    @cached_property
    def exchangeable(self) -> list[tuple]:
        """The latents in groups that have as many states."""
        return _grouped(self.latents)

    @cached_property
    def is_symmetric(self) -> bool:
        """True if the rules treat exchangeable latents alike."""
        return len(_grouped(self._kinds)) == len(self.exchangeable)

    @cached_property
    def n_settings(self) -> int:
        """The number of settings, an exact int: graphs that differ by more than names of exchangeable latents."""
        if self.is_symmetric:
            return count_graphs(self.rules, self.exchangeable, childless=self.childless)
        # Rules that tell exchangeable latents apart are no symmetry to count by.
        n_labeled = count_graphs(self.rules, [(latent,) for latent in self.latents], childless=self.childless)
        if n_labeled > MAX_LISTED:
            raise TooLargeError(
                f"The rules tell latents with as many states apart, so that models are counted one by one. "
                f"{n_labeled} graphs are too many to enumerate; {MAX_LISTED} is the limit. Name latents in "
                "no required or forbidden edge, or iterate without counting."
            )
        return sum(1 for _ in self)

    def has_more_than(self, n: int) -> bool:
        """True if there are more than n settings; no more are counted than that takes."""
        check_limit("n", "has_more_than", n)
        return (not self.latents and self._n_along_an_order() > n) or super().has_more_than(n)

    def _n_along_an_order(self) -> int:
        """The number of graphs without an edge against one order of the nodes, all of which are acyclic."""
        required = DAG(self.rules.nodes, {node: rule.required for node, rule in self.rules.parents.items()})
        total, ahead = 1, set[Hashable]()
        for node in required.topological_order():
            rule = self.rules.parents[node]
            n_free, least = len((rule.possible & ahead) - rule.required), len(rule.required)
            total *= sum(comb(n_free, k) for k in range(max(rule.least - least, 0), rule.most - least + 1))
            ahead.add(node)
        return total

    def __iter__(self) -> Iterator[dict]:
        return map(self._setting, self._graphs())

    def __contains__(self, setting) -> bool:
        dag = self._graph_of(setting)
        return dag is not None and bool(self._images(dag))

    def neighbors(self, setting: Mapping) -> Iterator[dict]:
        """The settings one edge away: added, removed or turned."""
        dag: Any = self._graph_of(self.check_member(setting))
        images = self._images(dag)
        representative = self._within_kinds(dag)
        seen = {min(images, key=self._order)}
        for start in (dag if image == representative else image for image in images):
            for _, graph in edge_moves(start, self.rules):
                if self._has_children(graph) and (key := self.representative(graph)) not in seen:
                    seen.add(key)
                    yield self._setting(graph)

    def orbit_size(self, setting: Mapping) -> int:
        """The number of graphs of the space that differ from that of `setting` only by names of latents."""
        images = self._images(self._graph_of(self.check_member(setting)))
        n_names = prod(map(factorial, map(len, _grouped(self._kinds))))
        return sum(n_names // image.n_automorphisms(self._kinds) for image in images)

    def representative(self, dag: DAG) -> DAG:
        """The graph that stands for all graphs of the space that differ from `dag` by names of exchangeable latents."""
        is_right = isinstance(dag, DAG) and self.rules.allow(dag)
        check_argument(is_right, "dag", "representative", f"a graph of {type(self).__name__}", dag)
        return min(self._images(dag), key=self._order)

    def _setting(self, dag):
        return {"structure": dag, "latents": dict(self.latents)} if self.latents else {"structure": dag}

    def _graph_of(self, setting) -> DAG | None:
        """The graph of a setting with the names of this space; None if its nodes are others."""
        graph = graph_named_as(setting, self.latents, self.observed)
        return graph if isinstance(graph, DAG) else None

    def _has_children(self, dag):
        return self.childless or all(map(dag.children, self.latents))

    def _images(self, dag) -> list[DAG]:
        """The graphs of the space that differ from this by names of exchangeable latents, one per class of kinds."""
        images = dict.fromkeys(self._within_kinds(dag.relabel(names) if names else dag) for names in self._dealings)
        return [image for image in images if self.rules.allow(image) and self._has_children(image)]

    def _within_kinds(self, dag):
        """The graph that stands for those that differ from `dag` by names of latents of one kind."""
        return dag.canonical(self._kinds) if len(_grouped(self._kinds)) < len(self._kinds) else dag

    def _order(self, dag):
        return sorted((self.rules.nodes.index(parent), self.rules.nodes.index(child)) for parent, child in dag.edges)

    @cached_property
    def _kinds(self) -> dict:
        """Latent -> its kind: latents of one kind have as many states and are alike to the rules."""
        kinds: dict = {}
        for latent, n_states in self.latents.items():
            like = (other for other in kinds if self.latents[other] == n_states and self.rules.alike(latent, other))
            first = next(like, latent)
            kinds[latent] = kinds.get(first, (n_states, len(kinds)))
        return kinds

    @cached_property
    def _dealings(self) -> list[dict]:
        """All ways to deal the names of exchangeable latents out to kinds, as renamings."""
        if self.is_symmetric:
            return [{}]
        ways = []
        for latents in self.exchangeable:
            ways.append(list(_dealt(latents, _grouped({name: self._kinds[name] for name in latents}))))
        return [{old: new for part in choice for old, new in part.items()} for choice in product(*ways)]


def graph_named_as(setting, latents: Mapping, observed: Iterable[Hashable]) -> DAG | UndirectedGraph | None:
    """The graph of a setting with its latents named as given; None if nodes or numbers of states are others."""
    if not isinstance(setting, Mapping) or not setting.keys() <= {"structure", "latents"}:
        return None
    if (graph_and_latents := hidden_graph(setting)) is None:
        return None
    graph, theirs = graph_and_latents
    if set(graph.nodes) - theirs.keys() != set(observed):
        return None
    if theirs == latents:
        return graph
    ours, others = (sorted(names, key=lambda name: kind_order(names[name])) for names in (latents, theirs))
    if [theirs[name] for name in others] != [latents[name] for name in ours]:
        return None
    return graph.relabel(dict(zip(others, ours)))


def check_latents(latents, owner: str) -> Mapping[Hashable, int]:
    """Latent -> number of states; TypeError or StructureError if that is not what `latents` says."""
    if (states := resolve_latents(latents)) is None:
        raise TypeError(
            f"The 'latents' parameter of {owner} must map latents to their numbers of states, ints >= 1, as "
            f"{{'h0': 2}}. Got {shown(latents)} instead."
        )
    check_latent_names(states, owner)
    return MappingProxyType(states)


def check_nodes(observed, latents: Mapping, owner: str) -> tuple:
    """The names of observed nodes, none of them twice and none of them a latent; TypeError if these are no names."""
    if not isinstance(observed, Iterable):
        raise TypeError(
            f"{owner} must be given the names of the observed nodes, such as the columns of a data frame. Got "
            f"{shown(observed)} instead."
        )
    given = (observed,) if isinstance(observed, str) else tuple(observed)
    names = DAG((), {}).with_nodes(given).nodes
    if len(names) < len(given):
        raise StructureError(f"{owner} names node {shown(Counter(given).most_common(1)[0][0])} twice. Name each once.")
    if both := [name for name in names if name in latents]:
        raise StructureError(
            f"Node {shown(both[0])} of {owner} is both latent and observed. Name it once: with its number of states "
            "if it is never observed, else among the observed."
        )
    return names


def name_order(name: Hashable) -> tuple:
    """The key by which `DAG.canonical` sorts names of nodes."""
    return (isinstance(name, str), str(name))


def _grouped(kinds: Mapping) -> list[tuple]:
    """The latents of each kind, in groups."""
    groups: dict = {kind: [] for kind in kinds.values()}
    for latent, kind in kinds.items():
        groups[kind].append(latent)
    return [tuple(group) for group in groups.values()]


def _dealt(names, groups):
    if not groups:
        yield {}
        return
    for chosen in combinations(names, len(groups[0])):
        rest = [name for name in names if name not in chosen]
        for others in _dealt(rest, groups[1:]):
            yield {**dict(zip(chosen, groups[0])), **others}
