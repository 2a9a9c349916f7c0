"""The kind of `VBNetwork`: tables of any columns, networks whose nodes have tables or emissions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from skvbem._arguments import NUMBER
from skvbem._compat import IterationReport, check_parameters
from skvbem.emissions.base import Emission, counts_factors
from skvbem.emissions.registry import FOR_CATEGORIES, family_of
from skvbem.errors import StructureError
from skvbem.estimators.emission_parameters import refuse_lags
from skvbem.estimators.labels import resolve_emission_prior
from skvbem.estimators.mixed_network import hidden_numbers
from skvbem.estimators.mixed_network.covariates import driven_nodes, membership_of_node, with_covariates
from skvbem.estimators.network.parameters import (
    CandidateNetwork,
    by_node,
    log_unnamed_columns,
    prior_in_words,
    resolve_structure,
    warn_of_oddities,
)
from skvbem.families.base import ConjugateFamily
from skvbem.fitted.mixed_network import FittedMixedNetwork
from skvbem.fitting.fit import Run, n_starts_of
from skvbem.fitting.kind import Kind
from skvbem.graphs.dag import DAG
from skvbem.models.mixed_network.completed_numbers import CompletedNumbers, complete_numbers
from skvbem.models.mixed_network.data import MixedData
from skvbem.models.mixed_network.model import MixedNetwork
from skvbem.optima.network import MixedNetworkMethod, MixedStarts
from skvbem.optima.plan import FitPlan, PriorStart
from skvbem.reading.base import warn_of_one_row
from skvbem.reading.column_groups import ColumnGroups, ColumnOptions
from skvbem.reading.interventions import read_interventions, with_set_values
from skvbem.reading.mixed_network import MixedReading, columns_of_nodes, nodes_of
from skvbem.reading.names import check_names
from skvbem.reading.rows import ranges, warn_of_marks
from skvbem.reading.tables import are_observed, listed, read_table, show, weighted_rows
from skvbem.vbem import posteriors


class MixedNetworkKind(Kind):
    """Networks of any columns."""

    method = MixedNetworkMethod()
    fitted = FittedMixedNetwork
    located_by = ("interventions",)
    prior_parameters = ("prior",)
    default_score = "lower_bound"
    reading_parameters = Kind.reading_parameters | {"covariates", "emission"}

    def read(self, estimator, X, sample_weight, columns: ColumnGroups | None, where: Mapping) -> MixedReading:
        """The reading of a table."""
        owner = type(estimator).__name__
        given = {"X": X, "metadata": {"sample_weight": sample_weight, **where}}
        table, is_set = read_interventions(where.get("interventions"), read_table(X, owner), owner)
        if columns is not None:
            check_names(table, estimator)
        table, weight, is_weighted = weighted_rows(table, sample_weight)
        is_set = is_set if is_set is None or is_weighted is None else is_set[is_weighted]
        if columns is not None:
            values, values_set, _ = with_set_values(columns, columns.values(table), is_set, owner)
            return MixedReading(columns, [(values, weight)], is_weighted, given=given, values_set=values_set)
        emission = self.emission(estimator)
        parameters = ("categories", "missing_values", "handle_unknown")
        options = ColumnOptions(owner, emission, **{name: getattr(estimator, name) for name in parameters})
        refuse_lags(owner, emission)
        options = with_covariates(estimator, options, table)
        groups, values = columns_of_nodes(*ColumnGroups.learned(table, options), emission)
        values, values_set, leaves = with_set_values(groups, values, is_set, owner)
        if not are_observed(values).any():
            raise ValueError(f"X must have an observed cell. Got {table.n_samples} x {table.n_columns} missing ones.")
        if any(group.given for group in groups.groups):
            raise ValueError(
                f"The 'emission' of {owner} explains columns by 'covariates'. In a network edges do this: leave "
                "'covariates' out, and make their nodes parents in the 'structure'."
            )
        reading = MixedReading(groups, [(values, weight)], is_weighted, names=table.names_of_fit(), given=given)
        return self.adapted(estimator, replace(reading, values_set=values_set, set_leaves=leaves))

    def adapted(self, estimator, reading: MixedReading) -> MixedReading:
        """The reading with the numbers that are hidden in the estimator's network."""
        _, numbers = hidden_numbers.resolved(estimator)
        return reading.with_hidden_numbers(hidden_numbers.specifications(estimator, numbers))

    def emission(self, estimator) -> Any:
        """What columns hold that are not given."""
        return estimator.emission

    def learns_prior(self, estimator) -> bool:
        """Never."""
        return False

    def prior_in_words(self, estimator, columns: ColumnGroups) -> str:
        """The prior of tables, what a named one is shared out of, and the covariates."""
        covariates = [] if estimator.covariates is None else [f"covariates={estimator.covariates!r}"]
        return ", ".join([*prior_in_words(estimator), *covariates])

    def limits(self, estimator) -> dict[str, Any]:
        """Cells of a table, and bytes."""
        return {"max_table_cells": estimator.max_table_cells, "max_memory": estimator.max_memory}

    def graph(self, estimator, reading: MixedReading) -> tuple[DAG, dict]:
        """The graph that is fitted to a reading, and its latents with numbers of states, or "number", for searches."""
        owner = type(estimator).__name__
        sizes, numbers = hidden_numbers.resolved(estimator)
        latents = {name: sizes.get(name, NUMBER) for name in estimator.latents} if numbers else sizes
        nodes, _ = nodes_of(reading.columns)
        return resolve_structure(estimator.structure, latents, nodes, owner), latents

    def model(self, estimator, reading: MixedReading) -> MixedNetwork:
        """The network, its tables and emissions with their priors."""
        owner = type(estimator).__name__
        nodes, n_categories = nodes_of(reading.columns)
        dag, latents = self.graph(estimator, reading)
        latents = {name: n for name, n in latents.items() if n != NUMBER}
        _check_priors(reading.columns, by_node(estimator.prior) or {}, owner)
        hidden = [group.name for group in reading.columns.groups if group.is_hidden]
        with_emission = [*(node for node in nodes if node not in n_categories), *hidden]
        hidden_numbers.check_children(dag, hidden, with_emission, owner)
        _check_parents_with_order(dag, reading.columns, owner)
        _check_structure(dag, with_emission, latents, owner)
        _check_set_leaves(dag, reading.set_leaves, owner)
        sizes = {**latents, **n_categories}
        parents = {node: dag.parents(node) for node in dag.nodes if node in sizes}
        driven, prior = driven_nodes(estimator, dag, latents, reading)
        parents |= dict.fromkeys(driven, ())
        limits = estimator.max_table_cells, estimator.max_memory, n_starts_of(estimator)
        of_tables = CandidateNetwork(
            DAG(parents, parents), latents, sizes, prior, estimator.equivalent_sample_size, owner, *limits
        )
        of_tables.check_size()
        emissions, priors, seen_through = {}, {}, dag.ancestors(nodes)
        for group, emission in reading.emissions(dag):
            if counts_factors(emission):
                raise ValueError(
                    f"n_factors='auto' of node {group.name!r} is a search that {owner} does not make. Give "
                    "FactorGaussian a number of factors, and compare bounds."
                )
            with_table = [sizes[parent] for parent in dag.parents(group.name) if parent in sizes]
            n_states = int(np.prod(with_table, dtype=np.int64))
            alone = ColumnGroups(group.names, (group,), estimator.missing_values, owner)
            emissions[group.name] = emission
            if group.is_hidden and group.name not in seen_through:  # of no data a hidden precision has a price
                priors[group.name] = emission.default_prior(n_states)
                continue
            priors[group.name] = resolve_emission_prior(alone, emission, n_states)
        memberships = {
            node: membership_of_node(node, softmax, sizes[node], reading, dag, estimator)
            for node, softmax in driven.items()
        }
        return MixedNetwork(dag, sizes, of_tables.prior(), emissions, priors, memberships)

    def complete(
        self, estimator, reading: MixedReading, start: CompletedNumbers | None = None
    ) -> tuple[float, CompletedNumbers]:
        """The lower bound of a VB fit to a reading, and the rows completed by its q(x), of tables and measurements.

        The fit starts from rows completed otherwise, where there are any.
        """
        check_parameters(estimator)
        model = self.model(estimator, reading)
        data = self.compiled(estimator, model, reading, n_starts_of(estimator))
        plan = Run(estimator, reading, data, IterationReport(None, None)).plan(model)
        if start is not None:
            plan = replace(plan, starts=start.statistics(model)[:, None], explore=False)
        fit = plan.run(model, data, posteriors.VB, effective_n_jobs(estimator.n_jobs))
        return fit.objective, complete_numbers(model, fit.statistics, data.source, max_memory=estimator.max_memory)

    def has_sums(self, estimator, reading: MixedReading) -> bool:
        """Whether all columns are categories and measurements, so that `complete` has sums of every family."""
        if estimator.latents or estimator.covariates is not None or reading.intervention_targets:
            return False
        alone = DAG(nodes_of(reading.columns)[0], {})
        of_numbers = reading.emissions(alone)
        return all(len(group.columns) == 1 and emission.products is not None for group, emission in of_numbers)

    def family(self, estimator, reading: MixedReading, node, parents) -> tuple[Emission, ConjugateFamily]:
        """The emission of a node with some parents, and its prior."""
        nodes, sizes = nodes_of(reading.columns)
        group, emission = reading.emission_of(DAG(nodes, {node: parents}), node)
        n_states = int(np.prod([sizes[parent] for parent in parents if parent in sizes], dtype=np.int64))
        alone = ColumnGroups(group.names, (group,), estimator.missing_values, type(estimator).__name__)
        return emission, resolve_emission_prior(alone, emission, n_states)

    def tables(self, estimator, reading: MixedReading) -> CandidateNetwork:
        """The network of the nodes with a table alone, without edges: their priors."""
        _, sizes = nodes_of(reading.columns)
        limits = estimator.max_table_cells, estimator.max_memory, n_starts_of(estimator)
        given = estimator.prior, estimator.equivalent_sample_size, type(estimator).__name__
        return CandidateNetwork(DAG(sizes, {}), {}, dict(sizes), *given, *limits)

    def compiled(self, estimator, model: MixedNetwork, reading: MixedReading, n_starts: int) -> MixedData:
        """Rows as the model takes them."""
        return reading.compiled_for(model, n_starts, **self.limits(estimator))

    def starts(self, estimator, model: MixedNetwork, data, reading: MixedReading, seed: tuple) -> Any:
        """Starts at random; where nothing is hidden in any row all would be one."""
        hides = data.program.plans or model.latent_numbers
        return MixedStarts(seed, n_starts_of(estimator)) if hides else PriorStart()

    def new_starts(self, plan: FitPlan, seed: tuple[int, ...]) -> MixedStarts:
        """As many starts around rows."""
        return MixedStarts(seed, plan.n_starts)

    def start_from(self, last: FittedMixedNetwork, model, data, reading) -> np.ndarray:
        """Statistics under the last solution."""
        natural, _ = last.form.of(last.model.prior, last.statistics[:, None])
        return model.expect(natural, data).statistics[:, 0]

    def hidden(self, fitted: FittedMixedNetwork) -> tuple:
        """The latents."""
        return fitted.latents

    def drawn_like(self, like: MixedReading, model: MixedNetwork, point, rng: np.random.Generator) -> Any:
        """As many rows."""
        return self.fitted.drawn_for(like, model, point, rng)

    def warn_of_data(self, estimator, reading: MixedReading, model: MixedNetwork, data: MixedData) -> None:
        """Warn of one row, and of codes of missing cells; say in the log which columns the structure does not name."""
        if len(data) == 1:
            warn_of_one_row()
        log_unnamed_columns(estimator.structure, nodes_of(reading.columns)[0], type(estimator).__name__)
        for k, group in enumerate(reading.columns.groups):
            if group.specification.needs_variation:
                warn_of_marks(reading, k, *ranges(reading, k))

    def warn_of_fit(self, estimator, fitted: FittedMixedNetwork, data: MixedData) -> None:
        """Warn of latents that nothing tells."""
        sizes = {node: len(fitted.levels[node]) for node in fitted.latents}
        warn_of_oddities(fitted.model.dag, sizes, data.total_weight)

    def attributes(self, fitted: FittedMixedNetwork) -> dict[str, Any]:
        """Structure, latents, categories, tables and parameters."""
        groups = fitted.groups.groups
        return {
            "structure_": fitted.model.dag,
            "latent_names_": fitted.latents,
            "parameters_": fitted.named_parameters(fitted.point),
            "groups_": {group.name: list(group.names) for group in groups if group.name in fitted.with_emission},
            "categories_": {
                name: levels for group in groups for name, levels in zip(group.names, group.levels) if len(levels)
            },
            "n_free_parameters_": fitted.model.n_free_parameters,
            **({"coefficients_": fitted.coefficients} if fitted.driven else {}),
            **fitted.tables(),
        }

    def data_attributes(self, fitted, reading, data: MixedData, before: Mapping | None) -> dict[str, Any]:
        """The treewidth."""
        return {"treewidth_": max(data.program.treewidth, 0 if before is None else before["treewidth_"])}

    def title(self, fitted: FittedMixedNetwork) -> str:
        """Numbers of nodes and edges, and the latents."""
        with_states = [f"{name} of {len(fitted.levels[name])} states" for name in fitted.latents]
        latents = ", ".join([*with_states, *(f"number {name}" for name in fitted.latent_numbers)])
        dag = fitted.model.dag
        return f"{len(dag.nodes)} nodes, {len(dag.edges)} edges; latents: {latents or 'none'}"


def _check_priors(columns: ColumnGroups, named: Mapping, owner: str) -> None:
    """Refuse priors of tables that an emission says, and priors of emissions by node: tables have these."""
    for group in columns.groups:
        if group.name in named and not (group.specification.has_table or group.is_hidden):
            raise ValueError(
                f"The 'prior' parameter of {owner} names {group.name!r}, a node with an emission and no table. "
                f"Its prior is that of its emission: give 'emission' one with such a prior for {show([*group.names])}."
            )
        said, silent = repr(group.specification), repr(type(group.specification)())
        if group.specification.has_table and said != silent:
            raise ValueError(
                f"The 'emission' of {owner} gives columns {show(group.names)} a prior of their own, "
                f"{said}. Columns of categories are nodes with a table, whose prior is the parameter 'prior', as "
                f"in prior={{{group.names[0]!r}: 2.0}}."
            )


def _check_set_leaves(dag: DAG, leaves: frozenset, owner: str) -> None:
    """Refuse children of intervals that were set, which are as missing ones."""
    for node in sorted(leaves):
        if children := dag.children(node):
            raise StructureError(
                f"'interventions' of {owner} set {node!r}, which holds intervals and is a parent of {children[0]!r}. "
                "Only intervals without children can be set. Cut these into categories, or do not set them."
            )


def _check_parents_with_order(dag: DAG, columns: ColumnGroups, owner: str) -> None:
    """Refuse children of categories that have no table: answers with a hidden number behind each."""
    for group in columns.groups:
        if group.encoder is None or group.specification.has_table:
            continue
        if children := dag.children(group.name):
            raise StructureError(
                f"Node {group.name!r} is {family_of(group.specification)!r}, and a parent of {children[0]!r} in the "
                f"'structure' of {owner}: no family here depends on answers in an order. Turn the edge round, or give "
                f"{listed(map(repr, group.names))} to {FOR_CATEGORIES!r} in the 'emission'."
            )


def _check_structure(dag: DAG, with_emission: list, latents: Mapping, owner: str) -> None:
    """Refuse numbers as parents of columns of categories, and networks without any table."""
    for node in with_emission:
        children = [child for child in dag.children(node) if child not in with_emission and child not in latents]
        if children:
            raise StructureError(
                f"Node {node!r} holds numbers, and is a parent of {children[0]!r} in the 'structure' of "
                f"{owner}. Numbers have no children with a table here, except latents, whose states they drive. Turn "
                "the edge round, or cut the numbers into categories; in a search, DAGSpace(numbers=...) keeps such "
                "graphs out."
            )
