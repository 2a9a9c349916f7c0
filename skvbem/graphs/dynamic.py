"""Dynamic networks: a network of one time slice and edges from each slice to the next, unrolled over some slices."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from numbers import Integral
from typing import Any

from skvbem._arguments import check_mapping, checked_names, is_whole
from skvbem._names import did_you_mean, shown
from skvbem.errors import StructureError
from skvbem.graphs.dag import DAG

__all__ = ["DynamicDAG"]


class DynamicDAG:
    """A two-slice network unrolled: the same nodes in each slice, the same edges, and tables that are tied.

    Parameters
    ----------
    slice : DAG or what `DAG.coerce` takes
        The network of one slice.
    between : iterable of (node, node), or mapping child -> parents
        Edges from nodes of one slice to nodes of the next.
    n_slices : int
        At least 2.
    names : mapping of node to list, optional
        Names of a node in each slice, such as the columns of a panel. Other nodes are named ``node_1``, ``node_2``, ...

    Attributes
    ----------
    dag : DAG
        The unrolled graph, slice by slice.
    ties : dict
        For the `ties` parameter of `VBDiscreteDAG`: tables of all slices are those of the first slice that has these
        parents, the first or the second.

    Raises
    ------
    StructureError
        If an edge between slices meets an unknown node, or names are not as many as slices.

    Examples
    --------
    >>> from skvbem.graphs.dynamic import DynamicDAG
    >>> panel = DynamicDAG("[mood][answer|mood]", between=[("mood", "mood")], n_slices=3)
    >>> panel.dag
    DAG("[mood_1][answer_1|mood_1][mood_2|mood_1][answer_2|mood_2][mood_3|mood_2][answer_3|mood_3]")
    >>> panel.latents({"mood": 2})
    {'mood_1': 2, 'mood_2': 2, 'mood_3': 2}
    >>> panel.ties_of(["mood"])
    {('mood_2', 'mood_3'): ('mood_1', 'mood_2')}
    """

    slice: DAG
    n_slices: int
    dag: DAG
    _before: dict[Hashable, tuple]
    _names: dict[Hashable, tuple]

    def __init__(
        self,
        slice: Any,
        between: Iterable[tuple[Hashable, Hashable]] | Mapping[Hashable, Any],
        n_slices: int,
        *,
        names: Mapping[Hashable, Iterable[Hashable]] | None = None,
    ):
        if not is_whole(n_slices) or n_slices < 2:
            raise ValueError(f"n_slices of DynamicDAG must be an int >= 2. Got {n_slices!r} instead.")
        self.slice, self.n_slices = DAG.coerce(slice), int(n_slices)
        self._before = self._parents_before(between)
        self._names = {node: self._named(node, names or {}) for node in self.slice.nodes}
        if strange := [node for node in names or {} if node not in self._names]:
            raise StructureError(
                f"names of DynamicDAG has {shown(strange[0])}, which is not a node of the slice."
                f"{did_you_mean(strange[0], self.slice.nodes)}"
            )
        families = [self._family(node, t) for t in range(self.n_slices) for node in self.slice.nodes]
        self.dag = DAG([family[-1] for family in families], {family[-1]: family[:-1] for family in families})

    @property
    def ties(self) -> dict[tuple, tuple]:
        """The families of later slices and those whose tables are also theirs, of all nodes."""
        return self.ties_of(self.slice.nodes)

    def ties_of(self, nodes: Iterable[Hashable]) -> dict[tuple, tuple]:
        """The ties of some nodes of the slice: tables of the others may change from slice to slice.

        Parameters
        ----------
        nodes : iterable of hashable
        """
        ties = {}
        for node in checked_names("nodes", "ties_of", nodes):
            self.slice.parents(node)
            first = 1 if self._before[node] else 0
            for t in range(first + 1, self.n_slices):
                ties[self._family(node, t)] = self._family(node, first)
        return ties

    def latents(self, n_states: Mapping[Hashable, int]) -> dict[Hashable, int]:
        """The hidden nodes of all slices and their numbers of states, given those of one slice."""
        check_mapping("n_states", "latents", n_states, "{'mood': 2}")
        return {name: size for node, size in n_states.items() for name in self.names_of(node)}

    def names_of(self, node: Hashable) -> tuple:
        """The names of a node of the slice, slice by slice."""
        self.slice.parents(node)
        return self._names[node]

    def _parents_before(self, between) -> dict[Hashable, tuple]:
        graph = between.items() if isinstance(between, Mapping) else None
        if graph is not None:
            parents = {c: (ps,) if isinstance(ps, (str, Integral)) else tuple(ps) for c, ps in graph}
            edges = [(parent, child) for child, family in parents.items() for parent in family]
        else:
            edges = [tuple(edge) for edge in between]
        before: dict = {node: [] for node in self.slice.nodes}
        for edge in edges:
            for node in edge:
                if node not in before or len(edge) != 2:
                    raise StructureError(
                        f"between of DynamicDAG has the edge {shown(edge)}. Each edge is a pair of nodes of the slice, "
                        f"which are {shown(self.slice.nodes)}."
                    )
            if edge[0] in before[edge[1]]:
                raise StructureError(f"between of DynamicDAG has the edge {shown(edge)} twice. Give each edge once.")
            before[edge[1]].append(edge[0])
        return {child: tuple(parents) for child, parents in before.items()}

    def _named(self, node: Hashable, names: Mapping) -> tuple:
        slices = tuple(names.get(node, (f"{node}_{t + 1}" for t in range(self.n_slices))))
        if len(slices) != self.n_slices:
            raise StructureError(
                f"names of DynamicDAG must name node {shown(node)} in each of the {self.n_slices} slices. Got "
                f"{shown(slices)}."
            )
        return slices

    def _family(self, node: Hashable, t: int) -> tuple:
        """The parents of a node in a slice, those of the slice before first, and the node."""
        before = [self._names[parent][t - 1] for parent in self._before[node]] if t else []
        return (*before, *(self._names[parent][t] for parent in self.slice.parents(node)), self._names[node][t])

    def __repr__(self):
        between = [(parent, child) for child, parents in self._before.items() for parent in parents]
        return f"DynamicDAG({str(self.slice)!r}, between={between!r}, n_slices={self.n_slices})"
