r"""Discrete Bayesian networks with hidden nodes: :math:`p(x, y \mid \theta) = \prod_j \theta_{j, \mathrm{pa}(j), x_j}`.

Every table row has a Dirichlet prior; all rows of all tables are one block. The E step sums, per row of data, over the
joint states of all that is hidden in it, so that q keeps the joint of one row's hidden variables [Beal corollary 2.2]:
nothing but the split between parameters and hidden variables is approximated.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from skvbem._kernels._contraction import Workspace
from skvbem._numerics import log_gamma
from skvbem.data import Rows
from skvbem.errors import NoInteriorModeError
from skvbem.families import Dirichlet
from skvbem.graphs.dag import DAG
from skvbem.models._layout import Layout
from skvbem.models._program import Compiler, Program
from skvbem.models._sampling import Sampling
from skvbem.models._scoring import Scoring
from skvbem.models.expectation import Expectation

# Multiplications in a step below which threads cost more than they bring.
_WORTH_THREADS = 2**22
# Bytes of tables that one batch of lanes may hold, so that they stay in cache.
_LANES_BYTES = 2**19


class DiscreteDAG(Sampling, Scoring):
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

    def expect(self, natural: np.ndarray, program: Program) -> Expectation:
        """The E step [Beal (2.60)] under natural parameters (n_cells, n_lanes) that need not be normalized."""
        contraction = program.contraction
        n_lanes = natural.shape[1]
        workspace = Workspace(contraction, n_lanes)
        workspace.given(np.ascontiguousarray(natural))
        for block in range(contraction.n_blocks):
            workspace.block(block)
        statistics, log_normalizer = np.empty((self.layout.n_cells, n_lanes)), np.empty(n_lanes)
        workspace.collect(statistics, log_normalizer)
        return Expectation(statistics, log_normalizer)

    def random_point(self, rng: np.random.Generator) -> np.ndarray:
        """Tables drawn uniformly, flat (n_cells,): a start that is never the symmetric saddle."""
        return Dirichlet(np.ones(self.layout.n_cells), self.layout.row_starts).sample(rng)


class DirichletAscent:
    """Full steps of one network on one table of rows, for one form of q(theta), compiled.

    Parameters
    ----------
    model : DiscreteDAG
    program : Program
    form : Form
    n_threads : int
        Threads among which blocks of contexts are shared; the result does not depend on it.
    """

    def __init__(self, model: DiscreteDAG, program: Program, form, n_threads: int = 1):
        self.model, self.program, self.form = model, program, form
        self.n_threads = n_threads
        self.prior = model.prior
        offset = form.offset(self.prior)
        rows = self.prior.row_sums(offset)
        per_cell, per_row = (np.stack([x, _log_gamma_where_positive(x)]) for x in (offset, rows))
        self._form_arguments = (self.prior.row_starts, per_cell, per_row, form.density)
        self._constant = form.constant(self.prior)
        self._workspaces: dict[int, Workspace] = {}
        per_lane = 16 * (program.contraction.n_table_cells + 2 * model.layout.n_cells)
        self._width = min(max(_LANES_BYTES // per_lane, 1), 16)
        self._pool = ThreadPoolExecutor(n_threads) if n_threads > 1 and program.work > _WORTH_THREADS else None
        self.signed = self.prior.signed
        self.magnitude = abs(self._constant) + program.total_weight * len(model.layout.names)

    def expect(self, natural: np.ndarray) -> np.ndarray:
        """Expected statistics (n_cells, n_lanes) under natural parameters of the same shape, in batches of lanes."""
        batches = range(0, natural.shape[1], self._width)
        expected = [self.model.expect(natural[:, at : at + self._width], self.program).statistics for at in batches]
        return np.concatenate(expected, axis=1)

    def advance(self, statistics: np.ndarray, n_steps: int) -> np.ndarray:
        """Take full steps in place, lanes in batches that fit the cache; see `skvbem.vbem.driver.Ascent`."""
        n_lanes, width = statistics.shape[1], self._width
        if n_lanes <= width:
            return self._advance(statistics, n_steps)
        trace = np.empty((n_steps, n_lanes))
        for at in range(0, n_lanes, width):
            lanes = slice(at, min(at + width, n_lanes))
            batch = np.ascontiguousarray(statistics[:, lanes])
            trace[:, lanes] = self._advance(batch, n_steps)
            statistics[:, lanes] = batch
        return trace

    def _advance(self, statistics: np.ndarray, n_steps: int) -> np.ndarray:
        n_lanes = statistics.shape[1]
        if n_lanes not in self._workspaces:
            self._workspaces[n_lanes] = Workspace(self.program.contraction, n_lanes)
        workspace = self._workspaces[n_lanes]
        trace = np.empty((n_steps, n_lanes))
        if self._pool is None:
            workspace.advance(*self._form_arguments, statistics, trace)
        else:
            for step in range(n_steps):
                workspace.from_form(*self._form_arguments, statistics)
                list(self._pool.map(workspace.block, range(self.program.contraction.n_blocks)))
                workspace.collect(statistics, trace[step])
        if self._constant:
            trace += self._constant
        return trace

    def failure(self) -> Exception:
        """Why the objective of a plain step may not be a number."""
        if self.form.lowered_by:
            return NoInteriorModeError(
                "The posterior has no interior mode in the probability basis: some table cell has a prior "
                "concentration below 1 and not enough expected counts to make up for it. Use map_basis='natural', "
                "where the mode always exists, or a prior of 1 or more."
            )
        return FloatingPointError("The objective is not a number. That is a defect: please report it with the data.")


def _log_gamma_where_positive(x: np.ndarray) -> np.ndarray:
    return log_gamma(np.where(x > 0, x, 1.0))
