r"""The page of an emission: p(y | component, theta) of one family, for whatever model has components.

With u(y) the sufficient statistics of a row,
:math:`\ln p(y \mid k, \theta) = \ln f(y) + \phi_k(\theta)^\top u(y)`, so all that inference needs is

- `expected_log_likelihood`: :math:`\ln f(y) + \bar\phi_k^\top u(y)` for every row and component, and
- `statistics`: :math:`\sum_i r_{ik}\, u(y_i)`, additive over blocks of rows,

both exact where cells are missing: what is not observed is summed out, and where its moments are needed they are
those under the natural parameters given. A row without any observed cell contributes factor 1 and no statistics.

An emission is a value that holds units of measure (an origin, scales, numbers of categories) and never parameters.
`prepare` takes a table once, a slice of a prepared table is a *block*, and `step` does once what all blocks of an E
step share. (Of rows that are not in memory as a whole, `survey` learns what all of them must know.)

>>> import numpy as np
>>> from skvbem.emissions import Poisson
>>> counts = np.array([[0.0], [3.0], [1.0], [np.nan]])
>>> emission = Poisson().for_data(counts)
>>> prior = emission.default_prior(n_components=2)
>>> table, responsibilities = emission.prepare(counts), np.full((4, 2), 0.5)
>>> step = emission.step(prior.expected_natural(), table)
>>> total = step.zeros()
>>> for rows in (slice(0, 3), slice(3, 4)):
...     block = table[rows]
...     log_likelihood = step.log_likelihood(block)  # (n_rows, n_components), for the model to make use of
...     step.add(block, responsibilities[rows], total)
>>> posterior = prior + step.statistics(total)
>>> emission.parameters(posterior.mode())["rates"].round(3).tolist()
[[1.333], [1.333]]

Natural parameters (n_cells,) give arrays (n_rows, n_components). With restarts, (n_cells, n_lanes), they come first:
(n_lanes, n_rows, n_components). Such arrays are stored component by component, rows innermost, as matrix products and
sums over components want it.

Two kinds of emissions share their default priors: measurements with a mean and a precision, and columns of rates.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from types import MappingProxyType
from typing import Any, Protocol, Self

import numpy as np
from scipy.linalg import block_diag

from skvbem._numerics import first_axes_last
from skvbem.emissions.symmetries import SignedPermutations, combined, nothing_changed
from skvbem.families import Dirichlet
from skvbem.families.base import ConjugateFamily
from skvbem.families.parallel_generator import ParallelGenerator

# Doubles of a block, 1.5 MB: so many that they stay in cache, and that threads seldom wait for the interpreter.
_BLOCK_DOUBLES = 3 * 2**16


class Table(Protocol):
    """Rows as an emission takes them. A slice of rows is a table, too: a block."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: slice) -> Self: ...


class Step(ABC):
    """An emission at natural parameters: all that the blocks of one E step share."""

    n_components: int

    @abstractmethod
    def log_likelihood(self, block: Any) -> np.ndarray:
        """Expected log likelihoods of rows, nats, (n_rows, n_components) or (n_lanes, n_rows, n_components)."""

    @abstractmethod
    def zeros(self) -> np.ndarray:
        """An empty sum for `add`. Sums of separate threads may be added to each other."""

    @abstractmethod
    def add(self, block: Any, responsibilities: np.ndarray, total: np.ndarray) -> None:
        """Add the statistics of a block, of responsibilities shaped as the log likelihoods, to a sum."""

    @abstractmethod
    def statistics(self, total: np.ndarray) -> np.ndarray:
        """Expected statistics of a sum, (n_cells,) or (n_cells, n_lanes)."""

    def expansion(self, total: np.ndarray) -> Any:
        """Other coordinates of what is hidden in the rows of a sum, a `skvbem.models.base.Expansion`; None if none."""
        return None

    @abstractmethod
    def of_rows(self, block: Any) -> np.ndarray:
        """Expected statistics of each row, were it of a component, of a step without restarts.

        Returns
        -------
        ndarray of shape (n_rows, n_components, n_own)
            The cells of the component and of all components, in order; a read-only view, perhaps.
        """

    def hidden_covariance(self, block: Any, responsibilities: np.ndarray) -> np.ndarray | None:
        """Covariance of a component's statistics given what is observed, summed over rows with weights.

        Parameters
        ----------
        block : Table
        responsibilities : ndarray of shape (n_rows, n_components)

        Returns
        -------
        ndarray of shape (n_components, n_own, n_own), or None
            None where nothing but the component is hidden.
        """
        return None

    def add_drawn(self, block: Any, components: np.ndarray, rng: ParallelGenerator, total: np.ndarray) -> None:
        """Add statistics of rows whose components are known; what is missing and has statistics is drawn.

        Parameters
        ----------
        components : ndarray of int, shape (n_rows,) or (n_lanes, n_rows)
        rng : ParallelGenerator
            Random numbers, of as many lanes.
        """
        chosen = components[..., None] == np.arange(self.n_components)
        self.add(block, chosen.astype(float), total)

    def group_move(self, total: Any, prior: np.ndarray, rng: ParallelGenerator) -> Any:
        """A sum after a draw of the maps of hidden variables and parameters that change no row's density.

        Parameters
        ----------
        total : object
            The sum over all rows, as `add_drawn` has left it; it may be overwritten.
        prior : ndarray of shape (n_cells, n_lanes)
            Coordinates of the emission's prior given hyperparameters.
        rng : ParallelGenerator
        """
        return total


@dataclass(frozen=True, eq=False)
class Products:
    """Cells of a component whose statistics are sums of products of two of (1, own columns, given columns), in units.

    Parameters
    ----------
    cell, one, other, column : ndarray of int, shape (n_products,)
        A cell of the component, the two numbers, and the own column whose density the product is part of.
    factor : ndarray of shape (n_products,)
        What the product is multiplied by.
    origin, unit : ndarray of shape (n_columns,)
        Of own columns.
    given_origin, given_unit : ndarray of shape (n_given,)
        Of given ones.
    log_volume : float
        Log density in these units, less that of natural parameters, nats.
    are_joint : bool
        Whether own columns are not independent of each other, so that all are hidden or observed where any is.
    """

    cell: np.ndarray
    one: np.ndarray
    other: np.ndarray
    column: np.ndarray
    factor: np.ndarray
    origin: np.ndarray
    unit: np.ndarray
    given_origin: np.ndarray
    given_unit: np.ndarray
    log_volume: float = 0.0
    are_joint: bool = False


class Hidden(ABC):
    """Continuous variables that rows of an emission hide besides their labels, such as the factors of factor analyzers.

    Functions of this module, such as `symmetries`, put together what the groups of columns of an emission hide.
    """

    @property
    def awaits_n_factors(self) -> bool:
        """True if the numbers of these variables are yet to be chosen."""
        return False

    @abstractmethod
    def n_symmetries(self, component: int | None = None) -> int:
        """Number of symmetries of a component's hidden variables; of the component that has most if None."""

    @abstractmethod
    def symmetries(self, component: int) -> SignedPermutations:
        """Symmetries of a component's hidden variables, such as their orders and signs, as changes of its own cells."""

    @abstractmethod
    def classes(self, n_components: int) -> np.ndarray:
        """Class of each component, (n_components,): only components of one class are exchangeable."""

    @abstractmethod
    def rotation_tangents(self, natural: np.ndarray) -> np.ndarray:
        """Tangent directions of rotations of the hidden variables, in natural parameters, (n_cells, n_rotations)."""

    def quotient(self, prior: Any, natural: np.ndarray) -> Any:
        """Coordinates of the emission's parameters up to turns, and the prior there; None if nothing turns.

        As `skvbem.capabilities.QuotientCoordinates`, with `log_density` of the emission's prior, and `log_turns`.

        Parameters
        ----------
        prior : ConjugateFamily
            Of the emission's parameters.
        natural : ndarray of shape (n_cells,)
            Natural parameters of the emission about which coordinates are smooth.
        """
        return None

    @abstractmethod
    def are_unknown(self, natural: np.ndarray) -> np.ndarray:
        """Boolean array (n_components, n_hidden) of what changes no row of its component, as far as is known."""

    @abstractmethod
    def start_natural(self, prior: Any) -> np.ndarray:
        """Natural parameters (n_cells,) under which rows of known components are completed for a start."""

    @abstractmethod
    def n_redundant_parameters(self, components: np.ndarray) -> int:
        """Dimensions of the parameters of some components, (n_components,), without effect on the density of rows."""

    def condensed(self, blocks: Iterable[tuple[Any, np.ndarray]]) -> tuple[Any, np.ndarray] | None:
        """Few rows that have the bound of all where there is one component, and their weights; None if there are none.

        Parameters
        ----------
        blocks : iterable of (table, weights)
            All rows.
        """
        return None


def draws_first(points: Any) -> Any:
    """Arrays of points, and tuples of these, with their last axis, draws, as the first."""
    if not isinstance(points, tuple):
        return np.moveaxis(points, -1, 0)
    parts = [draws_first(each) for each in points]
    return type(points)(*parts) if hasattr(points, "_fields") else tuple(parts)


def parameters_by_draw(emission: Emission, points: np.ndarray) -> dict[str, np.ndarray]:
    """The `parameters` of points with draws along a last axis, each (n_draws, ...): draws stand as components do."""
    named, n_draws = emission.parameters(draws_first(points).ravel()), points.shape[-1]
    return {name: each.reshape(n_draws, -1, *each.shape[1:]) for name, each in named.items()}


def of_draw(points: Any, k: int) -> Any:
    """The point of one draw, of points whose last axis is draws."""
    if not isinstance(points, tuple):
        return points[..., k]
    parts = [of_draw(each, k) for each in points]
    return type(points)(*parts) if hasattr(points, "_fields") else tuple(parts)


class Emission(ABC):
    """An observation model: a value, the same for every component."""

    #: Number of components that known labels may name, the first ones; 0 where no labels are known.
    n_levels: int = 0
    #: Those of them that label a row.
    named: tuple[int, ...] = ()
    #: Periods of `parameters` that go round in a circle, such as directions, by name.
    periods: Mapping[str, float] = MappingProxyType({})
    #: Hidden variables of rows besides labels, if these have symmetries or a start of their own; else None.
    hidden: Hidden | None = None

    @property
    def is_hidden(self) -> bool:
        """True if no row observes the numbers that the emission is of."""
        return False

    @property
    @abstractmethod
    def n_columns(self) -> int:
        """Columns of a row."""

    @property
    @abstractmethod
    def doubles_per_row(self) -> int:
        """Doubles that a block holds for each row."""

    @abstractmethod
    def default_prior(self, n_components: int) -> ConjugateFamily:
        """A prior that is the same for all components, and moves and scales with the data."""

    @property
    @abstractmethod
    def cells_per_component(self) -> int:
        """Cells of natural parameters, and of statistics, that belong to one component alone."""

    @property
    def shared_cells(self) -> int:
        """Cells of natural parameters, and of statistics, that belong to all components."""
        return 0

    def n_components(self, n_cells: int) -> int:
        """Components of statistics of so many cells."""
        return (n_cells - self.shared_cells) // self.cells_per_component

    @abstractmethod
    def survey(self, values: Any) -> Any:
        """A table without rows, which knows what must be known of all of them; those of parts of the rows add up."""

    @abstractmethod
    def prepare(self, values: Any, survey: Any = None) -> Any:
        """A table of rows, (n_rows, n_columns), as this emission takes it.

        If rows come in blocks, each is prepared with the survey of all of them, so that their tables are alike.
        """

    @abstractmethod
    def step(self, natural: np.ndarray, table: Any) -> Step:
        """The emission at natural parameters (n_cells,) or (n_cells, n_lanes), for the blocks of a table."""

    @abstractmethod
    def log_predictive(self, block: Any, posterior: Any) -> np.ndarray:
        """Log densities (or probabilities) of rows, each by itself, after the data of a posterior, nats.

        The parameters are integrated out and missing cells summed out, so over all rows it integrates to one.

        Returns
        -------
        ndarray of shape (n_rows, n_components)
        """

    @abstractmethod
    def sample(self, point: Any, components: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Rows drawn, (n_rows, n_columns), one from each of the components (n_rows,) at a point."""

    def sample_given(
        self, values: Any, lengths: Any, point: Any, components: np.ndarray, rng: np.random.Generator
    ) -> Any:
        """Rows drawn where some of their columns are given, or hang on rows before; most families have no such columns.

        Parameters
        ----------
        values : ndarray of shape (n_rows, n_columns), or None
            Rows whose given columns the new ones have; None if there are none.
        lengths : array_like of int, shape (n_sequences,), or None
            Lengths of the sequences of rows; None if rows do not depend on each other.
        point : object
            As of `sample`.
        components : ndarray of int, shape (n_rows,)
        rng : numpy.random.Generator

        Returns
        -------
        ndarray of shape (n_rows, n_columns)
        """
        return self.sample(point, components, rng)

    @abstractmethod
    def impute(self, block: Any, point: Any, responsibilities: np.ndarray) -> np.ndarray:
        """Rows (n_rows, n_columns) with missing cells filled, at a point.

        Measurements and counts with their means under the responsibilities (n_rows, n_components), which should be
        those of the observed cells; categories with the most probable one.
        """

    def predictive_point(self, posterior: Any) -> Any:
        """The point at which means are the predictive ones under a posterior: its mode in natural coordinates."""
        return posterior.mode()

    @abstractmethod
    def parameters(self, point: Any) -> dict[str, np.ndarray]:
        """A point in the units of the data, by name."""

    def parameters_of_draws(self, points: Any) -> Any:
        """The `parameters` of points with draws along a last axis, each (n_draws, ...); here of one after the other."""
        n_draws = (points[0] if isinstance(points, tuple) else points).shape[-1]
        each = [self.parameters(of_draw(points, k)) for k in range(n_draws)]
        return {name: np.stack([named[name] for named in each]) for name in each[0]}

    def point_of(self, parameters: Any) -> Any:
        """The point whose `parameters` these are, as the specification has checked them."""
        raise TypeError(f"{type(self).__name__} makes no point of parameters that are given.")

    @abstractmethod
    def quantiles(self, posterior: Any, probability: float) -> dict[str, np.ndarray]:
        """Quantiles of a posterior of means, rates or probabilities, each by itself; as `parameters`, by name."""

    @abstractmethod
    def seeding_coordinates(self, block: Any) -> np.ndarray:
        """Rows as points (n_rows, n_axes) of a space in which their distances say how unlike they are: for starts.

        Each column of the data spreads by about 1; what is missing is in the middle.
        """

    @property
    def products(self) -> Products | None:
        """What each cell multiplies, of measurements jointly normal with their regressors; None of all else."""
        return None

    def is_conjugate(self, table: Any) -> bool:
        """True if rows of known components have statistics, so that their evidence has a closed form.

        They have none where measurements are missing on which others depend.
        """
        return True

    def transferred(
        self, blocks: Sequence[Any], weight: np.ndarray, prior: Any, order: np.ndarray, labels: np.ndarray
    ) -> tuple[np.ndarray, float] | None:
        """Labels (n_rows,) after transfers of single rows, if there is a swift way to find them; else None.

        Rows go one by one, sweep after sweep, to where they make rows and labels together most probable, until none
        does. The logarithm of that probability, nats, but for what does not hang on labels, is returned with them.

        Parameters
        ----------
        blocks : sequence of Table
        weight : ndarray of shape (n_rows,)
        prior : ConjugateFamily
            Its hyperparameters known.
        order : ndarray of int
            Rows that may go, in the order in which they are asked.
        labels : ndarray of int, shape (n_rows,)
        """
        return None

    def excess(self, data: Any, counts: np.ndarray, statistics: np.ndarray) -> float | None:
        """Nats by which rows of one kind outnumber those that components expect, beyond chance; None if not known.

        Components explain rows well if it is low: divisions of them promise nothing.

        Parameters
        ----------
        data : LabeledRows
        counts : ndarray of shape (n_components,)
            Expected rows of each component.
        statistics : ndarray of shape (n_cells,)
            Statistics of the rows.
        """
        return None

    def count_blocks(self, prior: Any) -> list[tuple[int, Dirichlet]]:
        """Dirichlet blocks of a prior whose statistics count rows, each with its first cell.

        A row adds 1 to one cell of each distribution, at most.
        """
        return []

    @property
    def identifies_components(self) -> bool:
        """True if mixtures are identifiable, but for the names of their components, at almost all parameters.

        So it is for Gaussian, Poisson and exponential columns [Teicher 1963; Yakowitz and Spragins 1968].
        """
        return True

    @property
    def n_outcomes(self) -> tuple[int, ...] | None:
        """Values of each column, if columns are independent given the component and have finitely many."""
        return None

    def n_redundant_parameters(self, components: np.ndarray) -> int:
        """Dimensions of the parameters of some components, (n_components,), without effect on the density of rows."""
        return 0 if self.hidden is None else self.hidden.n_redundant_parameters(components)

    def priced(self, of_fit: bool) -> Emission:
        """The emission with the price of what the rows of its fit have chosen, or without it, for other rows."""
        return self

    def paid(self, values: Any, weight: np.ndarray | None) -> float:
        """The price of what rows (n_rows, n_columns), with weights (n_rows,), have chosen, nats: 0 if nothing."""
        return 0.0

    def with_room_for(self, table: Any, prior: Any, statistics: np.ndarray) -> tuple[Emission, Any, np.ndarray]:
        """The emission, its prior and statistics (n_cells,) of earlier rows, with cells for a table of more rows.

        These are the same unless cells depend on which values there are.
        """
        return self, prior, statistics

    def row_order(self, table: Any) -> np.ndarray | None:
        """An order of rows in which blocks cost least, such as by what is missing; None if it does not matter."""
        return None

    def size_of_terms(self, table: Any, weight: np.ndarray) -> float:
        """Sum over rows of the terms of the log likelihood that cancel each other, without their signs, nats.

        About one for each cell, but more where counts are large: rounding errors are measured against it.
        """
        return float(weight.sum()) * self.n_columns

    def collinear(self, total_weight: float) -> list[int]:
        """Columns that are linear functions of each other in the rows, of a total weight, that the units are of."""
        return []

    def work_without_rows(self, n_components: int) -> float:
        """Multiplications that each step takes whatever the number of rows is, such as those that invert matrices."""
        return 0.0

    def with_parts(self, parts: tuple[Emission, ...]) -> Emission:
        """The emission whose groups of columns have other emissions, in the order of `parts_of`; here it has one."""
        return parts[0]

    def component_of_cell(self, n_components: int) -> np.ndarray:
        """The component that each cell of statistics belongs to, (n_cells,); -1 where it belongs to all."""
        owners = np.append(np.arange(n_components), -1)
        return np.repeat(owners, [*[self.cells_per_component] * n_components, self.shared_cells])

    def block_rows(self, n_components: int, n_lanes: int = 1) -> int:
        """Rows of a block that stays in cache."""
        return max(_BLOCK_DOUBLES // (self.doubles_per_row + n_components * n_lanes), 16)

    def expected_log_likelihood(self, block: Any, natural: np.ndarray) -> np.ndarray:
        """Expected log likelihoods of a block's rows under each component, nats; see `Step.log_likelihood`."""
        return self.step(natural, block).log_likelihood(block)

    def statistics(self, block: Any, responsibilities: np.ndarray, natural: np.ndarray) -> np.ndarray:
        """Expected statistics of a block, (n_cells,) or (n_cells, n_lanes); additive over blocks."""
        step = self.step(natural, block)
        total = step.zeros()
        step.add(block, responsibilities, total)
        return step.statistics(total)


def parts_of(emission: Any) -> Sequence[Emission]:
    """The emissions of groups of columns: several of `Independent`, else the one."""
    return getattr(emission, "parts", (emission,))


def blocks_of(emission: Any, family: Any) -> Sequence[Any]:
    """The priors, or posteriors, of the groups of columns of an emission, from that of all."""
    return family.blocks if len(parts_of(emission)) > 1 else (family,)


def from_outside(emission: Emission) -> list[tuple[int, Emission]]:
    """The emissions of groups of columns whose classes are not the library's own, and the numbers of the groups."""
    parts = enumerate(parts_of(emission))
    return [(k, part) for k, part in parts if type(part).__module__.partition(".")[0] != "skvbem"]


# What rows hide besides their labels, of the whole of an emission -----------------------------------------------------


def counts_factors(emission: Emission) -> bool:
    """True if the numbers of factors of some group are yet to be chosen."""
    return any(part.hidden is not None and part.hidden.awaits_n_factors for part in parts_of(emission))


def n_symmetries(emission: Emission, component: int | None = None) -> int:
    """Number of symmetries of a component's hidden variables; of the component that has most if None."""
    return prod(part.hidden.n_symmetries(component) for part in parts_of(emission) if part.hidden is not None)


def symmetries(emission: Emission, component: int) -> SignedPermutations:
    """Symmetries of a component's hidden variables, as changes of the cells that are its own."""
    parts = [
        nothing_changed(part.cells_per_component) if part.hidden is None else part.hidden.symmetries(component)
        for part in parts_of(emission)
    ]
    return parts[0] if len(parts) == 1 else combined(parts)


def exchangeability_classes(emission: Emission, n_components: int) -> np.ndarray:
    """Class of each component, (n_components,): only components of one class are exchangeable.

    A component that labels a row is in a class of its own.
    """
    named = np.zeros(n_components, dtype=int)
    named[list(emission.named)] = 1 + np.arange(len(emission.named))
    hidden = [part.hidden for part in parts_of(emission)]
    classes = [*(each.classes(n_components) for each in hidden if each is not None), named]
    return np.unique(np.stack(classes), axis=1, return_inverse=True)[1].reshape(-1)


def rotation_tangents(emission: Emission, natural: np.ndarray) -> np.ndarray:
    """Tangent directions of rotations of hidden variables, in natural parameters, (n_cells, n_rotations)."""
    parts, n_components = parts_of(emission), emission.n_components(len(natural))
    ends = np.cumsum([len(part.component_of_cell(n_components)) for part in parts])
    return block_diag(
        *(
            np.zeros((len(cells), 0)) if part.hidden is None else part.hidden.rotation_tangents(cells)
            for part, cells in zip(parts, np.split(natural, ends[:-1]))
        )
    )


def start_natural(emission: Emission, prior: Any) -> np.ndarray:
    """Natural parameters (n_cells,) under which rows of known components are completed for a start."""
    return np.concatenate(
        [
            block.expected_natural() if part.hidden is None else part.hidden.start_natural(block)
            for part, block in zip(parts_of(emission), blocks_of(emission, prior))
        ]
    )


def n_redundant_parameters(emission: Emission, components: np.ndarray) -> int:
    """Dimensions of the parameters of some components, (n_components,), without effect on the density of rows."""
    return sum(part.n_redundant_parameters(components) for part in parts_of(emission))


def condensed(emission: Emission, blocks: Iterable[tuple[Any, np.ndarray]]) -> tuple[Any, np.ndarray] | None:
    """Few rows that have the bound of all where there is one component, and their weights; None if there are none.

    Parameters
    ----------
    emission : Emission
    blocks : iterable of (table, weights)
        All rows.
    """
    (first, *others) = parts_of(emission)
    return None if others or emission.n_levels or first.hidden is None else first.hidden.condensed(blocks)


# Arrays of statistics and of rows -------------------------------------------------------------------------------------


def relabeled(cells: np.ndarray, component_of_cell: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Statistics (n_cells, ...) with the components in another order."""
    cells_of = [np.flatnonzero(component_of_cell == k) for k in range(len(order))]
    result = cells.copy()
    for to, of in zip(cells_of, (cells_of[k] for k in order)):
        result[to] = cells[of]
    return result


def by_lane(natural: np.ndarray, n_cells: int) -> np.ndarray:
    """Natural parameters of the components of every lane, (n_lanes, n_components, n_cells)."""
    lanes = first_axes_last(natural.reshape(len(natural), -1))
    return np.ascontiguousarray(lanes).reshape(len(lanes), -1, n_cells)


def by_cell(by_lane: np.ndarray, single: bool) -> np.ndarray:
    """Statistics (n_cells, n_lanes) of arrays with the lanes first; (n_cells,) if there is a `single` one."""
    cells = by_lane.reshape(len(by_lane), -1)
    return cells[0] if single else cells.T


def by_row(matrix: np.ndarray, n_components: int, single: bool) -> np.ndarray:
    """A matrix (n_lanes x n_components, n_rows) with components last, lanes first if there is not a `single` one."""
    rows = matrix.reshape(len(matrix) // n_components, n_components, matrix.shape[-1]).swapaxes(-1, -2)
    return rows[0] if single else rows


def as_matrix(rows: np.ndarray) -> np.ndarray:
    """Responsibilities as a matrix (n_lanes x n_components, n_rows)."""
    *lanes, n_rows, n_components = rows.shape
    return rows.swapaxes(-1, -2).reshape(prod(lanes) * n_components, n_rows)
