"""What can be asked of rows of mixed columns: densities, marginals of nodes, missing cells, and rows that are drawn.

A single row uses each table row and each component at most once. So with tables at their posterior means, and the
predictive densities of components, a density of a row is the exact average over q(theta).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, cast

import numpy as np

from skvbem._numerics import safe_log
from skvbem.families import Dirichlet, Product
from skvbem.models.mixed_network.beliefs import beliefs
from skvbem.models.mixed_network.data import MixedData, MixedRows
from skvbem.models.mixed_network.model import MixedNetwork
from skvbem.models.network import queries as of_tables
from skvbem.models.network.program import Plan

# Draws of the parameters behind the rows of one sample.
_MAX_DRAWS_OF_PARAMETERS = 1000


@dataclass(frozen=True, eq=False)
class Predictive:
    """The predictive distribution of a row of a mixed network: under a posterior, or at a point.

    Parameters
    ----------
    model : MixedNetwork
    posterior : Product or None
        q(theta); None where a point stands for it.
    point : tuple, optional
        Of the prior's blocks; not needed with a posterior.
    """

    model: MixedNetwork
    posterior: Product | None = None
    point: tuple = ()

    @property
    def tables(self) -> np.ndarray:
        """Probabilities of all tables, flat, (n_table_cells,)."""
        return self.point[0] if self.posterior is None else cast(Dirichlet, self.posterior.blocks[0]).mean()

    def log_densities_of(self, k: int, block: Any) -> np.ndarray:
        """Log densities of rows under each component of emission k, nats, (n_rows, n_states)."""
        emission = self.model.emissions[k]
        if self.posterior is not None:
            return emission.log_predictive(block, self.posterior.blocks[1 + k])
        return emission.expected_log_likelihood(block, self.model.prior.blocks[1 + k].natural(self.point[1 + k]))

    def log_densities(self, rows: MixedRows, **limits) -> np.ndarray:
        """ln p(row) of every row, nats, (n_rows,); what is not observed is summed out, exactly."""
        data = self.model.compile(rows.each_once(), **limits)
        total = self._log_of_known(data)
        for plan, contexts, log_z, _ in self._beliefs(data):
            at, context = of_tables.rows_of(plan, contexts)
            total[at] += log_z[context]
        return total

    def posteriors(self, rows: MixedRows, nodes: Sequence, **limits) -> np.ndarray:
        """p(nodes | row) of every row, nodes with a table together, (n_rows, n_joint_states).

        What is observed is certain. A row that is impossible gets the posterior of an empty row.
        """
        model, layout = self.model, self.model.layout
        data = model.compile(rows.each_once(), together=nodes, **limits)
        positions = [model.position[node] for node in nodes]
        sizes = [layout.cardinalities[p] for p in positions]
        columns = model.columns(rows)
        codes = np.stack([columns.get(p, np.full(len(rows), -1)) for p in positions]).astype(np.int64)
        posterior = np.zeros((len(rows), prod(sizes)))
        certain = np.flatnonzero((codes >= 0).all(axis=0))
        posterior[certain, np.ravel_multi_index(codes[:, certain], sizes)] = 1.0
        impossible = ~np.isfinite(self._log_of_known(data))
        for plan, contexts, log_z, of_cliques in self._beliefs(data):
            at, context = of_tables.rows_of(plan, contexts)
            at = np.arange(len(rows))[at]
            impossible[at] |= ~np.isfinite(log_z[context])
            hidden = tuple(p for p in positions if p in plan.hidden)
            if not hidden:
                continue
            of_hidden = of_tables.of_clique(plan, of_cliques, hidden)
            states = np.indices(of_hidden.shape[1:]).reshape(len(hidden), 1, -1)
            digits = [
                states[hidden.index(p)] if p in hidden else of_node[at][:, None] for p, of_node in zip(positions, codes)
            ]
            joint = np.ravel_multi_index(np.broadcast_arrays(*digits), sizes)
            posterior[at[:, None], joint] = of_hidden.reshape(len(of_hidden), -1)[context]
        impossible &= (codes < 0).any(axis=0)
        if impossible.any():
            nothing = rows.taken(np.flatnonzero(impossible), np.ones(int(impossible.sum()))).without_cells()
            posterior[impossible] = self.posteriors(nothing, nodes, **limits)
        return posterior

    def imputed(self, rows: MixedRows, k: int, **limits) -> np.ndarray:
        """The columns of emission k with missing cells filled, as the emission has them."""
        model, emission = self.model, self.model.emissions[k]
        parents = [model.layout.names[p] for p in model.layout.parents[model.layout.n_tables + k]]
        of_states = self.posteriors(rows, parents, **limits) if parents else np.ones((len(rows), 1))
        point = self.point[1 + k] if self.posterior is None else emission.predictive_point(self.posterior.blocks[1 + k])
        return emission.impute(rows.tables[k], point, of_states)

    def sample(self, n_rows: int, rng: np.random.Generator) -> tuple[dict, list[np.ndarray]]:
        """Rows drawn: codes (n_rows,) of every node with a table, and the columns of every emission.

        Under a posterior parameters are drawn for each row, for more than a thousand rows for a thousand parts of them.
        """
        if self.posterior is None:
            return drawn_at(self.model, self.point, n_rows, rng)
        sizes = np.bincount(np.arange(n_rows) % _MAX_DRAWS_OF_PARAMETERS).tolist()
        parts = [drawn_at(self.model, self.posterior.sample(rng), size, rng) for size in sizes]
        order = rng.permutation(n_rows)
        codes = {node: np.concatenate([part[0][node] for part in parts])[order] for node in parts[0][0]}
        columns = [np.concatenate(of_emission)[order] for of_emission in zip(*(part[1] for part in parts))]
        return codes, columns

    def _beliefs(self, data: MixedData) -> Iterator[tuple[Plan, slice, np.ndarray, np.ndarray]]:
        return beliefs(self.model, safe_log(self.tables), self.log_densities_of, data)

    def _log_of_known(self, data: MixedData) -> np.ndarray:
        """ln p of what has no hidden parent, of every row, nats, (n_rows,)."""
        total = of_tables.log_of_complete_families(self.model, safe_log(self.tables), data.source)
        for known in data.known:
            log_density = self.log_densities_of(known.emission, known.table)
            total[known.rows] += np.take_along_axis(log_density, known.states[:, None], axis=1)[:, 0]
        return total


def drawn_at(model: MixedNetwork, point: tuple, n_rows: int, rng: np.random.Generator) -> tuple[dict, list[np.ndarray]]:
    """Rows drawn at a point: codes (n_rows,) of every node with a table, and the columns of every emission."""
    layout = model.layout
    codes = of_tables.sample(model, point[0], n_rows, rng)
    columns = []
    for k, (emission, of_emission) in enumerate(zip(model.emissions, point[1:])):
        parents = layout.parents[layout.n_tables + k]
        digits = [codes[layout.names[p]] for p in parents]
        sizes = [layout.cardinalities[p] for p in parents]
        states = np.ravel_multi_index(digits, sizes) if parents else np.zeros(n_rows, dtype=np.int64)
        columns.append(emission.sample(of_emission, states, rng))
    return codes, columns
