"""Rows of data compiled for a q(x) in clusters: groups of rows with the same hidden nodes, part by part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from skvbem.data import Rows
from skvbem.models.network.assembly import Assembly
from skvbem.models.network.clusters import Partition, largest_clique
from skvbem.models.network.contexts import Contexts, joint_keys
from skvbem.models.network.program import Plan, Program, RowFactor
from skvbem.models.network.structured import Group, Member, Part, StructuredProgram

# Points of each start that the driver keeps, and other copies of what is kept of q(x).
_N_POINTS = 8


class GroupContexts(Contexts):
    """Distinct values of the nodes around some hidden ones, missing ones among them; ordered by weight, then values.

    With `alone` every row is a context, as often as it counts.
    """

    def __init__(
        self, layout, columns, around: Sequence[int], rows: np.ndarray, weight: np.ndarray | None, alone: bool = False
    ):
        self.layout, self.needs_columns, self._columns = layout, True, columns
        if alone:
            self._at = rows if weight is None else np.repeat(rows, np.round(weight[rows]).astype(int))
            self.n, self.weight = len(self._at), np.ones(len(self._at))
            self.of_row, self.a_row = np.searchsorted(self._at, rows), self._at
            return
        keys = joint_keys(
            [columns[node][rows].astype(np.int64) + 1 for node in around],
            [layout.cardinalities[node] + 1 for node in around],
            len(rows),
        )
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        of_rows = np.bincount(inverse, weights=None if weight is None else weight[rows]).astype(float)
        order = np.argsort(of_rows, kind="stable")
        self.weight, self._at, self.n = of_rows[order], rows[first[order]], len(order)
        position = np.empty(self.n, dtype=np.int64)
        position[order] = np.arange(self.n)
        self.of_row, self.a_row = position[inverse], self._at

    def has(self, node: int) -> np.ndarray:
        """Whether a node with a column is observed, (n_contexts,)."""
        return self._columns[node][self._at] >= 0

    def settle(self) -> None:
        """All is found."""


@dataclass(frozen=True, eq=False)
class _Shared:
    """The rows of a group before they are laid out: hidden nodes, families that touch them, parts, rows, and so on."""

    hidden: tuple[int, ...]
    families: tuple[int, ...]
    parts: list[tuple[int, ...]]
    rows: np.ndarray
    largest_clique: int
    alone: bool


def divided(
    compiler: Any,
    components: dict[tuple, list],
    partition: Partition,
    together: Sequence[Sequence[int]],
    n_rows: int,
) -> list[_Shared]:
    """Take the hidden parts out of `components` that a partition divides, rows with the same hidden nodes together."""
    layout, shared = compiler.layout, []
    by_hidden: dict[tuple[int, ...], list[tuple]] = {}
    for component in components:
        by_hidden.setdefault(component[0], []).append(component)
    for hidden, of_hidden in sorted(by_hidden.items()):
        families = tuple(sorted({family for _, members in of_hidden for family in members}))
        scopes = [{m for m in layout.strides[family] if m in hidden} for family in families]
        asked = [{m for m in group if m in hidden} for group in together]
        parts = partition.parts([*scopes, *asked], hidden)
        if len(parts) == 1:
            continue
        cells = largest_clique(layout.cardinalities, scopes, hidden)
        if partition.exact_where_it_fits and cells <= compiler.max_table_cells:
            continue
        pieces = [rows for component in of_hidden for rows in components.pop(component)]
        rows = np.sort(np.concatenate([np.arange(n_rows) if rows is None else rows for rows in pieces]))
        shared.append(_Shared(hidden, families, parts, rows, cells, partition.rows_alone))
    return shared


def structured_program(
    compiler: Any,
    shared: Sequence[_Shared],
    exact: Program,
    columns: Mapping[int, np.ndarray],
    weight: np.ndarray | None,
    together: Sequence[Sequence[int]],
    source: Rows,
    n_bytes: float,
) -> StructuredProgram:
    """The program of groups of rows, beside that of all else."""
    layout = compiler.layout
    assembly, groups, first, first_state = Assembly(layout, compiler.check_memory, n_bytes), [], 0, 0
    for each in shared:
        around = sorted({m for f in each.families for m in layout.strides[f] if m not in each.hidden})
        contexts = GroupContexts(layout, columns, around, each.rows, weight, each.alone)
        inner, members, pieces = _members(layout, each, contexts)
        parts = []
        for k, part in enumerate(each.parts):
            factors = tuple(RowFactor((), piece) for piece in pieces[k])
            tree, sizes = compiler.tree(part, inner[k], factors, together)
            assembly.add_plan(part, inner[k], tree, sizes, contexts, pieces[k])
            plan = Plan(part, tree, sizes, contexts.n, inner[k], each.rows, contexts.of_row, contexts.a_row, factors)
            crossing = {place for member in members if len(member.places) > 1 for place in member.places}
            cells = tuple(prod(layout.cardinalities[m] for m in piece) for piece in pieces[k])
            parts.append(Part(plan, first, cells, tuple(k > 0 and (k, j) in crossing for j in range(len(cells)))))
            first += contexts.n
        of_inner = {m for families in inner for f in families for m in layout.strides[f] if m not in each.hidden}
        observed = {m: contexts.value(m, slice(None)) for m in sorted(of_inner)}
        group = Group(tuple(parts), tuple(members), contexts.weight, first_state, observed, each.largest_clique)
        first_state += group.n_kept
        compiler.check_memory(n_bytes + 8.0 * first_state * compiler.n_lanes * _N_POINTS)
        groups.append(group)
    contraction = assembly.finish(np.zeros(layout.n_table_cells))
    return StructuredProgram(layout, exact, contraction, tuple(groups), source)


def _members(
    layout: Any, shared: _Shared, contexts: GroupContexts
) -> tuple[list[tuple[int, ...]], list[Member], list[list[tuple[int, ...]]]]:
    """Families that are potentials of each part, those that send messages, and the scopes of these in each part."""
    inner: list[list[int]] = [[] for _ in shared.parts]
    pieces: list[list[tuple[int, ...]]] = [[] for _ in shared.parts]
    members = []
    part_of = {node: k for k, part in enumerate(shared.parts) for node in part}
    for family in shared.families:
        touched = sorted({part_of[m] for m in layout.strides[family] if m in part_of})
        has = None if family in part_of else contexts.has(family)
        if len(touched) == 1 and (has is None or has.all()):
            inner[touched[0]].append(family)
            continue
        scopes = [tuple(sorted(m for m in layout.strides[family] if part_of.get(m) == k)) for k in touched]
        for k, scope in zip(touched, scopes):
            if scope not in pieces[k]:
                pieces[k].append(scope)
        places = tuple((k, pieces[k].index(scope)) for k, scope in zip(touched, scopes))
        members.append(_member(layout, family, places, scopes, contexts, has))
    for part, scopes_of_part in zip(shared.parts, pieces):
        if not scopes_of_part:  # a part that hangs together with others only since it was asked for with them
            scopes_of_part.append(part[:1])
    return [tuple(families) for families in inner], members, pieces


def _member(
    layout: Any,
    family: int,
    places: tuple[tuple[int, int], ...],
    scopes: Sequence[tuple[int, ...]],
    contexts: GroupContexts,
    has: np.ndarray | None,
) -> Member:
    strides, hidden = layout.strides[family], [m for scope in scopes for m in scope]
    observed = [m for m in strides if m not in hidden]
    there = np.arange(contexts.n) if has is None else np.flatnonzero(has)
    values = [contexts.value(m, there).astype(np.int64) for m in observed]
    keys = joint_keys(values, [layout.cardinalities[m] for m in observed], len(there))
    _, first, of_there = np.unique(keys, return_index=True, return_inverse=True)
    code = np.full(contexts.n, len(first), dtype=np.int32)
    code[there] = of_there
    by_code = sum((value[first] * strides[m] for m, value in zip(observed, values)), np.zeros(len(first), np.int64))
    shape = [layout.cardinalities[m] for m in hidden]
    digits = np.unravel_index(np.arange(prod(shape)), shape)
    by_state = sum((digit * strides[m] for m, digit in zip(hidden, digits)), np.zeros(prod(shape), np.int64))
    sizes = tuple(prod(layout.cardinalities[m] for m in scope) for scope in scopes)
    return Member(family, places, sizes, layout.first_cell[family] + by_code[:, None] + by_state, code)
