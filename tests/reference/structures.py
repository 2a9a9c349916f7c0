"""Graphs and their classes by definition: every set of edges is tried, every permutation of names."""

from functools import cache
from itertools import combinations, permutations, product

from skvbem.graphs.dag import DAG


@cache
def acyclic_edge_sets(n):
    """Every set of edges over nodes 0 ... n - 1 for which some order puts all parents before their children."""
    pairs = [(i, j) for i in range(n) for j in range(n) if i != j]
    found = set()
    for order in permutations(range(n)):
        forward = [(i, j) for i, j in pairs if order.index(i) < order.index(j)]
        for size in range(len(forward) + 1):
            found.update(map(frozenset, combinations(forward, size)))
    return sorted(found, key=sorted)


def all_dags(nodes):
    return _all_dags(tuple(nodes))


@cache
def _all_dags(nodes):
    return [
        DAG.from_edges(sorted((nodes[i], nodes[j]) for i, j in edges), nodes) for edges in acyclic_edge_sets(len(nodes))
    ]


def bipartite_dags(latents, observed):
    pairs = list(product(latents, observed))
    for present in product([False, True], repeat=len(pairs)):
        yield DAG.from_edges([pair for pair, there in zip(pairs, present) if there], (*latents, *observed))


def obeys(dag, *, tiers=None, required=(), forbidden=(), allowed=None, max_parents=None):
    tier = {node: place for place, members in enumerate(tiers or [dag.nodes]) for node in members}
    return (
        all(tier[parent] <= tier[child] for parent, child in dag.edges)
        and set(required) <= set(dag.edges)
        and set(forbidden).isdisjoint(dag.edges)
        and (allowed is None or set(dag.edges) <= set(allowed))
        and all(len(dag.parents(node)) <= (max_parents if max_parents is not None else 99) for node in dag.nodes)
    )


def renamings(latents):
    """All permutations of the names of latents with as many states."""
    names = list(latents)
    for image in permutations(names):
        if all(latents[old] == latents[new] for old, new in zip(names, image)):
            yield dict(zip(names, image))


def classes(dags, latents):
    """The graphs in sets of those that differ by names of latents with as many states, in the order of the first."""
    ways = list(renamings(latents))
    found = {}
    for dag in dags:
        images = (frozenset((way.get(a, a), way.get(b, b)) for a, b in dag.edges) for way in ways)
        found.setdefault(min(tuple(sorted(map(repr, edges))) for edges in images), []).append(dag)
    return list(found.values())
