"""Models whose rows have one hidden label each, as fitted: what mixtures and hidden Markov models share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from skvbem.emissions import Emission
from skvbem.estimators.input.column_groups import ColumnGroups
from skvbem.families import NormalPoint, Product
from skvbem.vbem.fit import Fit, best_of
from skvbem.vbem.posteriors import Form


@dataclass(frozen=True, eq=False)
class EmissionRecipe:
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

    #: Makes full steps of (model, data, form, n_threads).
    ascent: ClassVar[Callable]

    seed: tuple[int, ...]
    starts: np.ndarray
    select: bool
    limits: Mapping[str, Any]

    def run(self, model, data, form: Form, n_threads: int = 1, stop: Callable | None = None) -> Fit:
        """The best fit."""
        return self._best(model, data, form, self.starts, n_threads, stop)

    def refit(self, model, data, form: Form, fit: Fit, n_threads: int = 1) -> Fit:
        """The best fit of another form, from the starts of a fit and from where it ended."""
        return self._best(model, data, form, np.column_stack([fit.statistics, self.starts]), n_threads)

    def settled(self, ascent, fit: Fit, stop: Callable | None) -> Fit:
        """What becomes of the best fit."""
        return fit

    def _best(self, model, data, form: Form, starts: np.ndarray, n_threads: int, stop: Callable | None = None) -> Fit:
        ascent = type(self).ascent(model, data, form, n_threads)
        fit = best_of(ascent, starts, select=self.select, stop=stop, **self.limits)
        return self.settled(ascent, fit, stop)


@dataclass(frozen=True, eq=False)
class FittedEmissions:
    """How columns are read, a model with its prior, and the statistics of the data it has seen.

    Parameters
    ----------
    groups : ColumnGroups
    model : Mixture or HMM
        The last block of its prior is that of the emission.
    form : Form
        Of q(theta).
    statistics : ndarray of shape (n_cells,)
    """

    groups: ColumnGroups
    model: Any
    form: Form
    statistics: np.ndarray

    @property
    @abstractmethod
    def counts(self) -> np.ndarray:
        """Expected rows of each component, (n_components,)."""

    def continues(self, groups: ColumnGroups, model) -> bool:
        """Whether another model has as many components of the same columns, read in the same way."""
        return self.model.n_components == model.n_components and self.groups.meaning() == groups.meaning()

    @property
    def emission(self) -> Emission:
        """The emission of the groups."""
        return self.model.emission

    @cached_property
    def posterior(self):
        """q(theta) of VB, block by block."""
        return self.model.prior + self.statistics

    @cached_property
    def point(self) -> tuple:
        """The point found (MAP, ML), or the mode of q(theta) in its natural coordinates."""
        found = self.form.point_of(self.model.prior, self.statistics)
        return self.model.prior.with_exact_zeros(found) if self.form.prior_share == 0.0 else found

    def imputed(self, block: Any, responsibilities: np.ndarray) -> list[np.ndarray]:
        """Rows of each group with missing cells filled: under VB by predictive means, else by means at the point."""
        point = self.emission.predictive_point(self.posterior.blocks[-1]) if self.form.density else self.point[-1]
        return self.groups.as_list(self.emission.impute(block, point, responsibilities))

    def parameters(self) -> list[dict[str, np.ndarray]]:
        """The parameters of each group's components, by name."""
        return self.groups.as_list(self.emission.parameters(self.point[-1]))

    def hyperparameters(self) -> dict[str, Any]:
        """What the emissions show besides `parameters_`, by attribute; by group too where several have an attribute."""
        prior, posterior = self.model.prior.blocks[-1], self.posterior.blocks[-1] if self.form.density else None
        parts = getattr(self.emission, "parts", (self.emission,))
        found: dict[str, dict[str, Any]] = {}
        for k, (group, part, parameters) in enumerate(zip(self.groups.groups, parts, self.parameters())):
            of_part = (family.blocks[k] if isinstance(family, Product) else family for family in (prior, posterior))
            for name, value in group.specification.attributes(part, parameters, *of_part).items():
                found.setdefault(name, {})[group.name] = value
        return {
            name: by_group if len(by_group) > 1 else next(iter(by_group.values())) for name, by_group in found.items()
        }

    def quantiles(self, *probabilities: float) -> list[list[dict[str, np.ndarray]]]:
        """For each probability, the quantiles of q(theta) of each group's parameters, by name."""
        of_emission = (self.emission.quantiles(self.posterior.blocks[-1], share) for share in probabilities)
        return [self.groups.as_list(found) for found in of_emission]

    def at_floor(self) -> list[int]:
        """Components whose covariance the floor of maximum likelihood has stopped in some direction."""
        points = self.point[-1] if isinstance(self.model.prior.blocks[-1], Product) else (self.point[-1],)
        stopped = [point.at_floor() for point in points if isinstance(point, NormalPoint)]
        n = self.model.n_components
        return np.flatnonzero(np.any([np.broadcast_to(each, n) for each in stopped] or [np.zeros(n)], axis=0)).tolist()
