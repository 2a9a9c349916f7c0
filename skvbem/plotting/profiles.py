"""What classes look like, column by column: probabilities of categories, means of numbers, with intervals."""

from __future__ import annotations

from collections.abc import Mapping
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
        of_group = _of_group(
            group, estimator.parameters_[group.name], None if intervals is None else intervals.ends[group.name]
        )
        by_name.update({profile.name: profile for profile in of_group})
    profiles = [by_name[name] for name in columns.names if name in by_name]  # what is given has none
    if hasattr(estimator, "weights_"):
        return Classes(estimator.counts_, estimator.weights_, profiles)
    return Classes(estimator.counts_, estimator.counts_ / estimator.counts_.sum(), profiles, "state")


def _of_group(group, parameters: Mapping, intervals: Mapping | None) -> list[Probabilities | Numbers]:
    """The profiles of a group of columns."""
    ends = None
    if intervals is not None:
        ends = tuple({name: pair[end] for name, pair in intervals.items()} for end in (0, 1))
    return group.specification.profiles(group.names, parameters, ends, group.levels)


# Networks -------------------------------------------------------------------------------------------------------------


def classes_of_network(estimator, drawn: DrawnIntervals | None, owner: str) -> Classes:
    """The states of the latent of a fitted network, if columns depend on it alone, or it depends on them.

    Columns that it depends on are covariates: they are not drawn, and the weights of classes are averages over them.

    Raises
    ------
    ValueError
        If the network is no latent class model.
    """
    dag, latents = estimator.structure_, list(estimator.latent_names_)
    above = {parent for latent in latents for parent in dag.parents(latent)}
    columns = [node for node in dag.nodes if node not in latents and node not in above]
    if len(latents) != 1 or not columns or any(list(dag.parents(node)) != latents for node in columns):
        raise ValueError(
            f"{owner} draws latent class models, one latent above columns that depend on nothing else. This structure "
            f"is {dag}: say for which latent columns are to be drawn, as in "
            f"latent={latents[0] if latents else 'h0'!r}, or see DAGDisplay."
        )
    (latent,) = latents
    profiles: list[Probabilities | Numbers] = []
    for node in columns:
        if node not in estimator.tables_:
            group = next(group for group in estimator.fitted.groups.groups if group.name == node)
            profiles += _of_group(group, estimator.parameters_[node], None if drawn is None else drawn.ends[node])
            continue
        table, intervals = estimator.tables_[node], None if drawn is None else drawn.ends["tables"][node]
        profiles.append(of_levels(str(node), table.levels[-1].tolist(), table.values, intervals))
    weights = estimator.query(latent).values if above else estimator.tables_[latent].values
    return Classes(estimator.latent_states_[latent].mass, weights, profiles)


def classes_of_latent(estimator, latent) -> Classes:
    """The states of one latent of a fitted network, columns averaged over all else that they depend on."""
    nodes, fitted = estimator.structure_.nodes, estimator.fitted
    share = estimator.query(latent).values
    profiles: list[Probabilities | Numbers] = []
    for node in nodes:
        if node in estimator.latent_names_:
            continue
        if node in fitted.levels:
            levels = fitted.levels[node].tolist()
            profiles.append(of_levels(str(node), levels, estimator.query([latent, node]).values / share[:, None], None))
            continue
        of_parents = _joint_with_parents(estimator, latent, node) / share[:, None]
        group = next(group for group in fitted.groups.groups if group.name == node)
        profiles += [_averaged(each, of_parents) for each in _of_group(group, estimator.parameters_[node], None)]
    return Classes(estimator.latent_states_[latent].mass, share, profiles, str(latent))


def _joint_with_parents(estimator, latent, node) -> np.ndarray:
    """p(latent, parents of a node), (n_states, n_joint_states)."""
    parents = estimator.structure_.parents(node)
    others = [parent for parent in parents if parent != latent]
    joint = estimator.query([latent, *others]).values
    if latent not in parents:
        return joint.reshape(len(joint), -1)
    of_states = np.zeros((len(joint), *joint.shape))
    of_states[np.arange(len(joint)), np.arange(len(joint))] = joint
    return np.moveaxis(of_states, 1, 1 + parents.index(latent)).reshape(len(joint), -1)


def _averaged(profile: Probabilities | Numbers, fractions: np.ndarray) -> Probabilities | Numbers:
    """A column in mixtures of its classes, fractions (n_mixtures, n_classes)."""
    if isinstance(profile, Probabilities):
        return Probabilities(profile.name, profile.labels, fractions @ profile.values, None)
    mean = fractions @ profile.values
    squares = fractions @ (profile.deviations**2 + profile.values**2)
    return Numbers(profile.name, mean, np.sqrt(np.maximum(squares - mean**2, 0.0)), None)
