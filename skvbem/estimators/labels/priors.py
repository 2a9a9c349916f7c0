"""Priors of emissions, from the parameters of their specifications."""

from __future__ import annotations

import numpy as np

from skvbem.emissions import Emission, EmissionSpecification
from skvbem.emissions.base import from_outside, parts_of
from skvbem.emissions.outside import check_cells
from skvbem.families import Product
from skvbem.families.base import ConjugateFamily
from skvbem.reading.column_groups import ColumnGroups
from skvbem.reading.tables import listed


def resolve_emission_prior(groups: ColumnGroups, emission: Emission, n_components: int) -> ConjugateFamily:
    """The prior of the emission that the parameters of its groups' specifications stand for."""
    parts = parts_of(emission)
    options = [group.specification.prior_options(part, group.names) for group, part in zip(groups.groups, parts)]
    if len(options) == 1:
        prior = emission.default_prior(n_components, **options[0])
    else:
        prior = emission.default_prior(n_components, options=options)  # type: ignore[call-arg]
    of_groups = prior.blocks if isinstance(prior, Product) and len(options) > 1 else (prior,)
    for group, part, of_group in zip(groups.groups, parts, of_groups):
        if from_outside(part):
            check_cells(part, of_group, n_components)
        _check_prior(of_group, group.specification)
    return prior


def _check_prior(prior: ConjugateFamily, specification: EmissionSpecification) -> None:
    """Refuse parameters of a group of columns that make no density."""
    if np.all(prior.is_valid):
        return
    names = specification.get_params(deep=False)
    owner, several = type(specification).__name__, len(names) > 1
    who = f"The parameter{'s' * several} {listed(map(repr, names))} of {owner}" if names else owner
    makes = f"{who} make{'s' * (not several)} no prior for this X"
    least = np.min(prior.coordinates)
    if np.isfinite(prior.coordinates).all() and not np.any(prior.signed) and least <= 0:
        raise ValueError(f"{makes}: numbers of a {type(prior).__name__} prior must be > 0, and one is {least:g}.")
    raise ValueError(
        f"{makes}: in the units of the data its numbers exceed the range of floats. Leave them at their defaults, or "
        "measure X in another unit."
    )
