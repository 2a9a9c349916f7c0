"""Positions of the cells of a network's tables in one flat block, and of rows of data in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

import numpy as np

from skvbem._lazy import cached_property
from skvbem.data import categories_of, have_set


@dataclass(frozen=True)
class Layout:
    """Positions of the cells of a network's tables in one flat block.

    The table of node j has axes (*parents, j) in C order, so that one distribution is one run of cells.

    Parameters
    ----------
    names : tuple of str
        Names of the nodes.
    cardinalities : tuple of int
        Number of states of each node.
    parents : tuple of tuple of int
        Positions of each node's parents.
    n_emissions : int
        So many of the last nodes have an emission in the place of a table. They have no children; their cells, of which
        each joint state of the parents has as many as the node has states here, stand behind all tables.
    ties : tuple of (int, tuple of int) or None, for each node
        Of a node whose table is that of another: the other, and for each of its own parents the place of the one that
        it stands for among the other's parents. Empty where each node has a table of its own.
    driven : tuple of int
        Positions of nodes without parents whose probabilities hang on covariates of each row, in an emission. Each cell
        of their tables is a distribution by itself: it stays 1, and counts rows.
    """

    names: tuple
    cardinalities: tuple[int, ...]
    parents: tuple[tuple[int, ...], ...]
    n_emissions: int = 0
    ties: tuple[tuple[int, tuple[int, ...]] | None, ...] = ()
    driven: tuple[int, ...] = ()
    first_cell: tuple[int, ...] = field(init=False)
    strides: tuple[Mapping[int, int], ...] = field(init=False)
    n_cells: int = field(init=False)
    #: Number of nodes that have a table, the first ones, and of cells of all tables.
    n_tables: int = field(init=False)
    n_table_cells: int = field(init=False)

    def __post_init__(self):
        first, strides, total = [], [], 0
        for node, parents in enumerate(self.parents):
            stride, by_node = 1, {}
            for member in (node, *reversed(parents)):
                by_node[member] = stride
                stride *= self.cardinalities[member]
            first.append(total)
            strides.append(by_node)
            total += stride if self.has_own_table(node) else 0
        for node, tie in enumerate(self.ties):
            if tie is not None:
                other, places = tie
                first[node] = first[other]
                of_other = [strides[other][parent] for parent in self.parents[other]]
                of_parents = {parent: of_other[place] for parent, place in zip(self.parents[node], places)}
                strides[node] = {node: 1, **of_parents}
        object.__setattr__(self, "first_cell", tuple(first))
        object.__setattr__(self, "strides", tuple(strides))
        object.__setattr__(self, "n_cells", total)
        object.__setattr__(self, "n_tables", len(self.names) - self.n_emissions)
        object.__setattr__(self, "n_table_cells", first[self.n_tables] if self.n_emissions else total)

    def has_own_table(self, node: int) -> bool:
        """True if a node's table is not that of another."""
        return not self.ties or self.ties[node] is None

    @cached_property
    def turned_together(self) -> tuple[tuple[int, ...], ...]:
        """For each node, those whose states tied tables hold to be the same, itself among them."""
        label = list(range(len(self.names)))
        for node, tie in enumerate(self.ties):
            if tie is not None:
                other, places = tie
                pairs = [(node, other), *((p, self.parents[other][k]) for p, k in zip(self.parents[node], places))]
                for one, like in pairs:
                    old, new = label[one], label[like]
                    label = [new if each == old else each for each in label]
        return tuple(tuple(k for k, each in enumerate(label) if each == mine) for mine in label)

    @cached_property
    def row_starts(self) -> np.ndarray:
        """First cell of every distribution of the tables, and the end, (n_rows + 1,)."""
        steps = [1 if j in self.driven else size for j, size in enumerate(self.cardinalities)]
        starts = [np.arange(self.first_cell[j], self.first_cell[j] + self.table_cells(j), steps[j])
                  for j in range(self.n_tables) if self.has_own_table(j)]  # fmt: skip
        return np.concatenate([*starts, [self.n_table_cells]]).astype(np.int64)

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """Positions of each node's children."""
        children: list[list[int]] = [[] for _ in self.names]
        for node, parents in enumerate(self.parents):
            for parent in parents:
                children[parent].append(node)
        return tuple(map(tuple, children))

    @cached_property
    def leaves_first(self) -> tuple[int, ...]:
        """The nodes, children before parents."""
        waiting = [len(children) for children in self.children]
        order = [node for node, n in enumerate(waiting) if n == 0]
        for node in order:
            for parent in self.parents[node]:
                waiting[parent] -= 1
                if waiting[parent] == 0:
                    order.append(parent)
        return tuple(order)

    def table_cells(self, node: int) -> int:
        """Number of cells of a node's table."""
        return self.cardinalities[node] * prod(self.cardinalities[p] for p in self.parents[node])

    def table_shape(self, node: int) -> tuple[int, ...]:
        """Shape of a node's table: (*parents, node)."""
        return (*(self.cardinalities[p] for p in self.parents[node]), self.cardinalities[node])

    def table(self, flat: np.ndarray, node: int) -> np.ndarray:
        """The table of one node in a flat array (n_cells, ...), with trailing axes kept."""
        first, tie = self.first_cell[node], self.ties[node] if self.ties else None
        cells = flat[first : first + self.table_cells(node)]
        if tie is None:
            return cells.reshape(self.table_shape(node) + flat.shape[1:])
        other, places = tie
        whole = cells.reshape(self.table_shape(other) + flat.shape[1:])
        return whole.transpose(*places, *range(len(places), whole.ndim))


def complete_cells(layout: Layout, columns: Mapping[int, np.ndarray], node: int):
    """(rows, cells): for the rows in which a whole family is observed, which cell of its table each row is in.

    None if a member has no column. Cells count from the node's first. Rows in which the node was set are left out.
    """
    if any(member not in columns for member in layout.strides[node]):
        return None
    sizes = layout.cardinalities
    kept = [columns[m] >= 0 for m in layout.strides[node] if len(columns[m]) and columns[m].min() < 0]
    if have_set(columns[node], sizes[node]):
        kept.append(columns[node] < sizes[node])
    rows = np.flatnonzero(np.logical_and.reduce(kept)) if kept else slice(None)
    seen = {member: categories_of(columns[member][rows], sizes[member]) for member in layout.strides[node]}
    cells = sum(seen[member].astype(np.int64) * stride for member, stride in layout.strides[node].items())
    return rows, cells
