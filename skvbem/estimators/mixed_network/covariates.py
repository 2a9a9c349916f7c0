"""Covariates of roots of networks: the `covariates` parameter, and edges from numbers to latents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sklearn.base import clone

from skvbem._arguments import is_list, is_whole
from skvbem._arguments import listed as as_list
from skvbem.emissions.given import Given
from skvbem.emissions.softmax import Softmax, SoftmaxMembership
from skvbem.errors import StructureError
from skvbem.estimators.given_columns import places_of_covariates, refuse_collinear, with_given
from skvbem.estimators.network.parameters import by_node
from skvbem.families.base import ConjugateFamily
from skvbem.graphs.dag import DAG
from skvbem.reading.column_groups import ColumnOptions
from skvbem.reading.mixed_network import MixedReading, names_of_covariates, number_parents
from skvbem.reading.tables import Table, listed, show

#: Name of the group of columns that are given.
COVARIATES = "covariates"


def with_covariates(estimator: Any, options: ColumnOptions, table: Table) -> ColumnOptions:
    """Options under which columns are read, those that `covariates` names the last group of them."""
    softmaxes = _softmaxes(estimator)
    if not softmaxes:
        return options
    places: set[int] = set()
    for softmax in softmaxes.values():
        places.update(places_of_covariates(softmax, options.owner, COVARIATES, table.names, table.source)[0])
    given = COVARIATES, Given(), sorted(places)
    whose = f"The 'covariates' parameter of {options.owner}"
    return options._replace(emission=with_given(options, given, table, whose))


def _softmaxes(estimator: Any) -> dict[Any, Softmax]:
    """Of each node that `covariates` names, or of None for all roots that are latents, the covariates."""
    given = getattr(estimator, "covariates", None)
    if given is None:
        return {}
    softmaxes = {}
    for node, each in (given if isinstance(given, Mapping) else {None: given}).items():
        if not (isinstance(each, (Softmax, str)) or is_whole(each) or is_list(each)):
            raise TypeError(
                f"The 'covariates' parameter of {type(estimator).__name__} must be None, columns by name or position, "
                f"a Softmax of some, or a mapping of nodes to these. Got {show(each)} instead."
            )
        softmax = each if isinstance(each, Softmax) else Softmax(each)
        softmax.check_parameters()
        softmaxes[node] = softmax
    return softmaxes


def driven_nodes(estimator: Any, dag: DAG, latents: Mapping, reading: MixedReading) -> tuple[dict[Any, Softmax], Any]:
    """The nodes that covariates drive, each with its regression, and what `prior` says of all tables.

    Raises
    ------
    StructureError
        If one of them has parents with a table.
    """
    owner, of_nodes = type(estimator).__name__, by_node(estimator.prior)
    hidden = {group.name for group in reading.columns.groups if group.is_hidden}
    named = {node: each for node, each in (of_nodes or {}).items() if isinstance(each, Softmax)}
    prior = estimator.prior
    if of_nodes is not None:
        prior = {node: each for node, each in of_nodes.items() if node not in named and node not in hidden}
    columns, roots = reading.columns, [node for node in latents if not dag.parents(node)]
    driven: dict[Any, Softmax] = {}
    given = _softmaxes(estimator)
    if None in given and not roots:
        raise StructureError(
            f"'covariates' of {owner} drive latents without parents, and the 'structure' has none. Name a root, as in "
            "covariates={'h0': ['age']}, or leave 'covariates' out."
        )
    if None in given:
        given = dict.fromkeys(roots, given[None])
    for node, softmax in given.items():
        if node not in dag.nodes:
            raise StructureError(f"'covariates' of {owner} name {show(node)}, which is no node of the 'structure'.")
        if dag.parents(node):
            raise _has_parents(node, dag.parents(node), owner)
        places, chosen = places_of_covariates(softmax, owner, COVARIATES, columns.names)
        selected = places if softmax.selected is None else chosen
        of_group = next(group for group in columns.groups if group.specification.are_given).columns
        driven[node] = clone(softmax).set_params(covariates=(), selected=[at in selected for at in of_group])
    for node in latents:
        if number_parents(columns, dag, node):
            driven[node] = _of_edges(node, dag, reading, named, owner)
    unused = [node for node in named if node not in driven or node in given]
    if unused:
        raise ValueError(
            f"The 'prior' parameter of {owner} gives {show(unused[0])} a Softmax, which is for latents with edges from "
            "columns of numbers. Give concentrations of its table, or add an edge."
        )
    return driven, prior


def _of_edges(node: Any, dag: DAG, reading: MixedReading, named: Mapping, owner: str) -> Softmax:
    """The regression of a latent on all numbers among its parents."""
    of_numbers = {reading.columns.groups[k].name for k in number_parents(reading.columns, dag, node)}
    others = [parent for parent in dag.parents(node) if parent not in of_numbers]
    softmax = named.get(node, Softmax())
    if others:
        raise _has_parents(node, others, owner)
    if as_list(softmax.covariates) or softmax.selected is not None:
        raise ValueError(
            f"The 'prior' parameter of {owner} gives {show(node)} a Softmax that names columns. The columns are those "
            "that edges of the 'structure' come from."
        )
    softmax.check_parameters()
    return softmax


def _has_parents(node: Any, parents: Any, owner: str) -> StructureError:
    which = listed(map(show, parents))
    return StructureError(
        f"Covariates drive {show(node)} in {owner}, which has parents with a table, too: {which}. There is no "
        f"regression for each of their states. Turn these edges round, or leave them out."
    )


def membership_of_node(
    node: Any, softmax: Softmax, n_states: int, reading: MixedReading, dag: DAG, estimator: Any
) -> tuple[SoftmaxMembership, ConjugateFamily]:
    """What says the probabilities of a driven node row by row, and the prior of its coefficients.

    Raises
    ------
    ValueError
        If a covariate follows from others by maximum likelihood.
    """
    membership = reading.membership(dag, node, softmax)
    names = names_of_covariates(reading.columns, dag, node)
    if estimator.method == "ml":
        of_regressors = [names[membership.selected[j]] for j, n in enumerate(membership.n_slopes) for _ in range(n)]
        refuse_collinear(membership.design, of_regressors, f"{node!r} of {type(estimator).__name__}")
    return membership, membership.default_prior(n_states, **softmax.prior_options(membership, names))
