"""Latents that hold numbers: `latents={"ability": "number"}`, and the priors of their coefficients."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from skvbem._arguments import NUMBER, is_option
from skvbem.emissions.hidden_number import HiddenNumber
from skvbem.emissions.regression import Regression
from skvbem.errors import StructureError
from skvbem.estimators.network.parameters import by_node, resolve_latents
from skvbem.graphs.dag import DAG
from skvbem.reading.tables import show


def resolved(estimator: Any) -> tuple[dict[Any, int], tuple]:
    """Latents of categories with their numbers of states, and latents that hold numbers."""
    latents, owner = estimator.latents, type(estimator).__name__
    if not isinstance(latents, Mapping):
        return resolve_latents(latents, estimator.structure, owner), ()
    numbers = tuple(name for name, each in latents.items() if is_option(each, NUMBER))
    sizes = resolve_latents({**latents, **dict.fromkeys(numbers, 1)}, estimator.structure, owner)
    return {name: n for name, n in sizes.items() if name not in numbers}, numbers


def specifications(estimator: Any, numbers: Collection) -> dict[Any, HiddenNumber]:
    """The prior of each latent that holds a number.

    Raises
    ------
    ValueError
        If `prior` says anything of one but how precise its coefficients are.
    """
    given, owner = by_node(estimator.prior) or {}, type(estimator).__name__
    of_nodes = {}
    for node in numbers:
        said = given.get(node, Regression())
        silent = Regression(coefficient_precision_prior=getattr(said, "coefficient_precision_prior", 1.0))
        if not isinstance(said, Regression) or repr(said) != repr(silent):
            raise ValueError(
                f"The 'prior' parameter of {owner} must give {show(node)}, a hidden number, a Regression with "
                f"'coefficient_precision_prior' alone, as in prior={{{node!r}: Regression(coefficient_precision_prior="
                f"1.0)}}. Got {show(said)} instead."
            )
        said.check_parameters()
        of_nodes[node] = HiddenNumber(coefficient_precision_prior=said.coefficient_precision_prior)
    return of_nodes


def check_children(dag: DAG, numbers: Collection, with_emission: Collection, owner: str) -> None:
    """Refuse hidden numbers as parents of nodes with a table."""
    for node in numbers:
        if children := [child for child in dag.children(node) if child not in with_emission]:
            raise StructureError(
                f"Node {node!r} is a hidden number, and a parent of {children[0]!r} in the 'structure' of {owner}, "
                "which holds categories. Only measurements depend on hidden numbers. Turn the edge round, leave it "
                f"out, or make {node!r} a latent with states, as in latents={{{node!r}: 2}}."
            )
