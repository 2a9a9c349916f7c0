"""Points of a network from tables that a user gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from skvbem._names import shown
from skvbem.fitted.bayesian_network import Network
from skvbem.fitted.network import levels_of
from skvbem.models import DiscreteDAG
from skvbem.reading.categories import CategoryEncoder
from skvbem.tables import LabeledTable


def given_point(model: DiscreteDAG, init: Mapping | Network, encoder: CategoryEncoder, owner: str) -> np.ndarray:
    """Tables given as a start, (n_cells, 1); nodes that are not named start uniform."""
    where = f"the 'init' parameter of {owner}"
    if isinstance(init, Network):
        init = {
            node: LabeledTable(table, init.dag.family(node), tuple(init.states[axis] for axis in init.dag.family(node)))
            for node, table in init.tables.items()
        }
    levels = levels_of(model, encoder)
    tables = {
        node: _in_order(table, model.dag.family(node), levels, encoder.names_, where)
        if isinstance(table, LabeledTable) and node in model.position
        else table
        for node, table in init.items()
    }
    point = point_of(model, tables, where)
    _refuse_saddle(model, point, encoder.names_)
    return point[:, None]


def _in_order(table: LabeledTable, family: tuple, levels: Mapping, columns: Sequence, where: str) -> np.ndarray:
    """The values of a table, its axes those of a family and its categories in the order of the fit.

    States of latents are told apart by their numbers alone, whatever their names.
    """
    if set(table.axes) != set(family):
        raise ValueError(
            f"The table of node {family[-1]!r} in {where} must have one axis for each of {family}. Its axes are "
            f"{table.axes}."
        )
    values = table.values.transpose([table.axes.index(node) for node in family])
    for axis, node in enumerate(family):
        theirs, ours = list(table.levels[table.axes.index(node)]), levels[node].tolist()
        if node not in columns:
            continue
        if len(theirs) != len(ours) or set(theirs) != set(ours):
            raise ValueError(
                f"The table of node {family[-1]!r} in {where} must have the categories of column {node!r}, "
                f"{shown(ours)}. It has {shown(theirs)}. Declare them with the 'categories' parameter."
            )
        values = np.take(values, [theirs.index(level) for level in ours], axis=axis)
    return values


def point_of(model: DiscreteDAG, tables: Mapping, where: str) -> np.ndarray:
    """Tables of nodes, checked, as one vector (n_cells,); uniform for nodes that are not named."""
    flat = np.empty(model.layout.n_cells)
    strange = [node for node in tables if node not in model.position]
    if strange:
        raise ValueError(f"{_capital(where)} names {strange[0]!r}, which is not a node of the structure.")
    own_first = sorted(model.position.items(), key=lambda item: not model.layout.has_own_table(item[1]))
    for node, k in own_first:
        target = model.layout.table(flat, k)
        if not model.layout.has_own_table(k) and node not in tables:
            continue
        table = np.asarray(tables.get(node, np.full(target.shape, 1.0 / target.shape[-1])), dtype=float)
        if table.shape != target.shape:
            raise ValueError(
                f"The table of node {node!r} in {where} must have the shape {target.shape}, axes "
                f"{model.dag.family(node)}. Got shape {table.shape} instead."
            )
        if not (np.isfinite(table).all() and (table > 0).all() and np.allclose(table.sum(axis=-1), 1.0, atol=1e-6)):
            raise ValueError(
                f"The table of node {node!r} in {where} must hold probabilities > 0 that sum to 1 along the last axis. "
                f"Got {np.array2string(table, threshold=20, separator=', ')} instead. Network.smoothed fills zeros."
            )
        table = table / table.sum(axis=-1, keepdims=True)
        tie = model.layout.ties[k] if model.layout.ties else None
        shared = node if tie is None else model.dag.nodes[tie[0]]
        if shared != node and shared in tables and not np.allclose(target, table, atol=1e-6):
            raise ValueError(
                f"The tables of {shared!r} and {node!r} in {where} differ; the two are tied. Give one of them."
            )
        target[...] = table
    return flat


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _refuse_saddle(model: DiscreteDAG, point: np.ndarray, columns: Sequence) -> None:
    """A latent whose states all look alike, to its children and to its parents, stays so: no run may start there."""
    layout = model.layout
    for node, k in model.position.items():
        if node in columns or layout.cardinalities[k] == 1 or not layout.children[k]:
            continue
        tables = [
            np.moveaxis(layout.table(point, child), layout.parents[child].index(k), 0) for child in layout.children[k]
        ]
        of_latent = layout.table(point, k).reshape(-1, layout.cardinalities[k])
        if all(np.abs(table - table[0]).max() < 1e-9 for table in [of_latent, *tables]):
            raise ValueError(
                f"The tables in 'init' make all states of {node!r} alike for its children: that is a saddle point, "
                "where every method stays for ever. Let some child's table differ between the states."
            )
