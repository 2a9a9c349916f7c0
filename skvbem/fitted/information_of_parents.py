"""Information of the parents of a node that has an emission, from draws of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import logsumexp

from skvbem.fitted.evidence import row_of_evidence
from skvbem.models.mixed_network.data import joint_codes
from skvbem.models.mixed_network.queries import drawn_at
from skvbem.reading.mixed_network import rows_of, values_of


def information_of_parents(fitted: Any, node, n_draws: int = 2000) -> dict:
    """I(node; parent | other parents), nats per row, of each parent of a node with an emission, from draws of it.

    Parents are in their states as often as in new rows. As many numbers are drawn in each joint state of them, the
    same ones every time. Beside parents that hold numbers, rows are drawn instead.
    """
    parents, k = fitted.model.dag.parents(node), fitted.with_emission.index(node)
    if fitted.model.given[k]:
        return _information_beside_numbers(fitted, node, n_draws * int(np.prod(fitted.model.n_states[k])))
    emission, point, block = fitted.model.emissions[k], fitted.point[1 + k], fitted.model.prior.blocks[1 + k]
    sizes = [len(fitted.levels[parent]) for parent in parents]
    states = np.repeat(np.arange(np.prod(sizes, dtype=int)), n_draws)
    table = emission.prepare(emission.sample(point, states, np.random.default_rng(0)))
    log_density = emission.expected_log_likelihood(table, block.natural(point)).reshape(-1, *sizes)
    joint = fitted.predictive.posteriors(row_of_evidence(fitted, {}), parents)[0]
    weight, joint = joint[states] / n_draws, joint.reshape(sizes)
    given_all = log_density.reshape(len(states), -1)[np.arange(len(states)), states]
    information = {}
    for axis, parent in enumerate(parents):
        share = joint / joint.sum(axis=axis, keepdims=True)
        others = logsumexp(log_density + np.log(share), axis=1 + axis, keepdims=True)
        given_others = np.broadcast_to(others, log_density.shape).reshape(len(states), -1)
        told = given_all - given_others[np.arange(len(states)), states]
        information[parent] = max(float(weight @ told), 0.0)
    return information


def _information_beside_numbers(fitted: Any, node, n_draws: int) -> dict:
    """I(node; parent | other parents), nats per row, of each parent of a node with an emission, some of them numbers.

    Of numbers as if they were normal where categories among the parents are known.
    """
    model, k = fitted.model, fitted.with_emission.index(node)
    codes, columns = drawn_at(model, fitted.point, n_draws, np.random.default_rng(0))
    values = values_of(fitted.groups, codes, columns)
    rows = rows_of(fitted.groups, model, values)
    log_density = model.emissions[k].expected_log_likelihood(
        rows.tables[k], model.prior.blocks[1 + k].natural(fitted.point[1 + k])
    )
    with_table = [parent for parent in model.dag.parents(node) if parent in codes]
    sizes = [len(fitted.levels[parent]) for parent in with_table]
    states = np.array([codes[parent] for parent in with_table], dtype=np.int64).reshape(-1, n_draws)
    joint = joint_codes(list(states), sizes, n_draws)
    told = _of_numbers(fitted, k, columns, joint)
    for axis, parent in enumerate(with_table):
        others = [other for other in with_table if other != parent]
        seen = tuple(np.full(n_draws, j in model.given[k]) for j in range(len(model.emissions)))
        known = np.array([codes[other] for other in others], dtype=np.int64).reshape(-1, n_draws).T
        asked = replace(rows, names=tuple(others), codes=known, observed=seen, row_hashes=None)
        share = fitted.predictive.posteriors(asked, [parent])
        moved = np.repeat(states[:, :, None], sizes[axis], axis=2)
        moved[axis] = np.arange(sizes[axis])
        of_states = np.take_along_axis(log_density, np.asarray(np.ravel_multi_index(tuple(moved), sizes)), axis=1)
        given_others = logsumexp(of_states + np.log(share), axis=1)
        given_all = log_density[np.arange(n_draws), joint]
        told[parent] = max(float(np.mean(given_all - given_others)), 0.0)
    return told


def _of_numbers(fitted: Any, k: int, columns: list[np.ndarray], joint: np.ndarray) -> dict:
    """Information of each parent that holds numbers, given all others, averaged over joint states of the others."""
    model, parents = fitted.model, fitted.model.given[k]
    parameters = model.emissions[k].parameters(fitted.point[1 + k])
    ends = np.cumsum([columns[parent].shape[1] for parent in parents])
    together, told = np.concatenate([columns[parent] for parent in parents], axis=1), {}
    for parent, end in zip(parents, ends):
        mine = np.arange(end - columns[parent].shape[1], end)
        total = 0.0
        for state in np.unique(joint):
            here = together[joint == state]
            rest = np.column_stack([np.ones(len(here)), np.delete(here, mine, axis=1)])
            away = here[:, mine] - rest @ np.linalg.lstsq(rest, here[:, mine], rcond=None)[0]
            slopes = parameters["coefficients"][state][:, mine] / np.sqrt(parameters["variances"][state])[:, None]
            gain = np.eye(len(slopes)) + slopes @ (away.T @ away / len(here)) @ slopes.T
            total += len(here) * 0.5 * float(np.linalg.slogdet(gain)[1])
        told[model.layout.names[model.layout.n_tables + parent]] = total / len(joint)
    return told
