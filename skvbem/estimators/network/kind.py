"""The kind of `VBDiscreteDAG`: tables of categories, networks, and what their searches complete."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from skvbem._compat import IterationReport, check_parameters
from skvbem._numerics import safe_log
from skvbem.data import Rows
from skvbem.estimators.network.inference import (
    check_exact,
    clusters_of_latents,
    going_on,
    in_clusters,
    row_gap,
    with_clusters,
)
from skvbem.estimators.network.parameters import (
    CandidateNetwork,
    as_floats,
    has_hidden_strengths,
    log_unnamed_columns,
    prior_in_words,
    warn_of_oddities,
)
from skvbem.estimators.network.points import given_point, point_of
from skvbem.fitted.network import FittedNetwork
from skvbem.fitting.fit import Run, n_starts_of, names_starts
from skvbem.fitting.kind import Kind
from skvbem.graphs.dag import DAG
from skvbem.graphs.undirected import UndirectedGraph, is_undirected
from skvbem.models import DiscreteDAG
from skvbem.models.network import queries
from skvbem.models.network.completed_rows import CompletedRows, complete_rows
from skvbem.models.network.program import Program
from skvbem.optima.network import NetworkMethod, TableStarts
from skvbem.reading.base import warn_of_one_row
from skvbem.reading.categories import CategoryEncoder
from skvbem.reading.guesses import MIN_LEVELS, warn_of_names_of_rows
from skvbem.reading.interventions import read_interventions, with_set_cells
from skvbem.reading.names import check_names
from skvbem.reading.network import NetworkReading
from skvbem.reading.tables import read_table, weighted_rows
from skvbem.vbem import posteriors


class NetworkKind(Kind):
    """Discrete networks."""

    method = NetworkMethod()
    fitted = FittedNetwork
    located_by = ("interventions",)
    prior_parameters = ("prior",)
    reading_parameters = Kind.reading_parameters | {"covariates"}

    def read(self, estimator, X, sample_weight, columns: CategoryEncoder | None, where: Mapping) -> NetworkReading:
        """The reading of a table of categories."""
        owner = type(estimator).__name__
        given = {"X": X, "metadata": {"sample_weight": sample_weight, **where}}
        table, is_set = read_interventions(where.get("interventions"), read_table(X, owner), owner)
        if columns is not None:
            check_names(table, estimator)
        table, weights, kept = weighted_rows(table, sample_weight)
        is_set = is_set if is_set is None or kept is None else is_set[kept]
        if columns is not None:
            codes = with_set_cells(columns.encode(table), is_set, columns, owner)
            return NetworkReading.of(columns, Rows(tuple(columns.names_), codes, weights), given=given)
        columns = CategoryEncoder(
            owner,
            categories=estimator.categories,
            missing_values=estimator.missing_values,
            handle_unknown=estimator.handle_unknown,
        )
        rows = Rows(tuple(table.names), columns.fit_encode(table), weights)
        if columns.n_categories_.max() > MIN_LEVELS:
            warn_of_names_of_rows(rows.names, rows.codes, columns.n_categories_, estimator.categories)
        rows = replace(rows, codes=with_set_cells(rows.codes, is_set, columns, owner))
        return NetworkReading.of(columns, rows, names=table.names_of_fit(), given=given)

    def check(self, estimator, X) -> None:
        """Refuse temperatures that are none, and strengths of nodes where an undirected structure has no directions."""
        super().check(estimator, X)
        self.inverse_temperatures(estimator)
        if estimator.learn_prior and has_hidden_strengths(estimator.prior):
            raise ValueError(
                f"learn_prior=True of {type(estimator).__name__} multiplies Dirichlet priors of known strength: under "
                "prior='bdla' strengths are hidden, and learned as they are. Leave it False."
            )
        if estimator.learn_prior and is_undirected(estimator.structure):
            raise ValueError(
                f"learn_prior=True of {type(estimator).__name__} gives each node a prior strength of its own, under "
                "which the evidence depends on directions that an undirected 'structure' does not have. Leave it False."
            )

    def presentation(self, estimator, reading) -> dict[str, Any]:
        """True if the structure has no directions."""
        return {"is_undirected": is_undirected(estimator.structure)}

    def inverse_temperatures(self, estimator) -> tuple[float, ...]:
        """The `annealing` parameter."""
        annealing = estimator.annealing
        if annealing is None:
            return ()
        values = as_floats(annealing)
        if values is None or values.ndim != 1 or not np.all((values > 0) & (values <= 1)):
            raise ValueError(
                f"The 'annealing' parameter of {type(estimator).__name__} must hold inverse temperatures in (0, 1]. "
                f"Got {annealing!r} instead."
            )
        return tuple(values)

    def limits(self, estimator) -> dict[str, Any]:
        """Cells of a table, and bytes."""
        return {"max_table_cells": estimator.max_table_cells, "max_memory": estimator.max_memory}

    def network(self, estimator, reading: NetworkReading) -> CandidateNetwork:
        """The network that the parameters describe, for searches that know more of networks than scores."""
        return CandidateNetwork.of(estimator, reading)

    def graph(self, estimator, reading: NetworkReading) -> tuple[DAG | UndirectedGraph, dict]:
        """The graph that is fitted to a reading, and the numbers of states of its latents, for searches."""
        network = self.network(estimator, reading)
        return network.undirected or network.dag, network.latents

    def complete(
        self, estimator, reading: NetworkReading, start: CompletedRows | None = None
    ) -> tuple[float, CompletedRows]:
        """The lower bound of a VB fit to a reading, and the rows completed by its q(x).

        The fit starts from rows completed otherwise, where there are any.
        """
        check_parameters(estimator)
        check_exact(estimator)
        if estimator.ties:
            raise ValueError(f"A {type(estimator).__name__} with ties has no q(x) that bounds other structures.")
        model, kept = self.model(estimator, reading), reading.kept()
        plan = replace(Run(estimator, reading, None, IterationReport(None, None)).plan(model), inverse_temperatures=())
        if start is not None:
            starts = self.method.statistics_to_start_from(start.statistics(model))[:, None]
            plan = replace(plan, starts=starts, explore=False)
        data = self.compiled(estimator, model, kept, plan.n_starts)
        fit = plan.run(model, data, posteriors.VB, effective_n_jobs(estimator.n_jobs))
        return fit.objective, complete_rows(model, fit.statistics, reading.rows, max_memory=estimator.max_memory)

    def log_point(self, fitted: FittedNetwork, tables: Mapping, owner: str) -> np.ndarray:
        """Log parameters (n_cells,) of tables that a user gives for every node."""
        lacking = [node for node in fitted.model.dag.nodes if node not in tables]
        if lacking:
            raise ValueError(
                f"The tables that made the data are needed for every node. There is none of {lacking[0]!r}."
            )
        return safe_log(point_of(fitted.model, tables, "the tables that made the data"))

    def model(self, estimator, reading: NetworkReading) -> DiscreteDAG:
        """The network, divided as `inference` says."""
        candidate = CandidateNetwork.of(estimator, reading)
        candidate.check_size()
        model = DiscreteDAG(candidate.dag, candidate.cardinalities, candidate.prior(), candidate.ties)
        if estimator.inference == "exact":
            return model
        return in_clusters(model, estimator.inference, tuple(candidate.latents), reading.rows, candidate)

    def compiled(self, estimator, model: DiscreteDAG, reading: NetworkReading, n_starts: int) -> Program:
        """Rows as the model takes them."""
        return model.compile(reading.rows, n_lanes=n_starts, release=True, **self.limits(estimator))

    def data_for_scores(self, data, fit) -> Any:
        """Data whose E steps go on from the q(x) of a fit."""
        return going_on(data, fit)

    def starts(self, estimator, model: DiscreteDAG, data, reading: NetworkReading, seed: tuple) -> TableStarts:
        """Starts at random, or at tables given."""
        if names_starts(estimator):
            return TableStarts(seed, n_starts_of(estimator))
        return TableStarts(seed, 1, given_point(model, estimator.init, reading.columns, type(estimator).__name__))

    def start_from(self, last: FittedNetwork, model, data, reading) -> np.ndarray:
        """Statistics of the last solution."""
        return with_clusters(data, self.method.statistics_to_start_from(last.statistics))

    def hidden(self, fitted: FittedNetwork) -> tuple:
        """The latents."""
        return fitted.latents

    def drawn_like(self, like: NetworkReading, model: DiscreteDAG, point, rng: np.random.Generator) -> dict:
        """As many rows, the same cells set to the same."""
        return queries.sample(model, point, len(like.rows), rng, like.rows)

    def warn_of_data(self, estimator, reading: NetworkReading, model: DiscreteDAG, data: Program) -> None:
        """Warn of one row; say in the log which columns the structure does not name."""
        if reading.n_rows == 1:
            warn_of_one_row()
        log_unnamed_columns(estimator.structure, reading.rows.names, type(estimator).__name__)

    def warn_of_fit(self, estimator, fitted: FittedNetwork, data: Program) -> None:
        """Warn of latents that nothing tells."""
        dag, sizes = fitted.model.dag, fitted.sizes_of_latents()
        warn_of_oddities(dag, sizes, data.total_weight, is_undirected=fitted.is_undirected)

    def attributes(self, fitted: FittedNetwork) -> dict[str, Any]:
        """Structure, latents, categories and tables."""
        return {
            "structure_": fitted.model.dag,
            "latent_names_": fitted.latents,
            "categories_": fitted.encoder.categories_,
            "n_free_parameters_": fitted.model.prior.n_free_parameters,
            **fitted.tables(),
            **fitted.cliques_and_separators(),
        }

    def data_attributes(self, fitted, reading: NetworkReading, data: Program, before: Mapping | None) -> dict[str, Any]:
        """Empty rows, treewidth, and how what is hidden in a row was divided."""
        n_before, width = (0, 0) if before is None else (before["n_rows_all_missing_"], before["treewidth_"])
        return {
            "n_rows_all_missing_": n_before + reading.n_rows_all_missing,
            "treewidth_": max(width, data.treewidth),
            "inference_": clusters_of_latents(fitted.model, fitted.latents, data),
            **({"row_gap_": row_gap(fitted, data)} if before is None else {}),
        }

    def title(self, fitted: FittedNetwork) -> str:
        """Numbers of nodes and edges, and the latents."""
        latents = ", ".join(f"{name} of {size} states" for name, size in fitted.sizes_of_latents().items())
        dag = fitted.model.dag
        return f"{len(dag.nodes)} nodes, {len(dag.edges)} edges; latents: {latents or 'none'}"

    def prior_in_words(self, estimator, columns: CategoryEncoder) -> str:
        """The prior, and what a named one is shared out of."""
        return ", ".join([*prior_in_words(estimator), *(["strengths learned"] if estimator.learn_prior else [])])
