"""Values that fitted estimators publish: a table for each node, and the record of the starts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from skvbem.estimators._encoding import CategoryEncoder
from skvbem.graphs.dag import did_you_mean
from skvbem.models import DiscreteDAG
from skvbem.tables import LabeledTable


def levels_of(model: DiscreteDAG, encoder: CategoryEncoder) -> dict:
    """The states of each node as the user knows them: categories of a column, numbers of a latent's states."""
    of_columns = dict(zip(encoder.names_, encoder.categories_))
    sizes = zip(model.dag.nodes, model.layout.cardinalities)
    return {node: of_columns.get(node, np.arange(size)) for node, size in sizes}


class LabeledTables(Mapping):
    """One `LabeledTable` per node of a network, made when it is asked for.

    Parameters
    ----------
    model : DiscreteDAG
    flat : ndarray of shape (n_cells,)
        The cells of all tables.
    levels : mapping of node to ndarray
        The states of each node.
    """

    def __init__(self, model: DiscreteDAG, flat: np.ndarray, levels: Mapping):
        self._model, self._flat, self._levels = model, flat, levels

    def __getitem__(self, node) -> LabeledTable:
        if node not in self._levels:
            raise KeyError(f"{node!r} is not a node of this network.{did_you_mean(node, self._levels)}")
        axes = self._model.dag.family(node)
        table = self._model.layout.table(self._flat, self._model.position[node])
        table.flags.writeable = False  # it is a view of what every query reads
        return LabeledTable(table, axes, tuple(self._levels[axis] for axis in axes))

    def __iter__(self) -> Iterator:
        return iter(self._model.dag.nodes)

    def __len__(self) -> int:
        return len(self._model.dag.nodes)

    __eq__, __hash__ = object.__eq__, object.__hash__

    def __repr__(self):
        return f"LabeledTables of {self._model.dag}"


@dataclass(frozen=True, eq=False)
class Restarts:
    """Where every start of a fit ended.

    Parameters
    ----------
    bounds : ndarray of shape (n_starts,)
        The objective each start reached, nats; NaN for a start dropped from a tournament.
    n_iter : ndarray of shape (n_starts,)
        Steps taken.
    converged : ndarray of shape (n_starts,)
    n_best : int
        How many starts met the best, to 1e-6 relative or 0.01 nats: a best met once among many may not be the best.
    traces : tuple of ndarray
        The objective along the run of each start, nats; empty for one dropped from a tournament.
    """

    bounds: np.ndarray
    n_iter: np.ndarray
    converged: np.ndarray
    n_best: int
    traces: tuple[np.ndarray, ...] = ()

    @classmethod
    def of(cls, fit) -> Restarts:
        """The record of a `skvbem.vbem.fit.Fit`."""
        bounds = fit.restart_objectives
        best = np.nanmax(bounds)
        met = bounds >= best - max(0.01, 1e-6 * abs(best))
        traces = tuple(np.array(trace) for trace in fit.restart_traces)
        return cls(bounds, fit.restart_n_iter, fit.restart_converged, int(met.sum()), traces)

    def __repr__(self):
        reached = self.bounds[~np.isnan(self.bounds)]
        return (
            f"Restarts({len(self.bounds)} starts, {len(reached)} run to the end; best {reached.max():.6g} met "
            f"{self.n_best} times, median {np.median(reached):.6g}, worst {reached.min():.6g})"
        )
