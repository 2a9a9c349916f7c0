"""Questions to a network with known tables: what is probable given what was seen, what is likely, and what was set."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from skvbem._arguments import is_among, is_collection
from skvbem._names import did_you_mean, shown
from skvbem.data import Rows
from skvbem.errors import PosteriorWarning, warn
from skvbem.graphs.dag import DAG
from skvbem.graphs.paths import is_identified
from skvbem.models.network import queries
from skvbem.models.network.model import DiscreteDAG
from skvbem.reading.tables import is_missing_value, library_of, listed
from skvbem.tables import LabeledTable, state_code


@dataclass(frozen=True)
class Asked:
    """A query, checked and in codes.

    Parameters
    ----------
    targets : tuple
        Nodes.
    seen : dict of node to int
        Codes of states that were observed.
    likelihoods : dict of node to ndarray of shape (n_states,)
        How likely what was observed is in each state of a node, in any unit.
    actions : dict of node to int
        Codes of states that were set.
    """

    targets: tuple
    seen: dict
    likelihoods: dict
    actions: dict


@dataclass(frozen=True, eq=False)
class AskedNetwork:
    """A network at one point: the model, its tables, and the states of its nodes as users know them.

    Parameters
    ----------
    model : DiscreteDAG
    point : ndarray of shape (n_cells,)
    levels : mapping of node to ndarray
    limits : mapping
        `max_table_cells` and `max_memory`, as `DiscreteDAG.compile` takes them.
    hidden : tuple
        Nodes of which data say nothing by themselves, where the tables were found from data.
    """

    model: DiscreteDAG
    point: np.ndarray
    levels: Mapping
    limits: Mapping[str, Any] = field(default_factory=dict)
    hidden: tuple = ()

    @classmethod
    def of_tables(cls, dag: DAG, tables: Mapping, levels: Mapping, limits: Mapping[str, Any] | None = None) -> Self:
        """The network of given tables, axes (*parents, node)."""
        sizes = {node: len(levels[node]) for node in dag.nodes}
        model = DiscreteDAG(dag, sizes, {node: np.ones(np.shape(tables[node])) for node in dag.nodes})
        return cls(model, model.flat(tables), levels, limits or {})

    def query(self, targets, evidence: Mapping | None, do: Mapping | None) -> LabeledTable:
        """The joint probability of some nodes; see `Network.query`."""
        asked = self.asked(targets, evidence, do)
        if asked.actions and self.hidden:
            self._warn_of_effects(asked)
        changed, row = self.under(asked)
        joint, impossible = queries.joint_if_possible(changed.model, changed.point, row, asked.targets, **self.limits)
        _check_possible(impossible, evidence)
        return LabeledTable(joint[0], asked.targets, tuple(self.levels[node] for node in asked.targets))

    def marginals(self, evidence: Mapping | None, do: Mapping | None) -> dict[Hashable, LabeledTable]:
        """The probabilities of every node; see `Network.marginals`."""
        asked = self._parts(tuple(self.levels), evidence, do)
        parts = [*asked.seen, *asked.likelihoods, *asked.actions]
        if len(set(parts)) < len(parts):
            raise ValueError("marginals takes each node once: it may not be both seen and set.")
        if asked.actions and self.hidden:
            self._warn_of_effects(replace(asked, targets=tuple(node for node in asked.targets if node not in parts)))
        changed, row = self.under(asked)
        by_node, impossible = queries.marginals_if_possible(
            changed.model, changed.point, row, asked.targets, **self.limits
        )
        _check_possible(impossible, evidence)
        return {node: LabeledTable(by_node[node][0], (node,), (levels,)) for node, levels in self.levels.items()}

    def asked(self, targets, evidence: Mapping | None, do: Mapping | None) -> Asked:
        """A query of a user, checked."""
        asked = self._parts(nodes_asked(targets, self.levels), evidence, do)
        nodes, likelihoods = asked.targets, asked.likelihoods
        named = [*nodes, *asked.seen, *likelihoods.keys() - set(nodes), *asked.actions]
        if not nodes or len(set(named)) < len(named):
            raise ValueError(
                "query needs one or more targets, each named once and not also in the evidence or in do, unless by "
                "likelihoods. No node may be both seen and set."
            )
        return asked

    def _parts(self, nodes: tuple, evidence: Mapping | None, do: Mapping | None) -> Asked:
        """What is known of nodes, in codes, with those asked for."""
        seen, likelihoods, actions = {}, {}, {}
        for node, what in mapping_of("evidence", evidence).items():
            if isinstance(what, (Mapping, list, np.ndarray)):
                likelihoods[node] = self._likelihood(node, what)
            else:
                seen[node] = code_of(node, what, self.levels)
        for node, state in mapping_of("do", do).items():
            actions[node] = code_of(node, state, self.levels)
        return Asked(nodes, seen, likelihoods, actions)

    def under(self, asked: Asked) -> tuple[AskedNetwork, Rows]:
        """The network once nodes are set, with a child for each likelihood, and its row of observations.

        A node that is set loses its parents [Pearl09 §1.3]. A likelihood is that of one observed state of a new child.
        """
        seen = asked.seen | asked.actions
        if not asked.likelihoods and not asked.actions:
            return self, _row(seen)
        dag, tables = self.model.dag, dict(self.model.tables(self.point))
        parents = {node: () if node in asked.actions else dag.parents(node) for node in dag.nodes}
        for node, code in asked.actions.items():
            tables[node] = np.eye(len(self.levels[node]))[code]
        levels = dict(self.levels)
        for node, likelihood in asked.likelihoods.items():
            child = ("what was observed of", node)
            parents[child], levels[child] = (node,), np.arange(2)
            tables[child] = np.stack([likelihood, likelihood.max() - likelihood], axis=1) / likelihood.max()
            seen[child] = 0
        changed = self.of_tables(DAG(tuple(parents), parents), tables, levels, self.limits)
        return changed, _row(seen)

    def _warn_of_effects(self, asked: Asked) -> None:
        """Warn where data cannot say what setting nodes does, since hidden nodes may have a hand in it."""
        evidence = {*asked.seen, *asked.likelihoods}
        warn_of_unidentified(self.model.dag, self.hidden, asked.targets, asked.actions, evidence)

    def _likelihood(self, node, given) -> np.ndarray:
        """Likelihoods of a node's states, from a mapping of states or a number for each."""
        nodes_asked([node], self.levels)
        n_states = len(self.levels[node])
        if isinstance(given, Mapping):
            likelihood = np.zeros(n_states)
            for state, number in given.items():
                likelihood[code_of(node, state, self.levels)] = number
        else:
            likelihood = np.asarray(given, dtype=float)
        right = likelihood.shape == (n_states,) and np.isfinite(likelihood).all() and (likelihood >= 0).all()
        if not right or not likelihood.any():
            raise ValueError(
                f"The likelihoods of {node!r} must be {n_states} finite numbers >= 0, not all 0, or a mapping of "
                f"states to such. Got {shown(given)} instead."
            )
        return likelihood


def _check_possible(impossible: np.ndarray, evidence: Mapping | None) -> None:
    if impossible[0]:
        raise ValueError(
            f"The evidence {shown(evidence)} has probability 0 under these tables: nothing follows from it."
        )


def mapping_of(what: str, given: Any) -> Mapping:
    """States or likelihoods of nodes, from a mapping of nodes or a pandas Series."""
    if given is None:
        return {}
    if library_of(given, "Series") == "pandas":  # a row of a frame, whose missing cells say nothing
        given = {node: state for node, state in given.items() if not is_missing_value(state)}
    if not isinstance(given, Mapping):
        call = "sample" if what == "given" else "query"
        raise TypeError(f"The {what} of a {call} must be a mapping of nodes to states. Got {shown(given)} instead.")
    return given


def warn_of_unidentified(dag: DAG, hidden: Collection, targets: Collection, actions: Collection, evidence: Set) -> None:
    """Warn where data cannot say what setting some nodes does to others, since hidden ones may have a hand in it."""
    parents = {node: dag.parents(node) for node in dag.nodes}
    if not is_identified(parents, set(hidden), set(targets), set(actions), evidence - set(targets)):
        warn(
            f"What setting {_listed(actions)} does to {_listed(targets)} is not identified: with {_listed(hidden)} "
            "hidden, networks that fit the data alike answer differently. This answer comes from the tables that were "
            "found. It rests on their prior and on where the fit ended.",
            PosteriorWarning,
        )


def _listed(nodes: Iterable) -> str:
    return ", ".join(map(repr, nodes))


def _row(codes: Mapping) -> Rows:
    return Rows(tuple(codes), np.array(list(codes.values()), dtype=np.int32).reshape(1, len(codes)))


def nodes_asked(targets, levels: Mapping[Hashable, np.ndarray], numbers: Collection[Hashable] = ()) -> tuple:
    """Targets of a query, one node or several, as a tuple of nodes that have states.

    Parameters
    ----------
    targets : node or iterable of nodes
    levels : mapping of node to ndarray
        The states of each node.
    numbers : collection of hashable
        Nodes and columns that hold numbers, and no states.
    """
    targets = (targets,) if not is_collection(targets) or is_among(targets, levels) else tuple(targets)
    for node in targets:
        if is_among(node, numbers):
            raise ValueError(f"{node!r} has no table that 'query' could read. Take 'impute' or 'sample'.")
        _check_node(node, levels)
    return targets


def code_of(node, state, levels: Mapping[Hashable, np.ndarray]) -> int:
    """The position of a state among those of its node; ValueError if it is none of them."""
    _check_node(node, levels)
    code = state_code(state, levels[node])
    if code is None:
        states = ", ".join(map(repr, levels[node].tolist()))
        raise ValueError(f"{state!r} is not a state of {node!r}, whose states are {states}.")
    return code


def _check_node(node, levels: Mapping[Hashable, np.ndarray]) -> None:
    if not is_among(node, levels):
        nodes = listed(map(repr, levels))
        raise ValueError(f"{node!r} is not a node of this network.{did_you_mean(node, levels)} Its nodes are {nodes}.")
