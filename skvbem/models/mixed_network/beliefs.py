"""Posteriors of what is hidden in each row of a mixed network, plan by plan."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np
from scipy.special import xlogy

from skvbem._kernels._contraction import Workspace
from skvbem.models.mixed_network.data import MixedData
from skvbem.models.mixed_network.model import MixedNetwork
from skvbem.models.network.program import Plan

# Cells of clique posteriors at a time.
_CHUNK = 2**18


def beliefs(
    model: MixedNetwork, natural: np.ndarray, data: MixedData
) -> Iterator[tuple[Plan, slice, np.ndarray, np.ndarray, list[np.ndarray]]]:
    """Each plan's contexts in chunks: (plan, contexts, ln Z of each, clique posteriors, posteriors of factors).

    Parameters
    ----------
    model : MixedNetwork
    natural : ndarray of shape (n_cells,)
        Natural parameters, normalized or not.
    data : MixedData

    Yields
    ------
    tuple
        Clique posteriors are (n_contexts, cells of the plan), those of each factor (n_states, n_contexts), for all
        joint states of its parents.
    """
    of_tables, *of_emissions = model.prior.split(natural)
    steps = model.steps(of_emissions, data)
    workspace = Workspace(data.program.contraction, 1)
    workspace.given(np.ascontiguousarray(of_tables)[:, None])
    first = 0
    for plan, factors in zip(data.program.plans, data.factors):
        size = max(1, _CHUNK // plan.n_cells)
        for at in range(0, plan.n_contexts, size):
            contexts = slice(at, min(at + size, plan.n_contexts))
            n = contexts.stop - at
            of_cells = [factor.cells(factor.log_likelihoods(steps, contexts)[None], contexts) for factor in factors]
            log_z, posterior = np.empty(n), np.empty((n, plan.n_cells))
            workspace.contexts(first + at, first + contexts.stop, log_z, posterior, of_cells)
            of_states = [factor.spread(cells, contexts)[0] for factor, cells in zip(factors, of_cells)]
            yield plan, contexts, log_z, posterior, of_states
        first += plan.n_contexts


def latent_entropy(model: MixedNetwork, natural: np.ndarray, data: MixedData) -> float:
    """Entropy of hidden nodes under q(x) at natural parameters (n_cells,), nats: of cliques, less of separators."""
    weight = data.program.contraction.arrays["weight"]
    total, first = 0.0, 0
    for plan, contexts, _, posterior, _ in beliefs(model, natural, data):
        n = contexts.stop - contexts.start
        of_rows, at = np.zeros(n), 0
        for position, clique in enumerate(plan.tree.cliques):
            shape = plan.clique_shape(position)
            table = posterior[:, at : at + prod(shape)].reshape(n, *shape)
            at += prod(shape)
            separator = plan.tree.separator(position)
            shared = table.sum(axis=tuple(1 + a for a, v in enumerate(clique) if v not in separator))
            of_rows -= xlogy(table, table).reshape(n, -1).sum(axis=1)
            if separator:
                of_rows += xlogy(shared, shared).reshape(n, -1).sum(axis=1)
        total += float(weight[first : first + n] @ of_rows)
        first += n
    return total
