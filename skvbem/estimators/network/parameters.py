"""Structure, latents and priors of a network from the parameters of an estimator, with errors that name them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from numbers import Real
from typing import Any, Self

import numpy as np

from skvbem._arguments import is_collection, is_option, is_real, is_whole
from skvbem._lazy import cached_property
from skvbem._names import did_you_mean, first_few
from skvbem._progress import LOGGER, is_candidate
from skvbem.errors import StructureError, TooLargeError, warn
from skvbem.estimators.network.ties import check_categories_of_ties, check_priors_of_ties, resolve_ties
from skvbem.estimators.network.undirected import check_is_hyper_dirichlet, perfect_dag
from skvbem.families.dirichlet import EqualConcentration
from skvbem.families.dirichlet_mixture import AveragedConcentration
from skvbem.fitting.fit import n_starts_of
from skvbem.graphs.dag import DAG
from skvbem.graphs.undirected import UndirectedGraph, is_undirected
from skvbem.reading.network import NetworkReading
from skvbem.reading.tables import MAX_NAMED_COLUMNS, named_columns
from skvbem.spaces.settings import check_latent_names


@dataclass(frozen=True, eq=False)
class CandidateNetwork:
    """The network that an estimator fits to some columns.

    Parameters
    ----------
    dag : DAG
        Over latents and columns, nodes in that order.
    latents : dict
        Latent -> number of states.
    cardinalities : dict
        Node -> number of states.
    given_prior : float, str or mapping
        The `prior` parameter.
    equivalent_sample_size : float
    owner : str
        Name of the estimator's class, for messages.
    max_table_cells : int
    max_memory : float
        Bytes.
    n_starts : int
        How many copies of all tables a fit has.
    undirected : UndirectedGraph or None
        The structure, if an undirected one was given: `dag` is then one of the graphs that say the same.
    ties : mapping of node to tuple, optional
        Nodes whose tables are those of others, see `resolve_ties`.
    """

    dag: DAG
    latents: dict
    cardinalities: dict
    given_prior: Any
    equivalent_sample_size: float
    owner: str
    max_table_cells: int
    max_memory: float
    n_starts: int
    undirected: UndirectedGraph | None = None
    ties: Mapping = field(default_factory=dict)

    @classmethod
    def of(cls, estimator, reading: NetworkReading) -> Self:
        """The network that the parameters of an estimator describe.

        Parameters
        ----------
        estimator : estimator
        reading : NetworkReading
            In which columns are observed more or less: by that, an undirected structure is given directions.
        """
        owner, columns = type(estimator).__name__, reading.rows.names
        latents = resolve_latents(estimator.latents, estimator.structure, owner)
        undirected = None
        if estimator.structure is not None and is_undirected(estimator.structure):
            if reading.has_interventions:
                raise ValueError(
                    f"'interventions' of {owner} need a directed 'structure', in which causes come before effects: an "
                    "undirected one does not say which tables a node that was set leaves out."
                )
            undirected = resolve_undirected(estimator.structure, latents, columns, owner)
            # axes of tables that a user gives are those that the user can know
            order = reading.observed_weight() if by_node(estimator.prior) is None else None
            dag = perfect_dag(undirected, (*latents, *columns), order)
        else:
            dag = resolve_structure(estimator.structure, latents, columns, owner)
        cardinalities = {**latents, **dict(zip(columns, reading.columns.n_categories_.tolist()))}
        ties = {}
        if estimator.ties is not None:
            ties = resolve_ties(estimator.ties, dag, cardinalities, owner)
            check_categories_of_ties(ties, dag, dict(zip(reading.columns.names_, reading.columns.categories_)), owner)
        if ties and undirected is not None:
            raise ValueError(
                f"The 'ties' parameter of {owner} is for directed structures: tables of an undirected one belong to "
                "directions that it does not have. Give DAG.from_chordal(structure)."
            )
        limits = estimator.max_table_cells, estimator.max_memory, n_starts_of(estimator)
        return cls(
            dag,
            latents,
            cardinalities,
            estimator.prior,
            estimator.equivalent_sample_size,
            owner,
            *limits,
            undirected,
            ties,
        )

    def prior(self) -> dict:
        """Dirichlet concentrations of every node, axes (*parents, node), or alternatives of them, one after another."""
        self.check_prior()
        prior = {node: self.family_prior(self.dag.family(node), self.cardinalities) for node in self.dag.nodes}
        if self.ties:
            check_priors_of_ties(self.ties, self.dag, prior, self.owner)
        return prior

    @property
    def n_free_parameters(self) -> int:
        """Cells less one per distribution, over all tables, a tied one counted once."""
        sizes = self.cardinalities
        return sum(n - n // sizes[node] for node, n in self._n_cells.items() if node not in self.ties)

    @cached_property
    def _n_cells(self) -> dict[Hashable, int]:
        """Cells of the table of each node."""
        sizes, parents_of = self.cardinalities, self.dag.parents
        return {node: prod(map(sizes.__getitem__, parents_of(node)), start=sizes[node]) for node in self.dag.nodes}

    def check_prior(self) -> None:
        """Raise a ValueError if the prior is none, whatever the parents of nodes: tables must fit these as well."""
        named = by_node(self.given_prior) or {}
        strange = [node for node in named if node not in self.cardinalities]
        if strange:
            raise ValueError(
                f"The 'prior' parameter of {self.owner} names {strange[0]!r}, which is not a node of the structure."
                f"{did_you_mean(strange[0], self.dag.nodes)}"
            )
        for node in named or self.dag.nodes[:1]:
            if self.equal_concentration(node) is not None:
                self.family_prior((node,), self.cardinalities)
        if self.undirected is not None:

            def concentrations(family: tuple) -> np.ndarray:
                return self.family_prior(family, self.cardinalities)

            check_is_hyper_dirichlet(self.dag, self.given_prior, concentrations, self.owner)

    def family_prior(self, family: tuple, cardinalities: Mapping) -> np.ndarray:
        """Dirichlet concentrations of one node, the last of any family, axes (*parents, node).

        Where their strength is hidden, alternatives are a further axis, the first.
        """
        whose, names_nodes = f"The 'prior' parameter of {self.owner}", by_node(self.given_prior) is not None
        node, shape = family[-1], tuple(cardinalities[member] for member in family)
        given, equal = self._given(node), self.equal_concentration(node)
        values = equal.table(shape) if equal is not None else as_floats(given) if names_nodes else None
        if values is None:
            raise ValueError(
                f"{whose} must be 'auto', a number > 0 (per cell), 'bdeu', 'bdla', 'per_row', or a mapping of nodes to "
                f"these or to arrays. Got {given!r} {f'for node {node!r}' if names_nodes else 'instead'}."
            )
        if values.shape[-len(shape) :] != shape or (equal is None and values.ndim > len(shape)):
            axes = ", ".join(f"{member!r} ({cardinalities[member]})" for member in family)
            raise ValueError(
                f"{whose}, for node {node!r}, must have the shape {shape}: one axis for each parent in this order, "
                f"then the node itself, {axes}. Got shape {values.shape} instead."
            )
        good = np.isfinite(values) & (values > 0)
        if not good.all():
            raise ValueError(
                f"{whose}{f', for node {node!r},' if names_nodes else ''} must hold finite concentrations > 0. "
                f"Got {float(values[~good][0])!r} instead."
            )
        return values

    def equal_concentration(self, node: Hashable) -> EqualConcentration | AveragedConcentration | None:
        """The prior of a node where it is equal in all cells, whatever the parents; None where tables are given."""
        given = self._given(node)
        if is_option(given, "auto"):
            return EqualConcentration(1.0, "cell")
        if is_option(given, "bdla"):
            return AveragedConcentration()
        if is_option(given, "bdeu", "per_row"):
            return EqualConcentration(self.equivalent_sample_size, "table" if given == "bdeu" else "row")
        is_number = is_real(given)
        return EqualConcentration(float(given), "cell") if is_number else None

    def check_size(self) -> None:
        """Refuse tables larger than the limits, before anything is allocated."""
        for node, cells in self._n_cells.items():
            if cells > self.max_table_cells:
                raise TooLargeError(
                    f"The table of node {node!r} ({self.cardinalities[node]} states; parents: "
                    f"{first_few(self.dag.parents(node)) or 'none'}) has {cells:.4g} cells; 'max_table_cells' allows "
                    f"{self.max_table_cells:.4g}. Give it fewer parents, give nodes fewer states, or raise the limit."
                )
        total = sum(self._n_cells.values())
        if 8 * total * self.n_starts > self.max_memory:
            raise TooLargeError(
                f"The tables of all {len(self.dag.nodes)} nodes have {total:.4g} cells, which take at least "
                f"{8.0 * total * self.n_starts:.4g} bytes in {self.n_starts} starts; 'max_memory' allows "
                f"{self.max_memory:.4g}. Raise it, take fewer starts, or give nodes fewer states or fewer parents."
            )

    def _given(self, node: Hashable) -> Any:
        named = by_node(self.given_prior)
        return self.given_prior if named is None else named.get(node, 1.0)


def by_node(prior: Any) -> Mapping | None:
    """What a `prior` parameter says of single nodes; None where it is one for all."""
    return prior if isinstance(prior, Mapping) else None


def has_hidden_strengths(prior: Any) -> bool:
    """True if a `prior` parameter names "bdla", for some node at least."""
    named = by_node(prior)
    return any(is_option(each, "bdla") for each in ([prior] if named is None else named.values()))


def prior_in_words(estimator: Any) -> list[str]:
    """The prior of tables that a fit took, in words, and what a named one is shared out of."""
    prior, size = estimator.prior, estimator.equivalent_sample_size
    words = [f"prior={1.0 if is_option(prior, 'auto') else prior!r}"]
    return [*words, f"equivalent_sample_size={size!r}"] if is_option(prior, "bdeu", "per_row") else words


def resolve_latents(latents, structure, owner: str) -> dict:
    """Latent names and their numbers of states, in the order given."""
    if latents is None:
        return {"h0": 2} if structure is None else {}
    if is_whole(latents):
        latents = {"h0": latents}
    if not isinstance(latents, Mapping):
        names = list(latents) if is_collection(latents) else [None]
        if not all(isinstance(name, Hashable) and name is not None and not isinstance(name, Real) for name in names):
            raise TypeError(
                f"The 'latents' parameter of {owner} must be a mapping of latent names to their numbers of states, a "
                f"list of names (2 states each), or one number of states. Got {latents!r} instead."
            )
        if len(set(names)) < len(names):
            raise StructureError(f"The 'latents' parameter of {owner} names a latent twice: {names!r}.")
        latents = dict.fromkeys(names, 2)
    check_latent_names(latents, owner)
    for name, n_states in latents.items():
        if not is_whole(n_states) or n_states < 1:
            of_number = " VBNetwork takes 'number' for one that holds a number." if isinstance(n_states, str) else ""
            raise ValueError(
                f"The 'latents' parameter of {owner} must give latent {name!r} an int >= 1 as its number of states. "
                f"Got {n_states!r} instead.{of_number}"
            )
    return {name: int(n_states) for name, n_states in latents.items()}


def resolve_structure(structure, latents: Mapping, columns: tuple, owner: str) -> DAG:
    """The DAG over latents and columns, nodes in that order; without a structure, one class above all columns."""
    _check_names(latents, columns)
    if structure is None:
        if len(latents) != 1:
            raise StructureError(
                f"Without a 'structure', {owner} fits one latent class with every column below it; 'latents' declares "
                f"{len(latents)}: {', '.join(map(repr, latents)) or 'none'}. Give a structure, such as a list of "
                "(parent, child) edges."
            )
        (root,) = latents
        return DAG.naive_bayes(root, columns)
    order = (*latents, *columns)
    if isinstance(structure, DAG) and structure.nodes == order:
        return structure
    dag = DAG.coerce(structure, nodes=order)
    _check_known(dag.nodes, latents, columns)
    return dag if dag.nodes == order else dag.reorder(order)


def resolve_undirected(structure, latents: Mapping, columns: tuple, owner: str) -> UndirectedGraph:
    """The undirected graph over latents and columns, checked to be chordal."""
    _check_names(latents, columns)
    graph = UndirectedGraph.coerce(structure, nodes=(*latents, *columns))
    _check_known(graph.nodes, latents, columns)
    graph.check_chordal()
    return graph


def _check_names(latents: Mapping, columns: tuple) -> None:
    both = [name for name in latents if name in columns]
    if both:
        raise StructureError(
            f"Latent {both[0]!r} is also a column of X. Rename the latent; a column that is partly observed is no "
            "latent, its missing cells are summed out."
        )


def _check_known(nodes: tuple, latents: Mapping, columns: tuple) -> None:
    known = {*latents, *columns}
    strange = [node for node in nodes if node not in known]
    if strange:
        raise StructureError(
            f"Node {strange[0]!r} of the structure is neither a column of X nor a declared latent."
            f"{did_you_mean(strange[0], known)} Columns: {first_few(columns) or 'none'}; "
            f"latents: {first_few(latents) or 'none'}. Declare hidden "
            f"nodes with their numbers of states, as in latents={{{strange[0]!r}: 2}}."
        )


def warn_of_oddities(dag: DAG, latents: Mapping, n_samples: float, *, is_undirected: bool = False) -> None:
    """Warn of latents that cannot explain anything."""
    why = "has only neighbors that are neighbors of each other" if is_undirected else "has no children"
    for name, n_states in latents.items():
        if n_states > n_samples:
            warn(f"Latent {name!r} has {n_states} states for rows of total weight {n_samples:g}: some must stay empty.")
        if not dag.children(name):
            warn(f"Latent {name!r} {why}: it does not change the score.")


def log_unnamed_columns(structure, columns: Sequence, owner: str) -> None:
    """Name in the log the columns that a structure does not name: no fault, but nodes that may not be meant.

    Nothing is said of a structure without any node, nor of the candidates of a search.
    """
    if structure is None or is_candidate():
        return
    graph: DAG | UndirectedGraph = (UndirectedGraph if is_undirected(structure) else DAG).coerce(structure)
    unnamed = [column for column in columns if column not in graph.nodes]
    if unnamed and graph.nodes:
        several, those = len(unnamed) > 1, repr(unnamed) if len(unnamed) <= MAX_NAMED_COLUMNS else "[...]"
        LOGGER.warning(
            f"{named_columns(unnamed)} of X {'are' if several else 'is'} not in the 'structure' of {owner}: "
            f"{'they are nodes' if several else 'it is a node'} without edges, which bounds and scores are of, too. "
            f"Leave {'them' if several else 'it'} out, as by X.drop(columns={those}), or name "
            f"{'them' if several else 'it'}, as by {type(graph).__name__}.coerce(structure, nodes={those})."
        )


def as_floats(given) -> np.ndarray | None:
    """An array, or None if it cannot be made one of numbers."""
    if given is None or isinstance(given, (str, bool)):
        return None
    try:
        return np.array(given, dtype=float)
    except (TypeError, ValueError):
        return None
