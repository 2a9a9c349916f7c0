"""From a network and a table of codes to a flat program for the contraction kernel.

Each row leaves some nodes hidden: latents, and observed nodes with a missing cell. Hidden nodes without observed
descendants are pruned (they sum to one; summed under expected parameters, which do not, they would cost bound). What
remains falls into connected components that are independent given the row's values. Rows that agree on a component and
on the values around it share a *context*, with summed weights: contexts, not rows, are what a step costs. Families
without hidden nodes are counted once and for all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

import numpy as np

from skvbem._kernels._contraction import Contraction, Workspace
from skvbem.errors import TooLargeError
from skvbem.graphs.elimination import JunctionTree, junction_tree

# Joint codes of several columns stay below this, so that they fit an int64.
_LARGEST_KEY = 2**62
# Tables of one slot stay in the second-level cache: cells of all its codes.
_SLOT_CELLS = 4096
# A block of contexts is the unit of work of a thread: at least this many multiplications, at most this many blocks.
_BLOCK_WORK = 2**19
_MOST_BLOCKS = 64


_INTEGERS = [
    *("plan_context", "plan_clique", "plan_slot", "plan_code"),
    *("clique_cells", "clique_at", "clique_slot", "separator_cells", "separator_at", "out_map", "in_map", "parent"),
    *("slot_table", "slot_arity", "slot_factor", "slot_codes", "slot_mass"),
]


@dataclass(frozen=True)
class Layout:
    """Where the cells of a network's tables stand in one flat block.

    The table of node j has axes (*parents, j) in C order, so that one distribution is one run of cells.

    Parameters
    ----------
    names : tuple of str
        Names of the nodes.
    cardinalities : tuple of int
        Number of states of each node.
    parents : tuple of tuple of int
        Positions of each node's parents.
    """

    names: tuple
    cardinalities: tuple[int, ...]
    parents: tuple[tuple[int, ...], ...]
    first_cell: tuple[int, ...] = field(init=False)
    strides: tuple[Mapping[int, int], ...] = field(init=False)
    n_cells: int = field(init=False)

    def __post_init__(self):
        first, strides, total = [], [], 0
        for node, parents in enumerate(self.parents):
            stride, of_node = 1, {}
            for member in (node, *reversed(parents)):
                of_node[member] = stride
                stride *= self.cardinalities[member]
            first.append(total)
            strides.append(of_node)
            total += stride
        object.__setattr__(self, "first_cell", tuple(first))
        object.__setattr__(self, "strides", tuple(strides))
        object.__setattr__(self, "n_cells", total)

    @cached_property
    def row_starts(self) -> np.ndarray:
        """First cell of every distribution, and the end, (n_rows + 1,)."""
        starts = [np.arange(self.first_cell[j], self.first_cell[j] + self.table_cells(j), self.cardinalities[j])
                  for j in range(len(self.names))]  # fmt: skip
        return np.concatenate([*starts, [self.n_cells]]).astype(np.int64)

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
        first = self.first_cell[node]
        return flat[first : first + self.table_cells(node)].reshape(self.table_shape(node) + flat.shape[1:])


@dataclass(frozen=True)
class Plan:
    """A junction tree over one set of hidden nodes, and the rows whose hidden part it sums.

    Parameters
    ----------
    hidden : tuple of int
        The nodes summed over; variables 0, 1, ... of the tree.
    tree : JunctionTree
    cardinalities : tuple of int
        Number of states of the hidden nodes.
    n_contexts : int
        Number of distinct contexts.
    rows, context_of_row, row_of_context : ndarray or None
        The rows (None: all), the context (0 ... n_contexts - 1) of each, and a row of each context; if they were kept.
    families : tuple of int
        The nodes whose tables touch the hidden nodes.
    """

    hidden: tuple[int, ...]
    tree: JunctionTree
    cardinalities: tuple[int, ...]
    n_contexts: int
    families: tuple[int, ...]
    rows: np.ndarray | None
    context_of_row: np.ndarray | None
    row_of_context: np.ndarray | None

    def clique_shape(self, position: int) -> tuple[int, ...]:
        """Number of states of the nodes of one clique."""
        return tuple(self.cardinalities[v] for v in self.tree.cliques[position])

    @property
    def n_cells(self) -> int:
        """Cells of all cliques together."""
        return sum(prod(self.clique_shape(q)) for q in range(len(self.tree.cliques)))


@dataclass(frozen=True)
class Program:
    """All plans of a table of rows, compiled.

    Parameters
    ----------
    layout : Layout
    contraction : Contraction
    plans : tuple of Plan
    complete_counts : ndarray of shape (n_cells,)
        Counts of the families that are wholly observed.
    total_weight : float
        Sum of the weights of the rows.
    work : int
        Multiplications of one pass over all contexts, one lane.
    """

    layout: Layout
    contraction: Contraction
    plans: tuple[Plan, ...]
    complete_counts: np.ndarray
    total_weight: float
    work: int

    @property
    def treewidth(self) -> int:
        """Treewidth of the widest hidden part (0 where nothing is hidden)."""
        return max((plan.tree.treewidth for plan in self.plans), default=0)

    def beliefs(self, natural: np.ndarray, chunk: int = 2**20) -> Iterable[tuple[Plan, slice, np.ndarray, np.ndarray]]:
        """Each plan's contexts in chunks: (plan, contexts, ln Z of each, clique posteriors of each).

        Parameters
        ----------
        natural : ndarray of shape (n_cells,)
            ln parameters, normalized or not.
        chunk : int
            Most cells of clique posteriors at a time.
        """
        workspace = Workspace(self.contraction, 1)
        workspace.given(np.ascontiguousarray(natural).reshape(-1, 1))
        first = 0
        for plan in self.plans:
            width = plan.n_cells
            step = max(1, chunk // width)
            for at in range(0, plan.n_contexts, step):
                upto = min(at + step, plan.n_contexts)
                log_z, beliefs = np.empty(upto - at), np.empty((upto - at, width))
                workspace.contexts(first + at, first + upto, log_z, beliefs)
                yield plan, slice(at, upto), log_z, beliefs
            first += plan.n_contexts


def distinct(keys: np.ndarray, weight: np.ndarray | None, wanted: bool):
    """Distinct keys ascending, their summed weights, a row that has each, and (if wanted) each row's position."""
    if weight is None and not wanted:
        values, first, counts = np.unique(keys, return_index=True, return_counts=True)
        return values, counts.astype(float), first, None
    values, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    total = np.bincount(inverse, weights=weight, minlength=len(values)).astype(float)
    return values, total, first, inverse if wanted else None


def joint_keys(columns: Sequence[np.ndarray], radices: Sequence[int], n_rows: int) -> np.ndarray:
    """One int64 for the values of several columns, in lexicographic order."""
    keys, size = np.zeros(n_rows, dtype=np.int64), 1
    for column, radix in zip(columns, radices, strict=True):
        if size * radix > _LARGEST_KEY:
            values, keys = np.unique(keys, return_inverse=True)
            size = len(values)
        keys *= radix
        keys += column
        size *= radix
    return keys


class _Arrays:
    """Growing lists of what becomes a program's flat arrays."""

    def __init__(self):
        self.lists: dict[str, list] = {}

    def add(self, name: str, value) -> None:
        self.lists.setdefault(name, []).append(value)

    def integers(self, name: str) -> np.ndarray:
        return np.array(self.lists.get(name, []), dtype=np.int64)

    def joined(self, name: str, dtype) -> np.ndarray:
        pieces = self.lists.get(name, [])
        joined = np.concatenate(pieces) if pieces else np.zeros(0)
        return np.ascontiguousarray(joined if len(joined) else np.zeros(1), dtype=dtype)


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

    def _check_memory(self, n_bytes: float) -> None:
        if n_bytes > self.max_memory:
            raise TooLargeError(
                f"This fit holds more than {n_bytes:.3g} bytes ({self.layout.n_cells} table cells in the network, "
                f"{self.n_lanes} starts side by side); 'max_memory' allows {self.max_memory:.3g}. Raise it, take fewer "
                "starts, or give nodes fewer states or fewer parents."
            )

    def compile(
        self,
        columns: Mapping[int, np.ndarray],
        n_rows: int,
        weight: np.ndarray | None = None,
        *,
        keep_rows: bool = False,
        wanted: Iterable[int] = (),
        together: Sequence[int] = (),
    ) -> Program:
        """The program of a table of rows.

        Parameters
        ----------
        columns : mapping of int to ndarray of shape (n_rows,)
            Codes of the observed nodes, negative where the cell is missing. Nodes without a column are hidden.
        n_rows : int
        weight : ndarray of shape (n_rows,), optional
            How often each row counts, more than 0; once by default.
        keep_rows : bool
            Whether plans remember which rows they serve.
        wanted : iterable of int
            Nodes not to prune where they are hidden, since their posterior is asked for.
        together : sequence of int
            Nodes that must share a clique where they are hidden, since their joint posterior is asked for.

        Raises
        ------
        TooLargeError
            If a clique has more than `max_table_cells` cells, or the program takes more than `max_memory` bytes.
        """
        layout = self.layout
        wanted = frozenset(wanted) | frozenset(together)
        components: dict[tuple, list] = {}
        for rows, observed in self._patterns(columns, n_rows):
            for component in self._components(observed, wanted, frozenset(together)):
                components.setdefault(component, []).append(rows)
        # the driver keeps a few points of each start, the workspace parameters and their exponentials
        bytes_planned = 8.0 * layout.n_cells * (10 * self.n_lanes + 8)
        self._check_memory(bytes_planned)
        arrays, plans = _Arrays(), []
        table_at = factor_at = mass_at = code_at = map_at = context_at = clique_at = slot_at = 0
        scratch_cells = scratch_separator = most_slots = 1
        work = []
        for (hidden, families), pieces in sorted(components.items()):
            rows = None if len(pieces) == 1 and pieces[0] is None else np.concatenate(pieces)
            if rows is not None and len(pieces) > 1:
                rows.sort()
            tree, cardinalities = self._tree(hidden, families, together)
            around = sorted({m for f in families for m in layout.strides[f] if m not in hidden})
            contexts = _Contexts(layout, columns, around, rows, n_rows, weight, keep_rows)
            if contexts.n == 0:
                continue
            arrays.add("plan_context", context_at)
            arrays.add("plan_clique", clique_at)
            arrays.add("plan_slot", slot_at)
            arrays.add("plan_code", code_at)
            by_home: list[list[int]] = [[] for _ in tree.cliques]
            for family, home in zip(families, tree.homes, strict=False):
                by_home[home].append(family)
            shapes = [tuple(cardinalities[v] for v in clique) for clique in tree.cliques]
            in_plan, separators, codes, cells_per_context = 0, 0, [], 0
            for q, (clique, shape) in enumerate(zip(tree.cliques, shapes, strict=True)):
                n_cells = prod(shape)
                nodes = [hidden[v] for v in clique]
                arrays.add("clique_cells", n_cells)
                arrays.add("clique_at", in_plan)
                arrays.add("clique_slot", slot_at)
                separator = tree.separator(q)
                arrays.add("separator_cells", prod(cardinalities[v] for v in separator))
                arrays.add("separator_at", separators)
                parent = tree.parents[q]
                arrays.add("parent", -1 if parent < 0 else clique_at - q + parent)
                arrays.add("out_map", map_at)
                if parent >= 0:
                    arrays.add("maps", _projection(clique, shape, separator))
                    map_at += n_cells
                    arrays.add("in_map", map_at)
                    arrays.add("maps", _projection(tree.cliques[parent], shapes[parent], separator))
                    map_at += prod(shapes[parent])
                    separators += prod(cardinalities[v] for v in separator)
                else:
                    arrays.add("in_map", map_at)
                clique_at += 1
                in_plan += n_cells
                for slot in _slots(layout, by_home[q], set(hidden), contexts, n_cells):
                    arity = len(slot.families)
                    bytes_planned += slot.n_codes * n_cells * (16.0 + 4.0 * arity) + 4.0 * contexts.n
                    self._check_memory(bytes_planned)
                    value, mass = contexts.slot_codes(slot)
                    arrays.add("slot_table", table_at)
                    arrays.add("slot_arity", arity)
                    arrays.add("slot_factor", factor_at)
                    arrays.add("slot_codes", slot.n_codes)
                    arrays.add("slot_mass", mass_at)
                    arrays.add("factors", _factors(layout, slot, nodes, shape))
                    arrays.add("mass", mass)
                    codes.append(value)
                    table_at += slot.n_codes * n_cells
                    factor_at += slot.n_codes * n_cells * arity
                    mass_at += slot.n_codes
                    slot_at += 1
                    cells_per_context += n_cells
            arrays.add("codes", _interleaved(codes, contexts.n))
            arrays.add("weight", contexts.weight)
            code_at += len(codes) * contexts.n
            context_at += contexts.n
            scratch_cells = max(scratch_cells, in_plan)
            scratch_separator = max(scratch_separator, separators)
            most_slots = max(most_slots, len(codes))
            work.append(contexts.n * (cells_per_context + in_plan))
            plans.append(Plan(hidden, tree, cardinalities, contexts.n, families, rows, contexts.of_row, contexts.a_row))
        for name, end in (("plan_context", context_at), ("plan_clique", clique_at), ("plan_slot", slot_at),
                          ("clique_slot", slot_at), ("plan_code", code_at)):  # fmt: skip
            arrays.add(name, end)
        complete = self._complete_counts(columns, n_rows, weight)
        wide = any(piece.dtype == np.int32 for piece in arrays.lists.get("codes", []))
        flat = {name: arrays.integers(name) for name in _INTEGERS}
        flat |= _blocks(flat, work, table_at)
        contraction = Contraction(
            flat
            | {
                "n_cells": layout.n_cells,
                "n_table_cells": table_at,
                "n_contexts": context_at,
                "scratch_cells": scratch_cells,
                "scratch_separator": scratch_separator,
                "most_slots": most_slots,
                "unscaled_power": min(128, 256 // most_slots),
                "maps": arrays.joined("maps", np.int32),
                "factors": arrays.joined("factors", np.int32),
                "mass": arrays.joined("mass", float),
                "codes": arrays.joined("codes", np.int32 if wide else np.uint16),
                "weight": arrays.joined("weight", float),
                "complete_counts": complete,
            }
        )
        total = float(n_rows if weight is None else weight.sum())
        return Program(layout, contraction, tuple(plans), complete, total, sum(work))

    def _patterns(self, columns, n_rows):
        """Groups of rows with the same observed nodes: (rows, or None for all; observed nodes)."""
        nodes = sorted(columns)
        gappy = [node for node in nodes if n_rows and columns[node].min() < 0]
        if not gappy:
            yield None, frozenset(nodes)
            return
        keys = joint_keys([columns[node] < 0 for node in gappy], [2] * len(gappy), n_rows)
        order = np.argsort(keys, kind="stable")
        bounds = np.flatnonzero(np.diff(keys[order])) + 1
        for rows in np.split(order, bounds):
            missing = {node for node in gappy if columns[node][rows[0]] < 0}
            yield rows, frozenset(nodes) - missing

    def _components(self, observed, wanted, together):
        """Hidden parts of a pattern: (hidden nodes, families that touch them), each connected."""
        layout = self.layout
        kept = [False] * len(layout.names)
        for node in layout.leaves_first:
            kept[node] = node in observed or node in wanted or any(kept[child] for child in layout.children[node])
        groups: list[tuple[set[int], list[int]]] = []
        scopes = [({m for m in layout.strides[node] if m not in observed}, [node])
                  for node in range(len(kept)) if kept[node]]  # fmt: skip
        for scope, families in [*scopes, ({node for node in together if node not in observed}, [])]:
            if not scope:
                continue
            apart = []
            for hidden, others in groups:
                if hidden.isdisjoint(scope):
                    apart.append((hidden, others))
                else:
                    scope, families = scope | hidden, families + others
            groups = [*apart, (scope, families)]
        return [(tuple(sorted(hidden)), tuple(sorted(families))) for hidden, families in groups]

    def _tree(self, hidden, families, together):
        layout = self.layout
        variable = {node: v for v, node in enumerate(hidden)}
        cardinalities = tuple(layout.cardinalities[node] for node in hidden)
        scopes = [tuple(variable[m] for m in layout.strides[f] if m in variable) for f in families]
        scopes.append(tuple(variable[node] for node in together if node in variable))
        tree = junction_tree(cardinalities, scopes)
        for clique in tree.cliques:
            cells = prod(cardinalities[v] for v in clique)
            if cells > self.max_table_cells:
                names = ", ".join(str(layout.names[hidden[v]]) for v in clique)
                raise TooLargeError(
                    f"Summing over the hidden nodes {names} needs a table of {cells:.4g} cells; 'max_table_cells' "
                    f"allows {self.max_table_cells:.4g}. Give these nodes fewer states, break a loop among them, or "
                    "raise the limit."
                )
        return tree, cardinalities

    def _complete_counts(self, columns, n_rows, weight):
        counts = np.zeros(self.layout.n_cells)
        for node in range(len(self.layout.names)):
            found = complete_cells(self.layout, columns, node)
            if found is not None:
                rows, cells = found
                w = None if weight is None else weight[rows]
                size = self.layout.table_cells(node)
                counts[self.layout.first_cell[node] :][:size] += np.bincount(cells, weights=w, minlength=size)
        return counts


def complete_cells(layout: Layout, columns: Mapping[int, np.ndarray], node: int):
    """(rows, cells): for the rows in which a whole family is observed, which cell of its table each row is in.

    None if a member has no column. Cells count from the node's first.
    """
    if any(member not in columns for member in layout.strides[node]):
        return None
    gappy = [member for member in layout.strides[node] if len(columns[member]) and columns[member].min() < 0]
    rows: slice | np.ndarray = slice(None)
    if gappy:
        rows = np.flatnonzero(np.logical_and.reduce([columns[member] >= 0 for member in gappy]))
    cells = sum(columns[member][rows].astype(np.int64) * stride for member, stride in layout.strides[node].items())
    return rows, cells


@dataclass(frozen=True)
class _Slot:
    """Families whose product is one table per joint value of the observed nodes around them."""

    families: tuple[int, ...]
    observed: tuple[int, ...]
    n_codes: int
    values: Callable | None  # observed node -> its value at each code; None: codes are mixed radix


class _Contexts:
    """Distinct values of the observed nodes around a component, with weights; ordered by weight, then by values."""

    def __init__(self, layout, columns, around, rows, n_rows, weight, keep_rows):
        self.layout = layout
        picked = (lambda column: column) if rows is None else (lambda column: column[rows])
        keys = joint_keys(
            [picked(columns[node]) for node in around],
            [layout.cardinalities[node] for node in around],
            n_rows if rows is None else len(rows),
        )
        weights = None if weight is None else picked(weight)
        _, total, first, inverse = distinct(keys, weights, keep_rows)
        del keys
        order = np.argsort(total, kind="stable")
        if inverse is not None:
            position = np.empty(len(order), dtype=np.int64)
            position[order] = np.arange(len(order))
            inverse = position[inverse]
        self.weight = total[order]
        self.n = len(order)
        self.of_row = inverse
        first = first[order]
        at = first if rows is None else rows[first]
        self.a_row = at if keep_rows else None
        self.value = lambda node: columns[node][at]

    def slot_codes(self, slot: _Slot) -> tuple[np.ndarray, np.ndarray]:
        """Each context's code in a slot, and the weight of each code."""
        codes = self.raw_codes(slot.observed)
        if slot.values is not None:
            codes = np.unique(codes, return_inverse=True)[1]
        mass = np.bincount(codes, weights=self.weight, minlength=slot.n_codes)
        return codes.astype(np.uint16 if slot.n_codes <= 2**16 else np.int32), mass

    def raw_codes(self, observed: tuple[int, ...]) -> np.ndarray:
        return joint_keys(
            [self.value(node) for node in observed], [self.layout.cardinalities[n] for n in observed], self.n
        )


def _slots(layout: Layout, families: Sequence[int], hidden: set[int], contexts: _Contexts, n_cells: int) -> list[_Slot]:
    """Families of a clique grouped so that tables plus contexts cost least.

    A context multiplies and adds one table per slot; a table costs its codes times its families.
    """
    groups: list[tuple[tuple[int, ...], tuple[int, ...], int]] = []  # families, observed nodes, codes

    def codes_of(observed) -> int:
        return min(contexts.n, prod(layout.cardinalities[node] for node in observed))

    singles = []
    for family in families:
        observed = tuple(sorted(m for m in layout.strides[family] if m not in hidden))
        singles.append(((family,), observed, codes_of(observed)))
    for single in sorted(singles, key=lambda s: (s[2], s[0])):
        best, least = None, 0.0
        for position, group in enumerate(groups):
            observed = tuple(sorted({*group[1], *single[1]}))
            n_codes = codes_of(observed)
            arity = len(group[0]) + 1
            if n_codes * n_cells > _SLOT_CELLS and n_codes > max(group[2], single[2]) and n_codes != contexts.n:
                continue
            change = 2.5 * (n_codes * arity - group[2] * len(group[0]) - single[2]) - 2.0 * contexts.n
            if change < least:
                best, least = (position, (group[0] + single[0], observed, n_codes)), change
        if best is None:
            groups.append(single)
        else:
            groups[best[0]] = best[1]
    slots = []
    for members, observed, n_codes in groups:
        dense = prod(layout.cardinalities[node] for node in observed)
        values = None
        if dense > n_codes:  # more combinations than contexts: only those seen get a code
            first = np.unique(contexts.raw_codes(observed), return_index=True)[1]
            values = {node: contexts.value(node)[first].astype(np.int64) for node in observed}.__getitem__
            n_codes = len(first)
        slots.append(_Slot(members, observed, n_codes, values))
    return slots


def _factors(layout: Layout, slot: _Slot, nodes: Sequence[int], shape: Sequence[int]) -> np.ndarray:
    """Parameter cells whose product is each table cell: (codes x cells x families,), flat."""
    n_cells = prod(shape)
    position = dict(zip(nodes, np.unravel_index(np.arange(n_cells), shape), strict=True)) if shape else {}
    if slot.values is None:
        sizes = tuple(layout.cardinalities[node] for node in slot.observed)
        digits = np.unravel_index(np.arange(slot.n_codes), sizes) if sizes else ()
        value = dict(zip(slot.observed, digits, strict=True)).__getitem__
    else:
        value = slot.values
    factors = np.empty((slot.n_codes, n_cells, len(slot.families)), dtype=np.int32)
    for k, family in enumerate(slot.families):
        by_code, by_cell = np.zeros(slot.n_codes, dtype=np.int64), np.full(n_cells, layout.first_cell[family])
        for member, stride in layout.strides[family].items():
            if member in position:
                by_cell = by_cell + position[member] * stride
            else:
                by_code = by_code + value(member) * stride
        factors[:, :, k] = by_code[:, None] + by_cell
    return factors.ravel()


def _projection(clique: Sequence[int], shape: Sequence[int], separator: Sequence[int]) -> np.ndarray:
    """For each cell of a clique, the cell of a separator it belongs to."""
    digits = dict(zip(clique, np.unravel_index(np.arange(prod(shape)), shape), strict=True))
    target = np.zeros(prod(shape), dtype=np.int64)
    size = dict(zip(clique, shape, strict=True))
    for v in separator:
        target = target * size[v] + digits[v]
    return target


def _interleaved(codes: list[np.ndarray], n_contexts: int) -> np.ndarray:
    """Codes of all slots of a plan, context by context."""
    if not codes:
        return np.zeros(0, dtype=np.uint16)
    joined = np.empty((n_contexts, len(codes)), dtype=np.result_type(*codes))
    for position, column in enumerate(codes):
        joined[:, position] = column
    return joined.ravel()


def _blocks(flat: Mapping[str, np.ndarray], work: Sequence[int], n_table_cells: int) -> dict:
    """Runs of contexts of about equal work, whatever the number of threads, and the tables each run touches."""
    starts = flat["plan_context"]
    n_contexts = int(starts[-1])
    sizes = np.diff(starts)
    total = sum(work)
    n_blocks = int(min(_MOST_BLOCKS, max(1, total // _BLOCK_WORK), max(n_contexts, 1))) if n_contexts else 0
    boundaries = [0]
    if n_blocks:
        done = np.concatenate([[0], np.cumsum(work, dtype=float)])
        for k in range(1, n_blocks):
            aim = total * k / n_blocks
            plan = int(np.searchsorted(done, aim, side="right") - 1)
            share = (aim - done[plan]) / work[plan]
            boundaries.append(int(starts[plan] + share * sizes[plan]))
        boundaries = sorted({*boundaries, n_contexts})
        n_blocks = len(boundaries) - 1
    bounds = np.array(boundaries, dtype=np.int64)
    first_plan = np.searchsorted(starts, bounds[:-1], side="right") - 1
    last_plan = np.searchsorted(starts, bounds[1:] - 1, side="right") - 1
    slot_table = np.append(flat["slot_table"], n_table_cells)
    plan_table = slot_table[flat["plan_slot"]]
    begins, ends = plan_table[first_plan], plan_table[last_plan + 1]
    return {
        "n_blocks": n_blocks,
        "block_context": bounds if n_blocks else np.zeros(2, dtype=np.int64),
        "block_plan": first_plan.astype(np.int64) if n_blocks else np.zeros(1, dtype=np.int64),
        "block_table": begins.astype(np.int64) if n_blocks else np.zeros(1, dtype=np.int64),
        "block_at": np.concatenate([[0], np.cumsum(ends - begins)]).astype(np.int64)
        if n_blocks
        else np.zeros(2, np.int64),
    }
