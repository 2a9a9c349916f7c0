"""A network of mixed columns as fitted: what every question after `fit` is put to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from types import MappingProxyType
from typing import Any, Self

import numpy as np

from skvbem._lazy import cached_property
from skvbem._numerics import drawn_codes
from skvbem.data import have_set
from skvbem.emissions.profiles import named
from skvbem.emissions.softmax import Softmax
from skvbem.errors import TooLargeError
from skvbem.fitted.base import Fitted, Intervals, Parameters
from skvbem.fitted.evidence import row_of_evidence, values_of_evidence
from skvbem.fitted.fills import drawn_cells, filled_together
from skvbem.fitted.latent_states import LatentStates
from skvbem.fitted.memberships import Membership
from skvbem.fitted.network import LabeledTables
from skvbem.fitted.parameter_tables import ParameterTable, joint_states, rows_of_profiles
from skvbem.fitted.standardized import StandardizedNumber, standardized_numbers
from skvbem.fitted.under_fit import Cells, UnderFit
from skvbem.models.mixed_network.data import MixedRows
from skvbem.models.mixed_network.model import MixedNetwork
from skvbem.models.mixed_network.queries import MAX_DRAWS_OF_PARAMETERS, Predictive, drawn_at, filled_numbers
from skvbem.models.mixed_network.symmetries import NumberSymmetries
from skvbem.reading.column_groups import ColumnGroups, Group
from skvbem.reading.mixed_network import (
    MixedReading,
    covariates_of,
    emission_groups,
    explained,
    names_of_covariates,
    rows_of,
    values_of,
)
from skvbem.tables import LabeledTable

#: Name of the group of parameters that are tables; the others have the names of nodes with an emission.
TABLES = "tables"


@dataclass(frozen=True, eq=False)
class FittedMixedNetwork(Fitted):
    """A network of mixed columns as fitted: its columns, its prior, and the statistics of the data."""

    #: Emissions are of a column each.
    sweep_cost, response_cost = 1.7, 2.0

    @property
    def groups(self) -> ColumnGroups:
        """Columns as they are read."""
        return self.columns

    @property
    def with_tables(self) -> tuple:
        """The nodes that have a table."""
        return self.model.layout.names[: self.model.layout.n_tables]

    @property
    def with_emission(self) -> tuple:
        """The nodes that have an emission."""
        return self.model.layout.names[self.model.layout.n_tables :][: self.model.n_nodes_with_emission]

    @property
    def with_parameters(self) -> tuple:
        """The nodes that have an emission, and those that covariates drive: a block of parameters each."""
        return (*self.with_emission, *self.model.driven)

    @cached_property
    def levels(self) -> dict:
        """The states of each node with a table: categories of a column, numbers of a latent's states."""
        sizes = dict(zip(self.with_tables, self.model.layout.cardinalities))
        levels = {node: np.arange(size) for node, size in sizes.items()}
        return levels | {name: of for name, of in self.levels_of_columns.items() if name in sizes}

    @property
    def latents(self) -> tuple:
        """The hidden nodes."""
        observed = {name for group in self.groups.groups for name in (group.name, *group.names)}
        return tuple(node for node in self.with_tables if node not in observed)

    @property
    def latent_numbers(self) -> tuple:
        """The hidden nodes that hold numbers."""
        return tuple(self.with_emission[k] for k in self.model.latent_numbers)

    def cells_summed_out(self) -> Iterator[tuple[int, Group, slice]]:
        """Columns that may be missing in any row: number of the group, the group, and which of its columns.

        Not those that drive a latent, nor numbers that explain others and are not normal.
        """
        model = self.model
        needed = {name for node in model.driven for name in names_of_covariates(self.groups, model.dag, node)}
        not_summing = [e for e, given in enumerate(model.given) if given and e not in model.number_families.summing]
        needed |= {self.with_emission[parent] for e in not_summing for parent in model.given[e]}
        for k, group in enumerate(self.groups.groups):
            if group.specification.are_given or group.is_hidden or needed & {group.name, *group.names}:
                continue
            n = group.specification.columns_of_each
            yield from ((k, group, slice(first, first + n)) for first in range(0, len(group.columns), n))

    @property
    def hidden(self) -> tuple:
        """All hidden nodes, with states or numbers."""
        return (*self.latents, *self.latent_numbers)

    def identified(self) -> Self:
        """The fit with an order and signs of hidden numbers; see `NumberSymmetries.canonical`."""
        symmetries = NumberSymmetries(self.model)
        if not symmetries.numbers:
            return self
        cells, signs = symmetries.canonical(self.point[1:])
        return replace(self, statistics=signs * self.statistics[cells])

    def for_new_rows(self) -> Self:
        """The fit as it answers about rows that are not its own."""
        return replace(self, model=self.model.priced(of_fit=False))

    def known_from(self, reading: Any) -> Self:
        """The fit with the price of what its rows have chosen."""
        return replace(self, model=self.model.priced(of_fit=True))

    def paid(self, reading: Any, weight: np.ndarray | None) -> float:
        """The price of what the rows of the fit have chosen, nats."""
        return self.model.paid([reading.values[k] for k in emission_groups(self.groups)], weight)

    @property
    def driven(self) -> tuple:
        """The nodes that covariates drive."""
        return self.model.driven

    def membership(self, node: Any) -> Membership:
        """The regression of the state of a node on covariates."""
        model, (k, _) = self.model, self.model.drivers[node]
        return Membership.of_block(
            model.prior,
            1 + k,
            node=node,
            part=model.emissions[k],
            group=self.driving(node),
            point=self.point[1 + k],
            counts=model.layout.table(self.statistics, model.position[node]),
            covariates=partial(covariates_of, self.groups, model.dag, node),
        )

    @property
    def coefficients(self) -> dict[Any, LabeledTable]:
        """Intercepts and coefficients of each driven node, in the units of the data."""
        tables = {}
        for node in self.driven:
            regression = self.membership(node)
            parameters, group = regression.part.parameters(regression.point), regression.group
            effects = [name for _, name in group.specification.effects(group.names, group.levels)]
            together = np.column_stack([parameters["intercepts"], parameters["coefficients"]])
            names = np.array(["intercept", *effects], dtype=object)
            tables[node] = LabeledTable(together, (node, "covariate"), (self.levels[node], names))
        return tables

    def driving(self, node: Any) -> Group:
        """The columns that drive a node, as a group with a Softmax."""
        k, _ = self.model.drivers[node]
        membership: Any = self.model.emissions[k]
        names = names_of_covariates(self.groups, self.model.dag, node)
        group = next((each for each in self.groups.groups if each.specification.are_given), None)
        softmax = Softmax(selected=[at in membership.selected for at in range(membership.n_given)])
        encoder = None if group is None else group.given_encoder
        return Group(str(node), softmax, (), tuple(names), given_encoder=encoder)

    @cached_property
    def levels_of_columns(self) -> dict:
        """Categories of columns, those of nodes without a table among them."""
        pairs = (pair for group in self.groups.groups for pair in zip(group.names, group.levels))
        return {name: levels for name, levels in pairs if len(levels)}

    @property
    def numbers(self) -> frozenset:
        """Nodes and columns without a table: of numbers, of answers in an order, and those that are given."""
        of_numbers = [group for group in self.groups.groups if not group.specification.has_table]
        return frozenset(name for group in of_numbers for name in (group.name, *group.names))

    def continues(self, columns: ColumnGroups, model: MixedNetwork) -> bool:
        """True if another model is of the same network over the same columns, read in the same way."""
        return self.model.layout == model.layout and self.columns.meaning() == columns.meaning()

    def _found_point(self) -> tuple:
        """The point found (MAP, ML); of a density posterior means of tables, and modes of emissions."""
        parts = zip(self.model.prior.blocks, self.model.prior.split(self.statistics))
        return tuple(self.form.point_of(block, statistics) for block, statistics in parts)

    @cached_property
    def predictive(self) -> Predictive:
        """The predictive distribution of a row."""
        return Predictive(self.model, self.posterior if self.form.density else None, self.point)

    def rows(self, values: list[np.ndarray], values_set: Mapping[Any, np.ndarray] = MappingProxyType({})) -> MixedRows:
        """Values of groups of columns as the network takes them, and what nodes of numbers were set to."""
        return rows_of(self.groups, self.model, values, values_set=values_set)

    def imputed(
        self, rows: MixedRows, asked: Sequence, fill: str, **limits: Any
    ) -> tuple[np.ndarray, list[np.ndarray], dict]:
        """Codes and columns of emissions without gaps, and probabilities of the cells of columns, one by one."""
        predictive, names = self.predictive, rows.names
        proba, columns = predictive.completed(rows, asked, **limits)
        by_cell = dict(zip(names, rows.codes.T)) | {name: of.argmax(axis=1) for name, of in proba.items()}
        codes = np.array([by_cell[name] for name in names], dtype=np.int64).reshape(len(names), len(rows)).T.copy()

        def known(table: np.ndarray, which: np.ndarray) -> MixedRows:
            return replace(rows.taken(which, np.ones(len(which))), codes=table, row_hashes=None)

        def log_of(table: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
            return lambda which: predictive.log_densities(known(table[which], which), **limits)

        def best(which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            modes = predictive.joint_modes(known(rows.codes[which], which), names, **limits)
            together = np.stack([modes[name] for name in names], axis=1)
            return together, predictive.log_densities(known(together, which), **limits)

        n_missing = (rows.codes < 0).sum(axis=1)
        which, together = filled_together(fill, n_missing, log_of(rows.codes), log_of(codes), best)
        if together is not None:
            codes[which] = together
            _, beside = predictive.completed(known(together, which), (), **limits)
            for column, numbers in zip(columns, beside):
                column[which] = numbers
        return codes, columns, proba

    def drawn_codes(self, predictive: Predictive, rows: MixedRows, rng: np.random.Generator, **limits: Any) -> dict:
        """Codes (n_rows,) of all nodes with a table, those not known drawn given their row, node after node."""
        known = {name: codes.astype(np.int64) for name, codes in zip(rows.names, rows.codes.T)}
        for node in filter(self.with_tables.__contains__, self.model.dag.topological_order()):
            hidden = np.flatnonzero(known.setdefault(node, np.full(len(rows), -1)) < 0)
            if len(hidden):
                codes = np.stack([each[hidden] for each in known.values()], axis=1)
                here = replace(
                    rows.taken(hidden, np.ones(len(hidden))), names=tuple(known), codes=codes, row_hashes=None
                )
                known[node][hidden] = drawn_codes(predictive.posteriors(here, [node], **limits), rng)
        return known

    def drawn_columns(
        self, point: tuple, values: list[np.ndarray], codes: dict, rng: np.random.Generator
    ) -> list[np.ndarray]:
        """Columns of all emissions at a point, what is missing drawn given the parents and the rest of its node."""
        model, groups = self.model, emission_groups(self.groups)
        with_hidden = filled_numbers(model, model.hidden_numbers(self.rows(values), True), point[1:], codes, rng)
        columns: dict[int, np.ndarray] = {}
        for k in model.in_order:
            states = model.states_of_parents(k, codes, len(values[0]))
            rows = np.concatenate([values[groups[k]], *(columns[parent] for parent in model.given[k])], axis=1)
            drawn = drawn_cells(model.emissions[k], rows, point[1 + k], states, model.n_states[k], rng)
            columns[k] = with_hidden(k, drawn[:, : values[groups[k]].shape[1]])
        return [columns[k] for k in range(len(columns))]

    def drawn_rows(self, values: list[np.ndarray], rng: np.random.Generator, **limits: Any) -> list[np.ndarray]:
        """Values of each group with missing cells drawn: parameters first, the same for all rows."""
        point = self.drawn_point(rng)
        codes = self.drawn_codes(Predictive(self.model, None, point), self.rows(values), rng, **limits)
        return values_of(self.groups, codes, self.drawn_columns(point, values, codes, rng), values)

    def sample_given(
        self, given: Mapping, n: int, rng: np.random.Generator, **limits: Any
    ) -> tuple[list[np.ndarray], dict]:
        """Rows drawn that have some states and numbers: values of each group, and states of all nodes with a table.

        States are those of the predictive distribution. Numbers have parameters of their own, as those of `sample`.
        """
        values, row = values_of_evidence(self, given), row_of_evidence(self, given)
        codes = self.drawn_codes(self.predictive, row.taken(np.zeros(n, dtype=np.int64), np.ones(n)), rng, **limits)
        columns = []
        for part in np.array_split(np.arange(n), min(n, MAX_DRAWS_OF_PARAMETERS)):
            here = [np.repeat(each, len(part), axis=0) for each in values]
            of_part = {node: of_node[part] for node, of_node in codes.items()}
            columns.append(self.drawn_columns(self.drawn_point(rng), here, of_part, rng))
        given_values = [np.repeat(each, n, axis=0) for each in values]
        return values_of(self.groups, codes, [np.concatenate(each) for each in zip(*columns)], given_values), codes

    def named_parameters(self, point: tuple) -> Parameters:
        """Tables (*parents, node), and what each emission holds in each joint state of its parents, (n_states, ...)."""
        emissions = zip(self.with_parameters, self.model.emissions, point[1:])
        return {TABLES: self._tables(point[0])} | {node: emission.parameters(at) for node, emission, at in emissions}

    def parameters_of_draws(self, natural: np.ndarray) -> Parameters:
        """Parameters at natural parameters (n_cells, n_draws), by group and name, each (n_draws, ...)."""
        tables, *others = self.model.prior.from_natural(natural)
        emissions = zip(self.with_parameters, self.model.emissions, others)
        of_emissions = {node: emission.parameters_of_draws(points) for node, emission, points in emissions}
        return {TABLES: {node: np.moveaxis(each, -1, 0) for node, each in self._tables(tables).items()}} | of_emissions

    def _tables(self, flat: np.ndarray) -> dict:
        tables = {node: k for k, node in enumerate(self.with_tables) if node not in self.model.driven}
        return {node: self.model.layout.table(flat, k) for node, k in tables.items()}

    def quantiles(self, probability: float) -> Parameters:
        """Quantiles of q(theta) of each parameter by itself."""
        tables, *others = self.posterior.blocks
        emissions = zip(self.with_parameters, self.model.emissions, others)
        of_emissions = {node: emission.quantiles(q, probability) for node, emission, q in emissions}
        return {TABLES: self._tables(tables.quantiles(probability))} | of_emissions

    def report(self, intervals: Intervals | None) -> list[ParameterTable]:
        """A table per node: a row for each combination of its parents' states."""
        parameters, reports = self.named_parameters(self.point), []
        numbers = {self.groups.groups[k].name: k for k in emission_groups(self.groups)}
        for node in self.model.dag.nodes:
            parents = self.model.dag.parents(node)
            above = names_of_covariates(self.groups, self.model.dag, node) if node in self.model.driven else parents
            title = f"{node} | {', '.join(map(str, above))}" if above else str(node)
            parents = tuple(parent for parent in parents if parent not in numbers)
            of_parents = joint_states(parents, self.levels)
            if node in parameters:
                of_node = None if intervals is None else intervals[node]
                group = self.driving(node) if node in self.model.driven else None
                group = group or explained(self.groups, self.model.dag, numbers[node])
                columns, values, (low, high) = rows_of_profiles(
                    group.specification, group.names, group.levels, parameters[node], of_node
                )
                if node in self.model.driven:
                    of_states = joint_states([node], self.levels)
                    columns_of_node = [named(state) for state in self.levels[node].tolist()]
                    reports.append(ParameterTable(title, columns, columns_of_node, values, (low, high), (), of_states))
                    continue
                rows = self._states_of(parents) or ["all rows"]
                reports.append(ParameterTable(title, rows, columns, values.T, (low.T, high.T), of_parents))
                continue
            table = parameters[TABLES][node]
            table = table.reshape(-1, table.shape[-1])
            ends = None
            if intervals is not None:
                lower, upper = intervals[TABLES][node]
                ends = lower.reshape(table.shape), upper.reshape(table.shape)
            columns = [named(state) for state in self.levels[node].tolist()]
            of_columns = joint_states([node], self.levels)
            rows = self._states_of(parents) or ["share"]
            reports.append(ParameterTable(title, rows, columns, table, ends, of_parents, of_columns))
        return reports

    def _states_of(self, parents: tuple) -> list[str]:
        """Each combination of states of some parents, in words; none without parents."""
        states = product(*(self.levels[parent].tolist() for parent in parents))
        return [
            ", ".join(f"{parent}={named(state)}" for parent, state in zip(parents, each)) for each in states if parents
        ]

    def standardized(self, parameters: Parameters) -> list[StandardizedNumber]:
        """Standardized coefficients and R² of numbers below numbers, at draws of parameters, each (n_draws, ...)."""
        return standardized_numbers(self, parameters) if any(self.model.given) else []

    def tables(self) -> dict[str, LabeledTables]:
        """The attributes that hold a table for each node with one."""
        n = self.model.layout.n_table_cells
        tables, counts = self.point[0].copy(), self.statistics[:n]
        for node in self.model.driven:  # proportions of the data
            of_node = self.model.layout.table(counts, self.model.position[node])
            self.model.layout.table(tables, self.model.position[node])[:] = of_node / of_node.sum()
        flat = {"tables_": tables, "counts_": counts}
        return {name: LabeledTables(self.model, cells, self.levels) for name, cells in flat.items()}

    def states_of(self, latent) -> LatentStates:
        """Expected rows in each state of a latent; whether states are alike is not asked."""
        table = self.model.layout.table(self.statistics, self.model.position[latent])
        return LatentStates.of(table.reshape(-1, table.shape[-1]).sum(axis=0), lambda one, other: False)

    def under_fit(self, reading: MixedReading, **limits: Any) -> UnderFit:
        """Likelihoods and cells of rows at the point of the network, for fit indices."""
        ((values, weight),) = reading.blocks
        at_point, latents = Predictive(self.model, None, self.point), self.latents
        rows = self.rows(values, reading.values_set)
        scores = at_point.log_densities(rows, **limits)
        posteriors = at_point.all_posteriors(rows, [[latent] for latent in latents], **limits) if latents else []
        sizes, nothing = [len(self.levels[name]) for name in rows.names], rows.taken(np.array([0]), np.ones(1))

        def joint(i: int, j: int) -> np.ndarray | None:
            try:
                pair = [rows.names[i], rows.names[j]]
                return at_point.posteriors(nothing.without_cells(), pair, **limits).reshape(sizes[i], sizes[j])
            except TooLargeError:
                return None

        cells = None
        if rows.names and not self.model.driven and not have_set(rows.codes, sizes):
            cells = Cells(rows.codes, sizes, rows.names, joint, not self.with_emission)
        total = float(len(scores) if weight is None else weight.sum())
        return UnderFit(scores, weight, total, dict(zip(latents, posteriors)), weight, cells)

    def sample(
        self, n: int, rng: np.random.Generator, given: list[np.ndarray] | None = None
    ) -> tuple[list[np.ndarray], dict]:
        """Rows drawn from the predictive distribution: values of each group, and states of all nodes with a table.

        With the covariates of as many rows, the values of whose groups are given.
        """
        like = None if given is None else self.rows(given)
        codes, columns = self.predictive.sample(n, rng, like)
        return values_of(self.groups, codes, columns, given or ()), codes

    @staticmethod
    def drawn_for(like: MixedReading, model: MixedNetwork, point: tuple, rng: np.random.Generator) -> Any:
        """As many rows as others, drawn at a point, the same categories and numbers set: values of each group."""
        groups, values = like.columns, like.values
        rows = rows_of(groups, model, values, values_set=like.values_set)
        return values_of(groups, *drawn_at(model, point, len(values[0]), rng, rows), values)
