"""Directed acyclic graphs as immutable values.

A graph over named nodes factorizes a joint distribution as ∏ⱼ p(node j | parents of j). With r_j the number of states
of node j and q_j = ∏ r over its parents, the tables hold Σⱼ r_j q_j cells and d' = Σⱼ (r_j − 1) q_j free parameters.
Which nodes are hidden and how many states they have is the caller's to say: a `DAG` is names and edges.
"""

from __future__ import annotations

import heapq
import math
import operator
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from itertools import chain, combinations

from skvbem._arguments import (
    check_argument,
    check_flag,
    check_mapping,
    check_name,
    checked_names,
    is_collection,
    is_whole,
)
from skvbem._names import did_you_mean, first_few, shown
from skvbem.errors import StructureError
from skvbem.graphs import conversions
from skvbem.graphs.adjustment import adjustment_sets, check_cost, first_of, front_door_sets
from skvbem.graphs.canonical import canonical_renaming
from skvbem.graphs.essential import EssentialGraph, immoralities
from skvbem.graphs.paths import are_separated, describe_cycle, find_cycle, markov_blanket
from skvbem.graphs.undirected import UndirectedGraph

__all__ = ["DAG"]

_REMINDER = " Mappings are child -> parents."


class DAG:
    """A directed acyclic graph: named nodes and, for each, its parents.

    Graphs are immutable. Two graphs are equal, and hash alike, when they have the same nodes and the same edges, in
    whatever order the nodes were given. The order of the nodes decides only the order in which nodes, parents and
    children are listed.

    Parameters
    ----------
    nodes : iterable of hashable
        The names of the nodes, usually str, in order. Without `parents`, a whole structure: (parent, child) pairs, a
        model string or whatever else `DAG.coerce` takes.
    parents : mapping, optional
        Child -> its parents: an iterable of names, or one name (a str or an int). Nodes that are no key have none.

    Attributes
    ----------
    nodes : tuple
        The names, in the order given.
    edges : tuple of (parent, child)
        All edges, by child and then by parent, both in the order of the nodes.

    Raises
    ------
    StructureError
        If a node or an edge is given twice, if an edge meets an unknown node, or if there is a cycle.

    See Also
    --------
    DAG.coerce : a DAG from a networkx graph, a model string, a mapping or edges.

    Examples
    --------
    >>> from skvbem.graphs.dag import DAG
    >>> dag = DAG([("smoker", "cancer"), ("cancer", "xray")])
    >>> dag == DAG(["smoker", "cancer", "xray"], {"cancer": "smoker", "xray": ["cancer"]})
    True
    >>> dag
    DAG("[smoker][cancer|smoker][xray|cancer]")
    >>> dag.edges
    (('smoker', 'cancer'), ('cancer', 'xray'))
    >>> dag == DAG.from_string("[xray|cancer][cancer|smoker][smoker]")
    True
    >>> dag.n_free_parameters({"smoker": 2, "cancer": 2, "xray": 3})
    7

    Two hidden binary nodes may swap their names. The canonical graph does not depend on who has which:

    >>> first = DAG.from_edges([("h1", "y1"), ("h2", "y2"), ("h2", "y3")])
    >>> second = first.relabel({"h1": "h2", "h2": "h1"})
    >>> first == second, first.canonical({"h1": 2, "h2": 2}) == second.canonical({"h1": 2, "h2": 2})
    (False, True)
    """

    # Neither __len__ nor __iter__: NumPy must take a list of graphs (candidates of a search) for objects, not for rows.
    __slots__ = ("_children", "_key", "_nodes", "_order", "_parents")
    _nodes: tuple
    _parents: dict
    _children: dict
    _order: tuple
    _key: frozenset

    def __init__(self, nodes, parents: Mapping[Hashable, Iterable[Hashable]] | None = None):
        if parents is None:
            structure = DAG.coerce(nodes)
            nodes, parents = structure._nodes, structure._parents
        elif isinstance(nodes, str):
            raise TypeError(
                f"nodes must be an iterable of names. Got the str {nodes!r}; for a model string use DAG.from_string."
            )
        self._fill(nodes, _families(parents), _REMINDER)

    def _fill(self, nodes, parents, reminder=""):
        nodes = checked_names("nodes", "DAG", nodes)
        index = {node: position for position, node in enumerate(nodes)}
        if len(index) < len(nodes):
            raise StructureError(f"Node {shown(_repeated(nodes))} is named twice. Name each node once.")
        for child in parents:
            if child not in index:
                raise StructureError(
                    f"Parents are given for {shown(child)}, which is not a node.{did_you_mean(child, nodes)}{reminder}"
                )
        ordered, children = {}, {node: [] for node in nodes}
        for child in nodes:
            family = parents.get(child, ())
            for parent in family:
                if parent not in index:
                    hint = did_you_mean(parent, nodes)
                    raise StructureError(
                        f"The edge {parent} -> {child} starts at {shown(parent)}, which is not a node.{hint}{reminder}"
                    )
            positions = sorted({index[parent] for parent in family})
            if len(positions) < len(family):
                raise StructureError(f"The edge {_repeated(family)} -> {child} is given twice. Give each edge once.")
            ordered[child] = tuple(nodes[position] for position in positions)
            for parent in ordered[child]:
                children[parent].append(child)
        order = _topological_order(nodes, index, ordered, children)
        if len(order) < len(nodes):
            raise StructureError(describe_cycle(find_cycle(nodes, ordered)) + reminder)
        self._set(
            _nodes=nodes,
            _parents=ordered,
            _key=frozenset((child, frozenset(family)) for child, family in ordered.items()),
            _children={node: tuple(kin) for node, kin in children.items()},
            _order=order,
        )

    def _set(self, **values):
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __getattr__(self, name):
        """Children and order of a graph that was known to have no cycle, which few are asked for."""
        if name not in ("_children", "_order"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        children: dict = {node: [] for node in self._nodes}
        for child, family in self._parents.items():
            for parent in family:
                children[parent].append(child)
        index = {node: position for position, node in enumerate(self._nodes)}
        order = _topological_order(self._nodes, index, self._parents, children)
        self._set(_children={node: tuple(kin) for node, kin in children.items()}, _order=order)
        return getattr(self, name)

    @classmethod
    def _made(cls, nodes, parents):
        dag = object.__new__(cls)
        dag._fill(nodes, parents)
        return dag

    @classmethod
    def from_edges(cls, edges: Iterable[tuple[Hashable, Hashable]], nodes: Iterable[Hashable] = ()) -> DAG:
        """The graph of (parent, child) pairs: first `nodes`, in order, then the others as they appear in the edges."""
        parents: dict = {}
        ends: list = []
        check_argument(is_collection(edges), "edges", "from_edges", "a list of pairs (parent, child)", edges)
        for edge in edges:
            if isinstance(edge, (str, Set)) or not isinstance(edge, Iterable) or len(pair := tuple(edge)) != 2:
                raise TypeError(f"Each edge must be a pair (parent, child). Got {shown(edge)} instead.")
            parent, child = checked_names("edges", "from_edges", pair)
            parents.setdefault(child, []).append(parent)
            ends += pair
        return cls._made(_extended(checked_names("nodes", "from_edges", nodes), ends), parents)

    @classmethod
    def from_parents(cls, mapping: Mapping[Hashable, Iterable[Hashable]]) -> DAG:
        """The graph of a mapping child -> parents: first its keys, in order, then the other parents, as roots."""
        families = _families(mapping)
        return cls(_extended(tuple(families), chain.from_iterable(families.values())), families)

    @classmethod
    def from_networkx(cls, graph) -> DAG:
        """The graph with the nodes and edges of a directed networkx graph, in its order, without their attributes."""
        nodes, edges = conversions.read_networkx(graph)
        return cls.from_edges(edges, nodes)

    @classmethod
    def from_adjacency(cls, matrix, nodes: Iterable[Hashable] | None = None) -> DAG:
        """The graph of a square table of 0 and 1 (or booleans): row = parent, column = child.

        Parameters
        ----------
        matrix : pandas.DataFrame or array-like of shape (n_nodes, n_nodes)
            The labels of a frame, the same in rows and columns, are the nodes in their order.
        nodes : iterable of hashable, optional
            The names of the rows and columns of an array, which has no labels.

        Raises
        ------
        TypeError
            If an array comes without names, or a frame with some.
        StructureError
            If the table is not square, its labels differ or repeat, a cell is neither 0 nor 1, or there is a cycle. The
            message says which row and column.

        Examples
        --------
        >>> DAG.from_adjacency([[0, 1, 1], [0, 0, 1], [0, 0, 0]], ["a", "b", "c"])
        DAG("[a][b|a][c|a:b]")
        """
        nodes = None if nodes is None else checked_names("nodes", "from_adjacency", nodes)
        nodes, edges = conversions.read_adjacency(matrix, nodes)
        parents: dict = {}
        for parent, child in edges:
            parents.setdefault(child, []).append(parent)
        if cycle := find_cycle(nodes, parents):
            first = (cycle[0], cycle[1 % len(cycle)])
            raise StructureError(f"{describe_cycle(cycle)} Its first edge is the 1 at {conversions.edge_cell(first)}.")
        return cls._made(nodes, parents)

    @classmethod
    def from_string(cls, text: str) -> DAG:
        r"""The graph of a model string, as ``[A][B|A:H]``: each node in brackets, its parents after the bar.

        Parents without brackets of their own are roots, listed last. A bare whole number is an int, any other bare name
        a str without the blanks around it. A name in double quotes is the str as it stands, with ``\"`` for ``"`` and
        ``\\`` for ``\``.

        Raises
        ------
        StructureError
            If the string cannot be read, with the column, or if it is no directed acyclic graph.

        Examples
        --------
        >>> DAG.from_string('[a|"b:c"]').edges
        (('b:c', 'a'),)
        """
        check_argument(isinstance(text, str), "text", "from_string", "a str, such as '[A][B|A]'", text)
        nodes, parents = conversions.read_model_string(text)
        return cls._made(_extended(tuple(nodes), chain.from_iterable(parents.values())), parents)

    @classmethod
    def naive_bayes(cls, root: Hashable, leaves: Iterable[Hashable]) -> DAG:
        """The star in which `root` is the one parent of every leaf.

        Examples
        --------
        >>> DAG.naive_bayes("class", ["x", "y"])
        DAG("[class][x|class][y|class]")
        """
        check_name("root", "naive_bayes", root)
        leaves = checked_names("leaves", "naive_bayes", leaves)
        return cls._made((root, *leaves), dict.fromkeys(leaves, (root,)))

    @classmethod
    def from_chordal(cls, graph, priority: Mapping[Hashable, float] | None = None) -> DAG:
        """The graph with the edges of a chordal undirected graph and no immorality, by maximum cardinality search.

        It allows the same distributions as the Markov network of the undirected graph, and so do all graphs that other
        priorities lead to.

        Parameters
        ----------
        graph : UndirectedGraph, undirected networkx graph or iterable of (node, node)
        priority : mapping of node to float, optional
            Among nodes that might come next, the largest number comes first (nodes without one have 0), then
            those that are named first. Edges lead from earlier to later nodes.

        Raises
        ------
        StructureError
            If the graph is not chordal. The message names a cycle without a chord, and an edge that would break it.

        Examples
        --------
        >>> DAG.from_chordal([("a", "b"), ("b", "c")])
        DAG("[a][b|a][c|b]")
        >>> DAG.from_chordal([("a", "b"), ("b", "c")], {"c": 1.0})
        DAG("[a|b][b|c][c]")
        """
        undirected = UndirectedGraph.coerce(graph)
        place = {node: position for position, node in enumerate(undirected.perfect_order(priority))}
        ordered = [(a, b) if place[a] < place[b] else (b, a) for a, b in undirected.edges]
        return cls.from_edges(ordered, undirected.nodes)

    @classmethod
    def coerce(cls, structure, nodes: Iterable[Hashable] = ()) -> DAG:
        """The graph that `structure` describes, with those of `nodes` it lacks added at the end, without edges.

        Parameters
        ----------
        structure : DAG, directed networkx graph, str, mapping, pandas.DataFrame or iterable
            A str is a model string (see `from_string`), a mapping is child -> parents (see `from_parents`), a frame is
            an adjacency matrix (see `from_adjacency`), any other iterable holds (parent, child) pairs (`from_edges`).
        nodes : iterable of hashable
            Names that must be among the nodes.

        Raises
        ------
        TypeError
            If `structure` is none of these.
        StructureError
            If it is no directed acyclic graph.

        Examples
        --------
        >>> DAG.coerce({"y": "h"}, nodes=["y", "z"])
        DAG("[y|h][h][z]")
        """
        nodes = checked_names("nodes", "coerce", nodes)
        if isinstance(structure, DAG):
            dag = structure
        elif isinstance(structure, str):
            dag = cls.from_string(structure)
        elif all(hasattr(structure, name) for name in ("nodes", "edges", "is_directed")):
            dag = cls.from_networkx(structure)
        elif isinstance(structure, Mapping):
            dag = cls.from_parents(structure)
        elif conversions.is_frame(structure):
            dag = cls.from_adjacency(structure)
        elif isinstance(structure, Iterable):
            dag = cls.from_edges(structure)
        else:
            raise TypeError(
                "A structure must be a DAG, a directed networkx graph, a model string like '[A][B|A:H]', a mapping "
                "child -> parents, an adjacency frame or an iterable of (parent, child) edges. "
                f"Got {shown(structure)} instead."
            )
        return dag.with_nodes(nodes)

    @property
    def nodes(self) -> tuple:
        """The names of the nodes, in the order given."""
        return self._nodes

    @property
    def edges(self) -> tuple:
        """All (parent, child) pairs, by child and then by parent, both in the order of the nodes."""
        return tuple((parent, child) for child in self._nodes for parent in self._parents[child])

    def parents(self, node: Hashable) -> tuple:
        """The parents of `node`, in the order of the nodes."""
        return self._parents[self._known(node)]

    def children(self, node: Hashable) -> tuple:
        """The children of `node`, in the order of the nodes."""
        return self._children[self._known(node)]

    def family(self, node: Hashable) -> tuple:
        """The parents of `node`, then `node`: the axes of its table."""
        return (*self.parents(node), node)

    def topological_order(self) -> tuple:
        """All nodes, each after its parents; among nodes that might come next, the first in the order of the nodes."""
        return self._order

    def ancestors(self, nodes: Hashable | Iterable[Hashable]) -> frozenset:
        """The nodes from which a path of one edge or more leads to one of `nodes` (a str or an int is one node)."""
        return self._reached(nodes, self._parents)

    def descendants(self, nodes: Hashable | Iterable[Hashable]) -> frozenset:
        """The nodes to which a path of one edge or more leads from one of `nodes` (a str or an int is one node)."""
        return self._reached(nodes, self._children)

    def markov_blanket(self, node: Hashable) -> tuple:
        """Parents, children and the children's other parents of `node`: given these, no other node tells more of it."""
        blanket = markov_blanket(self._parents, self._children, self._known(node))
        return tuple(other for other in self._nodes if other in blanket)

    def d_separated(
        self,
        one: Hashable | Iterable[Hashable],
        other: Hashable | Iterable[Hashable],
        given: Hashable | Iterable[Hashable] = (),
    ) -> bool:
        """True if the graph makes `one` and `other` independent given `given`, whatever the tables.

        Parameters
        ----------
        one, other, given : node or iterable of nodes
            Disjoint; a str or an int is one node.

        Raises
        ------
        StructureError
            If a node is unknown, or is in two of the three.

        Examples
        --------
        >>> dag = DAG.from_string("[rain][sprinkler][wet|rain:sprinkler][slippery|wet]")
        >>> dag.d_separated("rain", "sprinkler"), dag.d_separated("rain", "sprinkler", given="slippery")
        (True, False)
        """
        return are_separated(self._parents, *self._disjoint("d_separated", one, other, given))

    def adjustment_sets(
        self,
        targets: Hashable | Iterable[Hashable],
        do: Hashable | Iterable[Hashable],
        *,
        hidden: Hashable | Iterable[Hashable] = (),
        costs: Mapping[Hashable, float] | None = None,
    ) -> list[tuple]:
        """The smallest sets of nodes to adjust for, by which observations tell what setting nodes does (back door).

        p(targets | do) is then the average of p(targets | do seen, set) over p(set), whatever the tables.

        Parameters
        ----------
        targets, do : node or iterable of nodes
            The effect, and the nodes that are set.
        hidden : node or iterable of nodes, default=()
            Nodes that are not observed, such as latents: in none of the sets.
        costs : mapping of node to number, optional
            Costs of observing nodes, >= 0; 1 for those without. Sets are listed by their total, the cheapest first.

        Returns
        -------
        list of tuple
            Sets of which no part would do [SVR10]. ``[()]`` if nothing is to be adjusted for; empty if no set does.

        Raises
        ------
        StructureError
            If a node is unknown, or in two of the sets.
        ValueError
            If a cost is no number >= 0.
        TooLargeError
            If there are more than 10 000 sets.

        See Also
        --------
        front_door_sets : Where none of these is observed.
        Network.query : The effect itself.

        Examples
        --------
        >>> dag = DAG("[age][gene][smokes|age:gene][tar|smokes][cancer|age:gene:tar]")
        >>> dag.adjustment_sets("cancer", do="smokes")
        [('age', 'gene')]
        >>> dag.adjustment_sets("cancer", do="smokes", hidden="gene")
        []
        """
        sets = self._disjoint("adjustment_sets", targets, do, hidden)
        return self._listed(adjustment_sets(self._parents, *sets), costs)

    def front_door_sets(
        self,
        targets: Hashable | Iterable[Hashable],
        do: Hashable | Iterable[Hashable],
        *,
        hidden: Hashable | Iterable[Hashable] = (),
        costs: Mapping[Hashable, float] | None = None,
    ) -> list[tuple]:
        """The smallest sets of nodes between, by which observations tell what setting nodes does (front door).

        Parameters
        ----------
        targets, do : node or iterable of nodes
            The effect, and the nodes that are set.
        hidden : node or iterable of nodes, default=()
            Nodes that are not observed: in none of the sets.
        costs : mapping of node to number, optional
            As in `adjustment_sets`.

        Returns
        -------
        list of tuple
            Sets of which no part would do [Pearl09 definition 3.3.3, JTB22]. All directed paths go through a set. Nodes
            that are set share no open cause with it. Given these, neither do the targets.

        Raises
        ------
        StructureError
            If a node is unknown, or in two of the sets.
        ValueError
            If a cost is no number >= 0.
        TooLargeError
            If there are more than 10 000 sets.

        See Also
        --------
        adjustment_sets : Sets of nodes before those that are set.

        Examples
        --------
        >>> dag = DAG("[gene][smokes|gene][tar|smokes][cancer|gene:tar]")
        >>> dag.front_door_sets("cancer", do="smokes", hidden="gene")
        [('tar',)]
        """
        sets = self._disjoint("front_door_sets", targets, do, hidden)
        return self._listed(front_door_sets(self._parents, *sets), costs)

    def relabel(self, mapping: Mapping[Hashable, Hashable]) -> DAG:
        """The graph with nodes renamed as `mapping` (old -> new) says; each keeps its place in the order."""
        check_mapping("mapping", "relabel", mapping, "{'old': 'new'}")
        for node in mapping:
            self._known(node)
        if not mapping:
            return self
        return self._renamed(mapping, [mapping.get(node, node) for node in self._nodes])

    def with_nodes(self, extra: Iterable[Hashable]) -> DAG:
        """The graph with those of the `extra` nodes that it lacks, added at the end, without edges."""
        names = checked_names("extra", "with_nodes", extra)
        nodes = _extended(self._nodes, names) if names else self._nodes
        return self if nodes == self._nodes else self._made(nodes, self._parents)

    def reorder(self, nodes: Iterable[Hashable]) -> DAG:
        """An equal graph whose nodes, and so the parents of each node, are listed in the order of `nodes`."""
        nodes = checked_names("nodes", "reorder", nodes)
        if Counter(nodes) != Counter(self._nodes):
            raise StructureError(
                f"reorder needs each node of the graph once: {first_few(self._nodes)}. Got {first_few(nodes)} instead."
            )
        return self._made(nodes, self._parents)

    def n_free_parameters(self, cardinalities: Mapping[Hashable, int]) -> int:
        """The dimension d' = Σⱼ (r_j − 1) q_j of the model with nothing hidden, an exact int. [CH]

        Parameters
        ----------
        cardinalities : mapping
            The number of states r of each node, an int >= 1.
        """
        return sum((states - 1) * rows for states, rows in self._table_shapes(cardinalities))

    def n_table_cells(self, cardinalities: Mapping[Hashable, int]) -> int:
        """The number of cells Σⱼ r_j q_j of all tables, an exact int; `cardinalities` as in `n_free_parameters`."""
        return sum(states * rows for states, rows in self._table_shapes(cardinalities))

    def canonical(self, hidden: Mapping[Hashable, Hashable]) -> DAG:
        """The one graph that stands for all that differ from this by a permutation of hidden nodes of equal kind.

        Parameters
        ----------
        hidden : mapping
            Hidden node -> its kind: its cardinality, or any hashable. Nodes that are no key stay where they are.

        Returns
        -------
        dag : DAG
            Equal for two graphs if and only if such a permutation turns one into the other. Its nodes keep their order.

        Notes
        -----
        Exact for any graph. Hidden nodes told apart by their neighbors, and hidden nodes with the same neighbors, cost
        nothing; only those with like observed neighbors and different hidden ones are searched.
        """
        renaming, _ = self._canonical_renaming(hidden)
        return self._renamed(renaming, self._nodes) if any(a != b for a, b in renaming.items()) else self

    def n_automorphisms(self, hidden: Mapping[Hashable, Hashable]) -> int:
        """The number of permutations of hidden nodes within their kinds that leave the graph unchanged.

        Parameters
        ----------
        hidden : mapping
            Hidden node -> its kind, as in `canonical`.

        Examples
        --------
        >>> DAG.from_string("[h1][h2][y|h1:h2]").n_automorphisms({"h1": 2, "h2": 2})
        2
        """
        _, count = self._canonical_renaming(hidden)
        return count

    def to_undirected(self) -> UndirectedGraph:
        """The graph with the same nodes and edges, without directions: the skeleton."""
        return UndirectedGraph(self._nodes, self.edges)

    @property
    def is_decomposable(self) -> bool:
        """True if no node has two parents without an edge between them: then a Markov network says the same."""
        return not immoralities(self)

    def skeleton_and_immoralities(self) -> tuple[UndirectedGraph, frozenset]:
        """Edges without directions, and immoralities; graphs that share both are Markov equivalent.

        Returns
        -------
        skeleton : UndirectedGraph
        immoralities : frozenset of (node, child, node)
            Two parents of a child without an edge between them, ordered by name.

        Examples
        --------
        >>> DAG.from_string("[a][b][c|a:b]").skeleton_and_immoralities()[1]
        frozenset({('a', 'c', 'b')})
        """
        by_name = frozenset((*sorted((one, other), key=str)[:1], child, *sorted((one, other), key=str)[1:])
                            for one, child, other in immoralities(self))  # fmt: skip
        return self.to_undirected(), by_name

    def essential(
        self, known: Iterable[tuple[Hashable, Hashable]] = (), numbers: Iterable[Hashable] = ()
    ) -> EssentialGraph:
        """The essential graph (CPDAG) of all graphs that allow the same distributions, equal for all of them.

        Parameters
        ----------
        known : iterable of (parent, child), default=()
            Edges of this graph whose direction is known otherwise, by the order of time say: of the graphs that allow
            the same distributions, only those with these edges count.
        numbers : iterable of hashable, default=()
            Nodes that have no children among the others in any graph that counts, as in a `DAGSpace`: edges from others
            to them have one direction.

        Raises
        ------
        StructureError
            If this graph has no such edge or node, or an edge from one of the `numbers` to another node.

        Examples
        --------
        >>> print(DAG.from_string("[a][b][c|a:b][d|c][e|d]").essential())
        a -> c, b -> c, c -> d, d -> e
        >>> chain = DAG.from_string("[a][b|a][c|b]")
        >>> print(chain.essential(), "or", chain.essential([("a", "b")]))
        a - b, b - c or a -> b, b -> c
        >>> print(chain.essential(numbers=["b", "c"]))
        a -> b, b -> c
        """
        check_argument(is_collection(known), "known", "essential", "a list of edges (parent, child)", known)
        known = list(known)
        for edge in known:
            if not is_collection(edge) or checked_names("known", "essential", edge) not in self.edges:
                raise StructureError(f"The known edge {shown(edge)} is not an edge of this graph.")
        numbers = checked_names("numbers", "essential", numbers)
        for node in numbers:
            if below := set(self.children(node)).difference(numbers):
                child = min(below, key=self.nodes.index)
                raise StructureError(
                    f"Node {shown(node)} of 'numbers' is a parent of {shown(child)}, which is none of them. Name both "
                    "or neither."
                )
        return EssentialGraph.of(self, known, numbers)

    def to_networkx(self):
        """A networkx.DiGraph with the same nodes and edges. Needs networkx."""
        return conversions.write_networkx(self._nodes, self.edges)

    def to_adjacency(self, *, as_frame: bool = True):
        """The square table of the graph, 1 where the row is a parent of the column, otherwise 0.

        Parameters
        ----------
        as_frame : bool, default=True
            Whether it is a pandas.DataFrame labelled by the nodes, which needs pandas, or an array without labels.

        Returns
        -------
        pandas.DataFrame or ndarray of int, shape (n_nodes, n_nodes)
            Rows and columns in the order of the nodes.

        Examples
        --------
        >>> DAG.from_string("[a][b|a]").to_adjacency(as_frame=False)
        array([[0, 1],
               [0, 0]])
        """
        check_flag("as_frame", "to_adjacency", as_frame)
        return (conversions.adjacency_frame if as_frame else conversions.adjacency)(self._nodes, self.edges)

    def _known(self, node):
        try:
            if node in self._parents:
                return node
        except TypeError:  # it cannot be hashed
            pass
        raise StructureError(f"{shown(node)} is not a node of the graph.{did_you_mean(node, self._nodes)}")

    def _disjoint(self, method, *sets):
        sets = [{self._known(node) for node in checked_names("nodes", method, nodes)} for nodes in sets]
        for first, second in combinations(sets, 2):
            if first & second:
                raise StructureError(
                    f"{method} needs sets of nodes that share none. {shown(next(iter(first & second)))} is in two."
                )
        return sets

    def _listed(self, sets, costs):
        if costs is not None:
            check_mapping("costs", "DAG", costs, "{'age': 2.0}")
        costs = {self._known(node): check_cost(cost) for node, cost in (costs or {}).items()}
        place = {node: position for position, node in enumerate(self._nodes)}
        listed = [tuple(sorted(nodes, key=place.__getitem__)) for nodes in first_of(sets)]
        return sorted(listed, key=lambda nodes: (sum(costs.get(node, 1) for node in nodes), [place[n] for n in nodes]))

    def _reached(self, nodes, neighbors):
        reached, waiting = set(), [self._known(node) for node in checked_names("nodes", "DAG", nodes)]
        while waiting:
            new = [node for node in neighbors[waiting.pop()] if node not in reached]
            reached.update(new)
            waiting += new
        return frozenset(reached)

    def _renamed(self, mapping, nodes):
        parents = {child: [mapping.get(parent, parent) for parent in family] for child, family in self._parents.items()}
        return self._made(nodes, {mapping.get(child, child): family for child, family in parents.items()})

    def _canonical_renaming(self, hidden):
        if not isinstance(hidden, Mapping):
            raise TypeError(
                f"hidden must map each hidden node to its kind, as {{'h': 2}}. Got {shown(hidden)} instead."
            )
        for node in hidden:
            self._known(node)
        return canonical_renaming(self, hidden)

    def _table_shapes(self, cardinalities):
        check_mapping("cardinalities", "DAG", cardinalities, "{'a': 2}")
        states = {}
        for node in self._nodes:
            if node not in cardinalities:
                raise StructureError(f"cardinalities must give the number of states of every node. It lacks {node!r}.")
            value = cardinalities[node]
            if not is_whole(value) or value < 1:
                raise StructureError(
                    f"The cardinality of node {node!r} must be an int >= 1. Got {shown(value)} instead."
                )
            states[node] = operator.index(value)
        return [(states[node], math.prod(states[parent] for parent in self._parents[node])) for node in self._nodes]

    def __eq__(self, other):
        return self._key == other._key if isinstance(other, DAG) else NotImplemented

    def __hash__(self):
        return hash(self._key)

    def __str__(self):
        return conversions.model_string(self._nodes, self._parents)

    def __repr__(self):
        text = str(self)
        return f'DAG("{text}")' if text.isprintable() and not {'"', "\\"} & set(text) else f"DAG({text!r})"

    def _repr_html_(self):
        return conversions.as_html(self._nodes, self._parents, "parents")

    def __reduce__(self):
        return type(self), (self._nodes, self._parents)

    def __deepcopy__(self, memo):
        return self  # neither it nor its names can be changed

    def __setattr__(self, name, *value):
        raise AttributeError("A DAG cannot be changed. relabel, with_nodes and reorder return new ones.")

    __delattr__ = __setattr__


def _topological_order(nodes, index, parents, children):
    """The nodes in Kahn's order, each after its parents; shorter than `nodes` if there is a cycle."""
    waiting = {node: len(parents[node]) for node in nodes}
    ready = [index[node] for node in nodes if not waiting[node]]
    order = []
    while ready:
        node = nodes[heapq.heappop(ready)]
        order.append(node)
        for child in children[node]:
            waiting[child] -= 1
            if not waiting[child]:
                heapq.heappush(ready, index[child])
    return tuple(order)


def dag_from_masks(nodes: tuple, parents: Sequence[int], families: dict | None = None) -> DAG:
    """The graph of masks of bits, which are known to have no cycle.

    Parameters
    ----------
    nodes : tuple
        Different names.
    parents : sequence of int
        Bit k of an entry is set where node k is a parent.
    families : dict, optional
        Families of other graphs over these nodes, which graphs share; those of this one are added.
    """
    families = {} if families is None else families
    for each in zip(nodes, parents):
        if each not in families:
            child, mask = each
            members = tuple(nodes[k] for k in range(mask.bit_length()) if mask >> k & 1)
            families[each] = members, (child, frozenset(members))
    of_nodes = [families[each] for each in zip(nodes, parents)]
    dag = object.__new__(DAG)
    dag._set(
        _nodes=nodes,
        _parents={node: members for node, (members, _) in zip(nodes, of_nodes)},
        _key=frozenset(key for _, key in of_nodes),
    )
    return dag


def _extended(names: tuple, extra: Iterable[Hashable]) -> tuple:
    """The names, then those of the extra names that are not among them, each once."""
    known = set(names)
    return (*names, *(name for name in dict.fromkeys(extra) if name not in known))


def _repeated(names: Iterable[Hashable]) -> Hashable:
    """The first name that occurs more than once."""
    return next(name for name, times in Counter(names).items() if times > 1)


def _families(mapping):
    if not isinstance(mapping, Mapping):
        raise TypeError(
            f"parents must be given as a mapping child -> parents. Got {shown(mapping)}; for edges use DAG.from_edges."
        )
    return {child: checked_names("parents", f"{shown(child)}", value) for child, value in mapping.items()}
