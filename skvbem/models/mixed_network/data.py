"""Rows of mixed columns compiled for a network: contexts of what is discrete, and tables of emissions beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from skvbem.emissions import Step
from skvbem.models.mixed_network.hidden_numbers import HiddenNumbers
from skvbem.models.mixed_network.number_factors import NumberFactor
from skvbem.models.network.layout import Layout
from skvbem.models.network.program import Program, RowFactor


def joint_codes(digits: Sequence[np.ndarray], sizes: Sequence[int], n_rows: int | tuple[int, ...]) -> np.ndarray:
    """The joint state of some nodes in each row, the last node running fastest; 0 where there are none."""
    return np.ravel_multi_index(tuple(digits), tuple(sizes)) if len(sizes) else np.zeros(n_rows, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class MixedRows:
    """Rows as a mixed network is given them.

    Parameters
    ----------
    names : tuple
        Names of the columns of categories.
    codes : ndarray of int, shape (n_rows, n_columns)
        Category of each cell, negative where it is missing; as `skvbem.data.Rows` has it where a cell was set.
    tables : tuple of Table
        Of each node with an emission, as that prepared it.
    observed : tuple of ndarray of bool, shape (n_rows,)
        Of each node with an emission, whether a row has any observed cell.
    weight : ndarray of shape (n_rows,)
        How often each row counts.
    row_hashes : callable or None
        Numbers of a slice of rows, equal for equal rows alone, (n_rows,) of uint64.
    values_set : mapping of int to ndarray of shape (n_rows, n_columns)
        Of emissions whose cells an experimenter set in some rows, what they were set to, NaN elsewhere. Their own
        tables lack these cells; those of their children have them.
    """

    names: tuple
    codes: np.ndarray
    tables: tuple[Any, ...]
    observed: tuple[np.ndarray, ...]
    weight: np.ndarray
    row_hashes: Callable[[slice], np.ndarray] | None = None
    values_set: Mapping[int, np.ndarray] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.codes)

    def taken(self, rows: np.ndarray, weight: np.ndarray) -> MixedRows:
        """Some rows, with other weights."""
        hashes = None if self.row_hashes is None else self.row_hashes(slice(None))[rows]
        return MixedRows(
            self.names,
            self.codes[rows],
            tuple(table[rows] for table in self.tables),
            tuple(seen[rows] for seen in self.observed),
            weight,
            None if hashes is None else hashes.__getitem__,
            {k: of[rows] for k, of in self.values_set.items()},
        )

    def column(self, name) -> np.ndarray:
        """The codes of one column."""
        return self.codes[:, self.names.index(name)]

    def each_once(self) -> MixedRows:
        """The rows without their weights."""
        return replace(self, weight=np.ones(len(self)))

    def without_cells(self) -> MixedRows:
        """As many rows of which no cell is observed."""
        unseen = tuple(np.zeros_like(seen) for seen in self.observed)
        return replace(self, codes=np.full_like(self.codes, -1), observed=unseen, values_set={})

    def counting(self) -> MixedRows:
        """The rows of weight > 0."""
        if (self.weight > 0).all():
            return self
        kept = np.flatnonzero(self.weight > 0)
        return self.taken(kept, self.weight[kept])

    def distinct(self) -> MixedRows:
        """Distinct rows in an order that their values decide, equal ones counted; as they are without hashes."""
        if self.row_hashes is None:
            return self
        _, first, which = np.unique(self.row_hashes(slice(None)), return_index=True, return_inverse=True)
        return self.taken(first, np.bincount(which.ravel(), self.weight, len(first)))

    def one_by_one(self) -> MixedRows:
        """Rows of whole weights repeated."""
        rows = np.repeat(np.arange(len(self)), self.weight.astype(np.int64))
        return self.taken(rows, np.ones(len(rows)))


@dataclass(frozen=True, eq=False)
class FactorRows:
    """The rows of a plan as emissions of the same parents take them, some parents hidden.

    Parameters
    ----------
    emissions : tuple of int
        Numbers of the emissions.
    tables : tuple of Table
        Of each emission, a row for each context of the plan.
    n_states : int
        Joint states of all parents.
    states : ndarray of int, shape (n_cells, n_rows), or None
        The joint state of all parents in each cell of the factor; None where no parent is observed: cells are states.
    """

    emissions: tuple[int, ...]
    tables: tuple[Any, ...]
    n_states: int
    states: np.ndarray | None

    def log_likelihoods(self, steps: Sequence[Step], rows: slice) -> np.ndarray:
        """Expected log likelihoods (n_lanes, n_states, n_rows), or (n_states, n_rows), of all emissions together."""
        each = (steps[k].log_likelihood(table[rows]) for k, table in zip(self.emissions, self.tables))
        total = next(each)
        for number, log_likelihood in enumerate(each):  # one by one: those of many columns would not fit into the cache
            total = np.add(total, log_likelihood, out=total if number else None)
        return total.swapaxes(-1, -2)

    def cells(self, of_states: np.ndarray, rows: slice) -> np.ndarray:
        """Values for all states (n_lanes, n_states, n_rows) of some rows, as values for the cells of the factor."""
        if self.states is None:
            return np.ascontiguousarray(of_states)
        return np.take_along_axis(of_states, self.states[None, :, rows], axis=1)

    def components(self, of_plan: RowFactor, digits: Mapping[int, np.ndarray], layout: Layout) -> np.ndarray:
        """The joint state of all parents in each row, under each joint state of what the plan hides.

        Parameters
        ----------
        of_plan : RowFactor
            The factor as the plan has it.
        digits : mapping of int to ndarray of shape (n_hidden_states,)
            The state of each hidden node.
        layout : Layout

        Returns
        -------
        ndarray of int, shape (n_rows, n_hidden_states)
        """
        sizes = [layout.cardinalities[p] for p in of_plan.hidden]
        of_cells = np.ravel_multi_index([digits[p] for p in of_plan.hidden], sizes)
        if self.states is None:
            return np.broadcast_to(of_cells, (len(self.tables[0]), len(of_cells)))
        return self.states[of_cells].T

    def spread(self, of_cells: np.ndarray, rows: slice) -> np.ndarray:
        """Counts of the cells of the factor, as counts of all states: 0 of states that others were observed than."""
        if self.states is None:
            return of_cells
        of_states = np.zeros((len(of_cells), self.n_states, of_cells.shape[2]))
        np.put_along_axis(of_states, np.broadcast_to(self.states[None, :, rows], of_cells.shape), of_cells, axis=1)
        return of_states


@dataclass(frozen=True, eq=False)
class KnownRows:
    """The rows of one emission whose parents are all observed.

    Parameters
    ----------
    emission : int
    rows : ndarray of int, shape (n_rows,)
        Which of all rows these are.
    table : Table
    states : ndarray of int, shape (n_rows,)
        The joint state of the parents.
    weight : ndarray of shape (n_rows,)
    statistics : ndarray of shape (n_cells,) or None
        Of all these rows; None where they hide cells that have statistics.
    log_base : float
        Their log likelihood less natural parameters times statistics, nats.
    """

    emission: int
    rows: np.ndarray
    table: Any
    states: np.ndarray
    weight: np.ndarray
    statistics: np.ndarray | None = None
    log_base: float = 0.0


@dataclass(frozen=True, eq=False)
class MixedData:
    """Rows made ready for many E steps of a mixed network.

    Parameters
    ----------
    program : Program
        Of what is hidden, with the places of factors.
    factors : tuple of tuple of FactorRows
        Of each plan.
    known : tuple of KnownRows
    surveys : tuple of Table
        Of each emission a table without rows.
    source : MixedRows
        The rows of weight > 0.
    total_weight : float
        The n of every score, of all rows.
    has_whole_weights : bool
    size_of_terms : float
        Sum of the sizes of terms of all emissions, nats.
    hidden_numbers : HiddenNumbers or None
        Numbers that are summed out; their factors come after all emissions.
    drawn : list of MixedData
        The rows as draws take them, once they were compiled for these.
    """

    program: Program
    factors: tuple[tuple[FactorRows, ...], ...]
    known: tuple[KnownRows, ...]
    surveys: tuple[Any, ...]
    source: MixedRows
    total_weight: float
    has_whole_weights: bool
    size_of_terms: float
    hidden_numbers: HiddenNumbers | None = None
    drawn: list[MixedData] = field(default_factory=list, init=False, repr=False)

    def __len__(self) -> int:
        return len(self.source)

    @property
    def parts(self) -> tuple[MixedData]:
        """The rows as parts that are summed over: one."""
        return (self,)

    @property
    def factors_of_numbers(self) -> tuple[NumberFactor, ...]:
        """What takes the places of further emissions, after those of the model."""
        return () if self.hidden_numbers is None else self.hidden_numbers.factors

    @property
    def latents(self) -> tuple[int, ...]:
        """The nodes without a column of data."""
        return self.program.latents
