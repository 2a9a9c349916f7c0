"""Contexts, slots and blocks: the flat arrays of a contraction program, laid out for the kernel's inner loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import prod

import numpy as np

from skvbem._kernels._contraction import Contraction
from skvbem.data import categories_of
from skvbem.graphs.elimination import JunctionTree
from skvbem.models.network.contexts import Contexts, _Slot
from skvbem.models.network.layout import Layout

# Tables of one slot of some lanes stay in the second-level cache: cells of all its codes; measured on latent classes.
_SLOT_CELLS = 1024
# Up to this many contexts a table of its own for each costs no more than joining families by what they save.
_MAX_CONTEXTS_WITH_OWN_TABLES = 4
# A block of contexts is the unit of work of a thread: at least this many multiplications, at most this many blocks.
_BLOCK_WORK = 2**19
_MAX_BLOCKS = 64
# Multiplications that take as long as a cell of a factor that a context has of its own: an exponential, and emissions.
_FACTOR_WORK = 64


class Assembly:
    """Collects plans and lays them out as one program.

    Parameters
    ----------
    layout : Layout
    check_memory : callable of float
        Raises if so many bytes are too many.
    n_bytes : float
        Bytes planned for before.
    """

    def __init__(self, layout: Layout, check_memory: Callable[[float], None], n_bytes: float):
        self.layout = layout
        self.check_memory = check_memory
        self.n_bytes = n_bytes
        self.work: list[int] = []
        self._plan_sizes: list[tuple[int, int, int]] = []  # contexts, cliques, slots
        self._plan_cells: list[tuple[int, int]] = []  # cells of cliques, cells of separators
        self._cliques: list[tuple] = []  # cells, first cell, slots, separator cells, first of these, maps, parent
        self._slots: list[tuple[int, int, int]] = []  # table cells, families, codes
        self._row_factors: list[tuple[int, int, int]] = []  # clique, cells, map
        self._plan_factors: list[int] = []
        self._maps: list[np.ndarray] = []
        self._map_at = 0
        self._factors: list[np.ndarray] = []
        self._mass: list[np.ndarray] = []
        self._codes: list[np.ndarray] = []
        self._weight: list[np.ndarray] = []

    def add_plan(
        self,
        hidden: Sequence[int],
        families: Sequence[int],
        tree: JunctionTree,
        sizes: Sequence[int],
        contexts: Contexts,
        factors: Sequence[Sequence[int]] = (),
    ) -> tuple[int, ...]:
        """Add the contexts of one plan: hidden nodes, the families that touch them, their junction tree and states.

        Of factors that each context has of its own the hidden nodes; their homes in the tree follow the families'.
        Returned are the families in the order of slots.
        """
        by_home: list[list[int]] = [[] for _ in tree.cliques]
        for family, home in zip(families, tree.homes):
            by_home[home].append(family)
        shapes = [tuple(sizes[v] for v in clique) for clique in tree.cliques]
        first_clique, cells_at, separators_at, work = len(self._cliques), 0, 0, 0
        in_cliques = [
            _slots(self.layout, members, set(hidden), contexts, prod(shape)) for members, shape in zip(by_home, shapes)
        ]
        most_codes = max((slot.n_codes for slots in in_cliques for slot in slots), default=0)
        codes = np.empty((contexts.n, sum(map(len, in_cliques))), dtype=np.uint16 if most_codes <= 2**16 else np.int32)
        n_slots = 0
        for q, (clique, shape, slots) in enumerate(zip(tree.cliques, shapes, in_cliques)):
            n_cells, parent, separator = prod(shape), tree.parents[q], tree.separator(q)
            separator_cells = prod(sizes[v] for v in separator)
            nodes = [hidden[v] for v in clique]
            for slot in slots:
                self._add_slot(slot, nodes, shape, contexts, codes[:, n_slots])
                n_slots += 1
            out_map = in_map = self._map_at
            if parent >= 0:
                self._add_map(_projection(clique, shape, separator))
                in_map = self._map_at
                self._add_map(_projection(tree.cliques[parent], shapes[parent], separator))
            self._cliques.append(
                (
                    *(n_cells, cells_at, len(slots)),
                    *(separator_cells, separators_at, out_map, in_map),
                    first_clique + parent if parent >= 0 else -1,
                )
            )
            cells_at += n_cells
            separators_at += separator_cells if parent >= 0 else 0
            work += n_cells * (1 + len(slots))
        for scope, home in zip(factors, tree.homes[len(families) :]):
            position = {node: v for v, node in enumerate(hidden)}
            variables = [position[node] for node in scope]
            n_factor_cells = prod(sizes[v] for v in variables)
            self._row_factors.append((first_clique + home, n_factor_cells, self._map_at))
            self._add_map(_projection(tree.cliques[home], shapes[home], variables))
            work += 2 * prod(shapes[home]) + _FACTOR_WORK * n_factor_cells
        self._plan_factors.append(len(factors))
        self._plan_sizes.append((contexts.n, len(tree.cliques), n_slots))
        self._plan_cells.append((cells_at, separators_at))
        self._codes.append(codes.ravel())
        self._weight.append(contexts.weight)
        self.work.append(contexts.n * work)
        return tuple(family for slots in in_cliques for slot in slots for family in slot.families)

    def _add_map(self, projection: np.ndarray) -> None:
        self._maps.append(projection)
        self._map_at += len(projection)

    def _add_slot(
        self, slot: _Slot, nodes: Sequence[int], shape: Sequence[int], contexts: Contexts, codes: np.ndarray
    ) -> None:
        table_cells, arity = slot.n_codes * prod(shape), len(slot.families)
        self.n_bytes += table_cells * (16.0 + 4.0 * arity) + 4.0 * contexts.n
        self.check_memory(self.n_bytes)
        self._mass.append(contexts.fill_codes(slot, codes))
        self._slots.append((table_cells, arity, slot.n_codes))
        self._factors.append(_factors(self.layout, slot, nodes, shape, contexts))

    def finish(self, complete_counts: np.ndarray) -> Contraction:
        """The program; `complete_counts` (n_cells,) are the counts of wholly observed families."""
        contexts, cliques, slots = np.array(self._plan_sizes, dtype=np.int64).reshape(-1, 3).T
        clique = np.array(self._cliques, dtype=np.int64).reshape(-1, 8).T
        table_cells, arity, n_codes = np.array(self._slots, dtype=np.int64).reshape(-1, 3).T
        row_factor = np.array(self._row_factors, dtype=np.int64).reshape(-1, 3).T
        n_factors = np.array(self._plan_factors, dtype=np.int64)
        flat = {
            "plan_context": _starts(contexts),
            "plan_clique": _starts(cliques),
            "plan_slot": _starts(slots),
            "plan_code": _starts(slots * contexts),
            "clique_cells": clique[0],
            "clique_at": clique[1],
            "clique_slot": _starts(clique[2]),
            "separator_cells": clique[3],
            "separator_at": clique[4],
            "out_map": clique[5],
            "in_map": clique[6],
            "parent": clique[7],
            "plan_factor": _starts(n_factors),
            "factor_clique": row_factor[0],
            "factor_cells": row_factor[1],
            "factor_map": row_factor[2],
            "slot_table": _starts(table_cells),
            "slot_arity": arity,
            "slot_factor": _starts(table_cells * arity),
            "slot_codes": n_codes,
            "slot_mass": _starts(n_codes),
        }
        wide = any(piece.dtype == np.int32 for piece in self._codes)
        most_slots = int(slots.max(initial=1))
        scratch = np.array(self._plan_cells, dtype=np.int64).reshape(-1, 2).max(axis=0, initial=1)
        return Contraction(
            {name: np.ascontiguousarray(values) for name, values in flat.items()}
            | blocks(flat["plan_context"], flat["slot_table"][flat["plan_slot"]], self.work, np.flatnonzero(n_factors))
            | {
                "n_cells": self.layout.n_table_cells,
                "n_table_cells": int(table_cells.sum()),
                "n_contexts": int(contexts.sum()),
                "scratch_cells": int(scratch[0]),
                "scratch_separator": int(scratch[1]),
                "scratch_factors": int(np.diff(_starts(row_factor[1])[flat["plan_factor"]]).max(initial=0)),
                "most_slots": most_slots,
                "unscaled_power": min(128, 256 // most_slots),
                "maps": _joined(self._maps, np.int32),
                "factors": _joined(self._factors, np.int32),
                "mass": _joined(self._mass, float),
                "codes": _joined(self._codes, np.int32 if wide else np.uint16),
                "weight": _joined(self._weight, float),
                "complete_counts": complete_counts,
                "plan_work": np.array(self.work, dtype=np.int64),
            }
        )


def _starts(sizes: np.ndarray) -> np.ndarray:
    starts = np.zeros(len(sizes) + 1, dtype=np.int64)
    sizes.cumsum(out=starts[1:])
    return starts


def _joined(pieces: Sequence[np.ndarray], dtype) -> np.ndarray:
    """All pieces in a row; never empty, so that the kernel may take the address of the first entry."""
    joined = pieces[0] if len(pieces) == 1 else np.concatenate(pieces) if pieces else np.zeros(0)
    return np.ascontiguousarray(joined if len(joined) else np.zeros(1), dtype=dtype)


def _slots(layout: Layout, families: Sequence[int], hidden: set[int], contexts: Contexts, n_cells: int) -> list[_Slot]:
    """Families of a clique grouped so that tables plus contexts cost least.

    A context multiplies and adds one table per slot; a table costs its codes times its families.
    """

    def joined(members: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...], int]:
        """Families, the observed nodes around them, and how many codes these need at most."""
        observed = tuple(sorted({m for family in members for m in layout.strides[family] if m not in hidden}))
        return tuple(members), observed, min(contexts.n, prod(map(contexts.radix, observed)))

    if contexts.n <= _MAX_CONTEXTS_WITH_OWN_TABLES:
        groups = [joined(families)] if families else []
    else:
        groups = _joined_by_cost([joined([family]) for family in families], joined, contexts.n, n_cells)
    slots = []
    for members, observed, n_codes in groups:
        dense = prod(map(contexts.radix, observed))
        values = None
        if dense > n_codes:  # more combinations than contexts: only those seen get a code
            first = np.unique(contexts.raw_codes(observed), return_index=True)[1]
            values = {node: contexts.value(node, first).astype(np.int64) for node in observed}.__getitem__
            n_codes = len(first)
        slots.append(_Slot(members, observed, n_codes, values))
    return slots


def _joined_by_cost(singles, joined: Callable, n_contexts: int, n_cells: int) -> list:
    """Groups of families, each joined to the group where that saves most, if anywhere."""
    groups: list[tuple[tuple[int, ...], tuple[int, ...], int]] = []
    for single in sorted(singles, key=lambda s: (s[2], s[0])):
        best, least = None, 0.0
        for position, group in enumerate(groups):
            pair = joined(group[0] + single[0])
            n_codes = pair[2]
            if n_codes * n_cells > _SLOT_CELLS and n_codes > max(group[2], single[2]) and n_codes != n_contexts:
                continue
            change = 2.5 * (n_codes * len(pair[0]) - group[2] * len(group[0]) - single[2]) - 2.0 * n_contexts
            if change < least:
                best, least = (position, pair), change
        if best is None:
            groups.append(single)
        else:
            groups[best[0]] = best[1]
    return groups


def _factors(layout: Layout, slot: _Slot, nodes: Sequence[int], shape: Sequence[int], contexts: Contexts) -> np.ndarray:
    """Parameter cells whose product is each table cell: (codes x cells x families,), flat.

    A family whose own node is neither hidden nor observed is left out, and so is that of a node that was set: its cell
    is past the last one.
    """
    n_cells = prod(shape)
    position = dict(zip(nodes, np.unravel_index(np.arange(n_cells), shape), strict=True)) if shape else {}
    if slot.values is None:
        sizes = tuple(map(contexts.radix, slot.observed))
        digits = np.unravel_index(np.arange(slot.n_codes), sizes) if sizes else ()
        shifted = [digit - contexts.has_gaps.get(node, False) for node, digit in zip(slot.observed, digits)]
        value = dict(zip(slot.observed, shifted, strict=True)).__getitem__
    else:
        value = slot.values
    factors = np.empty((slot.n_codes, n_cells, len(slot.families)), dtype=np.int32)
    for k, family in enumerate(slot.families):
        by_code, by_cell = np.zeros(slot.n_codes, dtype=np.int64), np.full(n_cells, layout.first_cell[family])
        for member, stride in layout.strides[family].items():
            if member in position:
                by_cell = by_cell + position[member] * stride
            else:
                by_code = by_code + categories_of(value(member), layout.cardinalities[member]) * stride
        factors[:, :, k] = by_code[:, None] + by_cell
        if contexts.has_gaps.get(family) or contexts.has_set.get(family):
            codes = value(family)
            factors[(codes < 0) | (codes >= layout.cardinalities[family]), :, k] = layout.n_table_cells
    return factors.ravel()


def _projection(clique: Sequence[int], shape: Sequence[int], separator: Sequence[int]) -> np.ndarray:
    """For each cell of a clique, the cell of a separator it belongs to."""
    digits = dict(zip(clique, np.unravel_index(np.arange(prod(shape)), shape), strict=True))
    target = np.zeros(prod(shape), dtype=np.int64)
    size = dict(zip(clique, shape, strict=True))
    for v in separator:
        target = target * size[v] + digits[v]
    return target


def blocks(starts: np.ndarray, plan_table: np.ndarray, work: Sequence[int], with_factors: Iterable[int] = ()) -> dict:
    """Runs of contexts of about equal work, whatever the number of threads, and the tables each run touches.

    `starts` is the first context of each plan, `plan_table` its first table cell, both with the end. Contexts of plans
    `with_factors` share no run with those of other plans.
    """
    n_contexts, total = int(starts[-1]), sum(work)
    if n_contexts == 0:
        nothing = np.zeros(2, dtype=np.int64)
        return {"n_blocks": 0, "block_at": nothing} | dict.fromkeys(
            ("block_context", "block_plan", "block_table"), nothing
        )
    n_blocks = int(min(_MAX_BLOCKS, max(1, total // _BLOCK_WORK), n_contexts))
    done, sizes = _starts(np.array(work)), np.diff(starts)
    boundaries = {0, n_contexts}
    for k in range(1, n_blocks):
        aim = total * k // n_blocks
        plan = int(np.searchsorted(done, aim, side="right") - 1)
        boundaries.add(int(starts[plan] + (aim - done[plan]) * sizes[plan] // work[plan]))
    boundaries.update(int(starts[end]) for plan in with_factors for end in (plan, plan + 1))
    bounds = np.array(sorted(boundaries), dtype=np.int64)
    first_plan = np.searchsorted(starts, bounds[:-1], side="right") - 1
    last_plan = np.searchsorted(starts, bounds[1:] - 1, side="right") - 1
    return {
        "n_blocks": len(bounds) - 1,
        "block_context": bounds,
        "block_plan": first_plan.astype(np.int64),
        "block_table": plan_table[first_plan],
        "block_at": _starts(plan_table[last_plan + 1] - plan_table[first_plan]),
    }
