"""Counts of a network as sums over independent rows, and the entropy of what is hidden in these."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
from scipy.sparse import coo_array, vstack

from skvbem._kernels import _contexts
from skvbem._numerics import times_log
from skvbem.capabilities import CountBlock, RowMarginals
from skvbem.models.network.layout import Layout
from skvbem.models.network.model import DiscreteDAG
from skvbem.models.network.program import Plan, Program
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
    for part, by_clique in zip(group.parts, beliefs):
        at = 0
        for position, clique in enumerate(part.plan.tree.cliques):
            shape = part.plan.clique_shape(position)
            table = by_clique[:, at : at + prod(shape)]
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


def row_marginals(data: Program, natural: np.ndarray) -> RowMarginals:
    """The marginals of q(x) at natural parameters (n_cells,), normalized or not."""
    contraction, row_starts = data.contraction, data.layout.row_starts
    n_rows = len(row_starts) - 1
    row_of = np.repeat(np.arange(n_rows), np.diff(row_starts))
    sizes = _contexts.marginal_sizes(contraction, row_of, n_rows)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    context, probability = np.empty(starts[-1], dtype=np.int64), np.empty(starts[-1])
    at, first = starts[:-1].copy(), 0
    for _, contexts, _, beliefs in data.beliefs(natural):
        last = first + contexts.stop - contexts.start
        _contexts.fill_marginals(contraction, first, last, beliefs, row_of, at, context, probability)
        first = last
    counts = _contexts.complete_counts(contraction)
    known = np.concatenate([counts, np.add.reduceat(counts, row_starts[:-1])])
    return RowMarginals(starts, context, probability, _contexts.weights(contraction), known)


@dataclass(frozen=True, eq=False)
class NetworkMarginals:
    """Counts of table cells as sums over independent rows; see `skvbem.capabilities.Marginals`.

    Parameters
    ----------
    model : DiscreteDAG
    """

    model: DiscreteDAG

    def count_block(self) -> CountBlock:
        """The coordinates of the prior that count rows: all of them, for a network."""
        return CountBlock(np.arange(self.model.layout.n_cells), self.model.prior)

    def row_marginals(self, natural: np.ndarray, data: Program | StructuredProgram) -> RowMarginals:
        """Probabilities of table cells for each distinct row of data under q(x) at natural parameters (n_cells,)."""
        if isinstance(data, StructuredProgram):
            return marginals_of_clusters(data, natural)
        return row_marginals(data, natural)


def latent_entropy(model: DiscreteDAG, natural: np.ndarray, data: Program | StructuredProgram) -> float:
    """Entropy of what is hidden under q(x) at natural parameters (n_cells,), nats."""
    expectation = model.expect(natural[:, None], data)
    return float(expectation.log_normalizer[0] - times_log(expectation.statistics[:, 0], natural).sum())
