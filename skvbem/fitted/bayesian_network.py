"""A discrete Bayesian network with known tables, as a value that can be asked: graph, states and tables."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from skvbem._arguments import check_count, check_flag, checked_names, is_collection, is_real
from skvbem._docstrings import share_texts
from skvbem._lazy import cached_property
from skvbem._names import did_you_mean, shown
from skvbem._tabular import html_table
from skvbem.data import Rows
from skvbem.errors import StructureError, TooLargeError
from skvbem.fitted.asking import AskedNetwork, code_of, mapping_of, nodes_asked
from skvbem.graphs.dag import DAG
from skvbem.models.network import queries
from skvbem.reading.categories import CategoryEncoder
from skvbem.reading.tables import Table, library_of, read_table
from skvbem.tables import LabeledTable, as_distributions

__all__ = ["Network"]

# Most rows drawn at once; by hand.
_MAX_ROWS = 100_000_000


@share_texts
@dataclass(frozen=True, eq=False, repr=False)
class Network:
    """A discrete Bayesian network: a graph, the states of each node and its table of probabilities.

    It answers questions exactly, by its junction tree, whether it comes from a file, from tables written down, or from
    a fit (`VBDiscreteDAG.network_`). Probabilities of zero are allowed. Two networks are equal when nodes, states (both
    in order) and tables are.

    Parameters
    ----------
    dag : DAG
        The graph, or what `DAG.coerce` makes one of, such as a list of (parent, child) edges.
    states : mapping
        Node -> its states, in order: names, numbers or booleans. NumPy scalars become the Python values they equal.
    tables : mapping
        Node -> p(node | parents), an array with one axis per parent, in the order of ``dag.parents(node)``, and a last
        axis for the node, along which it sums to one (to 1e-6). The arrays are copied and cannot be written to. Rows
        that miss one by more than the rounding of a sum of doubles are divided by their sum.

    Raises
    ------
    StructureError
        If nodes, states and tables do not fit together.
    ValueError
        If a table holds what is no probability.

    Examples
    --------
    >>> from skvbem.graphs.dag import DAG
    >>> from skvbem import Network, read_bif, write_bif
    >>> dag = DAG.from_string("[rain][wet|rain]")
    >>> states = {"rain": ("no", "yes"), "wet": ("no", "yes")}
    >>> network = Network(dag, states, {"rain": [0.8, 0.2], "wet": [[0.9, 0.1], [0.2, 0.8]]})
    >>> read_bif(write_bif(network)) == network
    True
    >>> round(network.query("rain", {"wet": "yes"})["rain":"yes"], 4)
    0.6667
    """

    dag: DAG
    states: Mapping
    tables: Mapping

    def __post_init__(self):
        for what, mapping in (("states", self.states), ("tables", self.tables)):
            if not isinstance(mapping, Mapping):
                raise TypeError(f"{what} of a Network must be a mapping of nodes. Got {shown(mapping)} instead.")
        if not isinstance(self.dag, DAG):
            object.__setattr__(self, "dag", DAG.coerce(self.dag, nodes=tuple(self.states)))
        for what, mapping in (("states", self.states), ("tables", self.tables)):
            if set(mapping) != set(self.dag.nodes):
                odd = sorted(map(repr, set(mapping) ^ set(self.dag.nodes)))
                raise StructureError(
                    f"{what} must name every node of the graph and no other. They differ in {', '.join(odd)}."
                )
        states = {node: _states(node, self.states[node]) for node in self.dag.nodes}
        tables = {}
        for node in self.dag.nodes:
            family = self.dag.family(node)
            tables[node] = _table(node, self.tables[node], family, tuple(len(states[member]) for member in family))
        object.__setattr__(self, "states", MappingProxyType(states))
        object.__setattr__(self, "tables", MappingProxyType(tables))

    @classmethod
    def from_networkx(cls, graph) -> Network:
        """The network of a directed networkx graph whose nodes have the attributes ``states`` and ``table``.

        The axes of a table are the parents in the order in which the graph lists its nodes, then the node, as
        `to_networkx` writes them.

        Raises
        ------
        StructureError
            If a node lacks one of the attributes, or they do not fit together.
        """
        dag = DAG.from_networkx(graph)
        for node in dag.nodes:
            lacking = [name for name in ("states", "table") if name not in graph.nodes[node]]
            if lacking:
                raise StructureError(
                    f"Node {shown(node)} of the networkx graph must have the attributes 'states' and 'table'. It has "
                    f"no {lacking[0]!r}."
                )
        nodes = graph.nodes
        return cls(dag, {node: nodes[node]["states"] for node in nodes}, {node: nodes[node]["table"] for node in nodes})

    def to_networkx(self):
        """A networkx.DiGraph whose nodes have the attributes ``states``, a tuple, and ``table``. Needs networkx."""
        graph = self.dag.to_networkx()
        for node in self.dag.nodes:
            graph.nodes[node].update(states=self.states[node], table=self.tables[node])
        return graph

    @property
    def cardinalities(self) -> dict:
        """Node -> its number of states."""
        return {node: len(states) for node, states in self.states.items()}

    def parameters(self, latents: str | Iterable[Hashable] = ()) -> dict:
        """Keyword arguments with which `VBDiscreteDAG` fits this network, its tables being the start.

        Parameters
        ----------
        latents : iterable of hashable
            The hidden nodes (a str is one); all others are columns of the data.

        Returns
        -------
        dict
            ``structure``, ``latents``, ``categories`` of the columns, and ``init``, this network.

        Raises
        ------
        StructureError
            If a latent is no node of the graph.

        Examples
        --------
        >>> dag, states = DAG.from_string("[h][y|h]"), {"h": (0, 1), "y": ("no", "yes")}
        >>> network = Network(dag, states, {"h": [0.5, 0.5], "y": [[0.9, 0.1], [0.2, 0.8]]})
        >>> network.parameters("h")["latents"], network.parameters("h")["categories"]
        ({'h': 2}, {'y': ('no', 'yes')})
        """
        hidden = dict.fromkeys(checked_names("latents", "parameters", latents))
        for node in hidden:
            if node not in self.states:
                raise StructureError(
                    f"Latent {shown(node)} is not a node of this network.{did_you_mean(node, self.dag.nodes)}"
                )
        return {
            "structure": self.dag,
            "latents": {node: len(self.states[node]) for node in hidden},
            "categories": {node: states for node, states in self.states.items() if node not in hidden},
            "init": self,
        }

    def smoothed(self, share: float) -> Network:
        """The network whose every distribution is (1 - share) of its own plus share of the uniform one.

        Without probabilities of 0 or 1 a network can be the start of a fit, which learns nothing where it begins
        certain.

        Parameters
        ----------
        share : float
            Above 0, at most 1.

        Raises
        ------
        ValueError
            If it is not.
        """
        if not is_real(share) or not 0 < share <= 1:
            raise ValueError(f"The share of the uniform distribution must be above 0 and at most 1. Got {share!r}.")
        tables = {node: (1 - share) * table + share / table.shape[-1] for node, table in self.tables.items()}
        return Network(self.dag, self.states, tables)

    # Asking -----------------------------------------------------------------------------------------------------------

    @cached_property
    def _asked(self) -> AskedNetwork:
        levels = {node: state_array(states) for node, states in self.states.items()}
        return AskedNetwork.of_tables(self.dag, self.tables, levels)

    def query(self, targets, evidence: Mapping | None = None, *, do: Mapping | None = None) -> LabeledTable:
        """Joint probability of some nodes given what is known of others, exact.

        Parameters
        ----------
        targets : node or list of nodes
        evidence : mapping of node to state, or to likelihoods, default=None
            Likelihoods, a mapping of states to numbers or a list of one number for each state, say how much better what
            was observed fits one state than another, in any unit (virtual evidence). A target may have likelihoods.
        %(do)s

        Returns
        -------
        LabeledTable
            One axis per target; sums to one.

        Raises
        ------
        ValueError
            If a node or a state is unknown, a node has two parts in the question, or the evidence is impossible.
        TooLargeError
            If a clique of the junction tree has more than 2^24 cells.

        Examples
        --------
        Smoking, tar and cancer, where a gene leads to both smoking and cancer [Pearl09 §3.3]:

        >>> dag = DAG.from_string("[gene][smokes|gene][tar|smokes][cancer|gene:tar]")
        >>> states = dict.fromkeys(dag.nodes, ("no", "yes"))
        >>> tables = {
        ...     "gene": [0.5, 0.5], "smokes": [[1, 0], [0, 1]], "tar": [[0.95, 0.05], [0.05, 0.95]],
        ...     "cancer": [[[0.9, 0.1], [0.95, 0.05]], [[0.1, 0.9], [0.15, 0.85]]],
        ... }
        >>> network = Network(dag, states, tables)
        >>> seen = network.query("cancer", {"smokes": "yes"})["cancer":"yes"]
        >>> done = network.query("cancer", do={"smokes": "yes"})["cancer":"yes"]
        >>> round(seen, 4), round(done, 4)
        (0.8525, 0.4525)
        """
        return self._asked.query(targets, evidence, do)

    def marginals(self, evidence: Mapping | None = None, *, do: Mapping | None = None) -> dict[Hashable, LabeledTable]:
        """Probabilities of every node given what is known of some, exact, by two passes over one junction tree.

        Parameters
        ----------
        evidence : mapping of node to state, or to likelihoods, default=None
            As `query` takes it.
        %(do)s

        Returns
        -------
        dict of node to LabeledTable
            All nodes in their order; what was observed or set is certain.

        Raises
        ------
        ValueError
            If a node or a state is unknown, a node is both seen and set, or the evidence is impossible.
        TooLargeError
            If a clique of the junction tree has more than 2^24 cells.

        Examples
        --------
        >>> dag = DAG.from_string("[rain][wet|rain]")
        >>> states = {"rain": ("no", "yes"), "wet": ("no", "yes")}
        >>> network = Network(dag, states, {"rain": [0.8, 0.2], "wet": [[0.9, 0.1], [0.2, 0.8]]})
        >>> marginals = network.marginals()
        >>> round(marginals["rain"]["rain":"yes"], 4), round(marginals["wet"]["wet":"yes"], 4)
        (0.2, 0.24)
        """
        return self._asked.marginals(evidence, do)

    def log_likelihood(self, X) -> np.ndarray:
        """ln p(row) of each row, nats; what is missing, and nodes without a column, are summed out.

        Parameters
        ----------
        X : pandas or polars DataFrame, or mapping of node to array-like of shape (n_samples,)
            States of some nodes or of all, in columns of their names; None and NaN are missing cells.

        Returns
        -------
        ndarray of shape (n_samples,)
            -inf for rows that are impossible.

        Raises
        ------
        ValueError
            If a column is no node, or a cell is no state of its node.
        """
        asked = self._asked
        return queries.log_likelihood(asked.model, asked.point, read_states(X, self.states))

    def predict_proba(self, X, nodes: Hashable | Iterable[Hashable] | None = None) -> dict:
        """Probabilities of nodes in each row, given what is observed of it.

        %(network.X, network.nodes -> dict of node to ndarray of shape (n_samples, n_states))s
            An observed node is certain. In an impossible row hidden nodes have the probabilities of an empty row.

        Raises
        ------
        %(network.ValueError)s
        """
        rows, nodes = self._rows_and_nodes(X, nodes)
        return queries.marginals(self._asked.model, self._asked.point, rows, nodes)

    def decode(self, X, nodes: Hashable | Iterable[Hashable] | None = None) -> dict:
        """The most probable joint state of each row's nodes (and of its missing cells), given what is observed of it.

        %(network.X, network.nodes -> dict of node to ndarray of shape (n_samples,))s
            States.

        Raises
        ------
        %(network.ValueError)s
        """
        rows, nodes = self._rows_and_nodes(X, nodes)
        modes = queries.joint_mode(self._asked.model, self._asked.point, rows, nodes)
        return {node: self._asked.levels[node][codes] for node, codes in modes.items()}

    def sample(
        self, n_samples: int = 1, random_state=None, *, given: Mapping | None = None, as_frame: bool = False
    ) -> Any:
        """Rows drawn from the network, as far as their states are not given.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, numpy Generator or None, default=None
        given : mapping of node to state, or pandas Series, default=None
            States that all rows have. The others are drawn from their joint distribution given these, exactly.
        as_frame : bool, default=False
            Whether a pandas DataFrame is returned.

        Returns
        -------
        dict of node to ndarray of shape (n_samples,), or DataFrame
            States, in the order of the nodes, as `pandas.DataFrame` and `log_likelihood` take them.

        Raises
        ------
        ValueError
            If a node or a state is unknown, or what is given is impossible.

        Examples
        --------
        >>> network = Network(DAG("[a][b|a]"), {"a": (0, 1), "b": (0, 1)}, {"a": [0.5, 0.5], "b": [[1, 0], [0, 1]]})
        >>> rows = network.sample(100, random_state=0)
        >>> bool((rows["a"] == rows["b"]).all())
        True
        """
        check_count("n_samples", "sample", n_samples)
        if n_samples > _MAX_ROWS:
            raise TooLargeError(
                f"'n_samples' of sample must be at most {_MAX_ROWS:,}. Got {n_samples:.3g}: ask for fewer."
            )
        check_flag("as_frame", "sample", as_frame)
        rng, asked = _generator(random_state), self._asked
        codes = {node: code_of(node, state, asked.levels) for node, state in mapping_of("given", given).items()}
        if codes:
            drawn = queries.sample_given(asked.model, asked.point, codes, int(n_samples), rng)
        else:
            drawn = queries.sample(asked.model, asked.point, int(n_samples), rng)
        rows = {node: asked.levels[node][drawn[node]] for node in self.dag.nodes}
        if not as_frame:
            return rows
        import pandas as pd

        return pd.DataFrame(rows)

    def _rows_and_nodes(self, X, nodes) -> tuple[Rows, tuple]:
        rows = read_states(X, self.states)
        if nodes is None:
            return rows, tuple(node for node in self.dag.nodes if node not in rows.names)
        return rows, nodes_asked(nodes, self._asked.levels)

    def __eq__(self, other):
        if not isinstance(other, Network):
            return NotImplemented
        same = self.dag == other.dag and self.dag.nodes == other.dag.nodes and self.states == other.states
        return same and all(np.array_equal(table, other.tables[node]) for node, table in self.tables.items())

    def __repr__(self):
        return f"Network({shown(str(self.dag))}, {sum(map(np.size, self.tables.values()))} probabilities)"

    def _repr_html_(self):
        rows = [
            [
                str(node),
                ", ".join(map(str, self.dag.parents(node))),
                ", ".join(map(str, states)),
                str(self.tables[node].size),
            ]
            for node, states in self.states.items()
        ]
        return html_table(
            ["node", "parents", "states", "probabilities"], rows, align="left", where_all="`tables` has all"
        )

    def __reduce__(self):
        return type(self), (self.dag, dict(self.states), dict(self.tables))


def _states(node, given) -> tuple:
    states = tuple(map(_plain, given)) if is_collection(given) else ()
    if not states or len(set(states)) < len(states):
        raise StructureError(f"Node {node!r} must have one state or more, all different. Got {given!r}.")
    return states


def _plain(state):
    return state.item() if isinstance(state, np.generic) else state


def _table(node, given, family, shape) -> np.ndarray:
    table = np.array(given, dtype=float)
    if table.shape != shape:
        raise StructureError(
            f"The table of node {node!r} must have the shape {shape}, an axis for each of {family}. "
            f"Got {table.shape} instead."
        )
    distributions = as_distributions(table)
    if distributions is None:
        raise ValueError(
            f"The table of node {node!r} must hold numbers >= 0 that sum to one over its last axis. Got {shown(given)}."
        )
    distributions.flags.writeable = False
    return distributions


def read_states(X, states: Mapping) -> Rows:
    """Rows of a user's table whose columns are nodes, in codes.

    Parameters
    ----------
    X : data frame, mapping of node to array-like, or pandas Series that is a row of a frame
    states : mapping of node to sequence
        The states of each node, in the order of their codes.

    Raises
    ------
    TypeError
        If columns have no names.
    ValueError
        If a column is no node, a cell is no state of its node, or columns differ in length.
    """
    if library_of(X, "Series") == "pandas" and len(X) and {*X.index} <= states.keys():
        X = {node: [state] for node, state in X.items()}
    names, table = _named_columns(X)
    for name in names:
        if name not in states:
            raise ValueError(f"Column {shown(name)} of X is not a node of this network.{did_you_mean(name, states)}")
    encoder = CategoryEncoder.of_levels("Network", [str(name) for name in names], [states[name] for name in names])
    return Rows(tuple(names), encoder.encode(table))


def state_array(states: Sequence) -> np.ndarray:
    """States as an array: of numbers or booleans where all are, else of objects."""
    kinds = {type(state) for state in states}
    return np.array(states) if kinds in ({int}, {float}, {bool}) else np.array(states, dtype=object)


def _named_columns(X) -> tuple[list, Table]:
    if isinstance(X, Mapping):
        columns = [np.asarray(column, dtype=object) for column in X.values()]
        lengths = sorted({column.shape for column in columns})
        if len(lengths) != 1 or len(lengths[0]) != 1:
            raise ValueError(f"The columns of X must be flat and of one length. Got columns of the shapes {lengths}.")
        return list(X), read_table(np.stack(columns, axis=1), "Network")
    table = read_table(X, "Network")
    if not table.has_own_names:
        raise TypeError(
            "X must name its columns, which are nodes: a data frame, or a mapping of nodes to columns. "
            f"Got a {type(X).__name__} without names."
        )
    return table.names, table


def _generator(random_state) -> np.random.Generator:
    """Random numbers from a seed, as `numpy.random.default_rng` has them."""
    seed: Any = object() if is_collection(random_state) else random_state  # a list is none, though NumPy takes it
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError):
        wanted = "None, an int >= 0 or a numpy.random.Generator"
        raise ValueError(
            f"The 'random_state' parameter of sample must be {wanted}. Got {shown(random_state)} instead."
        ) from None
