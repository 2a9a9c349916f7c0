"""What classes look like, column by column: probabilities of categories, means of numbers, with credible intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from skvbem.families.dirichlet import beta_quantiles


@dataclass(frozen=True, eq=False)
class Probabilities:
    """A column of categories in each class.

    Parameters
    ----------
    name : str
        The column.
    labels : sequence of str
        What the probabilities are of.
    values : ndarray of shape (n_classes, n_labels)
    intervals : pair of ndarray of shape (n_classes, n_labels), or None
    """

    name: str
    labels: Sequence[str]
    values: np.ndarray
    intervals: tuple[np.ndarray, np.ndarray] | None


@dataclass(frozen=True, eq=False)
class Numbers:
    """A column of numbers in each class.

    Parameters
    ----------
    name : str
        The column.
    values, deviations : ndarray of shape (n_classes,)
        Mean and standard deviation of rows.
    intervals : pair of ndarray of shape (n_classes,), or None
        Of the means.
    """

    name: str
    values: np.ndarray
    deviations: np.ndarray
    intervals: tuple[np.ndarray, np.ndarray] | None

    def overall(self, weights: np.ndarray) -> tuple[float, float]:
        """Mean and standard deviation of rows of all classes."""
        shares = weights / weights.sum()
        mean = float(shares @ self.values)
        return mean, float(np.sqrt(shares @ (self.deviations**2 + (self.values - mean) ** 2)))


class Classes(NamedTuple):
    """The classes of a fit: expected rows, weights, one profile for each column, in the order of the table, a name."""

    counts: np.ndarray
    weights: np.ndarray
    profiles: list[Probabilities | Numbers]
    label: str = "class"


def named(value: Any) -> str:
    """A level as a user would write it."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def of_levels(name: str, levels: Sequence, values: np.ndarray, intervals) -> Probabilities:
    """The probabilities of a column's levels; of two levels, that of the second says all."""
    values = np.asarray(values)[:, : len(levels)]
    if intervals is not None:
        intervals = tuple(np.asarray(ends)[:, : len(levels)] for ends in intervals)
    labels = [f"{name} = {named(levels[0])}", *map(named, levels[1:])]
    if len(levels) == 2:
        labels, values = [f"{name} = {named(levels[1])}"], values[:, 1:]
        intervals = None if intervals is None else tuple(ends[:, 1:] for ends in intervals)
    return Probabilities(name, labels, values, intervals)


# Mixtures -------------------------------------------------------------------------------------------------------------


class _Group(NamedTuple):
    """A family's columns in a fitted mixture, what it knows of them, and the intervals, or None, by parameter."""

    names: Sequence[str]
    parameters: Mapping[str, np.ndarray]
    intervals: Mapping[str, tuple] | None
    covariance_type: str
    categories: Mapping[str, np.ndarray]

    def ends(self, parameter: str, at) -> tuple | None:
        """The intervals of one column."""
        return None if self.intervals is None else tuple(ends[:, at] for ends in self.intervals[parameter])


def _gaussian(group: _Group) -> list:
    means, covariances = group.parameters["means"], np.asarray(group.parameters["covariances"])
    variances = {
        "full": lambda: np.diagonal(covariances, axis1=-2, axis2=-1),
        "tied": lambda: np.diagonal(covariances)[None],
        "diag": lambda: covariances,
        "spherical": lambda: covariances[:, None],
    }[group.covariance_type]()
    deviations = np.sqrt(np.broadcast_to(variances, means.shape))
    return [Numbers(n, means[:, j], deviations[:, j], group.ends("means", j)) for j, n in enumerate(group.names)]


def _poisson(group: _Group) -> list:
    rates = group.parameters["rates"]
    return [Numbers(n, rates[:, j], np.sqrt(rates[:, j]), group.ends("rates", j)) for j, n in enumerate(group.names)]


def _exponential(group: _Group) -> list:
    times = 1 / group.parameters["rates"]
    found = []
    for j, name in enumerate(group.names):
        ends = group.ends("rates", j)
        found.append(Numbers(name, times[:, j], times[:, j], None if ends is None else (1 / ends[1], 1 / ends[0])))
    return found


def _categorical(group: _Group) -> list:
    values = group.parameters["probabilities"]
    columns = enumerate(group.names)
    return [
        of_levels(n, group.categories[n].tolist(), values[:, j], group.ends("probabilities", j)) for j, n in columns
    ]


def _bernoulli(group: _Group) -> list:
    values, alone = group.parameters["probabilities"], [[j] for j in range(len(group.names))]
    return [
        Probabilities(n, [f"{n} = 1"], values[:, j], group.ends("probabilities", j)) for n, j in zip(group.names, alone)
    ]


def _multinomial(group: _Group) -> list:
    values, alone = group.parameters["shares"], [[j] for j in range(len(group.names))]
    return [
        Probabilities(n, [f"share of {n}"], values[:, j], group.ends("shares", j)) for n, j in zip(group.names, alone)
    ]


#: Family -> what its columns look like.
PROFILES: dict[str, Callable[[_Group], list]] = {
    "gaussian": _gaussian,
    "poisson": _poisson,
    "exponential": _exponential,
    "categorical": _categorical,
    "bernoulli": _bernoulli,
    "multinomial": _multinomial,
}


def classes_of_mixture(estimator, level: float | None) -> Classes:
    """The components of a fitted VBMixture, or the states of a VBHMM, which weigh as much as is in them."""
    intervals = None
    if level is not None and estimator.method == "vb":
        intervals = estimator.credible_intervals(level)
    found = {}
    for family, names in estimator.groups_.items():
        of_family = None if intervals is None else intervals[family]
        parameters = estimator.parameters_[family]
        group = _Group(names, parameters, of_family, estimator.covariance_type, estimator.categories_)
        found.update({profile.name: profile for profile in PROFILES[family](group)})
    profiles = [found[name] for name in estimator.fitted.groups.names]
    if hasattr(estimator, "weights_"):
        return Classes(estimator.counts_, estimator.weights_, profiles)
    return Classes(estimator.counts_, estimator.counts_ / estimator.counts_.sum(), profiles, "state")


# Networks -------------------------------------------------------------------------------------------------------------


def classes_of_network(estimator, level: float | None, owner: str) -> Classes:
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
        table, intervals = estimator.tables_[node], None
        if level is not None and hasattr(estimator, "posterior_"):
            own = estimator.posterior_[node].values
            total = own.sum(axis=-1, keepdims=True)
            intervals = tuple(beta_quantiles(own, total, share) for share in (0.5 - level / 2, 0.5 + level / 2))
        profiles.append(of_levels(str(node), table.levels[-1].tolist(), table.values, intervals))
    return Classes(estimator.latent_states_[latent].mass, estimator.tables_[latent].values, profiles)
