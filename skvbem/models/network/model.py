r"""Discrete Bayesian networks with hidden nodes: :math:`p(x, y \mid \theta) = \prod_j \theta_{j, \mathrm{pa}(j), x_j}`.

Every table row has a Dirichlet prior; all rows of all tables are one block. The E step sums, per row of data, over the
joint states of all that is hidden in it, so that q keeps the joint of one row's hidden variables [Beal corollary 2.2]:
nothing but the split between parameters and hidden variables is approximated. Full steps are compiled, for every form
of q(theta).
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from skvbem._kernels._workspace import MStep, Workspace
from skvbem._lazy import cached_property
from skvbem._numerics import log_gamma
from skvbem.ascent import Ascent
from skvbem.data import Rows, categories_of
from skvbem.errors import NoInteriorModeError
from skvbem.families import Dirichlet, DirichletMixture
from skvbem.graphs.dag import DAG
from skvbem.models.base import Expectation, LatentModel, ModelAscent
from skvbem.models.network.clusters import Partition
from skvbem.models.network.compiler import Compiler
from skvbem.models.network.layout import Layout
from skvbem.models.network.program import LANES_BYTES, Program
from skvbem.models.network.structured import StructuredProgram


class DiscreteDAG(LatentModel):
    """A discrete Bayesian network with its prior.

    Parameters
    ----------
    dag : DAG
    cardinalities : mapping of node to int
        Number of states of every node.
    prior : mapping of node to ndarray
        Dirichlet concentrations, axes (*parents, node). A further first axis is one of alternatives, of which each
        table has one that is hidden.
    ties : mapping of node to tuple, optional
        Node -> the family (*parents, other) of another node, whose table is also its own: parents in the order of its
        own ones.
    partition : Partition, optional
        Clusters of hidden nodes that q(x) is a product over; by default it is exact.
    """

    dag: DAG
    partition: Partition | None
    position: dict
    layout: Layout
    prior: Any  # Dirichlet, or DirichletMixture

    def __init__(
        self,
        dag: DAG,
        cardinalities: Mapping,
        prior: Mapping,
        ties: Mapping | None = None,
        partition: Partition | None = None,
    ):
        self.dag, self.partition = dag, partition
        position = {node: k for k, node in enumerate(dag.nodes)}
        self.position = position
        self.layout = Layout(
            dag.nodes,
            tuple(cardinalities[node] for node in dag.nodes),
            tuple(tuple(position[p] for p in dag.parents(node)) for node in dag.nodes),
            ties=tuple(self._tie(ties.get(node)) for node in dag.nodes) if ties else (),
        )
        self.prior = prior_of(self.layout, prior)

    def _tie(self, family: tuple | None) -> tuple[int, tuple[int, ...]] | None:
        if family is None:
            return None
        *parents, other = family
        return self.position[other], tuple(self.dag.parents(other).index(parent) for parent in parents)

    @property
    def reasons(self) -> Mapping[str, str]:
        """Why a network with tied tables or hidden strengths lacks capabilities, in sentences, by their names."""
        if isinstance(self.prior, DirichletMixture):
            why = "Under prior='bdla' the strength of each table is hidden. Take 'auto', 'importance_gibbs' or 'ais'."
            return dict.fromkeys(("metropolis", "marginals", "information"), why)
        why = "Some of its tables are tied, so that a row may be in one table several times. Take {}."
        others = {
            "information": "'ais', 'importance', 'collapsed', 'cheeseman_stutz' or 'lower_bound'",
            "dimension": "dimension='free', which counts a tied table once",
            "marginals": "a score that draws completions",
        }
        return {name: why.format(instead) for name, instead in others.items()} if self.layout.ties else {}

    def with_partition(self, partition: Partition | None) -> DiscreteDAG:
        """The network with another family of q(x): exact if None."""
        other = copy(self)
        other.partition = partition
        return other

    def tables(self, flat: np.ndarray) -> dict:
        """A flat array (n_cells, ...) as one table per node, axes (*parents, node, ...)."""
        return {node: self.layout.table(flat, k) for node, k in self.position.items()}

    def flat(self, tables: Mapping) -> np.ndarray:
        """One table per node as a flat array."""
        with_table = [node for node, k in self.position.items() if self.layout.has_own_table(k)]
        return np.concatenate([np.asarray(tables[node], dtype=float).ravel() for node in with_table])

    def columns(self, data: Rows) -> dict[int, np.ndarray]:
        """Codes of the observed nodes by position."""
        return {self.position[name]: data.codes[:, k] for k, name in enumerate(data.names)}

    def categories(self, data: Rows) -> dict[int, np.ndarray]:
        """Categories of the observed nodes by position, also where they were set; negative where they are missing."""
        return {k: categories_of(codes, self.layout.cardinalities[k]) for k, codes in self.columns(data).items()}

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
    ) -> Any:
        """The program of a table of rows; see `Compiler`. `wanted` and `together` are node names.

        With `release` the rows give up their codes, so that these are freed before the program takes their memory. They
        are kept where q(x) is a product over clusters.
        """
        columns, n_rows = self.columns(data), len(data)
        source = None if self.partition is None else replace(data)
        if release:
            data.release()
        return Compiler(self.layout, max_table_cells, max_memory, n_lanes).compile(
            columns,
            n_rows,
            data.weight,
            keep_rows=keep_rows,
            wanted=[self.position[node] for node in wanted],
            together=[[self.position[node] for node in together]],
            partition=self.partition,
            source=source,
        )

    def expect(self, natural: np.ndarray, data: Program | StructuredProgram, n_threads: int = 1) -> Expectation:
        """The E step [Beal (2.60)] under natural parameters (n_cells, n_lanes) that need not be normalized.

        By one thread: it is `skvbem.models.network.model.DirichletAscent` that shares blocks of contexts. A q(x)
        that is a product over clusters is what sweeps at these parameters end in, and ln Z a lower bound.
        """
        if isinstance(data, StructuredProgram):
            return self._expect_in_clusters(natural, data)
        contraction = data.contraction
        n_lanes = natural.shape[1]
        workspace = Workspace(contraction, n_lanes)
        workspace.given(np.ascontiguousarray(natural))
        for block in range(contraction.n_blocks):
            workspace.block(block)
        statistics, log_normalizer = np.empty((self.layout.n_cells, n_lanes)), np.empty(n_lanes)
        workspace.collect(statistics, log_normalizer)
        return Expectation(statistics, log_normalizer)

    def _expect_in_clusters(self, natural: np.ndarray, data: StructuredProgram) -> Expectation:
        exact = self.expect(natural, data.exact)
        statistics, log_normalizer = exact.statistics, exact.log_normalizer
        for lane, lane_natural in enumerate(np.ascontiguousarray(natural.T)):
            counts, bound, _ = data.swept(lane_natural[:, None], data.fixed_point(lane_natural))
            statistics[:, lane] += counts[:, 0]
            log_normalizer[lane] += bound[0]
        return Expectation(statistics, log_normalizer, is_exact=False)

    def magnitude(self, data: Program | StructuredProgram) -> float:
        """Size of the terms whose sum is the log normalizer, nats: one for each node and row."""
        return data.total_weight * len(self.layout.names)

    def random_point(self, rng: np.random.Generator) -> np.ndarray:
        """Tables drawn uniformly, flat (n_cells,): a start that is never the symmetric saddle."""
        return Dirichlet(np.ones(self.layout.n_cells), self.layout.row_starts).sample(rng)


def prior_of(layout: Layout, tables: Mapping) -> Dirichlet | DirichletMixture:
    """The prior of the tables of a layout, by node: concentrations (*parents, node), or alternatives of these."""
    nodes = [k for k in range(layout.n_tables) if layout.has_own_table(k)]
    arrays = [np.asarray(tables[layout.names[k]], dtype=float) for k in nodes]
    n_axes = [len(layout.parents[k]) + 1 + (k in layout.driven) for k in nodes]
    has_one = [array.ndim == n for array, n in zip(arrays, n_axes)]
    if all(has_one):
        return Dirichlet(np.concatenate([np.empty(0), *(array.ravel() for array in arrays)]), layout.row_starts)
    most = max(len(array) for one, array in zip(has_one, arrays) if not one)
    return DirichletMixture.from_tables([[array] * most if one else array for one, array in zip(has_one, arrays)])


# Multiplications in a step below which threads cost more than they bring.
_WORTH_THREADS = 2**22


class DirichletAscent(Ascent):
    """Full steps of one network on one table of rows, for one form of q(theta), compiled.

    Parameters
    ----------
    model : DiscreteDAG
    data : Program
    form : Form
    n_threads : int
        Threads among which blocks of contexts are shared; the result does not depend on it.
    """

    def __init__(self, model: DiscreteDAG, data: Program, form, n_threads: int = 1):
        self.model, self.data, self.form = model, data, form
        self.n_threads = n_threads
        self.prior = model.prior
        self._workspaces: dict[int, Workspace] = {}
        per_lane = 16 * (data.contraction.n_table_cells + 2 * model.layout.n_cells)
        self._width = min(max(LANES_BYTES // per_lane, 1), 16)
        self._pool = ThreadPoolExecutor(n_threads) if n_threads > 1 and data.work > _WORTH_THREADS else None
        self.signed = self.prior.signed

    @cached_property
    def _m_step(self) -> MStep:
        """Inputs from which the kernel builds natural parameters and penalties."""
        offset = self.form.offset(self.prior)
        rows = self.prior.row_sums(offset)
        per_cell, per_row = (np.stack([x, _log_gamma_where_positive(x)]) for x in (offset, rows))
        return MStep(self.prior.row_starts, per_cell, per_row, self.form.density)

    @cached_property
    def _constant(self) -> float:
        return self.form.constant(self.prior)

    @cached_property
    def magnitude(self) -> float:
        """Size of the terms whose sum is the objective, nats."""
        return abs(self._constant) + self.model.magnitude(self.data)

    def expect(self, natural: np.ndarray) -> np.ndarray:
        """Expected statistics (n_cells, n_lanes) under natural parameters of the same shape, in batches of lanes."""
        batches = range(0, natural.shape[1], self._width)
        expected = [self.model.expect(natural[:, at : at + self._width], self.data).statistics for at in batches]
        return np.concatenate(expected, axis=1)

    def advance(self, statistics: np.ndarray, n_steps: int) -> np.ndarray:
        """Take full steps in place, lanes in batches that fit the cache; see `skvbem.ascent.Ascent`."""
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
            self._workspaces[n_lanes] = Workspace(self.data.contraction, n_lanes)
        workspace = self._workspaces[n_lanes]
        trace = np.empty((n_steps, n_lanes))
        if self._pool is None:
            workspace.advance(self._m_step, statistics, trace)
        else:
            for step in range(n_steps):
                workspace.from_form(self._m_step, statistics)
                list(self._pool.map(workspace.block, range(self.data.contraction.n_blocks)))
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


class MixtureAscent(ModelAscent[DiscreteDAG]):
    """Full steps of one network whose tables have a mixture of Dirichlet distributions as prior, family by family."""

    label = "table row"


# Lanes that are swept side by side.
_WIDTH = 16


class StructuredAscent(ModelAscent[DiscreteDAG]):
    """Full steps of one network whose q(x) is a product over clusters: an M step, then one sweep over the clusters.

    What is kept of q(x) rides behind the expected counts, as further rows of the statistics: so restarts, races, and
    extrapolation go on as ever. An ascent begun anew from uniform clusters at every step would not be one.

    Parameters
    ----------
    model : DiscreteDAG
    data : StructuredProgram
    form : Form
    n_threads : int
        Not used: chunks of contexts are swept one after another.
    """

    label = "table row"
    data: StructuredProgram

    def __init__(self, model: DiscreteDAG, data: StructuredProgram, form: Any, n_threads: int = 1):
        super().__init__(model, data, form, n_threads)
        self.signed = np.zeros(1, dtype=bool)

    @property
    def n_cells(self) -> int:
        """Rows of the statistics that are expected counts; those behind them are what is kept of q(x)."""
        return self.model.layout.n_cells

    def with_uniform_clusters(self, counts: np.ndarray) -> np.ndarray:
        """Counts (n_cells, n_lanes), and behind them clusters of which nothing is known."""
        return np.concatenate([counts, self.data.uniform(counts.shape[1])])

    def advance(self, statistics: np.ndarray, n_steps: int) -> np.ndarray:
        """Take full steps in place; see `skvbem.ascent.Ascent`."""
        trace, n_cells = np.empty((n_steps, statistics.shape[1])), self.n_cells
        for step in range(n_steps):
            natural, penalty = self.form.of(self.model.prior, np.ascontiguousarray(statistics[:n_cells]))
            statistics[...], log_normalizer = self._swept(natural, statistics[n_cells:])
            trace[step] = log_normalizer + penalty
        return trace

    def expect(self, natural: np.ndarray) -> np.ndarray:
        """Expected counts (n_cells, n_lanes) under natural parameters, and what is kept of q(x), behind one another."""
        return self._swept(natural, self.data.uniform(natural.shape[1]))[0]

    def _swept(self, natural: np.ndarray, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        parts: list[np.ndarray] = []
        totals: list[Any] = []
        for at in range(0, natural.shape[1], _WIDTH):
            lanes = slice(at, at + _WIDTH)
            exact = self.model.expect(np.ascontiguousarray(natural[:, lanes]), self.data.exact)
            counts, bound, kept = self.data.swept(natural[:, lanes], np.ascontiguousarray(state[:, lanes]))
            parts.append(np.concatenate([counts + exact.statistics, kept]))
            totals.append(bound + exact.log_normalizer)
        return np.concatenate(parts, axis=1), np.concatenate(totals)

    def rounding(self, statistics: np.ndarray) -> np.ndarray:
        """Largest change of the objective by rounding at statistics (n_cells + n_state, n_lanes), nats, (n_lanes,)."""
        return super().rounding(np.ascontiguousarray(statistics[: self.n_cells]))
