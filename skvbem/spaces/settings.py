"""Settings of an estimator, and what makes two of them one model.

A setting maps parameters of an estimator to values. The names of latents are arbitrary: settings whose graphs differ
only by a renaming of hidden nodes that keeps numbers of states have one key, whatever the names are. Everything else
is told apart by value.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from math import factorial, isnan, prod
from numbers import Real
from typing import Any

import numpy as np

from skvbem._arguments import NUMBER, check_mapping, is_option, is_whole
from skvbem._names import shown
from skvbem.errors import StructureError
from skvbem.graphs.dag import DAG
from skvbem.graphs.undirected import UndirectedGraph, is_undirected

__all__ = [
    "canonical",
    "check_latent_names",
    "distinct",
    "hidden_graph",
    "n_relabeled_graphs",
    "resolve_latents",
    "value_key",
]


def canonical(setting: Mapping) -> Hashable:
    """A key of the model of a setting: equal for two settings if and only if they describe the same model.

    Parameters
    ----------
    setting : mapping of str
        Values of an estimator's parameters. `structure` is taken as a graph where it can be read as one (see
        `coerce_structure`), and `latents` as its hidden nodes.

    Returns
    -------
    hashable
        It depends neither on the order of parameters, nodes and edges, nor on the names of latents.

    Notes
    -----
    A prior of the estimator that tells latents apart by name makes models of what has one key here: it has no place
    in a search over structures.

    Examples
    --------
    >>> from skvbem.spaces.settings import canonical
    >>> one = {"structure": "[h0][h1][y|h0]", "latents": {"h0": 2, "h1": 3}}
    >>> other = {"structure": "[h0][h1][y|h1]", "latents": {"h0": 3, "h1": 2}}
    >>> canonical(one) == canonical(other)
    True
    >>> canonical({"n_components": 2}) == canonical({"n_components": 3})
    False
    """
    check_mapping("setting", "canonical", setting, "{'n_components': 2}")
    rest = dict(setting)
    parts = []
    if (graph_and_latents := hidden_graph(setting)) is not None:
        parts.append(("structure", _model_key(*graph_and_latents)))
        del rest["structure"]
        rest.pop("latents", None)
    return frozenset(parts + [(name, value_key(value)) for name, value in rest.items()])


def distinct(settings: Iterable[Mapping]) -> dict[Hashable, dict]:
    """Canonical key -> the first of the settings that has it, in the order given."""
    first_of_key: dict = {}
    for setting in settings:
        first_of_key.setdefault(canonical(setting), dict(setting))
    return first_of_key


def hidden_graph(setting: Mapping) -> tuple[DAG | UndirectedGraph, dict] | None:
    """The graph of a setting, with all of its latents as nodes, and latent -> number of states; None without one."""
    if "structure" not in setting:
        return None
    latents = resolve_latents(setting.get("latents"))
    if latents is None:
        return None
    try:
        return coerce_structure(setting["structure"], nodes=latents), latents
    except (StructureError, TypeError):
        return None  # a parameter of that name may mean something else


def n_relabeled_graphs(setting: Mapping) -> int:
    """The number of graphs that differ from that of a setting only by names of latents with as many states."""
    if (graph_and_latents := hidden_graph(setting)) is None:
        return 1
    dag, latents = graph_and_latents
    return prod(map(factorial, Counter(latents.values()).values())) // dag.n_automorphisms(latents)


def resolve_latents(latents) -> dict | None:
    """Latent -> number of states, or "number", from any form an estimator takes; None if it is no such form.

    The forms: a mapping, one number of states (of ``"h0"``), a list of names (2 states each), None for no latents.
    """
    if latents is None:
        return {}
    if _is_count(latents):
        latents = {"h0": latents}
    elif isinstance(latents, Iterable) and not isinstance(latents, (str, Mapping)):
        names = list(latents)
        if not all(isinstance(name, Hashable) and not isinstance(name, Real) for name in names):
            return None
        latents = dict.fromkeys(names, 2)
    if not isinstance(latents, Mapping) or not all(_is_count(n) or is_option(n, NUMBER) for n in latents.values()):
        return None
    return {name: states if is_option(states, NUMBER) else int(states) for name, states in latents.items()}


def check_latent_names(names: Iterable[Hashable], owner: str) -> None:
    """Raise a StructureError if a latent has an empty name, by which no one could ask for it."""
    if any(isinstance(name, str) and not name.strip() for name in names):
        raise StructureError(f"The 'latents' parameter of {owner} has a latent without a name. Take {{'h0': 2}}.")


def value_key(value) -> Hashable:
    """A hashable stand-in for a value of a parameter, equal for equal values.

    Lists and tuples are compared by items, arrays by dtype, shape and bytes, mappings and sets without order, objects
    with `get_params` by type and parameters, other values by themselves, or, unhashable, by their pickle.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        return ("bool", value)  # True == 1, and yet they are different parameters
    if isinstance(value, float) and isnan(value):
        return ("nan",)  # which equals nothing, itself included
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            return ("array", value.shape, tuple(map(value_key, value.ravel())))
        return ("array", value.dtype.str, value.shape, value.tobytes())
    if isinstance(value, Mapping):
        return ("mapping", frozenset((value_key(name), value_key(item)) for name, item in value.items()))
    if isinstance(value, Set):
        return ("set", frozenset(map(value_key, value)))
    if isinstance(value, (list, tuple)):
        return ("sequence", tuple(map(value_key, value)))
    if hasattr(value, "get_params") and not isinstance(value, type):
        return (type(value), value_key(value.get_params(deep=False)))
    if isinstance(value, Hashable):
        return value
    try:
        return (type(value), pickle.dumps(value))
    except Exception as error:
        raise TypeError(
            f"{shown(value)} can be no value in a space: it can neither be hashed nor pickled, and so cannot be told "
            "from others."
        ) from error


@dataclass(frozen=True)
class _Latent:
    """The name of a hidden node in a key; equal to no name of a user's."""

    place: int


def _model_key(dag: DAG | UndirectedGraph, latents: Mapping[Hashable, int]) -> Hashable:
    if not latents:
        return dag
    order = sorted(latents, key=lambda name: (kind_order(latents[name]), isinstance(name, str), str(name)))
    renaming = {name: _Latent(place) for place, name in enumerate(order)}
    states: dict[Hashable, int] = {renaming[name]: latents[name] for name in order}
    return dag.relabel(renaming).canonical(states), tuple(states.values())


def kind_order(states: Any) -> tuple[bool, Any]:
    """By what latents are sorted: numbers of states, then those that hold numbers."""
    return isinstance(states, str), states


def _is_count(value) -> bool:
    return is_whole(value) and int(value) >= 1


def merge(parts: Sequence[Mapping]) -> dict:
    """One setting of several that set different parameters."""
    return {name: value for part in parts for name, value in part.items()}


def coerce_structure(structure, nodes: Iterable[Hashable] = ()) -> DAG | UndirectedGraph:
    """The graph that `structure` describes, with those of `nodes` that it lacks added at the end, without edges.

    Parameters
    ----------
    structure : UndirectedGraph, networkx.Graph, or what `DAG.coerce` takes
    nodes : iterable of hashable

    Raises
    ------
    TypeError
        If it is no structure.
    StructureError
        If it is directed and has a cycle.
    """
    kind: type[DAG] | type[UndirectedGraph] = UndirectedGraph if is_undirected(structure) else DAG
    return kind.coerce(structure, nodes)
