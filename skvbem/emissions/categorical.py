r"""Categories: :math:`p(y \mid \theta) = \prod_j \theta_{j, y_j}`, independent columns, Dirichlet priors of the tables.

Columns are joined two, three or more at a time into codes, so that a row costs one addition per group and component,
in the E step as in the sums; a missing cell is one more category whose entry is 0, that is factor 1. Predictive: the
posterior means of the tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import prod
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np

from skvbem._kernels import _categorical
from skvbem._lazy import cached_property
from skvbem._numerics import safe_log
from skvbem.blocks import Blocks, map_reduce
from skvbem.emissions.base import (
    Emission,
    Step,
    as_matrix,
    by_cell,
    by_lane,
    by_row,
    parameters_by_draw,
)
from skvbem.emissions.moments import ROWS_AT_ONCE
from skvbem.emissions.parameters import distributions, named_arrays
from skvbem.emissions.profiles import of_levels
from skvbem.emissions.specification import EmissionSpecification, Ends, Parameters, Profile, floats, positive
from skvbem.families import Dirichlet


class Categorical(EmissionSpecification):
    """Columns of categories of any type, each with a table of probabilities in each component.

    Levels are those of X, or those that the `categories` parameter of the estimator declares.

    Parameters
    ----------
    concentration_prior : float or sequence, default=1.0
        Concentration of each category in the Dirichlet prior of a column. A sequence has an entry for each column: a
        float, or one for each of its categories.

    See Also
    --------
    Bernoulli : columns of 0 and 1.

    Examples
    --------
    >>> from skvbem import VBMixture
    >>> from skvbem.datasets import load_carcinoma
    >>> from skvbem.emissions import Categorical
    >>> slides = load_carcinoma().data
    >>> sharp = VBMixture(3, emission=Categorical(concentration_prior=0.1), random_state=0).fit(slides)
    >>> sharp.parameters_["categorical"]["probabilities"].shape
    (3, 7, 2)
    """

    holds_categories: ClassVar[bool] = True
    has_table: ClassVar[bool] = True

    def __init__(self, concentration_prior=1.0):
        self.concentration_prior = concentration_prior

    def for_data(
        self, values: np.ndarray | Blocks, weight: np.ndarray | None = None, *, n_categories=None
    ) -> CategoricalEmission:
        """The emission of codes (n_rows, n_columns), negative where missing, of so many categories each."""
        return CategoricalEmission.for_data(values, weight, n_categories=n_categories)

    def prior_options(self, emission: Any, names: Sequence[str]) -> dict[str, Any]:
        """A concentration for all, or one for each column or for each category of each column."""
        owner, name, value = type(self).__name__, "concentration_prior", self.concentration_prior
        if np.isscalar(value):
            return {"concentration": float(positive(owner, name, value))}
        rows = list(value)
        if len(rows) != emission.n_columns:
            raise ValueError(
                f"The {name!r} parameter of {owner} must be a number or have {emission.n_columns} entries, one for "
                f"each of its columns. Got {len(rows)}."
            )
        numbers = [positive(owner, name, row) for row in rows]
        for column, row, size in zip(names, numbers, emission.n_categories):
            if row.ndim and row.shape != (size,):
                raise ValueError(
                    f"The {name!r} parameter of {owner}, for column {column!r}, must be a number or have one for each "
                    f"of its {size} categories. Got an array of shape {row.shape}."
                )
        return {"concentration": numbers}

    def checked_parameters(self, parameters: Any) -> dict[str, np.ndarray]:
        """Tables (n_components, n_columns, n_categories), or those of one column, NaN or 0 beyond its categories."""
        owner, name = type(self).__name__, "probabilities"
        filled = {key: np.nan_to_num(floats(owner, key, value), nan=0.0) for key, value in dict(parameters).items()}
        table = named_arrays(owner, filled, {name: (2, 3)})[name]
        return {name: distributions(owner, name, table if table.ndim == 3 else table[:, None])}

    def typical_rows(self, parameters: Parameters) -> np.ndarray:
        """Each category once in every column."""
        _, n_columns, n_categories = parameters["probabilities"].shape
        return np.tile(np.arange(n_categories)[:, None], (1, n_columns))

    def expected(self, parameters: Parameters, levels: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Probabilities of each column's levels."""
        return [parameters["probabilities"][:, j, : len(categories)] for j, categories in enumerate(levels)]

    def profiles(
        self, names: Sequence[str], parameters: Parameters, intervals: Ends, levels: Sequence[np.ndarray]
    ) -> list[Profile]:
        """Probabilities of each column's levels, with their intervals."""
        profiles: list[Profile] = []
        for j, (name, categories) in enumerate(zip(names, levels)):
            ends = None if intervals is None else tuple(each["probabilities"][:, j] for each in intervals)
            profiles.append(of_levels(name, categories.tolist(), parameters["probabilities"][:, j], ends))
        return profiles


# Codes and combinations of them whose rows are counted, and rows times sets of groups of columns that are gone through:
# more take longer than divisions of components do. By hand.
_MAX_CODES, _MAX_COMBINATIONS, _MAX_COUNTED = 2**9, 2**22, 2**23
# Most codes of a group of joined columns.
_MAX_CODES_PER_GROUP = 64
# Rows for each code, below which joining costs more than it brings.
_ROWS_PER_CODE = 8


@dataclass(frozen=True, eq=False)
class CategoricalEmission(Emission):
    """Categories, independent given the component.

    Parameters
    ----------
    n_categories : tuple of int
        Categories of each column.
    """

    n_categories: tuple[int, ...]

    @classmethod
    def for_data(cls, codes: np.ndarray | Blocks, weight: np.ndarray | None = None, *, n_categories=None) -> Self:
        """The emission of codes (n_rows, n_columns), 0, 1, ..., negative where missing. Weights make no difference.

        Parameters
        ----------
        codes : ndarray of int, shape (n_rows, n_columns)
        weight : ndarray of shape (n_rows,), optional
        n_categories : sequence of int, optional
            The largest code of each column and one if None, of codes that do not come in blocks.
        """
        if n_categories is None:
            if isinstance(codes, Blocks):
                raise ValueError("The numbers of categories of codes that come in blocks must be given.")
            n_categories = np.maximum(codes.max(axis=0, initial=0), 0) + 1
        return cls(tuple(int(n) for n in n_categories))

    @property
    def n_columns(self) -> int:
        """Columns of a row."""
        return len(self.n_categories)

    @property
    def doubles_per_row(self) -> int:
        """Doubles that a block holds for each row."""
        return self.n_columns // 2 + 1

    @property
    def first_cell(self) -> np.ndarray:
        """First cell of each column's table among the cells of a component, and the end."""
        return np.concatenate([[0], np.cumsum(self.n_categories)]).astype(np.int64)

    def default_prior(self, n_components: int, *, concentration=1.0) -> Dirichlet:
        """Dirichlet distributions of the tables.

        Parameters
        ----------
        n_components : int
        concentration : float, or one array_like of shape (n_categories,) for each column
        """
        if isinstance(concentration, Real):
            rows = [np.full(n, float(concentration)) for n in self.n_categories]
        else:
            pairs = zip(concentration, self.n_categories)
            rows = [np.broadcast_to(np.asarray(row, dtype=float), n) for row, n in pairs]
        return Dirichlet.from_rows(rows * n_components)

    def survey(self, values: np.ndarray) -> CategoricalTable:
        """A table without rows that knows which columns have gaps and how many rows there are.

        Raises
        ------
        ValueError
            If a code is not among a column's categories.
        """
        codes = np.asarray(values)
        lowest = codes.min(axis=0, initial=0)
        highest = codes.max(axis=0, initial=-1)
        sizes = np.asarray(self.n_categories)
        if np.any(highest >= sizes):
            column = int(np.argmax(highest >= sizes))
            raise ValueError(
                f"Column {column} holds the code {highest[column]}, but has {sizes[column]} categories: "
                f"codes are 0 to {sizes[column] - 1}, and negative where a cell is missing."
            )
        return CategoricalTable.without_rows(codes[:0], self.n_categories, lowest < 0, len(codes))

    def prepare(self, values: np.ndarray, survey: CategoricalTable | None = None) -> CategoricalTable:
        """A table of codes (n_rows, n_columns), negative where a cell is missing."""
        codes = np.asarray(values)
        survey = self.survey(codes) if survey is None else survey
        return replace(survey, codes=codes, joined=survey.join.encode(codes))

    def step(self, natural: np.ndarray, table: CategoricalTable) -> Step:
        """The emission at natural parameters (n_cells,) or (n_cells, n_lanes)."""
        return CategoricalStep(self, natural, table.join)

    def log_predictive(self, block: CategoricalTable, posterior: Dirichlet) -> np.ndarray:
        """Log probabilities of rows at the posterior means, nats, (n_rows, n_components)."""
        return self.expected_log_likelihood(block, safe_log(posterior.mean()))

    def sample(self, point: np.ndarray, components: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Codes drawn."""
        drawn = np.empty((len(components), self.n_columns), dtype=np.int64)
        for column, table in enumerate(self._tables(point)):
            cumulative = np.cumsum(table, axis=1)[components]
            drawn[:, column] = (rng.random(len(components))[:, None] * cumulative[:, -1:] >= cumulative).sum(axis=1)
        return drawn

    def impute(self, block: CategoricalTable, point: np.ndarray, responsibilities: np.ndarray) -> np.ndarray:
        """Codes with missing ones replaced by the most probable category; the first of equals."""
        codes = np.array(block.codes)
        for column, table in enumerate(self._tables(point)):
            missing = np.flatnonzero(codes[:, column] < 0)
            codes[missing, column] = np.argmax(responsibilities[missing] @ table, axis=1)
        return codes

    def count_blocks(self, prior: Dirichlet) -> list[tuple[int, Dirichlet]]:
        """The whole prior: each observed cell counts one category."""
        return [(0, prior)]

    @property
    def identifies_components(self) -> bool:
        """No: that hangs on the numbers of columns and of categories."""
        return False

    @property
    def n_outcomes(self) -> tuple[int, ...] | None:
        """Categories of each column."""
        return self.n_categories

    def excess(self, data: Any, counts: np.ndarray, statistics: np.ndarray) -> float | None:
        r"""Nats by which combinations of categories are more frequent than components expect, beyond chance.

        The largest of three: of combinations of categories in two, and in three, groups of columns, which O rows have
        where E are expected, the highest :math:`O \ln(O/E) - (O - E)`, less the logarithm of their number, as rare
        clusters have it; and :math:`\lambda^2/4 - q`, where :math:`\lambda` is the largest eigenvalue of the residuals
        :math:`(O - E) \sqrt{N / N_a N_b}` of categories a and b of different columns, and q the number of free
        probabilities of a component. Halves of the rows that differ along its eigenvector gain :math:`\lambda^2/4`, by
        chance up to q. None if there are too many combinations.
        """
        pairs, triples = (_Combinations(data.table.join, n) for n in (2, 3))
        if not pairs.groups or not pairs.are_few(len(data)):
            return None
        frequencies = pairs.frequencies(self._tables(statistics), counts)
        observed = map_reduce(pairs.observed, data.parts)
        expected = pairs.expected(frequencies, counts, np.arange(pairs.size))
        highest = pairs.highest(observed, expected)
        if triples.groups and triples.are_few(len(data)):
            of_triples = map_reduce(triples.observed, data.parts)
            cells = np.flatnonzero(of_triples)
            highest = max(highest, triples.highest(of_triples[cells], triples.expected(frequencies, counts, cells)))
        residuals = pairs.of_categories(observed - expected)
        deviation = np.sqrt(np.maximum(statistics.reshape(len(counts), -1).sum(axis=0), 1.0))
        residuals *= np.sqrt(counts.sum()) / np.outer(deviation, deviation)
        n_free = self.cells_per_component - self.n_columns
        return max(highest, float(np.linalg.eigvalsh(residuals)[-1]) ** 2 / 4 - n_free)

    def seeding_coordinates(self, block: CategoricalTable) -> np.ndarray:
        """An axis for each category of each column; different categories are 1 apart."""
        coordinates = np.zeros((len(block), self.cells_per_component))
        for column, (first, size) in enumerate(zip(self.first_cell, self.n_categories)):
            rows = np.flatnonzero(block.codes[:, column] >= 0)
            coordinates[rows, first : first + size] = -np.sqrt(0.5) / size
            coordinates[rows, first + block.codes[rows, column]] += np.sqrt(0.5)
        return coordinates

    def quantiles(self, posterior: Dirichlet, probability: float) -> dict[str, np.ndarray]:
        """Quantiles of the probabilities; those of two or more categories do not sum to 1."""
        return self.parameters(posterior.quantiles(probability))

    def parameters(self, point: np.ndarray) -> dict[str, np.ndarray]:
        """Probabilities, (n_components, most categories of a column) by column, NaN beyond a column's categories."""
        widest = max(self.n_categories, default=0)
        tables = self._tables(point)
        probabilities = np.full((len(tables[0]), len(tables), widest), np.nan)
        for column, table in enumerate(tables):
            probabilities[:, column, : table.shape[1]] = table
        return {"probabilities": probabilities}

    def parameters_of_draws(self, points: np.ndarray) -> dict[str, np.ndarray]:
        """The `parameters` of points with draws along a last axis."""
        return parameters_by_draw(self, points)

    def point_of(self, parameters: Mapping[str, np.ndarray]) -> np.ndarray:
        """The cells of all tables, component by component; see `parameters`."""
        probabilities = parameters["probabilities"]
        tables = [probabilities[:, column, :n] for column, n in enumerate(self.n_categories)]
        return np.concatenate(tables, axis=1).ravel()

    def _tables(self, point: np.ndarray) -> list[np.ndarray]:
        """One table (n_components, n_categories) for each column."""
        return np.split(point.reshape(-1, self.cells_per_component), self.first_cell[1:-1], axis=1)

    @property
    def cells_per_component(self) -> int:
        """Cells of natural parameters, and of statistics, of one component."""
        return sum(self.n_categories)


class _Combinations:
    """Numbers of rows with each combination of codes of so many groups of joined columns, one set after the other."""

    def __init__(self, join: Joint, n_groups: int):
        self.join, self.sizes = join, np.diff(join.first_code)
        self.groups = list(combinations(range(len(join.groups)), n_groups))
        self._shapes = [tuple(self.sizes[list(each)].tolist()) for each in self.groups]
        self._ends = np.cumsum([prod(shape) for shape in self._shapes])
        self.size = sum(prod(shape) for shape in self._shapes)

    def are_few(self, n_rows: int) -> bool:
        """True if it takes little to count so many rows."""
        n_codes = self.join.first_code[-1]
        return n_codes <= _MAX_CODES and self.size <= _MAX_COMBINATIONS and len(self.groups) * n_rows <= _MAX_COUNTED

    def observed(self, part: Any) -> np.ndarray:
        """Weights of rows of a part, (size,)."""
        codes = np.ascontiguousarray(part.table.joined.T) - self.join.first_code[:-1, None]
        tables = []
        for groups, shape in zip(self.groups, self._shapes):
            code = codes[groups[0]]
            for each in groups[1:]:
                code = code * self.sizes[each] + codes[each]
            tables.append(np.bincount(code, part.weight, prod(shape)))
        return np.concatenate(tables)

    def frequencies(self, tables: list[np.ndarray], counts: np.ndarray) -> list[np.ndarray]:
        """Shares of codes of each group in components with these counts, of rows and of categories by column."""
        rows, frequencies = np.maximum(counts, np.finfo(float).tiny)[:, None], []
        for group in self.join.groups:
            share = np.ones((len(rows), 1))
            for column in group:
                table = tables[column] / rows
                if self.join.gappy[column]:
                    table = np.column_stack([table, 1.0 - table.sum(axis=1)])
                share = (share[:, :, None] * table[:, None]).reshape(len(rows), -1)
            frequencies.append(share)
        return frequencies

    def expected(self, frequencies: list[np.ndarray], counts: np.ndarray, cells: np.ndarray) -> np.ndarray:
        """Rows with some of the combinations, in increasing order, that components expect."""
        of_sets = []
        for k, part in enumerate(np.split(cells, np.searchsorted(cells, self._ends[:-1]))):
            rows = np.repeat(counts[:, None], len(part), axis=1)
            places = np.unravel_index(part - (self._ends[k] - prod(self._shapes[k])), self._shapes[k])
            for group, place in zip(self.groups[k], places):
                rows *= frequencies[group][:, place]
            of_sets.append(rows.sum(axis=0))
        return np.concatenate(of_sets)

    def highest(self, observed: np.ndarray, expected: np.ndarray) -> float:
        """The highest O ln(O/E) - (O - E) of combinations with O > E, less the logarithm of the number of all."""
        more = observed > expected
        o, e = observed[more], np.maximum(expected[more], np.finfo(float).tiny)
        return float((o * np.log(o / e) - (o - e)).max(initial=0.0) - np.log(self.size))

    def of_categories(self, numbers: np.ndarray) -> np.ndarray:
        """Sums of numbers (size,) of pairs of groups over codes with both of two categories, (n_cells, n_cells)."""
        first, (n_codes, _) = self.join.first_code, self.join.members.shape
        by_code = np.zeros((n_codes, n_codes))
        for (a, b), shape, flat in zip(self.groups, self._shapes, np.split(numbers, self._ends[:-1])):
            rows, columns, table = slice(*first[a : a + 2]), slice(*first[b : b + 2]), flat.reshape(shape)
            by_code[rows, columns], by_code[columns, rows] = table, table.T
            by_code[rows, rows], by_code[columns, columns] = np.diag(table.sum(axis=1)), np.diag(table.sum(axis=0))
        has = np.zeros((n_codes, sum(self.join.n_categories) + 1))
        has[np.arange(n_codes)[:, None], self.join.members] = 1.0
        has = has[:, :-1]  # the last is for what is missing
        return has.T @ by_code @ has


@dataclass(frozen=True, eq=False)
class Joint:
    """Columns joined in groups, of at most so many codes if there is more than one.

    Parameters
    ----------
    n_categories : tuple of int
    gappy : tuple of bool
        Whether a column has missing cells.
    most_codes : int
    """

    n_categories: tuple[int, ...]
    gappy: tuple[bool, ...]
    most_codes: int

    @cached_property
    def sizes(self) -> np.ndarray:
        """Categories of each column, and one if cells are missing."""
        return np.array(self.n_categories, dtype=np.int64) + np.array(self.gappy, dtype=np.int64)

    @cached_property
    def groups(self) -> list[range]:
        """Neighboring columns that share a code."""
        groups, first, codes = [], 0, 1
        for column, size in enumerate(self.sizes.tolist()):
            if column > first and codes * size > self.most_codes:
                groups.append(range(first, column))
                first, codes = column, 1
            codes *= size
        return [*groups, range(first, len(self.sizes))] if len(self.sizes) else []

    @cached_property
    def first_code(self) -> np.ndarray:
        """The first code of each group, and the end."""
        return np.cumsum([0, *(int(np.prod(self.sizes[group])) for group in self.groups)])

    @cached_property
    def members(self) -> np.ndarray:
        """The cells of a component that each code stands for, (n_codes, most columns of a group).

        The cell after the last is for nothing: missing cells, and columns that a group has not.
        """
        first_cell = np.concatenate([[0], np.cumsum(self.n_categories)])
        nothing = first_cell[-1]
        members = np.full((self.first_code[-1], max(map(len, self.groups), default=0)), nothing, dtype=np.int32)
        for group, first in zip(self.groups, self.first_code):
            sizes = self.sizes[group]
            rest = np.arange(np.prod(sizes))
            for k in reversed(range(len(group))):
                rest, category = np.divmod(rest, sizes[k])
                cell = np.where(category < self.n_categories[group[k]], first_cell[group[k]] + category, nothing)
                members[first : first + len(cell), k] = cell
        return members

    def encode(self, codes: np.ndarray) -> np.ndarray:
        """Codes of the groups, (n_rows, n_groups)."""
        joined = np.empty((len(codes), len(self.groups)), dtype=np.int32)
        for at in range(0, len(codes), ROWS_AT_ONCE):
            block = codes[at : at + ROWS_AT_ONCE].astype(np.int64)
            block = np.where(block < 0, np.array(self.n_categories), block)
            for k, group in enumerate(self.groups):
                code = np.zeros(len(block), dtype=np.int64)
                for column in group:
                    code = code * self.sizes[column] + block[:, column]
                joined[at : at + ROWS_AT_ONCE, k] = code + self.first_code[k]
        return joined


@dataclass(frozen=True, eq=False)
class CategoricalTable:
    """Rows of codes.

    Parameters
    ----------
    codes : ndarray of int, shape (n_rows, n_columns)
    join : Joint
    joined : ndarray of int32, shape (n_rows, n_groups)
    n_rows : int
        Of the whole table, of which this one may be a block.
    """

    codes: np.ndarray
    join: Joint
    joined: np.ndarray
    n_rows: int

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: slice) -> Self:
        return type(self)(self.codes[rows], self.join, self.joined[rows], self.n_rows)

    @classmethod
    def without_rows(cls, codes: np.ndarray, n_categories: tuple[int, ...], gappy: np.ndarray, n_rows: int) -> Self:
        """A survey: the code (0, n_columns) of columns that have gaps or not, of so many rows."""
        join = Joint(n_categories, tuple(gappy), max(min(_MAX_CODES_PER_GROUP, n_rows // _ROWS_PER_CODE), 2))
        return cls(codes, join, join.encode(codes), n_rows)

    def __add__(self, other: CategoricalTable) -> Self:
        """What must be known of the rows of both, of tables without rows."""
        gappy = np.array(self.join.gappy) | np.array(other.join.gappy)
        return self.without_rows(self.codes, self.join.n_categories, gappy, self.n_rows + other.n_rows)


class CategoricalStep(Step):
    """A categorical emission at natural parameters."""

    def __init__(self, emission: CategoricalEmission, natural: np.ndarray, join: Joint):
        self.single, self.join = natural.ndim == 1, join
        cells = by_lane(natural, emission.cells_per_component)
        self.shape, self.n_components = cells.shape, cells.shape[1]
        self.n_out = cells.shape[0] * cells.shape[1]
        self.width = -(-self.n_out // 4) * 4
        flat = np.zeros((cells.shape[2] + 1, self.width))
        flat[:-1, : self.n_out] = cells.reshape(self.n_out, -1).T
        self.joint = np.empty((len(join.members), self.width))
        _categorical.join(join.members, flat, self.joint)

    def log_likelihood(self, block: CategoricalTable) -> np.ndarray:
        """Expected log likelihoods of rows, nats."""
        log_likelihood = np.empty((self.n_out, len(block)))
        _categorical.gather(np.ascontiguousarray(block.joined), self.joint, log_likelihood)
        return by_row(log_likelihood, self.n_components, self.single)

    def zeros(self) -> np.ndarray:
        """An empty sum: of codes, (n_codes, width)."""
        return np.zeros(self.joint.shape)

    def add(self, block: CategoricalTable, responsibilities: np.ndarray, total: np.ndarray) -> None:
        """Add the statistics of a block to a sum."""
        _categorical.spread(np.ascontiguousarray(block.joined), as_matrix(responsibilities), total)

    def of_rows(self, block: CategoricalTable) -> np.ndarray:
        """1 in the cell of each observed category, the same for all components."""
        n_cells, cells = self.shape[2], self.join.members[block.joined]
        statistics = np.zeros((len(block), n_cells + 1))
        statistics[np.arange(len(block))[:, None], cells.reshape(len(block), np.prod(cells.shape[1:]))] = 1.0
        return np.broadcast_to(statistics[:, None, :n_cells], (len(block), self.n_components, n_cells))

    def statistics(self, total: np.ndarray) -> np.ndarray:
        """Statistics of a sum."""
        cells = np.zeros((self.shape[2] + 1, self.width))
        _categorical.split(self.join.members, total, cells)
        return by_cell(cells[:-1, : self.n_out].T.reshape(self.shape), self.single)
