r"""Joint states of what is hidden in a row, one by one, and the evidence as a sum over all ways to complete the rows.

The sum is [CH (6)]

.. math:: p(y) = \sum_x \mathrm{BD}(N(x, y)).

Equal rows are exchangeable, so that their completions are summed as multinomial allocations, and groups of rows that
share no table row are summed apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb, log, prod

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.special import gammaln, logsumexp

from skvbem._kernels import _contexts
from skvbem._kernels._enumeration import log_sum_over_completions
from skvbem.errors import TooLargeError
from skvbem.families import DirichletMixture
from skvbem.models.base import in_words
from skvbem.models.network.layout import Layout
from skvbem.models.network.model import DiscreteDAG
from skvbem.models.network.program import Plan, Program
from skvbem.models.network.structured import StructuredProgram


@dataclass(frozen=True, eq=False)
class Completions:
    """Distinct rows of data whose hidden states are summed together, and the cells that each completion counts in.

    Parameters
    ----------
    weight : ndarray of int, shape (n_contexts,)
        How many rows of data each distinct row stands for.
    choice_starts : ndarray of shape (n_contexts + 1,)
        Where the completions of each begin.
    cell_starts : ndarray of shape (n_choices + 1,)
        Where the cells of each completion begin.
    cells : ndarray of int
    n_terms : int
        Ways to complete all rows, those that only exchange equal rows counted once.
    """

    weight: np.ndarray
    choice_starts: np.ndarray
    cell_starts: np.ndarray
    cells: np.ndarray
    n_terms: int


def state_offsets(layout: Layout, plan: Plan) -> np.ndarray:
    """Cell of each of a plan's families in which each joint hidden state counts, (n_states, n_families).

    Families are in the order of their cells.
    """
    digits = np.unravel_index(np.arange(prod(plan.cardinalities)), plan.cardinalities)
    offsets = np.zeros((prod(plan.cardinalities), len(plan.families)), dtype=np.int64)
    for k, place in enumerate(_by_cells(layout, plan)):
        for node, digit in zip(plan.hidden, digits):
            offsets[:, k] += digit * layout.strides[plan.slot_families[place]].get(node, 0)
    return offsets


def cells_at_zero(program: Program, k: int) -> np.ndarray:
    """The cells of the contexts of a plan, all hidden nodes in state 0, families in the order of `state_offsets`.

    That of a family which a context does not have is past the last cell.
    """
    plan = program.plans[k]
    cells = _contexts.hidden_cells(program.contraction, k, len(plan.families))
    return cells[:, _by_cells(program.layout, plan)]


def _by_cells(layout: Layout, plan: Plan) -> np.ndarray:
    """Places of a plan's families in its slots, in the order of their cells."""
    return np.argsort([layout.first_cell[family] for family in plan.slot_families], kind="stable").astype(np.intp)


def cells_of_states(program: Program, k: int, contexts: slice) -> tuple[np.ndarray, np.ndarray]:
    """The cells of some contexts of a plan in each joint hidden state, (n_contexts, n_states, n_families).

    Also 1.0 where a context has a family, (n_contexts, 1, n_families), else 0.0: its cells are of no meaning then.
    """
    at_zero = cells_at_zero(program, k)[contexts, None]
    has = at_zero < program.layout.n_table_cells
    return np.where(has, at_zero, 0) + state_offsets(program.layout, program.plans[k]), has.astype(float)


def completions(program: Program, max_terms: int) -> list[Completions]:
    """All completions of all rows, in groups that share no table row: the evidence is a product of sums over groups.

    Raises
    ------
    TooLargeError
        If these sums have more than `max_terms` terms together.
    """
    layout, contraction = program.layout, program.contraction
    n_states = [prod(plan.cardinalities) for plan in program.plans]
    _check(program, log(max(n_states, default=1)), max_terms, "at least ")
    cells = [(cells_at_zero(program, k), state_offsets(layout, plan)) for k, plan in enumerate(program.plans)]
    weight, group = _contexts.weights(contraction), _groups(layout, cells)
    # w equal rows fall into k states in (w + k - 1 over k - 1) ways
    k = np.repeat(np.array(n_states, dtype=np.int64), [plan.n_contexts for plan in program.plans])
    log_terms = np.bincount(group, weights=gammaln(weight + k) - gammaln(k) - gammaln(weight + 1.0))
    _check(program, float(logsumexp(log_terms)) if len(log_terms) else 0.0, max_terms)
    n_cells = layout.n_table_cells
    choices = [at[at < n_cells] + offsets[:, at < n_cells] for at_zero, offsets in cells for at in at_zero]
    groups = []
    for g in range(len(log_terms)):
        members = np.flatnonzero(group == g).tolist()
        sizes = [len(choices[c]) for c in members]
        groups.append(
            Completions(
                weight[members].astype(np.int64),
                np.concatenate([[0], np.cumsum(sizes)]),
                np.concatenate([[0], np.cumsum(np.repeat([choices[c].shape[1] for c in members], sizes))]),
                np.concatenate([choices[c].ravel() for c in members]),
                prod(comb(int(weight[c]) + int(k[c]) - 1, int(k[c]) - 1) for c in members),
            )
        )
    return groups


def _groups(layout: Layout, cells: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """A number for each context, the same for two that may meet in a table row."""
    row_of = np.repeat(np.arange(len(layout.row_starts) - 1), np.diff(layout.row_starts))
    by, met, n_contexts = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)], 0
    for at_zero, offsets in cells:
        for cells_of_context, added in zip(at_zero.T, offsets.T):
            there = np.flatnonzero(cells_of_context < len(row_of))
            rows = row_of[cells_of_context[there, None] + np.unique(added)]
            by.append(np.repeat(n_contexts + there, rows.shape[1]))
            met.append(rows.ravel())
        n_contexts += len(at_zero)
    n = n_contexts + len(layout.row_starts) - 1
    entries = (np.concatenate(by), n_contexts + np.concatenate(met))
    _, label = connected_components(coo_array((np.ones(len(entries[0])), entries), shape=(n, n)), directed=False)
    return np.unique(label[:n_contexts], return_inverse=True)[1]


def _check(program: Program, log_terms: float, max_terms: int, about: str = "") -> None:
    if log_terms > log(max_terms) + 1e-9:
        raise TooLargeError(
            f"The exact evidence is a sum over {about}{in_words(log_terms)} ways to complete the "
            f"{program.total_weight:g} rows; 'max_terms' allows {max_terms}. Take a score that approximates it, fewer "
            "rows, or fewer hidden states."
        )


# Rows with something hidden in them whose table rows may meet: each is a level of the sum, of so many bytes.
_MAX_ROWS, _BYTES_OF_ROW = 2**24, 40


def log_evidence_by_enumeration(
    model: DiscreteDAG, data: Program | StructuredProgram, max_terms: int
) -> tuple[float, int]:
    """The log evidence, nats, and the number of ways to complete the rows.

    Raises
    ------
    TooLargeError
        If there are more than `max_terms`, or rows by the million.
    """
    prior = model.prior
    program = model.with_partition(None).compile(data.source) if isinstance(data, StructuredProgram) else data
    groups, complete = completions(program, max_terms), _contexts.complete_counts(program.contraction)
    most = max((int(group.weight.sum()) for group in groups), default=0)
    if most > _MAX_ROWS:
        raise TooLargeError(
            f"The exact evidence takes rows with something hidden one by one, as often as they weigh: {most:.4g} "
            f"of them take {_BYTES_OF_ROW * most:.3g} bytes; {_MAX_ROWS:.4g} rows are allowed. Divide weights that are "
            "sizes or shares by their mean. Else take a score that approximates it, such as 'lower_bound', which is "
            "exact where each hidden node has one state."
        )
    n_terms = [group.n_terms for group in groups]
    if isinstance(prior, DirichletMixture):  # rows of a table share what is hidden of its prior
        _check(program, sum(map(log, n_terms)), max_terms)
        return _log_sum_together(prior, groups, complete), max(prod(n_terms), 1)
    row_of = np.repeat(np.arange(prior.n_rows), np.diff(prior.row_starts))
    row_prior, counts = prior.row_sums(prior.concentration), complete.astype(np.int64)
    row_counts = prior.row_sums(counts)
    value = float(prior.log_evidence(complete))
    for group in groups:
        value += log_sum_over_completions(
            prior.concentration, row_prior, row_of, counts, row_counts, group.weight, group.choice_starts,
            group.cell_starts, group.cells,
        )  # fmt: skip
    return value, max(sum(n_terms), 1)


def _log_sum_together(prior: DirichletMixture, groups: list[Completions], complete: np.ndarray) -> float:
    """ln of the sum over the completions of all rows together, nats; those with equal counts are taken at once."""
    counts: np.ndarray = complete[None].astype(float)
    times: np.ndarray = np.ones(1)
    for group in groups:
        cells_of = np.split(group.cells, group.cell_starts[1:-1])
        for context, weight in enumerate(group.weight.tolist()):
            options = cells_of[group.choice_starts[context] : group.choice_starts[context + 1]]
            added = np.stack([np.bincount(cells, minlength=len(complete)) for cells in options])
            for _ in range(weight):
                grown = (counts[:, None] + added).reshape(-1, len(complete))
                counts, which = np.unique(grown, axis=0, return_inverse=True)
                times = np.bincount(which.ravel(), weights=np.repeat(times, len(options)))
    return float(logsumexp(prior.log_evidence(counts.T), b=times))
