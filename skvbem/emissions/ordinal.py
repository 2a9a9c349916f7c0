r"""Ordered answers: normal numbers, hidden in every cell, between edges that all components have.

A cell holds the answer c where its number lies between the edges :math:`\gamma_{c-1}` and :math:`\gamma_c`. Given the
edges it is a cell known as an interval: see `skvbem.emissions.intervals`, of which all else comes.

The numbers of all rows together are about standard normal, as edges stand at quantiles of this distribution. They are
chosen by the data, from a finite set: with M points at the shares :math:`\sin^2 \frac\pi2 \frac{m - 1/2}M`, C - 1
different ones are the shares of answers up to each edge. All choices have the prior probability
:math:`1 / \binom M{C - 1}`. The evidence is at least that of one choice times its probability,

.. math:: \ln p(y) \ge \ln p(y \mid \gamma) - \ln \binom M{C - 1},

so that a bound given the edges, less the price of each column, is a bound. Whichever edges are taken, this holds. Those
here are next to the shares of answers in the data, with :math:`M \approx \frac\pi2 \sqrt N` for N answers: points are
two standard errors of a share apart, which costs at most half a nat for each edge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import ndtr, ndtri

from skvbem._arguments import is_collection
from skvbem._lazy import cached_property
from skvbem._names import shown
from skvbem._numerics import log_gamma
from skvbem.blocks import Blocks, map_reduce
from skvbem.emissions.base import draws_first
from skvbem.emissions.gaussian.diagonal import DiagonalGaussian
from skvbem.emissions.gaussian.specification import PRIOR_CONSTRAINTS, Gaussian
from skvbem.emissions.interval_cells import log_mass_and_moments
from skvbem.emissions.intervals import IntervalEmission, IntervalTable
from skvbem.emissions.parameters import check_positive, check_shape, named_arrays
from skvbem.emissions.profiles import of_levels
from skvbem.emissions.specification import HIERARCHICAL, EmissionSpecification, Ends, Parameters, Profile, floats
from skvbem.families import NormalPoint

#: Farthest edge, in deviations of the numbers of all rows: squares of numbers there leave variances four digits.
_FARTHEST = 1e6


class Ordinal(Gaussian):
    """Columns of ordered answers, as of questionnaires: each is a normal number, known between edges alone.

    A component has a mean and a variance of each column, in place of a table of probabilities: two numbers, whatever
    the number of answers. The edges are those of all components.

    Parameters
    ----------
    edges : sequence of array-like, default=None
        Edges between the answers of each column, one less than these, each above the last. By default they stand near
        quantiles of the standard normal distribution, at the shares of answers in X, and have a price.
    mean_precision_prior : float, "hierarchical" or "by_column", default="hierarchical"
        How many rows a prior mean of 0 weighs, as of `Gaussian`.
    degrees_of_freedom_prior : float, default=None
        For the precision of each number.
    covariance_prior : array-like of shape (n_columns,), "hierarchical" or None, default="hierarchical"
        Prior variances of a component; 1 is the variance in all components together.

    See Also
    --------
    Categorical : answers in no order.
    Interval : measurements known between two ends.

    Notes
    -----
    Answers are in the order of their levels: numbers, categories of an ordered type, or levels of the `categories`
    parameter of the estimator. All scores have the price of the edges, the logarithm of the number of choices among
    which the data choose; `log_likelihood_` has it, too. So bounds compare with those of `Categorical`. Rows that are
    scored have none; `goodness_of_fit` has it in AIC and other criteria of the data of the fit, and by itself. Edges
    that are given have no price. Batches of `partial_fit` take the edges of the first one.

    A column of two answers tells one number of a component, not two: `n_free_parameters_` counts one. A column of one
    answer tells nothing, and costs nothing if the prior is known. By default it costs .9 to 1.6 nats for 1 to 5
    components: under q(theta) its means and variances are independent of the hyperparameters.

    Examples
    --------
    >>> import numpy as np
    >>> from skvbem import VBMixture
    >>> from skvbem.emissions import Ordinal
    >>> rng = np.random.default_rng(0)
    >>> mood = rng.normal(rng.integers(3, size=300)[:, None] * 1.5, 1.0, size=(300, 6))
    >>> answers = np.digitize(mood, np.linspace(-0.5, 3.5, 6)) + 1  # 1 to 7
    >>> ordered = VBMixture(3, emission=Ordinal(), random_state=0).fit(answers)
    >>> ordered.parameters_["ordinal"]["probabilities"].shape
    (3, 6, 7)
    >>> any_order = VBMixture(3, emission="categorical", random_state=0).fit(answers)
    >>> ordered.lower_bound_ - any_order.lower_bound_ > 10
    True
    """

    _parameter_constraints: ClassVar[dict] = PRIOR_CONSTRAINTS
    holds_categories: ClassVar[bool] = True
    has_order: ClassVar[bool] = True
    has_moments: ClassVar[bool] = False
    has_cumulative: ClassVar[bool] = False
    has_covariances: ClassVar[bool] = False
    needs_variation: ClassVar[bool] = False
    covariance_type: Any = "diag"
    mean_prior: Any = None

    def __init__(
        self,
        edges=None,
        *,
        mean_precision_prior=HIERARCHICAL,
        degrees_of_freedom_prior=None,
        covariance_prior=HIERARCHICAL,
    ):
        self.edges = edges
        self.mean_precision_prior = mean_precision_prior
        self.degrees_of_freedom_prior = degrees_of_freedom_prior
        self.covariance_prior = covariance_prior

    def for_data(self, values: Any, weight: np.ndarray | None = None, *, n_categories=None) -> Any:
        """The emission of codes (n_rows, n_columns), negative where missing, of so many answers each."""
        self.check_parameters()
        parts = values if isinstance(values, Blocks) else [(values, weight)]
        sizes = np.asarray(values.max(axis=0, initial=0) + 1 if n_categories is None else n_categories)
        counts = np.split(map_reduce(partial(_counts, sizes), parts), np.cumsum(sizes)[:-1])
        if self.edges is None:
            chosen = [chosen_edges(of_column) for of_column in counts]
            edges, prices = tuple(edges for edges, _ in chosen), [price for _, price in chosen]
        else:
            edges, prices = self._given(sizes), [0.0] * len(sizes)
        totals = np.array([of_column.sum() for of_column in counts])
        nothing, one = np.zeros(len(sizes)), np.ones(len(sizes))
        normal = DiagonalGaussian(nothing, nothing, one, total_weight=float(totals.max(initial=1.0)))
        return OrdinalEmission(normal, Edges.of(edges), np.array(prices) / np.maximum(totals, 1e-300))

    def _given(self, sizes: np.ndarray) -> tuple[np.ndarray, ...]:
        """The edges that a user gives, as arrays."""
        wanted = "a sequence of arrays of numbers"
        if not is_collection(self.edges):
            raise ValueError(f"The 'edges' parameter of Ordinal must be {wanted}. Got {shown(self.edges)}.")
        rows = [floats("Ordinal", "edges", row, wanted) for row in self.edges]
        if len(rows) != len(sizes):
            raise ValueError(
                f"The 'edges' parameter of Ordinal must have {len(sizes)} entries, one for each of its columns. Got "
                f"{len(rows)}."
            )
        for j, (row, size) in enumerate(zip(rows, sizes)):
            if row.shape != (size - 1,) or not (np.abs(row) <= _FARTHEST).all() or (np.diff(row) <= 0).any():
                raise ValueError(
                    f"The 'edges' parameter of Ordinal must have, for the column at position {j}, which has {size} "
                    f"answers, {size - 1} numbers up to {_FARTHEST:g} in size, each above the last. Got "
                    f"{shown(row.tolist())}."
                )
        return tuple(rows)

    def prior_options(self, emission: Any, names: Sequence[str]) -> dict[str, Any]:
        """Precision of the mean in rows, degrees of freedom and variances, as of a Gaussian."""
        return super().prior_options(emission.normal, names)

    def checked_parameters(self, parameters: Any) -> dict[str, np.ndarray]:
        """Means and variances of numbers (n_components, n_columns), and edges; probabilities follow.

        Edges are those of `edges`, or (n_columns, most edges), or the same for each component; NaN beyond the last one.
        """
        owner, follow = type(self).__name__, {"probabilities", "precisions", "edges"}
        given = dict(parameters)
        arrays = named_arrays(
            owner, {name: each for name, each in given.items() if name not in follow}, {"means": 2, "covariances": 2}
        )
        check_shape(owner, "covariances", arrays["covariances"], arrays["means"].shape, "that of the means")
        check_positive(owner, "covariances", arrays["covariances"])
        edges = self._edges_of_parameters(given.get("edges"), arrays["means"].shape[1])
        point = NormalPoint(arrays["means"], 1 / arrays["covariances"])
        return {"probabilities": np.nan_to_num(edges.probabilities(point)), **arrays, "edges": edges.edges[None]}

    def _edges_of_parameters(self, given: Any, n_columns: int) -> Edges:
        """Edges that are given among parameters, or as those of the emission."""
        rows = self.edges
        if given is not None:
            array = floats("Ordinal", "edges", given)
            array = array[None] if array.ndim == 2 else array
            if array.ndim != 3 or any(not np.array_equal(array[0], each, equal_nan=True) for each in array):
                raise ValueError(
                    "The 'edges' among parameters of Ordinal must be an array of columns by edges, or the same one for "
                    f"each component. Got {shown(given)}."
                )
            rows = [row[~np.isnan(row)] for of_component in array[:1] for row in of_component]
        if rows is None:
            raise ValueError("Parameters of Ordinal must have 'edges', unless the emission has them.")
        sizes = [np.size(row) + 1 for row in rows][:n_columns] if is_collection(rows) else []
        return Edges.of(Ordinal(rows)._given(np.array(sizes + [1] * (n_columns - len(sizes)))))

    def with_given(self, parameters: Parameters) -> Ordinal:
        """The specification with edges that are given among parameters."""
        edges = parameters["edges"][0]
        return Ordinal(**self.get_params(deep=False) | {"edges": [row[np.isfinite(row)] for row in edges]})

    def typical_rows(self, parameters: Parameters) -> np.ndarray:
        """Each answer once in every column."""
        codes = np.arange(parameters["probabilities"].shape[2])[:, None]
        return np.where(codes <= np.isfinite(parameters["edges"][0]).sum(axis=1), codes, -1)

    def explained_by(self, covariates: Sequence[str], names: Sequence[str]) -> Any:
        """No family: a regression of answers is not there."""
        return EmissionSpecification.explained_by(self, covariates, names)

    def attributes(self, emission: Any, parameters: Parameters, prior: Any, posterior: Any) -> dict[str, Any]:
        """None besides `parameters_`."""
        return {}

    def expected(self, parameters: Parameters, levels: Sequence[np.ndarray] = ()) -> list[np.ndarray]:
        """Probabilities of each column's answers."""
        return [parameters["probabilities"][:, j, : len(answers)] for j, answers in enumerate(levels)]

    def profiles(
        self, names: Sequence[str], parameters: Parameters, intervals: Ends, levels: Sequence[np.ndarray] = ()
    ) -> list[Profile]:
        """Probabilities of each column's answers, with their intervals where draws tell them."""
        name = "probabilities"
        profiles: list[Profile] = []
        for j, (column, answers) in enumerate(zip(names, levels)):
            known = intervals is not None and all(name in each for each in intervals)
            ends = tuple(each[name][:, j] for each in intervals) if intervals is not None and known else None
            profiles.append(of_levels(column, answers.tolist(), parameters[name][:, j], ends))
        return profiles

    def cumulative_of_cells(self, values: np.ndarray, parameters: Parameters) -> tuple[np.ndarray, np.ndarray]:
        """Sums of the probabilities of answers before a cell's, and up to it."""
        codes = np.asarray(values)
        sums = np.cumsum(parameters["probabilities"], axis=-1)  # (n_components, n_columns, n_answers)
        sums = np.concatenate([np.zeros((*sums.shape[:2], 1)), sums], axis=-1)
        columns = np.arange(sums.shape[1])
        ends = (sums[:, columns, np.maximum(codes, 0) + answer] for answer in (0, 1))
        below, up_to = (np.where(codes < 0, np.nan, each) for each in ends)
        return below, up_to


def chosen_edges(counts: np.ndarray) -> tuple[np.ndarray, float]:
    """Edges (n_answers - 1,) near the quantiles of counts of answers (n_answers,), and their price in nats."""
    n, total = len(counts) - 1, counts.sum()
    if not n:
        return np.empty(0), 0.0
    n_points = max(int(np.ceil(np.pi / 2 * np.sqrt(total))), n)
    n_points += (n_points - n) % 2  # answers in the reverse order then have the same edges, mirrored
    order, every = np.arange(1, n + 1), counts if total > 0 else np.ones(n + 1)
    share = np.clip(np.cumsum(every)[:-1] / every.sum(), 0.0, 1.0)
    place = n_points * 2 / np.pi * np.arcsin(np.sqrt(share)) + 0.5
    pooled = isotonic_regression(np.round(place - order, 9)).x
    number = np.round(np.round(np.clip(pooled, 0, n_points - n), 9)) + order
    edges = ndtri(np.sin(np.pi / 2 * (number - 0.5) / n_points) ** 2)
    of_all, *of_parts = log_gamma(np.array([n_points, n, n_points - n]) + 1.0)
    return edges, float(of_all - sum(of_parts))


def _counts(sizes: np.ndarray, part: tuple) -> np.ndarray:
    """Weights of the answers of all columns, one column after the other."""
    codes, weight = np.asarray(part[0]), part[1]
    weight = np.ones(len(codes)) if weight is None else weight
    return np.concatenate(
        [np.bincount(code[code >= 0], weight[code >= 0], minlength=size) for code, size in zip(codes.T, sizes)]
    )


@dataclass(frozen=True, eq=False)
class Edges:
    """Answers, codes of which the numbers lie between edges.

    Parameters
    ----------
    edges : ndarray of shape (n_columns, most answers - 1)
        Of each column, each above the last; infinite beyond those of a column.
    """

    edges: np.ndarray

    #: Columns of a number.
    width: ClassVar[int] = 1

    @classmethod
    def of(cls, of_columns: Sequence[np.ndarray]) -> Self:
        """Edges of each column, one less than its answers."""
        edges = np.full((len(of_columns), max(map(len, of_columns), default=0)), np.inf)
        for row, of_column in zip(edges, of_columns):
            row[: len(of_column)] = of_column
        return cls(edges)

    @property
    def n_answers(self) -> tuple[int, ...]:
        """Answers of each column."""
        return tuple((np.isfinite(self.edges).sum(axis=1) + 1).tolist())

    @cached_property
    def all_ends(self) -> np.ndarray:
        """Edges with those at the ends, (n_columns, most answers + 1)."""
        return np.pad(
            np.pad(self.edges, ((0, 0), (1, 0)), constant_values=-np.inf), ((0, 0), (0, 1)), constant_values=np.inf
        )

    def ends(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends, (n_rows, n_columns); NaN where an answer is missing, or the only one."""
        codes = np.asarray(values)
        columns = np.arange(codes.shape[1])
        low, high = (self.all_ends[columns, np.maximum(codes, 0) + upper] for upper in (0, 1))
        nothing = (codes < 0) | (np.isinf(low) & np.isinf(high))
        return np.where(nothing, np.nan, low), np.where(nothing, np.nan, high)

    def probabilities(self, point: NormalPoint) -> np.ndarray:
        """Of answers under normal numbers, (n_components, n_columns, most answers); NaN beyond those of a column."""
        ends = (self.all_ends - point.mean[..., None]) * np.sqrt(point.precision)[..., None]
        low, high = ends[..., :-1], ends[..., 1:]
        inside = np.where(low > 0, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low))
        return np.where(np.isposinf(low), np.nan, inside)

    def rows(self, measurements: np.ndarray) -> np.ndarray:
        """Codes of the answers of numbers."""
        columns = zip(self.edges, measurements.T)
        return np.stack([np.searchsorted(edges, numbers) for edges, numbers in columns], axis=1)


@dataclass(frozen=True, eq=False)
class OrdinalEmission(IntervalEmission):
    """Ordered answers, independent given the component.

    Parameters
    ----------
    normal : DiagonalGaussian
        The numbers behind the answers.
    reading : Edges
    price : ndarray of shape (n_columns,)
        Of the edges for each answer, nats: all answers of the data together have that of the column.
    has_price : bool
        Whether rows have it, those of the fit.
    """

    reading: Edges
    price: np.ndarray
    has_price: bool = True

    @property
    def n_categories(self) -> tuple[int, ...]:
        """Answers of each column."""
        return self.reading.n_answers

    @property
    def n_outcomes(self) -> tuple[int, ...]:
        """Answers of each column."""
        return self.n_categories

    def prepare(self, values: np.ndarray, survey: IntervalTable | None = None) -> IntervalTable:
        """A table of codes (n_rows, n_columns), negative where missing, with the price of the edges if rows have it."""
        table = super().prepare(values, survey)
        if not self.has_price:
            return table
        base = table.points.base - (np.asarray(values) >= 0) @ self.price
        return replace(table, points=replace(table.points, base=base))

    def priced(self, of_fit: bool) -> OrdinalEmission:
        """With the price of the edges, or without it."""
        return self if of_fit == self.has_price else replace(self, has_price=of_fit)

    def paid(self, values: np.ndarray, weight: np.ndarray | None) -> float:
        """The price of the edges for all answers that rows hold."""
        counts = np.asarray(values) >= 0
        return float((counts.sum(axis=0) if weight is None else weight @ counts) @ self.price)

    def n_redundant_parameters(self, components: np.ndarray) -> int:
        """Of two numbers of a column, those that are more than its answers less one."""
        return int(np.sum(components) * sum(max(3 - size, 0) for size in self.n_categories))

    def seeding_coordinates(self, block: IntervalTable) -> np.ndarray:
        """Expected standard normal numbers between the edges, 0 where an answer is missing, or the only one."""
        nothing = np.zeros((1, self.n_columns))
        _, moments = log_mass_and_moments(block.cells, nothing, nothing + 1.0)
        return block.cells.of_cells(moments)[0, 1].T

    def sample(self, point: NormalPoint, components: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Codes drawn."""
        return self.reading.rows(self.normal.sample(point, components, rng))

    def impute(self, block: IntervalTable, point: NormalPoint, responsibilities: np.ndarray) -> np.ndarray:
        """Codes with missing ones replaced by the most probable answer; the first of equals."""
        tables = np.nan_to_num(self.reading.probabilities(point), nan=-1.0)
        expected = np.tensordot(responsibilities, tables, axes=1)  # (n_rows, n_columns, n_answers)
        return np.where(np.asarray(block.values) < 0, expected.argmax(axis=2), block.values)

    def parameters(self, point: NormalPoint) -> dict[str, np.ndarray]:
        """Probabilities of answers, moments of the numbers behind them, and edges, which all components share."""
        probabilities, edges = self.reading.probabilities(point), self.reading.edges
        edges = np.where(np.isfinite(edges), edges, np.nan)
        of_components = np.broadcast_to(edges, (len(probabilities), *edges.shape))
        return {"probabilities": probabilities, **self.normal.parameters(point), "edges": of_components}

    def parameters_of_draws(self, points: NormalPoint) -> dict[str, np.ndarray]:
        """The `parameters` of points with draws along a last axis."""
        mean, precision = draws_first(points)  # draws stand as components do
        flat = self.parameters(NormalPoint(mean.reshape(-1, self.n_columns), precision.reshape(-1, self.n_columns)))
        return {name: each.reshape(len(mean), -1, *each.shape[1:]) for name, each in flat.items()}
