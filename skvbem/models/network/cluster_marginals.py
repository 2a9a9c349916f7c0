"""The probability that each distinct row is in each cell of a network's tables, under a q(x) in clusters."""

from __future__ import annotations

from math import prod

import numpy as np
from scipy.sparse import coo_array, vstack

from skvbem.capabilities import RowMarginals
from skvbem.models.network.layout import Layout
from skvbem.models.network.program import Plan
from skvbem.models.network.row_marginals import row_marginals
from skvbem.models.network.structured import Group, StructuredProgram, joint_of


def marginals_of_clusters(data: StructuredProgram, natural: np.ndarray) -> RowMarginals:
    """The marginals of q(x) at natural parameters (n_cells,): of families that cross clusters they are products."""
    exact = row_marginals(data.exact, natural)
    row_starts, n_targets = data.layout.row_starts, len(exact.starts) - 1
    row_of = np.repeat(np.arange(len(row_starts) - 1), np.diff(row_starts)) + data.layout.n_cells
    target = np.repeat(np.arange(n_targets), np.diff(exact.starts))
    parts = [coo_array((exact.probability, (exact.context, target)), shape=(len(exact.weight), n_targets))]
    entries_of: dict[int, list] = {k: [] for k in range(len(data.groups))}
    number = {id(group): k for k, group in enumerate(data.groups)}
    for group, rows, marginals, _, beliefs in data.posteriors(natural):
        entries_of[number[id(group)]] += [
            (rows.start + context, cells, p)
            for context, cells, p in _in_cells(data.layout, group, rows, marginals, beliefs)
        ]
    for k, group in enumerate(data.groups):
        context, cells, p = (np.concatenate(each) for each in zip(*entries_of[k]))
        entries = (np.tile(p, 2), (np.tile(context, 2), np.concatenate([cells, row_of[cells]])))
        parts.append(coo_array(entries, shape=(len(group.weight), n_targets)))
    together = vstack(parts).tocsc()
    together.sum_duplicates()
    return RowMarginals(
        together.indptr.astype(np.int64),
        together.indices.astype(np.int64),
        together.data,
        np.concatenate([exact.weight, *(group.weight for group in data.groups)]),
        exact.known,
    )


def _in_cells(layout: Layout, group: Group, rows: slice, marginals: list, beliefs: list):
    """Contexts of a chunk, cells and probabilities, family by family."""
    n = rows.stop - rows.start
    for member in group.members:
        joint = joint_of(group.member_marginals(member, marginals))[0].T
        there = np.flatnonzero(member.code[rows] < len(member.cells))
        cells = member.cells[member.code[rows][there]]
        yield np.repeat(there, cells.shape[1]), cells.ravel(), joint[there].ravel()
    for part, of_cliques in zip(group.parts, beliefs):
        at = 0
        for position, clique in enumerate(part.plan.tree.cliques):
            shape = part.plan.clique_shape(position)
            table = of_cliques[:, at : at + prod(shape)]
            at += prod(shape)
            for family, home in zip(part.plan.families, part.plan.tree.homes):
                if home == position:
                    cells = _cells_of_family(layout, group, part.plan, family, clique, shape, rows)
                    yield np.repeat(np.arange(n), table.shape[1]), cells.ravel(), table.ravel()


def _cells_of_family(
    layout: Layout, group: Group, plan: Plan, family: int, clique: tuple, shape: tuple, rows: slice
) -> np.ndarray:
    """The cell of a family in each context of a chunk and each joint state of a clique, (n_contexts, n_states)."""
    digits = dict(zip((plan.hidden[v] for v in clique), np.unravel_index(np.arange(prod(shape)), shape)))
    cells = np.full((rows.stop - rows.start, prod(shape)), layout.first_cell[family], dtype=np.int64)
    for node, stride in layout.strides[family].items():
        cells += digits[node] * stride if node in digits else group.observed[node][rows, None].astype(np.int64) * stride
    return cells
