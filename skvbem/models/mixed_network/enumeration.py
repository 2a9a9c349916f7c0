r"""The evidence of a mixed network, summed over all ways to complete the rows [CH (6)].

Rows whose hidden nodes are known have statistics, and the evidence given them is a ratio of normalizers of the prior,
:math:`p(y) = \sum_x e^{A(\mathrm{prior} + u(x, y)) - A(\mathrm{prior})} \prod_i f(x_i, y_i)`. Completions are gone
through one by one.
"""

from __future__ import annotations

from math import log, prod

import numpy as np
from scipy.special import logsumexp

from skvbem._kernels import _contexts
from skvbem.errors import TooLargeError
from skvbem.models.base import in_words, no_closed_form
from skvbem.models.mixed_network.data import MixedData
from skvbem.models.mixed_network.model import MixedNetwork
from skvbem.models.network.joint_states import cells_of_states

# Completions whose evidences are found at once.
_BATCH = 2**12


def log_evidence_by_enumeration(model: MixedNetwork, data: MixedData, max_terms: int) -> tuple[float, int]:
    """The log evidence, nats, and the number of ways to complete the rows.

    Raises
    ------
    TooLargeError
        If there are more than `max_terms`.
    ValueError
        If rows whose hidden nodes are known have no evidence in closed form.
    """
    if data.hidden_numbers is not None:
        raise ValueError(
            "The exact evidence of rows that hide numbers beside their children is not known here. Scores such as "
            "'ais' approximate it."
        )
    if any(known.statistics is None for known in data.known) or not _are_conjugate(model, data):
        raise no_closed_form("this network")
    weight = data.program.contraction.arrays["weight"][: data.program.contraction.n_contexts].astype(np.int64)
    n_states = np.repeat(
        [prod(plan.cardinalities) for plan in data.program.plans], [plan.n_contexts for plan in data.program.plans]
    ).astype(np.int64)
    log_terms = float(weight @ np.log(n_states)) if len(weight) else 0.0
    if log_terms > log(max_terms) + 1e-9:
        raise TooLargeError(
            f"The exact evidence is a sum over {in_words(log_terms)} ways to complete the {data.total_weight:g} rows; "
            f"'max_terms' allows {max_terms}. Take a score that approximates it, fewer rows, or fewer hidden states."
        )
    certain, log_base = _certain(model, data)
    choices = _choices(model, data)
    log_base += sum(float(w * base) for w, (_, base) in zip(weight, choices))
    units = np.repeat(np.arange(len(choices)), weight)
    n_terms = prod(len(choices[unit][0]) for unit in units)
    sums = []
    for at in range(0, n_terms, _BATCH):
        which = np.arange(at, min(at + _BATCH, n_terms))
        added = np.repeat(certain[:, None], len(which), axis=1)
        for unit in units:
            by_state = choices[unit][0]
            added += by_state[which % len(by_state)].T
            which = which // len(by_state)
        sums.append(logsumexp(model.prior.log_evidence(added)))
    return float(logsumexp(sums)) + log_base, n_terms


def _are_conjugate(model: MixedNetwork, data: MixedData) -> bool:
    """True if rows with hidden parents have statistics once these are known."""
    return all(
        model.emissions[k].is_conjugate(table)
        for factors in data.factors
        for factor in factors
        for k, table in zip(factor.emissions, factor.tables)
    )


def _certain(model: MixedNetwork, data: MixedData) -> tuple[np.ndarray, float]:
    """Statistics (n_cells,) in which nothing is hidden, and the sum of ln f of these rows, nats."""
    table_cells, *emissions_cells = model.prior.split(np.zeros(model.n_cells))
    table_cells += _contexts.complete_counts(data.program.contraction)
    for known in data.known:
        emissions_cells[known.emission] += known.statistics
    return np.concatenate([table_cells, *emissions_cells]), sum(known.log_base for known in data.known)


def _choices(model: MixedNetwork, data: MixedData) -> list[tuple[np.ndarray, float]]:
    """Of each context the statistics under each joint state of what is hidden, (n_states, n_cells), and its ln f."""
    layout, choices = model.layout, []
    natural = model.prior.expected_natural()
    steps = model.steps(model.prior.split(natural)[1:], data)
    first_cells = np.cumsum([0, *model.prior.n_cells])[1:-1]
    for number, (plan, factors) in enumerate(zip(data.program.plans, data.factors)):
        n_states = prod(plan.cardinalities)
        cells, has = cells_of_states(data.program, number, slice(None))
        statistics = np.zeros((plan.n_contexts, n_states, model.n_cells))
        rows, states = np.indices(cells.shape[:2])
        for k in range(cells.shape[2]):
            np.add.at(statistics, (rows, states, cells[:, :, k]), has[:, :, k])
        log_base = np.zeros(plan.n_contexts)
        digits = dict(zip(plan.hidden, np.unravel_index(np.arange(n_states), plan.cardinalities)))
        for factor, plan_factor in zip(factors, plan.factors):
            components = factor.components(plan_factor, digits, layout)
            for k, table in zip(factor.emissions, factor.tables):
                by_row, emission = steps[k].of_rows(table), model.emissions[k]
                component_of_cell = emission.component_of_cell(factor.n_states)
                cells_of_state = [np.flatnonzero((component_of_cell == c) | (component_of_cell < 0))
                       for c in range(factor.n_states)]  # fmt: skip
                first = first_cells[k]
                for c in range(factor.n_states):
                    row, state = np.nonzero(components == c)
                    statistics[row[:, None], state[:, None], first + cells_of_state[c]] += by_row[row, c]
                log_likelihood = steps[k].log_likelihood(table)[:, 0]
                log_base += log_likelihood - by_row[:, 0] @ natural[first + cells_of_state[0]]
        choices += list(zip(statistics, log_base.tolist()))
    return choices
