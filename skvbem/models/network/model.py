r"""Discrete Bayesian networks with hidden nodes: :math:`p(x, y \mid \theta) = \prod_j \theta_{j, \mathrm{pa}(j), x_j}`.

Every table row has a Dirichlet prior; all rows of all tables are one block. The E step sums, per row of data, over the
joint states of all that is hidden in it, so that q keeps the joint of one row's hidden variables [Beal corollary 2.2]:
nothing but the split between parameters and hidden variables is approximated.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from skvbem._kernels._contraction import Workspace
from skvbem.data import Rows
from skvbem.families import Dirichlet
from skvbem.graphs.dag import DAG
from skvbem.models.base import Expectation, LatentModel
from skvbem.models.network.compiler import Compiler
from skvbem.models.network.layout import Layout
from skvbem.models.network.program import Program


class DiscreteDAG(LatentModel):
    """A discrete Bayesian network with its prior.

    Parameters
    ----------
    dag : DAG
    cardinalities : mapping of node to int
        Number of states of every node.
    prior : mapping of node to ndarray
        Dirichlet concentrations, axes (*parents, node).
    """

    def __init__(self, dag: DAG, cardinalities: Mapping, prior: Mapping):
        self.dag = dag
        position = {node: k for k, node in enumerate(dag.nodes)}
        self.position = position
        self.layout = Layout(
            dag.nodes,
            tuple(cardinalities[node] for node in dag.nodes),
            tuple(tuple(position[p] for p in dag.parents(node)) for node in dag.nodes),
        )
        flat = [np.asarray(prior[node], dtype=float).ravel() for node in dag.nodes]
        self.prior = Dirichlet(np.concatenate(flat), self.layout.row_starts)

    def tables(self, flat: np.ndarray) -> dict:
        """A flat array (n_cells, ...) as one table per node, axes (*parents, node, ...)."""
        return {node: self.layout.table(flat, k) for node, k in self.position.items()}

    def flat(self, tables: Mapping) -> np.ndarray:
        """One table per node as a flat array."""
        return np.concatenate([np.asarray(tables[node], dtype=float).ravel() for node in self.dag.nodes])

    def columns(self, data: Rows) -> dict[int, np.ndarray]:
        """Codes of the observed nodes by position."""
        return {self.position[name]: data.codes[:, k] for k, name in enumerate(data.names)}

    def compile(
        self,
        data: Rows,
        *,
        max_table_cells=2**24,
        max_memory=np.inf,
        n_lanes=1,
        keep_rows=False,
        wanted=(),
        together=(),
        release=False,
    ) -> Program:
        """The program of a table of rows; see `Compiler`. `wanted` and `together` are node names.

        With `release` the rows give up their codes, so that these are freed before the program takes their memory.
        """
        columns, n_rows = self.columns(data), len(data)
        if release:
            data.release()
        return Compiler(self.layout, max_table_cells, max_memory, n_lanes).compile(
            columns,
            n_rows,
            data.weight,
            keep_rows=keep_rows,
            wanted=[self.position[node] for node in wanted],
            together=[self.position[node] for node in together],
        )

    def expect(self, natural: np.ndarray, data: Program, n_threads: int = 1) -> Expectation:
        """The E step [Beal (2.60)] under natural parameters (n_cells, n_lanes) that need not be normalized.

        By one thread: it is `skvbem.models.network.ascent.DirichletAscent` that shares blocks of contexts.
        """
        contraction = data.contraction
        n_lanes = natural.shape[1]
        workspace = Workspace(contraction, n_lanes)
        workspace.given(np.ascontiguousarray(natural))
        for block in range(contraction.n_blocks):
            workspace.block(block)
        statistics, log_normalizer = np.empty((self.layout.n_cells, n_lanes)), np.empty(n_lanes)
        workspace.collect(statistics, log_normalizer)
        return Expectation(statistics, log_normalizer)

    def magnitude(self, data: Program) -> float:
        """Size of the terms whose sum is the log normalizer, nats: one for each node and row."""
        return data.total_weight * len(self.layout.names)

    def random_point(self, rng: np.random.Generator) -> np.ndarray:
        """Tables drawn uniformly, flat (n_cells,): a start that is never the symmetric saddle."""
        return Dirichlet(np.ones(self.layout.n_cells), self.layout.row_starts).sample(rng)
