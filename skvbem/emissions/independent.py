"""Groups of columns, each with its own emission, independent given the component: tables of mixed types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from skvbem.blocks import added
from skvbem.emissions.base import Emission, Step
from skvbem.families import Dirichlet, Product
from skvbem.families.parallel_generator import ParallelGenerator


@dataclass(frozen=True, eq=False)
class Independent(Emission):
    """A product over groups of columns. Tables, rows and points are tuples, one item for each group.

    Parameters
    ----------
    parts : tuple of Emission
    """

    parts: tuple[Emission, ...]

    @property
    def n_columns(self) -> int:
        """Columns of all groups."""
        return sum(part.n_columns for part in self.parts)

    @property
    def doubles_per_row(self) -> int:
        """Doubles that a block holds for each row."""
        return sum(part.doubles_per_row for part in self.parts)

    def with_parts(self, parts: tuple[Emission, ...]) -> Self:
        """The emission whose groups of columns have other emissions."""
        return replace(self, parts=parts)

    def default_prior(self, n_components: int, *, options: Sequence[Mapping[str, Any]] | None = None) -> Product:
        """The groups' priors.

        Parameters
        ----------
        n_components : int
        options : sequence of mapping, optional
            Keyword arguments of each group's own `default_prior`.
        """
        options = options or [{}] * len(self.parts)
        blocks = tuple(part.default_prior(n_components, **keywords) for part, keywords in zip(self.parts, options))
        n_cells = tuple(len(part.component_of_cell(n_components)) for part in self.parts)
        return Product(blocks, n_cells)

    def priced(self, of_fit: bool) -> Emission:
        """With the prices of the groups, or without them."""
        parts = tuple(part.priced(of_fit) for part in self.parts)
        return self if parts == self.parts else self.with_parts(parts)

    def paid(self, values: Sequence[np.ndarray], weight: np.ndarray | None) -> float:
        """The prices of all groups."""
        return sum(part.paid(of_part, weight) for part, of_part in zip(self.parts, values))

    def with_room_for(
        self, table: IndependentTable, prior: Product, statistics: np.ndarray
    ) -> tuple[Emission, Product, np.ndarray]:
        """With cells of each group for more rows."""
        parts = zip(self.parts, table.parts, prior.blocks, prior.split(statistics))
        emissions, blocks, added = zip(*(part.with_room_for(*of_part) for part, *of_part in parts))
        if emissions == self.parts:
            return self, prior, statistics
        return self.with_parts(emissions), Product(blocks, tuple(map(len, added))), np.concatenate(added)

    def survey(self, values: Sequence[np.ndarray]) -> IndependentTable:
        """The surveys of the groups."""
        return IndependentTable(tuple(part.survey(of_part) for part, of_part in zip(self.parts, values)))

    def prepare(self, values: Sequence[np.ndarray], survey: IndependentTable | None = None) -> IndependentTable:
        """A table of rows from one array for each group."""
        surveys = (None,) * len(self.parts) if survey is None else survey.parts
        tables = (part.prepare(*arguments) for part, *arguments in zip(self.parts, values, surveys))
        return IndependentTable(tuple(tables))

    def step(self, natural: np.ndarray, table: IndependentTable) -> Step:
        """The groups at natural parameters (n_cells,) or (n_cells, n_lanes)."""
        return IndependentStep(self, natural, table)

    def log_predictive(self, block: IndependentTable, posterior: Product) -> np.ndarray:
        """Log densities of rows, nats, (n_rows, n_components)."""
        parts = zip(self.parts, block.parts, posterior.blocks)
        return np.sum([part.log_predictive(table, q) for part, table, q in parts], axis=0)

    def sample(self, point: tuple, components: np.ndarray, rng: np.random.Generator) -> tuple:  # type: ignore[override]
        """Rows drawn, one array for each group."""
        return tuple(part.sample(at, components, rng) for part, at in zip(self.parts, point))

    def sample_given(
        self, values: Any, lengths: Any, point: tuple, components: np.ndarray, rng: np.random.Generator
    ) -> tuple:
        """Rows drawn where some of their columns are given, one array for each group."""
        by_part = (None,) * len(self.parts) if values is None else values
        parts = zip(self.parts, by_part, point)
        return tuple(part.sample_given(rows, lengths, at, components, rng) for part, rows, at in parts)

    def impute(self, block: IndependentTable, point: tuple, responsibilities: np.ndarray) -> tuple:  # type: ignore[override]
        """Rows with missing cells filled, one array for each group."""
        parts = zip(self.parts, block.parts, point)
        return tuple(part.impute(table, at, responsibilities) for part, table, at in parts)

    def predictive_point(self, posterior: Product) -> tuple:
        """The predictive points of the groups."""
        return tuple(part.predictive_point(q) for part, q in zip(self.parts, posterior.blocks))

    def seeding_coordinates(self, block: IndependentTable) -> np.ndarray:
        """The seeding coordinates of the groups, side by side."""
        parts = zip(self.parts, block.parts)
        return np.concatenate([part.seeding_coordinates(table) for part, table in parts], axis=1)

    def parameters(self, point: tuple) -> tuple:  # type: ignore[override]
        """The parameters of each group, by name."""
        return tuple(part.parameters(at) for part, at in zip(self.parts, point))

    def parameters_of_draws(self, points: tuple) -> tuple:
        """The parameters of draws in each group, by name."""
        return tuple(part.parameters_of_draws(at) for part, at in zip(self.parts, points))

    def point_of(self, parameters: Sequence[Mapping[str, np.ndarray]]) -> tuple:
        """The points of the parts."""
        return tuple(part.point_of(named) for part, named in zip(self.parts, parameters))

    def is_conjugate(self, table: IndependentTable) -> bool:
        """True if rows of known components have statistics in every group."""
        return all(part.is_conjugate(part_table) for part, part_table in zip(self.parts, table.parts))

    def count_blocks(self, prior: Product) -> list[tuple[int, Dirichlet]]:
        """Dirichlet blocks of all groups that count rows."""
        firsts = np.cumsum([0, *prior.n_cells])[:-1].tolist()
        parts = zip(self.parts, prior.blocks, firsts)
        return [(first + at, of) for part, block, first in parts for at, of in part.count_blocks(block)]

    @property
    def identifies_components(self) -> bool:
        """True if one group identifies them: then it does so for the others."""
        return any(part.identifies_components for part in self.parts)

    @property
    def n_outcomes(self) -> tuple[int, ...] | None:
        """Values of the columns of all groups, if all have finitely many."""
        outcomes: list[int] = []
        for part in self.parts:
            if part.n_outcomes is None:
                return None
            outcomes += part.n_outcomes
        return tuple(outcomes)

    def quantiles(self, posterior: Product, probability: float) -> tuple:  # type: ignore[override]
        """The quantiles of each group, by name."""
        return tuple(part.quantiles(q, probability) for part, q in zip(self.parts, posterior.blocks))

    def row_order(self, table: IndependentTable) -> np.ndarray | None:
        """The order of the first group to which it matters."""
        orders = (part.row_order(part_table) for part, part_table in zip(self.parts, table.parts))
        return next((order for order in orders if order is not None), None)

    def size_of_terms(self, table: IndependentTable, weight: np.ndarray) -> float:
        """The sum of the groups."""
        return sum(part.size_of_terms(part_table, weight) for part, part_table in zip(self.parts, table.parts))

    def component_of_cell(self, n_components: int) -> np.ndarray:
        """The component that each cell belongs to; -1 where it belongs to all."""
        return np.concatenate([part.component_of_cell(n_components) for part in self.parts])

    @property
    def cells_per_component(self) -> int:
        """Cells of natural parameters, and of statistics, that belong to one component alone."""
        return sum(part.cells_per_component for part in self.parts)

    @property
    def shared_cells(self) -> int:
        """Cells that belong to all components, of all groups."""
        return sum(part.shared_cells for part in self.parts)


@dataclass(frozen=True, eq=False)
class IndependentTable:
    """The tables of the groups, of the same rows.

    Parameters
    ----------
    parts : tuple of Table
    """

    parts: tuple

    def __len__(self) -> int:
        return len(self.parts[0])

    def __getitem__(self, rows: slice) -> Self:
        return type(self)(tuple(part[rows] for part in self.parts))

    def __add__(self, other: IndependentTable) -> Self:
        """What must be known of the rows of both, of tables without rows."""
        return type(self)(added(self.parts, other.parts))


class IndependentStep(Step):
    """The groups at natural parameters. A sum is a list of the groups' sums."""

    def __init__(self, emission: Independent, natural: np.ndarray, table: IndependentTable):
        n_components = emission.n_components(len(natural))
        ends = np.cumsum([len(part.component_of_cell(n_components)) for part in emission.parts])
        naturals = np.split(natural, ends[:-1])
        self.steps = [part.step(cells, rows) for part, cells, rows in zip(emission.parts, naturals, table.parts)]
        self.n_components, self.ends = n_components, ends

    def log_likelihood(self, block: IndependentTable) -> np.ndarray:
        """Expected log likelihoods of rows, nats."""
        first, *others = zip(self.steps, block.parts)
        log_likelihood = first[0].log_likelihood(first[1])
        for step, rows in others:
            log_likelihood += step.log_likelihood(rows)
        return log_likelihood

    def zeros(self) -> Any:
        """An empty sum of each group."""
        return [step.zeros() for step in self.steps]

    def add(self, block: IndependentTable, responsibilities: np.ndarray, total: Any) -> None:
        """Add the statistics of a block to a sum."""
        for step, rows, part_total in zip(self.steps, block.parts, total):
            step.add(rows, responsibilities, part_total)

    def statistics(self, total: Any) -> np.ndarray:
        """Statistics of a sum."""
        return np.concatenate([step.statistics(part_total) for step, part_total in zip(self.steps, total)])

    def expansion(self, total: Any) -> IndependentExpansion | None:
        """The expansions of the groups that have one, together."""
        expansions = [step.expansion(part_total) for step, part_total in zip(self.steps, total)]
        return IndependentExpansion(expansions, self.ends) if any(expansions) else None

    def of_rows(self, block: IndependentTable) -> np.ndarray:
        """Statistics of each row, group after group."""
        parts = zip(self.steps, block.parts)
        return np.concatenate([step.of_rows(rows) for step, rows in parts], axis=2)

    def hidden_covariance(self, block: IndependentTable, responsibilities: np.ndarray) -> np.ndarray | None:
        """Covariance of statistics given what is observed: that of each group, which are independent of each other."""
        covariances = [step.hidden_covariance(rows, responsibilities) for step, rows in zip(self.steps, block.parts)]
        if all(covariance is None for covariance in covariances):
            return None
        sizes = [step.of_rows(rows[:0]).shape[2] for step, rows in zip(self.steps, block.parts)]
        ends = np.cumsum(sizes)
        whole = np.zeros((self.n_components, ends[-1], ends[-1]))
        for covariance, size, end in zip(covariances, sizes, ends):
            if covariance is not None:
                whole[:, end - size : end, end - size : end] = covariance
        return whole

    def add_drawn(self, block: IndependentTable, components: np.ndarray, rng: ParallelGenerator, total: Any) -> None:
        """Add statistics of rows whose components are known."""
        for step, rows, part_total in zip(self.steps, block.parts, total):
            step.add_drawn(rows, components, rng, part_total)

    def group_move(self, total: Any, prior: np.ndarray, rng: ParallelGenerator) -> Any:
        """The sums of groups after a draw of maps that change no row's density."""
        parts = zip(self.steps, total, np.split(prior, self.ends[:-1]))
        return [step.group_move(part_total, cells, rng) for step, part_total, cells in parts]


class IndependentExpansion:
    """Other coordinates of what is hidden in rows, of each group its own."""

    def __init__(self, parts: Sequence[Any], ends: np.ndarray):
        self.parts, self.ends = parts, ends
        self.gain = np.sum([part.gain for part in parts if part is not None], axis=0)

    def statistics(self, cells: np.ndarray) -> np.ndarray:
        """Statistics (n_cells, n_lanes) after the map."""
        parts = zip(self.parts, np.split(cells, self.ends[:-1]))
        return np.concatenate([x if part is None else part.statistics(x) for part, x in parts])

    def natural(self, cells: np.ndarray) -> np.ndarray:
        """Natural parameters (n_cells, n_lanes) after the map."""
        parts = zip(self.parts, np.split(cells, self.ends[:-1]))
        return np.concatenate([x if part is None else part.natural(x) for part, x in parts])

    def further(self, given: np.ndarray, statistics: np.ndarray, natural: np.ndarray) -> IndependentExpansion:
        """The maps and what follows each of them."""
        cells = zip(*(np.split(each, self.ends[:-1]) for each in (given, statistics, natural)))
        return IndependentExpansion(
            [None if part is None else part.further(*x) for part, x in zip(self.parts, cells)],
            self.ends,
        )
