"""Short names of the candidates of a search, by what differs between them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import permutations, product
from math import factorial, prod

from skvbem.graphs.dag import DAG
from skvbem.graphs.undirected import UndirectedGraph, is_undirected
from skvbem.spaces.settings import hidden_graph, value_key

# Ways to name latents that are tried, and letters of a name.
_MAX_NAMINGS, _MAX_LETTERS = 720, 64


def varying(settings: Sequence[Mapping]) -> list[str]:
    """The parameters whose values differ among settings, in order; a parameter that not all give differs."""
    names = dict.fromkeys(name for setting in settings for name in setting)
    return [
        name
        for name in names
        if len({value_key(setting[name]) if name in setting else None for setting in settings}) > 1
    ]


def short_names(settings: Mapping[int, Mapping], best: Mapping, differing: Iterable[str]) -> dict[int, str]:
    """The settings in a few words: graphs by the edges they have more or less than the best, the rest by values.

    A name that is too long is cut, and ends with its key, so that no two names are the same.
    """
    return {k: _cut(_name(setting, best, list(differing)), k) for k, setting in settings.items()}


def _cut(text: str, key: int) -> str:
    if len(text) <= _MAX_LETTERS:
        return text
    ending = f"… (row {key})"
    return text[: _MAX_LETTERS - len(ending)].rstrip(" ,") + ending


def _name(setting: Mapping, best: Mapping, differing: Iterable[str]) -> str:
    graph_and_latents, best_graph_and_latents = hidden_graph(setting), hidden_graph(best)
    parts = []
    if graph_and_latents is not None and best_graph_and_latents is not None:
        is_best = value_key(setting) == value_key(best)
        parts = (
            [_in_words(graph_and_latents[0].edges, is_undirected(graph_and_latents[0])) or "no edges"]
            if is_best
            else _differences(*graph_and_latents, *best_graph_and_latents)
        )
        differing = [name for name in differing if name not in ("structure", "latents")]
    return "   ".join([*parts, *(f"{name}={setting[name]}" for name in differing if name in setting)])


def _differences(
    dag: DAG | UndirectedGraph, latents: Mapping, best: DAG | UndirectedGraph, best_latents: Mapping
) -> list[str]:
    """Edges that a graph has more and less than the best, with exchangeable latents named so that these are fewest.

    A graph with nothing hidden is told by its own edges, if the best has latents.
    """
    if best_latents and not latents:
        return [f"nothing hidden: {_in_words(dag.edges, is_undirected(dag)) or 'no edges'}"]
    place = {node: k for k, node in enumerate(dict.fromkeys((*best.nodes, *dag.nodes)))}
    lines = is_undirected(dag) and is_undirected(best)

    def in_order(edge: tuple) -> tuple:
        return tuple(sorted(edge, key=place.__getitem__)) if lines and set(edge) <= place.keys() else edge

    theirs = set(map(in_order, best.edges))
    all_ours = (set(map(in_order, _renamed(dag.edges, naming))) for naming in _namings(latents, best_latents))
    ours = min(all_ours, key=lambda ours: len(ours ^ theirs))
    parts = [
        text if len(text := f"{sign} {_in_words(edges, lines)}") < _MAX_LETTERS else f"{sign} {len(edges)} edges"
        for sign, differing in (("+", ours - theirs), ("−", theirs - ours))
        if (edges := sorted(differing, key=lambda edge: (place[edge[0]], place[edge[1]])))
    ]
    if sorted(latents.values()) != sorted(best_latents.values()):
        parts.append(f"{' and '.join(map(str, latents.values()))} states")
    return parts or ["the same edges"]


def _in_words(edges: Iterable[tuple], lines: bool) -> str:
    """Edges in words: without directions one by one, else every parent with its children."""
    return "   ".join(f"{a} – {b}" for a, b in edges) if lines else _families(edges)


def _families(edges: Iterable[tuple]) -> str:
    """Every parent with its children."""
    children: dict = {}
    for parent, child in edges:
        children.setdefault(parent, []).append(str(child))
    return "   ".join(f"{parent} → {', '.join(names)}" for parent, names in children.items())


def _namings(latents: Mapping, best_latents: Mapping) -> Iterable[dict]:
    """All ways to name latents like the best structure's latents with as many states."""
    groups = []
    for n_states in dict.fromkeys(latents.values()):
        mine = [name for name, size in latents.items() if size == n_states]
        theirs = [name for name, size in best_latents.items() if size == n_states]
        groups.append((mine, theirs + [name for name in mine if name not in theirs]))
    if prod(factorial(len(names)) for _, names in groups) > _MAX_NAMINGS:
        return [{}]
    ways = product(*(permutations(names, len(mine)) for mine, names in groups))
    return ({a: b for (mine, _), names in zip(groups, way) for a, b in zip(mine, names)} for way in ways)


def _renamed(edges: Iterable[tuple], naming: Mapping[Hashable, Hashable]) -> set[tuple]:
    return {(naming.get(a, a), naming.get(b, b)) for a, b in edges}
