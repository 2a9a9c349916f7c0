"""Capabilities of a mixed network for scores of the evidence, composed over it: relabelings, dimension, and others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from skvbem._lazy import cached_property
from skvbem.capabilities import Capabilities, Relabelings
from skvbem.emissions.base import n_redundant_parameters
from skvbem.families.hierarchical import Hierarchical
from skvbem.families.parallel_generator import ParallelGenerator
from skvbem.graphs import dimension
from skvbem.graphs.dag import DAG
from skvbem.models.labels.coefficients import CoefficientRelabelings, CoefficientSampler
from skvbem.models.labels.gibbs import GibbsSampler
from skvbem.models.mixed_network.beliefs import latent_entropy
from skvbem.models.mixed_network.data import MixedData
from skvbem.models.mixed_network.dimension import families_with_hidden_numbers, rank_of_numbers
from skvbem.models.mixed_network.enumeration import log_evidence_by_enumeration
from skvbem.models.mixed_network.information import score_covariance
from skvbem.models.mixed_network.model import MixedNetwork
from skvbem.models.mixed_network.symmetries import NumberSymmetries
from skvbem.models.network.capabilities import refuse_set
from skvbem.models.network.layout import Layout
from skvbem.models.network.relabelings import NetworkRelabelings, log_n_relabelings, relabelings_of
from skvbem.models.relabelings import ListedRelabelings, listed, relabelings_of_states

# Log likelihoods that chains side by side may hold, and most chains.
_MAX_LOG_LIKELIHOODS_AT_ONCE, _MAX_LANES = 2**18, 512


class MixedNetworkSampler(GibbsSampler):
    """Draws of parameters, Gibbs and Metropolis chains of mixed networks."""

    def certain_statistics(self, data: MixedData, rng: np.random.Generator) -> np.ndarray:
        """The part of expected statistics that nothing hidden has a say in, (n_cells,): what two E steps agree on.

        Where rows hide cells of an emission, besides nodes, none of the emission is.
        """
        prior = self.model.prior
        points = np.stack([prior.natural(prior.sample(rng)) for _ in range(2)], axis=1)
        one, other = self.model.expect(points, data).statistics.T
        certain = np.where(prior.known_cells(np.isclose(one, other, rtol=1e-9, atol=1e-9)), one, 0.0)
        _, *emissions_cells = prior.split(certain)
        with_hidden = () if data.hidden_numbers is None else data.hidden_numbers.involved
        for k, (emission, table) in enumerate(zip(self.model.emissions, data.source.tables)):
            if k in with_hidden or not emission.is_conjugate(table):
                emissions_cells[k][:] = 0.0
        # what leaves hyperparameters to their prior must leave them all to it
        return np.where(prior.leaves_hyperparameters(certain), 0.0, certain)

    def lanes_at_once(self, data: MixedData) -> int:
        """Chains that run side by side, 1 to 512: as many as have their log likelihoods in cache."""
        most = max(self.model.n_states, default=1)
        most = most if data.hidden_numbers is None else max(most, data.hidden_numbers.doubles_per_row)
        return min(max(_MAX_LOG_LIKELIHOODS_AT_ONCE // max(len(data) * most, 1), 1), _MAX_LANES)

    def workspace(self, data: MixedData, n_lanes: int) -> MixedData:
        """The data as hidden nodes are drawn for them, where weights are whole: chains need no memory of their own."""
        return for_draws(self.model, data) if data.has_whole_weights else data

    def sample_latent(self, natural: np.ndarray, data: MixedData, streams: np.ndarray) -> np.ndarray:
        """Complete-data statistics with hidden nodes drawn from q(x) at natural parameters (n_cells, n_lanes)."""
        rng = ParallelGenerator(streams)
        _, drawn = self.completed(natural, for_draws(self.model, data), rng)
        if self.model.prior.hyperprior is not None:
            drawn = drawn + self.model.prior.hyperprior.draw(natural, rng)
        return drawn


def log_z(model: MixedNetwork, natural: np.ndarray, data: MixedData) -> np.ndarray:
    """ln Z of q(x) at natural parameters (n_cells, n_lanes), nats, (n_lanes,)."""
    return model.expect(natural, data).log_normalizer


def for_draws(model: MixedNetwork, data: MixedData) -> MixedData:
    """Distinct rows in an order that their values decide; one by one where cells of them are drawn."""
    if not data.drawn:
        rows = data.source.distinct()
        are_conjugate = all(emission.is_conjugate(table) for emission, table in zip(model.emissions, rows.tables))
        if data.factors_of_numbers or not are_conjugate:
            rows = rows.one_by_one()
        data.drawn.append(model.compile(rows))
    return data.drawn[0]


@dataclass(frozen=True, eq=False)
class MixedNetworkBatches:
    """Batches of rows of mixed columns; see `skvbem.capabilities.Batches`. A unit is a row that counts once.

    Parameters
    ----------
    model : MixedNetwork
    """

    model: MixedNetwork

    def order(self, data: Any, rng: np.random.Generator) -> np.ndarray:
        """All rows in an order drawn at random, (n_units,): each as often as it counts."""
        rows = data.source.distinct()
        return rng.permutation(np.repeat(np.arange(len(rows)), rows.weight.astype(np.int64)))

    def batch(self, data: Any, order: np.ndarray, n_units: int) -> MixedData:
        """The first of so many units in an order, compiled as the data are."""
        rows = data.source.distinct()
        count = np.bincount(order[:n_units], minlength=len(rows))
        kept = np.flatnonzero(count)
        return self.model.compile(rows.taken(kept, count[kept].astype(float)))

    def known(self, data: Any) -> np.ndarray:
        """Statistics that belong to no unit, (n_cells,): none."""
        return np.zeros(self.model.n_cells)


@dataclass(frozen=True, eq=False)
class MixedNetworkRelabelings(NetworkRelabelings):
    """The relabelings of a mixed network; see `skvbem.capabilities.Relabelable`.

    Components of emissions go with the joint states of their parents, as rows of tables do. They are found as if the
    cells of each emission stood component by component, and as if a node that covariates drive had a table with an
    observed parent, one for all nodes that are driven in the same way, whose states are the regressors.
    """

    @cached_property
    def tables(self) -> _AsTables:
        """The network as tables alone."""
        return _AsTables.of(self.model)

    @property
    def dag(self) -> DAG:
        """The graph without edges from numbers to numbers, which no relabeling touches."""
        layout = self.tables.layout
        parents = {name: [layout.names[p] for p in of] for name, of in zip(layout.names, layout.parents)}
        first = [node for node in layout.names if node not in self.model.dag.nodes]
        return DAG([*first, *self.model.dag.nodes], parents)

    def relabelings(self, hidden: Sequence, limit: int = 50_000) -> Relabelings | None:
        """Ways in which what is hidden can change unnoticed, None if too many to be found one by one."""
        relabelings = self._of_labels(hidden, limit)
        return self._with_numbers(relabelings, limit) if self.symmetries.numbers else relabelings

    def _of_labels(self, hidden: Sequence, limit: int = 50_000) -> Relabelings | None:
        """Relabelings of nodes with a table."""
        layout, order = self.tables.layout, self.tables.cells
        positions = {layout.names.index(node) for node in hidden}
        relabelings: Any = relabelings_of(layout, self.tables.prior, positions, limit)
        if relabelings is not None and not np.array_equal(order, np.arange(self.model.n_cells)):
            if not isinstance(relabelings, ListedRelabelings):
                relabelings = relabelings_of_states(order[relabelings.cells])
            else:
                cells, known = np.tile(np.arange(self.model.n_cells), (relabelings.n, 1)), order >= 0
                cells[:, order[known]] = order[relabelings.cells[:, known]]
                relabelings = ListedRelabelings(cells)
        return relabelings

    @cached_property
    def symmetries(self) -> NumberSymmetries:
        """Orders and signs of hidden numbers."""
        return NumberSymmetries(self.model)

    def _with_numbers(self, relabelings: Relabelings | None, limit: int) -> ListedRelabelings | None:
        """Relabelings of nodes with a table, each with all orders and signs of hidden numbers."""
        labels, changes = listed(relabelings, self.model.n_cells, limit), self.symmetries.listed(limit)
        if labels is None or changes is None or len(labels) * len(changes[0]) > limit:
            return None
        cells, signs = changes
        return ListedRelabelings(np.concatenate([of[cells] for of in labels]), np.tile(signs, (len(labels), 1)))

    def log_n_relabelings(self, hidden: Sequence) -> float:
        """ln of the number of relabelings of hidden nodes and states that graph, prior and data do not tell apart."""
        dag, layout = self.dag, self.tables.layout
        ancestors = dag.ancestors([node for node in dag.nodes if node not in hidden])
        tables = {node: layout.table(self.tables.prior, k) for k, node in enumerate(layout.names)}
        seen_through = [node for node in hidden if node in ancestors]
        of_labels = log_n_relabelings(dag, tables, seen_through, self._of_labels(hidden))
        return of_labels + self.symmetries.log_n


@dataclass(frozen=True, eq=False)
class _AsTables:
    """A mixed network as tables alone.

    Parameters
    ----------
    layout : Layout
        Of driven nodes with their regressors as the states of a parent, which is the same for those that are driven in
        the same way.
    cells : ndarray of int, shape (layout.n_cells,)
        The cell of the network that each of the layout is; negative where there is none.
    prior : ndarray of shape (layout.n_cells,)
        Expected natural parameters under the prior: what is alike is alike.
    """

    layout: Layout
    cells: np.ndarray
    prior: np.ndarray

    @classmethod
    def of(cls, model: MixedNetwork) -> _AsTables:
        """The tables of a network."""
        layout, natural, order = model.layout, model.prior.expected_natural(), model.by_component
        if not model.driven:
            return cls(layout, order, natural[order])
        ways: list[tuple] = []
        parents: dict[Any, tuple[int, ...]] = {}
        cells: dict[Any, np.ndarray] = {}
        first_cells = np.cumsum([0, *model.prior.n_cells])
        for node, (k, _) in model.drivers.items():
            membership, coordinates = model.emissions[k], model.prior.blocks[1 + k].coordinates
            design, size = membership.design.regressors, membership.cells_per_component
            way = size, membership.selected, design.tobytes(), coordinates.tobytes()
            ways += [] if way in ways else [way]
            parents[node] = (ways.index(way),)
            cells[node] = (first_cells[1 + k] + np.arange(model.n_states[k] * size)).reshape(-1, size).T.ravel()
        sizes = [size for size, *_ in ways]
        nodes = layout.names[: layout.n_tables + model.n_nodes_with_emission]
        for k, node in enumerate(nodes):
            parents.setdefault(node, tuple(len(sizes) + p for p in layout.parents[k]))
            cells.setdefault(node, layout.table(order, k).ravel())
        together = np.concatenate([np.full(sum(sizes), -1), *(cells[node] for node in nodes)])
        as_tables = Layout(
            (*(f"regressors {k}" for k in range(len(sizes))), *nodes),
            (*sizes, *layout.cardinalities[: len(nodes)]),
            (*(() for _ in sizes), *(parents[node] for node in nodes)),
            model.n_nodes_with_emission,
        )
        return cls(as_tables, together, np.where(together < 0, 0.0, natural[together]))


def identifiable_dimension(model: MixedNetwork, hidden: Sequence, data: Any = None) -> int:
    """The generic rank of the map from parameters to the distribution of a row, whatever the data.

    Densities of an emission that tells the components of any mixture apart are linearly independent, and so are their
    derivatives. So its parameters add up with all others, and tables move what they could move were the parents of the
    node observed. Columns of other emissions with finitely many values are nodes with a table.

    Raises
    ------
    ValueError
        If it is not known for an emission, or nodes were set in some rows.
    """
    if data is not None:
        refuse_set(data.program)
    layout = model.layout
    tables = layout.names[: layout.n_tables]
    sizes = dict(zip(tables, layout.cardinalities))
    parents: dict = {node: model.dag.parents(node) for node in tables}
    with_hidden_numbers = families_with_hidden_numbers(model)
    observed, n_of_emissions = {node for node in tables if node not in hidden}, 0
    n_of_emissions += sum(rank_of_numbers(model, families) for families in with_hidden_numbers)
    of_ranks = {*chain(*with_hidden_numbers)}
    for k, (node, emission, block, n_states) in enumerate(
        zip(layout.names[layout.n_tables :], model.emissions, model.prior.blocks[1:], model.n_states)
    ):
        with_table = [parent for parent in model.dag.parents(node) if parent in tables]
        if k in of_ranks:
            observed |= set(with_table)
            continue
        if emission.is_hidden:  # without children it tells nothing
            continue
        if emission.identifies_components or not with_table:
            n_of_emissions += block.n_free_parameters - n_redundant_parameters(emission, np.ones(n_states, dtype=bool))
            observed |= set(with_table)
            continue
        if emission.n_outcomes is None:
            raise ValueError(
                f"The identifiable dimension of a network with multinomial counts, such as those of node {node!r}, "
                "depends on the totals of the rows, and is not known here. Take dimension='free'."
            )
        columns = {(node, k): size for k, size in enumerate(emission.n_outcomes)}
        sizes |= columns
        parents |= dict.fromkeys(columns, with_table)
        observed |= columns.keys()
    nodes = sorted(sizes, key=str)
    return n_of_emissions + dimension.identifiable_dimension(DAG(nodes, parents), sizes, observed)


class DrivenNetworkSampler(CoefficientSampler, MixedNetworkSampler):
    """Draws of a network some of whose nodes covariates drive."""


class DrivenNetworkRelabelings(MixedNetworkRelabelings):
    """The relabelings of such a network, with densities of what coefficients are drawn from."""

    def relabelings(self, hidden: Sequence, limit: int = 50_000) -> Relabelings | None:
        """All of them, with sums over them where they are few."""
        return CoefficientRelabelings.of(super().relabelings(hidden, limit), self.model.prior)


def _of_driven(model: MixedNetwork) -> Capabilities:
    """The capabilities of a network some of whose nodes covariates drive; of hidden precisions no draws are known."""
    sampler = None
    if not any(isinstance(block, Hierarchical) for block in model.prior.blocks[-len(model.driven) :]):
        sampler = DrivenNetworkSampler(model, partial(log_z, model), model.completed)
    return Capabilities(
        points=sampler,
        annealing=sampler,
        metropolis=sampler,
        relabelings=DrivenNetworkRelabelings(model) if model.has_own_cells else None,
        entropy=partial(latent_entropy, model),
        information=partial(score_covariance, model),
    )


def capabilities_of(model: MixedNetwork) -> Capabilities:
    """The capabilities of a mixed network: all but counts by rows."""
    if model.driven:
        return _of_driven(model)
    sampler = MixedNetworkSampler(model, partial(log_z, model), model.completed)
    capabilities = Capabilities(
        points=sampler,
        annealing=sampler,
        batches=MixedNetworkBatches(model),
        metropolis=sampler,
        relabelings=MixedNetworkRelabelings(model) if model.has_own_cells else None,
        complete_evidence=model.prior.log_evidence,
        entropy=partial(latent_entropy, model),
        information=partial(score_covariance, model),
        dimension=partial(identifiable_dimension, model),
        enumeration=partial(log_evidence_by_enumeration, model),
    )
    return capabilities.with_hidden_hyperparameters(model.prior)
