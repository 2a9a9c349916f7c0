"""Tied tables: nodes of a network whose tables are one."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

import numpy as np

from skvbem._arguments import is_among, is_collection
from skvbem._names import did_you_mean, shown
from skvbem.errors import StructureError
from skvbem.graphs.dag import DAG


def resolve_ties(ties, dag: DAG, cardinalities: Mapping, owner: str) -> dict[Hashable, tuple]:
    """Node -> the family (*parents, other) of the node whose table is also its own, parents in the order of its own.

    Parameters
    ----------
    ties : mapping, iterable of groups, or None
        Of nodes, or of families (*parents, node) where parents do not stand for each other in their order.
    dag : DAG
    cardinalities : mapping
    owner : str
        Name of the estimator's class, for messages.

    Raises
    ------
    StructureError
        If tables do not fit each other, or a node is tied twice.
    TypeError
        If these are no ties.
    """
    resolved: dict[Hashable, tuple] = {}
    for one, other in _pairs(ties, owner):
        mine, theirs = (_family(each, dag, owner) for each in (one, other))
        if mine[-1] == theirs[-1]:
            raise StructureError(f"The 'ties' parameter of {owner} ties node {shown(mine[-1])} to itself.")
        if mine[-1] in resolved:
            raise StructureError(f"The 'ties' parameter of {owner} ties node {shown(mine[-1])} twice.")
        shapes = [tuple(cardinalities[node] for node in family) for family in (mine, theirs)]
        if shapes[0] != shapes[1]:
            raise StructureError(
                f"The 'ties' parameter of {owner} ties node {shown(mine[-1])} to {shown(theirs[-1])}, but their tables "
                f"differ: {_axes(mine, shapes[0])} against {_axes(theirs, shapes[1])}. Nodes with one table have as "
                "many states, and parents that have, in their order."
            )
        stands_for = dict(zip(mine, theirs))
        resolved[mine[-1]] = tuple(stands_for[node] for node in dag.family(mine[-1]))
    for node, family in resolved.items():
        if family[-1] in resolved:
            raise StructureError(
                f"The 'ties' parameter of {owner} ties node {shown(node)} to {shown(family[-1])}, which is tied itself."
                f" Tie both to {shown(resolved[family[-1]][-1])}."
            )
    return resolved


def check_priors_of_ties(ties: Mapping, dag: DAG, prior: Mapping, owner: str) -> None:
    """Raise a ValueError if nodes with one table have different priors."""
    for node, (*parents, other) in ties.items():
        order = [dag.parents(other).index(parent) for parent in parents]
        first = prior[other].ndim - len(order) - 1  # alternatives of concentrations stand before all others
        axes = (*range(first), *(first + k for k in order), first + len(order))
        if not np.array_equal(prior[node], prior[other].transpose(axes)):
            raise ValueError(
                f"The 'prior' parameter of {owner} differs between {shown(node)} and {shown(other)}, whose tables are "
                "tied. Give both the same."
            )


def check_categories_of_ties(ties: Mapping, dag: DAG, categories: Mapping, owner: str) -> None:
    """Raise a ValueError if columns that stand for each other in tied tables have other categories.

    Parameters
    ----------
    ties : mapping of node to tuple
    dag : DAG
    categories : mapping of column to array-like
    owner : str
    """
    for node, family in ties.items():
        for one, other in zip(dag.family(node), family):
            if one in categories and other in categories and list(categories[one]) != list(categories[other]):
                raise ValueError(
                    f"The 'ties' parameter of {owner} ties {shown(node)} to {shown(family[-1])}, where column "
                    f"{shown(one)} stands for {shown(other)}: but X has {list(categories[one])!r:.60} in the one and "
                    f"{list(categories[other])!r:.60} in the other. Declare all with the 'categories' parameter."
                )


def _pairs(ties, owner: str) -> Iterable[tuple]:
    """The node or family, and the one it is tied to, of a mapping or of groups, whose first is the one."""
    if ties is None:
        return []
    if isinstance(ties, Mapping):
        return list(ties.items())
    if not is_collection(ties):
        raise TypeError(
            f"The 'ties' parameter of {owner} must map nodes to nodes whose tables they share, or hold groups of such "
            f"nodes. Got {ties!r} instead."
        )
    groups = [tuple(group) if is_collection(group) else (group,) for group in ties]
    return [(node, group[0]) for group in groups for node in group[1:]]


def _family(named, dag: DAG, owner: str) -> tuple:
    """The family of a node, or one given with its parents in another order."""
    if is_among(named, dag.nodes):
        return dag.family(named)
    name = named[-1] if isinstance(named, tuple) and named else named
    if is_among(name, dag.nodes):
        if sorted(map(repr, named)) == sorted(map(repr, dag.family(name))):
            return named
        raise StructureError(
            f"The 'ties' parameter of {owner} gives node {shown(named[-1])} the parents {shown(named[:-1])}. The "
            f"structure gives it {shown(dag.parents(named[-1]))}."
        )
    raise StructureError(
        f"The 'ties' parameter of {owner} names {shown(name)}, which is not a node of the structure."
        f"{did_you_mean(name, dag.nodes)}"
    )


def _axes(family: tuple, shape: tuple[int, ...]) -> str:
    return ", ".join(f"{node!r} ({size})" for node, size in zip(family, shape))
