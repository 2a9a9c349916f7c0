r"""Bayesian networks of mixed columns: tables at discrete nodes, emissions at others.

.. math::

    p(x, y \mid \theta) = \prod_j \theta_{j, \mathrm{pa}(j), x_j}
        \prod_l p(y_l \mid x_{\mathrm{pa}(l)}, y_{\mathrm{pa}(l)}, \theta_l).

A node with an emission (a measurement, a count, a group of columns) has a component of the emission for each joint
state of its parents with a table. Its children have emissions, too, which take it as given: it is observed where a
child is, so that nothing is summed over it. In the E step [Beal corollary 2.2] the expected log likelihoods of a row
are a factor over those parents that are hidden in it, and what the contraction expects of these are the
responsibilities of the components. So rows are contexts of their own where an emission has a hidden parent; elsewhere
all is as in a discrete network. Rows in which all cells of an emission are missing are summed out, which leaves nothing
of the node.

A node without parents may be driven by covariates: a softmax regression of its state on numbers beside the row, its
membership, is then one more emission whose parent the node is, and the node's own table says nothing.

Statistics are flat: those of the tables first, then those of each emission, then those of each membership.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from math import prod
from operator import attrgetter
from typing import Any, cast

import numpy as np

from skvbem._kernels._workspace import Workspace
from skvbem._lazy import cached_property
from skvbem._numerics import times_log
from skvbem.blocks import added, map_reduce
from skvbem.data import categories_of
from skvbem.emissions.base import Emission, Step, n_redundant_parameters, n_symmetries, rotation_tangents, start_natural
from skvbem.emissions.softmax import SoftmaxMembership
from skvbem.families import Product
from skvbem.families.base import ConjugateFamily
from skvbem.families.hierarchical import Hierarchical
from skvbem.families.parallel_generator import ParallelGenerator
from skvbem.families.softmax_maximum import Design
from skvbem.families.softmax_regression import on_design
from skvbem.graphs.dag import DAG
from skvbem.models.base import DataInParts, EStep, Expectation, LatentModel, ModelAscent
from skvbem.models.labels.model import WITH_COVARIATES, WITH_HIDDEN_PRECISIONS
from skvbem.models.mixed_network.data import FactorRows, KnownRows, MixedData, MixedRows, joint_codes
from skvbem.models.mixed_network.hidden_numbers import HiddenNumbers
from skvbem.models.mixed_network.number_families import NumberFamilies
from skvbem.models.mixed_network.symmetries import NumberSymmetries
from skvbem.models.network.compiler import Compiler
from skvbem.models.network.layout import Layout
from skvbem.models.network.model import prior_of
from skvbem.models.network.program import Plan

# Emissions whose statistics are found together, by products of all numbers: from two on that is less work.
_FEWEST_TOGETHER = 2
# What rows that hide numbers hold, by number: two copies, which is observed, hidden, and alive, and patterns of both.
_BYTES_PER_NUMBER = 24.0
# Multiplications in a step below which threads cost more than they bring.
_WORTH_THREADS = 2**22

#: Log likelihoods (n_lanes, n_states, n_rows) of some rows, contexts of a plan, under all states of the parents.
RowFactors = Callable[[FactorRows, slice], np.ndarray]


def name_of_membership(node: Any) -> str:
    """The name, in layouts, of what drives a node."""
    return f"membership of {node}"


class MixedNetwork(LatentModel):
    """A Bayesian network of mixed columns with its prior.

    Parameters
    ----------
    dag : DAG
        Children of nodes with an emission have an emission.
    cardinalities : mapping of node to int
        Number of states of every node with a table.
    prior : mapping of node to ndarray
        Dirichlet concentrations of these, axes (*parents, node).
    emissions : mapping of node to Emission
        Of every other node, in the order of their blocks in the prior. Tables of one with such parents hold their
        columns after its own, parent by parent.
    emission_priors : mapping of node to ConjugateFamily
        Of these, a component for each joint state of the parents with a table, in the order of `DAG.parents`, the last
        one fastest.
    memberships : mapping of node to (SoftmaxMembership, ConjugateFamily), optional
        Of nodes with a table whose parents, if there are any, have emissions: what says their probabilities row by row
        in the place of the table, whose concentrations are not asked for, and the prior of its coefficients.
    """

    dag: DAG
    emissions: tuple[Emission, ...]
    driven: tuple = ()
    position: dict
    layout: Layout
    prior: Product

    def __init__(
        self,
        dag: DAG,
        cardinalities: Mapping[Any, int],
        prior: Mapping[Any, np.ndarray],
        emissions: Mapping[Any, Emission],
        emission_priors: Mapping[Any, ConjugateFamily],
        memberships: Mapping[Any, tuple[SoftmaxMembership, ConjugateFamily]] | None = None,
    ):
        memberships = memberships or {}
        self.dag, self.driven = dag, tuple(memberships)
        self.emissions = (*emissions.values(), *(membership for membership, _ in memberships.values()))
        tables = [node for node in dag.nodes if node not in emissions]
        nodes = [*tables, *emissions, *map(name_of_membership, memberships)]
        self.position = {node: k for k, node in enumerate(nodes)}
        parents = {node: [p for p in dag.parents(node) if p not in emissions] for node in (*tables, *emissions)}
        parents |= {name_of_membership(node): [node] for node in memberships}
        self.layout = Layout(
            tuple(nodes),
            (*map(cardinalities.__getitem__, tables), *(each.cells_per_component for each in self.emissions)),
            tuple(tuple(self.position[p] for p in parents[node]) for node in nodes),
            len(self.emissions),
            driven=tuple(self.position[node] for node in memberships),
        )
        ones = {node: np.ones((cardinalities[node], 1)) for node in memberships}
        of_emissions = [*(emission_priors[node] for node in emissions), *(block for _, block in memberships.values())]
        blocks = (prior_of(self.layout, {**prior, **ones}), *of_emissions)
        n_cells = [len(emission.component_of_cell(n)) for emission, n in zip(self.emissions, self.n_states)]
        self.prior = Product(blocks, (self.layout.n_table_cells, *n_cells))

    @cached_property
    def given(self) -> tuple[tuple[int, ...], ...]:
        """Of each emission the numbers of the emissions that are its parents, which it takes as given."""
        number = self._number_of_emission
        nodes = [self.dag.parents(node) if node in self.dag.nodes else () for node in number]
        return tuple(tuple(number[p] for p in parents if p in number) for parents in nodes)

    @property
    def n_nodes_with_emission(self) -> int:
        """Number of nodes with an emission, the first of all emissions; memberships are the others."""
        return len(self.emissions) - len(self.driven)

    @cached_property
    def drivers(self) -> dict:
        """Of each driven node the number of its membership, and of the emissions whose columns are its covariates."""
        number = self._number_of_emission
        parents = {node: tuple(number[p] for p in self.dag.parents(node)) for node in self.driven}
        return {node: (number[name_of_membership(node)], of_node) for node, of_node in parents.items()}

    @property
    def reasons(self) -> Mapping[str, str]:
        """Why a network some of whose nodes covariates drive lacks capabilities, in sentences, by their names."""
        if not self.driven:
            return super().reasons
        are_hidden = any(isinstance(block, Hierarchical) for block in self.prior.blocks[-len(self.driven) :])
        return WITH_HIDDEN_PRECISIONS if are_hidden else WITH_COVARIATES

    @cached_property
    def latent_numbers(self) -> tuple[int, ...]:
        """Numbers of the emissions that no row observes."""
        return tuple(k for k, emission in enumerate(self.emissions) if emission.is_hidden)

    @cached_property
    def in_order(self) -> tuple[int, ...]:
        """Numbers of the emissions of nodes, parents before children."""
        number = self._number_of_emission
        return tuple(number[node] for node in self.dag.topological_order() if node in number)

    @property
    def _number_of_emission(self) -> dict:
        return {node: k for k, node in enumerate(self.layout.names[self.layout.n_tables :])}

    @property
    def n_states(self) -> tuple[int, ...]:
        """Joint states of the parents of each node with an emission: components that its emission has."""
        layout = self.layout
        parents = layout.parents[layout.n_tables :]
        return tuple(prod(layout.cardinalities[p] for p in family) for family in parents)

    @property
    def n_cells(self) -> int:
        """Numbers that statistics take."""
        return sum(self.prior.n_cells)

    def tables(self, flat: np.ndarray) -> dict:
        """A flat array (n_cells, ...) as one table per node: axes (*parents, node, ...), or those of its own cells."""
        return {node: self.layout.table(flat, k) for node, k in self.position.items()}

    @property
    def has_own_cells(self) -> bool:
        """True if all cells of every emission belong to a component, and what else rows hide has no symmetries."""
        of_nodes = zip(self.emissions[: self.n_nodes_with_emission], self.n_states)
        return all(
            np.array_equal(of := emission.component_of_cell(n), np.repeat(np.arange(n), emission.cells_per_component))
            or (bool((of >= 0).all()) and n_symmetries(emission) == 1)
            for emission, n in of_nodes
        )

    @property
    def by_component(self) -> np.ndarray:
        """Order of cells: those of tables, then those of each emission component by component, (n_cells,)."""
        orders = [np.arange(self.prior.n_cells[0])]
        for emission, n in zip(self.emissions, self.n_states):
            orders.append(np.argsort(emission.component_of_cell(n), kind="stable"))
        firsts = np.cumsum([0, *self.prior.n_cells])
        return np.concatenate([first + order for first, order in zip(firsts, orders)])

    @property
    def n_free_parameters(self) -> int:
        """Parameters of tables and emissions, but for those of emissions that no data can tell apart."""
        each = zip(self.emissions, self.n_states)
        redundant = sum(n_redundant_parameters(e, np.ones(n, dtype=bool)) for e, n in each)
        return self.prior.n_free_parameters - redundant - NumberSymmetries(self).n_rotations

    def columns(self, rows: MixedRows) -> dict[int, np.ndarray]:
        """Codes of the observed nodes with a table, by position."""
        return {self.position[name]: rows.codes[:, k] for k, name in enumerate(rows.names)}

    def categories(self, rows: MixedRows) -> dict[int, np.ndarray]:
        """Categories of these, also where they were set; negative where they are missing."""
        return {k: categories_of(codes, self.layout.cardinalities[k]) for k, codes in self.columns(rows).items()}

    def compile(
        self,
        rows: MixedRows,
        *,
        max_table_cells=2**24,
        max_memory=np.inf,
        n_lanes=1,
        wanted=(),
        together=(),
        by_row=False,
    ) -> MixedData:
        """Rows made ready for many E steps; see `Compiler`. `wanted` names nodes with a table, `together` groups.

        With `by_row` they are made ready for questions about each of them.
        """
        counting = rows.counting()
        codes = self.categories(counting)
        limits = max_table_cells, max_memory, n_lanes
        numbers = self.hidden_numbers(counting, by_row, Compiler(self.layout, *limits).check_memory)
        layout, observed, tables = self.layout, counting.observed, counting.tables
        if numbers is not None:
            layout = self._layout_with(numbers)
            observed = (
                *(seen & ~numbers.involved[k] if k in numbers.involved else seen for k, seen in enumerate(observed)),
                *(table.is_there for table in numbers.tables),
            )
            tables = (*tables, *numbers.tables)
        columns = self.columns(counting)
        for node, seen in zip(range(layout.n_tables, len(layout.names)), observed):
            columns[node] = np.where(seen, 0, -1).astype(np.int8)
        program = Compiler(layout, *limits).compile(
            columns,
            len(counting),
            counting.weight,
            keep_rows=True,
            wanted=[self.position[node] for node in wanted],
            together=[[self.position[node] for node in group] for group in together],
        )
        sizes = (
            each.size_of_terms(table, counting.weight if seen.all() else np.where(seen, counting.weight, 0.0))
            for each, table, seen in zip(self.emissions, counting.tables, counting.observed)
        )
        complete = self._complete(counting)
        known = (
            complete.get(k) or self._known(k, layout, codes, counting, each)
            for k, each in enumerate(zip(observed, tables))
        )
        return MixedData(
            program,
            tuple(self._factors(layout, plan, codes, tables) for plan in program.plans),
            tuple(filter(None, known)),
            tuple(table[:0] for table in counting.tables),
            counting,
            float(rows.weight.sum()),
            bool((rows.weight == np.floor(rows.weight)).all()),
            float(sum(sizes)),
            numbers,
        )

    @cached_property
    def number_families(self) -> NumberFamilies:
        """Which natural parameters multiply which products of numbers."""
        return NumberFamilies(self)

    def hidden_numbers(
        self,
        rows: MixedRows,
        by_row: bool = False,
        check_memory: Callable[[float], None] = lambda n_bytes: None,
        wanted: Sequence[int] = (),
    ) -> HiddenNumbers | None:
        """Numbers that the rows hide beside observed children, None if there are none; see `HiddenNumbers`."""
        explained = [k for k in range(self.n_nodes_with_emission) if self.given[k] and self.emissions[k].products]
        if not wanted and not any(np.isnan(rows.tables[k].values).any() for k in explained):
            return None
        check_memory(_BYTES_PER_NUMBER * len(rows) * self.number_families.n_numbers)
        of_rows = rows.tables, self.categories(rows), rows.weight
        return HiddenNumbers.of(self.number_families, *of_rows, by_row, wanted, rows.values_set)

    def _layout_with(self, numbers: HiddenNumbers) -> Layout:
        """The layout with a node for each factor of hidden numbers, after all others."""
        layout, n = self.layout, len(numbers.factors)
        return replace(
            layout,
            names=(*layout.names, *(f"hidden numbers {k}" for k in range(n))),
            cardinalities=(*layout.cardinalities, *[1] * n),
            parents=(*layout.parents, *(factor.parents for factor in numbers.factors)),
            n_emissions=layout.n_emissions + n,
        )

    def _factors(
        self, layout: Layout, plan: Plan, codes: Mapping[int, np.ndarray], of_emissions: Sequence[Any]
    ) -> tuple[FactorRows, ...]:
        """Rows that the emissions of a plan take, factor by factor."""
        factors = []
        for factor in plan.factors:
            emissions = tuple(node - layout.n_tables for node in factor.nodes)
            parents = layout.parents[factor.nodes[0]]
            shape = tuple(layout.cardinalities[p] for p in parents)
            at, states = plan.row_of_context, None
            assert at is not None  # plans with factors keep it
            if factor.hidden != parents:
                by_hidden_state = np.indices([layout.cardinalities[p] for p in factor.hidden]).reshape(
                    len(factor.hidden), -1
                )
                by_parent = dict(zip(factor.hidden, by_hidden_state[:, :, None]))
                digits = [by_parent[p] if p in by_parent else np.maximum(codes[p][at], 0)[None] for p in parents]
                states = np.ravel_multi_index(np.broadcast_arrays(*digits), shape)
            tables = tuple(
                of_emissions[k] if len(at) == len(of_emissions[k]) else of_emissions[k][at] for k in emissions
            )
            factors.append(FactorRows(emissions, tables, prod(shape), states))
        return tuple(factors)

    def _complete(self, rows: MixedRows) -> dict[int, KnownRows]:
        """All rows of each emission without discrete parents, where none of the numbers is missing."""
        families, layout = self.number_families, self.layout
        ks = [k for k in families.products if not layout.parents[layout.n_tables + k] and k in families.summing]
        if len(ks) < _FEWEST_TOGETHER or not all(rows.observed[k].all() for k in families.products):
            return {}
        if not all(np.isfinite(rows.tables[k].values).all() for k in families.products):
            return {}
        statistics = families.statistics_of_complete(ks, rows.tables, rows.weight)
        every, state = np.arange(len(rows)), np.zeros(len(rows), dtype=np.int64)
        return {k: KnownRows(k, every, rows.tables[k], state, rows.weight, *of) for k, of in statistics.items()}

    def _known(
        self,
        k: int,
        layout: Layout,
        codes: Mapping[int, np.ndarray],
        rows: MixedRows,
        of_node: tuple[np.ndarray, Any],
    ) -> KnownRows | None:
        """The rows of an emission whose parents are all observed, None if there are none."""
        parents = layout.parents[layout.n_tables + k]
        seen, table = of_node[0].copy(), of_node[1]
        for p in parents:
            seen &= codes[p] >= 0 if p in codes else False
        at = np.flatnonzero(seen)
        if not len(at):
            return None
        shape = [layout.cardinalities[p] for p in parents]
        digits = [codes[p][at].astype(np.int64) for p in parents]
        states = joint_codes(digits, shape, len(at))
        table = table if len(at) == len(rows) else table[at]
        known = KnownRows(k, at, table, states, rows.weight[at])
        if k >= len(self.emissions) or not (emission := self.emissions[k]).is_conjugate(table):
            return known
        natural = self.prior.blocks[1 + k].expected_natural()
        step = emission.step(natural, table)
        total, log_z = self._of_known(known, step, 1)
        statistics = step.statistics(total)
        return replace(known, statistics=statistics, log_base=float(log_z[0] - statistics @ natural))

    def _of_known(
        self, known: KnownRows, step: Step, n_lanes: int, rng: ParallelGenerator | None = None
    ) -> tuple[Any, np.ndarray]:
        """Sum of an emission and log likelihood, (n_lanes,), of rows whose parents are known."""
        emission, total, log_z = self.emissions[known.emission], step.zeros(), np.zeros(n_lanes)
        n_states = self.n_states[known.emission]
        size = emission.block_rows(n_states, n_lanes)
        for at in range(0, len(known.states), size):
            rows = slice(at, at + size)
            block, states, weight = known.table[rows], known.states[rows], known.weight[rows]
            log_likelihood = step.log_likelihood(block)
            log_z += np.take_along_axis(log_likelihood, np.broadcast_to(
                states[:, None], (*log_likelihood.shape[:-1], 1)), axis=-1)[..., 0] @ weight  # fmt: skip
            if rng is not None:
                step.add_drawn(block, np.broadcast_to(states, log_likelihood.shape[:-1]), rng, total)
                continue
            of_states = (states[:, None] == np.arange(n_states)) * weight[:, None]
            step.add(block, np.ascontiguousarray(np.broadcast_to(of_states, log_likelihood.shape)), total)
        return total, log_z

    def steps(self, naturals: Sequence[np.ndarray], data: MixedData) -> list[Step]:
        """The emissions at natural parameters (n_cells,) or (n_cells, n_lanes) of each."""
        emissions_cells = zip(self.emissions, naturals, data.surveys)
        return [emission.step(np.ascontiguousarray(of_it), survey) for emission, of_it, survey in emissions_cells]

    def all_steps(self, natural: np.ndarray, data: MixedData) -> list[Any]:
        """The emissions at natural parameters (n_cells,) or (n_cells, n_lanes), then clusters of hidden numbers."""
        of_emissions = self.steps(self.prior.split(natural)[1:], data)
        return [*of_emissions, *(factor.step(natural) for factor in data.factors_of_numbers)]

    def e_step(self, natural: np.ndarray, data: MixedData | DataInParts, n_threads: int = 1) -> MixedEStep:
        """The E step at natural parameters (n_cells, n_lanes) as a value: sums of a part, and the outcome of all."""
        return MixedEStep(self, natural, n_threads)

    def expect(self, natural: np.ndarray, data: MixedData | DataInParts, n_threads: int = 1) -> Expectation:
        """The E step [Beal (2.60)] under natural parameters (n_cells, n_lanes) that need not be normalized."""
        return self.e_step(natural, data, n_threads).over(data.parts)

    def completed(
        self, natural: np.ndarray, data: MixedData, rng: ParallelGenerator, prior: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """ln Z of q(x), (n_lanes,), and complete-data statistics with x drawn from it, (n_cells, n_lanes)."""
        return self.sums(natural, data, rng=rng, prior=prior)[::-1]

    def states_of_parents(self, k: int, codes: Mapping[Any, np.ndarray], n_rows: int) -> np.ndarray:
        """The joint state of an emission's parents in each row (n_rows,), from codes of nodes by name."""
        layout = self.layout
        parents = layout.parents[layout.n_tables + k]
        sizes = [layout.cardinalities[p] for p in parents]
        return joint_codes([codes[layout.names[p]] for p in parents], sizes, n_rows)

    def statistics_of(
        self,
        tables: np.ndarray,
        data: MixedData,
        factors: RowFactors,
        of_emissions: Mapping[int, np.ndarray] | None = None,
    ) -> np.ndarray:
        """Expected statistics (n_cells, n_lanes) where factors take the places of what emissions say of rows: a start.

        Parameters
        ----------
        tables : ndarray of shape (n_table_cells, n_lanes)
            Natural parameters of the tables.
        data : MixedData
        factors : callable
        of_emissions : mapping of int to ndarray of shape (n_cells_of_emission, n_lanes), optional
            Natural parameters of emissions by number; of others those by which their prior completes rows.
        """
        n_lanes, known = tables.shape[1], of_emissions or {}
        naturals = (
            known[k] if k in known else start_natural(each, block)[:, None].repeat(n_lanes, axis=1)
            for k, (each, block) in enumerate(zip(self.emissions, self.prior.blocks[1:]))
        )
        return self.started(self.sums(np.concatenate([tables, *naturals]), data, factors)[0])

    def sums(
        self,
        natural: np.ndarray,
        data: MixedData,
        factors: RowFactors | None = None,
        n_threads: int = 1,
        rng: ParallelGenerator | None = None,
        prior: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Statistics (n_cells, n_lanes) and ln Z (n_lanes,); with a generator what is hidden is drawn.

        With a prior given hyperparameters, too, what emissions hide moves on with their parameters.
        """
        n_lanes = natural.shape[1]
        table_cells, *emissions_cells = (np.ascontiguousarray(each) for each in self.prior.split(natural))
        steps, contraction = self.all_steps(natural, data), data.program.contraction
        n_emissions, numbers = len(self.emissions), data.hidden_numbers
        workspace = Workspace(contraction, n_lanes)
        workspace.given(table_cells)
        run = _Blocks(self, data, workspace, steps, factors, rng)
        worth = rng is None and data.program.work * n_lanes > _WORTH_THREADS
        blocks = range(contraction.n_blocks)
        sums = map_reduce(run, blocks, n_threads if worth else 1) if blocks else {}
        totals = [sums[k] if k in sums else step.zeros() for k, step in enumerate(steps)]
        counts, log_z = np.empty(table_cells.shape), np.empty(n_lanes)
        workspace.collect(counts, log_z)
        certain = [np.zeros(of_it.shape) for of_it in emissions_cells]
        for known in data.known:
            k = known.emission
            if known.statistics is not None:
                certain[k] += known.statistics[:, None]
                log_z += known.log_base + times_log(known.statistics[:, None], emissions_cells[k]).sum(axis=0)
                continue
            total, known_terms = self._of_known(known, steps[k], n_lanes, rng)
            totals[k] = added(totals[k], total)
            log_z += known_terms
        of_numbers = [step.statistics(total, rng) for step, total in zip(steps[n_emissions:], totals[n_emissions:])]
        for each in () if numbers is None else numbers.known:
            statistics, known_terms = each.sums(natural, rng)
            of_numbers.append(statistics)
            log_z += known_terms
        steps, totals = steps[:n_emissions], totals[:n_emissions]
        if prior is not None and rng is not None:
            parts = zip(steps, totals, self.prior.split(prior)[1:])
            totals = [step.group_move(total, cells, rng) for step, total, cells in parts]
        emissions_cells = [
            step.statistics(total).reshape(-1, n_lanes) + known_terms
            for step, total, known_terms in zip(steps, totals, certain)
        ]
        return sum(of_numbers, np.concatenate([counts, *emissions_cells])), log_z

    def magnitude(self, data: MixedData | DataInParts) -> float:
        """Size of the terms whose sum is the log normalizer, nats: one for each node with a table and row, and more."""
        return data.total_weight * self.layout.n_tables + map_reduce(attrgetter("size_of_terms"), data.parts)

    def priced(self, of_fit: bool) -> MixedNetwork:
        """The network whose emissions have the price of what the rows of their fit have chosen, or have none."""
        emissions = tuple(emission.priced(of_fit) for emission in self.emissions)
        if emissions == self.emissions:
            return self
        other = copy(self)
        other.emissions = emissions
        return other

    def paid(self, values: Sequence[np.ndarray], weight: np.ndarray | None) -> float:
        """The price, nats, of what rows have chosen, values of each emission (n_rows, n_columns)."""
        return sum(emission.paid(of_rows, weight) for emission, of_rows in zip(self.emissions, values))

    def with_design_of(self, data: MixedData) -> MixedNetwork:
        """The network whose covariates are those of some rows."""
        return self._with_designs({node: Design.of(*self._regressors_of(node, data)) for node in self.driven})

    def with_more_rows(self, statistics: np.ndarray, data: MixedData) -> MixedNetwork:
        """The network whose covariates are those that it has, and those of more rows.

        The rows that it has made `statistics` (n_cells,), whose counts say how many they are.
        """
        designs = {}
        for node, (k, _) in self.drivers.items():
            membership: Any = self.emissions[k]
            (regressors, weight), before = self._regressors_of(node, data), membership.design
            n_rows = self.layout.table(statistics, self.position[node]).sum()
            together = np.concatenate([before.regressors, regressors])
            designs[node] = Design.of(together, np.concatenate([n_rows * before.weight, weight]))
        return self._with_designs(designs)

    def with_room_for(self, statistics: np.ndarray, data: MixedData) -> tuple[MixedNetwork, np.ndarray]:
        """The network and statistics (n_cells,) of earlier rows, with cells of its emissions for more rows."""
        if not self.emissions:
            return self, statistics
        (of_tables, *priors), (counts, *cells) = self.prior.blocks, self.prior.split(statistics)
        each = zip(self.emissions, data.source.tables, priors, cells)
        emissions, blocks, added = zip(*(emission.with_room_for(*rest) for emission, *rest in each))
        if emissions == self.emissions:
            return self, statistics
        other, layout = copy(self), self.layout
        sizes = *layout.cardinalities[: layout.n_tables], *(emission.cells_per_component for emission in emissions)
        other.emissions, other.layout = emissions, replace(layout, cardinalities=sizes)
        other.prior = Product((of_tables, *blocks), (len(counts), *map(len, added)))
        return other, np.concatenate([counts, *added])

    def _regressors_of(self, node: Any, data: MixedData) -> tuple[np.ndarray, np.ndarray]:
        """Regressors of a driven node in all rows that it is driven in, and the weights of these."""
        k, _ = self.drivers[node]
        seen = data.source.observed[k]
        return data.source.tables[k][seen], data.source.weight[seen]

    def _with_designs(self, designs: Mapping[Any, Design]) -> MixedNetwork:
        """The network whose driven nodes have other designs."""
        if not designs:
            return self
        other, emissions, blocks = copy(self), list(self.emissions), list(self.prior.blocks)
        for node, design in designs.items():
            k, _ = self.drivers[node]
            emissions[k] = replace(cast(SoftmaxMembership, emissions[k]), design=design)
            blocks[1 + k] = on_design(blocks[1 + k], design)
        other.emissions, other.prior = tuple(emissions), Product(tuple(blocks), self.prior.n_cells)
        return other

    def rotation_tangents(self, natural: np.ndarray) -> np.ndarray:
        """Tangents of rotations of what emissions hide, in natural parameters, (n_cells, n_rotations)."""
        table_cells, *emissions_cells = self.prior.split(natural)
        parts = [rotation_tangents(each, np.ascontiguousarray(x)) for each, x in zip(self.emissions, emissions_cells)]
        starts = np.cumsum([len(table_cells), *map(len, emissions_cells)])
        return np.concatenate(
            [np.pad(part, ((first, len(natural) - first - len(part)), (0, 0))) for first, part in zip(starts, parts)],
            axis=1,
        )


class _Blocks:
    """Passes over blocks of contexts, and the sums of emissions that these make."""

    def __init__(
        self,
        model: MixedNetwork,
        data: MixedData,
        workspace: Workspace,
        steps: Sequence[Step],
        factors: RowFactors | None,
        rng: ParallelGenerator | None,
    ):
        self.model, self.data, self.workspace, self.steps, self.rng = model, data, workspace, steps, rng
        self.logs = factors
        arrays = data.program.contraction.arrays
        self.bounds, self.first_plan = arrays["block_context"].tolist(), arrays["block_plan"].tolist()
        self.plan_starts = arrays["plan_context"].tolist()

    def __call__(self, block: int) -> dict[int, Any]:
        """Sums of emissions of a block, by their numbers."""
        number, workspace, rng = self.first_plan[block], self.workspace, self.rng
        factors, start = self.data.factors[number], self.plan_starts[number]
        first, last = self.bounds[block : block + 2]
        if not factors:
            if rng is None:
                workspace.block(block)
            else:
                workspace.rows(block, first, last, [], rng.streams)
            return {}
        totals = {k: self.steps[k].zeros() for factor in factors for k in factor.emissions}
        size = self._block_rows(factors)
        for at in range(first, last, size):
            rows = slice(at - start, min(at + size, last) - start)
            by_cell = [factor.cells(self._logs(factor, rows), rows) for factor in factors]
            workspace.rows(block, rows.start + start, rows.stop + start, by_cell, None if rng is None else rng.streams)
            for factor, counts in zip(factors, by_cell):
                self._add(factor, rows, factor.spread(counts, rows).swapaxes(-1, -2), totals)
        return totals

    def _logs(self, factor: FactorRows, rows: slice) -> np.ndarray:
        """Log likelihoods of rows, or the factors in their place, (n_lanes, n_states, n_rows)."""
        return factor.log_likelihoods(self.steps, rows) if self.logs is None else self.logs(factor, rows)

    def _block_rows(self, factors: Sequence[FactorRows]) -> int:
        """Rows whose tables stay in cache, the same for any number of lanes where states are drawn."""
        emissions: tuple[Any, ...] = (*self.model.emissions, *self.data.factors_of_numbers)
        n_lanes = self.workspace.n_lanes if self.rng is None else _LANES_OF_DRAWS
        return min(emissions[k].block_rows(factor.n_states, n_lanes) for factor in factors for k in factor.emissions)

    def _add(self, factor: FactorRows, rows: slice, of_states: np.ndarray, totals: dict[int, Any]) -> None:
        """Add the statistics of rows under responsibilities (n_lanes, n_rows, n_states), or with states drawn."""
        for k, table in zip(factor.emissions, factor.tables):
            hides_more = k >= len(self.model.emissions) or not self.model.emissions[k].is_conjugate(table)
            if self.rng is not None and hides_more:
                self.steps[k].add_drawn(table[rows], of_states.argmax(axis=-1), self.rng, totals[k])
            else:
                self.steps[k].add(table[rows], of_states, totals[k])


# Lanes that blocks are cut for where states are drawn: so sums are the same for any number of lanes.
_LANES_OF_DRAWS = 16


@dataclass(eq=False)  # not frozen, as one is made in every step
class MixedEStep(EStep):
    """The E step of a mixed network at natural parameters; sums are statistics and ln Z."""

    model: MixedNetwork

    def __call__(self, part: MixedData) -> tuple[np.ndarray, np.ndarray]:
        """The sums of compiled rows, blocks of contexts of which threads share."""
        return self.model.sums(self.natural, part, n_threads=self.n_threads)

    def finished(self, sums: tuple[np.ndarray, np.ndarray]) -> Expectation:
        """The outcome of the E step from the sums of all parts."""
        return Expectation(*sums)


class MixedNetworkAscent(ModelAscent[MixedNetwork]):
    """Full steps of one mixed network on its data."""

    label = "table row or component"
