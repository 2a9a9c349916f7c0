"""All directed acyclic graphs over a few nodes, within rules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import combinations, pairwise, product
from operator import or_
from typing import Any

from skvbem._arguments import NUMBER
from skvbem._lazy import cached_property
from skvbem._names import did_you_mean, shown
from skvbem.errors import StructureError
from skvbem.graphs.dag import DAG
from skvbem.spaces.rules import EdgeRules, edge_pairs, make_rules, one_or_more, tier_members
from skvbem.spaces.structures import StructureSpace, check_latents, check_nodes, name_order

__all__ = ["DAGSpace"]


@dataclass(frozen=True, eq=False, repr=False)
class DAGSpace(StructureSpace):
    """All directed acyclic graphs over observed nodes and latents that obey rules, up to names of exchangeable latents.

    Parameters
    ----------
    nodes : iterable of hashable
        The observed nodes.
    latents : mapping, list of str, or int, optional
        Latent -> its number of states. A list means 2 states each, an int one latent ``"h0"``. Latents with as many
        states as each other are exchangeable.
    max_parents : int, optional
        The largest number of parents of a node.
    tiers : iterable of iterables of hashable, optional
        Every node, latents too, in one tier; edges run within a tier or to a later one. ``[latents, nodes]`` keeps
        latents from having observed parents.
    required, forbidden : iterable of (parent, child), mapping child -> parents, data frame or DAG
        Edges that every graph has, and edges that none has. A frame has a row for each edge: parent, then child.
    childless : bool, default=False
        Whether a latent may be without children. Such a latent leaves the evidence as it is, so that by default it is
        left out: a smaller space says the same.
    leaves : iterable of hashable, optional
        Nodes that have no children in any graph, such as those of measurements and counts in a `VBNetwork`.
    allowed : iterable of (parent, child), mapping child -> parents, data frame or DAG, optional
        The only edges that a graph may have (a white list), those of latents among them. By default any.
    numbers : iterable of hashable, optional
        Nodes that hold numbers. They have no children among the other nodes, which have tables: edges run among
        numbers, or to them. An edge to a latent, which the number then drives, is left where `required` or `allowed`
        names it. By default `StructureSearchCV` finds numbers in the data, and elsewhere there are none; ``()`` says
        that there are none anywhere.

    Raises
    ------
    StructureError
        If a node is both latent and observed, if an edge, a tier, a leaf or a number names an unknown node, if required
        edges close a cycle or break another rule.
    ValueError
        If no graph is left.

    See Also
    --------
    BipartiteSpace : edges from latents to observed nodes only.

    Notes
    -----
    `n_settings` is counted, not enumerated, and so known for many more nodes than can be searched one by one. Only
    rules that tell exchangeable latents apart force an enumeration. d numbers and c other nodes have
    a(d) a(c) 2^(d c) graphs, a(n) those of n nodes without rules.

    Examples
    --------
    >>> from skvbem.spaces import DAGSpace
    >>> [len(DAGSpace(range(n))) for n in range(1, 6)]
    [1, 3, 25, 543, 29281]
    >>> space = DAGSpace(["age", "smoker", "cancer"], tiers=[["age"], ["smoker"], ["cancer"]], max_parents=1)
    >>> [str(setting["structure"]) for setting in space][-2:]
    ['[age][smoker|age][cancer|age]', '[age][smoker|age][cancer|smoker]']
    >>> DAGSpace(["x", "y"], latents={"h": 2}, required=[("h", "x")], max_parents=1).to_list()[0]
    {'structure': DAG("[h][x|h][y]"), 'latents': {'h': 2}}
    >>> [str(setting["structure"]) for setting in DAGSpace(["drug", "weight"], leaves=["weight"])]
    ['[drug][weight]', '[drug][weight|drug]']
    >>> len(DAGSpace(["sex", "drug", "height", "weight"], numbers=["height", "weight"]))  # 3 * 3 * 2**4
    144
    >>> chains = DAGSpace(["a", "b", "c"], allowed=[("a", "b"), ("b", "c")], required=[("a", "b")])
    >>> [str(setting["structure"]) for setting in chains]
    ['[a][b|a][c]', '[a][b|a][c|b]']
    """

    nodes: Any
    latents: Any = None
    max_parents: int | None = None
    tiers: Any = None
    required: Any = ()
    forbidden: Any = ()
    childless: bool = False
    leaves: Any = ()
    allowed: Any = None
    numbers: Any = None

    def __post_init__(self):
        object.__setattr__(self, "latents", check_latents(self.latents, "DAGSpace"))
        object.__setattr__(self, "nodes", check_nodes(self.nodes, self.latents, "DAGSpace"))
        for name in ("required", "forbidden", "allowed"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, edge_pairs(getattr(self, name), name))
        object.__setattr__(self, "tiers", tier_members(self.tiers))
        object.__setattr__(self, "leaves", self._in_order("leaves"))
        if self.numbers is not None:
            hidden = [name for name, states in self.latents.items() if states == NUMBER]
            object.__setattr__(self, "numbers", (*one_or_more(self.numbers), *hidden))
            object.__setattr__(self, "numbers", self._in_order("numbers"))
        self.check_not_empty()

    @property
    def observed(self) -> tuple:
        """The observed nodes."""
        return self.nodes

    @cached_property
    def rules(self) -> EdgeRules:
        """The rule for the parents of every node: latents first, then observed nodes."""
        nodes = (*self.latents, *self.nodes)
        below_leaves = ((leaf, node) for leaf in self.leaves for node in nodes if node != leaf)
        return make_rules(
            nodes,
            tiers=self.tiers,
            required=self.required,
            forbidden=(*self.forbidden, *below_leaves, *self._below_numbers()),
            allowed=self.allowed,
            max_parents=self.max_parents,
        )

    def _in_order(self, what: str) -> tuple:
        """The nodes that a parameter names, in the order of the nodes."""
        named, nodes = one_or_more(getattr(self, what)), (*self.latents, *self.nodes)
        for node in named:
            if node not in nodes:
                raise StructureError(f"{what} name {shown(node)}, which is not a node.{did_you_mean(node, nodes)}")
        return tuple(node for node in nodes if node in named)

    def _below_numbers(self) -> list[tuple]:
        """The edges that numbers rule out: those to nodes with tables, but to latents that another rule names."""
        named, edges = {*self.required, *(self.allowed or ())}, []
        for number, node in product(self.numbers or (), (*self.latents, *self.nodes)):
            if node in self.numbers or (node in self.latents and (number, node) in named):
                continue
            if (number, node) in self.required:
                raise StructureError(
                    f"The required edge {number} -> {node} runs from a number to a node that holds none. Drop the "
                    f"edge, or list 'numbers' without {shown(number)}."
                )
            edges.append((number, node))
        return edges

    def _graphs(self) -> Iterator[DAG]:
        nodes = self.rules.nodes
        for masks in self._parent_sets():
            stands = self._stands(masks)
            if stands is not False:
                parents = {
                    child: [node for place, node in enumerate(nodes) if mask >> place & 1]
                    for child, mask in zip(nodes, masks)
                }
                dag = DAG(nodes, parents)
                if stands or dag == self.representative(dag):
                    yield dag

    def _stands(self, masks) -> bool | None:
        """True if the graph stands for its class, as far as the observed relatives of latents tell; None if not so far.

        As `DAG.canonical` has it: exchangeable latents, by name, have descending sets of observed children, and, where
        these are equal, of observed parents.
        """
        if not self.is_symmetric:
            return None
        undecided = False
        for latents in self._places_of_exchangeable:
            relatives = []
            for latent in latents:
                children = parents = 0
                for node in self._places_of_observed:
                    children = children << 1 | masks[node] >> latent & 1
                    parents = parents << 1 | masks[latent] >> node & 1
                relatives.append((children, parents))
            for first, second in pairwise(relatives):
                if first < second:
                    return False
                undecided |= first == second
        return None if undecided else True

    @cached_property
    def _places_of_observed(self):
        return [len(self.latents) + self.nodes.index(node) for node in sorted(self.nodes, key=name_order)]

    @cached_property
    def _places_of_exchangeable(self):
        place = {latent: at for at, latent in enumerate(self.latents)}
        groups = (sorted(group, key=name_order) for group in self.exchangeable)
        return [[place[latent] for latent in group] for group in groups if len(group) > 1]

    def _parent_sets(self) -> Iterator[tuple[int, ...]]:
        """The parents of all nodes as masks, for every labeled graph."""
        nodes, rules = self.rules.nodes, self.rules.parents
        place = {node: at for at, node in enumerate(nodes)}
        possible, required = (
            [sum(1 << place[parent] for parent in getattr(rules[node], which)) for node in nodes]
            for which in ("possible", "required")
        )
        most = [rules[node].most - len(rules[node].required) for node in nodes]

        def can_have_children(needy, at):
            """True if nodes from here on can take in all latents that need a child; if not, that is certain."""
            taken_in = [mask & needy for mask in possible[at:]]
            room = sum(min(n, mask.bit_count()) for n, mask in zip(most[at:], taken_in))
            return reduce(or_, taken_in, 0) == needy and room >= needy.bit_count()

        def extended(masks, below, needy):
            at = len(masks)
            if needy and not can_have_children(needy, at):
                return
            if at == len(nodes):
                yield masks
                return
            free = [1 << p for p in range(len(nodes)) if (possible[at] & ~required[at] & ~below[at]) >> p & 1]
            for size in range(min(most[at], len(free)) + 1):
                for chosen in combinations(free, size):
                    mask = required[at] | sum(chosen)
                    yield from extended((*masks, mask), _with_edges(below, mask, at), needy & ~mask)

        # Required edges are there from the start, so that every choice can be completed.
        below = (0,) * len(nodes)
        for at, mask in enumerate(required):
            below = _with_edges(below, mask, at)
        needy = 0 if self.childless else sum(1 << place[latent] for latent in self.latents) & ~reduce(or_, required, 0)
        return extended((), below, needy)


def _with_edges(below, parents, child):
    """The masks of descendants once `parents`, a mask, are above `child`."""
    gained = below[child] | 1 << child
    return tuple(
        descendants | gained if (descendants | 1 << node) & parents else descendants
        for node, descendants in enumerate(below)
    )
