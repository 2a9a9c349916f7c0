"""Queries of a row's hidden variables: its likelihood, marginals, a joint posterior, the joint mode, a draw.

All take one point theta (flat, normalized). A single row uses each table row at most once, so with theta at the
posterior mean of q(theta) a probability of a row is the exact average over q(theta), and sums to one over all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from skvbem._numerics import drawn_codes, safe_log
from skvbem.data import Rows, categories_of
from skvbem.errors import warn_of_impossible
from skvbem.models.network.layout import complete_cells
from skvbem.models.network.max_product import max_product, modes_of_clusters
from skvbem.models.network.model import DiscreteDAG
from skvbem.models.network.program import Plan, of_clique


def log_likelihood(model: DiscreteDAG, point: np.ndarray, data: Rows, **limits) -> np.ndarray:
    """ln p(row | theta) of every row, nats, (n_rows,); what is not observed is summed out, exactly."""
    program = model.compile(data, keep_rows=True, **limits)
    log_point = safe_log(point)
    total = log_of_complete_families(model, log_point, data)
    for plan, contexts, log_z, _ in program.beliefs(log_point):
        rows, context = rows_of(plan, contexts)
        total[rows] += log_z[context]
    return total


def marginals(model: DiscreteDAG, point: np.ndarray, data: Rows, nodes: Sequence, **limits) -> dict:
    """p(node | row, theta) of every row, for each node: (n_rows, n_states); an observed node is certain.

    In a row that is impossible under theta hidden nodes get the marginals of an empty row.
    """
    return _posterior(model, point, data, tuple(nodes), together=False, **limits)


def joint(model: DiscreteDAG, point: np.ndarray, data: Rows, nodes: Sequence, **limits) -> np.ndarray:
    """p(nodes | row, theta) of every row: (n_rows, states of the first node, states of the second, ...).

    The nodes must not have a column in `data`. A row that is impossible under theta gets what an empty row has.
    """
    (posterior,) = _posterior(model, point, data, tuple(nodes), together=True, **limits).values()
    return posterior


def joint_if_possible(
    model: DiscreteDAG, point: np.ndarray, data: Rows, nodes: Sequence, **limits
) -> tuple[np.ndarray, np.ndarray]:
    """As `joint`, and which rows are impossible under theta, (n_rows,): nothing is said of these."""
    results, impossible = _posterior_of_rows(model, point, data, tuple(nodes), together=True, **limits)
    (posterior,) = results.values()
    return posterior, impossible


def marginals_if_possible(
    model: DiscreteDAG, point: np.ndarray, data: Rows, nodes: Sequence, **limits
) -> tuple[dict, np.ndarray]:
    """As `marginals`, and which rows are impossible under theta, (n_rows,): nothing is said of these."""
    return _posterior_of_rows(model, point, data, tuple(nodes), together=False, **limits)


def _posterior(model, point, data, nodes, *, together, **limits) -> dict:
    results, impossible = _posterior_of_rows(model, point, data, nodes, together=together, **limits)
    if impossible.any():
        warn_of_impossible(np.flatnonzero(impossible), len(data), "those of an empty row")
        columns = model.columns(data)
        nothing = Rows((), np.zeros((1, 0), dtype=np.int8))
        of_nothing, _ = _posterior_of_rows(model, point, nothing, nodes, together=together, **limits)
        for key, value in of_nothing.items():
            asked_for = impossible.copy()
            for node in key if together else (key,):
                if (k := model.position[node]) in columns:
                    asked_for &= columns[k] < 0
            results[key][asked_for] = value[0]
    return results


def _posterior_of_rows(model, point, data, nodes, *, together, **limits) -> tuple[dict, np.ndarray]:
    asked = {"together" if together else "wanted": nodes}
    program = model.compile(data, keep_rows=True, **asked, **limits)
    positions = [model.position[node] for node in nodes]
    sizes = [model.layout.cardinalities[k] for k in positions]
    columns = model.categories(data)
    if together:
        results = {nodes: np.ones((len(data), *sizes))}
        wanted = {nodes: tuple(positions)}
    else:
        results = {node: np.zeros((len(data), size)) for node, size in zip(nodes, sizes)}
        wanted = {node: (k,) for node, k in zip(nodes, positions)}
        for node, k in zip(nodes, positions):
            if k in columns:
                seen = np.flatnonzero(columns[k] >= 0)
                results[node][seen, columns[k][seen]] = 1.0
    log_point = safe_log(point)
    impossible = ~np.isfinite(log_of_complete_families(model, log_point, data))
    for plan, contexts, log_z, beliefs in program.beliefs(log_point):
        rows, context = rows_of(plan, contexts)
        impossible[rows] |= ~np.isfinite(log_z[context])
        for key, targets in wanted.items():
            inside = tuple(k for k in targets if k in plan.hidden)
            if not inside:
                continue
            posterior = of_clique(plan, beliefs, inside)[context]
            if together:  # of several clusters it is the product
                posterior = posterior.reshape(
                    len(posterior), *(model.layout.cardinalities[k] if k in inside else 1 for k in targets)
                )
                results[key][rows] *= posterior
            else:
                results[key][rows] = posterior
    return results, impossible


def joint_mode(model: DiscreteDAG, point: np.ndarray, data: Rows, nodes: Sequence, **limits) -> dict:
    """The most probable joint state of each row's hidden part: codes (n_rows,) of each node asked for.

    The hidden part is the nodes asked for and the missing cells that bear on them. Ties go to lower states. Where q(x)
    is a product over clusters, each is the most probable given the others, found in turn from the marginals of q(x).
    Hidden nodes of a row that is impossible under theta are as in an empty row.
    """
    program = model.compile(data, keep_rows=True, wanted=nodes, **limits)
    log_point, columns = safe_log(point), model.columns(data)
    exact = program if program.is_exact else program.exact
    states = [(plan, max_product(model.layout, plan, log_point, columns)) for plan in exact.plans]
    if not program.is_exact:
        states += modes_of_clusters(model.layout, program, log_point, columns)
    modes = modes_of(states, {node: model.position[node] for node in nodes}, model.categories(data), len(data))
    if len(data.names) and not point.all():
        places = np.flatnonzero(~np.isfinite(log_likelihood(model, point, data, **limits)))
        nothing = Rows((), np.zeros((1, 0), dtype=np.int8))
        put_modes_of_nothing(modes, places, columns, model, lambda: joint_mode(model, point, nothing, nodes, **limits))
    return modes


def put_modes_of_nothing(modes: dict, places: np.ndarray, columns: Mapping, model: Any, of_nothing: Callable) -> None:
    """Put modes of an empty row, which a function finds, where hidden nodes of impossible rows have theirs; warn."""
    if not len(places):
        return
    n_rows = len(next(iter(modes.values())))
    warn_of_impossible(places, n_rows, "those of an empty row")
    for node, (code,) in of_nothing().items():
        k = model.position[node]
        hidden = places[columns[k][places] < 0] if k in columns else places
        modes[node][hidden] = code


def modes_of(
    states: Iterable[tuple[Plan, list[np.ndarray]]], positions: Mapping, columns: Mapping[int, np.ndarray], n_rows: int
) -> dict:
    """Codes (n_rows,) of nodes at some positions, hidden ones from the codes of all that plans hide."""
    modes = {
        k: columns[k].astype(np.int64) if k in columns else np.zeros(n_rows, dtype=np.int64) for k in positions.values()
    }
    for plan, by_hidden_state in states:
        rows = slice(None) if plan.rows is None else plan.rows
        for k, codes in zip(plan.hidden, by_hidden_state):
            if k in modes:
                modes[k][rows] = codes[plan.context_of_row]
    return {node: modes[k] for node, k in positions.items()}


def sample(
    model: Any,
    point: np.ndarray,
    n_rows: int,
    rng: np.random.Generator,
    like: Any = None,
    by_row: Callable[[Any, dict], np.ndarray] | None = None,
) -> dict:
    """Rows drawn from the network, parents before children: codes (n_rows,) of every node with a table.

    Nodes that were set in rows `like` these are set to the same. Probabilities (n_rows, n_states) of nodes that
    covariates drive are what a function makes of the node, and of the codes that were drawn before.
    """
    drawn: dict = {}
    for node in model.dag.topological_order():
        if model.position[node] >= model.layout.n_tables:
            continue
        table = model.layout.table(point, model.position[node])
        if by_row is not None and model.position[node] in model.layout.driven:
            rows = by_row(node, drawn)
        else:
            rows = table[tuple(drawn[parent] for parent in model.dag.parents(node))]
        below = np.cumsum(rows, axis=-1) if rows.ndim > 1 else np.broadcast_to(np.cumsum(rows), (n_rows, len(rows)))
        below = below / below[:, -1:]
        drawn[node] = (rng.random((n_rows, 1)) >= below[:, :-1]).sum(axis=1)
        if like is not None and node in like.names:
            codes, n_categories = like.column(node), table.shape[-1]
            drawn[node] = np.where(codes >= n_categories, codes - n_categories, drawn[node])
    return drawn


def sample_given(
    model: DiscreteDAG, point: np.ndarray, given: Mapping, n_rows: int, rng: np.random.Generator, **limits
) -> dict:
    """Rows drawn given codes of some nodes: codes (n_rows,) of every node, exactly.

    Raises
    ------
    ValueError
        If no row has these codes.
    """
    codes = np.array([*given.values()], dtype=np.int64).reshape(1, -1)
    if not np.isfinite(log_likelihood(model, point, Rows(tuple(given), codes), **limits)[0]):
        raise ValueError("The states that are given have probability 0 together: no row can be drawn that has them.")
    return drawn(model, point, Rows(tuple(given), np.repeat(codes, n_rows, axis=0)), model.dag.nodes, rng, **limits)


def drawn(
    model: DiscreteDAG, point: np.ndarray, data: Rows, nodes: Sequence, rng: np.random.Generator, **limits
) -> dict:
    """Codes (n_rows,) of some nodes, those not observed drawn given their row and what was drawn before."""
    known = {name: codes.astype(np.int64) for name, codes in zip(data.names, data.codes.T)}
    for node in filter({*nodes}.__contains__, model.dag.topological_order()):
        hidden = np.flatnonzero(known.setdefault(node, np.full(len(data), -1)) < 0)
        if len(hidden):
            rows = Rows(tuple(known), np.stack([codes[hidden] for codes in known.values()], axis=1))
            known[node][hidden] = drawn_codes(marginals(model, point, rows, (node,), **limits)[node], rng)
    return {node: categories_of(known[node], model.layout.cardinalities[model.position[node]]) for node in nodes}


def log_of_complete_families(model: Any, log_point: np.ndarray, data: Any) -> np.ndarray:
    """ln p of tables whose families are all observed, of every row, nats, (n_rows,)."""
    total = np.zeros(len(data))
    columns = model.columns(data)
    for node in range(model.layout.n_tables):
        complete = complete_cells(model.layout, columns, node)
        if complete is not None:
            rows, cells = complete
            total[rows] += log_point[model.layout.first_cell[node] :][cells]
    return total


def rows_of(plan: Plan, contexts: slice):
    """(rows of the data whose context lies in a chunk, the position of each one's context in the chunk)."""
    assert plan.context_of_row is not None, "the program was compiled without keep_rows"
    if contexts.stop - contexts.start == plan.n_contexts:
        return slice(None) if plan.rows is None else plan.rows, plan.context_of_row
    inside = np.flatnonzero((plan.context_of_row >= contexts.start) & (plan.context_of_row < contexts.stop))
    rows = inside if plan.rows is None else plan.rows[inside]
    return rows, plan.context_of_row[inside] - contexts.start
