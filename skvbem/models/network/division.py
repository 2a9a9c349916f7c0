r"""Rows of data compiled for a q(x) in clusters, part by part, and gains of the bound by joining hidden nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import Any

import numpy as np

from skvbem._kernels._messages import add_message
from skvbem.data import Rows, categories_of
from skvbem.models.network.assembly import Assembly
from skvbem.models.network.clusters import Partition, largest_clique
from skvbem.models.network.contexts import Contexts, joint_keys
from skvbem.models.network.program import Plan, Program, RowFactor
from skvbem.models.network.structured import Factors, Group, Member, Part, StructuredProgram

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
        self.has_gaps, self.has_set = {}, {}
        if alone:
            self._at = rows if weight is None else np.repeat(rows, np.round(weight[rows]).astype(int))
            self.n, self.weight = len(self._at), np.ones(len(self._at))
            self.of_row, self.a_row = np.searchsorted(self._at, rows), self._at
            return
        keys = joint_keys(
            [columns[node][rows].astype(np.int64) + 1 for node in around],
            [2 * layout.cardinalities[node] + 1 for node in around],
            len(rows),
        )
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        row_weight = np.bincount(inverse, weights=None if weight is None else weight[rows]).astype(float)
        order = np.argsort(row_weight, kind="stable")
        self.weight, self._at, self.n = row_weight[order], rows[first[order]], len(order)
        position = np.empty(self.n, dtype=np.int64)
        position[order] = np.arange(self.n)
        self.of_row, self.a_row = position[inverse], self._at

    def has(self, node: int) -> np.ndarray:
        """True where a node with a column is observed, and not set, (n_contexts,)."""
        codes = self._columns[node][self._at]
        return (codes >= 0) & (codes < self.layout.cardinalities[node])

    def value(self, node: int, part) -> np.ndarray:
        """The value of a node in some contexts, -1 where it is missing."""
        return categories_of(self._columns[node][self._at[part]], self.layout.cardinalities[node])

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
    for hidden, members_of_hidden in sorted(by_hidden.items()):
        families = tuple(sorted({family for _, members in members_of_hidden for family in members}))
        scopes = [{m for m in layout.strides[family] if m in hidden} for family in families]
        asked = [{m for m in group if m in hidden} for group in together]
        parts = partition.parts([*scopes, *asked], hidden)
        if len(parts) == 1:
            continue
        cells = largest_clique(layout.cardinalities, scopes, hidden)
        if partition.exact_where_it_fits and cells <= compiler.max_table_cells:
            continue
        pieces = [rows for component in members_of_hidden for rows in components.pop(component)]
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


def merge_gains(program: StructuredProgram, natural: np.ndarray) -> dict[tuple[int, int], float]:
    r"""Gain of the bound, nats, by joining pairs of hidden nodes in one E step at natural parameters (n_cells,).

    At a fixed point of mean field, q of a node is what its messages say. Given all other nodes, q of a pair is then
    :math:`q_a q_b e^{d} / Z` with

    .. math::

        d(x_a, x_b) = \sum_{f \ni a, b} \left[ m_{f \to ab}(x_a, x_b) - m_{f \to a}(x_a) - m_{f \to b}(x_b) \right],

    over the families that both are in, m being expected logarithms under the others. So a row gains
    :math:`\ln \langle e^d \rangle - \langle d \rangle \ge 0`, means under :math:`q_a q_b`: 0 for a pair that shares no
    family.

    Parameters
    ----------
    program : StructuredProgram
        Every hidden node alone.
    natural : ndarray of shape (n_cells,)
    """
    gains: dict[tuple[int, int], float] = {}
    pairs_of = {id(group): _pairs(group) for group in program.groups}
    tables = {id(member): member.table(natural[:, None])[:, 0] for group in program.groups for member in group.members}
    for group, rows, marginals, _, _ in program.posteriors(natural):
        for (a, b), members in pairs_of[id(group)].items():
            q_a, q_b = marginals[a][0][0], marginals[b][0][0]
            d = sum(
                _interaction(member, tables[id(member)], rows, group.member_marginals(member, marginals), i, j)
                for member, i, j in members
            )
            gain = _gains(q_a[:, None] * q_b, np.asarray(d))
            pair = tuple(sorted((group.parts[a].plan.hidden[0], group.parts[b].plan.hidden[0])))
            gains[pair] = gains.get(pair, 0.0) + float(group.weight[rows] @ gain)
    return gains


def _pairs(group: Group) -> dict[tuple[int, int], list[tuple[Member, int, int]]]:
    """Two parts -> the members that touch both, with their places in each."""
    pairs: dict[tuple[int, int], list[tuple[Member, int, int]]] = {}
    for member in group.members:
        for i, j in combinations(range(len(member.places)), 2):
            pairs.setdefault((member.places[i][0], member.places[j][0]), []).append((member, i, j))
    return pairs


def _interaction(member: Member, table: np.ndarray, rows: slice, marginals: Factors, i: int, j: int) -> np.ndarray:
    """A member's message to a pair of places less its messages to each, (states of one, of the other, n_rows)."""
    shape = (member.shape[i], member.shape[j])
    for_pair = np.moveaxis(table, (0, 1 + i, 1 + j), (-1, 0, 1))
    others = [marginal for place, marginal in enumerate(marginals) if place not in (i, j)]
    message = np.empty((1, shape[0] * shape[1], rows.stop - rows.start))
    of_codes = np.ascontiguousarray(for_pair.reshape(1, shape[0] * shape[1], -1, len(member.cells) + 1))
    add_message(of_codes, member.code[rows], others, message, False)
    joint = message.reshape(*shape, -1)
    to_one = (joint * marginals[j][0]).sum(axis=1)
    to_other = (joint * marginals[i][0][:, None]).sum(axis=0)
    return joint - to_one[:, None] - to_other


def _gains(product: np.ndarray, d: np.ndarray) -> np.ndarray:
    """ln <e^d> - <d> of each row under a product of marginals, arrays (states of one, of the other, n_rows)."""
    above = d - (product * d).sum(axis=(0, 1))
    top = above.max(axis=(0, 1))
    gain = top + np.log((product * np.exp(above - top)).sum(axis=(0, 1)))
    return np.maximum(gain, 0.0)
