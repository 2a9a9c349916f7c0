"""Values that fitted estimators publish: a table for each node, and the record of the starts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from skvbem._names import did_you_mean
from skvbem.models import DiscreteDAG
from skvbem.reading.categories import CategoryEncoder
from skvbem.tables import LabeledTable


def levels_of(model: DiscreteDAG, encoder: CategoryEncoder) -> dict:
    """The states of each node as the user knows them: categories of a column, numbers of a latent's states."""
    of_columns = dict(zip(encoder.names_, encoder.categories_))
    sizes = zip(model.dag.nodes, model.layout.cardinalities)
    return {node: of_columns.get(node, np.arange(size)) for node, size in sizes}


class LabeledTables(Mapping):
    """One `LabeledTable` per node with a table, made when it is asked for.

    Parameters
    ----------
    model : DiscreteDAG or MixedNetwork
    flat : ndarray of shape (n_cells,)
        The cells of all tables.
    levels : mapping of node to ndarray
        The states of each node with a table.
    """

    def __init__(self, model: Any, flat: np.ndarray, levels: Mapping):
        self._model, self._flat, self._levels = model, flat, levels

    def __getitem__(self, node) -> LabeledTable:
        if node not in self._levels:
            raise KeyError(f"{node!r} is not a node of this network.{did_you_mean(node, self._levels)}")
        axes = self._model.dag.family(node)
        table = self._model.layout.table(self._flat, self._model.position[node])
        table.flags.writeable = False  # it is a view of what every query reads
        return LabeledTable(table, axes, tuple(self._levels[axis] for axis in axes))

    def __iter__(self) -> Iterator:
        return iter(self._levels)

    def __len__(self) -> int:
        return len(self._levels)

    __eq__, __hash__ = object.__eq__, object.__hash__

    def __reduce__(self):
        return type(self), (self._model, self._flat, self._levels)

    def __repr__(self):
        return f"LabeledTables of {self._model.dag}"
