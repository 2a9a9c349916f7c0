"""Families of numbers in a network: which natural parameters multiply which products of a row's numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
        #: Emissions whose missing parents are summed out.
        self.summing = frozenset(k for k in self.products if self._sums(k))

    @property
    def n_numbers(self) -> int:
        """All columns of these families."""
        return len(self.log_unit)

    def cells_of(self, k: int) -> np.ndarray:
        """The cells of each component of emission k, (n_components, n_cells_per_component)."""
        return self._cells[k]

    def components(self, k: int, among: Sequence[int], states: np.ndarray) -> np.ndarray:
        """The component of emission k in joint states of nodes among which its discrete parents are, (n_states,)."""
        return self.joint_states(self.layout.parents[self.layout.n_tables + k], among, states)

    def joint_states(self, parents: Sequence[int], among: Sequence[int], states: np.ndarray) -> np.ndarray:
        """Joint states of some discrete nodes in joint states of nodes among which they are, (n_states,)."""
        sizes = [self.layout.cardinalities[p] for p in among]
        digits = dict(zip(among, np.unravel_index(states, sizes))) if sizes else {}
        component = np.zeros(len(states), dtype=np.int64)
        for p in parents:
            component = component * self.layout.cardinalities[p] + digits[p]
        return component

    def _sums(self, k: int) -> bool:
        """True if missing parents of emission k can be summed out: all are of such families, in the units of theirs."""
        if not all(p in self.products for p in self.given[k]):
            return False
        of_parents = [self.products[p] for p in self.given[k]]
        origin, unit = (np.concatenate([np.empty(0), *each]) for each in (
            [of.origin for of in of_parents], [of.unit for of in of_parents]))  # fmt: skip
        away = np.abs(self.products[k].given_origin - origin) / unit
        ratio = self.products[k].given_unit / unit
        return bool((away < _SAME).all() and (np.abs(ratio - 1) < _SAME).all())

    def statistics_of_complete(
        self, ks: Sequence[int], tables: Sequence[Any], weight: np.ndarray
    ) -> dict[int, tuple[np.ndarray, float]]:
        """Of emissions without discrete parents the statistics of rows without gaps, and their log base, nats.

        One product of all numbers with each other serves all of them.
        """
        rows, results = self._with_one(tables), {}
        sums = (rows if (weight == 1.0).all() else rows * weight) @ rows.T
        for k in ks:
            of, place = self.products[k], np.concatenate([[0], 1 + self.around[k]])
            statistics = np.zeros(self._cells[k].size)
            cells = self._cells[k][0] - self._cells[k].min()
            np.add.at(statistics, cells[of.cell], of.factor * sums[place[of.one], place[of.other]])
            log_unit = sum(self.log_unit[v] for v in self.responses[k])
            results[k] = statistics, float(weight.sum()) * (of.log_volume - log_unit)
        return results

    def numbers(self, tables: Sequence[Any], values_set: Mapping[int, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """All numbers of rows in their units, NaN where missing, and which an experimenter set, (n_rows, n_numbers)."""
        numbers = self._with_one(tables)[1:].T
        numbers[np.isinf(numbers)] = np.nan
        are_set = np.zeros(numbers.shape, dtype=bool)
        for k in self.products.keys() & values_set.keys():
            of, places = self.products[k], self.responses[k]
            are_set[:, places] = ~np.isnan(values_set[k])
            in_units = (values_set[k] - of.origin) / of.unit
            numbers[:, places] = np.where(are_set[:, places], in_units, numbers[:, places])
        return numbers, are_set

    def _with_one(self, tables: Sequence[Any]) -> np.ndarray:
        """1, then all numbers of rows in their units, (1 + n_numbers, n_rows)."""
        rows = np.ones((1 + self.n_numbers, len(next(iter(tables)))))
        for k, of in self.products.items():
            for v, column in enumerate(self.responses[k]):
                np.subtract(tables[k].values[:, v], of.origin[v], out=rows[1 + column])
                rows[1 + column] /= of.unit[v]
        return rows

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
        size, parts = 1 + len(place), []
        for k, alive in cluster.families:
            of, component = self.products[k], self.components(k, cluster.parents, states)
            local = np.array([0, *(place.get(number, -1) for number in self.around[k].tolist())])
            kept = slice(None) if len(alive) == len(of.unit) else np.isin(of.column, alive)
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
