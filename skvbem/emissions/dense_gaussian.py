r"""Measurements with a precision matrix: :math:`N(y \mid \mu_k, \Lambda_k^{-1})`, of each component or shared by all.

Priors are Normal-Wishart. Rows are measured in a frame :math:`z = M (y - c)` in which the data have mean 0 and
covariance close to the identity (`skvbem.emissions._moments`: shrunk, so that columns may be collinear): no offset, unit
or linear map of the columns makes a difference. Predictive: multivariate t.

**Missing cells** are hidden variables of their row, with moments under the natural parameters given. With
:math:`\ln p = a + h^\top z - \tfrac12 z^\top J z`, the missing cells' part of z being :math:`B t` (B the columns of M),

.. math::

    \int e^{\ln p}\, dt: \quad J \to J - J B Q^{-1} B^\top J,\quad h \to h - J B Q^{-1} B^\top h,\quad
    a \to a + \tfrac12 h^\top B Q^{-1} B^\top h + \tfrac m2 \ln 2\pi - \tfrac12 \ln|Q|, \qquad Q = B^\top J B,

and the row completed is :math:`T z + e` with :math:`T = I - B Q^{-1} B^\top J`, :math:`e = B Q^{-1} B^\top h`, and
covariance :math:`B Q^{-1} B^\top`. The bound is then one on the evidence of the observed cells: with one component it is
below it, as the hidden cells are held independent of the parameters. A row without observed cells is left out.

**Two forms.** Expanded, the square costs one matrix product with 1, z and the products of z with itself. Its rounding
error is about 1e-16 times :math:`\max_k \sum_{ij} |J_{kij}| R_i R_j`, R the reach of the data; where that passes 1e7, or
for more than 40 columns, triangular factors multiply differences instead, component by component.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

from skvbem._numerics import log_rising, pack_symmetric, pairings, safe_cholesky, unpack_symmetric
from skvbem.emissions._moments import weighted_moments
from skvbem.emissions.base import Emission, Step, as_matrix, by_cell, by_lane, by_row
from skvbem.families import NormalPoint, NormalWishart

_LOG_2PI = np.log(2 * np.pi)
#: Largest precision times squared reach for which the square is expanded, and most columns.
MOST_EXPANDED = 1e7
WIDEST_EXPANDED = 40


@dataclass(frozen=True, eq=False)
class DenseGaussian(Emission):
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
    """

    origin: np.ndarray
    whitener: np.ndarray
    mean: np.ndarray
    tied: bool = False

    @classmethod
    def for_data(cls, values: np.ndarray, weight: np.ndarray | None = None, *, tied: bool = False) -> Self:
        """The emission of measurements (n_rows, d), NaN where missing, with weights (n_rows,)."""
        moments = weighted_moments(values, weight)
        whitener = np.linalg.inv(np.linalg.cholesky(moments.correlation)) / moments.deviation
        whitener = np.tril(whitener)
        return cls(moments.origin, whitener, whitener @ moments.mean, tied)

    @property
    def n_columns(self) -> int:
        """Columns of a row, d."""
        return len(self.origin)

    @property
    def doubles_per_row(self) -> int:
        """Doubles that a block holds for each row."""
        d = self.n_columns
        return 1 + 2 * d + (d * (d + 1) // 2 if d <= WIDEST_EXPANDED else 2 * d)

    @cached_property
    def unwhitener(self) -> np.ndarray:
        """The inverse of the whitener, lower triangular."""
        return np.tril(np.linalg.inv(self.whitener))

    @cached_property
    def log_volume(self) -> float:
        """ln|M|: the log density of the data is that in the frame plus this, nats."""
        return float(np.log(np.diagonal(self.whitener)).sum())

    def default_prior(
        self,
        n_components: int,
        *,
        mean_prior=None,
        mean_precision_prior: float = 1.0,
        degrees_of_freedom_prior: float | None = None,
        covariance_prior=None,
    ) -> NormalWishart:
        """Normal-Wishart distributions, the same for all components.

        Parameters
        ----------
        n_components : int
        mean_prior : array_like of shape (d,), optional
            The mean of the data if None.
        mean_precision_prior : float, default=1.0
            Weight of `mean_prior`, in data.
        degrees_of_freedom_prior : float, optional
            More than d - 1; d if None.
        covariance_prior : array_like of shape (d, d), optional
            `degrees_of_freedom_prior` times its inverse is the prior mean of a precision matrix. The covariance of the
            data if None, its correlations shrunk toward 0 by d / (n + d).
        """
        d, n_precisions = self.n_columns, 1 if self.tied else n_components
        mean, scale = self.mean, np.eye(d)
        if mean_prior is not None:
            mean = self.whitener @ (np.asarray(mean_prior, dtype=float) - self.origin)
        if covariance_prior is not None:
            scale = self.whitener @ np.asarray(covariance_prior, dtype=float) @ self.whitener.T
            scale = (scale + scale.T) / 2
        dof = float(d) if degrees_of_freedom_prior is None else float(degrees_of_freedom_prior)
        return NormalWishart.from_parameters(
            mean=np.tile(mean, (n_components, 1)),
            mean_precision=np.full(n_components, float(mean_precision_prior)),
            degrees_of_freedom=np.full(n_precisions, dof),
            scale=np.tile(scale, (n_precisions, 1, 1)),
        )

    def prepare(self, values: np.ndarray) -> DenseTable:
        """A table of rows, (n_rows, d), NaN where a cell is missing. The values are not copied."""
        values = np.asarray(values)
        pattern, patterns = _missing_patterns(values)
        table = DenseTable(self, values, pattern, patterns, np.zeros(self.n_columns))
        reach = np.zeros(self.n_columns)
        for at in range(0, len(values), 4096):
            reach = np.maximum(reach, np.abs(table[at : at + 4096].frame).max(axis=1, initial=0.0))
        return replace(table, reach=reach)

    def row_order(self, table: DenseTable) -> np.ndarray | None:
        """Rows with the same cells missing together."""
        return None if table.pattern is None else np.argsort(table.pattern, kind="stable")

    def step(self, natural: np.ndarray, table: DenseTable) -> DenseStep:
        """The emission at natural parameters (n_cells,) or (n_cells, n_lanes), for rows within the table's reach."""
        return DenseStep(self, natural, table.reach)

    def log_predictive(self, block: DenseTable, posterior: NormalWishart) -> np.ndarray:
        """Multivariate t log densities, nats, (n_rows, n_components)."""
        d, dof, scale = self.n_columns, posterior.degrees_of_freedom, posterior.scale
        share = posterior.mean_precision / (posterior.mean_precision + 1)
        factor = np.linalg.inv(np.linalg.cholesky(scale))  # of the inverse scale, F^T F
        quadratic = Quadratic(factor.swapaxes(-1, -2) @ factor, posterior.mean, np.zeros(len(posterior.mean)))
        log_det = -2 * np.log(np.diagonal(factor, axis1=-2, axis2=-1)).sum(axis=-1) - 2 * self.log_volume
        found = np.zeros((len(posterior.mean), len(block)))
        for rows, missing in block.runs:
            m, seen = len(missing), d - len(missing)
            if seen == 0:
                continue
            part = quadratic.without(self.whitener[:, missing])
            squares = share[:, None] * part.squares(block.frame[:, rows])
            constant = log_rising((dof + 1 - d) / 2, seen / 2) - seen / 2 * np.log(np.pi)
            constant = constant - (log_det + part.log_det_hidden) / 2 + seen / 2 * np.log(share)
            found[:, rows] = constant[:, None] - ((dof - m + 1) / 2)[:, None] * np.log1p(squares)
        return found.T

    def sample(self, point: NormalPoint, components: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Measurements drawn."""
        root = np.linalg.inv(np.linalg.cholesky(point.precision))  # transposed, a root of the covariance
        which = np.minimum(components, len(root) - 1)
        noise = np.einsum("nji,nj->ni", root[which], rng.standard_normal((len(components), self.n_columns)))
        return self.origin + (point.mean[components] + noise) @ self.unwhitener.T

    def impute(self, block: DenseTable, posterior: NormalWishart, responsibilities: np.ndarray) -> np.ndarray:
        """Rows with missing cells replaced by their predictive means given the observed ones."""
        values = np.array(block.values, dtype=float)
        quadratic = Quadratic(posterior.expected_precision, posterior.mean, np.zeros(len(posterior.mean)))
        for rows, missing in block.runs:
            if len(missing):
                part, frame = quadratic.without(self.whitener[:, missing]), block.frame[:, rows]
                completed = part.keep @ frame + part.shift[..., None]
                means = np.einsum("nk,kdn->nd", responsibilities[rows], completed) @ self.unwhitener.T + self.origin
                filled = values[rows]
                filled[:, missing] = means[:, missing]
                values[rows] = filled
        return values

    def parameters(self, point: NormalPoint) -> dict[str, np.ndarray]:
        """Means (n_components, d), covariances and precisions (n_components, d, d), or (d, d) if tied."""
        precision = self.whitener.T @ point.precision @ self.whitener
        root = self.unwhitener @ np.linalg.inv(np.linalg.cholesky(point.precision)).swapaxes(-1, -2)
        covariance = root @ root.swapaxes(-1, -2)
        if self.tied:
            precision, covariance = precision[0], covariance[0]
        means = self.origin + point.mean @ self.unwhitener.T
        return {"means": means, "covariances": covariance, "precisions": precision}

    def component_of_cell(self, n_components: int) -> np.ndarray:
        """The component that each cell of statistics belongs to; -1 where it belongs to all."""
        if not self.tied:
            return super().component_of_cell(n_components)
        d = self.n_columns
        return np.concatenate([np.repeat(np.arange(n_components), 1 + d), np.full(1 + d * (d + 1) // 2, -1)])

    @property
    def _cells_per_component(self) -> int:
        d = self.n_columns
        return 2 + d + d * (d + 1) // 2


@dataclass(frozen=True, eq=False)
class DenseTable:
    """Rows of measurements.

    Parameters
    ----------
    emission : DenseGaussian
    values : ndarray of shape (n_rows, d)
        NaN where a cell is missing.
    pattern : ndarray of int, shape (n_rows,), or None
        Which of the patterns of missing cells each row has; None if no cell of the table is missing.
    patterns : ndarray of bool, shape (n_patterns, d)
        Which cells are missing.
    reach : ndarray of shape (d,)
        How far the rows reach in the frame.
    """

    emission: DenseGaussian
    values: np.ndarray
    pattern: np.ndarray | None
    patterns: np.ndarray
    reach: np.ndarray

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: slice) -> Self:
        pattern = None if self.pattern is None else self.pattern[rows]
        return replace(self, values=self.values[rows], pattern=pattern)

    @cached_property
    def frame(self) -> np.ndarray:
        """Rows in the frame, (d, n_rows); what is missing is taken to be at the origin."""
        away = self.values - self.emission.origin
        if self.pattern is not None:
            np.nan_to_num(away, copy=False, nan=0.0, posinf=np.inf, neginf=-np.inf)
        return self.emission.whitener @ away.T

    @cached_property
    def features(self) -> np.ndarray:
        """1, the frame and its products, (1 + d + d (d + 1) / 2, n_rows)."""
        frame, (d, n) = self.frame, self.frame.shape
        features = np.empty((1 + d + d * (d + 1) // 2, n))
        features[0] = 1.0
        features[1 : 1 + d] = frame
        at = 1 + d
        for i in range(d):
            np.multiply(frame[i], frame[i:], out=features[at : at + d - i])
            at += d - i
        return features

    @cached_property
    def runs(self) -> list[tuple[slice | np.ndarray, np.ndarray]]:
        """Rows with the same missing columns, and these columns."""
        if self.pattern is None:
            return [(slice(None), np.empty(0, dtype=np.int64))]
        order = np.argsort(self.pattern, kind="stable")
        starts = np.flatnonzero(np.diff(self.pattern[order], prepend=-1))
        runs: list[tuple[slice | np.ndarray, np.ndarray]] = []
        for rows in np.split(order, starts[1:]):
            together = rows[-1] - rows[0] + 1 == len(rows)
            missing = np.flatnonzero(self.patterns[self.pattern[rows[0]]])
            runs.append((slice(int(rows[0]), int(rows[-1]) + 1) if together else rows, missing))
        return runs


class Quadratic:
    r"""Functions :math:`a_k - \tfrac12 (z - m_k)^\top J_k (z - m_k)` of the frame, some of whose cells may be hidden.

    Parameters
    ----------
    precision : ndarray of shape (..., n_precisions, d, d)
        J; one for all components or one for each.
    mean : ndarray of shape (..., n_components, d)
    peak : ndarray of shape (..., n_components)
        a.
    """

    def __init__(self, precision: np.ndarray, mean: np.ndarray, peak: np.ndarray):
        self.precision, self.mean, self.peak = precision, mean, peak

    @cached_property
    def factor(self) -> np.ndarray:
        """Upper triangular factors of the precisions, U^T U."""
        return safe_cholesky(self.precision).swapaxes(-1, -2)

    def without(self, hidden: np.ndarray) -> Observed:
        """The function with cells integrated out, whose columns of the whitener are `hidden` (d, n_hidden)."""
        d, m = hidden.shape
        eye = np.eye(d)
        if m == 0:
            nothing = np.zeros((1, 1))
            return Observed(self, eye, np.zeros(self.mean.shape), nothing, np.zeros(self.precision.shape[:-2]), m)
        crossed = self.precision @ hidden
        inner = np.linalg.cholesky(hidden.T @ crossed)
        root = hidden @ np.linalg.inv(inner).swapaxes(-1, -2)  # B Q^-1 B^T = root root^T
        keep = eye - root @ (root.swapaxes(-1, -2) @ self.precision)
        shift = self.mean - (keep @ self.mean[..., None])[..., 0]
        log_det = 2 * np.log(np.diagonal(inner, axis1=-2, axis2=-1)).sum(axis=-1)
        return Observed(self, keep, shift, root, log_det, m)


class Observed(NamedTuple):
    """A quadratic of the observed cells, and how the hidden ones hang on them.

    A row z of the frame, 0 where hidden, is completed as `keep` z + `shift` with covariance `root` `root`^T.
    """

    whole: Quadratic
    keep: np.ndarray
    shift: np.ndarray
    root: np.ndarray
    log_det_hidden: np.ndarray
    n_hidden: int

    @property
    def peak(self) -> np.ndarray:
        """Its largest value, (..., n_components)."""
        return self.whole.peak + (self.n_hidden * _LOG_2PI - self.log_det_hidden) / 2

    def squares(self, frame: np.ndarray) -> np.ndarray:
        """(z - m)^T J (z - m) of rows (d, n_rows), by their differences from the means, (..., n_components, n_rows)."""
        factor = self.whole.factor @ self.keep
        shape = self.whole.mean.shape
        found = np.empty((*shape[:-1], frame.shape[1]))
        factors = np.broadcast_to(factor, (*shape, shape[-1]))
        for index in np.ndindex(shape[:-1]):
            turned = factors[index] @ (frame - self.whole.mean[index][:, None])
            np.einsum("dn,dn->n", turned, turned, out=found[index])
        return found

    def expanded(self) -> tuple[np.ndarray, np.ndarray]:
        """What multiplies 1 and z, (..., n_components, 1 + d), and the products of z, (..., n_precisions, ...)."""
        precision = self.whole.precision @ self.keep
        linear = (precision @ self.whole.mean[..., None])[..., 0]
        constant = self.peak - 0.5 * (linear * self.whole.mean).sum(axis=-1)
        products = -0.5 * pairings(linear.shape[-1]) * pack_symmetric(precision)
        return np.concatenate([constant[..., None], linear], axis=-1), products


class DenseStep(Step):
    """A dense Gaussian at natural parameters."""

    def __init__(self, emission: DenseGaussian, natural: np.ndarray, reach: np.ndarray):
        self.emission, self.single = emission, natural.ndim == 1
        d = emission.n_columns
        if emission.tied:
            lanes = np.ascontiguousarray(np.moveaxis(natural.reshape(len(natural), -1), 0, -1))
            of_means = lanes[:, : -1 - d * (d + 1) // 2].reshape(len(lanes), -1, 1 + d)
            of_precisions = lanes[:, None, of_means.shape[1] * (1 + d) :]
            at_origin = of_means[..., 0] + of_precisions[..., 0]
            linear, products = of_means[..., 1:], of_precisions[..., 1:]
        else:
            cells = by_lane(natural, emission._cells_per_component)
            at_origin, linear, products = cells[..., 0] + cells[..., 1], cells[..., 2 : 2 + d], cells[..., 2 + d :]
        precision = unpack_symmetric(-2 * products / pairings(d), d)
        mean = np.linalg.solve(precision, linear[..., None])[..., 0]
        peak = at_origin + emission.log_volume + 0.5 * (linear * mean).sum(axis=-1)
        self.quadratic = Quadratic(precision, mean, peak)
        far = (np.abs(precision) @ reach * reach).sum(axis=-1).max(initial=0.0)
        self.expanded = d <= WIDEST_EXPANDED and far <= MOST_EXPANDED
        self.shape = linear.shape

    @cached_property
    def _complete(self) -> Observed:
        return self.quadratic.without(np.empty((self.emission.n_columns, 0)))

    @cached_property
    def _complete_expanded(self) -> tuple[np.ndarray, np.ndarray]:
        return self._complete.expanded()

    def _observed(self, missing: np.ndarray) -> Observed:
        return self.quadratic.without(self.emission.whitener[:, missing]) if len(missing) else self._complete

    def log_likelihood(self, block: DenseTable) -> np.ndarray:
        """Expected log likelihoods of rows, nats."""
        n_lanes, n_components, d = self.shape
        if len(block.runs) == 1 and not len(block.runs[0][1]):
            return by_row(self._of_rows(block, slice(None), block.runs[0][1]), n_components, self.single)
        found = np.zeros((n_lanes * n_components, len(block)))
        for rows, missing in block.runs:
            if len(missing) < d:
                found[:, rows] = self._of_rows(block, rows, missing)
        return by_row(found, n_components, self.single)

    def _of_rows(self, block: DenseTable, rows, missing: np.ndarray) -> np.ndarray:
        """Log likelihoods (n_lanes x n_components, n_rows) of rows with these columns missing."""
        n_lanes, n_components, d = self.shape
        observed = self._observed(missing)
        if not self.expanded:
            found = observed.peak[..., None] - 0.5 * observed.squares(block.frame[:, rows])
            return found.reshape(n_lanes * n_components, -1)
        linear, products = observed.expanded() if len(missing) else self._complete_expanded
        features = block.features[:, rows]
        if not self.emission.tied:
            matrix = np.concatenate([linear, products], axis=-1).reshape(n_lanes * n_components, -1)
            return matrix @ features
        found = linear.reshape(-1, 1 + d) @ features[: 1 + d]
        found.reshape(n_lanes, n_components, -1)[:] += (products[:, 0] @ features[1 + d :])[:, None]
        return found

    def zeros(self) -> np.ndarray:
        """An empty sum: of 1, z and its products for each component, (n_lanes, n_components, ...)."""
        n_lanes, n_components, d = self.shape
        return np.zeros((n_lanes, n_components, 1 + d + d * (d + 1) // 2))

    def add(self, block: DenseTable, responsibilities: np.ndarray, total: np.ndarray) -> None:
        """Add the statistics of a block to a sum."""
        shares = as_matrix(responsibilities)
        for rows, missing in block.runs:
            if len(missing) == self.emission.n_columns:
                continue
            sums = self._sums(block, shares[:, rows], rows)
            total += self._completed(sums, self._observed(missing)) if len(missing) else sums

    def _sums(self, block: DenseTable, shares: np.ndarray, rows) -> np.ndarray:
        """Sums of 1, z and its products as they are, (n_lanes, n_components, ...).

        With one precision for all, products need only be summed over all components: they stand with the first.
        """
        n_lanes, n_components, d = self.shape
        if d <= WIDEST_EXPANDED and not self.emission.tied:
            return (shares @ block.features[:, rows].T).reshape(n_lanes, n_components, -1)
        sums, frame = self.zeros(), block.frame[:, rows]
        sums[..., 0] = shares.sum(axis=-1).reshape(n_lanes, n_components)
        sums[..., 1 : 1 + d] = (shares @ frame.T).reshape(n_lanes, n_components, d)
        by_precision = shares.reshape(n_lanes, n_components, -1)
        if self.emission.tied:
            by_precision = by_precision.sum(axis=1, keepdims=True)
        for lane, k in np.ndindex(by_precision.shape[:2]):
            sums[lane, k, 1 + d :] = pack_symmetric((frame * by_precision[lane, k]) @ frame.T)
        return sums

    def _completed(self, sums: np.ndarray, observed: Observed) -> np.ndarray:
        """Sums of rows whose hidden cells are completed by their moments."""
        d = self.shape[-1]
        n, keep, shift = sums[..., 0], observed.keep, observed.shift
        kept = (keep @ sums[..., 1 : 1 + d, None])[..., 0]
        square = keep @ unpack_symmetric(sums[..., 1 + d :], d) @ keep.swapaxes(-1, -2)
        crossed = kept[..., :, None] * shift[..., None, :]
        covariance = observed.root @ observed.root.swapaxes(-1, -2) + shift[..., :, None] * shift[..., None, :]
        square = square + crossed + crossed.swapaxes(-1, -2) + n[..., None, None] * covariance
        return np.concatenate([n[..., None], kept + n[..., None] * shift, pack_symmetric(square)], axis=-1)

    def statistics(self, total: np.ndarray) -> np.ndarray:
        """Statistics of a sum."""
        d = self.shape[-1]
        if not self.emission.tied:
            return by_cell(np.concatenate([total[..., :1], total], axis=-1), self.single)
        of_means = total[..., : 1 + d].reshape(len(total), -1)
        of_precision = np.concatenate([total[..., 0].sum(axis=1)[:, None], total[..., 1 + d :].sum(axis=1)], axis=-1)
        return by_cell(np.concatenate([of_means, of_precision], axis=-1), self.single)

    def add_drawn(self, block: DenseTable, components: np.ndarray, rng: np.random.Generator, total: np.ndarray) -> None:
        """Add statistics of rows whose components are known, missing cells drawn given the observed ones."""
        n_lanes, n_components, d = self.shape
        components = components.reshape(n_lanes, -1)
        for lane in range(n_lanes):
            drawn, chosen = block.frame.copy(), components[lane]
            for rows, missing in block.runs:
                if not 0 < len(missing) < d:
                    continue
                observed, which = self._observed(missing), chosen[rows]
                noise = rng.standard_normal((len(missing), len(which)))
                for k in np.unique(which):
                    own = np.arange(len(block))[rows][which == k]
                    of_precision = 0 if self.emission.tied else k
                    keep, root = observed.keep[lane, of_precision], observed.root[lane, of_precision]
                    completed = keep @ drawn[:, own] + observed.shift[lane, k][:, None] + root @ noise[:, which == k]
                    drawn[:, own] = completed
            seen = np.ones(len(block)) if block.pattern is None else 1.0 - block.patterns[block.pattern].all(axis=1)
            products = pack_symmetric((drawn[:, None] * drawn).transpose(2, 0, 1)).T
            features = np.concatenate([np.ones((1, len(block))), drawn, products]) * seen
            total[lane] += (chosen == np.arange(n_components)[:, None]).astype(float) @ features.T


def _missing_patterns(values: np.ndarray) -> tuple[np.ndarray | None, np.ndarray]:
    """Which pattern of missing cells each row has (None if no cell is missing), and the patterns."""
    none = None, np.zeros((0, values.shape[1]), dtype=bool)
    if values.dtype.kind != "f":
        return none
    missing = np.isnan(values)
    if not missing.any():
        return none
    packed = np.packbits(missing, axis=1)
    keys = np.ascontiguousarray(packed).view(np.dtype((np.void, packed.shape[1]))).ravel()
    _, first, pattern = np.unique(keys, return_index=True, return_inverse=True)
    return pattern.astype(np.int32).ravel(), missing[first]
