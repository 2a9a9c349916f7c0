r"""Measurements with a precision matrix: :math:`N(y \mid \mu_k, \Lambda_k^{-1})`, of each component or shared by all.

Priors are Normal-Wishart. Rows are measured in a frame :math:`z = M (y - c)` in which the data have mean 0 and
covariance close to the identity (`skvbem.emissions.moments`: shrunk, so that columns may be collinear): neither an
offset nor a unit of measure makes a difference. Predictive: multivariate t.

**Missing cells** are hidden variables of their row, with moments under the natural parameters given. With
:math:`\ln p = a + h^\top z - \tfrac12 z^\top J z`, the missing cells' part of z being :math:`B t` (B columns of M),

.. math::

    \int e^{\ln p}\, dt: \quad J \to J - J B Q^{-1} B^\top J,\quad h \to h - J B Q^{-1} B^\top h,\quad
    a \to a + \tfrac12 h^\top B Q^{-1} B^\top h + \tfrac m2 \ln 2\pi - \tfrac12 \ln|Q|, \qquad Q = B^\top J B,

and the row completed is :math:`T z + e` with :math:`T = I - B Q^{-1} B^\top J`, :math:`e = B Q^{-1} B^\top h`, and
covariance :math:`B Q^{-1} B^\top`. The bound is then one on the evidence of the observed cells: with one component it
is below it, as the hidden cells are held independent of the parameters. A row without observed cells is left out.

**Two forms.** Expanded, the square costs one matrix product with 1, z and the products of z with itself. Its rounding
error is about 1e-16 times :math:`\max_k \sum_{ij} |J_{kij}| R_i R_j`, R the reach of the data; where that passes 1e7,
or for more than 40 columns, triangular factors multiply differences instead, component by component.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy.special import stdtrit

from skvbem._arguments import is_option
from skvbem._kernels import _partitions
from skvbem._lazy import cached_property
from skvbem._memory import OF_BLOCKS
from skvbem._numerics import log_rising
from skvbem.blocks import Blocks
from skvbem.emissions.base import Emission, Products, draws_first
from skvbem.emissions.gaussian.dense_step import MAX_EXPANDED_COLUMNS, DenseStep
from skvbem.emissions.gaussian.dense_table import DenseTable, missing_patterns
from skvbem.emissions.gaussian.quadratic import Quadratic
from skvbem.emissions.moments import ROWS_AT_ONCE, weighted_moments
from skvbem.emissions.specification import BY_COLUMN, is_hierarchical
from skvbem.families import NormalPoint, NormalWishart
from skvbem.families.hierarchical import HiddenMeanPrecision, HiddenScale, Hierarchical, normal_wishart_prior
from skvbem.families.hyperpriors import floor_of_scales

#: Hyperprior of the weight of means, in data.
WEIGHT_OF_MEANS = HiddenMeanPrecision(shape=0.5, rate=0.5)


class NormalPriorEmission(Emission):
    """Measurements whose components have a mean and a precision of some shape.

    An `origin`, the `mean` of the data above it, in the emission's units, and their `total_weight` are fields of its
    subclasses.
    """

    origin: np.ndarray
    mean: np.ndarray
    total_weight: float

    def default_prior(
        self,
        n_components: int,
        *,
        mean_prior=None,
        mean_precision_prior: float | str = 1.0,
        degrees_of_freedom_prior: float | None = None,
        covariance_prior=None,
    ) -> Any:
        """One prior for all components: a Wishart prior of the precision matrix, restricted to its shape.

        Parameters
        ----------
        n_components : int
        mean_prior : array_like of shape (d,), optional
            The mean of the data if None.
        mean_precision_prior : float or "hierarchical", default=1.0
            Weight of `mean_prior`, in data; hidden, with a Gamma prior, if "hierarchical", one for each column if
            "by_column", where columns are independent.
        degrees_of_freedom_prior : float, optional
            More than d - 1 if the precision is a matrix. If None, d there (d + 2 under a hidden covariance), and 1 for
            each variance of components whose columns are independent (3 under a hidden one).
        covariance_prior : array_like or "hierarchical", optional
            (d, d), (d,) or a number, as the shape of the precision is; `degrees_of_freedom_prior` times its inverse is
            the prior mean of a precision. That of the data if None, correlations shrunk toward 0 by d / (n + d).
            If "hierarchical", hidden, with a Wishart prior (see `skvbem.families.hierarchical`).
        """
        mean = self.mean
        if mean_prior is not None:
            mean = self._in_units(np.asarray(mean_prior, dtype=float) - self.origin)
        hidden = is_hierarchical(covariance_prior)
        dof = None if degrees_of_freedom_prior is None else float(degrees_of_freedom_prior)
        weight: float | HiddenMeanPrecision = WEIGHT_OF_MEANS
        if isinstance(mean_precision_prior, str):
            weight = WEIGHT_OF_MEANS._replace(by_column=is_option(mean_precision_prior, BY_COLUMN))
        else:
            weight = float(mean_precision_prior)
        covariance = covariance_prior if hidden or covariance_prior is None else np.asarray(covariance_prior, float)
        return self._prior(n_components, mean, weight, dof, covariance)

    @abstractmethod
    def hyperparameters(self, family: Any) -> dict[str, np.ndarray]:
        """Arguments of `default_prior` that make each component of a prior or posterior.

        Returns
        -------
        dict of str to ndarray
            "mean" (n_components, d), "mean_precision" (n_components,), "degrees_of_freedom" (n_precisions,) and
            "covariance" (n_precisions, ...), in the units of the data. The mean of a precision is degrees of freedom
            times the inverse of this covariance.
        """

    @abstractmethod
    def _in_units(self, away: np.ndarray) -> np.ndarray:
        """A point (d,), given by its distance from the origin, in the emission's units."""

    @abstractmethod
    def _prior(
        self,
        n_components: int,
        mean: np.ndarray,
        mean_precision: float | HiddenMeanPrecision,
        dof: float | None,
        covariance: np.ndarray | str | None,
    ) -> Any:
        """The prior with a mean in the emission's units and a covariance in those of the data, or a hidden one."""


# Columns of rows that change their component one by one by a compiled loop, the nats up to which a gain is rounding,
# and sweeps over all rows.
_MAX_COLUMNS_OF_TRANSFERS, _MIN_GAIN, _MAX_SWEEPS = 32, 1e-6, 50
# Share of the variance of standardized columns, in some direction, that is taken for rounding. By hand: what follows
# exactly leaves less than 1e-15, up to a deviation of 1e-6 less than 2e-13, and from 1e-5 on more than 3e-12: half and
# double tell the same columns.
_COLLINEAR = 1e-12


@dataclass(frozen=True, eq=False)
class DenseGaussian(NormalPriorEmission):
    """Gaussian measurements with a full precision matrix.

    Parameters
    ----------
    origin : ndarray of shape (d,)
        c, in the units of the data.
    whitener : ndarray of shape (d, d)
        M, lower triangular.
    mean : ndarray of shape (d,)
        The mean of the data in the frame, nearly 0.
    tied : bool
        Whether all components share one precision matrix.
    total_weight : float
        Of the data, rows.
    """

    origin: np.ndarray
    whitener: np.ndarray
    mean: np.ndarray
    tied: bool = False
    total_weight: float = 1.0

    @classmethod
    def for_data(cls, values: np.ndarray | Blocks, weight: np.ndarray | None = None, *, tied: bool = False) -> Self:
        """The emission of measurements (n_rows, d), NaN where missing, with weights (n_rows,)."""
        moments = weighted_moments(values, weight)
        whitener = np.linalg.inv(np.linalg.cholesky(moments.correlation)) / moments.deviation
        whitener = np.tril(whitener)
        return cls(moments.origin, whitener, whitener @ moments.mean, tied, moments.total_weight)

    @property
    def n_columns(self) -> int:
        """Columns of a row, d."""
        return len(self.origin)

    @property
    def doubles_per_row(self) -> int:
        """Doubles that a block holds for each row."""
        d = self.n_columns
        return 1 + 2 * d + (d * (d + 1) // 2 if d <= MAX_EXPANDED_COLUMNS else 2 * d)

    @cached_property
    def unwhitener(self) -> np.ndarray:
        """The inverse of the whitener, lower triangular."""
        return np.tril(np.linalg.inv(self.whitener))

    def collinear(self, total_weight: float) -> list[int]:
        """Columns that leave a covariance matrix no width in some direction, up to rounding."""
        if total_weight <= self.n_columns:
            return []
        root, shrinkage = self.unwhitener, self.n_columns / (total_weight + self.n_columns)  # of the correlations
        deviation = np.sqrt((root**2).sum(axis=1))
        variance, axes = np.linalg.eigh(root @ root.T / deviation / deviation[:, None])
        nothing_left = variance - shrinkage < _COLLINEAR * self.n_columns
        return np.flatnonzero((axes[:, nothing_left] ** 2).sum(axis=1) > _COLLINEAR).tolist()

    @cached_property
    def log_volume(self) -> float:
        """ln|M|: the log density of the data is that in the frame plus this, nats."""
        return float(np.log(np.diagonal(self.whitener)).sum())

    def hyperparameters(self, family: NormalWishart) -> dict[str, np.ndarray]:
        """Arguments of `default_prior`, one of each for each mean or precision."""
        return {
            "mean": self.origin + family.mean @ self.unwhitener.T,
            "mean_precision": family.mean_precision,
            "degrees_of_freedom": family.degrees_of_freedom,
            "covariance": self.unwhitener @ family.scale @ self.unwhitener.T,
        }

    def in_frame(self, covariance: np.ndarray) -> np.ndarray:
        """A covariance matrix (d, d) of the data as it is in the frame, symmetric to the last digit."""
        scale = self.whitener @ covariance @ self.whitener.T
        return (scale + scale.T) / 2

    def _in_units(self, away: np.ndarray) -> np.ndarray:
        return self.whitener @ away

    def _prior(
        self,
        n_components: int,
        mean: np.ndarray,
        mean_precision: float | HiddenMeanPrecision,
        dof: float | None,
        covariance: np.ndarray | str | None,
    ) -> NormalWishart | Hierarchical:
        """Normal-Wishart distributions."""
        d = self.n_columns
        if dof is None:  # the fewest with which a hidden covariance has a mean, or d
            dof = d + 2.0 if isinstance(covariance, str) else float(d)
        scale: np.ndarray | HiddenScale = np.eye(d)
        if isinstance(covariance, str):
            scale = HiddenScale(float(d), dof * np.eye(d), floor_of_scales(self.total_weight) * np.eye(d))
        elif covariance is not None:
            scale = self.in_frame(covariance)
        return normal_wishart_prior(n_components, mean, mean_precision, dof, scale, shared=self.tied)

    def survey(self, values: np.ndarray) -> DenseTable:
        """A table without rows that knows how far the rows reach."""
        d, values = self.n_columns, np.asarray(values)
        none = DenseTable(self.origin, self.whitener, values[:0], None, np.zeros((0, d), dtype=bool), np.zeros(d))
        reach = none.reach
        for at in range(0, len(values), ROWS_AT_ONCE):
            block = values[at : at + ROWS_AT_ONCE]
            pattern, patterns = missing_patterns(block)
            frame = replace(none, values=block, pattern=pattern, patterns=patterns).frame
            reach = np.maximum(reach, frame.max(axis=1, initial=0.0))
            reach = np.maximum(reach, -frame.min(axis=1, initial=0.0))
        return replace(none, reach=reach)

    def prepare(self, values: np.ndarray, survey: DenseTable | None = None) -> DenseTable:
        """A table of rows, (n_rows, d), NaN where a cell is missing. The values are not copied."""
        values = np.asarray(values)
        pattern, patterns = missing_patterns(values)
        survey = self.survey(values) if survey is None else survey
        return replace(survey, values=values, pattern=pattern, patterns=patterns)

    def row_order(self, table: DenseTable) -> np.ndarray | None:
        """Rows with the same cells missing together."""
        return None if table.pattern is None else np.argsort(table.pattern, kind="stable")

    def step(self, natural: np.ndarray, table: DenseTable) -> DenseStep:
        """The emission at natural parameters (n_cells,) or (n_cells, n_lanes), for rows within the table's reach."""
        return DenseStep(natural, table.reach, whitener=self.whitener, log_volume=self.log_volume, tied=self.tied)

    def log_predictive(self, block: DenseTable, posterior: NormalWishart) -> np.ndarray:
        """Multivariate t log densities, nats, (n_rows, n_components)."""
        d, dof, scale = self.n_columns, posterior.degrees_of_freedom, posterior.scale
        share = posterior.mean_precision / (posterior.mean_precision + 1)
        factor = np.linalg.inv(np.linalg.cholesky(scale))  # of the inverse scale, F^T F
        quadratic = Quadratic(factor.swapaxes(-1, -2) @ factor, posterior.mean, np.zeros(len(posterior.mean)))
        log_det = -2 * np.log(np.diagonal(factor, axis1=-2, axis2=-1)).sum(axis=-1) - 2 * self.log_volume
        log_densities = OF_BLOCKS.empty(len(posterior.mean), len(block))
        log_densities[:] = 0.0
        for rows, missing in block.runs:
            m, seen = len(missing), d - len(missing)
            if seen == 0:
                continue
            part = quadratic.without(self.whitener[:, list(missing)])
            squares = part.squares(block.frame[:, rows])
            squares *= share[:, None]
            np.log1p(squares, out=squares)
            squares *= ((dof - m + 1) / 2)[:, None]
            constant = log_rising((dof + 1 - d) / 2, seen / 2) - seen / 2 * np.log(np.pi)
            constant = constant - (log_det + part.log_det_hidden) / 2 + seen / 2 * np.log(share)
            log_densities[:, rows] = np.subtract(constant[:, None], squares, out=squares)
        return log_densities.T

    def sample(self, point: NormalPoint, components: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Measurements drawn."""
        root = np.linalg.inv(np.linalg.cholesky(point.precision))  # transposed, a root of the covariance
        which = np.minimum(components, len(root) - 1)
        noise = np.einsum("nji,nj->ni", root[which], rng.standard_normal((len(components), self.n_columns)))
        return self.origin + (point.mean[components] + noise) @ self.unwhitener.T

    def impute(self, block: DenseTable, point: NormalPoint, responsibilities: np.ndarray) -> np.ndarray:
        """Rows with missing cells replaced by their means given the observed ones."""
        values = np.array(block.values, dtype=float)
        quadratic = Quadratic(point.precision, point.mean, np.zeros(len(point.mean)))
        for rows, missing in block.runs:
            if len(missing):
                part, frame = quadratic.without(self.whitener[:, list(missing)]), block.frame[:, rows]
                completed = part.keep @ frame + part.shift[..., None]
                means = np.einsum("nk,kdn->nd", responsibilities[rows], completed) @ self.unwhitener.T + self.origin
                filled = values[rows]
                filled[:, list(missing)] = means[:, list(missing)]
                values[rows] = filled
        return values

    @property
    def products(self) -> Products | None:
        """Of the frame in standard deviations of columns; None where components share a precision."""
        if self.tied:
            return None
        d, unit = self.n_columns, np.sqrt((self.unwhitener**2).sum(axis=1))
        turn, (first, second) = self.whitener * unit, np.triu_indices(self.n_columns)
        j, i = (each.ravel() for each in np.indices((d, d)))
        pairs = np.indices((len(first), d, d)).reshape(3, -1)
        square, left, right = pairs
        zeros = np.zeros(2, dtype=int)
        return Products(
            np.concatenate([[0, 1], 2 + j, 2 + d + square]),
            np.concatenate([zeros, 1 + i, 1 + left]),
            np.concatenate([zeros, np.zeros_like(i), 1 + right]),
            np.concatenate([zeros, np.zeros_like(i), np.zeros_like(left)]),
            np.concatenate([np.ones(2), turn[j, i], turn[first[square], left] * turn[second[square], right]]),
            self.origin,
            unit,
            np.empty(0),
            np.empty(0),
            self.log_volume + float(np.log(unit).sum()),
            are_joint=True,
        )

    def is_conjugate(self, table: DenseTable) -> bool:
        """True if rows are observed whole or not at all."""
        return not any(0 < len(missing) < self.n_columns for _, missing in table.runs)

    def transferred(
        self,
        blocks: Sequence[DenseTable],
        weight: np.ndarray,
        prior: NormalWishart,
        order: np.ndarray,
        labels: np.ndarray,
    ) -> tuple[np.ndarray, float] | None:
        """Labels after transfers of single rows, and their evidence; None where no compiled loop finds them.

        That is so for gaps, many columns, or one precision for all components.
        """
        if self.tied or self.n_columns > _MAX_COLUMNS_OF_TRANSFERS or any(len(block.patterns) for block in blocks):
            return None
        labels, rows = labels.astype(np.int64), np.concatenate([block.frame.T for block in blocks])
        precision, freedom, mean, scale, rows, weight = (
            np.ascontiguousarray(each, dtype=float)
            for each in (prior.mean_precision, prior.degrees_of_freedom, prior.mean, prior.scale, rows, weight)
        )
        order = order.astype(np.int64)
        evidence = _partitions.transfer(
            precision, freedom, mean, scale, rows, weight, order, _MIN_GAIN, _MAX_SWEEPS, labels
        )
        return None if np.isnan(evidence) else (labels, evidence)

    def seeding_coordinates(self, block: DenseTable) -> np.ndarray:
        """Rows in standard deviations from the means of the columns."""
        deviation = np.sqrt((self.unwhitener**2).sum(axis=1))
        return np.nan_to_num((block.values - self.origin) / deviation, nan=0.0)

    def quantiles(self, posterior: NormalWishart, probability: float) -> dict[str, np.ndarray]:
        """Quantiles of the means, each of which is Student t distributed."""
        dof = (posterior.degrees_of_freedom - self.n_columns + 1)[:, None]
        scale = np.einsum("ij,kjl,il->ki", self.unwhitener, posterior.scale, self.unwhitener)
        reach = stdtrit(dof, probability) * np.sqrt(scale / dof / posterior.mean_precision[:, None])
        return {"means": self.origin + posterior.mean @ self.unwhitener.T + reach}

    def parameters(self, point: NormalPoint) -> dict[str, np.ndarray]:
        """Means (n_components, d), covariances and precisions (n_components, d, d), or (d, d) if tied."""
        precision = self.whitener.T @ point.precision @ self.whitener
        root = self.unwhitener @ np.linalg.inv(np.linalg.cholesky(point.precision)).swapaxes(-1, -2)
        covariance = root @ root.swapaxes(-1, -2)
        if self.tied:
            precision, covariance = precision[..., 0, :, :], covariance[..., 0, :, :]
        means = self.origin + point.mean @ self.unwhitener.T
        return {"means": means, "covariances": covariance, "precisions": precision}

    def parameters_of_draws(self, points: NormalPoint) -> dict[str, np.ndarray]:
        """The `parameters` of points with draws along a last axis, all at once."""
        return self.parameters(draws_first(points))

    def point_of(self, parameters: Mapping[str, np.ndarray]) -> NormalPoint:
        """Means and inverse covariances in the frame; see `parameters`."""
        covariances = parameters["covariances"]
        in_frame = np.stack([self.in_frame(each) for each in (covariances[None] if self.tied else covariances)])
        root = np.linalg.inv(np.linalg.cholesky(in_frame))
        means = (parameters["means"] - self.origin) @ self.whitener.T
        return NormalPoint(means, root.swapaxes(-1, -2) @ root)

    def work_without_rows(self, n_components: int) -> float:
        """Multiplications that invert the precision matrices of all components."""
        return float(self.n_columns) ** 3 * (1 if self.tied else n_components)

    @property
    def cells_per_component(self) -> int:
        """Of a mean, and of a precision matrix that is not shared."""
        d = self.n_columns
        return 1 + d + (0 if self.tied else 1 + d * (d + 1) // 2)

    @property
    def shared_cells(self) -> int:
        """Of the precision matrix that all share."""
        d = self.n_columns
        return 1 + d * (d + 1) // 2 if self.tied else 0
