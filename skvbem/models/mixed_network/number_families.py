"""Families of numbers in a network: which natural parameters multiply which products of a row's numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from skvbem.emissions.base import Products

# Units that differ by less are the same, but for rounding: relative, and of standard deviations.
_SAME = 1e-9


@dataclass(frozen=True)
class Cluster:
    """Families of numbers that share hidden ones in some rows.

    Parameters
    ----------
    families : tuple of (int, tuple of int)
        Numbers of emissions, each with those of its columns that are observed or hidden there.
    observed, hidden : tuple of int
        Numbers, by their places among all of the network.
    parents : tuple of int
        Positions of the discrete parents of all families.
    """

    families: tuple[tuple[int, tuple[int, ...]], ...]
    observed: tuple[int, ...]
    hidden: tuple[int, ...]
    parents: tuple[int, ...]


class NumberFamilies:
    """Which natural parameters of a network multiply which products of its numbers.

    Parameters
    ----------
    model : MixedNetwork
    """

    def __init__(self, model: Any):
        self.layout, self.given = model.layout, model.given
        self._n_columns = [emission.n_columns for emission in model.emissions]
        self.products: dict[int, Products] = {}
        self.first: dict[int, int] = {}
        self.log_unit: list[float] = []
        self._cells: dict[int, np.ndarray] = {}
        starts = np.cumsum([0, *model.prior.n_cells])
        for k, emission in enumerate(model.emissions[: model.n_nodes_with_emission]):
            if (products := emission.products) is None:
                continue
            self.products[k], self.first[k] = products, len(self.log_unit)
            self.log_unit += np.log(products.unit).tolist()
            of = emission.component_of_cell(model.n_states[k])
            order = np.argsort(of, kind="stable").reshape(model.n_states[k], -1)
            self._cells[k] = starts[1 + k] + order
        self.n_cells = int(starts[-1])
        #: Places of the columns of each family, and of these and the columns that are given.
        self.responses = {k: self.first[k] + np.arange(len(of.unit)) for k, of in self.products.items()}
        self.around = {
            k: np.concatenate([places, *(self.responses[p] for p in self.given[k] if p in self.responses)])
            for k, places in self.responses.items()
        }

    @property
    def n_numbers(self) -> int:
        """All columns of these families."""
        return len(self.log_unit)

    def sums(self, k: int, parent: int) -> bool:
        """True if missing numbers of a parent of emission k can be summed out: both are measured in the same units."""
        if k not in self.products or parent not in self.products:
            return False
        before = self.given[k][: self.given[k].index(parent)]
        first = sum(self._n_columns[p] for p in before)
        of_child, of_parent = self.products[k], self.products[parent]
        at = slice(first, first + self._n_columns[parent])
        away = np.abs(of_child.given_origin[at] - of_parent.origin) / of_parent.unit
        ratio = of_child.given_unit[at] / of_parent.unit
        return bool((away < _SAME).all() and (np.abs(ratio - 1) < _SAME).all())

    def numbers(self, tables: Sequence[Any]) -> np.ndarray:
        """All numbers of rows in their units, (n_rows, n_numbers), NaN where missing, or set by an experimenter."""
        columns = [
            (np.asarray(tables[k].values[:, : len(of.unit)], dtype=float) - of.origin) / of.unit
            for k, of in self.products.items()
        ]
        numbers = np.concatenate(columns, axis=1)
        numbers[np.isinf(numbers)] = np.nan
        return numbers

    def scatter(self, cluster: Cluster, states: np.ndarray) -> tuple[np.ndarray, ...]:
        """Which cells make which elements of Omega of a cluster, in some joint states of its parents.

        Returns
        -------
        which, element, cell : ndarray of int
            The state by its place in `states`, the element (row times size plus column), the cell. Elements off the
            diagonal are named once.
        factor : ndarray
        """
        place = {number: 1 + at for at, number in enumerate((*cluster.observed, *cluster.hidden))}
        size, sizes = 1 + len(place), [self.layout.cardinalities[p] for p in cluster.parents]
        digits = dict(zip(cluster.parents, np.unravel_index(states, sizes))) if sizes else {}
        parts = []
        for k, alive in cluster.families:
            of, parents = self.products[k], self.layout.parents[self.layout.n_tables + k]
            local = np.array([0, *(place.get(number, -1) for number in self.around[k].tolist())])
            kept = slice(None) if len(alive) == len(of.unit) else np.isin(of.column, alive)
            component = np.zeros(len(states), dtype=np.int64)
            for p in parents:
                component = component * self.layout.cardinalities[p] + digits[p]
            cells = self._cells[k][component][:, of.cell[kept]]
            element = local[of.one[kept]] * size + local[of.other[kept]]
            which = np.repeat(np.arange(len(states)), cells.shape[1])
            factor = np.tile(of.factor[kept], len(states))
            parts.append((which, np.tile(element, len(states)), cells.ravel(), factor))
        return tuple(np.concatenate(each) for each in zip(*parts))

    def log_base(self, cluster: Cluster) -> float:
        """What units of measure add to the log density of a row of a cluster, nats."""
        volumes = sum(self.products[k].log_volume for k, _ in cluster.families)
        responses = {int(v) for k, alive in cluster.families for v in self.responses[k][list(alive)]}
        return volumes - sum(self.log_unit[v] for v in responses.intersection(cluster.observed))
