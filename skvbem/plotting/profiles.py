"""What classes look like, column by column: probabilities of categories, means of numbers, with intervals."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skvbem.emissions.profiles import Numbers, Probabilities, of_levels
from skvbem.plotting.intervals import DrawnIntervals


class Classes(NamedTuple):
    """The classes of a fit: expected rows, weights, one profile for each column, in the order of the table, a name."""

    counts: np.ndarray
    weights: np.ndarray
    profiles: list[Probabilities | Numbers]
    label: str = "class"


# Mixtures -------------------------------------------------------------------------------------------------------------


def classes_of_mixture(estimator, intervals: DrawnIntervals | None) -> Classes:
    """The components of a fitted VBMixture, or the states of a VBHMM, which weigh as much as is in them."""
    by_name, columns = {}, estimator.fitted.groups
    for group in columns.groups:
        ends = None
        if intervals is not None:
            low_high = intervals.ends[group.name]
            ends = tuple({name: pair[end] for name, pair in low_high.items()} for end in (0, 1))
        of_group = group.specification.profiles(group.names, estimator.parameters_[group.name], ends, group.levels)
        by_name.update({profile.name: profile for profile in of_group})
    profiles = [by_name[name] for name in columns.names]
    if hasattr(estimator, "weights_"):
        return Classes(estimator.counts_, estimator.weights_, profiles)
    return Classes(estimator.counts_, estimator.counts_ / estimator.counts_.sum(), profiles, "state")


# Networks -------------------------------------------------------------------------------------------------------------


def classes_of_network(estimator, drawn: DrawnIntervals | None, owner: str) -> Classes:
    """The states of the latent of a fitted VBDiscreteDAG, if the latent stands alone above all columns.

    Raises
    ------
    ValueError
        If the network is no latent class model.
    """
    dag, latents = estimator.structure_, list(estimator.latent_names_)
    columns = [node for node in dag.nodes if node not in latents]
    if len(latents) != 1 or any(list(dag.parents(node)) != latents for node in columns):
        raise ValueError(
            f"{owner} draws latent class models, one latent above all columns. This structure is {dag}: see "
            "DAGDisplay, and the tables in tables_."
        )
    (latent,) = latents
    profiles: list[Probabilities | Numbers] = []
    for node in columns:
        table, intervals = estimator.tables_[node], None if drawn is None else drawn.ends["tables"][node]
        profiles.append(of_levels(str(node), table.levels[-1].tolist(), table.values, intervals))
    return Classes(estimator.latent_states_[latent].mass, estimator.tables_[latent].values, profiles)
