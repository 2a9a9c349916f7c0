"""Rows of data compiled into the contractions that an E step makes of them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import compress
from math import prod
from typing import Any

import numpy as np

from skvbem._lazy import cached_property
from skvbem.data import Rows, categories_of, have_set
from skvbem.errors import TooLargeError
from skvbem.graphs.elimination import junction_tree
from skvbem.models.network.assembly import Assembly
from skvbem.models.network.clusters import Partition
from skvbem.models.network.contexts import Contexts, RowContexts, disjoint, joint_keys
from skvbem.models.network.division import divided, structured_program
from skvbem.models.network.layout import Layout, complete_cells
from skvbem.models.network.program import Plan, Program, RowFactor

# Families of rows, so many, that are multiplied for nothing cost as much as a plan of their own: by hand.
_WORTH_A_PLAN = 2**12


class Compiler:
    """Compiles tables of rows for one network.

    Parameters
    ----------
    layout : Layout
    max_table_cells : int
        Most cells of one clique.
    max_memory : float
        Most bytes of all that a run of the program holds.
    n_lanes : int
        Starts that run side by side.
    """

    def __init__(self, layout: Layout, max_table_cells: int = 2**24, max_memory: float = np.inf, n_lanes: int = 1):
        self.layout = layout
        self.max_table_cells = max_table_cells
        self.max_memory = max_memory
        self.n_lanes = n_lanes

    @cached_property
    def _scopes(self) -> list[int]:
        """The nodes of each family, as bits."""
        return [sum(1 << node for node in strides) for strides in self.layout.strides]

    @property
    def can_divide(self) -> bool:
        """True if q(x) could be a product over clusters instead."""
        return not self.layout.n_emissions

    def check_memory(self, n_bytes: float) -> None:
        """Raise a TooLargeError if so many bytes are too many."""
        if n_bytes > self.max_memory:
            raise TooLargeError(
                f"This fit holds more than {n_bytes:.3g} bytes ({self.layout.n_table_cells} table cells in the "
                f"network, {self.n_lanes} starts side by side); 'max_memory' allows {self.max_memory:.3g}. Raise it, "
                "take fewer starts, or give nodes fewer states or fewer parents."
            )

    def compile(
        self,
        columns: dict[int, np.ndarray],
        n_rows: int,
        weight: np.ndarray | None = None,
        *,
        keep_rows: bool = False,
        wanted: Iterable[int] = (),
        together: Sequence[Sequence[int]] = (),
        partition: Partition | None = None,
        source: Rows | None = None,
    ) -> Any:
        """The program of a table of rows: a `Program`, or a `StructuredProgram` if q(x) is divided in some rows.

        Parameters
        ----------
        columns : dict of int to ndarray of shape (n_rows,)
            Codes of the observed nodes, as `Rows` has them. Nodes without a column are hidden. Emptied
            as soon as it is not needed. Nodes with an emission have a column, too: 0 where any of their cells is
            observed.
        n_rows : int
        weight : ndarray of shape (n_rows,), optional
            How often each row counts, more than 0; once by default.
        keep_rows : bool
            Whether plans remember which rows they serve.
        wanted : iterable of int
            Nodes not to prune where they are hidden, since their posterior is asked for.
        together : sequence of sequence of int
            Groups of nodes that must share a clique where they are hidden, since their joint posterior is asked for.
        partition : Partition, optional
            Clusters of hidden nodes that q(x) is a product over; by default it is exact.
        source : Rows, optional
            The rows of these columns, which are kept where q(x) is a product.

        Raises
        ------
        TooLargeError
            If a clique has more than `max_table_cells` cells, or the program takes more than `max_memory` bytes.
        """
        layout = self.layout
        latents = tuple(node for node in range(len(layout.names)) if node not in columns)
        wanted = frozenset(wanted).union(*together)
        components: dict[tuple, list] = {}
        self._forget_set_leaves(columns, wanted)
        has_set = any(have_set(column, layout.cardinalities[node]) for node, column in columns.items())
        for rows, observed, are_set in self._patterns(columns, n_rows, wanted):
            for component in self._components(observed, are_set, wanted, together):
                components.setdefault(component, []).append(rows)
        shared = [] if partition is None else divided(self, components, partition, together, n_rows)
        of_shared = dict(columns) if shared else {}
        # the driver keeps a few points of each start, the workspace parameters and their exponentials
        bytes_planned = 8.0 * layout.n_table_cells * (10 * self.n_lanes + 8)
        self.check_memory(bytes_planned)
        assembly, plans = Assembly(layout, self.check_memory, bytes_planned), []
        complete = self._complete_counts(columns, weight)
        planned = []
        for (hidden, members), pieces in sorted(self._joined(components).items()):
            families, factors = self._tables_and_factors(hidden, members)
            rows = None if len(pieces) == 1 and pieces[0] is None else np.concatenate(pieces)
            if rows is not None and len(pieces) > 1:
                rows.sort()
            codes = self._codes_around(hidden, families, columns, rows)
            tree, sizes = self.tree(hidden, families, factors, together)
            if factors:
                contexts: Contexts = RowContexts(layout, codes, rows, n_rows, weight)
            else:
                contexts = Contexts(layout, codes, rows, n_rows, weight, keep_rows)
            planned.append((hidden, families, factors, tree, sizes, contexts, rows))
        if not any(contexts.needs_columns for *_, contexts, _ in planned):
            columns.clear()  # the caller may have left the codes to us: what is not needed any more is freed
        for hidden, families, factors, tree, sizes, contexts, rows in planned:
            contexts.settle()
            scopes = [factor.hidden for factor in factors]
            order = assembly.add_plan(hidden, families, tree, sizes, contexts, scopes)
            plans.append(
                Plan(hidden, tree, sizes, contexts.n, families, rows, contexts.of_row, contexts.a_row, factors, order)
            )
        contraction = assembly.finish(complete)
        total = float(n_rows if weight is None else weight.sum())
        whole = weight is None or bool(np.all(weight == np.round(weight)))
        work, whole = sum(assembly.work), whole or not plans
        program = Program(layout, contraction, tuple(plans), total, work, whole, latents, has_set)
        if not shared:
            return program
        assert source is not None
        return structured_program(self, shared, program, of_shared, weight, together, source, assembly.n_bytes)

    def _forget_set_leaves(self, columns, wanted):
        """Cells of childless nodes that were set say nothing: they are as missing ones."""
        for node in columns.keys() - wanted:
            size = self.layout.cardinalities[node]
            if not self.layout.children[node] and have_set(columns[node], size):
                columns[node] = np.where(columns[node] < size, columns[node], -1)

    def _patterns(self, columns, n_rows, wanted):
        """Groups of rows whose hidden parts are alike: (rows, or None for all; nodes observed in any; nodes set)."""
        nodes, sizes = sorted(columns), self.layout.cardinalities
        gappy = [node for node in nodes if n_rows and columns[node].min() < 0]
        with_set = [node for node in nodes if have_set(columns[node], sizes[node])]
        if not (gappy or with_set):
            yield None, frozenset(nodes), frozenset()
            return
        cells = [*(columns[node] < 0 for node in gappy), *(columns[node] >= sizes[node] for node in with_set)]
        keys = joint_keys(cells, [2] * len(cells), n_rows)
        _, first, inverse, n_alike = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
        patterns = np.stack([cell[first] for cell in cells])
        missing = patterns[: len(gappy)]
        missing[:] = self._without_unseen_leaves(missing, gappy, frozenset(nodes), wanted, n_alike)
        keys = joint_keys(patterns, [2] * len(cells), len(first))
        _, first, group = np.unique(keys, return_index=True, return_inverse=True)
        groups = group[inverse]
        order = np.argsort(groups, kind="stable")
        bounds = np.flatnonzero(np.diff(groups[order])) + 1
        for pattern, rows in zip(patterns[:, first].T, np.split(order, bounds)):
            unseen, are_set = (set(compress(*each)) for each in ((gappy, pattern), (with_set, pattern[len(gappy) :])))
            yield rows, frozenset(nodes) - unseen, frozenset(are_set)

    def _without_unseen_leaves(self, missing, gappy, nodes, wanted, n_alike):
        """Cells (n_gappy, n_patterns) that are missing, but for childless nodes beside an observed one like them.

        Such a node sums to one where it is missing, and with it nothing else: one of the same parents is there. So do
        nodes with an emission, apart. Patterns of many rows with many such cells are left as they are: their plans
        would multiply much for nothing.
        """
        layout, alike = self.layout, {}
        for node in nodes:
            if not layout.children[node] and node not in wanted:
                alike.setdefault((frozenset(layout.parents[node]), node < layout.n_tables), []).append(node)
        place, whole = {node: k for k, node in enumerate(gappy)}, missing.copy()
        for leaves in alike.values():
            at = [place[node] for node in leaves if node in place]
            is_unseen = missing[at].all(axis=0) if len(at) == len(leaves) else np.zeros(missing.shape[1], dtype=bool)
            whole[at] = is_unseen
        is_costly = (missing.sum(axis=0) - whole.sum(axis=0)) * n_alike > _WORTH_A_PLAN
        return np.where(is_costly, missing, whole)

    def _joined(self, components):
        """Components of the same hidden nodes and cliques made one, unless many rows would multiply many ones."""
        alike: dict[tuple, list] = {}
        for (hidden, members), pieces in components.items():
            unseen = sum(1 << node for node in hidden)
            scopes = {self._scopes[member] & unseen for member in members}
            largest = frozenset(s for s in scopes if not any(s != other and s & other == s for other in scopes))
            factors = frozenset(self.layout.parents[node] for node in members if node >= self.layout.n_tables)
            alike.setdefault((hidden, largest, factors), []).append((members, pieces))
        joined: dict[tuple, list] = {}
        for (hidden, *_), parts in alike.items():
            union = tuple(sorted({member for members, _ in parts for member in members}))
            for members, pieces in parts:
                n_rows = sum(map(len, pieces)) if len(parts) > 1 else 0
                is_costly = n_rows * (len(union) - len(members)) > _WORTH_A_PLAN
                joined.setdefault((hidden, members if is_costly else union), []).extend(pieces)
        return joined

    def _codes_around(self, hidden, families, columns, rows):
        """Codes of the observed nodes around a component in its rows, -1 where no family needs them."""
        layout, sizes = self.layout, self.layout.cardinalities
        picked = (lambda column: column) if rows is None else (lambda column: column[rows])
        around = sorted({m for f in families for m in layout.strides[f] if m not in hidden})
        codes = {node: picked(columns[node]) for node in around}
        for node in around:
            if node not in families:  # no table of its own that could be left out
                codes[node] = categories_of(codes[node], sizes[node])
        has = {family: (codes[family] >= 0) & (codes[family] < sizes[family]) for family in families if family in codes}
        gappy = {family for family, there in has.items() if not there.all()}
        for node in around if gappy else ():
            users = [family for family in families if node in layout.strides[family]]
            if (len(users) > (node in users) or have_set(codes[node], sizes[node])) and gappy.issuperset(users):
                codes[node] = np.where(np.logical_or.reduce([has[family] for family in users]), codes[node], -1)
        return codes

    def _components(self, observed, are_set, wanted, together):
        """Hidden parts of a pattern: (hidden nodes, families that touch them), each connected."""
        layout = self.layout
        kept = [False] * len(layout.names)
        for node in layout.leaves_first:
            if node not in are_set:
                kept[node] = node in observed or node in wanted or any(kept[child] for child in layout.children[node])
        unseen = sum(1 << node for node in range(len(kept)) if node not in observed)
        scopes = [(mask & unseen, [node]) for node, mask in enumerate(self._scopes) if kept[node]]
        asked = [(sum(1 << node for node in group) & unseen, list[int]()) for group in together]
        groups = disjoint([*scopes, *asked])
        return [
            (tuple(node for node in range(len(kept)) if hidden >> node & 1), tuple(sorted(families)))
            for hidden, families in groups
        ]

    def _tables_and_factors(self, hidden, members):
        """The nodes of a component that have a table, and what those with an emission say, parents by parents."""
        layout = self.layout
        nodes_of: dict[tuple[int, ...], list[int]] = {}
        for node in members[bisect_left(members, layout.n_tables) :]:
            nodes_of.setdefault(layout.parents[node], []).append(node)
        factors = (
            RowFactor(tuple(nodes), tuple(p for p in parents if p in hidden)) for parents, nodes in nodes_of.items()
        )
        return members[: bisect_left(members, layout.n_tables)], tuple(factors)

    def tree(self, hidden, families, factors, together):
        """The junction tree of hidden nodes, and their numbers of states; TooLargeError if a clique is too large."""
        layout = self.layout
        variable = {node: v for v, node in enumerate(hidden)}
        cardinalities = tuple(layout.cardinalities[node] for node in hidden)
        scopes = [tuple(variable[m] for m in layout.strides[f] if m in variable) for f in families]
        scopes += [tuple(variable[m] for m in factor.hidden) for factor in factors]
        scopes += [tuple(variable[node] for node in group if node in variable) for group in together]
        tree = junction_tree(cardinalities, scopes)
        for clique in tree.cliques:
            cells = prod(cardinalities[v] for v in clique)
            if cells > self.max_table_cells:
                names = ", ".join(str(layout.names[hidden[v]]) for v in clique)
                raise TooLargeError(
                    f"Summing over the hidden nodes {names} needs a table of {cells:.4g} cells; 'max_table_cells' "
                    f"allows {self.max_table_cells:.4g}. Give these nodes fewer states, break a loop among them, or "
                    "raise the limit" + (", or set inference='structured', a looser bound." if self.can_divide else ".")
                )
        return tree, cardinalities

    def _complete_counts(self, columns, weight):
        counts = np.zeros(self.layout.n_table_cells)
        for node in range(self.layout.n_tables):
            complete = complete_cells(self.layout, columns, node)
            if complete is not None:
                rows, cells = complete
                w = None if weight is None else weight[rows]
                size = self.layout.table_cells(node)
                counts[self.layout.first_cell[node] :][:size] += np.bincount(cells, weights=w, minlength=size)
        return counts
