"""Rows completed for one network, transferred to another whose latents or their numbers of states are others."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from itertools import combinations

import numpy as np

from skvbem.graphs.dag import DAG
from skvbem.models.network.completed_rows import CompletedRows
from skvbem.search.families.family_scores import FamilyScores

# How much of a state goes to the new one where something tells them apart, the rest elsewhere: no state is ruled out.
_SHARE = 0.9


def transferred(
    completed: CompletedRows,
    latents: Iterable[Hashable],
    dag: DAG,
    wanted: Mapping[Hashable, int],
    scores: Callable[[CompletedRows], FamilyScores],
) -> CompletedRows:
    """Rows completed for a network with some latents, from those of a network with others.

    Latents that go are summed out. Of states to be merged those are taken, two at a time, that leave the highest bound;
    a state that is split, or a new latent, follows the node near it that gives the highest one.

    Parameters
    ----------
    completed : CompletedRows
    latents : iterable of hashable
        The latents it has.
    dag : DAG
        The network it is for.
    wanted : mapping
        Latent of that network -> number of states.
    scores : callable
        What makes bounds of completed rows.
    """
    for latent in latents:
        if latent not in wanted:
            completed = completed.without(latent)
    for latent, n_states in wanted.items():
        if latent not in completed.cardinalities:
            completed = completed.with_constant(latent)
        while completed.cardinalities[latent] != n_states:
            more = completed.cardinalities[latent] < n_states
            ways = _splits(completed, latent, dag) if more else _merges(completed, latent)
            completed = max(ways, key=lambda way: _bound_near(scores(way), latent, dag, completed.cardinalities))
    return completed


def _merges(completed: CompletedRows, latent: Hashable) -> Iterator[CompletedRows]:
    for kept, given_up in combinations(range(completed.cardinalities[latent]), 2):
        yield completed.merged(latent, kept, given_up)


def _splits(completed: CompletedRows, latent: Hashable, dag: DAG) -> Iterator[CompletedRows]:
    """Completed rows with a state split by a state of a node that tells of the latent, for each pair of these."""
    near = dict.fromkeys([*dag.children(latent), *dag.parents(latent)])
    told = [node for node in near if completed.cardinalities.get(node, 1) > 1]
    for node in told or [node for node in completed.cardinalities if node != latent]:
        codes = completed.codes[completed.place[node]]
        values = range(completed.cardinalities[node])
        for value in values if len(values) > 2 else values[:1]:
            share = np.where(codes == value, _SHARE, 1.0 - _SHARE)
            for state in range(completed.cardinalities[latent]):
                yield completed.split(latent, state, share)


def _bound_near(scores: FamilyScores, latent: Hashable, dag: DAG, known: Mapping[Hashable, int]) -> float:
    """The part of the bound that the states of a latent change; latents still to come have no say."""
    families = [(node, [p for p in dag.parents(node) if p in known]) for node in (latent, *dag.children(latent))]
    return scores.of_every_graph + sum(scores.family(node, parents) for node, parents in families if node in known)
