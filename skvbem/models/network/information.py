r"""Information of complete data that hidden variables take away [Louis 1982; Thiesson 1997].

In softmax coordinates :math:`\phi_k = \ln\theta_k - \ln\theta_\mathrm{last}` of each table row, the score of a complete
row of data is :math:`s_k = 1(\text{state } k) - \theta_k` in the table row it falls in, 0 in others. The information of
incomplete data is that of complete data less :math:`\sum_i \mathrm{Cov}(s_i \mid y_i)`, which is what is found here,
per distinct row of data.
"""

from __future__ import annotations

from math import prod

import numpy as np
from scipy.sparse import csc_array, diags_array

from skvbem._kernels import _contexts
from skvbem._names import first_few
from skvbem._numerics import safe_log
from skvbem.capabilities import RowMarginals, ScoreCovariance
from skvbem.errors import TooLargeError
from skvbem.models.network.joint_states import cells_at_zero, state_offsets
from skvbem.models.network.marginals import row_marginals
from skvbem.models.network.program import Plan, Program

# Numbers in one dense block: joint posteriors, or scores, of some contexts.
_BLOCK = 2**21


def score_covariance(
    point: np.ndarray, data: Program, *, joint: bool = True, max_states: int = 4096
) -> list[ScoreCovariance]:
    """The covariance of complete-data scores at a point (n_cells,), in softmax coordinates.

    See `skvbem.capabilities.Information`; without `joint` there is a block for each table.
    """
    layout = data.layout
    marginals = row_marginals(data, safe_log(point))
    n_cells, n_rows = layout.n_cells, len(layout.row_starts) - 1
    involved = np.flatnonzero(np.diff(marginals.starts)[n_cells:])
    if joint:
        blocks = [involved] if len(involved) else []
        check_states(data, max_states)
    else:
        counts = _expected_counts(marginals)
        node_of = np.searchsorted(layout.first_cell, layout.row_starts[:-1], side="right") - 1
        blocks = [rows for node in range(len(layout.names)) if len(rows := involved[node_of[involved] == node])]
    row_of = np.repeat(np.arange(n_rows), np.diff(layout.row_starts))
    entries = (marginals.probability, marginals.context, marginals.starts)
    probability = csc_array(entries, shape=(len(marginals.weight), n_cells + n_rows))
    covariances = []
    for rows in blocks:
        inside = np.zeros(n_cells, dtype=bool)
        inside[np.isin(row_of, rows)] = True
        inside[layout.row_starts[1:] - 1] = False
        free = np.flatnonzero(inside)
        mean = probability[:, free] - probability[:, n_cells + row_of[free]] @ diags_array(point[free])
        mean = diags_array(np.sqrt(marginals.weight)) @ mean
        products = _joint_products(data, point, marginals, free) if joint else _products(counts, point, free, row_of)
        covariances.append(ScoreCovariance(free - row_of[free], products - _gram(mean.tocsr())))
    return covariances


def check_states(data: Program, max_states: int) -> None:
    """Refuse sums over more than so many joint states of what a row hides."""
    for plan in data.plans:
        if prod(plan.cardinalities) > max_states:
            names = first_few((data.layout.names[node] for node in plan.hidden), 6, str)
            raise TooLargeError(
                f"The covariance between tables needs all {prod(plan.cardinalities):.4g} joint states of {names} "
                f"in a row of data; 'max_states' allows {max_states}. Raise it, or take the variant 'block' or "
                "'diagonal', which look at one table at a time."
            )


def _gram(rows) -> np.ndarray:
    """The product X'X of a sparse matrix X, in blocks of rows."""
    d = rows.shape[1]
    total, step = np.zeros((d, d)), max(1, _BLOCK // max(d, 1))
    for at in range(0, rows.shape[0], step):
        dense = rows[at : at + step].toarray()
        total += dense.T @ dense
    return total


def _expected_counts(marginals: RowMarginals) -> np.ndarray:
    """Expected counts of table cells, then of table rows, that are not observed."""
    weight = marginals.weight[marginals.context] * marginals.probability
    return np.add.reduceat(np.append(weight, 0.0), marginals.starts[:-1]) * (np.diff(marginals.starts) > 0)


def _products(counts: np.ndarray, point: np.ndarray, free: np.ndarray, row_of: np.ndarray) -> np.ndarray:
    """E[s s'] of one table, summed over rows of data: a row of data is in one row of a table."""
    theta, n, row = point[free], counts[free], row_of[free]
    total = counts[len(point) + row]
    same = row[:, None] == row[None, :]
    products = np.outer(total * theta, theta) - np.outer(n, theta) - np.outer(theta, n)
    return np.where(same, products, 0.0) + np.diag(n)


def _joint_products(data: Program, point: np.ndarray, marginals: RowMarginals, free: np.ndarray) -> np.ndarray:
    """E[s s'] across tables, summed over rows of data, from joint posteriors of all that is hidden in one."""
    layout = data.layout
    row_of = np.repeat(np.arange(len(layout.row_starts) - 1), np.diff(layout.row_starts))
    coordinate = np.full(layout.n_cells, -1, dtype=np.int64)
    coordinate[free] = np.arange(len(free))
    products, first = np.zeros((len(free), len(free))), 0
    position = {id(plan): k for k, plan in enumerate(data.plans)}
    for plan, contexts, _, beliefs in data.beliefs(safe_log(point)):
        cells = cells_at_zero(data, position[id(plan)])[contexts]
        offsets = state_offsets(layout, plan)
        step = max(1, _BLOCK // len(offsets))
        for at in range(0, len(beliefs), step):
            joint = joint_posterior(plan, beliefs[at : at + step])
            joint *= marginals.weight[first : first + len(joint), None]
            of_joint = np.ascontiguousarray(cells[at : at + step])
            _contexts.add_score_products(
                of_joint, offsets, joint, point, layout.row_starts, row_of, coordinate, products
            )
            first += len(joint)
    return np.tril(products) + np.tril(products, -1).T


def joint_posterior(plan: Plan, beliefs: np.ndarray) -> np.ndarray:
    """Posterior of all hidden nodes together, (n_contexts, n_states): cliques over separators."""
    joint, at = np.ones((len(beliefs), *plan.cardinalities)), 0
    for position, clique in enumerate(plan.tree.cliques):
        shape = plan.clique_shape(position)
        size = prod(shape)
        spread = [n if v in clique else 1 for v, n in enumerate(plan.cardinalities)]
        table = beliefs[:, at : at + size].reshape(-1, *spread)
        at += size
        separator = plan.tree.separator(position)
        if separator:
            others = tuple(1 + v for v in clique if v not in separator)
            shared = table.sum(axis=others, keepdims=True)
            table = np.divide(table, shared, out=np.zeros_like(table), where=shared > 0)
        joint *= table
    return joint.reshape(len(beliefs), -1)
