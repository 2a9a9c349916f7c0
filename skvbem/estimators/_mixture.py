"""A mixture as fitted, and the parameters of `VBMixture` made into priors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import logsumexp, softmax

from skvbem.emissions import Emission
from skvbem.estimators._groups import ColumnGroups
from skvbem.families.base import ConjugateFamily
from skvbem.models.mixture import Mixture, MixtureAscent, MixtureData
from skvbem.models.weights import FiniteWeights, StickBreaking, Weights
from skvbem.vbem.fit import Fit, best_of
from skvbem.vbem.posteriors import Form

# Draws of the parameters behind the rows of one sample.
_MOST_DRAWS = 1000
#: Parameters of `VBMixture` that make the prior of each family, and what the emission calls them.
PRIOR_PARAMETERS: dict[str, dict[str, str]] = {
    "gaussian": {
        "mean_prior": "mean_prior",
        "mean_precision_prior": "mean_precision_prior",
        "degrees_of_freedom_prior": "degrees_of_freedom_prior",
        "covariance_prior": "covariance_prior",
    },
    "categorical": {"concentration_prior": "concentration"},
    "bernoulli": {"concentration_prior": "concentration"},
    "multinomial": {"concentration_prior": "concentration"},
    "poisson": {"shape_prior": "shape", "rate_prior": "rate"},
    "exponential": {"shape_prior": "shape", "rate_prior": "rate"},
}


@dataclass(frozen=True, eq=False)
class MixtureRecipe:
    """Where a fit starts and when it stops, so that another form of q(theta) can be fitted in the same way.

    Parameters
    ----------
    seed : tuple of int
    starts : ndarray of shape (n_cells, n_starts)
        Statistics.
    select : bool
        Whether starts meet in a tournament.
    limits : mapping
        As `skvbem.vbem.fit.best_of` takes them.
    """

    seed: tuple[int, ...]
    starts: np.ndarray
    select: bool
    limits: Mapping[str, Any]

    def run(
        self, model: Mixture, data: MixtureData, form: Form, n_threads: int = 1, stop: Callable | None = None
    ) -> Fit:
        """The best fit."""
        ascent = MixtureAscent(model, data, form, n_threads)
        return best_of(ascent, self.starts, select=self.select, stop=stop, **self.limits)

    def refit(self, model: Mixture, data: MixtureData, form: Form, fit: Fit, n_threads: int = 1) -> Fit:
        """The best fit of another form, from the starts of a fit and from where it ended."""
        starts = np.column_stack([fit.statistics, self.starts])
        return best_of(MixtureAscent(model, data, form, n_threads), starts, select=self.select, **self.limits)


@dataclass(frozen=True, eq=False)
class FittedMixture:
    """How columns are read, a mixture with its prior, and the statistics of the data it has seen.

    Parameters
    ----------
    groups : ColumnGroups
    model : Mixture
    form : Form
        Of q(theta).
    statistics : ndarray of shape (n_cells,)
    """

    groups: ColumnGroups
    model: Mixture
    form: Form
    statistics: np.ndarray

    def continues(self, groups: ColumnGroups, model: Mixture) -> bool:
        """Whether another mixture has as many components of the same columns, read in the same way."""
        return self.model.n_components == model.n_components and self.groups.meaning() == groups.meaning()

    @property
    def emission(self) -> Emission:
        """The emission of the groups."""
        return self.model.emission

    @cached_property
    def posterior(self):
        """q(theta) of VB: the blocks of the weights and of the emission."""
        return self.model.prior + self.statistics

    @cached_property
    def point(self) -> tuple:
        """The point found (MAP, ML), or the mode of q(theta) in its natural coordinates."""
        return self.form.point_of(self.model.prior, self.statistics)

    @property
    def counts(self) -> np.ndarray:
        """Expected rows of each component, (n_components,)."""
        return self.model.weights.counts(self.model.prior.split(self.statistics)[0])

    @cached_property
    def weights(self) -> np.ndarray:
        """E[pi] (VB) or pi of the point found, (n_components,)."""
        if self.form.density:
            return self.model.weights.mean(self.posterior.blocks[0])
        natural = self.model.prior.blocks[0].natural(self.point[0])
        return np.exp(self.model.weights.log_weights(natural[:, None])[:, 0])

    def parameters(self) -> list[dict[str, np.ndarray]]:
        """The parameters of each group's components, by name."""
        return self.groups.as_list(self.emission.parameters(self.point[1]))

    @staticmethod
    def drawn_at(model: Mixture, point: tuple, n: int, rng: np.random.Generator) -> tuple[Any, np.ndarray]:
        """Rows drawn at a point, as the emission makes them, and their components."""
        natural = model.prior.blocks[0].natural(point[0])
        weights = np.exp(model.weights.log_weights(natural[:, None])[:, 0])
        components = rng.choice(len(weights), size=n, p=weights / weights.sum())
        return model.emission.sample(point[1], components, rng), components

    def sample(self, n: int, rng: np.random.Generator) -> tuple[Any, np.ndarray]:
        """Rows drawn from the predictive distribution, and their components.

        Parameters are drawn for each row, for more rows than `_MOST_DRAWS` for so many parts of them.
        """
        if not self.form.density:
            return self.drawn_at(self.model, self.point, n, rng)
        sizes = np.bincount(np.arange(n) % _MOST_DRAWS)
        drawn = [self.drawn_at(self.model, self.posterior.sample(rng), size, rng) for size in sizes.tolist()]
        order = rng.permutation(n)
        rows = [self.groups.as_list(of_part) for of_part, _ in drawn]
        values = [np.concatenate(of_group)[order] for of_group in zip(*rows)]
        components = np.concatenate([of_part for _, of_part in drawn])[order]
        return self.groups.as_emission_takes(values), components

    def log_joint(self, values: list[np.ndarray]) -> Iterator[tuple[slice, np.ndarray]]:
        """ln of E[pi_k] p(row | k, data), or of both at the point, for blocks of rows: (n_rows, n_components), nats."""
        table = self.emission.prepare(self.groups.as_emission_takes(values))
        with np.errstate(divide="ignore"):
            log_weights = np.log(self.weights)
        size = self.emission.block_rows(self.model.n_components)
        natural = None if self.form.density else self.model.prior.natural(self.point)
        step = None
        if natural is not None:
            step = self.emission.step(self.model.prior.split(natural)[1], table)
        for at in range(0, len(table), size):
            rows = slice(at, min(at + size, len(table)))
            block = table[rows]
            found = (
                self.emission.log_predictive(block, self.posterior.blocks[1])
                if step is None
                else step.log_likelihood(block)
            )
            yield rows, found + log_weights

    def log_predictive(self, values: list[np.ndarray]) -> np.ndarray:
        """Log predictive density of rows, nats, (n_rows,)."""
        found = np.empty(len(values[0]))
        for rows, log_joint in self.log_joint(values):
            found[rows] = logsumexp(log_joint, axis=1)
        return found

    def shares(self, values: list[np.ndarray]) -> Iterator[tuple[slice, np.ndarray]]:
        """p(component | row) of blocks of rows, (n_rows, n_components); the weights if no component can make a row."""
        for rows, log_joint in self.log_joint(values):
            impossible = ~np.isfinite(log_joint.max(axis=1))
            log_joint[impossible] = np.log(np.maximum(self.weights, 1e-300))
            yield rows, softmax(log_joint, axis=1)

    def responsibilities(self, values: list[np.ndarray]) -> np.ndarray:
        """p(component | row), (n_rows, n_components), as `shares` gives it for blocks."""
        found = np.empty((len(values[0]), self.model.n_components))
        for rows, shares in self.shares(values):
            found[rows] = shares
        return found

    def components(self, values: list[np.ndarray]) -> np.ndarray:
        """The most probable component of each row, (n_rows,)."""
        found = np.empty(len(values[0]), dtype=np.intp)
        for rows, shares in self.shares(values):
            found[rows] = shares.argmax(axis=1)
        return found


def resolve_weights(kind: str, concentration, n_components: int, owner: str) -> Weights:
    """The prior of the weights that `weight_concentration_prior_type` and `weight_concentration_prior` stand for."""
    whose = f"The 'weight_concentration_prior' parameter of {owner}"
    given = np.asarray(1.0 if concentration is None else concentration, dtype=float)
    if not (np.isfinite(given).all() and (given > 0).all()):
        raise ValueError(f"{whose} must be > 0. Got {concentration!r} instead.")
    if kind == "dirichlet_process":
        if given.ndim:
            raise ValueError(f"{whose} must be a number for sticks broken in turn. Got {concentration!r} instead.")
        return StickBreaking(n_components, float(given))
    if given.ndim and given.shape != (n_components,):
        raise ValueError(
            f"{whose} must be a number or have one for each of the {n_components} components. Got an array of shape "
            f"{given.shape}."
        )
    return FiniteWeights(np.broadcast_to(given, n_components).copy())


def resolve_emission_prior(estimator, groups: ColumnGroups, emission: Emission, n_components: int) -> ConjugateFamily:
    """The prior of the emission that the estimator's prior parameters stand for."""
    options = []
    for group in groups.groups:
        given = {theirs: getattr(estimator, ours) for ours, theirs in PRIOR_PARAMETERS[group.family].items()}
        _check_prior(estimator, group.family, len(group.columns))
        given = {name: value for name, value in given.items() if value is not None}
        if group.family == "bernoulli" and np.isscalar(given["concentration"]):
            given["concentration"] = (given["concentration"],) * 2
        options.append(given)
    if len(options) == 1:
        return emission.default_prior(n_components, **options[0])
    return emission.default_prior(n_components, options=options)  # type: ignore[call-arg]


def _check_prior(estimator, family: str, d: int) -> None:
    """Refuse parameters of a prior that make no density over d columns."""
    owner = type(estimator).__name__
    for name in ("concentration_prior", "shape_prior", "rate_prior"):
        value = getattr(estimator, name)
        if name not in PRIOR_PARAMETERS[family] or value is None:
            continue
        flat = np.concatenate([np.ravel(row) for row in value]) if _is_ragged(value) else np.ravel(value)
        if not (np.isfinite(flat.astype(float)).all() and (flat.astype(float) > 0).all()):
            raise ValueError(f"The {name!r} parameter of {owner} must be > 0. Got {value!r} instead.")
        length = 2 if family == "bernoulli" else d
        if not np.isscalar(value) and len(value) != length:
            raise ValueError(
                f"The {name!r} parameter of {owner} must be a number or have {length} entries, for {family!r}. Got "
                f"{len(value)}."
            )
    if family != "gaussian":
        return
    dof, least = estimator.degrees_of_freedom_prior, d - 1 if estimator.covariance_type in ("full", "tied") else 0
    if dof is not None and dof <= least:
        raise ValueError(
            f"The 'degrees_of_freedom_prior' parameter of {owner} must be above {least}, the number of measurements "
            f"less one. Got {dof!r} instead."
        )
    _check_array(owner, "mean_prior", estimator.mean_prior, (d,))
    shape = {"full": (d, d), "tied": (d, d), "diag": (d,), "spherical": ()}[estimator.covariance_type]
    covariance = _check_array(owner, "covariance_prior", estimator.covariance_prior, shape)
    if covariance is None:
        return
    positive = np.linalg.eigvalsh((covariance + covariance.T) / 2) if covariance.ndim == 2 else covariance
    symmetric = covariance.ndim < 2 or np.allclose(covariance, covariance.T)
    if not symmetric or (np.asarray(positive) <= 0).any():
        raise ValueError(
            f"The 'covariance_prior' parameter of {owner} must be "
            + ("symmetric and positive definite." if covariance.ndim == 2 else "> 0.")
            + f" Got {estimator.covariance_prior!r} instead."
        )


def _check_array(owner: str, name: str, value, shape: tuple) -> np.ndarray | None:
    """A parameter as a finite array of a shape, or None."""
    if value is None:
        return None
    array = np.asarray(value, dtype=float)
    if array.shape != shape or not np.isfinite(array).all():
        wanted = f"a finite array of shape {shape}" if shape else "a finite number"
        raise ValueError(f"The {name!r} parameter of {owner} must be {wanted}. Got {value!r} instead.")
    return array


def _is_ragged(value) -> bool:
    return not np.isscalar(value) and any(not np.isscalar(row) for row in value)
