"""A network as fitted: what every question after `fit` is put to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

import numpy as np

from skvbem._lazy import cached_property
from skvbem._names import did_you_mean
from skvbem.data import Rows, have_set
from skvbem.emissions.profiles import named
from skvbem.errors import TooLargeError
from skvbem.families import DirichletMixture
from skvbem.fitted.asking import AskedNetwork
from skvbem.fitted.base import Fitted, Intervals, Parameters
from skvbem.fitted.bayesian_network import Network
from skvbem.fitted.fills import filled_together
from skvbem.fitted.latent_states import MAX_VARIATION_OF_DUPLICATES, LatentStates
from skvbem.fitted.parameter_tables import ParameterTable, joint_states
from skvbem.fitted.under_fit import Cells, UnderFit
from skvbem.graphs.undirected import UndirectedGraph
from skvbem.models import DiscreteDAG
from skvbem.models.network import queries
from skvbem.reading.categories import CategoryEncoder
from skvbem.reading.network import NetworkReading
from skvbem.reading.tables import Table
from skvbem.tables import LabeledTable


def levels_of(model: DiscreteDAG, encoder: CategoryEncoder) -> dict:
    """The states of each node as the user knows them: categories of a column, numbers of a latent's states."""
    of_columns = dict(zip(encoder.names_, encoder.categories_))
    sizes = zip(model.dag.nodes, model.layout.cardinalities)
    return {node: of_columns.get(node, np.arange(size)) for node, size in sizes}


class LabeledTables(Mapping):
    """One `LabeledTable` per node with a table, made when it is asked for.

    Parameters
    ----------
    model : DiscreteDAG or MixedNetwork
    flat : ndarray of shape (n_cells,)
        The cells of all tables.
    levels : mapping of node to ndarray
        The states of each node with a table.
    """

    def __init__(self, model: Any, flat: np.ndarray, levels: Mapping):
        self._model, self._flat, self._levels = model, flat, levels

    def __getitem__(self, node) -> LabeledTable:
        if node not in self._levels:
            raise KeyError(f"{node!r} is not a node of this network.{did_you_mean(node, self._levels)}")
        axes = tuple(axis for axis in self._model.dag.family(node) if axis in self._levels)
        table = self._model.layout.table(self._flat, self._model.position[node])
        table.flags.writeable = False  # it is a view of what every query reads
        return LabeledTable(table, axes, tuple(self._levels[axis] for axis in axes))

    def __iter__(self) -> Iterator:
        return iter(self._levels)

    def __len__(self) -> int:
        return len(self._levels)

    __eq__, __hash__ = object.__eq__, object.__hash__

    def __reduce__(self):
        return type(self), (self._model, self._flat, self._levels)

    def __repr__(self):
        return f"LabeledTables of {self._model.dag}"


@dataclass(frozen=True, eq=False)
class FittedNetwork(Fitted):
    """Categories, a network with its prior, and the expected counts of all data it has seen.

    Parameters
    ----------
    is_undirected : bool, default=False
        Whether the structure was given as an undirected graph, so that directions mean nothing.
    """

    is_undirected: bool = False

    @property
    def encoder(self) -> CategoryEncoder:
        """The encoder of the categories of the columns."""
        return self.columns

    @property
    def latents(self) -> tuple:
        """The hidden nodes: all but the columns, which come last."""
        return self.model.dag.nodes[: -len(self.encoder.names_)]

    def damage(self) -> str:
        """The fault of a network that was loaded; empty if it is sound."""
        sizes = self.model.layout.cardinalities[-len(self.encoder.names_) :]
        if list(map(len, self.encoder.categories_)) != list(sizes):
            return "the categories of its columns are not as many as its tables have states"
        return super().damage()

    #: Nodes and columns that hold numbers: none.
    numbers: ClassVar[frozenset] = frozenset()

    def sizes_of_latents(self) -> dict:
        """Latent -> number of states."""
        return dict(zip(self.latents, self.model.layout.cardinalities))

    def _found_point(self) -> np.ndarray:
        """Posterior means (VB) or the point found (MAP, ML), (n_cells,)."""
        return self.form.point_of(self.model.prior, self.statistics)

    @cached_property
    def levels(self) -> dict:
        """The states of each node as the user knows them: categories of a column, numbers of a latent's states."""
        return levels_of(self.model, self.encoder)

    def tables(self) -> dict[str, LabeledTables]:
        """The attributes that hold a table per node."""
        prior, posterior = concentrations_of(self.model.prior, self.statistics)
        flat = {"prior_": prior, "counts_": self.statistics, "tables_": self.point}
        if self.form.density:
            flat["posterior_"] = posterior
        return {name: LabeledTables(self.model, cells, self.levels) for name, cells in flat.items()}

    def named_parameters(self, point: np.ndarray) -> Parameters:
        """The tables of all nodes, axes (*parents, node)."""
        return {"tables": self.model.tables(point)}

    def quantiles(self, probability: float) -> Parameters:
        """Quantiles of q(theta) of each probability by itself, in tables."""
        return self.named_parameters(self.posterior.quantiles(probability))

    def parameters_of_draws(self, natural: np.ndarray) -> Parameters:
        """Tables at natural parameters (n_cells, n_draws), each (n_draws, *parents, node)."""
        tables = self.model.tables(self.model.prior.from_natural(natural))
        return {"tables": {node: np.moveaxis(table, -1, 0) for node, table in tables.items()}}

    def report(self, intervals: Intervals | None) -> list[ParameterTable]:
        """A table per node: a row for each combination of its parents' states, a column for each of its own."""
        tables = []
        layout, position = self.model.layout, self.model.position
        for node, table in self.named_parameters(self.point)["tables"].items():
            if not layout.has_own_table(position[node]):
                continue
            alike = [
                other for other, k in position.items() if layout.first_cell[k] == layout.first_cell[position[node]]
            ]
            *parents, _ = self.model.dag.family(node)
            rows = [
                ", ".join(f"{parent}={named(state)}" for parent, state in zip(parents, states))
                for states in product(*(self.levels[parent].tolist() for parent in parents))
            ]
            shape = len(rows), table.shape[-1]
            ends = None if intervals is None else intervals["tables"][node]
            tables.append(
                ParameterTable(
                    " = ".join(map(self._title, [node, *(other for other in alike if other != node)])),
                    rows if parents else ["share"],
                    [named(state) for state in self.levels[node].tolist()],
                    table.reshape(shape),
                    None if ends is None else (ends[0].reshape(shape), ends[1].reshape(shape)),
                    joint_states(parents, self.levels),
                    joint_states([node], self.levels),
                )
            )
        return tables + (list(map(self._clique_table, self.undirected.cliques)) if self.is_undirected else [])

    def _title(self, node) -> str:
        parents = self.model.dag.parents(node)
        return f"{node} | {', '.join(map(str, parents))}" if parents else str(node)

    @cached_property
    def undirected(self) -> UndirectedGraph:
        """The edges of the network without directions."""
        return self.model.dag.to_undirected()

    def cliques_and_separators(self) -> dict:
        """The attributes that tell of an undirected structure."""
        if not self.is_undirected:
            return {}
        return {"cliques_": self.undirected.cliques, "separators_": self.undirected.separators}

    def _clique_table(self, clique: tuple) -> ParameterTable:
        """The joint probabilities of a clique."""
        nothing = Rows((), np.zeros((1, 0), dtype=np.int8))
        *above, last = clique
        rows = [
            ", ".join(f"{node}={named(state)}" for node, state in zip(above, states))
            for states in product(*(self.levels[node].tolist() for node in above))
        ]
        joint = queries.joint(self.model, self.point, nothing, clique)[0].reshape(len(rows), -1)
        title = f"clique {', '.join(map(str, clique))}"
        return ParameterTable(
            title, rows if above else ["share"], [named(s) for s in self.levels[last].tolist()], joint
        )

    def network(self) -> Network:
        """Graph, states and tables as a value of their own."""
        dag, tables = self.model.dag, self.model.tables(self.point)
        return Network(dag, {node: self.levels[node].tolist() for node in dag.nodes}, tables)

    def asked(self, limits: Mapping[str, Any]) -> AskedNetwork:
        """The network as questions are put to it, within limits of `DiscreteDAG.compile`."""
        return AskedNetwork(self.model, self.point, self.levels, limits, self.latents)

    def under_fit(self, reading: NetworkReading, **limits: Any) -> UnderFit:
        """Likelihoods and cells of rows under the network, for fit indices."""
        return under_fit(self.model, self.point, reading.rows, self.latents, limits)

    def states_of(self, latent) -> LatentStates:
        """Use of the states of a latent."""
        return find_states(self.model, self.point, self.statistics, latent)

    def imputed(
        self, rows: Rows, fill: str, rng: np.random.Generator | None = None, **limits: Any
    ) -> tuple[np.ndarray, dict]:
        """Codes without gaps, (n_rows, n_columns), and probabilities of each column's cells, one by one."""
        names, point, missing = rows.names, self.point, rows.codes < 0
        probabilities = queries.marginals(self.model, point, rows, names, **limits)
        if fill == "draw":
            rng = rng or np.random.default_rng()
            drawn = queries.drawn(self.model, self.drawn_point(rng), rows, names, rng, **limits)
            return np.stack([drawn[name] for name in names], axis=1), probabilities
        codes = np.stack([probabilities[name].argmax(axis=1) for name in names], axis=1)

        def log_of(table: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
            return lambda which: queries.log_likelihood(self.model, point, Rows(names, table[which]), **limits)

        def best(which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            modes = queries.joint_mode(self.model, point, Rows(names, rows.codes[which]), names, **limits)
            together = np.stack([modes[name] for name in names], axis=1)
            return together, queries.log_likelihood(self.model, point, Rows(names, together), **limits)

        which, together = filled_together(fill, missing.sum(axis=1), log_of(rows.codes), log_of(codes), best)
        codes[which] = codes[which] if together is None else together
        return codes, probabilities

    def rows(self, table: Table, weight: np.ndarray | None = None) -> Rows:
        """A user's table in the categories of the fit."""
        return Rows(tuple(self.encoder.names_), self.encoder.encode(table), weight)

    def continues(self, columns: CategoryEncoder, model: DiscreteDAG) -> bool:
        """True if tables of another fit mean the same: the same nodes, parents and states."""
        return self.model.layout == model.layout and all(
            np.array_equal(ours, theirs) for ours, theirs in zip(self.encoder.categories_, columns.categories_)
        )


def concentrations_of(prior: Any, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Concentrations of tables before and after counts; hidden ones as expected after these."""
    posterior = prior + counts
    if isinstance(posterior, DirichletMixture):
        expected = posterior.expected_concentration()
        return expected - counts, expected
    return prior.concentration, posterior.concentration


def find_states(model: DiscreteDAG, point: np.ndarray, counts: np.ndarray, latent) -> LatentStates:
    """The states of one latent that are in use, empty, or duplicates."""
    layout, k = model.layout, model.position[latent]
    of_latent = layout.table(counts, k)
    mass = of_latent.reshape(-1, of_latent.shape[-1]).sum(axis=0)
    tables = [
        np.moveaxis(layout.table(point, child), layout.parents[child].index(k), 0) for child in layout.children[k]
    ]
    return LatentStates.of(
        mass,
        lambda a, b: (
            bool(tables)
            and all(
                0.5 * np.abs(table[a] - table[b]).sum(axis=-1).max() < MAX_VARIATION_OF_DUPLICATES for table in tables
            )
        ),
    )


def under_fit(model: DiscreteDAG, point: np.ndarray, data: Rows, latents, limits: Mapping) -> UnderFit:
    """Likelihoods and cells of a table of rows under a network at a point, for fit indices."""
    posteriors = queries.marginals(model, point, data, latents, **limits) if latents else {}
    nothing = Rows((), np.zeros((1, 0), dtype=np.int8))

    def joint(i: int, j: int) -> np.ndarray | None:
        try:
            return queries.joint(model, point, nothing, (data.names[i], data.names[j]), **limits)[0]
        except TooLargeError:
            return None

    sizes, cells = [model.layout.cardinalities[model.position[name]] for name in data.names], None
    if not have_set(data.codes, sizes):  # else rows are of several distributions, one for what was set
        cells = Cells(data.codes, sizes, data.names, joint)
    log_likelihoods = queries.log_likelihood(model, point, data, **limits)
    return UnderFit(log_likelihoods, data.weight, data.total_weight, posteriors, data.weight, cells)
