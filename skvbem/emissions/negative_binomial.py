r"""Overdispersed counts: :math:`p(y) = \binom{y + r - 1}{y} p^y (1 - p)^r`, independent columns.

The prior of size and probability is `skvbem.families.one_dimensional.SizeProbability`. The log likelihood of a row is
no function of a few sums: rows are counted by the values of their cells, and each distinct value has its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import csr_array
from scipy.special import betainc

from skvbem._kernels import _categorical
from skvbem._lazy import cached_property
from skvbem._numerics import log_rising
from skvbem.blocks import Blocks, map_reduce
from skvbem.emissions.base import Emission, Step, as_matrix, by_cell, by_lane, by_row, draws_first
from skvbem.emissions.count_knots import BinnedRows, Bins, Knots
from skvbem.emissions.moments import weighted_means
from skvbem.emissions.parameters import check_positive, check_shape, named_arrays
from skvbem.emissions.specification import CountCells, NumericSpecification, Parameters
from skvbem.families.one_dimensional import SizeProbability, SizeProbabilityPoint
from skvbem.families.one_dimensional.size_probability import digamma_rise
from skvbem.families.one_dimensional.trapezoid import REACH

# Intervals go on to twice the largest count of the data.
_BEYOND = 2.0
# Halvings of the range of ln r, 84, and steps of Newton's from within .08: errors .003, 5e-6, 1e-11 and none.
_N_HALVED, _N_NEWTON = 10, 4
# Distinct counts of all columns up to which their table stays in the cache, where it takes no longer than that of bins.
_MAX_TABLED_COUNTS = 4096
# Counts up to which distinct values are found by counting.
_COUNTED = 2**20


class NegativeBinomial(CountCells, NumericSpecification):
    """Columns of counts that spread more than Poisson counts do, with a mean and a size in each component.

    The variance of a component is mean + mean^2 / size. An infinite size makes the counts Poisson.

    Parameters
    ----------
    weight : float or array-like of shape (n_columns,), default=1.0
        Weight of the prior mean of a component, which is the mean of X: `a` of its Beta prior.

    See Also
    --------
    Poisson : counts whose variance is their mean.

    Notes
    -----
    The size has the prior :math:`p(r) = (1 + r)^{-2}`. It is integrated out numerically, so that with one component the
    lower bound is the evidence.

    Examples
    --------
    Five kinds of pupils, by their days of absence, are one kind whose days spread:

    >>> import numpy as np
    >>> from skvbem import VBMixture
    >>> from skvbem.emissions import NegativeBinomial
    >>> days = np.random.default_rng(0).negative_binomial(1.0, 0.06, size=(146, 1))
    >>> model = VBMixture("auto", emission=NegativeBinomial(), random_state=0).fit(days)
    >>> model.n_components_
    1
    """

    has_cumulative: ClassVar[bool] = True
    has_means: ClassVar[bool] = True

    def __init__(self, weight=1.0):
        self.weight = weight

    def for_data(self, values: np.ndarray | Blocks, weight: np.ndarray | None = None) -> NegativeBinomialEmission:
        """The emission of counts (n_rows, n_columns) with weights (n_rows,)."""
        return NegativeBinomialEmission.for_data(values, weight)

    def prior_options(self, emission: Any, names: Sequence[str]) -> dict[str, Any]:
        """Weight of the prior mean."""
        return {"weight": self.positive("weight", names)}

    def checked_parameters(self, parameters: Any) -> dict[str, np.ndarray]:
        """Means and sizes above 0, each (n_components, n_columns)."""
        owner = type(self).__name__
        arrays = named_arrays(owner, parameters, {"means": 2, "sizes": 2})
        check_shape(owner, "sizes", arrays["sizes"], arrays["means"].shape, "that of the means")
        for name, each in arrays.items():
            check_positive(owner, name, each)
        return arrays

    def typical_rows(self, parameters: Parameters) -> np.ndarray:
        """For each component a row at most a deviation below its means, and one above; whole counts."""
        means, deviations = self.means(parameters), self.deviations(parameters)
        return np.ceil(np.concatenate([np.maximum(means - deviations, 0.0), means + deviations]))

    def means(self, parameters: Parameters) -> np.ndarray:
        """Means."""
        return parameters["means"]

    def deviations(self, parameters: Parameters) -> np.ndarray:
        """Square roots of mean + mean^2 / size."""
        return np.sqrt(parameters["means"] + parameters["means"] ** 2 / parameters["sizes"])

    def cumulative(self, values: np.ndarray, means: np.ndarray, deviations: np.ndarray) -> np.ndarray:
        """Probabilities that counts with these means and deviations are at most some values."""
        size = means**2 / np.maximum(deviations**2 - means, 1e-12 * means)
        return np.where(values < 0, 0.0, betainc(size, np.floor(np.maximum(values, 0.0)) + 1, size / (size + means)))


@dataclass(frozen=True, eq=False)
class CountTable:
    """Rows of counts, each cell by the number of its value.

    Parameters
    ----------
    emission : NegativeBinomialEmission
    values : ndarray of shape (n_rows, n_columns)
        NaN where a cell is missing.
    codes : ndarray of int32, shape (n_rows, n_columns)
        Places of the cells' values in the `distinct` ones of all columns, one after the other; the last for none.
    distinct : tuple of ndarray
        Distinct counts of each column, in order.
    of_values : csr_array of shape (n_values + 1, cells of a component)
        Statistics of each distinct count; none of the last.
    base : ndarray of shape (n_values + 1,)
        Minus ln y! of each, nats.
    beyond : tuple of ndarray
        Of each column the places of values beyond the last knot.
    binned : BinnedRows, optional
        The rows by bins, where distinct values are so many.
    """

    emission: NegativeBinomialEmission
    values: np.ndarray
    codes: np.ndarray
    distinct: tuple[np.ndarray, ...]
    of_values: csr_array
    base: np.ndarray
    beyond: tuple[np.ndarray, ...]
    binned: BinnedRows | None = None

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: slice) -> Self:
        binned = None if self.binned is None else self.binned.of(rows)
        return replace(self, values=self.values[rows], codes=self.codes[rows], binned=binned)

    def __add__(self, other: CountTable) -> CountTable:
        """What must be known of the rows of both, of tables without rows."""
        return self.emission.table_of(tuple(map(np.union1d, self.distinct, other.distinct)))


@dataclass(frozen=True, eq=False)
class NegativeBinomialEmission(Emission):
    """Negative binomial counts, independent given the component.

    Parameters
    ----------
    unit : ndarray of shape (n_columns,)
        Prior means: the means of all data.
    most : float
        The largest count.
    """

    unit: np.ndarray
    most: float

    @classmethod
    def for_data(cls, values: np.ndarray | Blocks, weight: np.ndarray | None) -> NegativeBinomialEmission:
        """The emission of counts (n_rows, n_columns)."""
        parts = values if isinstance(values, Blocks) else [(values, weight)]
        mean, most = weighted_means(values, weight), map_reduce(_Largest.of, parts).value
        return cls(np.where(mean > 0, mean, 1.0), most)

    @cached_property
    def knots(self) -> Knots:
        """Counts, and numbers between counts, that have cells."""
        return Knots.to(_BEYOND * self.most)

    @cached_property
    def bins(self) -> Bins:
        """Bins of counts up to the last knot."""
        return Bins.between(self.knots, self.n_columns, self._statistics_of)

    @property
    def n_columns(self) -> int:
        """Columns of a row."""
        return len(self.unit)

    @property
    def doubles_per_row(self) -> int:
        """Doubles that a block holds for each row."""
        return 3 * self.n_columns

    @property
    def cells_per_component(self) -> int:
        """Of each column those of the prior, rows, the sum of counts, and weights at knots."""
        return (4 + len(self.knots.counts)) * self.n_columns

    def default_prior(self, n_components: int, *, weight=1.0) -> SizeProbability:
        """Priors of sizes and probabilities.

        Parameters
        ----------
        n_components : int
        weight : float or array_like of shape (n_columns,)
        """
        weight = np.broadcast_to(np.asarray(weight, dtype=float), self.unit.shape)
        return SizeProbability.from_parameters(n_components, self.unit, weight, self.knots.counts)

    def survey(self, values: np.ndarray) -> CountTable:
        """A table without rows that knows the distinct counts."""
        return self.table_of(tuple(_distinct(column) for column in np.asarray(values, dtype=float).T))

    def table_of(self, distinct: tuple[np.ndarray, ...]) -> CountTable:
        """A table without rows, of distinct counts of each column."""
        none = np.zeros((0, self.n_columns))
        of_columns = [self.knots.weights(counts) for counts in distinct]
        base = np.append(np.concatenate([base for _, _, base in of_columns]), 0.0)
        first = np.cumsum([0, *map(len, distinct)])
        beyond = tuple(start + np.flatnonzero(counts > self.knots.last) for start, counts in zip(first, distinct))
        of_values = self._statistics_of(distinct, of_columns)
        return CountTable(self, none, none.astype(np.int32), distinct, of_values, base, beyond)

    def with_room_for(
        self, table: CountTable, prior: SizeProbability, statistics: np.ndarray
    ) -> tuple[NegativeBinomialEmission, SizeProbability, np.ndarray]:
        """The emission with knots for all counts of a table; earlier knots are the first ones of these."""
        most = max([self.most, *(counts[-1] for counts in table.distinct if len(counts))])
        wider = replace(self, most=most)
        if len(wider.knots.counts) == len(self.knots.counts):
            return self, prior, statistics
        room = ((0, 0), (0, wider.cells_per_component - self.cells_per_component))
        coordinates, added = (
            np.pad(by_lane(each, self.cells_per_component)[0], room).ravel() for each in (prior.coordinates, statistics)
        )
        return wider, replace(prior, coordinates=coordinates, knots=wider.knots.counts), added

    def prepare(self, values: np.ndarray, survey: CountTable | None = None) -> CountTable:
        """A table of counts (n_rows, n_columns), NaN where a cell is missing."""
        values = np.asarray(values, dtype=float)
        survey = self.survey(values) if survey is None else survey
        codes = np.empty(values.shape, dtype=np.int32)
        first = np.cumsum([0, *map(len, survey.distinct)])
        for j, distinct in enumerate(survey.distinct):
            missing = np.isnan(values[:, j])
            codes[:, j] = np.where(missing, first[-1], first[j] + np.searchsorted(distinct, values[:, j]))
        binned = self.bins.binned(values) if self.is_binned(survey) else None
        return replace(survey, values=values, codes=codes, binned=binned)

    def is_binned(self, table: CountTable) -> bool:
        """Distinct counts are more than twice the bins, and none is beyond the last knot."""
        n = sum(map(len, table.distinct))
        return n > _MAX_TABLED_COUNTS and n > 2 * self.bins.n_codes and not any(map(len, table.beyond))

    def step(self, natural: np.ndarray, table: CountTable) -> Step:
        """The emission at natural parameters (n_cells,) or (n_cells, n_lanes)."""
        return CountStep(self, natural, table)

    def _statistics_of(self, distinct: tuple[np.ndarray, ...], of_columns: list[tuple]) -> csr_array:
        d, rows, columns, weights, at = self.n_columns, [], [], [], 0
        for j, (counts, (knots, knot_weights, _)) in enumerate(zip(distinct, of_columns)):
            places = np.arange(at, at + len(counts))
            rows += [places, places, np.repeat(places, knots.shape[1])]
            columns += [np.full(len(counts), 2 * d + j), np.full(len(counts), 3 * d + j), (4 + knots.ravel()) * d + j]
            weights += [np.ones(len(counts)), counts, knot_weights.ravel()]
            at += len(counts)
        cells = np.concatenate(weights), (np.concatenate(rows), np.concatenate(columns))
        return csr_array(cells, shape=(at + 1, self.cells_per_component))

    def log_predictive(self, block: CountTable, posterior: SizeProbability) -> np.ndarray:
        """Log probabilities of rows, sizes and probabilities integrated out, nats, (n_rows, n_components)."""
        first = np.cumsum([0, *map(len, block.distinct)])
        tables = np.zeros((posterior.n_components, first[-1] + 1))
        used = np.unique(block.codes)
        for j, counts in enumerate(block.distinct):
            these = used[(used >= first[j]) & (used < first[j + 1])]
            tables[:, these] = posterior.log_predictive_of_counts(counts[these - first[j]], j)
        return tables.T[block.codes].sum(axis=1)

    def sample(self, point: SizeProbabilityPoint, components: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Counts drawn, floats."""
        rate = rng.standard_gamma(point.size[components])
        odds = (point.probability / (1 - point.probability))[components]
        return rng.poisson(rate * odds).astype(float)

    def impute(self, block: CountTable, point: SizeProbabilityPoint, responsibilities: np.ndarray) -> np.ndarray:
        """Rows with missing counts replaced by their means."""
        return np.where(np.isnan(block.values), responsibilities @ _means(point), block.values)

    def predictive_point(self, posterior: SizeProbability) -> SizeProbabilityPoint:
        """The most probable sizes, and probabilities with which means are the expected ones."""
        size, mean = posterior.mode().size, posterior.expected_means()
        return SizeProbabilityPoint(size, mean / (mean + size))

    def seeding_coordinates(self, block: CountTable) -> np.ndarray:
        """Logarithms of counts and one more, from that of the mean."""
        return np.nan_to_num(np.log1p(block.values) - np.log1p(self.unit), nan=0.0)

    def parameters(self, point: SizeProbabilityPoint) -> dict[str, np.ndarray]:
        """Means and sizes, each (n_components, n_columns)."""
        return {"means": _means(point), "sizes": point.size}

    def parameters_of_draws(self, points: SizeProbabilityPoint) -> dict[str, np.ndarray]:
        """The `parameters` of points with draws along a last axis, all at once."""
        return self.parameters(draws_first(points))

    def point_of(self, parameters: Mapping[str, np.ndarray]) -> SizeProbabilityPoint:
        """Sizes and probabilities; see `parameters`."""
        size, mean = parameters["sizes"], parameters["means"]
        return SizeProbabilityPoint(size, mean / (mean + size))

    def quantiles(self, posterior: SizeProbability, probability: float) -> dict[str, np.ndarray]:
        """Quantiles of means and of sizes, each by itself."""
        return {"means": posterior.quantiles_of_means(probability), "sizes": posterior.quantiles_of_x(probability)}

    def size_of_terms(self, table: CountTable, weight: np.ndarray) -> float:
        """Logarithms are multiplied by counts."""
        return super().size_of_terms(table, weight) + float(weight @ np.nansum(table.values, axis=1))


class CountStep(Step):
    """Negative binomial counts at natural parameters: a table of the log likelihoods of distinct counts."""

    def __init__(self, emission: NegativeBinomialEmission, natural: np.ndarray, table: CountTable):
        self.single = natural.ndim == 1
        self.cells = by_lane(natural, emission.cells_per_component)
        self.n_components, self.n_out = self.cells.shape[1], self.cells.shape[0] * self.cells.shape[1]
        self.of_values, self.width = table.of_values, -(-self.n_out // 4) * 4
        self.bins = emission.bins if emission.is_binned(table) else None
        if self.bins is not None:
            self.tables = self.bins.tables(self.cells.reshape(self.n_out, -1), self.width)
            return
        self.tables = np.zeros((self.of_values.shape[0], self.width))
        likelihoods = self.of_values @ self.cells.reshape(self.n_out, -1).T
        self.tables[:, : self.n_out] = likelihoods + table.base[:, None]
        for j, places in enumerate(table.beyond):
            if len(places):
                self.tables[places, : self.n_out] += self._rises_beyond(emission, j, table, places)

    def _rises_beyond(
        self, emission: NegativeBinomialEmission, j: int, table: CountTable, places: np.ndarray
    ) -> np.ndarray:
        """ln Gamma(y + r) / Gamma(r) of counts beyond the last knot, of one size: that of the mean at the last knot."""
        last = emission.knots.counts[-1]
        wanted = self.cells.reshape(self.n_out, -1, emission.n_columns)[:, -1, j]
        low, high = np.full(self.n_out, -REACH), np.full(self.n_out, REACH)
        for _ in range(_N_HALVED):
            middle = (low + high) / 2
            less = log_rising(np.exp(middle), last) < wanted
            low, high = np.where(less, middle, low), np.where(less, high, middle)
        log_size = (low + high) / 2
        for _ in range(_N_NEWTON):
            slope = np.exp(log_size) * digamma_rise(np.exp(log_size), last)
            log_size += (wanted - log_rising(np.exp(log_size), last)) / slope
        first = sum(map(len, table.distinct[:j]))
        return log_rising(np.exp(log_size), table.distinct[j][places - first, None])

    def log_likelihood(self, block: CountTable) -> np.ndarray:
        """Expected log likelihoods of rows, nats."""
        log_likelihood = np.empty((self.n_out, len(block)))
        if self.bins is not None and block.binned is not None:
            codes, place, base = map(np.ascontiguousarray, block.binned)
            _categorical.gather_polynomials(codes, place, self.tables, log_likelihood)
            log_likelihood += base
        else:
            _categorical.gather(np.ascontiguousarray(block.codes), self.tables, log_likelihood)
        return by_row(log_likelihood, self.n_components, self.single)

    def zeros(self) -> np.ndarray:
        """An empty sum: weights of distinct counts, (n_values + 1, width), or of bins, (n_codes, n_powers, width)."""
        return np.zeros(self.tables.shape)

    def add(self, block: CountTable, responsibilities: np.ndarray, total: np.ndarray) -> None:
        """Add the statistics of a block to a sum."""
        if self.bins is not None and block.binned is not None:
            codes, place, _ = map(np.ascontiguousarray, block.binned)
            _categorical.spread_powers(codes, place, as_matrix(responsibilities), total)
        else:
            _categorical.spread(np.ascontiguousarray(block.codes), as_matrix(responsibilities), total)

    def of_rows(self, block: CountTable) -> np.ndarray:
        """Statistics of each row, the same for all components."""
        d = block.codes.shape[1]
        rows = np.repeat(np.arange(len(block)), d)
        chosen = csr_array((np.ones(rows.size), (rows, block.codes.ravel())), (len(block), self.of_values.shape[0]))
        statistics = (chosen @ self.of_values).toarray()
        return np.broadcast_to(statistics[:, None], (len(block), self.n_components, statistics.shape[1]))

    def statistics(self, total: np.ndarray) -> np.ndarray:
        """Statistics of a sum."""
        total = total[..., : self.n_out]
        cells = self.of_values.T @ total if self.bins is None else self.bins.statistics(total)
        return by_cell(cells.T.reshape(self.cells.shape), self.single)


@dataclass(frozen=True)
class _Largest:
    """The largest count of a table; those of parts add up to that of all."""

    value: float

    @classmethod
    def of(cls, part: tuple) -> _Largest:
        values = np.asarray(part[0], dtype=float)
        return cls(float(np.max(values, initial=0.0, where=~np.isnan(values))))

    def __add__(self, other: _Largest) -> _Largest:
        return _Largest(max(self.value, other.value))


def _means(point: SizeProbabilityPoint) -> np.ndarray:
    return point.size * point.probability / (1 - point.probability)


def _distinct(column: np.ndarray) -> np.ndarray:
    there = column[~np.isnan(column)]
    if len(there) and there.max() < min(_COUNTED, 64 * len(there)):
        return np.flatnonzero(np.bincount(there.astype(np.int64))).astype(float)
    return np.unique(there)
