"""Posteriors of what is hidden in each row of a mixed network, plan by plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import Any

import numpy as np
from scipy.special import xlogy

from skvbem._kernels._workspace import Workspace
from skvbem.models.mixed_network.data import MixedData
from skvbem.models.mixed_network.model import MixedNetwork
from skvbem.models.network.program import Plan, of_clique

# Cells of clique posteriors at a time.
_CHUNK = 2**18


def beliefs(
    model: MixedNetwork, log_tables: np.ndarray, log_densities: Callable[[int, Any], np.ndarray], data: MixedData
) -> Iterator[tuple[Plan, slice, np.ndarray, np.ndarray]]:
    """Each plan's contexts in chunks: (plan, contexts, ln Z of each, clique posteriors of each).

    Parameters
    ----------
    model : MixedNetwork
    log_tables : ndarray of shape (n_table_cells,)
        (Expected) logarithms of the tables, normalized or not.
    log_densities : callable of (emission, table)
        (Expected) log densities of rows, of an emission by its number, nats, (n_rows, n_states).
    data : MixedData
    """
    workspace = Workspace(data.program.contraction, 1)
    workspace.given(np.ascontiguousarray(log_tables)[:, None])
    first = 0
    for plan, factors in zip(data.program.plans, data.factors):
        size = max(1, _CHUNK // plan.n_cells)
        for at in range(0, plan.n_contexts, size):
            contexts = slice(at, min(at + size, plan.n_contexts))
            by_cell = []
            for factor in factors:
                by_row = [log_densities(k, table[contexts]) for k, table in zip(factor.emissions, factor.tables)]
                by_cell.append(factor.cells(sum(by_row[1:], by_row[0]).T[None], contexts))
            n = contexts.stop - at
            log_z, posterior = np.empty(n), np.empty((n, plan.n_cells))
            workspace.contexts(first + at, first + contexts.stop, log_z, posterior, by_cell)
            yield plan, contexts, log_z, posterior
        first += plan.n_contexts


def latent_entropy(model: MixedNetwork, natural: np.ndarray, data: MixedData) -> float:
    """Entropy of what rows hide under q(x) at natural parameters (n_cells,), nats: of cliques, less of separators.

    Hidden numbers add the entropies of their densities, in the units of emissions.
    """
    weight = data.program.contraction.arrays["weight"]
    total, first = 0.0, 0
    if data.hidden_numbers is not None:
        total += sum(known.entropy(natural) for known in data.hidden_numbers.known)
    factors_of = {id(plan): factors for plan, factors in zip(data.program.plans, data.factors)}
    table_cells, *_ = model.prior.split(natural)
    steps = model.all_steps(natural, data)
    for plan, contexts, _, posterior in beliefs(
        model, table_cells, lambda k, rows: steps[k].log_likelihood(rows), data
    ):
        n = contexts.stop - contexts.start
        by_row, at = np.zeros(n), 0
        for position, clique in enumerate(plan.tree.cliques):
            shape = plan.clique_shape(position)
            table = posterior[:, at : at + prod(shape)].reshape(n, *shape)
            at += prod(shape)
            separator = plan.tree.separator(position)
            shared = table.sum(axis=tuple(1 + a for a, v in enumerate(clique) if v not in separator))
            by_row -= xlogy(table, table).reshape(n, -1).sum(axis=1)
            if separator:
                by_row += xlogy(shared, shared).reshape(n, -1).sum(axis=1)
        for of_plan, factor in zip(plan.factors, factors_of[id(plan)]):
            for k, rows_of_factor in zip(factor.emissions, factor.tables):
                if k >= len(model.emissions):
                    of_cells = of_clique(plan, posterior, of_plan.hidden).reshape(n, -1).T[None]
                    states = factor.spread(np.ascontiguousarray(of_cells), contexts)[0]
                    by_row += steps[k].entropy(rows_of_factor[contexts], states)
        total += float(weight[first : first + n] @ by_row)
        first += n
    return total
