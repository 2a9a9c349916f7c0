"""A factor analysis as fitted: loadings as they are shown, rotated, and scores of rows on the factors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self, cast

import numpy as np

from skvbem._lazy import cached_property
from skvbem.emissions.factor.analyzer import FactorAnalyzer
from skvbem.emissions.factor.scores import factors_of, mean_noise, variances_of
from skvbem.families.hierarchical import regression_of
from skvbem.fitted.base import Intervals, Parameters
from skvbem.fitted.mixture import FittedMixture
from skvbem.fitted.parameter_tables import ParameterTable
from skvbem.fitted.rotations import (
    ROTATIONS,
    explained_variance,
    matched,
    nearest_orthogonal,
    order_and_signs,
    rotated,
)

# A uniqueness at which a column is named, in floors of maximum likelihood.
_NEAR = 2.0


@dataclass(frozen=True, eq=False)
class FittedFactorAnalysis(FittedMixture):
    """A mixture of one component, a factor analyzer, whose loadings are shown in some rotation.

    Parameters
    ----------
    rotation : str, optional
        As `ROTATIONS` names it.
    like : FittedFactorAnalysis, optional
        The fit whose factors those of a draw are named after.
    """

    rotation: str | None = None
    like: FittedFactorAnalysis | None = None

    #: Factors are drawn row by row.
    sweep_cost = 4.0

    def at(self, natural: np.ndarray) -> Self:
        """The model at a point that was drawn, natural parameters (n_cells,), in place of the fit."""
        return replace(super().at(natural), like=self)

    def continues(self, columns, model) -> bool:
        """True if another model has as many factors of the same columns."""
        return super().continues(columns, model) and self.n_factors == model.emission.n_factors

    @property
    def emission(self) -> FactorAnalyzer:
        """The factor analyzer."""
        return cast(FactorAnalyzer, self.model.emission)

    @property
    def n_factors(self) -> int:
        """Number of factors."""
        return self.emission.n_factors

    @property
    def weights(self) -> np.ndarray:
        """The weight of the only component."""
        return np.ones(1)

    @property
    def is_oblique(self) -> bool:
        """True if factors as they are shown may be correlated."""
        return self.rotation is not None and ROTATIONS[self.rotation].is_oblique

    # Loadings, as they are found and as they are shown ----------------------------------------------------------------

    @cached_property
    def as_found(self) -> dict[str, np.ndarray]:
        """Means, loadings, variances of noise and the covariance, as the fit found them."""
        return {name: each[0] for name, each in self.emission.parameters(self.point[-1]).items()}

    @cached_property
    def deviations(self) -> np.ndarray:
        """Standard deviations of the columns under the model, (d,)."""
        return np.sqrt(np.diagonal(self.as_found["covariances"]))

    @cached_property
    def turn(self) -> np.ndarray:
        """T: loadings are shown as those found times the inverse of its transpose, factors are turned by it, (q, q)."""
        if self.like is not None:
            return self._turns_like(self.like, self.as_found["loadings"][None], self.deviations[None])[0]
        loadings = self.as_found["loadings"] / self.deviations[:, None]
        turn = np.eye(self.n_factors) if self.rotation is None else ROTATIONS[self.rotation].of(loadings)
        order, signs = order_and_signs(rotated(loadings, turn), turn.T @ turn)
        return (turn * signs)[:, order]

    @cached_property
    def loadings(self) -> np.ndarray:
        """Loadings as they are shown, in the units of the data, (d, q)."""
        return rotated(self.as_found["loadings"], self.turn)

    @cached_property
    def standardized_loadings(self) -> np.ndarray:
        """Loadings of columns of variance 1, (d, q)."""
        return self.loadings / self.deviations[:, None]

    @property
    def correlations(self) -> np.ndarray:
        """Correlations of the factors, (q, q)."""
        return self.turn.T @ self.turn

    @property
    def uniquenesses(self) -> np.ndarray:
        """The share of each column's variance that is noise, (d,)."""
        return self.as_found["noise_variances"] / self.deviations**2

    @property
    def near_floor(self) -> list[str]:
        """Columns with next to no noise (Heywood cases)."""
        least = _NEAR * self.emission.layout(1).floor
        unit = self.emission.unit if self.emission.spherical else self.deviations
        noise = self.as_found["noise_variances"] / unit**2
        return [name for name, share in zip(self.columns.names, noise) if share <= least]

    @cached_property
    def relevance(self) -> np.ndarray | None:
        """Expected precisions of the loadings of the factors as they are shown without a rotation; None if known.

        Where columns come in groups, of each group, (n_groups, q).
        """
        of_base = self.emission.relevance(regression_of(self.model.prior.blocks[-1]))
        if not self.n_factors or of_base.any():
            return None
        loadings = self.as_found["loadings"] / self.deviations[:, None]
        order, _ = order_and_signs(loadings, np.eye(self.n_factors))
        relevance = self.emission.relevance(regression_of(self.prior_as_found.blocks[-1]))[0][:, order]
        return relevance if self.emission.group_of else relevance[0]

    @cached_property
    def loadings_deviations(self) -> np.ndarray:
        """Standard deviations of the shown loadings under q(theta), the rotation held, (d, q); NaN of a point."""
        if not self.form.density:
            return np.full(self.loadings.shape, np.nan)
        posterior, unit = self.posterior.blocks[-1], self.emission.unit
        covariance = posterior.covariance[posterior.precision_of][:, 1:, 1:]
        back = np.linalg.inv(self.turn).T if self.n_factors else np.zeros((0, 0))
        squares = np.einsum("as,jab,bs->js", back, covariance, back)
        return unit[:, None] * np.sqrt(mean_noise(posterior)[posterior.noise_of_row][:, None] * squares)

    # Draws ------------------------------------------------------------------------------------------------------------

    def named_parameters(self, point: tuple) -> Parameters:
        """Means, loadings in their rotation, uniquenesses and the like, at a point, by name."""
        of_draws = self._shown({name: each[None] for name, each in self.emission.parameters(point[-1]).items()})
        return {group: {name: each[0] for name, each in of.items()} for group, of in of_draws.items()}

    def parameters_of_draws(self, natural: np.ndarray) -> Parameters:
        """Parameters at natural parameters (n_cells, n_draws): every draw in its own rotation, named as in the fit."""
        return self._shown(self._found_of_draws(natural))

    def judged(self, natural: np.ndarray) -> np.ndarray:
        """Means, noise and covariances of draws, which no turn of the factors changes; chains turn them slowly."""
        of_draws = self._found_of_draws(natural)
        rows, columns = np.tril_indices(len(self.deviations))
        numbers = [of_draws[name][:, 0] for name in ("means", "noise_variances", "covariances")]
        numbers[-1] = numbers[-1][:, rows, columns] if self.n_factors else numbers[-1][:, :0, 0]
        return np.concatenate(numbers, axis=1).T

    def _found_of_draws(self, natural: np.ndarray) -> dict[str, np.ndarray]:
        """Parameters of each draw as it was found, (n_draws, 1, ...)."""
        return self.emission.parameters_of_draws(self.model.prior.from_natural(natural)[-1])

    def _shown(self, of_draws: dict[str, np.ndarray]) -> Parameters:
        """Parameters of draws (n_draws, 1, ...) as they are shown, by group and name, (n_draws, ...)."""
        drawn = {name: each[:, 0] for name, each in of_draws.items()}
        deviations = np.sqrt(np.diagonal(drawn["covariances"], axis1=-2, axis2=-1))
        turns = self._turns_like(self.like or self, drawn["loadings"], deviations)
        drawn["loadings"] = rotated(drawn["loadings"], turns)
        drawn["standardized_loadings"] = drawn["loadings"] / deviations[..., None]
        drawn["uniquenesses"] = drawn["noise_variances"] / deviations**2
        if self.is_oblique:
            drawn["factor_correlations"] = turns.swapaxes(-1, -2) @ turns
        return {self.groups.groups[0].name: drawn}

    def _turns_like(
        self, like: Self | FittedFactorAnalysis, loadings: np.ndarray, deviations: np.ndarray
    ) -> np.ndarray:
        """T of many loadings (n, d, q): turned to those of a fit, rotated for themselves, and named as they are there.

        Without a rotation they are turned to those of the fit [Schönemann 1966].
        """
        if not self.n_factors:
            return np.zeros((len(loadings), 0, 0))
        loadings = loadings / deviations[..., None]
        onto = nearest_orthogonal(loadings.swapaxes(-1, -2) @ (like.as_found["loadings"] / like.deviations[:, None]))
        if self.rotation is None:
            return onto @ like.turn
        turns = onto @ ROTATIONS[self.rotation].near(loadings @ onto, like.turn)
        order, signs = matched(rotated(loadings, turns), like.standardized_loadings)
        return np.take_along_axis(turns, order[:, None, :], axis=2) * signs[:, None, :]

    def quantiles(self, probability: float) -> Parameters:
        """Quantiles of the means; those of loadings, which are rotated, have no closed form."""
        of_emission = self.emission.quantiles(self.posterior.blocks[-1], probability)
        return {self.groups.groups[0].name: {name: each[0] for name, each in of_emission.items()}}

    def report(self, intervals: Intervals | None) -> list[ParameterTable]:
        """Tables of the variance that each factor explains, then of loadings and noise of each column."""
        names = [f"factor {k}" for k in range(self.n_factors)]
        explained = explained_variance(self.standardized_loadings, self.correlations)
        tables = []
        if names:
            of_columns = {"variance explained, in columns": explained, "share": explained / len(self.deviations)}
            tables.append(ParameterTable("factors", list(of_columns), names, np.stack(list(of_columns.values()))))
        if self.is_oblique and names:
            ends = None if intervals is None else self._of(intervals).get("factor_correlations")
            tables.append(ParameterTable("correlations of factors", names, names, self.correlations, ends))
        values = np.column_stack([self.loadings, self.uniquenesses, self.as_found["means"]])
        ends = None
        if intervals is not None:
            of_group = self._of(intervals)
            unknown = np.full(self.loadings.shape, np.nan), np.full(len(self.uniquenesses), np.nan)
            each = [
                of_group.get("loadings", (unknown[0], unknown[0])),
                of_group.get("uniquenesses", (unknown[1], unknown[1])),
                of_group["means"],
            ]
            ends = tuple(np.column_stack([pair[side] for pair in each]) for side in (0, 1))
        columns = [*names, "uniqueness", "mean"]
        return [*tables, ParameterTable("loadings", list(self.columns.names), columns, values, ends)]

    def _of(self, intervals: Intervals) -> Mapping[str, Any]:
        return intervals[self.groups.groups[0].name]

    # Rows -------------------------------------------------------------------------------------------------------------

    def scores(self, values: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Means (n, q) and covariances (n, q, q) of the shown factors of rows given what is observed of them."""
        means, covariances = self._factors(values)
        return means @ self.turn, self.turn.T @ covariances @ self.turn

    def variances(self, values: list[np.ndarray]) -> np.ndarray:
        """Variances of the cells of rows if they were missing, given the observed ones, (n, d)."""
        block = self.posterior.blocks[-1] if self.form.density else self.point[-1]
        return variances_of(self.emission, block, *self._factors(values))

    def _factors(self, values: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Means and covariances of the factors that were found."""
        natural = self.posterior.expected_natural() if self.form.density else self.model.prior.natural(self.point)
        table = self.emission.prepare(self.groups.as_emission_takes(values))
        return factors_of(self.emission, table, self.model.prior.split(natural)[-1])
