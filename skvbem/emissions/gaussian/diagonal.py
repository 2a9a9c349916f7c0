r"""Measurements, independent given the component: :math:`N(y_j \mid \mu_{kj}, 1 / \lambda_{kj})`.

Each component has a precision for every column ("diag") or one for all ("spherical"); priors are Normal-Gamma. Columns
are measured in standard deviations from their means (all columns in the same unit where they share a precision), so
that neither a large offset nor a unit of measure makes a difference. Predictive: Student's t. Missing cells are left
out.

The expanded square costs one matrix product. Its rounding error is about 1e-16 times the largest
:math:`\lambda_{kj}\, y_j^2` there may be, in units; where that passes 1e7, squares of differences are summed instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np
from scipy.special import stdtrit

from skvbem._numerics import log_rising
from skvbem.blocks import Blocks
from skvbem.emissions.base import Products, Step, by_row, draws_first
from skvbem.emissions.gaussian.dense import NormalPriorEmission
from skvbem.emissions.gaussian.dense_step import MAX_EXPANDED_SQUARE
from skvbem.emissions.linear import LinearEmission, LinearStep, LinearTable
from skvbem.emissions.moments import root_mean_square, weighted_moments
from skvbem.families import NormalGamma, NormalPoint
from skvbem.families.hierarchical import HiddenMeanPrecision, HiddenScale, Hierarchical, normal_gamma_prior
from skvbem.families.hyperpriors import floor_of_scales


@dataclass(frozen=True, eq=False)
class DiagonalGaussian(NormalPriorEmission, LinearEmission):
    """Gaussian measurements, independent given the component.

    Parameters
    ----------
    origin, mean : ndarray of shape (n_columns,)
        The origin of each column, and the mean of the data above it, in units.
    unit : ndarray of shape (n_columns,)
        All the same if `spherical`.
    spherical : bool
        Whether the columns of a component share one precision.
    total_weight : float
        Of the data, rows.
    """

    origin: np.ndarray
    mean: np.ndarray
    unit: np.ndarray
    spherical: bool = False
    total_weight: float = 1.0

    @classmethod
    def for_data(
        cls, values: np.ndarray | Blocks, weight: np.ndarray | None = None, *, spherical: bool = False
    ) -> Self:
        """The emission of measurements (n_rows, n_columns), NaN where missing, with weights (n_rows,)."""
        moments = weighted_moments(values, weight)
        unit = moments.deviation
        if spherical:
            unit = np.full(len(unit), root_mean_square(unit))
        return cls(moments.origin, moments.mean / unit, unit, spherical, moments.total_weight)

    @property
    def n_columns(self) -> int:
        """Columns of a row."""
        return len(self.origin)

    @property
    def doubles_per_row(self) -> int:
        """Doubles that a block holds for each row."""
        return 3 * self.n_columns + 1

    @property
    def n_precisions(self) -> int:
        """Precisions of a component."""
        return 1 if self.spherical else self.n_columns

    def hyperparameters(self, family: NormalGamma) -> dict[str, np.ndarray]:
        """Arguments of `default_prior`, one of each for each component."""
        shared = self.n_columns // self.n_precisions
        covariance = family.scale / shared * self.unit[: self.n_precisions] ** 2
        return {
            "mean": self.origin + family.mean * self.unit,
            "mean_precision": family.mean_precision[:, 0],
            "degrees_of_freedom": family.degrees_of_freedom[:, 0] / shared,
            "covariance": covariance[:, 0] if self.spherical else covariance,
        }

    def _in_units(self, away: np.ndarray) -> np.ndarray:
        return away / self.unit

    def _prior(
        self,
        n_components: int,
        mean: np.ndarray,
        mean_precision: float | HiddenMeanPrecision,
        dof: float | None,
        covariance: np.ndarray | str | None,
    ) -> NormalGamma | Hierarchical:
        """Normal-Gamma distributions; a precision that d columns share has d times the degrees of freedom."""
        p, shared = self.n_precisions, self.n_columns // self.n_precisions
        variances = np.full(p, float(shared))
        if dof is None:
            dof = 3.0 if isinstance(covariance, str) else 1.0
        scale: np.ndarray | HiddenScale = variances
        if isinstance(covariance, str):
            scale = HiddenScale(float(shared), dof * variances, floor_of_scales(self.total_weight) * variances)
        elif covariance is not None:
            scale = np.broadcast_to(covariance, p) / self.unit[:p] ** 2 * shared
        return normal_gamma_prior(n_components, mean, mean_precision, dof * shared, scale)

    def measure(self, values: np.ndarray) -> np.ndarray:
        """Measurements in units from the origin, (n_columns, n_rows)."""
        measured = super().measure(values)
        measured -= self.origin[:, None]
        measured *= 1.0 / self.unit[:, None]
        return measured

    def features(self, block: LinearTable) -> np.ndarray:
        """1 (one for all columns where nothing is missing), measurements and their squares."""
        (measured, observed), p = block.columns, self.n_precisions
        features = np.empty((len(observed) + len(measured) + p, len(block)))
        features[: len(observed)] = observed
        features[len(observed) : -p] = measured
        if self.spherical:
            np.einsum("jn,jn->n", measured, measured, out=features[-1])
        else:
            np.multiply(measured, measured, out=features[-p:])
        return features

    def fold(self, natural: np.ndarray, complete: bool) -> np.ndarray:
        """Log densities at the origin multiply 1; the rest as it is."""
        norm, log_root, total, square = self._split(natural)
        at_origin = norm + log_root - np.log(self.unit)
        if complete:
            at_origin = at_origin.sum(axis=-1, keepdims=True)
        return np.concatenate([at_origin, total, square], axis=-1)

    def unfold(self, sums: np.ndarray, complete: bool) -> np.ndarray:
        """Counts are added to mean precisions and to degrees of freedom."""
        d, p = self.n_columns, self.n_precisions
        n, rest = sums[..., : -d - p], sums[..., -d - p :]
        n = np.broadcast_to(n, (*n.shape[:-1], d))
        return np.concatenate([n, n.sum(axis=-1, keepdims=True) if p < d else n, rest], axis=-1)

    @property
    def products(self) -> Products:
        """Counts, measurements and their squares."""
        d, p = self.n_columns, self.n_precisions
        columns, zeros = np.arange(d), np.zeros(d, dtype=int)
        of_precision = columns if p == d else zeros
        cell = np.concatenate([columns, d + of_precision, d + p + columns, 2 * d + p + of_precision])
        one = np.concatenate([zeros, zeros, 1 + columns, 1 + columns])
        other = np.concatenate([zeros, zeros, zeros, 1 + columns])
        units = self.origin, self.unit, np.empty(0), np.empty(0)
        return Products(cell, one, other, np.tile(columns, 4), np.ones(len(cell)), *units)

    def step(self, natural: np.ndarray, table: LinearTable) -> Step:
        """The emission at natural parameters (n_cells,) or (n_cells, n_lanes)."""
        return DiagonalStep(self, natural, table.reach)

    def log_predictive(self, block: LinearTable, posterior: NormalGamma) -> np.ndarray:
        """Student t log densities, nats, (n_rows, n_components); jointly over columns that share a precision."""
        measured, observed = block.columns
        dof, scale = posterior.degrees_of_freedom, posterior.scale
        share = posterior.mean_precision / (posterior.mean_precision + 1)
        of_columns = 0.5 * np.log(share) - np.log(self.unit)
        of_precisions = -0.5 * (np.log(np.pi) + np.log(scale))
        log_density = np.empty((posterior.n_components, len(block)))
        for k in range(posterior.n_components):  # one by one, so that rows are the long axis
            squares = share[k, :, None] * (measured - posterior.mean[k, :, None]) ** 2
            if self.spherical:
                n = np.broadcast_to(observed, measured.shape).sum(axis=0)
                distance = np.log1p((observed * squares).sum(axis=0) / scale[k])
                log_density[k] = of_columns[k] @ np.broadcast_to(observed, measured.shape) + n * of_precisions[k]
                log_density[k] += log_rising(dof[k] / 2, n / 2) - (dof[k] + n) / 2 * distance
                continue
            distance = observed * np.log1p(squares / scale[k, :, None])
            each = of_columns[k] + of_precisions[k] + log_rising(dof[k] / 2, 0.5)
            log_density[k] = each @ np.broadcast_to(observed, measured.shape) - (dof[k] + 1) / 2 @ distance
        return np.ascontiguousarray(log_density.T)

    def sample(self, point: NormalPoint, components: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Measurements drawn."""
        noise = rng.standard_normal((len(components), self.n_columns)) / np.sqrt(point.precision[components])
        return self.origin + self.unit * (point.mean[components] + noise)

    def impute(self, block: LinearTable, point: NormalPoint, responsibilities: np.ndarray) -> np.ndarray:
        """Rows with missing cells replaced by their means."""
        values = np.asarray(block.values, dtype=float)
        means = self.origin + self.unit * point.mean
        return np.where(np.isnan(values), responsibilities @ means, values)

    def seeding_coordinates(self, block: LinearTable) -> np.ndarray:
        """Rows in units from the means of the columns."""
        return block.columns[0].T

    def quantiles(self, posterior: NormalGamma, probability: float) -> dict[str, np.ndarray]:
        """Quantiles of the means, each of which is Student t distributed."""
        dof = posterior.degrees_of_freedom
        reach = stdtrit(dof, probability) * np.sqrt(posterior.scale / dof / posterior.mean_precision)
        return {"means": self.origin + self.unit * (posterior.mean + reach)}

    def parameters(self, point: NormalPoint) -> dict[str, np.ndarray]:
        """Means (n_components, n_columns); covariances and precisions of that shape, or (n_components,)."""
        precision = point.precision / self.unit[: self.n_precisions] ** 2
        if self.spherical:
            precision = precision[..., 0]
        means = self.origin + self.unit * point.mean
        return {"means": means, "covariances": 1 / precision, "precisions": precision}

    def parameters_of_draws(self, points: NormalPoint) -> dict[str, np.ndarray]:
        """The `parameters` of points with draws along a last axis, all at once."""
        return self.parameters(draws_first(points))

    def point_of(self, parameters: Mapping[str, np.ndarray]) -> NormalPoint:
        """Means and inverse variances in units; see `parameters`."""
        variances = parameters["covariances"].reshape(-1, self.n_precisions)
        unit = self.unit[: self.n_precisions]
        return NormalPoint((parameters["means"] - self.origin) / self.unit, unit**2 / variances)

    def _split(self, natural: np.ndarray) -> list[np.ndarray]:
        """Mean precisions, degrees of freedom, sums and squares of cells (..., cells per component)."""
        d, p = self.n_columns, self.n_precisions
        ends = (0, d, d + p, 2 * d + p, 2 * (d + p))
        return [natural[..., first:last] for first, last in pairwise(ends)]

    @property
    def cells_per_component(self) -> int:
        """Cells of natural parameters, and of statistics, of one component."""
        return 2 * (self.n_columns + self.n_precisions)


class DiagonalStep(LinearStep):
    """A diagonal Gaussian at natural parameters, for rows within a reach."""

    def __init__(self, emission: DiagonalGaussian, natural: np.ndarray, reach: np.ndarray):
        super().__init__(emission, natural)
        norm, log_root, total, square = emission._split(self.natural)
        self.expanded = (-2 * square * reach**2).max(initial=0.0) <= MAX_EXPANDED_SQUARE
        if not self.expanded:
            peak = norm + log_root - np.log(emission.unit) - 0.25 * total**2 / square
            d = emission.n_columns
            members = (peak, -0.5 * total / square, -square)
            self._members = [np.broadcast_to(x, total.shape).reshape(-1, d, 1) for x in members]

    def log_likelihood(self, block: LinearTable) -> np.ndarray:
        """Expected log likelihoods of rows, nats."""
        if self.expanded:
            return super().log_likelihood(block)
        measured, observed = block.columns
        rows = [
            (observed * (peak - half * (measured - mean) ** 2)).sum(axis=0) for peak, mean, half in zip(*self._members)
        ]
        return by_row(np.array(rows) + block.base, self.n_components, self.single)
