r"""Measurements of which some are known as intervals alone: censored ones, classes, rounded numbers.

Columns are independent given the component, as of a `DiagonalGaussian`, which has all cells that are points. What a
cell known as (l, u] holds is hidden, and integrated out: with :math:`\bar\tau = \operatorname{E} \tau`,
:math:`s = \bar\tau^{-1/2}` and the mean m,

.. math::

    \ln \tilde f = \ln \Bigl[\Phi\Bigl(\frac{u - m}s\Bigr) - \Phi\Bigl(\frac{l - m}s\Bigr)\Bigr]
        + \tfrac12 \operatorname{E} \ln \tau - \tfrac12 \ln \bar\tau - \frac1{2 \kappa}.

It adds the first two moments of the normal distribution between l and u to the statistics. Cells that are known as the
same interval share them (`skvbem.emissions.interval_cells`). A point is a density in the units of the data, an interval
a probability, which has no unit.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtri_exp, stdtr

from skvbem._numerics import LOG_2PI, log_rising
from skvbem.blocks import Blocks
from skvbem.emissions.base import Emission, Step, by_lane, by_row
from skvbem.emissions.gaussian.diagonal import DiagonalGaussian
from skvbem.emissions.gaussian.specification import PRIOR_CONSTRAINTS, Gaussian
from skvbem.emissions.interval_cells import IntervalCells, log_mass_and_moments
from skvbem.emissions.linear import LinearTable
from skvbem.emissions.specification import HIERARCHICAL, EmissionSpecification, Parameters, floats
from skvbem.families import NormalGamma, NormalPoint
from skvbem.families.parallel_generator import ParallelGenerator


class IntervalSpecification(Gaussian):
    """Columns of measurements of which some are known as intervals, independent and normal in each component."""

    _parameter_constraints: ClassVar[dict] = PRIOR_CONSTRAINTS

    covariance_type: Any = "diag"

    @property
    @abstractmethod
    def reading(self) -> Reading:
        """How cells are read as intervals."""

    def for_data(self, values: np.ndarray | Blocks, weight: np.ndarray | None = None) -> Any:
        """The emission of measurements (n_rows, n_columns) with weights (n_rows,)."""
        self.check_parameters()
        reading = self.reading
        if isinstance(values, Blocks):
            rows: Any = Blocks(lambda: ((middles(*reading.ends(part)), w) for part, w in values))
        else:
            rows = middles(*reading.ends(values))
        return IntervalEmission(DiagonalGaussian.for_data(rows, weight), reading)

    def prior_options(self, emission: Any, names: Sequence[str]) -> dict[str, Any]:
        """Mean, its precision in rows, degrees of freedom and variances, as of a Gaussian."""
        return super().prior_options(emission.normal, names)

    def typical_rows(self, parameters: Parameters) -> np.ndarray:
        """For each component points a deviation below its means, and above."""
        means, deviations = parameters["means"], np.sqrt(parameters["covariances"])
        return self.reading.rows(np.concatenate([means - deviations, means + deviations]))

    def explained_by(self, covariates: Sequence[str], names: Sequence[str]) -> Any:
        """No family: a regression of intervals is not there."""
        return EmissionSpecification.explained_by(self, covariates, names)

    def attributes(self, emission: Any, parameters: Parameters, prior: Any, posterior: Any) -> dict[str, Any]:
        """None besides `parameters_`."""
        return {}

    def cumulative_of_cells(self, values: np.ndarray, parameters: Parameters) -> tuple[np.ndarray, np.ndarray]:
        """At both ends of what is known; of a pair of columns at the first one, NaN at the other."""
        means, deviations = (each(self, parameters)[:, None] for each in (Gaussian.means, Gaussian.deviations))
        cells = np.full((2, len(means), *np.shape(values)), np.nan)
        cells[..., :: self.reading.width] = [
            self.cumulative(end, means, deviations) for end in self.reading.ends(np.asarray(values, dtype=float))
        ]
        return cells[0], cells[1]

    def cumulative_of_values(self, values: np.ndarray, parameters: Parameters) -> np.ndarray:
        """Probabilities that measurements are at most some values, for both columns of a pair."""
        return self.cumulative(values, self.means(parameters)[:, None], self.deviations(parameters)[:, None])


class Censored(IntervalSpecification):
    """Columns of measurements, those beyond a limit known only as such: limits of detection, ends of studies.

    Parameters
    ----------
    below, above : float or array-like of shape (n_columns,), default=None
        Limits. A cell at a limit or beyond it says that the measurement is there, whatever is written; NaN, or None for
        all columns, is no limit.
    mean_prior : array-like of shape (n_columns,), default=None
        Prior mean of the means, as of `Gaussian`.
    mean_precision_prior : float, "hierarchical" or "by_column", default="hierarchical"
        How many rows `mean_prior` weighs.
    degrees_of_freedom_prior : float, default=None
        For the precision of each measurement.
    covariance_prior : array-like of shape (n_columns,), "hierarchical" or None, default="hierarchical"
        Prior variances of a component.

    See Also
    --------
    Interval : a lower and an upper end for each measurement.

    Notes
    -----
    Means, deviations, forecasts and draws are of the measurements, beyond limits, too.

    Examples
    --------
    >>> import numpy as np
    >>> from skvbem import VBMixture
    >>> from skvbem.emissions import Censored
    >>> doses = np.random.default_rng(0).normal(2.0, 1.0, size=(300, 1))
    >>> detected = np.maximum(doses, 1.5)  # a third lies below
    >>> model = VBMixture(1, emission=Censored(below=1.5), random_state=0).fit(detected)
    >>> model.parameters_["censored"]["means"].round(1).tolist()
    [[1.9]]
    >>> VBMixture(1, emission="gaussian", random_state=0).fit(detected).means_.round(1).tolist()
    [[2.2]]
    """

    def __init__(
        self,
        below=None,
        above=None,
        *,
        mean_prior=None,
        mean_precision_prior=HIERARCHICAL,
        degrees_of_freedom_prior=None,
        covariance_prior=HIERARCHICAL,
    ):
        self.below = below
        self.above = above
        self.mean_prior = mean_prior
        self.mean_precision_prior = mean_precision_prior
        self.degrees_of_freedom_prior = degrees_of_freedom_prior
        self.covariance_prior = covariance_prior

    def check_parameters(self) -> None:
        """Refuse limits that leave nothing between them."""
        super().check_parameters()
        if (self.reading.below >= self.reading.above).any():
            raise ValueError(
                f"The 'below' parameter of Censored must be under 'above'. Got {self.below!r} and {self.above!r}."
            )

    @property
    def reading(self) -> Limits:
        """Cells at limits or beyond them are intervals."""
        limits = []
        for name, nowhere in (("below", -np.inf), ("above", np.inf)):
            value = getattr(self, name)
            limit = floats(type(self).__name__, name, np.nan if value is None else value)
            limits.append(np.where(np.isnan(limit), nowhere, limit))
        return Limits(*limits)


class Interval(IntervalSpecification):
    """Measurements known between two ends, a pair of columns for each: classes, rounded numbers, times between visits.

    The first column of a pair is the lower end, and the second one the upper end. Equal ends are a point. NaN is an
    open end; a measurement with two open ends is missing. A column of pandas intervals, as of ``pandas.cut``, has both
    ends, infinite ones where it is open.

    Parameters
    ----------
    mean_prior : array-like of shape (n_columns / 2,), default=None
        Prior mean of the means, as of `Gaussian`.
    mean_precision_prior : float, "hierarchical" or "by_column", default="hierarchical"
        How many rows `mean_prior` weighs.
    degrees_of_freedom_prior : float, default=None
        For the precision of each measurement.
    covariance_prior : array-like of shape (n_columns / 2,), "hierarchical" or None, default="hierarchical"
        Prior variances of a component.

    See Also
    --------
    Censored : measurements known to lie beyond fixed limits.

    Notes
    -----
    Both columns of a pair have the mean and the deviation of the measurement. `impute` closes open ends with the mean,
    or leaves an end where it is. A column of intervals is read as two: that of upper ends is called as the column, and
    "_high" after it. Which sides are closed makes no difference to a continuous measurement. Imputed and drawn
    measurements are intervals of one point.

    Examples
    --------
    >>> import numpy as np
    >>> from skvbem import VBMixture
    >>> from skvbem.emissions import Interval
    >>> waits = np.random.default_rng(0).normal(5.0, 2.0, size=(300, 1))
    >>> classes = np.hstack([np.floor(waits), np.floor(waits) + 1])  # whole minutes
    >>> model = VBMixture(1, emission=Interval(), random_state=0).fit(classes)
    >>> model.parameters_["interval"]["means"].round(1).tolist()
    [[4.9]]
    """

    def __init__(
        self,
        mean_prior=None,
        mean_precision_prior=HIERARCHICAL,
        degrees_of_freedom_prior=None,
        covariance_prior=HIERARCHICAL,
    ):
        self.mean_prior = mean_prior
        self.mean_precision_prior = mean_precision_prior
        self.degrees_of_freedom_prior = degrees_of_freedom_prior
        self.covariance_prior = covariance_prior

    columns_of_each: ClassVar[int] = 2

    @property
    def reading(self) -> Pairs:
        """Two columns for each measurement."""
        return Pairs()

    def prior_options(self, emission: Any, names: Sequence[str]) -> dict[str, Any]:
        """Priors of the measurements, half as many as columns."""
        return super().prior_options(emission, names[::2])

    def means(self, parameters: Parameters) -> np.ndarray:
        """Means of the measurement, for both of its columns."""
        return np.repeat(super().means(parameters), 2, axis=1)

    def deviations(self, parameters: Parameters) -> np.ndarray:
        """Deviations of the measurement, for both of its columns."""
        return np.repeat(super().deviations(parameters), 2, axis=1)

    def covariances(self, parameters: Parameters, columns: Sequence[int]) -> np.ndarray:
        """Covariance matrices of some columns, those of a pair as one."""
        pairs = np.asarray(columns) // 2
        variances = np.asarray(parameters["covariances"])[:, pairs]
        return variances[:, :, None] * (pairs[:, None] == pairs)


# How cells are read ---------------------------------------------------------------------------------------------------


@runtime_checkable
class Reading(Protocol):
    """How cells are read as intervals."""

    #: Columns of a measurement.
    width: ClassVar[int]

    def ends(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends, (n_rows, n_measurements); NaN where a measurement is missing, equal for a point."""

    def rows(self, measurements: np.ndarray) -> np.ndarray:
        """Rows of measurements that were drawn."""


@dataclass(frozen=True, eq=False)
class Limits:
    """Measurements beyond limits, whatever is written in their cells.

    Parameters
    ----------
    below, above : ndarray of shape () or (n_columns,)
        Infinite where there are none.
    """

    below: np.ndarray
    above: np.ndarray

    #: Columns of a measurement.
    width: ClassVar[int] = 1

    def ends(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends, (n_rows, n_measurements); NaN where a measurement is missing, equal for a point."""
        low = high = np.asarray(values, dtype=float)
        under, over = values <= self.below, values >= self.above
        low = np.where(under, -np.inf, np.where(over, self.above, low))
        return low, np.where(over, np.inf, np.where(under, self.below, high))

    def rows(self, measurements: np.ndarray) -> np.ndarray:
        """Rows of measurements that were drawn."""
        return measurements


@dataclass(frozen=True, eq=False)
class Pairs:
    """Two columns for each measurement: its lower and its upper end."""

    width: ClassVar[int] = 2

    def ends(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends, (n_rows, n_measurements); NaN where a measurement is missing, equal for a point."""
        values = np.asarray(values, dtype=float)
        if values.shape[1] % 2:
            raise ValueError(
                "Interval takes two columns for each measurement, or one of pandas intervals. There are "
                f"{values.shape[1]} columns."
            )
        low, high = values[:, ::2], values[:, 1::2]
        if (low > high).any():
            row, pair = np.argwhere(low > high)[0]
            raise ValueError(f"A lower end, {low[row, pair]:g}, is above its upper end, {high[row, pair]:g}.")
        missing = np.isnan(low) & np.isnan(high)
        low = np.where(np.isnan(low) & ~missing, -np.inf, low)
        return low, np.where(np.isnan(high) & ~missing, np.inf, high)

    def rows(self, measurements: np.ndarray) -> np.ndarray:
        """Rows of measurements that were drawn: points."""
        return np.repeat(measurements, 2, axis=1)


def middles(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Numbers that stand for cells in units of measure and in starts: middles, or the end where there is one alone."""
    with np.errstate(invalid="ignore"):
        middle = low / 2 + high / 2
    return np.where(np.isneginf(low), high, np.where(np.isposinf(high), low, middle))


# The normal distribution between two ends -----------------------------------------------------------------------------

# Nodes by which narrow intervals are integrated, and the width of the widest of them times the distance of its far end.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(9)
_NARROW = 1.0


def _share_beyond(near: np.ndarray, far: np.ndarray, fallen: np.ndarray) -> np.ndarray:
    """Probability up to the far end over that up to the near end."""
    in_tail = np.exp(fallen) * erfcx(-far / np.sqrt(2)) / erfcx(-near / np.sqrt(2))
    return np.where(near <= 0, np.where(np.isinf(far), 0.0, in_tail), np.exp(log_ndtr(far) - log_ndtr(near)))


def draw_between(low: np.ndarray, high: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """Standard normal numbers between two ends, from uniform ones."""
    flip = low + high > 0
    near, far = np.where(flip, -low, high), np.where(flip, -high, low)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        fallen = np.where(np.isinf(far), -np.inf, -(far - near) * (far + near) / 2)
        rest = _share_beyond(near, far, fallen)
        drawn = ndtri_exp(log_ndtr(near) + np.log(rest + uniform * (1 - rest)))
    drawn = np.clip(drawn, far, near)
    return np.where(flip, -drawn, drawn)


def log_t_mass(low: np.ndarray, high: np.ndarray, dof: np.ndarray) -> np.ndarray:
    """ln of the probability of intervals under Student's t distribution, nats."""
    flip = low + high > 0
    near, far = np.where(flip, -low, high), np.where(flip, -high, low)
    with np.errstate(invalid="ignore", divide="ignore"):
        mass = np.log(stdtr(dof, near) - stdtr(dof, far))
    narrow = near - far < _NARROW / 2
    if narrow.any():
        middle, half, nu = (near + far)[narrow] / 2, (near - far)[narrow] / 2, np.broadcast_to(dof, near.shape)[narrow]
        density = _WEIGHTS[:, None] / 2 * np.exp(-(nu + 1) / 2 * np.log1p((middle + half * _NODES[:, None]) ** 2 / nu))
        constant = log_rising(nu / 2, 0.5) - np.log(np.pi * nu) / 2
        mass[narrow] = np.log(density.sum(axis=0)) + constant + np.log(2 * half)
    return mass


# The model's side -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class IntervalTable:
    """Rows of measurements.

    Parameters
    ----------
    values : ndarray of shape (n_rows, n_columns)
        As they were given.
    points : LinearTable
        Measurements that are points; all others are missing there.
    cells : IntervalCells
        Measurements that are intervals, in units from the origin.
    has_points : bool
        Whether any measurement is a point.
    """

    values: np.ndarray
    points: LinearTable
    cells: IntervalCells
    has_points: bool

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: slice) -> Self:
        if isinstance(rows, slice) and rows.indices(len(self)) == (0, len(self), 1):
            return self
        return replace(self, values=self.values[rows], points=self.points[rows], cells=self.cells[rows])

    def __add__(self, other: IntervalTable) -> Self:
        """What must be known of the rows of both, of tables without rows."""
        return replace(self, points=self.points + other.points)


@dataclass(frozen=True, eq=False)
class IntervalEmission(Emission):
    """Measurements of which some are known as intervals.

    Parameters
    ----------
    normal : DiagonalGaussian
        The measurements themselves.
    reading : Reading
        How cells are read.
    """

    normal: DiagonalGaussian
    reading: Reading

    @property
    def n_columns(self) -> int:
        """Columns of a row."""
        return self.reading.width * self.normal.n_columns

    @property
    def doubles_per_row(self) -> int:
        """Doubles that a block holds for each row."""
        return 2 * self.normal.doubles_per_row

    @property
    def cells_per_component(self) -> int:
        """Cells of the measurements."""
        return self.normal.cells_per_component

    def default_prior(self, n_components: int, **options: Any) -> Any:
        """The prior of the measurements; see `DiagonalGaussian`."""
        return self.normal.default_prior(n_components, **options)

    def survey(self, values: np.ndarray) -> IntervalTable:
        """What must be known of all rows that are points."""
        low, high = self.reading.ends(values)
        known = self.normal.survey(np.where(low == high, low, np.nan))
        return self._table(np.asarray(values)[:0], known, low[:0], high[:0])

    def prepare(self, values: np.ndarray, survey: IntervalTable | None = None) -> IntervalTable:
        """A table of rows, (n_rows, n_columns)."""
        low, high = self.reading.ends(values)
        points = np.where(low == high, low, np.nan)
        known = self.normal.survey(points) if survey is None else survey.points
        return self._table(np.asarray(values), self.normal.prepare(points, known), low, high)

    def _table(self, values: np.ndarray, points: LinearTable, low: np.ndarray, high: np.ndarray) -> IntervalTable:
        is_interval, origin, unit = low < high, self.normal.origin, self.normal.unit
        ends = (np.where(is_interval, (end - origin) / unit, np.nan).T for end in (low, high))
        cells = IntervalCells.of(*map(np.ascontiguousarray, ends))
        return IntervalTable(values, points, cells, bool((low == high).any()))

    def step(self, natural: np.ndarray, table: IntervalTable) -> IntervalStep:
        """The emission at natural parameters (n_cells,) or (n_cells, n_lanes)."""
        return IntervalStep(self.normal, natural, table)

    def is_conjugate(self, table: IntervalTable) -> bool:
        """True if all measurements are points."""
        return not table.cells.are_there

    def log_predictive(self, block: IntervalTable, posterior: NormalGamma) -> np.ndarray:
        """Log densities of points and log probabilities of intervals, Student t ones, nats, (n_rows, n_components)."""
        cells, kappa, dof = block.cells, posterior.mean_precision, posterior.degrees_of_freedom
        of_points = self.normal.log_predictive(block.points, posterior)
        if not cells.are_there:
            return of_points
        j, unit = cells.column, np.sqrt(posterior.scale * (kappa + 1) / kappa / dof)
        low, high = ((end.ravel() - posterior.mean[:, j]) / unit[:, j] for end in (cells.low, cells.high))
        of_intervals = np.nan_to_num(log_t_mass(low, high, dof[:, j]), nan=0.0, neginf=-np.inf)
        return of_points + cells.of_rows(of_intervals, np.zeros_like(unit)).T

    def sample(self, point: NormalPoint, components: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Measurements drawn."""
        return self.reading.rows(self.normal.sample(point, components, rng))

    def impute(self, block: IntervalTable, point: NormalPoint, responsibilities: np.ndarray) -> np.ndarray:
        """Rows with missing cells replaced by their means, which lie no further than the end that is known."""
        values = np.asarray(block.values, dtype=float)
        means = self.reading.rows(responsibilities @ self.normal.parameters(point)["means"])
        if self.reading.width == 2:
            means[:, ::2] = np.fmin(means[:, ::2], values[:, 1::2])
            means[:, 1::2] = np.fmax(means[:, 1::2], values[:, ::2])
        return np.where(np.isnan(values), means, values)

    def quantiles(self, posterior: NormalGamma, probability: float) -> dict[str, np.ndarray]:
        """Quantiles of the means."""
        return self.normal.quantiles(posterior, probability)

    def seeding_coordinates(self, block: IntervalTable) -> np.ndarray:
        """Middles or ends of cells, in units from the means of the columns."""
        middle = middles(*self.reading.ends(block.values))
        return np.nan_to_num((middle - self.normal.origin) / self.normal.unit, nan=0.0)

    def parameters(self, point: NormalPoint) -> dict[str, np.ndarray]:
        """Means, variances and precisions of the measurements, (n_components, n_measurements)."""
        return self.normal.parameters(point)

    def parameters_of_draws(self, points: NormalPoint) -> dict[str, np.ndarray]:
        """The `parameters` of points with draws along a last axis, all at once."""
        return self.normal.parameters_of_draws(points)

    def point_of(self, parameters: Mapping[str, np.ndarray]) -> NormalPoint:
        """Means and inverse variances in units; see `parameters`."""
        return self.normal.point_of(parameters)


class IntervalStep(Step):
    """Measurements at natural parameters. A sum is that of the Gaussian."""

    def __init__(self, normal: DiagonalGaussian, natural: np.ndarray, table: IntervalTable):
        self.normal, self.single = normal.step(natural, table.points), natural.ndim == 1
        self.n_components = self.normal.n_components
        norm, log_root, total, square = normal._split(by_lane(natural, normal.cells_per_component))
        tau = -2 * square
        self.mean, self.unit = total / tau, 1 / np.sqrt(tau)  # (n_lanes, n_components, n_measurements)
        self.peak = log_root + LOG_2PI / 2 - np.log(tau) / 2 + norm + tau * self.mean**2 / 2
        self._last: tuple[Any, Any] = (None, None)

    def _of_intervals(self, cells: IntervalCells) -> tuple[np.ndarray, np.ndarray]:
        """Of intervals: log masses, and moments between their ends, of all lanes and components.

        Blocks of one table may have the same intervals, whose numbers are kept.
        """
        known, result = self._last
        if known is not cells.low:
            d = self.mean.shape[2]
            result = cells.log_masses(*(each.reshape(-1, d) for each in (self.mean, self.unit, self.peak)))
            self._last = cells.low, result
        return result

    def _in_units(self, moments: np.ndarray) -> np.ndarray:
        """Sums of 1, y and y^2 of sums (n_out, 3, n_measurements, ...) of 1 and moments in deviations from means."""
        n, first, second = moments.swapaxes(0, 1)
        mean, unit = (each.reshape(n.shape[:2] + (1,) * (n.ndim - 2)) for each in (self.mean, self.unit))
        return np.stack([n, n * mean + unit * first, mean**2 * n + 2 * mean * unit * first + unit**2 * second], axis=1)

    def log_likelihood(self, block: IntervalTable) -> np.ndarray:
        """Expected log likelihoods of rows, what is between ends integrated out, nats."""
        cells = block.cells
        if not cells.are_there:
            return self.normal.log_likelihood(block.points)
        sums = cells.sums_of_masses(self._of_intervals(cells)[0], self.peak.reshape(-1, self.peak.shape[2]))
        of_intervals = by_row(sums, self.n_components, self.single)
        return of_intervals + (
            self.normal.log_likelihood(block.points) if block.has_points else block.points.base[:, None]
        )

    def zeros(self) -> np.ndarray:
        """An empty sum."""
        return self.normal.zeros()

    def add(self, block: IntervalTable, responsibilities: np.ndarray, total: np.ndarray) -> None:
        """Add the statistics of a block to a sum."""
        if block.has_points:
            self.normal.add(block.points, responsibilities, total)
        if block.cells.are_there:
            moments = block.cells.sums(responsibilities, self._of_intervals(block.cells)[1])
            n, mean, square = self._in_units(moments).swapaxes(0, 1)
            total += np.concatenate([n, n, mean, square], axis=-1).reshape(total.shape)

    def statistics(self, total: np.ndarray) -> np.ndarray:
        """Statistics of a sum."""
        return self.normal.statistics(total)

    def of_rows(self, block: IntervalTable) -> np.ndarray:
        """Statistics of each row."""
        statistics, cells = np.array(self.normal.of_rows(block.points)), block.cells
        if cells.are_there:
            n, mean, square = self._in_units(cells.of_cells(self._of_intervals(cells)[1])).swapaxes(0, 1)
            statistics += np.concatenate([n, n, mean, square], axis=1).transpose(2, 0, 1)
        return statistics

    def hidden_covariance(self, block: IntervalTable, responsibilities: np.ndarray) -> np.ndarray | None:
        """Covariance of measurements between their ends and of their squares."""
        cells = block.cells
        if not cells.are_there:
            return None
        mean, unit, d = self.mean[0], self.unit[0], self.mean.shape[2]
        first, second, third, fourth = log_mass_and_moments(cells, mean, unit, 4)[1].swapaxes(0, 1)
        central = np.stack([second - first**2, third - first * second, fourth - second**2], axis=1)
        _, variance, crossed, of_squares = cells.sums(responsibilities, central).swapaxes(0, 1)
        linear, crossed = unit**2 * variance, unit**3 * crossed
        covariance = np.zeros((self.n_components, 4 * d, 4 * d))
        j, q = 2 * d + np.arange(d), 3 * d + np.arange(d)
        covariance[:, j, j] = linear
        covariance[:, j, q] = covariance[:, q, j] = 2 * mean * linear + crossed
        covariance[:, q, q] = 4 * mean * (mean * linear + crossed) + unit**4 * of_squares
        return covariance

    def add_drawn(
        self, block: IntervalTable, components: np.ndarray, rng: ParallelGenerator, total: np.ndarray
    ) -> None:
        """Add statistics of rows whose components are known, measurements between ends drawn."""
        self.normal.add_drawn(block.points, components, rng, total)
        d, cells = self.mean.shape[2], block.cells
        there, low, high = cells.of_cells(np.stack([cells.low.ravel(), cells.high.ravel()]))
        row, column = np.nonzero(there.T)
        low, high = low[column, row], high[column, row]
        uniform = rng.random((len(row), 1, len(self.mean)))[:, 0]
        for lane, labels in enumerate(components.reshape(len(self.mean), -1)):
            k = labels[row]
            mean, unit = self.mean[lane, k, column], self.unit[lane, k, column]
            drawn = mean + unit * draw_between((low - mean) / unit, (high - mean) / unit, uniform[:, lane])
            for cell, added in enumerate((np.ones(len(row)), np.ones(len(row)), drawn, drawn**2)):
                np.add.at(total[lane], (k, cell * d + column), added)
