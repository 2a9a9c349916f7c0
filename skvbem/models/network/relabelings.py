r"""Relabelings of hidden nodes and of their states that leave graph, prior and data as they are; sums over all of them.

A relabeling g permutes the cells of the tables. What depends on the data alone does not see it, but a density q(theta)
does, and whoever makes it symmetric needs :math:`\sum_g e^{N \cdot g \ln\theta}`. Where all that can be
relabeled is one hidden node, :math:`N \cdot g \ln\theta` is a sum over its states, the sum over g is a permanent, and
permanents of positive matrices are summed over subsets of states rather than over
permutations.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from math import factorial, lgamma, log, prod
from typing import Any

import numpy as np

from skvbem.capabilities import Relabelings
from skvbem.errors import TooLargeError
from skvbem.graphs.dag import DAG
from skvbem.models.network.layout import Layout
from skvbem.models.relabelings import ListedRelabelings, listed, relabelings_of_states


@dataclass(frozen=True, eq=False)
class NetworkRelabelings:
    """The relabelings of a network; see `skvbem.capabilities.Relabelable`.

    Parameters
    ----------
    model : DiscreteDAG
        Or another model with a layout.
    """

    model: Any

    @property
    def dag(self) -> DAG:
        """The graph as tables have it."""
        return self.model.dag

    @property
    def prior(self) -> np.ndarray:
        """The prior concentration of each cell, (n_cells,): relabelings leave it as it is."""
        return self.model.prior.coordinates

    def relabelings(self, hidden: Sequence, limit: int = 50_000) -> Relabelings | None:
        """Ways in which hidden labels can change unnoticed, None if too many to be found one by one."""
        model = self.model
        positions = {model.position[node] for node in hidden}
        return relabelings_of(model.layout, self.prior, positions, limit)

    def log_n_relabelings(self, hidden: Sequence) -> float:
        """ln of the number of relabelings of hidden nodes and states that graph, prior and data do not tell apart."""
        dag, tables = self.dag, self.model.tables(self.prior)
        ancestors = dag.ancestors([node for node in dag.nodes if node not in hidden])
        seen_through = [node for node in hidden if node in ancestors]
        relabelings = self.relabelings(hidden)
        if relabelings is None and self.model.layout.ties:
            raise TooLargeError(
                "The relabelings of hidden nodes whose tables are tied are too many to try one by one. Do without the "
                "alias correction, or give hidden nodes fewer states."
            )
        return log_n_relabelings(dag, tables, seen_through, relabelings)

    def listed_relabelings(self, hidden: Sequence, limit: int) -> np.ndarray:
        """Each as the cell that takes each cell's place, (n, n_cells); TooLargeError beyond `limit`."""
        cells = listed(self.relabelings(hidden), self.model.n_cells, limit)
        if cells is None:
            raise TooLargeError(
                f"There are {np.exp(self.log_n_relabelings(hidden)):.4g} relabelings of the hidden nodes, more than "
                f"the {limit} that are mixed."
            )
        return cells


def relabelings_of(layout: Layout, prior: np.ndarray, hidden: Collection[int], limit: int) -> Relabelings | None:
    """Every relabeling; None where there are more than `limit` and they are not those of the states of one node.

    Nodes without observed descendants are left alone, tables and all: they touch no data.

    Parameters
    ----------
    layout : Layout
    prior : ndarray of shape (n_cells,)
    hidden : collection of int
        Nodes never observed.
    limit : int
    """
    children = _children_that_count(layout, hidden)
    hidden = sorted(node for node in hidden if children.get(node) and layout.cardinalities[node] > 1)
    if not hidden:
        return ListedRelabelings(np.arange(layout.n_cells)[None])
    if len(hidden) == 1 and not layout.ties:
        cells = _cells_of_states(layout, hidden[0], children)
        if np.all(prior[cells] == prior[cells[0]]):
            return relabelings_of_states(cells)
    alike = _alike(layout, hidden, children)
    firsts = [layout.turned_together[node][0] for node in hidden]
    n_of_states = prod(factorial(layout.cardinalities[node]) for node in dict.fromkeys(firsts))
    if n_of_states * prod(map(factorial, map(len, alike))) > limit:
        return None
    relabeled = []
    for nodes in _node_permutations(layout, alike, children):
        cells = _relabeled_cells(layout, nodes, hidden, children)
        relabeled.append(cells[(prior[cells] == prior).all(axis=1)])
    return ListedRelabelings(np.concatenate(relabeled))


def _children_that_count(layout: Layout, hidden: Collection[int]) -> dict[int, tuple[int, ...]]:
    """For every node that is observed or has observed descendants, its children that are or have."""
    children: dict[int, tuple[int, ...]] = {}
    for node in layout.leaves_first:
        counting = tuple(child for child in layout.children[node] if child in children)
        if counting or node not in hidden:
            children[node] = counting
    return children


def _cells_of_states(layout: Layout, node: int, children: Mapping[int, tuple[int, ...]]) -> np.ndarray:
    """The cells that belong to each state of a node, in its own table and its children's, (n_states, n_cells)."""
    every = np.arange(layout.n_cells)
    tables = [np.moveaxis(layout.table(every, node), -1, 0)]
    for child in children[node]:
        tables.append(np.moveaxis(layout.table(every, child), layout.parents[child].index(node), 0))
    return np.concatenate([table.reshape(len(table), -1) for table in tables], axis=1)


def _alike(layout: Layout, hidden: Sequence[int], children: Mapping[int, tuple[int, ...]]) -> list[list[int]]:
    """Groups of hidden nodes of as many states and the same relatives outside: only they may trade places."""
    groups: dict[tuple, list[int]] = {}
    for node in hidden:
        below, above = (frozenset(of[node]) - set(hidden) for of in (children, layout.parents))
        groups.setdefault((layout.cardinalities[node], below, above), []).append(node)
    return list(groups.values())


def _node_permutations(
    layout: Layout, alike: list[list[int]], children: Mapping[int, tuple[int, ...]]
) -> Iterator[dict[int, int]]:
    """Permutations of hidden nodes within their groups that leave the graph unchanged."""
    families = {node: frozenset(layout.parents[node]) for node in children}
    for images in product(*map(permutations, alike)):
        moved = {a: b for group, image in zip(alike, images) for a, b in zip(group, image)}
        if all(
            families[moved.get(node, node)] == frozenset(moved.get(p, p) for p in parents)
            for node, parents in families.items()
        ):
            yield moved


def _relabeled_cells(
    layout: Layout, nodes: Mapping[int, int], hidden: Sequence[int], children: Mapping[int, tuple[int, ...]]
) -> np.ndarray:
    """For each permutation of states, each cell's stand-in among the relabeled tables, (n_permutations, n_cells).

    Nodes whose states tied tables hold to be the same are relabeled together, and not at all if one is observed. A
    permutation of nodes may contradict ties; what is left are those relabelings that give all tied tables the same.
    """
    first_of = {node: layout.turned_together[node][0] for node in hidden}
    states = {
        first: np.array(list(permutations(range(layout.cardinalities[first]))))[
            : None if set(layout.turned_together[first]) <= set(hidden) else 1
        ]
        for first in dict.fromkeys(first_of.values())
    }
    which = np.indices([len(of) for of in states.values()]).reshape(len(states), -1)
    chosen = {first: states[first][k] for first, k in zip(states, which)}
    picked = {node: chosen[first] for node, first in first_of.items()}
    cells = np.tile(np.arange(layout.n_cells), (which.shape[1], 1))
    kept, filled = np.ones(len(cells), dtype=bool), set()
    for node in children:
        members = (*layout.parents[node], node)
        shape = tuple(layout.cardinalities[member] for member in members)
        digits = dict(zip(members, np.unravel_index(np.arange(prod(shape)), shape)))
        image = nodes.get(node, node)
        place = layout.first_cell[node] + sum(layout.strides[node][member] * digit for member, digit in digits.items())
        target = np.full((len(cells), prod(shape)), layout.first_cell[image])
        for member, digit in digits.items():
            relabeled = picked[member][:, digit] if member in picked else digit
            target += relabeled * layout.strides[image][nodes.get(member, member)]
        if layout.first_cell[node] in filled:
            kept &= (cells[:, place] == target).all(axis=1)
        cells[:, place] = target
        filled.add(layout.first_cell[node])
    return cells[kept]


def log_n_relabelings(
    dag: DAG, tables: Mapping[Hashable, np.ndarray], hidden: Sequence, relabelings: Relabelings | None
) -> float:
    """ln of the number of relabelings of hidden nodes and their states that leave graph and prior as they are.

    Parameters
    ----------
    dag : DAG
    tables : mapping of node to ndarray
        Prior concentrations, axes (*parents, node).
    hidden : sequence
        Hidden nodes with observed descendants.
    relabelings : Relabelings or None
        The relabelings of these nodes if they could be listed one by one.

    Raises
    ------
    TooLargeError
        If they could not, and the prior tells states of a hidden node apart.
    """
    if relabelings is not None:
        return log(relabelings.n)
    kinds = {}
    for node in (v for v in dag.nodes if any(w in hidden for w in dag.family(v))):
        axes = tuple(axis for axis, member in enumerate(dag.family(node)) if member in hidden)
        table = tables[node]
        if np.any(table.max(axis=axes) != table.min(axis=axes)):
            raise TooLargeError(
                f"The relabelings of the {len(hidden)} hidden nodes are too many to try one by one. They cannot "
                f"be counted otherwise, because the prior of {node!r} differs between states of its hidden nodes. Take "
                "a prior that is the same for all states, or do without the alias correction."
            )
        if node in hidden:
            kinds[node] = (table.shape[-1], table.max(axis=axes).tobytes())
    return sum(lgamma(tables[node].shape[-1] + 1.0) for node in hidden) + log(dag.n_automorphisms(kinds))
