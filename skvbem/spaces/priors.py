"""Prior probabilities of the settings of a space.

A prior weighs a setting, up to a constant; over all settings of a space it is normalized. The names of latents being
arbitrary, what is weighed is a model, whichever labeled graph stands for it: with `labeled=True` a model counts as
often as the space has labeled graphs of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import inf, isnan, log, log1p
from typing import Any

import numpy as np
from scipy.special import logsumexp

from skvbem._arguments import is_real
from skvbem._names import did_you_mean, shown
from skvbem.errors import TooLargeError
from skvbem.graphs.dag import DAG
from skvbem.graphs.undirected import UndirectedGraph
from skvbem.spaces.base import MAX_LISTED, Space
from skvbem.spaces.settings import hidden_graph

__all__ = ["ClassPrior", "EdgePrior", "FunctionPrior", "StructurePrior", "UniformPrior", "coerce_prior", "n_edges"]


def n_edges(setting: Mapping) -> int:
    """The number of edges of the structure of a setting; ValueError if it has none."""
    return len(_graph(setting)[0].edges)


@dataclass(frozen=True, kw_only=True)
class StructurePrior(ABC):
    """A prior over the settings of a space.

    Parameters
    ----------
    labeled : bool, default=False
        Whether each model counts as often as the space has labeled graphs of it, see `Space.orbit_size`.
    """

    labeled: bool = False

    def log_weight(self, setting: Mapping, space: Space) -> float:
        """The log prior of a setting, in nats, up to a constant that all settings of the space share.

        Raises
        ------
        ValueError
            If it is not a number.
        """
        weight = self._log_weight(setting, space)
        if isnan(weight) or weight == inf:
            raise ValueError(f"The log prior must be finite or -inf. Got {weight} for {shown(setting)}.")
        return weight + log(space.orbit_size(setting)) if self.labeled else weight

    def log_prior(self, space: Space) -> np.ndarray:
        """The log prior of all settings of a space, normalized.

        Parameters
        ----------
        space : Space

        Returns
        -------
        ndarray of shape (n_settings,)
            In nats, in the order in which the space lists its settings.

        Raises
        ------
        ValueError
            If all settings have probability zero, or if the log prior of one is not a number.
        """
        weights = np.array([self.log_weight(setting, space) for setting in space])
        total = logsumexp(weights)
        if total == -inf:
            raise ValueError(f"{self} gives every setting of {shown(space)} probability zero. Allow at least one.")
        return weights - total

    @abstractmethod
    def _log_weight(self, setting: Mapping, space: Space) -> float:
        """The log weight of one labeled graph of the model."""


@dataclass(frozen=True)
class UniformPrior(StructurePrior):
    """A prior under which every model is equally likely, or, with `labeled`, every labeled graph.

    Parameters
    ----------
    labeled : bool, default=False
        See `StructurePrior`.

    Examples
    --------
    >>> from skvbem.spaces.priors import UniformPrior
    >>> from skvbem.spaces import BipartiteSpace
    >>> space = BipartiteSpace({"h0": 2, "h1": 2}, ["y"])
    >>> np.exp(UniformPrior().log_prior(space)).round(4).tolist()
    [0.3333, 0.3333, 0.3333]
    >>> np.exp(UniformPrior(labeled=True).log_prior(space)).round(4).tolist()
    [0.25, 0.5, 0.25]
    """

    def _log_weight(self, setting, space):
        return 0.0


@dataclass(frozen=True)
class EdgePrior(StructurePrior):
    r"""A prior to which every edge that is there adds its log odds: edges come independently, given the space.

    Parameters
    ----------
    probability : float or mapping
        The probability of an edge: one for all, or (parent, child) -> probability. In a mapping zero forbids an edge
        and one demands it; the ends of edges without a direction may stand in either order.
    default : float, default=0.5
        The probability of edges that the mapping does not name.
    labeled : bool, default=False
        See `StructurePrior`.

    Raises
    ------
    ValueError
        If a probability is none. Later, if the mapping names a node that no setting has, or if it tells exchangeable
        latents apart, which only their arbitrary names do.

    Notes
    -----
    The weight of a graph with edges E is :math:`\prod_{e \in E} p_e / (1 - p_e)`.

    Examples
    --------
    >>> from skvbem.spaces.priors import EdgePrior
    >>> from skvbem.spaces import DAGSpace
    >>> space = DAGSpace(["x", "y"])
    >>> np.exp(EdgePrior(0.75).log_prior(space)).round(4).tolist()
    [0.1429, 0.4286, 0.4286]
    >>> np.exp(EdgePrior({("x", "y"): 0.0}).log_prior(space)).round(4).tolist()
    [0.5, 0.0, 0.5]
    """

    probability: Any = 0.5
    default: float = 0.5

    def __post_init__(self):
        if isinstance(self.probability, Mapping):
            for edge, probability in self.probability.items():
                if not isinstance(edge, tuple) or len(edge) != 2:
                    raise ValueError(f"EdgePrior maps edges (parent, child) to probabilities. Got {shown(edge)}.")
                _check_probability(probability, f"the edge {edge[0]} -> {edge[1]}", closed=True)
            object.__setattr__(self, "probability", dict(self.probability))
        else:
            _check_probability(self.probability, "all edges", closed=False)
        _check_probability(self.default, "edges without their own", closed=False)

    def log_prior(self, space: Space) -> np.ndarray:
        """The log prior of all settings of a space, normalized."""
        unknown = {node for edge in self._by_edge for node in edge}
        nodes: set = set()
        for setting in space if unknown else ():
            nodes.update(_graph(setting)[0].nodes)
            if unknown <= nodes:
                break
        for node in sorted(unknown - nodes, key=str):
            raise ValueError(
                f"EdgePrior names {shown(node)}, which is a node of no setting.{did_you_mean(node, nodes)}"
            )
        return super().log_prior(space)

    def _log_weight(self, setting, space):
        graph, latents = _graph(setting)
        self._check_exchangeable(latents)
        edges = list(map(self._as_named, graph.edges)) if isinstance(graph, UndirectedGraph) else graph.edges
        demanded = {edge for edge, probability in self._by_edge.items() if probability == 1}
        if not demanded <= set(edges):
            return -inf
        return sum(_log_odds(self._of(edge)) for edge in edges if edge not in demanded)

    def _as_named(self, edge: tuple) -> tuple:
        """An edge without a direction, its ends in the order in which the mapping has them."""
        return edge[::-1] if edge[::-1] in self._by_edge else edge

    @property
    def _by_edge(self) -> Mapping:
        return self.probability if isinstance(self.probability, Mapping) else {}

    def _of(self, edge):
        return self._by_edge.get(edge, self.default) if isinstance(self.probability, Mapping) else self.probability

    def _check_exchangeable(self, latents):
        for one, other in combinations(latents, 2) if self._by_edge else ():
            swap = {one: other, other: one}
            for edge in self._by_edge if latents[one] == latents[other] else ():
                image = tuple(swap.get(node, node) for node in edge)
                if self._of(edge) != self._of(image):
                    raise ValueError(
                        f"EdgePrior gives the edge {edge[0]} -> {edge[1]} the probability {self._of(edge)}, and "
                        f"{image[0]} -> {image[1]} {self._of(image)}; but {shown(one)} and {shown(other)} are "
                        "exchangeable, their names arbitrary. Give both edges one probability."
                    )


@dataclass(frozen=True)
class ClassPrior(StructurePrior):
    """A prior under which classes of settings are equally likely, and within a class every model, or labeled graph.

    Parameters
    ----------
    by : callable, default=n_edges
        Setting -> the class it belongs to, any hashable. By default settings with as many edges form a class.
    labeled : bool, default=False
        See `StructurePrior`.

    Notes
    -----
    The sizes of the classes are counted by going through the space once, so that spaces of more than a million settings
    are refused with their number.

    Examples
    --------
    >>> from skvbem.spaces.priors import ClassPrior
    >>> from skvbem.spaces import DAGSpace
    >>> np.exp(ClassPrior().log_prior(DAGSpace(["x", "y"]))).round(4).tolist()
    [0.5, 0.25, 0.25]
    """

    by: Callable[[Mapping], Hashable] = n_edges

    def _log_weight(self, setting, space):
        return -log(_class_sizes(self, space)[self.by(setting)])


@dataclass(frozen=True)
class FunctionPrior(StructurePrior):
    """A prior whose logarithm is a function of the setting, up to a constant.

    Parameters
    ----------
    function : callable
        Setting -> log weight, in nats; -inf rules the setting out.
    labeled : bool, default=False
        See `StructurePrior`.

    Examples
    --------
    >>> from skvbem.spaces.priors import FunctionPrior
    >>> from skvbem.spaces import GridSpace
    >>> prior = FunctionPrior(lambda setting: -setting["n_components"] * np.log(2))
    >>> np.exp(prior.log_prior(GridSpace({"n_components": [1, 2]}))).round(4).tolist()
    [0.6667, 0.3333]
    """

    function: Callable[[Mapping], float]

    def _log_weight(self, setting, space):
        return float(self.function(setting))


def coerce_prior(prior) -> StructurePrior:
    """The structure prior that a name, a probability of edges, or a function stands for.

    Parameters
    ----------
    prior : StructurePrior, None, str, float, mapping or callable
        None and ``"uniform"`` mean every model equally likely, ``"labeled"`` every labeled graph, ``"n_edges"`` every
        number of edges. A number is the probability of an edge, a mapping gives edges theirs (see `EdgePrior`). A
        callable returns the log weight of a setting.

    Raises
    ------
    TypeError
        If it is none of these.

    Examples
    --------
    >>> from skvbem.spaces.priors import coerce_prior
    >>> coerce_prior(0.25)
    EdgePrior(labeled=False, probability=0.25, default=0.5)
    """
    if prior is None:
        return UniformPrior()
    if isinstance(prior, str) and prior in _NAMED:
        return _NAMED[prior]
    if isinstance(prior, StructurePrior):
        return prior
    if isinstance(prior, Mapping) or (is_real(prior)):
        return EdgePrior(prior)
    if callable(prior):
        return FunctionPrior(prior)
    raise TypeError(
        f"A prior over structures must be one of {', '.join(map(repr, _NAMED))}, a probability of edges, a mapping of "
        f"edges to probabilities, a callable or a StructurePrior. Got {shown(prior)} instead."
    )


_NAMED: dict[str, StructurePrior] = {
    "uniform": UniformPrior(),
    "labeled": UniformPrior(labeled=True),
    "n_edges": ClassPrior(),
}


@lru_cache(maxsize=8)
def _class_sizes(prior: ClassPrior, space: Space) -> Counter:
    if space.has_more_than(MAX_LISTED):
        raise TooLargeError(
            f"ClassPrior counts its classes by going through the space, of up to {MAX_LISTED:,} settings; "
            f"{type(space).__name__} has {space.n_settings_in_words()}. Take a probability of edges (EdgePrior) or a "
            "function of the setting (FunctionPrior), or say more in the space (max_parents, tiers, forbidden edges)."
        )
    sizes: Counter = Counter()
    for setting in space:
        sizes[prior.by(setting)] += space.orbit_size(setting) if prior.labeled else 1
    return sizes


def _graph(setting: Mapping) -> tuple[DAG | UndirectedGraph, dict]:
    if (graph_and_latents := hidden_graph(setting)) is None:
        raise ValueError(f"A prior over edges needs settings with a structure. Got {shown(setting)}.")
    return graph_and_latents


def _log_odds(probability: float) -> float:
    return log(probability) - log1p(-probability) if probability > 0 else -inf


def _check_probability(value: Any, whose: str, *, closed: bool) -> None:
    ends = (0, 1) if closed else ()
    if not is_real(value) or not (0 < float(value) < 1 or value in ends):
        what = "from 0 to 1" if closed else "between 0 and 1"
        raise ValueError(f"EdgePrior needs a probability {what} for {whose}. Got {shown(value)} instead.")
