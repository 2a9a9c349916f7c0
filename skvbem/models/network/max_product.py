"""The most probable joint state of what is hidden in a row: max-product on a junction tree, or cluster by cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from skvbem.data import categories_of
from skvbem.models.network.layout import Layout
from skvbem.models.network.program import Plan, of_clique
from skvbem.models.network.structured import Group, Member, StructuredProgram

# Rounds over the clusters, at most: each raises the probability of the joint state, or is the last.
_MAX_ROUNDS = 100


def max_product(
    layout: Layout,
    plan: Plan,
    log_point: np.ndarray,
    columns: Mapping[int, np.ndarray],
    factors: Sequence[np.ndarray] = (),
) -> list[np.ndarray]:
    """Codes (n_contexts,) of each hidden node of a plan, at the joint mode of each context.

    Parameters
    ----------
    layout : Layout
    plan : Plan
    log_point : ndarray of shape (n_table_cells,)
    columns : mapping of int to ndarray
        Codes of the observed nodes, by position.
    factors : sequence of ndarray of shape (n_cells, n_contexts)
        What emissions say of the cells of each factor of the plan, nats.
    """

    def values_at(node: int) -> np.ndarray:
        return columns[node][plan.row_of_context]

    potentials = _potentials(layout, plan, log_point, values_at, plan.n_contexts)
    for factor, logs in enumerate(factors):
        _add(potentials, plan, factor, logs.T)
    return _mode(plan, potentials)


def modes_of_clusters(
    layout: Layout, program: StructuredProgram, log_point: np.ndarray, columns: Mapping[int, np.ndarray]
) -> Iterator[tuple[Plan, list[np.ndarray]]]:
    """Of each part of each group, codes (n_contexts,) of its nodes at a joint state that no cluster alone betters."""
    modes: dict[int, list[dict[int, np.ndarray]]] = {}
    for group, rows, _, _, beliefs in program.posteriors(log_point):
        states = {
            node: of_clique(part.plan, by_part, (node,)).argmax(axis=1)
            for part, by_part in zip(group.parts, beliefs)
            for node in part.plan.hidden
        }
        modes.setdefault(group.first_state, []).append(_ascended(layout, group, rows, log_point, columns, states))
    for group in program.groups:
        chunks = modes[group.first_state]
        for part in group.parts:
            yield part.plan, [np.concatenate([states[node] for states in chunks]) for node in part.plan.hidden]


def _ascended(
    layout: Layout,
    group: Group,
    rows: slice,
    log_point: np.ndarray,
    columns: Mapping[int, np.ndarray],
    states: dict[int, np.ndarray],
) -> dict[int, np.ndarray]:
    """States of hidden nodes after clusters went to their modes given the others, one by one, until none moves."""
    n, a_row = rows.stop - rows.start, group.parts[0].plan.row_of_context
    assert a_row is not None  # programs of queries keep it

    def values_at(node: int) -> np.ndarray:
        return columns[node][a_row[rows]]

    inner = [_potentials(layout, part.plan, log_point, values_at, n) for part in group.parts]
    for _ in range(_MAX_ROUNDS):
        has_moved = False
        for k, part in enumerate(group.parts):
            potentials = list(inner[k])
            for member in group.members:
                to = next((j for j, (other, _) in enumerate(member.places) if other == k), None)
                if to is not None:
                    given = member.given(log_point, rows, _codes(group, member, states), to)
                    _add(potentials, part.plan, member.places[to][1], given)
            for node, codes in zip(part.plan.hidden, _mode(part.plan, potentials)):
                has_moved |= bool((codes != states[node]).any())
                states[node] = codes
        if not has_moved:
            break
    return states


def _codes(group: Group, member: Member, states: Mapping[int, np.ndarray]) -> list[np.ndarray]:
    """The joint state, as one code, of what a member has in each part that it touches."""
    codes = []
    for part, factor in member.places:
        plan = group.parts[part].plan
        nodes = plan.factors[factor].hidden
        shape = [plan.cardinalities[plan.hidden.index(node)] for node in nodes]
        codes.append(np.ravel_multi_index([states[node] for node in nodes], shape))
    return codes


def _add(potentials: list[np.ndarray], plan: Plan, factor: int, logs: np.ndarray) -> None:
    """Add a factor (n_contexts, n_states) of a plan to the potential of the clique that is its home."""
    home = plan.tree.homes[len(plan.families) + factor]
    nodes, factor_nodes = [plan.hidden[v] for v in plan.tree.cliques[home]], plan.factors[factor].hidden
    sizes = {node: plan.cardinalities[plan.hidden.index(node)] for node in factor_nodes}
    order = sorted(range(len(factor_nodes)), key=lambda axis: nodes.index(factor_nodes[axis]))
    by_axis = logs.reshape(-1, *sizes.values()).transpose(0, *(1 + axis for axis in order))
    potentials[home] = potentials[home] + by_axis.reshape(-1, *(sizes.get(node, 1) for node in nodes))


def _potentials(layout: Layout, plan: Plan, log_point: np.ndarray, values_at: Callable, n: int) -> list[np.ndarray]:
    """The logarithms of a plan's potentials in some contexts, (n_contexts, *states) of each clique."""
    tree = plan.tree
    potentials = []
    for position, clique in enumerate(tree.cliques):
        nodes = [plan.hidden[v] for v in clique]
        shape = plan.clique_shape(position)
        potential = np.zeros((n, *shape))
        for family, home in zip(plan.families, tree.homes):
            if home != position:
                continue
            cell = np.full((n,) + (1,) * len(shape), layout.first_cell[family], dtype=np.int64)
            for member, stride in layout.strides[family].items():
                if member in nodes:
                    axis = 1 + nodes.index(member)
                    values_of_member = np.arange(layout.cardinalities[member])
                    cell = (
                        cell
                        + values_of_member.reshape([-1 if a == axis else 1 for a in range(1 + len(shape))]) * stride
                    )
                else:
                    values = categories_of(values_at(member), layout.cardinalities[member]).astype(np.int64)
                    cell = cell + values.reshape((n,) + (1,) * len(shape)) * stride
            if family in plan.hidden:
                potential = potential + log_point[cell]
            else:  # a family is left out where its own node is missing, or was set
                codes = values_at(family)
                has = ((codes >= 0) & (codes < layout.cardinalities[family])).reshape((n,) + (1,) * len(shape))
                potential = potential + np.where(has, log_point[np.where(has, cell, 0)], 0.0)
        potentials.append(potential)
    return potentials


def _mode(plan: Plan, potentials: list[np.ndarray]) -> list[np.ndarray]:
    """Codes (n_contexts,) of each hidden node where the product of potentials is largest."""
    tree, n = plan.tree, len(potentials[0])
    for position, clique in enumerate(tree.cliques[:-1]):
        separator, parent = tree.separator(position), tree.parents[position]
        axes = tuple(1 + a for a, v in enumerate(clique) if v not in separator)
        message = potentials[position].max(axis=axes)
        above = tree.cliques[parent]
        spread = [plan.cardinalities[v] if v in separator else 1 for v in above]
        potentials[parent] = potentials[parent] + message.reshape(n, *spread)
    states: list = [None] * len(plan.hidden)
    for position in range(len(tree.cliques) - 1, -1, -1):
        clique = tree.cliques[position]
        known = [v for v in clique if states[v] is not None]
        potential = np.moveaxis(potentials[position], [1 + clique.index(v) for v in known], range(1, 1 + len(known)))
        chosen = potential[(np.arange(n), *(states[v] for v in known))].reshape(n, -1).argmax(axis=1)
        free = [v for v in clique if states[v] is None]
        for v, codes in zip(free, np.unravel_index(chosen, [plan.cardinalities[v] for v in free]) if free else ()):
            states[v] = codes
    return states
